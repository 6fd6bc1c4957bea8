/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_record.c: figures become members. Times are integers of ns and end with _ns; a ratio is
 * better when it is larger.
 */
#include "lab/lab_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "lab/lab_path.h"
#include "lab/lab_text.h"
#include "lab/lab_verdict.h"

static json_t *rounded(double value, double steps)
{
    return json_real(round(value * steps) / steps);
}

static json_t *histogram(const struct lab_hist *h)
{
    json_t *all = json_array();
    unsigned at = 0;
    uint64_t highest, count;
    while (lab_hist_next(h, &at, &highest, &count))
        json_array_append_new(all, json_pack("[I,I]", (json_int_t)highest, (json_int_t)count));
    return all;
}

/* 0: the mean. */
static const struct {
    const char *name, *bare;
    unsigned permille;
} points[] = {
    {"mean_ns", "mean", 0   },
    {"p50_ns",  "p50",  500 },
    {"p99_ns",  "p99",  990 },
    {"p999_ns", "p999", 999 },
    {"max_ns",  "max",  1000},
};
enum { POINTS = sizeof(points) / sizeof(points[0]) };

json_t *lab_record_hist(const struct lab_hist *h)
{
    json_t *o = json_pack("{s:I,s:I,s:I}", "samples", (json_int_t)h->samples, "mean_ns",
                          (json_int_t)lab_hist_mean(h), "min_ns", (json_int_t)h->min);
    for (unsigned i = 1; i < POINTS; i++)
        json_object_set_new(o, points[i].name,
                            json_integer((json_int_t)lab_hist_permille(h, points[i].permille)));
    json_object_set_new(o, "histogram_ns", histogram(h));
    return o;
}

static void add_ratio(json_t *o, const char *name, double ratio)
{
    if (ratio > 0)
        json_object_set_new(o, name, rounded(ratio, ratio < 0.01 ? 1e8 : 1e4));
}

/* like: TCP has the same measure. */
static void add_measure(json_t *measures, const struct lab_end *e, const struct lab_run *run,
                        const struct lab_result *r, struct lab_measure m, const struct lab_hist *h,
                        bool like)
{
    if (m.name == NULL || h->samples == 0)
        return;
    json_t *o = json_pack("{s:s,s:s,s:s,s:s}", "name", m.name, "clock", "source", "starts",
                          m.starts, "stops", m.stops),
           *figures = lab_record_hist(h);
    json_object_update(o, figures);
    json_decref(figures);
    json_t *tcp = json_object(), *copy = json_object();
    for (unsigned i = 0; i < POINTS; i++) {
        if (like)
            add_ratio(tcp, points[i].bare, lab_verdict_tcp_ratio(run, r, h, points[i].permille));
        add_ratio(copy, points[i].bare,
                  lab_verdict_copy_ratio(&e->settings, run, r, h, points[i].permille));
    }
    if (json_object_get(tcp, "p50") != NULL)
        json_object_set(o, "latency_ratio_tcp", json_object_get(tcp, "p50"));
    if (json_object_size(tcp) > 0)
        json_object_set(o, "ratios_tcp", tcp);
    if (json_object_size(copy) > 0)
        json_object_set(o, "ratios_memcpy", copy);
    json_decref(tcp);
    json_decref(copy);
    json_array_append_new(measures, o);
}

/* Of several queue pairs the mean. */
static json_t *batches_json(const struct lab_result *r)
{
    json_t *all = json_array();
    uint32_t qps = r->c.qps > 1 ? r->c.qps : 1;
    for (unsigned i = 0; i < r->batches.count; i++)
        json_array_append_new(all, json_integer((json_int_t)(r->batches.ns[i] / qps)));
    return all;
}

