/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_shrink.c: the shrinker on failures whose smallest form is known, the text of choices, and
 * that a world replayed from its choices is the same world.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "shrink.h"
#include "small.h"

static bool sum_reaches_1000(void *context, const struct choices *c)
{
    uint64_t sum = 0;
    (void)context;
    for (size_t i = 0; i < c->n; i++)
        sum += c->value[i] % 1009;
    return sum >= 1000;
}

static bool has_7_after_5(void *context, const struct choices *c)
{
    bool five = false;
    (void)context;
    for (size_t i = 0; i < c->n; i++) {
        if (five && c->value[i] >= 7)
            return true;
        five = five || c->value[i] == 5;
    }
    return false;
}

/* Positions matter: nothing can be left out. */
static bool tenth_and_thirtieth(void *context, const struct choices *c)
{
    (void)context;
    return c->n > 30 && c->value[10] > 2 && c->value[30] == 1;
}

static bool always(void *context, const struct choices *c)
{
    (void)context;
    (void)c;
    return true;
}

/* Whatever is not the list itself passes. */
static bool only_itself(void *context, const struct choices *c)
{
    const struct choices *list = context;
    return c->n == list->n && memcmp(c->value, list->value, c->n * sizeof(c->value[0])) == 0;
}

static void shrink_run__known_minimum(void **state)
{
    static const struct {
        const char *name, *from, *to;
        bool (*fails)(void *context, const struct choices *c);
    } row[] = {
        {"nothing needed", "0x1: 3 4 5",                      "0x1:",                 always          },
        {"empty",          "0x1:",                            "0x1:",                 always          },
        {"one value",      "0x1: 0*500 12 1008 3 0*700 9",    "0x1: 1000",            sum_reaches_1000},
        {"two, in order",  "0x1: 1 2 5 0*40 3 5 7 200 8 8 8", "0x1: 5 7",             has_7_after_5   },
        {"first and last", "0x2: 5 0*1000 9",                 "0x2: 5 7",             has_7_after_5   },
        {"where they are", "0x1/3: 9*10 8 7*19 1 6*90",       "0x1/3: 0*10 3 0*19 1",
         tenth_and_thirtieth                                                                          },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct choices list;
        char text[200];
        choices_init(&list, false);
        assert_true(choices_parse(&list, row[i].from));
        struct shrink s = {.list = &list, .fails = row[i].fails, .max_tries = 10000};
        shrink_run(&s);
        choices_print(&list, text, sizeof(text));
        if (strcmp(text, row[i].to) != 0)
            fail_msg("%s: %s in %u tries", row[i].name, text, s.tries);
        choices_fini(&list);
    }
}

static void shrink_run__random_lists(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, 5);
    for (int i = 0; i < 20; i++) {
        struct choices list;
        choices_init(&list, false);
        for (int k = 0; k < 3000; k++)
            choices_add(&list, rng_below(&rng, 20));
        struct shrink s = {.list = &list, .fails = has_7_after_5, .max_tries = 10000};
        shrink_run(&s);
        assert_int_equal(list.n, 2);
        assert_int_equal(list.value[0], 5);
        assert_int_equal(list.value[1], 7);
        assert_true(s.tries < 300);
        choices_fini(&list);
    }
}

static void shrink_run__nothing_smaller(void **state)
{
    struct choices list, same;
    (void)state;
    choices_init(&list, false);
    choices_init(&same, false);
    assert_true(choices_parse(&list, "0x1: 3 1 4 1 5"));
    assert_true(choices_parse(&same, "0x1: 3 1 4 1 5"));
    struct shrink s = {.list = &list, .fails = only_itself, .context = &same, .max_tries = 10000};
    shrink_run(&s);
    assert_true(only_itself(&same, &list));
    choices_fini(&list);
    choices_fini(&same);
}

static void shrink_run__limit_on_tries(void **state)
{
    (void)state;
    for (unsigned max = 0; max < 60; max++) {
        struct choices list;
        choices_init(&list, false);
        assert_true(choices_parse(&list, "0x1: 1 2 5 0*40 3 5 9 200 8 8 8"));
        struct shrink s = {.list = &list, .fails = has_7_after_5, .max_tries = max};
        shrink_run(&s);
        assert_true(s.tries <= max);
        assert_true(has_7_after_5(NULL, &list));
        choices_fini(&list);
    }
}

