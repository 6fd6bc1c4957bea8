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

static void check_requester(struct world *w, struct direction *d, const struct qp *qp)
{
    const struct requester *r = &qp->req;
    int32_t next = psn_diff(r->next, r->una), end = psn_diff(r->sent_end, r->next);
    int32_t number = psn_diff(r->number, r->sent_end);
    if (r->window_max == 0)
        return; /* not in RTS yet */
    if (!world_in_error(qp) && (next < 0 || end < 0 || number < 0))
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
        d->wire.rnr_naks = d->wire.refusals = 0;
    }
}

static const struct recv *recv_of_message(const struct direction *d, uint32_t message)
{
    return d->pool->dir < 0 ? NULL : &d->pool->recv[message];
}

/* What a packet of an op moves at the responder must have been allowed when it came. */
static bool was_allowed(struct world *w, struct direction *d, const struct op *op)
{
    if (op->length == 0 || op->opcode == WR_LOCAL_INV)
        return true;
    if (!op_takes_receive(op->opcode) || op->opcode == WR_RDMA_WRITE_WITH_IMM)
        return op->remote_generation == world_region(w, d, op->remote_region)->generation;
    uint32_t message = 0;
    while (message < d->messages && d->message[message] != op - d->op)
        message++;
    const struct recv *r = recv_of_message(d, message);
    return r == NULL || r->generation == w->node[d->to].recv_region.generation;
}

/* The responder has gone on: everything that it took was allowed. */
static void check_taken(struct world *w, struct direction *d, uint32_t executed)
{
    while (d->executed_op < d->ops && d->op[d->executed_op].first < executed) {
        const struct op *op = &d->op[d->executed_op];
        if (!was_allowed(w, d, op))
            world_fail(w, "pair %d node %d: op %u was executed with a key that is gone", d->pair,
                       d->to, d->executed_op);
        if (op_end(op) > executed)
            break;
        d->executed_op++;
    }
    d->executed = executed;
}

/* The requester has taken answers: their bytes may have gone where they did. */
static void check_results(struct world *w, struct direction *d, uint32_t answered)
{
    while (d->answered_op < d->ops && d->op[d->answered_op].first < answered) {
        const struct op *op = &d->op[d->answered_op];
        if (op_is_fetch(op) && op->length != 0 &&
            op->local_generation != d->region[REGION_SINK].generation)
            world_fail(w, "pair %d node %d: the result of op %u went to memory whose key is gone",
                       d->pair, d->from, d->answered_op);
        if (op_end(op) > answered)
            break;
        d->answered_op++;
    }
    d->answered = answered;
}

static void check_direction_step(struct world *w, struct direction *d)
{
    const struct qp *qp = world_requester(w, d), *peer = world_responder(w, d);
    uint32_t executed = world_executed(w, d), answered = world_answered(w, d);
    if (qp != NULL)
        check_requester(w, d, qp);
    if (executed != d->executed)
        check_taken(w, d, executed);
    if (answered != d->answered)
        check_results(w, d, answered);
    if (answered > executed)
        world_fail(w, "pair %d node %d: PSN %u taken as acknowledged, the peer has %u", d->pair,
                   d->from, answered, executed);
    if (executed > d->wire.sent)
        world_fail(w, "pair %d node %d: the peer executed PSN %u, sent were %u", d->pair, d->from,
                   executed, d->wire.sent);
    /* Nothing completes before the responder has it all. */
    if (qp != NULL && !world_in_error(qp) && qp->sq.head > 0 &&
        op_end(&d->op[qp->sq.head - 1]) > executed)
        world_fail(w, "pair %d node %d: op %u is complete, the peer has only %u of PSN %u", d->pair,
                   d->from, qp->sq.head - 1, executed, op_end(&d->op[qp->sq.head - 1]));
    if (peer != NULL && peer->resp.reply_tail - peer->resp.reply_head > 2 * peer->resp.depth)
        world_fail(w, "pair %d: reply queue over its limit", d->pair);
}

void check_step(struct world *w, int node)
{
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        if ((d->from == node || d->to == node) && !d->dead && w->pair[d->pair].state == PAIR_LIVE)
            check_direction_step(w, d);
    }
    watch_srq(w, node);
}

/* May this QP give up for want of answers? */
static bool may_give_up(struct world *w, const struct direction *d, enum wc_status status)
{
    if (status == WC_RNR_RETRY_EXC_ERR)
        return w->opt.rnr_exhausted && d->wire.rnr_naks > w->opt.rnr_retry &&
               d->wire.refusals <= w->opt.rnr_retry + 1u;
    const struct qp *peer = world_responder(w, d);
    const struct pair *p = &w->pair[d->pair];
    return status == WC_RETRY_EXC_ERR &&
           (!w->opt.limited || peer == NULL || world_in_error(peer) || p->stale ||
            p->hurt); /* a READ that is asked for again once its key is gone has no answer */
}

