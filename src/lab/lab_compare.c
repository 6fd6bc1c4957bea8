/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_compare.c: figures of the same case, trial or path side by side. What a figure itself changed
 * by and what its ratio to TCP changed by are two things, marked apart: a machine that is slower
 * today is seen in the first alone, and a path that is worse is hidden by nothing.
 */
#include "lab/lab_compare.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_noise.h"
#include "lab/lab_record.h"

enum figure { MEDIAN, P99, THROUGHPUT, DURATION };
enum part { CASES, TRIALS, PATHS };

static const char *const figure_names[] = {"median", "p99", "throughput", "duration"};

/* A row: a figure of a case, an experiment's trial, or a path, of the first record. */
struct subject {
    enum part part;
    enum figure figure;
    const char *experiment;
    const json_t *c;       /* the case or trial */
    const json_t *m;       /* the measure; NULL for what is of the whole */
    const json_t *meeting; /* of two of many ranks; NULL where there are but two ends */
    const json_t *like;    /* other runs like the first */
};

static const json_t *get(const json_t *o, const char *name)
{
    return json_object_get(o, name);
}

static double number(const json_t *o, const char *name)
{
    return json_number_value(get(o, name));
}

static bool same(const json_t *a, const json_t *b, const char *name)
{
    const json_t *x = get(a, name), *y = get(b, name);
    return x == y || (x != NULL && y != NULL && json_equal(x, y));
}

/* What tells cases, trials and paths from one another. */
static bool same_case(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"op",     "buffers", "transport", "size", "depth",
                                        "offset", "qps",     "threads",   "numa", "variant"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!same(a, b, names[i]))
            return false;
    return true;
}

static bool is_figure(const json_t *c)
{
    return get(c, "path") == NULL && json_array_size(get(c, "measures")) > 0;
}

static const json_t *trials_of(const json_t *record, const char *experiment)
{
    size_t i;
    json_t *x;
    json_array_foreach(get(record, "experiments"), i, x)
    {
        const char *name = json_string_value(get(x, "name"));
        if (name != NULL && strcmp(name, experiment) == 0)
            return get(x, "trials");
    }
    return NULL;
}

/* Of the record, or of the same two ranks. */
static const json_t *cases_of(const json_t *record, const struct subject *s)
{
    size_t i;
    json_t *m;
    if (s->meeting == NULL)
        return get(record, "cases");
    json_array_foreach(get(record, "meetings"), i, m)
    {
        if (same(m, s->meeting, "kind") && same(m, s->meeting, "source") &&
            same(m, s->meeting, "target"))
            return get(get(m, "run"), "cases");
    }
    return NULL;
}

static const json_t *find_case(const json_t *record, const struct subject *s)
{
    const json_t *all = s->part == TRIALS ? trials_of(record, s->experiment) : cases_of(record, s);
    size_t i;
    json_t *c;
    json_array_foreach(all, i, c)
    {
        bool kind = s->part == TRIALS  ? true
                    : s->part == PATHS ? get(c, "path") != NULL
                                       : is_figure(c);
        if (kind && same_case(c, s->c))
            return c;
    }
    return NULL;
}

static const json_t *find_tcp(const json_t *record, const struct subject *s)
{
    const json_t *like = s->c;
    size_t i;
    json_t *c;
    json_array_foreach(cases_of(record, s), i, c)
    {
        const char *op = json_string_value(get(c, "op"));
        if (op != NULL && strcmp(op, "tcp") == 0 && is_figure(c) && same(c, like, "size") &&
            same(c, like, "depth") && same(c, like, "offset") && same(c, like, "numa"))
            return c;
    }
    return NULL;
}

static const json_t *find_measure(const json_t *c, const struct subject *s)
{
    size_t i;
    json_t *m;
    if (s->part == TRIALS)
        return get(c, "latency");
    json_array_foreach(get(c, "measures"), i, m)
    {
        if (same(m, s->m, "name"))
            return m;
    }
    return NULL;
}

/* The one that a latency is compared with TCP's by: of the application's acknowledgement where
 * there is one. */
static const json_t *last_measure(const json_t *c)
{
    const json_t *all = get(c, "measures");
    return json_array_get(all, json_array_size(all) - 1);
}

