/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wq.c: send and receive queues. A post checks the WR and copies it into a slot; the roles finish
 * slots in order, each with a completion where one is due. Shared receive queues are in srq.c.
 *
 * A send slot has two ends of life: head passes it when the work is done, freed passes it when the
 * program has polled a completion at or after it. Only then may it be posted again.
 */
#include "nic/wq.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "nic/nic.h"
#include "nic/qp.h"
#include "nic/roce/placement.h"

enum { ATOMIC_BYTES = 8 };

#define TYPE(t)  (1u << QP_TYPE_##t)
#define TYPES_RC (TYPE(RC) | TYPE(XRC_INI))
#define TYPES_UC (TYPES_RC | TYPE(UC))
#define TYPES_UD (TYPES_UC | TYPE(UD) | TYPE(GSI))

/* Windows of type 2 are for one QP and go by its work requests. An XRC target has none, so that
 * none can be bound to it; what an initiator would bind or invalidate no peer could use. */
#define TYPES_INVALIDATE (TYPE(RC) | TYPE(UC))

/* What each opcode of the verbs model is here. */
static const struct opcode_rule {
    unsigned types;
    enum wc_opcode wc;
    bool may_inline;
    bool atomic;
} opcode_rule[] = {
    [WR_RDMA_WRITE] = {TYPES_UC,         WC_RDMA_WRITE,   true,  false},
    [WR_RDMA_WRITE_WITH_IMM] = {TYPES_UC,         WC_RDMA_WRITE,   true,  false},
    [WR_SEND] = {TYPES_UD,         WC_SEND,         true,  false},
    [WR_SEND_WITH_IMM] = {TYPES_UD,         WC_SEND,         true,  false},
    [WR_RDMA_READ] = {TYPES_RC,         WC_RDMA_READ,    false, false},
    [WR_ATOMIC_CMP_AND_SWP] = {TYPES_RC,         WC_COMP_SWAP,    false, true },
    [WR_ATOMIC_FETCH_AND_ADD] = {TYPES_RC,         WC_FETCH_ADD,    false, true },
    [WR_LOCAL_INV] = {TYPES_INVALIDATE, WC_LOCAL_INV,    false, false},
    [WR_BIND_MW] = {TYPES_UC,         WC_BIND_MW,      false, false},
    [WR_SEND_WITH_INV] = {TYPE(RC),         WC_SEND,         true,  false},
    [WR_FLUSH] = {TYPES_RC,         WC_FLUSH,        false, false},
    [WR_ATOMIC_WRITE] = {TYPES_RC,         WC_ATOMIC_WRITE, true,  true },
};

enum { OPCODE_RULES = sizeof(opcode_rule) / sizeof(opcode_rule[0]) };

/* Slots of a ring for n entries: the next power of two, at least 1, so that index & mask works. */
static uint32_t ring_slots(uint32_t n)
{
    uint32_t slots = 1;

    while (slots < n)
        slots *= 2;
    return slots;
}

int wq_init_send(struct send_queue *sq, const struct nic_qp_cap *cap, bool datagrams)
{
    uint32_t slots = ring_slots(cap->max_send_wr);
    size_t stride = cap->max_send_sge * sizeof(struct nic_sge);

    if (stride < cap->max_inline_bytes)
        stride = (cap->max_inline_bytes + 15u) & ~(size_t)15;
    if (stride == 0)
        stride = sizeof(struct nic_sge);
    *sq = (struct send_queue){
        .capacity = cap->max_send_wr,
        .mask = slots - 1,
        .max_sge = cap->max_send_sge,
        .max_inline_bytes = cap->max_inline_bytes,
    };
    if (cap->max_send_wr == 0)
        return 0;
    sq->slab = alloc_touched(slots, stride + sizeof(*sq->wqe));
    if (datagrams)
        sq->dest = alloc_touched(slots, sizeof(*sq->dest));
    if (sq->slab == NULL || (datagrams && sq->dest == NULL)) {
        wq_fini_send(sq);
        return -ENOMEM;
    }
    sq->wqe = (struct send_wqe *)(sq->slab + slots * stride);
    for (uint32_t i = 0; i < slots; i++)
        sq->wqe[i].inline_data = sq->slab + i * stride;
    return 0;
}

