/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_experiment.c: what experiments are judged by, from trials with round figures, and their
 * text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_experiment.h"

static json_t *experiment;

static int setup(void **state)
{
    (void)state;
    experiment = json_pack("{s:s,s:s,s:[i],s:[]}", "name", "some", "about", "Something", "sizes",
                           64, "trials");
    return experiment == NULL;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(experiment);
    return 0;
}

/* count NULL: none; it was found at that side. */
static void add_of(const struct lab_variant *v, int size, const char *side, const char *count,
                   int value)
{
    json_t *t = json_pack("{s:s,s:i,s:i,s:s,s:s,s:f,s:{s:i,s:i,s:i},s:{s:{}},s:{s:{}}}", "variant",
                          v->name, "size", size, "rounds", 100, "proves", "this", "not", "that",
                          "cpu_us_a_message", 2.5, "latency", "p50_ns", 3000, "p99_ns", 4000,
                          "max_ns", 5000, "source", "counts", "target", "counts");
    if (count != NULL)
        json_object_set_new(json_object_get(json_object_get(t, side), "counts"), count,
                            json_integer(value));
    json_array_append_new(json_object_get(experiment, "trials"), t);
}

static void add_at(const struct lab_variant *v, const char *side, const char *count, int value)
{
    add_of(v, 64, side, count, value);
}

/* All variants, one of which has found something. */
static void judged(const struct lab_experiment_kind *k, unsigned variant, const char *side,
                   const char *count, bool passed, const char *says)
{
    json_array_clear(json_object_get(experiment, "trials"));
    for (unsigned v = 0; v < k->variant_count; v++)
        add_at(&k->variants[v], side, v == variant ? count : NULL, 3);
    k->judge(experiment);
    const char *summary = json_string_value(json_object_get(experiment, "summary"));
    assert_int_equal(json_is_true(json_object_get(experiment, "passed")), passed);
    if (strstr(summary, says) == NULL)
        fail_msg("'%s' is not in '%s'", says, summary);
}

enum { AT_REST, PLAIN, LOCKED };

static void lab_torn__judged(void **state)
{
    (void)state;
    judged(&lab_torn, PLAIN, "source", "torn", true, "3 of 100 plain Reads were torn");
    judged(&lab_torn, PLAIN, "source", "whole", true, "none this time, which proves nothing");
    judged(&lab_torn, LOCKED, "source", "tries", true, "after 3 tries, 0 of them wrong, for 1.0");
    judged(&lab_torn, LOCKED, "source", "torn", false, "3 of them wrong");
    judged(&lab_torn, LOCKED, "source", "corrupt", false, "3 of them wrong");
    judged(&lab_torn, PLAIN, "source", "corrupt", false, "CORRUPT bytes");
    judged(&lab_torn, AT_REST, "source", "torn", false, "CORRUPT bytes");
    judged(&lab_torn, AT_REST, "source", "corrupt", false, "CORRUPT bytes");
}

/* Each trial counts, however many sizes there are, and each size is told of. */
static void lab_torn__every_size(void **state)
{
    (void)state;
    enum { SIZES = LAB_MAX_LIST };
    json_t *sizes = json_array();
    for (int i = 0; i < SIZES; i++)
        json_array_append_new(sizes, json_integer(64 * (i + 1)));
    json_object_set_new(experiment, "sizes", sizes);
    static const struct {
        unsigned variant;
        const char *count;
        bool passed;
    } rows[] = {
        {LOCKED,  "whole",   true },
        {PLAIN,   "torn",    true },
        {LOCKED,  "torn",    false},
        {LOCKED,  "corrupt", false},
        {PLAIN,   "corrupt", false},
        {AT_REST, "torn",    false},
    };
    for (unsigned row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        for (int bad = 0; bad < SIZES; bad++) {
            json_array_clear(json_object_get(experiment, "trials"));
            for (int i = 0; i < SIZES; i++)
                for (unsigned v = 0; v < lab_torn.variant_count; v++)
                    add_of(&lab_torn.variants[v], 64 * (i + 1), "source",
                           i == bad && v == rows[row].variant ? rows[row].count : NULL, 1);
            lab_torn.judge(experiment);
            assert_int_equal(json_is_true(json_object_get(experiment, "passed")), rows[row].passed);
        }
    }
    const char *summary = json_string_value(json_object_get(experiment, "summary"));
    for (int i = 0; i < SIZES; i++) {
        char says[32];
        snprintf(says, sizeof(says), "of %d bytes, ", 64 * (i + 1));
        assert_non_null(strstr(summary, says));
    }
}

/* Where the specification leaves it open, a flag before its data is news and no fault. */
static void lab_flag__judged(void **state)
{
    (void)state;
    for (unsigned v = 0; v < lab_flag.variant_count; v++) {
        bool open = v < 2;
        const char *says = open ? "in 3 of 400 cases where the specification leaves that open"
                                : "and in 3 where it does not";
        judged(&lab_flag, v, "source", "told_before_data", open, says);
        judged(&lab_flag, v, "target", "told_before_data", open, says);
    }
    judged(&lab_flag, 0, "source", "whole", true, "no promise of the next NIC");
}

