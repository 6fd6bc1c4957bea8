/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric.c: makes a fabric of its description, runs it event by event, and tells what came out.
 */
#include "fabric/fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/engine.h"

enum {
    FAR_PORTS = 200, /* a fabric of more is not in the cache */
    NEAR_EVENTS = 3, /* asked for in advance */
    MAX_PACKETS = 1 << 24,
    MAX_BEHIND = 1 << 22,
    TAG_BYTES = 4,
    INT_BYTES = 2 + CC_MAX_HOPS * 8, /* as HPCC has it, whatever a struct cc_path takes here */
};

/* Headers: Ethernet with FCS 18, IPv4 20, UDP 8, BTH 12, ICRC 4. Response: IEEE 802.3 31B.3.7. */
void fabric_defaults(struct fabric_config *config)
{
    *config = (struct fabric_config){.gap_bytes = 20, .pfc_bytes = 64, .min_frame_bytes = 64};
    config->switches = (struct fabric_switches){
        .buffer_bytes = 16 << 20,
        .alpha_num = 1,
        .alpha_den = 8,
        .xon_offset_bytes = 4096,
        .lossless = 1 << 3,
        .control = 1 << 6 | 1 << 7,
        .pause_quanta = 0xffff,
        .response_quanta = 394,
        .ecn = 1 << 3,
        .kmin_bytes = 400000,
        .kmax_bytes = 1600000,
        .ecn_rate_bps = UINT64_C(100000000000),
        .pmax_ppm = 200000,
        .converge_ps = 10 * FABRIC_MS,
    };
    config->hosts = (struct fabric_hosts){
        .payload_bytes = 1024,
        .header_bytes = 62,
        .ack_bytes = 66,
        .cnp_bytes = 78,
        .ack_priority = 6,
        .cnp_priority = 6,
        .cnp_interval_ps = 50 * FABRIC_US,
        .timeout_ps = 4 * FABRIC_MS,
        .retry = 7,
        .rnr_retry = 7,
        .rnr_timer_ps = 10 * FABRIC_US,
        .hpcc_eta_percent = CC_HPCC_ETA_PERCENT,
        .hpcc_stages = CC_HPCC_STAGES,
        .hpcc_parts = CC_HPCC_PARTS,
    };
}

/* A path MTU of RoCE. */
static bool engine_payload(uint32_t bytes)
{
    return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

/* None is beyond what the scheduler can count to, nor is a sum of some. */
static bool times_sane(const struct fabric_config *c)
{
    const struct fabric_hosts *h = &c->hosts;
    const uint64_t times[] = {h->timeout_ps, h->cnp_interval_ps, c->detect_ps,
                              c->restore_ps, c->stall_ps,        c->sample_ps};
    for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i] > SCHED_MAX_PS / 8)
            return false;
    return c->limit_ps <= SCHED_MAX_PS / 2 && h->rnr_timer_ps <= FABRIC_MAX_RNR_PS &&
           (c->switches.converge_ps <= SCHED_MAX_PS / 8 || c->switches.converge_ps == FABRIC_NEVER);
}

static bool config_sane(const struct fabric_config *c)
{
    const struct fabric_switches *s = &c->switches;
    const struct fabric_hosts *h = &c->hosts;
    return s->alpha_den != 0 && s->alpha_num != 0 && s->pause_quanta >= 1 &&
           s->pause_quanta <= FABRIC_QUANTA_HELD && s->buffer_bytes <= UINT32_MAX &&
           s->kmin_bytes <= s->kmax_bytes && s->pmax_ppm <= 1000000 && h->payload_bytes >= 1 &&
           h->payload_bytes + h->header_bytes <= FABRIC_MAX_FRAME_BYTES &&
           h->ack_priority < FABRIC_PRIORITIES && h->cnp_priority < FABRIC_PRIORITIES &&
           (!h->engine || engine_payload(h->payload_bytes)) && h->retry <= 7 && h->rnr_retry <= 7 &&
           (!c->bytes || h->engine) && (!h->engine || !telemetry_wanted(c)) &&
           h->hpcc_eta_percent >= 1 && h->hpcc_eta_percent <= 100 && h->hpcc_parts >= 1 &&
           (c->watchdog == WATCHDOG_OFF || c->detect_ps > 0) &&
           (c->on_sample == NULL || c->sample_ps > 0) && times_sane(c);
}

