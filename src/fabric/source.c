/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.c: a host that is no NIC: flows of bytes, each frame acknowledged, go-back-N when one is
 * missing, or go-back-0; with congestion control (nic/cc) or without. Flows of a priority take
 * turns, a frame each. What waits for its start, its pace or its timeout stands in the host's heap.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "fabric/source.h"

enum { PROBE_LOST_US = 300 };

static struct flow *flow_of(struct heap_node *n)
{
    return (struct flow *)((char *)n - offsetof(struct flow, timer));
}

void source_arm(struct fabric *f, struct endpoint *e)
{
    struct source *s = e->state;
    const struct heap_node *timer = heap_first(&s->heap), *pace = heap_first(&s->paced);
    uint64_t at = timer != NULL ? timer->time_ns : FABRIC_NEVER; /* heaps here count in ps */
    if (pace != NULL && pace->time_ns < at)
        at = pace->time_ns;
    if (s->engine_ps < at)
        at = s->engine_ps;
    if (at == FABRIC_NEVER)
        sched_remove(&f->sched, e->timer);
    else if (sched_time_ps(&f->sched, e->timer) != at)
        sched_put(&f->sched, e->timer, at > f->sched.now_ps ? at : f->sched.now_ps);
}

static void ring_leave(struct fabric *f, struct endpoint *e, struct flow *w)
{
    struct source *s = e->state;
    uint32_t *turn = &s->ring[w->priority];
    if (!w->in_ring)
        return;
    w->in_ring = false;
    if (w->ring_next == w->index) {
        *turn = PACKET_NONE;
        f->port[e->port].source &= (uint8_t) ~(1u << w->priority);
        return;
    }
    f->flow[w->ring_prev].ring_next = w->ring_next;
    f->flow[w->ring_next].ring_prev = w->ring_prev;
    if (*turn == w->index)
        *turn = w->ring_next;
}

/* Behind all others. */
static void ring_join(struct fabric *f, struct endpoint *e, struct flow *w)
{
    struct source *s = e->state;
    uint32_t turn = s->ring[w->priority];
    if (w->in_ring)
        return;
    w->in_ring = true;
    if (turn == PACKET_NONE) {
        w->ring_next = w->ring_prev = w->index;
        s->ring[w->priority] = w->index;
        f->port[e->port].source |= (uint8_t)(1u << w->priority);
    } else {
        w->ring_next = turn;
        w->ring_prev = f->flow[turn].ring_prev;
        f->flow[w->ring_prev].ring_next = w->index;
        f->flow[turn].ring_prev = w->index;
    }
}

static bool may_send(const struct flow *w)
{
    return !w->done && w->next < w->bytes && w->next - w->acked < w->window_bytes;
}

/* The flow may have got something to send. */
static void wake(struct fabric *f, struct endpoint *e, struct flow *w)
{
    if (w->in_ring || heap_holds(&w->pace) || !may_send(w))
        return;
    ring_join(f, e, w);
    egress_kick(f, e->port);
}

/* What the rate says about the frame that leaves now: whether the next one has to wait. */
static void pace(struct fabric *f, struct endpoint *e, struct flow *w, uint32_t bytes)
{
    struct source *s = e->state;
    uint64_t now = f->sched.now_ps;
    cc_sent(&w->cc, &s->cc, now / 1000, bytes);
    uint64_t rate = cc_rate(&w->cc, &s->cc, now / 1000);
    if (rate >= s->cc.line_bps)
        return;
    uint64_t from = w->next_ps > now ? w->next_ps : now;
    w->next_ps = from + (bytes + f->config.gap_bytes) * UINT64_C(8000000000000) / rate;
    ring_leave(f, e, w);
    heap_put(&s->paced, &w->pace, w->next_ps);
    source_arm(f, e);
}

/* One probe at a time; one without an answer is given up. */
static void probe(struct fabric *f, struct flow *w, struct packet *k)
{
    uint64_t now = f->sched.now_ps;
    if (w->probe_ps != 0 && now - w->probe_ps < PROBE_LOST_US * FABRIC_US)
        return;
    w->probe_ps = now;
    k->flags |= PACKET_PROBE;
    k->sent_ps = now;
}

