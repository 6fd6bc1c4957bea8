/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.h: up to four engines in one process, joined by faulty links, under virtual time. plan.c
 * draws what happens (options and work requests), build.c makes the devices, program.c posts and
 * polls, life.c changes states, keys and connections, link.c is the network, ideal.c says what
 * memory must hold in the end, checkers.c and watch.c look at each step, world.c turns the crank.
 */
#ifndef TESTS_WORLD_WORLD_H
#define TESTS_WORLD_WORLD_H

#include "link.h"
#include "parts.h"
#include "tape.h"

enum { TRACE_EVENTS = 256 };

#define PACED_SEEDS  (UINT64_C(1) << 63) /* seeds with this bit draw rate limits, too */
#define MARKED_SEEDS (UINT64_C(1) << 62) /* with this one, congestion control and marks */

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
    struct source source[NODES];
    struct pair pair[MAX_PAIRS];
    int pairs, dirs;
    struct pool pool[MAX_DIRS + NODES]; /* by direction; those of SRQs after them */
    uint32_t recvs;
    uint64_t sent_packets, fault_count;
    struct control control[MAX_CONTROLS];
    int controls;
    /* From here on not cleared by world_run. */
    struct direction dir[MAX_DIRS];
    struct recv recv[MAX_RECVS];
    struct trace_event trace[TRACE_EVENTS];
    uint64_t traced;
    uint64_t counter[COUNTER_COUNT]; /* of all devices, summed over all worlds */
    uint64_t status[WC_GENERAL_ERR + 1], virtual_ns, steps, packets, faults;
    uint64_t control_runs[CONTROL_KINDS], event_runs[EVENT_GID_CHANGE + 1], stale, forged;
    uint64_t fault_kind[FAULT_KINDS], paced_packets, paced_waits;
    uint64_t marks, cnps, slowed; /* slowed: CNPs after which a rate was lower */
    bool failed;
    const char *why_kind; /* the format of why: which check it was */
    char why[400];
};

/* Runs one world to its end; false: w->why says what was wrong. seed fills memory and keys. */
bool world_run(struct world *w, struct tape *tape, uint64_t seed);
/* Prints the last events. */
void world_print(const struct world *w);
void world_fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct trace_event *world_trace(struct world *w, enum trace_kind kind, int node);
struct region *world_region(struct world *w, struct direction *d, enum region_kind kind);
/* The two QPs of a direction; NULL before its life and after it at that end. */
struct qp *world_requester(struct world *w, const struct direction *d);
struct qp *world_responder(struct world *w, const struct direction *d);
/* The direction that an end of a pair has a part in: its own requests, or those of its peer. */
struct direction *world_direction(struct world *w, int pair, int side, bool own);
/* PSNs that the responder has taken, and that the requester has answers to. */
uint32_t world_executed(struct world *w, const struct direction *d);
uint32_t world_answered(struct world *w, const struct direction *d);
/* PSN as its distance from the direction's first. */
uint32_t world_offset(const struct direction *d, struct psn psn);
/* Is this QP in the state ERR? One that is over is not. */
bool world_in_error(const struct qp *qp);
/* Which of the node's QPs has this number; NULL: none. */
struct slot *world_slot(struct world *w, int node, uint32_t qpn);
void world_control(struct world *w, uint64_t at_ns, enum control_kind kind, int pair, int side);
/* Async events and notifications of a node. */
void world_events(struct world *w, int node);
bool op_takes_receive(enum wr_opcode opcode);
bool op_is_fetch(const struct op *op);

/* plan.c */
void plan_draw(struct world *w);

/* build.c */
void build_all(struct world *w);
void build_take_down(struct world *w);
void build_region(struct world *w, int node, struct region *r);
void build_qp(struct world *w, int node, int slot);
void build_connect(struct world *w, int pair);
void build_start(struct world *w, int pair, int side);

/* program.c */
void program_run(struct world *w, int node);
uint64_t program_next_ns(struct world *w, int node);

/* life.c */
void life_control(struct world *w, struct control *c);
/* What another thread of the program does between input and output. */
void life_between(struct world *w, int node);
void life_follow_errors(struct world *w);

/* forge.c: packets that no QP sent, for the engine to drop without a trace. */
void forge_some(struct world *w, int node);

/* pace.c: rate limits, and the model of them. */
void pace_draw(struct world *w);
/* What a QP is asked for when it gets its limit: the bits of the mask. */
unsigned pace_mask(const struct world *w, const struct end *e, struct nic_qp_attr *a);
void pace_begin(struct world *w, const struct end *e);
void pace_change(struct world *w, struct end *e);
/* A request left. */
void pace_sent(struct world *w, int node, int slot, uint32_t bytes);
/* The requester has to wait for its limit. */
bool pace_waits(struct world *w, const struct direction *d);

/* marks.c: congestion control. */
void marks_draw(struct world *w);
void marks_config(const struct world *w, int node, struct congestion_config *c);
/* A packet that is of no direction: a CNP, a probe, an answer to one. */
bool marks_is_own(const struct roce_headers *h);
/* It left. */
void marks_sent(struct world *w, int node, int slot, const struct roce_headers *h,
                const struct nic_path *path);
/* A switch on the way looks at it. */
void marks_meet(struct world *w, struct rx_packet *rx);
/* The node's engine is given these packets, and was. */
void marks_before(struct world *w, int to, const struct rx_packet *rx, unsigned n);
void marks_after(struct world *w, int to, const struct rx_packet *rx, unsigned n);
/* The QP has to wait for its rate. */
bool marks_hold(const struct world *w, const struct qp *qp);
void marks_end(struct world *w);

/* ideal.c: executes everything that the responders took on node[].ideal. */
void ideal_run(struct world *w);

/* checkers.c */
void check_step(struct world *w, int node);
void check_completion(struct world *w, int node, const struct nic_wc *wc);
/* Of an end whose life is over now. */
void check_life(struct world *w, int pair, int side);
void check_end(struct world *w);

/* watch.c: what CQs, SRQs and events must say, and when. */
void watch_cqs(struct world *w, int node);
/* Rings were changed by the program: nothing of it is new. */
void watch_resync(struct world *w, int node);
void watch_arm(struct world *w, int node, struct cq_state *cq, bool solicited_only);
void watch_srq(struct world *w, int node);
void watch_srq_limit(struct world *w, int node, uint32_t limit);

enum {
    WR_ID_SEND = 1,
    WR_ID_RECV = 2,
};

static inline uint64_t wr_id_make(unsigned kind, unsigned owner, uint32_t index)
{
    return (uint64_t)kind << 40 | (uint64_t)owner << 32 | index;
}

#endif
