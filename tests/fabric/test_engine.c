/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine.c: the NIC engine as host: as fast as a bare source, lossless under incast,
 * recovering from losses by its own rules, giving up by them, and the same every time.
 */
#include "rig.h"

#include <errno.h>

#include "fabric/engine.h"

static void star(struct rig *r, uint32_t hosts)
{
    rig_star(r, hosts, 100, 1000);
    r->config.hosts.engine = true;
}

/* A CNP or a probe leaves without all that is ready to go by another priority. */
static void engine__takes_no_more_than_it_sends(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 2);
    r.config.hosts.cc = "ztr-target";
    for (uint32_t i = 0; i < 64; i++)
        rig_flow(&r, i % 2, 1 - i % 2, 1 << 20);
    rig_make(&r);
    while (r.f->sched.now_ps < 100 * FABRIC_US && fabric_run(r.f, 1) == FABRIC_RUNNING)
        assert_in_range(r.f->pool.in_use, 0, 4 * TRAIN_MAX_PACKETS);
    rig_end(&r);
}

/* Behind a priority that is paused, however much of it is ready, another one is reached. */
static void engine__paused_is_not_in_the_way(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 2);
    r.config.hosts.payload_bytes = 256;
    r.config.switches.buffer_bytes = 256 << 10;
    for (uint32_t i = 0; i < 101; i++)
        rig_flow(&r, 0, 1, 1 << 20);
    r.flow[100].priority = 1;
    rig_make(&r);
    pause_received(r.f, 0, 1 << 3, 0, FABRIC_QUANTA_HELD);
    while (rig_fct_ps(&r, 100) == FABRIC_NEVER && r.f->sched.now_ps < FABRIC_MS)
        assert_int_equal(fabric_run(r.f, 1), FABRIC_RUNNING);
    assert_in_range(rig_fct_ps(&r, 100), 85 * FABRIC_US, 150 * FABRIC_US);
    pause_received(r.f, 0, 0, 1 << 3, 0);
    assert_int_equal(fabric_run(r.f, 50000000), FABRIC_FINISHED);
    rig_end(&r);
}

/* FIRST has a RETH of 16 bytes more than a bare frame, on two links; the rest is the same. */
static void engine__one_flow(void **state)
{
    (void)state;
    static const uint64_t bytes[] = {1, 1000, 1024, 1025, 100000, 3 << 20};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        uint64_t fct[2];
        for (int engine = 0; engine < 2; engine++) {
            struct rig r;
            star(&r, 2);
            r.config.hosts.engine = engine == 1;
            rig_flow(&r, 0, 1, bytes[i]);
            assert_int_equal(rig_run(&r), FABRIC_FINISHED);
            fct[engine] = rig_fct_ps(&r, 0);
            assert_int_equal(r.totals.acked_bytes, bytes[i]);
            rig_end(&r);
        }
        /* Each megabyte is a message with a RETH; the engine counts time in ns. */
        assert_in_range(fct[1] + 1000, fct[0],
                        fct[0] + 2 * 16 * 80 * (1 + (bytes[i] >> 20)) + 8000);
    }
}

static void engine__incast_is_lossless(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 8);
    r.config.switches.buffer_bytes = 2 << 20;
    for (uint32_t i = 0; i < 7; i++)
        rig_flow(&r, i, 7, 3000000 + i);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.pauses > 0);
    assert_int_equal(r.totals.drops, 0);
    assert_int_equal(r.f->pool.in_use, 0);
    for (uint32_t i = 0; i < 7; i++) {
        struct fabric_flow_result result;
        fabric_flow_result(r.f, i, &result);
        assert_int_equal(result.retries, 0);
    }
    rig_end(&r);
}

/* One frame in 500 is broken: the engine's NAKs and time-outs get all of it through. */
static void engine__recovers(void **state)
{
    (void)state;
    struct rig r;
    struct fabric_flow_result result;
    star(&r, 2);
    r.link[1].loss_ppm = 2000;
    rig_flow(&r, 0, 1, 4 << 20);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    fabric_flow_result(r.f, 0, &result);
    assert_true(r.totals.drops_link > 0);
    assert_in_range(result.retries, 1, 2 * r.totals.drops_link);
    rig_end(&r);
}

/* Never shorter than what is asked for; 0 is the longest RNR timer, and no time-out at all. */
static void engine__codes_of_times(void **state)
{
    (void)state;
    static const struct {
        uint64_t ps;
        uint8_t rnr, timeout;
    } rows[] = {
        {0,                    1,  0 },
        {1,                    1,  1 },
        {8192000,              1,  1 },
        {8192001,              1,  2 },
        {10 * FABRIC_US,       1,  2 },
        {10 * FABRIC_US + 1,   2,  2 },
        {491520 * FABRIC_US,   31, 17},
        {491521 * FABRIC_US,   0,  17},
        {655360 * FABRIC_US,   0,  18},
        {3600000 * FABRIC_MS,  0,  30},
        {36000000 * FABRIC_MS, 0,  31},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(engine_rnr_code(rows[i].ps), rows[i].rnr);
        assert_int_equal(engine_timeout_code(rows[i].ps), rows[i].timeout);
    }
}

