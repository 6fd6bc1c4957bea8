/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * completer.c: what an answer means: which WQEs are done, what must be sent again, what has failed.
 * Answers are ACKs, NAKs, READ responses and atomic ACKs; una moves only here.
 */
#include "nic/nic.h"
#include "nic/qp.h"
#include "nic/timers.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

enum { MAX_ACKED = 1 << 23 }; /* further back than this no PSN is */

static struct send_wqe *head_wqe(struct qp *qp)
{
    return &qp->sq.wqe[qp->sq.head & qp->sq.mask];
}

static bool is_atomic(const struct send_wqe *w)
{
    return w->opcode == WR_ATOMIC_CMP_AND_SWP || w->opcode == WR_ATOMIC_FETCH_AND_ADD;
}

void completer_fail(struct qp *qp, enum wc_status status)
{
    /* The true error first, the flushes after it in post order (IBA 10.3.1, state ERR). */
    if (qp->sq.head != qp->sq.tail)
        wq_send_done(qp, status);
    qp_enter_error(qp);
}

void completer_retire(struct qp *qp)
{
    struct requester *r = &qp->req;
    while (qp->sq.head != qp->sq.tail) {
        struct send_wqe *w = head_wqe(qp);
        if (!w->numbered || psn_before(r->una, psn_add(w->first_psn, w->packets)))
            break;
        wq_send_done(qp, WC_SUCCESS);
    }
    if ((int32_t)(r->next_wqe - qp->sq.head) < 0)
        r->next_wqe = qp->sq.head;
    if (qp->state == QP_STATE_SQD && qp->sqd_pending && psn_eq(r->una, r->number))
        qp_sq_drained(qp);
}

/* una has moved to psn: the peer is alive and in step. */
static void progress(struct qp *qp, struct psn psn, uint64_t now_ns)
{
    struct requester *r = &qp->req;
    uint32_t n = (uint32_t)psn_diff(psn, r->una);
    r->una = psn;
    r->acked = r->acked + n < MAX_ACKED ? r->acked + n : MAX_ACKED;
    if (psn_before(r->next, psn)) {
        r->next = psn; /* a late answer overtook our going back */
        r->next_wqe = qp->sq.head;
    }
    r->retry_left = qp->attr.retry_cnt;
    r->rnr_left = qp->attr.rnr_retry;
    r->implied_nak = false;
    /* An eighth more for each window that got through: losses halve it. */
    r->grown += n;
    if (r->grown >= r->window) {
        r->grown = 0;
        r->window += r->window / 8 + 1;
        if (r->window > r->window_max)
            r->window = r->window_max;
    }
    completer_retire(qp);
    timers_progress(qp, now_ns);
    nic_qp_ready(qp);
}

/*
 * Everything before limit is acknowledged. SENDs and WRITEs are done by that; a READ or atomic
 * needs its response, so una stops there. False: such a response is missing.
 */
static bool acknowledge(struct qp *qp, struct psn limit, uint64_t now_ns)
{
    struct requester *r = &qp->req;
    struct psn una = r->una;
    bool complete = true;
    for (uint32_t i = qp->sq.head; i != qp->sq.tail && psn_before(una, limit); i++) {
        const struct send_wqe *w = &qp->sq.wqe[i & qp->sq.mask];
        if (!w->numbered)
            break;
        if (wr_awaits_response(w->opcode)) {
            complete = false;
            break;
        }
        struct psn end = psn_add(w->first_psn, w->packets);
        una = psn_before(limit, end) ? limit : end;
    }
    if (!psn_eq(una, r->una))
        progress(qp, una, now_ns);
    return complete;
}

/* An answer that is further on than the response that is due means that the response was lost:
 * an implied NAK. */
static void implied_nak(struct qp *qp)
{
    if (qp->req.implied_nak || qp->req.rnr_wait)
        return;
    nic_count(qp->nic, COUNTER_implied_nak_seq_err, 1);
    if (!psn_eq(qp->req.next, qp->req.una)) /* else gone back, nothing sent since: as input_nak */
        requester_lost(qp);
    qp->req.implied_nak = true;
}

