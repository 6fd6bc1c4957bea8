/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_watch.c: standstill, deadlock, watchdog.
 */
#include "rig.h"

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

static void watchdog__breaks_it(void **state)
{
    (void)state;
    static const struct {
        enum fabric_watchdog action;
        bool cured;
    } rows[] = {
        {WATCHDOG_DROP,    true },
        {WATCHDOG_FORWARD, true },
        {WATCHDOG_ALERT,   false}
    };
    for (int i = 0; i < 3; i++) {
        struct rig r;
        ring(&r);
        for (uint32_t w = 0; w < r.flows; w++)
            r.flow[w].bytes = 3 << 20;
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

/* Congestion that pauses all the time, and gets on. */
static void check__congestion_is_none(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 20, 100, 1000);
    r.config.switches.buffer_bytes = 4 << 20;
    for (uint32_t i = 0; i < 19; i++)
        rig_flow(&r, i, 19, 500000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.pauses > 19);
    assert_int_equal(r.totals.deadlock_ps, FABRIC_NEVER);
    rig_end(&r);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check__deadlock_in_a_ring),
        cmocka_unit_test(watchdog__breaks_it),
        cmocka_unit_test(check__no_deadlock_without_need),
        cmocka_unit_test(check__congestion_is_none),
        cmocka_unit_test(check__stall_is_told),
        cmocka_unit_test(check__late_flows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
