/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timers.c: what each protocol event means for a QP's deadlines: the ack timer of the requester,
 * the wait that an RNR NAK asks for, those of the pacer and of congestion control. No other file
 * arms one.
 */
#include "nic/timers.h"

#include "nic/nic.h"
#include "nic/qp.h"
#include "wire/aeth.h"

static void ack_arm(struct qp *qp, uint64_t now_ns)
{
    /* IBA 9.7.6.1.3: from the moment the request is out, 4.096 us * 2^timeout at least and four
     * times that at most. */
    uint64_t timeout_ns = aeth_ack_timeout_ns(qp->attr.timeout);
    if (timeout_ns == 0) {
        qp->req.ack_deadline_ns = 0;
        return;
    }
    qp->req.ack_deadline_ns = now_ns + timeout_ns;
    nic_set_deadline(qp, qp->req.ack_deadline_ns);
}

void timers_request_sent(struct qp *qp, uint64_t now_ns)
{
    if (qp->req.ack_deadline_ns == 0)
        ack_arm(qp, now_ns);
}

void timers_progress(struct qp *qp, uint64_t now_ns)
{
    /* Nothing is sent while an RNR timer runs, nothing is out when all of it goes again: the ack
     * timer starts with what is sent after. */
    if (requester_waiting(qp) && !qp->req.rnr_wait && !psn_eq(qp->req.next, qp->req.una))
        ack_arm(qp, now_ns);
    else
        qp->req.ack_deadline_ns = 0;
}

void timers_go_back(struct qp *qp)
{
    /* The time is the retransmission's, whole: what is left of the first try's is too short. */
    qp->req.ack_deadline_ns = 0;
}

void timers_rnr_nak(struct qp *qp, uint64_t now_ns, uint8_t code)
{
    qp->req.rnr_wait = true;
    qp->req.ack_deadline_ns = 0; /* the peer has answered: it is there */
    qp->req.rnr_deadline_ns = now_ns + aeth_rnr_ns(code);
    nic_set_deadline(qp, qp->req.rnr_deadline_ns);
}

void timers_paced(struct qp *qp)
{
    nic_set_deadline(qp, qp->pacer.opens_ns);
}

void timers_congestion(struct qp *qp)
{
    nic_set_deadline(qp, qp->congestion->opens_ns);
}

void timers_stop(struct qp *qp)
{
    qp->req.ack_deadline_ns = 0;
    qp->req.rnr_deadline_ns = 0;
    qp->req.rnr_wait = false;
    qp->pacer.opens_ns = 0;
    if (qp->congestion != NULL)
        qp->congestion->opens_ns = 0;
    nic_clear_deadline(qp);
}

void timers_expire(struct qp *qp, uint64_t now_ns)
{
    struct requester *r = &qp->req;
    struct pacer *p = &qp->pacer;
    struct congestion *g = qp->congestion;
    if (r->rnr_deadline_ns != 0 && r->rnr_deadline_ns <= now_ns) {
        r->rnr_deadline_ns = 0;
        r->rnr_wait = false;
        nic_qp_ready(qp);
    }
    if (r->ack_deadline_ns != 0 && r->ack_deadline_ns <= now_ns) {
        r->ack_deadline_ns = 0;
        requester_timeout(qp, now_ns);
    }
    if (p->opens_ns != 0 && p->opens_ns <= now_ns) {
        p->opens_ns = 0;
        nic_qp_ready(qp);
    }
    if (g != NULL && g->opens_ns != 0 && g->opens_ns <= now_ns) {
        g->opens_ns = 0;
        nic_qp_ready(qp);
    }
    if (g != NULL && g->opens_ns != 0)
        nic_set_deadline(qp, g->opens_ns);
    if (p->opens_ns != 0)
        nic_set_deadline(qp, p->opens_ns);
    if (r->rnr_deadline_ns != 0)
        nic_set_deadline(qp, r->rnr_deadline_ns);
    if (r->ack_deadline_ns != 0)
        nic_set_deadline(qp, r->ack_deadline_ns);
}