/* More than 32 bits hold is as good as no limit, not what is left of it in them. */
static void engine__windows(void **state)
{
    (void)state;
    static const uint64_t windows[] = {UINT64_C(1) << 20, UINT32_MAX, UINT64_C(1) << 32,
                                       (UINT64_C(1) << 32) + 4096, UINT64_C(1) << 50};
    uint64_t fct = 0;
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        struct rig r;
        star(&r, 2);
        r.link[0].delay_ps = 100 * FABRIC_US; /* so that the window is what counts */
        r.config.switches.buffer_bytes = 64 << 20;
        r.config.hosts.window_bytes = windows[i];
        rig_flow(&r, 0, 1, 4 << 20);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        if (i == 0)
            assert_true(rig_fct_ps(&r, 0) > 700 * FABRIC_US);
        else if (i == 1)
            fct = rig_fct_ps(&r, 0);
        else
            assert_int_equal(rig_fct_ps(&r, 0), fct);
        rig_end(&r);
    }
    assert_in_range(fct, 400 * FABRIC_US, 600 * FABRIC_US);
}

/* Pairs of one host need more QPNs than a slot has. */
static void engine__many_flows(void **state)
{
    (void)state;
    enum { FLOWS = QPN_PER_SLOT + 1 };
    struct fabric_flow *flows = calloc(FLOWS, sizeof(*flows));
    struct rig r;
    uint32_t bad;
    assert_non_null(flows);
    star(&r, 2);
    rig_flow(&r, 0, 1, 1);
    for (uint32_t i = 0; i < FLOWS; i++)
        flows[i] = r.flow[0];
    assert_int_equal(fabric_create(&r.config, &r.topology, flows, FLOWS, &r.f, &bad), 0);
    assert_int_equal(fabric_run(r.f, UINT64_MAX), FABRIC_FINISHED);
    rig_end(&r);
    free(flows);
}

/* What a CQ does not hold is told of its host before anything is made. */
static void engine__too_many_receives(void **state)
{
    (void)state;
    enum { FLOWS = FABRIC_MAX_POSTED / (FABRIC_MAX_RECEIVES + 1) + 1 };
    struct fabric_flow *flows = calloc(FLOWS, sizeof(*flows));
    struct rig r;
    struct fabric *f;
    uint32_t bad = 99;
    assert_non_null(flows);
    star(&r, 3);
    rig_flow(&r, 1, 2, 1);
    r.flow[0].work = (struct fabric_work){.verb = FABRIC_SEND, .receives = FABRIC_MAX_RECEIVES};
    for (uint32_t i = 0; i < FLOWS; i++)
        flows[i] = r.flow[0];
    assert_int_equal(fabric_create(&r.config, &r.topology, flows, FLOWS, &f, &bad), -E2BIG);
    assert_int_equal(bad, 2);
    free(flows);
}

/* The link stays down: after seven retries the QP is in error, and the run ends and says so. */
static void engine__gives_up(void **state)
{
    (void)state;
    static const struct fabric_fault fault = {20 * FABRIC_US, 1, false};
    struct rig r;
    struct fabric_flow_result result;
    star(&r, 2);
    r.config.fault = &fault;
    r.config.faults = 1;
    rig_flow(&r, 0, 1, 1 << 20);
    rig_flow(&r, 1, 0, 64);
    assert_int_equal(rig_run(&r), FABRIC_FAILED);
    assert_int_equal(r.totals.finished, 1);
    assert_int_equal(r.totals.failed, 1);
    fabric_flow_result(r.f, 0, &result);
    assert_int_equal(result.retries, 7);
    assert_int_equal(result.fct_ps, FABRIC_NEVER);
    assert_int_equal(result.status, WC_RETRY_EXC_ERR);
    assert_int_equal(result.state[0], QP_STATE_ERR);
    assert_int_equal(result.state[1], QP_STATE_RTS);
    assert_in_range(result.failed_ps, 20 * FABRIC_US, r.totals.now_ps);
    rig_end(&r);
}

/* By priorities of their own, in groups, both ways between the same hosts. */
static void engine__priorities_and_groups(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 3);
    rig_flow(&r, 0, 1, 200000);
    rig_flow(&r, 0, 1, 200000);
    rig_flow(&r, 1, 0, 200000);
    r.flow[0].priority = 1;
    r.flow[1].group = 0;
    r.flow[2].after = 0;
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    struct fabric_flow_result a, b, c;
    fabric_flow_result(r.f, 0, &a);
    fabric_flow_result(r.f, 1, &b);
    fabric_flow_result(r.f, 2, &c);
    assert_true(a.fct_ps > b.fct_ps + 10 * FABRIC_US); /* 3 before 1 */
    assert_int_equal(c.start_ps, b.start_ps + b.fct_ps);
    rig_end(&r);
}

