/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_world.c: worlds from seeds, and all worlds of a small bound. Output is TAP, one line a
 * group; test_world --help tells the rest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "small.h"
#include "sums.h"

enum {
    GROUPS = 20,
    SEEDS_DEFAULT = 1500,
    PACED_PARTS = 5,    /* one more world of so many has rate limits, */
    MARKED_PARTS = 5,   /* and one congestion control */
    LONG_FACTOR = 25,   /* VERBENA_LONG=1 */
    DIGITS_DEFAULT = 4, /* of the -O2 binary 7: scripts/check.py */
    LONG_DIGITS = 2,    /* more */
    MAX_INPUT_BYTES = 8 << 20,
};

static const char usage[] =
    "usage: test_world [-v] [--no-shrink] [what to run]\n"
    "  --list FILE            the seeds in FILE\n"
    "  --from S --seeds N     N seeds from S on, in groups; after the small worlds\n"
    "  --json                 only the seeds; what happened as one line of JSON\n"
    "  --digits N             all fates of the first N packets in each small world\n"
    "  --seed S               one seed; those from 0x8000000000000000 on draw rate limits, too,\n"
    "                         from 0x4000000000000000 on congestion control\n"
    "  --tape FILE            a tape that was written here, or an input of fuzz_world\n"
    "  --choices TEXT         a tape as it is printed\n"
    "A world that fails is run again with fewer choices, until nothing smaller is found that "
    "fails\n"
    "in the same way; --no-shrink leaves that out. Tapes go to the folder that VERBENA_TAPES "
    "names,\n"
    "or to the working one. -v shows the last events of a single world, or the sums of many.\n";

static struct world world;
static bool verbose, single, shrinks = true;

static void comment(const char *text)
{
    printf("# %s\n", text);
}

/* All about the first world that fails; of the others only the name. */
static void report_world(const struct tape *start, uint64_t seed, const char *name, const char *why,
                         const char *replay)
{
    static bool told;
    comment(why);
    printf("# replay: test_world %s\n", replay);
    if (!told)
        failure_report(&world, start, seed, name, shrinks);
    told = true;
}

static bool run_tape(const struct tape *start, uint64_t seed, const char *name, const char *replay)
{
    struct tape tape = *start;
    if (world_run(&world, &tape, seed)) {
        if (verbose && single)
            world_print(&world);
        return true;
    }
    report_world(start, seed, name, world.why, replay);
    return false;
}

static bool run_seed(uint64_t seed)
{
    struct tape tape;
    char name[40], replay[40];
    tape_seed(&tape, seed);
    failure_watch_seed(seed);
    snprintf(name, sizeof(name), "world-0x%llx", (unsigned long long)seed);
    snprintf(replay, sizeof(replay), "--seed 0x%llx", (unsigned long long)seed);
    return run_tape(&tape, seed, name, replay);
}

/* The same in a child, for it may be deadly. */
static bool run_alone(const struct tape *start, uint64_t seed, const char *name, const char *replay)
{
    struct verdict v;
    failure_probe(&world, start, seed, &v);
    if (!v.failed)
        return run_tape(start, seed, name, replay);
    report_world(start, seed, name, v.why, replay);
    return false;
}

static bool run_group(uint64_t from, uint64_t n)
{
    bool ok = true;
    for (uint64_t seed = from; seed < from + n; seed++)
        ok = run_seed(seed) && ok;
    return ok;
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

static bool run_choices(const char *text, const char *name, const char *replay)
{
    struct choices list;
    struct tape tape;
    choices_init(&list, false);
    bool ok = choices_parse(&list, text) && list.small <= SMALL_WORLDS;
    if (!ok) {
        comment("these are no choices");
    } else {
        tape_choices(&tape, &list);
        ok = run_alone(&tape, list.seed, name, replay);
    }
    choices_fini(&list);
    return ok;
}

static bool run_file(const char *path)
{
    static char bytes[MAX_INPUT_BYTES + 1];
    static const char head[] = "choices ";
    const char *base = strrchr(path, '/');
    char name[100], replay[500];
    struct tape tape;
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        printf("# cannot read %s\n", path);
        return false;
    }
    size_t n = fread(bytes, 1, MAX_INPUT_BYTES, f);
    fclose(f);
    bytes[n] = '\0';
    snprintf(name, sizeof(name), "smaller-%.80s", base == NULL ? path : base + 1);
    snprintf(replay, sizeof(replay), "--tape %s", path);
    if (strncmp(bytes, head, strlen(head)) == 0)
        return run_choices(bytes + strlen(head), name, replay);
    tape_bytes(&tape, (uint8_t *)bytes, n);
    return run_alone(&tape, 1, name, replay);
}

/* Each of the first packets of a small world is delivered, lost, doubled or late: all ways. */
static bool run_small(unsigned small, unsigned digits, unsigned *worlds)
{
    struct tape tape;
    bool ok = true;
    tape_odometer(&tape, small, digits);
    *worlds = 0;
    failure_watch_seed(1);
    do {
        struct tape start = tape;
        char replay[200], *at = replay + sprintf(replay, "--choices '0x1/%u:", small);
        ++*worlds;
        if (world_run(&world, &tape, 1))
            continue;
        for (unsigned i = 0; i < tape.used; i++)
            at += sprintf(at, " %u", tape.digit[i]);
        sprintf(at, "'");
        report_world(&start, 1, small_name(small), world.why, replay);
        ok = false;
    } while (ok && tape_next(&tape));
    return ok;
}

