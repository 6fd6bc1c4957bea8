/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_compare.c: what is better, what is worse and what is noise, of runs made up.
 */
#include "lab/lab_compare.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct lab_filter all;

/* A distribution of samples about ns, the tenths of which are wide percent apart. */
static json_t *measure(const char *name, long long ns, int wide, int samples)
{
    json_t *histogram = json_array();
    long long most = 0;
    for (int i = -5; i < 5; i++) {
        most = (long long)((double)ns * pow(1 + wide / 100.0, i));
        json_array_append_new(histogram, json_pack("[I,i]", most, samples / 10));
    }
    return json_pack("{s:s,s:i,s:I,s:I,s:I,s:I,s:o}", "name", name, "samples", samples, "mean_ns",
                     ns, "p50_ns", ns, "p99_ns", most, "max_ns", most, "histogram_ns", histogram);
}

/* Batches vary by half of wide percent. */
static json_t *batches(long long ns, int wide)
{
    json_t *list = json_array();
    for (int i = 0; i < 16; i++)
        json_array_append_new(
            list, json_integer((long long)((double)ns * (1 + (i % 4 < 2 ? wide : -wide) / 400.0))));
    return list;
}

static json_t *made_case(const char *op, int size, long long ns, int wide, int samples)
{
    return json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:f,s:o,s:[o]}", "op", op, "buffers", "direct",
                     "transport", "rc", "size", size, "depth", 1, "offset", 0, "messages", samples,
                     "gbps", 8.0 * size / (double)ns, "batches_ns", batches(ns, wide), "measures",
                     measure(op, ns, wide, samples));
}

/* TCP and a write of 64 bytes. */
static json_t *made_run(int run, long long tcp_ns, long long write_ns, int wide, int samples)
{
    return json_pack("{s:i,s:{s:s,s:s},s:{s:s},s:[o,o]}", "run", run, "settings", "size", "64",
                     "json", run == 1 ? "a" : "b", "source", "host", "h", "cases",
                     made_case("tcp", 64, tcp_ns, wide, samples),
                     made_case("write", 64, write_ns, wide, samples));
}

static json_t *made_record(int run, long long tcp_ns, long long write_ns, int wide)
{
    return made_run(run, tcp_ns, write_ns, wide, 1000);
}

