/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_scenario.c: what only the whole shows: hosts without links, too little buffer, no way;
 * warnings.
 */
#include "bench.h"

static void check_refused(const char *text, const char *message)
{
    struct scenario s;
    struct scenario_error e = {""};
    struct fabric *f;
    scenario_init(&s);
    if (!scenario_read_yaml(&s, bench_file(text), NULL, 0, &e))
        fail_msg("%s", e.text);
    assert_false(scenario_make(&s, "text.yaml", &f, &e));
    bench_contains(e.text, message);
    scenario_free(&s);
}

static void make__refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"topology: {shape: graph, hosts: [a, b], switches: [x], links: [{a: a, b: x}]}\n"
         "workload: [{op: flow, from: a, to: b}]\n",                                 "text.yaml:1: topology: host b has no link, one is expected"                           },
        {"topology: {shape: graph, hosts: [a, b], switches: [x, y], links: [{a: a, b: x}, {a: b, "
         "b: x}]}\n"
         "workload: [{op: flow, from: a, to: b}]\n",                                 "text.yaml:1: topology: switch y has no link, one is expected"                         },
        {"topology: {shape: graph, hosts: [a, b], switches: [x, y], links: [{a: a, b: x}, {a: b, "
         "b: y}]}\n"
         "workload: [{op: flow, from: a, to: b}]\n",                                 "text.yaml:2: workload: flow 0 from a to b: the host cannot be reached; a way of links"},
        {"topology: {shape: graph, hosts: [a, b], switches: [x], links: [{a: a, b: x}, {a: b, b: "
         "x}, {a: a, b: x}]}\n"
         "workload: [{op: flow, from: a, to: b}]\n",                                 "host a has 2 links, one is expected"                                                  },
        {"topology: {shape: star}\nswitches: {buffer: 100KB, ecn: {kmin: 1KB}}\nworkload: [{op: "
         "incast, to: h0}]\n",                                                       "text.yaml:2: switches.buffer: 100000 bytes are less than reserve and headroom of a "
         "switch's ports; more than "                                                                                                         },
        {"topology:\n  shape: graph\n  hosts:\n  - a\n  - b\n  - c\n  switches: [x]\n  links: [{a: "
         "a, b: x}, {a: b, b: x}]\n"
         "workload: [{op: flow, from: a, to: b}]\n",                                 "text.yaml:6: topology: host c has no link"                                            },
        {"topology:\n  shape: graph\n  hosts: [a, b, c]\n  switches: [x, y]\n  links: [{a: a, b: "
         "x}, {a: b, b: x}, {a: c, b: y}]\n"
         "workload:\n- {op: flow, from: a, to: b}\n- {op: flow, from: b, to: a, connections: 3}\n- "
         "{op: flow, from: a, to: c}\n",                                             "text.yaml:9: workload: flow 4 from a to c: the host cannot be reached"                },
        {"topology: {shape: star}\nworkload:\n- {op: flow, from: h2, to: h1}\n- {op: flow, from: "
         "h1, to: h0, bytes: "
         "5GB, connections: 2000, verb: send, receives: 4096}\n",                    "text.yaml:4: workload: the 2000 flows of host h0 have more than 4194303 work requests "
         "and receives at once; fewer"                                                                     },
        {"topology: {shape: star}\nworkload: []\n",
         "text.yaml:2: workload: there is no flow, one is expected"                                                                                                                  },
        {"topology: {shape: graph, hosts: [a, b]}\nworkload: [{op: flow, from: a, to: b}]\n",
         "text.yaml:1: topology: there is no link, one for each host is expected"                                                                                                    },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_refused(rows[i].text, rows[i].message);
}

#define INCAST "workload: [{op: incast, to: a}]\n"
#define HOSTS  "topology:\n  shape: graph\n  hosts: [a, b]\n  switches: [x]\n"

/* Where no buffer is enough, what takes it; where none is said, too. */
static void make__headroom_beyond_all_buffers(void **state)
{
    (void)state;
    static const char fast[] = HOSTS "  links:\n  - {a: a, b: x}\n"
                                     "  - {a: b, b: x, rate: 10Tbps, delay: 999ms}\n" INCAST;
    static const char large[] =
        INCAST HOSTS "  links: [{a: a, b: x}, {a: b, b: x}]\n"
                     "switches: {buffer: 4095MiB, headroom: 1GiB, lossless: [1, 3, 5]}\n";
    check_refused("topology: {shape: star, hosts: 8, delay: 100ms}\nworkload: [{op: all-to-all}]\n",
                  "text.yaml:1: delay: with 100ms at 100Gbps between h0 and s0 what comes after");
    check_refused("topology: {shape: star, hosts: 2, delay: 200ms}\nworkload: [{op: all-to-all}]\n",
                  "a shorter delay, a lower rate, fewer lossless priorities, or switches.headroom");
    check_refused(fast, "text.yaml:7: delay: with 999ms at 10Tbps between b and x");
    check_refused(large, "text.yaml:7: switches.headroom: 1073741824 bytes for each port");
    check_refused(
        "profile: hpcc-compat\ntopology: {shape: star, hosts: 5}\nswitches: {headroom: 1GiB, "
        "buffer: 4095MiB}\nworkload: [{op: all-to-all}]\n",
        "text.yaml:3: switches.headroom: 1073741824 bytes for each port are more than");
    check_refused(
        "topology: {shape: star, delay: 1ms}\nworkload: [{op: all-to-all}]\n",
        "text.yaml:1: switches.buffer: 16777216 bytes are less than reserve and headroom");
}

