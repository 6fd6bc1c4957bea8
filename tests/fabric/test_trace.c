/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_trace.c: what is traced is what happened: it adds up to the totals, and changes nothing.
 */
#include "rig.h"

enum { ROOM = 12 }; /* words: four events to six */

struct seen {
    const struct rig *rig;
    struct fabric_tracer tracer;
    uint64_t word[ROOM], now_ps;
    uint64_t events, shorts; /* of them, in two words */
    uint64_t n[FABRIC_TRACE_KINDS];
    uint64_t last_ps, hash;
    struct fabric_trace last[FABRIC_TRACE_KINDS];
};

static void note(struct seen *s, const struct fabric_trace *e)
{
    assert_true(e->time_ps >= s->last_ps);
    assert_true(e->kind < FABRIC_TRACE_KINDS);
    s->last_ps = e->time_ps;
    s->last[e->kind] = *e;
    s->n[e->kind]++;
    for (size_t i = 0; i < sizeof(*e); i++)
        s->hash = (s->hash ^ ((const uint8_t *)e)[i]) * UINT64_C(0x100000001b3);
}

/* Of the end too: what is left then. Every other time the next begins anew. */
static void take(void *arg)
{
    struct seen *s = arg;
    const struct rig *r = s->rig;
    struct fabric_tracer *t = &s->tracer;
    uint32_t count = (uint32_t)(t->next - s->word), longs = 0;
    assert_in_range(count, 0, ROOM);
    for (uint32_t at = 0; at < count;) {
        struct fabric_trace e;
        unsigned words = fabric_trace_read(&s->word[at], count - at, &s->now_ps, &e);
        assert_in_range(words, 2, 3);
        assert_in_range(e.port, 0, r->f->ports - 1);
        e.node = r->f->port[e.port].node;
        e.port -= r->f->node[e.node].first_port;
        note(s, &e);
        s->events++;
        s->shorts += words == 2;
        longs += words == 3;
        at += words;
    }
    assert_int_equal(t->longs, longs);
    t->longs = 0;
    t->next = s->word;
    if (s->events % 2 == 0)
        t->last_ps = s->now_ps = FABRIC_TRACE_ANEW;
}

static void trace(struct rig *r, struct seen *s, uint32_t kinds)
{
    *s = (struct seen){
        .rig = r,
        .now_ps = FABRIC_TRACE_ANEW,
        .tracer = {.next = s->word,
                   .enough = s->word + ROOM - 2,
                   .last_ps = FABRIC_TRACE_ANEW,
                   .full = take,
                   .arg = s}
    };
    r->config.trace_kinds = kinds;
    r->config.tracer = &s->tracer;
}

/* Losses, marks, pauses, a link that flaps, a watchdog that bites, and one flow that fails. */
static void prepare(struct rig *r, struct seen *seen, bool engine, uint32_t kinds)
{
    static const struct fabric_fault faults[] = {
        {30 * FABRIC_US, 1, false},
        {90 * FABRIC_US, 1, true },
    };
    rig_star(r, 4, 100, 1000);
    r->config.hosts.engine = engine;
    r->config.hosts.timeout_ps = 200 * FABRIC_US;
    r->config.switches.buffer_bytes = 500000;
    r->config.switches.kmin_bytes = 10000;
    r->config.switches.kmax_bytes = 50000;
    r->config.fault = faults;
    r->config.faults = 2;
    trace(r, seen, kinds);
    r->link[3].loss_ppm = 1000;
    for (uint32_t i = 0; i < 3; i++)
        rig_flow(r, i, 3, 400000);
    rig_flow(r, 0, 1, 1000);
    r->flow[3].work.wrong_rkey = true;
}

static void trace__adds_up(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        struct rig r;
        struct seen s;
        prepare(&r, &s, engine == 1, UINT32_MAX);
        assert_int_equal(rig_run(&r), engine ? FABRIC_FAILED : FABRIC_FINISHED);
        take(&s);
        assert_int_equal(s.n[TRACE_ARRIVE], r.totals.link_hops);
        assert_true(s.shorts > s.events / 2 && s.shorts < s.events);
        assert_true(s.n[TRACE_SEND] >= s.n[TRACE_ARRIVE]);
        assert_int_equal(s.n[TRACE_DROP], r.totals.drops);
        assert_int_equal(s.n[TRACE_MARK], r.totals.ecn_marks);
        assert_int_equal(s.n[TRACE_PAUSE], r.totals.pauses);
        assert_int_equal(s.n[TRACE_RESUME], r.totals.resumes);
        assert_int_equal(s.n[TRACE_START], 4);
        assert_int_equal(s.n[TRACE_FINISH], r.totals.finished);
        assert_int_equal(s.n[TRACE_FAIL], engine);
        assert_int_equal(s.n[TRACE_DOWN], 2);
        assert_int_equal(s.n[TRACE_UP], 2);
        assert_true(s.n[TRACE_DROP] > 0 && s.n[TRACE_MARK] > 0 && s.n[TRACE_PAUSE] > 0);
        const struct fabric_trace *e = &s.last[TRACE_MARK];
        assert_int_equal(e->node, 4);
        assert_int_equal(e->priority, 3);
        assert_true(e->value > 10000 && e->bytes > 62 && e->frame == PACKET_DATA && e->flow < 4);
        e = &s.last[TRACE_PAUSE];
        assert_int_equal(e->value, 0xffff);
        assert_int_equal(e->flow, FABRIC_TRACE_NONE);
        assert_int_equal(e->frame, FABRIC_TRACE_NO_FRAME);
        e = &s.last[TRACE_DOWN];
        assert_int_equal(e->time_ps, 30 * FABRIC_US);
        assert_int_equal(e->priority, FABRIC_PRIORITIES);
        if (engine) {
            assert_int_equal(s.last[TRACE_FAIL].flow, 3);
            assert_int_equal(s.last[TRACE_FAIL].value, 10); /* WC_REM_ACCESS_ERR */
        }
        rig_end(&r);
    }
}

