/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * placement.c: see placement.h. An ATOMIC WRITE is one store of 8 bytes, after all that its QP
 * wrote before. A FLUSH answers when all that its QP wrote before is visible; that is so once it
 * has been executed, as packets are executed in order and memory is coherent. Nothing survives a
 * loss of power here, so no memory offers persistence, and who asks for it is refused.
 */
#include "nic/roce/placement.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/qp.h"
#include "wire/opcode.h"
#include "wire/roce.h"

enum {
    PLACEMENTS = FLUSH_GLOBAL | FLUSH_PERSISTENT,
    SEL_SHIFT = 4, /* FLUSH_MR is the FETH's selectivity level 1 */
    SEL_RANGE = 0,
    SEL_MR = FLUSH_MR >> SEL_SHIFT,
};

bool placement_valid(const struct nic_send_wr *wr, uint64_t length)
{
    if (wr->opcode == WR_ATOMIC_WRITE)
        return wr->num_sge == 0 ? !(wr->flags & WR_INLINE) : length == ATOMIC_WRITE_BYTES;
    return (wr->swap & PLACEMENTS) != 0 && (wr->swap & ~(uint64_t)(PLACEMENTS | FLUSH_MR)) == 0 &&
           wr->compare_add <= MAX_FLUSH_BYTES;
}

void placement_fill(struct send_wqe *w, const struct nic_send_wr *wr)
{
    if (wr->opcode == WR_FLUSH) {
        w->num_sge = 0; /* it moves no data */
        w->length = 0;
    } else if (wr->num_sge == 0) {
        w->flags |= WR_INLINE; /* there is always room for as much as one SGE takes */
        w->length = ATOMIC_WRITE_BYTES;
        memcpy(w->inline_data, &wr->swap, ATOMIC_WRITE_BYTES);
    }
}

enum added placement_add(struct qp *qp, const struct send_wqe *w, struct train *t)
{
    if (w->opcode == WR_ATOMIC_WRITE)
        return requester_add_message(qp, w, 0, t);
    uint8_t opcode = opcode_make(qp->service, OP_FLUSH);
    if (!train_fits(t, roce_packet_bytes(opcode, 0), 0))
        return ADDED_NO_ROOM;
    struct train_packet *p = train_add(t, qp, opcode, qp->req.next, 0);
    p->h.xrc_srqn = w->xrc_srqn;
    p->h.feth.plt = w->swap & PLACEMENTS;
    p->h.feth.sel = (uint8_t)(w->swap >> SEL_SHIFT);
    p->h.reth.va = w->remote_addr;
    p->h.reth.rkey = w->rkey;
    p->h.reth.dma_len = (uint32_t)w->compare_add;
    return ADDED;
}

/* Rights that a request needs of the QP and of the memory; 0: there is no such request. */
static unsigned rights(const struct rx_packet *p, uint16_t flags)
{
    const struct feth *f = &p->h.feth;
    if (flags & OPF_ATOMIC_WRITE)
        return ACCESS_REMOTE_WRITE;
    if ((f->plt & ~PLACEMENTS) != 0 || (f->sel != SEL_RANGE && f->sel != SEL_MR))
        return 0;
    return (f->plt & FLUSH_GLOBAL ? ACCESS_FLUSH_GLOBAL : 0) |
           (f->plt & FLUSH_PERSISTENT ? ACCESS_FLUSH_PERSISTENT : 0);
}

static bool length_valid(const struct rx_packet *p, uint16_t flags)
{
    const struct reth *reth = &p->h.reth;
    if (flags & OPF_ATOMIC_WRITE)
        return reth->dma_len == ATOMIC_WRITE_BYTES && p->payload_bytes == ATOMIC_WRITE_BYTES &&
               reth->va % ATOMIC_WRITE_BYTES == 0;
    return p->h.feth.sel == SEL_MR || reth->dma_len <= MAX_FLUSH_BYTES;
}

/*
 * Is there room for the answer? soft-RoCE as a requester does not count its FLUSHes among what
 * max_dest_rd_atomic limits, so that too many of them are no invalid request here: those that have
 * no room are dropped, and come again when what follows them is missed.
 */
static enum resp_verdict check_resource(struct qp *qp, uint16_t flags)
{
    const struct responder *r = &qp->resp;
    uint32_t limit = qp->attr.max_dest_rd_atomic;
    if (!(flags & OPF_FLUSH))
        return responder_check_reply(qp);
    if (limit == 0)
        return V_NAK_INVALID;
    if (replay_count(r, false, false) + replay_count(r, false, true) < limit)
        return V_GO_ON;
    nic_count(qp->nic, COUNTER_resp_dropped_requests, 1);
    return V_DROP;
}

static void finish(struct qp *qp, uint16_t flags)
{
    struct responder *r = &qp->resp;
    r->msn = psn_add(r->msn, 1);
    struct reply reply = {
        .is_flush = (flags & OPF_FLUSH) != 0, .psn = r->epsn, .packets = 1, .msn = r->msn};
    bool queued = replay_queue(qp, &reply);
    assert(queued); /* check_resource saw to it */
    r->epsn = psn_add(r->epsn, 1);
    r->ack_due = false; /* the response acknowledges what came before it */
}

enum resp_verdict placement_execute(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    struct responder *r = &qp->resp;
    const struct reth *reth = &p->h.reth;
    unsigned need = rights(p, flags);
    uint8_t *addr = NULL; /* of no bytes there is none */
    if (r->pd == NULL)    /* XRC: no such SRQ */
        return V_NAK_INVALID;
    if (need == 0 || (qp->attr.access_flags & need) != need || !length_valid(p, flags))
        return V_NAK_INVALID;
    bool whole = (flags & OPF_FLUSH) && p->h.feth.sel == SEL_MR;
    if (mem_check(qp->nic, r->pd, reth->rkey, reth->va, whole ? 0 : reth->dma_len, need, qp->qpn,
                  &addr) != MEM_OK)
        return V_NAK_ACCESS;
    enum resp_verdict v = check_resource(qp, flags);
    if (v != V_GO_ON)
        return v;
    if (flags & OPF_FLUSH)
        atomic_thread_fence(memory_order_seq_cst);
    else if ((uintptr_t)addr % ATOMIC_WRITE_BYTES != 0)
        return V_NAK_INVALID; /* an iova that is aligned where the memory is not */
    /* Aligned: one store, after all before. */
    else if (mem_write(qp->nic, r->pd, reth->rkey, reth->va, p->payload, ATOMIC_WRITE_BYTES, need,
                       qp->qpn) != MEM_OK)
        return V_NAK_ACCESS;
    finish(qp, flags);
    return V_GO_ON;
}
