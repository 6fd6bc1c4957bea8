/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_source.c: the bare source: turns, windows, acknowledgements, going back, CNPs.
 */
#include "rig.h"

/* Flows of one host share its link, a frame each. */
static void pull__takes_turns(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 5, 100, 1000);
    for (uint32_t i = 1; i < 5; i++)
        rig_flow(&r, 0, i, 102400);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    /* 100 frames each, in turn; the first flow had one before the others began. */
    assert_int_equal(rig_fct_ps(&r, 1) - rig_fct_ps(&r, 0), 4 * 1106 * 80);
    for (uint32_t i = 2; i < 4; i++)
        assert_int_equal(rig_fct_ps(&r, i) - rig_fct_ps(&r, i - 1), 1106 * 80);
    rig_end(&r);
}

static void pull__no_more_than_the_window(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 2, 100, 10000);
    r.config.hosts.window_bytes = 4 * 1024;
    rig_flow(&r, 0, 1, 16 * 1024);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    /* Four rounds of four frames, each ended by the ACK of the first frame of the one before. */
    uint64_t round = 2 * (1106 + 86) * 80 + 40 * FABRIC_US;
    assert_in_range(rig_fct_ps(&r, 0), 4 * round, 4 * round + 4 * 1106 * 80);
    rig_end(&r);
}

/* A congested lossy class: what is lost comes again, from the missing frame on. */
static void receive__goes_back(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 5, 100, 1000);
    r.config.switches.lossless = 0;
    r.config.switches.buffer_bytes = 200000;
    for (uint32_t i = 0; i < 4; i++)
        rig_flow(&r, i, 4, 300000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.drops_threshold > 0);
    uint32_t retries = 0;
    for (uint32_t i = 0; i < 4; i++) {
        struct fabric_flow_result result;
        fabric_flow_result(r.f, i, &result);
        assert_true(result.fct_ps > result.ideal_ps);
        retries += result.retries;
    }
    assert_true(retries > 0);
    rig_end(&r);
}

/* case_132: one frame in 256 is lost. Going back to the missing frame gets 4 MiB messages through;
 * going back to the message's first would hardly ever: it takes 4096 frames in a row. A bare source
 * has one such message, an engine four of 1 MiB. */
static void case_132_go_back_n_progresses(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        struct rig r;
        rig_star(&r, 2, 100, 1000);
        r.config.hosts.engine = engine == 1;
        for (int i = 0; i < 4; i++)
            rig_flow(&r, 0, 1, 4 << 20);
        r.link[1].loss_ppm = 1000000 / 256;
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_true(r.totals.drops_link > 4 * 4096 / 512);
        uint64_t slowest = 0;
        for (uint32_t i = 0; i < 4; i++)
            if (rig_fct_ps(&r, i) > slowest)
                slowest = rig_fct_ps(&r, i);
        assert_true(slowest < 10 * 4 * 371 * FABRIC_US); /* a tenth of the link's rate and more */
        rig_end(&r);
    }
}

/* case_132: where what is lost has all of its message sent again, one of 4 MiB never gets through
 * at one loss in 256, although the link is never idle; short ones do, and all do without losses, no
 * later than others. */
static void case_132_go_back_0_livelocks(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, timeout_us;
        uint32_t loss_ppm;
        bool through;
    } rows[] = {
        {4 << 20,   4000, 1000000 / 256, false},
        {4 << 20,   100,  1000000 / 256, false},
        {100 << 10, 4000, 1000000 / 256, true },
        {100 << 10, 100,  1000000 / 256, true },
        {1000,      100,  1000000 / 4,   true },
        {4 << 20,   4000, 0,             true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        rig_star(&r, 2, 100, 1000);
        r.config.hosts.go_back_0 = true;
        r.config.hosts.timeout_ps = rows[i].timeout_us * FABRIC_US;
        for (int k = 0; k < 4; k++)
            rig_flow(&r, 0, 1, rows[i].bytes);
        r.link[0].loss_ppm = rows[i].loss_ppm;
        assert_int_equal(rig_run(&r), rows[i].through ? FABRIC_FINISHED : FABRIC_LIVELOCK);
        assert_int_equal(r.totals.finished, rows[i].through ? 4 : 0);
        if (!rows[i].through) {
            uint64_t all = 4 * rows[i].bytes;
            assert_true(r.totals.arrived_bytes > 4 * all && r.totals.acked_bytes < all / 2);
        }
        if (rows[i].loss_ppm == 0)
            assert_int_equal(rig_fct_ps(&r, 3), r.totals.now_ps);
        assert_true((r.totals.drops_link > 0) == (rows[i].loss_ppm > 0));
        rig_end(&r);
    }
}

