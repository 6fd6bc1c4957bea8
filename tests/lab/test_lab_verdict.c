/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_verdict.c: ratios, thresholds above and below, faults, and what is said about TCP.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_verdict.h"
#include "made_run.h"

static struct lab_end e;
static struct lab_run run;
static json_t *verdict;

static void judge(enum lab_exit code, const char *summary, size_t findings)
{
    json_decref(verdict);
    verdict = lab_verdict_make(&e.settings, &run);
    const char *text = json_string_value(json_object_get(verdict, "summary"));
    assert_int_equal(json_integer_value(json_object_get(verdict, "exit")), code);
    assert_int_equal(json_is_true(json_object_get(verdict, "passed")), code == LAB_EXIT_PASSED);
    if (strstr(text, summary) == NULL)
        fail_msg("'%s' is not in '%s'", summary, text);
    assert_int_equal(json_array_size(json_object_get(verdict, "findings")), findings);
}

static bool found(const char *text)
{
    size_t i;
    json_t *finding;
    json_array_foreach(json_object_get(verdict, "findings"), i, finding)
    {
        if (strstr(json_string_value(finding), text) != NULL)
            return true;
    }
    return false;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(verdict);
    verdict = NULL;
    lab_run_clear(&run);
    return 0;
}

static void lab_verdict_ratio__against_tcp_and_memcpy(void **state)
{
    (void)state;
    made_run(&e, &run, 5000);
    const struct lab_result *tcp = &run.results[0], *write = &run.results[1];
    assert_true(fabs(lab_verdict_gbps(write) - 1.6) < 1e-9);
    assert_true(fabs(lab_verdict_rate(write) - 200000) < 1e-6);
    assert_ptr_equal(lab_verdict_baseline(&run, write), tcp);
    assert_null(lab_verdict_baseline(&run, tcp));
    assert_null(lab_verdict_baseline(&run, &run.results[2])); /* an atomic */
    assert_true(fabs(lab_verdict_throughput_ratio(&run, write) - 2) < 1e-9);
    assert_true(fabs(lab_verdict_latency_ratio(&run, write) - 2) < 0.01);
    assert_true(fabs(lab_verdict_memcpy_ratio(&e.settings, &run, write) - 0.02) < 1e-9);
    assert_true(lab_verdict_memcpy_ratio(&e.settings, &run, &run.results[2]) == 0);
    run.results[0].c.depth = 2; /* another depth is no baseline */
    assert_true(lab_verdict_throughput_ratio(&run, write) == 0);
    assert_true(lab_verdict_latency_ratio(&run, write) == 0);
}

static void lab_verdict_make__does_it_pay(void **state)
{
    (void)state;
    static const struct {
        uint64_t write_ns;
        const char *says;
    } rows[] = {
        {5000,    "passed; RDMA pays for this load: throughput 2.00 x TCP, median latency"},
        {9800,    "passed; RDMA and TCP are alike for this load: throughput 1.02 x TCP"   },
        {20000,   "passed; RDMA does not pay for this load: throughput 0.500 x TCP"       },
        {4500000, "passed; RDMA does not pay for this load: throughput 0.00222 x TCP"     },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        made_run(&e, &run, rows[i].write_ns);
        judge(LAB_EXIT_PASSED, rows[i].says, 0);
        lab_run_clear(&run);
    }
    made_run(&e, &run, 5000);
    run.results[0].c.size = 999;
    judge(LAB_EXIT_PASSED, "without a baseline nothing is said about TCP", 0);
}

static void case_140__thresholds(void **state)
{
    (void)state;
    static const struct {
        const char *name, *met, *missed;
    } rows[] = {
        {"max-p99",   "6us", "4us"},
        {"min-gbps",  "1.5", "1.7"},
        {"min-ratio", "1.9", "2.1"},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char message[LAB_MESSAGE_BYTES], says[64];
        unsigned place = (unsigned)lab_settings_find(rows[i].name);
        made_run(&e, &run, 5000);
        assert_int_equal(lab_settings_set(&e.settings, place, rows[i].met, message), 0);
        judge(LAB_EXIT_PASSED, "passed", 0);
        assert_int_equal(lab_settings_set(&e.settings, place, rows[i].missed, message), 0);
        judge(LAB_EXIT_MISSED, "MISSED a threshold", 1);
        snprintf(says, sizeof(says), "MISSED %s: write of 1000 bytes at depth 1", rows[i].name);
        assert_true(found(says));
        lab_run_clear(&run);
    }
    made_run(&e, &run, 5000); /* for atomics there is neither throughput nor baseline, but a p99 */
    e.settings.max_p99_ns = 300;
    judge(LAB_EXIT_MISSED, "MISSED", 2);
    assert_true(found("MISSED max-p99: atomic of 8 bytes"));
}

