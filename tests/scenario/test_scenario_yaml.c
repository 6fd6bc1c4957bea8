/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_scenario_yaml.c: scenario files: every field, and a message for each mistake.
 */
#include "bench.h"

static const char good[] =
    "name: all fields\n"
    "seed: 9\n"
    "limit: 2ms\n"
    "topology:\n"
    "  shape: graph\n"
    "  hosts: [a, b, c]\n"
    "  switches: [x, y]\n"
    "  rate: 40Gbps\n"
    "  delay: 2us\n"
    "  links:\n"
    "    - {a: a, b: x}\n"
    "    - {a: b, b: x, rate: 10Gbps, mtu: 1500, loss: 1%}\n"
    "    - {a: c, b: y, delay: 5ns}\n"
    "    - {a: x, b: y}\n"
    "switches:\n"
    "  buffer: 8MiB\n"
    "  headroom: 50KB\n"
    "  reserve: 1KiB\n"
    "  alpha: 1/4\n"
    "  xon_offset: 2KB\n"
    "  lossless: [3, 4]\n"
    "  control: [7]\n"
    "  pause: link\n"
    "  trust: pcp\n"
    "  weights: {3: 2, 4: 1}\n"
    "  pause_quanta: held\n"
    "  response_quanta: 118\n"
    "  ecn: {priorities: [3], kmin: 5KB, kmax: 200KB, pmax: 1%, rate: 40Gbps, at: dequeue}\n"
    "  convergence: 7ms\n"
    "hosts: {payload: 2048, window: 1MB, timeout: 1ms, cnp_priority: 7, cnp_interval: 10us, "
    "cc: timely, vlan: on}\n"
    "workload:\n"
    "  - {op: flow, from: a, to: c, bytes: 4KiB, start: 3us, priority: 4}\n"
    "  - {op: incast, to: b, senders: 1, rounds: 2, compute: 1us}\n"
    "watchdog: {detect: 100ms, restore: 300ms, action: forward}\n"
    "faults:\n"
    "  - {fault: link-up, at: 9us, a: x, b: y}\n"
    "  - {fault: link-down, at: 5us, a: y, b: x}\n"
    "  - {fault: link-mtu, a: c, b: y, mtu: 1KiB}\n"
    "  - {fault: mapping, switch: y, pcp: 4, priority: 2}\n"
    "  - {fault: mapping, switch: x, pcp: 5, priority: 1}\n"
    "  - {fault: link-corrupt, a: c, b: y, corrupt: 2%}\n";

static void read__every_field(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e;
    struct scenario_set set[] = {
        {"seed=5",             false},
        {"workload.0.bytes=9", false}
    };
    scenario_init(&s);
    if (!scenario_read_yaml(&s, bench_file(good), set, 2, &e))
        fail_msg("%s", e.text);
    const struct fabric_switches *w = &s.config.switches;
    assert_string_equal(s.title, "all fields");
    assert_int_equal(s.config.seed, 5);
    assert_int_equal(s.config.limit_ps, 2 * FABRIC_MS);
    assert_int_equal(s.topology.nodes, 5);
    assert_int_equal(s.topology.links, 4);
    assert_int_equal(s.link[1].rate_bps, UINT64_C(10000000000));
    assert_int_equal(s.link[1].mtu_bytes, 1500);
    assert_int_equal(s.link[1].loss_ppm, 10000);
    assert_int_equal(s.link[2].delay_ps, 5000);
    assert_int_equal(s.link[2].mtu_bytes, 1024);
    assert_int_equal(w->buffer_bytes, 8 << 20);
    assert_int_equal(w->headroom_bytes, 50000);
    assert_int_equal(w->alpha_den, 4);
    assert_int_equal(w->lossless, 1 << 3 | 1 << 4);
    assert_int_equal(w->control, 1 << 7);
    assert_int_equal(w->weight[3], 2);
    assert_int_equal(w->pause_quanta, FABRIC_QUANTA_HELD);
    assert_int_equal(w->response_quanta, 118);
    assert_int_equal(w->ecn, 1 << 3);
    assert_int_equal(w->kmax_bytes, 200000);
    assert_int_equal(w->pmax_ppm, 10000);
    assert_true(w->ecn_at_dequeue);
    assert_int_equal(s.config.hosts.payload_bytes, 2048);
    assert_int_equal(s.config.hosts.window_bytes, 1000000);
    assert_int_equal(w->converge_ps, 7 * FABRIC_MS);
    assert_string_equal(s.config.hosts.cc, "timely");
    assert_int_equal(s.flows, 3);
    assert_int_equal(s.flow[0].bytes, 9);
    assert_int_equal(s.flow[0].priority, 4);
    assert_int_equal(s.flow[2].after, s.flow[1].group);
    assert_int_equal(s.config.watchdog, WATCHDOG_FORWARD);
    assert_int_equal(s.config.faults, 2);
    assert_false(s.fault[0].up); /* in order of time */
    assert_int_equal(s.config.mappings, 2);
    assert_int_equal(s.mapping[0].dscp, 4);
    assert_true(s.mapping[0].pcp);
    assert_true(s.mapping[1].pcp);
    assert_int_equal(s.mapping[1].dscp, 5);
    assert_int_equal(s.link[2].corrupt_ppm, 20000);
    assert_true(s.config.hosts.vlan && w->link_pause && w->trust_pcp);
    scenario_free(&s);
}

