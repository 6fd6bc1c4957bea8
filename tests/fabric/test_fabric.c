/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_fabric.c: whole fabrics against times worked out by hand, and what is refused.
 */
#include "rig.h"

#include <errno.h>

/* A full frame 83.84 ns, the last of 624 bytes 49.92 ns, an ACK 4.8 ns, links 1 us: the last frame
 * waits at the switch for the one before. */
static void run__one_flow(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 16, 100, 1000);
    rig_compat(&r);
    rig_flow(&r, 0, 15, 1048576);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_int_equal(rig_fct_ps(&r, 0), 92007680); /* V01: 92007.68 ns */
    struct fabric_flow_result result;
    fabric_flow_result(r.f, 0, &result);
    assert_int_equal(result.ideal_ps, 92007680);
    assert_int_equal(r.totals.link_hops, 4 * 1049);
    assert_int_equal(r.totals.pauses, 0);
    rig_end(&r);
}

static void run__incast_drains(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 16, 100, 1000);
    rig_compat(&r);
    for (uint32_t i = 0; i < 15; i++)
        rig_flow(&r, i, 15, 1048576);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    uint64_t last = 0;
    for (uint32_t i = 0; i < 15; i++)
        if (rig_fct_ps(&r, i) > last)
            last = rig_fct_ps(&r, i);
    assert_in_range(last, 1322710000, 1322910000); /* V02: 1322.81 us +- 0.1 */
    assert_in_range(r.totals.max_queue_bytes, 15384992 - 1048, 15384992 + 1048);
    assert_int_equal(r.totals.drops, 0);
    assert_int_equal(r.totals.pauses, 0);
    rig_end(&r);
}

/* What is left when all has arrived: nothing, anywhere. */
static void run__leaves_nothing(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 8, 100, 1000);
    r.config.switches.buffer_bytes = 2 << 20;
    for (uint32_t i = 0; i < 7; i++)
        rig_flow(&r, i, 7, 300000 + i);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.pauses > 0);
    assert_true(r.totals.resumes > 0);
    assert_int_equal(r.totals.drops, 0);
    assert_int_equal(r.f->pool.in_use, 0);
    assert_int_equal(r.f->sw[0].used_bytes, 0);
    for (uint32_t p = 0; p < r.f->ports; p++) {
        assert_int_equal(r.f->port[p].in_bytes[3], 0);
        assert_int_equal(r.f->port[p].in_headroom[3], 0);
        assert_int_equal(r.f->port[p].stopped, 0);
    }
    rig_end(&r);
}

static void run__same_twice(void **state)
{
    (void)state;
    uint64_t fct[2][7];
    struct fabric_totals totals[2];
    for (int run = 0; run < 2; run++) {
        struct rig r;
        rig_star(&r, 8, 100, 1000);
        r.config.switches.buffer_bytes = 2 << 20;
        r.config.switches.kmin_bytes = 5000;
        r.config.seed = 7;
        for (uint32_t i = 0; i < 7; i++)
            rig_flow(&r, i, 7, 200000);
        rig_run(&r);
        for (uint32_t i = 0; i < 7; i++)
            fct[run][i] = rig_fct_ps(&r, i);
        totals[run] = r.totals;
        rig_end(&r);
    }
    assert_memory_equal(fct[0], fct[1], sizeof(fct[0]));
    assert_memory_equal(&totals[0], &totals[1], sizeof(totals[0]));
    assert_true(totals[0].ecn_marks > 0);
}

static void run__ends_at_its_limit(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 2, 100, 1000);
    r.config.limit_ps = 10 * FABRIC_US;
    rig_flow(&r, 0, 1, 10000000);
    assert_int_equal(rig_run(&r), FABRIC_LIMIT);
    assert_int_equal(r.totals.now_ps, 10 * FABRIC_US);
    assert_int_equal(rig_fct_ps(&r, 0), FABRIC_NEVER);
    rig_end(&r);
}

static void run__out_of_packets(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 3, 100, 1000);
    r.config.max_packets = 100;
    rig_flow(&r, 0, 2, 1000000);
    rig_flow(&r, 1, 2, 1000000);
    assert_int_equal(rig_run(&r), FABRIC_FULL);
    rig_end(&r);
}

