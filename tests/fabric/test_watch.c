/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_watch.c: standstill, deadlock, watchdog.
 */
#include "rig.h"

#include "verbena/types.h"

/* Five switches in a ring, two hosts at each; every flow takes two steps round it, since the way
 * is made one-way by a longer detour: the classic circle of buffers. */
static void ring(struct rig *r)
{
    memset(r, 0, sizeof(*r));
    fabric_defaults(&r->config);
    rig_compat(r);
    r->config.switches.buffer_bytes = 1 << 20;
    r->topology = (struct fabric_topology){.nodes = 15, .is_switch = r->is_switch, .link = r->link};
    memset(r->is_switch + 10, 1, 5);
    for (uint32_t i = 0; i < 10; i++)
        rig_link(r, i, 10 + i / 2, 100, 1000);
    for (uint32_t i = 0; i < 5; i++)
        rig_link(r, 10 + i, 10 + (i + 1) % 5, 100, 1000);
    static const uint32_t pairs[5][2] = {
        {0, 5},
        {2, 7},
        {4, 9},
        {6, 1},
        {8, 3}
    };
    for (uint32_t i = 0; i < 5; i++)
        rig_flow(r, pairs[i][0], pairs[i][1], 16 << 20);
}

static void check__deadlock_in_a_ring(void **state)
{
    (void)state;
    struct rig r;
    ring(&r);
    assert_int_equal(rig_run(&r), FABRIC_STALLED);
    assert_int_equal(r.totals.finished, 0);
    assert_true(r.totals.deadlock_ps > 0 && r.totals.deadlock_ps < FABRIC_MS);
    assert_int_equal(r.totals.drops, 0);
    rig_end(&r);
}

/* Every other flow goes by a class of its own, which links prefer. */
static void two_classes(struct rig *r)
{
    r->config.switches.lossless = 1 << 3 | 1 << 4;
    r->config.switches.weight[3] = 1;
    r->config.switches.weight[4] = 8;
    for (uint32_t w = 1; w < r->flows; w += 2)
        r->flow[w].priority = 4;
}

/* Pauses of the whole link stop what is of another class than what was too much: a circle of links,
 * whatever the classes in it, which PFC has not. Engines or bare sources. */