static int report(unsigned number, bool ok, const char *name)
{
    printf("%s %u - %s\n", ok ? "ok" : "not ok", number, name);
    fflush(stdout);
    return ok ? 0 : 1;
}

static int run_all(uint64_t from, uint64_t seeds, unsigned digits, const char *list)
{
    int failed = 0;
    unsigned number = 0, total = 0;
    char name[100];
    printf("1..%u\n", GROUPS + 2 + SMALL_WORLDS + (list != NULL));
    if (list != NULL)
        failed += report(++number, run_list(list), "world__seeds_that_failed_once");
    for (unsigned small = 1; small <= SMALL_WORLDS; small++) {
        unsigned worlds;
        snprintf(name, sizeof(name), "world__every_fate_%s", small_name(small));
        bool ok = run_small(small, digits, &worlds);
        printf("# %s: %u worlds\n", small_name(small), worlds);
        failed += report(++number, ok, name);
        total += worlds;
    }
    printf("# %u small worlds, then %llu seeds from 0x%llx on\n", total, (unsigned long long)seeds,
           (unsigned long long)from);
    for (unsigned i = 0; i < GROUPS; i++) {
        uint64_t first = from + seeds * i / GROUPS, end = from + seeds * (i + 1) / GROUPS;
        snprintf(name, sizeof(name), "world__seeds_0x%llx_to_0x%llx", (unsigned long long)first,
                 (unsigned long long)end);
        failed += report(++number, run_group(first, end - first), name);
    }
    bool ok = run_group(from | PACED_SEEDS, seeds / PACED_PARTS);
    if (ok && seeds >= SEEDS_DEFAULT && (world.paced_packets == 0 || world.paced_waits == 0)) {
        comment("nothing ever waited for a rate limit");
        ok = false;
    }
    failed += report(++number, ok, "world__with_rate_limits");
    ok = run_group(from | MARKED_SEEDS, seeds / MARKED_PARTS);
    if (ok && seeds >= SEEDS_DEFAULT &&
        (world.cnps == 0 || world.slowed == 0 || world.counter[COUNTER_rp_rtt_handled] == 0 ||
         world.counter[COUNTER_rp_slowed] == 0 || world.counter[COUNTER_rp_recovered] == 0)) {
        comment("nothing was ever slowed down by a CNP, or by a round trip");
        ok = false;
    }
    failed += report(++number, ok, "world__with_congestion_control");
    if (verbose)
        sums_print(&world);
    return failed;
}

/* For scripts/worlds.py: failures are only named. */
static int run_json(uint64_t from, uint64_t seeds)
{
    bool ok = true;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        struct tape tape;
        tape_seed(&tape, seed);
        failure_watch_seed(seed);
        if (!world_run(&world, &tape, seed)) {
            sums_failed(seed, world.why_kind, world.why);
            ok = false;
        }
    }
    sums_json(&world, seeds);
    return ok ? 0 : 1;
}

static int run_single(const char *seed, const char *tape, const char *choices)
{
    char name[60], replay[60];
    struct tape start;
    single = true;
    printf("1..1\n");
    if (tape != NULL)
        return report(1, run_file(tape), "world__tape");
    if (choices != NULL)
        return report(1, run_choices(choices, "smaller", "--choices ..."), "world__choices");
    uint64_t number = strtoull(seed, NULL, 0);
    tape_seed(&start, number);
    snprintf(name, sizeof(name), "world-0x%llx", (unsigned long long)number);
    snprintf(replay, sizeof(replay), "--seed 0x%llx", (unsigned long long)number);
    return report(1, run_alone(&start, number, name, replay), "world__seed");
}

int main(int argc, char **argv)
{
    const char *from = "1", *seeds = NULL, *list = NULL, *seed = NULL, *tape = NULL;
    const char *choices = NULL, *digits = NULL;
    bool json = false;
    const struct {
        const char *name, **value;
    } options[] = {
        {"--seed",    &seed   },
        {"--tape",    &tape   },
        {"--choices", &choices},
        {"--seeds",   &seeds  },
        {"--from",    &from   },
        {"--list",    &list   },
        {"--digits",  &digits },
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < sizeof(options) / sizeof(options[0]) && strcmp(argv[i], options[k].name) != 0)
            k++;
        if (k < sizeof(options) / sizeof(options[0]) && i + 1 < argc) {
            *options[k].value = argv[++i];
        } else if (strcmp(argv[i], "-v") == 0) {
            verbose = true;
        } else if (strcmp(argv[i], "--no-shrink") == 0) {
            shrinks = false;
        } else if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else {
            fputs(usage, stderr);
            return strcmp(argv[i], "--help") == 0 ? 0 : 64;
        }
    }
    if (tape != NULL || seed != NULL || choices != NULL)
        return run_single(seed, tape, choices);
    failure_watch(argv[0], shrinks && !json);
    bool more = getenv("VERBENA_LONG") != NULL;
    uint64_t n = SEEDS_DEFAULT * (more ? LONG_FACTOR : 1);
    unsigned long d = DIGITS_DEFAULT + (more ? LONG_DIGITS : 0);
    if (seeds != NULL)
        n = strtoull(seeds, NULL, 0);
    if (json)
        return run_json(strtoull(from, NULL, 0), n);
    if (digits != NULL)
        d = strtoul(digits, NULL, 0);
    return run_all(strtoull(from, NULL, 0), n, d < TAPE_MAX_DIGITS ? (unsigned)d : TAPE_MAX_DIGITS,
                   list) != 0;
}
