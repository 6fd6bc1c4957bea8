/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_aeth.c: syndromes and their tables, against values written down here a second time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/aeth.h"

/* The credit codes follow a rule: from code 2 on, 2^k and 3 * 2^(k-1) take turns. */
static uint32_t credits_by_rule(uint8_t code)
{
    if (code < 2)
        return code;
    return code % 2 == 0 ? 1u << (code / 2) : 3u << (code / 2 - 1);
}

static void aeth_credits__rule(void **state)
{
    (void)state;
    for (unsigned code = 0; code < AETH_CREDITS_NONE; code++)
        assert_int_equal(aeth_credits((uint8_t)code), credits_by_rule((uint8_t)code));
    assert_int_equal(aeth_credits(30), 32768);
}

static void aeth_credit_code__largest_not_above(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 70000; n++) {
        uint8_t code = aeth_credit_code(n);
        assert_true(code < AETH_CREDITS_NONE);
        assert_true(aeth_credits(code) <= n);
        assert_true(code == 30 || aeth_credits((uint8_t)(code + 1)) > n);
    }
    assert_int_equal(aeth_credit_code(UINT32_MAX), 30);
}

/* IBA 9.7.5.2.8 */
static void aeth_rnr_ns__table(void **state)
{
    (void)state;
    static const struct {
        uint8_t code;
        uint64_t ns;
    } rows[] = {
        {0,  655360000},
        {1,  10000    },
        {2,  20000    },
        {3,  30000    },
        {4,  40000    },
        {5,  60000    },
        {12, 640000   },
        {13, 960000   },
        {14, 1280000  },
        {16, 2560000  },
        {20, 10240000 },
        {24, 40960000 },
        {28, 163840000},
        {30, 327680000},
        {31, 491520000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_true(aeth_rnr_ns(rows[i].code) == rows[i].ns);
    /* Codes 4 to 31 alternate between factors 3/2 and 4/3. */
    for (uint8_t code = 4; code < 31; code++)
        assert_true(aeth_rnr_ns((uint8_t)(code + 1)) * (code % 2 == 0 ? 2 : 3) ==
                    aeth_rnr_ns(code) * (code % 2 == 0 ? 3 : 4));
    for (uint8_t code = 1; code < 32; code++)
        assert_true(aeth_rnr_ns(code) < aeth_rnr_ns(0));
}

/* IBA 9.7.6.1.3 */
static void aeth_ack_timeout_ns__powers(void **state)
{
    (void)state;
    assert_true(aeth_ack_timeout_ns(0) == 0);
    assert_true(aeth_ack_timeout_ns(1) == 8192);
    assert_true(aeth_ack_timeout_ns(14) == 67108864);
    assert_true(aeth_ack_timeout_ns(16) == 268435456);
    assert_true(aeth_ack_timeout_ns(31) == UINT64_C(8796093022208));
}

/* IBA 9.7.5.1 */
static void aeth_syndrome__fields(void **state)
{
    (void)state;
    static const struct {
        uint8_t syndrome;
        enum aeth_kind kind;
        uint8_t value;
    } rows[] = {
        {0x00, AETH_ACK,      0                     },
        {0x1f, AETH_ACK,      AETH_CREDITS_NONE     },
        {0x20, AETH_RNR_NAK,  0                     },
        {0x3c, AETH_RNR_NAK,  28                    },
        {0x40, AETH_RESERVED, 0                     },
        {0x5f, AETH_RESERVED, 31                    },
        {0x60, AETH_NAK,      NAK_PSN_SEQUENCE      },
        {0x61, AETH_NAK,      NAK_INVALID_REQUEST   },
        {0x62, AETH_NAK,      NAK_REMOTE_ACCESS     },
        {0x63, AETH_NAK,      NAK_REMOTE_OPERATIONAL},
        {0x64, AETH_NAK,      NAK_INVALID_RD        },
        {0x7f, AETH_NAK,      31                    },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(aeth_kind(rows[i].syndrome), rows[i].kind);
        assert_int_equal(aeth_value(rows[i].syndrome), rows[i].value);
        assert_int_equal(aeth_make(rows[i].kind, rows[i].value), rows[i].syndrome);
        /* The top bit is reserved: it changes nothing. */
        assert_int_equal(aeth_kind(rows[i].syndrome | 0x80), rows[i].kind);
    }
    assert_int_equal(aeth_make(AETH_ACK, 0xff), 0x1f); /* a value too wide stays in its field */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(aeth_credits__rule),
        cmocka_unit_test(aeth_credit_code__largest_not_above),
        cmocka_unit_test(aeth_rnr_ns__table),
        cmocka_unit_test(aeth_ack_timeout_ns__powers),
        cmocka_unit_test(aeth_syndrome__fields),
    };
    return cmocka_run_group_tests_name("aeth", tests, NULL, NULL);
}