#define STAR "topology: {shape: star, hosts: 4}\n"
#define WORK "workload: [{op: incast, to: h3}]\n"

static void check_refused(const char *text, const char *message)
{
    struct scenario s;
    struct scenario_error e = {""};
    scenario_init(&s);
    if (scenario_read_yaml(&s, bench_file(text), NULL, 0, &e))
        fail_msg("taken: %s", text);
    bench_contains(e.text, message);
    scenario_free(&s);
}

static void read__mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"",                                                                       "text.yaml: scenario: the file is empty"          },
        {"a: [",                                                                   "text.yaml:2: "                                   },
        {"[1]",                                                                    "fields are expected: name profile seed"          },
        {STAR,                                                                     "text.yaml:1: scenario: 'workload' is missing"    },
        {WORK,                                                                     "text.yaml:1: scenario: 'topology' is missing"    },
        {"topology: {hosts: 4}\n" WORK,                                            "text.yaml:1: topology: 'shape' is missing"       },
        {"topology:\n  shape: tsar\n" WORK,
         "text.yaml:2: topology.shape: 'tsar' is unknown; one of these is expected: star"                                            },
        {"topology:\n  shape: star\n  rate: 100GBps\n" WORK,
         "text.yaml:3: topology.rate: '100GBps' is not a rate such as 100Gbps"                                                       },
        {"topology:\n  shape: star\n  delay: 1\n" WORK,
         "text.yaml:3: topology.delay: '1' is not a time such as"                                                                    },
        {"topology:\n  shape: star\n  speed: 1\n" WORK,
         "text.yaml:3: topology: there is no field 'speed' with shape star; expected: shape"                                         },
        {"topology: {shape: star, hosts: 0}\n" WORK,
         "text.yaml:1: topology.hosts: '0' is out of range; from 1 to"                                                               },
        {"topology: {shape: fat-tree, k: 5}\n" WORK,                               "topology.k: 5 is odd, an even number is"         },
        {"topology: {shape: fat-tree, k: 64, rate: 1Gbps, k: 4}\n" WORK,           "'k' is there twice"                              },
        {STAR "workload:\n  - {op: incast, to: h9}\n",
         "text.yaml:3: workload.0.to: there is no host 'h9'"                                                                         },
        {STAR "workload:\n  - {op: incast, to: s0}\n",
         "text.yaml:3: workload.0.to: there is no host 's0'"                                                                         },
        {STAR "workload:\n  - {op: incast}\n",                                     "text.yaml:3: workload.0: 'to' is missing"        },
        {STAR "workload:\n  - {op: outcast}\n",                                    "text.yaml:3: workload.0.op: 'outcast' is unknown"},
        {STAR "workload:\n  - {to: h1}\n",                                         "'op' is missing"                                 },
        {STAR "workload:\n  - {op: flow, from: h1, to: h1}\n",                     "from and to are the same host"                   },
        {STAR "workload:\n  - {op: incast, to: h1, senders: 9}\n",
         "workload.0.senders: '9' is out of range; from 1 to 3"                                                                      },
        {STAR "workload: {op: incast}\n",                                          "text.yaml:2: workload: a list is expected"       },
        {STAR WORK "switches:\n  alpha: half\n",
         "text.yaml:4: switches.alpha: 'half' is not a ratio"                                                                        },
        {STAR WORK "switches:\n  buffer: 4MiB\n  ecn: {kmin: 5MiB, kmax: 6MiB}\n",
         "text.yaml:5: switches.ecn.kmin: 5242880 bytes are more than the buffer; at most 4194304 "
         "bytes"                                                                                                                     },
        {STAR WORK "switches:\n  ecn:\n    kmin: 5KB\n    kmax: 4KB\n",
         "text.yaml:6: switches.ecn.kmax: 4000 bytes are less than kmin"                                                             },
        {STAR WORK "switches: {lossless: [8]}\n",
         "switches.lossless.0: '8' is out of range; from 0 to 7"                                                                     },
        {STAR WORK "switches: {lossless: 3}\n",                                    "switches.lossless: a list is expected"           },
        {STAR WORK "switches: {pause_quanta: 65536}\n",                            "from 1 to 65535"                                 },
        {STAR WORK "faults:\n  - {fault: link-down, a: h0, b: h1}\n",
         "text.yaml:4: faults.0: there is no link between h0 and h1"                                                                 },
        {STAR WORK "faults:\n  - {fault: mapping, switch: h0}\n",                  "there is no switch 'h0'"                         },
        {STAR WORK "faults:\n  - {fault: flood}\n",                                "faults.0.fault: 'flood' is unknown"              },
        {STAR WORK "watchdog: {action: bark}\n",                                   "watchdog.action: 'bark' is unknown"              },
        {STAR WORK "seed: -1\n",                                                   "text.yaml:3: seed: '-1' is not a whole number"   },
        {"topology:\n  shape: graph\n  hosts: [a, a]\n",
         "text.yaml:3: topology.hosts.1: 'a' is there twice"                                                                         },
        {"topology:\n  shape: graph\n  hosts: [a]\n  links: [{a: a, b: q}]\n",
         "text.yaml:4: topology.links.0.b: there is no node 'q'"                                                                     },
        {"topology:\n  shape: graph\n  hosts: [a]\n  links: [{a: a, b: a}]\n",
         "a and b are the same node"                                                                                                 },
        {"topology:\n  shape: graph\n  hosts: [abcdefghijklmnopqrstuvwxyz]\n",     "is too long"                                     },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_refused(rows[i].text, rows[i].message);
}

