/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.c: binary min-heap of pointers, 1-based, each node knowing its place so that it can be moved
 * or taken out from the middle.
 */
#include "base/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void heap_init(struct heap *h)
{
    *h = (struct heap){0};
}

void heap_fini(struct heap *h)
{
    free(h->slot);
    *h = (struct heap){0};
}

int heap_grow(struct heap *h, size_t n)
{
    struct heap_node **slot;
    size_t capacity = h->capacity;

    if (n <= capacity)
        return 0;
    if (n >= SIZE_MAX / sizeof(*slot) / 2)
        return -ENOMEM;
    capacity = capacity < 16 ? 16 : capacity;
    while (capacity < n)
        capacity *= 2;
    slot = realloc(h->slot, (capacity + 1) * sizeof(*slot));
    if (slot == NULL)
        return -ENOMEM;
    h->slot = slot;
    h->capacity = capacity;
    return 0;
}

static bool node_before(const struct heap_node *a, const struct heap_node *b)
{
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    return a->seq < b->seq;
}

static void place(struct heap *h, struct heap_node *n, size_t i)
{
    h->slot[i] = n;
    n->index = i;
}

/* Puts n where it belongs on the way from i to the root. */
static void sift_up(struct heap *h, struct heap_node *n, size_t i)
{
    while (i > 1 && node_before(n, h->slot[i / 2])) {
        place(h, h->slot[i / 2], i);
        i /= 2;
    }
    place(h, n, i);
}

/* Puts n where it belongs on the way from i to a leaf. */
static void sift_down(struct heap *h, struct heap_node *n, size_t i)
{
    for (;;) {
        size_t child = 2 * i;

        if (child > h->count)
            break;
        if (child < h->count && node_before(h->slot[child + 1], h->slot[child]))
            child++;
        if (!node_before(h->slot[child], n))
            break;
        place(h, h->slot[child], i);
        i = child;
    }
    place(h, n, i);
}

static void sift(struct heap *h, struct heap_node *n, size_t i)
{
    if (i > 1 && node_before(n, h->slot[i / 2]))
        sift_up(h, n, i);
    else
        sift_down(h, n, i);
}

void heap_put(struct heap *h, struct heap_node *n, uint64_t time_ns)
{
    n->time_ns = time_ns;
    n->seq = h->next_seq++;
    if (n->index == 0) {
        assert(h->count < h->capacity);
        sift_up(h, n, ++h->count);
    } else {
        assert(h->slot[n->index] == n);
        sift(h, n, n->index);
    }
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    size_t i = n->index;
    struct heap_node *last;

    if (i == 0)
        return;
    assert(i <= h->count && h->slot[i] == n);
    last = h->slot[h->count--];
    n->index = 0;
    if (last != n)
        sift(h, last, i);
}

struct heap_node *heap_first(const struct heap *h)
{
    return h->count == 0 ? NULL : h->slot[1];
}
