/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_matrix.c: the record has every run as `lab run' would have told it, and which ranks it was
 * between. The verdict is the worst of theirs; what could not be measured is worse than a missed
 * threshold, and wrong data worst.
 */
#include "lab/lab_matrix.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/lab_noise.h"
#include "lab/lab_record.h"
#include "lab/lab_text.h"
#include "lab/lab_verdict.h"

enum { EXIT_NOT_MEASURED = 69 };

static const char *text(const json_t *o, const char *name)
{
    const char *t = json_string_value(json_object_get(o, name));
    return t != NULL ? t : "";
}

static long long integer(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static double number(const json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

static json_t *ranks_json(const struct lab_ranks *r)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < r->count; i++)
        json_array_append_new(
            all, json_pack("{s:i,s:s,s:s,s:O}", "rank", (int)i, "host", r->rank[i].host, "program",
                           text(r->rank[i].self, "program"), "addresses", r->rank[i].addresses));
    return all;
}

static const json_t *cases_of(const json_t *m)
{
    return json_object_get(json_object_get(m, "run"), "cases");
}

static const json_t *find_pair(const json_t *meetings, unsigned source, unsigned target)
{
    size_t i;
    json_t *m;
    json_array_foreach(meetings, i, m) if (strcmp(text(m, "kind"), "pair") == 0 &&
                                           integer(m, "source") == source &&
                                           integer(m, "target") == target) return m;
    return NULL;
}

/* The case that one figure of a pair stands for: the largest, or the smallest at the least depth.
 */
static const json_t *pick(const json_t *m, const char *op, bool largest)
{
    const json_t *best = NULL;
    size_t i;
    json_t *c;
    json_array_foreach(cases_of(m), i, c)
    {
        if (strcmp(text(c, "op"), op) != 0)
            continue;
        long long by = integer(c, "size") - integer(best, "size");
        if (by == 0)
            by = integer(c, "depth") - integer(best, "depth");
        if (best == NULL || (largest ? by > 0 : by < 0))
            best = c;
    }
    return best;
}

static bool doubtful(const json_t *c)
{
    return json_object_get(c, "doubt") != NULL;
}

static void set_bound(json_t *o, const char *name, double bound)
{
    if (bound > 0 && isfinite(bound))
        json_object_set_new(o, name, json_real(bound));
}

/* Of a meeting that ran with all others: its throughput over its pair's alone, and whether that may
 * be chance. None gets faster by others, so more is chance, too. NULL: one of both is not there. */
static json_t *left_json(const json_t *meetings, const json_t *m)
{
    const json_t *c = json_array_get(cases_of(m), 0);
    const json_t *pair =
        find_pair(meetings, (unsigned)integer(m, "source"), (unsigned)integer(m, "target"));
    const json_t *alone = pick(pair, text(c, "op"), true);
    struct lab_figure f = lab_noise_ratio(lab_noise_throughput(c), lab_noise_throughput(alone));
    enum lab_mark mark = lab_noise_mark(f);
    if (mark == LAB_MARK_NONE)
        return NULL;
    bool chance = doubtful(c) || doubtful(alone) || mark == LAB_MARK_UNKNOWN ||
                  f.value > 1 + LAB_NOISE_CHANGE_PERCENT / 100.0;
    json_t *o = json_pack("{s:f,s:b}", "ratio", f.value, "chance", chance);
    set_bound(o, "low", f.low);
    set_bound(o, "high", f.high);
    return o;
}

static void add_left(json_t *meetings)
{
    size_t i;
    json_t *m;
    json_array_foreach(meetings, i, m)
    {
        json_t *left = strcmp(text(m, "kind"), "pair") != 0 ? left_json(meetings, m) : NULL;
        if (left != NULL)
            json_object_set_new(m, "left", left);
    }
}

static json_t *meetings_json(const struct lab_hub *h)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < h->schedule->meeting_count; i++) {
        const struct lab_meeting *m = &h->schedule->meetings[i];
        const struct lab_outcome *o = &h->outcomes[i];
        if (o->record == NULL && o->error == NULL)
            continue; /* it broke off before */
        json_array_append_new(all, json_pack("{s:s,s:i,s:i,s:i,s:o?,s:O?}", "kind",
                                             lab_round_name(h->schedule->rounds[m->round].kind),
                                             "round", (int)m->round, "source", (int)m->source,
                                             "target", (int)m->target, "error",
                                             o->error != NULL ? lab_text_json(o->error) : NULL,
                                             "run", o->record));
    }
    add_left(all);
    return all;
}

static void __attribute__((format(printf, 3, 4)))
find(json_t *findings, const json_t *m, const char *format, ...)
{
    char *what;
    va_list args;
    va_start(args, format);
    if (vasprintf(&what, format, args) >= 0) {
        json_array_append_new(findings,
                              json_sprintf("%s, rank %lld to %lld: %s", text(m, "kind"),
                                           integer(m, "source"), integer(m, "target"), what));
        free(what);
    }
    va_end(args);
}

static int worse(int a, int b)
{
    static const int order[] = {LAB_EXIT_PASSED, LAB_EXIT_MISSED, EXIT_NOT_MEASURED,
                                LAB_EXIT_WRONG_DATA};
    int worst = 0;
    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (order[i] == a || order[i] == b)
            worst = order[i];
    return worst;
}

/* What a run says of thresholds and data; what it says of bottlenecks stays in its own record. */
static int judge(const json_t *m, json_t *findings)
{
    const json_t *verdict = json_object_get(json_object_get(m, "run"), "verdict");
    int code = (int)integer(verdict, "exit");
    size_t i;
    json_t *f;
    if (json_object_get(m, "error") != NULL && !json_is_null(json_object_get(m, "error"))) {
        find(findings, m, "NOT MEASURED: %s", text(m, "error"));
        return EXIT_NOT_MEASURED;
    }
    json_array_foreach(json_object_get(verdict, "findings"), i, f)
    {
        const char *what = json_string_value(f);
        if (what != NULL && (strncmp(what, "WRONG", 5) == 0 || strncmp(what, "MISSED", 6) == 0 ||
                             strncmp(what, "NOT JUDGED", 10) == 0))
            find(findings, m, "%s", what);
    }
    return code;
}

/* Of the first operation. */
static const char *first_op(const json_t *meetings)
{
    size_t i, k;
    json_t *m, *c;
    json_array_foreach(meetings, i, m)
    {
        json_array_foreach(cases_of(m), k, c)
        {
            if (strcmp(text(c, "op"), "tcp") != 0)
                return text(c, "op");
        }
    }
    return "";
}

/* Among the pairs whose figures tell something. */
static json_t *extremes(const json_t *meetings)
{
    const json_t *slowest = NULL, *fastest = NULL, *least = NULL, *most = NULL;
    const char *op = first_op(meetings);
    char low[24], high[24];
    size_t i, left_out = 0;
    json_t *m;
    json_array_foreach(meetings, i, m)
    {
        const json_t *one = strcmp(text(m, "kind"), "pair") == 0 ? pick(m, op, true) : NULL;
        left_out += doubtful(one);
        if (one == NULL || doubtful(one))
            continue;
        if (slowest == NULL || number(one, "gbps") < number(least, "gbps"))
            slowest = m, least = one;
        if (fastest == NULL || number(one, "gbps") > number(most, "gbps"))
            fastest = m, most = one;
    }
    if (slowest == NULL)
        return json_string(left_out > 0 ? "; which pair is slowest cannot be told" : "");
    bool apart = lab_noise_mark(lab_noise_ratio(lab_noise_throughput(most),
                                                lab_noise_throughput(least))) == LAB_MARK_BETTER;
    return json_sprintf(
        "; slowest pair rank %lld to %lld with %s Gbit/s, fastest rank %lld to %lld with %s%s",
        integer(slowest, "source"), integer(slowest, "target"),
        lab_report_number(number(least, "gbps"), low), integer(fastest, "source"),
        integer(fastest, "target"), lab_report_number(number(most, "gbps"), high),
        apart ? "" : ", no further apart than chance");
}

/* In how many meetings some case is doubtful for that reason, and what to do. */
static void find_doubt(json_t *findings, const json_t *meetings, const char *doubt,
                       const char *what)
{
    size_t i, k, some = 0;
    json_t *m, *c;
    json_array_foreach(meetings, i, m)
    {
        bool one = false;
        json_array_foreach(cases_of(m), k, c) one |= strcmp(text(c, "doubt"), doubt) == 0;
        some += one;
    }
    if (some > 0)
        json_array_append_new(findings, json_sprintf("in %zu of %zu meetings %s", some,
                                                     json_array_size(meetings), what));
}

static json_t *verdict_json(const json_t *meetings)
{
    json_t *findings = json_array();
    int code = 0;
    size_t i, passed = 0;
    json_t *m;
    json_array_foreach(meetings, i, m)
    {
        int one = judge(m, findings);
        passed += one == 0;
        code = worse(code, one);
    }
    find_doubt(findings, meetings, "few messages",
               "there were cases of fewer than 10 messages, whose figures are chance (?): use more "
               "--iterations");
    find_doubt(findings, meetings, "no CPU",
               "there were cases in which an end that polls had no CPU of its own, so that their "
               "figures are the scheduler's (?): use --wait event, or more CPUs");
    const char *begin = code == LAB_EXIT_PASSED       ? "passed"
                        : code == LAB_EXIT_MISSED     ? "MISSED a threshold"
                        : code == LAB_EXIT_WRONG_DATA ? "WRONG DATA"
                                                      : "NOT all MEASURED";
    json_t *tail = extremes(meetings);
    json_t *summary = json_sprintf("%s; %zu of %zu meetings passed%s", begin, passed,
                                   json_array_size(meetings), json_string_value(tail));
    json_decref(tail);
    return json_pack("{s:i,s:b,s:o,s:o}", "exit", code, "passed", code == 0, "summary", summary,
                     "findings", findings);
}

json_t *lab_matrix_make(const struct lab_hub *h, const char *error)
{
    char now[32];
    time_t t = time(NULL);
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_t *meetings = meetings_json(h);
    json_t *o =
        json_pack("{s:s,s:i,s:s,s:o,s:O,s:o}", "record", "verbena lab mpi", "version",
                  LAB_MATRIX_VERSION, "ended", now, "ranks", ranks_json(h->ranks), "settings",
                  json_object_get(h->ranks->rank[0].self, "settings"), "meetings", meetings);
    if (error != NULL)
        json_object_set_new(o, "error", lab_text_json(error));
    else
        json_object_set_new(o, "verdict", verdict_json(meetings));
    return o;
}

/* One figure of a case; negative: it has none. */
static double gbps_of(const json_t *c)
{
    return c != NULL ? number(c, "gbps") : -1;
}

static double us_of(const json_t *c)
{
    const json_t *measures = json_object_get(c, "measures");
    const json_t *last = json_array_get(measures, json_array_size(measures) - 1);
    return last != NULL ? (double)integer(last, "p50_ns") / 1e3 : -1;
}

static double ratio_of(const json_t *c)
{
    const json_t *r = json_object_get(c, "throughput_ratio_tcp");
    return r != NULL ? json_number_value(r) : -1;
}

/* mark: behind the figure before. */
static void print_cell(FILE *out, char mark, const json_t *m, double value)
{
    char number[24];
    fprintf(out, "%c%9s", mark,
            m == NULL   ? "-"
            : value < 0 ? "FAILED"
                        : lab_report_number(value, number));
}

static void print_table(FILE *out, const json_t *record, const char *op, const char *title,
                        bool largest, double (*figure)(const json_t *))
{
    const json_t *meetings = json_object_get(record, "meetings"), *any = NULL;
    unsigned n = (unsigned)json_array_size(json_object_get(record, "ranks"));
    size_t i;
    json_t *m;
    json_array_foreach(meetings, i, m) if (any == NULL) any = pick(m, op, largest);
    if (any == NULL || figure(any) < 0)
        return;
    char size[24];
    fprintf(out, "\n%s of %s, %s at depth %lld; source down, target across:\n%6s", title, op,
            lab_report_bytes((uint64_t)integer(any, "size"), size), integer(any, "depth"), "");
    for (unsigned t = 0; t < n; t++)
        fprintf(out, " %9u", t);
    for (unsigned s = 0; s < n; s++) {
        char mark = ' ';
        fprintf(out, "\n%6u", s);
        for (unsigned t = 0; t < n; t++) {
            const json_t *pair = find_pair(meetings, s, t);
            const json_t *c = pick(pair, op, largest);
            print_cell(out, mark, pair, c != NULL ? figure(c) : -1);
            mark = doubtful(c) ? '?' : ' ';
        }
        if (mark != ' ')
            fputc(mark, out);
    }
    fputc('\n', out);
}

/* Of several meetings that ran at once. Is any share chance? */
static bool print_together(FILE *out, const json_t *meetings, size_t first, size_t count)
{
    const json_t *m = json_array_get(meetings, first);
    bool incast = strcmp(text(m, "kind"), "incast") == 0, any = false;
    double sum = 0;
    char gbps[24];
    if (incast)
        fprintf(out, "all into rank %lld:", integer(m, "target"));
    else
        fprintf(out, "each to the next:");
    for (size_t i = 0; i < count; i++) {
        m = json_array_get(meetings, first + i);
        const json_t *c = json_array_get(cases_of(m), 0);
        fprintf(out, "  %lld:", integer(m, "source"));
        if (c == NULL) {
            fputs(" FAILED", out);
            continue;
        }
        json_t *left = left_json(meetings, m);
        bool chance = json_is_true(json_object_get(left, "chance"));
        fprintf(out, " %s", lab_report_number(number(c, "gbps"), gbps));
        if (left != NULL)
            fprintf(out, " (%.0f %% of alone%s)", 100 * number(left, "ratio"), chance ? "?" : "");
        any |= chance;
        json_decref(left);
        sum += number(c, "gbps");
    }
    fprintf(out, "  sum %s\n", lab_report_number(sum, gbps));
    return any;
}

static void print_rounds(FILE *out, const json_t *meetings)
{
    size_t n = json_array_size(meetings);
    bool titled = false, chance = false;
    for (size_t i = 0, count; i < n; i += count) {
        const json_t *m = json_array_get(meetings, i);
        for (count = 1; i + count < n && integer(json_array_get(meetings, i + count), "round") ==
                                             integer(m, "round");)
            count++;
        if (strcmp(text(m, "kind"), "pair") == 0)
            continue;
        const json_t *c = json_array_get(cases_of(m), 0);
        char size[24];
        if (c != NULL && !titled)
            fprintf(out, "\nAll at once, %s of %s at depth %lld, Gbit/s by each source's clock:\n",
                    text(c, "op"), lab_report_bytes((uint64_t)integer(c, "size"), size),
                    integer(c, "depth"));
        titled = titled || c != NULL;
        chance |= print_together(out, meetings, i, count);
    }
    if (chance)
        fprintf(out, "?: chance: few messages, times that vary as much, no CPU of its own for an "
                     "end that polls; or more than alone, which others cannot be the cause of.\n");
}

int lab_matrix_write(const json_t *record, FILE *out)
{
    static const char *const ops[] = {"write", "write-imm", "read", "send", "atomic"};
    const json_t *verdict = json_object_get(record, "verdict");
    size_t i;
    json_t *o;
    errno = 0;
    json_array_foreach(json_object_get(record, "ranks"), i, o)
        fprintf(out, "rank %lld: %s, version %s\n", integer(o, "rank"), text(o, "host"),
                text(o, "program"));
    for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        print_table(out, record, ops[i], "Throughput in Gbit/s", true, gbps_of);
        print_table(out, record, ops[i], "Throughput over TCP's", true, ratio_of);
        print_table(out, record, ops[i], "Median latency in us", false, us_of);
    }
    print_rounds(out, json_object_get(record, "meetings"));
    fputc('\n', out);
    json_array_foreach(json_object_get(verdict, "findings"), i, o)
        fprintf(out, "  %s\n", json_string_value(o));
    if (verdict != NULL)
        fprintf(out, "Verdict: %s\n", text(verdict, "summary"));
    return fflush(out) != 0 || ferror(out) != 0 ? (errno != 0 ? -errno : -EIO) : 0;
}
