/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_srq.c: shared receive queues: bounds, order, the limit event, growing under load.
 */
#include <errno.h>

#include "nic/wq.h"
#include "objects.h"

enum { DEPTH = 5 };

static int setup(void **state)
{
    static struct objects o;
    struct objects_init in = {
        .cap = {4, 4, 1, 1, 0},
          .cqe = 64, .srq_wr = DEPTH
    };

    objects_create(&o, &in);
    objects_bring(&o, QP_STATE_RTS);
    *state = &o;
    return 0;
}

static int teardown(void **state)
{
    objects_destroy(*state);
    return 0;
}

static int post(struct objects *o, uint64_t wr_id)
{
    struct nic_sge sge = {wr_id, 10, 3};
    struct nic_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

    return wq_post_srq_recv(o->srq, &wr);
}

static void take(struct objects *o, uint64_t wr_id)
{
    struct nic_wc e = {.opcode = WC_RECV};
    struct nic_wc wc;

    assert_true(wq_recv_take(o->qp));
    assert_int_equal(o->qp->recv.sge[0].addr, wr_id);
    wq_recv_done(o->qp, &e, false);
    assert_int_equal(cq_poll(o->rcq, 1, &wc), 1);
    assert_int_equal(wc.wr_id, wr_id);
}

static void wq_srq_create__bounds(void **state)
{
    static const struct {
        uint32_t wr, sge, limit;
        int err;
    } rows[] = {
        {1,          0,           0, 0      },
        {7,          3,           7, 0      },
        {MAX_WR,     1,           0, 0      },
        {1,          MAX_SGE,     1, 0      },
        {0,          1,           0, -EINVAL},
        {MAX_WR + 1, 1,           0, -EINVAL},
        {UINT32_MAX, 1,           0, -EINVAL},
        {1,          MAX_SGE + 1, 0, -EINVAL},
        {4,          1,           5, -EINVAL},
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t wr = rows[i].wr, sge = rows[i].sge;
        struct srq *srq = NULL;

        assert_int_equal(wq_srq_create(o->pd, &wr, &sge, rows[i].limit, NULL, &srq), rows[i].err);
        if (rows[i].err != 0) {
            assert_null(srq);
            continue;
        }
        assert_true(wr >= rows[i].wr && sge >= rows[i].sge);
        assert_int_equal(wq_srq_destroy(srq), 0);
    }
}

static void wq_post_srq_recv__limits(void **state)
{
    struct objects *o = *state;
    struct nic_sge sge[3] = {{0}};
    struct nic_recv_wr wr = {.sg_list = sge};

    for (int n = -1; n <= 3; n++) {
        wr.num_sge = n;
        assert_int_equal(wq_post_srq_recv(o->srq, &wr), n < 0 || n > 2 ? -EINVAL : 0);
    }
    assert_int_equal(post(o, 4), 0);
    assert_int_equal(post(o, 5), 0);
    assert_int_equal(post(o, 6), -ENOMEM);
    assert_int_equal(wq_post_recv(o->qp, &wr), -EINVAL); /* the QP has no queue of its own */
    assert_int_equal(wq_recv_posted(o->qp), UINT32_MAX);
}

static void wq_srq_take__in_order(void **state)
{
    struct objects *o = *state;

    assert_false(wq_recv_take(o->qp));
    for (uint64_t i = 0; i < 40; i += 4) {
        for (uint64_t j = 0; j < 4; j++)
            assert_int_equal(post(o, i + j), 0);
        for (uint64_t j = 0; j < 4; j++)
            take(o, i + j);
    }
    assert_false(wq_recv_take(o->qp));
    objects_expect_no_event(o);
}

