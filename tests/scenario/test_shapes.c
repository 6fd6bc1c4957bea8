/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_shapes.c: how many hosts, switches and links each shape has, and that all can reach all.
 */
#include "scenario/shapes.h"

#include "bench.h"

static void build__counts(void **state)
{
    (void)state;
    static const struct {
        enum shape shape;
        uint32_t hosts, switches, spines, k;
        uint32_t all_hosts, all_switches, links;
    } rows[] = {
        {SHAPE_STAR,        16, 9, 0, 0, 16,  1,  16 },
        {SHAPE_DUMBBELL,    8,  9, 0, 0, 8,   2,  9  },
        {SHAPE_RING,        2,  5, 0, 0, 10,  5,  15 },
        {SHAPE_PARKING_LOT, 2,  3, 0, 0, 6,   3,  8  },
        {SHAPE_LEAF_SPINE,  16, 4, 4, 0, 64,  8,  80 },
        {SHAPE_FAT_TREE,    0,  0, 0, 4, 16,  20, 48 },
        {SHAPE_FAT_TREE,    0,  0, 0, 8, 128, 80, 384},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scenario s;
        struct scenario_error e;
        struct fabric *f;
        struct shape_size z = {
            .hosts = rows[i].hosts,
            .switches = rows[i].switches,
            .spines = rows[i].spines,
            .k = rows[i].k,
            .host_link = {.rate_bps = UINT64_C(100000000000), .delay_ps = 1000},
            .inner_link = {.rate_bps = UINT64_C(400000000000), .delay_ps = 2000},
        };
        uint32_t hosts = 0;
        scenario_init(&s);
        assert_true(shape_build(&s, rows[i].shape, &z));
        for (uint32_t n = 0; n < s.topology.nodes; n++)
            hosts += s.is_switch[n] == 0;
        assert_int_equal(hosts, rows[i].all_hosts);
        assert_int_equal(s.topology.nodes - hosts, rows[i].all_switches);
        assert_int_equal(s.topology.links, rows[i].links);
        assert_int_equal(scenario_find_node(&s, "h0"), 0);
        assert_int_equal(scenario_find_node(&s, "s0"), hosts);
        for (uint32_t n = 1; n < hosts; n++) {
            struct fabric_flow flow = {0, n, 3, 1, 0, FABRIC_NO_GROUP, FABRIC_NO_GROUP};
            assert_true(scenario_add_flow(&s, &flow));
        }
        assert_true(scenario_make(&s, "x", &f, &e));
        fabric_destroy(f);
        scenario_free(&s);
    }
}

static void build__too_large(void **state)
{
    (void)state;
    struct shape_size z = {.hosts = 60000, .switches = 3};
    for (int i = SHAPE_RING; i <= SHAPE_LEAF_SPINE; i++) {
        struct scenario s;
        scenario_init(&s);
        assert_false(shape_build(&s, (enum shape)i, &z));
        scenario_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build__counts),
        cmocka_unit_test(build__too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
