/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * page.c: the data of report.html: nodes and links, what ports did in each interval, flows and
 * their times. Levels over time are a letter each, 0 to 63 of the largest.
 */
#include "scenario/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "scenario/results.h"

enum {
    PORTS_MOST = 8192,   /* those with most pauses and queues */
    DRAWN_PORTS = 16384, /* of the largest fabric that is drawn */
    ROWS = 40,           /* of tables */
    DOTS = 1500,         /* flows in the picture of slowdowns */
    QUANTILES = 100,
    LEVELS = 63,
    HOSTS_FOLLOWED = 8, /* those that send or get most */
    MAX_SCENARIO_BYTES = 32768,
};

/* By scripts/embed.py. */
extern const char page_model_js[], page_stage_js[], page_charts_js[];

static uint64_t ns(uint64_t ps)
{
    return (ps + 500) / 1000;
}

static char level(uint64_t value, uint64_t most)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return letters[value == 0 ? 0 : value >= most ? LEVELS : (value * LEVELS + most - 1) / most];
}

static void put_nodes(FILE *out, const struct scenario *s)
{
    const struct fabric_topology *t = &s->topology;
    fputs("\"switches\":\"", out);
    for (uint32_t i = 0; i < t->nodes; i++)
        fputc(t->is_switch[i] != 0 ? '1' : '0', out);
    fputs("\",\"names\":[", out);
    for (uint32_t i = 0; i < t->nodes; i++) {
        fputs(i == 0 ? "" : ",", out);
        results_text(out, s->name[i]);
    }
    fputs("],\n\"links\":[", out); /* two nodes, Mbit/s, delay, MTU */
    for (uint32_t i = 0; i < t->links; i++) {
        const struct fabric_link *l = &t->link[i];
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 "]",
                i == 0 ? "" : ",", l->node[0], l->node[1], l->rate_bps / 1000000, ns(l->delay_ps),
                l->mtu_bytes);
    }
    fprintf(out, "],\n\"drawn\":%s,\n", 2 * t->links <= DRAWN_PORTS ? "true" : "false");
}

/* What is remembered of a port in the whole run. */
struct port_sum {
    uint32_t port;
    uint64_t paused_ps, peak_bytes, tx_bytes;
};

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_trouble(const void *a, const void *b)
{
    const struct port_sum *x = a, *y = b;
    int order = compare(y->paused_ps, x->paused_ps);
    if (order == 0)
        order = compare(y->peak_bytes, x->peak_bytes);
    return order != 0 ? order : compare(x->port, y->port);
}

static int by_number(const void *a, const void *b)
{
    const struct port_sum *x = a, *y = b;
    return compare(x->port, y->port);
}

static const struct samples_port *cell(const struct samples *m, uint32_t interval, uint32_t port)
{
    return &m->port[(size_t)interval * m->ports + port];
}

static struct port_sum *sum_ports(const struct samples *m, uint64_t *peak)
{
    struct port_sum *sum = calloc(m->ports + 1u, sizeof(*sum));
    for (uint32_t i = 0; sum != NULL && i < m->ports; i++) {
        sum[i].port = i;
        for (uint32_t t = 0; t < m->count; t++) {
            const struct samples_port *c = cell(m, t, i);
            sum[i].paused_ps += c->paused_ps;
            sum[i].tx_bytes += c->tx_bytes;
            if (c->peak_bytes > sum[i].peak_bytes)
                sum[i].peak_bytes = c->peak_bytes;
        }
        if (sum[i].peak_bytes > *peak)
            *peak = sum[i].peak_bytes;
    }
    return sum;
}

static uint64_t interval_ps(const struct samples *m, uint32_t interval)
{
    uint64_t begin = interval * m->interval_ps, end = begin + m->interval_ps;
    return end > m->end_ps && m->end_ps > begin ? m->end_ps - begin : m->interval_ps;
}