static bool work_sane(const struct fabric_work *k)
{
    return k->verb <= FABRIC_CMP_SWAP && k->message_bytes <= FABRIC_MAX_MESSAGE_BYTES &&
           k->receives <= FABRIC_MAX_RECEIVES && k->receive_ps <= SCHED_MAX_PS / 8;
}

static bool flows_sane(const struct fabric_topology *t, const struct fabric_flow *flows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct fabric_flow *w = &flows[i];
        if (w->src >= t->nodes || w->dst >= t->nodes || w->src == w->dst ||
            t->is_switch[w->src] != 0 || t->is_switch[w->dst] != 0 || w->bytes == 0 ||
            w->priority >= FABRIC_PRIORITIES || !work_sane(&w->work) ||
            (w->group >= n && w->group != FABRIC_NO_GROUP) ||
            (w->after >= n && w->after != FABRIC_NO_GROUP) ||
            (w->after != FABRIC_NO_GROUP && w->after == w->group) || w->start_ps > SCHED_MAX_PS / 2)
            return false;
    }
    return true;
}

static bool topology_sane(const struct fabric_topology *t)
{
    if (t->nodes > FABRIC_MAX_NODES || t->links > FABRIC_MAX_LINKS)
        return false;
    for (uint32_t i = 0; i < t->links; i++) {
        const struct fabric_link *l = &t->link[i];
        if (l->node[0] >= t->nodes || l->node[1] >= t->nodes || l->node[0] == l->node[1] ||
            l->rate_bps < 1000000 || l->rate_bps > UINT64_C(10000000000000) ||
            l->delay_ps > 1000 * FABRIC_MS || l->loss_ppm > 1000000 || l->corrupt_ppm > 1000000)
            return false;
    }
    return true;
}

static void port_init(struct fabric *f, uint32_t port, uint32_t node, uint32_t link)
{
    const struct fabric_link *l = &f->topology.link[link];
    const struct fabric_switches *c = &f->config.switches;
    struct port *p = &f->port[port];
    p->node = node;
    p->link = link;
    p->mtu_bytes = l->mtu_bytes;
    p->loss_ppm = l->loss_ppm;
    p->corrupt_ppm = l->corrupt_ppm;
    p->at_switch = f->topology.is_switch[node] != 0;
    p->byte_time = ((UINT64_C(8000000000000) << 20) + l->rate_bps / 2) / l->rate_bps;
    p->delay_ps = l->delay_ps;
    p->wire = (struct packet_list){PACKET_NONE, PACKET_NONE};
    p->kmin_bytes = c->kmin_bytes;
    p->kmax_bytes = c->kmax_bytes;
    if (c->ecn_rate_bps != 0) {
        p->kmin_bytes = c->kmin_bytes * (l->rate_bps / 1000000) / (c->ecn_rate_bps / 1000000);
        p->kmax_bytes = c->kmax_bytes * (l->rate_bps / 1000000) / (c->ecn_rate_bps / 1000000);
    }
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
        p->queue[i].list = (struct packet_list){PACKET_NONE, PACKET_NONE};
}

