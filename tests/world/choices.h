/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * choices.h: what a tape was asked for and what it said, as a list that can be replayed, made
 * smaller and written down. After its end every choice is 0, the tame one.
 *
 * As text: `0x17: 3 0*12 5`, the seed that fills memory and keys, then the choices; `0*12` are
 * twelve zeros. `0x17/2: ...` is the second of the small worlds (small.c).
 */
#ifndef TESTS_WORLD_CHOICES_H
#define TESTS_WORLD_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_CHOICES = 1 << 20 };

struct choices {
    uint64_t seed;
    unsigned small; /* 0: a world of the swarm */
    uint64_t *value;
    size_t n, max; /* what comes after max is forgotten */
};

/* Room for MAX_CHOICES; shared: with child processes. */
void choices_init(struct choices *c, bool shared);
void choices_fini(struct choices *c);
void choices_add(struct choices *c, uint64_t value);
/* Like snprintf: bytes that it takes, cut at cap. */
size_t choices_print(const struct choices *c, char *out, size_t cap);
/* false: not such a text; c is undefined then. */
bool choices_parse(struct choices *c, const char *text);

#endif
