/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * egress.c: the transmitter of a port and the wire behind it. A frame is on the wire from its first
 * bit; it arrives whole after its own time and the link's delay. Each has one event at most.
 */
#include <assert.h>

#include "fabric/codec.h"

void egress_put(struct fabric *f, uint32_t port, uint32_t packet)
{
    struct port *p = &f->port[port];
    struct packet *k = &f->pool.packet[packet];
    struct queue *q = &p->queue[k->priority];
    packet_push(&f->pool, &q->list, packet);
    q->bytes += k->bytes;
    p->backlog |= (uint8_t)(1u << k->priority);
    if (q->bytes > q->peak_bytes)
        q->peak_bytes = q->bytes;
    if (sched_time_ps(&f->sched, event_of_port(port, PORT_TX)) > p->busy_until_ps)
        egress_kick(f, port);
}

static uint32_t queue_take(struct fabric *f, struct port *p, unsigned priority)
{
    struct queue *q = &p->queue[priority];
    uint32_t packet = packet_pop(&f->pool, &q->list);
    q->bytes -= f->pool.packet[packet].bytes;
    if (q->list.head == PACKET_NONE)
        p->backlog &= (uint8_t) ~(1u << priority);
    return packet;
}

/* One of the mask: strict ones first, the highest; else by turns, so many bytes a turn. */
static unsigned choose(struct fabric *f, struct port *p, uint8_t mask)
{
    if (!f->weighted)
        return 31u - (unsigned)__builtin_clz(mask);
    const uint8_t *weight = f->config.switches.weight;
    for (int i = FABRIC_PRIORITIES - 1; i >= 0; i--)
        if ((mask >> i & 1) != 0 && weight[i] == 0)
            return (unsigned)i;
    for (;;) {
        if ((mask >> p->turn & 1) != 0 && p->deficit[p->turn] > 0)
            return p->turn;
        if ((mask >> p->turn & 1) == 0 && p->deficit[p->turn] > 0)
            p->deficit[p->turn] = 0; /* who has nothing to send saves nothing */
        p->turn = (uint8_t)((p->turn + 1) % FABRIC_PRIORITIES);
        if ((mask >> p->turn & 1) != 0)
            p->deficit[p->turn] += weight[p->turn] * 2048;
    }
}

static uint32_t pfc_frame(struct fabric *f, uint32_t port)
{
    struct port *p = &f->port[port];
    uint32_t packet = packet_take(&f->pool);
    if (packet == PACKET_NONE)
        return packet;
    f->pool.packet[packet] = (struct packet){
        .kind = PACKET_PFC,
        .dscp = p->xoff,
        .priority = p->xon,
        .flow = f->config.switches.pause_quanta,
        .bytes = (uint16_t)f->config.pfc_bytes,
    };
    if (f->frame != NULL)
        codec_build_pause(f, packet, p->xoff, p->xon, f->config.switches.pause_quanta);
    pause_told(f, port);
    return packet;
}

/* Puts the frame on the wire. */
static void launch(struct fabric *f, uint32_t port, uint32_t packet)
{
    struct port *p = &f->port[port];
    struct packet *k = &f->pool.packet[packet];
    p->busy_until_ps = f->sched.now_ps + frame_ps(f, p, k->bytes);
    uint64_t at_ps = p->busy_until_ps + p->delay_ps; /* it has arrived whole */
    if (p->wire.head == PACKET_NONE)
        sched_put(&f->sched, event_of_port(port, PORT_WIRE), at_ps);
    else
        f->pool.packet[p->wire.tail].after_ps = at_ps;
    packet_push(&f->pool, &p->wire, packet);
}

/* The next frame; PACKET_NONE: none may leave now. */
static uint32_t next_frame(struct fabric *f, uint32_t port)
{
    struct port *p = &f->port[port];
    if ((p->xoff | p->xon) != 0)
        return pfc_frame(f, port);
    uint8_t mask = p->backlog | p->source;
    if ((mask & p->paused) != 0)
        mask = pause_allows(f, port, mask);
    while (mask != 0) {
        unsigned priority = choose(f, p, mask);
        uint32_t packet;
        if ((p->backlog >> priority & 1) != 0) {
            packet = queue_take(f, p, priority);
        } else {
            struct endpoint *e = &f->endpoint[f->node[p->node].host];
            packet = e->ops->pull(f, e, priority);
        }
        if (packet != PACKET_NONE) {
            struct packet *k = &f->pool.packet[packet];
            p->count[priority].tx_bytes += k->bytes;
            p->deficit[priority] -= f->weighted ? k->bytes : 0;
            p->moved_ps[priority] = f->sched.now_ps;
            return packet;
        }
        mask &= (uint8_t) ~(1u << priority);
    }
    return PACKET_NONE;
}