/* With the trace or without it, with bytes or without them; and twice the same. */
static void trace__changes_nothing(void **state)
{
    (void)state;
    struct fabric_totals totals[4];
    uint64_t hash[4];
    for (int run = 0; run < 4; run++) {
        struct rig r;
        struct seen s;
        prepare(&r, &s, true, run == 0 ? 0 : UINT32_MAX);
        r.config.bytes = run == 3;
        assert_int_equal(rig_run(&r), FABRIC_FAILED);
        take(&s);
        totals[run] = r.totals;
        hash[run] = s.hash;
        rig_end(&r);
    }
    for (int run = 1; run < 4; run++)
        assert_memory_equal(&totals[run], &totals[0], sizeof(totals[0]));
    assert_int_equal(hash[0], 0);
    assert_int_equal(hash[1], hash[2]);
    assert_int_equal(hash[1], hash[3]);
}

static void trace__kinds_asked_for(void **state)
{
    (void)state;
    struct rig r;
    struct seen s;
    prepare(&r, &s, false, 1u << TRACE_DROP | 1u << TRACE_FINISH);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    take(&s);
    for (unsigned i = 0; i < FABRIC_TRACE_KINDS; i++)
        assert_true((s.n[i] > 0) == (i == TRACE_DROP || i == TRACE_FINISH));
    rig_end(&r);
}

struct want {
    uint64_t port, flow; /* masks; 0: there is none */
    uint16_t priorities;
    uint32_t some;                          /* mask of kinds that there are; 0: there is nothing */
    int node, node_port, of_flow, priority; /* of all; -1: whichever */
};

static void check_wanted(const struct seen *s, const struct want *w)
{
    for (unsigned k = 0; k < FABRIC_TRACE_KINDS; k++) {
        const struct fabric_trace *e = &s->last[k];
        assert_true(s->n[k] > 0 || (w->some >> k & 1) == 0);
        assert_true(s->n[k] == 0 || w->some != 0);
        if (s->n[k] == 0)
            continue;
        assert_true(w->node < 0 || e->node == (uint32_t)w->node);
        assert_true(w->node_port < 0 || e->port == (uint32_t)w->node_port);
        assert_true(w->of_flow < 0 || e->flow == (uint32_t)w->of_flow);
        assert_true(w->priority < 0 || e->priority == w->priority);
    }
}

