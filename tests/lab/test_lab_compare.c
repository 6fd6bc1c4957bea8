/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_compare.c: what is better, what is worse and what is noise, of runs made up.
 */
#include "lab/lab_compare.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct lab_filter all;

/* A distribution of 1,000 samples about ns, the tenths of which are wide percent apart. */
static json_t *measure(const char *name, long long ns, int wide)
{
    json_t *histogram = json_array();
    for (int i = -5; i < 5; i++)
        json_array_append_new(histogram, json_pack("[I,i]", ns + ns * wide * i / 100, 100));
    return json_pack("{s:s,s:i,s:I,s:I,s:I,s:I,s:I,s:o}", "name", name, "samples", 1000, "mean_ns",
                     ns, "min_ns", ns - ns * wide * 5 / 100, "p50_ns", ns, "p99_ns", ns * 2,
                     "max_ns", ns * 3, "histogram_ns", histogram);
}

static json_t *made_case(const char *op, int size, long long ns, int wide)
{
    return json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:f,s:[o]}", "op", op, "buffers", "direct",
                     "transport", "rc", "size", size, "depth", 1, "offset", 0, "gbps",
                     8.0 * size / (double)ns, "measures", measure(op, ns, wide));
}

/* TCP and a write of 64 bytes. */
static json_t *made_record(int run, long long tcp_ns, long long write_ns, int wide)
{
    return json_pack("{s:i,s:{s:s,s:s},s:{s:s},s:[o,o]}", "run", run, "settings", "size", "64",
                     "json", run == 1 ? "a" : "b", "source", "host", "h", "cases",
                     made_case("tcp", 64, tcp_ns, wide), made_case("write", 64, write_ns, wide));
}

static json_t *compare(json_t *a, json_t *b, const struct lab_filter *f)
{
    json_t *records = json_pack("[o,o]", a, b), *comparison = lab_compare_make(records, f);
    json_decref(records);
    return comparison;
}

static const json_t *row_of(const json_t *comparison, const char *op, const char *figure)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(comparison, "rows"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "op")), op) == 0 &&
            strstr(json_string_value(json_object_get(row, "figure")), figure) != NULL)
            return row;
    }
    return NULL;
}

static const char *mark(const json_t *row)
{
    return json_string_value(json_array_get(json_object_get(row, "marks"), 1));
}

static void lab_compare_make__tells_change_from_noise(void **state)
{
    (void)state;
    static const struct {
        long long tcp[2], write[2];
        int wide;
        const char *mark;
        double ratio;
    } rows[] = {
        {{1000, 1000}, {1000, 1000}, 0,  "same",   1   },
        {{1000, 1000}, {1000, 1040}, 0,  "same",   0.96},
        {{1000, 1000}, {1040, 1000}, 0,  "same",   1.04},
        {{1000, 1000}, {1000, 1200}, 0,  "worse",  0.83},
        {{1000, 1000}, {1200, 1000}, 0,  "better", 1.2 },
        {{1000, 1000}, {1000, 1200}, 20, "same",   0.83}, /* the samples leave it open */
        {{1000, 1000}, {1000, 4000}, 20, "worse",  0.25},
        {{1000, 1200}, {1000, 1200}, 0,  "same",   0.83}, /* so did TCP: the machine is slower */
        {{1200, 1000}, {1000, 1200}, 0,  "same",   0.83}, /* nobody knows */
        {{1000, 1200}, {1000, 3000}, 0,  "worse",  0.33},
        {{1000, 1200}, {3000, 1000}, 0,  "better", 3   },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *c = compare(made_record(1, rows[i].tcp[0], rows[i].write[0], rows[i].wide),
                            made_record(2, rows[i].tcp[1], rows[i].write[1], rows[i].wide), &all);
        const json_t *row = row_of(c, "write", "median");
        double ratio = json_number_value(json_array_get(json_object_get(row, "ratios"), 1));
        if (strcmp(mark(row), rows[i].mark) != 0 || ratio < rows[i].ratio - 0.01 ||
            ratio > rows[i].ratio + 0.01)
            fail_msg("row %u: %s, %f", i, mark(row), ratio);
        json_decref(c);
    }
}