/* A threshold that no case has a figure for is not kept. */
static void case_140__not_judged(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        unsigned first, count; /* of tcp, write, atomic, atomic without samples */
        bool judged;
    } rows[] = {
        {"max-p99",   "1s",       2, 1, true },
        {"max-p99",   "1s",       3, 1, false},
        {"max-p99",   "1s",       0, 1, false},
        {"max-p99",   "1s",       0, 0, false},
        {"min-gbps",  "0.000001", 1, 2, true },
        {"min-gbps",  "0.000001", 2, 1, false},
        {"min-gbps",  "0.000001", 0, 1, false},
        {"min-ratio", "0.000001", 0, 2, true },
        {"min-ratio", "0.000001", 1, 1, false},
        {"min-ratio", "0.000001", 2, 1, false},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char message[LAB_MESSAGE_BYTES], says[64];
        struct lab_result all[4] = {0};
        made_run(&e, &run, 5000);
        memcpy(all, run.results, 3 * sizeof(all[0]));
        all[3].c = all[2].c;
        const struct lab_run some = {.results = all + rows[i].first, .count = rows[i].count};
        unsigned place = (unsigned)lab_settings_find(rows[i].name);
        assert_int_equal(lab_settings_set(&e.settings, place, rows[i].text, message), 0);
        json_decref(verdict);
        verdict = lab_verdict_make(&e.settings, &some);
        snprintf(says, sizeof(says), "NOT JUDGED %s: no case has a ", rows[i].name);
        assert_int_equal(found(says), !rows[i].judged);
        assert_int_equal(json_integer_value(json_object_get(verdict, "exit")),
                         rows[i].judged ? LAB_EXIT_PASSED : LAB_EXIT_MISSED);
        const char *summary = json_string_value(json_object_get(verdict, "summary"));
        assert_int_equal(strncmp(summary, "a threshold is NOT JUDGED", 25) == 0, !rows[i].judged);
        lab_run_clear(&run);
    }
}

static void lab_verdict_make__wrong_data(void **state)
{
    (void)state;
    made_run(&e, &run, 5000);
    e.settings.max_p99_ns = 1; /* worse than any threshold */
    json_object_set_new(run.results[1].target, "first_fault", json_string("slot 1 is stale"));
    json_object_set_new(json_object_get(run.results[1].target, "data"), "stale", json_integer(2));
    judge(LAB_EXIT_WRONG_DATA, "WRONG DATA; RDMA pays", 3);
    assert_true(found(
        "WRONG DATA: write of 1000 bytes at depth 1: 2 messages, the first: slot 1 is stale"));
    run.results[2].source.wrong_atomics = 1;
    judge(LAB_EXIT_WRONG_DATA, "WRONG DATA", 4);
    assert_true(found("atomic of 8 bytes at depth 1: 1 messages, the first: not told"));
}

/* A peer may tell nonsense; it is no fault of ours then, and nothing breaks. */
static void lab_verdict_make__nonsense_of_a_target(void **state)
{
    (void)state;
    made_run(&e, &run, 5000);
    json_decref(run.results[1].target);
    run.results[1].target = json_pack("{s:s,s:[],s:i,s:i}", "data", "x", "parts_ns", "wall_ns", -1,
                                      "wrong_atomics", -5);
    judge(LAB_EXIT_PASSED, "passed", 0);
}

static void lab_verdict_make__names_the_way(void **state)
{
    (void)state;
    made_run(&e, &run, 5000);
    run.results[1].c.way = LAB_BOUNCE;
    e.settings.min_kbps = 1700000;
    judge(LAB_EXIT_MISSED, "MISSED", 1);
    assert_true(found("write of 1000 bytes at depth 1, buffers bounce: 1.6 Gbit/s, wanted 1.7"));
}

