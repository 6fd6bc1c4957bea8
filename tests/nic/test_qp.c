/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_qp.c: creation, numbers, the way through the states with its values, error, reset, SQD.
 */
#include "nic/qp.h"

#include <errno.h>
#include <stdlib.h>

#include "objects.h"

static const struct objects_init plain = {
    .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
    .cqe = 64,
};

static int setup(void **state)
{
    static struct objects o;

    objects_create(&o, &plain);
    *state = &o;
    return 0;
}

static int setup_srq(void **state)
{
    static struct objects o;
    struct objects_init in = plain;

    in.srq_wr = 8;
    objects_create(&o, &in);
    *state = &o;
    return 0;
}

static int teardown(void **state)
{
    objects_destroy(*state);
    return 0;
}

static int modify(struct objects *o, struct nic_qp_attr attr, unsigned mask)
{
    return qp_modify(o->qp, &attr, mask);
}

static void post_send(struct objects *o, uint64_t wr_id)
{
    struct nic_send_wr wr = {.wr_id = wr_id, .opcode = WR_SEND};

    assert_int_equal(wq_post_send(o->qp, &wr), 0);
}

static void post_recv(struct objects *o, uint64_t wr_id)
{
    struct nic_recv_wr wr = {.wr_id = wr_id};

    assert_int_equal(wq_post_recv(o->qp, &wr), 0);
}

static void expect_flushed(struct cq *cq, const uint64_t *wr_id, int n)
{
    struct nic_wc wc[32];

    assert_int_equal(cq_poll(cq, 32, wc), n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(wc[i].wr_id, wr_id[i]);
        assert_int_equal(wc[i].status, WC_WR_FLUSH_ERR);
        assert_int_equal(wc[i].vendor_err, 0);
    }
}

static void qp_create__bounds(void **state)
{
    static const struct {
        struct nic_qp_cap cap;
        int err;
    } rows[] = {
        {{1, 1, 1, 1, 0},                                              0      },
        {{0, 0, 0, 0, 0},                                              0      },
        {{MAX_WR, 1, 1, 1, 0},                                         0      },
        {{5, 5, MAX_SGE, MAX_SGE, MAX_INLINE_BYTES},                   0      },
        {{MAX_WR + 1, 1, 1, 1, 0},                                     -EINVAL},
        {{1, MAX_WR + 1, 1, 1, 0},                                     -EINVAL},
        {{1, 1, MAX_SGE + 1, 1, 0},                                    -EINVAL},
        {{1, 1, 1, MAX_SGE + 1, 0},                                    -EINVAL},
        {{1, 1, 1, 1, MAX_INLINE_BYTES + 1},                           -EINVAL},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}, -EINVAL},
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct qp_init init = {.type = QP_TYPE_RC,
                               .pd = o->pd,
                               .send_cq = o->scq,
                               .recv_cq = o->rcq,
                               .cap = rows[i].cap};
        struct qp *qp = NULL;

        assert_int_equal(qp_create(o->nic, &init, &qp), rows[i].err);
        if (rows[i].err != 0) {
            assert_null(qp);
            continue;
        }
        assert_true(init.cap.max_send_wr >= rows[i].cap.max_send_wr);
        assert_true(init.cap.max_recv_wr >= rows[i].cap.max_recv_wr);
        assert_true(init.cap.max_send_sge >= rows[i].cap.max_send_sge);
        assert_true(init.cap.max_recv_sge >= rows[i].cap.max_recv_sge);
        assert_true(init.cap.max_inline_bytes >= rows[i].cap.max_inline_bytes);
        assert_int_equal(qp->state, QP_STATE_RESET);
        qp_unlink(qp);
        qp_free(qp);
    }
    assert_int_equal(atomic_load(&o->pd->children), 1);
    assert_int_equal(atomic_load(&o->scq->users), 1);
}