static json_t *compare(json_t *a, json_t *b, const struct lab_filter *f)
{
    json_t *records = json_pack("[o,o]", a, b), *comparison = lab_compare_make(records, NULL, f);
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

static const char *tcp_mark(const json_t *row)
{
    return json_string_value(json_array_get(json_object_get(row, "tcp_marks"), 1));
}

static void lab_compare_make__tells_change_from_noise(void **state)
{
    (void)state;
    static const struct {
        long long tcp[2], write[2];
        int wide;
        const char *mark;
        double ratio;
        const char *tcp_mark; /* of the ratio to TCP */
    } rows[] = {
        {{1000, 1000}, {1000, 1000}, 0,  "same",    1,    "same"   },
        {{1000, 1000}, {1000, 1040}, 0,  "same",    0.96, "same"   },
        {{1000, 1000}, {1040, 1000}, 0,  "same",    1.04, "same"   },
        {{1000, 1000}, {1000, 1200}, 0,  "worse",   0.83, "worse"  },
        {{1000, 1000}, {1200, 1000}, 0,  "better",  1.2,  "better" },
        {{1000, 1000}, {1000, 1200}, 50, "unknown", 0.83, "unknown"}, /* the samples leave it open
  */
        {{1000, 1000}, {1000, 1000}, 60, "unknown", 1,    "unknown"},
        {{1000, 1000}, {1000, 8000}, 50, "worse",   0.12, "worse"  },
        {{1000, 1200}, {1000, 1200}, 0,  "worse",   0.83, "same"   }, /* so is TCP */
        {{1200, 1000}, {1000, 1200}, 0,  "worse",   0.83, "worse"  },
        {{1000, 1200}, {1000, 3000}, 0,  "worse",   0.33, "worse"  },
        {{1000, 1200}, {3000, 1000}, 0,  "better",  3,    "better" },
        {{1000, 3000}, {1000, 2000}, 0,  "worse",   0.5,  "better" }, /* TCP hides nothing */
        {{3000, 1000}, {1000, 1000}, 0,  "same",    1,    "worse"  },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *c = compare(made_record(1, rows[i].tcp[0], rows[i].write[0], rows[i].wide),
                            made_record(2, rows[i].tcp[1], rows[i].write[1], rows[i].wide), &all);
        static const char *const figures[] = {"median", "throughput"};
        for (unsigned f = 0; f < 2; f++) {
            const json_t *row = row_of(c, "write", figures[f]);
            double ratio = json_number_value(json_array_get(json_object_get(row, "ratios"), 1));
            if (f == 1 && rows[i].wide != 0 && rows[i].ratio > 0.2)
                continue; /* batches are more alike than samples */
            if (strcmp(mark(row), rows[i].mark) != 0 || ratio < rows[i].ratio - 0.01 ||
                ratio > rows[i].ratio + 0.01 || strcmp(tcp_mark(row), rows[i].tcp_mark) != 0)
                fail_msg("row %u, %s: %s, %s, %f", i, figures[f], mark(row), tcp_mark(row), ratio);
        }
        assert_null(tcp_mark(row_of(c, "tcp", "median")));
        json_decref(c);
    }
}

/* Few samples have no p99, and no batches no throughput: that is said, however different they are.
 */
static void lab_compare_make__cannot_tell(void **state)
{
    (void)state;
    json_t *a = made_run(1, 1000, 1000, 10, 50), *b = made_run(2, 1000, 5000, 10, 50);
    json_object_del(json_array_get(json_object_get(b, "cases"), 1), "batches_ns");
    json_t *c = compare(a, b, &all);
    assert_string_equal(mark(row_of(c, "write", "median")), "worse");
    assert_string_equal(mark(row_of(c, "write", "p99")), "unknown");
    assert_string_equal(mark(row_of(c, "write", "throughput")), "unknown");
    const json_t *run = json_array_get(json_object_get(c, "runs"), 1);
    assert_int_equal(json_integer_value(json_object_get(run, "unknown")), 3); /* TCP's p99, too */
    assert_true(
        json_is_null(json_array_get(json_object_get(row_of(c, "write", "throughput"), "high"), 1)));
    json_decref(c);
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
    run = json_object_get(run, "against_tcp");
    assert_int_equal(json_integer_value(json_object_get(run, "better")), 3);
    assert_int_equal(json_integer_value(json_object_get(run, "same")), 0);
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
        {"write",  "qps",      "4",                                   3},
        {"write",  "threads",  "2",                                   3},
        {"write",  "numa",     "\"far\"",                             3},
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

static json_t *made_trial(const char *variant, long long ns)
{
    return json_pack("{s:s,s:i,s:i,s:f,s:o,s:o}", "variant", variant, "size", 64, "depth", 1,
                     "gbps", 1.0, "latency", measure("", ns, 0, 1000), "batches_ns",
                     batches(ns, 0));
}

static json_t *made_path(long long end_ns, int packets)
{
    return json_pack("{s:s,s:i,s:[],s:{s:[{s:s,s:i,s:{s:b,s:i}},{s:s,s:i}]}}", "op", "read", "size",
                     64, "measures", "path", "steps", "end", "source", "end_ns", (int)end_ns,
                     "packets", "sent", 1, "count", packets, "end", "target", "end_ns", 90000);
}

/* An experiment with two variants, and the path of a Read. */
static json_t *other_record(int run, long long ns, long long end_ns, int packets)
{
    return json_pack("{s:i,s:[o],s:[{s:s,s:[o,o]}]}", "run", run, "cases",
                     made_path(end_ns, packets), "experiments", "name", "flag", "trials",
                     made_trial("a flag", ns), made_trial("a word", 1000));
}

static void lab_compare_make__experiments_and_paths(void **state)
{
    (void)state;
    json_t *c = compare(other_record(1, 1000, 5000, 1), other_record(2, 2000, 5500, 3), &all);
    const json_t *row = row_of(c, "flag", "median");
    assert_string_equal(json_string_value(json_object_get(row, "variant")), "a flag");
    assert_string_equal(mark(row), "worse");
    assert_string_equal(mark(row_of(c, "flag", "throughput")), "same");
    row = row_of(c, "read", "duration");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(row, "values"), 1)), 5500);
    assert_string_equal(mark(row), "unknown"); /* one message */
    assert_int_equal(json_array_size(json_object_get(c, "rows")), 7);
    const json_t *differs = json_array_get(json_object_get(c, "differences"), 0);
    assert_string_equal(json_string_value(json_object_get(differs, "name")),
                        "path of read of 64 bytes");
    assert_string_equal(json_string_value(json_array_get(json_object_get(differs, "values"), 1)),
                        "2 steps, 3 packets");
    json_decref(c);
    /* Rounds of which nobody knows what they waited for together are one. */
    json_t *b = other_record(2, 2000, 5500, 1),
           *x = json_array_get(json_object_get(b, "experiments"), 0);
    json_object_del(json_array_get(json_object_get(x, "trials"), 0), "batches_ns");
    c = compare(other_record(1, 1000, 5000, 1), b, &all);
    assert_string_equal(mark(row_of(c, "flag", "median")), "unknown");
    assert_string_equal(mark(row_of(c, "flag", "throughput")), "unknown");
    json_decref(c);
    b = other_record(2, 2000, 5500, 1);
    json_object_set_new(b, "experiments", json_loads("[{}, {\"name\": \"flag\"}, 5]", 0, NULL));
    json_object_set_new(b, "cases", json_loads("[{}, 5, {\"path\": 7}]", 0, NULL));
    c = compare(other_record(1, 1000, 5000, 1), b, &all);
    assert_int_equal(json_array_size(json_object_get(c, "rows")), 0);
    assert_int_equal(json_array_size(json_object_get(c, "differences")), 0);
    json_decref(c);
    struct lab_filter f = {0}; /* of certain cases: no experiments */
    char message[LAB_MESSAGE_BYTES];
    lab_settings_init(&f.settings);
    lab_settings_set(&f.settings, (unsigned)lab_settings_find("size"), "64", message);
    c = compare(other_record(1, 1000, 5000, 1), other_record(2, 2000, 5500, 1), &f);
    assert_null(row_of(c, "flag", "median"));
    assert_non_null(row_of(c, "read", "duration"));
    json_decref(c);
}

