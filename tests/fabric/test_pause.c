/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pause.c: pauses: their quanta, that they end, are renewed, resumed, and take time to bite.
 */
#include "rig.h"

/* Two hosts, a flow, and one pause of so many quanta to the sender's port at 10 us, no other. */
static void start(struct rig *r, uint64_t gbps, uint32_t quanta, uint32_t response)
{
    rig_star(r, 2, gbps, 1000);
    r->config.switches.response_quanta = response;
    r->config.hosts.timeout_ps = 0;
    rig_flow(r, 0, 1, 10000000);
    rig_make(r);
    rig_until(r, 10 * FABRIC_US);
    pause_received(r->f, 0, 1 << 3, 0, quanta);
}

/* The longest time between two frames of the sender, seen at its port. */
static uint64_t idle_ps(struct rig *r, uint64_t until_ps)
{
    uint64_t last = r->f->port[0].moved_ps[3], longest = 0;
    while (r->f->sched.now_ps < until_ps && fabric_run(r->f, 1) == FABRIC_RUNNING) {
        uint64_t moved = r->f->port[0].moved_ps[3];
        if (moved - last > longest)
            longest = moved - last;
        last = moved;
    }
    return longest;
}

/* V18: a quantum is 512 bit times, and the transmitter goes on by itself. */
static void quanta__last_and_end(void **state)
{
    (void)state;
    static const struct {
        uint64_t gbps, quantum_ps, quanta;
    } rows[] = {
        {10,  51200, 65535},
        {25,  20480, 65535},
        {40,  12800, 65535},
        {50,  10240, 65535},
        {100, 5120,  65535},
        {200, 2560,  65535},
        {400, 1280,  65535},
        {800, 640,   65535},
        {100, 5120,  1000 },
        {100, 5120,  100  },
        {400, 1280,  4000 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        start(&r, rows[i].gbps, (uint32_t)rows[i].quanta, 0);
        uint64_t pause = rows[i].quanta * rows[i].quantum_ps, frame = 1106 * 8000 / rows[i].gbps;
        uint64_t idle = idle_ps(&r, 20 * FABRIC_US + pause);
        assert_in_range(idle, pause - frame, pause + frame);
        assert_int_equal(r.f->port[0].count[3].paused_received_ps, pause);
        assert_int_equal(r.totals.resumes, 0);
        rig_end(&r);
    }
}

/* case_130: quanta 0 is a resume at once; and a pause ends alone as well. */
static void case_130_resume_at_once(void **state)
{
    (void)state;
    struct rig r;
    start(&r, 100, 0xffff, 0);
    rig_until(&r, 15 * FABRIC_US);
    uint64_t resumed = r.f->sched.now_ps;
    assert_true(r.f->port[0].moved_ps[3] < 10 * FABRIC_US + 1000);
    pause_received(r.f, 0, 0, 1 << 3, 0);
    assert_int_equal(r.f->port[0].moved_ps[3], resumed);
    assert_int_equal(r.f->totals.resumes, 1);
    assert_int_equal(r.pfc[1].quanta, 0);
    assert_int_equal(r.pfc[1].time_ps, resumed);
    rig_end(&r);

    start(&r, 100, 100, 0); /* 512 ns */
    rig_until(&r, 11 * FABRIC_US);
    assert_true(r.f->port[0].moved_ps[3] >= 10 * FABRIC_US + 512000);
    assert_int_equal(r.f->totals.resumes, 0);
    rig_end(&r);
}

static void response__frames_that_still_leave(void **state)
{
    (void)state;
    struct rig r;
    start(&r, 100, 1000, 394); /* 2.017 us more */
    rig_until(&r, 20 * FABRIC_US);
    assert_int_equal(r.f->port[0].count[3].paused_received_ps, 1000 * 5120);
    rig_end(&r);
    start(&r, 100, 1000, 394);
    uint64_t bites = r.f->sched.now_ps + 2017280;
    rig_until(&r, 14 * FABRIC_US);
    assert_in_range(r.f->port[0].moved_ps[3], bites - 88480, bites);
    /* A resume before it bites: nothing was paused. */
    rig_end(&r);
    start(&r, 100, 1000, 394);
    pause_received(r.f, 0, 0, 1 << 3, 0);
    rig_until(&r, 20 * FABRIC_US);
    assert_int_equal(r.f->port[0].count[3].paused_received_ps, 0);
    assert_true(r.f->port[0].moved_ps[3] > 19900000);
    rig_end(&r);
}

static void other_priorities__go_on(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 2, 100, 1000);
    rig_flow(&r, 0, 1, 10000000);
    r.flow[0].priority = 2;
    rig_make(&r);
    rig_until(&r, 10 * FABRIC_US);
    pause_received(r.f, 0, (uint8_t) ~(1u << 2), 0, 0xffff);
    rig_until(&r, 20 * FABRIC_US);
    assert_true(r.f->port[0].moved_ps[2] > 19900000);
    rig_end(&r);
}

