/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wq.h: send, receive and shared receive queues: checking a work request, queueing it, finishing it
 * with a completion, flushing. All functions but the posts are called with the QP's lock held; the
 * posts take it (and the SRQ's) themselves.
 */
#ifndef NIC_WQ_H
#define NIC_WQ_H

#include <stdatomic.h>

#include "base/lock.h"
#include "nic/event.h"
#include "verbena/types.h"
#include "wire/psn.h"

struct nic;
struct qp;
struct pd;

struct send_wqe {
    uint64_t wr_id;
    uint64_t remote_addr;
    uint64_t compare_add;
    uint64_t swap;
    uint32_t rkey;
    uint32_t imm_or_inv;
    uint32_t length; /* of the message */
    uint8_t opcode;  /* enum wr_opcode */
    uint8_t flags;   /* enum wr_flags, WR_SIGNALED added for sq_sig_all */
    uint8_t num_sge; /* 0 when inline */
    bool numbered;   /* PSNs are assigned; the requester's, as the next three */
    uint32_t xrc_srqn;
    struct psn first_psn; /* of the message; a READ takes one PSN for each response packet */
    uint32_t packets;     /* PSNs taken, >= 1 */
    uint32_t ssn;         /* number of its last message on the wire, for credits */
    union {
        struct nic_sge *sge; /* max_send_sge of them */
        uint8_t *inline_data;
    };
};

/* Where a datagram goes. */
struct send_dest {
    struct nic_path path;
    uint32_t qpn;
    uint32_t qkey;
};

/* Free-running indexes; slot = index & mask. freed <= head <= tail. Without memory if it holds
 * none.
 */
struct send_queue {
    struct send_wqe *wqe;
    uint8_t *slab;          /* SGEs or inline data of all slots, and behind them the WQEs */
    struct send_dest *dest; /* of each slot; NULL unless the QP sends datagrams */
    uint32_t capacity;
    uint32_t mask;
    uint32_t max_sge;
    uint32_t max_inline_bytes;
    uint32_t head;          /* oldest not complete */
    uint32_t tail;          /* next to post */
    _Atomic uint32_t freed; /* slots before it may be posted again; moved on by cq_poll */
};

struct recv_wqe {
    uint64_t wr_id;
    uint32_t num_sge;
    uint32_t length; /* sum of the SGEs, saturated */
    struct nic_sge *sge;
};

struct recv_queue {
    struct recv_wqe *wqe;
    struct nic_sge *slab; /* of all slots, and behind them the WQEs */
    uint32_t capacity;
    uint32_t mask;
    uint32_t max_sge;
    uint32_t head; /* next that the responder takes */
    uint32_t tail;
};

struct srq {
    struct nic *nic;
    struct pd *pd;
    void *owner;
    struct lock lock;
    struct recv_queue rq;
    uint32_t limit;    /* 0: not armed */
    struct xrcd *xrcd; /* of an XRC domain, else NULL: its number, and where completions go */
    struct cq *cq;
    uint32_t number;
    _Atomic uint32_t users;
    struct event_source events;
};

/* The receive that the responder is filling: a copy, so that an SRQ slot is free once it is taken.
 */
struct recv_current {
    uint64_t wr_id;
    uint32_t num_sge;
    uint32_t length;
    uint32_t xrc_srqn; /* XRC TGT: that it came from */
    bool valid;
    struct nic_sge *sge; /* as many as a receive of its queue can have */
};

/* 0 or -ENOMEM. datagrams: each WQE has a destination of its own. */
int wq_init_send(struct send_queue *sq, const struct nic_qp_cap *cap, bool datagrams);
void wq_fini_send(struct send_queue *sq);
/* What came of asking for a receive. */
enum wq_take { WQ_TAKEN, WQ_NONE, WQ_SMALL };

int wq_init_recv(struct recv_queue *rq, uint32_t max_wr, uint32_t max_sge);
void wq_fini_recv(struct recv_queue *rq);

/*
 * Posts one WR. 0; -EINVAL: state RESET, INIT or RTR, unknown opcode, too many SGEs, inline too
 * long, atomic or ATOMIC WRITE whose length is not 8 bytes, READ/atomic that is inline, FLUSH that
 * asks for nothing or what there is not, or of more than MAX_FLUSH_BYTES, message over
 * MAX_MESSAGE_BYTES, opcode that is not of this QP type (an unaligned atomic is the responder's to
 * refuse), datagram without a path, QPN or SRQ number beyond 24 bits; -ENOMEM: queue full. In SQE
 * and ERR it completes with WC_WR_FLUSH_ERR.
 */
int wq_post_send(struct qp *qp, const struct nic_send_wr *wr);
/* 0; -EINVAL: state RESET, QP with SRQ, too many SGEs; -ENOMEM: full. In ERR it is flushed. */
int wq_post_recv(struct qp *qp, const struct nic_recv_wr *wr);
int wq_post_srq_recv(struct srq *srq, const struct nic_recv_wr *wr);

/* Finishes the WQE at sq.head with a status: completion if signalled or failed; head moves on. */
void wq_send_done(struct qp *qp, enum wc_status status);
/* Takes the next receive from RQ or SRQ to qp's recv_current; false: none posted. */
bool wq_recv_take(struct qp *qp);
/* The same if it has room for so many bytes; else it stays where it is. */
enum wq_take wq_recv_take_for(struct qp *qp, uint32_t bytes);
/* Finishes recv_current. On success e has opcode, byte_len, flags, imm filled by the caller; wr_id,
 * qp_num are set here. */
void wq_recv_done(struct qp *qp, struct nic_wc *e, bool solicited);
/* Receives posted and not taken, for credits; UINT32_MAX when unknown (SRQ, XRC). */
uint32_t wq_recv_posted(const struct qp *qp);
/* Completes everything outstanding with WC_WR_FLUSH_ERR, in post order, send and receive side. */
void wq_flush(struct qp *qp);
/* Empties the queues without completions (RESET). */
void wq_clear(struct qp *qp);

/* Between wq.c and srq.c. Lock of the queue held: queues a receive, 0, -EINVAL (SGEs) or -ENOMEM.
 */
int wq_queue_recv(struct recv_queue *rq, const struct nic_recv_wr *wr);
void wq_copy_recv(struct recv_current *to, const struct recv_wqe *w);
/* Takes the next receive if it has room for so many bytes, raises the limit event. Takes the SRQ's
 * lock. */
enum wq_take wq_srq_take(struct srq *srq, struct recv_current *to, uint32_t bytes);

/* 0, -EINVAL (bounds), -ENOMEM. *max_wr and *max_sge are raised to what was given. */
int wq_srq_create(struct pd *pd, uint32_t *max_wr, uint32_t *max_sge, uint32_t limit, void *owner,
                  struct srq **out);
/* 0 or -EBUSY. */
int wq_srq_destroy(struct srq *srq);
/* new_max_wr 0: unchanged; else grows, keeping what is posted: 0, -EINVAL when fewer than posted,
 * -ENOMEM. */
int wq_srq_resize(struct srq *srq, uint32_t *new_max_wr);
/* 0 or -EINVAL (over capacity). Raises EVENT_SRQ_LIMIT_REACHED once when fewer than limit are
 * posted. */
int wq_srq_set_limit(struct srq *srq, uint32_t limit);

#endif
