/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause.c: PFC (IEEE 802.1Qbb), or pauses of the whole link (IEEE 802.3 31B), which are as if all
 * priorities were meant: what a port was told, and what it tells its peer. A pause takes
 * effect after the response time and ends by itself when its quanta are over; whoever wants it to
 * last sends it again when half of them are.
 */
#include <assert.h>

#include "fabric/fabric_priv.h"

uint8_t pause_mask(const struct fabric *f, uint8_t mask)
{
    return mask != 0 && f->config.switches.link_pause ? 0xff : mask;
}

static uint64_t quanta_ps(const struct port *p, uint32_t quanta)
{
    return bytes_ps(p, (uint64_t)quanta * FABRIC_QUANTUM_BYTES);
}

/* The pause of this priority is over, at at_ps. */
static void settle(struct port *p, unsigned priority, uint64_t at_ps)
{
    if (at_ps > p->pause_from_ps[priority])
        p->count[priority].paused_received_ps += at_ps - p->pause_from_ps[priority];
    p->paused &= (uint8_t) ~(1u << priority);
}

uint8_t pause_allows(struct fabric *f, uint32_t port, uint8_t mask)
{
    struct port *p = &f->port[port];
    uint64_t now = f->sched.now_ps;
    for (uint8_t rest = mask & p->paused; rest != 0; rest &= (uint8_t)(rest - 1)) {
        unsigned i = (unsigned)__builtin_ctz(rest);
        if (p->pause_until_ps[i] <= now)
            settle(p, i, p->pause_until_ps[i]);
        else if (p->pause_from_ps[i] <= now && (p->ignored >> i & 1) == 0)
            mask &= (uint8_t) ~(1u << i);
    }
    return mask;
}

uint64_t pause_ends_ps(const struct port *p, uint8_t mask)
{
    uint64_t first = FABRIC_NEVER;
    for (uint8_t rest = mask & p->paused; rest != 0; rest &= (uint8_t)(rest - 1)) {
        unsigned i = (unsigned)__builtin_ctz(rest);
        if (p->pause_until_ps[i] < first)
            first = p->pause_until_ps[i];
    }
    return first;
}

static void xoff_received(struct fabric *f, struct port *p, unsigned i, uint32_t quanta)
{
    uint64_t now = f->sched.now_ps;
    uint8_t bit = (uint8_t)(1u << i);
    if ((p->paused & bit) != 0 && p->pause_until_ps[i] <= now)
        settle(p, i, p->pause_until_ps[i]);
    if ((p->paused & bit) == 0)
        p->pause_from_ps[i] = now + quanta_ps(p, f->config.switches.response_quanta);
    uint64_t begins = p->pause_from_ps[i] > now ? p->pause_from_ps[i] : now;
    p->pause_until_ps[i] =
        quanta == FABRIC_QUANTA_HELD ? FABRIC_NEVER : begins + quanta_ps(p, quanta);
    p->paused |= bit;
}

static void priority_received(struct fabric *f, struct port *p, unsigned i, bool pauses,
                              uint32_t quanta)
{
    uint64_t now = f->sched.now_ps;
    if (pauses)
        xoff_received(f, p, i, quanta);
    else if ((p->paused >> i & 1) != 0)
        settle(p, i, p->pause_until_ps[i] < now ? p->pause_until_ps[i] : now);
}

static void count_received(struct fabric *f, uint32_t port, unsigned i, uint32_t quanta)
{
    const struct port *p = &f->port[port];
    enum fabric_trace_kind kind = quanta != 0 ? TRACE_PAUSE : TRACE_RESUME;
    if (f->config.on_pfc != NULL)
        f->config.on_pfc(f->config.on_pfc_arg, f->sched.now_ps, p->node,
                         port - f->node[p->node].first_port, i, quanta);
    if (tracing(f, kind))
        trace_other(f, kind, port, FABRIC_TRACE_NONE, i, quanta);
    f->totals.pauses += quanta != 0;
    f->totals.resumes += quanta == 0;
}

