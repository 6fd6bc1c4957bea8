/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_results.c: the files of a run, to the letter.
 */
#include "scenario/results.h"

#include <sys/stat.h>

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

static void put(const char *name, const char *what)
{
    char path[64];
    snprintf(path, sizeof(path), "out/%s", name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(what, f);
    fclose(f);
}

static const char *const files[RESULTS_FILES] = {"pfc.csv",    "flows.csv",    "verbs.csv",
                                                 "ports.csv",  "summary.json", "scenario.yaml",
                                                 "report.html"};
#define SMALL                                                                                      \
    "topology: {shape: star, hosts: 2}\nhosts: {nic: none}\n"                                      \
    "workload: [{op: flow, from: h0, to: h1, bytes: 1000}]\n"

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

/* A flow that does not finish has no time, one that has not started by the limit no start; pauses
 * are rows. */
static void end__unfinished_and_paused(void **state)
{
    (void)state;
    run_text("topology: {shape: star, hosts: 3}\nhosts: {nic: none}\nlimit: 200us\nswitches: "
             "{buffer: 400KB, ecn: "
             "{kmin: 10KB}}\n"
             "workload: [{op: incast, to: h2, bytes: 2MB}, {op: flow, from: h0, to: h1, bytes: "
             "1000, start: 201us}]\n",
             FABRIC_LIMIT);
    bench_contains(content("flows.csv"), "\n1,1,2,3,2000000,0,,,0,");
    bench_contains(text, "\n2,0,1,3,1000,,,,0,0\n");
    content("pfc.csv");
    bench_contains(text, ",3,pause,65535\n");
    bench_contains(text, ",3,resume,0\n");
    content("summary.json");
    bench_contains(
        text, "\"finished\": 0,\n  \"failed\": 0,\n  \"end\": \"limit\",\n  \"end_ns\": 200000,");
    content("ports.csv");
    content("scenario.yaml");
    (void)rmdir("out");
}

/* Named as they count: what a NIC has in flight if nobody says, and none where there is no bound.
 */
static void end__parameters(void **state)
{
    (void)state;
    static const struct {
        const char *hosts, *headroom;
        const char *says[4];
    } rows[] = {
        {"{nic: none}\nprofile: hpcc-compat",
         "auto", {"\"headroom_delays\": 3,", "\"payload_bytes\": 1000,", "\"header_bytes\": 48,",
          "\"ack_priority\": 7,"}                 },
        {"{nic: none}\nprofile: hpcc-compat",
         "9KB",  {"\"headroom_bytes\": 9000,", "\"cnp\": \"ack\",", "\"pause_quanta\": \"held\",",
          "\"reserve_bytes\": 4096,"}              },
        {"{nic: engine}",
         "auto", {"\"window_bytes\": 262144,", "\"rnr_retry\": 7,", "\"cnp_priority\": 6,",
          "\"headroom_bytes\": \"auto\","}        },
        {"{nic: engine, window: 0, cc: timely, cnp_priority: 5}",
         "9KB",  {"\"headroom_bytes\": 9000,", "\"limit_ns\": 5000000,", "\"cnp_priority\": 5,",
          "\"weights\": [0, 0, 7, 0, 0, 0, 0, 0],"}},
        {"{nic: engine, window: 4KiB}",
         "auto", {"\"window_bytes\": 4096,", "\"nic\": \"engine\",", "\"cc\": \"none\",",
          "\"watchdog\": \"off\""}                },
        {"{nic: none}",
         "auto", {"\"window_bytes\": null,", "\"header_bytes\": 62,", "\"ack_priority\": 6,",
          "\"nic\": \"none\","}                   },
        {"{nic: none, timeout: 0s, window: 9KiB}",
         "auto", {"\"window_bytes\": 9216,", "\"timeout_ns\": null,", "\"gap_bytes\": 20,",
          "\"scenario_file\": \"scenario.yaml\","}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml),
                 "limit: 5ms\ntopology: {shape: star, hosts: 2}\nhosts: %s\n"
                 "switches: {weights: {2: 7}, headroom: %s}\n"
                 "workload: [{op: flow, from: h0, to: h1, bytes: 1000}]\n",
                 rows[i].hosts, rows[i].headroom);
        run_text(yaml, FABRIC_FINISHED);
        content("summary.json");
        for (unsigned j = 0; j < 4; j++)
            bench_contains(text, rows[i].says[j]);
        bool bare = strstr(rows[i].hosts, "none") != NULL;
        assert_true((strstr(text, "\"rnr_retry\"") == NULL) == bare);
        assert_true((strstr(text, "\"ack_bytes\"") != NULL) == bare);
    }
    for (unsigned i = 0; i < RESULTS_FILES; i++) {
        char path[64];
        snprintf(path, sizeof(path), "out/%s", files[i]);
        (void)unlink(path);
    }
    (void)rmdir("out");
}

/* Whoever has a scenario of that name in the folder of the results keeps it. */
static void begin__not_over_the_scenario(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e;
    struct results r;
    for (unsigned written = 0; written < 2; written++) {
        bench_file(SMALL);
        assert_int_equal(mkdir("out", 0777), 0);
        put("scenario.yaml", SMALL);
        scenario_init(&s);
        assert_true(scenario_read_yaml(&s, "out/scenario.yaml", NULL, 0, &e));
        if (written == 1) /* by an earlier run: it would be the same again */
            put("scenario.yaml", s.text);
        assert_int_equal(results_begin(&r, "out", &s, false, &e), written);
        if (written == 1)
            results_abandon(&r);
        else
            bench_contains(e.text, "out/scenario.yaml: it is the scenario itself");
        assert_string_equal(content("scenario.yaml"), written == 1 ? s.text : SMALL);
        assert_int_equal(rmdir("out"), 0);
        scenario_free(&s);
    }
}