/* Credits of an ACK: receives that wait at the peer, counted from its MSN (IBA 9.7.7.2). */
static void take_credits(struct qp *qp, const struct aeth *aeth)
{
    struct requester *r = &qp->req;
    if (aeth_kind(aeth->syndrome) != AETH_ACK)
        return;
    uint8_t code = aeth_value(aeth->syndrome);
    if (code == AETH_CREDITS_NONE) {
        r->limit_known = false;
        return;
    }
    struct psn limit = psn_add(aeth->msn, aeth_credits(code));
    if (!r->limit_known || psn_before(psn_make(r->limit_ssn), limit)) {
        r->limit_ssn = limit.v;
        r->limit_known = true;
        nic_qp_ready(qp);
    }
}

static void input_rnr(struct qp *qp, uint8_t code, uint64_t now_ns)
{
    struct requester *r = &qp->req;
    nic_count(qp->nic, COUNTER_rnr_nak_retry_err, 1);
    if (r->rnr_wait && psn_eq(r->rnr_psn, r->una))
        return;                    /* a second NAK of the same refusal */
    if (qp->attr.rnr_retry != 7) { /* 7 is for ever */
        if (r->rnr_left == 0) {
            nic_count(qp->nic, COUNTER_rnr_retry_exceeded, 1);
            completer_fail(qp, WC_RNR_RETRY_EXC_ERR);
            return;
        }
        r->rnr_left--;
    }
    /* The request got through: a long wait in which a NAK is lost now and then is no dead peer. */
    r->retry_left = qp->attr.retry_cnt;
    r->rnr_psn = r->una;
    requester_go_back(qp);
    timers_rnr_nak(qp, now_ns, code);
}

static void input_nak(struct qp *qp, uint8_t code)
{
    struct nic *nic = qp->nic;
    switch (code) {
    case NAK_PSN_SEQUENCE:
        /*
         * The kernel's soft-RoCE follows an RNR NAK with a sequence NAK for the packets that were
         * in flight behind the refused one: the wait goes on. Gone back and nothing sent since: a
         * copy of the NAK that was obeyed already.
         */
        if (!qp->req.rnr_wait && !psn_eq(qp->req.next, qp->req.una))
            requester_lost(qp);
        break;
    case NAK_INVALID_REQUEST:
        nic_count(nic, COUNTER_req_remote_invalid_request, 1);
        completer_fail(qp, WC_REM_INV_REQ_ERR);
        break;
    case NAK_REMOTE_ACCESS:
        nic_count(nic, COUNTER_req_remote_access_errors, 1);
        completer_fail(qp, WC_REM_ACCESS_ERR);
        break;
    case NAK_REMOTE_OPERATIONAL:
        nic_count(nic, COUNTER_req_remote_op_errors, 1);
        completer_fail(qp, WC_REM_OP_ERR);
        break;
    default:
        nic_count(nic, COUNTER_rx_drop_malformed, 1);
        break;
    }
}

static void input_acknowledge(struct qp *qp, uint64_t now_ns, const struct rx_packet *p)
{
    struct psn psn = p->h.bth.psn;
    uint8_t syndrome = p->h.aeth.syndrome;
    switch (aeth_kind(syndrome)) {
    case AETH_ACK:
        if (!acknowledge(qp, psn_add(psn, 1), now_ns))
            implied_nak(qp);
        break;
    case AETH_RNR_NAK:
    case AETH_NAK:
        /* A NAK acknowledges everything before its PSN. */
        if (!acknowledge(qp, psn, now_ns))
            implied_nak(qp);
        else if (qp->state == QP_STATE_ERR || qp->sq.head == qp->sq.tail)
            nic_count(qp->nic, COUNTER_req_stale_acks, 1);
        else if (aeth_kind(syndrome) == AETH_RNR_NAK)
            input_rnr(qp, aeth_value(syndrome), now_ns);
        else
            input_nak(qp, aeth_value(syndrome));
        break;
    case AETH_RESERVED:
        nic_count(qp->nic, COUNTER_rx_drop_malformed, 1);
        break;
    }
}

/* A READ response or atomic ACK: is it the one that is due? Acknowledges what came before it. */
static bool response_due(struct qp *qp, uint64_t now_ns, struct psn psn)
{
    if (!acknowledge(qp, psn, now_ns)) {
        implied_nak(qp);
        return false;
    }
    /* When acknowledge could go as far as psn, una is there. */
    if (qp->sq.head == qp->sq.tail || !head_wqe(qp)->numbered ||
        !wr_awaits_response(head_wqe(qp)->opcode)) {
        nic_count(qp->nic, COUNTER_rx_drop_malformed, 1);
        return false;
    }
    return true;
}

