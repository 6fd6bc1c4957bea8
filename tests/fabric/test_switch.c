/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_switch.c: marks, classes, MTU.
 */
#include "rig.h"

static uint64_t marks_of(uint64_t kmin, uint64_t kmax, uint32_t ppm, bool at_dequeue)
{
    struct rig r;
    rig_star(&r, 3, 100, 1000);
    r.config.switches.kmin_bytes = kmin;
    r.config.switches.kmax_bytes = kmax;
    r.config.switches.pmax_ppm = ppm;
    r.config.switches.ecn_at_dequeue = at_dequeue;
    for (uint32_t i = 0; i < 2; i++)
        rig_flow(&r, i, 2, 512000); /* 500 frames each; the queue grows to 500 */
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_int_equal(r.totals.drops, 0);
    rig_end(&r);
    return r.totals.ecn_marks;
}

static void mark__by_the_queue(void **state)
{
    (void)state;
    /* Of 1000 frames: those that find so much before them, by how often. */
    static const struct {
        uint64_t kmin, kmax;
        uint32_t ppm;
        uint64_t least, most; /* at enqueue */
    } rows[] = {
        {10000000, 10000000, 1000000, 0,   0   }, /* never so long */
        {543000,   543000,   0,       0,   3   },
        {271500,   271500,   0,       495, 505 }, /* the second half */
        {0,        0,        0,       998, 1000},
        {0,        10000000, 0,       0,   0   },
        {0,        542000,   1000000, 450, 550 }, /* on average half of them */
        {0,        542000,   200000,  70,  130 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_in_range(marks_of(rows[i].kmin, rows[i].kmax, rows[i].ppm, false), rows[i].least,
                        rows[i].most);
}

/* At dequeue a frame tells of the queue behind it: the last ones leave a short one. */
static void mark__at_dequeue(void **state)
{
    (void)state;
    assert_in_range(marks_of(271500, 271500, 0, true), 495, 505);
    assert_in_range(marks_of(0, 0, 0, true), 990, 999); /* the last leaves nothing behind */
}

/* Marks by the kind of frame, and CNPs that left the switch with others behind them. */
struct marked {
    const struct rig *rig;
    struct fabric_tracer tracer;
    uint64_t word[4]; /* one event at a time */
    uint64_t n[FABRIC_TRACE_NO_FRAME + 1];
    uint64_t cnps_queued;
};

static void note_mark(void *arg)
{
    struct marked *m = arg;
    const struct fabric_trace one = rig_event(m->rig, &m->tracer, m->word), *e = &one;
    if (e->kind == TRACE_MARK)
        m->n[e->frame]++;
    if (e->kind == TRACE_SEND && e->node == 8 && e->frame == PACKET_CNP && e->value > 0)
        m->cnps_queued++;
}

/* RFC 3168: only what is ECT is marked. Where every queue marks, CNPs that wait in it are not;
 * data and acknowledgements are. DEVIATES: RFC 3168: nor are they dropped. */
static void mark__only_what_may_be(void **state)
{
    (void)state;
    static const struct {
        bool engine, bytes, at_dequeue;
    } rows[] = {
        {false, false, false},
        {false, false, true },
        {true,  false, false},
        {true,  false, true },
        {true,  true,  false},
        {true,  true,  true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        struct marked m = {
            .rig = &r,
            .tracer = {.next = m.word,
                       .enough = m.word + 1,
                       .last_ps = FABRIC_TRACE_ANEW,
                       .full = note_mark,
                       .arg = &m}
        };
        rig_star(&r, 8, 100, 1000);
        r.config.hosts.engine = rows[i].engine;
        r.config.bytes = rows[i].bytes;
        r.config.hosts.cc = "dcqcn-hw";
        r.config.hosts.cnp_priority = 3;
        r.config.hosts.ack_priority = 3;
        r.config.hosts.cnp_interval_ps = FABRIC_US;
        r.config.switches.kmin_bytes = r.config.switches.kmax_bytes = 0;
        r.config.switches.ecn_at_dequeue = rows[i].at_dequeue;
        r.config.trace_kinds = 1u << TRACE_MARK | 1u << TRACE_SEND;
        r.config.tracer = &m.tracer;
        for (uint32_t j = 0; j < 8 * 7; j++) /* all to the first one, to the second, and so on */
            rig_flow(&r, j / 7, j % 7 + (j % 7 >= j / 7), 100000);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_int_equal(m.n[PACKET_CNP], 0);
        assert_int_equal(r.totals.drops, 0);
        assert_true(m.cnps_queued > 10);
        assert_true(m.n[PACKET_DATA] > 100 && m.n[PACKET_ACK] > 0);
        assert_int_equal(m.n[PACKET_DATA] + m.n[PACKET_ACK] + m.n[PACKET_NAK], r.totals.ecn_marks);
        rig_end(&r);
    }
}

/* case_123: the class is that of the DSCP. Eight flows of one class are paused together, whatever
 * their number; a flow of another class is not. */
static void case_123_class_by_dscp(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        struct rig r;
        rig_star(&r, 10, 100, 1000);
        r.config.hosts.engine = engine == 1;
        r.config.switches.lossless = 1 << 3 | 1 << 4;
        r.config.switches.buffer_bytes = 2 << 20;
        for (uint32_t i = 0; i < 8; i++)
            rig_flow(&r, i, 8, 400000);
        rig_flow(&r, 0, 9, 400000);
        r.flow[8].priority = 4;
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_true(r.pfcs > 0);
        uint32_t told = 0;
        for (uint32_t i = 0; i < r.pfcs && i < RIG_PFC; i++) {
            assert_int_equal(r.pfc[i].priority, 3);
            told |= 1u << r.pfc[i].node;
        }
        assert_int_equal(told, 0xff);
        rig_end(&r);
    }
}

/* A switch that takes the DSCP for another class: the frames are lossy there, and lost. */
static void receive__wrong_mapping(void **state)
{
    (void)state;
    const struct fabric_mapping mapping = {5, 24, 0};
    for (int wrong = 0; wrong < 2; wrong++) {
        struct rig r;
        rig_star(&r, 5, 100, 1000);
        r.config.mapping = &mapping;
        r.config.mappings = (uint32_t)wrong;
        r.config.switches.buffer_bytes = 1 << 20;
        for (uint32_t i = 0; i < 4; i++)
            rig_flow(&r, i, 4, 400000);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_true((r.totals.drops_threshold > 0) == (wrong == 1));
        assert_true((r.totals.pauses > 0) == (wrong == 0));
        rig_end(&r);
    }
}

/* Where the tag counts: frames without one are of class 0, whatever their DSCP; a table may be
 * wrong; and where it does not count it is not looked at. */
static void case_123_class_by_pcp(void **state)
{
    (void)state;
    static const struct fabric_mapping mapping = {5, 3, 0, true};
    static const struct {
        bool vlan, trust_pcp, wrong, lossless;
    } rows[] = {
        {true,  true,  false, true },
        {false, true,  false, false},
        {true,  true,  true,  false},
        {true,  false, true,  true },
        {false, false, true,  true },
    };
    for (size_t row = 0; row < 2 * sizeof(rows) / sizeof(rows[0]); row++) {
        struct rig r;
        size_t i = row / 2;
        rig_star(&r, 5, 100, 1000);
        r.config.hosts.engine = row % 2 == 1;
        r.config.hosts.vlan = rows[i].vlan;
        r.config.switches.trust_pcp = rows[i].trust_pcp;
        r.config.mapping = &mapping;
        r.config.mappings = rows[i].wrong;
        r.config.switches.buffer_bytes = 1 << 20;
        for (uint32_t j = 0; j < 4; j++)
            rig_flow(&r, j, 4, 400000);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_true((r.totals.pauses > 0) == rows[i].lossless);
        assert_true((r.totals.drops_threshold > 0) == !rows[i].lossless);
        rig_end(&r);
    }
}

/* A tag is 4 bytes of each frame. */
static void receive__tags_take_time(void **state)
{
    (void)state;
    uint64_t fct[2];
    for (int vlan = 0; vlan < 2; vlan++) {
        struct rig r;
        rig_star(&r, 2, 100, 1000);
        r.config.hosts.vlan = vlan == 1;
        rig_flow(&r, 0, 1, 100 * 1024);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        fct[vlan] = rig_fct_ps(&r, 0);
        struct fabric_flow_result result;
        fabric_flow_result(r.f, 0, &result);
        assert_int_equal(result.ideal_ps, fct[vlan]);
        rig_end(&r);
    }
    assert_int_equal(fct[1], fct[0] + (100 + 1 + 2) * 4 * 80); /* on two links, and the last ACK */
}

static void receive__too_large_for_the_link(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct rig r;
        uint32_t mtu = 1023 + i % 3;
        rig_star(&r, 2, 100, 1000);
        r.link[i / 3].mtu_bytes = mtu; /* from the host, or to the other */
        r.config.limit_ps = 100 * FABRIC_US;
        rig_flow(&r, 0, 1, 2048);
        assert_int_equal(rig_run(&r), mtu < 1024 ? FABRIC_LIMIT : FABRIC_FINISHED);
        assert_int_equal(r.totals.drops_mtu, mtu < 1024 ? 2 : 0);
        rig_end(&r);
    }
    struct rig r; /* no switch at all */
    rig_star(&r, 2, 100, 1000);
    r.topology.nodes = 2;
    r.topology.links = 0;
    rig_link(&r, 0, 1, 100, 1000);
    r.link[0].mtu_bytes = 1023;
    r.config.limit_ps = 100 * FABRIC_US;
    rig_flow(&r, 0, 1, 2048);
    rig_flow(&r, 1, 0, 1023); /* small enough */
    assert_int_equal(rig_run(&r), FABRIC_LIMIT);
    assert_int_equal(r.totals.drops_mtu, 2);
    assert_int_equal(r.totals.finished, 1);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mark__by_the_queue),     cmocka_unit_test(mark__at_dequeue),
        cmocka_unit_test(mark__only_what_may_be), cmocka_unit_test(case_123_class_by_dscp),
        cmocka_unit_test(case_123_class_by_pcp),  cmocka_unit_test(receive__tags_take_time),
        cmocka_unit_test(receive__wrong_mapping), cmocka_unit_test(receive__too_large_for_the_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