/* case_126: Kmin and Kmax go with the rate, and a Kmax beyond the PFC threshold is warned of. */
static void case_126_thresholds(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e;
    struct fabric *f;
    char said[512] = "";
    for (int large = 0; large < 2; large++) {
        struct scenario_set set = {large ? "switches.buffer=64MiB" : "switches.buffer=3MiB", false};
        FILE *out = fmemopen(said, sizeof(said), "w");
        uint64_t kmax, xoff;
        scenario_init(&s);
        assert_true(scenario_read_yaml(
            &s,
            bench_file("topology: {shape: star, rate: 25Gbps}\nworkload: [{op: incast, to: h0}]\n"
                       "switches: {ecn: {kmin: 400KB, kmax: 1600KB}}\n"),
            &set, 1, &e));
        assert_true(scenario_make(&s, "text.yaml", &f, &e));
        fabric_thresholds(f, 20, &kmax, &xoff);
        assert_int_equal(kmax, 400000); /* a quarter of the value at 100 Gb/s */
        scenario_warn(&s, f, out);
        fclose(out);
        if (large)
            assert_null(strstr(said, "warning"));
        else
            bench_contains(said, "warning: switches.ecn.kmax: at s0 marks are sure beyond 400000");
        memset(said, 0, sizeof(said));
        fabric_destroy(f);
        scenario_free(&s);
    }
}

/* What is warned of, marks apart; says: a part of it, or NULL: nothing. */
static void check_warning(const char *yaml, const char *says)
{
    struct scenario s;
    struct scenario_error e;
    struct fabric *f = NULL;
    char said[512] = "";
    FILE *out = fmemopen(said, sizeof(said), "w");
    scenario_init(&s);
    if (!scenario_read_yaml(&s, bench_file(yaml), NULL, 0, &e) ||
        !scenario_make(&s, "text.yaml", &f, &e))
        fail_msg("%s", e.text);
    s.config.switches.ecn = 0;
    scenario_warn(&s, f, out);
    fclose(out);
    if (says != NULL)
        bench_contains(said, says);
    else
        assert_string_equal(said, "");
    fabric_destroy(f);
    scenario_free(&s);
}

/* A time-out that is over before an acknowledgement can be there. */
static void warn__timeout_too_short(void **state)
{
    (void)state;
    static const struct {
        const char *hosts, *links, *says; /* NULL: nothing */
    } rows[] = {
        {"{nic: none}",               "delay: 1us",              NULL                         },
        {"{nic: engine}",             "delay: 1us",              NULL                         },
        {"{nic: none}",               "delay: 999us",            NULL                         },
        {"{nic: none}",               "delay: 1ms",
         "warning: hosts.timeout: 4ms are less than a packet from h1 to h0 and its acknowledgement "
         "take, 4.00019072ms; all is sent again before"                                       },
        {"{nic: engine}",             "delay: 1s",               "hosts.timeout: 4ms are less"},
        {"{nic: none, timeout: 0s}",  "delay: 1s",               NULL                         },
        {"{nic: none, timeout: 5us}", "delay: 1us",              NULL                         },
        {"{nic: none, timeout: 4us}", "delay: 1us",              "hosts.timeout: 4us are less"},
        {"{nic: none}",               "delay: 1us, rate: 1Mbps", "from h1 to h0"              },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[512];
        snprintf(
            yaml, sizeof(yaml),
            "topology: {shape: star, hosts: 3, %s}\nswitches: {lossless: [], ecn: {priorities: "
            "[]}}\nhosts: %s\nworkload: [{op: incast, to: h0}]\n",
            rows[i].links, rows[i].hosts);
        check_warning(yaml, rows[i].says);
    }
}

/* A frame for which there is no room in an empty switch. */
static void warn__no_room_for_a_frame(void **state)
{
    (void)state;
    static const struct {
        const char *switches, *work, *says; /* NULL: nothing */
    } rows[] = {
        {"{lossless: [], buffer: 1000}",               "{op: incast, to: h0}",
         "warning: switches.buffer: at s0 a queue that is not lossless has room for 125 bytes, and "
         "each frame of 1086 is dropped"                                                                         },
        {"{lossless: [], buffer: 8687}",               "{op: incast, to: h0}",              "room for 1085 bytes"},
        {"{lossless: [], buffer: 8688}",               "{op: incast, to: h0}",              NULL                 },
        {"{lossless: [], buffer: 1000, alpha: 1}",     "{op: incast, to: h0}",              "1000 bytes"         },
        {"{lossless: [], buffer: 1000}",               "{op: incast, to: h0, bytes: 10}",   NULL                 },
        {"{lossless: [], buffer: 1000}",               "{op: incast, to: h0, bytes: 64}",   "frame of 126 is"    },
        {"{lossless: [], buffer: 1000, control: [3]}", "{op: incast, to: h0}",              NULL                 },
        {"{lossless: [3], buffer: 160000}",            "{op: incast, to: h0}",              NULL                 },
        {"{lossless: [3], buffer: 160000}",            "{op: incast, to: h0, priority: 1}", "is dropped"         },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml),
                 "topology: {shape: star, hosts: 3}\nswitches: %s\nhosts: {nic: none}\n"
                 "workload: [%s]\n",
                 rows[i].switches, rows[i].work);
        check_warning(yaml, rows[i].says);
    }
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(make__refused),
        cmocka_unit_test(make__headroom_beyond_all_buffers),
        cmocka_unit_test(case_126_thresholds),
        cmocka_unit_test(warn__timeout_too_short),
        cmocka_unit_test(warn__no_room_for_a_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
