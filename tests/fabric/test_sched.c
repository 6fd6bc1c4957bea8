/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sched.c: the wheel against a plain search for the least (time, number).
 */
#include "rig.h"

enum { EVENTS = 200, STEPS = 20000 };

static uint32_t least(const uint64_t *time)
{
    uint32_t best = SCHED_NOTHING;
    for (uint32_t i = 0; i < EVENTS; i++)
        if (time[i] != SCHED_NEVER && (best == SCHED_NOTHING || time[i] < time[best]))
            best = i;
    return best;
}

/* Near and far, the same instant often, moved and removed at will. */
static void next__in_order(void **state)
{
    (void)state;
    static const unsigned shifts[] = {2, 11, 14, 22, 24, 34, 40, 46, 57};
    struct sched s;
    struct rng rng;
    uint64_t time[EVENTS];
    rng_init(&rng, 5);
    assert_int_equal(sched_init(&s, EVENTS), 0);
    for (uint32_t i = 0; i < EVENTS; i++)
        time[i] = SCHED_NEVER;
    for (int step = 0; step < STEPS; step++) {
        uint32_t id = rng_below(&rng, EVENTS);
        uint32_t what = rng_below(&rng, 8);
        if (what < 5) {
            uint64_t after = rng_next(&rng) >> (64 - shifts[rng_below(&rng, 9)]);
            if (s.now_ps + after > SCHED_MAX_PS)
                after = rng_below(&rng, 100);
            time[id] = s.now_ps + after;
            sched_put(&s, id, time[id]);
        } else if (what == 5) {
            time[id] = SCHED_NEVER;
            sched_remove(&s, id);
        } else {
            uint32_t want = least(time);
            assert_int_equal(sched_next(&s), want);
            if (want == SCHED_NOTHING)
                continue;
            assert_int_equal(s.now_ps, time[want]);
            assert_false(sched_pending(&s, want));
            time[want] = SCHED_NEVER;
        }
    }
    for (uint32_t want = least(time); want != SCHED_NOTHING; want = least(time)) {
        assert_int_equal(sched_next(&s), want);
        time[want] = SCHED_NEVER;
    }
    assert_int_equal(sched_next(&s), SCHED_NOTHING);
    sched_fini(&s);
}

static void next__ties_by_number(void **state)
{
    (void)state;
    struct sched s;
    assert_int_equal(sched_init(&s, 5), 0);
    static const uint32_t order[] = {3, 0, 4, 1, 2};
    for (int i = 0; i < 5; i++)
        sched_put(&s, order[i], 123456789);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(sched_next(&s), i);
    sched_fini(&s);
}

/* Entries that no longer count fill the heap of the present slot again and again. */
static void put__moved_within_the_present(void **state)
{
    (void)state;
    struct sched s;
    assert_int_equal(sched_init(&s, 2), 0);
    for (uint64_t i = 0; i < 1000; i++)
        sched_put(&s, 0, i % 2 == 0 ? 5 : 700);
    sched_put(&s, 1, 6);
    assert_int_equal(sched_next(&s), 1);
    assert_int_equal(sched_next(&s), 0);
    assert_int_equal(s.now_ps, 700);
    assert_int_equal(sched_next(&s), SCHED_NOTHING);
    sched_remove(&s, 0); /* not pending: nothing */
    sched_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next__in_order),
        cmocka_unit_test(next__ties_by_number),
        cmocka_unit_test(put__moved_within_the_present),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
