/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unreliable.c: UC, and the send queue that it shares with UD. Nothing is acknowledged, so there
 * are no timers and no answers: a WQE is done when its last packet is out. Of struct requester only
 * next, number (the first PSN of the next WQE) and next_wqe are used; una and sent_end go along
 * with next, as for a QP that has nothing in flight. Of struct responder those parts count that
 * tell of the message coming in.
 */
#include "nic/roce/unreliable.h"

#include "nic/mw.h"
#include "nic/nic.h"
#include "nic/qp.h"
#include "wire/opcode.h"

/*
 * What comes this many PSNs or less behind the expected one is a copy or was late. The service is
 * to deliver in order and at most once, which a network of IP routers does not help with. What is
 * further behind is the peer's next message after a long silence of the network: PSNs are few, a
 * fast sender uses all of them up within seconds.
 */
enum { STALE_PSNS = 1 << 16 };

static struct send_wqe *next_wqe(struct qp *qp)
{
    return &qp->sq.wqe[qp->req.next_wqe & qp->sq.mask];
}

void unreliable_start(struct qp *qp)
{
    struct psn psn = psn_make(qp->attr.sq_psn);
    qp->req = (struct requester){.next_wqe = qp->sq.head};
    qp->req.una = qp->req.next = qp->req.sent_end = qp->req.number = psn;
}

void unreliable_step(struct qp *qp)
{
    struct requester *r = &qp->req;
    r->una = r->next = r->sent_end = psn_add(r->next, 1);
}

void unreliable_skip_flushed(struct qp *qp)
{
    if ((int32_t)(qp->req.next_wqe - qp->sq.head) < 0)
        qp->req.next_wqe = qp->sq.head;
}

bool unreliable_pending(struct qp *qp)
{
    if (qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD)
        return false;
    unreliable_skip_flushed(qp);
    return qp->req.next_wqe != qp->sq.tail;
}

/* IBA 10.3.1: in state SQE the receive queue goes on. */
void unreliable_fail(struct qp *qp, enum wc_status status)
{
    while (qp->sq.head != qp->req.next_wqe) /* local operations before it */
        wq_send_done(qp, WC_SUCCESS);
    wq_send_done(qp, status);
    qp->state = QP_STATE_SQE;
    qp->sqd_pending = false;
    while (qp->sq.head != qp->sq.tail)
        wq_send_done(qp, WC_WR_FLUSH_ERR);
    qp->req.next_wqe = qp->sq.head;
    qp->req.number = qp->req.next; /* of a message that was begun the rest has no PSNs */
}

void unreliable_sent(struct qp *qp)
{
    while (qp->sq.head != qp->req.next_wqe)
        wq_send_done(qp, WC_SUCCESS);
    if (qp->state == QP_STATE_SQD && psn_eq(qp->req.next, qp->req.number))
        qp_sq_drained(qp);
}

/* May a WQE that is not begun begin now? If its keys are not good it waits until the train before
 * it is out, and fails then. */
static bool wqe_begin(struct qp *qp, struct send_wqe *w, const struct train *t)
{
    struct requester *r = &qp->req;
    if (qp->state == QP_STATE_SQD)
        return false;
    bool local = mw_is_local(w->opcode);
    enum wc_status bad = WC_SUCCESS;
    if (mem_check_sges(qp->nic, qp->pd, w->sge, w->num_sge, 0) != MEM_OK)
        bad = WC_LOC_PROT_ERR;
    else if (local && !mw_execute(qp, w))
        bad = WC_MW_BIND_ERR;
    if (bad != WC_SUCCESS) {
        if (t->packets == 0)
            unreliable_fail(qp, bad);
        return false;
    }
    w->packets = local ? 0 : message_packets(w->length, qp->attr.path_mtu_bytes);
    w->first_psn = r->number;
    r->number = psn_add(r->number, w->packets);
    w->numbered = true;
    return true;
}