static void lab_bare__judged(void **state)
{
    (void)state;
    judged(&lab_bare, 0, "source", NULL, true, "3.0 us at the least");
}

static void lab_experiment_failed__findings(void **state)
{
    (void)state;
    json_t *all = json_array(), *findings = json_array();
    assert_false(lab_experiment_failed(NULL, findings));
    assert_false(lab_experiment_failed(all, findings));
    assert_int_equal(json_array_size(findings), 0);
    judged(&lab_torn, PLAIN, "source", "torn", true, "");
    json_array_append(all, experiment);
    assert_false(lab_experiment_failed(all, findings));
    assert_int_equal(json_array_size(findings), 1);
    json_object_set_new(experiment, "passed", json_false());
    assert_true(lab_experiment_failed(all, findings));
    assert_memory_equal(json_string_value(json_array_get(findings, 1)), "WRONG DATA: experiment",
                        22);
    json_decref(all);
    json_decref(findings);
}

static void lab_experiment_write__text(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    json_t *all = json_array();
    judged(&lab_torn, LOCKED, "source", "torn", false, "");
    json_array_append(all, experiment);
    lab_experiment_write(NULL, out);
    assert_int_equal(ftell(out), 0);
    lab_experiment_write(all, out);
    fclose(out);
    assert_non_null(strstr(text, "Experiment some. Something."));
    assert_non_null(strstr(text, "  source torn 3"));
    assert_non_null(strstr(text, "at rest: proves: this; does not prove: that"));
    assert_non_null(strstr(text, "Verdict of some: WRONG DATA: of 64 bytes"));
    free(text);
    json_decref(all);
}

static json_t *end_of(unsigned percent)
{
    return json_pack("{s:i,s:i,s:{}}", "wall_ns", 1000000, "cpu_system_us", (int)(10 * percent),
                     "counts");
}

/* As of cases: few messages, and ends that poll without a CPU. The last way of flag sleeps; of the
 * target of a Read nobody knows, since it does not poll. */
static void lab_experiment_judge__doubt(void **state)
{
    (void)state;
    static const struct {
        const struct lab_experiment_kind *k;
        unsigned variant;
        int rounds;
        unsigned source, target; /* percent of a CPU */
        const char *doubt;
    } rows[] = {
        {&lab_flag, 0, 100, 100, 100, NULL          },
        {&lab_flag, 0, 10,  75,  75,  NULL          },
        {&lab_flag, 0, 100, 0,   0,   NULL          },
 /* unknown */
        {&lab_flag, 0, 9,   100, 100, "few messages"},
        {&lab_flag, 0, 100, 74,  100, "no CPU"      },
        {&lab_flag, 0, 100, 100, 40,  "no CPU"      },
        {&lab_flag, 6, 100, 5,   5,   NULL          },
        {&lab_flag, 6, 1,   5,   5,   "few messages"},
        {&lab_torn, 0, 100, 100, 3,   NULL          },
        {&lab_torn, 1, 100, 50,  100, "no CPU"      },
        {&lab_bare, 2, 0,   100, 100, "few messages"},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *trials = json_object_get(experiment, "trials");
        json_array_clear(trials);
        add_at(&rows[i].k->variants[rows[i].variant], "source", NULL, 0);
        json_t *t = json_array_get(trials, 0);
        json_object_set_new(t, "rounds", json_integer(rows[i].rounds));
        json_object_set_new(t, "source", end_of(rows[i].source));
        json_object_set_new(t, "target", end_of(rows[i].target));
        lab_experiment_judge(rows[i].k, experiment);
        const char *doubt = json_string_value(json_object_get(t, "doubt"));
        if ((doubt == NULL) != (rows[i].doubt == NULL) ||
            (doubt != NULL && strcmp(doubt, rows[i].doubt) != 0))
            fail_msg("row %u: %s", i, doubt != NULL ? doubt : "no doubt");
        const char *summary = json_string_value(json_object_get(experiment, "summary"));
        assert_int_equal(strstr(summary, "times of 1 of 1 ways are in doubt") != NULL,
                         rows[i].doubt != NULL);
    }
}

static void lab_trial_find__absent(void **state)
{
    (void)state;
    add_at(&lab_torn.variants[0], "source", "torn", 7);
    const json_t *t = lab_trial_find(experiment, "at rest", 64);
    assert_int_equal(lab_trial_count(t, "source", "torn"), 7);
    assert_int_equal(lab_trial_p50(t), 3000);
    assert_int_equal(lab_trial_count(t, "source", "whole"), 0);
    assert_int_equal(lab_trial_count(t, "target", "torn"), 0);
    assert_null(lab_trial_find(experiment, "at rest", 65));
    assert_null(lab_trial_find(experiment, "plain Read", 64));
    assert_int_equal(lab_trial_count(NULL, "source", "torn"), 0);
    assert_int_equal(lab_trial_p50(NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lab_torn__judged),
        TEST(lab_torn__every_size),
        TEST(lab_flag__judged),
        TEST(lab_bare__judged),
        TEST(lab_experiment_failed__findings),
        TEST(lab_experiment_write__text),
        TEST(lab_experiment_judge__doubt),
        TEST(lab_trial_find__absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
