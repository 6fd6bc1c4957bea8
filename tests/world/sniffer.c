/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sniffer.c: what must hold for the packets on the links: PSNs without gaps, limits on READs and
 * atomics, credits, waits after RNR NAKs, no message begun in SQD, answers in order and only to
 * what was executed, a NAK for every gap.
 */
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "world.h"

static uint16_t flags_of(const struct roce_headers *h)
{
    return opcode_info(h->bth.opcode)->flags;
}

static bool is_nak(const struct roce_headers *h)
{
    return opcode_op(h->bth.opcode) == OP_ACKNOWLEDGE && aeth_kind(h->aeth.syndrome) != AETH_ACK;
}

/* The direction that a packet sent to a node belongs to; NULL: no such QP. */
static struct direction *direction_of(struct world *w, int to, const struct roce_headers *h)
{
    for (int i = 0; i < w->opt.pairs; i++)
        if (w->node[to].qp[i]->qpn == h->bth.dest_qp)
            return &w->dir[i * 2 + (flags_of(h) & OPF_RESPONSE ? to : 1 - to)];
    return NULL;
}

static uint32_t executed(struct world *w, const struct direction *d)
{
    return world_offset(d, world_responder(w, d)->resp.epsn);
}

static uint32_t answered(struct world *w, const struct direction *d)
{
    return world_answered(w, d);
}

static const struct op *op_at(const struct direction *d, uint32_t at)
{
    uint32_t i = 0;
    while (i + 1 < d->ops && d->op[i + 1].first <= at)
        i++;
    return &d->op[i];
}

static bool is_fetch(const struct op *op)
{
    return op->opcode == WR_RDMA_READ || op->opcode == WR_ATOMIC_CMP_AND_SWP ||
           op->opcode == WR_ATOMIC_FETCH_AND_ADD;
}

/* READs and atomics without an answer, as the wire shows them. */
static void count_asked(struct world *w, struct direction *d, uint32_t first, uint32_t packets)
{
    struct sniffed *s = &d->wire;
    uint32_t kept = 0, una = answered(w, d);
    for (uint32_t i = 0; i < s->asks; i++)
        if (s->asked[i].end > una &&
            (s->asked[i].end <= first || s->asked[i].first >= first + packets))
            s->asked[kept++] = s->asked[i];
    s->asked[kept].first = first;
    s->asked[kept].end = first + packets;
    s->asks = kept + 1;
    if (s->asks > w->opt.rd_atomic[d->from])
        world_fail(w, "pair %d node %d: %u READs and atomics outstanding, allowed are %u", d->pair,
                   d->from, s->asks, w->opt.rd_atomic[d->from]);
}

/* Messages that end within the first end PSNs, pieces of READs counted, as the responder's MSN. */
static uint32_t messages_until(struct world *w, const struct direction *d, uint32_t end)
{
    uint32_t n = 0, piece = world_requester(w, d)->req.read_packets;
    for (uint32_t i = 0; i < d->ops && d->op[i].first < end; i++) {
        const struct op *op = &d->op[i];
        if (op->packets == 0)
            continue;
        bool all = op->first + op->packets <= end;
        if (op->opcode == WR_RDMA_READ)
            n += all ? (op->packets - 1) / piece + 1 : (end - op->first) / piece;
        else
            n += all ? 1 : 0;
    }
    return n;
}

static uint32_t message_number(struct world *w, const struct direction *d, const struct op *op)
{
    return messages_until(w, d, op->first + op->packets);
}

static void check_credit(struct world *w, const struct direction *d, uint32_t at)
{
    const struct op *op = op_at(d, at);
    if (!d->wire.limit_known || at != op->first || !op_takes_receive(op->opcode) ||
        at == answered(w, d))
        return;
    if (psn_before(d->wire.limit, psn_make(message_number(w, d, op))))
        world_fail(w, "pair %d node %d: op %u sent beyond the credits", d->pair, d->from,
                   (unsigned)(op - d->op));
}

static void check_sqd(struct world *w, struct direction *d, uint32_t at)
{
    struct sniffed *s = &d->wire;
    if (world_requester(w, d)->state != QP_STATE_SQD)
        s->sqd_begun = 0;
    else if (s->drained)
        world_fail(w, "pair %d node %d: sent after the queue was said to be drained", d->pair,
                   d->from);
    else if (at == s->sent && op_at(d, at)->first == at && ++s->sqd_begun > 1)
        world_fail(w, "pair %d node %d: messages are begun in SQD", d->pair, d->from);
}