static char *written(const json_t *comparison)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(lab_compare_write(comparison, out), 0);
    fclose(out);
    return text;
}

static void has_words(const json_t *comparison, const char *const *words, unsigned n)
{
    char *text = written(comparison);
    for (unsigned i = 0; i < n; i++)
        if (strstr(text, words[i]) == NULL)
            fail_msg("no '%s' in\n%s", words[i], text);
    free(text);
}

/* Runs alike that vary by themselves: what is within that is no change. */
static void lab_compare_make__runs_alike_vary(void **state)
{
    (void)state;
    static const struct {
        unsigned count;
        long long tcp[3], write[3], after; /* of runs alike; TCP stays 1000 */
        const char *mark, *tcp_mark;
    } rows[] = {
        {0, {0},                {0},                1200, "worse",   "worse"  },
        {2, {1000, 1000},       {1200, 900},        1200, "worse",   "worse"  }, /* too few to tell */
        {3, {1000, 1000, 1000}, {1000, 1000, 1000}, 1200, "worse",   "worse"  },
        {3, {1000, 1000, 1000}, {1100, 900, 1000},  1200, "unknown", "unknown"},
        {3, {1000, 1000, 1000}, {1010, 990, 1000},  1200, "worse",   "worse"  },
        {3, {1000, 1000, 1000}, {1100, 900, 1000},  4000, "worse",   "worse"  },
        {3, {1100, 900, 1000},  {1100, 900, 1000},  1300, "unknown", "worse"  }, /* TCP does, too */
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *records = json_pack("[o,o]", made_record(1, 1000, 1000, 0),
                                    made_record(9, 1000, rows[i].after, 0)),
               *like = json_array();
        for (unsigned k = 0; k < rows[i].count; k++)
            json_array_append_new(like,
                                  made_record(2 + (int)k, rows[i].tcp[k], rows[i].write[k], 0));
        json_t *c = lab_compare_make(records, like, &all);
        const json_t *row = row_of(c, "write", "median");
        if (strcmp(mark(row), rows[i].mark) != 0 || strcmp(tcp_mark(row), rows[i].tcp_mark) != 0)
            fail_msg("row %u: %s, %s", i, mark(row), tcp_mark(row));
        assert_int_equal(json_array_size(json_object_get(c, "like")), rows[i].count);
        json_decref(c);
        json_decref(records);
        json_decref(like);
    }
}

static void lab_compare_alike__same_settings_and_ends(void **state)
{
    (void)state;
    static const struct {
        const char *change; /* of the second, in JSON */
        bool alike;
    } rows[] = {
        {"{}",                                                      true },
        {"{\"settings\": {\"size\": \"64\", \"json\": \"other\"}}", true },
        {"{\"cases\": []}",                                         true },
        {"{\"settings\": {\"size\": \"65\", \"json\": \"a\"}}",     false},
        {"{\"settings\": {\"size\": \"64\"}}",                      false},
        {"{\"source\": {\"host\": \"other\"}}",                     false},
        {"{\"target\": {\"host\": \"other\"}}",                     false},
        {"{\"ranks\": []}",                                         false},
        {"{\"error\": \"it broke off\"}",                           false},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *a = made_record(1, 1000, 1000, 0), *b = made_record(1, 1000, 2000, 0);
        json_t *changed = json_loads(rows[i].change, 0, NULL);
        json_object_update(b, changed);
        if (lab_compare_alike(a, b) != rows[i].alike)
            fail_msg("row %u", i);
        json_decref(a);
        json_decref(b);
        json_decref(changed);
    }
}