/* Adds the next packet; false when nothing more can go into this train. */
static bool add_packet(struct qp *qp, struct train *t)
{
    struct send_wqe *w = next_wqe(qp);
    if (!w->numbered && !wqe_begin(qp, w, t))
        return false;
    if (w->packets == 0) {
        qp->req.next_wqe++;
        return true;
    }
    uint32_t offset = (uint32_t)psn_diff(qp->req.next, w->first_psn);
    enum added added = requester_add_message(qp, w, offset, t);
    /* A key has gone: the peer is left with half a message, and drops it. */
    if (added == ADDED_BAD_KEY && t->packets == 0)
        unreliable_fail(qp, WC_LOC_PROT_ERR);
    if (added != ADDED)
        return false;
    unreliable_step(qp);
    if (offset == w->packets - 1)
        qp->req.next_wqe++;
    return true;
}

bool unreliable_next(struct qp *qp, struct train *t)
{
    train_begin(t, qp->tx_path);
    t->qp = qp;
    if (qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD)
        return false;
    unreliable_skip_flushed(qp);
    while (qp->req.next_wqe != qp->sq.tail && add_packet(qp, t)) {
    }
    if (t->packets == 0) /* local operations need no port */
        unreliable_sent(qp);
    return t->packets > 0;
}

/* The message that is coming in will not be complete. A receive that it took is the next one's. */
static void abandon(struct qp *qp)
{
    if (qp->resp.message != RESP_MESSAGE_NONE)
        nic_count(qp->nic, COUNTER_rx_drop_message, 1);
    qp->resp.message = RESP_MESSAGE_NONE;
}

/*
 * Is this the packet that was expected, or the first of a message behind a gap? IBA 9.8.2: what is
 * missing costs the message that it was of, and those before the next one that begins.
 */
static bool check_psn(struct qp *qp, const struct rx_packet *p, bool begins)
{
    struct responder *r = &qp->resp;
    int32_t ahead = psn_diff(p->h.bth.psn, r->epsn);
    if (ahead == 0)
        return true;
    if (ahead < 0 && ahead >= -STALE_PSNS) {
        nic_count(qp->nic, COUNTER_duplicate_request, 1);
        return false;
    }
    nic_count(qp->nic, COUNTER_out_of_sequence, 1);
    abandon(qp);
    if (begins)
        r->epsn = p->h.bth.psn;
    return begins;
}

/* FIRST and ONLY end what was not finished; MIDDLE and LAST go on with what is of their kind. */
static bool check_op_seq(struct qp *qp, uint16_t flags, bool begins)
{
    enum resp_message kind = flags & OPF_SEND ? RESP_MESSAGE_SEND : RESP_MESSAGE_WRITE;
    if (!begins && qp->resp.message == kind)
        return true;
    abandon(qp);
    return begins;
}

/* What a verdict means where nobody can be told: the message is dropped, the connection lives. */
static void finish(struct qp *qp, enum resp_verdict v)
{
    static const enum nic_counter reason[] = {
        [V_RNR] = COUNTER_rx_drop_no_recv,
        [V_NAK_INVALID] = COUNTER_resp_invalid_request,
        [V_NAK_ACCESS] = COUNTER_resp_remote_access_errors,
        [V_RECV_SHORT] = COUNTER_rx_drop_recv_small,
        [V_RECV_KEY] = COUNTER_resp_operational_errors,
    };
    nic_count(qp->nic, reason[v], 1);
    nic_count(qp->nic, COUNTER_rx_drop_message, 1);
    qp->resp.message = RESP_MESSAGE_NONE;
    qp->resp.epsn = psn_add(qp->resp.epsn, 1);
    /* An error of the program's own, in its receive queue: that ends the QP (IBA 10.3.1). */
    if (v == V_RECV_KEY) {
        responder_fail_receive(qp, WC_LOC_PROT_ERR);
        qp_enter_error(qp);
    }
}

void unreliable_input(struct qp *qp, const struct rx_packet *p)
{
    uint16_t flags = opcode_info(p->h.bth.opcode)->flags;
    bool begins = (flags & (OPF_FIRST | OPF_ONLY)) != 0;
    responder_heard(qp);
    if (!check_psn(qp, p, begins))
        return;
    if (!check_op_seq(qp, flags, begins)) {
        qp->resp.epsn = psn_add(qp->resp.epsn, 1);
        return;
    }
    enum resp_verdict v = responder_execute(qp, p, flags);
    if (v != V_GO_ON)
        finish(qp, v);
}