static uint32_t source_pull(struct fabric *f, struct endpoint *e, unsigned priority)
{
    struct source *s = e->state;
    struct flow *w = &f->flow[s->ring[priority]];
    uint32_t packet = packet_take(&f->pool);
    if (packet == PACKET_NONE) {
        f->full = true;
        return packet;
    }
    uint64_t left = w->bytes - w->next;
    uint32_t payload = f->config.hosts.payload_bytes;
    if (payload > left)
        payload = (uint32_t)left;
    f->pool.packet[packet] = (struct packet){
        .seq = w->next,
        .flow = w->index,
        .dst = w->dst,
        .hash = w->hash,
        .bytes = (uint16_t)(payload + f->config.hosts.header_bytes),
        .payload_bytes = (uint16_t)payload,
        .kind = PACKET_DATA,
        .flags = PACKET_ECT,
        .dscp = (uint8_t)(w->priority * 8),
        .pcp = f->config.hosts.vlan ? w->priority : 0,
        .priority = w->priority,
    };
    if (f->telemetry != NULL)
        f->telemetry->packet[packet] = (struct cc_path){0};
    w->next += payload;
    s->ring[priority] = w->ring_next;
    if (!may_send(w))
        ring_leave(f, e, w);
    if (s->cc.algorithm != CC_NONE) {
        if (cc_wants_rtt(&s->cc))
            probe(f, w, &f->pool.packet[packet]);
        pace(f, e, w, f->pool.packet[packet].bytes);
    }
    return packet;
}

/* An answer to a data frame. */
static void answer(struct fabric *f, struct endpoint *e, struct flow *w, enum packet_kind kind,
                   uint8_t flags, uint64_t sent_ps)
{
    const struct fabric_hosts *h = &f->config.hosts;
    uint32_t packet = packet_take(&f->pool);
    if (packet == PACKET_NONE) {
        f->full = true;
        return;
    }
    uint8_t priority = h->ack_in_class ? w->priority : h->ack_priority;
    if (kind == PACKET_CNP)
        priority = h->cnp_priority;
    f->pool.packet[packet] = (struct packet){
        .seq = w->expected,
        .sent_ps = sent_ps,
        .flow = w->index,
        .dst = w->src,
        .hash = w->back_hash,
        .bytes = (uint16_t)(kind == PACKET_CNP ? h->cnp_bytes : h->ack_bytes),
        .kind = (uint8_t)kind,
        .flags = kind == PACKET_CNP ? flags : flags | PACKET_ECT, /* as a NIC has it */
        .dscp = (uint8_t)(priority * 8),
        .pcp = f->config.hosts.vlan ? priority : 0,
        .priority = priority,
    };
    if (f->telemetry != NULL)
        f->telemetry->packet[packet] = f->telemetry->came;
    egress_put(f, e->port, packet);
}

static void data_arrived(struct fabric *f, struct endpoint *e, const struct packet *k)
{
    struct flow *w = &f->flow[k->flow];
    w->arrived += k->payload_bytes;
    f->totals.arrived_bytes += k->payload_bytes;
    bool by_ack = f->config.hosts.cnp_by_ack;
    uint64_t now = f->sched.now_ps;
    if ((k->flags & PACKET_CE) != 0 && !by_ack &&
        (w->cnp_ps == 0 || now - (w->cnp_ps - 1) >= f->config.hosts.cnp_interval_ps)) {
        w->cnp_ps = now + 1;
        answer(f, e, w, PACKET_CNP, 0, 0);
    }
    uint8_t echo = k->flags & PACKET_PROBE;
    if ((k->flags & PACKET_CE) != 0 && by_ack)
        echo |= PACKET_ECHO;
    bool whole = f->config.hosts.go_back_0 && w->expected < w->bytes;
    if (whole && (k->seq == 0 || k->seq > w->expected))
        w->expected = 0; /* it begins anew, or has to: what came of it is of no use */
    if (k->seq > w->expected) {
        if (!w->gap)
            answer(f, e, w, PACKET_NAK, echo, k->sent_ps);
        w->gap = true;
        return;
    }
    if (k->seq == w->expected) {
        w->expected += k->payload_bytes;
        w->gap = false;
    }
    answer(f, e, w, PACKET_ACK, echo, k->sent_ps);
}

