/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_verdict.c: figures become sentences. The summary is about all cases, and says of TCP what
 * lab_pays.c makes of them; findings are what a reader must know about single ones.
 */
#include "lab/lab_verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/lab_experiment.h"
#include "lab/lab_pays.h"
#include "lab/lab_text.h"

enum { CONTENTS_LIMIT_PERCENT = 50, CPU_LIMIT_PERCENT = 75 };

double lab_verdict_gbps(const struct lab_result *r)
{
    return r->elapsed_ns == 0 ? 0
                              : 8.0 * r->c.size * (double)r->c.iterations / (double)r->elapsed_ns;
}

double lab_verdict_rate(const struct lab_result *r)
{
    return r->elapsed_ns == 0 ? 0 : 1e9 * (double)r->c.iterations / (double)r->elapsed_ns;
}

const struct lab_result *lab_verdict_baseline(const struct lab_run *run, const struct lab_result *r)
{
    if (r->c.op == LAB_TCP || r->c.op == LAB_ATOMIC)
        return NULL; /* TCP has nothing like an atomic */
    for (unsigned i = 0; i < run->count; i++) {
        const struct lab_result *b = &run->results[i];
        if (b->c.op == LAB_TCP && b->c.size == r->c.size && b->c.depth == r->c.depth &&
            b->c.offset == r->c.offset && b->c.near == r->c.near)
            return b;
    }
    return NULL;
}

const struct lab_hist *lab_verdict_latency(const struct lab_result *r)
{
    return r->acknowledged.samples > 0 ? &r->acknowledged : &r->completion;
}

double lab_verdict_throughput_ratio(const struct lab_run *run, const struct lab_result *r)
{
    const struct lab_result *b = lab_verdict_baseline(run, r);
    double below = b == NULL ? 0 : lab_verdict_gbps(b);
    return below > 0 ? lab_verdict_gbps(r) / below : 0;
}

static double at(const struct lab_hist *h, unsigned permille)
{
    return permille == 0 ? lab_hist_mean(h) : (double)lab_hist_permille(h, permille);
}

/* Below over mine, where both are something. */
static double over(double below, double mine)
{
    return below > 0 && mine > 0 ? below / mine : 0;
}

double lab_verdict_tcp_ratio(const struct lab_run *run, const struct lab_result *r,
                             const struct lab_hist *h, unsigned permille)
{
    const struct lab_result *b = lab_verdict_baseline(run, r);
    return b == NULL ? 0 : over(at(lab_verdict_latency(b), permille), at(h, permille));
}

double lab_verdict_latency_ratio(const struct lab_run *run, const struct lab_result *r)
{
    return lab_verdict_tcp_ratio(run, r, lab_verdict_latency(r), 500);
}

/* ns for a message of the case's size; 0 where it was not measured. */
static double memcpy_ns(const struct lab_settings *s, const struct lab_run *run,
                        const struct lab_result *r)
{
    for (uint32_t i = 0; i < s->sizes.count; i++)
        if (s->sizes.value[i] == r->c.size)
            return run->memcpy_ns[i];
    return 0;
}

double lab_verdict_memcpy_ratio(const struct lab_settings *s, const struct lab_run *run,
                                const struct lab_result *r)
{
    return over(memcpy_ns(s, run, r) * (double)r->c.iterations, (double)r->elapsed_ns);
}

double lab_verdict_copy_ratio(const struct lab_settings *s, const struct lab_run *run,
                              const struct lab_result *r, const struct lab_hist *h,
                              unsigned permille)
{
    return over(memcpy_ns(s, run, r), at(h, permille));
}

static double cpu_us_of(const json_t *side)
{
    return json_number_value(json_object_get(side, "cpu_user_us")) +
           json_number_value(json_object_get(side, "cpu_system_us"));
}

double lab_verdict_cpu_us(const struct lab_result *r)
{
    double sum = (double)(r->source.user_us + r->source.system_us) + cpu_us_of(r->target);
    return sum <= 0 || lab_case_messages(&r->c) == 0 ? 0 : sum / (double)lab_case_messages(&r->c);
}

