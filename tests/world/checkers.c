/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checkers.c: what must hold after each step, for each completion, and at the end of a world. What
 * packets show is in sniffer.c.
 */
#include <stdio.h>
#include <string.h>

#include "world.h"

static uint32_t op_end(const struct op *op)
{
    return op->first + op->packets;
}

static bool in_error(const struct qp *qp)
{
    return qp->state == QP_STATE_ERR;
}

static void check_requester(struct world *w, struct direction *d, const struct qp *qp)
{
    const struct requester *r = &qp->req;
    int32_t next = psn_diff(r->next, r->una), end = psn_diff(r->sent_end, r->next);
    int32_t number = psn_diff(r->number, r->sent_end);
    if (r->window_max == 0)
        return; /* not in RTS yet */
    if (!in_error(qp) && (next < 0 || end < 0 || number < 0))
        world_fail(w,
                   "PSN windows of pair %d node %d: una %06x next %06x sent_end %06x number %06x",
                   d->pair, d->from, r->una.v, r->next.v, r->sent_end.v, r->number.v);
    if (psn_diff(r->sent_end, r->una) > (int32_t)r->window_max)
        world_fail(w, "pair %d node %d: %d PSNs in flight, the window is %u", d->pair, d->from,
                   psn_diff(r->sent_end, r->una), r->window_max);
    if (r->rd_atomic > qp->attr.max_rd_atomic)
        world_fail(w, "pair %d node %d: rd_atomic %u", d->pair, d->from, r->rd_atomic);
    if (qp->sq.tail - qp->sq.head > qp->sq.capacity)
        world_fail(w, "pair %d node %d: send queue over its capacity", d->pair, d->from);
    if (!psn_eq(r->una, d->una_seen)) {
        if (psn_before(r->una, d->una_seen))
            world_fail(w, "pair %d node %d: una went back", d->pair, d->from);
        d->una_seen = r->una;
        d->faults_before = d->faults; /* a NAK sent before may cost a retry now */
        d->faults = 0;
        d->wire.rnr_naks = 0;
    }
}

void check_step(struct world *w)
{
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        const struct qp *qp = world_requester(w, d), *peer = world_responder(w, d);
        check_requester(w, d, qp);
        uint32_t executed = world_offset(d, peer->resp.epsn);
        uint32_t answered = world_answered(w, d);
        if (answered > executed)
            world_fail(w, "pair %d node %d: PSN %u taken as acknowledged, the peer has %u", d->pair,
                       d->from, answered, executed);
        if (executed > d->wire.sent)
            world_fail(w, "pair %d node %d: the peer executed PSN %u, sent were %u", d->pair,
                       d->from, executed, d->wire.sent);
        /* Nothing completes before the responder has it all. */
        if (!in_error(qp) && qp->sq.head > 0 && op_end(&d->op[qp->sq.head - 1]) > executed)
            world_fail(w, "pair %d node %d: op %u is complete, the peer has only %u of PSN %u",
                       d->pair, d->from, qp->sq.head - 1, executed,
                       op_end(&d->op[qp->sq.head - 1]));
        if (peer->resp.reply_tail - peer->resp.reply_head > MAX_REPLIES)
            world_fail(w, "pair %d: reply queue over its limit", d->pair);
    }
}

/* May this QP give up for want of answers? */
static bool may_give_up(struct world *w, const struct direction *d, enum wc_status status)
{
    if (status == WC_RNR_RETRY_EXC_ERR)
        return w->opt.rnr_exhausted && d->wire.rnr_naks > w->opt.rnr_retry;
    return status == WC_RETRY_EXC_ERR && (!w->opt.limited || in_error(world_responder(w, d)));
}

static enum wc_opcode expected_opcode(enum wr_opcode opcode)
{
    switch (opcode) {
    case WR_RDMA_WRITE:
    case WR_RDMA_WRITE_WITH_IMM:
        return WC_RDMA_WRITE;
    case WR_RDMA_READ:
        return WC_RDMA_READ;
    case WR_ATOMIC_CMP_AND_SWP:
        return WC_COMP_SWAP;
    case WR_ATOMIC_FETCH_AND_ADD:
        return WC_FETCH_ADD;
    case WR_LOCAL_INV:
        return WC_LOCAL_INV;
    default:
        return WC_SEND;
    }
}

