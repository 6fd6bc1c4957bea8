/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objects.h: a NIC with one PD, two CQs and one RC QP, and the way of that QP through its states,
 * for the unit tests of this floor.
 */
#ifndef TESTS_NIC_OBJECTS_H
#define TESTS_NIC_OBJECTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nic/nic.h"

enum { INIT_MASK = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS };
enum {
    RTR_MASK = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
               QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER
};
enum {
    RTS_MASK = QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
               QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC
};

/* The owner of each object is the address of the pointer to it here. */
struct objects {
    struct nic *nic;
    struct pd *pd;
    struct cq *scq, *rcq;
    struct srq *srq; /* or NULL */
    struct qp *qp;
};

struct objects_init {
    struct nic_qp_cap cap;
    int cqe; /* of each CQ */
    bool sq_sig_all;
    uint32_t srq_wr; /* 0: no SRQ */
    struct congestion_config congestion;
};

static inline void objects_create(struct objects *o, const struct objects_init *in)
{
    struct nic_config config = {.seed = 7, .congestion = in->congestion};
    struct qp_init init = {.type = QP_TYPE_RC, .cap = in->cap, .sq_sig_all = in->sq_sig_all};
    uint32_t wr = in->srq_wr, sge = 2;

    *o = (struct objects){0};
    assert_int_equal(nic_create(&config, &o->nic), 0);
    assert_int_equal(nic_add_qpns(o->nic, 5), 0);
    assert_int_equal(mem_pd_create(o->nic, &o->pd), 0);
    assert_int_equal(cq_create(o->nic, in->cqe, &o->scq, &o->scq), 0);
    assert_int_equal(cq_create(o->nic, in->cqe, &o->rcq, &o->rcq), 0);
    if (wr != 0)
        assert_int_equal(wq_srq_create(o->pd, &wr, &sge, 0, &o->srq, &o->srq), 0);
    init.pd = o->pd;
    init.send_cq = o->scq;
    init.recv_cq = o->rcq;
    init.srq = o->srq;
    init.owner = &o->qp;
    assert_int_equal(qp_create(o->nic, &init, &o->qp), 0);
}

static inline void objects_destroy(struct objects *o)
{
    if (o->qp != NULL) {
        qp_unlink(o->qp);
        qp_free(o->qp);
    }
    if (o->srq != NULL)
        assert_int_equal(wq_srq_destroy(o->srq), 0);
    assert_int_equal(cq_destroy(o->scq), 0);
    assert_int_equal(cq_destroy(o->rcq), 0);
    assert_int_equal(mem_pd_destroy(o->pd), 0);
    nic_destroy(o->nic);
}

/* Attributes that are good for every transition of an RC QP. */
static inline struct nic_qp_attr objects_attr(enum qp_state to)
{
    return (struct nic_qp_attr){
        .state = to,
        .access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
        .port_num = 1,
        .path_mtu_bytes = 1024,
        .active_mtu_bytes = 1024,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .max_rd_atomic = 1,
        .max_dest_rd_atomic = 1,
        .rq_psn = 0x123456,
        .sq_psn = 0x654321,
        .dest_qpn = 0x11,
    };
}

/* One step; the mask is what the target state requires. */
static inline int objects_step(struct objects *o, enum qp_state to)
{
    struct nic_qp_attr attr = objects_attr(to);
    unsigned mask = QP_ATTR_STATE;

    if (to == QP_STATE_INIT)
        mask = INIT_MASK;
    else if (to == QP_STATE_RTR)
        mask = RTR_MASK;
    else if (to == QP_STATE_RTS && o->qp->state == QP_STATE_RTR)
        mask = RTS_MASK;
    return qp_modify(o->qp, &attr, mask);
}

/* From RESET by the shortest way; SQE, which only the engine enters, is set by hand. */
static inline void objects_bring(struct objects *o, enum qp_state to)
{
    if (to == QP_STATE_RESET)
        return;
    assert_int_equal(objects_step(o, QP_STATE_INIT), 0);
    if (to == QP_STATE_INIT)
        return;
    if (to == QP_STATE_ERR) {
        assert_int_equal(objects_step(o, QP_STATE_ERR), 0);
        return;
    }
    assert_int_equal(objects_step(o, QP_STATE_RTR), 0);
    if (to == QP_STATE_RTR)
        return;
    assert_int_equal(objects_step(o, QP_STATE_RTS), 0);
    if (to == QP_STATE_SQD)
        assert_int_equal(objects_step(o, QP_STATE_SQD), 0);
    else if (to == QP_STATE_SQE)
        o->qp->state = QP_STATE_SQE;
}

/* The next async event must be this one. */
static inline void objects_expect_event(struct objects *o, enum nic_event_type type)
{
    struct nic_event e;

    assert_true(event_next(o->nic, &e));
    assert_int_equal(e.type, type);
}

static inline void objects_expect_no_event(struct objects *o)
{
    struct nic_event e;

    assert_false(event_next(o->nic, &e));
}

#endif
