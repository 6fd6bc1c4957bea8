/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rig.h: small fabrics for tests: a star of hosts around one switch, or what a test draws; flows;
 * and a record of PFC frames.
 */
#ifndef TESTS_FABRIC_RIG_H
#define TESTS_FABRIC_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "fabric/fabric_priv.h"

enum { RIG_NODES = 72, RIG_LINKS = 96, RIG_FLOWS = 128, RIG_PFC = 4096 };

#define GBPS UINT64_C(1000000000)

struct rig_pfc {
    uint64_t time_ps;
    uint32_t node, port, quanta;
    unsigned priority;
};

struct rig {
    struct fabric_config config;
    struct fabric_topology topology;
    uint8_t is_switch[RIG_NODES];
    struct fabric_link link[RIG_LINKS];
    struct fabric_flow flow[RIG_FLOWS];
    uint32_t flows;
    struct fabric *f;
    struct fabric_totals totals;
    struct rig_pfc pfc[RIG_PFC];
    uint32_t pfcs;
};

static inline void rig_note_pfc(void *arg, uint64_t time_ps, uint32_t node, uint32_t port,
                                unsigned priority, uint32_t quanta)
{
    struct rig *r = arg;
    if (r->pfcs < RIG_PFC)
        r->pfc[r->pfcs] = (struct rig_pfc){time_ps, node, port, quanta, priority};
    r->pfcs++;
}

static inline void rig_link(struct rig *r, uint32_t a, uint32_t b, uint64_t gbps, uint64_t delay_ns)
{
    r->link[r->topology.links++] = (struct fabric_link){
        {a, b},
        gbps * GBPS, delay_ns * 1000, 0
    };
}

/* As simulators without a NIC have it: 1000 + 48 bytes, ACKs of 60 at the top, pauses held. */
static inline void rig_compat(struct rig *r)
{
    struct fabric_switches *s = &r->config.switches;
    struct fabric_hosts *h = &r->config.hosts;
    r->config.gap_bytes = 0;
    r->config.min_frame_bytes = 0;
    s->buffer_bytes = 32 << 20;
    s->headroom_delays = 3;
    s->reserve_bytes = 4096;
    s->alpha_by_rate = true;
    s->xon_offset_bytes = 3072;
    s->lossless = 0x7f;
    s->control = 0x80;
    s->pause_quanta = FABRIC_QUANTA_HELD;
    s->response_quanta = 0;
    s->ecn = 0x7f;
    s->ecn_at_dequeue = true;
    h->payload_bytes = 1000;
    h->header_bytes = 48;
    h->ack_bytes = 60;
    h->ack_priority = 7;
    h->cnp_by_ack = true;
    h->timeout_ps = 0;
}

/* Nodes 0..hosts-1 and the switch `hosts`. */
static inline void rig_star(struct rig *r, uint32_t hosts, uint64_t gbps, uint64_t delay_ns)
{
    memset(r, 0, sizeof(*r));
    fabric_defaults(&r->config);
    r->config.on_pfc = rig_note_pfc;
    r->config.on_pfc_arg = r;
    r->topology =
        (struct fabric_topology){.nodes = hosts + 1, .is_switch = r->is_switch, .link = r->link};
    r->is_switch[hosts] = 1;
    for (uint32_t i = 0; i < hosts; i++)
        rig_link(r, i, hosts, gbps, delay_ns);
}

static inline void rig_flow(struct rig *r, uint32_t src, uint32_t dst, uint64_t bytes)
{
    r->flow[r->flows++] =
        (struct fabric_flow){src, dst, 3, bytes, 0, FABRIC_NO_GROUP, FABRIC_NO_GROUP};
}

static inline void rig_make(struct rig *r)
{
    uint32_t bad = 0;
    assert_int_equal(fabric_create(&r->config, &r->topology, r->flow, r->flows, &r->f, &bad), 0);
}

static inline enum fabric_state rig_run(struct rig *r)
{
    rig_make(r);
    enum fabric_state state = fabric_run(r->f, UINT64_C(50000000));
    fabric_totals(r->f, &r->totals);
    return state;
}

static inline uint64_t rig_fct_ps(const struct rig *r, uint32_t flow)
{
    struct fabric_flow_result result;
    fabric_flow_result(r->f, flow, &result);
    return result.fct_ps;
}

static inline void rig_end(struct rig *r)
{
    fabric_destroy(r->f);
    r->f = NULL;
}

/* Runs until this time. */
static inline void rig_until(struct rig *r, uint64_t ps)
{
    while (r->f->sched.now_ps < ps && fabric_run(r->f, 1) == FABRIC_RUNNING)
        ;
}

/* Of a tracer that takes one event at a time: with its node, and the node's port. */
static inline struct fabric_trace rig_event(const struct rig *r, struct fabric_tracer *t,
                                            uint64_t *word)
{
    struct fabric_trace e;
    uint64_t now_ps = FABRIC_TRACE_ANEW;
    uint32_t words = (uint32_t)(t->next - word);
    assert_int_equal(fabric_trace_read(word, words, &now_ps, &e), words);
    assert_in_range(e.port, 0, r->f->ports - 1);
    e.node = r->f->port[e.port].node;
    e.port -= r->f->node[e.node].first_port;
    t->next = word;
    t->last_ps = FABRIC_TRACE_ANEW;
    return e;
}

#endif
