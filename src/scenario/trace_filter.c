/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_filter.c: which events of a trace are wanted: fields with values, or ranges of numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scenario/trace_file.h"

enum { WORD_BYTES = 64 };

static const char *const kind_names[FABRIC_TRACE_KINDS] = {
    [TRACE_SEND] = "send",   [TRACE_ARRIVE] = "arrive", [TRACE_DROP] = "drop",
    [TRACE_MARK] = "mark",   [TRACE_PAUSE] = "pause",   [TRACE_RESUME] = "resume",
    [TRACE_START] = "start", [TRACE_FINISH] = "finish", [TRACE_FAIL] = "fail",
    [TRACE_STORM] = "storm", [TRACE_DOWN] = "down",     [TRACE_UP] = "up",
};

const char *trace_kind_name(unsigned kind)
{
    return kind < FABRIC_TRACE_KINDS ? kind_names[kind] : NULL;
}

const char *trace_frame_name(unsigned frame)
{
    static const char *const names[] = {"data", "ack", "nak", "cnp", "pfc"};
    return frame < sizeof(names) / sizeof(names[0]) ? names[frame] : "";
}

static bool number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    *out = (uint32_t)v;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && v < UINT32_MAX;
}

static uint32_t find_kind(const char *word)
{
    for (unsigned i = 0; i < FABRIC_TRACE_KINDS; i++)
        if (strcmp(kind_names[i], word) == 0)
            return i;
    return UINT32_MAX;
}

/* One value of a field: a name, a number, or numbers such as 3-7. */
static bool parse_value(const char *field, char *word, const struct trace_names *names,
                        uint32_t *from, uint32_t *to)
{
    *from = *to = UINT32_MAX;
    if (strcmp(field, "kind") == 0)
        *from = *to = find_kind(word);
    else if (strcmp(field, "node") == 0)
        *from = *to = names->find(names->arg, word);
    if (*from != UINT32_MAX)
        return true;
    if (strcmp(field, "kind") == 0)
        return false;
    char *dash = strchr(word, '-');
    if (dash != NULL)
        *dash = '\0';
    bool ok = number(word, from) && number(dash != NULL ? dash + 1 : word, to) && *from <= *to;
    if (dash != NULL)
        *dash = '-';
    return ok;
}

/* How many values a field has; 0: not known. A priority more than there are stands for none. */
static uint32_t values(const char *field, const struct trace_names *names)
{
    return strcmp(field, "node") == 0       ? names->nodes
           : strcmp(field, "port") == 0     ? names->ports
           : strcmp(field, "flow") == 0     ? names->flows
           : strcmp(field, "priority") == 0 ? FABRIC_PRIORITIES + 1
                                            : 0;
}

static struct trace_ranges *ranges_of(struct trace_filter *f, const char *field)
{
    return strcmp(field, "node") == 0       ? &f->node
           : strcmp(field, "port") == 0     ? &f->port
           : strcmp(field, "priority") == 0 ? &f->priority
           : strcmp(field, "flow") == 0     ? &f->flow
           : strcmp(field, "kind") == 0     ? &f->kind
                                            : NULL;
}

/* The next piece up to one of the ends, or the whole rest. */
static bool piece(const char **text, const char *ends, char word[WORD_BYTES])
{
    size_t n = strcspn(*text, ends);
    if (n == 0 || n >= WORD_BYTES)
        return false;
    memcpy(word, *text, n);
    word[n] = '\0';
    *text += n;
    return true;
}

static bool fail(struct scenario_error *error, const char *text, const char *what, const char *word)
{
    snprintf(error->text, sizeof(error->text), "--trace-filter %.100s: %s%s%s", text,
             word != NULL ? "'" : "", word != NULL ? word : "", what);
    return false;
}

#define FIELDS "node, port, priority, kind and flow"
#define KINDS                                                                                      \
    "send, arrive, drop, mark, pause, resume, start, finish, fail, storm, down and up are "        \
    "expected"

