/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.c: shortest ways. Each switch has for each host a group of ports that are all one step
 * nearer; a flow takes one by its hash and the switch's own seed, so that two switches in a row
 * choose independently. When links go or come back all is measured anew, some time later.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/engine.h"
#include "wire/iba.h"

enum { UNREACHED = UINT16_MAX, MAX_IDEAL_HOPS = 256 };

struct search {
    uint16_t *distance; /* of each node to the host */
    uint32_t *queue;
    uint32_t *next;   /* ports of one switch */
    uint8_t *avoided; /* of each link: it is known to be down */
};

uint32_t route_port(const struct fabric *f, const struct switch_state *s, uint32_t host,
                    uint32_t hash)
{
    uint32_t route = s->route[host];
    if (route == PACKET_NONE)
        return PACKET_NONE;
    const struct route_group *g = &s->group[route];
    const uint32_t *ports = &s->ports[g->first];
    if (g->count == 1)
        return f->port[ports[0]].down ? PACKET_NONE : ports[0];
    uint32_t draw = hash_mix(hash ^ s->ecmp_seed);
    uint32_t port = ports[(uint64_t)draw * g->count >> 32];
    if (!f->port[port].down)
        return port;
    /* Among those that are up. */
    uint32_t up = 0;
    for (uint32_t i = 0; i < g->count; i++)
        up += !f->port[ports[i]].down;
    if (up == 0)
        return PACKET_NONE;
    uint32_t pick = (uint32_t)((uint64_t)draw * up >> 32);
    for (uint32_t i = 0; i < g->count; i++)
        if (!f->port[ports[i]].down && pick-- == 0)
            return ports[i];
    return PACKET_NONE;
}

/* Steps from every node to the host, through switches only. */
static void measure(const struct fabric *f, uint32_t to)
{
    struct search *s = f->search;
    uint32_t first = 0, last = 0;
    memset(s->distance, 0xff, f->topology.nodes * sizeof(*s->distance));
    s->distance[to] = 0;
    s->queue[last++] = to;
    while (first < last) {
        const struct node *n = &f->node[s->queue[first++]];
        uint16_t beyond = (uint16_t)(s->distance[s->queue[first - 1]] + 1);
        if (!n->is_switch && beyond != 1)
            continue;
        for (uint32_t i = 0; i < n->ports; i++) {
            const struct port *p = &f->port[n->first_port + i];
            uint32_t peer = f->port[p->peer].node;
            if (s->distance[peer] != UNREACHED || s->avoided[p->link])
                continue;
            s->distance[peer] = beyond;
            s->queue[last++] = peer;
        }
    }
}

/* The group of these ports; PACKET_NONE: no memory. */
static uint32_t group_create(struct switch_state *s, const uint32_t *ports, uint32_t count)
{
    for (uint32_t i = s->groups; i-- > 0;)
        if (s->group[i].count == count &&
            memcmp(&s->ports[s->group[i].first], ports, count * sizeof(*ports)) == 0)
            return i;
    if (s->groups == s->group_capacity) {
        uint32_t n = 2 * s->group_capacity + 16;
        void *grown = realloc(s->group, n * sizeof(*s->group));
        if (grown == NULL)
            return PACKET_NONE;
        s->group = grown;
        s->group_capacity = n;
    }
    if (s->ports_used + count > s->ports_capacity) {
        uint32_t n = 2 * s->ports_capacity + count + 16;
        void *grown = realloc(s->ports, n * sizeof(*s->ports));
        if (grown == NULL)
            return PACKET_NONE;
        s->ports = grown;
        s->ports_capacity = n;
    }
    memcpy(&s->ports[s->ports_used], ports, count * sizeof(*ports));
    s->group[s->groups] = (struct route_group){s->ports_used, count};
    s->ports_used += count;
    return s->groups++;
}

