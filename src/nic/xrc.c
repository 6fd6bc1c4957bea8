/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xrc.c: see xrc.h. A queue belongs to no QP, so it may go at any time: whoever finds one by its
 * number uses it under the table's lock.
 */
#include "nic/xrc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "nic/nic.h"

enum { INDEX_MASK = MAX_XRC_SRQ - 1, NUMBER_BITS = 24 };

void xrc_init(struct nic *nic)
{
    lock_init(&nic->xrc.lock);
}

void xrc_fini(struct nic *nic)
{
    free(nic->xrc.slot);
    lock_fini(&nic->xrc.lock);
}

int xrc_domain_create(struct nic *nic, struct xrcd **out)
{
    struct xrcd *xrcd = calloc(1, sizeof(*xrcd));
    if (xrcd == NULL)
        return -ENOMEM;
    xrcd->nic = nic;
    atomic_fetch_add(&nic->objects, 1);
    *out = xrcd;
    return 0;
}

int xrc_domain_destroy(struct xrcd *xrcd)
{
    if (atomic_load(&xrcd->children) != 0)
        return -EBUSY;
    atomic_fetch_sub(&xrcd->nic->objects, 1);
    free(xrcd);
    return 0;
}

/* Unpredictable bits, so that a number that has gone is not another's at once. */
static uint32_t draw_bits(struct nic *nic)
{
    lock_take(&nic->table_lock);
    uint32_t bits = rng_below(&nic->rng, 1u << (NUMBER_BITS - XRC_SRQ_INDEX_BITS));
    lock_drop(&nic->table_lock);
    return bits;
}

/* With the table's lock held. */
static void slots_create(struct xrc_table *t)
{
    if (t->slot == NULL)
        t->slot = calloc(MAX_XRC_SRQ, sizeof(*t->slot));
}

static int list(struct srq *srq, uint32_t bits)
{
    struct xrc_table *t = &srq->nic->xrc;
    int err = -ENOMEM;
    lock_take(&t->lock);
    slots_create(t);
    while (t->slot != NULL && t->unused < MAX_XRC_SRQ && t->slot[t->unused] != NULL)
        t->unused++;
    if (t->slot != NULL && t->unused < MAX_XRC_SRQ) {
        srq->number = bits << XRC_SRQ_INDEX_BITS | t->unused;
        t->slot[t->unused++] = srq;
        err = 0;
    }
    lock_drop(&t->lock);
    return err;
}

int xrc_srq_create(struct pd *pd, struct xrcd *xrcd, struct cq *cq, uint32_t *max_wr,
                   uint32_t *max_sge, void *owner, struct srq **out)
{
    struct srq *srq;
    int err = wq_srq_create(pd, max_wr, max_sge, 0, owner, &srq);
    if (err != 0)
        return err;
    err = list(srq, draw_bits(pd->nic));
    if (err != 0) {
        wq_srq_destroy(srq);
        return err;
    }
    atomic_fetch_add(&xrcd->children, 1);
    atomic_fetch_add(&cq->users, 1);
    srq->cq = cq;
    lock_take(&pd->nic->xrc.lock);
    srq->xrcd = xrcd; /* from now on packets find it */
    lock_drop(&pd->nic->xrc.lock);
    *out = srq;
    return 0;
}

void xrc_srq_forget(struct srq *srq)
{
    struct xrc_table *t = &srq->nic->xrc;
    uint32_t index = srq->number & INDEX_MASK;
    lock_take(&t->lock);
    assert(t->slot[index] == srq);
    t->slot[index] = NULL;
    if (index < t->unused)
        t->unused = index;
    lock_drop(&t->lock);
    atomic_fetch_sub(&srq->xrcd->children, 1);
    atomic_fetch_sub(&srq->cq->users, 1);
}

/* With the table's lock held. */
static struct srq *find(const struct qp *qp, uint32_t number)
{
    const struct xrc_table *t = &qp->nic->xrc;
    struct srq *srq = t->slot != NULL ? t->slot[number & INDEX_MASK] : NULL;
    return srq != NULL && srq->number == number && srq->xrcd == qp->xrcd ? srq : NULL;
}

const struct pd *xrc_find_pd(const struct qp *qp, uint32_t number)
{
    struct xrc_table *t = &qp->nic->xrc;
    lock_take(&t->lock);
    const struct srq *srq = find(qp, number);
    const struct pd *pd = srq != NULL ? srq->pd : NULL;
    lock_drop(&t->lock);
    return pd;
}

bool xrc_recv_take(struct qp *qp, uint32_t number)
{
    struct xrc_table *t = &qp->nic->xrc;
    lock_take(&t->lock);
    struct srq *srq = find(qp, number);
    bool taken = srq != NULL && wq_srq_take(srq, &qp->recv, 0) == WQ_TAKEN;
    lock_drop(&t->lock);
    qp->recv.xrc_srqn = number;
    return taken;
}

void xrc_recv_done(struct qp *qp, const struct cqe *e, bool solicited)
{
    struct xrc_table *t = &qp->nic->xrc;
    struct cqe own = *e;
    own.qp = NULL; /* it stays when the QP goes */
    lock_take(&t->lock);
    const struct srq *srq = find(qp, qp->recv.xrc_srqn);
    if (srq != NULL)
        cq_push(srq->cq, &own, solicited);
    lock_drop(&t->lock);
}
