/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * import.c: the text files of the public ns-3 HPCC simulator. Topology: "nodes switches links", the
 * switches' numbers, then "src dst rate delay error" a link. Flows: their count, then "src dst
 * priority port bytes start_seconds" each. Words are separated by any white space. What came of
 * both is also made a scenario in YAML, which repeats the run.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "scenario/quantity.h"
#include "scenario/record.h"
#include "scenario/scenario.h"

enum { MAX_WORD = 64 };

struct words {
    FILE *file;
    const char *path;
    unsigned line;
    char word[MAX_WORD];
    struct scenario_error *error;
};

static bool complain(struct words *w, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool complain(struct words *w, const char *field, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    snprintf(w->error->text, sizeof(w->error->text), "%s:%u: %s: %s", w->path, w->line, field,
             what);
    return false;
}

static bool word(struct words *w, const char *field)
{
    int c = getc(w->file);
    size_t n = 0;
    for (; c != EOF && isspace(c); c = getc(w->file))
        w->line += c == '\n';
    for (; c != EOF && !isspace(c); c = getc(w->file)) {
        if (n == MAX_WORD - 1)
            return complain(w, field, "a word of more than %d letters", MAX_WORD - 1);
        w->word[n++] = (char)c;
    }
    if (c != EOF)
        ungetc(c, w->file);
    w->word[n] = '\0';
    return true;
}

static bool next(struct words *w, const char *field)
{
    return word(w, field) &&
           (w->word[0] != '\0' || complain(w, field, "the file ends where a value is expected"));
}

/* Behind so many, as the file has said, there is no other. */
static bool end(struct words *w, const char *field, uint32_t count)
{
    return word(w, field) &&
           (w->word[0] == '\0' ||
            complain(w, field,
                     "'%s' is behind all %" PRIu32 " that the file begins with; its end "
                     "is expected, or a larger number there",
                     w->word, count));
}

static bool quantity(struct words *w, const char *field, enum quantity_kind kind, uint64_t most,
                     uint64_t *out)
{
    if (!next(w, field))
        return false;
    if (!quantity_parse(w->word, kind, out))
        return complain(w, field, "'%s' is not %s", w->word, quantity_example(kind));
    char text[QUANTITY_TEXT_BYTES];
    if (*out > most)
        return complain(w, field, "%s is too large, at most %s is expected", w->word,
                        quantity_print(most, kind, text));
    return true;
}

static bool number(struct words *w, const char *field, uint64_t most, uint32_t *out)
{
    uint64_t value;
    if (!quantity(w, field, QUANTITY_COUNT, most, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool begin(struct words *w, const char *path, struct scenario_error *error)
{
    *w = (struct words){.file = fopen(path, "r"), .path = path, .line = 1, .error = error};
    if (w->file == NULL)
        snprintf(error->text, sizeof(error->text), "%s: %s", path, strerror(errno));
    return w->file != NULL;
}

/* The error of a link is the share of packets it loses. */
static bool read_link(struct words *w, struct scenario *s)
{
    struct fabric_link link = {0};
    uint64_t loss;
    uint32_t last = s->topology.nodes - 1;
    if (!number(w, "src", last, &link.node[0]) || !number(w, "dst", last, &link.node[1]))
        return false;
    if (link.node[0] == link.node[1])
        return complain(w, "dst", "%" PRIu32 " is linked to itself, another node is expected",
                        link.node[0]);
    if (!quantity(w, "rate", QUANTITY_RATE, UINT64_C(10000000000000), &link.rate_bps))
        return false;
    if (link.rate_bps < 1000000)
        return complain(w, "rate", "%s is too slow, at least 1Mbps is expected", w->word);
    if (!quantity(w, "delay", QUANTITY_TIME, 1000 * FABRIC_MS, &link.delay_ps) ||
        !quantity(w, "error", QUANTITY_PPM, 1000000, &loss))
        return false;
    link.loss_ppm = (uint32_t)loss;
    s->line = w->line;
    return scenario_add_link(s, &link) || complain(w, "links", "too many for the memory");
}

static bool read_topology(struct words *w, struct scenario *s)
{
    uint32_t nodes, switches, links;
    if (!number(w, "nodes", FABRIC_MAX_NODES, &nodes) || !number(w, "switches", nodes, &switches) ||
        !number(w, "links", FABRIC_MAX_LINKS, &links))
        return false;
    if (nodes < 2)
        return complain(w, "nodes", "%" PRIu32 ", at least 2 are expected", nodes);
    s->line = s->topology_line = w->line;
    for (uint32_t i = 0; i < nodes; i++) {
        char name[SCENARIO_NAME_BYTES];
        snprintf(name, sizeof(name), "%" PRIu32, i);
        if (!scenario_add_node(s, false, name))
            return complain(w, "nodes", "too many for the memory");
    }
    for (uint32_t i = 0; i < switches; i++) {
        uint32_t node;
        if (!number(w, "switch", nodes - 1, &node))
            return false;
        if (s->is_switch[node] != 0)
            return complain(w, "switch", "%" PRIu32 " is listed twice", node);
        s->is_switch[node] = 1;
    }
    for (uint32_t i = 0; i < links; i++)
        if (!read_link(w, s))
            return false;
    return end(w, "links", links);
}

bool scenario_import_topology(struct scenario *s, const char *path, struct scenario_error *error)
{
    struct words w;
    if (!begin(&w, path, error))
        return false;
    s->topology_path = strdup(path);
    bool ok = read_topology(&w, s);
    fclose(w.file);
    return ok;
}

static bool host(struct words *w, const struct scenario *s, const char *field, uint32_t *out)
{
    if (!number(w, field, s->topology.nodes - 1, out))
        return false;
    return s->is_switch[*out] == 0 ||
           complain(w, field, "%s is a switch, a host is expected", w->word);
}

static bool read_flow(struct words *w, struct scenario *s)
{
    struct fabric_flow flow = {.group = FABRIC_NO_GROUP, .after = FABRIC_NO_GROUP};
    uint32_t priority, port;
    if (!host(w, s, "src", &flow.src) || !host(w, s, "dst", &flow.dst))
        return false;
    if (flow.src == flow.dst)
        return complain(w, "dst", "%s is the source itself, another host is expected", w->word);
    if (!number(w, "priority", FABRIC_PRIORITIES - 1, &priority) ||
        !number(w, "port", 65535, &port) ||
        !quantity(w, "bytes", QUANTITY_BYTES, UINT64_C(1) << 50, &flow.bytes))
        return false;
    if (flow.bytes == 0)
        return complain(w, "bytes", "0, at least 1 is expected");
    if (!next(w, "start"))
        return false;
    char seconds[MAX_WORD + 2];
    snprintf(seconds, sizeof(seconds), "%ss", w->word);
    if (!quantity_parse(seconds, QUANTITY_TIME, &flow.start_ps) ||
        flow.start_ps > SCENARIO_MAX_TIME_PS)
        return complain(w, "start", "'%s' is not a time in seconds, up to 3600", w->word);
    flow.priority = (uint8_t)priority;
    s->line = w->line;
    return scenario_add_flow(s, &flow) || complain(w, "flows", "too many for the memory");
}

bool scenario_import_flows(struct scenario *s, const char *path, struct scenario_error *error)
{
    struct words w;
    uint32_t flows;
    if (!begin(&w, path, error))
        return false;
    s->path = strdup(path);
    bool ok = number(&w, "flows", FABRIC_MAX_FLOWS, &flows);
    s->line = w.line;
    for (uint32_t i = 0; ok && i < flows; i++)
        ok = read_flow(&w, s);
    ok = ok && end(&w, "flows", flows);
    fclose(w.file);
    return ok;
}

/* Part `at` of the path is an item of a list. */
__attribute__((format(printf, 4, 5))) static void put(struct record *r, unsigned at,
                                                      const char *value, const char *format, ...)
{
    char path[RECORD_PATH_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    record_put(r, path, UINT32_C(1) << at & ~UINT32_C(1), value);
}

static void put_topology(struct record *r, const struct scenario *s)
{
    char text[QUANTITY_TEXT_BYTES];
    put(r, 0, "graph", "topology.shape");
    for (uint32_t i = 0; i < s->topology.nodes; i++)
        put(r, 2, s->name[i], "topology.nodes.%" PRIu32, i);
    for (uint32_t i = 0, n = 0; i < s->topology.nodes; i++)
        if (s->is_switch[i] != 0)
            put(r, 2, s->name[i], "topology.switches.%" PRIu32, n++);
    for (uint32_t i = 0; i < s->topology.links; i++) {
        const struct fabric_link *l = &s->link[i];
        put(r, 2, s->name[l->node[0]], "topology.links.%" PRIu32 ".a", i);
        put(r, 2, s->name[l->node[1]], "topology.links.%" PRIu32 ".b", i);
        put(r, 2, quantity_print(l->rate_bps, QUANTITY_RATE, text),
            "topology.links.%" PRIu32 ".rate", i);
        put(r, 2, quantity_print(l->delay_ps, QUANTITY_TIME, text),
            "topology.links.%" PRIu32 ".delay", i);
        put(r, 2, quantity_print(l->loss_ppm, QUANTITY_PPM, text),
            "topology.links.%" PRIu32 ".loss", i);
    }
}

/* The first, as a pattern for all. */
static void put_flow(struct record *r, const struct scenario *s)
{
    put(r, 1, "flow", "workload.0.op");
    put(r, 1, s->name[s->flow->src], "workload.0.from");
    put(r, 1, s->name[s->flow->dst], "workload.0.to");
}

/* What options of an import change in the profile. */
static void put_config(struct record *r, const struct fabric_config *c)
{
    static const char *const watchdogs[] = {"off", "drop", "forward", "alert"};
    const struct fabric_switches *w = &c->switches;
    char text[QUANTITY_TEXT_BYTES];
    put(r, 0, quantity_print(w->buffer_bytes, QUANTITY_BYTES, text), "switches.buffer");
    put(r, 0, quantity_print(w->kmin_bytes, QUANTITY_BYTES, text), "switches.ecn.kmin");
    if (w->kmax_bytes <= w->buffer_bytes) /* else it is that of the profile, and cannot be said */
        put(r, 0, quantity_print(w->kmax_bytes, QUANTITY_BYTES, text), "switches.ecn.kmax");
    put(r, 0, quantity_print(w->pmax_ppm, QUANTITY_PPM, text), "switches.ecn.pmax");
    put(r, 0, c->hosts.cc != NULL ? c->hosts.cc : "none", "hosts.cc");
    put(r, 0, watchdogs[c->watchdog], "watchdog.action");
    if (c->watchdog == WATCHDOG_OFF)
        return;
    put(r, 0, quantity_print(c->detect_ps, QUANTITY_TIME, text), "watchdog.detect");
    put(r, 0, quantity_print(c->restore_ps, QUANTITY_TIME, text), "watchdog.restore");
}

/* Names of nodes are their numbers: no quotes. */
static char *import_text(const struct scenario *s)
{
    struct record r;
    char text[QUANTITY_TEXT_BYTES];
    if (!record_begin(&r))
        return NULL;
    record_put_text(&r, "name", 0, s->title);
    put(&r, 0, "hpcc-compat", "profile");
    put(&r, 0, quantity_print(s->config.seed, QUANTITY_COUNT, text), "seed");
    put_topology(&r, s);
    put_config(&r, &s->config);
    put_flow(&r, s);
    return record_end(&r, true);
}

/* A flow's own value of a field; NULL: the pattern's. */
static const char *value_of(const struct scenario *s, const struct fabric_flow *w,
                            const char *field, char text[QUANTITY_TEXT_BYTES])
{
    if (strcmp(field, "bytes") == 0)
        return quantity_print(w->bytes, QUANTITY_BYTES, text);
    if (strcmp(field, "start") == 0)
        return quantity_print(w->start_ps, QUANTITY_TIME, text);
    if (strcmp(field, "priority") == 0)
        return quantity_print(w->priority, QUANTITY_COUNT, text);
    bool from = strcmp(field, "from") == 0;
    if (!from && strcmp(field, "to") != 0)
        return NULL;
    snprintf(text, QUANTITY_TEXT_BYTES, "\"%s\"", s->name[from ? w->src : w->dst]);
    return text;
}

/* In the pattern's lines, a field each. */
static void write_flow(FILE *out, const struct scenario *s, const struct fabric_flow *w,
                       const char *pattern)
{
    for (const char *line = pattern; *line != '\0'; line += strcspn(line, "\n") + 1) {
        char field[MAX_WORD], text[QUANTITY_TEXT_BYTES];
        int before = (int)strspn(line, " -"), n = (int)strcspn(line + before, ":");
        snprintf(field, sizeof(field), "%.*s", n, line + before);
        const char *value = value_of(s, w, field, text);
        if (value != NULL)
            fprintf(out, "%.*s%s: %s\n", before, line, field, value);
        else
            fprintf(out, "%.*s\n", (int)strcspn(line, "\n"), line);
    }
}

/* The scenario with the pattern's flow is read once, for what fields there are and their defaults;
 * all flows at once would take much more memory than the run. */
static char *whole_text(const struct scenario *s, const char *first)
{
    static const char workload[] = "\nworkload:\n";
    const char *pattern = strstr(first, workload);
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    assert(pattern != NULL); /* it is the last of all */
    pattern += sizeof(workload) - 1;
    fprintf(out, "%.*s", (int)(pattern - first), first);
    for (uint32_t i = 0; i < s->flows; i++)
        write_flow(out, s, &s->flow[i], pattern);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

bool scenario_import_end(struct scenario *s, struct scenario_error *error)
{
    struct scenario copy;
    if (s->flows == 0)
        return true; /* scenario_make says so */
    record_sane(s->title);
    char *text = import_text(s);
    scenario_init(&copy);
    bool ok = text == NULL || scenario_read_text(&copy, s->title, text, NULL, 0, error);
    if (ok && text != NULL)
        s->text = whole_text(s, copy.text);
    if (ok && s->text == NULL)
        snprintf(error->text, sizeof(error->text), "%s: no memory for a copy", s->title);
    scenario_free(&copy);
    free(text);
    return s->text != NULL;
}
