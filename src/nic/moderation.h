/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moderation.h: completion events that wait until there are enough completions, or until a time has
 * passed. A CQ whose event waits stands in a list of its NIC; nic_deadline tells when the first is
 * due.
 */
#ifndef NIC_MODERATION_H
#define NIC_MODERATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct cq;
struct nic;

/* Of one CQ; under its lock, the link under the scheduler's. */
struct moderation {
    uint32_t count;     /* completions that make an event; below 2: each */
    uint64_t period_ns; /* after the first, whatever the number; 0: at once */
    uint32_t held;      /* since it was armed, without an event */
    uint64_t due_ns;    /* of the event that waits */
    _Atomic bool waits; /* in the NIC's list; written under the scheduler's lock */
    TAILQ_ENTRY(cq) link;
};

/* From now on. What waits for an event gets one. */
void moderation_set(struct cq *cq, uint32_t count, uint64_t period_ns);
/* With the CQ's lock held, armed, at a completion: may its event wait? */
bool moderation_holds(struct cq *cq);
/* With the CQ's lock held: there is an event, or there will be none. */
void moderation_clear(struct cq *cq);
/* Events of those that are due. No lock held. */
void moderation_expire(struct nic *nic, uint64_t now_ns);

#endif
