/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_telemetry.c: what switches write into packets, and what HPCC makes of it: links shared
 * fairly and nearly in full, with short queues.
 */
#include <errno.h>

#include "rig.h"

enum { FRAME = 1000 + 48 + 42 };

static void star(struct rig *r, uint32_t hosts)
{
    rig_star(r, hosts, 100, 1000);
    rig_compat(r);
    r->config.hosts.cc = "hpcc";
}

static const struct cc_path *last_of(const struct rig *r, uint32_t flow)
{
    assert_non_null(r->f->telemetry);
    return &r->f->telemetry->flow[flow];
}

static void write__one_switch(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 2);
    rig_flow(&r, 0, 1, 3000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    const struct cc_path *path = last_of(&r, 0);
    assert_int_equal(path->hops, 1);
    assert_int_equal(path->hop[0].time_ps, 1000000 + 3 * FRAME * 80); /* the third has come in */
    assert_int_equal(path->hop[0].tx_bytes, 2 * FRAME);
    assert_int_equal(path->hop[0].queue_bytes, 0);
    assert_int_equal(path->hop[0].rate_mbps, 100000);
    /* There and back: frames are 42 bytes longer, and so are ACKs. */
    assert_int_equal(rig_fct_ps(&r, 0), 4 * 1000000 + (4 * FRAME + 2 * (60 + 42)) * 80);
    rig_end(&r);
}

/* The gap counts, and small frames are as long as the least: what the link is busy with. */
static void write__what_the_wire_has(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 2);
    r.config.gap_bytes = 20;
    r.config.min_frame_bytes = 2000;
    rig_flow(&r, 0, 1, 3000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_int_equal(last_of(&r, 0)->hop[0].tx_bytes, 2 * 2020);
    rig_end(&r);
}

/* Two frames come at once: the first leaves the other behind. */
static void write__queue_behind(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 3);
    rig_flow(&r, 0, 2, 1000);
    rig_flow(&r, 1, 2, 1000);
    r.flow[0].start_ps = 40000; /* while the other comes in, and has left when it is here */
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_int_equal(last_of(&r, 0)->hop[0].queue_bytes, 0);
    assert_int_equal(last_of(&r, 1)->hop[0].queue_bytes, 0);
    rig_end(&r);
    star(&r, 4);
    for (uint32_t i = 0; i < 3; i++)
        rig_flow(&r, i, 3, 1000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 3; i++)
        sum += last_of(&r, i)->hop[0].queue_bytes;
    assert_int_equal(sum, FRAME); /* nobody is behind the first that leaves when it comes, 1, 0 */
    rig_end(&r);
}

/* A line of switches: room for five hops, and a way without any is no harm. */
static void write__hops(void **state)
{
    (void)state;
    for (uint32_t switches = 0; switches <= 7; switches++) {
        struct rig r;
        star(&r, 2);
        r.topology.nodes = 2 + switches;
        r.topology.links = 0;
        uint32_t before = 0;
        for (uint32_t i = 0; i < switches; i++) {
            r.is_switch[2 + i] = 1;
            rig_link(&r, before, 2 + i, 100, 1000);
            before = 2 + i;
        }
        rig_link(&r, before, 1, 100, 1000);
        rig_flow(&r, 0, 1, 100000);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        const struct cc_path *path = last_of(&r, 0);
        assert_int_equal(path->hops, switches < 5 ? switches : 5);
        for (uint32_t i = 1; i < path->hops; i++)
            assert_int_equal(path->hop[i].time_ps - path->hop[i - 1].time_ps, 1000000 + FRAME * 80);
        rig_end(&r);
    }
}

static void create__only_when_asked(void **state)
{
    (void)state;
    static const char *const others[] = {"none", "dcqcn-hw", "timely", "ztr-target", NULL};
    struct rig r;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        star(&r, 2);
        r.config.hosts.cc = others[i];
        rig_flow(&r, 0, 1, 1000);
        rig_make(&r);
        assert_null(r.f->telemetry);
        rig_end(&r);
    }
    star(&r, 2);
    r.config.hosts.cc = "hpcc";
    r.config.hosts.engine = true;
    r.config.hosts.payload_bytes = 1024;
    rig_flow(&r, 0, 1, 1000);
    uint32_t bad;
    assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &r.f, &bad), -EINVAL);
}

/* What a scenario sets is what the sources go by: the share of the link, for one. */
static void create__parameters(void **state)
{
    (void)state;
    static const struct {
        uint32_t eta, parts;
        int rc;
    } rows[] = {
        {0,          400, -EINVAL},
        {101,        400, -EINVAL},
        {UINT32_MAX, 400, -EINVAL},
        {95,         0,   -EINVAL},
        {50,         400, 0      },
        {95,         1,   0      }, /* a step is the whole link: it never slows down */
        {100,        400, 0      },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        uint32_t bad;
        star(&r, 2);
        rig_flow(&r, 0, 1, 20000000);
        r.config.hosts.hpcc_eta_percent = rows[i].eta;
        r.config.hosts.hpcc_parts = rows[i].parts;
        if (rows[i].rc != 0) {
            assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &r.f, &bad),
                             rows[i].rc);
            continue;
        }
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        uint32_t share = rows[i].parts == 1 ? 100 : rows[i].eta;
        uint64_t wire_ps = UINT64_C(20000) * FRAME * 80;
        assert_in_range(rig_fct_ps(&r, 0), wire_ps, wire_ps * 106 / share);
        if (share == 50)
            assert_true(rig_fct_ps(&r, 0) > wire_ps * 100 / 56);
        rig_end(&r);
    }
}