static void fault__a_link_flaps(void **state)
{
    (void)state;
    static const struct fabric_fault faults[] = {
        {20 * FABRIC_US, 1, false},
        {60 * FABRIC_US, 1, true }
    };
    struct rig r;
    rig_star(&r, 2, 100, 1000);
    r.config.fault = faults;
    r.config.faults = 2;
    rig_flow(&r, 0, 1, 1000000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    struct fabric_flow_result result;
    fabric_flow_result(r.f, 0, &result);
    assert_true(result.retries >= 1);
    assert_true(r.totals.drops_link + r.totals.drops_route > 0);
    /* 1 MB is 88 us; 40 us of it were lost, and it goes back to what was under way at 20 us. */
    assert_in_range(result.fct_ps, 130 * FABRIC_US, 150 * FABRIC_US);
    rig_end(&r);
}

static void create__refuses(void **state)
{
    (void)state;
    struct rig r;
    struct fabric *f;
    uint32_t bad = 99;
    for (int row = 0; row < 15; row++) {
        struct fabric_fault fault = {0, 9, true};
        rig_star(&r, 3, 100, 1000);
        rig_flow(&r, 0, 1, 1000);
        rig_flow(&r, 1, 2, 1000);
        switch (row) {
        case 0:
            r.flow[1].src = 3;
            break; /* a switch */
        case 1:
            r.flow[1].dst = 4;
            break;
        case 2:
            r.flow[1].dst = 1;
            break;
        case 3:
            r.flow[1].bytes = 0;
            break;
        case 4:
            r.flow[1].priority = 8;
            break;
        case 5:
            r.link[0].node[0] = 7;
            break;
        case 6:
            r.link[0].node[0] = 3;
            break; /* to itself, and host 0 has none */
        case 7:
            r.link[0].rate_bps = 0;
            break;
        case 8:
            r.config.switches.alpha_den = 0;
            break;
        case 9:
            r.config.switches.buffer_bytes = 1000;
            break; /* less than the headroom */
        case 10:
            rig_link(&r, 0, 3, 100, 1000);
            break; /* a host with two links */
        case 11:
            r.flow[1].group = 2;
            break;
        case 12:
            r.flow[1].after = r.flow[1].group = 1;
            break;
        case 13:
            r.config.switches.kmin_bytes = 2000000;
            break;
        default:
            r.config.fault = &fault;
            r.config.faults = 1;
            break;
        }
        int rc = fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad);
        assert_int_equal(rc, row == 9 ? -ENOSPC : -EINVAL);
        if (row ==
            9) /* three ports, one lossless class each: what the message asks for is enough */
            assert_true(bad > 1000 && bad < 1 << 20);
    }
}

/* Beyond what can be counted, or what an RNR NAK can say. */
static void create__refuses_times(void **state)
{
    (void)state;
    struct rig r;
    struct fabric *f;
    uint32_t bad;
    uint64_t *const times[] = {&r.config.hosts.timeout_ps,
                               &r.config.hosts.cnp_interval_ps,
                               &r.config.detect_ps,
                               &r.config.restore_ps,
                               &r.config.limit_ps,
                               &r.config.hosts.rnr_timer_ps,
                               &r.config.switches.converge_ps};
    for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        rig_star(&r, 2, 100, 1000);
        rig_flow(&r, 0, 1, 1000);
        *times[i] = FABRIC_MAX_RNR_PS;
        rig_make(&r);
        rig_end(&r);
        *times[i] = i == 5 ? FABRIC_MAX_RNR_PS + 1 : SCHED_MAX_PS;
        assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad), -EINVAL);
    }
    struct fabric_fault fault = {SCHED_MAX_PS / 2 + 1, 0, false};
    rig_star(&r, 2, 100, 1000);
    rig_flow(&r, 0, 1, 1000);
    r.config.fault = &fault;
    r.config.faults = 1;
    assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__one_flow),          cmocka_unit_test(run__incast_drains),
        cmocka_unit_test(run__leaves_nothing),    cmocka_unit_test(run__same_twice),
        cmocka_unit_test(run__ends_at_its_limit), cmocka_unit_test(run__out_of_packets),
        cmocka_unit_test(fault__a_link_flaps),    cmocka_unit_test(create__refuses),
        cmocka_unit_test(create__refuses_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