static void input_read_response(struct qp *qp, uint64_t now_ns, const struct rx_packet *p)
{
    struct requester *r = &qp->req;
    struct psn psn = p->h.bth.psn;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    if (!response_due(qp, now_ns, psn))
        return;
    const struct send_wqe *w = head_wqe(qp);
    if (is_atomic(w)) {
        nic_count(qp->nic, COUNTER_rx_drop_malformed, 1);
        return;
    }
    /*
     * FLUSH and ATOMIC WRITE are answered as a READ of nothing. FIRST, MIDDLE and LAST are not told
     * apart: a peer may answer the rest of a READ that was asked for again with MIDDLE. PSN and
     * length say all.
     */
    uint32_t offset = (uint32_t)psn_diff(psn, w->first_psn);
    uint32_t start = offset * mtu;
    uint32_t length = w->opcode == WR_RDMA_READ ? w->length : 0;
    uint32_t want = length - start < mtu ? length - start : mtu;
    if (p->payload_bytes != want) {
        completer_fail(qp, WC_LOC_LEN_ERR);
        return;
    }
    if (mem_scatter_sges(qp->nic, qp->pd, w->sge, w->num_sge, start, p->payload, want) != MEM_OK) {
        completer_fail(qp, WC_LOC_PROT_ERR);
        return;
    }
    bool piece_done = (offset + 1) % r->read_packets == 0 || offset + 1 == w->packets;
    if (piece_done && r->rd_atomic > 0)
        r->rd_atomic--;
    progress(qp, psn_add(psn, 1), now_ns);
}

static void input_atomic_ack(struct qp *qp, uint64_t now_ns, const struct rx_packet *p)
{
    if (!response_due(qp, now_ns, p->h.bth.psn))
        return;
    const struct send_wqe *w = head_wqe(qp);
    if (!is_atomic(w)) {
        nic_count(qp->nic, COUNTER_rx_drop_malformed, 1);
        return;
    }
    uint64_t original = p->h.atomic_ack;
    if (mem_scatter_sges(qp->nic, qp->pd, w->sge, w->num_sge, 0, (const uint8_t *)&original,
                         sizeof(original)) != MEM_OK) {
        completer_fail(qp, WC_LOC_PROT_ERR);
        return;
    }
    if (qp->req.rd_atomic > 0)
        qp->req.rd_atomic--;
    progress(qp, psn_add(p->h.bth.psn, 1), now_ns);
}

/* Every sequence NAK counts, obeyed or not, so that the counter is what a capture shows. */
static void count_nak(struct nic *nic, const struct aeth *aeth)
{
    if (aeth_kind(aeth->syndrome) == AETH_NAK && aeth_value(aeth->syndrome) == NAK_PSN_SEQUENCE)
        nic_count(nic, COUNTER_packet_seq_err, 1);
}

void completer_input(struct qp *qp, uint64_t now_ns, const struct rx_packet *p)
{
    const struct opcode_info *info = opcode_info(p->h.bth.opcode);
    struct psn psn = p->h.bth.psn;
    if (!psn_before(psn, qp->req.sent_end)) {
        nic_count(qp->nic, COUNTER_req_ghost_acks, 1);
        return;
    }
    /* A repeated ACK acknowledges nothing, but may tell of receives that were posted since. A
     * responder that has taken nothing yet names the PSN before the first; one before that is of an
     * earlier life of the QP. */
    if (info->headers & HDR_AETH) {
        if (psn_diff(qp->req.una, psn) <= (int32_t)qp->req.acked + 1)
            take_credits(qp, &p->h.aeth);
        count_nak(qp->nic, &p->h.aeth);
    }
    if (psn_before(psn, qp->req.una)) {
        nic_count(qp->nic, COUNTER_req_stale_acks, 1);
        return;
    }
    if (info->flags & OPF_READ_RESP)
        input_read_response(qp, now_ns, p);
    else if (info->headers & HDR_ATOMICACKETH)
        input_atomic_ack(qp, now_ns, p);
    else
        input_acknowledge(qp, now_ns, p);
}
