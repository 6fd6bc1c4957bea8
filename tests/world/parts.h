/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h: what a test world is made of: memory regions, work requests, directions, pairs, nodes.
 *
 * A pair is one life of a connection: two ends, each a QP of a node. When a life is over, its QPs
 * are reset or destroyed, and serve a later pair. A direction is one requester with its peer's
 * responder; a pair has two. Direction d belongs to pair d / 2, its requester is end d % 2.
 */
#ifndef TESTS_WORLD_PARTS_H
#define TESTS_WORLD_PARTS_H

#include "nic/mw.h"
#include "nic/nic.h"
#include "options.h"
#include "sniffer.h"

enum {
    MAX_PAIRS = 24, /* all lives */
    MAX_DIRS = 2 * MAX_PAIRS,
    MAX_SLOTS = 40,    /* QPs of one node */
    MAX_OPS = 64,      /* of one direction */
    MAX_RECVS = 4096,  /* of all pools */
    MAX_RECV_MAP = 80, /* receives that one QP sees the end of */
    MAX_SLICES = 6,    /* SGEs of one WR */
    MAX_INV = 6,       /* regions of a direction that SENDs may invalidate */
    MAX_CQS = 20,
    MAX_CONTROLS = 160,
    ARENA_BYTES = 16 << 20, /* of one node */
    GUARD_BYTES = 64,       /* at least, between regions */
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
    struct mw *mw;       /* what is to be invalidated has one bound to it; else NULL */
    uint32_t generation; /* registered anew so often */
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
    uint32_t remote_generation, local_generation; /* of the keys that it was posted with */
};

struct recv {
    struct slice slice[MAX_SLICES];
    int slices;
    uint32_t bytes;
    uint32_t generation; /* of the key */
    bool bad_lkey;
    bool done;
};

/* The receives of one RQ or SRQ, posted in order. */
struct pool {
    int node;
    int dir; /* whose responder; -1: SRQ */
    struct recv *recv;
    uint32_t n, posted, polled, depth;
    uint64_t next_post_ns;
};

struct direction {
    int from, to; /* nodes */
    int pair, side;
    bool dead;    /* the way back of a QP that is its own peer */
    uint32_t psn; /* of its first packet */
    struct region region[REGION_COUNT];
    struct region inv[MAX_INV]; /* responder: windows for SENDs with Invalidate */
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
    uint32_t recv_pushed; /* of those that went well, in the CQ */
    bool recv_failed;
    uint16_t recv_map[MAX_RECV_MAP]; /* receive that each of them took */
    uint16_t message[MAX_OPS];       /* ops that take a receive, in order */
    uint32_t messages;
    uint32_t executed, answered;       /* PSNs, as of the last step, for good once an end is over */
    uint32_t executed_op, answered_op; /* ops that begin there or before */
    struct psn una_seen;               /* for progress */
    uint32_t faults, faults_before; /* since the last progress; between that and the one before */
    struct sniffed wire;
};

/* The model of a rate limit: what went out and the rate has not paid yet, in 10^-6 bits. */
struct paced {
    uint32_t kbps; /* in force; 0: none */
    uint32_t burst_bytes;
    uint64_t owed, paid_ns;
};

/* A QP of a node; its lives come one after another. */
struct slot {
    struct qp *qp;
    struct paced paced;
    uint32_t marks;  /* marked packets since its last CNP */
    uint64_t cnp_ns; /* of that; 0: none */
    uint64_t rate_bps;
    int pair, side;                        /* whose end it is now; -1: nobody's */
    uint32_t last_wqes, fatals, comm_ests; /* events of this life */
};

struct end {
    int node, slot;
    bool destroy;  /* at its end, not reset */
    bool keep_qpn; /* the next QP has its number */
    bool over;
    uint32_t kbps, burst_bytes; /* what the program asks for; 0: no limit, the usual burst */
    uint16_t path_rate;         /* of its path, in PATH_RATE_KBPS */
};

enum pair_state {
    PAIR_WAITS, /* for its QPs */
    PAIR_LIVE,
    PAIR_OVER, /* both ends */
};

struct pair {
    struct end end[2];
    enum pair_state state;
    bool self;      /* both ends are one QP */
    bool successor; /* lives after others: */
    int before[2];
    bool killed;       /* by a control, or one end is over */
    bool kill_planned; /* either of it */
    bool hurt;         /* keys of it were taken away */
    bool stale;        /* met packets that were not its own */
};

struct cq_state {
    struct cq *cq;
    uint64_t next_poll_ns;
    bool notified;
    /* The model: what was asked for, is a notification due, how far the ring was looked at. */
    enum cq_arm armed;
    bool due;
    uint32_t seen;
    bool full, overflowed; /* it ran over; it said so */
};

struct node {
    struct nic *nic;
    struct pd *pd, *foreign_pd;
    struct cq_state cq[MAX_CQS];
    int cqs;
    struct slot slot[MAX_SLOTS];
    int slots;
    struct srq *srq;
    uint32_t srq_limit; /* as the model has it armed; 0: not */
    uint32_t srq_head;  /* of its queue, when last looked at */
    bool srq_limit_due;
    uint8_t *mem, *ideal;
    uint32_t mem_bytes;
    uint32_t recv_bytes; /* of REGION_RECV */
    struct region recv_region, shared_region, foreign_region;
    uint64_t last_run_ns;
    bool output_left;
    struct net_addr addr;
};

enum control_kind {
    CONTROL_ERR,
    CONTROL_SQD,
    CONTROL_RTS,
    CONTROL_START, /* RTR to RTS, when that was put off */
    CONTROL_RESIZE,
    CONTROL_END,     /* of a life at one end */
    CONTROL_CONNECT, /* of a later life, once its QPs are free */
    CONTROL_KEY,     /* a region gets another key; side: which kind */
    CONTROL_PACE,    /* another rate limit at one end */
    CONTROL_LIMIT,   /* of the node's SRQ */
    CONTROL_FORGE,   /* packets that nobody sent come to a node */
    CONTROL_KINDS,
};

/* Something the program does at a certain time. */
struct control {
    uint64_t at_ns;
    enum control_kind kind;
    int pair, side;
    bool done;
    int tries; /* KEY: it waited so often for a moment that is worse */
};

#endif
