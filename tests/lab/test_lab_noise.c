/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_noise.c: intervals against what is known of binomials, and by simulation with fixed
 * seeds: runs of one distribution are hardly ever told apart, one twice as slow is.
 */
#include "lab/lab_noise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_record.h"

enum { WARMUP = 16, SPELL = 25, PAIRS = 200, FEW_PAIRS = 60 };

static uint64_t random_state;

static double chance(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

/* How messages take their time. */
enum kind {
    EXPONENTIAL,
    TAILED,    /* one in 50 takes 30 times as long */
    CLUSTERED, /* as many as are under way wait together */
    SPELLS,    /* a trial, one by one, of which some after each other are alike */
};

/* The case of a run with so many messages, one after the other, each factor times as long. */
static json_t *made_case(enum kind kind, uint64_t messages, unsigned depth, double factor)
{
    struct lab_hist *h = calloc(1, sizeof(*h));
    struct lab_batches b = {0};
    double now_ns = 1, begun_ns = 0, ns = 0;
    uint64_t alike = kind == CLUSTERED ? depth : kind == SPELLS ? SPELL : 1, each = 1;
    for (uint64_t i = 0; i < messages + WARMUP; i++) {
        if (i == WARMUP) {
            begun_ns = now_ns;
            b.since_ns = kind == SPELLS ? (uint64_t)now_ns : 0;
        } else if (i > WARMUP && kind == SPELLS && (i - WARMUP) % each == 0) {
            lab_batches_grow(&b, &each, (uint64_t)now_ns);
        }
        if (i >= WARMUP && kind != SPELLS && lab_batches_due(i - WARMUP, messages))
            lab_batches_end(&b, (uint64_t)now_ns);
        if (i % alike == 0)
            ns = factor * 10000 * (1 - log(chance()));
        if (kind == TAILED && chance() < 0.02)
            ns *= 30;
        if (i >= WARMUP)
            lab_hist_add(h, (uint64_t)ns);
        now_ns += ns / depth;
    }
    if (kind != SPELLS)
        lab_batches_end(&b, (uint64_t)now_ns);
    json_t *batches = json_array(), *measure = lab_record_hist(h);
    for (unsigned i = 0; i < b.count; i++)
        json_array_append_new(batches, json_integer((json_int_t)b.ns[i]));
    json_t *c = json_pack("{s:I,s:i,s:f,s:o,s:[o]}", "messages", (json_int_t)messages, "depth",
                          (int)depth, "gbps", (double)messages * 1e5 / (now_ns - begun_ns),
                          "batches_ns", batches, "measures", measure);
    if (kind == SPELLS) {
        json_object_set_new(c, "variant", json_string("a way"));
        json_object_del(c, "messages");
    }
    free(h);
    return c;
}

enum figure { MEDIAN, P99, THROUGHPUT, FIGURES };

static struct lab_figure figure_of(const json_t *c, unsigned f)
{
    const json_t *m = json_array_get(json_object_get(c, "measures"), 0);
    double effective = lab_noise_effective(c, m);
    return f == THROUGHPUT ? lab_noise_throughput(c)
           : f == MEDIAN   ? lab_noise_quantile(m, "p50_ns", 0.5, effective)
                           : lab_noise_quantile(m, "p99_ns", 0.99, effective);
}

/* How many pairs of runs are marked so; the second takes factor times as long. */
static void marked(enum kind kind, uint64_t messages, unsigned depth, double factor, unsigned pairs,
                   unsigned counts[FIGURES][LAB_MARK_UNKNOWN + 1])
{
    memset(counts, 0, FIGURES * sizeof(counts[0]));
    random_state = 1;
    for (unsigned i = 0; i < pairs; i++) {
        json_t *a = made_case(kind, messages, depth, 1),
               *b = made_case(kind, messages, depth, factor);
        for (unsigned f = 0; f < FIGURES; f++) {
            struct lab_figure x = figure_of(a, f), y = figure_of(b, f);
            counts[f][lab_noise_mark(f == THROUGHPUT ? lab_noise_ratio(y, x)
                                                     : lab_noise_ratio(x, y))]++;
        }
        json_decref(a);
        json_decref(b);
    }
}

static void lab_noise_mark__by_chance_hardly_ever(void **state)
{
    (void)state;
    static const struct {
        enum kind kind;
        uint64_t messages;
        unsigned depth;
    } rows[] = {
        {EXPONENTIAL, 16,   1 },
        {EXPONENTIAL, 50,   1 },
        {EXPONENTIAL, 1000, 1 },
        {TAILED,      50,   1 },
        {TAILED,      1000, 1 },
        {CLUSTERED,   200,  16},
        {CLUSTERED,   1000, 16},
        {SPELLS,      1000, 1 },
        {SPELLS,      3000, 1 },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned counts[FIGURES][LAB_MARK_UNKNOWN + 1];
        marked(rows[i].kind, rows[i].messages, rows[i].depth, 1, PAIRS, counts);
        for (unsigned f = 0; f < FIGURES; f++)
            if (counts[f][LAB_MARK_BETTER] + counts[f][LAB_MARK_WORSE] > PAIRS * 3 / 100)
                fail_msg("row %u, figure %u: %u better, %u worse of %d alike", i, f,
                         counts[f][LAB_MARK_BETTER], counts[f][LAB_MARK_WORSE], PAIRS);
    }
}

static void lab_noise_mark__finds_twice_as_slow(void **state)
{
    (void)state;
    static const struct {
        enum kind kind;
        uint64_t messages;
        unsigned depth;
        unsigned least[FIGURES]; /* percent that must be found */
    } rows[] = {
        {EXPONENTIAL, 200,  1,  {95, 0, 95}  },
        {EXPONENTIAL, 4000, 1,  {100, 95, 99}},
        {TAILED,      4000, 1,  {100, 0, 95} },
        {CLUSTERED,   8000, 16, {95, 0, 95}  },
        {SPELLS,      8000, 1,  {95, 0, 95}  },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned counts[FIGURES][LAB_MARK_UNKNOWN + 1];
        marked(rows[i].kind, rows[i].messages, rows[i].depth, 2, FEW_PAIRS, counts);
        for (unsigned f = 0; f < FIGURES; f++)
            if (counts[f][LAB_MARK_WORSE] * 100 < FEW_PAIRS * rows[i].least[f] ||
                counts[f][LAB_MARK_BETTER] > 0)
                fail_msg("row %u, figure %u: %u worse, %u better, %u unknown", i, f,
                         counts[f][LAB_MARK_WORSE], counts[f][LAB_MARK_BETTER],
                         counts[f][LAB_MARK_UNKNOWN]);
    }
}

/* 1, 2, 3, ... up to n, each once. */
static json_t *ladder(int n)
{
    json_t *histogram = json_array();
    for (int i = 1; i <= n; i++)
        json_array_append_new(histogram, json_pack("[i,i]", i, 1));
    return json_pack("{s:i,s:i,s:i,s:i,s:o}", "samples", n, "p50_ns", (n + 1) / 2, "p99_ns",
                     (99 * n + 99) / 100, "max_ns", n, "histogram_ns", histogram);
}

/* Places of the samples by tables of binomials. */
static void lab_noise_quantile__places_in_order(void **state)
{
    (void)state;
    static const struct {
        int n;
        double share, effective;
        double low, high; /* 0: none */
    } rows[] = {
        {7,    0.5,  7,    0,   0  }, /* 2 * 0.5 ^ 7 is more than 1 % */
        {8,    0.5,  8,    1,   8  },
        {10,   0.5,  10,   1,   10 },
        {20,   0.5,  20,   4,   17 },
        {100,  0.5,  100,  37,  64 },
        {1000, 0.5,  1000, 459, 542},
        {50,   0.99, 50,   47,  0  },
        {527,  0.99, 527,  515, 0  }, /* 0.99 ^ 527 is more than 0.5 % */
        {528,  0.99, 528,  516, 528},
        {1000, 0.99, 1000, 981, 998},
        {100,  0.5,  20,   16,  85 }, /* groups of five */
        {1000, 0.99, 100,  951, 0  },
        {100,  0.5,  1,    0,   0  },
        {100,  0.5,  0.5,  0,   0  },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *m = ladder(rows[i].n);
        struct lab_figure f = lab_noise_quantile(m, rows[i].share == 0.5 ? "p50_ns" : "p99_ns",
                                                 rows[i].share, rows[i].effective);
        if (f.low != rows[i].low || (rows[i].high == 0 ? !isinf(f.high) : f.high != rows[i].high))
            fail_msg("row %u: %g to %g", i, f.low, f.high);
        json_decref(m);
    }
}

static void lab_noise_quantile__what_lacks(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"samples\": 0, \"p50_ns\": 0}",
        "{\"samples\": \"x\", \"histogram_ns\": 5}",
        "{\"p50_ns\": 0, \"samples\": 9}",
    };
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *m = json_loads(texts[i], 0, NULL);
        assert_true(lab_noise_quantile(m, "p50_ns", 0.5, lab_noise_effective(m, m)).value == 0);
        json_decref(m);
    }
    assert_true(lab_noise_quantile(NULL, "p50_ns", 0.5, 100).value == 0);
    json_t *m = json_pack("{s:i,s:i,s:[[i,i]]}", "samples", 100, "p50_ns", 7, "histogram_ns", 7, 3);
    struct lab_figure f = lab_noise_quantile(m, "p50_ns", 0.5, 100); /* buckets that lie */
    assert_true(f.value == 7 && f.low <= 7 && f.high >= 7);
    json_decref(m);
}

