/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.c: looks at the whole from time to time: whether anything gets on, whether queues wait for
 * one another in a circle, and the PFC watchdog of the switches.
 */
#include <stdlib.h>

#include "fabric/engine.h"
#include "wire/aeth.h"

enum {
    WATCH_LOOKS = 20, /* of the watchdog in its detection time */
    PATIENCE = 8,     /* times that all messages may take: the first try, and retries */
};
#define MAX_PATIENCE_PS (SCHED_MAX_PS / 8)

bool watch_open(const struct fabric *f)
{
    return f->awaited != 0 || f->totals.finished + f->totals.failed < f->started;
}

enum fabric_state watch_end(const struct fabric *f)
{
    if (f->totals.finished == f->flow_count)
        return FABRIC_FINISHED;
    return f->totals.failed != 0 ? FABRIC_FAILED : FABRIC_STALLED;
}

static void again(struct fabric *f, enum fabric_event e, uint64_t after_ps)
{
    sched_put(&f->sched, event_of_fabric(f, e), f->sched.now_ps + after_ps);
}

/* For how long a host tries again before it gives up, without anything that is heard of. */
static uint64_t retries_ps(const struct fabric_hosts *h)
{
    if (!h->engine)
        return 4 * h->timeout_ps; /* it never gives up */
    return 1000 * ((h->retry + 1) * aeth_ack_timeout_ns(engine_timeout_code(h->timeout_ps)) +
                   (h->rnr_retry + 1) * aeth_rnr_ns(engine_rnr_code(h->rnr_timer_ps)));
}

/* What a full frame takes where it is slowest, by its link or by congestion control. */
static uint64_t slowest_frame_ps(const struct fabric *f)
{
    uint64_t rate_bps = UINT64_MAX;
    for (uint32_t i = 0; i < f->topology.links; i++)
        if (f->topology.link[i].rate_bps < rate_bps)
            rate_bps = f->topology.link[i].rate_bps;
    for (uint32_t i = 0; i < f->hosts; i++) {
        const struct cc_params *cc = &((const struct source *)f->endpoint[i].state)->cc;
        if (cc->algorithm != CC_NONE && cc->min_bps < rate_bps)
            rate_bps = cc->min_bps;
    }
    const struct fabric_hosts *h = &f->config.hosts;
    uint64_t bytes = h->payload_bytes + h->header_bytes + f->config.gap_bytes;
    return bytes * UINT64_C(8000000000000) / (rate_bps != 0 ? rate_bps : 1);
}

/* A message of each flow, all behind one another where it is slowest. */
static uint64_t messages_ps(const struct fabric *f, uint64_t frame_ps)
{
    uint64_t frames = 0;
    for (uint32_t i = 0; i < f->flow_count; i++) {
        const struct fabric_flow *w = &f->flow_spec[i];
        uint64_t bytes = w->work.message_bytes != 0 ? w->work.message_bytes : ENGINE_MESSAGE_BYTES;
        if (f->config.hosts.go_back_0)
            bytes = w->bytes;
        frames += ((w->bytes < bytes ? w->bytes : bytes) - 1) / f->config.hosts.payload_bytes + 1;
    }
    return frames < MAX_PATIENCE_PS / frame_ps ? frames * frame_ps : MAX_PATIENCE_PS;
}

void watch_start(struct fabric *f)
{
    struct fabric_config *c = &f->config;
    uint64_t longest_ps = 0, receive_ps = 0, frame_ps = slowest_frame_ps(f);
    for (uint32_t i = 0; i < f->topology.links; i++)
        if (f->topology.link[i].delay_ps > longest_ps)
            longest_ps = f->topology.link[i].delay_ps;
    for (uint32_t i = 0; i < f->flow_count; i++)
        if (f->flow_spec[i].work.receive_ps > receive_ps)
            receive_ps = f->flow_spec[i].work.receive_ps;
    f->check_ps = 20 * longest_ps > 100 * FABRIC_US ? 20 * longest_ps : 100 * FABRIC_US;
    if (c->stall_ps == 0) {
        c->stall_ps = 20 * FABRIC_MS + retries_ps(&c->hosts) + 100 * longest_ps + 4 * frame_ps;
        c->stall_ps += 2 * receive_ps;
        if (c->watchdog == WATCHDOG_DROP || c->watchdog == WATCHDOG_FORWARD)
            c->stall_ps += 3 * (c->detect_ps + c->restore_ps);
    }
    f->patience_ps = c->stall_ps + PATIENCE * messages_ps(f, frame_ps);
    again(f, FABRIC_CHECK, f->check_ps);
    if (c->watchdog != WATCHDOG_OFF)
        again(f, FABRIC_WATCH, c->detect_ps / WATCH_LOOKS + 1);
}