/* May it fail with this since a key of it was taken away? */
static bool lost_key(struct world *w, struct direction *d, const struct op *op,
                     enum wc_status status)
{
    bool fetch = op_is_fetch(op);
    if (status == WC_LOC_PROT_ERR)
        return op->length != 0 &&
               op->local_generation != d->region[fetch ? REGION_SINK : REGION_SRC].generation;
    if (status == WC_REM_ACCESS_ERR)
        return op->length != 0 && op->inv < 0 &&
               op->remote_generation != world_region(w, d, op->remote_region)->generation;
    return status == WC_REM_OP_ERR && w->node[d->to].recv_region.generation > 0;
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
    bool fetch = op_is_fetch(op);
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
    if (op_end(op) > world_executed(w, d))
        world_fail(w, "op %u completed before the peer had it", index);
}

static void check_send_completion(struct world *w, int node, const struct nic_wc *wc)
{
    unsigned which = wc->wr_id >> 32 & 0xff;
    uint32_t index = (uint32_t)wc->wr_id;
    struct direction *d = &w->dir[which];
    const struct qp *qp = (int)which < w->dirs ? world_requester(w, d) : NULL;
    if (qp == NULL || d->from != node || index >= d->posted || wc->qp_num != qp->qpn) {
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
        const struct pair *p = &w->pair[d->pair];
        bool cause = p->killed || p->hurt || reverse->bad_op >= 0 || (p->self && d->bad_op >= 0) ||
                     qp->send_cq->overflowed || qp->recv_cq->overflowed;
        if (first && !cause)
            world_fail(w, "direction %u: op %u flushed without a cause", which, index);
        return;
    }
    d->error = wc->status;
    d->error_op = index;
    if (!first)
        world_fail(w, "op %u: a second error, %d", index, wc->status);
    if (wc->status == WC_RETRY_EXC_ERR)
        sniff_gave_up(w, d);
    if (!(d->op[index].bad != BAD_NONE && wc->status == d->op[index].expect) &&
        !may_give_up(w, d, wc->status) && !lost_key(w, d, &d->op[index], wc->status))
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
    uint32_t value = op->inv >= 0 ? mw_key(d->inv[op->inv].mw) : op->imm;
    bool write = op->opcode == WR_RDMA_WRITE_WITH_IMM;
    if (wc->opcode != (write ? WC_RECV_RDMA_WITH_IMM : WC_RECV) || wc->byte_len != op->length ||
        wc->flags != flags || (flags != 0 && wc->imm_or_inv != value))
        world_fail(w, "receive of op %u: opcode %d byte_len %u flags %x imm %x",
                   (unsigned)(op - d->op), wc->opcode, wc->byte_len, wc->flags, wc->imm_or_inv);
    if (op_end(op) > world_executed(w, d))
        world_fail(w, "receive completed before its last packet");
    if (op->bad != BAD_NONE)
        world_fail(w, "receive of a bad op succeeded");
}

