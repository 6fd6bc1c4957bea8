/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cq.c: the ring and its bounds, arming, overflow, purging and resizing.
 */
#include <errno.h>

#include "nic/cq.h"
#include "objects.h"

static int setup(void **state)
{
    static struct objects o;
    struct objects_init in = {
        .cap = {.max_send_wr = 64, .max_recv_wr = 64},
          .cqe = 4
    };

    objects_create(&o, &in);
    *state = &o;
    return 0;
}

static int teardown(void **state)
{
    objects_destroy(*state);
    return 0;
}

static void push(struct objects *o, uint64_t wr_id, enum wc_status status, bool solicited)
{
    struct cqe e = {
        .wc = {.wr_id = wr_id, .status = status},
          .qp = o->qp
    };

    cq_push(o->rcq, &e, solicited);
}

/* Asking for 0 or less, or too much, is the same error each time; what is given is >= asked. */
static void case_80(void **state)
{
    static const struct {
        int cqe, err;
        uint32_t capacity;
    } rows[] = {
        {1,           0,       1   },
        {2,           0,       2   },
        {3,           0,       4   },
        {100,         0,       128 },
        {4096,        0,       4096},
        {0,           -EINVAL, 0   },
        {-1,          -EINVAL, 0   },
        {INT32_MIN,   -EINVAL, 0   },
        {MAX_CQE + 1, -EINVAL, 0   },
        {INT32_MAX,   -EINVAL, 0   },
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cq *cq = NULL;

        assert_int_equal(cq_create(o->nic, rows[i].cqe, NULL, &cq), rows[i].err);
        if (rows[i].err != 0) {
            assert_null(cq);
            continue;
        }
        assert_int_equal(cq->capacity, rows[i].capacity);
        assert_int_equal(cq_destroy(cq), 0);
    }
}

static void case_14_cq_busy_under_qp(void **state)
{
    struct objects *o = *state;

    assert_int_equal(cq_destroy(o->scq), -EBUSY);
    assert_int_equal(cq_destroy(o->rcq), -EBUSY);
    assert_int_equal(mem_pd_destroy(o->pd), -EBUSY);
}

static void cq_poll__order_and_max(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc[8];

    assert_int_equal(cq_poll(o->rcq, 8, wc), 0);
    for (uint64_t i = 0; i < 1000; i += 3) { /* many times round the ring of 4 */
        for (uint64_t j = 0; j < 3; j++)
            push(o, i + j, WC_SUCCESS, false);
        assert_true(cq_maybe_ready(o->rcq));
        assert_int_equal(cq_poll(o->rcq, 0, wc), 0);
        assert_int_equal(cq_poll(o->rcq, 2, wc), 2);
        assert_int_equal(cq_poll(o->rcq, 8, wc + 2), 1);
        for (uint64_t j = 0; j < 3; j++)
            assert_int_equal(wc[j].wr_id, i + j);
        assert_false(cq_maybe_ready(o->rcq));
    }
    objects_expect_no_event(o);
}

static void cq_poll__frees_send_slots(void **state)
{
    struct objects *o = *state;
    struct cqe e = {.qp = o->qp, .is_send = true, .sq_freed_to = 7};
    struct nic_wc wc;

    cq_push(o->scq, &e, false);
    assert_int_equal(atomic_load(&o->qp->sq.freed), 0);
    assert_int_equal(cq_poll(o->scq, 1, &wc), 1);
    assert_int_equal(atomic_load(&o->qp->sq.freed), 7);
    e.is_send = false;
    e.sq_freed_to = 9;
    cq_push(o->rcq, &e, false);
    assert_int_equal(cq_poll(o->rcq, 1, &wc), 1);
    assert_int_equal(atomic_load(&o->qp->sq.freed), 7);
}

