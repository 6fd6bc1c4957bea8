/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_import.c: files of the ns-3 HPCC simulator, good ones whole and bad ones with their
 * messages.
 */
#include "bench.h"

static void import__star_and_incast(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e;
    struct fabric *f;
    struct fabric_totals t;
    scenario_init(&s);
    scenario_hpcc_compat(&s.config);
    assert_true(scenario_import_topology(&s, DATA "/star16.txt", &e));
    assert_true(scenario_import_flows(&s, DATA "/incast15_1MiB.txt", &e));
    assert_int_equal(s.topology.nodes, 17);
    assert_int_equal(s.topology.links, 16);
    assert_int_equal(s.is_switch[16], 1);
    assert_int_equal(s.link[3].rate_bps, UINT64_C(100000000000));
    assert_int_equal(s.link[3].delay_ps, FABRIC_US);
    assert_int_equal(s.flows, 15);
    assert_int_equal(s.flow[14].start_ps, 2000 * FABRIC_MS);
    /* HPCC as that simulator's script has it: a step is 1/2500, and no round trip only adds. */
    assert_int_equal(s.config.hosts.hpcc_parts, 2500);
    assert_int_equal(s.config.hosts.hpcc_stages, 0);
    assert_true(scenario_make(&s, "x", &f, &e));
    assert_int_equal(fabric_run(f, 10000000), FABRIC_FINISHED);
    fabric_totals(f, &t);
    assert_in_range(t.max_queue_bytes, 15384992 - 1048, 15384992 + 1048);
    fabric_destroy(f);
    scenario_free(&s);
}

static void import__bad_topologies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"",                                                "text.yaml:1: nodes: the file ends where a value is expected"},
        {"x 1 2",                                           "text.yaml:1: nodes: 'x' is not a whole number"              },
        {"3 9 2",                                           "switches: 9 is too large, at most 3 is expected"            },
        {"0 0 0",                                           "nodes: 0, at least 2 are expected"                          },
        {"3 1 2\n2 \n0 2 100Gbps 1us 0\n1 2 100Gbps 1us",   "text.yaml:4: error: the file ends"                          },
        {"3 1 2\n2 \n0 2 100Gbps 1us 0\n1 3 100Gbps 1us 0",
         "text.yaml:4: dst: 3 is too large, at most 2 is expected"                                                       },
        {"3 1 2\n2 \n0 2 100Gbs 1us 0\n",
         "text.yaml:3: rate: '100Gbs' is not a rate such as 100Gbps"                                                     },
        {"3 1 2\n2 \n0 2 1bps 1us 0\n",                     "text.yaml:3: rate: 1bps is too slow, at least 1Mbps"        },
        {"3 1 2\n2 \n0 2 1Gbps 1 0\n",                      "text.yaml:3: delay: '1' is not a time such as 1.5us"        },
        {"3 1 2\n2 \n0 2 1Gbps 1us 2\n",
         "text.yaml:3: error: 2 is too large, at most 100% is expected"                                                  },
        {"3 2 2\n2 2\n",                                    "text.yaml:2: switch: 2 is listed twice"                     },
        {"3 1 2\n2\n1 1 1Gbps 1us 0\n",                     "text.yaml:3: dst: 1 is linked to itself"                    },
        {"3 1 2\n2\n0 2 1Gbps 2s 0\n",
         "text.yaml:3: delay: 2s is too large, at most 1s is expected"                                                   },
        {"3 1 2\n2\n0 2 11Tbps 1us 0\n",
         "text.yaml:3: rate: 11Tbps is too large, at most 10Tbps is expected"                                            },
        {"3 1 1\n2\n0 2 1Gbps 1us 0\n\n1 2 1Gbps 1us 0\n",
         "text.yaml:5: links: '1' is behind all 1 that the file begins with"                                             },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e;
        scenario_init(&s);
        assert_false(scenario_import_topology(&s, bench_file(rows[i].text), &e));
        bench_contains(e.text, rows[i].message);
        scenario_free(&s);
    }
}

static void import__bad_flows(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"1\n0 16 3 100 1000 2.0",                      "text.yaml:2: dst: 16 is a switch, a host is expected"},
        {"1\n0 17 3 100 1000 2.0",                      "text.yaml:2: dst: 17 is too large, at most 16"       },
        {"1\n0 0 3 100 1000 2.0",                       "text.yaml:2: dst: 0 is the source itself"            },
        {"1\n0 1 8 100 1000 2.0",                       "text.yaml:2: priority: 8 is too large, at most 7"    },
        {"1\n0 1 3 100 0 2.0",                          "text.yaml:2: bytes: 0, at least 1"                   },
        {"1\n0 1 3 100 1000 x",                         "text.yaml:2: start: 'x' is not a time in seconds"    },
        {"1\n0 1 3 100 1000 2us",                       "text.yaml:2: start: '2us' is not a time in seconds"  },
        {"2\n0 1 3 100 1000 2.0\n",                     "src: the file ends"                                  },
        {"1\n0 1 3 100 1000 2.0\n1 0 3 100 1000 2.0\n",
         "text.yaml:3: flows: '1' is behind all 1 that the file begins with; its end"                         },
        {"0\nx\n",                                      "text.yaml:2: flows: 'x' is behind all 0"             },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e;
        scenario_init(&s);
        assert_true(scenario_import_topology(&s, DATA "/star16.txt", &e));
        assert_false(scenario_import_flows(&s, bench_file(rows[i].text), &e));
        bench_contains(e.text, rows[i].message);
        scenario_free(&s);
    }
    struct scenario s;
    struct scenario_error e;
    scenario_init(&s);
    assert_false(scenario_import_topology(&s, "no-such-file", &e));
    bench_contains(e.text, "no-such-file: No such file");
    bench_end();
}