static void choices_parse__valid(void **state)
{
    static const struct {
        const char *text, *again;
    } row[] = {
        {"0x17:",                     "0x17:"                    },
        {"23:\n",                     "0x17:"                    },
        {" 0x17/2: 1 0 0 0 2 ",       "0x17/2: 1 0*3 2"          },
        {"0x1: 0*3 0 4*2",            "0x1: 0*4 4 4"             },
        {"0xffffffffffffffff: 99999", "0xffffffffffffffff: 99999"},
        {"0: 0xffffffffffffffff",     "0x0: 0xffffffffffffffff"  },
        {"1: 0*0",                    "0x1:"                     },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct choices c;
        char text[100], cut[5] = "####";
        choices_init(&c, false);
        assert_true(choices_parse(&c, row[i].text));
        assert_int_equal(choices_print(&c, text, sizeof(text)), strlen(row[i].again));
        assert_string_equal(text, row[i].again);
        assert_int_equal(choices_print(&c, NULL, 0), strlen(row[i].again));
        choices_print(&c, cut, sizeof(cut));
        assert_memory_equal(cut, row[i].again, sizeof(cut) - 1);
        assert_int_equal(cut[4], 0);
        choices_fini(&c);
    }
}

static void choices_parse__invalid(void **state)
{
    static const char *const row[] = {
        "",
        ":",
        "0x17",
        "0x17 1",
        "x: 1",
        "-1: 1",
        "0x17/: 1",
        "0x17/a: 1",
        "0x17/2 1",
        "0x17/-1:",
        "0x17/4294967296:",
        "1: a",
        "1: 1a",
        "1: -1",
        "1: 1*",
        "1: 1*a",
        "1: *3",
        "1: 1,2",
        "1: 0*1048577",
        "1: 1 0*1048576",
        "1: 1*-1",
        "1: 1 :",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct choices c;
        choices_init(&c, false);
        if (choices_parse(&c, row[i]))
            fail_msg("taken: %s", row[i]);
        choices_fini(&c);
    }
}

static struct world world, again;

static void same_world(const struct tape *start, uint64_t seed)
{
    struct tape tape = *start;
    struct choices list;
    choices_init(&list, false);
    tape.record = &list;
    list.seed = seed;
    list.small = start->small;
    memset(&world, 0, sizeof(world));
    memset(&again, 0, sizeof(again));
    world_run(&world, &tape, seed);
    tape_choices(&tape, &list);
    world_run(&again, &tape, seed);
    assert_int_equal(world.now_ns, again.now_ns);
    assert_int_equal(world.steps, again.steps);
    assert_int_equal(world.packets, again.packets);
    assert_int_equal(world.faults, again.faults);
    assert_memory_equal(world.counter, again.counter, sizeof(world.counter));
    assert_memory_equal(&world.opt, &again.opt, sizeof(world.opt));
    choices_fini(&list);
}

static void tape_choices__same_world_as_of_a_seed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 60; seed++) {
        struct tape tape;
        tape_seed(&tape, seed);
        same_world(&tape, seed);
    }
}

static void tape_choices__same_world_as_of_bytes(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, 9);
    for (int i = 0; i < 30; i++) {
        struct tape tape;
        uint8_t bytes[2000];
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)rng_below(&rng, 256);
        tape_bytes(&tape, bytes, rng_below(&rng, sizeof(bytes)));
        same_world(&tape, 1);
    }
}

static void tape_choices__same_world_as_of_the_odometer(void **state)
{
    (void)state;
    for (unsigned small = 1; small <= SMALL_WORLDS; small++) {
        struct tape tape;
        tape_odometer(&tape, small, 3);
        unsigned worlds = 0;
        do {
            struct tape start = tape;
            same_world(&start, 1);
            world_run(&world, &tape, 1);
            worlds++;
        } while (tape_next(&tape));
        assert_true(worlds >= 16 && worlds <= 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shrink_run__known_minimum),
        cmocka_unit_test(shrink_run__random_lists),
        cmocka_unit_test(shrink_run__nothing_smaller),
        cmocka_unit_test(shrink_run__limit_on_tries),
        cmocka_unit_test(choices_parse__valid),
        cmocka_unit_test(choices_parse__invalid),
        cmocka_unit_test(tape_choices__same_world_as_of_a_seed),
        cmocka_unit_test(tape_choices__same_world_as_of_bytes),
        cmocka_unit_test(tape_choices__same_world_as_of_the_odometer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