/* Three ranks, of which two pairs were measured. */
static json_t *many_record(int run, const char *host, long long first_ns, long long second_ns)
{
    return json_pack("{s:i,s:[{s:s},{s:s},{s:s}],s:[{s:s,s:i,s:i,s:o},{s:s,s:i,s:i,s:o},"
                     "{s:s,s:i,s:i,s:s}]}",
                     "run", run, "ranks", "host", "a", "host", "b", "host", host, "meetings",
                     "kind", "pair", "source", 0, "target", 1, "run",
                     made_record(0, 1000, first_ns, 0), "kind", "pair", "source", 1, "target", 0,
                     "run", made_record(0, 1000, second_ns, 0), "kind", "ring", "source", 2,
                     "target", 0, "error", "it is gone");
}

/* Each meeting with the same one of the other run. */
static void lab_compare_make__of_many_ranks(void **state)
{
    (void)state;
    json_t *c = compare(many_record(1, "c", 1000, 1000), many_record(2, "d", 1000, 3000), &all);
    assert_int_equal(json_array_size(json_object_get(c, "rows")), 12);
    const json_t *run = json_array_get(json_object_get(c, "runs"), 1);
    assert_int_equal(json_integer_value(json_object_get(run, "worse")), 3);
    assert_int_equal(json_integer_value(json_object_get(run, "same")), 9);
    assert_string_equal(json_string_value(json_object_get(run, "target")), "3 ranks");
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(c, "rows"), i, row)
    {
        bool second = json_integer_value(json_object_get(row, "source_rank")) == 1;
        bool tcp = strcmp(json_string_value(json_object_get(row, "op")), "tcp") == 0;
        assert_string_equal(mark(row), second && !tcp ? "worse" : "same");
    }
    static const char *const words[] = {"pair 1 to 0: write, median",
                                        "pair 0 to 1: tcp, throughput", "ranks: hosts differs:"};
    has_words(c, words, 3);
    json_decref(c);
    c = compare(many_record(1, "c", 1000, 1000), made_record(2, 1000, 1000, 0), &all);
    assert_int_equal(json_array_size(json_object_get(c, "rows")), 0); /* of two ends */
    json_decref(c);
}

static void lab_compare_write__says_it_in_words(void **state)
{
    (void)state;
    json_t *c = compare(made_record(1, 1000, 4000, 0), made_record(2, 1000, 1000, 0), &all);
    static const char *const words[] = {"write, median", "4.00+", "1.00  ",
                                        "run 2: 3 figures better, 0 worse, 3 the same",
                                        "of 0 it cannot be told; against TCP: 3, 0, 0, 0"};
    has_words(c, words, 5);
    FILE *out = fopen("/dev/full", "w");
    assert_int_equal(lab_compare_write(c, out), -ENOSPC);
    fclose(out);
    json_decref(c);
    c = compare(other_record(1, 1000, 5000, 1), other_record(2, 2000, 5500, 3), &all);
    static const char *const others[] = {
        "flag: a flag, median",
        "0.50-",
        "flag: a word, throughput",
        "path of one read, duration",
        "0.91?",
        "path of read of 64 bytes differs: \"2 steps, 1 packets\""};
    has_words(c, others, 6);
    json_decref(c);
}

/* Cases that differ in their queue pairs or placement alone are told apart. */
static void lab_compare_write__names_teams_and_places(void **state)
{
    (void)state;
    json_t *records[2];
    for (int i = 0; i < 2; i++) {
        records[i] = made_record(i + 1, 1000, 1000, 0);
        json_t *write = json_array_get(json_object_get(records[i], "cases"), 1);
        json_object_set_new(write, "qps", json_integer(4));
        json_object_set_new(write, "threads", json_integer(2));
        json_object_set_new(write, "numa", json_string("far"));
    }
    json_t *c = compare(records[0], records[1], &all);
    static const char *const words[] = {"1x4/2", "direct/far"};
    has_words(c, words, 2);
    assert_int_equal(json_integer_value(json_object_get(row_of(c, "write", "median"), "qps")), 4);
    json_decref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_compare_make__tells_change_from_noise),
        cmocka_unit_test(lab_compare_make__cannot_tell),
        cmocka_unit_test(lab_compare_make__of_many_ranks),
        cmocka_unit_test(lab_compare_make__runs_alike_vary),
        cmocka_unit_test(lab_compare_alike__same_settings_and_ends),
        cmocka_unit_test(lab_compare_make__experiments_and_paths),
        cmocka_unit_test(lab_compare_write__names_teams_and_places),
        cmocka_unit_test(lab_compare_make__knows_what_is_better),
        cmocka_unit_test(lab_compare_make__takes_what_both_have),
        cmocka_unit_test(lab_compare_make__filters),
        cmocka_unit_test(lab_compare_make__tells_what_else_differs),
        cmocka_unit_test(lab_compare_write__says_it_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
