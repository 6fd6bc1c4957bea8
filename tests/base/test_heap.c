/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_heap.c: order by time, then by insertion; moving and taking out from anywhere, compared with
 * a plain list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/rng.h"

enum { NODES = 200 };

static int setup(void **state)
{
    static struct heap h;

    heap_init(&h);
    *state = &h;
    return heap_grow(&h, NODES);
}

static int teardown(void **state)
{
    heap_fini(*state);
    return 0;
}

static void heap_first__empty(void **state)
{
    struct heap *h = *state;
    struct heap_node n = {0};

    assert_null(heap_first(h));
    heap_remove(h, &n); /* not in it: nothing happens */
    assert_null(heap_first(h));
}

static void heap_put__ties_in_order_of_insertion(void **state)
{
    struct heap *h = *state;
    struct heap_node n[50] = {0};

    for (int i = 0; i < 50; i++)
        heap_put(h, &n[i], 5);
    heap_put(h, &n[0], 5); /* put again: now the youngest */
    for (int i = 1; i <= 50; i++) {
        struct heap_node *first = heap_first(h);

        assert_ptr_equal(first, &n[i % 50]);
        heap_remove(h, first);
        assert_false(heap_holds(first));
    }
    assert_null(heap_first(h));
}

static void heap_put__moves_both_ways(void **state)
{
    struct heap *h = *state;
    struct heap_node n[3] = {0};

    heap_put(h, &n[0], 10);
    heap_put(h, &n[1], 20);
    heap_put(h, &n[2], 30);
    heap_put(h, &n[2], 1);
    assert_ptr_equal(heap_first(h), &n[2]);
    heap_put(h, &n[2], UINT64_MAX);
    assert_ptr_equal(heap_first(h), &n[0]);
    heap_remove(h, &n[0]);
    assert_ptr_equal(heap_first(h), &n[1]);
    heap_remove(h, &n[1]);
    assert_ptr_equal(heap_first(h), &n[2]);
    heap_remove(h, &n[2]);
}

static const struct heap_node *slow_first(const struct heap_node *n)
{
    const struct heap_node *best = NULL;

    for (int i = 0; i < NODES; i++) {
        if (!heap_holds(&n[i]))
            continue;
        if (best == NULL || n[i].time_ns < best->time_ns ||
            (n[i].time_ns == best->time_ns && n[i].seq < best->seq))
            best = &n[i];
    }
    return best;
}

static void heap__agrees_with_a_list(void **state)
{
    struct heap *h = *state;
    struct heap_node n[NODES] = {0};
    struct rng r;

    rng_init(&r, 1);
    for (int i = 0; i < 20000; i++) {
        struct heap_node *x = &n[rng_below(&r, NODES)];

        if (rng_below(&r, 3) == 0)
            heap_remove(h, x);
        else
            heap_put(h, x, rng_below(&r, 50));
        assert_ptr_equal(heap_first(h), slow_first(n));
    }
    while (heap_first(h) != NULL) {
        assert_ptr_equal(heap_first(h), slow_first(n));
        heap_remove(h, heap_first(h));
    }
}

static void heap_grow__keeps_what_is_in(void **state)
{
    struct heap *h = *state;
    struct heap_node n[3] = {0};

    for (unsigned i = 0; i < 3; i++)
        heap_put(h, &n[i], 3 - i);
    assert_int_equal(heap_grow(h, 5000), 0);
    assert_true(h->capacity >= 5000);
    assert_int_equal(heap_grow(h, 1), 0); /* never shrinks */
    assert_true(h->capacity >= 5000);
    for (int i = 2; i >= 0; i--) {
        assert_ptr_equal(heap_first(h), &n[i]);
        heap_remove(h, &n[i]);
    }
}

static void heap_grow__impossible_size(void **state)
{
    struct heap *h = *state;

    assert_int_not_equal(heap_grow(h, SIZE_MAX), 0);
    assert_int_not_equal(heap_grow(h, SIZE_MAX / 2), 0);
    assert_true(h->capacity >= NODES);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        CASE(heap_first__empty),           CASE(heap_put__ties_in_order_of_insertion),
        CASE(heap_put__moves_both_ways),   CASE(heap__agrees_with_a_list),
        CASE(heap_grow__keeps_what_is_in), CASE(heap_grow__impossible_size),
    };

    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