static void check__deadlock_of_links(void **state)
{
    (void)state;
    static const struct {
        bool engine, link_pause, two_classes;
        bool deadlock;
    } rows[] = {
        {false, true,  false, true },
        {false, true,  true,  true },
        {false, false, true,  false},
        {true,  false, false, true },
        {true,  true,  false, true },
        {true,  true,  true,  true },
        {true,  false, true,  false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        ring(&r);
        r.config.hosts.engine = rows[i].engine;
        r.config.hosts.payload_bytes = 1024;
        r.config.switches.link_pause = rows[i].link_pause;
        for (uint32_t w = 0; w < r.flows; w++)
            r.flow[w].bytes = 4 << 20;
        if (rows[i].two_classes)
            two_classes(&r);
        assert_int_equal(rig_run(&r), rows[i].deadlock ? FABRIC_STALLED : FABRIC_FINISHED);
        assert_int_equal(r.totals.deadlock_ps < FABRIC_MS, rows[i].deadlock);
        assert_int_equal(r.totals.deadlock_ps == FABRIC_NEVER, !rows[i].deadlock);
        assert_int_equal(r.totals.drops, 0);
        unsigned in_it = 0;
        for (uint32_t port = 0; port < fabric_ports(r.f); port++)
            in_it += r.f->port[port].at_switch && fabric_deadlock(r.f, port) != 0;
        assert_int_equal(in_it, rows[i].deadlock ? 5 : 0); /* those on the way round */
        rig_end(&r);
    }
}

static void watchdog__breaks_it(void **state)
{
    (void)state;
    static const struct {
        enum fabric_watchdog action;
        bool links; /* paused as a whole, for flows of two classes */
        bool cured;
    } rows[] = {
        {WATCHDOG_DROP,    false, true },
        {WATCHDOG_FORWARD, false, true },
        {WATCHDOG_ALERT,   false, false},
        {WATCHDOG_DROP,    true,  true },
        {WATCHDOG_FORWARD, true,  true },
        {WATCHDOG_ALERT,   true,  false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        ring(&r);
        if (rows[i].links)
            two_classes(&r);
        r.config.switches.link_pause = rows[i].links;
        r.config.hosts.payload_bytes = 1024;
        for (uint32_t w = 0; w < r.flows; w++)
            r.flow[w].bytes = 4 << 20;
        r.config.watchdog = rows[i].action;
        r.config.hosts.timeout_ps = FABRIC_MS;
        r.config.detect_ps = 5 * FABRIC_MS;
        r.config.restore_ps = 5 * FABRIC_MS;
        assert_int_equal(rig_run(&r), rows[i].cured ? FABRIC_FINISHED : FABRIC_STALLED);
        assert_true(r.totals.deadlock_ps != FABRIC_NEVER);
        assert_true(r.totals.storms >= 1);
        assert_true((r.totals.drops_watchdog > 0) == (rows[i].action == WATCHDOG_DROP));
        rig_end(&r);
    }
}

/* Enough buffer for all that is under way: a circle, but no deadlock. */
static void check__no_deadlock_without_need(void **state)
{
    (void)state;
    struct rig r;
    ring(&r);
    r.config.switches.buffer_bytes = 256 << 20;
    for (uint32_t w = 0; w < r.flows; w++)
        r.flow[w].bytes = 1 << 20;
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_int_equal(r.totals.deadlock_ps, FABRIC_NEVER);
    rig_end(&r);
}

/* Congestion that pauses all the time, classes or links, and gets on. */
static void check__congestion_is_none(void **state)
{
    (void)state;
    for (unsigned link_pause = 0; link_pause <= 1; link_pause++) {
        struct rig r;
        rig_star(&r, 20, 100, 1000);
        r.config.switches.buffer_bytes = 4 << 20;
        r.config.switches.lossless = 1 << 3 | 1 << 4;
        r.config.switches.link_pause = link_pause != 0;
        for (uint32_t i = 0; i < 19; i++) {
            rig_flow(&r, i, 19, 500000);
            r.flow[i].priority = link_pause != 0 ? 3 + i % 2 : 3;
        }
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_true(r.totals.pauses > 19);
        assert_int_equal(r.totals.deadlock_ps, FABRIC_NEVER);
        rig_end(&r);
    }
}

/* Nothing comes back any more: no endless run. */
static void check__stall_is_told(void **state)
{
    (void)state;
    static const struct fabric_fault fault = {50 * FABRIC_US, 0, false};
    struct rig r;
    rig_star(&r, 3, 100, 1000);
    r.config.fault = &fault;
    r.config.faults = 1;
    rig_flow(&r, 0, 2, 10000000);
    rig_flow(&r, 1, 2, 100000);
    assert_int_equal(rig_run(&r), FABRIC_STALLED);
    assert_int_equal(r.totals.finished, 1);
    assert_int_equal(r.totals.deadlock_ps, FABRIC_NEVER);
    rig_end(&r);
}

/* What starts late is no standstill before. */
static void check__late_flows(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 2, 100, 1000);
    rig_flow(&r, 0, 1, 1000);
    rig_flow(&r, 0, 1, 1000);
    r.flow[1].start_ps = 500 * FABRIC_MS;
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_int_equal(rig_fct_ps(&r, 0), rig_fct_ps(&r, 1));
    rig_end(&r);
}

/* What takes long is none: retries with long times between them, an RNR timer, slow links. */
static void check__long_waits(void **state)
{
    (void)state;
    static const struct {
        uint64_t kbps, timeout_us, rnr_us, bytes;
        uint32_t mtu_bytes, payload_bytes;
        bool engine, send;
        enum fabric_state end;
        uint64_t least_us, status;
    } rows[] = {
        {100000000, 4000,   10,     100000,  512, 1024, true,  false, FABRIC_FAILED,   33554,
         WC_RETRY_EXC_ERR                                                                       },
        {100000000, 5000,   10,     100000,  512, 1024, true,  false, FABRIC_FAILED,   67108,
         WC_RETRY_EXC_ERR                                                                       },
        {100000000, 100000, 10,     100000,  512, 1024, true,  false, FABRIC_FAILED,   800000,
         WC_RETRY_EXC_ERR                                                                       },
        {100000000, 0,      100000, 100000,  0,   1024, true,  true,  FABRIC_FAILED,   200000,
         WC_RNR_RETRY_EXC_ERR                                                                   },
        {100000000, 4000,   600000, 100000,  0,   1024, true,  true,  FABRIC_FAILED,   200000,
         WC_RNR_RETRY_EXC_ERR                                                                   },
        {10000,     0,      10,     1 << 20, 0,   1024, true,  false, FABRIC_FINISHED, 800000, 0},
        {10000,     0,      10,     1 << 20, 0,   1024, false, false, FABRIC_FINISHED, 800000, 0},
        {1000,      0,      10,     45000,   0,   9000, false, false, FABRIC_FINISHED, 300000, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        struct fabric_flow_result result;
        rig_star(&r, 2, 1, 1000);
        for (unsigned side = 0; side < 2; side++) {
            r.link[side].rate_bps = rows[i].kbps * 1000;
            r.link[side].mtu_bytes = rows[i].mtu_bytes;
        }
        r.config.hosts.engine = rows[i].engine;
        r.config.hosts.payload_bytes = rows[i].payload_bytes;
        r.config.hosts.timeout_ps = rows[i].timeout_us * FABRIC_US;
        r.config.hosts.rnr_timer_ps = rows[i].rnr_us * FABRIC_US;
        r.config.hosts.rnr_retry = 2;
        rig_flow(&r, 0, 1, rows[i].bytes);
        r.flow[0].work.verb = rows[i].send ? FABRIC_SEND : FABRIC_WRITE;
        assert_int_equal(rig_run(&r), rows[i].end);
        fabric_flow_result(r.f, 0, &result);
        assert_int_equal(result.status, rows[i].status);
        assert_true(r.totals.now_ps >= rows[i].least_us * FABRIC_US);
        rig_end(&r);
    }
}

/* Frames that move for ever and get nobody on: retries of a source that has no limit, RNR NAKs. */
static void check__busy_standstill(void **state)
{
    (void)state;
    for (unsigned engine = 0; engine < 2; engine++) {
        struct rig r;
        rig_star(&r, 2, 100, 1000);
        r.config.hosts.engine = engine != 0;
        r.config.hosts.timeout_ps = FABRIC_MS;
        if (engine == 0)
            r.link[1].mtu_bytes = 512;
        rig_flow(&r, 0, 1, 100000);
        r.flow[0].work.verb = FABRIC_SEND;
        assert_int_equal(rig_run(&r), FABRIC_STALLED);
        assert_in_range(r.totals.now_ps, 20 * FABRIC_MS, 100 * FABRIC_MS);
        assert_true(r.totals.link_hops > 20);
        rig_end(&r);
    }
}

/* Only where the same frames arrive again and again: not where none do, nor where a circle of
 * pauses holds them, nor where the message is long and gets on, however slowly. */
static void check__livelock(void **state)
{
    (void)state;
    static const struct fabric_fault down = {50 * FABRIC_US, 1, false};
    static const struct {
        bool go_back_0, in_ring;
        uint32_t loss_ppm;
        uint64_t bytes;
        uint32_t mtu_bytes, faults;
        enum fabric_state end;
        const char *cc; /* whose least rate is low: all that is left would take minutes */
    } rows[] = {
        {true,  false, 4000,    64 << 20,  0,   0, FABRIC_LIVELOCK, "dcqcn-hw"},
        {true,  false, 4000,    4 << 20,   0,   0, FABRIC_LIVELOCK, NULL      },
        {true,  false, 4000,    64 << 20,  0,   0, FABRIC_LIVELOCK, NULL      },
        {false, false, 4000,    64 << 20,  0,   0, FABRIC_FINISHED, NULL      },
        {true,  false, 4000,    10000,     0,   0, FABRIC_FINISHED, NULL      },
        {true,  false, 0,       500 << 20, 0,   0, FABRIC_FINISHED, NULL      },
        {true,  false, 1000000, 4 << 20,   0,   0, FABRIC_STALLED,  NULL      },
        {true,  false, 4000,    4 << 20,   512, 0, FABRIC_STALLED,  NULL      },
        {true,  false, 4000,    4 << 20,   0,   1, FABRIC_STALLED,  NULL      },
        {false, true,  0,       16 << 20,  0,   0, FABRIC_STALLED,  NULL      },
        {true,  true,  0,       16 << 20,  0,   0, FABRIC_STALLED,  NULL      },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        if (rows[i].in_ring) {
            ring(&r);
        } else {
            rig_star(&r, 3, 100, 1000);
            rig_flow(&r, 0, 1, rows[i].bytes);
            rig_flow(&r, 0, 2, 5000000); /* gets on when the other one waits */
        }
        r.config.hosts.go_back_0 = rows[i].go_back_0;
        r.config.hosts.timeout_ps = FABRIC_MS;
        r.config.hosts.cc = rows[i].cc;
        r.link[1].loss_ppm = rows[i].loss_ppm;
        r.link[1].mtu_bytes = rows[i].mtu_bytes;
        r.config.fault = &down;
        r.config.faults = rows[i].faults;
        assert_int_equal(rig_run(&r), rows[i].end);
        assert_int_equal(r.totals.deadlock_ps != FABRIC_NEVER, rows[i].in_ring);
        if (rows[i].end != FABRIC_FINISHED)
            assert_int_equal(r.totals.finished, rows[i].in_ring ? 0 : 1);
        assert_true(r.totals.progress_ps <= r.totals.now_ps);
        if (rows[i].end == FABRIC_LIVELOCK)
            assert_true(r.totals.now_ps - r.totals.progress_ps > 20 * FABRIC_MS);
        rig_end(&r);
    }
}

/* What is still to come may end it: a link that goes up, a flow that starts. */
static void check__waits_for_what_comes(void **state)
{
    (void)state;
    static const struct fabric_fault fault[] = {
        {1 * FABRIC_US,   0, false},
        {900 * FABRIC_MS, 0, true }
    };
    for (uint32_t faults = 1; faults <= 2; faults++) {
        struct rig r;
        rig_star(&r, 3, 100, 1000);
        r.config.fault = fault;
        r.config.faults = faults;
        rig_flow(&r, 0, 2, 1000000);
        rig_flow(&r, 1, 2, 1000);
        r.flow[1].start_ps = 500 * FABRIC_MS;
        assert_int_equal(rig_run(&r), faults == 2 ? FABRIC_FINISHED : FABRIC_STALLED);
        assert_int_equal(r.totals.finished, faults);
        assert_true(rig_fct_ps(&r, 1) < FABRIC_MS);
        rig_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check__deadlock_in_a_ring),
        cmocka_unit_test(check__deadlock_of_links),
        cmocka_unit_test(watchdog__breaks_it),
        cmocka_unit_test(check__no_deadlock_without_need),
        cmocka_unit_test(check__congestion_is_none),
        cmocka_unit_test(check__stall_is_told),
        cmocka_unit_test(check__late_flows),
        cmocka_unit_test(check__long_waits),
        cmocka_unit_test(check__busy_standstill),
        cmocka_unit_test(check__livelock),
        cmocka_unit_test(check__waits_for_what_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