static bool in_force(const struct fabric *f, const struct port *p, unsigned i)
{
    uint64_t now = f->sched.now_ps;
    return (p->paused >> i & 1) != 0 && p->pause_from_ps[i] <= now && p->pause_until_ps[i] > now;
}

/* When the queue last got on or was stopped; FABRIC_NEVER: it is not waiting for a switch. */
static uint64_t waits_since_ps(const struct fabric *f, const struct port *p, unsigned i)
{
    if ((p->backlog >> i & 1) == 0 || !in_force(f, p, i) || !f->port[p->peer].at_switch)
        return FABRIC_NEVER;
    return p->moved_ps[i] > p->pause_from_ps[i] ? p->moved_ps[i] : p->pause_from_ps[i];
}

/* Whether frames of this priority that came in here are there, and in waiting queues only. */
static bool held_by_waiting(const struct fabric *f, const uint8_t *waiting, uint32_t in, unsigned i)
{
    const struct node *n = &f->node[f->port[in].node];
    bool some = false;
    for (uint32_t j = 0; j < n->ports; j++) {
        uint32_t out = n->first_port + j;
        uint32_t k = f->port[out].queue[i].list.head;
        while (k != PACKET_NONE && f->pool.packet[k].ingress != in)
            k = f->pool.packet[k].next;
        if (k == PACKET_NONE)
            continue;
        if ((waiting[out] >> i & 1) == 0)
            return false;
        some = true;
    }
    return some;
}

/* Whether the queue stays paused: its own priority, or with pauses of the whole link any that its
 * peer has stopped, is held by waiting queues. */
static bool waits_for_waiting(const struct fabric *f, const uint8_t *waiting, uint32_t port,
                              unsigned i)
{
    uint32_t in = f->port[port].peer;
    uint8_t why = f->config.switches.link_pause ? f->port[in].stopped : (uint8_t)(1u << i);
    for (; why != 0; why &= (uint8_t)(why - 1))
        if (held_by_waiting(f, waiting, in, (unsigned)__builtin_ctz(why)))
            return true;
    return false;
}

/* Leaves those that wait for one another only: a deadlock. */
static bool reduce(const struct fabric *f, uint8_t *waiting)
{
    bool changed = true, some = false;
    while (changed) {
        changed = some = false;
        for (uint32_t port = 0; port < f->ports; port++) {
            for (uint8_t rest = waiting[port]; rest != 0; rest &= (uint8_t)(rest - 1)) {
                unsigned i = (unsigned)__builtin_ctz(rest);
                if (waits_for_waiting(f, waiting, port, i)) {
                    some = true;
                    continue;
                }
                waiting[port] &= (uint8_t) ~(1u << i);
                changed = true;
            }
        }
    }
    return some;
}

static void look_for_deadlock(struct fabric *f)
{
    uint64_t now = f->sched.now_ps, since = 0;
    bool some = false;
    for (uint32_t port = 0; port < f->ports; port++) {
        const struct port *p = &f->port[port];
        f->waiting[port] = 0;
        for (uint8_t rest = p->backlog & p->paused; rest != 0; rest &= (uint8_t)(rest - 1)) {
            unsigned i = (unsigned)__builtin_ctz(rest);
            uint64_t at = waits_since_ps(f, p, i);
            if (at != FABRIC_NEVER && now - at >= f->check_ps)
                f->waiting[port] |= (uint8_t)(1u << i);
        }
        some = some || f->waiting[port] != 0;
    }
    if (!some || !reduce(f, f->waiting))
        return;
    for (uint32_t port = 0; port < f->ports; port++)
        for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
            if ((f->waiting[port] >> i & 1) != 0 && waits_since_ps(f, &f->port[port], i) > since)
                since = waits_since_ps(f, &f->port[port], i);
    f->totals.deadlock_ps = since;
}

static bool frames_move(const struct fabric *f)
{
    for (uint32_t port = 0; port < f->ports; port++)
        for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
            if (f->sched.now_ps - f->port[port].moved_ps[i] < f->config.stall_ps)
                return true;
    return false;
}

