/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric_priv.h: what the parts of the fabric share. A node is a row of ports; a port is the end of
 * a link: its transmitter, the wire to its peer, and what came in by it and is still here.
 */
#ifndef FABRIC_FABRIC_PRIV_H
#define FABRIC_FABRIC_PRIV_H

#include <stddef.h>

#include "base/heap.h"
#include "base/rng.h"
#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "fabric/sched.h"

/* Events, by number: these of each port, then one for each host, then these of the fabric. */
enum port_event {
    PORT_TX,    /* the transmitter is free, or a pause ends */
    PORT_WIRE,  /* the first frame on the wire has arrived */
    PORT_RENEW, /* pauses that the peer was told run out soon */
    PORT_EVENTS
};

enum fabric_event {
    FABRIC_CHECK, /* does anything move? */
    FABRIC_WATCH, /* the watchdog's look around */
    FABRIC_FAULT,
    FABRIC_ROUTE,  /* all switches learn of a fault */
    FABRIC_SAMPLE, /* the last: it changes nothing for the others */
    FABRIC_EVENTS
};

struct queue {
    struct packet_list list;
    uint32_t bytes;
    uint32_t peak_bytes; /* since fabric_port_sample last added it to the counts */
};

struct port_counts {
    uint64_t max_queue_bytes, paused_received_ps, paused_sent_ps, tx_bytes, ecn_marks, drops;
};

/* What each frame needs comes first: a cache line, then a queue's. */
struct port {
    _Alignas(64) uint32_t node;
    uint32_t peer; /* peer: the port at the other end */
    uint32_t loss_ppm, corrupt_ppm;
    uint8_t backlog;   /* mask: queues that are not empty */
    uint8_t source;    /* mask: of a host, priorities by which it has more to send */
    uint8_t paused;    /* mask: a pause is or may still be in force */
    uint8_t ignored;   /* mask: the watchdog has taken these queues */
    uint8_t xoff, xon; /* masks: what the next PFC frame is to say */
    uint8_t stopped;   /* mask: the peer is to pause */
    uint8_t told;      /* mask: the last frame to it that was about this one said so */
    uint8_t turn;      /* whose turn it is among the weighted */
    bool down;
    bool at_switch;
    uint32_t mtu_bytes;
    uint64_t byte_time; /* of one byte, in ps * 2^20 */
    uint64_t delay_ps;
    uint64_t busy_until_ps;
    struct packet_list wire;
    struct queue queue[FABRIC_PRIORITIES];
    uint64_t pause_from_ps[FABRIC_PRIORITIES], pause_until_ps[FABRIC_PRIORITIES];
    int32_t deficit[FABRIC_PRIORITIES];
    /* What came in by this port and is in the switch's buffer. */
    uint32_t in_bytes[FABRIC_PRIORITIES], in_headroom[FABRIC_PRIORITIES];
    uint32_t headroom_bytes, alpha_num;
    uint32_t link;
    uint64_t kmin_bytes, kmax_bytes;
    /* For those who watch. */
    uint64_t moved_ps[FABRIC_PRIORITIES];   /* when its queue last sent */
    uint64_t stopped_ps[FABRIC_PRIORITIES]; /* since when the peer is told to pause */
    uint64_t stuck_ps[FABRIC_PRIORITIES];   /* watchdog: paused with a backlog since; 0: not */
    struct port_counts count[FABRIC_PRIORITIES];
};

_Static_assert(offsetof(struct port, queue) == 64, "a cache line");

/* The next hops towards some hosts: ports[first .. first + count). */
struct route_group {
    uint32_t first, count;
};

struct node {
    uint32_t first_port, ports;
    uint32_t host; /* index among the hosts; of a switch, among the switches */
    bool is_switch;
};

struct switch_state {
    uint64_t shared_bytes, used_bytes; /* without headroom and reserve */
    uint64_t ecmp_seed;
    struct rng rng;
    uint32_t node;
    uint32_t *route; /* a group for each host */
    uint32_t *whole; /* the same with all links; NULL: route is */
    struct route_group *group;
    uint32_t groups, group_capacity;
    uint32_t *ports; /* of all groups */
    uint32_t ports_used, ports_capacity;
    uint8_t priority_of[FABRIC_DSCPS];
    uint8_t priority_of_pcp[FABRIC_PRIORITIES];
};