static bool parse_field(struct trace_ranges *r, const char *field, const char **p, const char *text,
                        const struct trace_names *names, struct scenario_error *error)
{
    char word[WORD_BYTES], most[WORD_BYTES];
    uint32_t count = values(field, names);
    do {
        (*p)++; /* = or + */
        if (r->count == TRACE_RANGES)
            return fail(error, text, "too many values of a field, at most 16 are expected", NULL);
        if (!piece(p, ",+", word))
            return fail(error, text, "a value is missing or too long", NULL);
        if (!parse_value(field, word, names, &r->from[r->count], &r->to[r->count]))
            return fail(error, text,
                        strcmp(field, "kind") == 0 ? "' is no kind of event; " KINDS
                        : strcmp(field, "node") == 0
                            ? "' is no node; a name or a number is expected"
                            : "' is no number; 3 or 3-7 is expected",
                        word);
        snprintf(most, sizeof(most), "' is too large; numbers up to %" PRIu32 " are expected",
                 count - 1);
        /* A range may be open above, but eight priorities are known to all. */
        bool priority = strcmp(field, "priority") == 0;
        if (count != 0 && (priority ? r->to : r->from)[r->count] >= count)
            return fail(error, text, most, word);
        r->count++;
    } while (**p == '+');
    return true;
}

bool trace_filter_add(struct trace_filter *filter, const char *text,
                      const struct trace_names *names, struct scenario_error *error)
{
    char field[WORD_BYTES];
    for (const char *p = text;; p++) {
        if (!piece(&p, "=,+", field) || *p != '=')
            return fail(error, text, "FIELD=VALUE is expected; fields are " FIELDS, NULL);
        struct trace_ranges *r = ranges_of(filter, field);
        if (r == NULL)
            return fail(error, text, "' is no field; " FIELDS " are expected", field);
        if (!parse_field(r, field, &p, text, names, error))
            return false;
        if (*p == '\0')
            return true;
    }
}

bool trace_ranges_take(const struct trace_ranges *r, uint32_t v)
{
    for (unsigned i = 0; i < r->count; i++)
        if (v >= r->from[i] && v <= r->to[i])
            return true;
    return r->count == 0;
}

bool trace_filter_takes(const struct trace_filter *f, const struct fabric_trace *e)
{
    return trace_ranges_take(&f->kind, e->kind) && trace_ranges_take(&f->node, e->node) &&
           trace_ranges_take(&f->port, e->port) && trace_ranges_take(&f->priority, e->priority) &&
           trace_ranges_take(&f->flow, e->flow);
}

static uint64_t *bits_create(uint64_t n)
{
    return calloc((size_t)(n / 64 + 1), sizeof(uint64_t));
}

static void bits_set(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

uint32_t *trace_ports_create(const struct fabric_topology *t)
{
    uint32_t *ports = calloc(t->nodes + (size_t)1, sizeof(*ports));
    for (uint32_t i = 0; ports != NULL && i < t->links; i++) {
        ports[t->link[i].node[0]]++;
        ports[t->link[i].node[1]]++;
    }
    return ports;
}

uint32_t trace_ports_most(const struct fabric_topology *t)
{
    uint32_t most = 0, *ports = trace_ports_create(t);
    for (uint32_t i = 0; ports != NULL && i < t->nodes; i++)
        most = ports[i] > most ? ports[i] : most;
    free(ports);
    return most;
}

/* The fabric counts ports node by node. */
static bool mask_ports(struct trace_mask *m, const struct trace_filter *filter,
                       const struct fabric_topology *t)
{
    if (filter->node.count + filter->port.count == 0)
        return true;
    uint32_t *ports = trace_ports_create(t);
    m->port = bits_create(2 * (uint64_t)t->links);
    bool ok = ports != NULL && m->port != NULL;
    uint64_t at = 0;
    for (uint32_t i = 0; ok && i < t->nodes; i++)
        for (uint32_t port = 0; port < ports[i]; port++, at++)
            if (trace_ranges_take(&filter->node, i) && trace_ranges_take(&filter->port, port))
                bits_set(m->port, at);
    free(ports);
    return ok;
}

static bool mask_flows(struct trace_mask *m, const struct trace_filter *filter, uint32_t flows)
{
    if (filter->flow.count == 0)
        return true;
    m->flow = bits_create(flows);
    for (uint32_t i = 0; m->flow != NULL && i < flows; i++)
        if (trace_ranges_take(&filter->flow, i))
            bits_set(m->flow, i);
    return m->flow != NULL;
}

bool trace_mask_make(struct trace_mask *m, const struct trace_filter *filter,
                     const struct scenario *s)
{
    *m = (struct trace_mask){0};
    for (uint32_t i = 0; i <= FABRIC_PRIORITIES; i++)
        if (trace_ranges_take(&filter->priority, i))
            m->priorities |= (uint16_t)(1u << i);
    if (mask_ports(m, filter, &s->topology) && mask_flows(m, filter, s->flows))
        return true;
    trace_mask_free(m);
    errno = ENOMEM;
    return false;
}

void trace_mask_free(struct trace_mask *m)
{
    free(m->port);
    free(m->flow);
    *m = (struct trace_mask){0};
}
