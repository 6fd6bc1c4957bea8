/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cq.h: completion queues: a ring of completions, one-shot arming, overflow.
 */
#ifndef NIC_CQ_H
#define NIC_CQ_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "nic/event.h"
#include "nic/moderation.h"
#include "verbena/types.h"

struct nic;
struct qp;

enum cq_arm {
    CQ_ARM_NONE,
    CQ_ARM_SOLICITED, /* next solicited completion or error */
    CQ_ARM_ANY,
};

struct cqe {
    struct nic_wc wc;
    struct qp *qp; /* whose work this was; QPs purge their entries before they go */
    uint32_t
        sq_freed_to; /* send side: sq slots before this index are free once the entry is polled */
    bool is_send;
    bool solicited; /* or not a success */
};

struct cq {
    struct nic *nic;
    void *owner; /* the host's object, for events */
    struct lock lock;
    struct cqe *ring;
    uint32_t capacity;     /* entries a program may have outstanding: what it was told */
    uint32_t mask;         /* ring slots - 1; slots is a power of two >= capacity */
    _Atomic uint32_t head; /* next to poll; free-running */
    _Atomic uint32_t tail; /* next to fill; free-running */
    enum cq_arm armed;
    bool asked;    /* it was armed before */
    uint32_t told; /* entries before this one were there at the last event or arming */
    /* No entry is added any more. QPs that use it go to ERR by qp_purge_overflowed, as their locks
     * cannot be taken here. */
    bool overflowed;
    _Atomic uint32_t users; /* QPs; must be 0 to destroy */
    bool notify_queued;     /* on nic->notify */
    TAILQ_ENTRY(cq) notify_link;
    struct event_source events;
    struct moderation moderation;
};

/* cqe: 1..MAX_CQE; capacity will be >= cqe. 0, -EINVAL or -ENOMEM. */
int cq_create(struct nic *nic, int cqe, void *owner, struct cq **out);
/* Before the grace period that comes before its end: 0, or -EBUSY while QPs use it. */
int cq_retire(struct cq *cq);
/* 0, or -EBUSY while QPs use it. */
int cq_destroy(struct cq *cq);
/* 0; -EINVAL: fewer than the completions that wait in it, or out of bounds; -ENOMEM. */
int cq_resize(struct cq *cq, int cqe);

/*
 * Adds a completion; solicited or an error status also serve CQ_ARM_SOLICITED. At overflow nothing
 * is added, EVENT_CQ_ERR is raised once. Called with the QP's lock held.
 */
void cq_push(struct cq *cq, const struct cqe *e, bool solicited);
/* Takes up to max completions; returns how many. */
int cq_poll(struct cq *cq, int max, struct nic_wc *out);
/* Arms. A completion that is already there makes no event, but for one that came since the last
 * event or arming and was not polled: that makes one now. */
void cq_arm(struct cq *cq, bool solicited_only);
/* For moderation.c, with the lock held: the event that it is armed for. */
void cq_notify(struct cq *cq);
/* Drops all entries of a QP (destroy, RESET). */
void cq_purge(struct cq *cq, const struct qp *qp);

/* Ran over once, so that its QPs cannot go on. */
bool cq_has_overflowed(struct cq *cq);

/* Cheap hint without the lock: is there something to poll? */
static inline bool cq_maybe_ready(struct cq *cq)
{
    return atomic_load_explicit(&cq->tail, memory_order_acquire) !=
           atomic_load_explicit(&cq->head, memory_order_relaxed);
}

#endif