static void case_10(void **state)
{
    static const struct {
        uint32_t ask;
        int err;
    } rows[] = {
        {0,       0      },
        {64,      0      },
        {512,     0      },
        {1 << 20, -EINVAL},
        {513,     -EINVAL}
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct qp_init init = {
            .type = QP_TYPE_RC,
            .pd = o->pd,
            .send_cq = o->scq,
            .recv_cq = o->rcq,
            .cap = {1, 1, 1, 1, rows[i].ask}
        };
        struct qp *qp;

        assert_int_equal(qp_create(o->nic, &init, &qp), rows[i].err);
        assert_true(init.cap.max_inline_bytes >= rows[i].ask);
        if (rows[i].err == 0) {
            qp_unlink(qp);
            qp_free(qp);
        }
    }
}

static void case_13_qp_type(void **state)
{
    static const int types[] = {0, 1, 5, 8, 11, 31, 99, -1};
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct qp_init init = {
            .type = (enum qp_type)types[i], .pd = o->pd, .send_cq = o->scq, .recv_cq = o->rcq};
        struct qp *qp = NULL;

        assert_int_equal(qp_create(o->nic, &init, &qp), -EOPNOTSUPP);
        assert_null(qp);
    }
}

static void qp_create__parts_missing(void **state)
{
    struct objects *o = *state;
    struct qp *qp;

    for (int i = 0; i < 3; i++) {
        struct qp_init init = {.type = QP_TYPE_RC,
                               .pd = i == 0 ? NULL : o->pd,
                               .send_cq = i == 1 ? NULL : o->scq,
                               .recv_cq = i == 2 ? NULL : o->rcq};

        assert_int_equal(qp_create(o->nic, &init, &qp), -EINVAL);
    }
}

static void qp_create__number_in_slot_and_findable(void **state)
{
    enum { MANY = 64 };
    struct objects *o = *state;
    struct qp *qp[MANY];
    unsigned steps_of_one = 0;

    for (int i = 0; i < MANY; i++) {
        struct qp_init init = {
            .type = QP_TYPE_RC, .pd = o->pd, .send_cq = o->scq, .recv_cq = o->rcq};

        assert_int_equal(qp_create(o->nic, &init, &qp[i]), 0);
        assert_int_equal(qp[i]->qpn >> QPN_SLOT_BITS, 5);
        assert_ptr_equal(nic_find_qp(o->nic, qp[i]->qpn), qp[i]);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(qp[i]->qpn, qp[j]->qpn);
        if (i > 0 && qp[i]->qpn == qp[i - 1]->qpn + 1)
            steps_of_one++;
    }
    assert_true(steps_of_one < 5); /* not a counter */
    for (int i = 0; i < MANY; i++) {
        qp_unlink(qp[i]);
        assert_null(nic_find_qp(o->nic, qp[i]->qpn));
        qp_free(qp[i]);
    }
}

/* Slots 0 and 1023 hold the reserved numbers: with all others taken, creation fails. */
static void qp_create__reserved_numbers_never(void **state)
{
    static const struct {
        uint32_t slot, usable;
    } rows[] = {
        {0,             QPN_PER_SLOT - 2},
        {QPN_SLOTS - 1, QPN_PER_SLOT - 1}
    };

    (void)state;
    for (size_t r = 0; r < 2; r++) {
        struct nic_config config = {.seed = r};
        struct qp_init init = {.type = QP_TYPE_RC};
        struct qp **qp = calloc(QPN_PER_SLOT, sizeof(*qp)), *more;
        struct nic *nic;

        assert_non_null(qp);
        assert_int_equal(nic_create(&config, &nic), 0);
        assert_int_equal(mem_pd_create(nic, &init.pd), 0);
        assert_int_equal(cq_create(nic, 1, NULL, &init.send_cq), 0);
        init.recv_cq = init.send_cq;
        assert_int_equal(qp_create(nic, &init, &more), -ENOMEM); /* no slot at all */
        assert_int_equal(nic_add_qpns(nic, rows[r].slot), 0);
        for (uint32_t i = 0; i < rows[r].usable; i++) {
            assert_int_equal(qp_create(nic, &init, &qp[i]), 0);
            assert_true(qp[i]->qpn > 1 && qp[i]->qpn < 0xffffff);
        }
        assert_int_equal(qp_create(nic, &init, &more), -ENOMEM);
        assert_int_equal(atomic_load(&init.send_cq->users), 2 * rows[r].usable);
        for (uint32_t i = 0; i < rows[r].usable; i++) {
            qp_unlink(qp[i]);
            qp_free(qp[i]);
        }
        assert_int_equal(cq_destroy(init.send_cq), 0);
        assert_int_equal(mem_pd_destroy(init.pd), 0);
        nic_destroy(nic);
        free(qp);
    }
}

