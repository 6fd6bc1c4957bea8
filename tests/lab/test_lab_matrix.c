/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_matrix.c: the record of many, its verdict over all, and its tables, also of what failed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_matrix.h"
#include "lab/lab_record.h"
#include "made_ranks.h"
#include "made_run.h"

struct made {
    struct lab_settings settings;
    struct lab_boot boot;
    struct lab_ranks ranks;
    struct lab_schedule schedule;
    struct lab_hub hub;
};

static json_t *run_json(uint64_t write_ns)
{
    struct lab_end e;
    struct lab_run run;
    made_run(&e, &run, write_ns);
    json_t *record = lab_record_make(&e, &run, NULL);
    lab_run_clear(&run);
    return record;
}

static json_t *case_of(struct made *m, unsigned number, const char *op)
{
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(m->hub.outcomes[number].record, "cases"), i, c)
    {
        if (strcmp(json_string_value(json_object_get(c, "op")), op) == 0)
            return c;
    }
    fail_msg("no %s in meeting %u", op, number);
    return NULL;
}

/* Batches that take as long as another, or in turn so many percent more. */
static void set_batches(json_t *c, unsigned more_percent)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < 16; i++)
        json_array_append_new(all, json_integer(1000 + (i % 2 ? 10 * (int)more_percent : 0)));
    json_object_set_new(c, "batches_ns", all);
}

/* Every pair takes as long as all others, all at once four times as long. */
static int setup(void **state)
{
    static const unsigned machine[MADE_RANKS] = {0, 1, 2};
    char message[LAB_MESSAGE_BYTES];
    struct made *m = calloc(1, sizeof(*m));
    lab_settings_init(&m->settings);
    made_boot(&m->boot, &m->settings);
    assert_int_equal(lab_ranks_read(&m->ranks, &m->boot, message), 0);
    assert_int_equal(lab_schedule_make(&m->schedule, machine, MADE_RANKS), 0);
    m->hub.ranks = &m->ranks;
    m->hub.settings = &m->settings;
    m->hub.schedule = &m->schedule;
    m->hub.outcomes = calloc(m->schedule.meeting_count, sizeof(*m->hub.outcomes));
    for (unsigned i = 0; i < m->schedule.meeting_count; i++) {
        unsigned kind = m->schedule.rounds[m->schedule.meetings[i].round].kind;
        m->hub.outcomes[i].record = run_json(kind == LAB_ROUND_PAIRS ? 5000 : 20000);
        set_batches(case_of(m, i, "write"), 0);
        if (kind == LAB_ROUND_PAIRS)
            continue;
        json_t *cases = json_object_get(m->hub.outcomes[i].record, "cases");
        json_array_remove(cases, 2);
        json_array_remove(cases, 0);
    }
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct made *m = *state;
    for (unsigned i = 0; i < m->schedule.meeting_count; i++) {
        json_decref(m->hub.outcomes[i].record);
        free(m->hub.outcomes[i].error);
    }
    free(m->hub.outcomes);
    lab_schedule_clear(&m->schedule);
    lab_ranks_clear(&m->ranks);
    lab_boot_clear(&m->boot);
    free(m);
    return 0;
}

static char *print(const json_t *record)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    assert_int_equal(lab_matrix_write(record, f), 0);
    fclose(f);
    return text;
}

static void has(const json_t *record, const char *const *wanted, unsigned count)
{
    char *text = print(record);
    for (unsigned i = 0; i < count; i++)
        if (strstr(text, wanted[i]) == NULL)
            fail_msg("no '%s' in:\n%s", wanted[i], text);
    free(text);
}

static bool said(const json_t *record, const char *what)
{
    char *text = print(record);
    bool found = strstr(text, what) != NULL;
    free(text);
    return found;
}

static int exit_of(const json_t *record)
{
    return (int)json_integer_value(json_object_get(json_object_get(record, "verdict"), "exit"));
}

