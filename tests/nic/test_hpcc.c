/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hpcc.c: what HPCC makes of what two packets brought, by hand; what tells it nothing; numbers
 * at their limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "nic/cc/cc.h"

#define LINE UINT64_C(100000000000)
#define STEP UINT64_C(50000000)
#define T    UINT64_C(10000000) /* ps: the link sends 125000 bytes */
#define MBPS 100000

static void start(struct cc *c, struct cc_params *p)
{
    assert_true(cc_params_named(p, "hpcc", LINE));
    assert_true(cc_wants_path(p));
    assert_false(cc_wants_rtt(p));
    p->hpcc.base_rtt_ps = T;
    p->hpcc.step_bps = STEP;
    cc_start(c, p);
}

/* Two acknowledgements, the second of the round trip after the first. */
static uint64_t rate_of(const struct cc_path *first, const struct cc_path *second)
{
    struct cc_params p;
    struct cc c;
    struct cc_path last = {0};
    start(&c, &p);
    cc_path(&c, &p, &last, first, 1000, 2000);
    assert_int_equal(c.rate_bps, LINE);
    cc_path(&c, &p, &last, second, 3000, 4000);
    assert_memory_equal(&last, second, sizeof(last));
    return c.rate_bps;
}

static void path__by_hand(void **state)
{
    (void)state;
    static const struct {
        uint64_t time_ps, bytes;
        uint32_t before, after; /* queues */
        uint64_t rate_bps;
    } rows[] = {
        {T,     125000, 0,      0,      UINT64_C(95050000000)}, /* U 1: eta * line + step */
        {T,     125000, 125000, 125000, UINT64_C(47550000000)}, /* 2 */
        {T,     125000, 0,      125000, UINT64_C(95050000000)}, /* the shorter queue counts */
        {T,     125000, 125000, 0,      UINT64_C(95050000000)},
        {T,     62500,  0,      0,      LINE                 }, /* 0.5: adds, not beyond the line */
        {T,     0,      500000, 500000, UINT64_C(23800000000)}, /* 4, by the queue alone */
        {T / 2, 62500,  125000, 125000, UINT64_C(63383333333)}, /* 2 for half of T, and 1: 1.5 */
        {2 * T, 250000, 125000, 125000, UINT64_C(47550000000)}, /* longer than T is as T */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cc_path a = {.hops = 1, .id = 7, .hop = {{5, 9, rows[i].before, MBPS}}};
        struct cc_path b = {.hops = 1,
                            .id = 7,
                            .hop = {{5 + rows[i].time_ps, 9 + rows[i].bytes, rows[i].after, MBPS}}};
        assert_int_equal(rate_of(&a, &b), rows[i].rate_bps);
    }
}

/* The fullest hop, wherever it is; a slower link is full earlier. */
static void path__fullest_hop(void **state)
{
    (void)state;
    struct cc_path a = {
        .hops = 5,
        .hop = {
                {1, 0, 0, MBPS}, {1, 0, 0, MBPS}, {1, 0, 0, MBPS}, {1, 0, 0, MBPS}, {1, 0, 0, MBPS}}
    };
    for (unsigned full = 0; full < CC_MAX_HOPS; full++) {
        struct cc_path b = a;
        for (unsigned i = 0; i < CC_MAX_HOPS; i++)
            b.hop[i] = (struct cc_hop){1 + T, i == full ? 250000 : 62500, 0, MBPS};
        assert_int_equal(rate_of(&a, &b), UINT64_C(47550000000));
    }
    struct cc_path b = a;
    for (unsigned i = 0; i < CC_MAX_HOPS; i++)
        b.hop[i] = (struct cc_hop){1 + T, 62500, 0, i == 2 ? MBPS / 4 : MBPS};
    assert_int_equal(rate_of(&a, &b), UINT64_C(47550000000)); /* 2 of 25 Gb/s */
}

static void path__tells_nothing(void **state)
{
    (void)state;
    const struct cc_path a = {.hops = 1, .id = 7, .hop = {{T, 500, 999999, MBPS}}};
    static const struct {
        uint32_t hops, id;
        struct cc_hop hop;
    } rows[] = {
        {1, 7, {T, 500, 999999, MBPS}        }, /* no time has passed */
        {1, 7, {T - 1, 900000, 999999, MBPS} }, /* back in time */
        {1, 7, {0, UINT64_MAX, UINT32_MAX, 1}},
        {1, 7, {3 * T, 499, 999999, MBPS}    }, /* it counts anew */
        {1, 7, {3 * T, 900000, 999999, 0}    }, /* no rate */
        {1, 8, {3 * T, 900000, 999999, MBPS} }, /* another way */
        {2, 7, {3 * T, 900000, 999999, MBPS} },
        {0, 7, {0}                           },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cc_path b = {.hops = rows[i].hops, .id = rows[i].id, .hop = {rows[i].hop}};
        assert_int_equal(rate_of(&a, &b), LINE);
    }
    const struct cc_path none = {0};
    assert_int_equal(rate_of(&none, &none), LINE); /* no switch on the way */
}

