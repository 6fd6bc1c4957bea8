/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_batches.h: the times that equal batches of a case's measured messages took, one after the
 * other: how much they vary tells how sure the throughput is. The first begins when the messages
 * before are over, so that none has their wait in it. A rest that makes no batch is in none, and
 * fewer messages than batches make none at all.
 */
#ifndef LAB_LAB_BATCHES_H
#define LAB_LAB_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

enum { LAB_BATCHES = 16 };

struct lab_batches {
    uint64_t since_ns; /* when the last one ended, or the first began; 0: not yet */
    unsigned count;
    uint64_t ns[LAB_BATCHES];
};

/* Is one over, or does the first begin, when so many of the messages are over? */
static inline bool lab_batches_due(uint64_t over, uint64_t messages)
{
    uint64_t each = messages / LAB_BATCHES;
    return each > 0 && over % each == 0 && over / each <= LAB_BATCHES;
}

/* It is. */
static inline void lab_batches_end(struct lab_batches *b, uint64_t now_ns)
{
    if (b->since_ns != 0 && b->count < LAB_BATCHES)
        b->ns[b->count++] = now_ns - b->since_ns;
    b->since_ns = now_ns;
}

/* Those of another queue pair of the same case: what both have in common stays, what each has of
 * its own evens out. */
static inline void lab_batches_add(struct lab_batches *b, const struct lab_batches *other)
{
    b->count = other->count;
    for (unsigned i = 0; i < other->count; i++)
        b->ns[i] += other->ns[i];
}

/* Where nobody knows beforehand how many messages there will be, one is over when another *each
 * are, at first 1: of two that are too many becomes one. */
static inline void lab_batches_grow(struct lab_batches *b, uint64_t *each, uint64_t now_ns)
{
    lab_batches_end(b, now_ns);
    if (b->count < LAB_BATCHES)
        return;
    b->count = LAB_BATCHES / 2;
    for (unsigned i = 0; i < b->count; i++)
        b->ns[i] = b->ns[2 * i] + b->ns[2 * i + 1];
    *each *= 2;
}

#endif
