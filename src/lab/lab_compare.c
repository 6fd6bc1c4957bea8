/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_compare.c: figures of the same case side by side. Noise has three parts: what the samples
 * of both runs leave open (95 % intervals), what the machine itself changed by (TCP's figures of
 * the same size and depth, where both runs have them), and a floor.
 */
#include "lab/lab_compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_record.h"

#define WIDE 1.96 /* standard deviations on both sides that hold 95 % */

enum figure { MEDIAN, P99, THROUGHPUT, FIGURES };

static const char *const figure_names[] = {"median", "p99", "throughput"};

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

static bool same_case(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"op",     "buffers", "transport", "size", "depth",
                                        "offset", "qps",     "threads",   "numa"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!same(a, b, names[i]))
            return false;
    return true;
}

/* A path is one message, no figure. */
static bool is_figure(const json_t *c)
{
    return get(c, "path") == NULL && json_array_size(get(c, "measures")) > 0;
}

static const json_t *find_case(const json_t *record, const json_t *like)
{
    size_t i;
    json_t *c;
    json_array_foreach(get(record, "cases"), i, c)
    {
        if (is_figure(c) && same_case(c, like))
            return c;
    }
    return NULL;
}

static const json_t *find_tcp(const json_t *record, const json_t *like)
{
    size_t i;
    json_t *c;
    json_array_foreach(get(record, "cases"), i, c)
    {
        const char *op = json_string_value(get(c, "op"));
        if (op != NULL && strcmp(op, "tcp") == 0 && is_figure(c) && same(c, like, "size") &&
            same(c, like, "depth") && same(c, like, "offset") && same(c, like, "numa"))
            return c;
    }
    return NULL;
}

static const json_t *find_measure(const json_t *c, const json_t *like)
{
    size_t i;
    json_t *m;
    json_array_foreach(get(c, "measures"), i, m)
    {
        if (same(m, like, "name"))
            return m;
    }
    return NULL;
}

/* The one that a throughput is judged by: of the application's acknowledgement where there is one.
 */
static const json_t *last_measure(const json_t *c)
{
    const json_t *all = get(c, "measures");
    return json_array_get(all, json_array_size(all) - 1);
}

static double value_of(const json_t *c, const json_t *m, enum figure f)
{
    return f == THROUGHPUT ? number(c, "gbps") : number(m, f == MEDIAN ? "p50_ns" : "p99_ns");
}

/* The value of the sample at that place in order. */
static double at_rank(const json_t *m, double rank)
{
    size_t i;
    json_t *bucket;
    double seen = 0, value = number(m, "min_ns");
    json_array_foreach(get(m, "histogram_ns"), i, bucket)
    {
        if (seen >= rank)
            break;
        value = json_number_value(json_array_get(bucket, 0));
        seen += json_number_value(json_array_get(bucket, 1));
    }
    return fmin(value, number(m, "max_ns"));
}

/* How far a quantile may be from that of very many samples, as a part of it. */
static double noise_of_quantile(const json_t *m, double share)
{
    double n = number(m, "samples"), wide = WIDE * sqrt(n * share * (1 - share));
    double value = at_rank(m, n * share);
    double low = at_rank(m, n * share - wide), high = at_rank(m, n * share + wide);
    return value <= 0 ? 0 : fmax(value - low, high - value) / value;
}

/* The same for a mean, and so for a throughput. */
static double noise_of_mean(const json_t *m)
{
    size_t i;
    json_t *bucket;
    double n = number(m, "samples"), mean = number(m, "mean_ns"), sum = 0;
    if (n < 2 || mean <= 0)
        return 0;
    json_array_foreach(get(m, "histogram_ns"), i, bucket)
    {
        double off = json_number_value(json_array_get(bucket, 0)) - mean;
        sum += off * off * json_number_value(json_array_get(bucket, 1));
    }
    return WIDE * sqrt(sum / (n - 1) / n) / mean;
}

static double noise_of(const json_t *c, const json_t *m, enum figure f)
{
    return f == THROUGHPUT ? noise_of_mean(last_measure(c))
                           : noise_of_quantile(m, f == MEDIAN ? 0.5 : 0.99);
}

/* What the same figure of TCP changed by, both ways alike: 0 is not at all. */
static double drift(const json_t *a, const json_t *b, const json_t *c, enum figure f)
{
    const json_t *x = find_tcp(a, c), *y = find_tcp(b, c);
    if (x == NULL || y == NULL || same_case(x, c))
        return 0;
    double before = value_of(x, last_measure(x), f), after = value_of(y, last_measure(y), f);
    return before > 0 && after > 0 ? fabs(log(after / before)) : 0;
}