double lab_verdict_tcp_cpu_ratio(const struct lab_run *run, const struct lab_result *r)
{
    const struct lab_result *b = lab_verdict_baseline(run, r);
    return b == NULL ? 0 : over(lab_verdict_cpu_us(b), lab_verdict_cpu_us(r));
}

double lab_verdict_copy_cpu_ratio(const struct lab_settings *s, const struct lab_run *run,
                                  const struct lab_result *r)
{
    return over(memcpy_ns(s, run, r) / 1e3, lab_verdict_cpu_us(r));
}

/* The case's time, of each thread. */
static double thread_ns(const json_t *side)
{
    json_int_t threads = json_integer_value(json_object_get(side, "threads"));
    return json_number_value(json_object_get(side, "wall_ns")) *
           (double)(threads > 1 && threads <= LAB_MAX_QPS ? threads : 1);
}

static unsigned percent(double part, double whole)
{
    return part > 0 && whole > 0 ? (unsigned)fmin(100 * part / whole, 1e6) : 0;
}

static double part_ns(const json_t *side, enum lab_part part)
{
    return json_number_value(
        json_object_get(json_object_get(side, "parts_ns"), lab_part_name(part)));
}

static const enum lab_part contents[] = {LAB_PART_FILL, LAB_PART_CHECKSUM, LAB_PART_COPY};
enum { CONTENTS = sizeof(contents) / sizeof(contents[0]) };

unsigned lab_verdict_part_percent(const json_t *side, enum lab_part part)
{
    return percent(part_ns(side, part), thread_ns(side));
}

unsigned lab_verdict_contents_percent(const json_t *side)
{
    double sum = 0;
    for (unsigned i = 0; i < CONTENTS; i++)
        sum += part_ns(side, contents[i]);
    return percent(sum, thread_ns(side));
}

unsigned lab_verdict_cpu_percent(const json_t *side)
{
    return percent(1e3 * cpu_us_of(side), thread_ns(side));
}

/* What the target says of its data; it is a peer, so whatever it says is only added up. */
static uint64_t target_faults(const json_t *target)
{
    const json_t *data = json_object_get(target, "data");
    json_int_t sum = json_integer_value(json_object_get(target, "wrong_atomics"));
    for (unsigned v = LAB_DATA_GOOD + 1; v < LAB_VERDICTS; v++)
        sum += json_integer_value(json_object_get(data, lab_verdict_name((enum lab_verdict)v)));
    return sum > 0 ? (uint64_t)sum : 0;
}

uint64_t lab_verdict_faults(const struct lab_result *r)
{
    return lab_side_faults(&r->source) + target_faults(r->target);
}

static void __attribute__((format(printf, 2, 3))) find(json_t *findings, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) >= 0) {
        json_array_append_new(findings, lab_text_json(text));
        free(text);
    }
    va_end(args);
}

static void find_faults(const struct lab_result *r, json_t *findings)
{
    const char *first = json_string_value(json_object_get(r->target, "first_fault"));
    uint64_t faults = lab_verdict_faults(r);
    if (r->source.first_fault[0] != '\0')
        first = r->source.first_fault;
    char what[LAB_CASE_BYTES];
    if (faults > 0)
        find(findings, "WRONG DATA: %s: %llu messages, the first: %.250s",
             lab_case_say(&r->c, what), (unsigned long long)faults,
             first != NULL ? first : "not told");
}

enum threshold { MAX_P99, MIN_GBPS, MIN_RATIO, THRESHOLDS };

/* What cases come to, of each threshold that was asked for. */
struct judged {
    unsigned cases[THRESHOLDS]; /* that have the figure */
    unsigned missed;
};