static void read__mistakes_of_names(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"topology:\n  shape: graph\n  hosts: [\"\"]\n",
         "text.yaml:3: topology.hosts.0: '' is empty, a name is expected"                                                            },
        {"topology:\n  shape: graph\n  hosts: [a]\n  switches: [\"x,y\"]\n",
         "text.yaml:4: topology.switches.0: byte 2 of the name is one of , + = \" or invisible"                                      },
        {"topology:\n  shape: graph\n  hosts: [\"ab\\nc\"]\n",
         "topology.hosts.0: byte 3 of the name is one of"                                                                            },
        {"topology:\n  shape: graph\n  hosts: [a=b]\n",                      "byte 2 of the name"                                    },
        {"topology:\n  shape: graph\n  hosts: ['\"a']\n",                    "byte 1 of the name"                                    },
        {STAR WORK "---\nseed: 3\n",                                         "text.yaml:3: a second document begins, one is expected"},
        {STAR WORK "---\na: [\n",                                            "text.yaml:5: "                                         },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_refused(rows[i].text, rows[i].message);
}

static void read__mistakes_of_classes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {STAR WORK "switches:\n  buffer: 1MiB\n  ecn:\n    kmax: 1025KiB\n",
         "text.yaml:6: switches.ecn.kmax: 1049600 bytes are more than the buffer; at most 1048576"},
        {STAR WORK "switches:\n  buffer: 1MiB\n  xon_offset: 2MiB\n",
         "text.yaml:5: switches.xon_offset: 2097152 bytes are more than the buffer"               },
        {STAR WORK "switches:\n  buffer: 1MiB\n  headroom: 2MiB\n",
         "text.yaml:5: switches.headroom: 2097152 bytes are more than the buffer"                 },
        {STAR WORK "switches:\n  buffer: 1MiB\n  reserve: 2MiB\n",
         "text.yaml:5: switches.reserve: 2097152 bytes are more than the buffer"                  },
        {STAR WORK "switches: {pause: hold}\n",
         "switches.pause: 'hold' is unknown; one of these is expected: pfc link"                  },
        {STAR WORK "switches: {trust: tos}\n",
         "switches.trust: 'tos' is unknown; one of these is expected: dscp pcp"                   },
        {STAR WORK "hosts: {vlan: 7}\n",
         "hosts.vlan: '7' is unknown; one of these is expected: off on"                           },
        {STAR WORK "switches: {trust: pcp}\nfaults:\n  - {fault: mapping, switch: s0, pcp: 8}\n",
         "text.yaml:5: faults.0.pcp: '8' is out of range; from 0 to 7"                            },
        {STAR WORK "faults:\n  - {fault: link-corrupt, a: h0, b: s0, corrupt: 5ns}\n",
         "faults.0.corrupt: '5ns' is not a share such as 1%"                                      },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_refused(rows[i].text, rows[i].message);
}