/* From the first step to the last one of the end that began: its clock alone. */
static double duration_of(const json_t *path)
{
    size_t i;
    json_t *s;
    double last = 0;
    json_array_foreach(get(path, "steps"), i, s)
    {
        const char *end = json_string_value(get(s, "end"));
        if (end != NULL && strcmp(end, "source") == 0)
            last = fmax(last, number(s, "end_ns"));
    }
    return last;
}

static struct lab_figure figure_of(const json_t *c, const json_t *m, enum figure f)
{
    switch (f) {
    case THROUGHPUT:
        return lab_noise_throughput(c);
    case DURATION:
        return lab_noise_single(duration_of(get(c, "path")));
    default:
        return lab_noise_quantile(m, f == MEDIAN ? "p50_ns" : "p99_ns", f == MEDIAN ? 0.5 : 0.99,
                                  lab_noise_effective(c, m));
    }
}

static bool larger_is_better(enum figure f)
{
    return f == THROUGHPUT;
}

static struct lab_figure change(struct lab_figure before, struct lab_figure after, enum figure f)
{
    return larger_is_better(f) ? lab_noise_ratio(after, before) : lab_noise_ratio(before, after);
}

/* A row's cells for one run. */
struct cell {
    struct lab_figure figure; /* value 0: there is no such figure */
    struct lab_figure ratio;
    struct lab_figure tcp; /* what the ratio to TCP changed by; value 0: there is none */
};

/* A figure of a run, and TCP's of the same measure; value 0: there is none. */
struct both {
    struct lab_figure own, tcp;
};

static struct both both_of(const json_t *record, const struct subject *s)
{
    const json_t *c = find_case(record, s), *x = find_tcp(record, s);
    const json_t *m = s->m == NULL ? NULL : find_measure(c, s);
    struct both b = {.own = figure_of(c, m, s->figure)};
    /* The measure that TCP has, too. */
    bool told = s->figure == THROUGHPUT || (s->m != NULL && s->m == last_measure(s->c));
    if (s->part == CASES && x != NULL && !same_case(x, s->c) && told)
        b.tcp = figure_of(x, last_measure(x), s->figure);
    return b;
}

/* What runs like the first have; the first is one of them. */
struct like {
    unsigned count;
    double own[LAB_NOISE_MAX_RUNS], over_tcp[LAB_NOISE_MAX_RUNS];
};

static void add_like(struct like *l, struct both b)
{
    if (l->count == LAB_NOISE_MAX_RUNS)
        return;
    l->own[l->count] = b.own.value;
    l->over_tcp[l->count++] = b.tcp.value > 0 ? b.own.value / b.tcp.value : 0;
}

static struct cell compare(struct both before, struct both after, const struct like *l,
                           enum figure f)
{
    struct lab_figure ratio = change(before.own, after.own, f);
    struct lab_figure tcp = change(before.tcp, after.tcp, f);
    return (struct cell){
        .figure = after.own,
        .ratio = lab_noise_between(ratio, l->own, l->count),
        .tcp = lab_noise_between(lab_noise_ratio(ratio, tcp), l->over_tcp, l->count),
    };
}

static json_t *rounded(double value, double steps)
{
    return value <= 0 || !isfinite(value) ? json_null() : json_real(round(value * steps) / steps);
}

static void count_mark(json_t *counts, const char *mark)
{
    if (mark != NULL)
        json_object_set_new(counts, mark, json_integer(json_integer_value(get(counts, mark)) + 1));
}

/* Members of a row for a ratio: itself, between what it lies, and its mark. */
static void add_ratio(json_t *row, const char *prefix, struct lab_figure ratio, json_t *counts)
{
    static const char *const names[] = {"ratios", "low", "high"};
    const double values[] = {ratio.value, ratio.low, ratio.high};
    const char *mark = lab_noise_mark_name(lab_noise_mark(ratio));
    char name[32];
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", prefix, names[i]);
        json_array_append_new(json_object_get(row, name), rounded(values[i], 1e4));
    }
    snprintf(name, sizeof(name), "%smarks", prefix);
    json_array_append_new(json_object_get(row, name),
                          mark == NULL ? json_null() : json_string(mark));
    count_mark(counts, mark);
}