/* Each required bit left out in turn, on a real QP: EINVAL, and nothing has changed. */
static void case_30(void **state)
{
    static const struct {
        enum qp_state to;
        unsigned mask;
    } steps[] = {
        {QP_STATE_INIT, INIT_MASK},
        {QP_STATE_RTR,  RTR_MASK },
        {QP_STATE_RTS,  RTS_MASK }
    };
    struct objects *o = *state;

    for (size_t s = 0; s < 3; s++) {
        struct nic_qp_attr attr = objects_attr(steps[s].to), before, after;
        struct nic_qp_cap cap;

        qp_query(o->qp, &before, &cap);
        for (unsigned bit = 1; bit < 32; bit++) {
            if (!(steps[s].mask & 1u << bit))
                continue;
            assert_int_equal(qp_modify(o->qp, &attr, steps[s].mask & ~(1u << bit)), -EINVAL);
            qp_query(o->qp, &after, &cap);
            assert_memory_equal(&before, &after, sizeof(before));
        }
        assert_int_equal(qp_modify(o->qp, &attr, steps[s].mask), 0);
        qp_query(o->qp, &after, &cap);
        assert_int_equal(after.state, steps[s].to);
    }
}

/* One value out of range at a time, in the transition that sets it. */
static void qp_modify__values(void **state)
{
#define BAD(to, field, value)                                                                      \
    {                                                                                              \
        to, offsetof(struct nic_qp_attr, field), sizeof(good.field), value                         \
    }
    struct nic_qp_attr good;
    const struct {
        enum qp_state to;
        size_t offset, size;
        uint64_t value;
    } rows[] = {
        BAD(QP_STATE_INIT, port_num, 0),
        BAD(QP_STATE_INIT, port_num, 2),
        BAD(QP_STATE_INIT, pkey_index, 1),
        BAD(QP_STATE_INIT, access_flags, 1 << 10),
        BAD(QP_STATE_INIT, access_flags, 1u << 31),
        BAD(QP_STATE_RTR, path_mtu_bytes, 0),
        BAD(QP_STATE_RTR, path_mtu_bytes, 128),
        BAD(QP_STATE_RTR, path_mtu_bytes, 1000),
        BAD(QP_STATE_RTR, path_mtu_bytes, 8192),
        BAD(QP_STATE_RTR, rq_psn, 0x1000000),
        BAD(QP_STATE_RTR, dest_qpn, 0x1000000),
        BAD(QP_STATE_RTR, max_dest_rd_atomic, MAX_RD_ATOMIC + 1),
        BAD(QP_STATE_RTR, min_rnr_timer, 32),
        BAD(QP_STATE_RTS, sq_psn, 0x1000000),
        BAD(QP_STATE_RTS, sq_psn, UINT32_MAX),
        BAD(QP_STATE_RTS, timeout, 32),
        BAD(QP_STATE_RTS, retry_cnt, 8),
        BAD(QP_STATE_RTS, rnr_retry, 8),
        BAD(QP_STATE_RTS, max_rd_atomic, MAX_RD_ATOMIC + 1),
    };
#undef BAD
    struct objects *o = *state;

    for (int to = QP_STATE_INIT; to <= QP_STATE_RTS; to++) {
        static const unsigned mask[] = {
            [QP_STATE_INIT] = INIT_MASK, [QP_STATE_RTR] = RTR_MASK, [QP_STATE_RTS] = RTS_MASK};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            if (rows[i].to != (enum qp_state)to)
                continue;
            good = objects_attr((enum qp_state)to);
            memcpy((char *)&good + rows[i].offset, &rows[i].value, rows[i].size);
            assert_int_equal(qp_modify(o->qp, &good, mask[to]), -EINVAL);
            assert_int_equal(o->qp->state, to - 1);
        }
        assert_int_equal(objects_step(o, (enum qp_state)to), 0);
    }
}