/* Queue, share of time paused, load, PFC frames received: a text each, without zeros at its end. */
static void put_port(FILE *out, const struct scenario *s, const struct samples *m,
                     const struct port_sum *sum, uint32_t link, uint64_t peak)
{
    uint64_t mbps = s->topology.link[link].rate_bps / 1000000;
    char text[4][SAMPLES_MOST];
    int used[4] = {0};
    for (uint32_t t = 0; t < m->count; t++) {
        const struct samples_port *c = cell(m, t, sum->port);
        uint64_t line = mbps * (interval_ps(m, t) / 1000) / 8000; /* bytes */
        text[0][t] = level(c->peak_bytes, peak);
        text[1][t] = level(c->paused_ps, interval_ps(m, t));
        text[2][t] = level(c->tx_bytes, line != 0 ? line : 1);
        text[3][t] = level(c->pauses, LEVELS);
        for (unsigned i = 0; i < 4; i++)
            if (text[i][t] != level(0, 1))
                used[i] = (int)t + 1;
    }
    fprintf(out, "\"%" PRIu32 "\":[", sum->port);
    for (unsigned i = 0; i < 4; i++)
        fprintf(out, "\"%.*s\",", used[i], text[i]);
    fprintf(out, "%" PRIu64 ",%" PRIu64 "]", sum->peak_bytes, ns(sum->paused_ps));
}

/* The link of each port. */
static uint32_t *links_of_ports(const struct scenario *s, const struct samples *m)
{
    const struct fabric_topology *t = &s->topology;
    uint32_t *next = calloc(t->nodes + 1u, sizeof(*next));
    uint32_t *link = calloc(m->ports + 1u, sizeof(*link));
    for (uint32_t i = 0; next != NULL && link != NULL && i < m->ports; i++) {
        uint32_t node = t->link[i / 2].node[i % 2];
        link[m->first_port[node] + next[node]++] = i / 2;
    }
    if (next == NULL) {
        free(link);
        link = NULL;
    }
    free(next);
    return link;
}

static int put_ports(FILE *out, const struct scenario *s, const struct samples *m)
{
    uint64_t peak = 1;
    struct port_sum *sum = sum_ports(m, &peak);
    uint32_t *link = links_of_ports(s, m), n = m->ports;
    if (sum == NULL || link == NULL) {
        free(sum);
        free(link);
        return -ENOMEM;
    }
    if (n > PORTS_MOST) {
        qsort(sum, n, sizeof(*sum), by_trouble);
        n = PORTS_MOST;
        qsort(sum, n, sizeof(*sum), by_number);
    }
    fprintf(out, "\"peak_bytes\":%" PRIu64 ",\n\"ports\":{", peak);
    const char *comma = "";
    for (uint32_t i = 0; i < n; i++) {
        if ((sum[i].tx_bytes | sum[i].paused_ps | sum[i].peak_bytes) == 0)
            continue;
        fputs(comma, out);
        put_port(out, s, m, &sum[i], link[sum[i].port], peak);
        comma = ",\n";
    }
    fputs("},\n", out);
    free(sum);
    free(link);
    return 0;
}

/* By port and priority, the longest queues first. */
static int by_queue(const void *a, const void *b)
{
    const struct fabric_port_result *x = a, *y = b;
    int order = compare(y->drops, x->drops);
    if (order == 0)
        order = compare(y->max_queue_bytes, x->max_queue_bytes);
    if (order == 0)
        order = compare(x->node, y->node);
    return order != 0 ? order : compare(x->port, y->port);
}

