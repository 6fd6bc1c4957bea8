/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm_world.c: worlds from seeds. Output is TAP, one line a group; a world that fails prints
 * the line that replays it: test_cm_world --seed 0x17 (-v: all that was said and done).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_world.h"

enum { GROUPS = 10, SEEDS = 3000, LONG_FACTOR = 20 };

static struct cm_world world;
static unsigned long established, xrc, rejected, unreachable, crashes;

static bool run_seed(uint64_t seed)
{
    struct tape tape;
    tape_seed(&tape, seed);
    if (cm_world_run(&world, &tape, seed)) {
        established += world.established_count;
        xrc += world.xrc_count;
        rejected += world.rejected_count;
        unreachable += world.unreachable_count;
        crashes += world.crash_count;
        return true;
    }
    printf("# %s\n# replay: test_cm_world --seed 0x%llx\n", world.why, (unsigned long long)seed);
    return false;
}

static int report(unsigned number, bool ok, const char *name)
{
    printf("%s %u - %s\n", ok ? "ok" : "not ok", number, name);
    fflush(stdout);
    return ok ? 0 : 1;
}

/* A world in which nothing of a kind ever happens tests nothing of it. */
static bool all_kinds(void)
{
    printf("# established %lu (XRC %lu), rejected %lu, unreachable %lu, crashes %lu\n", established,
           xrc, rejected, unreachable, crashes);
    return established > 100 && xrc > 100 && rejected > 100 && unreachable > 10 && crashes > 100;
}

static int run_all(uint64_t from, uint64_t seeds)
{
    int failed = 0;
    char name[80];
    printf("1..%d\n", GROUPS + 1);
    for (unsigned i = 0; i < GROUPS; i++) {
        uint64_t first = from + seeds * i / GROUPS, end = from + seeds * (i + 1) / GROUPS;
        bool ok = true;
        for (uint64_t seed = first; seed < end && ok; seed++)
            ok = run_seed(seed);
        snprintf(name, sizeof(name), "cm_world__seeds_0x%llx_to_0x%llx", (unsigned long long)first,
                 (unsigned long long)end);
        failed += report(i + 1, ok, name);
    }
    failed += report(GROUPS + 1, failed > 0 || all_kinds(), "cm_world__all_kinds_of_ends");
    return failed != 0;
}

int main(int argc, char **argv)
{
    uint64_t from = 1, seeds = SEEDS * (getenv("VERBENA_LONG") != NULL ? LONG_FACTOR : 1ull);
    const char *seed = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            world.trace = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = argv[++i];
        else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
            seeds = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
            from = strtoull(argv[++i], NULL, 0);
        else
            return 64;
    }
    if (seed == NULL)
        return run_all(from, seeds);
    printf("1..1\n");
    return report(1, run_seed(strtoull(seed, NULL, 0)), "cm_world__seed");
}
