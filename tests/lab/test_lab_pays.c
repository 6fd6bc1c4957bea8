/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_pays.c: where RDMA pays and where not, in ranges of sizes and depths; what is not told,
 * and why; numbers that stay numbers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_pays.h"
#include "made_run.h"

enum { CELLS = 9, US = 1000, CPU_US = 300 };
static const uint32_t sizes[] = {65536, 64, 4096}; /* in no order, as they may be asked for */
static const uint32_t depths[] = {1, 16, 4};

static struct lab_end e;
static struct lab_run run;
static json_t *pays;

/* A digit for each size and depth is how many tenths of TCP's figures a write has, a * that it has
 * twice as much, a 0 that it has 0.002. */
static double times(char digit)
{
    return digit == '*' ? 2 : digit == '0' ? 0.002 : (digit - '0') / 10.0;
}

static void set_cpu(struct lab_result *r, uint64_t both_us, unsigned percent)
{
    r->source.user_us = both_us / 2;
    json_object_set_new(r->target, "cpu_user_us", json_integer((json_int_t)(both_us / 2)));
    r->source.wall_ns = both_us / 2 * 1000 * 100 / percent;
    json_object_set_new(r->target, "wall_ns", json_integer((json_int_t)r->source.wall_ns));
}

/* rows: by depth 1, 4, 16, the sizes 64, 4096, 65536, of writes; more: of Sends; cpu: of all; a -
 * in percent is a case in which the ends did not have their CPUs. */
static void make(const char *rows, const char *more, const char *cpu, const char *percent)
{
    static const unsigned by_size[] = {2, 0, 1}, by_depth[] = {0, 2, 1};
    char message[LAB_MESSAGE_BYTES];
    run =
        (struct lab_run){.results = calloc(3 * CELLS, sizeof(*run.results)), .planned = 3 * CELLS};
    lab_settings_init(&e.settings);
    assert_int_equal(lab_settings_set(&e.settings, (unsigned)lab_settings_find("size"),
                                      "64KiB,64,4KiB", message),
                     0);
    for (unsigned i = 0; i < CELLS; i++) {
        unsigned at = by_depth[i / 3] * 3 + by_size[i % 3];
        const char *const all[] = {"", rows, more};
        for (unsigned k = 0; k < 3; k++) {
            if (all[k] == NULL)
                continue;
            struct lab_result *r = &run.results[run.count++];
            double better = k == 0 ? 1 : times(all[k][at]);
            made_case(r,
                      k == 0   ? LAB_TCP
                      : k == 1 ? LAB_WRITE
                               : LAB_SEND,
                      sizes[i % 3], (uint64_t)lround(10 * US / better));
            r->c.depth = depths[i / 3];
            if (cpu != NULL)
                set_cpu(r, (uint64_t)lround(k == 0 ? CPU_US : CPU_US / times(cpu[at])),
                        k > 0 && percent != NULL && percent[at] == '-' ? 40 : 100);
        }
    }
    json_decref(pays);
    pays = lab_pays_make(&e.settings, &run);
}

static int teardown(void **state)
{
    (void)state;
    json_decref(pays);
    pays = NULL;
    lab_run_clear(&run);
    return 0;
}

static void expect(unsigned row, const char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL)
        fail_msg("row %u: '%s' is not in '%s'", row, wanted, text);
}

static const char *summary(void)
{
    return json_string_value(json_object_get(pays, "summary"));
}

static const char *says(unsigned measure)
{
    return json_string_value(
        json_object_get(json_array_get(json_object_get(pays, "measures"), measure), "says"));
}

