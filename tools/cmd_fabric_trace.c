/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * cmd_fabric_trace.c: `verbena fabric trace FILE`: what a run has traced, as lines to read, CSV or
 * JSON, an object a line.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fabric/packet.h"
#include "scenario/trace_file.h"
#include "tool.h"

enum { MAX_FILTERS = 16 };

enum format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON, FORMATS };

struct options {
    const char *path;
    enum format format;
    const char *filter[MAX_FILTERS];
    unsigned filters;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    static const char *const names[FORMATS] = {"text", "csv", "json"};
    struct options *o = state->input;
    switch (key) {
    case 'f':
        for (unsigned i = 0; i < FORMATS; i++)
            if (strcmp(arg, names[i]) == 0) {
                o->format = (enum format)i;
                return 0;
            }
        argp_error(state, "--format: '%s' is unknown, text, csv or json is expected", arg);
        return 0;
    case 't':
        if (o->filters == MAX_FILTERS)
            argp_error(state, "--trace-filter: at most %d", MAX_FILTERS);
        o->filter[o->filters++] = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (o->path != NULL)
            argp_error(state, "one file at a time: '%s' is too many", arg);
        o->path = arg;
        return 0;
    case ARGP_KEY_END:
        if (o->path == NULL)
            argp_error(state, "no file given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"format",             'f', "FORMAT", 0, "text, csv or json", 0},
    {"trace-filter",            't', "FILTER", 0, "As of fabric run", 0},
    {0},
};

static const struct argp trace_argp = {
    .options = options,
    .parser = parse_option,
    .args_doc = "trace FILE",
    .doc = "Prints what `verbena fabric run --trace FILE` has left.\vExit codes: 0 printed; 64 "
           "wrong usage, 69 the file cannot be read and the message says why.",
};

/* What the kind's value is. */
static const char *value_name(unsigned kind)
{
    static const char *const names[FABRIC_TRACE_KINDS] = {
        [TRACE_SEND] = "queued", [TRACE_MARK] = "queued", [TRACE_PAUSE] = "quanta",
        [TRACE_START] = "bytes", [TRACE_FAIL] = "status",
    };
    return names[kind];
}

static void print_text(const struct trace_reader *r, const struct fabric_trace *e)
{
    printf("%" PRIu64 ".%03" PRIu64 " ns  %s/%" PRIu32 " %-6s", e->time_ps / 1000,
           e->time_ps % 1000, r->name[e->node], e->port, trace_kind_name(e->kind));
    if (e->priority < FABRIC_PRIORITIES)
        printf(" priority %u", e->priority);
    if (e->flow != FABRIC_TRACE_NONE)
        printf(" flow %" PRIu32, e->flow);
    if (e->frame != FABRIC_TRACE_NO_FRAME)
        printf(" %s %u bytes", trace_frame_name(e->frame), e->bytes);
    if (e->frame < PACKET_PFC)
        printf(" seq %" PRIu32, e->seq);
    if (value_name(e->kind) != NULL)
        printf(" %s %" PRIu32, value_name(e->kind), e->value);
    putchar('\n');
}

/* Numbers that are not there stay empty. */
static void print_csv(const struct fabric_trace *e)
{
    bool frame = e->frame != FABRIC_TRACE_NO_FRAME;
    printf("%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%s,", e->time_ps, e->node, e->port,
           trace_kind_name(e->kind));
    if (e->priority < FABRIC_PRIORITIES)
        printf("%u", e->priority);
    putchar(',');
    if (e->flow != FABRIC_TRACE_NONE)
        printf("%" PRIu32, e->flow);
    printf(",%s,", frame ? trace_frame_name(e->frame) : "");
    if (frame)
        printf("%u", e->bytes);
    putchar(',');
    if (e->frame < PACKET_PFC)
        printf("%" PRIu32, e->seq);
    putchar(',');
    if (value_name(e->kind) != NULL)
        printf("%" PRIu32, e->value);
    putchar('\n');
}

static void print_json(const struct trace_reader *r, const struct fabric_trace *e)
{
    printf("{\"time_ps\": %" PRIu64 ", \"node\": %" PRIu32 ", \"name\": \"", e->time_ps, e->node);
    for (const char *p = r->name[e->node]; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            putchar('\\');
        putchar((unsigned char)*p < 0x20 ? ' ' : *p);
    }
    printf("\", \"port\": %" PRIu32 ", \"event\": \"%s\"", e->port, trace_kind_name(e->kind));
    if (e->priority < FABRIC_PRIORITIES)
        printf(", \"priority\": %u", e->priority);
    if (e->flow != FABRIC_TRACE_NONE)
        printf(", \"flow\": %" PRIu32, e->flow);
    if (e->frame != FABRIC_TRACE_NO_FRAME)
        printf(", \"frame\": \"%s\", \"bytes\": %u", trace_frame_name(e->frame), e->bytes);
    if (e->frame < PACKET_PFC)
        printf(", \"seq\": %" PRIu32, e->seq);
    if (value_name(e->kind) != NULL)
        printf(", \"%s\": %" PRIu32, value_name(e->kind), e->value);
    puts("}");
}

static void print(const struct options *o, const struct trace_reader *r,
                  const struct fabric_trace *e)
{
    if (o->format == FORMAT_CSV)
        print_csv(e);
    else if (o->format == FORMAT_JSON)
        print_json(r, e);
    else
        print_text(r, e);
}

int cmd_fabric_trace(int argc, char **argv)
{
    struct options o = {0};
    struct trace_reader r;
    struct trace_filter filter = {0};
    struct scenario_error error;
    struct fabric_trace e;
    int got;
    argp_parse(&trace_argp, argc, argv, 0, NULL, &o);
    if (!trace_reader_open(&r, o.path, &error))
        tool_die(TOOL_UNAVAILABLE, "%s", error.text);
    struct trace_names names = {trace_reader_find, &r, r.nodes, 0, 0};
    for (uint32_t i = 0; i < r.nodes; i++)
        if (r.first_port[i + 1] - r.first_port[i] > names.ports)
            names.ports = r.first_port[i + 1] - r.first_port[i];
    for (unsigned i = 0; i < o.filters; i++)
        if (!trace_filter_add(&filter, o.filter[i], &names, &error))
            tool_die(TOOL_USAGE, "%s", error.text);
    if (r.next > 0)
        fprintf(stderr, "%" PRIu64 " older events made way for these\n", r.next);
    if (o.format == FORMAT_CSV)
        puts("time_ps,node,port,event,priority,flow,frame,bytes,seq,value");
    while ((got = trace_reader_next(&r, &e, &error)) == 1)
        if (trace_filter_takes(&filter, &e))
            print(&o, &r, &e);
    trace_reader_close(&r);
    if (got != 0)
        tool_die(TOOL_UNAVAILABLE, "%s", error.text);
    return TOOL_OK;
}
