/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_samples.c: intervals: none is lost when two become one, whatever the length of the run.
 */
#include "scenario/samples.h"

#include "bench.h"

struct run {
    struct scenario s;
    struct samples m;
    struct fabric *f;
    uint64_t frames; /* PFC */
};

static void note_pfc(void *arg, uint64_t time_ps, uint32_t node, uint32_t port, unsigned priority,
                     uint32_t quanta)
{
    struct run *r = arg;
    (void)priority;
    (void)quanta;
    r->frames++;
    samples_pfc(&r->m, time_ps, node, port);
}

static void run(struct run *r, const char *yaml)
{
    struct scenario_error e;
    *r = (struct run){0};
    scenario_init(&r->s);
    if (!scenario_read_yaml(&r->s, bench_file(yaml), NULL, 0, &e))
        fail_msg("%s", e.text);
    r->s.config.on_pfc = note_pfc;
    r->s.config.on_pfc_arg = r;
    assert_true(samples_begin(&r->m, &r->s));
    if (!scenario_make(&r->s, "text.yaml", &r->f, &e))
        fail_msg("%s", e.text);
    while (fabric_run(r->f, 1000) == FABRIC_RUNNING)
        continue;
    samples_end(&r->m, r->f);
}

static void drop(struct run *r)
{
    samples_free(&r->m);
    fabric_destroy(r->f);
    scenario_free(&r->s);
}

/* Sums over the intervals are what the fabric counted. */
static void check_sums(const struct run *r)
{
    struct fabric_totals t;
    uint64_t frames = 0, arrived = 0;
    fabric_totals(r->f, &t);
    for (uint32_t i = 0; i < r->m.ports; i++) {
        uint64_t tx = 0, paused = 0, peak = 0, want_tx = 0, want_paused = 0, want_peak = 0;
        for (uint32_t k = 0; k < r->m.count; k++) {
            const struct samples_port *c = &r->m.port[(size_t)k * r->m.ports + i];
            tx += c->tx_bytes;
            paused += c->paused_ps;
            peak = c->peak_bytes > peak ? c->peak_bytes : peak;
            frames += c->pauses;
        }
        for (unsigned p = 0; p < FABRIC_PRIORITIES; p++) {
            struct fabric_port_result q;
            fabric_port_result(r->f, i, p, &q);
            want_tx += q.tx_bytes;
            want_paused += q.paused_received_ps;
            want_peak = q.max_queue_bytes > want_peak ? q.max_queue_bytes : want_peak;
        }
        assert_int_equal(tx, want_tx);
        assert_int_equal(paused, want_paused);
        assert_int_equal(peak, want_peak);
    }
    for (uint32_t k = 0; k < r->m.count; k++)
        arrived += r->m.arrived[k][SAMPLES_FLOWS];
    assert_int_equal(arrived, t.arrived_bytes);
    assert_int_equal(frames, r->frames);
    assert_int_equal(r->m.end_ps, t.now_ps);
    assert_in_range(r->m.count, 1, r->m.most);
    assert_true((r->m.count - 1) * r->m.interval_ps <= t.now_ps);
    assert_true(r->m.count * r->m.interval_ps >= t.now_ps);
}

static void samples__sums_of_every_length(void **state)
{
    static const struct {
        const char *yaml;
        uint64_t interval_ps;
        uint32_t frames; /* at least */
    } rows[] = {
  /* Nothing at all; within one interval; 30 us; a ms and more, with pauses. */
        {"topology: {shape: star, hosts: 2}\nlimit: 1ns\nworkload: [{op: flow, from: h0, to: h1, "
         "bytes: 1, start: 1s}]\n",                                                    FABRIC_US,     0  },
        {"topology: {shape: star, hosts: 2, delay: 10ns}\nhosts: {nic: none}\nworkload: [{op: "
         "flow, from: h0, to: h1, bytes: 1}]\n",                                       FABRIC_US,     0  },
        {"topology: {shape: star, hosts: 3}\nworkload: [{op: incast, to: h2, bytes: 150KB}]\n",
         FABRIC_US,                                                                                            0  },
        {"topology: {shape: star, hosts: 9}\nswitches: {buffer: 3MiB}\nworkload: [{op: incast, to: "
         "h8, bytes: 2MiB}]\n",                                                        8 * FABRIC_US, 100},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct run r;
        run(&r, rows[i].yaml);
        assert_int_equal(r.m.interval_ps, rows[i].interval_ps);
        assert_true(r.frames >= rows[i].frames);
        assert_true((r.m.first_pfc_ps == FABRIC_NEVER) == (r.frames == 0));
        check_sums(&r);
        drop(&r);
    }
}

/* The results do not know that somebody looks. */
static void samples__change_nothing(void **state)
{
    const char *yaml = "topology: {shape: star, hosts: 9}\nswitches: {buffer: 3MiB}\nworkload: "
                       "[{op: incast, to: h8, bytes: 1MiB}]\n";
    struct run r;
    struct scenario s;
    struct scenario_error e;
    struct fabric *f;
    (void)state;
    run(&r, yaml);
    scenario_init(&s);
    assert_true(scenario_read_yaml(&s, bench_file(yaml), NULL, 0, &e));
    assert_true(scenario_make(&s, "text.yaml", &f, &e));
    while (fabric_run(f, 1000) == FABRIC_RUNNING)
        continue;
    for (uint32_t i = 0; i < s.flows; i++) {
        struct fabric_flow_result a, b;
        fabric_flow_result(f, i, &a);
        fabric_flow_result(r.f, i, &b);
        assert_int_equal(a.fct_ps, b.fct_ps);
    }
    for (uint32_t i = 0; i < fabric_ports(f); i++) {
        struct fabric_port_result a, b;
        fabric_port_result(f, i, 3, &a);
        fabric_port_result(r.f, i, 3, &b);
        assert_int_equal(a.max_queue_bytes, b.max_queue_bytes);
        assert_int_equal(a.paused_received_ps, b.paused_received_ps);
    }
    fabric_destroy(f);
    scenario_free(&s);
    drop(&r);
}

/* The largest, then the first of those of a size. */
static void samples_begin__follows_the_largest(void **state)
{
    struct scenario s;
    struct samples m;
    (void)state;
    scenario_init(&s);
    assert_true(scenario_add_node(&s, false, "h0"));
    assert_true(scenario_add_node(&s, false, "h1"));
    for (uint32_t i = 0; i < 3 * SAMPLES_FLOWS; i++)
        assert_true(scenario_add_flow(
            &s, &(struct fabric_flow){.src = 0, .dst = 1, .bytes = i == 70 ? 9 : 1 + i % 2}));
    assert_true(samples_begin(&m, &s));
    assert_int_equal(m.flows, SAMPLES_FLOWS);
    assert_int_equal(m.flow[0], 70);
    for (uint32_t i = 1; i < SAMPLES_FLOWS; i++)
        assert_int_equal(m.flow[i], 2 * i - 1);
    samples_free(&m);
    scenario_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples__sums_of_every_length),
        cmocka_unit_test(samples__change_nothing),
        cmocka_unit_test(samples_begin__follows_the_largest),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_end();
    return failed;
}
