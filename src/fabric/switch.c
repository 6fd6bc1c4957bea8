/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * switch.c: the way of a frame through a switch: priority by DSCP, a port by its destination, room
 * in the buffer, a mark by the length of the queue.
 */
#include "fabric/codec.h"

void switch_drop(struct fabric *f, struct port *p, uint32_t packet, uint64_t *why)
{
    f->totals.drops++;
    if (why != NULL)
        (*why)++;
    p->count[f->pool.packet[packet].priority].drops++;
    if (tracing(f, TRACE_DROP))
        trace_packet(f, TRACE_DROP, (uint32_t)(p - f->port), packet, 0);
    packet_give(&f->pool, packet);
}

/* RED: never up to kmin, always beyond kmax, in between in proportion up to pmax; and only what may
 * be marked, as CNPs may not.
 * DEVIATES: RFC 3168: RED drops the others; here only the buffer drops. */
static void mark(struct fabric *f, struct switch_state *s, struct port *p, uint32_t packet)
{
    const struct fabric_switches *c = &f->config.switches;
    struct packet *k = &f->pool.packet[packet];
    uint64_t bytes = p->queue[k->priority].bytes;
    if ((k->flags & PACKET_ECT) == 0)
        return;
    if ((c->ecn >> k->priority & 1) == 0 || bytes <= p->kmin_bytes)
        return;
    if (bytes <= p->kmax_bytes) {
        uint64_t ppm = c->pmax_ppm * (bytes - p->kmin_bytes) / (p->kmax_bytes - p->kmin_bytes);
        if (rng_below(&s->rng, 1000000) >= ppm)
            return;
    }
    k->flags |= PACKET_CE;
    if (tracing(f, TRACE_MARK))
        trace_packet(f, TRACE_MARK, (uint32_t)(p - f->port), packet, (uint32_t)bytes);
    if (f->frame != NULL)
        codec_mark(f, packet);
    p->count[k->priority].ecn_marks++;
    f->totals.ecn_marks++;
}

void switch_receive(struct fabric *f, uint32_t port, uint32_t packet)
{
    struct port *in = &f->port[port];
    struct switch_state *s = &f->sw[f->node[in->node].host];
    struct packet *k = &f->pool.packet[packet];
    k->ingress = port;
    k->priority =
        f->config.switches.trust_pcp ? s->priority_of_pcp[k->pcp] : s->priority_of[k->dscp];
    uint32_t out = route_port(f, s, k->dst, k->hash);
    if (out == PACKET_NONE) {
        switch_drop(f, in, packet, &f->totals.drops_route);
        return;
    }
    struct port *p = &f->port[out];
    if (p->mtu_bytes != 0 && k->payload_bytes > p->mtu_bytes) {
        switch_drop(f, p, packet, &f->totals.drops_mtu);
        return;
    }
    if (f->config.watchdog == WATCHDOG_DROP && (p->ignored >> k->priority & 1) != 0) {
        switch_drop(f, p, packet, &f->totals.drops_watchdog);
        return;
    }
    if (!buffer_admit(f, s, out, k)) {
        switch_drop(f, p, packet, NULL);
        return;
    }
    if (!f->config.switches.ecn_at_dequeue)
        mark(f, s, p, packet);
    egress_put(f, out, packet);
}

void switch_sends(struct fabric *f, struct port *p, uint32_t packet)
{
    struct switch_state *s = &f->sw[f->node[p->node].host];
    if (f->config.switches.ecn_at_dequeue)
        mark(f, s, p, packet);
    if (f->telemetry != NULL)
        telemetry_write(f, p, packet);
    buffer_release(f, s, &f->pool.packet[packet]);
}