static void lab_verdict_make__bottleneck(void **state)
{
    (void)state;
    static const struct {
        unsigned source[3], target[3]; /* percent of fill, checksum, copy */
        uint32_t depth, qps;
        const char *says; /* NULL: nothing */
    } rows[] = {
        {{0, 60, 0},
         {0, 0, 0},
         1,                           1,
         "the source spends 60 % of the time on filling, checksums "
         "and copies, most of it checksum (60 %)"          },
        {{0, 60, 0},
         {0, 10, 0},
         1,                           1,
         "the ends, one after the other, spend 70 % (source 60, "
         "target 10) of the time"                          },
        {{0, 0, 10},
         {0, 0, 80},
         16,                          1,
         "the target spends 80 % of the time on filling, checksums "
         "and copies, most of it copy (80 %)"              },
        {{5, 25, 0},
         {0, 10, 20},
         1,                           1,
         "spend 60 % (source 30, target 30) of the time on filling, "
         "checksums and copies, most of it checksum (35 %)"},
        {{5, 25, 0}, {0, 10, 20}, 2,  1, NULL              },
        {{5, 25, 0}, {0, 10, 20}, 1,  2, NULL              },
        {{5, 20, 0}, {0, 5, 20},  1,  1, NULL              },
        {{0, 50, 0}, {0, 50, 0},  16, 1, NULL              },
        {{51, 0, 0},
         {0, 50, 0},
         16,                          1,
         "the source spends 51 % of the time on filling, checksums "
         "and copies, most of it fill (51 %)"              },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static const enum lab_part parts[] = {LAB_PART_FILL, LAB_PART_CHECKSUM, LAB_PART_COPY};
        made_run(&e, &run, 5000);
        struct lab_result *r = &run.results[1];
        r->c.depth = rows[i].depth;
        r->c.qps = rows[i].qps;
        for (unsigned p = 0; p < 3; p++) {
            r->source.part_ns[parts[p]] = r->source.wall_ns * rows[i].source[p] / 100;
            json_object_set_new(json_object_get(r->target, "parts_ns"), lab_part_name(parts[p]),
                                json_integer(1000000 * (json_int_t)rows[i].target[p] / 100));
        }
        judge(LAB_EXIT_PASSED, "passed", rows[i].says != NULL);
        if (rows[i].says != NULL && !found(rows[i].says))
            fail_msg("row %u: %s", i, json_dumps(verdict, JSON_INDENT(1)));
        lab_run_clear(&run);
    }
}

/* Who polls and has no CPU is told of, by the worst case; who sleeps is not. */
static void lab_verdict_make__no_cpu_of_their_own(void **state)
{
    (void)state;
    static const struct {
        unsigned source, target; /* percent of the time on a CPU */
        uint64_t threads, wait;
        const char *says;
    } rows[] = {
        {100, 100, 1, LAB_POLL,  NULL                                                 },
        {130, 120, 1, LAB_POLL,  NULL                                                 },
        {75,  80,  1, LAB_POLL,  NULL                                                 },
        {50,  45,  1, LAB_POLL,
         "in 1 of 1 cases an end that polls had no CPU of its own (least: "
         "write of 1000 bytes at depth 1: the target ran for 45 %"                    },
        {74,  100, 1, LAB_POLL,  "the source ran for 74 %"                            },
        {100, 100, 2, LAB_POLL,  "2 queue pairs on 2 threads: the source ran for 50 %"},
        {50,  45,  1, LAB_EVENT, NULL                                                 },
        {0,   45,  1, LAB_POLL,  NULL                                                 }, /* not known */
        {45,  0,   1, LAB_POLL,  NULL                                                 },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        made_run(&e, &run, 5000);
        struct lab_result *r = &run.results[1];
        r->source.wall_ns = 10000000;
        r->source.user_us = 60 * rows[i].source;
        r->source.system_us = 40 * rows[i].source;
        r->source.threads = rows[i].threads;
        r->c.qps = r->c.threads = (uint32_t)rows[i].threads;
        json_object_set_new(r->target, "wall_ns", json_integer(10000000));
        json_object_set_new(r->target, "cpu_user_us", json_integer(100 * rows[i].target));
        e.settings.wait = rows[i].wait;
        judge(LAB_EXIT_PASSED,
              rows[i].says != NULL ? "passed; whether RDMA pays cannot be told here"
                                   : "passed; RDMA pays for this load",
              rows[i].says != NULL);
        assert_int_equal(lab_verdict_starved(&e.settings, r), rows[i].says != NULL);
        if (rows[i].says != NULL && !found(rows[i].says))
            fail_msg("row %u: %s", i, json_dumps(verdict, JSON_INDENT(1)));
        lab_run_clear(&run);
    }
}

/* One message is no load: its path has no bottleneck, no want of a CPU (before it both rest), and
 * nothing that TCP would do better. Wrong is wrong. */
static void lab_verdict_make__of_a_path(void **state)
{
    (void)state;
    for (unsigned path = 0; path < 2; path++) {
        for (unsigned bad = 0; bad < 2; bad++) {
            made_run(&e, &run, 5000);
            e.settings.path = path;
            struct lab_result *r = &run.results[1];
            r->source.wall_ns = 10000000;
            r->source.part_ns[LAB_PART_FILL] = 9000000;
            r->source.user_us = 1000;
            json_object_set_new(r->target, "wall_ns", json_integer(10000000));
            json_object_set_new(r->target, "cpu_user_us", json_integer(1000));
            r->source.data[LAB_DATA_STALE] = bad;
            json_decref(verdict);
            verdict = lab_verdict_make(&e.settings, &run);
            const char *says = json_string_value(json_object_get(verdict, "summary"));
            assert_int_equal(strstr(says, "RDMA") == NULL, path);
            assert_int_equal(strncmp(says, bad ? "WRONG DATA" : "passed", 6), 0);
            assert_int_equal(found("WRONG DATA: write"), bad);
            assert_int_equal(found("no CPU of its own"), !path);
            assert_int_equal(found("filling, checksums and copies"), !path);
            lab_run_clear(&run);
        }
    }
}