void wq_fini_send(struct send_queue *sq)
{
    free(sq->slab);
    free(sq->dest);
    sq->wqe = NULL;
    sq->slab = NULL;
    sq->dest = NULL;
}

int wq_init_recv(struct recv_queue *rq, uint32_t max_wr, uint32_t max_sge)
{
    uint32_t slots = ring_slots(max_wr);
    size_t stride = max_sge == 0 ? 1 : max_sge;

    *rq = (struct recv_queue){.capacity = max_wr, .mask = slots - 1, .max_sge = max_sge};
    if (max_wr == 0)
        return 0;
    rq->slab = alloc_touched(slots, stride * sizeof(*rq->slab) + sizeof(*rq->wqe));
    if (rq->slab == NULL)
        return -ENOMEM;
    rq->wqe = (struct recv_wqe *)(rq->slab + slots * stride);
    for (uint32_t i = 0; i < slots; i++)
        rq->wqe[i].sge = rq->slab + i * stride;
    return 0;
}

void wq_fini_recv(struct recv_queue *rq)
{
    free(rq->slab);
    rq->wqe = NULL;
    rq->slab = NULL;
}

/* All that can be said of a WR without looking at the queue. */
static int check_send(const struct qp *qp, const struct nic_send_wr *wr, uint64_t length)
{
    const struct opcode_rule *rule;
    bool is_inline = wr->flags & WR_INLINE;

    if (qp->type == QP_TYPE_XRC_TGT || (unsigned)wr->opcode >= OPCODE_RULES)
        return -EINVAL;
    rule = &opcode_rule[wr->opcode];
    if (!(rule->types & 1u << qp->type))
        return -EINVAL;
    if (is_inline && (!rule->may_inline || length > qp->sq.max_inline_bytes))
        return -EINVAL;
    /* Inline pieces are gathered here and now: their number is not bounded by the slot. */
    if (!is_inline && (uint32_t)wr->num_sge > qp->sq.max_sge)
        return -EINVAL;
    if (wr->opcode >= WR_FLUSH ? !placement_valid(wr, length)
                               : rule->atomic && length != ATOMIC_BYTES)
        return -EINVAL;
    if (qp->type == QP_TYPE_XRC_INI && wr->xrc_srqn > 0xffffff)
        return -EINVAL;
    if (qp->sq.dest != NULL && (wr->path == NULL || wr->dest_qpn > 0xffffff))
        return -EINVAL;
    return length > MAX_MESSAGE_BYTES ? -EINVAL : 0;
}

static void fill_send(struct send_wqe *w, const struct nic_send_wr *wr, uint32_t length,
                      bool sig_all)
{
    w->wr_id = wr->wr_id;
    w->remote_addr = wr->remote_addr;
    w->compare_add = wr->compare_add;
    w->swap = wr->swap;
    w->rkey = wr->rkey;
    w->imm_or_inv = wr->imm_or_inv;
    w->xrc_srqn = wr->xrc_srqn;
    w->length = length;
    w->opcode = (uint8_t)wr->opcode;
    w->flags = (uint8_t)(wr->flags & (WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE));
    if (sig_all)
        w->flags |= WR_SIGNALED;
    w->numbered = false;
    w->first_psn = psn_make(0);
    w->packets = 0;
    w->ssn = 0;
    if (wr->flags & WR_INLINE) {
        uint8_t *to = w->inline_data;

        w->num_sge = 0;
        for (int i = 0; i < wr->num_sge; i++) {
            const struct nic_sge *s = &wr->sg_list[i];

            if (s->length == 0)
                continue;
            memcpy(to, (const void *)(uintptr_t)s->addr, s->length);
            to += s->length;
        }
    } else {
        w->num_sge = (uint8_t)wr->num_sge;
        for (int i = 0; i < wr->num_sge; i++)
            w->sge[i] = wr->sg_list[i];
    }
}

