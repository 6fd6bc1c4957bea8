/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rng.h: seeded generator (xoshiro256**), state in the caller's hands. For identifiers that should
 * not repeat and for tests; unpredictability comes from the seed that the host draws from the
 * operating system.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

/* Any seed is good, 0 too. */
void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
/* Uniform in 0..n-1; n >= 1. */
uint32_t rng_below(struct rng *r, uint32_t n);

#endif
