/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bytes.c: big- and little-endian integers at every alignment, and that a put writes its own
 * bytes only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static const uint8_t sample[] = {0x00, 0x80, 0xff, 0x01, 0x7f, 0xfe, 0xa5, 0x5a, 0x81, 0x00,
                                 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80, 0x00};

static uint64_t big_endian(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v * 256 + p[i];
    return v;
}

static void bytes__get(void **state)
{
    (void)state;
    for (const uint8_t *p = sample; p + 8 <= sample + sizeof(sample); p++) {
        assert_true(get_be16(p) == big_endian(p, 2));
        assert_true(get_be24(p) == big_endian(p, 3));
        assert_true(get_be32(p) == big_endian(p, 4));
        assert_true(get_be64(p) == big_endian(p, 8));
        assert_true(get_le32(p) == __builtin_bswap32((uint32_t)big_endian(p, 4)));
    }
}

static void check_put(const uint8_t *written, const uint8_t *expected, size_t n)
{
    static const uint8_t guard[4] = {0xee, 0xee, 0xee, 0xee};
    assert_memory_equal(written, expected, n);
    assert_memory_equal(written - 4, guard, 4);
    assert_memory_equal(written + n, guard, 4);
}

static void bytes__put(void **state)
{
    (void)state;
    uint8_t out[24];
    for (const uint8_t *p = sample; p + 8 <= sample + sizeof(sample); p++) {
        for (size_t at = 4; at < 12; at++) {
            memset(out, 0xee, sizeof(out));
            put_be16(out + at, get_be16(p));
            check_put(out + at, p, 2);
            memset(out, 0xee, sizeof(out));
            put_be24(out + at, get_be24(p));
            check_put(out + at, p, 3);
            memset(out, 0xee, sizeof(out));
            put_be32(out + at, get_be32(p));
            check_put(out + at, p, 4);
            memset(out, 0xee, sizeof(out));
            put_be64(out + at, get_be64(p));
            check_put(out + at, p, 8);
            memset(out, 0xee, sizeof(out));
            put_le32(out + at, get_le32(p));
            check_put(out + at, p, 4);
        }
    }
}

/* A 24-bit field takes the low 24 bits: what is above does not spill into its neighbours. */
static void bytes__put_be24_cuts(void **state)
{
    (void)state;
    uint8_t out[24];
    static const uint8_t expected[3] = {0x12, 0x34, 0x56};
    memset(out, 0xee, sizeof(out));
    put_be24(out + 8, 0xff123456);
    check_put(out + 8, expected, 3);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes__get),
        cmocka_unit_test(bytes__put),
        cmocka_unit_test(bytes__put_be24_cuts),
    };
    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