static void qp_modify__extreme_values_that_are_good(void **state)
{
    struct objects *o = *state;
    struct nic_qp_attr a = objects_attr(QP_STATE_INIT), got;
    struct nic_qp_cap cap;

    /* Relaxed ordering is ignored; persistence may be granted though no memory offers it. */
    a.access_flags = ACCESS_LOCAL_WRITE | ACCESS_FLUSH_PERSISTENT | 1u << 20;
    assert_int_equal(qp_modify(o->qp, &a, INIT_MASK), 0);
    a.state = QP_STATE_RTR;
    a.path_mtu_bytes = 4096;
    a.active_mtu_bytes = 4096;
    a.max_dest_rd_atomic = MAX_RD_ATOMIC;
    a.min_rnr_timer = 31;
    a.rq_psn = 0xffffff;
    a.dest_qpn = 0xffffff;
    assert_int_equal(qp_modify(o->qp, &a, RTR_MASK), 0);
    a.state = QP_STATE_RTS;
    a.timeout = 31;
    a.retry_cnt = 0;
    a.rnr_retry = 7;
    a.sq_psn = 0xffffff;
    a.max_rd_atomic = 0;
    assert_int_equal(qp_modify(o->qp, &a, RTS_MASK), 0);
    qp_query(o->qp, &got, &cap);
    assert_int_equal(got.access_flags, ACCESS_LOCAL_WRITE | ACCESS_FLUSH_PERSISTENT);
    assert_int_equal(got.path_mtu_bytes, 4096);
    assert_int_equal(got.rq_psn, 0xffffff);
    assert_int_equal(got.sq_psn, 0xffffff);
    assert_int_equal(got.dest_qpn, 0xffffff);
    assert_int_equal(got.timeout, 31);
    assert_int_equal(got.max_rd_atomic, 0);
    assert_int_equal(got.max_dest_rd_atomic, MAX_RD_ATOMIC);
    assert_int_equal(cap.max_send_wr, 16);
}

static void case_32(void **state)
{
    static const struct {
        uint16_t path, active;
        int err;
    } rows[] = {
        {4096, 1024, -EINVAL},
        {2048, 1024, -EINVAL},
        {512,  256,  -EINVAL},
        {1024, 1023, -EINVAL},
        {1024, 1024, 0      },
        {256,  4096, 0      },
        {4096, 0,    0      },
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_qp_attr a = objects_attr(QP_STATE_RTR);

        objects_bring(o, QP_STATE_INIT);
        a.path_mtu_bytes = rows[i].path;
        a.active_mtu_bytes = rows[i].active;
        assert_int_equal(qp_modify(o->qp, &a, RTR_MASK), rows[i].err);
        assert_int_equal(o->qp->state, rows[i].err == 0 ? QP_STATE_RTR : QP_STATE_INIT);
        assert_int_equal(objects_step(o, QP_STATE_RESET), 0);
    }
}