/* Whether more has come since anybody got on than so many times all that is left: the same frames
 * again. A NIC gives up, unless its peer has no receive, and asks to wait. */
static bool came_again(const struct fabric *f, uint64_t times)
{
    uint64_t came = (f->totals.arrived_bytes - f->seen_bytes) / times, left = 0;
    for (uint32_t i = 0; i < f->flow_count && left < came; i++)
        if (f->flow[i].started && !f->flow[i].done)
            left += f->flow[i].bytes;
    return !f->config.hosts.engine && left < came;
}

/* No flow gets on, and no frame leaves; or frames do, as retries, but no flow gets on for longer
 * than all their messages can take. What is still to begin, or a link to change, or ways to be
 * measured anew, may end it. FABRIC_RUNNING: it is none of that. */
static enum fabric_state stuck(const struct fabric *f)
{
    uint64_t quiet_ps = f->sched.now_ps - f->progress_ps;
    if (quiet_ps < f->config.stall_ps || f->awaited != 0 || f->next_fault < f->config.faults ||
        f->next_learnt < f->config.faults)
        return FABRIC_RUNNING;
    if (came_again(f, PATIENCE) || (quiet_ps >= f->patience_ps && came_again(f, 1)))
        return FABRIC_LIVELOCK;
    return quiet_ps >= f->patience_ps || !frames_move(f) ? FABRIC_STALLED : FABRIC_RUNNING;
}

void watch_check_event(struct fabric *f)
{
    uint64_t now = f->sched.now_ps;
    if (f->totals.deadlock_ps == FABRIC_NEVER)
        look_for_deadlock(f);
    if (f->seen_ps != f->progress_ps) {
        f->seen_ps = f->progress_ps;
        f->seen_bytes = f->totals.arrived_bytes;
    }
    bool left = f->totals.finished + f->totals.failed < f->started;
    enum fabric_state end = left ? stuck(f) : FABRIC_RUNNING;
    if (end != FABRIC_RUNNING)
        f->state = end;
    else if (!watch_open(f) && now - f->progress_ps >= f->check_ps)
        f->state = watch_end(f); /* what is left goes nowhere */
    else
        again(f, FABRIC_CHECK, f->check_ps);
}

/* stuck_ps: of a queue that is obeyed, since when it waits; of one that is not, when it last was
 * told to. */
static void watch_queue(struct fabric *f, uint32_t port, unsigned i)
{
    struct port *p = &f->port[port];
    uint64_t now = f->sched.now_ps;
    uint8_t bit = (uint8_t)(1u << i);
    bool paused = in_force(f, p, i);
    if ((p->ignored & bit) != 0) {
        if (paused)
            p->stuck_ps[i] = now;
        else if (now - p->stuck_ps[i] >= f->config.restore_ps)
            p->ignored &= (uint8_t)~bit;
        if ((p->ignored & bit) == 0)
            p->stuck_ps[i] = 0;
        return;
    }
    if (!paused || (p->backlog & bit) == 0) {
        p->stuck_ps[i] = 0;
        return;
    }
    if (p->stuck_ps[i] == 0 || p->moved_ps[i] > p->stuck_ps[i])
        p->stuck_ps[i] =
            p->moved_ps[i] > p->pause_from_ps[i] ? p->moved_ps[i] : p->pause_from_ps[i];
    if (now - p->stuck_ps[i] < f->config.detect_ps)
        return;
    f->totals.storms++;
    if (tracing(f, TRACE_STORM))
        trace_other(f, TRACE_STORM, port, FABRIC_TRACE_NONE, i, 0);
    p->stuck_ps[i] = now;
    if (f->config.watchdog == WATCHDOG_ALERT)
        return;
    p->ignored |= bit;
    if (f->config.watchdog == WATCHDOG_DROP)
        egress_drop_queue(f, port, i, &f->totals.drops_watchdog);
    egress_kick(f, port);
}

void watch_dog_event(struct fabric *f)
{
    for (uint32_t port = 0; port < f->ports; port++) {
        const struct port *p = &f->port[port];
        if (!p->at_switch)
            continue;
        for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
            if (((p->paused | p->ignored) >> i & 1) != 0 || p->stuck_ps[i] != 0)
                watch_queue(f, port, i);
    }
    again(f, FABRIC_WATCH, f->config.detect_ps / WATCH_LOOKS + 1);
}