/* A row's cell for one run; first: of the run that it is compared with. */
struct cell {
    double value, ratio, noise;
    const char *mark; /* NULL: there is no such figure */
};

static struct cell compare(const json_t *first, const json_t *record, const json_t *c,
                           const json_t *m, enum figure f)
{
    const json_t *other = find_case(record, c);
    const json_t *measure = m == NULL ? NULL : find_measure(other, m);
    struct cell cell = {.value = value_of(other, measure, f)};
    double before = value_of(c, m, f);
    if (other == NULL || cell.value <= 0 || before <= 0)
        return (struct cell){0};
    double open = hypot(noise_of(c, m, f), noise_of(other, measure, f));
    double limit = log1p(LAB_COMPARE_FLOOR_PERCENT / 100.0 + open) + drift(first, record, c, f);
    cell.ratio = f == THROUGHPUT ? cell.value / before : before / cell.value;
    cell.noise = expm1(limit);
    cell.mark = fabs(log(cell.ratio)) <= limit ? "same" : cell.ratio > 1 ? "better" : "worse";
    return cell;
}

static json_t *rounded(double value, double steps)
{
    return value <= 0 ? json_null() : json_real(round(value * steps) / steps);
}

static void count_mark(json_t *run, const char *mark)
{
    if (mark != NULL)
        json_object_set_new(run, mark, json_integer(json_integer_value(get(run, mark)) + 1));
}

/* Nothing where no other run has the figure. */
static void add_row(json_t *comparison, const json_t *records, const json_t *c, const json_t *m,
                    enum figure f)
{
    const json_t *first = json_array_get(records, 0);
    json_t *values = json_array(), *ratios = json_array(), *noise = json_array(),
           *marks = json_array(), *record;
    unsigned others = 0;
    size_t i;
    json_array_foreach(records, i, record)
    {
        struct cell cell = compare(first, record, c, m, f);
        if (i == 0)
            cell.noise = 0;
        json_array_append_new(values, f == THROUGHPUT     ? rounded(cell.value, 1e6)
                                      : cell.mark != NULL ? json_integer((json_int_t)cell.value)
                                                          : json_null());
        json_array_append_new(ratios, rounded(cell.ratio, 1e4));
        json_array_append_new(noise, cell.mark != NULL ? json_real(round(cell.noise * 1e4) / 1e4)
                                                       : json_null());
        json_array_append_new(marks, cell.mark != NULL ? json_string(cell.mark) : json_null());
        if (i > 0)
            count_mark(json_array_get(get(comparison, "runs"), i), cell.mark);
        others += i > 0 && cell.mark != NULL;
    }
    json_t *row = json_pack(
        "{s:O?,s:O?,s:O?,s:O?,s:O?,s:O?,s:o,s:s,s:o,s:o,s:o,s:o}", "op", get(c, "op"), "buffers",
        get(c, "buffers"), "transport", get(c, "transport"), "size", get(c, "size"), "depth",
        get(c, "depth"), "offset", get(c, "offset"), "figure",
        m == NULL ? json_string(figure_names[f])
                  : json_sprintf("%s, %s", json_string_value(get(m, "name")), figure_names[f]),
        "unit", f == THROUGHPUT ? "gbps" : "ns", "values", values, "ratios", ratios, "noise", noise,
        "marks", marks);
    if (others > 0)
        json_array_append(json_object_get(comparison, "rows"), row);
    json_decref(row);
}

static json_t *run_json(const json_t *record)
{
    return json_pack("{s:O?,s:O?,s:O?,s:O?,s:O?,s:O?,s:i,s:i,s:i}", "run", get(record, "run"),
                     "ended", get(record, "ended"), "source", get(get(record, "source"), "host"),
                     "target", get(get(record, "target"), "host"), "device",
                     get(get(record, "source"), "device"), "summary",
                     get(get(record, "verdict"), "summary"), "better", 0, "worse", 0, "same", 0);
}

