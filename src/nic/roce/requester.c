/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * requester.c: from send WQEs to request packets: segmentation, opcodes, PSNs, fences, the
 * limit of READs, atomics and their like, end-to-end credits, the window, and going back. What
 * answers mean is the completer's business.
 *
 *      head          next_wqe                 tail
 *   SQ  [ sent, waits | being sent | not begun ]
 *   PSN una ........ next ........ sent_end      number: given to the next WQE that begins
 */
#include <assert.h>

#include "nic/mw.h"
#include "nic/nic.h"
#include "nic/qp.h"
#include "nic/roce/placement.h"
#include "nic/timers.h"
#include "wire/opcode.h"
#include "wire/roce.h"

enum {
    WINDOW_MIN_BYTES = 16 * 1024,
    WINDOW_MIN_PACKETS = 4,
    WINDOW_MAX_PACKETS = 1 << 20, /* far below 2^23, so that PSN order is never in doubt */
    ACK_REQ_PER_WINDOW = 4, /* acknowledgements asked for while a long message fills the window */
};

static struct send_wqe *wqe_at(struct qp *qp, uint32_t index)
{
    return &qp->sq.wqe[index & qp->sq.mask];
}

void requester_start(struct qp *qp)
{
    struct requester *r = &qp->req;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    *r = (struct requester){0};
    r->una = r->next = r->sent_end = r->number = psn_make(qp->attr.sq_psn);
    r->next_wqe = qp->sq.head;
    r->window_max = qp->nic->config.window_bytes / mtu;
    if (r->window_max < WINDOW_MIN_PACKETS)
        r->window_max = WINDOW_MIN_PACKETS;
    if (r->window_max > WINDOW_MAX_PACKETS)
        r->window_max = WINDOW_MAX_PACKETS;
    r->window = r->window_max;
    /*
     * A long READ is asked for in pieces of half a window, each a READ request of its own on the
     * wire: nothing acknowledges READ responses, so the requester clocks them by asking.
     */
    r->read_packets = r->window_max / 2;
    requester_renew(qp);
}

void requester_renew(struct qp *qp)
{
    qp->req.retry_left = qp->attr.retry_cnt;
    qp->req.rnr_left = qp->attr.rnr_retry;
}

bool requester_waiting(const struct qp *qp)
{
    return !psn_eq(qp->req.una, qp->req.sent_end);
}

void requester_go_back(struct qp *qp)
{
    qp->req.next = qp->req.una;
    qp->req.next_wqe = qp->sq.head;
    qp->req.rd_atomic = 0;
    qp->req.since_ack_req = 0;
    timers_go_back(qp);
    nic_qp_ready(qp);
}

static void window_shrink(struct qp *qp, bool to_minimum)
{
    struct requester *r = &qp->req;
    uint32_t min = WINDOW_MIN_BYTES / qp->attr.path_mtu_bytes;
    if (min < WINDOW_MIN_PACKETS)
        min = WINDOW_MIN_PACKETS;
    r->window = to_minimum ? 0 : r->window / 2;
    if (r->window < min)
        r->window = min < r->window_max ? min : r->window_max;
    r->grown = 0;
}

void requester_lost(struct qp *qp)
{
    struct requester *r = &qp->req;
    if (r->retry_left == 0) {
        nic_count(qp->nic, COUNTER_retry_exceeded, 1);
        completer_fail(qp, WC_RETRY_EXC_ERR);
        return;
    }
    r->retry_left--;
    congestion_lost(qp);
    window_shrink(qp, false);
    requester_go_back(qp);
}

void requester_timeout(struct qp *qp, uint64_t now_ns)
{
    (void)now_ns;
    if (!requester_waiting(qp) || (qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD))
        return;
    nic_count(qp->nic, COUNTER_local_ack_timeout_err, 1);
    qp->req.implied_nak = false; /* what was out is gone: a gap from now on is another one */
    window_shrink(qp, true);
    requester_lost(qp);
}

static bool is_read(const struct send_wqe *w)
{
    return w->opcode == WR_RDMA_READ;
}

