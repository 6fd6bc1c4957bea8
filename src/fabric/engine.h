/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h: a host that is a NIC engine: engine.c is its way to the port, verbs.c what its program
 * does: work requests, receives, completions.
 */
#ifndef FABRIC_ENGINE_H
#define FABRIC_ENGINE_H

#include "fabric/source.h"
#include "nic/cq.h"
#include "nic/mem.h"
#include "nic/nic.h"
#include "nic/qp.h"

enum {
    ENGINE_MESSAGE_BYTES = 1 << 20, /* of a work request at most */
    ENGINE_ATOMIC_BYTES = 8,
    ENGINE_RD_ATOMIC = 16,         /* READs and atomics under way, of a pair */
    ENGINE_CELL_BYTES = 16,        /* behind them: what atomics change, and where they put it */
    ENGINE_POSTED_BYTES = 8 << 20, /* of a flow, in as many work requests as that is; */
    ENGINE_POSTED = 64,            /* but no more than these */
};
#define ENGINE_EPOCH_NS UINT64_C(1000000) /* what engines are told at the beginning: never 0 */

struct engine {
    struct source source; /* first: it is the endpoint's state */
    struct fabric *fabric;
    struct endpoint *endpoint;
    struct nic_sink sink;
    struct nic *nic;
    struct pd *pd;
    struct cq *cq;
    struct mr *mr;
    struct heap receives;                         /* when receives are posted again */
    uint8_t priorities;                           /* mask: what its pairs send by */
    struct packet_list out[FABRIC_PRIORITIES];    /* cut, and not sent yet */
    struct packet_list urgent[FABRIC_PRIORITIES]; /* of congestion control: go before those */
};

struct engine_flow {
    struct qp *qp[2];         /* at src, at dst */
    uint64_t posted, done;    /* bytes */
    uint32_t next_psn;        /* behind what was asked for last */
    bool sent;                /* something was */
    uint32_t owed;            /* receives that are to be posted again */
    uint32_t rnr_naks;        /* that came */
    uint8_t status;           /* enum wc_status that ended it */
    uint64_t failed_ps;       /* FABRIC_NEVER: it did not */
    struct heap_node receive; /* the next of those owed */
};

static inline struct engine *engine_of(const struct endpoint *e)
{
    return e->state;
}

static inline uint64_t engine_now_ns(const struct fabric *f)
{
    return f->sched.now_ps / 1000 + ENGINE_EPOCH_NS;
}

static inline bool engine_is_atomic(enum fabric_verb verb)
{
    return verb == FABRIC_FETCH_ADD || verb == FABRIC_CMP_SWAP;
}

/* The side that asks: 0 at src, 1 at dst. */
static inline unsigned engine_asks(const struct fabric *f, uint32_t flow)
{
    return f->flow_spec[flow].work.verb == FABRIC_READ ? 1 : 0;
}

/* The shortest of those that a QP can have that is not shorter than what is asked for: an RNR
 * timer; a time-out, of which 0 is none. */
uint8_t engine_rnr_code(uint64_t rnr_ps);
uint8_t engine_timeout_code(uint64_t timeout_ps);

/* verbs.c */
/* What the QP of a side must hold. */
struct nic_qp_cap verbs_cap(const struct fabric *f, uint32_t flow, unsigned side);
/* The flow starts: receives, then work requests. */
void verbs_start(struct fabric *f, struct engine *g, struct flow *w);
/* Receives that are due. */
void verbs_receive_again(struct fabric *f, struct engine *g);
/* All completions that are there. */
void verbs_complete(struct fabric *f, struct engine *g);

#endif
