/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rng.c: the generator repeats itself from a seed, and rng_below stays below and is fair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void rng_init__same_seed_same_stream(void **state)
{
    struct rng a, b;

    (void)state;
    rng_init(&a, 42);
    rng_init(&b, 42);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(rng_next(&a), rng_next(&b));
}

static void rng_init__other_seed_other_stream(void **state)
{
    static const uint64_t seeds[] = {0, 1, 2, 3, UINT64_MAX, UINT64_MAX - 1, 1ull << 63};
    enum { SEEDS = sizeof(seeds) / sizeof(seeds[0]) };
    uint64_t first[SEEDS];

    (void)state;
    for (int i = 0; i < SEEDS; i++) {
        struct rng r;

        rng_init(&r, seeds[i]);
        assert_true(r.s[0] != 0 || r.s[1] != 0 || r.s[2] != 0 || r.s[3] != 0);
        first[i] = rng_next(&r);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(first[i], first[j]);
    }
}

/* From state 1,2,3,4 the published algorithm gives 11520, 0, 1509978240, 1215971899390074240. */
static void rng_next__known_answers(void **state)
{
    struct rng r = {
        {1, 2, 3, 4}
    };

    (void)state;
    assert_int_equal(rng_next(&r), 11520);
    assert_int_equal(rng_next(&r), 0);
    assert_int_equal(rng_next(&r), 1509978240);
    assert_int_equal(rng_next(&r), 1215971899390074240);
}

static void rng_below__stays_below(void **state)
{
    static const uint32_t limits[] = {1, 2, 3, 7, 1000, 1u << 16, 0x80000001u, UINT32_MAX};
    struct rng r;

    (void)state;
    rng_init(&r, 7);
    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        for (int i = 0; i < 2000; i++)
            assert_true(rng_below(&r, limits[l]) < limits[l]);
    }
}

static void rng_below__every_value_about_equally_often(void **state)
{
    enum { VALUES = 6, DRAWS = 60000 };
    unsigned seen[VALUES] = {0};
    struct rng r;

    (void)state;
    rng_init(&r, 99);
    for (int i = 0; i < DRAWS; i++)
        seen[rng_below(&r, VALUES)]++;
    for (int i = 0; i < VALUES; i++)
        assert_in_range(seen[i], 9500, 10500); /* 5 sigma around 10000 */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng_init__same_seed_same_stream),
        cmocka_unit_test(rng_init__other_seed_other_stream),
        cmocka_unit_test(rng_next__known_answers),
        cmocka_unit_test(rng_below__stays_below),
        cmocka_unit_test(rng_below__every_value_about_equally_often),
    };

    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
