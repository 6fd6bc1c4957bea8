/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * srq.c: the shared receive queue half of wq.h: a receive queue with a lock of its own that the
 * responders of several QPs take from, and a limit that asks once for more receives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/wq.h"

static uint32_t max_srq_wr(const struct nic *nic)
{
    return nic->config.max_qp_wr == 0 ? MAX_WR : nic->config.max_qp_wr;
}

int wq_srq_create(struct pd *pd, uint32_t *max_wr, uint32_t *max_sge, uint32_t limit, void *owner,
                  struct srq **out)
{
    struct nic *nic = pd->nic;
    struct srq *srq;

    if (*max_wr < 1 || *max_wr > max_srq_wr(nic) || *max_sge > MAX_SGE || limit > *max_wr)
        return -EINVAL;
    srq = calloc(1, sizeof(*srq));
    if (srq == NULL)
        return -ENOMEM;
    if (wq_init_recv(&srq->rq, *max_wr, *max_sge == 0 ? 1 : *max_sge) != 0) {
        free(srq);
        return -ENOMEM;
    }
    srq->nic = nic;
    srq->pd = pd;
    srq->owner = owner;
    srq->limit = limit;
    lock_init(&srq->lock);
    event_init(&srq->events, EVENT_OBJECT_SRQ, owner);
    atomic_fetch_add(&pd->children, 1);
    *max_wr = srq->rq.capacity;
    *max_sge = srq->rq.max_sge;
    *out = srq;
    return 0;
}

int wq_srq_destroy(struct srq *srq)
{
    if (atomic_load(&srq->users) != 0)
        return -EBUSY;
    if (srq->xrcd != NULL)
        xrc_srq_forget(srq);
    event_drop(srq->nic, &srq->events);
    atomic_fetch_sub(&srq->pd->children, 1);
    wq_fini_recv(&srq->rq);
    lock_fini(&srq->lock);
    free(srq);
    return 0;
}

int wq_post_srq_recv(struct srq *srq, const struct nic_recv_wr *wr)
{
    int err;

    lock_take(&srq->lock);
    err = wq_queue_recv(&srq->rq, wr);
    lock_drop(&srq->lock);
    return err;
}

/* With the SRQ's lock held: one event when fewer than limit receives are left; then it is disarmed
 * until the program sets it again. */
static void check_limit(struct srq *srq)
{
    if (srq->limit == 0 || srq->rq.tail - srq->rq.head >= srq->limit)
        return;
    srq->limit = 0;
    event_raise(srq->nic, &srq->events, EVENT_SRQ_LIMIT_REACHED);
}

enum wq_take wq_srq_take(struct srq *srq, struct recv_current *to, uint32_t bytes)
{
    struct recv_queue *rq = &srq->rq;
    enum wq_take take = WQ_NONE;

    lock_take(&srq->lock);
    if (rq->head != rq->tail) {
        const struct recv_wqe *w = &rq->wqe[rq->head & rq->mask];

        take = w->length < bytes ? WQ_SMALL : WQ_TAKEN;
        if (take == WQ_TAKEN) {
            wq_copy_recv(to, w);
            rq->head++;
            check_limit(srq);
        }
    }
    lock_drop(&srq->lock);
    return take;
}

int wq_srq_resize(struct srq *srq, uint32_t *new_max_wr)
{
    struct recv_queue next, old;
    uint32_t posted, capacity, max_sge;

    lock_take(&srq->lock);
    capacity = srq->rq.capacity;
    max_sge = srq->rq.max_sge;
    lock_drop(&srq->lock);
    if (*new_max_wr == 0) {
        *new_max_wr = capacity;
        return 0;
    }
    if (*new_max_wr > max_srq_wr(srq->nic))
        return -EINVAL;
    if (wq_init_recv(&next, *new_max_wr, max_sge) != 0)
        return -ENOMEM;
    lock_take(&srq->lock);
    old = srq->rq;
    posted = old.tail - old.head;
    if (posted > *new_max_wr || srq->limit > *new_max_wr) {
        lock_drop(&srq->lock);
        wq_fini_recv(&next);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < posted; i++) {
        const struct recv_wqe *from = &old.wqe[(old.head + i) & old.mask];
        struct recv_wqe *to = &next.wqe[i];
        struct nic_sge *sge = to->sge;

        *to = *from;
        to->sge = sge;
        memcpy(sge, from->sge, from->num_sge * sizeof(*sge));
    }
    next.tail = posted;
    srq->rq = next;
    *new_max_wr = next.capacity;
    lock_drop(&srq->lock);
    wq_fini_recv(&old);
    return 0;
}

int wq_srq_set_limit(struct srq *srq, uint32_t limit)
{
    int err = 0;

    lock_take(&srq->lock);
    if (limit > srq->rq.capacity) {
        err = -EINVAL;
    } else {
        srq->limit = limit;
        check_limit(srq);
    }
    lock_drop(&srq->lock);
    return err;
}