void egress_kick(struct fabric *f, uint32_t port)
{
    struct port *p = &f->port[port];
    uint64_t now = f->sched.now_ps;
    uint32_t event = event_of_port(port, PORT_TX);
    if (p->busy_until_ps > now) {
        sched_put(&f->sched, event, p->busy_until_ps);
        return;
    }
    if (p->down)
        return;
    uint32_t packet = next_frame(f, port);
    if (packet == PACKET_NONE) {
        uint64_t at = pause_ends_ps(p, p->backlog | p->source);
        if (at != FABRIC_NEVER)
            sched_put(&f->sched, event, at);
        return;
    }
    struct packet *k = &f->pool.packet[packet];
    if (tracing(f, TRACE_SEND))
        trace_packet(f, TRACE_SEND, port, packet,
                     k->kind != PACKET_PFC ? p->queue[k->priority].bytes : 0);
    launch(f, port, packet);
    if (p->at_switch && k->kind != PACKET_PFC)
        switch_sends(f, p, packet);
    if ((p->backlog | p->source | p->xoff | p->xon) != 0)
        sched_put(&f->sched, event, p->busy_until_ps);
}

/* Which bit is chosen whether there are bytes or not, so that chance is the same. */
static void break_packet(struct fabric *f, uint32_t packet)
{
    struct packet *k = &f->pool.packet[packet];
    uint32_t where = rng_below(&f->rng, 8 * k->bytes);
    k->flags |= PACKET_BROKEN;
    if (f->frame != NULL)
        codec_break(f, packet, where);
}

static bool hit(struct fabric *f, const struct packet *k, uint32_t ppm)
{
    return ppm != 0 && k->kind == PACKET_DATA && (k->flags & PACKET_BROKEN) == 0 &&
           rng_below(&f->rng, 1000000) < ppm;
}

/* What a host has sent: switches look before they send. */
static bool too_large(const struct port *p, const struct packet *k)
{
    return !p->at_switch && p->mtu_bytes != 0 && k->payload_bytes > p->mtu_bytes;
}

void egress_wire_event(struct fabric *f, uint32_t port)
{
    struct port *p = &f->port[port];
    uint32_t packet = packet_pop(&f->pool, &p->wire);
    struct packet *k = &f->pool.packet[packet];
    if (p->wire.head != PACKET_NONE) /* it is not looked at yet: it is in no cache */
        sched_put(&f->sched, event_of_port(port, PORT_WIRE), k->after_ps);
    f->totals.link_hops++;
    uint32_t to = p->peer;
    struct port *peer = &f->port[to];
    if (tracing(f, TRACE_ARRIVE))
        trace_packet(f, TRACE_ARRIVE, to, packet, 0);
    if (hit(f, k, p->corrupt_ppm))
        break_packet(f, packet);
    if (k->kind == PACKET_PFC) {
        uint8_t xoff = k->dscp, xon = k->priority;
        uint32_t quanta = k->flow; /* held until the resume: more than a frame can say */
        if (f->frame != NULL)
            codec_parse_pause(f, packet, &xoff, &xon);
        packet_give(&f->pool, packet);
        pause_received(f, to, xoff, xon, quanta);
    } else if (too_large(p, k)) {
        switch_drop(f, p, packet, &f->totals.drops_mtu);
    } else if (hit(f, k, p->loss_ppm)) {
        switch_drop(f, p, packet, &f->totals.drops_link);
    } else if (peer->at_switch) {
        switch_receive(f, to, packet);
    } else {
        struct endpoint *e = &f->endpoint[f->node[peer->node].host];
        e->ops->receive(f, e, packet);
    }
}

void egress_drop_queue(struct fabric *f, uint32_t port, unsigned priority, uint64_t *why)
{
    struct port *p = &f->port[port];
    struct switch_state *s = &f->sw[f->node[p->node].host];
    while (p->queue[priority].list.head != PACKET_NONE) {
        uint32_t packet = queue_take(f, p, priority);
        buffer_release(f, s, &f->pool.packet[packet]);
        switch_drop(f, p, packet, why);
    }
}

static void go_down(struct fabric *f, uint32_t port)
{
    struct port *p = &f->port[port];
    pause_forget(f, port);
    sched_remove(&f->sched, event_of_port(port, PORT_WIRE));
    while (p->wire.head != PACKET_NONE) {
        uint32_t packet = packet_pop(&f->pool, &p->wire);
        if (f->pool.packet[packet].kind == PACKET_PFC)
            packet_give(&f->pool, packet);
        else
            switch_drop(f, p, packet, &f->totals.drops_link);
    }
    for (unsigned i = 0; p->at_switch && i < FABRIC_PRIORITIES; i++)
        egress_drop_queue(f, port, i, &f->totals.drops_link);
}

void egress_set_link(struct fabric *f, uint32_t port, bool up)
{
    struct port *p = &f->port[port];
    if (p->down == !up)
        return;
    p->down = !up;
    if (tracing(f, up ? TRACE_UP : TRACE_DOWN))
        trace_other(f, up ? TRACE_UP : TRACE_DOWN, port, FABRIC_TRACE_NONE, FABRIC_PRIORITIES, 0);
    if (!up) {
        go_down(f, port);
        return;
    }
    p->xoff = pause_mask(f, p->stopped); /* the peer forgot what it was told */
    p->xon = 0;
    p->told = 0;
    egress_kick(f, port);
}