/* An atomic's target polls nothing, so that it sleeps is no want of a CPU. */
static void lab_verdict_starved__target_of_atomics(void **state)
{
    (void)state;
    static const struct {
        unsigned op, source, target; /* percent of the time on a CPU */
        bool starved;
    } rows[] = {
        {LAB_ATOMIC, 100, 1,   false},
        {LAB_ATOMIC, 100, 40,  false},
        {LAB_ATOMIC, 40,  100, true },
        {LAB_WRITE,  100, 40,  true },
        {LAB_READ,   100, 40,  true },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        made_run(&e, &run, 5000);
        struct lab_result *r = &run.results[1];
        r->c.op = rows[i].op;
        r->source.wall_ns = 10000000;
        r->source.user_us = 100 * rows[i].source;
        json_object_set_new(r->target, "wall_ns", json_integer(10000000));
        json_object_set_new(r->target, "cpu_user_us", json_integer(100 * rows[i].target));
        assert_int_equal(lab_verdict_starved(&e.settings, r), rows[i].starved);
        lab_run_clear(&run);
    }
}

static bool near(double value, double wanted)
{
    return fabs(value - wanted) < 0.01 * wanted + 1e-12;
}

static void lab_verdict_ratio__of_every_figure(void **state)
{
    (void)state;
    made_run(&e, &run, 5000);
    struct lab_result *tcp = &run.results[0], *write = &run.results[1];
    const struct lab_hist *h = &write->acknowledged;
    lab_hist_add(&tcp->acknowledged, 90000);
    lab_hist_add(&write->acknowledged, 30000);
    assert_true(near(lab_verdict_tcp_ratio(&run, write, h, 500), 2));
    assert_true(near(lab_verdict_tcp_ratio(&run, write, h, 1000), 3));
    assert_true(near(lab_verdict_tcp_ratio(&run, write, h, 0), 1090.0 / 530));
    assert_true(near(lab_verdict_copy_ratio(&e.settings, &run, write, h, 500), 100 / 5000.0));
    assert_true(lab_verdict_copy_ratio(&e.settings, &run, &run.results[2], h, 500) == 0);
    assert_true(lab_verdict_tcp_cpu_ratio(&run, write) == 0); /* not known */
    tcp->source.user_us = 900;
    json_object_set_new(tcp->target, "cpu_system_us", json_integer(300));
    write->source.system_us = 400;
    assert_true(near(lab_verdict_cpu_us(write), 4));
    assert_true(near(lab_verdict_tcp_cpu_ratio(&run, write), 3));
    assert_true(near(lab_verdict_copy_cpu_ratio(&e.settings, &run, write), 0.1 / 4));
    run.memcpy_ns[0] = 0;
    assert_true(lab_verdict_copy_cpu_ratio(&e.settings, &run, write) == 0);
    assert_true(lab_verdict_tcp_cpu_ratio(&run, tcp) == 0);
    assert_true(lab_verdict_tcp_ratio(&run, &run.results[2], h, 500) == 0); /* an atomic */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lab_verdict_ratio__against_tcp_and_memcpy, teardown),
        cmocka_unit_test_teardown(lab_verdict_make__does_it_pay, teardown),
        cmocka_unit_test_teardown(case_140__thresholds, teardown),
        cmocka_unit_test_teardown(case_140__not_judged, teardown),
        cmocka_unit_test_teardown(lab_verdict_make__wrong_data, teardown),
        cmocka_unit_test_teardown(lab_verdict_make__nonsense_of_a_target, teardown),
        cmocka_unit_test_teardown(lab_verdict_make__names_the_way, teardown),
        cmocka_unit_test_teardown(lab_verdict_make__bottleneck, teardown),
        cmocka_unit_test_teardown(lab_verdict_make__no_cpu_of_their_own, teardown),
        cmocka_unit_test_teardown(lab_verdict_make__of_a_path, teardown),
        cmocka_unit_test_teardown(lab_verdict_starved__target_of_atomics, teardown),
        cmocka_unit_test_teardown(lab_verdict_ratio__of_every_figure, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
