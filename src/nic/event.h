/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h: async events. Each object carries the nodes of the events it can raise, so raising never
 * needs memory and an event that nobody fetched yet is not raised twice.
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

struct nic_event {
    TAILQ_ENTRY(nic_event) link;
    enum nic_event_type type;
    enum event_object object_kind;
    void *owner; /* the host's object */
    bool queued;
};

TAILQ_HEAD(nic_event_list, nic_event);

void event_init(struct nic_event *e, enum nic_event_type type, enum event_object kind, void *owner);
/* Any lock of the engine may be held but the scheduler's. */
void event_raise(struct nic *nic, struct nic_event *e);
/* Forget it if it is still queued: the object goes away. */
void event_drop(struct nic *nic, struct nic_event *e);

#endif
