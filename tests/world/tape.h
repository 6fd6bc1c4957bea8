/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tape.h: the one source of chance of a test world. Four backends: a seed (any number of choices),
 * bytes of a fuzzer (zeros when they run out), an odometer that goes through all combinations of a
 * bounded number of choices, and a list of choices that another tape made. 0 is always the tame
 * choice: no fault, small, plain.
 */
#ifndef TESTS_WORLD_TAPE_H
#define TESTS_WORLD_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "choices.h"

enum { TAPE_MAX_DIGITS = 32 };

enum tape_kind {
    TAPE_SEED,
    TAPE_BYTES,
    TAPE_ODOMETER,
    TAPE_CHOICES,
};

struct tape {
    enum tape_kind kind;
    unsigned small;         /* 0: a world of the swarm; else which of small.c's worlds */
    struct choices *record; /* every choice is noted here; or NULL */
    struct rng rng;         /* SEED */
    const uint8_t *bytes;   /* BYTES */
    size_t n, at;           /* BYTES, CHOICES */
    /* ODOMETER: digit i counts from 0 to base i - 1; choices past max_digits are 0. */
    uint32_t digit[TAPE_MAX_DIGITS], base[TAPE_MAX_DIGITS];
    unsigned max_digits, used;
    const uint64_t *choice; /* CHOICES */
};

void tape_seed(struct tape *t, uint64_t seed);
void tape_bytes(struct tape *t, const uint8_t *bytes, size_t n);
/* Of one of the small worlds. */
void tape_odometer(struct tape *t, unsigned small, unsigned max_digits);
/* ODOMETER: back to the begin with the next combination; false: all were seen. */
bool tape_next(struct tape *t);
/* The list must stay as it is. */
void tape_choices(struct tape *t, const struct choices *c);

/* 0..n-1; n >= 1. */
uint32_t tape_below(struct tape *t, uint32_t n);
/* low..high, both included. */
uint32_t tape_range(struct tape *t, uint32_t low, uint32_t high);
/* True with this probability in parts per million. */
bool tape_chance(struct tape *t, uint32_t ppm);
uint64_t tape_u64(struct tape *t);

#endif