static int put_queues(FILE *out, const struct fabric *f)
{
    uint32_t n = fabric_ports(f), k = 0;
    struct fabric_port_result *q = calloc((size_t)n * FABRIC_PRIORITIES + 1, sizeof(*q));
    if (q == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        for (unsigned p = 0; p < FABRIC_PRIORITIES; p++) {
            struct fabric_port_result r;
            fabric_port_result(f, i, p, &r);
            if ((r.max_queue_bytes | r.paused_received_ps | r.drops) == 0)
                continue;
            r.port = r.port * FABRIC_PRIORITIES + p; /* both in one, for the order */
            q[k++] = r;
        }
    qsort(q, k, sizeof(*q), by_queue);
    fputs("\"queues\":[", out);
    for (uint32_t i = 0; i < k && i < ROWS; i++)
        fprintf(out,
                "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                i == 0 ? "" : ",\n", q[i].node, q[i].port / FABRIC_PRIORITIES,
                q[i].port % FABRIC_PRIORITIES, q[i].max_queue_bytes, ns(q[i].paused_sent_ps),
                ns(q[i].paused_received_ps), q[i].tx_bytes, q[i].ecn_marks, q[i].drops);
    fputs("],\n", out);
    free(q);
    return 0;
}

static void put_deadlock(FILE *out, const struct fabric *f)
{
    const char *comma = "";
    fputs("\"waiting\":[", out);
    for (uint32_t i = 0; i < fabric_ports(f); i++)
        if (fabric_deadlock(f, i) != 0) {
            fprintf(out, "%s[%" PRIu32 ",%u]", comma, i, fabric_deadlock(f, i));
            comma = ",";
        }
    fputs("],\n", out);
}

static void put_faults(FILE *out, const struct fabric_config *c)
{
    fputs("\"faults\":[", out);
    for (uint32_t i = 0; i < c->faults && i < 10 * ROWS; i++)
        fprintf(out, "%s[%" PRIu64 ",%" PRIu32 ",%s]", i == 0 ? "" : ",", ns(c->fault[i].at_ps),
                c->fault[i].link, c->fault[i].up ? "true" : "false");
    fprintf(out, "],\n\"fault_count\":%" PRIu32 ",\n", c->faults);
}

static void put_totals(FILE *out, const struct fabric *f)
{
    struct fabric_totals t;
    fabric_totals(f, &t);
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"flows",            t.flows          },
        {"finished",         t.finished       },
        {"failed",           t.failed         },
        {"bytes",            t.bytes          },
        {"arrived_bytes",    t.arrived_bytes  },
        {"pauses",           t.pauses         },
        {"resumes",          t.resumes        },
        {"ecn_marks",        t.ecn_marks      },
        {"max_queue_bytes",  t.max_queue_bytes},
        {"storms",           t.storms         },
        {"drops",            t.drops          },
        {"drops: headroom",  t.drops_headroom },
        {"drops: threshold", t.drops_threshold},
        {"drops: no route",  t.drops_route    },
        {"drops: MTU",       t.drops_mtu      },
        {"drops: link",      t.drops_link     },
        {"drops: broken",    t.drops_icrc     },
        {"drops: watchdog",  t.drops_watchdog },
        {"link_hops",        t.link_hops      },
        {"events",           t.events         },
    };
    fputs("\"totals\":{", out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        fprintf(out, "%s\"%s\":%" PRIu64, i == 0 ? "" : ",", rows[i].name, rows[i].value);
    fputs("},\n\"deadlock_ns\":", out);
    if (t.deadlock_ps == FABRIC_NEVER)
        fputs("null,\n", out);
    else
        fprintf(out, "%" PRIu64 ",\n", ns(t.deadlock_ps));
}

/* A flow with its times; those that did not finish have no slowdown. */
struct flow_row {
    uint32_t flow;
    bool finished;
    uint64_t bytes, fct_ps, slowdown; /* thousandths */
};

static int by_size(const void *a, const void *b)
{
    const struct flow_row *x = a, *y = b;
    int order = compare(x->bytes, y->bytes);
    if (order == 0)
        order = compare(x->slowdown, y->slowdown);
    return order != 0 ? order : compare(x->flow, y->flow);
}

static int by_fct(const void *a, const void *b)
{
    const struct flow_row *x = a, *y = b;
    int order = compare(x->fct_ps, y->fct_ps);
    return order != 0 ? order : compare(x->flow, y->flow);
}

/* Those that are open first, then the slowest. */
static int by_slowness(const void *a, const void *b)
{
    const struct flow_row *x = a, *y = b;
    int order = compare(x->finished, y->finished);
    if (order == 0)
        order = compare(y->slowdown, x->slowdown);
    return order != 0 ? order : compare(x->flow, y->flow);
}

static struct flow_row *flow_rows(const struct scenario *s, const struct fabric *f,
                                  uint32_t *finished)
{
    struct flow_row *row = calloc(s->flows + 1u, sizeof(*row));
    *finished = 0;
    for (uint32_t i = 0; row != NULL && i < s->flows; i++) {
        struct fabric_flow_result r;
        fabric_flow_result(f, i, &r);
        row[i].flow = i;
        row[i].bytes = s->flow[i].bytes;
        row[i].finished = r.fct_ps != FABRIC_NEVER;
        row[i].fct_ps = r.fct_ps; /* never: behind all others */
        *finished += row[i].finished;
        if (row[i].finished && r.ideal_ps != 0)
            row[i].slowdown = (r.fct_ps * 1000 + r.ideal_ps / 2) / r.ideal_ps;
    }
    return row;
}