static void wq_srq_set_limit__one_event(void **state)
{
    struct objects *o = *state;

    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(post(o, i), 0);
    assert_int_equal(wq_srq_set_limit(o->srq, 3), 0);
    take(o, 0);
    take(o, 1);
    objects_expect_no_event(o); /* 3 are left: not fewer than 3 */
    take(o, 2);
    objects_expect_event(o, EVENT_SRQ_LIMIT_REACHED);
    assert_int_equal(o->srq->limit, 0);
    take(o, 3);
    objects_expect_no_event(o);
    assert_int_equal(wq_srq_set_limit(o->srq, 2), 0); /* already fewer */
    objects_expect_event(o, EVENT_SRQ_LIMIT_REACHED);
    assert_int_equal(wq_srq_set_limit(o->srq, 1), 0);
    objects_expect_no_event(o);
    assert_int_equal(wq_srq_set_limit(o->srq, DEPTH + 1), -EINVAL);
    assert_int_equal(o->srq->limit, 1);
}

static void wq_srq_create__limit_from_the_start(void **state)
{
    struct objects *o = *state;
    struct srq *srq;
    struct nic_sge sge;
    struct recv_current current = {.sge = &sge};
    struct nic_recv_wr wr = {.wr_id = 1};
    struct nic_event e;
    uint32_t max_wr = 4, max_sge = 1;
    int owner;

    assert_int_equal(wq_srq_create(o->pd, &max_wr, &max_sge, 2, &owner, &srq), 0);
    assert_int_equal(wq_post_srq_recv(srq, &wr), 0);
    assert_int_equal(wq_post_srq_recv(srq, &wr), 0);
    objects_expect_no_event(o);
    assert_int_equal(wq_srq_take(srq, &current, 0), WQ_TAKEN);
    assert_true(event_next(o->nic, &e));
    assert_int_equal(e.type, EVENT_SRQ_LIMIT_REACHED);
    assert_int_equal(e.object_kind, EVENT_OBJECT_SRQ);
    assert_ptr_equal(e.owner, &owner);
    assert_int_equal(wq_srq_destroy(srq), 0);
}

/* What is posted survives the growth, in order; the answer is what was given. */
static void case_20(void **state)
{
    struct objects *o = *state;
    uint32_t wr = 100;

    assert_int_equal(post(o, 50), 0);
    take(o, 50); /* not at the start of the ring */
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(post(o, i), 0);
    assert_int_equal(wq_srq_resize(o->srq, &wr), 0);
    assert_true(wr >= 100);
    for (uint64_t i = 5; i < 100; i++)
        assert_int_equal(post(o, i), 0);
    assert_int_equal(post(o, 100), -ENOMEM);
    for (uint64_t i = 0; i < 100; i++)
        take(o, i);
    wr = 0;
    assert_int_equal(wq_srq_resize(o->srq, &wr), 0);
    assert_int_equal(wr, 100);
}

static void wq_srq_resize__refused(void **state)
{
    static const uint32_t rows[] = {4, 1, MAX_WR + 1, UINT32_MAX};
    struct objects *o = *state;

    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(post(o, i), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t wr = rows[i];

        assert_int_equal(wq_srq_resize(o->srq, &wr), -EINVAL);
    }
    take(o, 0);
    assert_int_equal(wq_srq_set_limit(o->srq, 4), 0);
    assert_int_equal(wq_srq_resize(o->srq, &(uint32_t){4}), 0);
    take(o, 1);
    objects_expect_event(o, EVENT_SRQ_LIMIT_REACHED);
}

static void wq_srq_destroy__takes_the_event_along(void **state)
{
    struct objects *o = *state;
    uint32_t wr = 4, sge = 1;
    struct srq *srq;

    assert_int_equal(wq_srq_create(o->pd, &wr, &sge, 0, NULL, &srq), 0);
    assert_int_equal(wq_srq_set_limit(srq, 1), 0); /* empty: raises at once */
    assert_int_equal(wq_srq_destroy(srq), 0);
    objects_expect_no_event(o);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        CASE(wq_srq_create__bounds),       CASE(wq_post_srq_recv__limits),
        CASE(wq_srq_take__in_order),       CASE(wq_srq_create__limit_from_the_start),
        CASE(wq_srq_set_limit__one_event), CASE(case_20),
        CASE(wq_srq_resize__refused),      CASE(wq_srq_destroy__takes_the_event_along),
    };

    return cmocka_run_group_tests_name("srq", tests, NULL, NULL);
}