/* What only a bare source with HPCC has. */
static void read__hosts_with_hpcc(void **state)
{
    (void)state;
    static const struct {
        const char *set, *message; /* NULL: taken */
    } rows[] = {
        {"hosts.hpcc_eta=90",       NULL                                                                 },
        {"hosts.hpcc_stages=0",     NULL                                                                 },
        {"hosts.hpcc_parts=2500",   NULL                                                                 },
        {"hosts.ack_priority=7",    NULL                                                                 },
        {"hosts.hpcc_eta=0",        "hosts.hpcc_eta: '0' is out of range; from 1 to 100"                 },
        {"hosts.hpcc_eta=101",      "hosts.hpcc_eta: '101' is out of range; from 1 to 100"               },
        {"hosts.hpcc_eta=95%",      "hosts.hpcc_eta: '95%' is not a"                                     },
        {"hosts.hpcc_parts=0",      "hosts.hpcc_parts: '0' is out of range; from 1 to 1000000"           },
        {"hosts.hpcc_stages=65536", "hosts.hpcc_stages: '65536' is out of range; from 0 to 65535"        },
        {"hosts.ack_priority=8",    "hosts.ack_priority: '8' is out of range; from 0 to 7"               },
        {"hosts.retry=3",           "hosts.retry: there is no field 'retry' with nic none; expected: nic"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e = {""};
        struct scenario_set set[] = {
            {rows[i].set,      false},
            {"hosts.nic=none", false},
            {"hosts.cc=hpcc",  false}
        };
        scenario_init(&s);
        bool ok = scenario_read_yaml(&s, bench_file(STAR WORK), set, 3, &e);
        assert_int_equal(ok, rows[i].message == NULL);
        if (i == 1)
            assert_int_equal(s.config.hosts.hpcc_stages, 0);
        bench_contains(e.text, ok ? "" : rows[i].message);
        scenario_free(&s);
        scenario_init(&s); /* without hpcc */
        ok = scenario_read_yaml(&s, bench_file(STAR WORK), set, 2, &e);
        assert_int_equal(ok, strstr(rows[i].set, "ack_priority=7") != NULL);
        if (strstr(rows[i].set, "hpcc") != NULL && rows[i].message == NULL)
            bench_contains(e.text, "only hpcc has it; hosts.cc: hpcc is expected");
        scenario_free(&s);
    }
}

/* Priorities with no limit are not paused: of both lists the one that is said counts. */
static void read__lossless_or_control(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        uint8_t lossless, control;
        const char *message; /* NULL: taken */
    } rows[] = {
        {"",                                   1 << 3,          1 << 6 | 1 << 7, NULL                                      },
        {"lossless: [3, 6]",                   1 << 3 | 1 << 6, 1 << 7,          NULL                                      },
        {"lossless: [0, 1, 2, 3, 4, 5, 6, 7]", 0xff,            0,               NULL                                      },
        {"control: [3, 4]",                    0,               1 << 3 | 1 << 4, NULL                                      },
        {"control: []",                        1 << 3,          0,               NULL                                      },
        {"control: [5], lossless: [6]",        1 << 6,          1 << 5,          NULL                                      },
        {"lossless: [3, 6], control: [6, 7]",  0,               0,
         "text.yaml:3: switches.control: priority 6 is lossless as well; one of both"                                      },
        {"control: [3], lossless: [3]",        0,               0,               "switches.control: priority 3 is lossless"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e = {""};
        char text[256];
        snprintf(text, sizeof(text), STAR WORK "switches: {%s}\n", rows[i].fields);
        scenario_init(&s);
        bool ok = scenario_read_yaml(&s, bench_file(text), NULL, 0, &e);
        assert_int_equal(ok, rows[i].message == NULL);
        if (ok) {
            assert_int_equal(s.config.switches.lossless, rows[i].lossless);
            assert_int_equal(s.config.switches.control, rows[i].control);
        } else {
            bench_contains(e.text, rows[i].message);
        }
        scenario_free(&s);
    }
}

static void read__mistakes_of_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *set, *message;
    } rows[] = {
        {"hosts.cc=cubic",     "hosts.cc: 'cubic' is unknown; one of these is expected: none"       },
        {"hosts.nic=card",     "hosts.nic: 'card' is unknown; one of these is expected: none engine"},
        {"hosts.payload=1000", "hosts.payload: 1000 is no path MTU; 256, 512"                       },
        {"hosts.payload=0",    "hosts.payload: '0' is out of range"                                 },
        {"hosts.cc=hpcc",      "hosts.cc: the packets of a NIC have no room for what"               },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e = {""};
        struct scenario_set set[] = {
            {rows[i].set, false}
        };
        scenario_init(&s);
        assert_false(scenario_read_yaml(&s, bench_file(STAR WORK), set, 1, &e));
        bench_contains(e.text, rows[i].message);
        scenario_free(&s);
    }
    struct scenario s;
    struct scenario_error e = {""};
    struct scenario_set both[] = {
        {"hosts.cc=timely", false},
        {"hosts.nic=none",  false}
    };
    /* Engines, unless it is said otherwise, and each with any control. */
    for (unsigned sets = 0; sets <= 2; sets++) {
        scenario_init(&s);
        assert_true(scenario_read_yaml(&s, bench_file(STAR WORK), both, sets, &e));
        assert_int_equal(s.config.hosts.engine, sets < 2);
        if (sets == 0)
            assert_null(s.config.hosts.cc);
        else
            assert_string_equal(s.config.hosts.cc, "timely");
        scenario_free(&s);
    }
}

