/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_icrc_copy.c: the fused copy against ISA-L's CRC-32 and memcpy: every length up to several
 * strides and around packet sizes, alignments of both sides, and nothing written beside it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <isa-l/crc.h>

#include "wire/icrc.h"

enum {
    MAX_BYTES = 4200,
    EVERY_LENGTH_TO = 1400,
    ALIGNMENTS = 67, /* all of a cache line, and a little */
    GUARD = 0xa5,
};

static uint8_t src[MAX_BYTES + 2 * ALIGNMENTS], dst[MAX_BYTES + 3 * ALIGNMENTS];

static int fill(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < sizeof(src); i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        src[i] = (uint8_t)(x >> 24);
    }
    return 0;
}

/* Is it what ISA-L and memcpy do, and no byte more? */
static void check(uint32_t start, size_t from, size_t to, size_t n)
{
    memset(dst, GUARD, sizeof(dst));
    uint32_t crc = icrc_copy(start, dst + to, src + from, n);
    uint32_t want = n == 0 ? start : crc32_gzip_refl(start, src + from, n);
    if (crc != want || memcmp(dst + to, src + from, n) != 0)
        fail_msg("%zu bytes from %zu to %zu: %08x, not %08x", n, from, to, crc, want);
    for (size_t i = 0; i < ALIGNMENTS; i++) {
        if (i < to)
            assert_int_equal(dst[to - 1 - i], GUARD);
        assert_int_equal(dst[to + n + i], GUARD);
    }
}

static void icrc_copy__agrees_for_each_length(void **state)
{
    (void)state;
    for (size_t n = 0; n <= EVERY_LENGTH_TO; n++)
        check(0x1234567u * (uint32_t)n, n % 7, n % 11, n);
    for (size_t n = 2000; n <= 2100; n++)
        check((uint32_t)n, 1, 0, n);
    for (size_t n = 4000; n <= MAX_BYTES; n++)
        check(UINT32_MAX - (uint32_t)n, 0, 3, n);
}

static void icrc_copy__agrees_for_each_alignment(void **state)
{
    (void)state;
    static const size_t length[] = {1, 15, 64, 255, 256, 257, 320, 511, 512, 1024, 1087, 4096};
    for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++)
        for (size_t a = 0; a < ALIGNMENTS; a++) {
            check(0, a, 0, length[i]);
            check(UINT32_MAX, 0, a, length[i]);
            check(0x80000000u, a, ALIGNMENTS - 1 - a, length[i]);
        }
}

static void icrc_copy__goes_on_where_the_last_ended(void **state)
{
    (void)state;
    uint32_t whole = crc32_gzip_refl(0, src, MAX_BYTES);
    for (size_t cut = 0; cut <= MAX_BYTES; cut += 13) {
        uint32_t crc = icrc_copy(0, dst, src, cut);
        assert_int_equal(icrc_copy(crc, dst + cut, src + cut, MAX_BYTES - cut), whole);
    }
}

static void icrc_copy__each_flipped_bit_shows(void **state)
{
    (void)state;
    enum { BYTES = 600 };
    uint32_t right = icrc_copy(0, dst, src, BYTES);
    for (size_t bit = 0; bit < 8 * BYTES; bit++) {
        src[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(icrc_copy(0, dst, src, BYTES), right);
        src[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(icrc_copy__agrees_for_each_length),
        cmocka_unit_test(icrc_copy__agrees_for_each_alignment),
        cmocka_unit_test(icrc_copy__goes_on_where_the_last_ended),
        cmocka_unit_test(icrc_copy__each_flipped_bit_shows),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
