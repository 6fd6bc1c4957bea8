/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * congestion.h: congestion control of one QP, both ends of it. Where a packet arrives that a switch
 * marked (CE), its sender is told by a CNP, not too often. What the sender is told, and how long
 * probes take there and back, goes to the algorithm (cc/), and its rate holds back what the QP
 * sends: requests, and the data that answers the peer's. All with the QP's lock held, but
 * congestion_mad. UD takes no part: one QP has many peers.
 */
#ifndef NIC_CONGESTION_H
#define NIC_CONGESTION_H

#include "nic/cc/cc.h"
#include "verbena/path.h"
#include "verbena/types.h"

struct nic;
struct qp;
struct rx_packet;
struct train;

enum {
    CNP_DSCP = 48, /* what adapters send CNPs with: the class of network control */
    CNP_INTERVAL_NS = 50000,
};

struct congestion_config {
    const char *algorithm;      /* of CC_NAMES; NULL or "none": off, and only probes are answered */
    uint64_t line_bps;          /* of a QP whose port's speed is not known; 0: 100 Gb/s */
    uint64_t cnp_interval_ns;   /* between two CNPs for one QP at least */
    uint64_t probe_interval_ns; /* between two probes of a QP at least */
    uint64_t burst_ns; /* what a late sender may make up for; 0: a packet at a time, on the dot */
    uint64_t rtt_slack_ns; /* what a busy host adds to a round-trip time, and is no congestion */
    uint8_t cnp_class;     /* traffic class of CNPs and of answers to probes */
};

/* What is to be sent at once. */
enum congestion_due {
    CONGESTION_CNP = 1 << 0,
    CONGESTION_ANSWER = 1 << 1,
    CONGESTION_PROBE = 1 << 2,
};

/* Of a QP that has it; behind the QP in memory. */
struct congestion {
    uint8_t unanswered;      /* probes in a row */
    bool slowed;             /* its rate was below its line when it was last asked for */
    uint32_t cnps;           /* obeyed */
    struct nic_path path;    /* of what it sends: that of the attributes, with ECT */
    struct cc_params params; /* of this QP's line */
    struct cc cc;
    uint64_t cnp_next_ns;   /* no CNP before */
    uint64_t free_ns;       /* when what was sent has taken its time */
    uint32_t free_fraction; /* of it, in 2^-10 ns */
    uint64_t opens_ns;      /* of a QP that waits, its deadline; 0: none. timers.c clears it */
    uint64_t probe_ns;      /* when the one that is out left, which names it; 0: none is out */
    uint64_t probe_next_ns; /* no probe before */
};

/* The peer's probe that is to be answered, by every QP. */
struct congestion_answer {
    uint64_t stamp_ns;
    uint64_t since_ns; /* when it came */
};

bool congestion_is_on(const struct congestion_config *c);
/* -EINVAL: no such algorithm, or one that this engine cannot run. */
int congestion_check(const struct congestion_config *c);
/* Whether such a QP has a struct congestion. */
bool congestion_is_for(const struct nic *nic, enum qp_type type);
/* RESET: knows nothing, owes nothing. */
void congestion_clear(struct qp *qp);
/* The path of the attributes is known, or another: how the QP's packets travel. */
void congestion_path(struct qp *qp);
/* INIT -> RTR: at line rate, knows nothing. */
void congestion_start(struct qp *qp);

/* A packet came that is marked. */
void congestion_marked(struct qp *qp, uint64_t now_ns);
/* A CNP came. */
void congestion_cnp(struct qp *qp, uint64_t now_ns);
/* Packets were lost. */
void congestion_lost(struct qp *qp);
/* A packet to QP 1: a probe or an answer? Then it is dealt with here. No lock held. */
bool congestion_is_mad(const struct rx_packet *p);
void congestion_mad(struct nic *nic, uint64_t now_ns, const struct rx_packet *p);

/* May data leave now? It says how much at most in t->max_bytes. Else there is a deadline, if
 * something waits. */
bool congestion_open(struct qp *qp, uint64_t now_ns, struct train *t, bool waits);
/* It left. */
void congestion_sent(struct qp *qp, uint64_t now_ns, struct train *t);
/* Fills an empty train with one packet that is due; false: none is. */
bool congestion_next(struct qp *qp, uint64_t now_ns, struct train *t);

#endif