static void qp_modify__current_state(void **state)
{
    struct objects *o = *state;
    struct nic_qp_attr a = objects_attr(QP_STATE_RTS);

    objects_bring(o, QP_STATE_RTR);
    for (int s = 0; s < QP_STATE_COUNT; s++) {
        if (s == QP_STATE_RTR)
            continue;
        a.cur_state = (enum qp_state)s;
        assert_int_equal(qp_modify(o->qp, &a, RTS_MASK | QP_ATTR_CUR_STATE), -EINVAL);
    }
    a.cur_state = QP_STATE_RTR;
    assert_int_equal(qp_modify(o->qp, &a, RTS_MASK | QP_ATTR_CUR_STATE), 0);
    assert_int_equal(o->qp->state, QP_STATE_RTS);
}

static void qp_modify__every_pair_of_states(void **state)
{
    static const unsigned allowed[QP_STATE_COUNT] = {
        [QP_STATE_RESET] = 1 << QP_STATE_RESET | 1 << QP_STATE_INIT,
        [QP_STATE_INIT] =
            1 << QP_STATE_RESET | 1 << QP_STATE_INIT | 1 << QP_STATE_RTR | 1 << QP_STATE_ERR,
        [QP_STATE_RTR] = 1 << QP_STATE_RESET | 1 << QP_STATE_RTS | 1 << QP_STATE_ERR,
        [QP_STATE_RTS] =
            1 << QP_STATE_RESET | 1 << QP_STATE_RTS | 1 << QP_STATE_SQD | 1 << QP_STATE_ERR,
        [QP_STATE_SQD] =
            1 << QP_STATE_RESET | 1 << QP_STATE_RTS | 1 << QP_STATE_SQD | 1 << QP_STATE_ERR,
        [QP_STATE_SQE] = 1 << QP_STATE_RESET | 1 << QP_STATE_ERR,
        [QP_STATE_ERR] = 1 << QP_STATE_RESET | 1 << QP_STATE_ERR,
    };
    struct objects *o = *state;

    for (int from = 0; from < QP_STATE_COUNT; from++) {
        for (int to = 0; to <= QP_STATE_COUNT; to++) {
            bool ok = to < QP_STATE_COUNT && allowed[from] >> to & 1;

            objects_bring(o, (enum qp_state)from);
            assert_int_equal(objects_step(o, (enum qp_state)to), ok ? 0 : -EINVAL);
            assert_int_equal(o->qp->state, ok ? to : from);
            if (o->qp->state != QP_STATE_RESET)
                assert_int_equal(objects_step(o, QP_STATE_RESET), 0);
        }
    }
}

static void qp_modify__path_migration_refused(void **state)
{
    struct objects *o = *state;

    objects_bring(o, QP_STATE_RTS);
    assert_int_equal(modify(o, objects_attr(QP_STATE_RTS), QP_ATTR_STATE | QP_ATTR_ALT_PATH),
                     -EINVAL);
    assert_int_equal(modify(o, objects_attr(QP_STATE_RTS), QP_ATTR_STATE | QP_ATTR_PATH_MIG_STATE),
                     -EINVAL);
}

static void qp_modify__without_state(void **state)
{
    struct objects *o = *state;
    struct nic_qp_attr a = objects_attr(QP_STATE_RESET); /* its state must not count */

    assert_int_equal(modify(o, a, 0), 0);
    objects_bring(o, QP_STATE_RTS);
    a.access_flags = ACCESS_REMOTE_READ;
    a.min_rnr_timer = 5;
    assert_int_equal(modify(o, a, QP_ATTR_ACCESS_FLAGS | QP_ATTR_MIN_RNR_TIMER), 0);
    assert_int_equal(o->qp->state, QP_STATE_RTS);
    assert_int_equal(o->qp->attr.access_flags, ACCESS_REMOTE_READ);
    assert_int_equal(o->qp->attr.min_rnr_timer, 5);
    assert_int_equal(modify(o, a, QP_ATTR_SQ_PSN), -EINVAL);
    assert_int_equal(modify(o, a, QP_ATTR_PATH_MTU), -EINVAL);
}