static json_t *name_row(const struct subject *s)
{
    static const char *const parts[] = {"case", "experiment", "path"};
    static const char *const labels[] = {"op",     "buffers", "transport", "size", "depth",
                                         "offset", "qps",     "threads",   "numa", "variant"};
    static const char *const lists[] = {"values",     "ratios",  "low",      "high",     "marks",
                                        "tcp_ratios", "tcp_low", "tcp_high", "tcp_marks"};
    const char *of = json_string_value(get(s->m, "name"));
    json_t *row =
        json_pack("{s:s,s:s,s:s}", "part", parts[s->part], "unit",
                  s->figure == THROUGHPUT ? "gbps" : "ns", "kind", figure_names[s->figure]);
    json_object_set_new(row, "figure",
                        of == NULL ? json_string(figure_names[s->figure])
                                   : json_sprintf("%s, %s", of, figure_names[s->figure]));
    if (s->meeting != NULL) {
        json_object_set(row, "round", json_object_get(s->meeting, "kind"));
        json_object_set(row, "source_rank", json_object_get(s->meeting, "source"));
        json_object_set(row, "target_rank", json_object_get(s->meeting, "target"));
    }
    if (s->experiment != NULL)
        json_object_set_new(row, "op", json_string(s->experiment));
    for (unsigned i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        if (get(s->c, labels[i]) != NULL)
            json_object_set(row, labels[i], json_object_get(s->c, labels[i]));
    for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        json_object_set_new(row, lists[i], json_array());
    return row;
}

/* Nothing where no other run has the figure. */
static void add_row(json_t *comparison, const json_t *records, const struct subject *s)
{
    const struct both first = both_of(json_array_get(records, 0), s);
    struct like like = {0};
    json_t *row = name_row(s), *record;
    struct cell *cells = calloc(json_array_size(records), sizeof(*cells));
    unsigned others = 0;
    size_t i;
    assert(cells != NULL);
    add_like(&like, first);
    json_array_foreach(s->like, i, record) add_like(&like, both_of(record, s));
    json_array_foreach(records, i, record)
    {
        cells[i] = compare(first, both_of(record, s), &like, s->figure);
        others += i > 0 && cells[i].ratio.value > 0;
    }
    json_array_foreach(records, i, record)
    {
        if (others == 0)
            break;
        json_t *run = json_array_get(get(comparison, "runs"), i);
        double value = cells[i].figure.value;
        json_array_append_new(json_object_get(row, "values"),
                              value <= 0                ? json_null()
                              : s->figure == THROUGHPUT ? rounded(value, 1e6)
                                                        : json_integer((json_int_t)value));
        add_ratio(row, "", cells[i].ratio, i == 0 ? NULL : run);
        add_ratio(row, "tcp_", cells[i].tcp, i == 0 ? NULL : json_object_get(run, "against_tcp"));
    }
    if (others > 0)
        json_array_append(json_object_get(comparison, "rows"), row);
    json_decref(row);
    free(cells);
}

static json_t *run_json(const json_t *record)
{
    const json_t *source = get(record, "source"), *target = get(get(record, "target"), "host");
    json_t *others = NULL;
    if (lab_record_is_of_many(record)) {
        source = json_array_get(get(record, "ranks"), 0);
        target = others = json_sprintf("%zu ranks", json_array_size(get(record, "ranks")));
    }
    json_t *o =
        json_pack("{s:O?,s:O?,s:O?,s:O?,s:O?,s:O?,s:i,s:i,s:i,s:i,s:{s:i,s:i,s:i,s:i}}", "run",
                  get(record, "run"), "ended", get(record, "ended"), "source", get(source, "host"),
                  "target", target, "device", get(source, "device"), "summary",
                  get(get(record, "verdict"), "summary"), "better", 0, "worse", 0, "same", 0,
                  "unknown", 0, "against_tcp", "better", 0, "worse", 0, "same", 0, "unknown", 0);
    json_decref(others);
    return o;
}

/* Ranks elsewhere. */
static void add_host_differences(json_t *all, const json_t *records)
{
    json_t *values = json_array(), *record, *r;
    bool differs = false, any = false;
    size_t i, k;
    json_array_foreach(records, i, record)
    {
        json_t *hosts = json_array();
        json_array_foreach(get(record, "ranks"), k, r)
            json_array_append(hosts, json_object_get(r, "host"));
        any |= json_array_size(hosts) > 0;
        json_array_append_new(values, hosts);
        differs |= !json_equal(hosts, json_array_get(values, 0));
    }
    if (differs && any)
        json_array_append_new(all,
                              json_pack("{s:s,s:O}", "name", "ranks: hosts", "values", values));
    json_decref(values);
}

/* Files, and what differs each time. */
static bool is_aside(const char *name, const json_t *value)
{
    static const char *const never[] = {"json", "html", "db", "port", "type", "register_ns", "key"};
    for (unsigned k = 0; k < sizeof(never) / sizeof(never[0]); k++)
        if (strcmp(name, never[k]) == 0)
            return true;
    return json_is_object(value) || json_is_array(value);
}

static bool part_alike(const json_t *a, const json_t *b)
{
    const char *name;
    json_t *value;
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)a, name, value)
    {
        if (!is_aside(name, value) && !json_equal(value, get(b, name)))
            return false;
    }
    return true;
}

