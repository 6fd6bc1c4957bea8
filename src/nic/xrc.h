/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xrc.h: extended reliable connections (annex A14): domains, and the shared receive queues of a
 * domain, which have numbers: each request that comes to a target QP names one, and with it the
 * protection domain that its keys are of and the CQ that is told. What goes over the wire is in
 * roce/.
 */
#ifndef NIC_XRC_H
#define NIC_XRC_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "nic/wq.h"
#include "verbena/types.h"

struct cqe;
struct nic;
struct qp;

enum {
    XRC_SRQ_INDEX_BITS = 16, /* of a number; the rest is drawn */
    MAX_XRC_SRQ = 1 << XRC_SRQ_INDEX_BITS,
};

struct xrcd {
    struct nic *nic;
    _Atomic uint32_t children; /* target QPs and SRQs */
};

/* The numbers of one NIC; lives in struct nic. */
struct xrc_table {
    struct lock lock;  /* held while a queue that was found is used: destroying takes it, too */
    struct srq **slot; /* MAX_XRC_SRQ; NULL until the first */
    uint32_t unused;   /* lowest index that may be free */
};

void xrc_init(struct nic *nic);
void xrc_fini(struct nic *nic);

int xrc_domain_create(struct nic *nic, struct xrcd **out); /* 0 or -ENOMEM */
int xrc_domain_destroy(struct xrcd *xrcd);                 /* 0 or -EBUSY */

/* As wq_srq_create, with a number in srq->number. Completions go to the CQ. */
int xrc_srq_create(struct pd *pd, struct xrcd *xrcd, struct cq *cq, uint32_t *max_wr,
                   uint32_t *max_sge, void *owner, struct srq **out);
/* It is found no longer. */
void xrc_srq_forget(struct srq *srq);

/* The protection domain of the queue with this number; NULL: none, or not in the QP's domain. */
const struct pd *xrc_find_pd(const struct qp *qp, uint32_t number);
/* Takes the next receive of it to the QP's recv_current; false: none is there. */
bool xrc_recv_take(struct qp *qp, uint32_t number);
/* To the CQ of the queue that the QP's recv_current came from, unless it has gone. */
void xrc_recv_done(struct qp *qp, const struct cqe *e, bool solicited);

#endif
