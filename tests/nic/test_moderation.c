/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_moderation.c: completion events that wait for enough completions, or for a time.
 */
#include <errno.h>

#include "objects.h"

enum { PERIOD = 5000, START = 1000000 };

static struct objects o;

static int setup(void **state)
{
    const struct objects_init in = {
        .cap = {8, 8, 2, 2, 0},
          .cqe = 32
    };

    (void)state;
    objects_create(&o, &in);
    nic_advance(o.nic, START);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    objects_destroy(&o);
    return 0;
}

static void push(enum wc_status status)
{
    struct cqe e = {.wc = {.status = status}, .qp = o.qp};

    cq_push(o.scq, &e, false);
}

static bool told(void)
{
    void *owner = nic_notify_next(o.nic);

    if (owner != NULL)
        assert_ptr_equal(owner, &o.scq);
    return owner != NULL;
}

static void drain(void)
{
    struct nic_wc wc[32];

    while (cq_poll(o.scq, 32, wc) > 0) {
    }
}

/* With which settings an event waits at all, and for how many. */
static void moderation_set__count(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        uint64_t period_ns;
        unsigned until;
    } rows[] = {
        {0,  0,      1 },
        {0,  PERIOD, 1 },
        {1,  PERIOD, 1 },
        {2,  0,      1 },
        {2,  PERIOD, 2 },
        {10, PERIOD, 10},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        moderation_set(o.scq, rows[i].count, rows[i].period_ns);
        for (int round = 0; round < 2; round++) {
            cq_arm(o.scq, false);
            for (unsigned k = 1; k <= rows[i].until; k++) {
                assert_false(told());
                push(WC_SUCCESS);
            }
            assert_true(told());
            push(WC_SUCCESS); /* not armed */
            assert_false(told());
            assert_int_equal(nic_deadline(o.nic), UINT64_MAX);
            drain();
        }
    }
}

static void moderation_set__period(void **state)
{
    (void)state;
    moderation_set(o.scq, 100, PERIOD);
    for (uint64_t now = START; now < START + 10 * PERIOD; now += 2 * PERIOD) {
        nic_advance(o.nic, now);
        assert_int_equal(nic_deadline(o.nic), UINT64_MAX);
        cq_arm(o.scq, false);
        push(WC_SUCCESS);
        assert_int_equal(nic_deadline(o.nic), now + PERIOD);
        nic_advance(o.nic, now + PERIOD - 1);
        push(WC_SUCCESS); /* from the first one on */
        assert_int_equal(nic_deadline(o.nic), now + PERIOD);
        assert_false(told());
        nic_advance(o.nic, now + PERIOD);
        assert_true(told());
        assert_false(told());
        drain();
    }
}

/* Errors are told at once, and so is what waits when moderation ends. */
static void moderation_set__no_longer(void **state)
{
    (void)state;
    moderation_set(o.scq, 100, PERIOD);
    cq_arm(o.scq, false);
    push(WC_SUCCESS);
    push(WC_WR_FLUSH_ERR);
    assert_true(told());
    assert_int_equal(nic_deadline(o.nic), UINT64_MAX);
    drain();
    cq_arm(o.scq, false);
    push(WC_SUCCESS);
    assert_false(told());
    moderation_set(o.scq, 0, 0);
    assert_true(told());
    assert_int_equal(nic_deadline(o.nic), UINT64_MAX);
    moderation_set(o.scq, 100, PERIOD); /* nothing waits: nothing is told */
    moderation_set(o.scq, 0, 0);
    assert_false(told());
}

/* Several wait, each for its own time; one that goes takes its event along. */
static void moderation_expire__each_in_its_time(void **state)
{
    (void)state;
    struct cq *cq[3];
    static int owner[3];
    static const uint64_t period[3] = {300, 100, 200};

    for (int i = 0; i < 3; i++) {
        struct cqe e = {.wc = {.status = WC_SUCCESS}, .qp = o.qp};

        assert_int_equal(cq_create(o.nic, 4, &owner[i], &cq[i]), 0);
        moderation_set(cq[i], 4, period[i]);
        cq_arm(cq[i], false);
        cq_push(cq[i], &e, false);
    }
    assert_int_equal(nic_deadline(o.nic), START + 100);
    nic_advance(o.nic, START + 150);
    assert_ptr_equal(nic_notify_next(o.nic), &owner[1]);
    assert_null(nic_notify_next(o.nic));
    assert_int_equal(nic_deadline(o.nic), START + 200);
    assert_int_equal(cq_retire(cq[2]), 0);
    assert_int_equal(cq_destroy(cq[2]), 0);
    assert_int_equal(nic_deadline(o.nic), START + 300);
    nic_advance(o.nic, START + 1000);
    assert_ptr_equal(nic_notify_next(o.nic), &owner[0]);
    assert_null(nic_notify_next(o.nic));
    assert_int_equal(cq_retire(o.scq), -EBUSY); /* a QP uses it */
    for (int i = 0; i < 2; i++)
        assert_int_equal(cq_destroy(cq[i]), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(moderation_set__count),
        CASE(moderation_set__period),
        CASE(moderation_set__no_longer),
        CASE(moderation_expire__each_in_its_time),
    };

    return cmocka_run_group_tests_name("moderation", tests, NULL, NULL);
}