static void go_back(struct fabric *f, struct endpoint *e, struct flow *w)
{
    if (f->config.hosts.go_back_0) {
        f->totals.acked_bytes -= w->acked;
        w->acked = 0;
    }
    w->next = w->acked;
    w->retries++;
    w->progress_ps = f->sched.now_ps;
    wake(f, e, w);
}

/* What waited for a group whose last flow has finished starts, or its delay does. */
static void group_done(struct fabric *f, struct flow_group *g)
{
    for (uint32_t i = g->waiting; i != PACKET_NONE; i = f->flow[i].next_waiting) {
        struct flow *w = &f->flow[i];
        struct endpoint *e = &f->endpoint[w->home];
        f->awaited++;
        w->start_ps = f->sched.now_ps + f->flow_spec[i].start_ps;
        heap_put(&((struct source *)e->state)->heap, &w->timer, w->start_ps);
        source_arm(f, e);
    }
}

/* At the flow's first host. */
static void trace_flow(struct fabric *f, enum fabric_trace_kind kind, const struct flow *w,
                       uint32_t value)
{
    if (tracing(f, kind))
        trace_other(f, kind, f->endpoint[w->home].port, w->index, w->priority, value);
}

static void leave(struct fabric *f, struct endpoint *e, struct flow *w)
{
    struct source *s = e->state;
    w->done = true;
    ring_leave(f, e, w);
    if (heap_holds(&w->pace))
        heap_remove(&s->paced, &w->pace);
    if (heap_holds(&w->timer))
        heap_remove(&s->heap, &w->timer);
    source_arm(f, e);
}

void source_fail(struct fabric *f, struct endpoint *e, struct flow *w, unsigned status)
{
    leave(f, e, w);
    f->progress_ps = f->sched.now_ps;
    f->totals.failed++;
    trace_flow(f, TRACE_FAIL, w, status);
}

void source_finish(struct fabric *f, struct endpoint *e, struct flow *w)
{
    leave(f, e, w);
    w->fct_ps = f->sched.now_ps - w->start_ps;
    f->totals.finished++;
    trace_flow(f, TRACE_FINISH, w, 0);
    if (w->group != FABRIC_NO_GROUP && --f->group[w->group].left == 0)
        group_done(f, &f->group[w->group]);
}

/* Beside what the scenario allows. */
static void set_window(const struct fabric *f, struct flow *w, uint64_t cc_bytes)
{
    uint64_t most = f->config.hosts.window_bytes;
    w->window_bytes = most != 0 && most < cc_bytes ? most : cc_bytes;
}

static void tell_path(struct fabric *f, struct endpoint *e, struct flow *w, uint64_t acked)
{
    const struct cc_params *p = &((struct source *)e->state)->cc;
    cc_path(&w->cc, p, &f->telemetry->flow[w->index], &f->telemetry->came, acked, w->next);
    set_window(f, w, cc_window(&w->cc, p));
    if (!may_send(w))
        ring_leave(f, e, w);
}

static void tell_cc(struct fabric *f, struct endpoint *e, struct flow *w, const struct packet *k)
{
    const struct cc_params *p = &((struct source *)e->state)->cc;
    uint64_t now = f->sched.now_ps;
    if (k->kind == PACKET_CNP || (k->flags & PACKET_ECHO) != 0) {
        w->cnps++;
        cc_cnp(&w->cc, p, now / 1000);
    }
    if (k->kind == PACKET_NAK)
        cc_nak(&w->cc, p);
    if ((k->flags & PACKET_PROBE) != 0 && k->sent_ps == w->probe_ps) {
        w->probe_ps = 0;
        cc_rtt(&w->cc, p, now / 1000, (now - k->sent_ps) / 1000);
    }
    if (f->telemetry != NULL && k->kind != PACKET_CNP)
        tell_path(f, e, w, k->seq);
}

