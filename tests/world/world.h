/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.h: two engines in one process, joined by faulty links, under virtual time. plan.c draws
 * what happens (options and work requests), world.c runs it, link.c is the network, ideal.c says
 * what memory must hold in the end, checkers.c watches each step and each completion.
 *
 * A direction is one requester with its peer's responder; a pair of QPs has two. Direction d
 * belongs to pair d / 2, its requester lives on node d % 2.
 */
#ifndef TESTS_WORLD_WORLD_H
#define TESTS_WORLD_WORLD_H

#include <sys/queue.h>

#include "nic/nic.h"
#include "options.h"
#include "sniffer.h"
#include "tape.h"

enum {
    MAX_PAIRS = 4,
    MAX_DIRS = 2 * MAX_PAIRS,
    MAX_OPS = 64,                   /* of one direction */
    MAX_RECVS = MAX_DIRS * MAX_OPS, /* of one pool */
    MAX_SLICES = 6,                 /* SGEs of one WR */
    MAX_INV = 6,                    /* regions of a direction that SENDs may invalidate */
    MAX_CQS = 2 * MAX_PAIRS,
    MAX_CONTROLS = 64,
    ARENA_BYTES = 8 << 20, /* of one node */
    GUARD_BYTES = 64,      /* at least, between regions */
    TRACE_EVENTS = 256,
    SHARED_CELLS = 4,
};

enum region_kind {
    REGION_SRC,     /* requester: what SENDs and WRITEs carry; never written */
    REGION_SINK,    /* requester: results of READs and atomics */
    REGION_TARGET,  /* responder: of WRITEs, and READs that are fenced off from them */
    REGION_RDSRC,   /* responder: of READs; never written */
    REGION_CELLS,   /* responder: atomics of this direction alone */
    REGION_RECV,    /* responder: receive buffers */
    REGION_SHARED,  /* responder: cells that all directions add to */
    REGION_FOREIGN, /* of another protection domain of the node */
    REGION_COUNT,
};

struct region {
    uint32_t at, bytes; /* in its node's arena */
    uint64_t iova;
    unsigned access;
    struct mr *mr;
};

/* A piece of a region: what an SGE names. */
struct slice {
    enum region_kind region;
    uint32_t at, bytes; /* within the region */
};

enum bad_kind {
    BAD_NONE,
    BAD_RKEY,
    BAD_RANGE, /* last byte outside the region */
    BAD_RIGHT, /* region without the right */
    BAD_ALIGN, /* atomic */
    BAD_LKEY,
    BAD_SHORT_RECV, /* receive one byte too small */
    BAD_RECV_LKEY,
    BAD_LKEY_RIGHT, /* result to a region without local write */
    BAD_LKEY_PD,    /* region of another protection domain */
    BAD_RKEY_PD,
    BAD_COUNT,
};

/* One send WR. */
struct op {
    enum wr_opcode opcode;
    unsigned flags;
    uint32_t length;
    struct slice slice[MAX_SLICES];
    int slices;
    enum region_kind remote_region;
    uint32_t remote_at; /* within the region */
    uint64_t compare_add, swap;
    uint32_t imm;
    int inv;                 /* SEND with Invalidate: which of the direction's regions */
    uint32_t first, packets; /* PSNs counted from the direction's start */
    enum bad_kind bad;
    enum wc_status expect;
    uint64_t result; /* atomic: what the ideal model read */
};

struct recv {
    struct slice slice[MAX_SLICES];
    int slices;
    uint32_t bytes;
    bool bad_lkey;
    bool done;
};

/* The receives of one RQ or SRQ, posted in order. */
struct pool {
    int node;
    struct qp *qp; /* or */
    struct srq *srq;
    struct recv *recv;
    uint32_t n, posted, polled, depth;
    uint64_t next_post_ns;
};

struct direction {
    int from, to; /* nodes */
    int pair;
    uint32_t psn; /* of its first packet */
    struct region region[REGION_COUNT];
    struct region inv[MAX_INV]; /* responder: for SENDs with Invalidate */
    int invs;
    struct region local_inv[MAX_INV]; /* requester: for LOCAL_INV */
    int local_invs;
    struct op op[MAX_OPS];
    uint32_t ops, posted;
    uint32_t packets; /* PSNs of all ops */
    bool blocked;     /* send queue full until something is polled */
    uint64_t next_post_ns;
    int bad_op; /* -1: none */
    struct pool *pool;
    /* What was seen. */
    uint32_t next_wc;  /* op whose completion may come next */
    bool failed;       /* a completion other than success came */
    uint32_t error_op; /* which one and what it said, but for flushes */
    enum wc_status error;
    uint32_t recv_seen; /* receive completions */
    uint32_t recv_ok;
    bool recv_failed;
    uint16_t recv_map[MAX_RECVS]; /* receive that each of them took */
    uint16_t message[MAX_OPS];    /* ops that take a receive, in order */
    uint32_t messages;
    struct psn una_seen;            /* for progress */
    uint32_t faults, faults_before; /* since the last progress; between that and the one before */
    struct sniffed wire;
};

struct cq_state {
    struct cq *cq;
    uint64_t next_poll_ns;
    bool notified;
};