/* IEEE 802.3 31B: the link pauses, and with it the priority that PFC would let go on. */
static void link__pauses_all(void **state)
{
    (void)state;
    uint64_t took[2];
    for (int link = 0; link < 2; link++) {
        struct rig r;
        rig_star(&r, 4, 100, 1000);
        r.config.switches.link_pause = link == 1;
        r.config.switches.buffer_bytes = 400000;
        r.config.switches.lossless = 1 << 3;
        for (uint32_t i = 0; i < 2; i++)
            rig_flow(&r, i, 2, 2000000);
        rig_flow(&r, 0, 3, 100000); /* to somebody else, by another priority */
        r.flow[2].priority = 5;
        r.flow[2].start_ps = 50 * FABRIC_US;
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_int_equal(r.totals.drops, 0);
        assert_true(r.pfcs > 10);
        assert_int_equal(r.totals.pauses + r.totals.resumes, r.pfcs);
        for (uint32_t i = 0; i < r.pfcs && i < RIG_PFC; i++)
            assert_int_equal(r.pfc[i].priority, link == 1 ? FABRIC_PRIORITIES : 3);
        assert_true((r.f->port[0].count[5].paused_received_ps > 0) == (link == 1));
        took[link] = rig_fct_ps(&r, 2);
        rig_end(&r);
    }
    assert_true(took[1] > took[0]);
}

/* Two priorities are too much, one after the other: one pause, and a resume when neither is. */
static void link__one_pause_for_all(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 2, 100, 1000);
    r.config.switches.link_pause = true;
    r.config.switches.pause_quanta = FABRIC_QUANTA_HELD;
    rig_flow(&r, 0, 1, 100);
    r.flow[0].start_ps = FABRIC_MS;
    rig_make(&r);
    uint32_t port = r.f->node[2].first_port;
    static const struct {
        bool pauses;
        unsigned priority;
        uint32_t frames, quanta; /* that came in all; of the last */
    } rows[] = {
        {true,  3, 1, FABRIC_QUANTA_HELD},
        {true,  4, 1, FABRIC_QUANTA_HELD},
        {false, 3, 1, FABRIC_QUANTA_HELD},
        {true,  3, 1, FABRIC_QUANTA_HELD},
        {false, 4, 1, FABRIC_QUANTA_HELD},
        {false, 3, 2, 0                 },
        {true,  4, 3, FABRIC_QUANTA_HELD},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].pauses)
            pause_peer(r.f, port, rows[i].priority);
        else
            pause_resume_peer(r.f, port, rows[i].priority);
        rig_until(&r, r.f->sched.now_ps + 5 * FABRIC_US);
        assert_int_equal(r.pfcs, rows[i].frames);
        assert_int_equal(r.pfc[r.pfcs - 1].quanta, rows[i].quanta);
    }
    rig_end(&r);
}

/* A switch that is busy stops (s) and resumes (r) its peer; then its frames leave (.): pauses (X),
 * resumes (O). No resume of a pause that never left. */