bool lab_compare_alike(const json_t *a, const json_t *b)
{
    return get(b, "error") == NULL && part_alike(get(a, "settings"), get(b, "settings")) &&
           part_alike(get(a, "source"), get(b, "source")) &&
           part_alike(get(a, "target"), get(b, "target")) && same(a, b, "ranks");
}

/* Settings and circumstances that are not alike in all of the runs. */
static void add_differences(json_t *all, const json_t *records, const char *part)
{
    const char *name;
    json_t *value, *record;
    size_t i;
    json_object_foreach((json_t *)get(json_array_get(records, 0), part), name, value)
    {
        bool differs = false, skip = is_aside(name, value);
        json_t *values = json_array();
        json_array_foreach(records, i, record)
        {
            json_t *other = json_object_get(get(record, part), name);
            differs |= other == NULL || !json_equal(other, value);
            json_array_append(values, other != NULL ? other : json_null());
        }
        if (differs && !skip)
            json_array_append_new(all,
                                  json_pack("{s:o,s:O}", "name", json_sprintf("%s: %s", part, name),
                                            "values", values));
        json_decref(values);
    }
}

static json_t *step_counts(const json_t *path)
{
    size_t i, packets = 0;
    json_t *s;
    json_array_foreach(get(path, "steps"), i, s)
    {
        const json_t *p = get(s, "packets");
        packets += json_is_true(get(p, "sent")) ? (size_t)json_integer_value(get(p, "count")) : 0;
    }
    return json_sprintf("%zu steps, %zu packets", json_array_size(get(path, "steps")), packets);
}

/* A path that has other steps or packets than the first run's. */
static void add_path_differences(json_t *all, const json_t *records, const struct subject *s)
{
    json_t *values = json_array(), *mine = step_counts(get(s->c, "path")), *record;
    bool differs = false;
    size_t i;
    json_array_foreach(records, i, record)
    {
        const json_t *c = find_case(record, s);
        json_t *theirs = c == NULL ? json_null() : step_counts(get(c, "path"));
        differs |= c != NULL && !json_equal(theirs, mine);
        json_array_append_new(values, theirs);
    }
    if (differs)
        json_array_append_new(
            all,
            json_pack("{s:o,s:O}", "name",
                      json_sprintf("path of %s of %lld bytes", json_string_value(get(s->c, "op")),
                                   (long long)json_integer_value(get(s->c, "size"))),
                      "values", values));
    json_decref(mine);
    json_decref(values);
}

static void add_case(json_t *comparison, const json_t *records, const json_t *like,
                     const json_t *meeting, const json_t *c)
{
    size_t i;
    json_t *m;
    if (get(c, "path") != NULL) {
        const struct subject path = {PATHS, DURATION, NULL, c, NULL, meeting, like};
        add_row(comparison, records, &path);
        add_path_differences(json_object_get(comparison, "differences"), records, &path);
        return;
    }
    json_array_foreach(get(c, "measures"), i, m)
    {
        add_row(comparison, records, &(struct subject){CASES, MEDIAN, NULL, c, m, meeting, like});
        add_row(comparison, records, &(struct subject){CASES, P99, NULL, c, m, meeting, like});
    }
    if (is_figure(c))
        add_row(comparison, records,
                &(struct subject){CASES, THROUGHPUT, NULL, c, NULL, meeting, like});
}

static void add_cases(json_t *comparison, const json_t *records, const json_t *like,
                      const struct lab_filter *f, const json_t *meeting, const json_t *cases)
{
    size_t i;
    json_t *c;
    json_array_foreach(cases, i, c)
    {
        if (lab_filter_has(f, c))
            add_case(comparison, records, like, meeting, c);
    }
}

