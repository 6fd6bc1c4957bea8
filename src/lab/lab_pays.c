/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_pays.c: what single cases come to against TCP is gathered by size and depth, and those that
 * came out alike are named together. A mean stands beside that, never for it: it hides that a load
 * may pay at one end and not at the other. Cases of a few messages, and those whose figures are the
 * scheduler's, are left out; when most are, nothing is said of what pays.
 */
#include "lab/lab_pays.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_record.h"
#include "lab/lab_text.h"
#include "lab/lab_verdict.h"

enum { MEASURES = 3, MAX_PIECES = 3, TEXT_BYTES = 2048 };

/* All are better when larger. */
static const struct measure {
    const char *name;
    double (*ratio)(const struct lab_run *run, const struct lab_result *r);
} measures[MEASURES] = {
    {"throughput",      lab_verdict_throughput_ratio},
    {"median latency",  lab_verdict_latency_ratio   },
    {"CPU per message", lab_verdict_tcp_cpu_ratio   },
};

/* Of a case by some measures: BOTH is better by one and worse by another. DIFFERS is of a size and
 * depth whose cases (operations, buffers, ...) do not come to the same. */
enum outcome { NONE, BETTER, WORSE, BOTH, ALIKE, DIFFERS, OUTCOMES };

static const char *const whole_words[OUTCOMES] = {
    [BETTER] = "it pays for",
    [WORSE] = "it does not pay for",
    [BOTH] = "it is better by one measure and worse by another for",
    [ALIKE] = "it is like TCP for",
    [DIFFERS] = "it depends on the operation (or its buffers, queue pairs, places) for",
};
static const char *const measure_words[OUTCOMES] = {
    [BETTER] = "better for",
    [WORSE] = "worse for",
    [ALIKE] = "alike for",
    [DIFFERS] = "as the operation (or its buffers, queue pairs, places) is for",
};

/* Sorted, each once. */
struct axis {
    unsigned count;
    uint32_t value[LAB_MAX_LIST];
};

struct grid {
    struct axis sizes, depths;
    enum outcome cell[LAB_MAX_LIST][LAB_MAX_LIST]; /* by depth, then by size */
    unsigned cells[OUTCOMES];
    unsigned all;
};

const char *lab_pays_number(double value, char out[LAB_PAYS_NUMBER_BYTES])
{
    snprintf(out, LAB_PAYS_NUMBER_BYTES, value >= 99.95 ? "%.0f" : "%#.3g", value);
    return out;
}

static void __attribute__((format(printf, 2, 3)))
add(char text[TEXT_BYTES], const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, TEXT_BYTES - used, format, args);
    va_end(args);
}

static bool has_baseline(const struct lab_run *run, const struct lab_result *r)
{
    return lab_verdict_throughput_ratio(run, r) > 0;
}

static enum outcome outcome_of(const struct lab_run *run, const struct lab_result *r,
                               unsigned first, unsigned count)
{
    bool known = false, better = false, worse = false;
    for (unsigned m = first; m < first + count; m++) {
        double ratio = measures[m].ratio(run, r);
        known |= ratio > 0;
        better |= ratio > 1.1;
        worse |= ratio > 0 && ratio < 0.9;
    }
    return !known ? NONE : better && worse ? BOTH : better ? BETTER : worse ? WORSE : ALIKE;
}

/* Where the value is, or has to be. */
static unsigned place(const struct axis *a, uint32_t value)
{
    unsigned at = 0;
    while (at < a->count && a->value[at] < value)
        at++;
    return at;
}

static void note(struct axis *a, uint32_t value)
{
    unsigned at = place(a, value);
    if ((at < a->count && a->value[at] == value) || a->count == LAB_MAX_LIST)
        return; /* settings have no more than that */
    memmove(&a->value[at + 1], &a->value[at], (a->count - at) * sizeof(a->value[0]));
    a->value[at] = value;
    a->count++;
}

/* What a set of cases comes to by some of the measures. */
static void lay_out(struct grid *g, const struct lab_run *run, const bool *told, unsigned first,
                    unsigned count)
{
    *g = (struct grid){0};
    for (unsigned i = 0; i < run->count; i++) {
        if (!told[i])
            continue;
        note(&g->sizes, run->results[i].c.size);
        note(&g->depths, run->results[i].c.depth);
    }
    for (unsigned i = 0; i < run->count; i++) {
        const struct lab_result *r = &run->results[i];
        enum outcome o = told[i] ? outcome_of(run, r, first, count) : NONE;
        if (o == NONE)
            continue;
        enum outcome *cell = &g->cell[place(&g->depths, r->c.depth)][place(&g->sizes, r->c.size)];
        *cell = *cell == NONE || *cell == o ? o : DIFFERS;
    }
    for (unsigned d = 0; d < g->depths.count; d++)
        for (unsigned s = 0; s < g->sizes.count; s++) {
            g->cells[g->cell[d][s]]++;
            g->all += g->cell[d][s] != NONE;
        }
}