/* CNPs of a flow are 50 us apart at least (V21), and there is one for the first mark. */
static void receive__cnps_apart(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 3, 100, 1000);
    r.config.switches.kmin_bytes = 1000;
    r.config.switches.kmax_bytes = 1000;
    for (uint32_t i = 0; i < 2; i++)
        rig_flow(&r, i, 2, 2000000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    for (uint32_t i = 0; i < 2; i++) {
        struct fabric_flow_result result;
        fabric_flow_result(r.f, i, &result);
        assert_in_range(result.cnps, result.fct_ps / (52 * FABRIC_US),
                        result.fct_ps / (50 * FABRIC_US) + 1);
    }
    rig_end(&r);
}

/* case_129: marks alone change nothing, only PFC acts; with DCQCN pauses fall sharply. Nothing is
 * lost either way. */
static void case_129_marks_need_dcqcn(void **state)
{
    (void)state;
    static const char *const cc[] = {"none", "dcqcn-hw", "dcqcn-paper"};
    uint64_t pauses[6], marks[6];
    for (int i = 0; i < 6; i++) {
        struct rig r;
        rig_star(&r, 9, 100, 1000);
        r.config.hosts.engine = i >= 3;
        r.config.hosts.cc = cc[i % 3];
        r.config.switches.buffer_bytes = 2 << 20;
        r.config.switches.kmin_bytes = 20000;
        r.config.switches.kmax_bytes = 80000;
        for (uint32_t s = 0; s < 8; s++)
            rig_flow(&r, s, 8, 4000000);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_int_equal(r.totals.drops, 0);
        pauses[i] = r.totals.pauses;
        marks[i] = r.totals.ecn_marks;
        rig_end(&r);
    }
    for (int i = 0; i < 6; i++) {
        int none = i - i % 3;
        if (i == none) {
            assert_true(marks[i] > 1000 && pauses[i] > 100);
            continue;
        }
        assert_true(marks[i] > 0 && marks[i] < marks[none]);
        assert_true(pauses[i] * 5 < pauses[none]);
    }
}

/* A flow that is never answered: its frames come again after each timeout. */
static void timer__sends_again(void **state)
{
    (void)state;
    static const struct fabric_fault fault = {500000, 1, false};
    struct rig r;
    rig_star(&r, 2, 100, 1000);
    r.config.fault = &fault;
    r.config.faults = 1;
    r.config.limit_ps = 18 * FABRIC_MS;
    rig_flow(&r, 0, 1, 3000);
    assert_int_equal(rig_run(&r), FABRIC_LIMIT);
    struct fabric_flow_result result;
    fabric_flow_result(r.f, 0, &result);
    assert_int_equal(result.retries, 4);
    assert_int_equal(r.totals.drops_route, 5 * 3);
    rig_end(&r);
}

/* Each flow of a chain starts when the one before is acknowledged; two wait for a group of two. */
static void group__after_all_of_it(void **state)
{
    (void)state;
    struct rig r;
    struct fabric_flow_result a, b, c, d;
    rig_star(&r, 4, 100, 1000);
    rig_flow(&r, 2, 3, 20000);
    rig_flow(&r, 0, 1, 5000);
    rig_flow(&r, 1, 0, 9000);
    rig_flow(&r, 3, 1, 100);
    r.flow[1].group = r.flow[2].group = 0;
    r.flow[0].after = 0; /* given before those that it waits for */
    r.flow[0].group = 1;
    r.flow[0].start_ps = 7 * FABRIC_US;
    r.flow[3].after = 1;
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    fabric_flow_result(r.f, 0, &c);
    fabric_flow_result(r.f, 1, &a);
    fabric_flow_result(r.f, 2, &b);
    fabric_flow_result(r.f, 3, &d);
    assert_true(b.fct_ps > a.fct_ps);
    assert_int_equal(c.start_ps, b.start_ps + b.fct_ps + 7 * FABRIC_US);
    assert_int_equal(d.start_ps, c.start_ps + c.fct_ps);
    assert_int_equal(c.fct_ps, c.ideal_ps);
    assert_int_equal(r.totals.acked_bytes, 34100);
    assert_int_equal(r.totals.bytes, 34100);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pull__takes_turns),
        cmocka_unit_test(pull__no_more_than_the_window),
        cmocka_unit_test(receive__goes_back),
        cmocka_unit_test(case_132_go_back_n_progresses),
        cmocka_unit_test(case_132_go_back_0_livelocks),
        cmocka_unit_test(receive__cnps_apart),
        cmocka_unit_test(timer__sends_again),
        cmocka_unit_test(group__after_all_of_it),
        cmocka_unit_test(case_129_marks_need_dcqcn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