static void check_send_success(struct world *w, struct direction *d, uint32_t index,
                               const struct nic_wc *wc)
{
    const struct op *op = &d->op[index];
    bool fetch = op->opcode == WR_RDMA_READ || expected_opcode(op->opcode) == WC_COMP_SWAP ||
                 op->opcode == WR_ATOMIC_FETCH_AND_ADD;
    if (d->failed)
        world_fail(w, "op %u succeeded after one that failed", index);
    if (!(op->flags & WR_SIGNALED))
        world_fail(w, "op %u is not signalled, yet it made a completion", index);
    if (op->bad != BAD_NONE)
        world_fail(w, "op %u is bad (%d), yet it succeeded", index, op->bad);
    if (wc->opcode != expected_opcode(op->opcode))
        world_fail(w, "op %u: completion opcode %d", index, wc->opcode);
    if (fetch && wc->byte_len != op->length)
        world_fail(w, "op %u: byte_len %u, length %u", index, wc->byte_len, op->length);
    if (op_end(op) > world_offset(d, world_responder(w, d)->resp.epsn))
        world_fail(w, "op %u completed before the peer had it", index);
}

static void check_send_completion(struct world *w, int node, const struct nic_wc *wc)
{
    unsigned which = wc->wr_id >> 32 & 0xff;
    uint32_t index = (uint32_t)wc->wr_id;
    struct direction *d = &w->dir[which];
    if ((int)which >= w->dirs || d->from != node || index >= d->posted ||
        wc->qp_num != world_requester(w, d)->qpn) {
        world_fail(w, "completion of a send that was not posted here");
        return;
    }
    d->blocked = false;
    if (index < d->next_wc)
        world_fail(w, "op %u completed twice or out of order, due is %u", index, d->next_wc);
    for (uint32_t i = d->next_wc; i < index; i++)
        if (d->failed || (d->op[i].flags & WR_SIGNALED))
            world_fail(w, "direction %u: op %u completed, op %u was due", which, index, i);
    d->next_wc = index + 1;
    if (wc->status == WC_SUCCESS) {
        check_send_success(w, d, index, wc);
        return;
    }
    bool first = !d->failed;
    struct direction *reverse = &w->dir[which ^ 1];
    d->failed = true;
    if (wc->status == WC_WR_FLUSH_ERR) {
        if (first && !w->killed[d->pair] && reverse->bad_op < 0)
            world_fail(w, "direction %u: op %u flushed without a cause", which, index);
        return;
    }
    d->error = wc->status;
    d->error_op = index;
    if (!first)
        world_fail(w, "op %u: a second error, %d", index, wc->status);
    if (!(d->op[index].bad != BAD_NONE && wc->status == d->op[index].expect) &&
        !may_give_up(w, d, wc->status))
        world_fail(w, "direction %u: op %u failed with %d, planned %d", which, index, wc->status,
                   d->op[index].expect);
}

static void check_recv_success(struct world *w, struct direction *d, const struct nic_wc *wc)
{
    if (d->recv_failed || d->recv_ok >= d->messages) {
        world_fail(w, "a receive too many succeeded");
        return;
    }
    const struct op *op = &d->op[d->message[d->recv_ok++]];
    bool imm = op->opcode == WR_SEND_WITH_IMM || op->opcode == WR_RDMA_WRITE_WITH_IMM;
    unsigned flags = (imm ? WC_WITH_IMM : 0) | (op->inv >= 0 ? WC_WITH_INV : 0);
    uint32_t value = op->inv >= 0 ? d->inv[op->inv].mr->key : op->imm;
    bool write = op->opcode == WR_RDMA_WRITE_WITH_IMM;
    if (wc->opcode != (write ? WC_RECV_RDMA_WITH_IMM : WC_RECV) || wc->byte_len != op->length ||
        wc->flags != flags || (flags != 0 && wc->imm_or_inv != value))
        world_fail(w, "receive of op %u: opcode %d byte_len %u flags %x imm %x",
                   (unsigned)(op - d->op), wc->opcode, wc->byte_len, wc->flags, wc->imm_or_inv);
    if (op_end(op) > world_offset(d, world_responder(w, d)->resp.epsn))
        world_fail(w, "receive completed before its last packet");
    if (op->bad != BAD_NONE)
        world_fail(w, "receive of a bad op succeeded");
}

