/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_psn.c: order and distance on the 24-bit circle, above all where it wraps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/psn.h"

static const struct {
    uint32_t a, b;
    int32_t diff; /* a - b */
} rows[] = {
    {0,        0,        0        },
    {1,        0,        1        },
    {0,        1,        -1       },
    {0,        0xffffff, 1        },
    {0xffffff, 0,        -1       },
    {2,        0xfffffd, 5        },
    {0xfffffd, 2,        -5       },
    {0x7fffff, 0,        0x7fffff },
    {0,        0x7fffff, -0x7fffff},
    {0x800000, 0,        -0x800000}, /* half way round: the far end counts as before */
    {0,        0x800000, -0x800000},
    {0x800000, 1,        0x7fffff },
    {0x123456, 0x123456, 0        },
};

static void psn_diff__table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct psn a = psn_make(rows[i].a), b = psn_make(rows[i].b);
        assert_int_equal(psn_diff(a, b), rows[i].diff);
        assert_int_equal(psn_before(a, b), rows[i].diff < 0);
        assert_int_equal(psn_eq(a, b), rows[i].diff == 0);
        assert_true(psn_eq(psn_add(b, (uint32_t)rows[i].diff), a));
    }
}

static void psn_make__keeps_24_bits(void **state)
{
    (void)state;
    assert_int_equal(psn_make(0x1000000).v, 0);
    assert_int_equal(psn_make(0xff123456).v, 0x123456);
    assert_int_equal(psn_add(psn_make(0xffffff), 1).v, 0);
    assert_int_equal(psn_add(psn_make(5), 0xffffffff).v, 4);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(psn_diff__table),
        cmocka_unit_test(psn_make__keeps_24_bits),
    };
    return cmocka_run_group_tests_name("psn", tests, NULL, NULL);
}