#define TWO_HOSTS "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"

/* Nor is anything else that the scenario came from. */
static void results__beside_imports(void **state)
{
    (void)state;
    static const char *const names[] = {"flows.csv", "scenario.yaml", "verbs.csv", "flows.txt"};
    for (unsigned i = 0; i < 2 * 4; i++) {
        struct scenario s;
        struct scenario_error e = {""};
        struct results r;
        char path[64];
        bool flows = i < 4;
        snprintf(path, sizeof(path), "out/%s", names[i % 4]);
        bench_file(flows ? TWO_HOSTS : "");
        assert_int_equal(mkdir("out", 0777), 0);
        put(names[i % 4], flows ? "1\n0 1 3 100 1000 0\n" : TWO_HOSTS);
        scenario_init(&s);
        assert_true(scenario_import_topology(&s, flows ? "text.yaml" : path, &e));
        assert_true(!flows || scenario_import_flows(&s, path, &e));
        s.text = strdup("name: another\n");
        bool begun = results_begin(&r, "out", &s, false, &e);
        assert_int_equal(begun, i % 4 == 3);
        if (begun)
            results_abandon(&r);
        else
            bench_contains(e.text, path);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir("out"), 0);
        scenario_free(&s);
    }
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

/* Whatever an earlier run has left is there to the last byte when this one is refused, and nothing
 * else. */
static void abandon__all_is_as_it_was(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e;
    struct results r;
    scenario_init(&s);
    assert_true(scenario_read_yaml(&s, bench_file(SMALL), NULL, 0, &e));
    assert_true(results_begin(&r, "out", &s, true, &e));
    results_abandon(&r);
    assert_int_equal(access("out", F_OK), -1);
    assert_int_equal(mkdir("out", 0777), 0);
    for (unsigned i = 0; i < RESULTS_FILES; i++)
        put(files[i], "old");
    for (unsigned i = 0; i < 2; i++) {
        assert_true(results_begin(&r, "out", &s, i == 1, &e));
        fputs("something", r.out[RESULTS_PFC].file);
        results_abandon(&r);
    }
    for (unsigned i = 0; i < RESULTS_FILES; i++)
        assert_string_equal(content(files[i]), "old");
    assert_int_equal(rmdir("out"), 0);
    scenario_free(&s);
}

/* Of an earlier run nothing stays among the files of this one. */
static void end__nothing_of_an_earlier_run(void **state)
{
    (void)state;
    bench_file("");
    assert_int_equal(mkdir("out", 0777), 0);
    for (unsigned i = 0; i < RESULTS_FILES; i++)
        put(files[i], "old");
    put("mine", "mine");
    run_text(SMALL, FABRIC_FINISHED);
    assert_int_equal(access("out/verbs.csv", F_OK), -1);
    assert_int_equal(access("out/report.html", F_OK), -1);
    bench_contains(content("flows.csv"), "slowdown");
    assert_string_equal(content("mine"), "mine");
    for (unsigned i = 0; i < RESULTS_FILES; i++)
        if (i != RESULTS_FLOWS && i != RESULTS_VERBS && i != RESULTS_REPORT)
            assert_string_not_equal(content(files[i]), "old");
    assert_int_equal(rmdir("out"), 0);
}

/* One file cannot be written: it is named, and the others are whole. */
static void end__one_is_full(void **state)
{
    (void)state;
    for (unsigned bad = 0; bad < RESULTS_FILES; bad++) {
        struct scenario s;
        struct scenario_error e;
        struct results r;
        struct fabric *f;
        char path[64];
        if (bad == RESULTS_VERBS || bad == RESULTS_REPORT)
            continue;
        bench_file(SMALL);
        assert_int_equal(mkdir("out", 0777), 0);
        snprintf(path, sizeof(path), "out/%s", files[bad]);
        assert_int_equal(symlink("/dev/full", path), 0);
        scenario_init(&s);
        assert_true(scenario_read_yaml(&s, "text.yaml", NULL, 0, &e));
        assert_true(results_begin(&r, "out", &s, false, &e));
        assert_true(scenario_make(&s, "text.yaml", &f, &e));
        assert_int_equal(fabric_run(f, 10000000), FABRIC_FINISHED);
        assert_false(results_end(&r, &s, f, FABRIC_FINISHED, &e));
        bench_contains(e.text, "/dev/full: it could not be written: No space left on device");
        unlink(path);
        for (unsigned i = 0; i < RESULTS_FILES; i++)
            if (i != bad && i != RESULTS_VERBS && i != RESULTS_REPORT)
                assert_true(strlen(content(files[i])) > 20);
        assert_int_equal(rmdir("out"), 0);
        fabric_destroy(f);
        scenario_free(&s);
    }
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
    assert_int_equal(mkdir("out", 0777), 0);
    assert_int_equal(mkdir("out/summary.json", 0777), 0);
    assert_false(results_begin(&r, "out", &s, false, &e));
    bench_contains(e.text, "out/summary.json: Is a directory");
    assert_int_equal(rmdir("out/summary.json"), 0);
    assert_int_equal(rmdir("out"), 0);
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results__beside_imports),
        cmocka_unit_test(end__one_flow),
        cmocka_unit_test(end__unfinished_and_paused),
        cmocka_unit_test(end__parameters),
        cmocka_unit_test(begin__not_over_the_scenario),
        cmocka_unit_test(end__same_in_every_build),
        cmocka_unit_test(abandon__all_is_as_it_was),
        cmocka_unit_test(end__nothing_of_an_earlier_run),
        cmocka_unit_test(end__one_is_full),
        cmocka_unit_test(begin__no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