/* The first cqe entries stay pollable, one event, and the QPs go to ERR at the next advance. */
static void case_77(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc[32];
    struct nic_event e;

    objects_bring(o, QP_STATE_RTS);
    for (uint64_t i = 0; i < 20; i++)
        push(o, i, WC_SUCCESS, false);
    assert_true(event_next(o->nic, &e));
    assert_int_equal(e.type, EVENT_CQ_ERR);
    assert_int_equal(e.object_kind, EVENT_OBJECT_CQ);
    assert_ptr_equal(e.owner, &o->rcq);
    objects_expect_no_event(o);
    assert_int_equal(counters_get(&o->nic->counters, COUNTER_cq_overflows), 1);
    assert_int_equal(nic_deadline(o->nic), 0);
    assert_int_equal(o->qp->state, QP_STATE_RTS);
    assert_int_equal(cq_poll(o->rcq, 32, wc), 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(wc[i].wr_id, i);
    push(o, 99, WC_SUCCESS, false); /* nothing after the hole, though there is room again */
    assert_int_equal(cq_poll(o->rcq, 32, wc), 0);
    nic_advance(o->nic, 1);
    assert_int_equal(o->qp->state, QP_STATE_ERR);
    objects_expect_event(o, EVENT_QP_FATAL);
    objects_expect_no_event(o);
    assert_int_equal(nic_deadline(o->nic), UINT64_MAX);
}

static void cq_push__has_the_time_that_was_told(void **state)
{
    struct objects *o = *state;
    struct nic_sink sink = {0}; /* nothing goes out */
    struct nic_wc wc[4];

    nic_tell_time(o->nic, 70);
    push(o, 1, WC_SUCCESS, false);
    assert_false(nic_output(o->nic, 80, &sink, 1));
    push(o, 2, WC_WR_FLUSH_ERR, false);
    nic_input(o->nic, 90, NULL, 0);
    push(o, 3, WC_SUCCESS, true);
    nic_advance(o->nic, 100);
    push(o, 4, WC_SUCCESS, false);
    nic_advance(o->nic, 110); /* they keep it */
    assert_int_equal(cq_poll(o->rcq, 4, wc), 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(wc[i].time_ns, 70 + 10 * i);
}

static void cq_push__full_is_not_overflow(void **state)
{
    struct objects *o = *state;

    for (uint64_t i = 0; i < 4; i++)
        push(o, i, WC_SUCCESS, false);
    objects_expect_no_event(o);
    assert_false(cq_has_overflowed(o->rcq));
    assert_false(atomic_load(&o->nic->cq_purge_due));
}

enum armed { NONE, SOLICITED, ANY };

static void arm(struct cq *cq, enum armed how)
{
    if (how != NONE)
        cq_arm(cq, how == SOLICITED);
}

/* Which completion notifies, after which arming(s). */
/* IBA 11.4.2.2 */
static void case_74(void **state)
{
    static const struct {
        enum armed first, second;
        enum wc_status status;
        bool solicited, notifies;
    } rows[] = {
        {ANY,       NONE,      WC_SUCCESS,      false, true },
        {ANY,       NONE,      WC_SUCCESS,      true,  true },
        {ANY,       NONE,      WC_WR_FLUSH_ERR, false, true },
        {SOLICITED, NONE,      WC_SUCCESS,      true,  true },
        {SOLICITED, NONE,      WC_WR_FLUSH_ERR, false, true },
        {SOLICITED, ANY,       WC_SUCCESS,      false, true },
        {ANY,       SOLICITED, WC_SUCCESS,      false, true },
        {SOLICITED, NONE,      WC_SUCCESS,      false, false},
        {SOLICITED, SOLICITED, WC_SUCCESS,      false, false},
        {NONE,      NONE,      WC_SUCCESS,      false, false},
        {NONE,      NONE,      WC_SUCCESS,      true,  false},
        {NONE,      NONE,      WC_WR_FLUSH_ERR, true,  false},
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_wc wc;

        o->rcq->armed = CQ_ARM_NONE;
        arm(o->rcq, rows[i].first);
        arm(o->rcq, rows[i].second);
        push(o, 1, rows[i].status, rows[i].solicited);
        if (rows[i].notifies)
            assert_ptr_equal(nic_notify_next(o->nic), &o->rcq);
        assert_null(nic_notify_next(o->nic));
        assert_int_equal(cq_poll(o->rcq, 1, &wc), 1);
    }
}

/* IBA 11.4.2.2: one-shot; what was there before the first arming makes no event. */
static void case_72(void **state)
{
    struct objects *o = *state;

    push(o, 1, WC_SUCCESS, false);
    cq_arm(o->rcq, false);
    assert_null(nic_notify_next(o->nic));
    push(o, 2, WC_SUCCESS, false);
    push(o, 3, WC_SUCCESS, false);
    assert_ptr_equal(nic_notify_next(o->nic), &o->rcq);
    push(o, 4, WC_SUCCESS, false);
    assert_null(nic_notify_next(o->nic));
}

static void cq_arm__unsolicited_leaves_it_armed(void **state)
{
    struct objects *o = *state;

    cq_arm(o->rcq, true);
    push(o, 1, WC_SUCCESS, false);
    assert_null(nic_notify_next(o->nic));
    push(o, 2, WC_SUCCESS, true);
    assert_ptr_equal(nic_notify_next(o->nic), &o->rcq);
}

/* UCX polls, arms and sleeps: what came after its last poll must wake it. */
static void cq_arm__what_came_since_the_last_event(void **state)
{
    static const struct {
        enum armed first, second;
        bool solicited;  /* the one that came between */
        unsigned polled; /* of the two */
        bool notifies;
    } rows[] = {
        {ANY,       ANY,       false, 1, true },
        {ANY,       ANY,       false, 0, true },
        {ANY,       SOLICITED, true,  1, true },
        {SOLICITED, ANY,       false, 1, true },
        {SOLICITED, SOLICITED, true,  1, true },
        {ANY,       ANY,       false, 2, false}, /* nothing is left */
        {ANY,       SOLICITED, false, 1, false},
        {SOLICITED, SOLICITED, false, 1, false},
        {NONE,      ANY,       false, 1, false}, /* the first arming: nobody can have relied on it */
        {NONE,      SOLICITED, true,  0, false},
    };
    struct objects *o = *state;
    struct nic_wc wc[4];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cq *cq;
        struct cqe e = {.qp = o->qp};
        assert_int_equal(cq_create(o->nic, 8, &cq, &cq), 0);
        arm(cq, rows[i].first);
        cq_push(cq, &e, true);
        assert_ptr_equal(nic_notify_next(o->nic), rows[i].first != NONE ? &cq : NULL);
        cq_push(cq, &e, rows[i].solicited);
        assert_null(nic_notify_next(o->nic));
        assert_int_equal(cq_poll(cq, (int)rows[i].polled, wc), rows[i].polled);
        arm(cq, rows[i].second);
        assert_ptr_equal(nic_notify_next(o->nic), rows[i].notifies ? &cq : NULL);
        arm(cq, rows[i].second); /* that was told */
        assert_null(nic_notify_next(o->nic));
        cq_push(cq, &e, true);
        assert_ptr_equal(nic_notify_next(o->nic), &cq);
        assert_int_equal(cq_destroy(cq), 0);
    }
}

/* Indexes run round: 2^31 completions polled without an arming must not look like news. */
static void cq_arm__after_very_many(void **state)
{
    struct objects *o = *state;
    struct cqe e = {.qp = o->qp};
    struct nic_wc wc;

    cq_arm(o->rcq, false);
    for (uint32_t at = 1u << 30; at != 0; at += 1u << 30) {
        cq_push(o->rcq, &e, false);
        nic_notify_next(o->nic);
        assert_int_equal(cq_poll(o->rcq, 1, &wc), 1);
        atomic_store(&o->rcq->head, at);
        atomic_store(&o->rcq->tail, at);
    }
    cq_arm(o->rcq, false);
    assert_null(nic_notify_next(o->nic));
}

/* What counts as told moves with the entries. */
static void cq_arm__after_purge_and_resize(void **state)
{
    struct objects *o = *state;
    struct qp *other = (struct qp *)o; /* only compared */
    struct nic_wc wc[4];
    struct cqe mine = {.qp = o->qp}, theirs = {.qp = other};

    cq_arm(o->rcq, false);
    cq_push(o->rcq, &theirs, false);
    assert_ptr_equal(nic_notify_next(o->nic), &o->rcq);
    cq_push(o->rcq, &mine, false);
    cq_purge(o->rcq, other);
    cq_arm(o->rcq, false);
    assert_ptr_equal(nic_notify_next(o->nic), &o->rcq);
    cq_purge(o->rcq, o->qp);
    cq_push(o->rcq, &mine, false);
    assert_int_equal(cq_poll(o->rcq, 1, wc), 1);
    cq_arm(o->rcq, false);
    assert_null(nic_notify_next(o->nic));
    cq_push(o->rcq, &mine, false);
    assert_ptr_equal(nic_notify_next(o->nic), &o->rcq);
    assert_int_equal(cq_resize(o->rcq, 2), 0);
    cq_arm(o->rcq, false);
    assert_null(nic_notify_next(o->nic)); /* it had its event */
    cq_push(o->rcq, &mine, false);
    assert_ptr_equal(nic_notify_next(o->nic), &o->rcq);
    assert_int_equal(cq_poll(o->rcq, 4, wc), 2);
}

static void cq_purge__keeps_the_others_in_order(void **state)
{
    struct objects *o = *state;
    struct qp *other = (struct qp *)o; /* only compared */
    struct nic_wc wc[8];

    for (unsigned skew = 0; skew < 4; skew++) {
        for (unsigned pattern = 0; pattern < 16; pattern++) {
            uint64_t want[4];
            int kept = 0;

            for (uint64_t i = 0; i < 4; i++) {
                bool mine = pattern >> i & 1;
                struct cqe e = {.wc = {.wr_id = i}, .qp = mine ? o->qp : other};

                cq_push(o->rcq, &e, false);
                if (!mine)
                    want[kept++] = i;
            }
            cq_purge(o->rcq, o->qp);
            assert_int_equal(cq_maybe_ready(o->rcq), kept > 0);
            assert_int_equal(cq_poll(o->rcq, 8, wc), kept);
            for (int i = 0; i < kept; i++)
                assert_int_equal(wc[i].wr_id, want[i]);
        }
        push(o, 0, WC_SUCCESS, false); /* another place in the ring */
        assert_int_equal(cq_poll(o->rcq, 1, wc), 1);
    }
}

/* Shrinking under what waits is refused and changes nothing; else the entries move along. */
static void case_18(void **state)
{
    static const struct {
        int cqe, err;
    } rows[] = {
        {10,          0      },
        {11,          0      },
        {300,         0      },
        {16,          0      },
        {MAX_CQE + 1, -EINVAL},
        {9,           -EINVAL},
        {1,           -EINVAL},
        {0,           -EINVAL},
        {-5,          -EINVAL},
    };
    struct objects *o = *state;
    struct nic_wc wc[32];
    uint64_t next = 0, oldest = 0;

    assert_int_equal(cq_resize(o->rcq, 16), 0);
    while (next < 10)
        push(o, next++, WC_SUCCESS, false);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t before = o->rcq->capacity;

        assert_int_equal(cq_resize(o->rcq, rows[i].cqe), rows[i].err);
        if (rows[i].err == 0)
            assert_true(o->rcq->capacity >= (uint32_t)rows[i].cqe);
        else
            assert_int_equal(o->rcq->capacity, before);
        assert_int_equal(cq_poll(o->rcq, 3, wc), 3);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(wc[j].wr_id, oldest++);
            push(o, next++, WC_SUCCESS, false);
        }
    }
    assert_int_equal(cq_poll(o->rcq, 32, wc), 10);
    objects_expect_no_event(o);
}