static void read__verbs(void **state)
{
    (void)state;
    static const char text[] =
        "hosts: {retry: 3, rnr_retry: 2, rnr_timer: 1ms}\n" STAR "workload:\n"
        "  - {op: flow, from: h0, to: h1, verb: send, message: 4KiB, receives: 0, receive_time: "
        "9us}\n"
        "  - {op: flow, from: h0, to: h1, verb: cmp-swap, rkey: wrong}\n"
        "  - {op: flow, from: h0, to: h1}\n"
        "  - {op: storage, reads: 0%}\n";
    struct scenario s;
    struct scenario_error e;
    scenario_init(&s);
    if (!scenario_read_yaml(&s, bench_file(text), NULL, 0, &e))
        fail_msg("%s", e.text);
    assert_int_equal(s.config.hosts.retry, 3);
    assert_int_equal(s.config.hosts.rnr_retry, 2);
    assert_int_equal(s.config.hosts.rnr_timer_ps, FABRIC_MS);
    assert_int_equal(s.flow[0].work.verb, FABRIC_SEND);
    assert_int_equal(s.flow[0].work.message_bytes, 4096);
    assert_int_equal(s.flow[0].work.receives, 0);
    assert_int_equal(s.flow[0].work.receive_ps, 9 * FABRIC_US);
    assert_int_equal(s.flow[1].work.verb, FABRIC_CMP_SWAP);
    assert_true(s.flow[1].work.wrong_rkey);
    assert_int_equal(s.flow[2].work.verb, FABRIC_WRITE);
    assert_int_equal(s.flow[2].work.message_bytes, 0);
    assert_true(s.flow[2].work.receives > 0 && !s.flow[2].work.wrong_rkey);
    assert_int_equal(s.flow[3].dst, 0); /* written to the server */
    scenario_free(&s);
}

/* No time is beyond an hour, or what an RNR NAK can say. */
static void read__long_times(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "limit",           "hosts.timeout",           "hosts.cnp_interval", "hosts.rnr_timer",
        "watchdog.detect", "watchdog.restore",        "workload.0.start",   "workload.0.compute",
        "faults.0.at",     "workload.0.receive_time", "topology.delay",     "workload.1.duration",
    };
    static const char *const times[] = {"3601s", "9999999s", "99999999999s",
                                        "184467440737095516151ps"};
    static const char text[] =
        STAR "workload:\n  - {op: incast, to: h0, verb: send, rounds: 2}\n  - {op: poisson}\n"
             "faults: [{fault: link-down, a: h0, b: s0}]\n"
             "hosts: {cc: dcqcn-hw}\nwatchdog: {action: drop}\n";
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        for (size_t j = 0; j < sizeof(times) / sizeof(times[0]); j++) {
            struct scenario s;
            struct scenario_error e = {""};
            char pair[80], where[80];
            snprintf(pair, sizeof(pair), "%s=%s", fields[i], times[j]);
            snprintf(where, sizeof(where), "--set %s: '%s' is ", fields[i], times[j]);
            struct scenario_set set = {pair, false};
            scenario_init(&s);
            if (scenario_read_yaml(&s, bench_file(text), &set, 1, &e))
                fail_msg("taken: %s", pair);
            bench_contains(e.text, where);
            bench_contains(e.text, strcmp(fields[i], "hosts.rnr_timer") == 0  ? " to 655.36ms"
                                   : strcmp(fields[i], "topology.delay") == 0 ? " to 1s"
                                                                              : " to 3600s");
            scenario_free(&s);
        }
    }
}