static void lab_pays_make__where(void **state)
{
    (void)state;
    static const struct {
        const char *rows, *more, *cpu;
        unsigned where; /* 0: the summary, else the measure of that number */
        const char *text;
    } rows[] = {
        {"*********", NULL,        NULL,        0, "RDMA pays for this load: geometric means of 9 cases: throu" },
        {"*********", NULL,        NULL,        0, "throughput 2.00 x TCP, median latency 2.00 x TCP"           },
        {"*********", NULL,        NULL,        1,
         "throughput: better for all; from 2.00 x TCP (write of 65536 "                                         },
        {"999999999", NULL,        NULL,        0, "RDMA and TCP are alike for this load: geom"                 },
        {"999999999", NULL,        NULL,        1, "throughput: alike for all; "                                },
        {"555555555", NULL,        NULL,        0, "RDMA does not pay for this load: geom"                      },
        {"555555555", NULL,        NULL,        2, "median latency: worse for all; "                            },
        {"000******", NULL,        NULL,        0, "RDMA pays for part of this load: it pays for all sizes at " },
        {"000******", NULL,        NULL,        0, "pays for all sizes at depths 4 to 16; it does not pay for " },
        {"000******", NULL,        NULL,        0,
         "does not pay for all sizes at depth 1; geometric means of 9 "                                         },
        {"000******", NULL,        NULL,        0, "geometric means of 9 cases: throughput 0.200 x TCP, "       },
        {"000******", NULL,        NULL,        1,
         "better for all sizes at depths 4 to 16; worse for all sizes "                                         },
        {"000******", NULL,        NULL,        1,
         "from 0.00200 x TCP (write of 65536 bytes at depth 1) to 2.00 "                                        },
        {"**5**5**5", NULL,        NULL,        0, "it pays for 64B to 4KiB at all depths; it does not pay for "},
        {"**5**5**5", NULL,        NULL,        0, "it does not pay for 64KiB at all depths; geom"              },
        {"*5**9****", NULL,        NULL,        0, "64B at depths 1 to 4, 64KiB at depths 1 to 4, all sizes at "},
        {"*5**9****", NULL,        NULL,        0, "; it does not pay for 4KiB at depth 1; it is like TCP for " },
        {"*5**9****", NULL,        NULL,        0, "it is like TCP for 4KiB at depth 4; "                       },
        {"*5*5*5*5*", NULL,        NULL,        0, "it pays for 5 of 9 sizes and depths; it does not pay for 4 "},
        {"*5*5*5*5*", NULL,        NULL,        1, "better for 5 of 9 sizes and depths; worse for 4 of 9 "      },
        {"555999999", NULL,        NULL,        0, "RDMA does not plainly pay for this load: it does not pay "  },
        {"*********", "555555555", NULL,        0,
         "RDMA pays or not by the operation (or its buffers, queue "                                            },
        {"*********", "555555555", NULL,        0, "geometric means of 18 cases: throughput 1.00 x TCP"         },
        {"*********", "555555555", NULL,        1,
         "throughput: as the operation (or its buffers, queue pairs, "                                          },
        {"*********", "******5**", NULL,        0,
         "it depends on the operation (or its buffers, queue pairs, "                                           },
        {"*********", "******5**", NULL,        0, "places) for 64B at depth 16; geom"                          },
        {"*********", NULL,        "555555555", 0,
         "is better than TCP for this load by one measure and worse "                                           },
        {"*********", NULL,        "555555555", 0,
         "median latency 2.00 x TCP, CPU per message 0.500 x TCP"                                               },
        {"*********", NULL,        "555555555", 1, "throughput: better for all; "                               },
        {"*********", NULL,        "555555555", 3, "CPU per message: worse for all; "                           },
        {"*********", NULL,        "***5*****", 0, "it pays for all sizes at depth 1"                           },
        {"*********", NULL,        "***5*****", 3, "worse for 64B at depth 4; "                                 },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make(rows[i].rows, rows[i].more, rows[i].cpu, NULL);
        assert_true(json_is_true(json_object_get(pays, "told")));
        assert_int_equal(json_array_size(json_object_get(pays, "measures")),
                         rows[i].cpu != NULL ? 3 : 2);
        expect(i, rows[i].where == 0 ? summary() : says(rows[i].where - 1), rows[i].text);
        lab_run_clear(&run);
    }
}

/* What is said of the run that was made; no figures where nothing is told. */
static void judged(unsigned row, bool told, const char *wanted)
{
    json_decref(pays);
    pays = lab_pays_make(&e.settings, &run);
    expect(row, summary(), wanted);
    assert_int_equal(json_is_true(json_object_get(pays, "told")), told);
    assert_int_equal(json_array_size(json_object_get(pays, "measures")), told ? 3 : 0);
    if (!told)
        assert_null(strstr(summary(), " x TCP"));
    lab_run_clear(&run);
}

/* Of 9 cases so many had no CPU ('-'): most of them, and nothing is told; else without them. */
static void lab_pays_make__starved(void **state)
{
    (void)state;
    static const struct {
        const char *rows, *percent;
        uint64_t wait;
        bool told;
        const char *summary;
    } rows[] = {
        {"000******", "---------", LAB_POLL,  false,
         "whether RDMA pays cannot be told here: in 9 of 9 cases"                                  },
        {"000******", "-----++++", LAB_POLL,  false, "in 5 of 9 cases that have a baseline an end "},
        {"*********", "-----++++", LAB_POLL,  false, "use --wait event, or more CPUs"              },
        {"0000*****", "----+++++", LAB_POLL,  true,
         "RDMA pays for this load: geometric means of 5 "                                          },
        {"0000*****", "----+++++", LAB_POLL,  true,
         "; 4 of 9 cases are left out, where an end that "                                         },
        {"000******", "---------", LAB_EVENT, true,  "RDMA pays for part of this load"             },
        {"000******", "+++++++++", LAB_POLL,  true,  "RDMA pays for part of this load"             },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make(rows[i].rows, NULL, "999999999", rows[i].percent);
        e.settings.wait = rows[i].wait;
        judged(i, rows[i].told, rows[i].summary);
    }
}

