/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files_live.c: the facts that the files tell, from the live host.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "files/files_tree.h"

/* Counters are those of the process, whatever devices it uses; a device that it does not use has
 * none. */
static void live_counters(const struct verbena_device *d, uint64_t *value, unsigned n)
{
    struct verbena_gid *gids = calloc(VERBENA_GID_TABLE_SIZE, sizeof(*gids));
    bool open = gids != NULL && verbena_device_gids(d, gids) > 0;

    free(gids);
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