static void read__mistakes_of_verbs(void **state)
{
    (void)state;
    static const struct {
        const char *hosts, *fields, *message;
    } rows[] = {
        {"",                         "verb: recv",                  "workload.0.verb: 'recv' is unknown; one of these is expected: write"},
        {"",                         "message: 2MiB",               "workload.0.message: '2MiB' is out of range; from 1B to 1MiB"        },
        {"",                         "message: 4Gbps",              "workload.0.message: '4Gbps' is not a size such as 4MiB"             },
        {"",                         "verb: send, receives: 5000",
         "workload.0.receives: '5000' is out of range; from 0 to 4096"                                                                   },
        {"",                         "verb: send, receive_time: 5", "workload.0.receive_time: '5' is not a time"                         },
        {"",                         "rkey: lost",                  "workload.0.rkey: 'lost' is unknown; one of these is expected: right"},
        {"",                         "connections: 0",              "workload.0.connections: '0' is out of range; from 1 to"             },
        {"hosts: {nic: none}\n",     "verb: read",                  "workload.0.verb: there are no verbs without a NIC"                  },
        {"hosts: {nic: none}\n",     "rkey: right",                 "workload.0.rkey: there are no verbs"                                },
        {"hosts: {retry: 8}\n",      "verb: read",                  "hosts.retry: '8' is out of range; from 0 to 7"                      },
        {"hosts: {rnr_retry: 8}\n",  "verb: read",                  "hosts.rnr_retry: '8' is out of range"                               },
        {"hosts: {rnr_timer: 1s}\n", "verb: read",                  "hosts.rnr_timer: '1s' is out of range"                              },
        {"",                         "op: storage, verb: send",
         "workload.0: there is no field 'verb' with op storage; expected: op servers reads "
         "message"                                                                                                                       },
        {"",                         "op: storage, reads: 101%",    "workload.0.reads: '101%' is out of range"                           },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e = {""};
        char text[512];
        bool op = strncmp(rows[i].fields, "op:", 3) == 0;
        snprintf(text, sizeof(text), "%s" STAR "workload: [{%s%s}]\n", rows[i].hosts,
                 op ? "" : "op: incast, to: h3, ", rows[i].fields);
        scenario_init(&s);
        if (scenario_read_yaml(&s, bench_file(text), NULL, 0, &e))
            fail_msg("taken: %s", text);
        bench_contains(e.text, rows[i].message);
        scenario_free(&s);
    }
}

static void read__sets(void **state)
{
    (void)state;
    static const struct {
        const char *set, *message; /* NULL: taken */
    } rows[] = {
        {"switches.buffer=3MiB",        NULL                                                       },
        {"switches.ecn.kmin=1KB",       NULL                                                       },
        {"watchdog.detect=9ms",         NULL                                                       },
        {"switches.puffer=3MiB",
         "--set switches.puffer: there is no field 'puffer'; expected: buffer headroom"            },
        {"switches.buffer=3 potatoes",  "--set switches.buffer: '3 potatoes' is not a size"        },
        {"workload.7.bytes=1",
         "--set workload.7: there is no such item; the list has 1, from workload.0 to workload.0"  },
        {"workload.00.bytes=1",         "--set workload.00: there is no such item; the list has 1" },
        {"workload..bytes=1",           "--set workload.: there is no such item"                   },
        {"workload.all.bytes=1",        "--set workload.all: there is no such item"                },
        {"faults.0.at=1us",             "--set faults.0: there is no such item; the list has none" },
        {"seed.of=1",                   "--set seed.of=1: there is no such field"                  },
        {"workload.0.load=1%",          "--set workload.0.load: there is no field 'load' with op incast; "
                               "expected: op to senders bytes"       },
        {"topology.k=4",
         "--set topology.k: there is no field 'k' with shape star; expected: shape hosts rate"     },
        {"topology.hosts=5",            NULL                                                       },
        {"switches.convergence=never",  NULL                                                       },
        {"switches.convergence=0s",     NULL                                                       },
        {"switches.convergence=3601s",  "from 0ps to 3600s"                                        },
        {"switches.convergence=always",
         "--set switches.convergence: 'always' is not a time such as"                              },
        {"hosts.timeout=0s",            NULL                                                       },
        {"hosts.timeout=1us",           NULL                                                       },
        {"hosts.timeout=999999ps",      "--set hosts.timeout: '999999ps' is out of range; 0s, which is "
                                   "never, or from 1us to 3600s" },
        {"hosts.timeout=1ps",           "'1ps' is out of range"                                    },
        {"=1",                          "--set : there is no field ''; expected: name profile seed"},
        {"topology.shape=tsar",         "--set topology.shape: 'tsar' is unknown"                  },
        {"switches.lossless=none",      NULL                                                       },
        {"switches.ecn.priorities=0,3", NULL                                                       },
        {"seed=18446744073709551615",   NULL                                                       },
        {"seed=18446744073709551616",   "is not a whole number, from 0 to 18446744073709551615"    },
        {"hosts.rnr_timer=655360us",    NULL                                                       },
        {"hosts.window=5GiB",           NULL                                                       },
        {"switches=3",                  "--set switches: '3' cannot stand for fields"              },
        {"switches.ecn=off",            "--set switches.ecn: 'off' cannot stand for fields"        },
        {"switches.weights=3",          "--set switches.weights: '3' cannot stand for fields"      },
        {"hosts=none",                  "--set hosts: 'none' cannot stand for fields"              },
        {"topology=star",               "--set topology: 'star' cannot stand for fields"           },
        {"watchdog=on",                 "--set watchdog: 'on' cannot stand for fields"             },
        {"workload=incast",             "--set workload: 'incast' cannot stand for a list"         },
        {"workload.0=incast",           "--set workload.0: 'incast' cannot stand for fields"       },
        {"faults=none",                 "--set faults: 'none' cannot stand for a list"             },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e = {""};
        struct scenario_set set = {rows[i].set, false};
        scenario_init(&s);
        bool ok = scenario_read_yaml(&s, bench_file(STAR WORK), &set, 1, &e);
        assert_int_equal(ok, rows[i].message == NULL);
        if (rows[i].message != NULL)
            bench_contains(e.text, rows[i].message);
        scenario_free(&s);
    }
    bench_end();
}