static void lab_noise_throughput__needs_batches(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double low, high; /* 0: none */
    } rows[] = {
        {"{\"gbps\": 8}",                                                      0,     0    },
        {"{\"gbps\": 8, \"batches_ns\": []}",                                  0,     0    },
        {"{\"gbps\": 8, \"batches_ns\": [5]}",                                 0,     0    },
        {"{\"gbps\": 8, \"batches_ns\": [0, 0]}",                              0,     0    },
        {"{\"gbps\": 8, \"batches_ns\": \"x\"}",                               0,     0    },
        {"{\"gbps\": 8, \"batches_ns\": [5, 5, 5, 5]}",                        8,     8    },
        {"{\"gbps\": 8, \"batches_ns\": [90, 110, 90, 110]}",                  5.714, 11.20}, /* t of 3: 5.841 */
        {"{\"gbps\": 8, \"batches_ns\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}", 0,
         0                                                                                 }, /* one too many */
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *c = json_loads(rows[i].text, 0, NULL);
        struct lab_figure f = lab_noise_throughput(c);
        if (f.value != 8 || fabs(f.low - rows[i].low) > 0.01 ||
            (rows[i].high == 0 ? !isinf(f.high) : fabs(f.high - rows[i].high) > 0.01))
            fail_msg("row %u: %g, %g to %g", i, f.value, f.low, f.high);
        json_decref(c);
    }
    json_t *c = json_pack("{s:i}", "gbps", 0);
    assert_true(lab_noise_throughput(c).value == 0);
    assert_true(lab_noise_throughput(NULL).value == 0);
    json_decref(c);
}

