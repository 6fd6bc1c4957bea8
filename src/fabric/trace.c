/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c: what happens, told to whoever wants to know. Callers look at the mask first.
 */
#include "fabric/fabric_priv.h"

static struct fabric_trace begin(const struct fabric *f, enum fabric_trace_kind kind, uint32_t port)
{
    const struct port *p = &f->port[port];
    return (struct fabric_trace){
        .time_ps = f->sched.now_ps,
        .node = p->node,
        .port = port - f->node[p->node].first_port,
        .flow = FABRIC_TRACE_NONE,
        .kind = (uint8_t)kind,
        .frame = FABRIC_TRACE_NO_FRAME,
    };
}

void trace_packet(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t packet,
                  uint32_t value)
{
    const struct packet *k = &f->pool.packet[packet];
    struct fabric_trace e = begin(f, kind, port);
    e.bytes = k->bytes;
    e.frame = k->kind & 15;
    e.value = value;
    if (k->kind == PACKET_PFC) { /* its fields are others */
        e.priority = FABRIC_PRIORITIES;
    } else {
        e.flow = k->flow;
        e.seq = (uint32_t)k->seq;
        e.priority = k->priority & 15;
    }
    f->config.on_trace(f->config.on_trace_arg, &e);
}

void trace_other(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t flow,
                 unsigned priority, uint32_t value)
{
    struct fabric_trace e = begin(f, kind, port);
    e.flow = flow;
    e.priority = priority & 15;
    e.value = value;
    f->config.on_trace(f->config.on_trace_arg, &e);
}
