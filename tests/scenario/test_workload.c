/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_workload.c: the flows of each operation, and the distributions.
 */
#include "scenario/workload.h"

#include "scenario/shapes.h"

#include "bench.h"

static void begin(struct scenario *s, uint32_t hosts)
{
    struct shape_size z = {
        .hosts = hosts, .host_link = {.rate_bps = UINT64_C(100000000000), .delay_ps = 1000}
    };
    scenario_init(s);
    assert_true(shape_build(s, SHAPE_STAR, &z));
}

static void operations__flows(void **state)
{
    (void)state;
    struct workload w = {.bytes = 1000, .priority = 3, .rounds = 3, .compute_ps = 5};
    struct scenario s;
    struct rng rng;
    rng_init(&rng, 1);
    begin(&s, 5);
    assert_true(workload_incast(&s, &w, 2, 3));
    assert_int_equal(s.flows, 9);
    assert_int_equal(s.flow[2].src, 3); /* not the receiver */
    assert_int_equal(s.flow[0].after, FABRIC_NO_GROUP);
    assert_int_equal(s.flow[3].after, s.flow[0].group);
    assert_int_equal(s.flow[3].start_ps, 5);
    scenario_free(&s);

    begin(&s, 5);
    w.rounds = 1;
    assert_true(workload_permutation(&s, &w, 2));
    assert_int_equal(s.flows, 5);
    assert_int_equal(s.flow[4].dst, 1);
    assert_true(workload_all_to_all(&s, &w));
    assert_int_equal(s.flows, 5 + 20);
    scenario_free(&s);

    begin(&s, 4);
    assert_true(workload_allreduce(&s, &w));
    assert_int_equal(s.flows, 2 * 3 * 4);
    assert_int_equal(s.flow[0].bytes, 250);
    assert_int_equal(s.flow[4].after, s.flow[3].group); /* host 0 waits for host 3 */
    assert_int_equal(s.flow[5].after, s.flow[0].group);
    scenario_free(&s);

    begin(&s, 5);
    w.rounds = 4;
    assert_true(workload_storage(&s, &w, 2, 1000000, &rng));
    assert_int_equal(s.flows, 3 * 4);
    for (uint32_t i = 0; i < s.flows; i++)
        assert_true(s.flow[i].src < 2 && s.flow[i].dst >= 2);
    scenario_free(&s);
}

/* Hosts with a NIC read by READ; the rest of the mix is written. Without a NIC bytes just go. */
static void storage__mix(void **state)
{
    (void)state;
    struct workload w = {.bytes = 1000, .rounds = 200};
    for (int engine = 0; engine < 2; engine++) {
        struct scenario s;
        struct rng rng;
        uint32_t reads = 0;
        rng_init(&rng, 7);
        begin(&s, 5);
        s.config.hosts.engine = engine == 1;
        assert_true(workload_storage(&s, &w, 2, 700000, &rng));
        assert_int_equal(s.flows, 600);
        for (uint32_t i = 0; i < s.flows; i++) {
            bool read = s.flow[i].src < 2;
            assert_int_equal(s.flow[i].work.verb, read && engine ? FABRIC_READ : FABRIC_WRITE);
            assert_true(read == (s.flow[i].dst >= 2));
            reads += read;
        }
        assert_in_range(reads, 370, 470);
        scenario_free(&s);
    }
}

/* The same bytes over more flows; a flow has one at least. */
static void connections__share(void **state)
{
    (void)state;
    struct workload w = {.bytes = 1003, .rounds = 2, .connections = 4, .work = {.receives = 3}};
    struct scenario s;
    begin(&s, 3);
    assert_true(workload_flow(&s, &w, 0, 2));
    assert_int_equal(s.flows, 8);
    assert_int_equal(s.flow[0].bytes, 251);
    assert_int_equal(s.flow[3].bytes, 250);
    assert_int_equal(s.flow[3].work.receives, 3);
    assert_int_equal(s.flow[3].group, s.flow[0].group);
    assert_int_equal(s.flow[4].after, s.flow[0].group);
    scenario_free(&s);
    begin(&s, 3);
    w = (struct workload){.bytes = 3, .rounds = 1, .connections = 7};
    assert_true(workload_incast(&s, &w, 0, 2));
    assert_int_equal(s.flows, 6);
    scenario_free(&s);
}