static void lab_noise_mark__rows(void **state)
{
    (void)state;
    static const struct {
        struct lab_figure ratio;
        enum lab_mark mark;
    } rows[] = {
        {{0, 0, 0},          LAB_MARK_NONE   },
        {{1, 1, 1},          LAB_MARK_SAME   },
        {{1.04, 1.03, 1.05}, LAB_MARK_SAME   }, /* sure, and too little */
        {{1.06, 1.01, 1.1},  LAB_MARK_BETTER },
        {{1.06, 0.99, 1.1},  LAB_MARK_SAME   },
        {{0.94, 0.9, 0.99},  LAB_MARK_WORSE  },
        {{0.94, 0.9, 1.01},  LAB_MARK_SAME   },
        {{1, 0.6, 1.2},      LAB_MARK_UNKNOWN},
        {{1, 0.8, 1.6},      LAB_MARK_UNKNOWN},
        {{1, 0.8, INFINITY}, LAB_MARK_UNKNOWN},
        {{1, 0, 1.2},        LAB_MARK_UNKNOWN},
        {{3, 1.5, INFINITY}, LAB_MARK_BETTER }, /* how much, nobody knows */
        {{0.3, 0, 0.8},      LAB_MARK_WORSE  },
        {{1, 0, INFINITY},   LAB_MARK_UNKNOWN},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (lab_noise_mark(rows[i].ratio) != rows[i].mark)
            fail_msg("row %u: %u", i, lab_noise_mark(rows[i].ratio));
    assert_null(lab_noise_mark_name(LAB_MARK_NONE));
    assert_string_equal(lab_noise_mark_name(LAB_MARK_UNKNOWN), "unknown");
}

static void lab_noise_ratio__puts_both_together(void **state)
{
    (void)state;
    const struct lab_figure sure = {100, 100, 100}, wide = {200, 100, 400},
                            open = {50, 25, INFINITY};
    struct lab_figure r = lab_noise_ratio(wide, sure);
    assert_true(fabs(r.value - 2) < 1e-9 && fabs(r.low - 1) < 1e-9 && fabs(r.high - 4) < 1e-9);
    r = lab_noise_ratio(wide, wide);
    assert_true(fabs(r.high - exp(M_SQRT2 * log(2))) < 1e-9 && fabs(r.low * r.high - 1) < 1e-9);
    r = lab_noise_ratio(sure, open);
    assert_true(r.low == 0 && fabs(r.high - 4) < 1e-9);
    r = lab_noise_ratio(open, sure);
    assert_true(isinf(r.high) && fabs(r.low - 0.25) < 1e-9);
    assert_true(lab_noise_ratio(sure, (struct lab_figure){0}).value == 0);
    assert_true(lab_noise_ratio((struct lab_figure){0}, sure).value == 0);
    assert_true(lab_noise_ratio(lab_noise_single(4), lab_noise_single(2)).value == 2);
    assert_int_equal(lab_noise_mark(lab_noise_ratio(lab_noise_single(4), lab_noise_single(2))),
                     LAB_MARK_UNKNOWN);
    assert_true(lab_noise_single(0).value == 0);
}

static void lab_noise_between__of_runs_alike(void **state)
{
    (void)state;
    static const struct {
        double values[4];
        unsigned count;
        double wide; /* high over value */
    } rows[] = {
        {{0},                  0, 1    },
        {{100, 200, 400},      3, 1    }, /* too few */
        {{100, 100, 100, 100}, 4, 1    },
        {{100, 0, 110, 90},    4, 1    }, /* one has no such figure */
        {{100, 110, 100, 110}, 4, 1.576}, /* 5.841 * sqrt(2) * 0.0550 */
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_figure f =
            lab_noise_between((struct lab_figure){2, 2, 2}, rows[i].values, rows[i].count);
        if (fabs(f.high / 2 - rows[i].wide) > 0.01 || fabs(f.low * f.high - 4) > 0.01)
            fail_msg("row %u: %g to %g", i, f.low, f.high);
    }
    const double values[] = {100, 110, 100, 110};
    struct lab_figure f = lab_noise_between((struct lab_figure){2, 0, INFINITY}, values, 4);
    assert_true(f.low == 0 && isinf(f.high));
    assert_true(lab_noise_between((struct lab_figure){0}, values, 4).value == 0);
}

static void lab_noise_effective__counts_what_is_alike_once(void **state)
{
    (void)state;
    random_state = 7;
    const struct {
        enum kind kind;
        unsigned depth;
        double low, high; /* of 8,000 */
    } rows[] = {
        {EXPONENTIAL, 1,  3000, 8000},
        {CLUSTERED,   16, 150,  1500},
        {CLUSTERED,   64, 40,   400 },
        {SPELLS,      1,  80,   1600},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *c = made_case(rows[i].kind, 8000, rows[i].depth, 1);
        const json_t *m = json_array_get(json_object_get(c, "measures"), 0);
        double n = lab_noise_effective(c, m);
        if (n < rows[i].low || n > rows[i].high)
            fail_msg("row %u: %g", i, n);
        json_object_del(c, "batches_ns"); /* a run of an older version */
        assert_true(lab_noise_effective(c, m) ==
                    (rows[i].kind == SPELLS ? 1 : 8000.0 / rows[i].depth));
        json_decref(c);
    }
}

static void lab_batches_due__equal_parts(void **state)
{
    (void)state;
    static const struct {
        uint64_t messages;
        unsigned count; /* of batches and the first begin */
    } rows[] = {
        {0,    0 },
        {15,   0 },
        {16,   17},
        {31,   17},
        {40,   17},
        {1000, 17},
        {1007, 17},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned count = 0;
        for (uint64_t over = 0; over <= rows[i].messages; over++)
            count += lab_batches_due(over, rows[i].messages);
        if (count != rows[i].count)
            fail_msg("row %u: %u", i, count);
    }
    struct lab_batches b = {0}, other = {0};
    for (unsigned i = 0; i < 40; i++) {
        lab_batches_end(&b, 100 + 10 * i);
        lab_batches_end(&other, 500 + 20 * i);
    }
    assert_int_equal(b.count, LAB_BATCHES);
    assert_int_equal(b.ns[LAB_BATCHES - 1], 10);
    lab_batches_add(&b, &other);
    assert_int_equal(b.ns[0], 30);
}

/* However many there are, the last of them last: 8 to 15 equal ones, once there were so many. */
static void lab_batches_grow__always_equal(void **state)
{
    (void)state;
    for (uint64_t messages = 0; messages < 300; messages++) {
        struct lab_batches b = {.since_ns = 1};
        uint64_t each = 1, whole = 0;
        for (uint64_t over = 1; over <= messages; over++)
            if (over % each == 0)
                lab_batches_grow(&b, &each, 1 + 10 * over);
        for (unsigned i = 0; i < b.count; i++)
            whole += b.ns[i] == 10 * each;
        assert_int_equal(b.count, messages / each);
        assert_int_equal(whole, b.count);
        assert_true(b.count < LAB_BATCHES && (messages < 8 || b.count >= LAB_BATCHES / 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_noise_mark__by_chance_hardly_ever),
        cmocka_unit_test(lab_noise_mark__finds_twice_as_slow),
        cmocka_unit_test(lab_noise_quantile__places_in_order),
        cmocka_unit_test(lab_noise_quantile__what_lacks),
        cmocka_unit_test(lab_noise_throughput__needs_batches),
        cmocka_unit_test(lab_noise_mark__rows),
        cmocka_unit_test(lab_noise_ratio__puts_both_together),
        cmocka_unit_test(lab_noise_between__of_runs_alike),
        cmocka_unit_test(lab_noise_effective__counts_what_is_alike_once),
        cmocka_unit_test(lab_batches_due__equal_parts),
        cmocka_unit_test(lab_batches_grow__always_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