/* IBA 10.3.1 */
static void case_36_flush_in_post_order(void **state)
{
    static const uint64_t sends[] = {1, 2, 3, 4, 5}, recvs[] = {11, 12, 13};
    struct objects *o = *state;

    objects_bring(o, QP_STATE_RTS);
    for (int i = 0; i < 5; i++)
        post_send(o, sends[i]);
    for (int i = 0; i < 3; i++)
        post_recv(o, recvs[i]);
    assert_true(wq_recv_take(o->qp)); /* one is being filled */
    assert_int_equal(objects_step(o, QP_STATE_ERR), 0);
    expect_flushed(o->scq, sends, 5);
    expect_flushed(o->rcq, recvs, 3);
    assert_int_equal(objects_step(o, QP_STATE_ERR), 0); /* nothing twice */
    expect_flushed(o->scq, NULL, 0);
    expect_flushed(o->rcq, NULL, 0);
    objects_expect_no_event(o);
    assert_int_equal(nic_deadline(o->nic), UINT64_MAX);
}

static void case_42_reset_clears(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc;

    for (int round = 0; round < 100; round++) {
        objects_bring(o, QP_STATE_RTS);
        assert_int_equal(o->qp->req.next.v, 0x654321);
        assert_int_equal(o->qp->resp.epsn.v, 0x123456);
        for (uint64_t i = 0; i < 16; i++) { /* the full depth fits each time */
            post_send(o, i);
            post_recv(o, i);
        }
        if (round & 1)
            assert_int_equal(objects_step(o, QP_STATE_ERR), 0); /* 32 entries wait in the CQs */
        else
            assert_true(wq_recv_take(o->qp));
        assert_int_equal(objects_step(o, QP_STATE_RESET), 0);
        assert_int_equal(cq_poll(o->scq, 1, &wc), 0);
        assert_int_equal(cq_poll(o->rcq, 1, &wc), 0);
        assert_false(o->qp->recv.valid);
    }
    objects_expect_no_event(o);
}

static void qp_modify__reset_leaves_the_neighbour_alone(void **state)
{
    struct objects *o = *state;
    struct qp_init init = {
        .type = QP_TYPE_RC, .pd = o->pd, .send_cq = o->scq, .recv_cq = o->rcq, .cap = plain.cap};
    struct objects other = *o;
    uint64_t wr_id = 77;

    assert_int_equal(qp_create(o->nic, &init, &other.qp), 0);
    objects_bring(o, QP_STATE_RTS);
    objects_bring(&other, QP_STATE_RTS);
    post_send(o, 1);
    post_send(&other, 77);
    assert_int_equal(objects_step(o, QP_STATE_ERR), 0);
    assert_int_equal(objects_step(&other, QP_STATE_ERR), 0);
    assert_int_equal(objects_step(o, QP_STATE_RESET), 0);
    expect_flushed(o->scq, &wr_id, 1);
    qp_unlink(other.qp);
    qp_free(other.qp);
}

static void qp_free__takes_completions_and_events_along(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc;

    objects_bring(o, QP_STATE_RTS);
    post_send(o, 1);
    post_recv(o, 2);
    assert_int_equal(objects_step(o, QP_STATE_ERR), 0);
    event_raise(o->nic, &o->qp->events, EVENT_QP_FATAL);
    qp_unlink(o->qp);
    qp_free(o->qp);
    o->qp = NULL;
    assert_int_equal(cq_poll(o->scq, 1, &wc), 0);
    assert_int_equal(cq_poll(o->rcq, 1, &wc), 0);
    objects_expect_no_event(o);
    assert_false(nic_has_output(o->nic));
    assert_int_equal(atomic_load(&o->scq->users), 0);
    assert_int_equal(atomic_load(&o->rcq->users), 0);
    assert_int_equal(atomic_load(&o->pd->children), 0);
}