/* Settings and circumstances that are not alike in all of the runs. */
static void add_differences(json_t *all, const json_t *records, const char *part)
{
    static const char *const never[] = {"json", "html", "db", "port", "type", "register_ns", "key"};
    const char *name;
    json_t *value, *record;
    size_t i;
    json_object_foreach((json_t *)get(json_array_get(records, 0), part), name, value)
    {
        bool differs = false, skip = json_is_object(value) || json_is_array(value);
        json_t *values = json_array();
        for (unsigned k = 0; k < sizeof(never) / sizeof(never[0]); k++)
            skip |= strcmp(name, never[k]) == 0;
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

json_t *lab_compare_make(const json_t *records, const struct lab_filter *f)
{
    json_t *runs = json_array(), *differences = json_array(), *record, *c, *m;
    json_t *comparison = json_pack("{s:s,s:i,s:o,s:o,s:o}", "record", "verbena lab comparison",
                                   "version", LAB_RECORD_VERSION, "runs", runs, "differences",
                                   differences, "rows", json_array());
    size_t i, k;
    json_array_foreach(records, i, record) json_array_append_new(runs, run_json(record));
    add_differences(differences, records, "settings");
    add_differences(differences, records, "source");
    add_differences(differences, records, "target");
    json_array_foreach(get(json_array_get(records, 0), "cases"), i, c)
    {
        if (!is_figure(c) || !lab_filter_has(f, c))
            continue;
        json_array_foreach(get(c, "measures"), k, m)
        {
            add_row(comparison, records, c, m, MEDIAN);
            add_row(comparison, records, c, m, P99);
        }
        add_row(comparison, records, c, NULL, THROUGHPUT);
    }
    return comparison;
}

static const char *text(const json_t *o, const char *name)
{
    const char *t = json_string_value(get(o, name));
    return t != NULL ? t : "?";
}

static void print_value(FILE *out, const json_t *row, size_t i)
{
    const json_t *value = json_array_get(get(row, "values"), i);
    const char *mark = json_string_value(json_array_get(get(row, "marks"), i));
    bool ns = strcmp(text(row, "unit"), "ns") == 0;
    if (mark == NULL)
        fprintf(out, " %10s", "-");
    else
        fprintf(out, ns ? " %10.1f" : " %10.4g", json_number_value(value) / (ns ? 1e3 : 1));
    if (i == 0)
        return;
    double ratio = json_number_value(json_array_get(get(row, "ratios"), i));
    if (mark == NULL)
        fprintf(out, " %8s", "");
    else
        fprintf(out, " %6.*f%2s", ratio < 0.1 ? 4 : 2, ratio,
                strcmp(mark, "better") == 0  ? "+"
                : strcmp(mark, "worse") == 0 ? "-"
                                             : "");
}

static void print_row(FILE *out, const json_t *row, size_t runs)
{
    char size[24], place[48], figure[56];
    long long offset = json_integer_value(get(row, "offset"));
    lab_report_bytes((uint64_t)json_integer_value(get(row, "size")), size);
    snprintf(place, sizeof(place), offset != 0 ? "%s+%lld" : "%s", size, offset);
    /* A throughput is of the case, a time of one of its measures. */
    bool whole = strcmp(text(row, "figure"), figure_names[THROUGHPUT]) == 0;
    snprintf(figure, sizeof(figure), "%s%s%s", whole ? text(row, "op") : "", whole ? ", " : "",
             text(row, "figure"));
    fprintf(out, "%-46s %-9s %9s %5lld", figure, text(row, "buffers"), place,
            (long long)json_integer_value(get(row, "depth")));
    for (size_t i = 0; i < runs; i++)
        print_value(out, row, i);
    fputc('\n', out);
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
    fprintf(out, "\n%-46s %-9s %9s %5s", "figure (us; throughput Gbit/s)", "buffers", "size",
            "depth");
    json_array_foreach(runs, i, run) fprintf(out, i == 0 ? " %10lld" : " %10lld    ratio",
                                             (long long)json_integer_value(get(run, "run")));
    fputc('\n', out);
    json_array_foreach(get(comparison, "rows"), i, row) print_row(out, row, json_array_size(runs));
    fprintf(out,
            "\nRatios are to run %lld, better when larger; + and - are better and worse by more "
            "than noise.\n",
            (long long)json_integer_value(get(json_array_get(runs, 0), "run")));
    json_array_foreach(runs, i, run)
    {
        if (i > 0)
            fprintf(out, "run %lld: %lld figures better, %lld worse, %lld within noise\n",
                    (long long)json_integer_value(get(run, "run")),
                    (long long)json_integer_value(get(run, "better")),
                    (long long)json_integer_value(get(run, "worse")),
                    (long long)json_integer_value(get(run, "same")));
    }
    if (json_array_size(get(comparison, "rows")) == 0)
        fprintf(out, "They have no case in common.\n");
    if (fflush(out) != 0)
        return errno != 0 ? -errno : -EIO;
    return 0;
}
