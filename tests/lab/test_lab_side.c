/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_side.c: what an end counts of the data it was given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_side.h"

enum { SLOTS = 2, BYTES = 256 };

static uint8_t bytes[SLOTS * BYTES];
static struct lab_pool p;
static struct lab_side s;
static const struct lab_expect expect = {1, SLOTS, 3, 100, BYTES};

static int setup(void **state)
{
    (void)state;
    lab_side_begin(&s, NULL, 1);
    return lab_pool_init(&p, bytes, SLOTS, BYTES);
}

static int teardown(void **state)
{
    (void)state;
    lab_side_clear(&s);
    lab_pool_clear(&p);
    return 0;
}

static const uint8_t *make(uint64_t sequence)
{
    lab_slot_fill(lab_slot_bytes(&p, 1), 1, sequence, 100);
    lab_slot_seal(lab_slot_bytes(&p, 1));
    return lab_slot_bytes(&p, 1);
}

static void lab_side_add__sums(void **state)
{
    (void)state;
    struct lab_side a = {.part_ns = {[LAB_PART_COPY] = 3},
                         .polls = 1,
                         .wall_ns = 9,
                         .first_fault = "mine",
                         .data = {[LAB_DATA_STALE] = 1}};
    const struct lab_side b = {
        .part_ns = {[LAB_PART_COPY] = 4, [LAB_PART_POLL] = 5 },
        .polls = 2,
        .empty_polls = 3,
        .wakes = 4,
        .wall_ns = 100,
        .user_us = 100,
        .lost = 5,
        .duplicates = 6,
        .resent = 7,
        .wrong_atomics = 8,
        .first_fault = "its",
        .data = {[LAB_DATA_GOOD] = 9, [LAB_DATA_STALE] = 1}
    };
    lab_side_add(&a, &b);
    assert_int_equal(a.part_ns[LAB_PART_COPY], 7);
    assert_int_equal(a.part_ns[LAB_PART_POLL], 5);
    assert_int_equal(a.polls, 3);
    assert_int_equal(a.empty_polls, 3);
    assert_int_equal(a.wakes, 4);
    assert_int_equal(a.lost, 5);
    assert_int_equal(a.duplicates, 6);
    assert_int_equal(a.resent, 7);
    assert_int_equal(lab_side_faults(&a), 8 + 2);
    assert_int_equal(a.data[LAB_DATA_GOOD], 9);
    assert_int_equal(a.wall_ns, 9);
    assert_int_equal(a.user_us, 0);
    assert_string_equal(a.first_fault, "mine");
    memset(a.first_fault, 0, sizeof(a.first_fault));
    lab_side_add(&a, &b);
    assert_string_equal(a.first_fault, "its");
}

static void lab_side_check__counts_each_kind(void **state)
{
    (void)state;
    assert_int_equal(lab_side_check(&s, make(3), &expect), LAB_DATA_GOOD);
    assert_int_equal(lab_side_faults(&s), 0);
    assert_string_equal(s.first_fault, "");
    assert_int_equal(lab_side_check(&s, make(1), &expect), LAB_DATA_STALE);
    assert_int_equal(lab_side_check(&s, make(5), &expect), LAB_DATA_AHEAD);
    lab_slot_bytes(&p, 1)[60] ^= 4;
    assert_int_equal(lab_side_check(&s, lab_slot_bytes(&p, 1), &expect), LAB_DATA_CORRUPT);
    assert_int_equal(s.data[LAB_DATA_GOOD], 1);
    assert_int_equal(s.data[LAB_DATA_STALE], 1);
    assert_int_equal(s.data[LAB_DATA_AHEAD], 1);
    assert_int_equal(s.data[LAB_DATA_CORRUPT], 1);
    assert_int_equal(lab_side_faults(&s), 3);
    assert_non_null(strstr(s.first_fault, "stale: has slot 1, #1")); /* the first one is kept */
}

static void lab_side_check_lossy__lost_is_no_fault(void **state)
{
    (void)state;
    assert_false(lab_side_check_lossy(&s, make(1), &expect, true));
    assert_int_equal(s.lost, 1);
    assert_int_equal(lab_side_faults(&s), 0);
    assert_true(lab_side_check_lossy(&s, make(3), &expect, true));
    assert_int_equal(s.data[LAB_DATA_GOOD], 1);
    assert_true(lab_side_check_lossy(&s, make(1), &expect, false)); /* nothing can have been lost */
    assert_true(lab_side_check_lossy(&s, make(5), &expect, true));  /* nothing lost is newer */
    assert_int_equal(lab_side_faults(&s), 2);
    assert_int_equal(s.lost, 1);
}

static void lab_side_json__all_members(void **state)
{
    (void)state;
    lab_side_check(&s, make(1), &expect);
    s.part_ns[LAB_PART_POLL] = 77;
    s.resent = 5;
    lab_side_end(&s, NULL, 1);
    json_t *o = lab_side_json(&s);
    const char *fault;
    json_int_t poll, resent, stale, wall;
    assert_int_equal(json_unpack(o, "{s:{s:I},s:I,s:{s:I},s:I,s:s}", "parts_ns", "poll", &poll,
                                 "resent", &resent, "data", "stale", &stale, "wall_ns", &wall,
                                 "first_fault", &fault),
                     0);
    assert_int_equal(poll, 77);
    assert_int_equal(resent, 5);
    assert_int_equal(stale, 1);
    assert_true(wall > 0);
    assert_null(json_object_get(o, "counters")); /* there is no device */
    json_decref(o);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lab_side_check__counts_each_kind),
        TEST(lab_side_add__sums),
        TEST(lab_side_check_lossy__lost_is_no_fault),
        TEST(lab_side_json__all_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
