/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sniffer.c: what must hold for the packets on the links: PSNs without gaps, limits on READs and
 * atomics, credits, waits after RNR NAKs, no message begun in SQD, answers in order and only to
 * what was executed, a NAK for every gap.
 */
#include <string.h>

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
    const struct slot *s = world_slot(w, to, h->bth.dest_qp);
    if (s == NULL || s->pair < 0)
        return NULL;
    return world_direction(w, s->pair, s->side, flags_of(h) & OPF_RESPONSE);
}

static uint32_t executed(struct world *w, const struct direction *d)
{
    return world_executed(w, d);
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

/* A long READ is asked for in pieces of half the largest window. */
static uint32_t read_piece(const struct world *w)
{
    uint32_t window = (w->opt.window_bytes == 0 ? 256 * 1024 : w->opt.window_bytes) / w->opt.mtu;
    return (window < 4 ? 4 : window) / 2;
}

/* Messages that end within the first end PSNs, pieces of READs counted, as the responder's MSN. */
static uint32_t messages_until(struct world *w, const struct direction *d, uint32_t end)
{
    uint32_t n = 0, piece = read_piece(w);
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

/* What went out already goes out again: from the oldest without an answer, and for a reason. */
static void check_go_back(struct world *w, struct direction *d, uint32_t at)
{
    struct sniffed *s = &d->wire;
    const struct requester *r = &world_requester(w, d)->req;
    uint64_t timeout_ns = aeth_ack_timeout_ns(w->opt.timeout);
    if (at != answered(w, d))
        world_fail(w, "pair %d node %d: goes back to PSN %u, the oldest is %u", d->pair, d->from,
                   at, answered(w, d));
    if (!s->excused && (timeout_ns == 0 || w->now_ns < s->timer_ns + timeout_ns))
        world_fail(w, "pair %d node %d: goes back without a reason", d->pair, d->from);
    s->went_back++;
    if (++s->tries > w->opt.retry_cnt)
        world_fail(w, "pair %d node %d: %d retries, %u are allowed", d->pair, d->from, s->tries,
                   w->opt.retry_cnt);
    if (!s->excused_by_rnr && r->window == r->window_max && r->window * w->opt.mtu > 16384 &&
        r->window > 4)
        world_fail(w, "pair %d node %d: the window is whole after a loss", d->pair, d->from);
    s->excused = s->excused_by_rnr = false;
    s->timer_ns = w->now_ns;
}

/* Bits and bytes of a request, against the WR that it is of. */
static void check_request(struct world *w, const struct direction *d, const struct roce_headers *h,
                          uint32_t at, uint32_t payload_bytes)
{
    const struct op *op = op_at(d, at);
    bool last = at == op->first + op->packets - 1;
    bool want = last && op_takes_receive(op->opcode) && (op->flags & WR_SOLICITED);
    if (h->bth.solicited != want)
        world_fail(w, "pair %d node %d: op %u: wrong solicited bit at PSN %u", d->pair, d->from,
                   (unsigned)(op - d->op), at);
    if (last && !h->bth.ack_req)
        world_fail(w, "pair %d node %d: op %u ends without AckReq", d->pair, d->from,
                   (unsigned)(op - d->op));
    if (payload_bytes > 0 && !(op->flags & WR_INLINE) &&
        op->local_generation != d->region[REGION_SRC].generation)
        world_fail(w, "pair %d node %d: op %u reads memory whose key is gone", d->pair, d->from,
                   (unsigned)(op - d->op));
}

static void request_sent(struct world *w, struct direction *d, const struct roce_headers *h,
                         uint32_t payload_bytes)
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
    if (at < s->next)
        check_go_back(w, d, at);
    s->next = at + packets;
    if (!s->timer_runs)
        s->timer_ns = w->now_ns;
    s->timer_runs = true;
    if (at < s->sent && at == answered(w, d))
        s->resent = at + 1;
    check_request(w, d, h, at, payload_bytes);
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
    if (aeth_kind(h->aeth.syndrome) == AETH_RNR_NAK && value != w->opt.rnr_timer)
        world_fail(w, "pair %d node %d: RNR NAK with timer %u, the QP's is %u", d->pair, d->to,
                   value, w->opt.rnr_timer);
    /* With its last train a QP may have gone to ERR, its receives flushed. */
    if (aeth_kind(h->aeth.syndrome) != AETH_ACK || qp->state == QP_STATE_ERR)
        return;
    if (w->opt.srq ? value != AETH_CREDITS_NONE
                   : value == AETH_CREDITS_NONE || aeth_credits(value) > qp->rq.tail - qp->rq.head)
        world_fail(w, "pair %d node %d: credit code %u, %u receives", d->pair, d->to, value,
                   qp->rq.tail - qp->rq.head);
}

static void response_sent(struct world *w, struct direction *d, const struct roce_headers *h,
                          uint32_t payload_bytes)
{
    struct sniffed *s = &d->wire;
    uint32_t at = world_offset(d, h->bth.psn), done = executed(w, d);
    bool nak = is_nak(h), ack = opcode_op(h->bth.opcode) == OP_ACKNOWLEDGE && !nak;
    if ((int32_t)at < (ack ? -1 : 0) && w->pair[d->pair].stale)
        return; /* a duplicate of the life before is answered again; nobody waits for it */
    /* An ACK before anything came in names the PSN before the first. */
    if (nak ? at > done : at + 1 > done) {
        world_fail(w, "pair %d node %d: answer to PSN %d, executed are %u", d->pair, d->to, (int)at,
                   done);
        return;
    }
    if (payload_bytes > 0) {
        const struct op *op = op_at(d, at);
        if (op->remote_generation != world_region(w, d, op->remote_region)->generation)
            world_fail(w, "pair %d node %d: op %u is answered from memory whose key is gone",
                       d->pair, d->to, (unsigned)(op - d->op));
    }
    uint32_t end = ack ? at + 1 : at; /* what it says is done; data speaks for itself */
    for (uint32_t p = s->answered; p < end; p++)
        if (op_is_fetch(op_at(d, p)))
            world_fail(w, "pair %d node %d: answer to PSN %u before that to READ or atomic %u",
                       d->pair, d->to, at, p);
    end = nak ? at : at + 1;
    s->answered = end > s->answered ? end : s->answered;
    if (nak)
        s->naked = at + 1;
    if (opcode_info(h->bth.opcode)->headers & HDR_AETH)
        check_aeth(w, d, h);
}

void sniff_sent(struct world *w, struct direction *d, const struct roce_headers *h,
                uint32_t payload_bytes)
{
    if (flags_of(h) & OPF_RESPONSE)
        response_sent(w, d, h, payload_bytes);
    else
        request_sent(w, d, h, payload_bytes);
}

bool sniff_is_stale(struct world *w, int to, const struct flight *f)
{
    if (!f->rx.icrc_ok)
        return false;
    const struct slot *s = world_slot(w, to, f->rx.h.bth.dest_qp);
    return f->pair != (s == NULL ? -1 : s->pair);
}

/* What may not change when a packet comes that is of no message. */
struct trail {
    struct psn epsn, msn, ack_psn;
    enum resp_message message;
    uint32_t received, atomic_next, rq_head, srq_head;
    bool recv_valid;
    struct requester req;
};

static struct trail trail_of(const struct qp *qp)
{
    const struct responder *r = &qp->resp;
    struct trail t;
    memset(&t, 0, sizeof(t)); /* padding is compared, too */
    t.epsn = r->epsn;
    t.msn = r->msn;
    t.ack_psn = r->ack_psn;
    t.message = r->message;
    t.received = r->received;
    t.atomic_next = r->atomic_next;
    t.rq_head = qp->rq.head;
    t.srq_head = qp->srq == NULL ? 0 : qp->srq->rq.head;
    t.recv_valid = qp->recv.valid;
    memcpy(&t.req, &qp->req, sizeof(t.req));
    return t;
}

void sniff_stale(struct world *w, int to, const struct rx_packet *rx)
{
    const struct slot *s = world_slot(w, to, rx->h.bth.dest_qp);
    w->stale++;
    if (s == NULL) {
        nic_input(w->node[to].nic, w->now_ns, rx, 1);
        return;
    }
    enum qp_state state = s->qp->state;
    struct trail before = trail_of(s->qp);
    if (s->pair >= 0)
        w->pair[s->pair].stale = true;
    nic_input(w->node[to].nic, w->now_ns, rx, 1);
    struct trail after = trail_of(s->qp);
    if (s->qp->state != state || memcmp(&before, &after, sizeof(before)) != 0)
        world_fail(w, "node %d: a packet of an earlier life or of nobody changes QP 0x%x%s%s%s%s",
                   to, s->qp->qpn, s->qp->state != state ? ", its state" : "",
                   memcmp(&before.req, &after.req, sizeof(before.req)) != 0 ? ", requester" : "",
                   !psn_eq(before.epsn, after.epsn) || !psn_eq(before.ack_psn, after.ack_psn)
                       ? ", responder"
                       : "",
                   before.rq_head != after.rq_head || before.srq_head != after.srq_head
                       ? ", receives"
                       : "");
}

static void response_received(struct world *w, struct direction *d, const struct roce_headers *h,
                              bool alone)
{
    struct sniffed *s = &d->wire;
    const struct qp *qp = world_requester(w, d);
    /* The answer to a duplicate of an earlier life is nobody's. */
    bool strange = (int32_t)world_offset(d, h->bth.psn) < -1;
    if (qp == NULL || strange || !(opcode_info(h->bth.opcode)->headers & HDR_AETH))
        return;
    if (aeth_kind(h->aeth.syndrome) != AETH_ACK) {
        s->excused = true;
        s->answers++;
    }
    if (aeth_kind(h->aeth.syndrome) == AETH_RNR_NAK) {
        s->excused_by_rnr = true;
        s->tries = -1;        /* the peer is there */
        if (qp->req.rnr_wait) /* else an answer before it was missing, which it tells of */
            s->went_back = 0;
        s->timer_runs = false;
        s->wait_until_ns = w->now_ns + aeth_rnr_ns(aeth_value(h->aeth.syndrome));
    }
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
        s->refusals += !s->waiting;
        /* Behind an answer that was still missing it is no refusal of what was due. */
        if (!s->waiting &&
            (alone ||
             s->una == answered(w, d))) /* a second one of the same refusal changes nothing */
            s->quiet_until_ns = w->now_ns + aeth_rnr_ns(value);
        s->waiting = true;
    }
}