/* Ports 0 to 3 are the hosts', 4 to 7 those of the switch, which is node 4. */
static void trace__wanted_only(void **state)
{
    (void)state;
    enum {
        SEND = 1 << TRACE_SEND,
        MARK = 1 << TRACE_MARK,
        PAUSE = 1 << TRACE_PAUSE,
        START = 1 << TRACE_START,
        DOWN = 1 << TRACE_DOWN,
    };
    static const struct want rows[] = {
        {1 << 7, 0,      0x1ff,  SEND | MARK,  4,  3,  -1, -1},
        {1 << 2, 0,      0x1ff,  SEND | PAUSE, 2,  0,  -1, -1},
        {0,      1 << 1, 0x1ff,  SEND | START, -1, -1, 1,  -1},
        {0,      0,      1 << 3, SEND | PAUSE, -1, -1, -1, 3 },
        {0,      0,      1 << 8, SEND | DOWN,  -1, -1, -1, 8 },
        {1 << 7, 1 << 1, 1 << 3, SEND | MARK,  4,  3,  1,  3 },
        {0,      1 << 1, 1 << 8, 0,            -1, -1, -1, -1},
        {1 << 7, 1 << 3, 0x1ff,  0,            -1, -1, -1, -1},
        {1 << 9, 0,      0x1ff,  0,            -1, -1, -1, -1},
        {0,      1 << 9, 0x1ff,  0,            -1, -1, -1, -1},
        {0,      0,      0,      0,            -1, -1, -1, -1},
        {0,      0,      1 << 0, 0,            -1, -1, -1, -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        struct seen s;
        prepare(&r, &s, false, UINT32_MAX);
        s.tracer.selective = true;
        s.tracer.priorities = rows[i].priorities;
        s.tracer.port = rows[i].port != 0 ? &rows[i].port : NULL;
        s.tracer.flow = rows[i].flow != 0 ? &rows[i].flow : NULL;
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        take(&s);
        check_wanted(&s, &rows[i]);
        rig_end(&r);
    }
}

static void trace__storms(void **state)
{
    (void)state;
    struct rig r;
    struct seen s;
    rig_star(&r, 2, 100, 1000);
    r.config.watchdog = WATCHDOG_DROP;
    r.config.detect_ps = 10 * FABRIC_US;
    r.config.restore_ps = 10 * FABRIC_US;
    trace(&r, &s, 1u << TRACE_STORM);
    rig_flow(&r, 0, 1, 100000);
    rig_make(&r);
    uint32_t port = r.f->port[1].peer; /* the switch's, towards the receiver */
    pause_received(r.f, port, 1 << 3, 0, 0xffff);
    rig_until(&r, FABRIC_MS);
    take(&s);
    fabric_totals(r.f, &r.totals);
    assert_true(r.totals.storms > 0);
    assert_int_equal(s.n[TRACE_STORM], r.totals.storms);
    assert_int_equal(s.last[TRACE_STORM].node, 2);
    assert_int_equal(s.last[TRACE_STORM].port, 1);
    assert_int_equal(s.last[TRACE_STORM].priority, 3);
    rig_end(&r);
}

/* Two words where all fits, three where one field is too large; each comes back as it was. */
static void event__as_short_as_can_be(void **state)
{
    (void)state;
    static const struct {
        uint64_t since_ps;
        uint32_t flow, value;
        uint64_t seq;
        uint16_t bytes;
        unsigned words;
    } rows[] = {
        {0,                 0,       0,          0,                60,    2},
        {1,                 5,       77,         12345,            1086,  2},
        {(1 << 21) - 1,     131071,  8388607,    (1 << 24) - 1,    32767, 2},
        {1 << 21,           5,       77,         12345,            1086,  3},
        {83840,             131072,  77,         12345,            1086,  3},
        {83840,             5,       8388608,    12345,            1086,  3},
        {83840,             5,       77,         1 << 24,          1086,  3},
        {83840,             4194303, UINT32_MAX, UINT32_MAX,       32767, 3},
        {83840,             5,       77,         (1ull << 32) + 7, 1086,  2}, /* the low bits */
        {UINT64_C(1) << 56, 5,       77,         0,                1086,  3},
    };
    struct rig r;
    struct seen s;
    rig_star(&r, 2, 100, 1000);
    trace(&r, &s, UINT32_MAX);
    rig_flow(&r, 0, 1, 1000);
    rig_make(&r);
    uint32_t packet = packet_take(&r.f->pool);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const uint64_t from_ps = 1000;
        uint64_t now_ps = from_ps;
        struct fabric_trace e;
        r.f->pool.packet[packet] = (struct packet){
            .kind = PACKET_DATA,
            .flow = rows[i].flow,
            .seq = rows[i].seq,
            .bytes = rows[i].bytes,
            .priority = 3,
        };
        s.tracer.next = s.word;
        s.tracer.last_ps = from_ps;
        r.f->sched.now_ps = from_ps + rows[i].since_ps;
        trace_packet(r.f, TRACE_SEND, 1, packet, rows[i].value);
        assert_int_equal(s.tracer.next - s.word, rows[i].words);
        for (uint32_t left = 0; left < rows[i].words; left++) /* not all of it */
            assert_int_equal(fabric_trace_read(s.word, left, &now_ps, &e), 0);
        assert_int_equal(fabric_trace_read(s.word, ROOM, &now_ps, &e), rows[i].words);
        assert_int_equal(now_ps, from_ps + rows[i].since_ps);
        assert_int_equal(e.time_ps, now_ps);
        assert_true(e.flow == rows[i].flow && e.value == rows[i].value);
        assert_true(e.seq == (uint32_t)rows[i].seq && e.bytes == rows[i].bytes);
        assert_true(e.kind == TRACE_SEND && e.port == 1 && e.priority == 3);
        assert_int_equal(e.frame, PACKET_DATA);
        now_ps = FABRIC_TRACE_ANEW; /* what was before is not known */
        assert_int_equal(fabric_trace_read(s.word, ROOM, &now_ps, &e), rows[i].words == 3 ? 3 : 0);
    }
    r.f->sched.now_ps = 0;
    packet_give(&r.f->pool, packet);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace__adds_up),         cmocka_unit_test(trace__changes_nothing),
        cmocka_unit_test(trace__kinds_asked_for), cmocka_unit_test(trace__wanted_only),
        cmocka_unit_test(trace__storms),          cmocka_unit_test(event__as_short_as_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