static void fill_dest(struct send_dest *d, const struct nic_send_wr *wr, uint16_t udp_sport)
{
    d->path = *wr->path;
    if (d->path.udp_sport == 0)
        d->path.udp_sport = udp_sport;
    d->qpn = wr->dest_qpn;
    d->qkey = wr->qkey;
}

static int post_send(struct qp *qp, const struct nic_send_wr *wr)
{
    struct send_queue *sq = &qp->sq;
    uint64_t length;
    int err;

    /* IBA 10.3.1: sends are taken from RTS on. */
    if (qp->state == QP_STATE_RESET || qp->state == QP_STATE_INIT || qp->state == QP_STATE_RTR)
        return -EINVAL;
    if (wr->num_sge < 0 || wr->num_sge > MAX_SGE)
        return -EINVAL;
    length = mem_sge_bytes(wr->sg_list, wr->num_sge);
    err = check_send(qp, wr, length);
    if (err != 0)
        return err;
    if (sq->tail - atomic_load_explicit(&sq->freed, memory_order_acquire) >= sq->capacity)
        return -ENOMEM;
    fill_send(&sq->wqe[sq->tail & sq->mask], wr, (uint32_t)length, qp->sq_sig_all);
    if (wr->opcode >= WR_FLUSH)
        placement_fill(&sq->wqe[sq->tail & sq->mask], wr);
    if (sq->dest != NULL)
        fill_dest(&sq->dest[sq->tail & sq->mask], wr, qp->udp_sport);
    sq->tail++;
    if (qp->state == QP_STATE_ERR || qp->state == QP_STATE_SQE)
        wq_send_done(qp, WC_WR_FLUSH_ERR);
    else if (qp->state == QP_STATE_RTS)
        nic_qp_ready(qp);
    return 0;
}

int wq_post_send(struct qp *qp, const struct nic_send_wr *wr)
{
    int err;

    lock_take(&qp->lock);
    err = post_send(qp, wr);
    lock_drop(&qp->lock);
    return err;
}

int wq_queue_recv(struct recv_queue *rq, const struct nic_recv_wr *wr)
{
    struct recv_wqe *w;
    uint64_t length;

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
        return -EINVAL;
    if (rq->tail - rq->head >= rq->capacity)
        return -ENOMEM;
    w = &rq->wqe[rq->tail & rq->mask];
    length = mem_sge_bytes(wr->sg_list, wr->num_sge);
    w->wr_id = wr->wr_id;
    w->num_sge = (uint32_t)wr->num_sge;
    w->length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
    for (int i = 0; i < wr->num_sge; i++)
        w->sge[i] = wr->sg_list[i];
    rq->tail++;
    return 0;
}

static void push_recv(struct qp *qp, const struct nic_wc *wc, bool solicited)
{
    struct cqe e = {.wc = *wc, .qp = qp, .is_send = false};

    if (qp->type == QP_TYPE_XRC_TGT)
        xrc_recv_done(qp, &e, solicited);
    else
        cq_push(qp->recv_cq, &e, solicited);
}

static void flush_recv(struct qp *qp, uint64_t wr_id)
{
    struct nic_wc wc = {
        .wr_id = wr_id,
        .status = WC_WR_FLUSH_ERR,
        .opcode = WC_RECV,
        .qp_num = qp->qpn,
    };

    push_recv(qp, &wc, false);
}

static void flush_rq(struct qp *qp)
{
    struct recv_queue *rq = &qp->rq;

    for (; rq->head != rq->tail; rq->head++)
        flush_recv(qp, rq->wqe[rq->head & rq->mask].wr_id);
}