static void request_sent(struct world *w, struct direction *d, const struct roce_headers *h)
{
    struct sniffed *s = &d->wire;
    uint32_t at = world_offset(d, h->bth.psn), packets = 1;
    if ((flags_of(h) & OPF_READ) && h->reth.dma_len != 0)
        packets = (h->reth.dma_len - 1) / w->opt.mtu + 1;
    if (at > s->sent || at + packets > d->packets) {
        world_fail(w, "pair %d node %d: request PSN offset %u, %u were sent, %u exist", d->pair,
                   d->from, at, s->sent, d->packets);
        return;
    }
    if (w->now_ns < s->quiet_until_ns)
        world_fail(w, "pair %d node %d: sent before the RNR timer ran out", d->pair, d->from);
    s->waiting = false;
    if (at < s->sent && at == answered(w, d))
        s->resent = at + 1;
    check_sqd(w, d, at);
    check_credit(w, d, at);
    if (at + packets > s->sent)
        s->sent = at + packets;
    if (flags_of(h) & (OPF_READ | OPF_ATOMIC))
        count_asked(w, d, at, packets);
}

/* MSN and credits of an answer: the MSN counts what was executed, credits are no more than there
 * are receives. */
static void check_aeth(struct world *w, struct direction *d, const struct roce_headers *h)
{
    const struct qp *qp = world_responder(w, d);
    uint8_t value = aeth_value(h->aeth.syndrome);
    uint32_t msn = messages_until(w, d, executed(w, d));
    if (opcode_op(h->bth.opcode) == OP_ACKNOWLEDGE ? h->aeth.msn.v != msn : h->aeth.msn.v > msn)
        world_fail(w, "pair %d node %d: MSN %u, executed are %u messages", d->pair, d->to,
                   h->aeth.msn.v, msn);
    /* With its last train a QP may have gone to ERR, its receives flushed. */
    if (aeth_kind(h->aeth.syndrome) != AETH_ACK || qp->state == QP_STATE_ERR)
        return;
    if (w->opt.srq ? value != AETH_CREDITS_NONE
                   : value == AETH_CREDITS_NONE || aeth_credits(value) > qp->rq.tail - qp->rq.head)
        world_fail(w, "pair %d node %d: credit code %u, %u receives", d->pair, d->to, value,
                   qp->rq.tail - qp->rq.head);
}

static void response_sent(struct world *w, struct direction *d, const struct roce_headers *h)
{
    struct sniffed *s = &d->wire;
    uint32_t at = world_offset(d, h->bth.psn), done = executed(w, d);
    bool nak = is_nak(h), ack = opcode_op(h->bth.opcode) == OP_ACKNOWLEDGE && !nak;
    /* An ACK before anything came in names the PSN before the first. */
    if (nak ? at > done : at + 1 > done) {
        world_fail(w, "pair %d node %d: answer to PSN %d, executed are %u", d->pair, d->to, (int)at,
                   done);
        return;
    }
    uint32_t end = ack ? at + 1 : at; /* what it says is done; data speaks for itself */
    for (uint32_t p = s->answered; p < end; p++)
        if (is_fetch(op_at(d, p)))
            world_fail(w, "pair %d node %d: answer to PSN %u before that to READ or atomic %u",
                       d->pair, d->to, at, p);
    end = nak ? at : at + 1;
    s->answered = end > s->answered ? end : s->answered;
    if (nak)
        s->naked = at + 1;
    if (opcode_info(h->bth.opcode)->headers & HDR_AETH)
        check_aeth(w, d, h);
}

void sniff_sent(struct world *w, int from, const struct roce_headers *h)
{
    struct direction *d = direction_of(w, 1 - from, h);
    if (flags_of(h) & OPF_RESPONSE)
        response_sent(w, d, h);
    else
        request_sent(w, d, h);
}

static void response_received(struct world *w, struct direction *d, const struct roce_headers *h,
                              bool alone)
{
    struct sniffed *s = &d->wire;
    const struct qp *qp = world_requester(w, d);
    if (!(opcode_info(h->bth.opcode)->headers & HDR_AETH))
        return;
    uint8_t value = aeth_value(h->aeth.syndrome);
    if (aeth_kind(h->aeth.syndrome) == AETH_ACK) {
        struct psn limit = value == AETH_CREDITS_NONE ? (struct psn){0}
                                                      : psn_add(h->aeth.msn, aeth_credits(value));
        if (value == AETH_CREDITS_NONE)
            s->limit_known = false;
        else if (!s->limit_known || psn_before(s->limit, limit))
            s->limit = limit;
        s->limit_known = value != AETH_CREDITS_NONE;
    } else if (aeth_kind(h->aeth.syndrome) == AETH_RNR_NAK &&
               world_offset(d, h->bth.psn) == answered(w, d) &&
               (qp->req.rnr_wait || qp->state == QP_STATE_ERR)) {
        s->rnr_naks++;
        /* Behind an answer that was still missing it is no refusal of what was due. */
        if (!s->waiting &&
            (alone ||
             s->una == answered(w, d))) /* a second one of the same refusal changes nothing */
            s->quiet_until_ns = w->now_ns + aeth_rnr_ns(value);
        s->waiting = true;
    }
}

