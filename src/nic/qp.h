/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp.h: queue pairs: attributes, the state table, creation and end.
 */
#ifndef NIC_QP_H
#define NIC_QP_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "base/heap.h"
#include "base/lock.h"
#include "nic/congestion.h"
#include "nic/cq.h"
#include "nic/event.h"
#include "nic/mem.h"
#include "nic/pacer.h"
#include "nic/roce/roce_qp.h"
#include "nic/wq.h"
#include "verbena/types.h"

struct nic;

/* What a QP sent last; none since it had nothing to send. */
enum last_train { LAST_TRAIN_NONE, LAST_TRAIN_REQUESTS, LAST_TRAIN_REPLIES };

/* A thousand of them in a host of a fabric are usual: what few need is behind it, in one piece with
 * it (qp_create). */
struct qp {
    struct nic *nic;
    void *owner; /* the host's object, for events */
    struct lock lock;
    uint32_t qpn;
    enum qp_type type;
    enum qp_state state;
    uint16_t udp_sport; /* UD: of datagrams whose path names none */
    uint8_t service;    /* enum opcode_service, of its type */
    bool sq_sig_all;
    struct pd *pd;
    struct cq *send_cq;
    struct cq *recv_cq; /* NULL: XRC INI */
    struct srq *srq;    /* or NULL */
    struct xrcd *xrcd;  /* XRC TGT, which has no PD and no CQs */
    bool block_self_loopback;
    bool sqd_pending; /* SQD asked for, not drained yet */
    bool ece_set;     /* the program says what its peer can */
    uint8_t due;      /* enum congestion_due */
    /* Scheduler's, under nic->sched_lock. */
    _Atomic bool ready;         /* on nic->ready; read without that lock as well */
    bool waits;                 /* on nic->waiting rather: no room at the port for what it sends */
    bool urgent;                /* on nic->urgent: something of congestion is due */
    enum last_train last_train; /* nic_output */
    _Atomic uint32_t windows;   /* of type 2, bound to it */
    uint32_t ece;               /* enum ece_options that both can; 0 while that is not known */
    struct nic_qp_attr attr;    /* as last set; state is in .state above */
    struct send_queue sq;
    struct recv_queue rq;
    struct recv_current recv; /* what the responder is filling */
    struct requester req;
    struct responder resp;
    const struct nic_path *tx_path; /* attr.path as packets carry it: that, or congestion's */
    struct congestion *congestion;  /* NULL: off, or of a type that takes no part */
    struct pacer pacer;             /* of its requests; what answers the peer is not held back */
    struct congestion_answer answer;
    struct event_source events;
    TAILQ_ENTRY(qp) ready_link, urgent_link; /* nic->sched_lock, as the next one */
    struct heap_node timer;
    struct net_addr group_source; /* UD: of its last datagram to a group */
};

/* No acknowledgements; nobody is to wait for an answer. */
static inline bool qp_unreliable(const struct qp *qp)
{
    return qp->type == QP_TYPE_UC || qp->type == QP_TYPE_UD;
}

/*
 * 0; -EINVAL: caps over the NIC's limits, missing CQ; -ENOMEM: memory or QPNs used up; -EOPNOTSUPP:
 * type not offered (yet). Draws an unpredictable QPN from the ranges given to nic_add_qpns.
 */
int qp_create(struct nic *nic, struct qp_init *init, struct qp **out);
/*
 * Two steps: after qp_unlink no packet finds it; the caller then waits until no nic_input,
 * nic_output or nic_advance that may have found it still runs, and calls qp_free. Its completions
 * leave the CQs.
 */
void qp_unlink(struct qp *qp);
void qp_free(struct qp *qp);

/*
 * IBA 11.2.5.2 and its tables: which attributes a transition requires and allows, by QP type. 0;
 * -EINVAL: transition or mask not allowed, value out of range; state unchanged then.
 */
int qp_modify(struct qp *qp, const struct nic_qp_attr *attr, unsigned mask);
/* Snapshot; attr->state as of now. */
void qp_query(struct qp *qp, struct nic_qp_attr *attr, struct nic_qp_cap *cap);

/* ECE, between creation (or RESET) and RTR: what the peer says that it can. *options: then what of
 * it this end can as well, which the QP goes by. -EINVAL: too late. */
int qp_set_ece(struct qp *qp, uint32_t *options);
/* enum ece_options: before they are set, what this end can; from then on, or from RTR on, those in
 * use. */
uint32_t qp_query_ece(struct qp *qp);

/* The first packet shall be told in whatever state it comes: in RTR as ever (EVENT_COMM_EST), later
 * to the host alone (EVENT_QP_HEARD). Until RESET. */
void qp_await_packet(struct qp *qp);

/* With the lock held: ERR, timers off, flush in order, LAST_WQE event with an SRQ. No-op when
 * already there. */
void qp_enter_error(struct qp *qp);
/* With the lock held, when nothing of the SQ is outstanding: ends SQD draining. */
void qp_sq_drained(struct qp *qp);
/* Moves every QP that uses an overflowed CQ to ERR, with EVENT_QP_FATAL. nic_advance calls it
 * when nic->cq_purge_due was set. No lock held. */
void qp_purge_overflowed(struct nic *nic);

#endif
