/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_route.c: ways through the fabric, and how flows spread over equal ones.
 */
#include "rig.h"

#include <errno.h>

enum { DRAWS = 8192 };

/* Three tiers: host 0, edge 2, aggregation 3..6, cores 7..22 (four behind each aggregation), then
 * aggregation 23 and edge 24 with host 1. */
static void three_tiers(struct rig *r)
{
    memset(r, 0, sizeof(*r));
    fabric_defaults(&r->config);
    r->topology = (struct fabric_topology){.nodes = 25, .is_switch = r->is_switch, .link = r->link};
    memset(r->is_switch + 2, 1, 23);
    rig_link(r, 0, 2, 100, 1000);
    for (uint32_t a = 0; a < 4; a++) {
        rig_link(r, 2, 3 + a, 100, 1000);
        for (uint32_t c = 0; c < 4; c++) {
            rig_link(r, 3 + a, 7 + 4 * a + c, 100, 1000);
            rig_link(r, 7 + 4 * a + c, 23, 100, 1000);
        }
    }
    rig_link(r, 23, 24, 100, 1000);
    rig_link(r, 24, 1, 100, 1000);
    rig_flow(r, 0, 1, 1000);
}

/* case_127: each switch hashes with a seed of its own, so that all 16 ways are used alike:
 * chi-square with 15 degrees of freedom is below 37.7 in 999 of 1000 cases. With one seed for all,
 * only 4 would be. */
static void case_127_flows_spread(void **state)
{
    (void)state;
    struct rig r;
    uint32_t used[25] = {0};
    three_tiers(&r);
    rig_make(&r);
    for (uint32_t flow = 0; flow < DRAWS; flow++) {
        uint32_t node = 2;
        for (int hop = 0; hop < 2; hop++) {
            uint32_t port =
                route_port(r.f, &r.f->sw[r.f->node[node].host], r.f->node[1].host, hash_mix(flow));
            node = r.f->port[r.f->port[port].peer].node;
        }
        assert_in_range(node, 7, 22);
        used[node]++;
    }
    uint64_t chi = 0, mean = DRAWS / 16;
    for (uint32_t node = 7; node < 23; node++) {
        uint64_t off = used[node] > mean ? used[node] - mean : mean - used[node];
        chi += off * off;
    }
    assert_true(chi * 10 / mean < 377);
    rig_end(&r);
}

/* The same of flows as hosts send them, bare or as queue pairs: 128 of one packet each, counted
 * at the cores. */
static void case_127_flows_of_hosts_spread(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        struct rig r;
        three_tiers(&r);
        r.config.hosts.engine = engine == 1;
        r.flows = 0;
        for (int i = 0; i < RIG_FLOWS; i++)
            rig_flow(&r, 0, 1, 1000);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        uint64_t chi = 0, all = 0, mean = RIG_FLOWS / 16;
        for (uint32_t node = 7; node < 23; node++) {
            struct fabric_port_result down;
            fabric_port_result(r.f, r.f->node[node].first_port + 1, 3, &down);
            uint64_t flows = down.tx_bytes / 1050; /* frames have 1062, or 1078 */
            uint64_t off = flows > mean ? flows - mean : mean - flows;
            chi += off * off;
            all += flows;
        }
        assert_int_equal(all, RIG_FLOWS);
        assert_true(chi * 10 / mean < 377);
        rig_end(&r);
    }
}

static void port__goes_round_what_is_down(void **state)
{
    (void)state;
    struct rig r;
    three_tiers(&r);
    rig_make(&r);
    const struct switch_state *s = &r.f->sw[r.f->node[2].host];
    uint32_t first = r.f->node[2].first_port, host = r.f->node[1].host;
    for (uint32_t down = 1; down <= 4; down++) {
        r.f->port[first + down].down = true;
        for (uint32_t flow = 0; flow < 100; flow++) {
            uint32_t port = route_port(r.f, s, host, hash_mix(flow));
            if (down == 4)
                assert_int_equal(port, PACKET_NONE);
            else
                assert_false(r.f->port[port].down);
        }
    }
    assert_int_equal(route_port(r.f, s, r.f->node[0].host, 1), first); /* the only way back */
    r.f->port[first].down = true;
    assert_int_equal(route_port(r.f, s, r.f->node[0].host, 1), PACKET_NONE);
    rig_end(&r);
}

static void create__unreachable(void **state)
{
    (void)state;
    struct rig r;
    struct fabric *f;
    uint32_t bad = 99;
    rig_star(&r, 4, 100, 1000);
    r.topology.nodes = 6;
    r.is_switch[5] = 1;
    r.link[3].node[1] = 5; /* host 3 at a switch of its own */
    rig_flow(&r, 0, 1, 1000);
    rig_flow(&r, 2, 3, 1000);
    assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad),
                     -EHOSTUNREACH);
    assert_int_equal(bad, 1);
}