void sniff_received(struct world *w, int to, const struct rx_packet *rx, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct direction *d = rx[i].icrc_ok ? direction_of(w, to, &rx[i].h) : NULL;
        if (d == NULL)
            continue;
        uint32_t at = world_offset(d, rx[i].h.bth.psn), due = executed(w, d);
        if (flags_of(&rx[i].h) & OPF_RESPONSE) {
            response_received(w, d, &rx[i].h, n == 1);
            uint32_t una = answered(w, d);
            bool ack = opcode_op(rx[i].h.bth.opcode) == OP_ACKNOWLEDGE && !is_nak(&rx[i].h);
            bool late = at < d->wire.sent && una < d->wire.sent && (ack ? at >= una : at > una) &&
                        is_fetch(op_at(d, una));
            d->wire.lost = late ? una + 1 : 0;
        } else /* the last packet of the batch has the last word */
            d->wire.gap = at > due && at < d->packets ? due + 1 : 0;
    }
    for (int i = 0; i < w->dirs; i++)
        if (w->dir[i].from == to)
            w->dir[i].wire.una = answered(w, &w->dir[i]);
}

void sniff_drained(struct world *w, int node, int pair)
{
    struct direction *d = &w->dir[pair * 2 + node];
    const struct requester *r = &world_requester(w, d)->req;
    if (world_requester(w, d)->state != QP_STATE_SQD)
        return;
    if (d->wire.drained || !psn_eq(r->una, r->sent_end))
        world_fail(w, "pair %d node %d: SQ_DRAINED twice or with packets out", pair, node);
    d->wire.drained = true;
}

/* The requester has nothing to send: is there really nothing that it may? */
static void check_stalled(struct world *w, const struct direction *d)
{
    const struct qp *qp = world_requester(w, d);
    const struct requester *r = &qp->req;
    const struct sniffed *s = &d->wire;
    if (r->rnr_wait || (qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD))
        return;
    /* An answer that is further on than what is due means that the due one was lost. */
    if (s->lost == answered(w, d) + 1 && s->resent != s->lost)
        world_fail(w, "pair %d node %d: the answer to PSN %u was lost, nothing is done", d->pair,
                   d->from, s->lost - 1);
    if (qp->state == QP_STATE_SQD && psn_eq(r->una, r->number) && !s->drained)
        world_fail(w, "pair %d node %d: nothing is out in SQD, yet no event", d->pair, d->from);
    uint32_t flying = (uint32_t)psn_diff(r->next, r->una);
    if (s->sent == d->packets || world_offset(d, r->next) != s->sent || flying >= r->window ||
        qp->state != QP_STATE_RTS)
        return;
    const struct op *op = op_at(d, s->sent);
    if ((uint32_t)(op - d->op) >= d->posted || (op->flags & WR_FENCE) || op->bad != BAD_NONE ||
        is_fetch(op) || op->first != s->sent)
        return;
    for (const struct op *o = op; o > d->op && (o - 1)->packets == 0; o--)
        if ((o - 1)->flags & WR_FENCE)
            return;
    if (!op_takes_receive(op->opcode) || !s->limit_known ||
        !psn_before(s->limit, psn_make(message_number(w, d, op))))
        world_fail(w, "pair %d node %d: op %u could be sent", d->pair, d->from,
                   (unsigned)(op - d->op));
}

void sniff_idle(struct world *w, int node)
{
    for (int i = 0; i < w->dirs; i++)
        if (w->dir[i].from == node)
            check_stalled(w, &w->dir[i]);
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        const struct qp *qp = world_responder(w, d);
        if (d->to != node || qp->state == QP_STATE_ERR || qp->resp.failed)
            continue;
        if (d->wire.gap == executed(w, d) + 1 && d->wire.naked != d->wire.gap)
            world_fail(w, "pair %d node %d: no NAK for the gap at PSN %u", d->pair, node,
                       d->wire.gap - 1);
    }
}
