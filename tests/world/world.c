/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.c: runs one world and turns the crank: the next thing that is due (a packet, a deadline,
 * something a program wants to do) says which node runs at what time. Ends when nothing is due any
 * more, then all must be done.
 */
#include "world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/print.h"

enum { MAX_STEPS = 4000000 };

static const uint64_t patience_ns = 600000000000; /* after the last fault */

void world_fail(struct world *w, const char *format, ...)
{
    va_list args;
    if (w->failed)
        return;
    w->failed = true;
    w->why_kind = format;
    va_start(args, format);
    vsnprintf(w->why, sizeof(w->why), format, args);
    va_end(args);
}

struct trace_event *world_trace(struct world *w, enum trace_kind kind, int node)
{
    struct trace_event *e = &w->trace[w->traced++ % TRACE_EVENTS];
    e->at_ns = w->now_ns;
    e->kind = kind;
    e->node = node;
    e->note = "";
    return e;
}

void world_print(const struct world *w)
{
    static const char *name[] = {"sent", "rcvd", "post", "recv", "done", "ctrl"};
    uint64_t first = w->traced < TRACE_EVENTS ? 0 : w->traced - TRACE_EVENTS;
    for (uint64_t i = first; i < w->traced; i++) {
        const struct trace_event *e = &w->trace[i % TRACE_EVENTS];
        char line[PRINT_LINE_BYTES] = "";
        if (e->kind == TRACE_SENT || e->kind == TRACE_RECEIVED)
            print_roce(line, sizeof(line), &e->h, e->payload_bytes);
        else if (e->kind != TRACE_CONTROL)
            snprintf(line, sizeof(line), "wr %d/%u/%u status %d opcode %d bytes %u",
                     (int)(e->wc.wr_id >> 40), (unsigned)(e->wc.wr_id >> 32 & 0xff),
                     (unsigned)e->wc.wr_id, e->wc.status, e->wc.opcode, e->wc.byte_len);
        printf("# %12llu ns node %d %s %s %s\n", (unsigned long long)e->at_ns, e->node,
               name[e->kind], line, e->note);
    }
}

struct region *world_region(struct world *w, struct direction *d, enum region_kind kind)
{
    if (kind == REGION_RECV)
        return &w->node[d->to].recv_region;
    if (kind == REGION_SHARED)
        return &w->node[d->to].shared_region;
    return &d->region[kind];
}

uint32_t world_offset(const struct direction *d, struct psn psn)
{
    return (uint32_t)psn_diff(psn, psn_make(d->psn));
}

static struct qp *end_qp(struct world *w, int pair, int side)
{
    const struct pair *p = &w->pair[pair];
    const struct end *e = &p->end[side];
    return p->state != PAIR_LIVE || e->over ? NULL : w->node[e->node].slot[e->slot].qp;
}

struct qp *world_requester(struct world *w, const struct direction *d)
{
    return d->dead ? NULL : end_qp(w, d->pair, d->side);
}

struct qp *world_responder(struct world *w, const struct direction *d)
{
    return d->dead ? NULL : end_qp(w, d->pair, 1 - d->side);
}

struct direction *world_direction(struct world *w, int pair, int side, bool own)
{
    if (w->pair[pair].self)
        return &w->dir[pair * 2];
    return &w->dir[pair * 2 + (own ? side : 1 - side)];
}

uint32_t world_executed(struct world *w, const struct direction *d)
{
    const struct qp *qp = world_responder(w, d);
    return qp == NULL ? d->executed : world_offset(d, qp->resp.epsn);
}

uint32_t world_answered(struct world *w, const struct direction *d)
{
    const struct qp *qp = world_requester(w, d);
    if (qp == NULL)
        return d->answered;
    return qp->req.window_max == 0 ? 0 : world_offset(d, qp->req.una); /* not in RTS yet */
}

bool world_in_error(const struct qp *qp)
{
    return qp != NULL && qp->state == QP_STATE_ERR;
}

