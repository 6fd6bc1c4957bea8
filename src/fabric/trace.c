/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c: what happens, in a buffer of whoever wants to know. Callers look at the mask of kinds
 * first. With a trace this is where most of its time goes: an event is written once, where it is to
 * be, and one that is not wanted not at all.
 */
#include "fabric/fabric_priv.h"

static bool has(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static bool wanted(const struct fabric_tracer *t, uint32_t port, uint32_t flow, unsigned priority)
{
    return (t->priorities >> priority & 1) != 0 && (t->port == NULL || has(t->port, port)) &&
           (t->flow == NULL || (flow != FABRIC_TRACE_NONE && has(t->flow, flow)));
}

/* Time, node and port are filled in here. */
static inline void put(struct fabric *f, uint32_t port, struct fabric_trace e)
{
    struct fabric_tracer *t = f->config.tracer;
    if (t->selective && !wanted(t, port, e.flow, e.priority))
        return;
    e.time_ps = f->sched.now_ps;
    e.node = f->port[port].node;
    e.port = port - f->node[e.node].first_port;
    uint32_t at = t->count;
    t->event[at] = e;
    t->count = at + 1;
    if (at + 1 == t->room)
        t->full(t->arg);
}

void trace_packet(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t packet,
                  uint32_t value)
{
    const struct packet *k = &f->pool.packet[packet];
    struct fabric_trace e = {
        .flow = k->flow,
        .seq = (uint32_t)k->seq,
        .value = value,
        .bytes = k->bytes,
        .kind = (uint8_t)kind,
        .priority = k->priority & 15,
        .frame = k->kind & 15,
    };
    if (k->kind == PACKET_PFC) { /* its fields are others */
        e.flow = FABRIC_TRACE_NONE;
        e.seq = 0;
        e.priority = FABRIC_PRIORITIES;
    }
    put(f, port, e);
}

void trace_other(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t flow,
                 unsigned priority, uint32_t value)
{
    put(f, port,
        (struct fabric_trace){
            .flow = flow,
            .value = value,
            .kind = (uint8_t)kind,
            .priority = priority & 15,
            .frame = FABRIC_TRACE_NO_FRAME,
        });
}