static json_t *case_json(const struct lab_end *e, const struct lab_run *run,
                         const struct lab_result *r)
{
    const struct lab_settings *s = &e->settings;
    json_t *measures = json_array();
    bool acknowledged = lab_verdict_latency(r) == &r->acknowledged;
    add_measure(measures, e, run, r, lab_case_completion(r->c.op), &r->completion, !acknowledged);
    add_measure(measures, e, run, r, lab_case_acknowledged(r->c.op), &r->acknowledged,
                acknowledged);
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:O}", "op",
                  lab_case_name(&r->c), "buffers", lab_way_name(r->c.way), "transport",
                  r->c.op == LAB_TCP ? "tcp" : lab_transport_name((enum lab_transport)s->transport),
                  "size", (json_int_t)r->c.size, "depth", (json_int_t)r->c.depth, "messages",
                  (json_int_t)r->c.iterations, "warmup", (json_int_t)r->c.warmup, "elapsed_ns",
                  (json_int_t)r->elapsed_ns, "gbps", rounded(lab_verdict_gbps(r), 1e6),
                  "messages_per_s", rounded(lab_verdict_rate(r), 1), "measures", measures, "source",
                  lab_side_json(&r->source), "target", r->target);
    json_object_set_new(o, "offset", json_integer((json_int_t)r->c.offset));
    if (r->batches.count > 0)
        json_object_set_new(o, "batches_ns", batches_json(r));
    const char *doubt = lab_verdict_doubt(s, r);
    if (doubt != NULL)
        json_object_set_new(o, "doubt", json_string(doubt));
    if (r->c.near != LAB_ANYWHERE)
        json_object_set_new(o, "numa", json_string(lab_near_name(r->c.near)));
    if (r->queue_pairs != NULL) {
        json_object_set_new(o, "qps", json_integer((json_int_t)r->c.qps));
        json_object_set_new(o, "threads", json_integer((json_int_t)r->c.threads));
        json_object_set(o, "queue_pairs", r->queue_pairs);
    }
    if (r->trace != NULL && r->c.op != LAB_TCP)
        json_object_set_new(o, "path",
                            lab_path_make((enum lab_op)r->c.op, (enum lab_transport)s->transport,
                                          r->c.size, r->trace, json_object_get(r->target, "trace"),
                                          !e->one_clock));
    double cpu_us = lab_verdict_cpu_us(r);
    if (cpu_us > 0)
        json_object_set_new(o, "cpu_us_a_message", rounded(cpu_us, 1e3));
    add_ratio(o, "throughput_ratio_tcp", lab_verdict_throughput_ratio(run, r));
    add_ratio(o, "throughput_ratio_memcpy", lab_verdict_memcpy_ratio(s, run, r));
    add_ratio(o, "cpu_ratio_tcp", lab_verdict_tcp_cpu_ratio(run, r));
    add_ratio(o, "cpu_ratio_memcpy", lab_verdict_copy_cpu_ratio(s, run, r));
    return o;
}

static json_t *memcpy_json(const struct lab_settings *s, const struct lab_run *run)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < s->sizes.count; i++)
        if (run->memcpy_ns[i] > 0)
            json_array_append_new(
                all, json_pack("{s:I,s:o,s:o}", "size", (json_int_t)s->sizes.value[i], "ns",
                               rounded(run->memcpy_ns[i], 1e3), "gbps",
                               rounded(8.0 * s->sizes.value[i] / run->memcpy_ns[i], 1e3)));
    return all;
}

static json_t *settings_json(const struct lab_settings *s)
{
    json_t *o = json_object();
    for (unsigned i = 0; i < lab_setting_count; i++) {
        char text[LAB_MAX_TEXT + LAB_MAX_LIST * 12];
        lab_settings_text(s, i, text, sizeof(text));
        json_object_set_new(o, lab_setting_table[i].name, lab_text_json(text));
    }
    return o;
}

static json_t *now_json(void)
{
    char text[32];
    time_t now = time(NULL);
    struct tm t;
    gmtime_r(&now, &t);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &t);
    return json_string(text);
}

json_t *lab_record_make(const struct lab_end *e, const struct lab_run *run, const char *error)
{
    json_t *cases = json_array();
    for (unsigned i = 0; i < run->count; i++)
        json_array_append_new(cases, case_json(e, run, &run->results[i]));
    json_t *o = json_pack("{s:s,s:i,s:o,s:o,s:o,s:O?,s:o,s:o}", "record", "verbena lab", "version",
                          LAB_RECORD_VERSION, "ended", now_json(), "settings",
                          settings_json(&e->settings), "source", lab_session_self(e), "target",
                          run->target, "memcpy", memcpy_json(&e->settings, run), "cases", cases);
    if (json_array_size(run->experiments) > 0)
        json_object_set(o, "experiments", run->experiments);
    if (error != NULL)
        json_object_set_new(o, "error", lab_text_json(error));
    else
        json_object_set_new(o, "verdict", lab_verdict_make(&e->settings, run));
    return o;
}

bool lab_record_is_of_many(const json_t *record)
{
    return json_is_array(json_object_get(record, "meetings"));
}

int lab_record_write(const json_t *record, FILE *out)
{
    errno = 0;
    if (json_dumpf(record, out, JSON_COMPACT | JSON_REAL_PRECISION(10)) != 0 ||
        fputc('\n', out) == EOF || fflush(out) != 0)
        return errno != 0 ? -errno : -EIO;
    return 0;
}
