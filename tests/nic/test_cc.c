/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cc.c: algorithms by name, and that none of them does anything before something happens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "nic/cc/cc.h"

#define LINE UINT64_C(25000000000)

static void named__all_and_no_other(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "dcqcn", "NONE", "none ", "HPCC", "hpcc ", "swift"};
    char names[] = CC_NAMES;
    struct cc_params p;
    unsigned n = 0;
    for (char *name = strtok(names, " "); name != NULL; name = strtok(NULL, " "), n++) {
        struct cc c;
        assert_true(cc_params_named(&p, name, LINE));
        assert_int_equal(p.line_bps, LINE);
        assert_int_equal(p.algorithm == CC_NONE, n == 0);
        cc_start(&c, &p);
        assert_int_equal(cc_rate(&c, &p, UINT64_C(1000000000)), LINE);
        assert_int_equal(cc_deadline(&c, &p), CC_NEVER);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(cc_params_named(&p, wrong[i], LINE));
}

static void none__ignores_all(void **state)
{
    (void)state;
    struct cc_params p;
    struct cc c;
    assert_true(cc_params_named(&p, "none", LINE));
    cc_start(&c, &p);
    assert_false(cc_wants_rtt(&p));
    cc_cnp(&c, &p, 1);
    cc_nak(&c, &p);
    cc_rtt(&c, &p, 1, 1000000);
    cc_sent(&c, &p, 2, 1 << 30);
    assert_int_equal(cc_rate(&c, &p, 3), LINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named__all_and_no_other),
        cmocka_unit_test(none__ignores_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
