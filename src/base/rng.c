/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rng.c: xoshiro256** (Blackman and Vigna), its state filled by splitmix64 so that similar seeds
 * give unrelated streams and no seed gives the forbidden all-zero state.
 */
#include "base/rng.h"

#include <assert.h>

static uint64_t rotate_left(uint64_t x, unsigned k)
{
    return x << k | x >> (64 - k);
}

static uint64_t splitmix_next(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void rng_init(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix_next(&seed);
}

uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* The high half of a 32x32 product is uniform once the few low halves that would make some values
 * more likely are drawn again. */
uint32_t rng_below(struct rng *r, uint32_t n)
{
    uint32_t unfair;
    uint64_t product;

    assert(n >= 1);
    unfair = -n % n; /* 2^32 mod n */
    do {
        product = (rng_next(r) >> 32) * n;
    } while ((uint32_t)product < unfair);
    return (uint32_t)(product >> 32);
}