static void ln__known_values(void **state)
{
    (void)state;
    static const struct {
        uint32_t u;
        uint64_t ln; /* -ln(u / 2^32) * 2^24 */
    } rows[] = {
        {UINT32_C(1) << 31, 11629080},
        {UINT32_C(1) << 30, 23258160},
        {UINT32_MAX,        0       },
        {1580030169,        16777216}, /* 1 / e */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ln = workload_ln(rows[i].u);
        assert_true(ln + 8 >= rows[i].ln && ln <= rows[i].ln + 8);
    }
    assert_int_equal(workload_ln(0), workload_ln(1));
}

static void size__of_the_distribution(void **state)
{
    (void)state;
    /* At so many percent. */
    assert_int_equal(workload_size(SIZES_WEBSEARCH, 0), 1);
    assert_in_range(workload_size(SIZES_WEBSEARCH, (uint32_t)(0.15 * 4294967296.0)), 9990, 10010);
    assert_in_range(workload_size(SIZES_WEBSEARCH, (uint32_t)(0.95 * 4294967296.0)), 8500000,
                    8700000);
    assert_in_range(workload_size(SIZES_WEBSEARCH, UINT32_MAX), 29999000, 30000000);
    assert_in_range(workload_size(SIZES_FB_HADOOP, (uint32_t)(0.5 * 4294967296.0)), 699, 701);
    assert_in_range(workload_size(SIZES_FB_HADOOP, UINT32_MAX), 9999000, 10000000);
}

/* 20 hosts at 30 % of 100 Gb/s for 20 ms: 75 MB each, give or take. */
static void poisson__loads_as_asked(void **state)
{
    (void)state;
    struct workload w = {.priority = 3};
    struct scenario s;
    struct rng rng;
    uint64_t sum = 0;
    rng_init(&rng, 1);
    begin(&s, 20);
    assert_true(workload_poisson(&s, &w, SIZES_WEBSEARCH, 300000, UINT64_C(100000000000),
                                 20 * FABRIC_MS, &rng));
    for (uint32_t i = 0; i < s.flows; i++) {
        sum += s.flow[i].bytes;
        assert_true(s.flow[i].start_ps < 20 * FABRIC_MS && s.flow[i].src != s.flow[i].dst);
    }
    assert_in_range(sum / 20, 65000000, 85000000);
    scenario_free(&s);
}

/* At any rate and load that a scenario may say: within what chance leaves of some 12,000 flows. */
static void poisson__any_rate_and_load(void **state)
{
    (void)state;
    static const struct {
        uint64_t rate_bps;
        uint32_t load_ppm;
    } rows[] = {
        {UINT64_C(1000000),        1000   },
        {UINT64_C(1000000),        10000  },
        {UINT64_C(10000000),       1000   },
        {UINT64_C(1500000),        1999   },
        {UINT64_C(25000000000),    1000   },
        {UINT64_C(100000000000),   300000 },
        {UINT64_C(10000000000000), 1000000},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct workload w = {.priority = 3};
        struct scenario s;
        struct rng rng;
        enum workload_sizes sizes = i % 2 == 0 ? SIZES_WEBSEARCH : SIZES_FB_HADOOP;
        uint64_t bps = rows[i / 2].rate_bps / 1000 * rows[i / 2].load_ppm / 1000, sum = 0;
        uint64_t bytes = i % 2 == 0 ? 1700000 : 125000, seconds_1000 = 600 * bytes * 8000 / bps;
        if (seconds_1000 == 0)
            seconds_1000 = 1;
        rng_init(&rng, i);
        begin(&s, 20);
        assert_true(workload_poisson(&s, &w, sizes, rows[i / 2].load_ppm, rows[i / 2].rate_bps,
                                     seconds_1000 * FABRIC_MS, &rng));
        for (uint32_t j = 0; j < s.flows; j++)
            sum += s.flow[j].bytes;
        uint64_t want = bps / 8 * 20 * seconds_1000 / 1000;
        assert_in_range(sum, want - want / 10, want + want / 10);
        scenario_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations__flows),          cmocka_unit_test(storage__mix),
        cmocka_unit_test(connections__share),         cmocka_unit_test(ln__known_values),
        cmocka_unit_test(size__of_the_distribution),  cmocka_unit_test(poisson__loads_as_asked),
        cmocka_unit_test(poisson__any_rate_and_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