static bool is_atomic(const struct send_wqe *w)
{
    return w->opcode == WR_ATOMIC_CMP_AND_SWP || w->opcode == WR_ATOMIC_FETCH_AND_ADD;
}

/* Does this message take a receive WQE from the peer, so that credits apply? */
static bool takes_receive(const struct send_wqe *w)
{
    return w->opcode == WR_SEND || w->opcode == WR_SEND_WITH_IMM || w->opcode == WR_SEND_WITH_INV ||
           w->opcode == WR_RDMA_WRITE_WITH_IMM;
}

/* A fenced WQE waits until all earlier READs, atomics and their like are complete. */
static bool reads_pending(struct qp *qp)
{
    for (uint32_t i = qp->sq.head; i != qp->req.next_wqe; i++)
        if (wr_awaits_response(wqe_at(qp, i)->opcode))
            return true;
    return false;
}

/* Fails the WQE that is being sent, once all before it are complete; until then nothing more is
 * sent. */
static void fail_in_order(struct qp *qp, enum wc_status status)
{
    completer_retire(qp); /* local operations before it may be all that it waits for */
    if (qp->req.next_wqe == qp->sq.head)
        completer_fail(qp, status);
}

/* May a WQE that is not begun begin now? Also runs local operations. */
static bool wqe_begin(struct qp *qp, struct send_wqe *w)
{
    struct requester *r = &qp->req;
    if (qp->state == QP_STATE_SQD)
        return false;
    if ((w->flags & WR_FENCE) && reads_pending(qp))
        return false;
    if (wr_awaits_response(w->opcode) && qp->attr.max_rd_atomic == 0) {
        fail_in_order(qp, WC_LOC_QP_OP_ERR); /* it could never go out */
        return false;
    }
    unsigned need = is_read(w) || is_atomic(w) ? ACCESS_LOCAL_WRITE : 0;
    if (mem_check_sges(qp->nic, qp->pd, w->sge, w->num_sge, need) != MEM_OK) {
        fail_in_order(qp, WC_LOC_PROT_ERR);
        return false;
    }
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t messages = 1;
    if (mw_is_local(w->opcode)) {
        if (!mw_execute(qp, w)) {
            fail_in_order(qp, WC_MW_BIND_ERR);
            return false;
        }
        w->packets = 0;
        messages = 0;
    } else if (is_atomic(w)) {
        w->packets = 1;
    } else {
        w->packets = message_packets(w->length, mtu);
        if (is_read(w))
            messages = (w->packets - 1) / r->read_packets + 1;
    }
    w->first_psn = r->number;
    r->number = psn_add(r->number, w->packets);
    r->ssn = (r->ssn + messages) & 0xffffff;
    w->ssn = r->ssn;
    w->numbered = true;
    return true;
}

static uint32_t in_flight(const struct qp *qp)
{
    return (uint32_t)psn_diff(qp->req.next, qp->req.una);
}

/* Room for n more PSNs; one request may always be out. */
static bool window_open(const struct qp *qp, uint32_t n)
{
    uint32_t out = in_flight(qp);
    return out == 0 || out + n <= qp->req.window;
}

/*
 * End-to-end flow control (IBA 9.7.7.2): beyond the limit that the last ACK gave only one message
 * goes, when nothing else is outstanding; its answer brings the new limit, or an RNR NAK.
 */
static bool credit_open(const struct qp *qp, const struct send_wqe *w)
{
    const struct requester *r = &qp->req;
    if (!r->limit_known || !takes_receive(w))
        return true;
    return psn_diff(psn_make(w->ssn), psn_make(r->limit_ssn)) <= 0 || in_flight(qp) == 0;
}

/* Bookkeeping of a packet that goes out and takes n PSNs; decides about AckReq. */
static void packet_sent(struct qp *qp, struct train_packet *p, uint32_t n, bool last)
{
    struct requester *r = &qp->req;
    if (psn_before(r->next, r->sent_end))
        nic_count(qp->nic, COUNTER_retransmitted_packets, 1);
    r->next = psn_add(r->next, n);
    if (psn_before(r->sent_end, r->next))
        r->sent_end = r->next;
    r->since_ack_req++;
    uint32_t window = r->window < r->window_max ? r->window : r->window_max;
    if (last || r->since_ack_req >= window / ACK_REQ_PER_WINDOW) {
        p->h.bth.ack_req = true;
        r->since_ack_req = 0;
    }
}

