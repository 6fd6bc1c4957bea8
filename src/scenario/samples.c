/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.c: see samples.h. The fabric calls at the end of each interval.
 */
#include "scenario/samples.h"

#include <stdlib.h>
#include <string.h>

enum {
    CELLS_MOST = 1 << 20, /* ports times intervals, of a large fabric */
    LEAST = 16,           /* intervals, however large it is */
};
#define FIRST_INTERVAL_PS FABRIC_US

/* The largest first, then by number. */
static void choose_flows(struct samples *m)
{
    const struct fabric_flow *flow = m->scenario->flow;
    for (uint32_t i = 0; i < m->scenario->flows; i++) {
        uint32_t at = m->flows < SAMPLES_FLOWS ? m->flows++ : SAMPLES_FLOWS;
        while (at > 0 && flow[m->flow[at - 1]].bytes < flow[i].bytes) {
            if (at < SAMPLES_FLOWS)
                m->flow[at] = m->flow[at - 1];
            at--;
        }
        if (at < SAMPLES_FLOWS)
            m->flow[at] = i;
    }
}

static void number_ports(struct samples *m)
{
    const struct fabric_topology *t = &m->scenario->topology;
    for (uint32_t i = 0; i < 2 * t->links; i++)
        m->first_port[t->link[i / 2].node[i % 2] + 1]++;
    for (uint32_t i = 0; i < t->nodes; i++)
        m->first_port[i + 1] += m->first_port[i];
}

/* Each two intervals become one. */
static void halve(struct samples *m)
{
    for (uint32_t i = 0; i < m->count / 2; i++) {
        for (uint32_t p = 0; p < m->ports; p++) {
            const struct samples_port *a = &m->port[(size_t)2 * i * m->ports + p];
            const struct samples_port *b = a + m->ports;
            m->port[(size_t)i * m->ports + p] = (struct samples_port){
                .tx_bytes = a->tx_bytes + b->tx_bytes,
                .paused_ps = a->paused_ps + b->paused_ps,
                .peak_bytes = a->peak_bytes > b->peak_bytes ? a->peak_bytes : b->peak_bytes,
                .pauses = a->pauses + b->pauses,
            };
        }
        for (unsigned w = 0; w <= SAMPLES_FLOWS; w++)
            m->arrived[i][w] = m->arrived[2 * i][w] + m->arrived[2 * i + 1][w];
    }
    m->count /= 2;
    m->interval_ps *= 2;
}

static void look(struct samples *m, struct fabric *f)
{
    struct samples_port *row = &m->port[(size_t)m->count * m->ports];
    uint64_t arrived[SAMPLES_FLOWS + 1] = {0};
    struct fabric_totals t;
    fabric_totals(f, &t);
    for (uint32_t i = 0; i < m->ports; i++) {
        struct fabric_port_sample now;
        fabric_port_sample(f, i, &now);
        uint64_t paused = now.paused_ps - m->last[i].paused_ps; /* of all priorities */
        row[i] = (struct samples_port){
            .tx_bytes = now.tx_bytes - m->last[i].tx_bytes,
            .paused_ps = paused < t.now_ps - m->now_ps ? paused : t.now_ps - m->now_ps,
            .peak_bytes = (uint32_t)now.peak_bytes,
            .pauses = m->last[i].pauses,
        };
        m->last[i] = (struct samples_port){.tx_bytes = now.tx_bytes, .paused_ps = now.paused_ps};
    }
    arrived[SAMPLES_FLOWS] = t.arrived_bytes;
    for (uint32_t i = 0; i < m->flows; i++)
        arrived[i] = fabric_flow_arrived(f, m->flow[i]);
    for (unsigned w = 0; w <= SAMPLES_FLOWS; w++)
        m->arrived[m->count][w] = arrived[w] - m->last_arrived[w];
    memcpy(m->last_arrived, arrived, sizeof(arrived));
    m->count++;
}

static uint64_t sample(void *arg, struct fabric *f)
{
    struct samples *m = arg;
    look(m, f);
    m->now_ps += m->interval_ps;
    if (m->count == m->most)
        halve(m);
    return m->interval_ps;
}

bool samples_begin(struct samples *m, struct scenario *s)
{
    uint32_t ports = 2 * s->topology.links, most = SAMPLES_MOST;
    if (ports > CELLS_MOST / SAMPLES_MOST)
        most = CELLS_MOST / ports & ~1u;
    if (most < LEAST)
        most = LEAST;
    *m = (struct samples){.scenario = s,
                          .most = most,
                          .interval_ps = FIRST_INTERVAL_PS,
                          .first_pfc_ps = FABRIC_NEVER,
                          .ports = ports};
    m->first_port = calloc(s->topology.nodes + 2u, sizeof(*m->first_port));
    m->port = calloc((size_t)most * (ports + 1), sizeof(*m->port));
    m->last = calloc(ports + 1u, sizeof(*m->last));
    m->arrived = calloc(most, sizeof(*m->arrived));
    if (m->first_port == NULL || m->port == NULL || m->last == NULL || m->arrived == NULL) {
        samples_free(m);
        return false;
    }
    number_ports(m);
    choose_flows(m);
    s->config.on_sample = sample;
    s->config.on_sample_arg = m;
    s->config.sample_ps = m->interval_ps;
    return true;
}

void samples_pfc(struct samples *m, uint64_t time_ps, uint32_t node, uint32_t port)
{
    if (m->first_pfc_ps == FABRIC_NEVER)
        m->first_pfc_ps = time_ps;
    m->last[m->first_port[node] + port].pauses++;
}

void samples_end(struct samples *m, struct fabric *f)
{
    struct fabric_totals t;
    fabric_totals(f, &t);
    m->end_ps = t.now_ps;
    if (t.now_ps > m->now_ps || m->count == 0)
        look(m, f);
}

void samples_free(struct samples *m)
{
    free(m->first_port);
    free(m->port);
    free(m->last);
    free(m->arrived);
    *m = (struct samples){0};
}