/* Hosts do not forward. */
static void create__not_through_a_host(void **state)
{
    (void)state;
    struct rig r;
    struct fabric *f;
    uint32_t bad = 99;
    memset(&r, 0, sizeof(r));
    fabric_defaults(&r.config);
    r.topology = (struct fabric_topology){.nodes = 4, .is_switch = r.is_switch, .link = r.link};
    rig_link(&r, 0, 1, 100, 0);
    rig_link(&r, 2, 3, 100, 0);
    rig_flow(&r, 0, 3, 1000);
    assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad),
                     -EHOSTUNREACH);
    r.flow[0].dst = 1; /* back to back */
    assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad), 0);
    assert_int_equal(fabric_run(f, 1000), FABRIC_FINISHED);
    fabric_destroy(f);
}

/* What one flow alone takes is what is called ideal, over links that differ, too. */
static void ideal__is_what_one_flow_takes(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, second, third, bytes;
    } rows[] = {
        {100, 100, 100, 1       },
        {100, 100, 100, 1024    },
        {100, 100, 100, 1025    },
        {100, 100, 100, 1000000 },
        {100, 400, 25,  300000  },
        {25,  400, 100, 300001  },
        {400, 25,  100, 54321   },
        {10,  100, 10,  7 * 1024},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        struct fabric_flow_result result;
        rig_star(&r, 2, 100, 1000);
        r.topology.nodes = 4;
        r.is_switch[3] = 1;
        r.topology.links = 0;
        rig_link(&r, 0, 2, rows[i].first, 700);
        rig_link(&r, 2, 3, rows[i].second, 1000);
        rig_link(&r, 3, 1, rows[i].third, 50);
        rig_flow(&r, 0, 1, rows[i].bytes);
        r.config.switches.ecn = 0;
        r.config.hosts.timeout_ps = 0;
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        fabric_flow_result(r.f, 0, &result);
        assert_int_equal(result.fct_ps, result.ideal_ps);
        rig_end(&r);
    }
}

/* Hosts 0 and 1 at leaf 4, 2 and 3 at leaf 5, spines 6 and 7; link DOWN joins 6 and 5. */
enum { LEAF = 4, SPINE = 6, DOWN = 5 };

static void leaf_spine(struct rig *r, const struct fabric_fault *faults, uint32_t count)
{
    memset(r, 0, sizeof(*r));
    fabric_defaults(&r->config);
    r->topology = (struct fabric_topology){.nodes = 8, .is_switch = r->is_switch, .link = r->link};
    memset(r->is_switch + LEAF, 1, 4);
    for (uint32_t i = 0; i < 4; i++)
        rig_link(r, i, LEAF + i / 2, 100, 1000);
    for (uint32_t i = 0; i < 4; i++)
        rig_link(r, SPINE + i / 2, LEAF + i % 2, 100, 1000);
    r->config.fault = faults;
    r->config.faults = count;
    r->config.switches.converge_ps = 500 * FABRIC_US;
}

/* Of many flows from leaf 4 to host 2, how many go by the first spine. */
static uint32_t by_first_spine(const struct rig *r)
{
    uint32_t n = 0;
    for (uint32_t flow = 0; flow < 64; flow++) {
        const struct switch_state *s = &r->f->sw[r->f->node[LEAF].host];
        uint32_t port = route_port(r->f, s, r->f->node[2].host, hash_mix(flow));
        assert_int_not_equal(port, PACKET_NONE);
        n += r->f->port[r->f->port[port].peer].node == SPINE;
    }
    return n;
}

/* A link that is not the switch's own: its flows are lost until all have learnt of it, and then
 * all get there; or never, where nobody does. */
static void learn__black_hole_and_recovery(void **state)
{
    (void)state;
    static const struct fabric_fault down = {0, DOWN, false};
    for (unsigned never = 0; never < 2; never++) {
        struct rig r;
        uint32_t lost = 0;
        leaf_spine(&r, &down, 1);
        if (never != 0)
            r.config.switches.converge_ps = FABRIC_NEVER;
        r.config.hosts.timeout_ps = 100 * FABRIC_US;
        for (uint32_t i = 0; i < 32; i++)
            rig_flow(&r, i % 2, 2 + i % 2, 4000);
        rig_make(&r);
        uint32_t holes = by_first_spine(&r);
        rig_until(&r, 490 * FABRIC_US);
        fabric_totals(r.f, &r.totals);
        assert_in_range(holes, 1, 63);
        assert_in_range(r.totals.finished, 1, 31);
        assert_true(r.totals.drops_route > 0);
        assert_int_equal(fabric_run(r.f, 50000000), never ? FABRIC_STALLED : FABRIC_FINISHED);
        assert_int_equal(by_first_spine(&r), never ? holes : 0);
        for (uint32_t i = 0; i < 32; i++) {
            uint64_t fct_ps = rig_fct_ps(&r, i);
            lost += fct_ps > 490 * FABRIC_US;
            assert_true(fct_ps < 490 * FABRIC_US ||
                        (never ? fct_ps == FABRIC_NEVER : fct_ps > 500 * FABRIC_US));
        }
        assert_int_equal(lost, 32 - r.totals.finished);
        rig_end(&r);
    }
}