static void answer_arrived(struct fabric *f, struct endpoint *e, const struct packet *k)
{
    struct flow *w = &f->flow[k->flow];
    if (w->done)
        return;
    tell_cc(f, e, w, k);
    if (k->kind == PACKET_CNP)
        return;
    if (k->seq > w->acked) {
        f->totals.acked_bytes += k->seq - w->acked;
        w->acked = k->seq;
        w->progress_ps = f->sched.now_ps;
        if (w->acked > w->furthest) { /* what is acknowledged once more is no progress */
            w->furthest = w->acked;
            f->progress_ps = f->sched.now_ps;
        }
        if (w->next < w->acked)
            w->next = w->acked; /* it had gone back, but what it missed arrived */
    }
    if (w->acked == w->bytes)
        source_finish(f, e, w);
    else if (k->kind == PACKET_NAK && (k->seq == w->acked || f->config.hosts.go_back_0) &&
             w->next > k->seq)
        go_back(f, e, w);
    else
        wake(f, e, w);
}

static void source_receive(struct fabric *f, struct endpoint *e, uint32_t packet)
{
    struct packet k = f->pool.packet[packet];
    if ((k.flags & PACKET_BROKEN) != 0) {
        switch_drop(f, &f->port[e->port], packet, &f->totals.drops_icrc);
        return;
    }
    if (f->telemetry != NULL)
        f->telemetry->came = f->telemetry->packet[packet];
    packet_give(&f->pool, packet);
    if (k.kind == PACKET_DATA)
        data_arrived(f, e, &k);
    else
        answer_arrived(f, e, &k);
}

void source_started(struct fabric *f, struct flow *w)
{
    if (w->started)
        return;
    w->started = true;
    f->awaited--;
    f->started++;
    trace_flow(f, TRACE_START, w, w->bytes < UINT32_MAX ? (uint32_t)w->bytes : UINT32_MAX);
    w->progress_ps = f->progress_ps = f->sched.now_ps;
}

/* A flow starts, or nothing of it was acknowledged for the timeout. */
static void source_timer(struct fabric *f, struct endpoint *e)
{
    struct source *s = e->state;
    uint64_t now = f->sched.now_ps, timeout = f->config.hosts.timeout_ps;
    struct heap_node *n;
    while ((n = heap_first(&s->paced)) != NULL && n->time_ns <= now) {
        heap_remove(&s->paced, n);
        wake(f, e, (struct flow *)((char *)n - offsetof(struct flow, pace)));
    }
    while ((n = heap_first(&s->heap)) != NULL && n->time_ns <= now) {
        struct flow *w = flow_of(n);
        source_started(f, w);
        if (timeout != 0 && now - w->progress_ps >= timeout && w->next > w->acked)
            go_back(f, e, w);
        if (timeout == 0)
            heap_remove(&s->heap, n);
        else
            heap_put(&s->heap, n,
                     (now - w->progress_ps >= timeout ? now : w->progress_ps) + timeout);
        wake(f, e, w);
    }
    source_arm(f, e);
}

static const struct endpoint_ops source_ops = {
    .receive = source_receive,
    .pull = source_pull,
    .timer = source_timer,
};

int source_init(struct fabric *f, struct endpoint *e, struct source *s)
{
    uint32_t link = f->port[e->port].link;
    const char *cc = f->config.hosts.cc != NULL ? f->config.hosts.cc : "none";
    heap_init(&s->heap);
    heap_init(&s->paced);
    s->engine_ps = FABRIC_NEVER;
    for (unsigned p = 0; p < FABRIC_PRIORITIES; p++)
        s->ring[p] = PACKET_NONE;
    e->state = s;
    if (!cc_params_named(&s->cc, cc, f->topology.link[link].rate_bps))
        return -EINVAL;
    if (f->telemetry != NULL)
        s->cc.hpcc = (struct cc_hpcc){
            .base_rtt_ps = f->telemetry->base_rtt_ps,
            .step_bps = s->cc.line_bps / f->config.hosts.hpcc_parts,
            .eta_percent = f->config.hosts.hpcc_eta_percent,
            .max_stage = f->config.hosts.hpcc_stages,
        };
    return 0;
}

