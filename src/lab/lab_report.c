/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_report.c: the record as text: a table of figures, where the time went, and the verdict.
 */
#include <errno.h>
#include <string.h>

#include "lab/lab_experiment.h"
#include "lab/lab_record.h"
#include "lab/lab_side.h"

const char *lab_report_bytes(uint64_t bytes, char out[24])
{
    unsigned long long n = bytes;
    if (n >= 1 << 20 && n % (1 << 20) == 0)
        snprintf(out, 24, "%lluMiB", n >> 20);
    else if (n >= 1 << 10 && n % (1 << 10) == 0)
        snprintf(out, 24, "%lluKiB", n >> 10);
    else
        snprintf(out, 24, "%lluB", n);
    return out;
}

const char *lab_report_number(double value, char out[24])
{
    snprintf(out, 24, value > 0 && value < 0.1 ? "%#.3g" : "%.3f", value);
    return out;
}

static long long integer(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

const char *lab_report_size(const json_t *c, char out[LAB_LABEL_BYTES])
{
    char size[24];
    long long offset = integer(c, "offset");
    lab_report_bytes((uint64_t)integer(c, "size"), size);
    if (offset != 0)
        snprintf(out, LAB_LABEL_BYTES, "%s+%lld", size, offset);
    else
        snprintf(out, LAB_LABEL_BYTES, "%s", size);
    return out;
}

const char *lab_report_depth(const json_t *c, char out[LAB_LABEL_BYTES])
{
    long long depth = integer(c, "depth"), qps = integer(c, "qps");
    if (qps > 1)
        snprintf(out, LAB_LABEL_BYTES, "%lldx%lld/%lld", depth, qps, integer(c, "threads"));
    else
        snprintf(out, LAB_LABEL_BYTES, "%lld", depth);
    return out;
}

static const char *text(const json_t *o, const char *name)
{
    const char *t = json_string_value(json_object_get(o, name));
    return t != NULL ? t : "?";
}

const char *lab_report_way(const json_t *c, char out[LAB_LABEL_BYTES])
{
    const char *way = json_string_value(json_object_get(c, "buffers"));
    const char *near = json_string_value(json_object_get(c, "numa"));
    snprintf(out, LAB_LABEL_BYTES, "%.20s%s%.20s", way != NULL ? way : "-", near != NULL ? "/" : "",
             near != NULL ? near : "");
    return out;
}

static void print_us(FILE *out, long long ns)
{
    double us = (double)ns / 1e3;
    fprintf(out, us < 1e4 ? " %8.1f" : " %8.0f", us);
}

static void print_ratio(FILE *out, const json_t *o, const char *name)
{
    const json_t *value = json_object_get(o, name);
    if (value == NULL)
        fprintf(out, " %7s", "-");
    else if (json_number_value(value) < 0.001)
        fprintf(out, " %7.1e", json_number_value(value));
    else if (json_number_value(value) < 0.1)
        fprintf(out, " %#7.3g", json_number_value(value));
    else
        fprintf(out, " %7.2f", json_number_value(value));
}

static void print_measure(FILE *out, const json_t *m)
{
    static const char *const points[] = {"mean_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"};
    for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++)
        print_us(out, integer(m, points[i]));
}

static void print_case(FILE *out, const json_t *c)
{
    char size[LAB_LABEL_BYTES], depth[LAB_LABEL_BYTES], way[LAB_LABEL_BYTES];
    size_t i;
    json_t *m;
    lab_report_size(c, size);
    json_array_foreach(json_object_get(c, "measures"), i, m)
    {
        fprintf(out, "%-40s %-9s %9s %8s", text(m, "name"), lab_report_way(c, way), size,
                lab_report_depth(c, depth));
        print_measure(out, m);
        print_ratio(out, m, "latency_ratio_tcp");
        if (i == 0) {
            char gbps[24];
            fprintf(out, " %8s %8.1f",
                    lab_report_number(json_number_value(json_object_get(c, "gbps")), gbps),
                    json_number_value(json_object_get(c, "messages_per_s")) / 1e3);
            print_ratio(out, c, "throughput_ratio_tcp");
            print_ratio(out, c, "throughput_ratio_memcpy");
        }
        fputc('\n', out);
    }
}