static void same_flows(const struct scenario *a, const struct scenario *b)
{
    assert_int_equal(a->flows, b->flows);
    for (uint32_t i = 0; i < a->flows; i++) {
        const struct fabric_flow *v = &a->flow[i], *w = &b->flow[i];
        assert_true(v->src == w->src && v->dst == w->dst && v->priority == w->priority);
        assert_true(v->bytes == w->bytes && v->start_ps == w->start_ps);
        assert_true(v->group == w->group && v->after == w->after);
        assert_true(v->work.verb == w->work.verb && v->work.receives == w->work.receives);
        assert_true(v->work.message_bytes == w->work.message_bytes);
        assert_true(v->work.receive_ps == w->work.receive_ps);
        assert_true(v->work.wrong_rkey == w->work.wrong_rkey);
    }
}

static void same_topology(const struct scenario *a, const struct scenario *b)
{
    assert_int_equal(a->topology.nodes, b->topology.nodes);
    assert_int_equal(a->topology.links, b->topology.links);
    assert_memory_equal(a->is_switch, b->is_switch, a->topology.nodes);
    assert_memory_equal(a->name, b->name, a->topology.nodes * sizeof(*a->name));
    for (uint32_t i = 0; i < a->topology.links; i++) {
        const struct fabric_link *v = &a->link[i], *w = &b->link[i];
        assert_true(v->node[0] == w->node[0] && v->node[1] == w->node[1]);
        assert_true(v->rate_bps == w->rate_bps && v->delay_ps == w->delay_ps);
        assert_true(v->mtu_bytes == w->mtu_bytes && v->loss_ppm == w->loss_ppm);
        assert_true(v->corrupt_ppm == w->corrupt_ppm);
    }
    assert_int_equal(a->config.faults, b->config.faults);
    assert_int_equal(a->config.mappings, b->config.mappings);
    for (uint32_t i = 0; i < a->config.faults; i++)
        assert_true(a->fault[i].at_ps == b->fault[i].at_ps &&
                    a->fault[i].link == b->fault[i].link && a->fault[i].up == b->fault[i].up);
    for (uint32_t i = 0; i < a->config.mappings; i++)
        assert_true(a->mapping[i].node == b->mapping[i].node &&
                    a->mapping[i].pcp == b->mapping[i].pcp &&
                    a->mapping[i].dscp == b->mapping[i].dscp &&
                    a->mapping[i].priority == b->mapping[i].priority);
}