struct endpoint;

/* What a host is to its port: the bare source, or an engine. */
struct endpoint_ops {
    void (*receive)(struct fabric *f, struct endpoint *e, uint32_t packet);
    /* The port is free for this priority: a packet, or PACKET_NONE and its source bit is off. */
    uint32_t (*pull)(struct fabric *f, struct endpoint *e, unsigned priority);
    void (*timer)(struct fabric *f, struct endpoint *e);
};

struct endpoint {
    const struct endpoint_ops *ops;
    uint32_t port, timer; /* its port and its event */
    void *state;
};

struct flow;

struct flow_group {
    uint32_t left;    /* flows that are not finished */
    uint32_t waiting; /* the first flow that waits for it */
};

struct fabric {
    struct sched sched;
    struct packet_pool pool;
    struct fabric_config config;
    struct fabric_topology topology;
    const struct fabric_flow *flow_spec;
    uint32_t flow_count;
    uint32_t ports, hosts, switches;
    struct port *port;
    struct node *node;
    struct switch_state *sw;
    struct endpoint *endpoint;
    struct flow *flow;
    struct fabric_totals totals;
    struct flow_group *group;
    struct engine_flow *engine_flow; /* hosts that are engines only, as the next three */
    struct roce_headers *headers;    /* of each packet, by its number */
    uint8_t *memory;                 /* what all regions are of */
    struct train *train;             /* scratch of all engines: one runs at a time */
    uint8_t *frame;                  /* codec.c: the bytes of each packet, NULL: none have any */
    uint16_t *frame_bytes;
    struct telemetry *telemetry; /* NULL: nobody wants any */
    struct rng rng;              /* of the wires */
    uint8_t *waiting;            /* watch.c's scratch, a mask a port */
    uint32_t started;            /* flows */
    uint32_t awaited;            /* flows whose start has a time, and is to come */
    uint64_t progress_ps;        /* when a flow last started or got on, or ways changed */
    uint64_t check_ps;           /* how often to look */
    uint64_t seen_ps;            /* progress_ps, as the last look found it */
    uint64_t seen_bytes;         /* totals.arrived_bytes, when that was first found */
    uint64_t patience_ps;        /* without progress, however many frames move */
    uint32_t next_fault, next_learnt;
    struct search *search; /* route.c's, to measure with */
    bool full;
    bool weighted;
    enum fabric_state state;
};

static inline uint32_t event_of_port(uint32_t port, enum port_event e)
{
    return port * PORT_EVENTS + (uint32_t)e;
}

static inline uint32_t event_of_fabric(const struct fabric *f, enum fabric_event e)
{
    return f->ports * PORT_EVENTS + f->hosts + (uint32_t)e;
}

static inline uint64_t bytes_ps(const struct port *p, uint64_t bytes)
{
    return (bytes * p->byte_time) >> 20;
}

/* What a frame of so many bytes takes on the wire of this port. */
static inline uint64_t frame_ps(const struct fabric *f, const struct port *p, uint32_t bytes)
{
    if (bytes < f->config.min_frame_bytes)
        bytes = f->config.min_frame_bytes;
    return bytes_ps(p, bytes + f->config.gap_bytes);
}

static inline uint32_t hash_mix(uint64_t v)
{
    v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(v ^ v >> 31);
}

/* trace.c, behind a look at the mask. A packet, or PACKET_NONE: the flow alone. */
void trace_packet(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t packet,
                  uint32_t value);
void trace_other(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t flow,
                 unsigned priority, uint32_t value);
static inline bool tracing(const struct fabric *f, enum fabric_trace_kind kind)
{
    return (f->config.trace_kinds >> kind & 1) != 0;
}

/* egress.c: into a queue of a port; something may be sendable now; events. */
void egress_put(struct fabric *f, uint32_t port, uint32_t packet);
void egress_kick(struct fabric *f, uint32_t port);
void egress_wire_event(struct fabric *f, uint32_t port);
void egress_drop_queue(struct fabric *f, uint32_t port, unsigned priority, uint64_t *why);
/* One direction of a link. What is on the wire of one that goes down, or waits for it, is lost. */
void egress_set_link(struct fabric *f, uint32_t port, bool up);

