/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tape.c: the backends of tape.h. Choices between one are none: they are neither recorded nor
 * replayed.
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

void tape_odometer(struct tape *t, unsigned small, unsigned max_digits)
{
    assert(small != 0 && max_digits <= TAPE_MAX_DIGITS);
    *t = (struct tape){.kind = TAPE_ODOMETER, .small = small, .max_digits = max_digits};
}

void tape_choices(struct tape *t, const struct choices *c)
{
    *t = (struct tape){.kind = TAPE_CHOICES, .small = c->small, .choice = c->value, .n = c->n};
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

static uint64_t next_choice(struct tape *t)
{
    return t->at < t->n ? t->choice[t->at++] : 0;
}

static uint32_t odometer_digit(struct tape *t, uint32_t n)
{
    if (t->used == t->max_digits)
        return 0;
    t->base[t->used] = n;
    return t->digit[t->used++] % n;
}

static uint32_t bytes_below(struct tape *t, uint32_t n)
{
    uint32_t v = next_byte(t);
    if (n > 256)
        v |= next_byte(t) << 8;
    if (n > 65536)
        v |= next_byte(t) << 16 | next_byte(t) << 24;
    return v % n;
}

static uint64_t note(struct tape *t, uint64_t value)
{
    if (t->record != NULL)
        choices_add(t->record, value);
    return value;
}

uint32_t tape_below(struct tape *t, uint32_t n)
{
    uint32_t v;
    assert(n >= 1);
    if (t->kind == TAPE_SEED)
        v = rng_below(&t->rng, n);
    else if (n == 1)
        v = 0;
    else if (t->kind == TAPE_BYTES)
        v = bytes_below(t, n);
    else if (t->kind == TAPE_ODOMETER)
        v = odometer_digit(t, n);
    else
        v = (uint32_t)(next_choice(t) % n);
    return n == 1 ? 0 : (uint32_t)note(t, v);
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
        return note(t, rng_below(&t->rng, 1000000) < ppm) != 0;
    if (t->kind == TAPE_ODOMETER)
        return note(t, odometer_digit(t, 2)) != 0;
    if (t->kind == TAPE_CHOICES)
        return note(t, next_choice(t) == 1) != 0;
    /* One byte must do, so that inputs stay short; the rare is made less rare. */
    uint32_t yes = ppm / 3907 + 1;
    return note(t, next_byte(t) >= 256 - (yes < 256 ? yes : 255)) != 0;
}

uint64_t tape_u64(struct tape *t)
{
    if (t->kind == TAPE_SEED)
        return note(t, rng_next(&t->rng));
    if (t->kind == TAPE_CHOICES)
        return note(t, next_choice(t));
    struct choices *record = t->record;
    t->record = NULL;
    uint64_t high = tape_below(t, 65536);
    uint64_t v = (high << 16 | tape_below(t, 65536)) * 0x9e3779b97f4a7c15u;
    t->record = record;
    return note(t, v);
}