/* The time of an end, for each message. */
static void print_side(FILE *out, const json_t *c, const char *side)
{
    const json_t *s = json_object_get(c, side), *parts = json_object_get(s, "parts_ns");
    double messages = (double)(integer(c, "messages") + integer(c, "warmup"));
    char size[LAB_LABEL_BYTES], depth[LAB_LABEL_BYTES], way[LAB_LABEL_BYTES];
    if (messages <= 0)
        return;
    fprintf(out, "%-10s %-9s %9s %8s  %s", text(c, "op"), lab_report_way(c, way),
            lab_report_size(c, size), lab_report_depth(c, depth), side);
    for (unsigned p = 0; p < LAB_PARTS; p++)
        fprintf(out, " %8.2f",
                (double)integer(parts, lab_part_name((enum lab_part)p)) / 1e3 / messages);
    fprintf(out, " %8.2f %8.2f %9.1f %9.2f\n", (double)integer(s, "cpu_user_us") / messages,
            (double)integer(s, "cpu_system_us") / messages, (double)integer(s, "memory_kib") / 1024,
            (double)integer(s, "registered_bytes") / (1 << 20));
}

bool lab_report_is_trouble(const char *counter)
{
    static const char *const words[] = {"retr", "rnr", "nak", "out_of_seq",
                                        "drop", "err", "dup", "lost"};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(counter, words[i]) != NULL)
            return true;
    return false;
}

static void print_count(FILE *out, const json_t *c, const char *side, const char *name,
                        long long value)
{
    char size[LAB_LABEL_BYTES], depth[LAB_LABEL_BYTES], way[LAB_LABEL_BYTES];
    fprintf(out, "%s of %s at depth %s, %s, %s: %s %lld\n", text(c, "op"), lab_report_size(c, size),
            lab_report_depth(c, depth), lab_report_way(c, way), side, name, value);
}

/* What an application over UC or UD made good, and what changed of the device's counters that tells
 * of trouble. */
static void print_trouble(FILE *out, const json_t *c, const char *side)
{
    static const char *const own[] = {"resent", "lost", "duplicates"};
    const json_t *s = json_object_get(c, side);
    const char *name;
    json_t *value;
    for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (integer(s, own[i]) > 0)
            print_count(out, c, side, own[i], integer(s, own[i]));
    json_object_foreach(json_object_get(s, "counters"), name, value)
    {
        if (lab_report_is_trouble(name))
            print_count(out, c, side, name, json_integer_value(value));
    }
}

/* How evenly queue pairs share. */
static void print_spread(FILE *out, const json_t *c)
{
    const json_t *pairs = json_object_get(c, "queue_pairs");
    double least = 0, most = 0;
    size_t i;
    json_t *p;
    char size[LAB_LABEL_BYTES], depth[LAB_LABEL_BYTES], from[24], to[24];
    json_array_foreach(pairs, i, p)
    {
        double gbps = json_number_value(json_object_get(p, "gbps"));
        least = i == 0 || gbps < least ? gbps : least;
        most = gbps > most ? gbps : most;
    }
    if (json_array_size(pairs) > 0)
        fprintf(out, "%s of %s at depth %s: its queue pairs have %s to %s Gbit/s each\n",
                text(c, "op"), lab_report_size(c, size), lab_report_depth(c, depth),
                lab_report_number(least, from), lab_report_number(most, to));
}

static void print_end(FILE *out, const json_t *record, const char *side)
{
    const json_t *s = json_object_get(record, side);
    if (json_is_object(s))
        fprintf(out,
                "%s: %s, device %s (%s NIC), GID %s, MTU %lld, %lld CPUs, Linux %s, pool of "
                "%.2f MiB registered in %.1f us\n",
                side, text(s, "host"), text(s, "device"),
                strcmp(text(s, "nic"), "Verbena") == 0 ? "Verbena's" : "not Verbena's",
                text(s, "gid"), integer(s, "mtu"), integer(s, "cpus"), text(s, "kernel"),
                (double)integer(s, "registered_bytes") / (1 << 20),
                (double)integer(s, "register_ns") / 1e3);
}

/* Every figure over TCP's and memcpy's; TCP has an acknowledgement by the application, and no
 * completion. */
static void print_ratio_row(FILE *out, const json_t *c, const json_t *m, bool first)
{
    static const char *const points[] = {"mean", "p50", "p99", "p999", "max"};
    static const char *const whole[][2] = {
        {"throughput_ratio_tcp",    "cpu_ratio_tcp"   },
        {"throughput_ratio_memcpy", "cpu_ratio_memcpy"},
    };
    const json_t *of[] = {json_object_get(m, "ratios_tcp"), json_object_get(m, "ratios_memcpy")};
    char size[LAB_LABEL_BYTES], depth[LAB_LABEL_BYTES], way[LAB_LABEL_BYTES];
    fprintf(out, "%-40s %-9s %9s %8s", text(m, "name"), lab_report_way(c, way),
            lab_report_size(c, size), lab_report_depth(c, depth));
    for (unsigned b = 0; b < 2; b++) {
        fputs(b == 0 ? "" : " |", out);
        for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++)
            print_ratio(out, of[b], points[i]);
        for (unsigned i = 0; i < 2; i++)
            print_ratio(out, first ? c : NULL, whole[b][i]);
    }
    fputc('\n', out);
}