static void case_39(void **state)
{
    struct objects *o = *state;
    struct nic_recv_wr wr = {.wr_id = 5};
    uint64_t wr_id = 5;

    objects_bring(o, QP_STATE_RTS);
    assert_int_equal(wq_post_srq_recv(o->srq, &wr), 0);
    assert_int_equal(wq_post_srq_recv(o->srq, &wr), 0);
    assert_true(wq_recv_take(o->qp));
    assert_int_equal(objects_step(o, QP_STATE_ERR), 0);
    objects_expect_event(o, EVENT_QP_LAST_WQE_REACHED);
    assert_int_equal(objects_step(o, QP_STATE_ERR), 0);
    objects_expect_no_event(o);
    expect_flushed(o->rcq, &wr_id, 1); /* the one that was taken; the other stays for others */
    assert_int_equal(o->srq->rq.tail - o->srq->rq.head, 1);
}

static void case_14_srq_busy_under_qp(void **state)
{
    struct objects *o = *state;

    assert_int_equal(wq_srq_destroy(o->srq), -EBUSY);
    assert_int_equal(o->qp->rq.capacity, 0);
}

static void sqd__drained_at_once_when_idle(void **state)
{
    static const struct {
        bool bit, wanted, event;
    } rows[] = {
        {true,  true,  true },
        {true,  false, false},
        {false, true,  false},
        {false, false, false}
    };
    struct objects *o = *state;

    objects_bring(o, QP_STATE_RTS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_qp_attr a = {.state = QP_STATE_SQD, .en_sqd_async_notify = rows[i].wanted};
        unsigned mask = QP_ATTR_STATE | (rows[i].bit ? QP_ATTR_EN_SQD_ASYNC_NOTIFY : 0u);

        assert_int_equal(qp_modify(o->qp, &a, mask), 0);
        assert_false(o->qp->sqd_pending);
        if (rows[i].event)
            objects_expect_event(o, EVENT_SQ_DRAINED);
        objects_expect_no_event(o);
        assert_int_equal(objects_step(o, QP_STATE_RTS), 0);
    }
}

/* Attributes may change once drained, not while something is still out. */
/* IBA 10.3.1 */
static void sqd__attributes_only_when_drained(void **state)
{
    struct objects *o = *state;
    struct nic_qp_attr a = objects_attr(QP_STATE_SQD);

    objects_bring(o, QP_STATE_SQD);
    o->qp->sqd_pending = true;
    o->qp->attr.en_sqd_async_notify = true;
    a.timeout = 3;
    assert_int_equal(modify(o, a, QP_ATTR_STATE | QP_ATTR_TIMEOUT), -EINVAL);
    assert_int_equal(modify(o, a, QP_ATTR_STATE), 0);
    qp_sq_drained(o->qp);
    objects_expect_event(o, EVENT_SQ_DRAINED);
    qp_sq_drained(o->qp); /* once */
    objects_expect_no_event(o);
    assert_int_equal(modify(o, a, QP_ATTR_STATE | QP_ATTR_TIMEOUT), 0);
    assert_int_equal(o->qp->attr.timeout, 3);
}

static void sqd__posts_wait_for_rts(void **state)
{
    struct objects *o = *state;

    objects_bring(o, QP_STATE_SQD);
    post_send(o, 1);
    assert_int_equal(objects_step(o, QP_STATE_RTS), 0);
    assert_true(nic_has_output(o->nic));
    assert_int_equal(o->qp->sq.tail - o->qp->sq.head, 1);
}

