/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timers.h: the only place that arms deadlines. Callers tell what happened; timers.c knows what
 * that means for the ack timer (IBA 9.7.6.1.3) and the RNR timer (IBA 9.7.5.2.8). Called with the
 * QP's lock held.
 */
#ifndef NIC_TIMERS_H
#define NIC_TIMERS_H

#include <stdint.h>

struct qp;

void timers_request_sent(struct qp *qp,
                         uint64_t now_ns);            /* something went out that must be answered */
void timers_progress(struct qp *qp, uint64_t now_ns); /* the oldest unanswered PSN moved on */
void timers_go_back(struct qp *qp); /* all that is unanswered will be sent again */
void timers_rnr_nak(struct qp *qp, uint64_t now_ns, uint8_t code); /* the peer asks to wait */
void timers_paced(struct qp *qp);      /* nothing may go out before the pacer opens */
void timers_congestion(struct qp *qp); /* nor before congestion control lets it */
void timers_stop(struct qp *qp);       /* QP left RTS or is idle */
/* A deadline of this QP has come: acts on what is really due, arms again what is not. */
void timers_expire(struct qp *qp, uint64_t now_ns);

#endif