static int nodes_create(struct fabric *f)
{
    const struct fabric_topology *t = &f->topology;
    f->ports = 2 * t->links;
    f->node = calloc(t->nodes + 1u, sizeof(*f->node));
    f->port = aligned_alloc(_Alignof(struct port), (f->ports + (size_t)1) * sizeof(*f->port));
    f->waiting = calloc(f->ports + 1u, 1);
    if (f->node == NULL || f->port == NULL || f->waiting == NULL)
        return -ENOMEM;
    memset(f->port, 0, (f->ports + (size_t)1) * sizeof(*f->port));
    for (uint32_t i = 0; i < 2 * t->links; i++)
        f->node[t->link[i / 2].node[i % 2]].ports++;
    uint32_t first = 0;
    for (uint32_t i = 0; i < t->nodes; i++) {
        struct node *n = &f->node[i];
        n->is_switch = t->is_switch[i] != 0;
        n->host = n->is_switch ? f->switches++ : f->hosts++;
        n->first_port = first;
        first += n->ports;
        if (!n->is_switch && n->ports != 1)
            return -EINVAL;
        n->ports = 0;
    }
    for (uint32_t i = 0; i < t->links; i++) {
        struct node *a = &f->node[t->link[i].node[0]], *b = &f->node[t->link[i].node[1]];
        uint32_t pa = a->first_port + a->ports++, pb = b->first_port + b->ports++;
        port_init(f, pa, t->link[i].node[0], i);
        port_init(f, pb, t->link[i].node[1], i);
        f->port[pa].peer = pb;
        f->port[pb].peer = pa;
    }
    return 0;
}

static void map(const struct fabric *f, struct switch_state *s)
{
    for (unsigned d = 0; d < FABRIC_DSCPS; d++)
        s->priority_of[d] = (uint8_t)(d / 8);
    for (unsigned p = 0; p < FABRIC_PRIORITIES; p++)
        s->priority_of_pcp[p] = (uint8_t)p;
    for (uint32_t i = 0; i < f->config.mappings; i++) {
        const struct fabric_mapping *m = &f->config.mapping[i];
        if (m->node != s->node)
            continue;
        if (m->pcp)
            s->priority_of_pcp[m->dscp % FABRIC_PRIORITIES] = m->priority % FABRIC_PRIORITIES;
        else
            s->priority_of[m->dscp % FABRIC_DSCPS] = m->priority % FABRIC_PRIORITIES;
    }
}

static int switches_create(struct fabric *f, uint32_t *bad)
{
    f->sw = calloc(f->switches + 1u, sizeof(*f->sw));
    if (f->sw == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->topology.nodes; i++) {
        if (!f->node[i].is_switch)
            continue;
        struct switch_state *s = &f->sw[f->node[i].host];
        s->node = i;
        rng_init(&s->rng, f->config.seed ^ (i + UINT64_C(1)) << 20);
        s->ecmp_seed = rng_next(&s->rng);
        map(f, s);
        uint64_t taken = buffer_init(f, s);
        *bad = taken < UINT32_MAX ? (uint32_t)taken : UINT32_MAX;
        if (s->shared_bytes == 0)
            return -ENOSPC;
    }
    return 0;
}

/* What a NIC may have ready of a flow: what is in flight at most. */
static uint64_t packets_ready(const struct fabric_config *c, const struct fabric_flow *w)
{
    uint64_t window = c->hosts.window_bytes != 0 ? c->hosts.window_bytes : FABRIC_WINDOW_BYTES;
    uint64_t message = w->work.message_bytes != 0 ? w->work.message_bytes : ENGINE_MESSAGE_BYTES;
    uint64_t payload = message < c->hosts.payload_bytes ? message : c->hosts.payload_bytes;
    uint64_t bytes = w->bytes < window + message ? w->bytes : window + message;
    bool atomic = w->work.verb == FABRIC_FETCH_ADD || w->work.verb == FABRIC_CMP_SWAP;
    return TRAIN_MAX_PACKETS + (atomic ? 0 : bytes / payload);
}

/* Of NICs that have to get at a priority behind others, which may be paused: see engine_pull. */
static uint64_t packets_behind(const struct fabric *f)
{
    uint64_t sum = 0;
    uint8_t priorities = 0;
    for (uint32_t i = 0; f->config.hosts.engine && i < f->flow_count; i++) {
        priorities |= (uint8_t)(1u << f->flow_spec[i].priority);
        sum += packets_ready(&f->config, &f->flow_spec[i]);
    }
    if ((priorities & (priorities - 1)) == 0)
        return 0;
    return sum < MAX_BEHIND ? sum : MAX_BEHIND;
}

