/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.c: the queue of async events: the objects that raised some. The list and the count of what
 * waits are the scheduler's.
 */
#include "nic/event.h"

#include <assert.h>
#include <string.h>

#include "nic/nic.h"

void event_init(struct event_source *s, enum event_object kind, void *owner)
{
    *s = (struct event_source){.object_kind = (uint8_t)kind & 15, .owner = owner};
}

void event_raise(struct nic *nic, struct event_source *s, enum nic_event_type type)
{
    lock_take(&nic->sched_lock);
    if (memchr(s->type, (int)type, s->waiting) == NULL) {
        assert(s->waiting < EVENT_TYPES_MAX);
        if (s->waiting == 0)
            TAILQ_INSERT_TAIL(&nic->events, s, link);
        s->type[s->waiting++] = (uint8_t)type;
        atomic_fetch_add(&nic->event_count, 1);
    }
    lock_drop(&nic->sched_lock);
}

bool event_next(struct nic *nic, struct nic_event *out)
{
    if (atomic_load_explicit(&nic->event_count, memory_order_acquire) == 0)
        return false;
    lock_take(&nic->sched_lock);
    struct event_source *s = TAILQ_FIRST(&nic->events);
    if (s != NULL) {
        *out = (struct nic_event){s->type[0], s->object_kind, s->owner};
        s->waiting--;
        memmove(s->type, s->type + 1, s->waiting);
        TAILQ_REMOVE(&nic->events, s, link);
        if (s->waiting != 0) /* others have their turn */
            TAILQ_INSERT_TAIL(&nic->events, s, link);
        atomic_fetch_sub(&nic->event_count, 1);
    }
    lock_drop(&nic->sched_lock);
    return s != NULL;
}

void event_drop(struct nic *nic, struct event_source *s)
{
    lock_take(&nic->sched_lock);
    if (s->waiting != 0) {
        TAILQ_REMOVE(&nic->events, s, link);
        atomic_fetch_sub(&nic->event_count, s->waiting);
        s->waiting = 0;
    }
    lock_drop(&nic->sched_lock);
}