/* Of 9 cases so many had a few messages ('-'), or so many no CPU: most, and nothing is told. */
static void lab_pays_make__few(void **state)
{
    (void)state;
    static const struct {
        const char *few, *percent;
        uint64_t messages, baseline; /* of the few */
        bool told;
        const char *summary;
    } rows[] = {
        {"---------", "+++++++++", 1,  1,   false, "cannot be told here: 9 of 9 cases that have a "},
        {"---------", "+++++++++", 1,  1,   false, "had fewer than 10 messages, which tell of "    },
        {"---------", "+++++++++", 1,  1,   false, "use more --iterations"                         },
        {"---------", "---------", 9,  9,   false, "9 of 9 cases that have a baseline had fewer "  },
        {"---------", "+++++++++", 9,  100, false, "cannot be told here: 9 of 9 cases that have a "},
        {"---------", "+++++++++", 10, 9,   false, "cannot be told here: 9 of 9 cases that have a "},
        {"-----++++", "+++++++++", 9,  9,   false, "cannot be told here: 5 of 9 cases that have a "},
        {"---++++++", "++++++---", 9,  9,   false, "3 of 9 cases that have a baseline had fewer "  },
        {"---++++++", "++++++---", 9,  9,   false, "; in 3 of 9 cases that have a baseline an end "},
        {"----+++++", "+++++++++", 9,  9,   true,  "RDMA pays for this load: geometric means of 5 "},
        {"----+++++", "+++++++++", 9,  9,   true,  "; 4 of 9 cases are left out, which had fewer " },
        {"--+++++++", "++-++++++", 9,  9,   true,  "; 2 of 9 cases are left out, which had fewer " },
        {"--+++++++", "++-++++++", 9,  9,   true,  "; 1 of 9 cases are left out, where an end "    },
        {"---------", "+++++++++", 10, 10,  true,  "RDMA pays for this load: geometric means of 9 "},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make("*********", NULL, "*********", rows[i].percent);
        for (unsigned k = 0; k < run.count; k++) {
            struct lab_result *r = &run.results[k]; /* TCP and the write of a cell, in turn */
            static const unsigned by_size[] = {2, 0, 1}, by_depth[] = {0, 2, 1};
            bool few = rows[i].few[by_depth[k / 2 / 3] * 3 + by_size[k / 2 % 3]] == '-';
            if (few)
                r->c.iterations = r->c.op == LAB_TCP ? rows[i].baseline : rows[i].messages;
        }
        judged(i, rows[i].told, rows[i].summary);
    }
}

static void lab_pays_make__nothing_to_compare(void **state)
{
    (void)state;
    static const struct {
        unsigned first, count; /* of tcp, write, atomic */
        const char *says;
    } rows[] = {
        {1, 1, "without a baseline nothing is said about TCP"               },
        {1, 2, "without a baseline nothing is said about TCP"               },
        {2, 1, "nothing is said about TCP, which has nothing like an atomic"},
        {0, 2, "RDMA pays for this load: throughput 2.00 x TCP, median"     },
        {0, 3, "RDMA pays for this load: throughput 2.00 x TCP, median"     },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        made_run(&e, &run, 5000);
        const struct lab_run some = {.results = run.results + rows[i].first,
                                     .count = rows[i].count};
        json_decref(pays);
        pays = lab_pays_make(&e.settings, &some);
        assert_string_not_equal(summary(), "");
        assert_int_equal(strncmp(summary(), rows[i].says, strlen(rows[i].says)), 0);
        lab_run_clear(&run);
    }
}

static void lab_pays_number__three_digits(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.0012345, "0.00123" },
        {0.098,     "0.0980"  },
        {0.5,       "0.500"   },
        {1,         "1.00"    },
        {1.4549,    "1.45"    },
        {12.34,     "12.3"    },
        {99.94,     "99.9"    },
        {99.96,     "100"     },
        {1234.5,    "1234"    },
        {1e-7,      "1.00e-07"},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[LAB_PAYS_NUMBER_BYTES];
        assert_string_equal(lab_pays_number(rows[i].value, text), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lab_pays_make__where, teardown),
        cmocka_unit_test_teardown(lab_pays_make__starved, teardown),
        cmocka_unit_test_teardown(lab_pays_make__few, teardown),
        cmocka_unit_test_teardown(lab_pays_make__nothing_to_compare, teardown),
        cmocka_unit_test(lab_pays_number__three_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