/* What can be queued and on the wires if most frames are full. */
static uint32_t packets_wanted(const struct fabric *f)
{
    const struct fabric_hosts *h = &f->config.hosts;
    uint64_t frame = h->payload_bytes + h->header_bytes, sum = 65536 + packets_behind(f);
    sum += 2 * f->switches * (f->config.switches.buffer_bytes / frame);
    for (uint32_t i = 0; i < f->ports; i++)
        sum += 16 + f->port[i].delay_ps * (UINT64_C(1) << 20) / f->port[i].byte_time / 64;
    return sum < MAX_PACKETS ? (uint32_t)sum : MAX_PACKETS;
}

static int hosts_create(struct fabric *f, uint32_t *bad)
{
    f->endpoint = calloc(f->hosts + 1u, sizeof(*f->endpoint));
    if (f->endpoint == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->topology.nodes; i++) {
        const struct node *n = &f->node[i];
        if (n->is_switch)
            continue;
        f->endpoint[n->host].port = n->first_port;
        f->endpoint[n->host].timer = f->ports * PORT_EVENTS + n->host;
    }
    int rc = telemetry_wanted(&f->config) ? telemetry_create(f) : 0;
    return rc == 0 ? source_create(f, bad) : rc;
}

/* A large fabric is not in the cache: what an event will look at is asked for when it is known to
 * be near, and the packet behind it a few events before its turn. */
static void soon(void *arg, uint32_t id)
{
    const struct fabric *f = arg;
    if (id < f->ports * PORT_EVENTS) {
        const char *p = (const char *)&f->port[id / PORT_EVENTS];
        __builtin_prefetch(p);
        __builtin_prefetch(p + 64);
    }
}

static void very_soon(const struct fabric *f, uint32_t i)
{
    uint32_t id = sched_due_id(&f->sched, i);
    if (id >= f->ports * PORT_EVENTS)
        return;
    const struct port *p = &f->port[id / PORT_EVENTS];
    if (id % PORT_EVENTS == PORT_WIRE) {
        __builtin_prefetch(&f->port[p->peer]);
        if (p->wire.head != PACKET_NONE)
            __builtin_prefetch(&f->pool.packet[p->wire.head]);
    } else if (p->backlog != 0) {
        const struct queue *q = &p->queue[31 - __builtin_clz(p->backlog)];
        __builtin_prefetch(&f->pool.packet[q->list.head]);
        if (p->wire.head != PACKET_NONE)
            __builtin_prefetch(&f->pool.packet[p->wire.tail]);
    }
}

static int build_create(struct fabric *f, uint32_t *bad)
{
    int rc = nodes_create(f);
    if (rc == 0)
        rc = switches_create(f, bad);
    if (rc == 0)
        rc = route_create(f, bad);
    if (rc == 0)
        rc = sched_init(&f->sched, f->ports * PORT_EVENTS + f->hosts + FABRIC_EVENTS);
    if (f->ports > FAR_PORTS) {
        f->sched.soon = soon;
        f->sched.soon_arg = f;
    }
    uint32_t packets = f->config.max_packets;
    if (rc == 0)
        rc = packet_pool_init(&f->pool, packets != 0 ? packets : packets_wanted(f));
    return rc == 0 ? hosts_create(f, bad) : rc;
}

int fabric_create(const struct fabric_config *config, const struct fabric_topology *topology,
                  const struct fabric_flow *flows, uint32_t flow_count, struct fabric **out,
                  uint32_t *bad)
{
    if (!config_sane(config) || !topology_sane(topology) || flow_count > FABRIC_MAX_FLOWS ||
        !flows_sane(topology, flows, flow_count))
        return -EINVAL;
    for (uint32_t i = 0; i < config->faults; i++)
        if (config->fault[i].link >= topology->links || config->fault[i].at_ps > SCHED_MAX_PS / 2 ||
            (i > 0 && config->fault[i].at_ps < config->fault[i - 1].at_ps))
            return -EINVAL;
    struct fabric *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return -ENOMEM;
    f->config = *config;
    if (config->hosts.vlan) {
        f->config.hosts.header_bytes += TAG_BYTES;
        f->config.hosts.ack_bytes += TAG_BYTES;
        f->config.hosts.cnp_bytes += TAG_BYTES;
    }
    if (telemetry_wanted(config)) {
        f->config.hosts.header_bytes += INT_BYTES;
        f->config.hosts.ack_bytes += INT_BYTES;
    }
    f->topology = *topology;
    f->flow_spec = flows;
    f->flow_count = flow_count;
    f->totals.flows = flow_count;
    rng_init(&f->rng, config->seed ^ UINT64_C(0x77697265));
    f->totals.deadlock_ps = FABRIC_NEVER;
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
        f->weighted = f->weighted || config->switches.weight[i] != 0;
    int rc = build_create(f, bad);
    if (rc != 0) {
        fabric_destroy(f);
        return rc;
    }
    watch_start(f);
    if (config->faults > 0)
        sched_put(&f->sched, event_of_fabric(f, FABRIC_FAULT), config->fault[0].at_ps);
    route_await_event(f);
    if (config->on_sample != NULL)
        sched_put(&f->sched, event_of_fabric(f, FABRIC_SAMPLE), config->sample_ps);
    *out = f;
    return 0;
}

