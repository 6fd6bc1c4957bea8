/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect_rig.h: a user of connection management for the tests of host/: its events in a queue to
 * be waited for, and the usual way to a connection. As endpoint.h, it aborts when something fails.
 */
#ifndef TESTS_HOST_CONNECT_RIG_H
#define TESTS_HOST_CONNECT_RIG_H

#include <pthread.h>

#include "endpoint.h"

enum {
    RIG_SPACE_TCP = 0x06,
    RIG_SPACE_UDP = 0x11,
    RIG_EVENTS = 4096,
    RIG_WAIT_S = 20,
};

struct rig_event {
    struct verbena_cm_event e;
    uint8_t data[256], info[128]; /* where e's pointers lead */
};

struct rig {
    struct verbena_cm *cm;
    pthread_mutex_t lock;
    pthread_cond_t there;
    struct rig_event *event; /* those not yet taken */
    unsigned events;
    int refuse;               /* what new ids are answered with; 0: they are taken */
    uint8_t response_timeout; /* of rig_connect; 0: rig_request's */
};

void rig_open(struct rig *r);
void rig_close(struct rig *r);
/* The id's next event that is not MRA, which must be of this type; of a new id: id is its listener.
 */
void rig_wait(struct rig *r, struct verbena_cm_id *id, enum verbena_cm_event_type type,
              struct rig_event *out);
/* Has the id an event that nobody took? */
bool rig_pending(struct rig *r, struct verbena_cm_id *id);
struct verbena_cm_id *rig_id(struct rig *r);
/* With events that nobody took. */
void rig_destroy(struct rig *r, struct verbena_cm_id *id);
/* Bound and listening. addr: as verbena_cm_bind. */
struct verbena_cm_id *rig_listen(struct rig *r, uint64_t service_id, const struct net_addr *addr);
/* From and to one address; short waits. */
void rig_request(const struct net_addr *addr, uint64_t service_id, struct verbena_cm_connect *out);

extern const struct net_addr rig_v4, rig_v6; /* 127.0.0.1, ::1 */

/* Both sides of a connection, in one process or two. */
struct rig_side {
    struct rig *rig;
    struct verbena_cm_id *id;
    struct endpoint e;
    bool only_receives;        /* its QP stays in RTR */
    struct endpoint_name peer; /* rkey and addr come in the private data */
};
void rig_side_open(struct rig_side *s, struct rig *r);
void rig_side_close(struct rig_side *s);
/* gid_index on lo: 0: 127.0.0.1, 1: ::1. */
void rig_connect(struct rig_side *s, unsigned gid_index, uint64_t service_id);
/* On REP: the QP, then RTU. */
void rig_ready(struct rig_side *s, unsigned gid_index);
/* On REQ: the QP, then REP. */
void rig_accept(struct rig_side *s, struct verbena_cm_id *listener, unsigned gid_index);

#endif