static int route_towards(struct fabric *f, uint32_t host)
{
    struct search *search = f->search;
    for (uint32_t i = 0; i < f->switches; i++) {
        struct switch_state *s = &f->sw[i];
        const struct node *n = &f->node[s->node];
        uint16_t here = search->distance[s->node];
        uint32_t count = 0;
        s->route[host] = PACKET_NONE;
        if (here == UNREACHED)
            continue;
        for (uint32_t j = 0; j < n->ports; j++) {
            uint32_t port = n->first_port + j;
            uint32_t peer = f->port[f->port[port].peer].node;
            if (search->distance[peer] == here - 1 && !search->avoided[f->port[port].link] &&
                (f->node[peer].is_switch || search->distance[peer] == 0))
                search->next[count++] = port;
        }
        s->route[host] = group_create(s, search->next, count);
        if (s->route[host] == PACKET_NONE)
            return -ENOMEM;
    }
    return 0;
}

/* Whether each flow has a way is a question to the first switch behind its source. */
static int check_flows(const struct fabric *f, uint32_t *bad)
{
    for (uint32_t i = 0; i < f->flow_count; i++) {
        const struct node *src = &f->node[f->flow_spec[i].src],
                          *dst = &f->node[f->flow_spec[i].dst];
        uint32_t peer = f->port[f->port[src->first_port].peer].node;
        *bad = i;
        if (!f->node[peer].is_switch) {
            if (peer != f->flow_spec[i].dst)
                return -EHOSTUNREACH;
        } else if (f->sw[f->node[peer].host].route[dst->host] == PACKET_NONE) {
            return -EHOSTUNREACH;
        }
    }
    return 0;
}

/* Ways to all hosts. Groups that are there are found, not made. */
static int measure_all(struct fabric *f)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < f->topology.nodes; i++) {
        if (f->node[i].is_switch)
            continue;
        measure(f, i);
        rc = route_towards(f, f->node[i].host);
    }
    return rc;
}

/* One fault becomes known, unless its link changed again before; whether that is news. */
static bool learn(struct fabric *f, uint32_t fault)
{
    const struct fabric_config *c = &f->config;
    const struct fabric_fault *this = &c->fault[fault];
    uint8_t *avoided = &f->search->avoided[this->link];
    for (uint32_t i = fault + 1; i < c->faults; i++) {
        if (c->fault[i].at_ps - this->at_ps > c->switches.converge_ps)
            break;
        if (c->fault[i].link == this->link)
            return false;
    }
    if (*avoided == !this->up)
        return false;
    *avoided = !this->up;
    return true;
}

/* All faults that are known at the time of the next; whether ways may have changed. */
static bool learn_next(struct fabric *f)
{
    const struct fabric_config *c = &f->config;
    uint64_t at_ps = c->fault[f->next_learnt].at_ps;
    bool news = false;
    while (f->next_learnt < c->faults && c->fault[f->next_learnt].at_ps == at_ps)
        news = learn(f, f->next_learnt++) || news;
    return news;
}

void route_await_event(struct fabric *f)
{
    const struct fabric_config *c = &f->config;
    if (f->next_learnt < c->faults)
        sched_put(&f->sched, event_of_fabric(f, FABRIC_ROUTE),
                  c->fault[f->next_learnt].at_ps + c->switches.converge_ps);
}

void route_learn_event(struct fabric *f)
{
    if (learn_next(f)) {
        int rc = measure_all(f);
        assert(rc == 0); /* rehearsal_create made all groups */
        f->progress_ps = f->sched.now_ps;
    }
    route_await_event(f);
}

/* All faults, one after the other, so that every group is there when it is wanted: there is no
 * memory to be had while the fabric runs. */
static int rehearsal_create(struct fabric *f)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < f->switches; i++) {
        struct switch_state *s = &f->sw[i];
        s->whole = malloc((f->hosts + (size_t)1) * sizeof(*s->whole));
        if (s->whole == NULL)
            return -ENOMEM;
        memcpy(s->whole, s->route, f->hosts * sizeof(*s->whole));
    }
    while (rc == 0 && f->next_learnt < f->config.faults)
        if (learn_next(f))
            rc = measure_all(f);
    for (uint32_t i = 0; rc == 0 && i < f->switches; i++)
        memcpy(f->sw[i].route, f->sw[i].whole, f->hosts * sizeof(*f->sw[i].route));
    memset(f->search->avoided, 0, f->topology.links);
    f->next_learnt = 0;
    return rc;
}