static void print_ratios(FILE *out, const json_t *cases)
{
    static const char *const heads[] = {"mean", "p50", "p99", "p99.9", "max", "rate", "CPU"};
    size_t i, k;
    json_t *c, *m;
    fprintf(
        out,
        "\nThe same as ratios, better when larger: over TCP's | over memcpy's (rate: of Gbit/s and "
        "of messages a second alike; CPU: of both ends, a message):\n%-40s %-9s %9s %8s",
        "measure", "buffers", "size", "depth");
    for (unsigned b = 0; b < 2; b++) {
        fputs(b == 0 ? "" : " |", out);
        for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
            fprintf(out, " %7s", heads[i]);
    }
    fputc('\n', out);
    json_array_foreach(cases, i, c)
    {
        json_array_foreach(json_object_get(c, "measures"), k, m) print_ratio_row(out, c, m, k == 0);
    }
}

static bool has_ratios(const json_t *cases)
{
    size_t i;
    json_t *c;
    json_array_foreach(cases, i, c)
    {
        if (json_object_get(c, "throughput_ratio_tcp") != NULL ||
            json_object_get(c, "throughput_ratio_memcpy") != NULL)
            return true;
    }
    return false;
}

static void print_tables(FILE *out, const json_t *cases)
{
    size_t i;
    json_t *c;
    fprintf(out, "\n%-40s %-9s %9s %8s %8s %8s %8s %8s %8s %7s %8s %8s %7s %7s\n", "measure (us)",
            "buffers", "size", "depth", "mean", "p50", "p99", "p99.9", "max", "x TCP", "Gbit/s",
            "1000/s", "x TCP", "x copy");
    json_array_foreach(cases, i, c) print_case(out, c);
    fprintf(out,
            "\nWhere the time of both ends went, in us a message (user, system: CPU time of all "
            "threads; reg.: registered for the NIC, the pool and what the case has beside "
            "it):\n%-10s %-9s %9s %8s  %-6s",
            "op", "buffers", "size", "depth", "end");
    for (unsigned p = 0; p < LAB_PARTS; p++)
        fprintf(out, " %8s", lab_part_name((enum lab_part)p));
    fprintf(out, " %8s %8s %9s %9s\n", "user", "system", "MiB", "reg. MiB");
    json_array_foreach(cases, i, c)
    {
        print_side(out, c, "source");
        print_side(out, c, "target");
    }
    if (has_ratios(cases))
        print_ratios(out, cases);
    fputc('\n', out);
    json_array_foreach(cases, i, c)
    {
        print_spread(out, c);
        print_trouble(out, c, "source");
        print_trouble(out, c, "target");
    }
}

/* Which clock, from where to where: once for each measure. */
static void print_clocks(FILE *out, const json_t *cases)
{
    json_t *seen = json_object(), *c, *m;
    size_t i, k;
    fprintf(out, "All times are of the source's clock:\n");
    json_array_foreach(cases, i, c)
    {
        json_array_foreach(json_object_get(c, "measures"), k, m)
        {
            if (json_object_get(seen, text(m, "name")) != NULL)
                continue;
            json_object_set_new(seen, text(m, "name"), json_true());
            fprintf(out, "  %s: starts %s; stops when %s\n", text(m, "name"), text(m, "starts"),
                    text(m, "stops"));
        }
    }
    json_decref(seen);
    fprintf(
        out,
        "x TCP: how many times better than the same over TCP, 1 is alike; x copy: throughput over "
        "memcpy's.\n");
}

int lab_report_write(const json_t *record, FILE *out)
{
    const json_t *cases = json_object_get(record, "cases");
    const json_t *verdict = json_object_get(record, "verdict");
    size_t i;
    json_t *finding, *measure;
    errno = 0;
    print_end(out, record, "source");
    print_end(out, record, "target");
    if (json_array_size(cases) > 0) {
        print_tables(out, cases);
        print_clocks(out, cases);
    }
    lab_experiment_write(json_object_get(record, "experiments"), out);
    fputc('\n', out);
    json_array_foreach(json_object_get(verdict, "findings"), i, finding)
        fprintf(out, "- %s\n", json_string_value(finding));
    json_array_foreach(json_object_get(json_object_get(verdict, "tcp"), "measures"), i, measure)
        fprintf(out, "- %s.\n", text(measure, "says"));
    if (verdict != NULL)
        fprintf(out, "Verdict: %s.\n", text(verdict, "summary"));
    else
        fprintf(out, "The run broke off: %s\n", text(record, "error"));
    if (fflush(out) != 0)
        return errno != 0 ? -errno : -EIO;
    return 0;
}