void fabric_destroy(struct fabric *f)
{
    source_free(f);
    telemetry_free(f);
    route_free(f);
    sched_fini(&f->sched);
    packet_pool_fini(&f->pool);
    free(f->endpoint);
    free(f->sw);
    free(f->node);
    free(f->port);
    free(f->waiting);
    free(f);
}

static void fault_event(struct fabric *f)
{
    const struct fabric_fault *next = &f->config.fault[f->next_fault++];
    for (uint32_t port = 0; port < f->ports; port++)
        if (f->port[port].link == next->link)
            egress_set_link(f, port, next->up);
    f->progress_ps = f->sched.now_ps; /* as long as ever for what this makes possible */
    if (f->next_fault < f->config.faults)
        sched_put(&f->sched, event_of_fabric(f, FABRIC_FAULT),
                  f->config.fault[f->next_fault].at_ps);
}

static void sample_event(struct fabric *f)
{
    uint64_t after = f->config.on_sample(f->config.on_sample_arg, f);
    if (after != 0)
        sched_put(&f->sched, event_of_fabric(f, FABRIC_SAMPLE), f->sched.now_ps + after);
}

static void dispatch(struct fabric *f, uint32_t id)
{
    if (id < f->ports * PORT_EVENTS) {
        uint32_t port = id / PORT_EVENTS;
        switch ((enum port_event)(id % PORT_EVENTS)) {
        case PORT_TX:
            egress_kick(f, port);
            break;
        case PORT_WIRE:
            egress_wire_event(f, port);
            break;
        default:
            pause_renew_event(f, port);
            break;
        }
        return;
    }
    id -= f->ports * PORT_EVENTS;
    if (id < f->hosts) {
        f->endpoint[id].ops->timer(f, &f->endpoint[id]);
        return;
    }
    switch ((enum fabric_event)(id - f->hosts)) {
    case FABRIC_CHECK:
        watch_check_event(f);
        break;
    case FABRIC_WATCH:
        watch_dog_event(f);
        break;
    case FABRIC_FAULT:
        fault_event(f);
        break;
    case FABRIC_ROUTE:
        route_learn_event(f);
        break;
    default:
        sample_event(f);
        break;
    }
}

static bool all_done(const struct fabric *f)
{
    return f->pool.in_use == 0 && !watch_open(f);
}

enum fabric_state fabric_run(struct fabric *f, uint64_t max_events)
{
    bool far = f->sched.soon != NULL;
    uint64_t limit = f->config.limit_ps != 0 ? f->config.limit_ps : SCHED_MAX_PS / 2;
    for (uint64_t n = 0; n < max_events && f->state == FABRIC_RUNNING; n++) {
        if (all_done(f)) {
            f->state = watch_end(f);
            break;
        }
        uint32_t id = sched_next(&f->sched);
        assert(id != SCHED_NOTHING); /* the check is always pending */
        if (f->sched.now_ps > limit) {
            f->sched.now_ps = limit;
            f->state = FABRIC_LIMIT;
            break;
        }
        f->totals.events++;
        for (uint32_t i = 0; far && i < NEAR_EVENTS; i++)
            very_soon(f, i);
        dispatch(f, id);
        if (f->full)
            f->state = FABRIC_FULL;
    }
    return f->state;
}