static void note_progress(struct world *w, struct direction *d)
{
    struct sniffed *s = &d->wire;
    uint32_t una = answered(w, d);
    if (una == s->una)
        return;
    s->una = una;
    /* The timer had run out, and what goes again for it has not had its turn yet. */
    uint64_t timeout_ns = aeth_ack_timeout_ns(w->opt.timeout);
    if (timeout_ns != 0 && s->timer_runs && w->now_ns >= s->timer_ns + timeout_ns)
        s->excused = true;
    s->timer_ns = w->now_ns;
    /* It waits for the peer to be ready, or all of it goes again: then with that. */
    const struct qp *qp = world_requester(w, d);
    s->timer_runs =
        qp != NULL && una < s->sent && !qp->req.rnr_wait && !psn_eq(qp->req.next, qp->req.una);
    s->tries = s->excused ? -1 : 0; /* it goes back still, for what was before */
    s->went_back = s->answers = 0;
    if (s->next < una)
        s->next = una;
}

void sniff_received(struct world *w, int to, const struct rx_packet *rx, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        bool ours = rx[i].icrc_ok && !marks_is_own(&rx[i].h);
        struct direction *d = ours ? direction_of(w, to, &rx[i].h) : NULL;
        if (d == NULL)
            continue;
        uint32_t at = world_offset(d, rx[i].h.bth.psn), due = executed(w, d);
        if (flags_of(&rx[i].h) & OPF_RESPONSE) {
            response_received(w, d, &rx[i].h, n == 1);
            uint32_t una = answered(w, d);
            bool ack = opcode_op(rx[i].h.bth.opcode) == OP_ACKNOWLEDGE && !is_nak(&rx[i].h);
            bool late = at < d->wire.sent && una < d->wire.sent && (ack ? at >= una : at > una) &&
                        op_is_fetch(op_at(d, una));
            d->wire.lost = late ? una + 1 : 0;
            /* In a batch it may have been late only when its turn was. */
            late = late || (n > 1 && at > d->wire.una && at < d->wire.sent);
            d->wire.excused = d->wire.excused || late;
            d->wire.answers += late;
        } else /* the last packet of the batch has the last word */
            d->wire.gap = at > due && at < d->packets ? due + 1 : 0;
    }
    for (int i = 0; i < w->dirs; i++)
        if (w->dir[i].from == to && !w->dir[i].dead)
            note_progress(w, &w->dir[i]);
}