static bool next_read(struct qp *qp, struct send_wqe *w, uint32_t offset, struct train *t)
{
    struct requester *r = &qp->req;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t piece_end = (offset / r->read_packets + 1) * r->read_packets;
    uint32_t n = (piece_end < w->packets ? piece_end : w->packets) - offset;
    uint8_t opcode = opcode_make(qp->service, OP_READ_REQUEST);
    if (r->rd_atomic >= qp->attr.max_rd_atomic || !window_open(qp, n) ||
        !train_fits(t, roce_packet_bytes(opcode, 0), 0))
        return false;
    uint32_t start = offset * mtu;
    uint32_t left = w->length - start;
    struct train_packet *p = train_add(t, qp, opcode, r->next, 0);
    p->h.xrc_srqn = w->xrc_srqn;
    p->h.reth.va = w->remote_addr + start;
    p->h.reth.rkey = w->rkey;
    p->h.reth.dma_len = left < n * mtu ? left : n * mtu;
    r->rd_atomic++;
    packet_sent(qp, p, n, true);
    return true;
}

static enum added add_atomic(struct qp *qp, const struct send_wqe *w, struct train *t)
{
    bool cas = w->opcode == WR_ATOMIC_CMP_AND_SWP;
    uint8_t opcode = opcode_make(qp->service, cas ? OP_COMPARE_SWAP : OP_FETCH_ADD);
    if (!train_fits(t, roce_packet_bytes(opcode, 0), 0))
        return ADDED_NO_ROOM;
    struct train_packet *p = train_add(t, qp, opcode, qp->req.next, 0);
    p->h.xrc_srqn = w->xrc_srqn;
    p->h.atomic.va = w->remote_addr;
    p->h.atomic.rkey = w->rkey;
    p->h.atomic.swap_add = cas ? w->swap : w->compare_add;
    p->h.atomic.compare = cas ? w->compare_add : 0;
    return ADDED;
}

/* What is one packet and has a response of its own: atomics, FLUSH, ATOMIC WRITE. */
static bool next_single(struct qp *qp, const struct send_wqe *w, struct train *t)
{
    if (qp->req.rd_atomic >= qp->attr.max_rd_atomic || !window_open(qp, 1))
        return false;
    enum added added = is_atomic(w) ? add_atomic(qp, w, t) : placement_add(qp, w, t);
    if (added == ADDED_BAD_KEY)
        fail_in_order(qp, WC_LOC_PROT_ERR);
    if (added != ADDED)
        return false;
    qp->req.rd_atomic++;
    packet_sent(qp, &t->packet[t->packets - 1], 1, true);
    return true;
}

/* Opcode of a SEND or WRITE packet by its place in the message. */
static enum opcode_op message_op(const struct send_wqe *w, bool first, bool last)
{
    bool write = w->opcode == WR_RDMA_WRITE || w->opcode == WR_RDMA_WRITE_WITH_IMM;
    if (!last)
        return first ? (write ? OP_WRITE_FIRST : OP_SEND_FIRST)
                     : (write ? OP_WRITE_MIDDLE : OP_SEND_MIDDLE);
    switch (w->opcode) {
    case WR_RDMA_WRITE:
        return first ? OP_WRITE_ONLY : OP_WRITE_LAST;
    case WR_RDMA_WRITE_WITH_IMM:
        return first ? OP_WRITE_ONLY_IMM : OP_WRITE_LAST_IMM;
    case WR_SEND_WITH_IMM:
        return first ? OP_SEND_ONLY_IMM : OP_SEND_LAST_IMM;
    case WR_ATOMIC_WRITE:
        return OP_ATOMIC_WRITE;
    case WR_SEND_WITH_INV:
        return first ? OP_SEND_ONLY_INV : OP_SEND_LAST_INV;
    default:
        return first ? OP_SEND_ONLY : OP_SEND_LAST;
    }
}