void pause_received(struct fabric *f, uint32_t port, uint8_t xoff, uint8_t xon, uint32_t quanta)
{
    struct port *p = &f->port[port];
    bool link = f->config.switches.link_pause;
    if (link)
        count_received(f, port, FABRIC_PRIORITIES, xoff != 0 ? quanta : 0);
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++) {
        if (((xoff | xon) >> i & 1) == 0)
            continue;
        bool pauses = (xoff >> i & 1) != 0;
        if (!link)
            count_received(f, port, i, pauses ? quanta : 0);
        priority_received(f, p, i, pauses, quanta);
    }
    egress_kick(f, port);
}

void pause_forget(struct fabric *f, uint32_t port)
{
    struct port *p = &f->port[port];
    uint64_t now = f->sched.now_ps;
    for (uint8_t rest = p->paused; rest != 0; rest &= (uint8_t)(rest - 1)) {
        unsigned i = (unsigned)__builtin_ctz(rest);
        settle(p, i, p->pause_until_ps[i] < now ? p->pause_until_ps[i] : now);
    }
}

void pause_peer(struct fabric *f, uint32_t port, unsigned priority)
{
    struct port *p = &f->port[port];
    uint8_t bit = (uint8_t)(1u << priority), tell = bit;
    if (f->config.switches.link_pause)
        tell = p->stopped == 0 ? 0xff : 0;
    p->stopped |= bit;
    p->stopped_ps[priority] = f->sched.now_ps;
    p->xoff |= tell;
    p->xon &= (uint8_t)~tell;
    egress_kick(f, port);
}

void pause_resume_peer(struct fabric *f, uint32_t port, unsigned priority)
{
    struct port *p = &f->port[port];
    uint8_t bit = (uint8_t)(1u << priority), tell = bit;
    p->stopped &= (uint8_t)~bit;
    p->count[priority].paused_sent_ps += f->sched.now_ps - p->stopped_ps[priority];
    if (f->config.switches.link_pause)
        tell = p->stopped == 0 ? 0xff : 0;
    p->xon |= tell & p->told; /* a pause that has not left yet will not */
    p->xoff &= (uint8_t)~tell;
    egress_kick(f, port);
}

void pause_told(struct fabric *f, uint32_t port)
{
    struct port *p = &f->port[port];
    uint32_t quanta = f->config.switches.pause_quanta;
    if (p->xoff != 0 && quanta != FABRIC_QUANTA_HELD)
        sched_put(&f->sched, event_of_port(port, PORT_RENEW),
                  f->sched.now_ps + quanta_ps(p, quanta) / 2);
    p->told = (uint8_t)((p->told | p->xoff) & ~p->xon);
    p->xoff = 0;
    p->xon = 0;
}

void pause_renew_event(struct fabric *f, uint32_t port)
{
    struct port *p = &f->port[port];
    if (p->stopped == 0)
        return;
    p->xoff |= pause_mask(f, p->stopped);
    egress_kick(f, port);
}

uint64_t pause_received_ps(const struct fabric *f, uint32_t port, unsigned priority)
{
    const struct port *p = &f->port[port];
    uint64_t sum = p->count[priority].paused_received_ps, until = p->pause_until_ps[priority];
    if ((p->paused >> priority & 1) == 0)
        return sum;
    if (until > f->sched.now_ps)
        until = f->sched.now_ps;
    return until > p->pause_from_ps[priority] ? sum + until - p->pause_from_ps[priority] : sum;
}

uint64_t pause_sent_ps(const struct fabric *f, uint32_t port, unsigned priority)
{
    const struct port *p = &f->port[port];
    uint64_t sum = p->count[priority].paused_sent_ps;
    bool still = (p->stopped >> priority & 1) != 0;
    return still ? sum + f->sched.now_ps - p->stopped_ps[priority] : sum;
}