struct slot *world_slot(struct world *w, int node, uint32_t qpn)
{
    struct node *n = &w->node[node];
    for (int i = 0; i < n->slots; i++)
        if (n->slot[i].qp->qpn == qpn)
            return &n->slot[i];
    return NULL;
}

void world_control(struct world *w, uint64_t at_ns, enum control_kind kind, int pair, int side)
{
    assert(w->controls < MAX_CONTROLS);
    w->control[w->controls++] =
        (struct control){.at_ns = at_ns, .kind = kind, .pair = pair, .side = side};
}

/* ---- the crank ---- */

static void node_run(struct world *w, int index)
{
    struct node *n = &w->node[index];
    n->last_run_ns = w->now_ns;
    link_deliver(w, &w->link[index]);
    life_between(w, index);
    if (nic_deadline(n->nic) <= w->now_ns) {
        nic_advance(n->nic, w->now_ns);
        check_step(w, index);
    }
    program_run(w, index);
    n->output_left = nic_output(n->nic, w->now_ns, &w->source[index].sink, w->opt.max_trains);
    check_step(w, index);
    world_events(w, index);
    if (!n->output_left && !nic_has_output(n->nic))
        sniff_idle(w, index);
    life_follow_errors(w);
}

static uint64_t node_next_ns(struct world *w, int index)
{
    const struct node *n = &w->node[index];
    uint64_t t = program_next_ns(w, index);
    uint64_t packet = link_next_ns(&w->link[index]);
    uint64_t deadline = nic_deadline(n->nic);
    t = packet < t ? packet : t;
    t = deadline < t ? deadline : t;
    if (n->output_left || nic_has_output(n->nic))
        t = w->now_ns;
    if (t == UINT64_MAX)
        return t;
    if (t < n->last_run_ns + w->opt.tick_ns)
        t = n->last_run_ns + w->opt.tick_ns;
    return t < w->now_ns ? w->now_ns : t;
}

static uint64_t control_next_ns(const struct world *w)
{
    uint64_t t = UINT64_MAX;
    for (int i = 0; i < w->controls; i++)
        if (!w->control[i].done && w->control[i].at_ns < t)
            t = w->control[i].at_ns;
    return t < w->now_ns ? w->now_ns : t;
}

static void controls_run(struct world *w)
{
    for (int i = 0; i < w->controls && !w->failed; i++)
        if (!w->control[i].done && w->control[i].at_ns <= w->now_ns)
            life_control(w, &w->control[i]);
    life_follow_errors(w);
}

static void run(struct world *w)
{
    for (uint32_t step = 0; !w->failed; step++) {
        uint64_t at[NODES];
        uint64_t control = control_next_ns(w), t = control;
        for (int i = 0; i < w->opt.nodes; i++) {
            at[i] = node_next_ns(w, i);
            t = at[i] < t ? at[i] : t;
        }
        if (t == UINT64_MAX)
            return;
        if (t > w->fault_end_ns + patience_ns || step == MAX_STEPS) {
            world_fail(w, "stuck: not done at %llu ns after %u steps", (unsigned long long)t, step);
            return;
        }
        w->now_ns = t;
        w->steps++;
        if (control <= t)
            controls_run(w);
        for (int i = 0; i < w->opt.nodes && !w->failed; i++)
            if (at[i] <= t)
                node_run(w, i);
    }
}

bool world_run(struct world *w, struct tape *tape, uint64_t seed)
{
    memset(w, 0, offsetof(struct world, dir));
    w->traced = 0;
    w->failed = false;
    w->tape = tape;
    w->seed = seed;
    plan_draw(w);
    build_all(w);
    run(w);
    if (!w->failed) {
        ideal_run(w);
        check_end(w);
        marks_end(w);
    }
    build_take_down(w);
    w->virtual_ns += w->now_ns;
    w->packets += w->sent_packets;
    w->faults += w->fault_count;
    return !w->failed;
}