/* N to 1, 2 ms of it when it has settled: rates come together slowly, by a step a round trip. */
static void hpcc__incast(void **state)
{
    (void)state;
    static const struct {
        uint32_t senders;
        uint64_t queue_bytes; /* at most, when it has settled */
        uint64_t spread;      /* percent of the fair share, that the least and the most differ */
    } rows[] = {
        {1,  2 * FRAME,  0 },
        {2,  8 * FRAME,  15},
        {4,  16 * FRAME, 30},
        {15, 40 * FRAME, 60},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        uint32_t n = rows[i].senders;
        uint64_t came[16], least = UINT64_MAX, most = 0, sum = 0;
        struct fabric_port_sample before, after;
        star(&r, n + 1);
        for (uint32_t j = 0; j < n; j++)
            rig_flow(&r, j, n, UINT64_C(1) << 30);
        rig_make(&r);
        rig_until(&r, 6 * FABRIC_MS);
        uint32_t port = r.f->port[r.f->node[n].first_port].peer;
        fabric_port_sample(r.f, port, &before);
        for (uint32_t j = 0; j < n; j++)
            came[j] = fabric_flow_arrived(r.f, j);
        rig_until(&r, 8 * FABRIC_MS);
        fabric_port_sample(r.f, port, &after);
        fabric_totals(r.f, &r.totals);
        for (uint32_t j = 0; j < n; j++) {
            uint64_t got = fabric_flow_arrived(r.f, j) - came[j];
            least = got < least ? got : least;
            most = got > most ? got : most;
            sum += got;
        }
        uint64_t percent = (after.tx_bytes - before.tx_bytes) * 100 / 25000000;
        assert_in_range(percent, 92, 97);
        assert_in_range(after.peak_bytes, 0, rows[i].queue_bytes);
        assert_in_range(most - least, 0, sum / n * rows[i].spread / 100);
        assert_int_equal(r.totals.pauses + r.totals.drops, 0);
        rig_end(&r);
    }
}

/* Frames that are lost, and their answers: it goes back, and ends. */
static void hpcc__losses(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 3);
    r.config.hosts.timeout_ps = 100 * FABRIC_US;
    r.config.seed = 5;
    r.link[2].loss_ppm = 2000;
    rig_flow(&r, 0, 2, 2000000);
    rig_flow(&r, 1, 2, 2000000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.drops > 0);
    rig_end(&r);
}

/* From 0 to 1 by 3 or 4. */
static void two_ways(struct rig *r)
{
    star(r, 2);
    r->topology.nodes = 6;
    r->topology.links = 0;
    for (uint32_t i = 2; i < 6; i++)
        r->is_switch[i] = 1;
    rig_link(r, 0, 2, 100, 1000);
    rig_link(r, 2, 3, 100, 1000);
    rig_link(r, 2, 4, 100, 1000);
    rig_link(r, 3, 5, 40, 1000);
    rig_link(r, 4, 5, 100, 1000);
    rig_link(r, 5, 1, 100, 1000);
}

/* Eight flows spread over two ways of three switches, one of them slower: each has an id. */
static void hpcc__two_ways(void **state)
{
    (void)state;
    struct rig r;
    two_ways(&r);
    for (uint32_t i = 0; i < 8; i++)
        rig_flow(&r, 0, 1, 500000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    unsigned by[2] = {0, 0};
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(last_of(&r, i)->hops, 3);
        by[last_of(&r, i)->hop[1].rate_mbps == 40000]++;
        assert_int_equal(last_of(&r, i)->id == last_of(&r, 0)->id,
                         last_of(&r, i)->hop[1].rate_mbps == last_of(&r, 0)->hop[1].rate_mbps);
    }
    assert_true(by[0] > 0 && by[1] > 0);
    rig_end(&r);
}

/* Its way fails under it: what came by that says nothing of the other, which is slower. */
static void hpcc__way_changes(void **state)
{
    (void)state;
    struct fabric_fault down = {.at_ps = 300 * FABRIC_US};
    struct rig r;
    two_ways(&r);
    rig_flow(&r, 0, 1, 5000000);
    rig_make(&r);
    rig_until(&r, 200 * FABRIC_US);
    struct cc_path before = *last_of(&r, 0);
    rig_end(&r);
    two_ways(&r);
    r.config.hosts.timeout_ps = 100 * FABRIC_US;
    r.config.fault = &down;
    r.config.faults = 1;
    down.link = before.hop[1].rate_mbps == 40000 ? 1 : 2;
    rig_flow(&r, 0, 1, 5000000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_int_equal(last_of(&r, 0)->hops, 3);
    assert_int_not_equal(last_of(&r, 0)->id, before.id);
    assert_int_not_equal(last_of(&r, 0)->hop[1].rate_mbps, before.hop[1].rate_mbps);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write__one_switch),
        cmocka_unit_test(write__what_the_wire_has),
        cmocka_unit_test(write__queue_behind),
        cmocka_unit_test(write__hops),
        cmocka_unit_test(create__only_when_asked),
        cmocka_unit_test(create__parameters),
        cmocka_unit_test(hpcc__incast),
        cmocka_unit_test(hpcc__losses),
        cmocka_unit_test(hpcc__two_ways),
        cmocka_unit_test(hpcc__way_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