static void resume__of_what_was_told(void **state)
{
    (void)state;
    static const struct {
        const char *does, *says;
    } rows[] = {
        {"sr.",     ""   },
        {"srsr.",   ""   },
        {"s.r.",    "XO" },
        {"s.rs.",   "XX" },
        {"s.rsr.",  "XO" },
        {"srs.r.",  "XO" },
        {"s.r.sr.", "XO" },
        {"s.r.s.",  "XOX"},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        char said[8] = "";
        rig_star(&r, 2, 100, 1000);
        r.config.switches.link_pause = i % 2 != 0;
        rig_flow(&r, 0, 1, 1000);
        r.flow[0].start_ps = 900 * FABRIC_US;
        rig_make(&r);
        uint32_t port = r.f->port[0].peer;
        for (const char *p = rows[i / 2].does; *p != '\0'; p++) {
            r.f->port[port].busy_until_ps = r.f->sched.now_ps + FABRIC_US;
            if (*p == 's')
                pause_peer(r.f, port, 3);
            else if (*p == 'r')
                pause_resume_peer(r.f, port, 3);
            else
                rig_until(&r, r.f->sched.now_ps + 100 * FABRIC_US);
        }
        for (uint32_t k = 0; k < r.pfcs && k < sizeof(said) - 1; k++)
            said[k] = r.pfc[k].quanta != 0 ? 'X' : 'O';
        /* What lasts is said again: the pause at the end. */
        size_t n = strlen(rows[i / 2].says);
        bool lasts = n > 0 && rows[i / 2].says[n - 1] == 'X';
        assert_true(strncmp(said, rows[i / 2].says, n) == 0 && (lasts || said[n] == '\0'));
        rig_end(&r);
    }
}

/* Renewed while it is wanted: with quanta of 5 us a pause of a whole incast has no holes, so
 * nothing is dropped, and a renewal comes about every 2.5 us. */
static void renew__before_it_ends(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 3, 100, 1000);
    r.config.switches.buffer_bytes = 400000;
    r.config.switches.pause_quanta = 1000;
    r.config.switches.xon_offset_bytes = 20000;
    for (uint32_t i = 0; i < 2; i++)
        rig_flow(&r, i, 2, 1000000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.pauses > 0);
    assert_int_equal(r.totals.drops, 0);
    rig_end(&r);
    /* By hand: told once, and the frames that go to the peer. */
    rig_star(&r, 2, 100, 1000);
    r.config.switches.pause_quanta = 1000;
    rig_flow(&r, 0, 1, 100);
    r.flow[0].start_ps = FABRIC_MS;
    rig_make(&r);
    uint32_t port = r.f->node[2].first_port;
    pause_peer(r.f, port, 3);
    rig_until(&r, 26 * FABRIC_US);
    assert_in_range(r.pfcs, 10, 11); /* 1.0067 us, then each 2.56 us */
    for (uint32_t i = 1; i < r.pfcs; i++)
        assert_int_equal(r.pfc[i].time_ps - r.pfc[i - 1].time_ps, 2560000);
    assert_int_equal(r.pfc[0].time_ps, 1000000 + 84 * 80);
    assert_int_equal(r.pfc[0].node, 0);
    assert_int_equal(r.pfc[0].quanta, 1000);
    pause_resume_peer(r.f, port, 3);
    rig_until(&r, 40 * FABRIC_US);
    assert_int_equal(r.pfc[r.pfcs - 1].quanta, 0);
    assert_int_equal(r.f->port[0].paused, 0);
    assert_in_range(r.f->port[port].count[3].paused_sent_ps, 26000000, 28560000);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quanta__last_and_end),
        cmocka_unit_test(case_130_resume_at_once),
        cmocka_unit_test(response__frames_that_still_leave),
        cmocka_unit_test(other_priorities__go_on),
        cmocka_unit_test(link__pauses_all),
        cmocka_unit_test(link__one_pause_for_all),
        cmocka_unit_test(resume__of_what_was_told),
        cmocka_unit_test(renew__before_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
