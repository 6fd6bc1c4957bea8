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
    static const enum nic_event_type type[] = {EVENT_QP_FATAL, EVENT_CQ_ERR,
                                               EVENT_SRQ_LIMIT_REACHED};
    static const enum event_object kind[] = {EVENT_OBJECT_QP, EVENT_OBJECT_CQ, EVENT_OBJECT_SRQ};
    struct event_source e[3];
    struct nic_event out;
    int owner[3];

    for (int i = 0; i < 3; i++) {
        event_init(&e[i], kind[i], &owner[i]);
        event_raise(nic, &e[i], type[i]);
    }
    assert_int_equal(atomic_load(&nic->event_count), 3);
    for (int i = 0; i < 3; i++) {
        assert_true(event_next(nic, &out));
        assert_int_equal(out.type, type[i]);
        assert_int_equal(out.object_kind, kind[i]);
        assert_ptr_equal(out.owner, &owner[i]);
    }
    assert_false(event_next(nic, &out));
    assert_int_equal(atomic_load(&nic->event_count), 0);
}

static void event_raise__not_twice_until_fetched(void **state)
{
    struct nic *nic = *state;
    struct event_source e;
    struct nic_event out;

    event_init(&e, EVENT_OBJECT_QP, NULL);
    event_raise(nic, &e, EVENT_COMM_EST);
    event_raise(nic, &e, EVENT_COMM_EST);
    assert_int_equal(atomic_load(&nic->event_count), 1);
    assert_true(event_next(nic, &out));
    assert_false(event_next(nic, &out));
    event_raise(nic, &e, EVENT_COMM_EST);
    assert_true(event_next(nic, &out));
}

/* What one object raises comes in that order, each once, however much there is of it. */
static void event_raise__all_of_one_object(void **state)
{
    static const enum nic_event_type type[EVENT_TYPES_MAX] = {
        EVENT_QP_LAST_WQE_REACHED, EVENT_COMM_EST,   EVENT_QP_HEARD,     EVENT_QP_FATAL,
        EVENT_SQ_DRAINED,          EVENT_QP_REQ_ERR, EVENT_QP_ACCESS_ERR};
    struct nic *nic = *state;
    struct event_source e;
    struct nic_event out;

    event_init(&e, EVENT_OBJECT_QP, &e);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < EVENT_TYPES_MAX; i++)
            event_raise(nic, &e, type[i]);
    assert_int_equal(atomic_load(&nic->event_count), EVENT_TYPES_MAX);
    assert_true(event_next(nic, &out));
    assert_int_equal(out.type, type[0]);
    event_raise(nic, &e, type[0]); /* fetched, so it is another */
    for (unsigned i = 1; i <= EVENT_TYPES_MAX; i++) {
        assert_true(event_next(nic, &out));
        assert_int_equal(out.type, type[i % EVENT_TYPES_MAX]);
        assert_ptr_equal(out.owner, &e);
    }
    assert_false(event_next(nic, &out));
}

/* An object with much to tell lets others have their turn. */
static void event_raise__in_turns(void **state)
{
    struct nic *nic = *state;
    struct event_source e[2];
    struct nic_event out;

    for (int i = 0; i < 2; i++) {
        event_init(&e[i], EVENT_OBJECT_QP, &e[i]);
        event_raise(nic, &e[i], EVENT_COMM_EST);
        event_raise(nic, &e[i], EVENT_QP_FATAL);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(event_next(nic, &out));
        assert_ptr_equal(out.owner, &e[i % 2]);
        assert_int_equal(out.type, i < 2 ? EVENT_COMM_EST : EVENT_QP_FATAL);
    }
}

static void event_drop__only_that_one(void **state)
{
    struct nic *nic = *state;
    struct event_source e[3];
    struct nic_event out;

    for (int i = 0; i < 3; i++) {
        event_init(&e[i], EVENT_OBJECT_QP, &e[i]);
        event_raise(nic, &e[i], EVENT_COMM_EST);
    }
    event_raise(nic, &e[1], EVENT_QP_FATAL);
    assert_int_equal(atomic_load(&nic->event_count), 4);
    event_drop(nic, &e[1]);
    event_drop(nic, &e[1]); /* not queued: nothing happens */
    assert_int_equal(atomic_load(&nic->event_count), 2);
    assert_true(event_next(nic, &out));
    assert_ptr_equal(out.owner, &e[0]);
    assert_true(event_next(nic, &out));
    assert_ptr_equal(out.owner, &e[2]);
    assert_false(event_next(nic, &out));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        CASE(event_raise__in_order_with_owner), CASE(event_raise__not_twice_until_fetched),
        CASE(event_raise__all_of_one_object),   CASE(event_raise__in_turns),
        CASE(event_drop__only_that_one),
    };

    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