static void check_recv_completion(struct world *w, int node, const struct nic_wc *wc)
{
    uint32_t index = (uint32_t)wc->wr_id;
    unsigned which = wc->wr_id >> 32 & 0xff;
    const struct slot *s = world_slot(w, node, wc->qp_num);
    struct direction *d =
        s == NULL || s->pair < 0 ? NULL : world_direction(w, s->pair, s->side, false);
    struct pool *pool = d == NULL ? NULL : d->pool;
    if (d == NULL || pool != &w->pool[which] || index >= pool->posted || pool->recv[index].done) {
        world_fail(w, "completion of a receive that is not there (twice?)");
        return;
    }
    pool->recv[index].done = true;
    pool->polled++;
    if (pool->dir >= 0 && index != d->recv_seen)
        world_fail(w, "receive %u completed, %u was due", index, d->recv_seen);
    if (d->recv_seen == MAX_RECV_MAP) {
        world_fail(w, "a QP saw the end of too many receives");
        return;
    }
    d->recv_map[d->recv_seen++] = (uint16_t)index;
    if (wc->status == WC_SUCCESS) {
        check_recv_success(w, d, wc);
        return;
    }
    enum bad_kind bad = BAD_NONE;
    if (!d->recv_failed && d->recv_ok < d->messages)
        bad = d->op[d->message[d->recv_ok]].bad;
    d->recv_failed = true;
    bool ok = wc->status == WC_WR_FLUSH_ERR ? world_in_error(world_responder(w, d))
              : wc->status == WC_LOC_LEN_ERR
                  ? bad == BAD_SHORT_RECV
                  : wc->status == WC_LOC_PROT_ERR &&
                        (bad == BAD_RECV_LKEY ||
                         pool->recv[index].generation != w->node[node].recv_region.generation);
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

/* Receives that completed are the messages that came, no more and no less. */
static void check_receives(struct world *w, const struct direction *d, const struct qp *peer)
{
    uint32_t complete = 0;
    while (complete < d->messages && op_end(&d->op[d->message[complete]]) <= d->executed)
        complete++;
    if (peer->recv_cq->overflowed)
        return;
    if (d->recv_ok != complete)
        world_fail(w, "pair %d node %d: %u messages came, %u receives completed", d->pair, d->to,
                   complete, d->recv_ok);
    if (!world_in_error(peer)) {
        if (d->recv_failed && !peer->resp.failed) /* its NAK may not be out yet when a life ends */
            world_fail(w, "pair %d node %d: failed receives on a QP without an error", d->pair,
                       d->to);
    } else if (d->pool->dir >= 0 && d->recv_seen != d->pool->posted) {
        world_fail(w, "pair %d node %d: %u of %u receives flushed", d->pair, d->to, d->recv_seen,
                   d->pool->posted);
    }
}

/* A WRITE that would leave its region moves not one byte. */
static void check_bad_op(struct world *w, const struct direction *d)
{
    if (d->bad_op < 0)
        return;
    const struct op *op = &d->op[d->bad_op];
    if (op->opcode != WR_RDMA_READ && op->expect == WC_REM_ACCESS_ERR && d->executed > op->first)
        world_fail(w, "pair %d node %d: the bad op %d was begun", d->pair, d->from, d->bad_op);
}

static void check_invalidated(struct world *w, const struct direction *d)
{
    for (uint32_t i = 0; i < d->ops; i++) {
        const struct op *op = &d->op[i];
        if (op->opcode == WR_LOCAL_INV) {
            if (d->next_wc > i && !d->failed && d->local_inv[op->inv].mw->region != NULL)
                world_fail(w, "op %u: its rkey is valid still", i);
            continue;
        }
        if (op->inv >= 0 && (d->inv[op->inv].mw->region != NULL) != (op_end(op) > d->executed))
            world_fail(w, "op %u: its rkey is%s valid", i,
                       d->inv[op->inv].mw->region != NULL ? "" : " not");
    }
}

void check_life(struct world *w, int pair, int side)
{
    const struct direction *in = world_direction(w, pair, side, false);
    check_receives(w, in, world_responder(w, in));
    check_bad_op(w, in);
    check_invalidated(w, in);
}

/* Of a pair that lives. */
static void check_direction_end(struct world *w, const struct direction *d)
{
    const struct qp *qp = world_requester(w, d), *peer = world_responder(w, d);
    const struct direction *reverse = &w->dir[(d - w->dir) ^ 1];
    const struct pair *p = &w->pair[d->pair];
    bool lost = qp->send_cq->overflowed;
    if (!lost && (d->posted != d->ops || qp->sq.head != qp->sq.tail || d->next_wc != d->ops)) {
        world_fail(w, "stuck: pair %d node %d: %u ops, %u posted, %u complete, %u seen", d->pair,
                   d->from, d->ops, d->posted, qp->sq.head, d->next_wc);
        return;
    }
    if (world_in_error(qp) != world_in_error(peer))
        world_fail(w, "pair %d: one side in ERR", d->pair);
    if (!world_in_error(qp) && (d->answered != d->packets || d->failed))
        world_fail(w, "pair %d node %d: not all PSNs acknowledged", d->pair, d->from);
    /* On a perfect network a bad WR has exactly the planned end. */
    bool certain = w->opt.perfect && !p->self && w->opt.limited && !p->kill_planned && !p->hurt &&
                   !p->stale && !w->opt.overflow && !w->opt.rnr_exhausted;
    if (certain && reverse->bad_op < 0) {
        bool planned = d->bad_op >= 0;
        if (world_in_error(qp) != planned || d->failed != planned)
            world_fail(w, "pair %d node %d: the bad WR did not fail, or another did", d->pair,
                       d->from);
        if (planned && (d->error_op != (uint32_t)d->bad_op || d->error != d->op[d->bad_op].expect))
            world_fail(w, "pair %d node %d: op %d should fail with %d, op %u did with %d", d->pair,
                       d->from, d->bad_op, d->op[d->bad_op].expect, d->error_op, d->error);
    }
    if (lost && !world_in_error(qp))
        world_fail(w, "pair %d node %d: its CQ ran over, it goes on", d->pair, d->from);
    check_bad_op(w, d);
    check_receives(w, d, peer);
    check_invalidated(w, d);
}

static void check_memory(struct world *w)
{
    for (int i = 0; i < w->opt.nodes; i++) {
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
    for (int i = 0; i < w->opt.nodes; i++) {
        sent += counters_get(&w->node[i].nic->counters, COUNTER_retransmitted_packets);
        rnr += counters_get(&w->node[i].nic->counters, COUNTER_rnr_nak_sent);
    }
    for (int i = 0; i < w->pairs; i++)
        if (w->pair[i].killed || w->pair[i].hurt || w->pair[i].stale)
            return;
    if (w->opt.perfect && w->opt.limited && rnr == 0 && sent != 0)
        world_fail(w, "%llu packets sent again without need", (unsigned long long)sent);
}

void check_end(struct world *w)
{
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        const struct pair *p = &w->pair[d->pair];
        d->executed = world_executed(w, d);
        d->answered = world_answered(w, d);
        if (p->state == PAIR_WAITS || p->end[0].over != p->end[1].over)
            world_fail(w, "the world ends in the middle of a life of pair %d", d->pair);
        else if (!d->dead && p->state == PAIR_LIVE)
            check_direction_end(w, d);
    }
    check_memory(w);
    check_waste(w);
}