static int post_recv(struct qp *qp, const struct nic_recv_wr *wr)
{
    int err;

    /* IBA C10-22: a receive posted to a QP in RESET is refused at once. */
    if (qp->state == QP_STATE_RESET || qp->srq != NULL || qp->type == QP_TYPE_XRC_INI ||
        qp->type == QP_TYPE_XRC_TGT)
        return -EINVAL;
    err = wq_queue_recv(&qp->rq, wr);
    if (err == 0 && qp->state == QP_STATE_ERR)
        flush_rq(qp);
    return err;
}

int wq_post_recv(struct qp *qp, const struct nic_recv_wr *wr)
{
    int err;

    lock_take(&qp->lock);
    err = post_recv(qp, wr);
    lock_drop(&qp->lock);
    return err;
}

void wq_send_done(struct qp *qp, enum wc_status status)
{
    struct send_queue *sq = &qp->sq;
    const struct send_wqe *w = &sq->wqe[sq->head & sq->mask];
    struct cqe e;

    assert(sq->head != sq->tail);
    sq->head++;
    if (status == WC_SUCCESS && !(w->flags & WR_SIGNALED))
        return;
    e = (struct cqe){
        .wc =
            {
                 .wr_id = w->wr_id,
                 .status = status,
                 .opcode = opcode_rule[w->opcode].wc,
                 .byte_len = w->length,
                 .qp_num = qp->qpn,
                 },
        .qp = qp,
        .sq_freed_to = sq->head,
        .is_send = true,
    };
    cq_push(qp->send_cq, &e, false);
}

void wq_copy_recv(struct recv_current *to, const struct recv_wqe *w)
{
    to->valid = true;
    to->wr_id = w->wr_id;
    to->num_sge = w->num_sge;
    to->length = w->length;
    memcpy(to->sge, w->sge, w->num_sge * sizeof(*w->sge));
}

enum wq_take wq_recv_take_for(struct qp *qp, uint32_t bytes)
{
    struct recv_queue *rq = &qp->rq;
    const struct recv_wqe *w;

    assert(!qp->recv.valid);
    if (qp->srq != NULL)
        return wq_srq_take(qp->srq, &qp->recv, bytes);
    if (rq->head == rq->tail)
        return WQ_NONE;
    w = &rq->wqe[rq->head & rq->mask];
    if (w->length < bytes)
        return WQ_SMALL;
    wq_copy_recv(&qp->recv, w);
    rq->head++;
    return WQ_TAKEN;
}

bool wq_recv_take(struct qp *qp)
{
    return wq_recv_take_for(qp, 0) == WQ_TAKEN;
}

void wq_recv_done(struct qp *qp, struct nic_wc *e, bool solicited)
{
    assert(qp->recv.valid);
    qp->recv.valid = false;
    e->wr_id = qp->recv.wr_id;
    e->qp_num = qp->qpn;
    push_recv(qp, e, solicited);
}

uint32_t wq_recv_posted(const struct qp *qp)
{
    bool unknown = qp->srq != NULL || qp->type == QP_TYPE_XRC_TGT;

    return unknown ? UINT32_MAX : qp->rq.tail - qp->rq.head;
}

void wq_flush(struct qp *qp)
{
    while (qp->sq.head != qp->sq.tail)
        wq_send_done(qp, WC_WR_FLUSH_ERR);
    if (qp->recv.valid) {
        qp->recv.valid = false;
        flush_recv(qp, qp->recv.wr_id);
    }
    flush_rq(qp);
}

void wq_clear(struct qp *qp)
{
    qp->sq.head = qp->sq.tail = 0;
    atomic_store_explicit(&qp->sq.freed, 0, memory_order_release);
    qp->rq.head = qp->rq.tail = 0;
    qp->recv.valid = false;
}
