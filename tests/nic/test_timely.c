/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_timely.c: a step for each case of TIMELY.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "nic/cc/cc.h"

#define LINE UINT64_C(100000000000)
#define STEP (LINE / 1000)

static void rtt__cases(void **state)
{
    (void)state;
    static const struct {
        uint64_t first_ns, second_ns, least, most; /* of 50 Gb/s, afterwards */
    } rows[] = {
        {60000,   40000,   LINE / 2 + STEP, LINE / 2 + STEP}, /* below T_low */
        {40000,   49999,   LINE / 2 + STEP, LINE / 2 + STEP}, /* though it rises */
        {60000,   60000,   LINE / 2 + STEP, LINE / 2 + STEP}, /* level */
        {100000,  60000,   LINE / 2 + STEP, LINE / 2 + STEP}, /* falls */
        {60000,   70000,   LINE / 100 * 32, LINE / 100 * 33}, /* 0.8 * 0.875 * 10 / 20 */
        {60000,   300000,  LINE / 100 * 9,  LINE / 100 * 11}, /* as steep as counts */
        {900000,  1000000, LINE / 100 * 29, LINE / 100 * 31}, /* above T_high: 0.8 * 0.5 */
        {2000000, 1000000, LINE / 100 * 29, LINE / 100 * 31}, /* though it falls */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cc_params p;
        struct cc c;
        assert_true(cc_params_named(&p, "timely", LINE));
        cc_start(&c, &p);
        cc_rtt(&c, &p, 1, rows[i].first_ns);
        c.rate_bps = LINE / 2;
        cc_rtt(&c, &p, 1, rows[i].second_ns);
        assert_in_range(c.rate_bps, rows[i].least, rows[i].most);
    }
}

static void rtt__hyper_after_calm(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    assert_true(cc_params_named(&p, "timely", LINE));
    cc_start(&c, &p);
    c.rate_bps = LINE / 2;
    for (int i = 0; i < 4; i++)
        cc_rtt(&c, &p, 1, 60000);
    assert_int_equal(c.rate_bps, LINE / 2 + 4 * STEP);
    cc_rtt(&c, &p, 1, 60000);
    assert_int_equal(c.rate_bps, LINE / 2 + 9 * STEP);
    for (int i = 0; i < 1000; i++)
        cc_rtt(&c, &p, 1, 1000);
    assert_int_equal(c.rate_bps, LINE);
    for (int i = 0; i < 1000; i++)
        cc_rtt(&c, &p, 1, 10000000);
    assert_int_equal(c.rate_bps, p.min_bps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rtt__cases),
        cmocka_unit_test(rtt__hyper_after_calm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
