/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.c: the queue of async events. Nodes belong to the objects; the list and the count of what
 * waits are the scheduler's.
 */
#include "nic/event.h"

#include "nic/nic.h"

void event_init(struct nic_event *e, enum nic_event_type type, enum event_object kind, void *owner)
{
    *e = (struct nic_event){.type = type, .object_kind = kind, .owner = owner};
}

void event_raise(struct nic *nic, struct nic_event *e)
{
    lock_take(&nic->sched_lock);
    if (!e->queued) {
        TAILQ_INSERT_TAIL(&nic->events, e, link);
        e->queued = true;
        atomic_fetch_add(&nic->event_count, 1);
    }
    lock_drop(&nic->sched_lock);
}

void event_drop(struct nic *nic, struct nic_event *e)
{
    lock_take(&nic->sched_lock);
    if (e->queued) {
        TAILQ_REMOVE(&nic->events, e, link);
        e->queued = false;
        atomic_fetch_sub(&nic->event_count, 1);
    }
    lock_drop(&nic->sched_lock);
}