static void find_missed(const struct lab_settings *s, const struct lab_run *run,
                        const struct lab_result *r, struct judged *j, json_t *findings)
{
    char what[LAB_CASE_BYTES];
    const char *name = lab_case_say(&r->c, what);
    uint64_t p99 = lab_hist_permille(lab_verdict_latency(r), 990);
    double gbps = lab_verdict_gbps(r), ratio = lab_verdict_throughput_ratio(run, r);
    bool has_rate = r->c.op != LAB_ATOMIC, has_ratio = lab_verdict_baseline(run, r) != NULL;
    j->cases[MAX_P99] += lab_verdict_latency(r)->samples > 0;
    j->cases[MIN_GBPS] += has_rate;
    j->cases[MIN_RATIO] += has_ratio;
    if (s->max_p99_ns != 0 && p99 > s->max_p99_ns) {
        find(findings, "MISSED max-p99: %s: %.9g us, allowed %.9g us", name, (double)p99 / 1e3,
             (double)s->max_p99_ns / 1e3);
        j->missed++;
    }
    if (s->min_kbps != 0 && has_rate && gbps * 1e6 < (double)s->min_kbps) {
        find(findings, "MISSED min-gbps: %s: %.6g Gbit/s, wanted %.6g", name, gbps,
             (double)s->min_kbps / 1e6);
        j->missed++;
    }
    if (s->min_ratio_ppm != 0 && has_ratio && ratio * 1e6 < (double)s->min_ratio_ppm) {
        find(findings, "MISSED min-ratio: %s: %.6g x TCP, wanted %.6g", name, ratio,
             (double)s->min_ratio_ppm / 1e6);
        j->missed++;
    }
}

/* A threshold that nothing was held against was not kept. How many there are. */
static unsigned find_not_judged(const struct lab_settings *s, const struct judged *j,
                                json_t *findings)
{
    const struct {
        bool asked;
        const char *name, *lacks;
    } all[THRESHOLDS] = {
        [MAX_P99] = {s->max_p99_ns != 0,    "max-p99",   "has a latency"                       },
        [MIN_GBPS] = {s->min_kbps != 0,      "min-gbps",  "has a throughput (atomics have none)"},
        [MIN_RATIO] = {s->min_ratio_ppm != 0, "min-ratio",
                     "has a baseline over TCP (atomics have none)"                             },
    };
    unsigned count = 0;
    for (unsigned t = 0; t < THRESHOLDS; t++) {
        if (!all[t].asked || j->cases[t] > 0)
            continue;
        find(findings, "NOT JUDGED %s: no case %s", all[t].name, all[t].lacks);
        count++;
    }
    return count;
}

/* Which of fill, checksum and copy takes most, of the ends that count. */
static enum lab_part largest(const json_t *a, const json_t *b, unsigned *share)
{
    enum lab_part most = contents[0];
    *share = 0;
    for (unsigned i = 0; i < CONTENTS; i++) {
        unsigned one = lab_verdict_part_percent(a, contents[i]) +
                       (b != NULL ? lab_verdict_part_percent(b, contents[i]) : 0);
        if (one > *share) {
            *share = one;
            most = contents[i];
        }
    }
    return most;
}

/* One message at a time goes through one end after the other, so their shares add up; of many, the
 * end that takes longer holds up the rest. */
static void find_bottleneck(const struct lab_result *r, json_t *findings)
{
    json_t *source = lab_side_json(&r->source);
    unsigned here = lab_verdict_contents_percent(source);
    unsigned there = lab_verdict_contents_percent(r->target), share;
    bool alone = r->c.depth == 1 && r->c.qps <= 1;
    char what[LAB_CASE_BYTES], who[96];
    unsigned all = alone ? here + there : here > there ? here : there;
    if (alone && here > 0 && there > 0)
        snprintf(who, sizeof(who),
                 "the ends, one after the other, spend %u %% (source %u, target %u)", all, here,
                 there);
    else
        snprintf(who, sizeof(who), "the %s spends %u %%", here > there ? "source" : "target", all);
    enum lab_part part = alone ? largest(source, r->target, &share)
                               : largest(here > there ? source : r->target, NULL, &share);
    if (all > CONTENTS_LIMIT_PERCENT)
        find(findings,
             "%s: %s of the time on filling, checksums and copies, most of it %s (%u %%): they "
             "limit "
             "this case, not the transport",
             lab_case_say(&r->c, what), who, lab_part_name(part), share);
    json_decref(source);
}

/* Who polls takes all of the CPU that it gets. Where that is much less than the time, it waited for
 * a CPU that others had: the other end, mostly. */
struct starved {
    unsigned cases, of, least; /* percent */
    const char *end;
    const struct lab_result *worst;
};

bool lab_verdict_lacks_cpu(unsigned percent)
{
    return percent > 0 && percent < CPU_LIMIT_PERCENT;
}

/* Percent that the end had which had less, and which that is; 0: does not poll, or not known.
 * Before the one message of a path both rest. */
