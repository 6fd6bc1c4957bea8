/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_event.c: events come out once, in order, with their owner; a dropped one never.
 */
#include "nic/event.h"
#include "objects.h"

static int setup(void **state)
{
    struct nic_config config = {.seed = 1};

    return nic_create(&config, (struct nic **)state);
}

static int teardown(void **state)
{
    nic_destroy(*state);
    return 0;
}

static void event_raise__in_order_with_owner(void **state)
{
    struct nic *nic = *state;
    struct nic_event e[3], out;
    int owner[3];

    event_init(&e[0], EVENT_QP_FATAL, EVENT_OBJECT_QP, &owner[0]);
    event_init(&e[1], EVENT_CQ_ERR, EVENT_OBJECT_CQ, &owner[1]);
    event_init(&e[2], EVENT_SRQ_LIMIT_REACHED, EVENT_OBJECT_SRQ, &owner[2]);
    for (int i = 0; i < 3; i++)
        event_raise(nic, &e[i]);
    assert_int_equal(atomic_load(&nic->event_count), 3);
    for (int i = 0; i < 3; i++) {
        assert_true(nic_event_next(nic, &out));
        assert_int_equal(out.type, e[i].type);
        assert_int_equal(out.object_kind, e[i].object_kind);
        assert_ptr_equal(out.owner, &owner[i]);
    }
    assert_false(nic_event_next(nic, &out));
    assert_int_equal(atomic_load(&nic->event_count), 0);
}

static void event_raise__not_twice_until_fetched(void **state)
{
    struct nic *nic = *state;
    struct nic_event e, out;

    event_init(&e, EVENT_COMM_EST, EVENT_OBJECT_QP, NULL);
    event_raise(nic, &e);
    event_raise(nic, &e);
    assert_int_equal(atomic_load(&nic->event_count), 1);
    assert_true(nic_event_next(nic, &out));
    assert_false(nic_event_next(nic, &out));
    event_raise(nic, &e);
    assert_true(nic_event_next(nic, &out));
}

static void event_drop__only_that_one(void **state)
{
    struct nic *nic = *state;
    struct nic_event e[3], out;

    for (int i = 0; i < 3; i++) {
        event_init(&e[i], EVENT_COMM_EST, EVENT_OBJECT_QP, &e[i]);
        event_raise(nic, &e[i]);
    }
    event_drop(nic, &e[1]);
    event_drop(nic, &e[1]); /* not queued: nothing happens */
    assert_int_equal(atomic_load(&nic->event_count), 2);
    assert_true(nic_event_next(nic, &out));
    assert_ptr_equal(out.owner, &e[0]);
    assert_true(nic_event_next(nic, &out));
    assert_ptr_equal(out.owner, &e[2]);
    assert_false(nic_event_next(nic, &out));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        CASE(event_raise__in_order_with_owner),
        CASE(event_raise__not_twice_until_fetched),
        CASE(event_drop__only_that_one),
    };

    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
