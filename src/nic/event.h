/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h: async events. Each object carries what it raised and nobody fetched yet, so raising
 * never needs memory, and what is there is not raised twice.
 */
#ifndef NIC_EVENT_H
#define NIC_EVENT_H

#include <stdbool.h>
#include <sys/queue.h>

#include "verbena/types.h"

struct nic;

enum event_object {
    EVENT_OBJECT_QP,
    EVENT_OBJECT_CQ,
    EVENT_OBJECT_SRQ,
};

/* As the host gets it. */
struct nic_event {
    enum nic_event_type type;
    enum event_object object_kind;
    void *owner; /* the host's object */
};

enum { EVENT_TYPES_MAX = 7 }; /* that one object raises: a QP */

/* Of one object; all but its owner under the scheduler's lock. */
struct event_source {
    TAILQ_ENTRY(event_source) link;
    void *owner;
    uint8_t object_kind : 4;       /* enum event_object */
    uint8_t waiting : 4;           /* not 0: it is listed */
    uint8_t type[EVENT_TYPES_MAX]; /* those that wait, enum nic_event_type, oldest first */
};

TAILQ_HEAD(event_list, event_source);

void event_init(struct event_source *s, enum event_object kind, void *owner);
/* Any lock of the engine may be held but the scheduler's. */
void event_raise(struct nic *nic, struct event_source *s, enum nic_event_type type);
/* Takes out the next one; false: none. Those of one object come in order. */
bool event_next(struct nic *nic, struct nic_event *out);
/* Forgets those that wait: the object goes away. */
void event_drop(struct nic *nic, struct event_source *s);

#endif