void sniff_drained(struct world *w, struct direction *d)
{
    const struct qp *qp = world_requester(w, d);
    if (qp == NULL || qp->state != QP_STATE_SQD)
        return;
    if (d->wire.drained || !psn_eq(qp->req.una, qp->req.sent_end))
        world_fail(w, "pair %d node %d: SQ_DRAINED twice or with packets out", d->pair, d->from);
    d->wire.drained = true;
}

void sniff_gave_up(struct world *w, const struct direction *d)
{
    const struct sniffed *s = &d->wire;
    if (s->went_back + s->answers < w->opt.retry_cnt)
        world_fail(w, "pair %d node %d: gave up after %u retries, %u are allowed", d->pair, d->from,
                   s->went_back, w->opt.retry_cnt);
}

/* What a timer has to do is done. */
static void check_timers(struct world *w, const struct direction *d, const struct qp *qp)
{
    const struct sniffed *s = &d->wire;
    uint64_t timeout_ns = aeth_ack_timeout_ns(w->opt.timeout);
    uint64_t slack_ns = 4 * (uint64_t)w->opt.tick_ns + 1;
    if (qp->state != QP_STATE_RTS)
        return;
    if (qp->req.rnr_wait && w->now_ns > s->wait_until_ns + slack_ns)
        world_fail(w, "pair %d node %d: waits longer than an RNR NAK asked for", d->pair, d->from);
    /* IBA 9.7.6.1.3: four times the timeout at most */
    if (!qp->req.rnr_wait && s->timer_runs && answered(w, d) < s->sent && timeout_ns != 0 &&
        w->now_ns > s->timer_ns + 4 * timeout_ns + slack_ns)
        world_fail(w, "pair %d node %d: waits for an answer longer than its timeout", d->pair,
                   d->from);
}