static void check_recv_completion(struct world *w, int node, const struct nic_wc *wc)
{
    uint32_t index = (uint32_t)wc->wr_id;
    struct pool *pool = &w->node[node].pool[wc->wr_id >> 32 & 0xff];
    struct direction *d = NULL;
    for (int i = 0; i < w->dirs; i++)
        if (w->dir[i].to == node && world_responder(w, &w->dir[i])->qpn == wc->qp_num)
            d = &w->dir[i];
    if (d == NULL || d->pool != pool || index >= pool->posted || pool->recv[index].done) {
        world_fail(w, "completion of a receive that is not there (twice?)");
        return;
    }
    pool->recv[index].done = true;
    pool->polled++;
    if (pool->srq == NULL && index != d->recv_seen)
        world_fail(w, "receive %u completed, %u was due", index, d->recv_seen);
    d->recv_map[d->recv_seen++] = (uint16_t)index;
    if (wc->status == WC_SUCCESS) {
        check_recv_success(w, d, wc);
        return;
    }
    enum bad_kind bad = BAD_NONE;
    if (!d->recv_failed && d->recv_ok < d->messages)
        bad = d->op[d->message[d->recv_ok]].bad;
    d->recv_failed = true;
    bool ok = wc->status == WC_WR_FLUSH_ERR ? in_error(world_responder(w, d))
              : wc->status == WC_LOC_LEN_ERR
                  ? bad == BAD_SHORT_RECV
                  : wc->status == WC_LOC_PROT_ERR && bad == BAD_RECV_LKEY;
    if (!ok)
        world_fail(w, "receive %u failed with %d", index, wc->status);
}

void check_completion(struct world *w, int node, const struct nic_wc *wc)
{
    if (wc->wr_id >> 40 == WR_ID_SEND)
        check_send_completion(w, node, wc);
    else if (wc->wr_id >> 40 == WR_ID_RECV)
        check_recv_completion(w, node, wc);
    else
        world_fail(w, "completion with wr_id %llx", (unsigned long long)wc->wr_id);
}

/* ---- the end ---- */

static void check_receives(struct world *w, const struct direction *d)
{
    uint32_t executed = world_offset(d, world_responder(w, d)->resp.epsn);
    uint32_t complete = 0;
    while (complete < d->messages && op_end(&d->op[d->message[complete]]) <= executed)
        complete++;
    if (d->recv_ok != complete)
        world_fail(w, "pair %d node %d: %u messages came, %u receives completed", d->pair, d->to,
                   complete, d->recv_ok);
    if (!in_error(world_responder(w, d))) {
        if (d->recv_failed)
            world_fail(w, "pair %d node %d: failed receives on a QP without an error", d->pair,
                       d->to);
    } else if (d->pool->srq == NULL && d->recv_seen != d->pool->n) {
        world_fail(w, "pair %d node %d: %u of %u receives flushed", d->pair, d->to, d->recv_seen,
                   d->pool->n);
    }
}