static bool same_row(const struct grid *g, unsigned a, unsigned b, enum outcome o)
{
    for (unsigned s = 0; s < g->sizes.count; s++)
        if ((g->cell[a][s] == o) != (g->cell[b][s] == o))
            return false;
    return true;
}

/* Sizes and depths by their place, from and to. */
static void add_piece(char text[TEXT_BYTES], const struct grid *g, const unsigned size[2],
                      const unsigned depth[2])
{
    char from[24], to[24];
    lab_report_bytes(g->sizes.value[size[0]], from);
    lab_report_bytes(g->sizes.value[size[1]], to);
    if (size[0] == size[1])
        add(text, " %s", from);
    else if (size[1] - size[0] + 1 == g->sizes.count)
        add(text, " all sizes");
    else
        add(text, " %s to %s", from, to);
    if (depth[0] == depth[1])
        add(text, " at depth %u", g->depths.value[depth[0]]);
    else if (depth[1] - depth[0] + 1 == g->depths.count)
        add(text, " at all depths");
    else
        add(text, " at depths %u to %u", g->depths.value[depth[0]], g->depths.value[depth[1]]);
}

/* The sizes and depths of that outcome, as few ranges; how many of them there are when they make no
 * ranges that anybody would read. */
static void add_where(char text[TEXT_BYTES], const struct grid *g, enum outcome o)
{
    char where[TEXT_BYTES] = "";
    unsigned pieces = 0;
    for (unsigned d = 0, last; d < g->depths.count; d = last + 1) {
        for (last = d; last + 1 < g->depths.count && same_row(g, d, last + 1, o);)
            last++;
        for (unsigned s = 0; s < g->sizes.count; s++) {
            unsigned end = s;
            if (g->cell[d][s] != o)
                continue;
            while (end + 1 < g->sizes.count && g->cell[d][end + 1] == o)
                end++;
            if (pieces++ > 0)
                add(where, ",");
            add_piece(where, g, (const unsigned[]){s, end}, (const unsigned[]){d, last});
            s = end;
        }
    }
    if (g->cells[o] == g->all && g->all > 1)
        add(text, " all");
    else if (pieces > MAX_PIECES)
        add(text, " %u of %u sizes and depths", g->cells[o], g->all);
    else
        add(text, "%s", where);
}

static void add_outcomes(char text[TEXT_BYTES], const struct grid *g, const char *const *words)
{
    bool begun = false;
    for (unsigned o = BETTER; o < OUTCOMES; o++) {
        if (g->cells[o] == 0)
            continue;
        add(text, "%s%s", begun ? "; " : "", words[o]);
        add_where(text, g, (enum outcome)o);
        begun = true;
    }
}

/* Of one measure over the cases that have it. */
struct spread {
    unsigned cases;
    double mean; /* geometric */
    double least, most;
    const struct lab_result *worst, *best;
};

static struct spread spread_of(const struct lab_run *run, const bool *told, unsigned m)
{
    struct spread x = {0};
    double sum = 0;
    for (unsigned i = 0; i < run->count; i++) {
        const struct lab_result *r = &run->results[i];
        double ratio = told[i] ? measures[m].ratio(run, r) : 0;
        if (ratio <= 0)
            continue;
        sum += log(ratio);
        if (x.cases == 0 || ratio < x.least) {
            x.least = ratio;
            x.worst = r;
        }
        if (x.cases == 0 || ratio > x.most) {
            x.most = ratio;
            x.best = r;
        }
        x.cases++;
    }
    x.mean = x.cases == 0 ? 0 : exp(sum / x.cases);
    return x;
}

static json_t *measure_json(const struct lab_run *run, const bool *told, unsigned m)
{
    struct spread x = spread_of(run, told, m);
    char text[TEXT_BYTES] = "", mean[LAB_PAYS_NUMBER_BYTES], least[LAB_PAYS_NUMBER_BYTES];
    char most[LAB_PAYS_NUMBER_BYTES], worst[LAB_CASE_BYTES], best[LAB_CASE_BYTES];
    struct grid g;
    lay_out(&g, run, told, m, 1);
    add(text, "%s: ", measures[m].name);
    add_outcomes(text, &g, measure_words);
    lab_pays_number(x.mean, mean);
    if (x.cases > 1)
        add(text, "; from %s x TCP (%s) to %s x TCP (%s), geometric mean of %u cases %s",
            lab_pays_number(x.least, least), lab_case_say(&x.worst->c, worst),
            lab_pays_number(x.most, most), lab_case_say(&x.best->c, best), x.cases, mean);
    else
        add(text, ", %s x TCP", mean);
    return json_pack("{s:s,s:f,s:f,s:f,s:o}", "name", measures[m].name, "geometric_mean", x.mean,
                     "least", x.least, "most", x.most, "says", lab_text_json(text));
}

