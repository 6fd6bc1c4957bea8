/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.h: stable min-heap of deadlines by (time, insertion order). Nodes live in their owners; the
 * heap holds pointers and its capacity is reserved before nodes are put in, so that heap_put cannot
 * fail.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    uint64_t time_ns;
    uint64_t seq; /* written by heap_put: ties are served in order of insertion */
    size_t index; /* 1-based place in the heap; 0: not in it */
};

struct heap {
    struct heap_node **slot; /* slot[1..count] */
    size_t count;
    size_t capacity;
    uint64_t next_seq;
};

void heap_init(struct heap *h);
void heap_fini(struct heap *h);
/* Room for n nodes in all; 0 or -ENOMEM. */
int heap_grow(struct heap *h, size_t n);
/* Put in, or move to a new time when already in. */
void heap_put(struct heap *h, struct heap_node *n, uint64_t time_ns);
void heap_remove(struct heap *h, struct heap_node *n);
/* Earliest node or NULL. */
struct heap_node *heap_first(const struct heap *h);

static inline bool heap_holds(const struct heap_node *n)
{
    return n->index != 0;
}

#endif