/* Adds the payload of a packet as spans; false when a key has gone meanwhile. */
static bool packet_payload(struct qp *qp, const struct send_wqe *w, uint32_t start, uint32_t n,
                           struct train *t)
{
    if (n == 0)
        return true;
    if (w->flags & WR_INLINE) {
        t->span[t->spans++] = (struct span){w->inline_data + start, n};
        return true;
    }
    return mem_gather(qp->nic, qp->pd, w->sge, w->num_sge, start, n, t->span, &t->spans) == MEM_OK;
}

enum added requester_add_message(struct qp *qp, const struct send_wqe *w, uint32_t offset,
                                 struct train *t)
{
    uint32_t mtu = qp->attr.path_mtu_bytes;
    bool first = offset == 0;
    bool last = offset == w->packets - 1;
    uint32_t start = offset * mtu;
    uint32_t n = last ? w->length - start : mtu;
    enum opcode_op op = message_op(w, first, last);
    uint8_t opcode = opcode_make(qp->service, op);
    uint16_t spans_max = w->num_sge > 1 ? w->num_sge : 1;
    if (!train_fits(t, roce_packet_bytes(opcode, n), spans_max))
        return ADDED_NO_ROOM;
    uint16_t first_span = t->spans;
    if (!packet_payload(qp, w, start, n, t)) {
        t->spans = first_span;
        return ADDED_BAD_KEY;
    }
    struct train_packet *p = train_add(t, qp, opcode, qp->req.next, n);
    p->first_span = first_span;
    p->spans = t->spans - first_span;
    p->h.xrc_srqn = w->xrc_srqn; /* 0 but for XRC; in each packet */
    uint16_t headers = opcode_info(opcode)->headers;
    if (headers & HDR_RETH) {
        p->h.reth.va = w->remote_addr;
        p->h.reth.rkey = w->rkey;
        p->h.reth.dma_len = w->length;
    }
    if (headers & HDR_IMMDT)
        p->h.immdt = w->imm_or_inv;
    if (headers & HDR_IETH)
        p->h.ieth = w->imm_or_inv;
    /* SE only in the last packet of SENDs and of WRITEs with immediate. */
    p->h.bth.solicited = last && takes_receive(w) && (w->flags & WR_SOLICITED);
    return ADDED;
}

static bool next_message_packet(struct qp *qp, struct send_wqe *w, uint32_t offset, struct train *t)
{
    if (!window_open(qp, 1) || (offset == 0 && !credit_open(qp, w)))
        return false;
    enum added added = requester_add_message(qp, w, offset, t);
    if (added == ADDED_BAD_KEY)
        fail_in_order(qp, WC_LOC_PROT_ERR);
    if (added != ADDED)
        return false;
    packet_sent(qp, &t->packet[t->packets - 1], 1, offset == w->packets - 1);
    return true;
}

/* Adds one request packet; false when nothing more can go into this train. */
static bool next_packet(struct qp *qp, struct train *t)
{
    struct requester *r = &qp->req;
    while (r->next_wqe != qp->sq.tail) {
        struct send_wqe *w = wqe_at(qp, r->next_wqe);
        if (!w->numbered && !wqe_begin(qp, w))
            return false;
        uint32_t offset = (uint32_t)psn_diff(r->next, w->first_psn);
        if (offset >= w->packets) { /* all of it is out */
            r->next_wqe++;
            continue;
        }
        if (wr_awaits_response(w->opcode))
            return is_read(w) ? next_read(qp, w, offset, t) : next_single(qp, w, t);
        return next_message_packet(qp, w, offset, t);
    }
    return false;
}

bool requester_next(struct qp *qp, uint64_t now_ns, struct train *t)
{
    if ((qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD) || qp->req.rnr_wait)
        return false;
    while (next_packet(qp, t)) {
    }
    /* Local operations that began at the head of the queue need no answer. */
    if (qp->state == QP_STATE_RTS || qp->state == QP_STATE_SQD)
        completer_retire(qp);
    if (t->packets == 0)
        return false;
    if (qp->state == QP_STATE_RTS || qp->state == QP_STATE_SQD)
        timers_request_sent(qp, now_ns);
    return true;
}