static void check_direction_end(struct world *w, const struct direction *d)
{
    const struct qp *qp = world_requester(w, d), *peer = world_responder(w, d);
    const struct direction *reverse = &w->dir[(d - w->dir) ^ 1];
    if (d->posted != d->ops || qp->sq.head != qp->sq.tail || d->next_wc != d->ops) {
        world_fail(w, "stuck: pair %d node %d: %u ops, %u posted, %u complete, %u seen", d->pair,
                   d->from, d->ops, d->posted, qp->sq.head, d->next_wc);
        return;
    }
    if (in_error(qp) != in_error(peer))
        world_fail(w, "pair %d: one side in ERR", d->pair);
    if (!in_error(qp) && (world_answered(w, d) != d->packets || d->failed))
        world_fail(w, "pair %d node %d: not all PSNs acknowledged", d->pair, d->from);
    /* On a perfect network a bad WR has exactly the planned end. */
    bool certain = w->opt.perfect && w->opt.limited && !w->kill_planned[d->pair];
    if (certain && reverse->bad_op < 0) {
        bool planned = d->bad_op >= 0;
        if (in_error(qp) != planned || d->failed != planned)
            world_fail(w, "pair %d node %d: the bad WR did not fail, or another did", d->pair,
                       d->from);
        if (planned && (d->error_op != (uint32_t)d->bad_op || d->error != d->op[d->bad_op].expect))
            world_fail(w, "pair %d node %d: op %d should fail with %d, op %u did with %d", d->pair,
                       d->from, d->bad_op, d->op[d->bad_op].expect, d->error_op, d->error);
    }
    /* A WRITE that would leave its region moves not one byte. */
    if (d->bad_op >= 0) {
        const struct op *op = &d->op[d->bad_op];
        if (op->opcode != WR_RDMA_READ && op->expect == WC_REM_ACCESS_ERR &&
            world_offset(d, peer->resp.epsn) > op->first)
            world_fail(w, "pair %d node %d: the bad op %d was begun", d->pair, d->from, d->bad_op);
    }
    check_receives(w, d);
}

static void check_invalidated(struct world *w, const struct direction *d)
{
    uint32_t executed = world_offset(d, world_responder(w, d)->resp.epsn);
    for (uint32_t i = 0; i < d->ops; i++) {
        const struct op *op = &d->op[i];
        if (op->opcode == WR_LOCAL_INV) {
            if (!d->failed && d->local_inv[op->inv].mr->remote_valid)
                world_fail(w, "op %u: its rkey is valid still", i);
            continue;
        }
        if (op->inv >= 0 && d->inv[op->inv].mr->remote_valid != (op_end(op) > executed))
            world_fail(w, "op %u: its rkey is%s valid", i,
                       d->inv[op->inv].mr->remote_valid ? "" : " not");
    }
}

static void check_memory(struct world *w)
{
    for (int i = 0; i < NODES; i++) {
        const struct node *n = &w->node[i];
        uint32_t bytes = n->mem_bytes + GUARD_BYTES, at = 0;
        if (memcmp(n->mem, n->ideal, bytes) == 0)
            continue;
        while (n->mem[at] == n->ideal[at])
            at++;
        world_fail(w, "memory of node %d differs at %u (receives at %u+%u): %02x, should be %02x",
                   i, at, n->recv_region.at, n->recv_region.bytes, n->mem[at], n->ideal[at]);
        for (int k = 0; k < w->dirs; k++) {
            const struct direction *d = &w->dir[k];
            for (int kind = 0; kind <= REGION_CELLS; kind++) {
                const struct region *r = &d->region[kind];
                if ((kind <= REGION_SINK ? d->from : d->to) == i && at >= r->at &&
                    at < r->at + r->bytes) {
                    size_t used = strlen(w->why);
                    snprintf(w->why + used, sizeof(w->why) - used, ", direction %d region %d +%u",
                             k, kind, at - r->at);
                }
            }
        }
    }
}

/* A network without faults, no wait for receives: then nothing is ever sent twice. */
static void check_waste(struct world *w)
{
    uint64_t sent = 0, rnr = 0;
    for (int i = 0; i < NODES; i++) {
        sent += counters_get(&w->node[i].nic->counters, COUNTER_retransmitted_packets);
        rnr += counters_get(&w->node[i].nic->counters, COUNTER_rnr_nak_sent);
    }
    for (int i = 0; i < w->opt.pairs; i++)
        if (w->killed[i])
            return;
    if (w->opt.perfect && w->opt.limited && rnr == 0 && sent != 0)
        world_fail(w, "%llu packets sent again without need", (unsigned long long)sent);
}

void check_end(struct world *w)
{
    for (int i = 0; i < w->dirs; i++) {
        check_direction_end(w, &w->dir[i]);
        check_invalidated(w, &w->dir[i]);
    }
    check_memory(w);
    check_waste(w);
}
