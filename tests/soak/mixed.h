/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mixed.h: what the files of the mixed soak share. Two processes on one machine have a lane of each
 * kind: a thread with a socket to its peer. A lane lives through epochs: everything is made,
 * connected, used, compared and destroyed again. Plain libibverbs.
 */
#ifndef TESTS_SOAK_MIXED_H
#define TESTS_SOAK_MIXED_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLOTS = 16,
    SLOT_BYTES = 16 << 10,
    WINDOW_BYTES = 8 << 10,
    RECVS = 8,      /* fewer than slots, so that what was received can be looked at */
    MESSAGES = 300, /* of an epoch, each way */
    /* UC and UD have a receive for each, so that nothing but the network loses any. */
    UNRELIABLE_MAX_BYTES = 4096,
    UNRELIABLE_RECV_BYTES = UNRELIABLE_MAX_BYTES + 64,
    GRH_BYTES = 40,
    PORT = 1,
};

/* Parts of a lane's memory, in slots. */
enum { AT_SEND = 0, AT_RECV = SLOTS, AT_TARGET = 2 * SLOTS, AT_RESULT = 3 * SLOTS, ALL_SLOTS };
enum { MEMORY_BYTES = ALL_SLOTS * SLOT_BYTES + MESSAGES * UNRELIABLE_RECV_BYTES };

enum lane_kind { LANE_RC, LANE_XRC, LANE_UC, LANE_UD, LANE_MW, LANE_KINDS };
extern const char *const lane_name[LANE_KINDS];

/* What each side tells the other at the beginning of an epoch. */
struct hello {
    uint32_t stop; /* no epoch any more */
    uint32_t qpn, target_qpn, srq_number, rkey;
    uint64_t base, epoch;
    union ibv_gid gid;
};

struct lane {
    enum lane_kind kind;
    bool is_a;
    int socket;
    uint64_t epoch;
    struct hello peer;
    /* Of the epoch. */
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_xrcd *xrcd;
    struct ibv_srq *srq;
    struct ibv_qp *qp, *target; /* target: XRC */
    struct ibv_ah *ah;
    struct ibv_mw *mw;
    uint8_t *memory;
    /* Since the start. */
    _Atomic uint64_t epochs, sent, received, bytes;
    uint64_t progress_s; /* last completion */
};

struct mixed {
    struct ibv_context *ctx;
    union ibv_gid gid;
    uint64_t seed;
    _Atomic bool stop;
    bool is_a;
};
extern struct mixed m;

/* Says what is wrong and ends the process. */
_Noreturn void violation(const struct lane *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tell(const struct lane *l, const void *bytes, size_t n);
void hear(const struct lane *l, void *bytes, size_t n);
uint64_t mix(uint64_t x);
double now_seconds(void);

/* The bytes of message number n of one side. */
void pattern_fill(uint64_t seed, uint8_t *to, uint32_t bytes);
void pattern_check(const struct lane *l, uint64_t seed, const uint8_t *at, uint32_t bytes);

/* Makes everything, tells and hears; false: no epoch any more. */
bool lane_open(struct lane *l);
void lane_close(struct lane *l);
void lane_post_recv(struct lane *l, unsigned index);
uint8_t *lane_recv_at(struct lane *l, unsigned index);
bool lane_unreliable(const struct lane *l);
/* The next completion, whose status must be good; false: none within the time. */
bool lane_poll(struct lane *l, struct ibv_wc *wc, int limit_ms);

void epoch_reliable(struct lane *l);
void epoch_unreliable(struct lane *l);
void epoch_windows(struct lane *l);

#endif