static int search_create(struct fabric *f)
{
    struct search *s = f->search = calloc(1, sizeof(*s));
    if (s == NULL)
        return -ENOMEM;
    s->distance = calloc(f->topology.nodes + 1u, sizeof(*s->distance));
    s->queue = calloc(f->topology.nodes + 1u, sizeof(*s->queue));
    s->next = calloc(f->ports + 1u, sizeof(*s->next));
    s->avoided = calloc(f->topology.links + 1u, 1);
    return s->distance != NULL && s->queue != NULL && s->next != NULL && s->avoided != NULL
               ? 0
               : -ENOMEM;
}

static void search_free(struct fabric *f)
{
    struct search *s = f->search;
    if (s == NULL)
        return;
    free(s->distance);
    free(s->queue);
    free(s->next);
    free(s->avoided);
    free(s);
    f->search = NULL;
}

int route_create(struct fabric *f, uint32_t *bad)
{
    int rc = search_create(f);
    for (uint32_t i = 0; rc == 0 && i < f->switches; i++) {
        f->sw[i].route = calloc(f->hosts + 1u, sizeof(*f->sw[i].route));
        rc = f->sw[i].route != NULL ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = measure_all(f);
    if (rc == 0)
        rc = check_flows(f, bad);
    if (f->config.switches.converge_ps == FABRIC_NEVER)
        f->next_learnt = f->config.faults;
    if (rc == 0 && f->next_learnt < f->config.faults)
        rc = rehearsal_create(f);
    else
        search_free(f);
    return rc;
}

void route_free(struct fabric *f)
{
    search_free(f);
    for (uint32_t i = 0; f->sw != NULL && i < f->switches; i++) {
        free(f->sw[i].route);
        free(f->sw[i].whole);
        free(f->sw[i].group);
        free(f->sw[i].ports);
    }
}

/* Frames of one flow through an empty store-and-forward network, and their ACKs back. */
struct pipeline {
    uint64_t full, last;       /* frames: bytes of a full one and of the last */
    uint64_t count;            /* of full ones before the last */
    uint64_t first_ps;         /* the first full frame has arrived behind this hop */
    uint64_t slowest_ps;       /* of full frames, up to this hop */
    uint64_t prev_ps, last_ps; /* the last full one and the last frame have arrived */
};

static void pass(const struct fabric *f, struct pipeline *l, const struct port *p)
{
    uint64_t full_ps = frame_ps(f, p, (uint32_t)l->full);
    if (full_ps > l->slowest_ps)
        l->slowest_ps = full_ps;
    l->first_ps += full_ps + p->delay_ps;
    l->prev_ps = l->count == 0 ? 0 : l->first_ps + (l->count - 1) * l->slowest_ps;
    uint64_t free_ps = l->count == 0 ? 0 : l->prev_ps - p->delay_ps;
    uint64_t starts = l->last_ps > free_ps ? l->last_ps : free_ps;
    l->last_ps = starts + frame_ps(f, p, (uint32_t)l->last) + p->delay_ps;
}

/* An ACK may have to wait for the one before. */
static void pass_back(const struct fabric *f, struct pipeline *l, const struct port *p)
{
    uint64_t ack_ps = frame_ps(f, p, f->config.hosts.ack_bytes);
    uint64_t free_ps = l->count == 0 ? 0 : l->prev_ps + ack_ps;
    l->last_ps = (l->last_ps > free_ps ? l->last_ps : free_ps) + ack_ps + p->delay_ps;
    l->prev_ps += ack_ps + p->delay_ps;
}

/* As route_port, if all links are there. */
static uint32_t whole_port(const struct switch_state *s, uint32_t host, uint32_t hash)
{
    uint32_t route = (s->whole != NULL ? s->whole : s->route)[host];
    if (route == PACKET_NONE)
        return PACKET_NONE;
    const struct route_group *g = &s->group[route];
    return s->ports[g->first + ((uint64_t)hash_mix(hash ^ s->ecmp_seed) * g->count >> 32)];
}

/* The flow's ports in the direction of its bytes. 0: there is no way, or a very long one. */
static uint32_t find_way(const struct fabric *f, uint32_t flow, uint32_t way[MAX_IDEAL_HOPS])
{
    const struct fabric_flow *s = &f->flow_spec[flow];
    uint32_t port = f->node[s->src].first_port, hash = hash_mix(flow), host = f->node[s->dst].host;
    for (uint32_t hops = 0; port != PACKET_NONE && hops < MAX_IDEAL_HOPS;) {
        way[hops++] = port;
        uint32_t peer = f->port[f->port[port].peer].node;
        if (peer == s->dst)
            return hops;
        port = whole_port(&f->sw[f->node[peer].host], host, hash);
    }
    return 0;
}

/* So many are under way as a pair may have; each that is answered makes room for one more. */
static uint64_t atomics_ps(const struct fabric *f, const uint32_t *way, uint32_t hops,
                           uint64_t bytes)
{
    uint32_t headers = f->config.hosts.header_bytes;
    uint64_t count = (bytes - 1) / ENGINE_ATOMIC_BYTES + 1, round_ps = 0, each_ps = 0;
    for (uint32_t i = 0; i < hops; i++) {
        const struct port *p = &f->port[way[i]], *back = &f->port[p->peer];
        uint64_t there_ps = frame_ps(f, p, headers + ATOMIC_ETH_BYTES);
        uint64_t back_ps = frame_ps(f, back, headers + AETH_BYTES + ATOMIC_ACK_ETH_BYTES);
        round_ps += there_ps + p->delay_ps + back_ps + back->delay_ps;
        each_ps = there_ps > each_ps ? there_ps : each_ps;
        each_ps = back_ps > each_ps ? back_ps : each_ps;
    }
    uint64_t turn_ps = ENGINE_RD_ATOMIC * each_ps;
    return (count - 1) / ENGINE_RD_ATOMIC * (round_ps > turn_ps ? round_ps : turn_ps) +
           (count - 1) % ENGINE_RD_ATOMIC * each_ps + round_ps;
}

uint64_t route_ideal_ps(const struct fabric *f, uint32_t flow, uint64_t bytes)
{
    const struct fabric_flow *s = &f->flow_spec[flow];
    const struct fabric_hosts *h = &f->config.hosts;
    bool engine = h->engine;
    uint32_t way[MAX_IDEAL_HOPS], hops = find_way(f, flow, way);
    if (hops == 0)
        return 0;
    if (engine && engine_is_atomic(s->work.verb))
        return atomics_ps(f, way, hops, bytes);
    uint64_t payload = h->payload_bytes;
    if (engine && s->work.message_bytes != 0 && s->work.message_bytes < payload)
        payload = s->work.message_bytes;
    uint64_t count = (bytes - 1) / payload;
    struct pipeline l = {
        .full = payload + h->header_bytes,
        .last = bytes - count * payload + h->header_bytes,
        .count = count,
    };
    for (uint32_t i = 0; i < hops; i++)
        pass(f, &l, &f->port[way[i]]);
    if (engine && s->work.verb == FABRIC_READ) {
        for (; hops > 0; hops--) { /* the way of the request */
            const struct port *p = &f->port[f->port[way[hops - 1]].peer];
            l.last_ps += frame_ps(f, p, h->header_bytes + RETH_BYTES) + p->delay_ps;
        }
        return l.last_ps;
    }
    while (hops > 0)
        pass_back(f, &l, &f->port[f->port[way[--hops]].peer]);
    return l.last_ps;
}
