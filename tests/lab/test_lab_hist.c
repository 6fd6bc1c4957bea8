/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_hist.c: percentiles against a sorted list of the same values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lab/lab_hist.h"

static struct lab_hist h;

static void lab_hist_permille__nothing(void **state)
{
    (void)state;
    unsigned at = 0;
    uint64_t highest, count;
    lab_hist_clear(&h);
    assert_int_equal(lab_hist_permille(&h, 500), 0);
    assert_int_equal(lab_hist_permille(&h, 1000), 0);
    assert_true(lab_hist_mean(&h) == 0);
    assert_false(lab_hist_next(&h, &at, &highest, &count));
}

static void lab_hist_permille__one_value(void **state)
{
    (void)state;
    static const uint64_t values[] = {0,    1,         2047,       2048,
                                      2049, 123456789, 1ull << 41, (1ull << 42) - 1};
    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        lab_hist_clear(&h);
        lab_hist_add(&h, values[i]);
        assert_int_equal(lab_hist_permille(&h, 1), values[i]);
        assert_int_equal(lab_hist_permille(&h, 500), values[i]);
        assert_int_equal(lab_hist_permille(&h, 999), values[i]);
        assert_int_equal(h.min, values[i]);
        assert_int_equal(h.max, values[i]);
    }
}

/* Below 2,048 each value has its own bucket: 1 to 1000, once each. */
static void lab_hist_permille__exact_ranks(void **state)
{
    (void)state;
    lab_hist_clear(&h);
    for (uint64_t v = 1000; v > 0; v--)
        lab_hist_add(&h, v);
    assert_int_equal(lab_hist_permille(&h, 0), 1);
    assert_int_equal(lab_hist_permille(&h, 1), 1);
    assert_int_equal(lab_hist_permille(&h, 500), 500);
    assert_int_equal(lab_hist_permille(&h, 990), 990);
    assert_int_equal(lab_hist_permille(&h, 999), 999);
    assert_int_equal(lab_hist_permille(&h, 1000), 1000);
    assert_true(lab_hist_mean(&h) == 500.5);
}

/* Of 100 samples the 99th percentile is the 99th, the 99.9th the last. */
static void lab_hist_permille__few_samples(void **state)
{
    (void)state;
    lab_hist_clear(&h);
    for (uint64_t v = 1; v <= 99; v++)
        lab_hist_add(&h, v);
    lab_hist_add(&h, 1500);
    assert_int_equal(lab_hist_permille(&h, 990), 99);
    assert_int_equal(lab_hist_permille(&h, 991), 1500);
    assert_int_equal(lab_hist_permille(&h, 999), 1500);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Wide values: never less than the true one, and less than a thousandth more. */
static void lab_hist_permille__within_a_thousandth(void **state)
{
    (void)state;
    enum { N = 5000 };
    static uint64_t values[N];
    uint64_t x = 88172645463325252ull;
    lab_hist_clear(&h);
    for (unsigned i = 0; i < N; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        values[i] = x >> (22 + i % 40);
        lab_hist_add(&h, values[i]);
    }
    qsort(values, N, sizeof(values[0]), compare);
    for (unsigned permille = 1; permille < 1000; permille++) {
        uint64_t want = values[(N * permille + 999) / 1000 - 1];
        uint64_t got = lab_hist_permille(&h, permille);
        assert_true(got >= want);
        assert_true(got - want <= want / 1000);
    }
}

static void lab_hist_add__too_long(void **state)
{
    (void)state;
    lab_hist_clear(&h);
    lab_hist_add(&h, UINT64_MAX);
    lab_hist_add(&h, 5);
    assert_int_equal(h.samples, 2);
    assert_int_equal(lab_hist_permille(&h, 1000), UINT64_MAX);
    assert_int_equal(lab_hist_permille(&h, 500), 5);
}

static void lab_hist_next__all_samples(void **state)
{
    (void)state;
    unsigned at = 0, buckets = 0;
    uint64_t highest, count, samples = 0, last = 0;
    lab_hist_clear(&h);
    for (uint64_t v = 1; v < 1ull << 40; v *= 3)
        lab_hist_add(&h, v);
    while (lab_hist_next(&h, &at, &highest, &count)) {
        assert_true(highest > last);
        last = highest;
        samples += count;
        buckets++;
    }
    assert_int_equal(samples, h.samples);
    assert_int_equal(buckets, h.samples);
}

static void lab_hist_merge__as_if_added_to_one(void **state)
{
    (void)state;
    static struct lab_hist a, b, both, none;
    for (uint64_t i = 0; i < 1000; i++) {
        lab_hist_add(i % 3 == 0 ? &a : &b, i * i + 7);
        lab_hist_add(&both, i * i + 7);
    }
    lab_hist_merge(&a, &b);
    assert_memory_equal(&a, &both, sizeof(both));
    lab_hist_merge(&a, &none);
    assert_memory_equal(&a, &both, sizeof(both));
    lab_hist_merge(&none, &a);
    assert_memory_equal(&none, &both, sizeof(both));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_hist_permille__nothing),
        cmocka_unit_test(lab_hist_permille__one_value),
        cmocka_unit_test(lab_hist_permille__exact_ranks),
        cmocka_unit_test(lab_hist_permille__few_samples),
        cmocka_unit_test(lab_hist_permille__within_a_thousandth),
        cmocka_unit_test(lab_hist_add__too_long),
        cmocka_unit_test(lab_hist_next__all_samples),
        cmocka_unit_test(lab_hist_merge__as_if_added_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