static uint64_t max_queue_bytes(const struct port *p, unsigned priority)
{
    uint64_t before = p->count[priority].max_queue_bytes, peak = p->queue[priority].peak_bytes;
    return peak > before ? peak : before;
}

void fabric_totals(const struct fabric *f, struct fabric_totals *out)
{
    *out = f->totals;
    out->now_ps = f->sched.now_ps;
    out->progress_ps = f->progress_ps;
    for (uint32_t i = 0; i < f->ports; i++)
        for (unsigned j = 0; f->port[i].at_switch && j < FABRIC_PRIORITIES; j++)
            if (max_queue_bytes(&f->port[i], j) > out->max_queue_bytes)
                out->max_queue_bytes = max_queue_bytes(&f->port[i], j);
}

void fabric_flow_result(const struct fabric *f, uint32_t flow, struct fabric_flow_result *out)
{
    source_result(f, flow, out);
    if (f->config.hosts.engine)
        engine_result(f, flow, out);
    out->ideal_ps = route_ideal_ps(f, flow, f->flow_spec[flow].bytes);
}

uint64_t fabric_round_trip_ps(const struct fabric *f, uint32_t flow)
{
    uint64_t bytes = f->flow_spec[flow].bytes, payload = f->config.hosts.payload_bytes;
    return route_ideal_ps(f, flow, bytes < payload ? bytes : payload);
}

uint32_t fabric_ports(const struct fabric *f)
{
    return f->ports;
}

void fabric_port_result(const struct fabric *f, uint32_t port, unsigned priority,
                        struct fabric_port_result *out)
{
    const struct port *p = &f->port[port];
    const struct port_counts *c = &p->count[priority];
    *out = (struct fabric_port_result){
        .node = p->node,
        .port = port - f->node[p->node].first_port,
        .max_queue_bytes = max_queue_bytes(p, priority),
        .paused_received_ps = pause_received_ps(f, port, priority),
        .paused_sent_ps = pause_sent_ps(f, port, priority),
        .tx_bytes = c->tx_bytes,
        .ecn_marks = c->ecn_marks,
        .drops = c->drops,
    };
}

void fabric_port_sample(struct fabric *f, uint32_t port, struct fabric_port_sample *out)
{
    struct port *p = &f->port[port];
    *out = (struct fabric_port_sample){0};
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++) {
        struct queue *q = &p->queue[i];
        p->count[i].max_queue_bytes = max_queue_bytes(p, i);
        if (q->peak_bytes > out->peak_bytes)
            out->peak_bytes = q->peak_bytes;
        q->peak_bytes = q->bytes;
        out->tx_bytes += p->count[i].tx_bytes;
        out->paused_ps += pause_received_ps(f, port, i);
    }
}

uint8_t fabric_deadlock(const struct fabric *f, uint32_t port)
{
    return f->totals.deadlock_ps != FABRIC_NEVER ? f->waiting[port] : 0;
}

void fabric_thresholds(const struct fabric *f, uint32_t port, uint64_t *kmax_bytes,
                       uint64_t *xoff_bytes)
{
    const struct port *p = &f->port[port];
    *kmax_bytes = p->kmax_bytes;
    *xoff_bytes = p->at_switch ? buffer_threshold(f, &f->sw[f->node[p->node].host], p) : 0;
}

uint64_t fabric_memory_bytes(const struct fabric *f)
{
    uint64_t sum = sizeof(*f) + f->ports * sizeof(*f->port) + f->pool.fresh * sizeof(struct packet);
    sum += f->sched.events * sizeof(struct sched_event);
    sum += f->sched.due_capacity * sizeof(struct sched_due);
    sum += f->switches * (sizeof(*f->sw) + f->hosts * sizeof(uint32_t));
    if (f->telemetry != NULL)
        sum += (f->pool.fresh + (uint64_t)f->flow_count) * sizeof(struct cc_path) +
               f->ports * sizeof(uint64_t);
    return sum;
}
