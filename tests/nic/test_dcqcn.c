/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dcqcn.c: the reaction point against the equations of the paper, step by step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "nic/cc/cc.h"

enum { CNP, TICK };
#define GBPS UINT64_C(1000000000)
#define US   UINT64_C(1000)

/* After each event: alpha in 10^-9, current and target rate in bit/s (V15). */
static const struct {
    int event;
    uint64_t alpha, rate, target;
} trace[] = {
    {CNP,  1000000000, 50000000000, 100000000000},
    {CNP,  1000000000, 25000000000, 50000000000 },
    {CNP,  1000000000, 12500000000, 25000000000 },
    {TICK, 996093750,  18750000000, 25000000000 },
    {TICK, 992202759,  21875000000, 25000000000 },
    {TICK, 988326967,  23437500000, 25000000000 },
    {TICK, 984466315,  24218750000, 25000000000 },
    {TICK, 980620743,  24609375000, 25000000000 },
    {TICK, 976790193,  24824687500, 25040000000 },
    {TICK, 972974607,  24952343750, 25080000000 },
    {TICK, 969173924,  25036171875, 25120000000 },
    {CNP,  969294339,  12903969400, 25036171875 },
};

/* alpha after so many idle periods. */
static const struct {
    unsigned periods;
    uint64_t alpha;
} decay[] = {
    {0,    1000000000},
    {1,    996093750 },
    {10,   961617042 },
    {50,   822263015 },
    {100,  676116465 },
    {177,  500193538 },
    {256,  367159755 },
    {500,  141288743 },
    {1000, 19962509  },
};

static void near_ppm(uint64_t got, uint64_t want)
{
    uint64_t off = got > want ? got - want : want - got;
    if (off * 1000000 > want)
        fail_msg("%llu instead of %llu", (unsigned long long)got, (unsigned long long)want);
}

static uint64_t alpha_of(const struct cc *c)
{
    return (uint64_t)((unsigned __int128)c->dcqcn.alpha * 1000000000 >> 40);
}

static void begin(struct cc *c, struct cc_params *p, const char *name)
{
    assert_true(cc_params_named(p, name, 100 * GBPS));
    cc_start(c, p);
    assert_int_equal(cc_rate(c, p, 0), 100 * GBPS);
}

static void trace__of_the_paper(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    uint64_t now = 1000 * US;
    begin(&c, &p, "dcqcn-paper");
    for (size_t i = 0; i < sizeof(trace) / sizeof(trace[0]); i++) {
        if (trace[i].event == CNP)
            cc_cnp(&c, &p, now);
        else
            now += 55 * US;
        near_ppm(cc_rate(&c, &p, now), trace[i].rate);
        near_ppm(c.dcqcn.target_bps, trace[i].target);
        near_ppm(alpha_of(&c), trace[i].alpha);
    }
}

static void alpha__decays(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(decay) / sizeof(decay[0]); i++) {
        struct cc_params p;
        struct cc c;
        begin(&c, &p, "dcqcn-paper");
        cc_cnp(&c, &p, 0);
        cc_rate(&c, &p, 55 * US * decay[i].periods);
        near_ppm(alpha_of(&c) + 1, decay[i].alpha);
    }
}

/* The byte counter ticks as the timer does; both beyond F steps is hyper increase. */
static void sent__ticks_by_bytes(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    begin(&c, &p, "dcqcn-paper");
    cc_sent(&c, &p, 0, 50000000); /* before any CNP nothing counts */
    cc_cnp(&c, &p, 0);
    assert_int_equal(c.rate_bps, 50 * GBPS);
    cc_sent(&c, &p, 0, 9999999);
    assert_int_equal(c.rate_bps, 50 * GBPS);
    cc_sent(&c, &p, 0, 1);
    assert_int_equal(c.rate_bps, 75 * GBPS);
    cc_cnp(&c, &p, 0);
    cc_cnp(&c, &p, 0);
    for (int i = 0; i < 6; i++)
        cc_sent(&c, &p, 0, 10000000);
    uint64_t target = c.dcqcn.target_bps;
    assert_int_equal(target % (100 * 1000000), 40 * 1000000); /* one additive step */
    cc_rate(&c, &p, 6 * 55 * US);                             /* six of the timer: additive all */
    assert_int_equal(c.dcqcn.target_bps, target + 6 * UINT64_C(40000000));
    cc_sent(&c, &p, 6 * 55 * US, 10000000); /* both have ticked six times */
    assert_int_equal(c.dcqcn.target_bps, target + 6 * UINT64_C(40000000) + 200000000);
}

/* With a period for cuts, CNPs within it are one. */
static void cnp__one_cut_a_period(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    begin(&c, &p, "dcqcn-hw");
    for (uint64_t t = 0; t < 4 * US; t += 100)
        cc_cnp(&c, &p, t);
    assert_int_equal(c.rate_bps, 50 * GBPS); /* the first one */
    uint64_t rate = cc_rate(&c, &p, 4 * US);
    assert_true(rate >= 25 * GBPS && rate < 26 * GBPS);
    assert_int_equal(cc_rate(&c, &p, 100 * US), rate); /* no CNP, no cut */
    assert_int_equal(cc_deadline(&c, &p), 304 * US);
    assert_true(cc_rate(&c, &p, 304 * US) > rate);
}

static void rate__within_its_limits(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    begin(&c, &p, "dcqcn-paper");
    assert_int_equal(cc_deadline(&c, &p), CC_NEVER);
    for (int i = 0; i < 100; i++)
        cc_cnp(&c, &p, 0);
    assert_int_equal(c.rate_bps, p.min_bps);
    assert_int_equal(cc_rate(&c, &p, UINT64_C(1000000) * US), p.line_bps);
    assert_int_equal(cc_deadline(&c, &p), CC_NEVER);
    cc_rate(&c, &p, UINT64_C(100000000) * US); /* a long time is no long work */
    assert_int_equal(c.rate_bps, p.line_bps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace__of_the_paper),     cmocka_unit_test(alpha__decays),
        cmocka_unit_test(sent__ticks_by_bytes),    cmocka_unit_test(cnp__one_cut_a_period),
        cmocka_unit_test(rate__within_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