static void add_experiment(json_t *comparison, const json_t *records, const json_t *like,
                           const json_t *x)
{
    const char *name = json_string_value(get(x, "name"));
    size_t i;
    json_t *t;
    json_array_foreach(get(x, "trials"), i, t)
    {
        const json_t *m = get(t, "latency");
        if (name == NULL)
            continue;
        if (m != NULL) {
            add_row(comparison, records, &(struct subject){TRIALS, MEDIAN, name, t, m, NULL, like});
            add_row(comparison, records, &(struct subject){TRIALS, P99, name, t, m, NULL, like});
        }
        add_row(comparison, records,
                &(struct subject){TRIALS, THROUGHPUT, name, t, NULL, NULL, like});
    }
}

json_t *lab_compare_make(const json_t *records, const json_t *like, const struct lab_filter *f)
{
    const json_t *first = json_array_get(records, 0);
    json_t *runs = json_array(), *differences = json_array(), *record, *c;
    json_t *comparison = json_pack("{s:s,s:i,s:o,s:o,s:o}", "record", "verbena lab comparison",
                                   "version", LAB_COMPARE_VERSION, "runs", runs, "differences",
                                   differences, "rows", json_array());
    size_t i;
    json_t *numbers = json_array();
    json_array_foreach(records, i, record) json_array_append_new(runs, run_json(record));
    json_array_foreach(like, i, record) json_array_append(numbers, json_object_get(record, "run"));
    json_object_set_new(comparison, "like", numbers);
    add_differences(differences, records, "settings");
    add_differences(differences, records, "source");
    add_differences(differences, records, "target");
    add_host_differences(differences, records);
    add_cases(comparison, records, like, f, NULL, get(first, "cases"));
    json_array_foreach(get(first, "meetings"), i, c)
        add_cases(comparison, records, like, f, c, get(get(c, "run"), "cases"));
    json_array_foreach(get(first, "experiments"), i, c)
    {
        if (lab_filter_has_experiments(f))
            add_experiment(comparison, records, like, c);
    }
    return comparison;
}

static const char *text(const json_t *o, const char *name)
{
    const char *t = json_string_value(get(o, name));
    return t != NULL ? t : "?";
}

/* "1.25+": better, or -: worse, ?: cannot be told. */
static void print_ratio(FILE *out, const json_t *row, const char *prefix, size_t i)
{
    char ratios[16], marks[16];
    snprintf(ratios, sizeof(ratios), "%sratios", prefix);
    snprintf(marks, sizeof(marks), "%smarks", prefix);
    const char *mark = json_string_value(json_array_get(get(row, marks), i));
    double ratio = json_number_value(json_array_get(get(row, ratios), i));
    if (mark == NULL)
        fprintf(out, " %8s", "-");
    else
        fprintf(out, " %7.*f%s", ratio < 0.1 ? 4 : 2, ratio,
                strcmp(mark, "better") == 0    ? "+"
                : strcmp(mark, "worse") == 0   ? "-"
                : strcmp(mark, "unknown") == 0 ? "?"
                                               : " ");
}

static void print_value(FILE *out, const json_t *row, size_t i)
{
    const json_t *value = json_array_get(get(row, "values"), i);
    bool ns = strcmp(text(row, "unit"), "ns") == 0;
    if (!json_is_number(value))
        fprintf(out, " %10s", "-");
    else
        fprintf(out, ns ? " %10.1f" : " %10.4g", json_number_value(value) / (ns ? 1e3 : 1));
    if (i == 0)
        return;
    print_ratio(out, row, "", i);
    print_ratio(out, row, "tcp_", i);
}

static void print_row(FILE *out, const json_t *row, size_t runs)
{
    char size[LAB_LABEL_BYTES], depth[LAB_LABEL_BYTES], way[LAB_LABEL_BYTES], figure[96];
    char who[48] = "";
    const char *part = text(row, "part"), *kind = text(row, "kind");
    if (get(row, "round") != NULL)
        snprintf(who, sizeof(who), "%s %lld to %lld: ", text(row, "round"),
                 (long long)number(row, "source_rank"), (long long)number(row, "target_rank"));
    /* A throughput is of the case, a time of one of its measures. */
    if (strcmp(part, "experiment") == 0)
        snprintf(figure, sizeof(figure), "%s: %s, %s", text(row, "op"), text(row, "variant"), kind);
    else if (strcmp(part, "path") == 0)
        snprintf(figure, sizeof(figure), "path of one %s, %s", text(row, "op"), kind);
    else
        snprintf(figure, sizeof(figure), "%s%s%s%s", who,
                 strcmp(kind, "throughput") == 0 ? text(row, "op") : "",
                 strcmp(kind, "throughput") == 0 ? ", " : "", text(row, "figure"));
    fprintf(out, "%-46s %-9s %9s %8s", figure, lab_report_way(row, way), lab_report_size(row, size),
            lab_report_depth(row, depth));
    for (size_t i = 0; i < runs; i++)
        print_value(out, row, i);
    fputc('\n', out);
}