/* The requester has nothing to send: is there really nothing that it may? */
static void check_stalled(struct world *w, const struct direction *d)
{
    const struct qp *qp = world_requester(w, d);
    if (qp == NULL)
        return;
    const struct requester *r = &qp->req;
    const struct sniffed *s = &d->wire;
    if (pace_waits(w, d) || marks_hold(w, qp))
        return;
    check_timers(w, d, qp);
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
    if (op->local_generation != d->region[REGION_SRC].generation ||
        (uint32_t)(op - d->op) >= d->posted || (op->flags & WR_FENCE) || op->bad != BAD_NONE ||
        op_is_fetch(op) || op->first != s->sent)
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
        if (w->dir[i].from == node && !w->dir[i].dead)
            check_stalled(w, &w->dir[i]);
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        const struct qp *qp = world_responder(w, d);
        if (qp == NULL || d->to != node || qp->state == QP_STATE_ERR || qp->resp.failed)
            continue;
        if (marks_hold(w, qp)) /* a NAK does not pass the data of READs before it */
            continue;
        if (d->wire.gap == executed(w, d) + 1 && d->wire.naked != d->wire.gap)
            world_fail(w, "pair %d node %d: no NAK for the gap at PSN %u", d->pair, node,
                       d->wire.gap - 1);
    }
}