static uint64_t quantile(const struct flow_row *row, uint32_t n, uint32_t percent)
{
    return row[((uint64_t)(n - 1) * percent + 50) / 100].slowdown;
}

/* The rows of one size class after another: sizes within a factor of four. */
static void put_slowdowns(FILE *out, struct flow_row *row, uint32_t finished)
{
    const char *comma = "";
    fputs("\"slowdowns\":[", out);
    for (uint32_t from = 0, to; from < finished; from = to) {
        uint64_t limit = 1;
        while (limit <= row[from].bytes && limit < UINT64_MAX / 4)
            limit *= 4;
        for (to = from; to < finished && row[to].bytes < limit; to++)
            continue;
        struct flow_row *part = &row[from];
        uint32_t n = to - from;
        uint64_t least = part[0].bytes, most = part[n - 1].bytes;
        qsort(part, n, sizeof(*part), by_slowness); /* the slowest first */
        fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu32, comma, least, most, n);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                quantile(part, n, 100), quantile(part, n, 50), quantile(part, n, 5),
                quantile(part, n, 1), quantile(part, n, 0));
        comma = ",";
    }
    fputs("],\n\"dots\":[", out);
    uint32_t step = finished / DOTS + 1;
    comma = "";
    for (uint32_t i = 0; i < finished; i += step) {
        fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", comma, row[i].bytes, row[i].slowdown);
        comma = ",";
    }
    fputs("],\n", out);
}

static void put_slowest(FILE *out, const struct scenario *s, const struct fabric *f,
                        const struct flow_row *row)
{
    fputs("\"slowest\":[", out);
    for (uint32_t i = 0; i < s->flows && i < ROWS; i++) {
        const struct fabric_flow *w = &s->flow[row[i].flow];
        struct fabric_flow_result r;
        fabric_flow_result(f, row[i].flow, &r);
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%u,%" PRIu64 ",", i == 0 ? "" : ",\n",
                row[i].flow, w->src, w->dst, w->priority, w->bytes);
        if (r.start_ps != FABRIC_NEVER)
            fprintf(out, "%" PRIu64 ",", ns(r.start_ps));
        else
            fputs("null,", out);
        if (row[i].finished)
            fprintf(out, "%" PRIu64 ",%" PRIu64, ns(r.fct_ps), row[i].slowdown);
        else
            fputs("null,null", out);
        fprintf(out, ",%" PRIu32 ",%" PRIu32 ",%s]", r.retries, r.cnps,
                r.failed_ps != FABRIC_NEVER ? "true" : "false");
    }
    fputs("],\n", out);
}

static int put_flows(FILE *out, const struct scenario *s, const struct fabric *f)
{
    uint32_t finished;
    struct flow_row *row = flow_rows(s, f, &finished);
    if (row == NULL)
        return -ENOMEM;
    qsort(row, s->flows, sizeof(*row), by_fct);
    fputs("\"fct_ns\":[", out); /* at 0 %, 1 %, ... of those that finished */
    for (uint32_t i = 0; finished > 0 && i <= QUANTILES; i++)
        fprintf(out, "%s%" PRIu64, i == 0 ? "" : ",",
                ns(row[(uint64_t)(finished - 1) * i / QUANTILES].fct_ps));
    fputs("],\n", out);
    qsort(row, finished, sizeof(*row), by_size);
    put_slowdowns(out, row, finished);
    qsort(row, s->flows, sizeof(*row), by_slowness);
    put_slowest(out, s, f, row);
    free(row);
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    const struct port_sum *x = a, *y = b;
    int order = compare(y->tx_bytes, x->tx_bytes);
    return order != 0 ? order : compare(x->port, y->port);
}