static unsigned least_cpu_percent(const struct lab_settings *s, const struct lab_result *r,
                                  const char **end)
{
    json_t *source = lab_side_json(&r->source);
    unsigned here = lab_verdict_cpu_percent(source), there = lab_verdict_cpu_percent(r->target);
    json_decref(source);
    if (r->c.op == LAB_ATOMIC)
        there = here; /* its target sleeps until the end: the NIC does all */
    *end = there < here ? "target" : "source";
    return s->wait != LAB_POLL || s->path != 0 ? 0 : there < here ? there : here;
}

bool lab_verdict_starved(const struct lab_settings *s, const struct lab_result *r)
{
    const char *end;
    return lab_verdict_lacks_cpu(least_cpu_percent(s, r, &end));
}

bool lab_verdict_few(const struct lab_result *r)
{
    return r->c.iterations < LAB_VERDICT_LEAST_MESSAGES;
}

const char *lab_verdict_doubt(const struct lab_settings *s, const struct lab_result *r)
{
    if (lab_verdict_few(r))
        return "few messages";
    return r->c.op != LAB_TCP && lab_verdict_starved(s, r) ? "no CPU" : NULL;
}

static void look_for_cpu(const struct lab_settings *s, const struct lab_result *r,
                         struct starved *x)
{
    const char *end;
    unsigned had = least_cpu_percent(s, r, &end);
    x->of += had > 0;
    if (!lab_verdict_starved(s, r))
        return;
    x->cases++;
    if (x->worst != NULL && x->least <= had)
        return;
    x->worst = r;
    x->least = had;
    x->end = end;
}

static void find_starved(const struct starved *x, json_t *findings)
{
    char what[LAB_CASE_BYTES];
    if (x->cases == 0)
        return;
    find(findings,
         "in %u of %u cases an end that polls had no CPU of its own (least: %s: the %s ran for %u "
         "%% "
         "of the time): it waits for other threads, of the other end or of the machine, and "
         "latencies and throughput tell of the scheduler, too; give each end a CPU, or use --wait "
         "event",
         x->cases, x->of, lab_case_say(&x->worst->c, what), x->end, x->least);
}

/* What begins the summary is of data and thresholds, the rest of TCP, where there is a load. */
static json_t *summary(const struct lab_settings *s, const struct lab_run *run, const json_t *pays,
                       const char *begin)
{
    if (run->count == 0 || s->path != 0)
        return json_string(begin);
    return json_sprintf("%s; %s", begin, json_string_value(json_object_get(pays, "summary")));
}

json_t *lab_verdict_make(const struct lab_settings *s, const struct lab_run *run)
{
    json_t *findings = json_array();
    struct judged judged = {{0}, 0};
    struct starved starved = {0};
    bool wrong = false;
    for (unsigned i = 0; i < run->count; i++) {
        const struct lab_result *r = &run->results[i];
        wrong |= lab_verdict_faults(r) > 0;
        find_faults(r, findings);
        if (r->c.op == LAB_TCP)
            continue;
        find_missed(s, run, r, &judged, findings);
        if (s->path == 0)
            find_bottleneck(r, findings);
        look_for_cpu(s, r, &starved);
    }
    find_starved(&starved, findings);
    unsigned not_judged = find_not_judged(s, &judged, findings);
    if (run->one_node)
        find(findings,
             "numa: both ends have one NUMA node, so near and far are the same: measured once");
    wrong |= lab_experiment_failed(run->experiments, findings);
    enum lab_exit code = wrong                                 ? LAB_EXIT_WRONG_DATA
                         : judged.missed > 0 || not_judged > 0 ? LAB_EXIT_MISSED
                                                               : LAB_EXIT_PASSED;
    const char *begin = wrong               ? "WRONG DATA"
                        : judged.missed > 0 ? "MISSED a threshold"
                        : not_judged > 0    ? "a threshold is NOT JUDGED"
                                            : "passed";
    json_t *pays = lab_pays_make(s, run);
    return json_pack("{s:i,s:b,s:o,s:o,s:o}", "exit", (int)code, "passed", code == LAB_EXIT_PASSED,
                     "summary", summary(s, run, pays, begin), "findings", findings, "tcp", pays);
}