/* What only the whole shows: the line of the flow, or of the topology, in its own file. */
static void import__bad_together(void **state)
{
    (void)state;
    static const struct {
        const char *topology, *flows, *message;
    } rows[] = {
        {"4 2 2\n2 3\n0 2 100Gbps 1us 0\n1 3 100Gbps 1us 0\n",
         "2\n0 1 3 100 9 2.0\n1 0 3 100 9 2.0\n",                                      "flows.txt:2: workload: flow 0 from 0 to 1: the host cannot be reached"},
        {"4 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n",   "1\n0 1 3 100 9 2.0\n",
         "text.yaml:1: topology: host 3 has no link, one is expected"                                                                                         },
        {"3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n",   "0\n",
         "flows.txt:1: workload: there is no flow, one is expected"                                                                                           },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e = {""};
        struct fabric *f;
        scenario_init(&s);
        const char *path = bench_file(rows[i].topology);
        FILE *flows = fopen("flows.txt", "w");
        assert_non_null(flows);
        fputs(rows[i].flows, flows);
        fclose(flows);
        if (!scenario_import_topology(&s, path, &e) || !scenario_import_flows(&s, "flows.txt", &e))
            fail_msg("%s", e.text);
        assert_false(scenario_make(&s, "flows.txt", &f, &e));
        bench_contains(e.text, rows[i].message);
        scenario_free(&s);
    }
    (void)remove("flows.txt");
}

/* Without flows there is nothing to keep; who makes the fabric says so. */
static void end__no_flows(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e = {""};
    struct fabric *f;
    scenario_init(&s);
    s.title = strdup("none");
    const char *path = bench_file("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n");
    FILE *flows = fopen("flows.txt", "w");
    assert_non_null(flows);
    fputs("0\n", flows);
    fclose(flows);
    assert_true(scenario_import_topology(&s, path, &e));
    assert_true(scenario_import_flows(&s, "flows.txt", &e));
    assert_true(scenario_import_end(&s, &e));
    assert_null(s.text);
    assert_false(scenario_make(&s, "flows.txt", &f, &e));
    bench_contains(e.text, "flows.txt:1: workload: there is no flow");
    scenario_free(&s);
    (void)remove("flows.txt");
}

/* (case_126) As YAML it is the same, whatever the order of hosts and switches. */
static void case_126_text_is_the_import(void **state)
{
    (void)state;
    struct scenario s, again;
    struct scenario_error e;
    scenario_init(&s);
    s.title = strdup("a \xff name");
    s.config.seed = 7;
    scenario_hpcc_compat(&s.config);
    s.config.switches.buffer_bytes = 1 << 20;
    s.config.hosts.cc = "dcqcn-paper-polled";
    s.config.watchdog = WATCHDOG_DROP;
    s.config.detect_ps = 5 * FABRIC_MS;
    s.config.restore_ps = 6 * FABRIC_MS;
    const char *path = bench_file("4 2 3\n0 2\n1 0 25Gbps 1500ns 0.01\n0 2 100Gbps 1us 0\n"
                                  "2 3 25Gbps 7ns 0.000001\n");
    FILE *flows = fopen("flows.txt", "w");
    assert_non_null(flows);
    fputs("2\n1 3 2 100 4096 0.0000015\n3 1 0 100 7 2\n", flows);
    fclose(flows);
    if (!scenario_import_topology(&s, path, &e) || !scenario_import_flows(&s, "flows.txt", &e) ||
        !scenario_import_end(&s, &e))
        fail_msg("%s", e.text);
    scenario_init(&again);
    if (!scenario_read_text(&again, "again", s.text, NULL, 0, &e))
        fail_msg("%s in\n%s", e.text, s.text);
    assert_string_equal(again.text, s.text);
    assert_string_equal(again.title, "a ? name");
    assert_string_equal(s.title, again.title);
    assert_int_equal(again.config.seed, 7);
    assert_memory_equal(again.is_switch, "\1\0\1\0", 4);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(again.link[i].rate_bps, s.link[i].rate_bps);
        assert_int_equal(again.link[i].delay_ps, s.link[i].delay_ps);
        assert_int_equal(again.link[i].loss_ppm, s.link[i].loss_ppm);
        assert_memory_equal(again.link[i].node, s.link[i].node, sizeof(s.link[i].node));
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(again.flow[i].src, s.flow[i].src);
        assert_int_equal(again.flow[i].priority, s.flow[i].priority);
        assert_int_equal(again.flow[i].bytes, s.flow[i].bytes);
        assert_int_equal(again.flow[i].start_ps, s.flow[i].start_ps);
    }
    assert_memory_equal(&again.config.switches, &s.config.switches, sizeof(s.config.switches));
    assert_string_equal(again.config.hosts.cc, s.config.hosts.cc);
    assert_int_equal(again.config.hosts.header_bytes, 48);
    assert_true(again.config.hosts.cnp_by_ack && !again.config.hosts.engine);
    assert_int_equal(again.config.restore_ps, 6 * FABRIC_MS);
    scenario_free(&s);
    scenario_free(&again);
    (void)remove("flows.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end__no_flows),           cmocka_unit_test(case_126_text_is_the_import),
        cmocka_unit_test(import__star_and_incast), cmocka_unit_test(import__bad_topologies),
        cmocka_unit_test(import__bad_together),    cmocka_unit_test(import__bad_flows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