static void lab_matrix_write__all_well(void **state)
{
    struct made *m = *state;
    static const char *const wanted[] = {
        "rank 1: b, version ",
        "Throughput in Gbit/s of write, 1000B at depth 1; source down, target across:\n"
        "               0         1         2\n"
        "     0         -     1.600     1.600\n",
        "Throughput over TCP's of write, 1000B at depth 1",
        "     2     2.000     2.000         -\n",
        "Median latency in us of write, 1000B at depth 1",
        "     1     5.000         -     5.000\n",
        "Throughput in Gbit/s of atomic, 8B at depth 1",
        "All at once, write of 1000B at depth 1",
        "each to the next:  0: 0.400 (25 % of alone)  1: 0.400 (25 % of alone)",
        "all into rank 2:  0: 0.400 (25 % of alone)  1: 0.400 (25 % of alone)  sum 0.800\n",
        "Verdict: passed; 15 of 15 meetings passed; slowest pair rank ",
        ", no further apart than chance\n",
    };
    json_t *record = lab_matrix_make(&m->hub, NULL);
    has(record, wanted, sizeof(wanted) / sizeof(wanted[0]));
    assert_false(said(record, "?"));
    assert_int_equal(exit_of(record), 0);
    assert_null(json_object_get(record, "error"));
    json_decref(record);
}

static bool chance(const json_t *record, unsigned meeting)
{
    const json_t *m = json_array_get(json_object_get(record, "meetings"), meeting);
    const json_t *left = json_object_get(m, "left");
    assert_non_null(left);
    return json_is_true(json_object_get(left, "chance"));
}

/* What is left of a pair is marked where it tells of nothing but chance. */
static void lab_matrix_make__chance(void **state)
{
    struct made *m = *state;
    static const struct {
        const char *doubt, *alone_doubt;
        int percent; /* of its batches; -1: none */
        double gbps; /* alone it is 1.6 */
        bool chance;
    } rows[] = {
        {NULL,           NULL,           0,   0.4,  false},
        {NULL,           NULL,           0,   1.6,  false},
        {NULL,           NULL,           50,  0.4,  false},
        {NULL,           NULL,           0,   1.7,  true },
        {NULL,           NULL,           50,  1.7,  true },
        {NULL,           NULL,           0,   13.0, true },
        {NULL,           NULL,           -1,  0.4,  true },
        {NULL,           NULL,           900, 1.4,  true },
        {"few messages", NULL,           0,   0.4,  true },
        {"no CPU",       NULL,           0,   0.4,  true },
        {NULL,           "few messages", 0,   0.4,  true },
        {NULL,           "no CPU",       0,   1.6,  true },
    };
    const struct lab_meeting *all = m->schedule.meetings;
    unsigned ring = 6, pair = 0; /* the first behind six pairs, and its own */
    while (all[pair].source != all[ring].source || all[pair].target != all[ring].target)
        pair++;
    assert_true(pair < ring);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *c = case_of(m, ring, "write"), *alone = case_of(m, pair, "write");
        json_object_del(c, "doubt");
        json_object_del(c, "batches_ns");
        json_object_del(alone, "doubt");
        if (rows[i].doubt != NULL)
            json_object_set_new(c, "doubt", json_string(rows[i].doubt));
        if (rows[i].alone_doubt != NULL)
            json_object_set_new(alone, "doubt", json_string(rows[i].alone_doubt));
        if (rows[i].percent >= 0)
            set_batches(c, (unsigned)rows[i].percent);
        json_object_set_new(c, "gbps", json_real(rows[i].gbps));
        json_t *record = lab_matrix_make(&m->hub, NULL);
        if (chance(record, ring) != rows[i].chance)
            fail_msg("row %u", i);
        assert_int_equal(said(record, "% of alone?)"), rows[i].chance);
        assert_int_equal(said(record, "?: chance: few messages"), rows[i].chance);
        assert_int_equal(exit_of(record), 0);
        bool doubt = rows[i].doubt != NULL || rows[i].alone_doubt != NULL;
        assert_int_equal(said(record, "in 1 of 15 meetings there were cases"), doubt);
        assert_int_equal(said(record, "1.600?"), rows[i].alone_doubt != NULL);
        json_decref(record);
    }
}