/* (case_126) What is kept of a scenario is the same scenario, and is kept the same. */
static void case_126_text_is_the_scenario(void **state)
{
    (void)state;
    static const char *const rows[] = {
        good,
        STAR WORK,
        "name: \"\\xfc: # '\\u2028 \\x1b\"\n" STAR WORK,
        "seed: 18446744073709551615\n" STAR WORK "limit: 1ps\n",
        STAR WORK "switches: {buffer: 300KB, pause_quanta: 7, alpha: 3}\n",
        STAR WORK "switches: {buffer: 300KB, lossless: [], trust: pcp}\n"
                  "faults: [{fault: mapping, switch: s0}]\n",
        STAR WORK "hosts: {nic: none, window: 3000, cc: hpcc}\nwatchdog: {action: alert}\n",
        STAR WORK "watchdog: {}\nhosts: {window: 0, cc: dcqcn-hw, payload: 4096}\n",
        "profile: hpcc-compat\n" STAR WORK "hosts: {cc: hpcc}\n",
        "topology: {shape: graph, nodes: [x, a, y, b], switches: [y, x], links: [{a: a, b: x}, "
        "{a: x, b: y, corrupt: 3ppm}, {a: y, b: b}]}\nworkload: [{op: flow, from: b, to: a}]\n",
        "topology: {shape: dumbbell, hosts: 6, uplink_rate: 2.5Gbps, uplink_delay: 7ns}\nworkload: "
        "[{op: all-to-all, bytes: 1000001, connections: 3}, {op: permutation, shift: 2}]\n",
        "topology: {shape: ring, switches: 5, hosts: 2, mtu: 2000}\nworkload: [{op: allreduce, "
        "rounds: 2, compute: 1ms, message: 4KiB}, {op: permutation, verb: send, receives: 9, "
        "receive_time: 3us}]\n",
        "topology: {shape: parking-lot, switches: 3, hosts: 1}\nworkload: [{op: storage, servers: "
        "2, reads: 70%, rounds: 9}]\n",
        "topology: {shape: leaf-spine, leaves: 3, spines: 2, hosts: 2}\nworkload: [{op: poisson, "
        "sizes: fb-hadoop, load: 12.5%, duration: 300us, rkey: wrong}]\n",
        "topology: {shape: fat-tree, k: 4}\nworkload: [{op: poisson, load: 50%}, {op: incast, to: "
        "h3, verb: read}]\n",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s, again;
        struct scenario_error e;
        struct scenario_set set = {"switches.ecn.pmax=3%", false};
        scenario_init(&s);
        if (!scenario_read_yaml(&s, bench_file(rows[i]), &set, 1, &e))
            fail_msg("%s", e.text);
        scenario_init(&again);
        if (!scenario_read_text(&again, "again", s.text, NULL, 0, &e))
            fail_msg("%s in\n%s", e.text, s.text);
        assert_string_equal(s.text, again.text);
        assert_string_equal(s.title, again.title);
        bench_contains(s.text, "pmax: 3%\n");
        same_topology(&s, &again);
        same_flows(&s, &again);
        assert_int_equal(s.config.seed, again.config.seed);
        assert_int_equal(s.config.switches.kmax_bytes, again.config.switches.kmax_bytes);
        assert_int_equal(s.config.switches.pause_quanta, again.config.switches.pause_quanta);
        assert_int_equal(s.config.hosts.window_bytes, again.config.hosts.window_bytes);
        assert_int_equal(s.config.hosts.ack_in_class, again.config.hosts.ack_in_class);
        assert_int_equal(s.config.watchdog, again.config.watchdog);
        scenario_free(&s);
        scenario_free(&again);
    }
}

static void read__mistakes_of_profiles_and_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"profile: htsim\n" STAR WORK,                                                "text.yaml:1: profile: 'htsim' is unknown; one of these"},
        {"profile: hpcc-compat\n" STAR WORK "hosts: {nic: engine}\n",
         "hosts.nic: hosts of this profile have no NIC; none is expected"                                                                     },
        {"topology: {shape: graph, nodes: [a, x], hosts: [a], switches: [x]}\n" WORK,
         "topology.hosts: nodes is there as well; one of both is expected"                                                                    },
        {"topology: {shape: graph, nodes: [a, x], switches: [y]}\n" WORK,
         "topology.switches.0: there is no node 'y'; one of nodes is expected"                                                                },
        {"topology: {shape: graph, nodes: [a, a]}\n" WORK,                            "topology.nodes.1: 'a' is there twice"                  },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e = {""};
        scenario_init(&s);
        assert_false(scenario_read_yaml(&s, bench_file(rows[i].text), NULL, 0, &e));
        bench_contains(e.text, rows[i].message);
        assert_null(s.text);
        scenario_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read__every_field),
        cmocka_unit_test(case_126_text_is_the_scenario),
        cmocka_unit_test(read__mistakes_of_profiles_and_nodes),
        cmocka_unit_test(read__mistakes),
        cmocka_unit_test(read__mistakes_of_names),
        cmocka_unit_test(read__mistakes_of_classes),
        cmocka_unit_test(read__mistakes_of_hosts),
        cmocka_unit_test(read__hosts_with_hpcc),
        cmocka_unit_test(read__lossless_or_control),
        cmocka_unit_test(read__verbs),
        cmocka_unit_test(read__mistakes_of_verbs),
        cmocka_unit_test(read__long_times),
        cmocka_unit_test(read__sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