static int hosts_create(struct fabric *f)
{
    for (uint32_t i = 0; i < f->hosts; i++) {
        struct source *s = calloc(1, sizeof(*s));
        if (s == NULL)
            return -ENOMEM;
        f->endpoint[i].ops = &source_ops;
        int rc = source_init(f, &f->endpoint[i], s);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static uint32_t home_of(const struct fabric *f, const struct fabric_flow *spec)
{
    bool reads = f->config.hosts.engine && spec->work.verb == FABRIC_READ;
    return f->node[reads ? spec->dst : spec->src].host;
}

static void flow_init(struct fabric *f, uint32_t i)
{
    const struct fabric_flow *spec = &f->flow_spec[i];
    struct flow *w = &f->flow[i];
    w->index = i;
    w->bytes = spec->bytes;
    w->priority = spec->priority;
    w->src = f->node[spec->src].host;
    w->dst = f->node[spec->dst].host;
    w->home = home_of(f, spec);
    w->hash = hash_mix(i);
    w->back_hash = hash_mix(i ^ UINT64_C(1) << 32);
    w->start_ps = w->fct_ps = FABRIC_NEVER;
    const struct cc_params *cc = &((struct source *)f->endpoint[w->src].state)->cc;
    cc_start(&w->cc, cc);
    set_window(f, w, cc_window(&w->cc, cc));
    w->group = spec->group;
    f->totals.bytes += w->bytes;
    if (w->group != FABRIC_NO_GROUP)
        f->group[w->group].left++;
    if (spec->after != FABRIC_NO_GROUP) {
        w->next_waiting = f->group[spec->after].waiting;
        f->group[spec->after].waiting = i;
        return;
    }
    f->awaited++;
    w->start_ps = spec->start_ps;
    heap_put(&((struct source *)f->endpoint[w->home].state)->heap, &w->timer, w->start_ps);
}

int source_create(struct fabric *f, uint32_t *bad)
{
    uint32_t *flows = calloc(f->hosts + 1u, sizeof(*flows));
    f->flow = calloc(f->flow_count + 1u, sizeof(*f->flow));
    f->group = calloc(f->flow_count + 1u, sizeof(*f->group));
    bool got = flows != NULL && f->flow != NULL && f->group != NULL;
    int rc = got ? 0 : -ENOMEM;
    if (rc == 0)
        rc = f->config.hosts.engine ? engine_create(f, bad) : hosts_create(f);
    for (uint32_t i = 0; rc == 0 && i < f->flow_count; i++)
        f->group[i].waiting = PACKET_NONE;
    for (uint32_t i = 0; rc == 0 && i < f->flow_count; i++)
        flows[home_of(f, &f->flow_spec[i])]++;
    for (uint32_t i = 0; rc == 0 && i < f->hosts; i++)
        rc = heap_grow(&((struct source *)f->endpoint[i].state)->heap, flows[i]);
    for (uint32_t i = 0; rc == 0 && i < f->hosts; i++)
        rc = heap_grow(&((struct source *)f->endpoint[i].state)->paced, flows[i]);
    free(flows);
    for (uint32_t i = 0; rc == 0 && i < f->flow_count; i++)
        flow_init(f, i);
    if (rc == 0 && f->config.hosts.engine)
        rc = engine_connect_create(f);
    for (uint32_t i = 0; rc == 0 && i < f->hosts; i++)
        source_arm(f, &f->endpoint[i]);
    return rc;
}

void source_free(struct fabric *f)
{
    if (f->config.hosts.engine)
        engine_free(f);
    for (uint32_t i = 0; f->endpoint != NULL && i < f->hosts; i++) {
        struct source *s = f->endpoint[i].state;
        if (s != NULL) {
            heap_fini(&s->heap);
            heap_fini(&s->paced);
        }
        free(s);
    }
    free(f->flow);
    free(f->group);
}

void source_result(const struct fabric *f, uint32_t flow, struct fabric_flow_result *out)
{
    const struct flow *w = &f->flow[flow];
    *out = (struct fabric_flow_result){.start_ps = w->started ? w->start_ps : FABRIC_NEVER,
                                       .fct_ps = w->fct_ps,
                                       .retries = w->retries,
                                       .cnps = w->cnps,
                                       .failed_ps = FABRIC_NEVER};
}

uint64_t fabric_flow_arrived(const struct fabric *f, uint32_t flow)
{
    return f->flow[flow].arrived;
}