/* pause.c */
/* Whom a frame for these priorities means: with pauses of the link all, if any. */
uint8_t pause_mask(const struct fabric *f, uint8_t mask);
/* Those of the mask that may send now; the others' pauses that ended are settled. */
uint8_t pause_allows(struct fabric *f, uint32_t port, uint8_t mask);
/* When the first pause of the mask ends by itself. */
uint64_t pause_ends_ps(const struct port *p, uint8_t mask);
void pause_received(struct fabric *f, uint32_t port, uint8_t xoff, uint8_t xon, uint32_t quanta);
void pause_peer(struct fabric *f, uint32_t port, unsigned priority);
void pause_resume_peer(struct fabric *f, uint32_t port, unsigned priority);
/* Its link is down: what it was told no longer holds. */
void pause_forget(struct fabric *f, uint32_t port);
/* The frame that says so left. */
void pause_told(struct fabric *f, uint32_t port);
void pause_renew_event(struct fabric *f, uint32_t port);
/* Paused times up to now, for the results. */
uint64_t pause_received_ps(const struct fabric *f, uint32_t port, unsigned priority);
uint64_t pause_sent_ps(const struct fabric *f, uint32_t port, unsigned priority);

/* buffer.c: what a switch has room for. */
/* What reserve and headroom take of it. */
uint64_t buffer_init(struct fabric *f, struct switch_state *s);
/* Takes a frame in, pausing its sender if need be; false: there is no room. */
bool buffer_admit(struct fabric *f, struct switch_state *s, uint32_t egress, struct packet *p);
void buffer_release(struct fabric *f, struct switch_state *s, struct packet *p);
uint64_t buffer_threshold(const struct fabric *f, const struct switch_state *s,
                          const struct port *p);

/* switch.c */
void switch_receive(struct fabric *f, uint32_t port, uint32_t packet);
/* A frame of the switch starts to leave. */
void switch_sends(struct fabric *f, struct port *p, uint32_t packet);
void switch_drop(struct fabric *f, struct port *p, uint32_t packet, uint64_t *why);

/* route.c: the tables of all switches. 0, -ENOMEM, or -EHOSTUNREACH with *bad. */
int route_create(struct fabric *f, uint32_t *bad);
/* When the next fault is known everywhere; it is. */
void route_await_event(struct fabric *f);
void route_learn_event(struct fabric *f);
void route_free(struct fabric *f);
/* PACKET_NONE: no way. */
uint32_t route_port(const struct fabric *f, const struct switch_state *s, uint32_t host,
                    uint32_t hash);
/* What so many bytes of the flow would take on an empty network with all links; 0: not known. */
uint64_t route_ideal_ps(const struct fabric *f, uint32_t flow, uint64_t bytes);

/* telemetry.c: what switches write into packets (INT) for congestion control that asks for it. */
struct telemetry {
    struct cc_path *packet; /* of each, by its number */
    struct cc_path *flow;   /* what last came back */
    uint64_t *sent_bytes;   /* of each port, gaps included */
    struct cc_path came;    /* of the frame that its host looks at */
    uint64_t base_rtt_ps;   /* the longest of all flows */
};
bool telemetry_wanted(const struct fabric_config *c);
/* 0 or -ENOMEM. */
int telemetry_create(struct fabric *f);
void telemetry_free(struct fabric *f);
/* A frame begins to leave a switch. */
void telemetry_write(struct fabric *f, const struct port *p, uint32_t packet);

/* source.c: the bare source. */
int source_create(struct fabric *f, uint32_t *bad);
void source_free(struct fabric *f);
void source_result(const struct fabric *f, uint32_t flow, struct fabric_flow_result *out);

/* engine.c: the NIC engine as host. First the devices, then, when the flows are known, the pairs.
 */
int engine_create(struct fabric *f, uint32_t *bad);
int engine_connect_create(struct fabric *f);
void engine_result(const struct fabric *f, uint32_t flow, struct fabric_flow_result *out);
void engine_free(struct fabric *f);

/* watch.c */
/* Whether flows are left that may still end; if not, how it all ended. */
bool watch_open(const struct fabric *f);
enum fabric_state watch_end(const struct fabric *f);
void watch_start(struct fabric *f);
void watch_check_event(struct fabric *f);
void watch_dog_event(struct fabric *f);

#endif
