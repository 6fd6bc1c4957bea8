/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ztr_rtt.c: the template's trace, exactly; and what our target does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "nic/cc/cc.h"

#define LINE UINT64_C(100000000000)

/* Of each answer: time, CNP and NAK before it, then the least time and the rate in 10^-6 (V16). */
static const struct {
    uint64_t rtt_ns;
    int cnp, nak;
    uint64_t min_ns, rate;
} trace[] = {
    {12000,  0, 0, 12000, 1000000},
    {12000,  0, 0, 12000, 1000000},
    {24000,  0, 0, 12000, 1000000},
    {26000,  0, 0, 12000, 900009 },
    {40000,  0, 0, 12000, 810016 },
    {40000,  1, 0, 12000, 648028 },
    {160000, 0, 0, 12000, 518434 },
    {160000, 0, 1, 12000, 259241 },
    {100000, 0, 1, 12000, 233319 },
    {12000,  0, 0, 12000, 283318 },
    {12000,  0, 0, 12000, 333318 },
    {8000,   0, 0, 8000,  383317 },
    {8000,   0, 0, 8000,  433316 },
    {21500,  0, 0, 8000,  389988 },
};

static void begin(struct cc *c, struct cc_params *p, const char *name)
{
    assert_true(cc_params_named(p, name, LINE));
    cc_start(c, p);
    assert_true(cc_wants_rtt(p));
}

static void trace__of_the_template(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    begin(&c, &p, "ztr-template");
    for (size_t i = 0; i < sizeof(trace) / sizeof(trace[0]); i++) {
        if (trace[i].cnp != 0)
            cc_cnp(&c, &p, 0);
        if (trace[i].nak != 0)
            cc_nak(&c, &p);
        cc_rtt(&c, &p, 1, trace[i].rtt_ns);
        assert_int_equal(c.ztr.min_ns, trace[i].min_ns);
        uint64_t got = (uint64_t)c.ztr.rate * 1000000 >> 20;
        uint64_t slack = trace[i].rate / 65536 + 1;
        assert_in_range(got, trace[i].rate - slack, trace[i].rate + slack);
        assert_in_range(c.rate_bps, LINE / 1000000 * (got - 1), LINE / 1000000 * (got + 2));
    }
}

/* A least time that is new is a delay by itself, one that is told beside something worse is not
 * noted, and what was noted is forgotten when the low eight bits of the clock are 0. */
static void template__least_time(void **state)
{
    (void)state;
    static const struct {
        uint64_t now_ns, rtt_ns;
        int cnp;
        uint64_t min_ns, rate; /* behind it; in 2^-20 */
    } rows[] = {
        {1,    20000,  0, 20000,  943728 }, /* less than 200 us, more than 13 */
        {2,    30000,  0, 20000,  996156 },
        {3,    12000,  0, 12000,  1048576},
        {4,    11000,  1, 12000,  838880 }, /* by the CNP */
        {5,    24000,  0, 12000,  891308 },
        {768,  24000,  0, 24000,  802191 }, /* forgotten */
        {1023, 24000,  0, 24000,  854619 },
        {1025, 36000,  0, 24000,  907047 },
        {1280, 160000, 0, 200000, 725665 }, /* forgotten, and too long to be noted */
    };
    struct cc_params p;
    struct cc c;
    begin(&c, &p, "ztr-template");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].cnp != 0)
            cc_cnp(&c, &p, rows[i].now_ns);
        cc_rtt(&c, &p, rows[i].now_ns, rows[i].rtt_ns);
        assert_int_equal(c.ztr.min_ns, rows[i].min_ns);
        assert_in_range(c.ztr.rate, rows[i].rate - 20, rows[i].rate + 20);
    }
}

static void template__limits(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    begin(&c, &p, "ztr-template");
    for (int i = 0; i < 500; i++)
        cc_rtt(&c, &p, 1, 1000000);
    assert_int_equal(c.ztr.rate, 1 << 6); /* 2^-14 */
    for (int i = 0; i < 500; i++)
        cc_rtt(&c, &p, 1, 1000);
    assert_int_equal(c.ztr.rate, 1 << 20);
}

/* Beyond the target it cuts, the more the further; at or below it rises; slow flows have a larger
 * target. */
static void target__both_ways(void **state)
{
    (void)state;
    static const struct {
        uint32_t rate;
        uint64_t rtt_ns;
        int way; /* -1 cut, 1 rise */
    } rows[] = {
        {1 << 18, 8000,   1 },
        {1 << 18, 11900,  1 },
        {1 << 18, 12100,  -1},
        {1 << 18, 100000, -1},
        {1 << 14, 23000,  1 },
        {1 << 14, 25000,  -1},
        {1 << 20, 10100,  -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cc_params p;
        struct cc c;
        begin(&c, &p, "ztr-target");
        cc_rtt(&c, &p, 1, 8000);
        c.ztr.rate = rows[i].rate;
        cc_rtt(&c, &p, 1, rows[i].rtt_ns);
        assert_true(rows[i].way < 0 ? c.ztr.rate < rows[i].rate : c.ztr.rate > rows[i].rate);
        assert_true(c.ztr.rate >= rows[i].rate / 2 - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace__of_the_template),
        cmocka_unit_test(template__limits),
        cmocka_unit_test(template__least_time),
        cmocka_unit_test(target__both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
