/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_numa.c: libnuma does the work. The thread stays near the device, so that only the way to the
 * memory differs.
 */
#include "lab/lab_numa.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NODES = 64 };

static uint64_t allowed(void)
{
    uint64_t nodes = 0;
    if (numa_available() < 0)
        return 1;
    struct bitmask *ours = numa_get_mems_allowed();
    for (int i = 0; i < MAX_NODES && i <= numa_max_node(); i++)
        if (numa_bitmask_isbitset(ours, (unsigned)i) != 0 && numa_node_size64(i, NULL) > 0)
            nodes |= 1ull << i;
    numa_bitmask_free(ours);
    return nodes != 0 ? nodes : 1;
}

unsigned lab_numa_nodes(void)
{
    return (unsigned)__builtin_popcountll(allowed());
}

struct lab_numa_place lab_numa_choose(enum lab_near near, int device_node, uint64_t nodes)
{
    struct lab_numa_place place = {-1, -1};
    if (near == LAB_ANYWHERE || nodes == 0)
        return place;
    bool known = device_node >= 0 && device_node < MAX_NODES && (nodes >> device_node & 1) != 0;
    place.thread = place.memory = known ? device_node : __builtin_ctzll(nodes);
    uint64_t others = nodes & ~(1ull << place.thread);
    if (near == LAB_FAR && others != 0)
        place.memory = __builtin_ctzll(others);
    return place;
}

static int node_of(const char *device)
{
    char path[160];
    int node = -1;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%.64s/device/numa_node", device);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return -1;
    if (fscanf(f, "%d", &node) != 1) // NOLINT(cert-err34-c): any other text is no node
        node = -1;
    fclose(f);
    return node;
}

int lab_numa_place(enum lab_near near, const char *device, void *memory, uint64_t bytes,
                   char message[LAB_MESSAGE_BYTES])
{
    const struct lab_numa_place place = lab_numa_choose(near, node_of(device), allowed());
    unsigned long mask = place.memory < 0 ? 0 : 1ul << place.memory;
    if (numa_available() < 0)
        return 0;
    if (numa_run_on_node(place.thread) != 0) {
        snprintf(message, LAB_MESSAGE_BYTES, "numa: cannot run on node %d: %s", place.thread,
                 strerror(errno));
        return -EIO;
    }
    if (mbind(memory, bytes, place.memory < 0 ? MPOL_DEFAULT : MPOL_BIND,
              place.memory < 0 ? NULL : &mask, place.memory < 0 ? 0 : MAX_NODES + 1,
              place.memory < 0 ? 0 : MPOL_MF_MOVE | MPOL_MF_STRICT) != 0) {
        snprintf(message, LAB_MESSAGE_BYTES, "numa: cannot bring the slots to node %d: %s",
                 place.memory, strerror(errno));
        return -EIO;
    }
    return 0;
}
