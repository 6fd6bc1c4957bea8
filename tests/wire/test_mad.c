/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mad.c: the MAD header against bytes written down by hand, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/mad.h"

/* IBA 13.4 */
static void mad_parse__fields_and_back(void **state)
{
    (void)state;
    static const uint8_t bytes[MAD_HEADER_BYTES] = {1,    7,    2,    3,    0x12, 0x34, 0,    0,
                                                    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
                                                    0x00, 0x15, 0,    0,    0xb0, 0xb1, 0xb2, 0xb3};
    uint8_t built[MAD_HEADER_BYTES];
    struct mad_header h;
    mad_parse(bytes, &h);
    assert_int_equal(h.mgmt_class, 7);
    assert_int_equal(h.class_version, 2);
    assert_int_equal(h.method, 3);
    assert_int_equal(h.status, 0x1234);
    assert_true(h.tid == 0xa0a1a2a3a4a5a6a7);
    assert_int_equal(h.attribute, 0x15);
    assert_true(h.modifier == 0xb0b1b2b3);
    memset(built, 0xee, sizeof(built));
    mad_build(&h, built);
    assert_memory_equal(built, bytes, sizeof(built));
}

static void mad_check__verdicts(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint8_t at, value;
        enum mad_verdict verdict;
    } rows[] = {
        {256, 17, 0x10, MAD_OK               },
        {256, 4,  0xff, MAD_OK               }, /* the status is not looked at */
        {0,   0,  1,    MAD_BAD_LENGTH       },
        {255, 0,  1,    MAD_BAD_LENGTH       },
        {257, 0,  1,    MAD_BAD_LENGTH       },
        {256, 0,  0,    MAD_BAD_BASE_VERSION },
        {256, 0,  2,    MAD_BAD_BASE_VERSION },
        {256, 1,  3,    MAD_NOT_CM           },
        {256, 2,  1,    MAD_BAD_CLASS_VERSION},
        {256, 2,  3,    MAD_BAD_CLASS_VERSION},
        {256, 3,  1,    MAD_BAD_METHOD       }, /* Get */
        {256, 3,  0x83, MAD_BAD_METHOD       }, /* a response */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t mad[300] = {1, 7, 2, 3};
        mad[rows[i].at] = rows[i].value;
        assert_int_equal(mad_check(mad, rows[i].n), rows[i].verdict);
    }
}

static void mad_verdict_name__all_differ(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MAD_VERDICT_COUNT; i++)
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(mad_verdict_name(i), mad_verdict_name(k));
    assert_string_equal(mad_verdict_name(MAD_VERDICT_COUNT), "?");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(mad_parse__fields_and_back),
        cmocka_unit_test(mad_check__verdicts),
        cmocka_unit_test(mad_verdict_name__all_differ),
    };
    return cmocka_run_group_tests_name("mad", tests, NULL, NULL);
}