struct node {
    struct nic *nic;
    struct pd *pd, *foreign_pd;
    struct cq_state cq[MAX_CQS];
    int cqs;
    struct qp *qp[MAX_PAIRS];
    struct srq *srq;
    struct pool pool[MAX_PAIRS]; /* [0] alone with an SRQ */
    struct recv recv[MAX_RECVS];
    uint32_t recvs;
    uint32_t recv_bytes; /* of REGION_RECV */
    uint8_t *mem, *ideal;
    uint32_t mem_bytes;
    struct region recv_region, shared_region, foreign_region;
    uint64_t last_run_ns;
    bool output_left;
    int last_wqes; /* events */
    struct net_addr addr;
};

enum control_kind {
    CONTROL_ERR,
    CONTROL_SQD,
    CONTROL_RTS,
    CONTROL_START, /* RTR to RTS, when that was put off */
    CONTROL_RESIZE,
};

/* Something the program does to a QP at a certain time. */
struct control {
    uint64_t at_ns;
    enum control_kind kind;
    int node, pair;
    bool done;
};

/* A packet on its way. */
struct flight {
    TAILQ_ENTRY(flight) link;
    uint64_t at_ns;
    struct rx_packet rx;
    uint8_t *bytes; /* payload, or the whole packet when the byte path is used */
    uint32_t n;
    bool raw;
};

TAILQ_HEAD(flight_list, flight);

enum fault_kind {
    FAULT_LOST,
    FAULT_TWICE,
    FAULT_LATE,
    FAULT_CORRUPT,
    FAULT_DOWN,  /* lost while the link was down */
    FAULT_BURST, /* lost in a burst */
    FAULT_HOLE,  /* lost for its size */
    FAULT_PATH,  /* lost when the path changed */
    FAULT_KINDS,
};

struct link {
    struct nic_sink sink;
    struct world *world;
    int to;
    struct flight_list flights;
    uint64_t busy_until_ns, last_at_ns;
    uint64_t down_until_ns, hole_until_ns;
    bool burst;
    uint32_t latency_ns, packets;
};

enum trace_kind {
    TRACE_SENT,
    TRACE_RECEIVED,
    TRACE_POST,
    TRACE_POST_RECV,
    TRACE_COMPLETION,
    TRACE_CONTROL,
};

struct trace_event {
    uint64_t at_ns;
    enum trace_kind kind;
    int node;
    struct roce_headers h;
    uint32_t payload_bytes;
    const char *note;
    struct nic_wc wc;
};

struct world {
    struct tape *tape;
    uint64_t seed; /* for what is not choice but filling: memory, keys */
    struct options opt;
    uint64_t now_ns, fault_end_ns;
    struct node node[NODES];
    struct link link[NODES]; /* [i] leads to node i */
    struct direction dir[MAX_DIRS];
    int dirs;
    bool killed[MAX_PAIRS]; /* by a control */
    bool kill_planned[MAX_PAIRS];
    uint64_t sent_packets, fault_count;
    struct control control[MAX_CONTROLS];
    int controls;
    /* From here on not cleared by world_run. */
    struct trace_event trace[TRACE_EVENTS];
    uint64_t traced;
    uint64_t counter[COUNTER_COUNT]; /* of both devices, summed over all worlds */
    uint64_t status[WC_GENERAL_ERR + 1], virtual_ns, steps, packets, faults;
    uint64_t fault_kind[FAULT_KINDS];
    bool failed;
    const char *why_kind; /* the format of why: which check it was */
    char why[400];
};

/* Runs one world to its end; false: w->why says what was wrong. seed fills memory and keys. */
bool world_run(struct world *w, struct tape *tape, uint64_t seed);
/* PSNs that the requester has answers to; 0 before it is in RTS. */
uint32_t world_answered(struct world *w, const struct direction *d);
/* PSN as its distance from the direction's first. */
uint32_t world_offset(const struct direction *d, struct psn psn);
/* Prints the last events. */
void world_print(const struct world *w);
void world_fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct trace_event *world_trace(struct world *w, enum trace_kind kind, int node);
struct region *world_region(struct world *w, struct direction *d, enum region_kind kind);
struct qp *world_requester(struct world *w, const struct direction *d);
struct qp *world_responder(struct world *w, const struct direction *d);
void world_control(struct world *w, uint64_t at_ns, enum control_kind kind, int node, int pair);
bool op_takes_receive(enum wr_opcode opcode);

/* plan.c */
void plan_draw(struct world *w);

/* link.c */
extern const char *const link_fault_name[FAULT_KINDS];
/* Draws what else may befall the path. */
void link_draw(struct world *w);
void link_init(struct world *w, int to);
void link_fini(struct world *w, int to);
uint64_t link_next_ns(const struct link *l);
/* Hands what is due to the node's engine. */
void link_deliver(struct world *w, struct link *l);

/* ideal.c: executes everything that the responders took on node[].ideal. */
void ideal_run(struct world *w);

/* checkers.c */
void check_step(struct world *w);
void check_completion(struct world *w, int node, const struct nic_wc *wc);
void check_end(struct world *w);

enum {
    WR_ID_SEND = 1,
    WR_ID_RECV = 2,
};

static inline uint64_t wr_id_make(unsigned kind, unsigned owner, uint32_t index)
{
    return (uint64_t)kind << 40 | (uint64_t)owner << 32 | index;
}

#endif