/* Pairs that tell nothing are not called the slowest. */
static void lab_matrix_make__extremes(void **state)
{
    struct made *m = *state;
    json_t *slow = case_of(m, 2, "write");
    json_object_set_new(slow, "gbps", json_real(0.1));
    json_t *record = lab_matrix_make(&m->hub, NULL);
    assert_true(said(record, "with 0.100 Gbit/s, fastest rank "));
    assert_false(said(record, "no further apart"));
    json_decref(record);
    json_object_set_new(slow, "doubt", json_string("no CPU"));
    record = lab_matrix_make(&m->hub, NULL);
    assert_true(said(record, "with 1.600 Gbit/s, fastest rank "));
    assert_true(said(record, "no further apart than chance"));
    json_decref(record);
    for (unsigned i = 0; i < 6; i++)
        json_object_set_new(case_of(m, i, "write"), "doubt", json_string("few messages"));
    record = lab_matrix_make(&m->hub, NULL);
    assert_true(said(record, "; which pair is slowest cannot be told\n"));
    assert_false(said(record, "fastest"));
    json_decref(record);
}

static void set_verdict(struct made *m, unsigned number, int code, const char *finding)
{
    json_object_set_new(m->hub.outcomes[number].record, "verdict",
                        json_pack("{s:i,s:b,s:[s,s]}", "exit", code, "passed", code == 0,
                                  "findings", finding, "of another kind"));
}

/* Worst first: wrong data, not measured, a missed threshold. */
static void lab_matrix_make__verdicts(void **state)
{
    struct made *m = *state;
    static const char *const missed[] = {"rank ", ": MISSED max-p99: x\n",
                                         "Verdict: MISSED a thresh"};
    static const char *const not_measured[] = {": NOT MEASURED: rank 1 on b: gone\n", "FAILED",
                                               "Verdict: NOT all MEASURED; 13 of 15"};
    static const char *const wrong[] = {"incast, rank ", ": WRONG DATA: y\n",
                                        "Verdict: WRONG DATA; 12 of 15"};
    set_verdict(m, 3, 1, "MISSED max-p99: x");
    json_t *record = lab_matrix_make(&m->hub, NULL);
    has(record, missed, 3);
    assert_int_equal(exit_of(record), 1);
    assert_int_equal(
        json_array_size(json_object_get(json_object_get(record, "verdict"), "findings")), 1);
    json_decref(record);
    json_decref(m->hub.outcomes[0].record);
    m->hub.outcomes[0].record = NULL;
    m->hub.outcomes[0].error = strdup("rank 1 on b: gone");
    record = lab_matrix_make(&m->hub, NULL);
    has(record, not_measured, 3);
    assert_int_equal(exit_of(record), 69);
    json_decref(record);
    set_verdict(m, m->schedule.meeting_count - 1, 2, "WRONG DATA: y");
    record = lab_matrix_make(&m->hub, NULL);
    has(record, wrong, 3);
    assert_int_equal(exit_of(record), 2);
    json_decref(record);
}

static void lab_matrix_make__broken_off(void **state)
{
    struct made *m = *state;
    for (unsigned i = 1; i < m->schedule.meeting_count; i++) {
        json_decref(m->hub.outcomes[i].record);
        m->hub.outcomes[i].record = NULL;
    }
    json_t *record = lab_matrix_make(&m->hub, "rank 2 on a: the peer is gone");
    assert_string_equal(json_string_value(json_object_get(record, "error")),
                        "rank 2 on a: the peer is gone");
    assert_null(json_object_get(record, "verdict"));
    assert_int_equal(json_array_size(json_object_get(record, "meetings")), 1);
    has(record, NULL, 0);
    json_decref(record);
}

static void lab_matrix_write__full(void **state)
{
    struct made *m = *state;
    json_t *record = lab_matrix_make(&m->hub, NULL);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_true(lab_matrix_write(record, full) < 0);
    fclose(full);
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lab_matrix_write__all_well, setup, teardown),
        cmocka_unit_test_setup_teardown(lab_matrix_make__chance, setup, teardown),
        cmocka_unit_test_setup_teardown(lab_matrix_make__extremes, setup, teardown),
        cmocka_unit_test_setup_teardown(lab_matrix_make__verdicts, setup, teardown),
        cmocka_unit_test_setup_teardown(lab_matrix_make__broken_off, setup, teardown),
        cmocka_unit_test_setup_teardown(lab_matrix_write__full, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