static void cq_destroy__takes_event_and_notification_along(void **state)
{
    struct objects *o = *state;
    struct cq *cq;
    struct cqe e = {.qp = o->qp};

    assert_int_equal(cq_create(o->nic, 1, NULL, &cq), 0);
    cq_arm(cq, false);
    cq_push(cq, &e, false);
    cq_push(cq, &e, false);
    assert_int_equal(cq_destroy(cq), 0);
    objects_expect_no_event(o);
    assert_null(nic_notify_next(o->nic));
    nic_advance(o->nic, 1); /* no QP used it */
    assert_int_equal(o->qp->state, QP_STATE_RESET);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        CASE(case_80),
        CASE(case_14_cq_busy_under_qp),
        CASE(cq_poll__order_and_max),
        CASE(cq_poll__frees_send_slots),
        CASE(case_77),
        CASE(cq_push__has_the_time_that_was_told),
        CASE(cq_push__full_is_not_overflow),
        CASE(case_74),
        CASE(case_72),
        CASE(cq_arm__unsolicited_leaves_it_armed),
        CASE(cq_arm__what_came_since_the_last_event),
        CASE(cq_arm__after_very_many),
        CASE(cq_arm__after_purge_and_resize),
        CASE(cq_purge__keeps_the_others_in_order),
        CASE(case_18),
        CASE(cq_destroy__takes_event_and_notification_along),
    };

    return cmocka_run_group_tests_name("cq", tests, NULL, NULL);
}