/* More is better of one, less of the other; both ratios say so alike. */
static void lab_compare_make__knows_what_is_better(void **state)
{
    (void)state;
    static const char *const figures[] = {"median", "p99", "throughput"};
    json_t *c = compare(made_record(1, 1000, 4000, 0), made_record(2, 1000, 1000, 0), &all);
    for (unsigned i = 0; i < 3; i++) {
        assert_string_equal(mark(row_of(c, "write", figures[i])), "better");
        assert_string_equal(mark(row_of(c, "tcp", figures[i])), "same");
    }
    const json_t *run = json_array_get(json_object_get(c, "runs"), 1);
    assert_int_equal(json_integer_value(json_object_get(run, "better")), 3);
    assert_int_equal(json_integer_value(json_object_get(run, "same")), 3);
    assert_int_equal(json_integer_value(json_object_get(run, "worse")), 0);
    json_decref(c);
}

static void lab_compare_make__takes_what_both_have(void **state)
{
    (void)state;
    static const struct {
        const char *part, *name, *value; /* of the second record's write, in JSON */
        size_t rows;
    } rows[] = {
        {NULL,     NULL,       NULL,                                  6},
        {"write",  "size",     "128",                                 3},
        {"write",  "depth",    "2",                                   3},
        {"write",  "offset",   "1",                                   3},
        {"write",  "op",       "\"read\"",                            3},
        {"write",  "buffers",  "\"bounce\"",                          3},
        {"write",  "measures", "[]",                                  3},
        {"write",  "path",     "{}",                                  3},
        {"write",  "gbps",     "0",                                   5},
        {"write",  "measures", "[{\"name\":\"other\",\"p50_ns\":1}]", 4},
        {"record", "cases",    "[]",                                  0},
        {"record", "cases",    "null",                                0},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *b = made_record(2, 1000, 1000, 0);
        json_t *write = json_array_get(json_object_get(b, "cases"), 1);
        if (rows[i].part != NULL)
            json_object_set_new(strcmp(rows[i].part, "write") == 0 ? write : b, rows[i].name,
                                json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        json_t *c = compare(made_record(1, 1000, 1000, 0), b, &all);
        if (json_array_size(json_object_get(c, "rows")) != rows[i].rows)
            fail_msg("row %u: %zu figures", i, json_array_size(json_object_get(c, "rows")));
        json_decref(c);
    }
}

static void lab_compare_make__filters(void **state)
{
    (void)state;
    struct lab_filter f = {0};
    char message[LAB_MESSAGE_BYTES];
    lab_settings_init(&f.settings);
    assert_int_equal(
        lab_settings_set(&f.settings, (unsigned)lab_settings_find("op"), "write", message), 0);
    json_t *c = compare(made_record(1, 1000, 1000, 0), made_record(2, 1000, 1000, 0), &f);
    assert_int_equal(json_array_size(json_object_get(c, "rows")), 3);
    assert_null(row_of(c, "tcp", "median"));
    json_decref(c);
}

/* Names of files are no difference; a host is. */
static void lab_compare_make__tells_what_else_differs(void **state)
{
    (void)state;
    json_t *b = made_record(2, 1000, 1000, 0);
    json_object_set_new(json_object_get(b, "source"), "host", json_string("other"));
    json_t *c = compare(made_record(1, 1000, 1000, 0), b, &all);
    const json_t *differences = json_object_get(c, "differences");
    assert_int_equal(json_array_size(differences), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(differences, 0), "name")),
                        "source: host");
    json_decref(c);
}

static void lab_compare_write__says_it_in_words(void **state)
{
    (void)state;
    json_t *c = compare(made_record(1, 1000, 4000, 0), made_record(2, 1000, 1000, 0), &all);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(lab_compare_write(c, out), 0);
    fclose(out);
    static const char *const words[] = {"write, median", "4.00 +", "1.00  ",
                                        "run 2: 3 figures better, 0 worse, 3 within noise"};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(text, words[i]) == NULL)
            fail_msg("no '%s' in\n%s", words[i], text);
    free(text);
    out = fopen("/dev/full", "w");
    assert_int_equal(lab_compare_write(c, out), -ENOSPC);
    fclose(out);
    json_decref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_compare_make__tells_change_from_noise),
        cmocka_unit_test(lab_compare_make__knows_what_is_better),
        cmocka_unit_test(lab_compare_make__takes_what_both_have),
        cmocka_unit_test(lab_compare_make__filters),
        cmocka_unit_test(lab_compare_make__tells_what_else_differs),
        cmocka_unit_test(lab_compare_write__says_it_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
