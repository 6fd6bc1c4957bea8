/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tape.c: the three backends of tape.h.
 */
#include "tape.h"

#include <assert.h>

void tape_seed(struct tape *t, uint64_t seed)
{
    *t = (struct tape){.kind = TAPE_SEED};
    rng_init(&t->rng, seed);
}

void tape_bytes(struct tape *t, const uint8_t *bytes, size_t n)
{
    *t = (struct tape){.kind = TAPE_BYTES, .bytes = bytes, .n = n};
}

void tape_odometer(struct tape *t, unsigned max_digits)
{
    assert(max_digits <= TAPE_MAX_DIGITS);
    *t = (struct tape){.kind = TAPE_ODOMETER, .max_digits = max_digits};
}

bool tape_next(struct tape *t)
{
    for (unsigned i = t->used; i > 0; i--) {
        if (++t->digit[i - 1] < t->base[i - 1]) {
            t->used = 0;
            return true;
        }
        t->digit[i - 1] = 0;
    }
    return false;
}

static uint32_t next_byte(struct tape *t)
{
    return t->at < t->n ? t->bytes[t->at++] : 0;
}

static uint32_t odometer_digit(struct tape *t, uint32_t n)
{
    if (n == 1 || t->used == t->max_digits)
        return 0;
    t->base[t->used] = n;
    return t->digit[t->used++] % n;
}

uint32_t tape_below(struct tape *t, uint32_t n)
{
    assert(n >= 1);
    switch (t->kind) {
    case TAPE_SEED:
        return rng_below(&t->rng, n);
    case TAPE_BYTES:
        if (n <= 256)
            return n == 1 ? 0 : next_byte(t) % n;
        if (n <= 65536)
            return (next_byte(t) | next_byte(t) << 8) % n;
        return (next_byte(t) | next_byte(t) << 8 | next_byte(t) << 16 | next_byte(t) << 24) % n;
    default:
        return odometer_digit(t, n);
    }
}

uint32_t tape_range(struct tape *t, uint32_t low, uint32_t high)
{
    assert(low <= high);
    return low + tape_below(t, high - low + 1);
}

bool tape_chance(struct tape *t, uint32_t ppm)
{
    if (ppm == 0)
        return false;
    if (t->kind == TAPE_SEED)
        return rng_below(&t->rng, 1000000) < ppm;
    if (t->kind == TAPE_ODOMETER)
        return odometer_digit(t, 2) == 1;
    /* One byte must do, so that inputs stay short; the rare is made less rare. */
    uint32_t yes = ppm / 3907 + 1;
    return next_byte(t) >= 256 - (yes < 256 ? yes : 255);
}

uint64_t tape_u64(struct tape *t)
{
    if (t->kind == TAPE_SEED)
        return rng_next(&t->rng);
    uint64_t high = tape_below(t, 65536);
    return (high << 16 | tape_below(t, 65536)) * 0x9e3779b97f4a7c15u;
}
