/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_rig.h: what one end holds for a whole run: the device, its port and address, and the
 * registered pool.
 */
#ifndef LAB_LAB_RIG_H
#define LAB_LAB_RIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "lab/lab_settings.h"
#include "lab/lab_slot.h"

enum { LAB_RIG_EXTRA_BYTES = 4096 }; /* behind the pool: the word that atomics change */

struct lab_rig {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_mr *mr; /* pool and extra */
    struct ibv_device_attr device;
    struct ibv_port_attr port_attr;
    uint8_t port;
    int gid_index;
    union ibv_gid gid;
    char name[64]; /* of the device */
    uint8_t *memory;
    uint64_t memory_bytes;
    struct lab_pool pool;
    enum lab_near near;   /* where the memory is now */
    uint64_t register_ns; /* what registering all of it took */
};

/* Opens the device that the settings name, else the one that has the address `own`, else the first
 * whose port is active. 0, or -errno and a message. */
int lab_rig_open(struct lab_rig *r, const struct lab_settings *s, const uint8_t own[16],
                 char message[LAB_MESSAGE_BYTES]);
/* Brings the slots to where they are to be, or to where they are when nobody asks; they are
 * registered anew for it, and what was in them may be gone. */
int lab_rig_place(struct lab_rig *r, enum lab_near near, char message[LAB_MESSAGE_BYTES]);
void lab_rig_close(struct lab_rig *r);
/* Is it our own NIC in software? */
bool lab_rig_is_verbena(const struct lab_rig *r);
/* Where the word lies that atomics change. */
uint64_t *lab_rig_counter(const struct lab_rig *r);
/* Bytes of an MTU. */
uint32_t lab_rig_mtu_bytes(enum ibv_mtu mtu);

#endif