/* Bytes on the links of some hosts: those that they send, or get. */
static int put_hosts(FILE *out, const struct scenario *s, const struct samples *m, bool sent)
{
    const struct fabric_topology *t = &s->topology;
    uint64_t peak = 0;
    struct port_sum *sum = sum_ports(m, &peak);
    uint32_t *link = links_of_ports(s, m), k = 0;
    bool got = sum != NULL && link != NULL;
    for (uint32_t i = 0; got && i < m->ports; i++) {
        const struct fabric_link *l = &t->link[link[i]];
        bool first = m->first_port[l->node[0]] <= i && i < m->first_port[l->node[0] + 1];
        uint32_t mine = l->node[first ? 0 : 1], peer = l->node[first ? 1 : 0];
        if (t->is_switch[sent ? mine : peer] == 0 && sum[i].tx_bytes > 0)
            sum[k++] = sum[i];
    }
    if (got)
        qsort(sum, k, sizeof(*sum), by_bytes);
    fprintf(out, "\"%s\":[", sent ? "sent" : "received");
    for (uint32_t i = 0; got && i < k && i < HOSTS_FOLLOWED; i++) {
        fprintf(out, "%s[%" PRIu32 ",[", i == 0 ? "" : ",\n", sum[i].port);
        for (uint32_t n = 0; n < m->count; n++)
            fprintf(out, "%s%" PRIu64, n == 0 ? "" : ",", cell(m, n, sum[i].port)->tx_bytes);
        fputs("]]", out);
    }
    fputs("],\n", out);
    free(sum);
    free(link);
    return got ? 0 : -ENOMEM;
}

static void put_arrived(FILE *out, const struct scenario *s, const struct samples *m)
{
    fputs("\"followed\":[", out);
    for (uint32_t i = 0; i < m->flows; i++) {
        const struct fabric_flow *w = &s->flow[m->flow[i]];
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",[", i == 0 ? "" : ",\n", m->flow[i],
                w->src, w->dst);
        for (uint32_t t = 0; t < m->count; t++)
            fprintf(out, "%s%" PRIu64, t == 0 ? "" : ",", m->arrived[t][i]);
        fputs("]]", out);
    }
    fputs("],\n\"arrived\":[", out);
    for (uint32_t t = 0; t < m->count; t++)
        fprintf(out, "%s%" PRIu64, t == 0 ? "" : ",", m->arrived[t][SAMPLES_FLOWS]);
    fputs("]", out);
}

int page_data(FILE *out, const struct scenario *s, const struct fabric *f, enum fabric_state state,
              const struct samples *m)
{
    fputs("{\"title\":", out);
    results_text(out, s->title);
    fprintf(out, ",\"seed\":\"%" PRIu64 "\",\"end\":\"%s\",\"end_ns\":%" PRIu64, s->config.seed,
            results_ends[state], ns(m->end_ps));
    fprintf(out, ",\"interval_ns\":%" PRIu64 ",\"intervals\":%" PRIu32 ",\n", ns(m->interval_ps),
            m->count);
    if (m->first_pfc_ps != FABRIC_NEVER)
        fprintf(out, "\"first_pfc_ns\":%" PRIu64 ",\n", ns(m->first_pfc_ps));
    put_totals(out, f);
    put_faults(out, &s->config);
    put_deadlock(out, f);
    put_nodes(out, s);
    int rc = put_ports(out, s, m);
    if (rc == 0)
        rc = put_queues(out, f);
    if (rc == 0)
        rc = put_flows(out, s, f);
    if (rc == 0)
        rc = put_hosts(out, s, m, true);
    if (rc == 0)
        rc = put_hosts(out, s, m, false);
    put_arrived(out, s, m);
    fputs(",\n\"parameters\":", out);
    results_parameters(out, &s->config);
    fputs(",\n\"scenario\":", out);
    if (strlen(s->text) <= MAX_SCENARIO_BYTES)
        results_text(out, s->text);
    else
        fputs("null", out);
    fputs("}\n", out);
    return rc;
}

int page_write(FILE *out, const struct scenario *s, const struct fabric *f, enum fabric_state state,
               const struct samples *m)
{
    char *data = NULL, *script = NULL;
    size_t bytes;
    FILE *text = open_memstream(&data, &bytes);
    if (text == NULL)
        return -errno;
    int rc = page_data(text, s, f, state, m);
    if (fclose(text) != 0 && rc == 0)
        rc = -ENOMEM;
    if (rc == 0 && asprintf(&script, "%s%s%s", page_model_js, page_stage_js, page_charts_js) < 0) {
        script = NULL;
        rc = -ENOMEM;
    }
    if (rc == 0) {
        struct report r = {.title = s->title, .script = script, .data = data};
        rc = report_write(out, &r);
    }
    free(script);
    free(data);
    return rc;
}
