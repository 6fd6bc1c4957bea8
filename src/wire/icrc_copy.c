/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icrc_copy.c: copy and CRC-32 in one pass: each byte is loaded once, so that the sum costs nothing
 * where memory is the limit. ISA-L has no such function. Folding as for any carry-less CRC: four
 * accumulators of 64 bytes, each step multiplies by x^2048 modulo the polynomial and adds what is
 * loaded; what remains at the end goes through ISA-L. CPUs without VPCLMULQDQ copy, then sum.
 */
#include "wire/icrc.h"

#include <string.h>

#include <isa-l/crc.h>

#include "wire/icrc_tables.h"

enum {
    COPY_CHUNK_BYTES = 4096, /* what has just been copied stays in the first-level cache */
};

static uint32_t copy_then_sum(uint32_t state, uint8_t *dst, const uint8_t *src, size_t n)
{
    while (n > 0) {
        size_t chunk = n < COPY_CHUNK_BYTES ? n : COPY_CHUNK_BYTES;
        memmove(dst, src, chunk); /* memcpy of a bounded size becomes a slow instruction */
        /* Of the copy, not of src: what is sent is then what was summed, even if the program
         * writes to its buffer meanwhile. */
        state = crc32_gzip_refl(state, dst, chunk);
        dst += chunk;
        src += chunk;
        n -= chunk;
    }
    return state;
}

#ifdef __x86_64__

#include <immintrin.h>

enum {
    LANE_BYTES = 64,
    STRIDE_BYTES = 256,
};

#define FOLD __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul")))

FOLD static inline __m512i load_store(uint8_t *dst, const uint8_t *src)
{
    __m512i v = _mm512_loadu_si512(src);
    _mm512_storeu_si512(dst, v);
    return v;
}

/* a * (what k stands for) + d */
FOLD static inline __m512i fold(__m512i a, __m512i k, __m512i d)
{
    __m512i low = _mm512_clmulepi64_epi128(a, k, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(a, k, 0x11);
    return _mm512_ternarylogic_epi64(low, high, d, 0x96); /* xor of the three */
}

FOLD static inline __m128i fold_128(__m128i a, __m128i k, __m128i d)
{
    __m128i sum = _mm_xor_si128(_mm_clmulepi64_si128(a, k, 0x00), _mm_clmulepi64_si128(a, k, 0x11));
    return _mm_xor_si128(sum, d);
}

FOLD static inline __m128i factor(enum icrc_fold_by by)
{
    return _mm_loadu_si128((const __m128i *)(const void *)icrc_fold[by]);
}

/* The four quarters of a lane into one. */
FOLD static inline __m128i join(__m512i a)
{
    __m128i x = _mm512_extracti32x4_epi32(a, 3);
    x = fold_128(_mm512_extracti32x4_epi32(a, 2), factor(ICRC_FOLD_16), x);
    x = fold_128(_mm512_extracti32x4_epi32(a, 1), factor(ICRC_FOLD_32), x);
    return fold_128(_mm512_extracti32x4_epi32(a, 0), factor(ICRC_FOLD_48), x);
}

/* n >= STRIDE_BYTES. Four times the same in full: a loop keeps the accumulators in memory. */
FOLD static uint32_t copy_and_sum(uint32_t state, uint8_t *dst, const uint8_t *src, size_t n)
{
    const __m512i by_stride = _mm512_broadcast_i32x4(factor(ICRC_FOLD_256));
    const __m512i by_lane = _mm512_broadcast_i32x4(factor(ICRC_FOLD_64));
    /* A CRC register goes into the first bytes of the message; ours is kept inverted. */
    __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~state));
    __m512i a = _mm512_xor_si512(load_store(dst, src), start);
    __m512i b = load_store(dst + 64, src + 64);
    __m512i c = load_store(dst + 128, src + 128);
    __m512i d = load_store(dst + 192, src + 192);
    size_t left = n - STRIDE_BYTES;
    for (; left >= STRIDE_BYTES; left -= STRIDE_BYTES) {
        dst += STRIDE_BYTES;
        src += STRIDE_BYTES;
        a = fold(a, by_stride, load_store(dst, src));
        b = fold(b, by_stride, load_store(dst + 64, src + 64));
        c = fold(c, by_stride, load_store(dst + 128, src + 128));
        d = fold(d, by_stride, load_store(dst + 192, src + 192));
    }
    dst += STRIDE_BYTES;
    src += STRIDE_BYTES;
    a = fold(fold(fold(a, by_lane, b), by_lane, c), by_lane, d);
    for (; left >= LANE_BYTES; left -= LANE_BYTES) {
        a = fold(a, by_lane, load_store(dst, src));
        dst += LANE_BYTES;
        src += LANE_BYTES;
    }
    /* 16 bytes that have the same CRC as all before, then the rest. */
    uint8_t last[16 + LANE_BYTES];
    _mm_storeu_si128((__m128i *)(void *)last, join(a));
    if (left != 0) {
        memcpy(last + 16, src, left);
        memcpy(dst, last + 16, left);
    }
    return crc32_gzip_refl(UINT32_MAX, last, 16 + left);
}

/* Asks the CPU each time: the answer is kept by the compiler's library. */
static int can_fold(void)
{
    return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512vl");
}

uint32_t icrc_copy(uint32_t state, uint8_t *dst, const uint8_t *src, size_t n)
{
    return n >= STRIDE_BYTES && can_fold() ? copy_and_sum(state, dst, src, n)
                                           : copy_then_sum(state, dst, src, n);
}

#else

uint32_t icrc_copy(uint32_t state, uint8_t *dst, const uint8_t *src, size_t n)
{
    return copy_then_sum(state, dst, src, n);
}

#endif