/* What is known when, of a link that goes and comes back; a change that does not last is not. */
static void learn__some_time_later(void **state)
{
    (void)state;
    static const struct fabric_fault back[] = {
        {0,                DOWN, false},
        {2000 * FABRIC_US, DOWN, true }
    };
    static const struct fabric_fault flap[] = {
        {0,               DOWN, false},
        {499 * FABRIC_US, DOWN, true }
    };
    static const struct fabric_fault again[] = {
        {0,               DOWN, false},
        {400 * FABRIC_US, DOWN, true },
        {450 * FABRIC_US, DOWN, false}
    };
    static const struct fabric_fault up[] = {
        {0, DOWN, true}
    };
    static const struct fabric_fault at_once[] = {
        {0, DOWN, false},
        {0, DOWN, true },
        {0, DOWN, false}
    };
    static const uint64_t looks_us[] = {390, 550, 890, 960, 1950, 2390, 2550};
    static const struct {
        const struct fabric_fault *fault;
        uint32_t faults;
        const char *both; /* a + for each look at which both spines are used */
    } rows[] = {
        {back,    2, "+-----+"},
        {flap,    2, "+++++++"},
        {again,   3, "+++----"},
        {up,      1, "+++++++"},
        {at_once, 3, "+------"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        leaf_spine(&r, rows[i].fault, rows[i].faults);
        rig_flow(&r, 0, 2, 1000);
        r.flow[0].start_ps = 3 * FABRIC_MS; /* it is waited for */
        rig_make(&r);
        uint32_t groups = r.f->sw[0].groups;
        for (unsigned j = 0; rows[i].both[j] != '\0'; j++) {
            rig_until(&r, looks_us[j] * FABRIC_US);
            assert_int_equal(by_first_spine(&r) > 0, rows[i].both[j] == '+');
        }
        assert_int_equal(r.f->sw[0].groups, groups); /* all were made before */
        rig_end(&r);
    }
}

/* A way that is longer, or none; what is ideal is that of the whole network. */
static void learn__a_longer_way(void **state)
{
    (void)state;
    static const struct fabric_fault down[] = {
        {0,             2, false},
        {FABRIC_MS * 2, 3, false}
    };
    struct fabric_flow_result whole = {0}, result;
    for (unsigned faults = 0; faults <= 2; faults++) {
        struct rig r;
        memset(&r, 0, sizeof(r));
        fabric_defaults(&r.config);
        r.topology = (struct fabric_topology){.nodes = 5, .is_switch = r.is_switch, .link = r.link};
        memset(r.is_switch + 2, 1, 3);
        rig_link(&r, 0, 2, 100, 1000);
        rig_link(&r, 1, 3, 100, 1000);
        rig_link(&r, 2, 3, 100, 1000); /* the short way */
        rig_link(&r, 2, 4, 100, 1000);
        rig_link(&r, 4, 3, 100, 1000);
        r.config.fault = down;
        r.config.faults = faults;
        r.config.switches.converge_ps = 500 * FABRIC_US;
        rig_flow(&r, 0, 1, 10000);
        rig_flow(&r, 0, 1, 10000);
        r.flow[0].start_ps = FABRIC_MS;
        r.flow[1].start_ps = 3 * FABRIC_MS;
        assert_int_equal(rig_run(&r), faults < 2 ? FABRIC_FINISHED : FABRIC_STALLED);
        fabric_flow_result(r.f, 0, &result);
        if (faults == 0)
            whole = result;
        assert_int_equal(whole.fct_ps, whole.ideal_ps);
        assert_int_equal(result.ideal_ps, whole.ideal_ps);
        assert_int_equal(result.fct_ps > whole.fct_ps, faults > 0);
        assert_int_equal(rig_fct_ps(&r, 1) == FABRIC_NEVER, faults == 2);
        assert_int_equal(r.totals.drops_route > 0, faults == 2);
        rig_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_127_flows_spread),
        cmocka_unit_test(case_127_flows_of_hosts_spread),
        cmocka_unit_test(port__goes_round_what_is_down),
        cmocka_unit_test(create__unreachable),
        cmocka_unit_test(create__not_through_a_host),
        cmocka_unit_test(ideal__is_what_one_flow_takes),
        cmocka_unit_test(learn__black_hole_and_recovery),
        cmocka_unit_test(learn__some_time_later),
        cmocka_unit_test(learn__a_longer_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
