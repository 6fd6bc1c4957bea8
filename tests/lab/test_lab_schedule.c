/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_schedule.c: every ordered pair once, no machine twice in a round of pairs, as few rounds
 * as there can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_schedule.h"

enum { MAX = 20 };

static void count_pairs(const struct lab_schedule *s, const unsigned *host, unsigned met[MAX][MAX],
                        unsigned *rounds)
{
    memset(met, 0, MAX * sizeof(met[0]));
    *rounds = 0;
    for (unsigned i = 0; i < s->round_count; i++) {
        unsigned busy[MAX] = {0};
        const struct lab_round *r = &s->rounds[i];
        assert_true(r->count > 0);
        for (unsigned k = 0; k < r->count; k++) {
            const struct lab_meeting *m = &s->meetings[r->first + k];
            assert_int_equal(m->round, i);
            assert_int_not_equal(m->source, m->target);
            if (r->kind != LAB_ROUND_PAIRS)
                continue;
            met[m->source][m->target]++;
            busy[host[m->source]]++;
            if (host[m->target] != host[m->source])
                busy[host[m->target]]++;
        }
        for (unsigned h = 0; h < MAX; h++)
            assert_true(busy[h] <= 1);
        *rounds += r->kind == LAB_ROUND_PAIRS;
    }
}

static void check(const unsigned *host, unsigned ranks, unsigned wanted_rounds)
{
    struct lab_schedule s;
    unsigned met[MAX][MAX], rounds;
    assert_int_equal(lab_schedule_make(&s, host, ranks), 0);
    count_pairs(&s, host, met, &rounds);
    for (unsigned a = 0; a < ranks; a++)
        for (unsigned b = 0; b < ranks; b++)
            assert_int_equal(met[a][b], a != b);
    assert_int_equal(rounds, wanted_rounds);
    lab_schedule_clear(&s);
    assert_null(s.meetings);
}

static void lab_schedule_make__own_machines(void **state)
{
    (void)state;
    unsigned host[MAX];
    for (unsigned i = 0; i < MAX; i++)
        host[i] = i;
    for (unsigned n = 2; n <= MAX; n++) /* each of a tournament's turns in both directions */
        check(host, n, 2 * (n + n % 2 - 1));
}

static void lab_schedule_make__shared_machines(void **state)
{
    (void)state;
    static const unsigned same[MAX], two[] = {0, 0, 1, 1}, odd[] = {0, 1, 1};
    check(same, 2, 2);
    check(same, 4, 12); /* one at a time */
    check(two, 4, 10);  /* two within a machine each, at once; eight between them */
    check(odd, 3, 6);
}

static void lab_schedule_make__together(void **state)
{
    (void)state;
    static const unsigned host[] = {0, 1, 2, 3};
    struct lab_schedule s;
    assert_int_equal(lab_schedule_make(&s, host, 4), 0);
    assert_int_equal(s.round_count, 6 + 1 + 4);
    const struct lab_round *ring = &s.rounds[6];
    assert_int_equal(ring->kind, LAB_ROUND_RING);
    assert_int_equal(ring->count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(s.meetings[ring->first + i].target,
                         (s.meetings[ring->first + i].source + 1) % 4);
    for (unsigned into = 0; into < 4; into++) {
        const struct lab_round *r = &s.rounds[7 + into];
        assert_int_equal(r->kind, LAB_ROUND_INCAST);
        assert_int_equal(r->count, 3);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(s.meetings[r->first + i].target, into);
    }
    assert_int_equal(s.meeting_count, 12 + 4 + 12);
    assert_string_equal(lab_round_name(LAB_ROUND_INCAST), "incast");
    lab_schedule_clear(&s);
    assert_int_equal(lab_schedule_make(&s, host, 2), 0);
    assert_int_equal(s.round_count, 3); /* of two, an incast is a pair */
    lab_schedule_clear(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_schedule_make__own_machines),
        cmocka_unit_test(lab_schedule_make__shared_machines),
        cmocka_unit_test(lab_schedule_make__together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