/* Set before RTR, reduced to what this end can; then the QP goes by it until RESET. */
static void ece__by_state(void **state)
{
    static const struct {
        enum qp_state in;
        uint32_t said;
        int err;
        uint32_t before, after; /* what a query tells */
    } rows[] = {
        {QP_STATE_RESET, ECE_KNOWN,      0,       ECE_KNOWN, ECE_KNOWN     },
        {QP_STATE_RESET, 0,              0,       ECE_KNOWN, 0             },
        {QP_STATE_INIT,  ECE_RTT_PROBES, 0,       ECE_KNOWN, ECE_RTT_PROBES},
        {QP_STATE_INIT,  UINT32_MAX,     0,       ECE_KNOWN, ECE_KNOWN     }, /* of a newer one */
        {QP_STATE_INIT,  ~ECE_KNOWN,     0,       ECE_KNOWN, 0             },
        {QP_STATE_RTR,   ECE_KNOWN,      -EINVAL, 0,         0             }, /* not known */
        {QP_STATE_RTS,   ECE_KNOWN,      -EINVAL, 0,         0             },
        {QP_STATE_SQD,   ECE_KNOWN,      -EINVAL, 0,         0             },
        {QP_STATE_SQE,   0,              -EINVAL, 0,         0             },
        {QP_STATE_ERR,   0,              -EINVAL, 0,         0             },
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t options = rows[i].said;
        objects_bring(o, rows[i].in);
        assert_int_equal(qp_query_ece(o->qp), rows[i].before);
        assert_int_equal(qp_set_ece(o->qp, &options), rows[i].err);
        assert_int_equal(options, rows[i].err == 0 ? rows[i].after : rows[i].said);
        assert_int_equal(qp_query_ece(o->qp), rows[i].after);
        assert_int_equal(objects_step(o, QP_STATE_RESET), 0);
        assert_int_equal(qp_query_ece(o->qp), ECE_KNOWN);
    }
    uint32_t options = ECE_RTT_PROBES, more = UINT32_MAX;
    assert_int_equal(qp_set_ece(o->qp, &options), 0);
    objects_bring(o, QP_STATE_RTS);
    assert_int_equal(qp_set_ece(o->qp, &more), -EINVAL);
    assert_int_equal(qp_query_ece(o->qp), ECE_RTT_PROBES);
}

/* Datagrams have no one peer to agree with. */
static void ece__of_datagrams(void **state)
{
    struct objects *o = *state;
    struct qp_init init = {
        .type = QP_TYPE_UD, .pd = o->pd, .send_cq = o->scq, .recv_cq = o->rcq, .cap = plain.cap};
    uint32_t options = UINT32_MAX;
    struct qp *ud;

    assert_int_equal(qp_create(o->nic, &init, &ud), 0);
    assert_int_equal(qp_query_ece(ud), 0);
    assert_int_equal(qp_set_ece(ud, &options), 0);
    assert_int_equal(options, 0);
    qp_unlink(ud);
    qp_free(ud);
}

int main(void)
{
#define CASE(f)     cmocka_unit_test_setup_teardown(f, setup, teardown)
#define SRQ_CASE(f) cmocka_unit_test_setup_teardown(f, setup_srq, teardown)
    static const struct CMUnitTest tests[] = {
        CASE(qp_create__bounds),
        CASE(case_10),
        CASE(case_13_qp_type),
        CASE(qp_create__parts_missing),
        CASE(qp_create__number_in_slot_and_findable),
        cmocka_unit_test(qp_create__reserved_numbers_never),
        CASE(case_30),
        CASE(qp_modify__values),
        CASE(qp_modify__extreme_values_that_are_good),
        CASE(case_32),
        CASE(qp_modify__current_state),
        CASE(qp_modify__every_pair_of_states),
        CASE(qp_modify__path_migration_refused),
        CASE(qp_modify__without_state),
        CASE(case_36_flush_in_post_order),
        CASE(case_42_reset_clears),
        CASE(qp_modify__reset_leaves_the_neighbour_alone),
        CASE(qp_free__takes_completions_and_events_along),
        SRQ_CASE(case_39),
        SRQ_CASE(case_14_srq_busy_under_qp),
        CASE(sqd__drained_at_once_when_idle),
        CASE(sqd__attributes_only_when_drained),
        CASE(sqd__posts_wait_for_rts),
        CASE(ece__by_state),
        CASE(ece__of_datagrams),
    };

    return cmocka_run_group_tests_name("qp", tests, NULL, NULL);
}