static void print_counts(FILE *out, const json_t *run)
{
    const json_t *tcp = get(run, "against_tcp");
    fprintf(out,
            "run %lld: %lld figures better, %lld worse, %lld the same, of %lld it cannot be told",
            (long long)number(run, "run"), (long long)number(run, "better"),
            (long long)number(run, "worse"), (long long)number(run, "same"),
            (long long)number(run, "unknown"));
    if (number(tcp, "better") + number(tcp, "worse") + number(tcp, "same") +
            number(tcp, "unknown") >
        0)
        fprintf(out, "; against TCP: %lld, %lld, %lld, %lld", (long long)number(tcp, "better"),
                (long long)number(tcp, "worse"), (long long)number(tcp, "same"),
                (long long)number(tcp, "unknown"));
    fputc('\n', out);
}

/* What is known of how much runs alike vary. */
static void print_like(FILE *out, const json_t *comparison)
{
    const json_t *like = get(comparison, "like"), *run;
    long long first = json_integer_value(get(json_array_get(get(comparison, "runs"), 0), "run"));
    size_t n = json_array_size(like);
    if (n + 1 < LAB_NOISE_RUNS) {
        fprintf(out,
                "The history has no %d other runs before these that are like run %lld, so what the "
                "machine changes by from one run to the next is not known: + and - are of these "
                "runs alone.\n",
                LAB_NOISE_RUNS - 1, first);
        return;
    }
    fprintf(out, "What runs like run %lld vary by is in the noise:", first);
    for (size_t i = 0; i < n; i++) {
        run = json_array_get(like, i);
        fprintf(out, "%s %lld", i > 0 ? "," : "", (long long)json_integer_value(run));
    }
    fputs(".\n", out);
}

int lab_compare_write(const json_t *comparison, FILE *out)
{
    const json_t *runs = get(comparison, "runs");
    json_t *run, *row;
    size_t i, k;
    errno = 0;
    json_array_foreach(runs, i, run) fprintf(
        out, "run %lld: %s, %s to %s, device %s: %s\n",
        (long long)json_integer_value(get(run, "run")), text(run, "ended"), text(run, "source"),
        text(run, "target"), text(run, "device"), text(run, "summary"));
    json_array_foreach(get(comparison, "differences"), i, row)
    {
        fprintf(out, "%s differs:", text(row, "name"));
        json_t *value;
        json_array_foreach(get(row, "values"), k, value)
        {
            char *said = json_dumps(value, JSON_ENCODE_ANY);
            fprintf(out, "%s %s", k > 0 ? "," : "", said != NULL ? said : "?");
            free(said);
        }
        fputc('\n', out);
    }
    fprintf(out, "\n%-46s %-9s %9s %8s", "figure (us; throughput Gbit/s)", "buffers", "size",
            "depth");
    json_array_foreach(runs, i, run) fprintf(out, i == 0 ? " %10lld" : " %10lld   ratio    x TCP ",
                                             (long long)json_integer_value(get(run, "run")));
    fputc('\n', out);
    json_array_foreach(get(comparison, "rows"), i, row) print_row(out, row, json_array_size(runs));
    fprintf(
        out,
        "\nRatios are to run %lld, better when larger; x TCP: what the ratio to TCP changed by, so "
        "without what the machine changed by. +: better, -: worse, by more than chance and %d %%; "
        "?: these runs cannot tell, more messages may.\n",
        (long long)json_integer_value(get(json_array_get(runs, 0), "run")),
        LAB_NOISE_CHANGE_PERCENT);
    print_like(out, comparison);
    json_array_foreach(runs, i, run)
    {
        if (i > 0)
            print_counts(out, run);
    }
    if (json_array_size(get(comparison, "rows")) == 0)
        fprintf(out, "They have no case in common.\n");
    if (fflush(out) != 0)
        return errno != 0 ? -errno : -EIO;
    return 0;
}
