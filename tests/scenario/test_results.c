/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_results.c: the files of a run, to the letter.
 */
#include "scenario/results.h"

#include "scenario/trace_file.h"

#include "bench.h"

static char text[65536];

static const char *content(const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "out/%s", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    (void)unlink(path);
    return text;
}

static void run_text(const char *yaml, enum fabric_state want)
{
    struct scenario s;
    struct scenario_error e;
    struct results r;
    struct fabric *f;
    scenario_init(&s);
    if (!scenario_read_yaml(&s, bench_file(yaml), NULL, 0, &e))
        fail_msg("%s", e.text);
    assert_true(results_begin(&r, "out", &s, false, &e));
    if (!scenario_make(&s, "text.yaml", &f, &e))
        fail_msg("%s", e.text);
    enum fabric_state state = fabric_run(f, 10000000);
    assert_int_equal(state, want);
    assert_true(results_end(&r, &s, f, state, &e));
    fabric_destroy(f);
    scenario_free(&s);
}

/* 1000 + 82 and 66 + 20 bytes twice each at 100 Gb/s, four links' delays. */
static void end__one_flow(void **state)
{
    (void)state;
    run_text("name: a \"name\"\ntopology: {shape: star, hosts: 2}\nhosts: {nic: none}\nworkload: "
             "[{op: flow, from: h0, "
             "to: h1, bytes: 1000, start: 2us}]\n",
             FABRIC_FINISHED);
    assert_string_equal(content("flows.csv"),
                        "flow,src,dst,priority,bytes,start_ns,fct_ns,slowdown,retries,cnps\n"
                        "0,0,1,3,1000,2000,4187,1.000,0,0\n");
    assert_string_equal(content("pfc.csv"), "time_ns,node,port,priority,event,quanta\n");
    assert_string_equal(content("ports.csv"),
                        "node,port,priority,max_queue_bytes,paused_sent_ns,paused_received_ns,"
                        "tx_bytes,ecn_marks,drops\n"
                        "0,0,3,0,0,0,1062,0,0\n1,0,6,66,0,0,66,0,0\n"
                        "2,0,6,66,0,0,66,0,0\n2,1,3,1062,0,0,1062,0,0\n");
    content("summary.json");
    bench_contains(text, "\"scenario\": \"a \\\"name\\\"\",\n  \"seed\": 1,\n");
    bench_contains(text,
                   "\"flows\": 1,\n  \"finished\": 1,\n  \"failed\": 0,\n  \"end\": \"finished\"");
    bench_contains(text, "\"deadlock\": false,\n  \"deadlock_ns\": null,");
    bench_contains(text, "\"link_hops\": 4\n}\n");
}

/* A flow that does not finish has no time; pauses are rows. */
static void end__unfinished_and_paused(void **state)
{
    (void)state;
    run_text("topology: {shape: star, hosts: 3}\nhosts: {nic: none}\nlimit: 200us\nswitches: "
             "{buffer: 400KB, ecn: "
             "{kmin: 10KB}}\n"
             "workload: [{op: incast, to: h2, bytes: 2MB}]\n",
             FABRIC_LIMIT);
    bench_contains(content("flows.csv"), "\n1,1,2,3,2000000,0,,,0,");
    content("pfc.csv");
    bench_contains(text, ",3,pause,65535\n");
    bench_contains(text, ",3,resume,0\n");
    content("summary.json");
    bench_contains(
        text, "\"finished\": 0,\n  \"failed\": 0,\n  \"end\": \"limit\",\n  \"end_ns\": 200000,");
    content("ports.csv");
    (void)rmdir("out");
}

/* FNV-1a, 64 bits; the file goes. */
static uint64_t sum_of(const char *name)
{
    char path[64];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    snprintf(path, sizeof(path), "out/%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        hash = (hash ^ (uint8_t)c) * UINT64_C(0x100000001b3);
    fclose(f);
    (void)unlink(path);
    return hash;
}

static void check_sums(const char *path)
{
    char line[64], name[32];
    unsigned long long want;
    FILE *sums = fopen(path, "r");
    assert_non_null(sums);
    while (fgets(line, sizeof(line), sums) != NULL) {
        assert_int_equal(sscanf(line, "%llx %31s", &want, name), 2);
        uint64_t got = sum_of(name);
        if (got != want)
            fail_msg("%s is not what it was: %016llx", name, (unsigned long long)got);
    }
    fclose(sums);
}

/* The same bytes wherever and however this is built: what the .fnv files say (FNV-1a, 64 bits),
 * which the program as released is held to as well (tests/e2e/test_fabric.py). */
static void end__same_in_every_build(void **state)
{
    (void)state;
    static const struct {
        const char *scenario, *sums;
        const char *nic, *cc; /* as it is set; NULL: as it stands there */
        enum fabric_state end;
    } rows[] = {
        {DATA "/mixed.yaml", DATA "/mixed.fnv",        "hosts.nic=none", NULL,                  FABRIC_FINISHED},
        {DATA "/mixed.yaml", DATA "/mixed-engine.fnv", NULL,             "hosts.cc=none",       FABRIC_FINISHED},
        {DATA "/mixed.yaml", DATA "/mixed-dcqcn.fnv",  NULL,             NULL,                  FABRIC_FINISHED},
        {DATA "/mixed.yaml", DATA "/mixed-ztr.fnv",    NULL,             "hosts.cc=ztr-target", FABRIC_FINISHED},
        {DATA "/mixed.yaml", DATA "/mixed-hpcc.fnv",   "hosts.nic=none", "hosts.cc=hpcc",
         FABRIC_FINISHED                                                                                       },
        {DATA "/verbs.yaml", DATA "/verbs.fnv",        NULL,             NULL,                  FABRIC_FAILED  },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e;
        struct results r;
        struct trace_writer trace;
        const struct trace_filter all = {0};
        struct fabric *f;
        struct scenario_set sets[2] = {0};
        unsigned count = 0;
        if (rows[i].nic != NULL)
            sets[count++].text = rows[i].nic;
        if (rows[i].cc != NULL)
            sets[count++].text = rows[i].cc;
        scenario_init(&s);
        if (!scenario_read_yaml(&s, rows[i].scenario, sets, count, &e))
            fail_msg("%s", e.text);
        bench_file("");
        assert_true(results_begin(&r, "out", &s, false, &e));
        assert_true(trace_writer_open(&trace, "out/trace", 1 << 20, &all, &s, &e));
        assert_true(scenario_make(&s, "x", &f, &e));
        assert_int_equal(fabric_run(f, 100000000), rows[i].end);
        assert_true(trace_writer_close(&trace, &e));
        assert_true(results_end(&r, &s, f, rows[i].end, &e));
        check_sums(rows[i].sums);
        fabric_destroy(f);
        scenario_free(&s);
        (void)remove("out/verbs.csv");
    }
    (void)rmdir("out");
}

static void begin__no_folder(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e;
    struct results r;
    scenario_init(&s);
    assert_false(results_begin(&r, "no/such/folder", &s, false, &e));
    bench_contains(e.text, "no/such/folder: ");
    assert_false(results_begin(&r, "/dev/null", &s, false, &e));
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end__one_flow),
        cmocka_unit_test(end__unfinished_and_paused),
        cmocka_unit_test(end__same_in_every_build),
        cmocka_unit_test(begin__no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
