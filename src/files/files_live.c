/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files_live.c: the facts that the files tell, from the live host.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "files/files_tree.h"

/* A process that has the device open shows what it counted itself, on all of its devices: no other
 * can be in the way of its measurement. Who has not, a monitor, sees the sum of those that have. */
static void live_counters(const struct verbena_device *d, uint64_t *value, unsigned n)
{
    struct verbena_gid *gids = calloc(VERBENA_GID_TABLE_SIZE, sizeof(*gids));
    bool open = gids != NULL && verbena_device_gids(d, gids) > 0;

    free(gids);
    if (!open)
        verbena_counters_of_all(d, value, n);
    for (unsigned i = 0; open && i < n && verbena_counter_name(i) != NULL; i++)
        verbena_counter(i, &value[i]);
}

static bool live_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const struct files_source files_live = {
    .devices = verbena_device_list,
    .gids = verbena_device_gids,
    .counter_name = verbena_counter_name,
    .counters = live_counters,
    .exists = live_exists,
};
