/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair.h: two engines, A and B, with one RC QP each, joined by a link of fixed delay that a test
 * may tamper with, in virtual time. For the cases from the field, which are told from both ends.
 */
#ifndef TESTS_SCRIPT_PAIR_H
#define TESTS_SCRIPT_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "nic/nic.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

enum { A, B };

#define MS 1000000ull
#define US 1000ull

struct pair;

/* What becomes of a packet on the link. A hook may also change the packet. */
struct fate {
    bool drop;
    bool twice;
    uint64_t extra_ns; /* on top of the link's delay: others overtake it */
};

struct side {
    struct pair *pair;
    int which;
    struct nic *nic;
    struct pd *pd, *other_pd;
    struct cq *scq, *rcq;
    struct srq *srq;
    struct qp *qp;
    struct nic_qp_attr attr;
    uint8_t *memory;
    uint64_t memory_bytes;
    struct mr *mr;
    struct nic_sink sink;
    uint64_t packets; /* sent */
    uint64_t wakes;   /* nic_advance calls that were due */
};

struct pair_config {
    uint16_t mtu; /* 0: 1024 */
    uint8_t timeout, retry, rnr_retry, min_rnr;
    uint8_t rd_atomic; /* both sides; 0: 4 */
    unsigned access;   /* of the QPs; 0: all */
    uint32_t wrs;      /* 0: 64 */
    uint64_t memory_bytes;
    uint8_t *memory[2]; /* NULL: zeroed memory is taken */
    bool srq;           /* at B */
    bool direct;        /* no link: packets are delivered while they are sent, without a copy */
    uint32_t window_bytes;
    enum qp_type type; /* 0: RC; or UC */
    bool v6;
    uint8_t traffic_class;
    struct congestion_config congestion;
};

struct flight;

struct pair {
    struct pair_config config;
    struct side side[2];
    uint64_t now, delay_ns;
    struct flight *flights; /* by time of arrival */
    struct fate (*hook)(struct pair *p, int from, struct rx_packet *packet);
    void *hook_data;
    /* Sees what arrives, before the engine does. */
    void (*arrived)(struct pair *p, int to, const struct rx_packet *packet);
    struct rng rng;
};

/* A work request in few words; keys and addresses default to the whole memory of each side. */
struct work {
    enum wr_opcode opcode;
    uint64_t id;
    uint64_t at, va; /* here, and at the peer: offsets into memory */
    uint32_t len;
    unsigned flags;
    uint32_t imm;
    uint64_t a, b; /* add or swap, compare */
    uint32_t lkey, rkey;
    bool no_rkey; /* rkey is 0 */
};

void pair_create(struct pair *p, const struct pair_config *config);
void pair_destroy(struct pair *p);
/* Takes a side's QP to RTS from RESET, or only to the state. */
void pair_bring(struct pair *p, int side, enum qp_state to);
int pair_modify(struct pair *p, int side, enum qp_state to);

/* Posts at a side: send, signalled; receive. Must succeed, but for pair_try. */
void pair_post(struct pair *p, int side, struct work w);
int pair_try(struct pair *p, int side, struct work w);
void pair_recv(struct pair *p, int side, struct work w);

/* Lets things happen for ns; or until nothing is going on (limit: an hour of virtual time). */
void pair_run(struct pair *p, uint64_t ns);
void pair_settle(struct pair *p);
/* A packet out of nowhere, to a side, from its peer. */
void pair_inject(struct pair *p, int side, struct rx_packet packet);
struct rx_packet pair_packet(struct pair *p, int to, uint8_t opcode, uint32_t psn);

/* The next completion must be this; returns it. */
struct nic_wc pair_sent(struct pair *p, int side, uint64_t id, enum wc_status status);
struct nic_wc pair_received(struct pair *p, int side, uint64_t id, enum wc_status status);
/* Nothing is left: completions, events. */
void pair_quiet(struct pair *p);
void pair_event(struct pair *p, int side, enum nic_event_type type);
void pair_state(struct pair *p, int side, enum qp_state state);
uint64_t pair_count(struct pair *p, int side, enum nic_counter c);

#endif