static void path__limits(void **state)
{
    (void)state;
    static const struct {
        struct cc_hop before, after;
        uint64_t rate_bps;
    } rows[] = {
        {{0, 0, UINT32_MAX, 1}, {T, UINT64_MAX, UINT32_MAX, 1},          0                    },
        {{0, 0, 0, 1},          {T, UINT64_MAX, 0, 1},                   0                    },
        {{0, 0, UINT32_MAX, 1}, {UINT64_MAX, 0, UINT32_MAX, 1},          0                    },
        {{0, 0, 0, 1},          {1, UINT64_MAX, 0, 1},                   UINT64_C(86033943403)}, /* U 1 + 2^20 * 1 ps / T */
        {{0, 0, 0, UINT32_MAX}, {UINT64_MAX, UINT64_MAX, 0, UINT32_MAX}, LINE                 }, /* U 0.002 */
        {{0, 0, 0, UINT32_MAX}, {UINT64_MAX, 0, 0, UINT32_MAX},          LINE                 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cc_path a = {.hops = 1, .hop = {rows[i].before}};
        struct cc_path b = {.hops = 1, .hop = {rows[i].after}};
        /* the least, and it stays above nothing */
        uint64_t want = rows[i].rate_bps != 0 ? rows[i].rate_bps : LINE / 1000;
        assert_int_equal(rate_of(&a, &b), want);
    }
}

/* Acknowledgements of packets that left before the last change start from the same reference. */
static void path__one_cut_a_round_trip(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    struct cc_path last = {0}, now = {.hops = 1, .hop = {{0, 0, 125000, MBPS}}};
    start(&c, &p);
    uint64_t acked = 1000, sent = 100000;
    cc_path(&c, &p, &last, &now, acked, sent);
    for (unsigned i = 0; i < 50; i++) {
        now.hop[0].time_ps += T;
        now.hop[0].tx_bytes += 125000;
        cc_path(&c, &p, &last, &now, acked += 1000, sent += 1000);
        assert_int_equal(c.rate_bps, UINT64_C(47550000000));
        assert_int_equal(c.hpcc.reference_bps, LINE);
    }
    now.hop[0].time_ps += T;
    now.hop[0].tx_bytes += 125000;
    cc_path(&c, &p, &last, &now, 100001, sent);
    assert_int_equal(c.hpcc.reference_bps, UINT64_C(47550000000));
    now.hop[0].time_ps += T;
    now.hop[0].tx_bytes += 125000;
    cc_path(&c, &p, &last, &now, 100002, sent);
    assert_int_equal(c.rate_bps, UINT64_C(47550000000) * 95 / 200 + STEP);
}

/* Five round trips add; the sixth takes what is free. */
static void path__stages(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    struct cc_path last = {0}, now = {.hops = 1, .hop = {{0, 0, 0, MBPS}}};
    start(&c, &p);
    cc_path(&c, &p, &last, &now, 1, 1);
    c.rate_bps = c.hpcc.reference_bps = LINE / 10;
    for (unsigned i = 1; i <= 6; i++) {
        now.hop[0].time_ps += T;
        now.hop[0].tx_bytes += 62500;
        cc_path(&c, &p, &last, &now, 1 + i, 1 + i);
        if (i <= 5)
            assert_int_equal(c.rate_bps, LINE / 10 + i * STEP);
    }
    assert_int_equal(c.rate_bps, UINT64_C(19525000000)); /* 10.25 * 0.95 / 0.5 + 0.05 */
    assert_int_equal(c.hpcc.stage, 0);
    c.hpcc.stage = 5;
    now.hop[0].time_ps += T; /* a network without anything in it */
    cc_path(&c, &p, &last, &now, 100, 100);
    assert_int_equal(c.rate_bps, LINE);
}

static void window__of_the_rate(void **state)
{
    (void)state;
    static const struct {
        uint64_t rate_bps, rtt_ps, bytes;
    } rows[] = {
        {LINE,                     T,                       125000                 },
        {UINT64_C(47550000000),    T,                       59437                  },
        {LINE,                     1,                       1                      }, /* a packet may always be under way */
        {1,                        T,                       1                      },
        {0,                        T,                       1                      },
        {UINT64_C(10000000000000), UINT64_C(1000000000000), UINT64_C(1250000000000)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cc_params p;
        struct cc c;
        start(&c, &p);
        p.hpcc.base_rtt_ps = rows[i].rtt_ps;
        c.rate_bps = rows[i].rate_bps;
        assert_int_equal(cc_window(&c, &p), rows[i].bytes);
    }
    struct cc_params p;
    struct cc c;
    assert_true(cc_params_named(&p, "timely", LINE));
    cc_start(&c, &p);
    assert_int_equal(cc_window(&c, &p), CC_NO_WINDOW);
    assert_false(cc_wants_path(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path__by_hand),
        cmocka_unit_test(path__fullest_hop),
        cmocka_unit_test(path__tells_nothing),
        cmocka_unit_test(path__limits),
        cmocka_unit_test(path__one_cut_a_round_trip),
        cmocka_unit_test(path__stages),
        cmocka_unit_test(window__of_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
