/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page.c: the data of report.html: JSON whatever happened, bounded, the same for the same run.
 */
#include "scenario/page.h"

#include <errno.h>
#include <jansson.h>

#include "bench.h"
#include "report/report.h"

static void note_pfc(void *arg, uint64_t time_ps, uint32_t node, uint32_t port, unsigned priority,
                     uint32_t quanta)
{
    (void)priority;
    (void)quanta;
    samples_pfc(arg, time_ps, node, port);
}

/* The data of a run, as text. */
static char *data_of(const char *yaml, enum fabric_state want)
{
    struct scenario s;
    struct samples m;
    struct scenario_error e;
    struct fabric *f;
    char *text = NULL;
    size_t bytes;
    scenario_init(&s);
    if (!scenario_read_yaml(&s, bench_file(yaml), NULL, 0, &e))
        fail_msg("%s", e.text);
    assert_true(samples_begin(&m, &s));
    s.config.on_pfc = note_pfc;
    s.config.on_pfc_arg = &m;
    if (!scenario_make(&s, "text.yaml", &f, &e))
        fail_msg("%s", e.text);
    enum fabric_state state = fabric_run(f, 100000000);
    assert_int_equal(state, want);
    samples_end(&m, f);
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(page_data(out, &s, f, state, &m), 0);
    fclose(out);
    samples_free(&m);
    fabric_destroy(f);
    scenario_free(&s);
    return text;
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *all = json_loads(text, 0, &error);
    if (all == NULL)
        fail_msg("line %d: %s", error.line, error.text);
    return all;
}

static json_int_t number(const json_t *all, const char *name)
{
    const json_t *value = json_object_get(all, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static size_t length(const json_t *all, const char *name)
{
    const json_t *value = json_object_get(all, name);
    assert_true(json_is_array(value) || json_is_object(value));
    return json_is_array(value) ? json_array_size(value) : json_object_size(value);
}

#define RING5                                                                                      \
    "name: ring\ntopology: {shape: ring, switches: 5, hosts: 2}\nswitches: {buffer: 1MiB}\n"       \
    "workload:\n"                                                                                  \
    "  - {op: flow, from: h0, to: h5, bytes: 4MiB}\n  - {op: flow, from: h2, to: h7, bytes: "      \
    "4MiB}\n"                                                                                      \
    "  - {op: flow, from: h4, to: h9, bytes: 4MiB}\n  - {op: flow, from: h6, to: h1, bytes: "      \
    "4MiB}\n"                                                                                      \
    "  - {op: flow, from: h8, to: h3, bytes: 4MiB}\n"

static void data__of_every_end(void **state)
{
    static const struct {
        const char *yaml, *end;
        enum fabric_state state;
        size_t slowest, fct, sizes, circle;
    } rows[] = {
        {"name: a\ntopology: {shape: star, hosts: 2}\nworkload: [{op: flow, from: h0, to: h1, "
         "bytes: 100KB}]\n",                            "finished", FABRIC_FINISHED, 1,  101, 1, 0},
        {"name: a\ntopology: {shape: star, hosts: 2}\nlimit: 1us\nworkload: [{op: flow, from: h0, "
         "to: h1, bytes: 100KB}]\n",                    "limit",    FABRIC_LIMIT,    1,  0,   0, 0},
        {"name: a\ntopology: {shape: star, hosts: 8}\nworkload: [{op: all-to-all, bytes: 5KB}, "
         "{op: flow, from: h0, to: h1, bytes: 3MB}]\n", "finished", FABRIC_FINISHED, 40, 101, 2, 0},
        {RING5,                                                  "stalled",  FABRIC_STALLED,  5,  0,   0, 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text = data_of(rows[i].yaml, rows[i].state);
        json_t *all = parse(text);
        assert_string_equal(json_string_value(json_object_get(all, "end")), rows[i].end);
        assert_int_equal(length(all, "slowest"), rows[i].slowest);
        assert_int_equal(length(all, "fct_ns"), rows[i].fct);
        assert_int_equal(length(all, "slowdowns"), rows[i].sizes);
        assert_int_equal(length(all, "waiting"), rows[i].circle);
        assert_int_equal(length(all, "arrived"), number(all, "intervals"));
        assert_true(json_is_object(json_object_get(all, "parameters")));
        const char *scenario = json_string_value(json_object_get(all, "scenario"));
        assert_non_null(scenario);
        bench_contains(scenario, "\ntopology:\n  shape: ");
        assert_int_equal(length(all, "names"),
                         strlen(json_string_value(json_object_get(all, "switches"))));
        json_decref(all);
        free(text);
    }
}

/* Levels are letters, at most one an interval; the port that queued most reaches the highest. */
static void data__levels(void **state)
{
    char *text = data_of("name: a\ntopology: {shape: star, hosts: 9}\nswitches: {buffer: 3MiB}\n"
                         "workload: [{op: incast, to: h8, bytes: 1MiB}]\n",
                         FABRIC_FINISHED);
    json_t *all = parse(text), *row;
    const char *port;
    bool highest = false;
    (void)state;
    assert_true(number(all, "first_pfc_ns") > 0);
    json_object_foreach(json_object_get(all, "ports"), port, row)
    {
        assert_int_equal(json_array_size(row), 6);
        for (size_t i = 0; i < 4; i++) {
            const char *levels = json_string_value(json_array_get(row, i));
            assert_true((json_int_t)strlen(levels) <= number(all, "intervals"));
            assert_int_equal(strspn(levels, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                            "0123456789+/"),
                             strlen(levels));
            assert_true(levels[0] == '\0' || levels[strlen(levels) - 1] != 'A');
            highest = highest || (i == 0 && strchr(levels, '/') != NULL);
        }
    }
    assert_true(highest);
    json_decref(all);
    free(text);
}

static void data__same_run_same_bytes(void **state)
{
    char *first = data_of(RING5, FABRIC_STALLED), *second = data_of(RING5, FABRIC_STALLED);
    (void)state;
    assert_string_equal(first, second);
    free(first);
    free(second);
}

/* What a scenario is called is the user's: it stays text. */
static void page_write__names_are_text(void **state)
{
    struct scenario s;
    struct samples m;
    struct scenario_error e;
    struct fabric *f;
    char *text = NULL;
    size_t bytes;
    (void)state;
    if (!report_can())
        skip();
    scenario_init(&s);
    assert_true(scenario_read_yaml(
        &s,
        bench_file("name: '</script><b>\"x\"'\ntopology: {shape: star, hosts: 2}\nworkload: [{op: "
                   "flow, from: h0, to: h1, bytes: 1KB}]\n"),
        NULL, 0, &e));
    assert_true(samples_begin(&m, &s));
    assert_true(scenario_make(&s, "text.yaml", &f, &e));
    enum fabric_state end = fabric_run(f, 1000000);
    samples_end(&m, f);
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(page_write(out, &s, f, end, &m), 0);
    fclose(out);
    assert_null(strstr(text, "</script><b>"));
    assert_non_null(strstr(text, "\"title\":\"\\u003c/script>\\u003cb>\\\"x\\\"\""));
    assert_non_null(strstr(text, "<title>&lt;/script>&lt;b>\"x\"</title>"));
    free(text);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_int_equal(page_write(full, &s, f, end, &m), -ENOSPC);
    fclose(full);
    samples_free(&m);
    fabric_destroy(f);
    scenario_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data__of_every_end),
        cmocka_unit_test(data__levels),
        cmocka_unit_test(data__same_run_same_bytes),
        cmocka_unit_test(page_write__names_are_text),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_end();
    return failed;
}
