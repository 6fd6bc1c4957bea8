/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_numa.h: where the machine has several NUMA nodes, thread and slots on one of them, or the
 * slots on another. Where it has one there is nothing to choose.
 */
#ifndef LAB_LAB_NUMA_H
#define LAB_LAB_NUMA_H

#include <stdbool.h>
#include <stdint.h>

#include "lab/lab_settings.h"

/* Nodes that we may use; 1 where the kernel knows nothing of them. */
unsigned lab_numa_nodes(void);
/* Thread and memory of a placement, by the device's node (-1: unknown) and which of 64 nodes there
 * are. */
struct lab_numa_place {
    int thread, memory; /* -1: anywhere */
};
struct lab_numa_place lab_numa_choose(enum lab_near near, int device_node, uint64_t nodes);
/* This thread, those that it starts, and memory that no device has registered now. 0, or -errno and
 * a message. */
int lab_numa_place(enum lab_near near, const char *device, void *memory, uint64_t bytes,
                   char message[LAB_MESSAGE_BYTES]);

#endif
