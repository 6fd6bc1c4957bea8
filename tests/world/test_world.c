/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_world.c: worlds from seeds, and all worlds of a small bound.
 *
 *   test_world                      fixed seeds of seeds.txt, then groups of seeds, then the
 * odometer test_world --seed 0x17 [-v]     one seed; -v shows its last events test_world --from S
 * --seeds N   N seeds from S on
 *
 * Output is TAP, one line a group. A failure says how to replay it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum {
    GROUPS = 20,
    SEEDS_DEFAULT = 1500,
    LONG_FACTOR = 25, /* VERBENA_LONG=1 */
    ODOMETER_DIGITS = 6,
};

static struct world world;
static bool verbose, single; /* -v, --seed */

static void comment(const char *text)
{
    printf("# %s\n", text);
}

static bool run_seed(uint64_t seed)
{
    struct tape tape;
    tape_seed(&tape, seed);
    bool ok = world_run(&world, &tape, seed);
    if ((verbose && single) || !ok)
        world_print(&world);
    if (!ok) {
        comment(world.why);
        printf("# replay: test_world --seed 0x%llx\n", (unsigned long long)seed);
    }
    return ok;
}

/* A failed world prints its trace once in a group; the rest is only named. */
static bool run_group(uint64_t from, uint64_t n)
{
    unsigned failures = 0;
    struct tape tape;
    for (uint64_t seed = from; seed < from + n; seed++) {
        if (failures == 0) {
            failures += !run_seed(seed);
            continue;
        }
        tape_seed(&tape, seed);
        if (!world_run(&world, &tape, seed)) {
            printf("# also --seed 0x%llx: %s\n", (unsigned long long)seed, world.why);
            failures++;
        }
    }
    return failures == 0;
}

static bool run_list(const char *path)
{
    char line[200];
    bool ok = true;
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        printf("# cannot read %s\n", path);
        return false;
    }
    while (fgets(line, sizeof(line), f) != NULL) {
        char *end;
        unsigned long long seed = strtoull(line, &end, 0);
        if (end != line)
            ok = run_seed(seed) && ok;
    }
    fclose(f);
    return ok;
}

static bool run_tape(const char *path)
{
    static uint8_t bytes[1 << 20];
    struct tape tape;
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        printf("# cannot read %s\n", path);
        return false;
    }
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    tape_bytes(&tape, bytes, n);
    bool ok = world_run(&world, &tape, 1);
    world_print(&world);
    if (!ok)
        comment(world.why);
    return ok;
}

/* Each of the first packets of a small world is delivered, lost, doubled or delayed: all ways. */
static bool run_odometer(void)
{
    struct tape tape;
    tape_odometer(&tape, ODOMETER_DIGITS);
    do {
        if (!world_run(&world, &tape, 1)) {
            world_print(&world);
            comment(world.why);
            printf("# odometer:");
            for (unsigned i = 0; i < tape.used; i++)
                printf(" %u", tape.digit[i]);
            printf("\n");
            return false;
        }
    } while (tape_next(&tape));
    return true;
}

static void print_sums(void)
{
    printf("# steps %llu, packets %llu, faults %llu, virtual seconds %llu\n",
           (unsigned long long)world.steps, (unsigned long long)world.packets,
           (unsigned long long)world.faults, (unsigned long long)(world.virtual_ns / 1000000000));
    for (int i = 0; i < COUNTER_COUNT; i++)
        printf("# %-28s %12llu\n", counters_name((enum nic_counter)i),
               (unsigned long long)world.counter[i]);
    for (int i = 0; i <= WC_GENERAL_ERR; i++)
        if (world.status[i] != 0)
            printf("# completions with status %-2d    %12llu\n", i,
                   (unsigned long long)world.status[i]);
}

static int report(unsigned number, bool ok, const char *name)
{
    printf("%s %u - %s\n", ok ? "ok" : "not ok", number, name);
    fflush(stdout);
    return ok ? 0 : 1;
}

static int run_all(uint64_t from, uint64_t seeds, const char *list)
{
    int failed = 0;
    unsigned number = 0;
    char name[100];
    printf("1..%u\n", GROUPS + 1 + (list != NULL));
    if (list != NULL)
        failed += report(++number, run_list(list), "world__seeds_that_failed_once");
    failed += report(++number, run_odometer(), "world__every_fate_of_the_first_packets");
    for (unsigned i = 0; i < GROUPS; i++) {
        uint64_t first = from + seeds * i / GROUPS, end = from + seeds * (i + 1) / GROUPS;
        snprintf(name, sizeof(name), "world__seeds_0x%llx_to_0x%llx", (unsigned long long)first,
                 (unsigned long long)end);
        failed += report(++number, run_group(first, end - first), name);
    }
    if (verbose)
        print_sums();
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t from = 1, seeds = SEEDS_DEFAULT, one = 0;
    const char *list = NULL, *tape = NULL;
    if (getenv("VERBENA_LONG") != NULL)
        seeds *= LONG_FACTOR;
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "-v") == 0) {
            verbose = true;
        } else if (strcmp(argv[i], "--seed") == 0 && value) {
            one = strtoull(argv[++i], NULL, 0);
            single = true;
        } else if (strcmp(argv[i], "--tape") == 0 && value) {
            tape = argv[++i];
        } else if (strcmp(argv[i], "--seeds") == 0 && value) {
            seeds = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--from") == 0 && value) {
            from = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--list") == 0 && value) {
            list = argv[++i];
        } else {
            fprintf(stderr, "usage: test_world [--seed S | --tape FILE | --seeds N --from S --list "
                            "FILE] [-v]\n");
            return 64;
        }
    }
    if (tape != NULL) {
        printf("1..1\n");
        return report(1, run_tape(tape), "world__tape");
    }
    if (single) {
        printf("1..1\n");
        return report(1, run_seed(one), "world__seed");
    }
    return run_all(from, seeds, list) != 0;
}