static void add_means(char text[TEXT_BYTES], const struct lab_run *run, const bool *told)
{
    const char *between = "";
    char mean[LAB_PAYS_NUMBER_BYTES];
    unsigned cases = spread_of(run, told, 0).cases;
    if (cases > 1)
        add(text, "geometric means of %u cases: ", cases);
    for (unsigned m = 0; m < MEASURES; m++) {
        struct spread x = spread_of(run, told, m);
        if (x.cases == 0)
            continue;
        add(text, "%s%s %s x TCP", between, measures[m].name, lab_pays_number(x.mean, mean));
        between = ", ";
    }
}

static void add_verdict(char text[TEXT_BYTES], const struct lab_run *run, const bool *told)
{
    static const char *const alone[OUTCOMES] = {
        [BETTER] = "RDMA pays for this load",
        [WORSE] = "RDMA does not pay for this load",
        [BOTH] = "RDMA is better than TCP for this load by one measure and worse by another",
        [ALIKE] = "RDMA and TCP are alike for this load",
        [DIFFERS] = "RDMA pays or not by the operation (or its buffers, queue pairs, places)",
    };
    struct grid g;
    lay_out(&g, run, told, 0, MEASURES);
    for (unsigned o = BETTER; o < OUTCOMES; o++)
        if (g.cells[o] == g.all)
            add(text, "%s: ", alone[o]);
    if (text[0] == '\0') {
        add(text, g.cells[BETTER] > 0 ? "RDMA pays for part of this load: "
                                      : "RDMA does not plainly pay for this load: ");
        add_outcomes(text, &g, whole_words);
        add(text, "; ");
    }
    add_means(text, run, told);
}

/* Why there is nothing to compare. */
static const char *silence(const struct lab_run *run)
{
    unsigned atomics = 0, others = 0;
    for (unsigned i = 0; i < run->count; i++) {
        atomics += run->results[i].c.op == LAB_ATOMIC;
        others += run->results[i].c.op != LAB_ATOMIC && run->results[i].c.op != LAB_TCP;
    }
    return atomics > 0 && others == 0
               ? "nothing is said about TCP, which has nothing like an atomic"
               : "without a baseline nothing is said about TCP";
}

/* Cases that have a baseline, and those of them that tell nothing. */
struct sorted {
    unsigned cases, few, starved;
};

/* told: which cases tell something. */
static struct sorted sort_out(const struct lab_settings *s, const struct lab_run *run, bool *told)
{
    struct sorted x = {0};
    for (unsigned i = 0; i < run->count; i++) {
        const struct lab_result *r = &run->results[i];
        bool compared = has_baseline(run, r);
        bool few =
            compared && (lab_verdict_few(r) || lab_verdict_few(lab_verdict_baseline(run, r)));
        bool starved = compared && !few && lab_verdict_starved(s, r);
        x.cases += compared;
        x.few += few;
        x.starved += starved;
        told[i] = compared && !few && !starved;
    }
    return x;
}

static void add_left_out(char text[TEXT_BYTES], const struct sorted *x)
{
    if (x->few > 0)
        add(text, "; %u of %u cases are left out, which had fewer than %u messages", x->few,
            x->cases, LAB_VERDICT_LEAST_MESSAGES);
    if (x->starved > 0)
        add(text, "; %u of %u cases are left out, where an end that polls had no CPU of its own",
            x->starved, x->cases);
}

static void add_untold(char text[TEXT_BYTES], const struct sorted *x)
{
    add(text, "whether RDMA pays cannot be told here: ");
    if (x->few > 0)
        add(text,
            "%u of %u cases that have a baseline had fewer than %u messages, which tell of chance; "
            "use more --iterations",
            x->few, x->cases, LAB_VERDICT_LEAST_MESSAGES);
    if (x->starved > 0)
        add(text,
            "%sin %u of %u cases that have a baseline an end that polls had no CPU of its own, so "
            "that their figures are the scheduler's; use --wait event, or more CPUs",
            x->few > 0 ? "; " : "", x->starved, x->cases);
}

json_t *lab_pays_make(const struct lab_settings *s, const struct lab_run *run)
{
    char text[TEXT_BYTES] = "";
    struct sorted x = {0};
    json_t *all = json_array();
    bool *told = calloc(run->count + 1, sizeof(*told));
    if (told != NULL)
        x = sort_out(s, run, told);
    bool tells = x.cases > 0 && 2 * (x.few + x.starved) <= x.cases;
    if (tells) {
        add_verdict(text, run, told);
        add_left_out(text, &x);
        for (unsigned m = 0; m < MEASURES; m++)
            if (spread_of(run, told, m).cases > 0)
                json_array_append_new(all, measure_json(run, told, m));
    } else if (x.cases > 0) {
        add_untold(text, &x);
    } else {
        add(text, "%s", told != NULL ? silence(run) : "no memory to compare with TCP");
    }
    free(told);
    return json_pack("{s:i,s:i,s:i,s:b,s:s,s:o}", "cases", (int)x.cases, "few", (int)x.few,
                     "starved", (int)x.starved, "told", tells, "summary", text, "measures", all);
}