static void engine__same_twice(void **state)
{
    (void)state;
    struct fabric_totals totals[2];
    for (int run = 0; run < 2; run++) {
        struct rig r;
        star(&r, 6);
        r.config.switches.lossless = 0;
        r.config.switches.buffer_bytes = 300000;
        for (uint32_t i = 0; i < 5; i++)
            rig_flow(&r, i, 5, 500000);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        totals[run] = r.totals;
        rig_end(&r);
    }
    assert_memory_equal(&totals[0], &totals[1], sizeof(totals[0]));
    assert_true(totals[0].drops > 0);
}

/* Marks make CNPs, which travel and slow down: the queue is shorter and the pauses are fewer, for
 * WRITEs as for READs, and two runs are the same. With round-trip times no mark is needed. */
static void engine__congestion_control(void **state)
{
    (void)state;
    static const struct {
        const char *cc;
        enum fabric_verb verb;
        bool marks;
    } rows[] = {
        {NULL,          FABRIC_WRITE, true },
        {"dcqcn-paper", FABRIC_WRITE, true },
        {"dcqcn-hw",    FABRIC_WRITE, true },
        {"dcqcn-paper", FABRIC_READ,  true },
        {"ztr-target",  FABRIC_WRITE, false},
    };
    uint64_t pauses = 0;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        static struct fabric_totals first;
        uint64_t cnps = 0;
        star(&r, 8);
        r.config.hosts.cc = rows[i / 2].cc;
        r.config.switches.buffer_bytes = 2 << 20;
        r.config.switches.kmin_bytes = 20000;
        r.config.switches.kmax_bytes = 80000;
        if (!rows[i / 2].marks)
            r.config.switches.ecn = 0;
        for (uint32_t k = 0; k < 7; k++) {
            rig_flow(&r, k, 7, 8000000);
            r.flow[k].work.verb = rows[i / 2].verb;
        }
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        for (uint32_t k = 0; k < 7; k++) {
            struct fabric_flow_result result;
            fabric_flow_result(r.f, k, &result);
            cnps += result.cnps;
            assert_int_equal(result.retries, 0);
        }
        assert_int_equal(r.totals.drops, 0);
        assert_int_equal(r.totals.bytes, r.totals.arrived_bytes);
        if (rows[i / 2].cc == NULL)
            pauses = r.totals.pauses;
        else
            assert_true(r.totals.pauses < pauses / 2);
        assert_int_equal(cnps != 0, rows[i / 2].marks && rows[i / 2].cc != NULL);
        if (i % 2 == 0)
            first = r.totals;
        else
            assert_memory_equal(&first, &r.totals, sizeof(first));
        rig_end(&r);
    }
    assert_true(pauses > 0);
}

/* A probe's time is that of the way: it neither waits for the train it was made with, 5 us long,
 * nor does its answer for the train that the other side sends. */
static void engine__probes_do_not_wait(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 2);
    r.config.hosts.cc = "timely";
    rig_flow(&r, 0, 1, 2 << 20);
    rig_flow(&r, 1, 0, 2 << 20);
    r.flow[1].priority = 6; /* as answers */
    rig_make(&r);
    unsigned seen = 0;
    while (fabric_run(r.f, 1) == FABRIC_RUNNING) {
        for (int i = 0; i < 2; i++) {
            uint64_t rtt_ns = r.f->engine_flow[i].qp[0]->congestion->cc.timely.rtt_ns;
            assert_in_range(rtt_ns, 0, 5000); /* 4 us of links, a frame before it at each */
            seen += rtt_ns > 4000;
        }
    }
    assert_true(seen > 1000);
    rig_end(&r);
}

static void engine__refused(void **state)
{
    (void)state;
    for (int row = 0; row < 4; row++) {
        struct rig r;
        struct fabric *f;
        uint32_t bad;
        star(&r, 2);
        rig_flow(&r, 0, 1, 1000);
        if (row == 0)
            r.config.hosts.cc = "cubic";
        else
            r.config.hosts.payload_bytes = row == 1 ? 1000 : row == 2 ? 128 : 8192;
        assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engine__codes_of_times),
        cmocka_unit_test(engine__windows),
        cmocka_unit_test(engine__one_flow),
        cmocka_unit_test(engine__takes_no_more_than_it_sends),
        cmocka_unit_test(engine__paused_is_not_in_the_way),
        cmocka_unit_test(engine__many_flows),
        cmocka_unit_test(engine__too_many_receives),
        cmocka_unit_test(engine__incast_is_lossless),
        cmocka_unit_test(engine__recovers),
        cmocka_unit_test(engine__gives_up),
        cmocka_unit_test(engine__priorities_and_groups),
        cmocka_unit_test(engine__same_twice),
        cmocka_unit_test(engine__congestion_control),
        cmocka_unit_test(engine__probes_do_not_wait),
        cmocka_unit_test(engine__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
