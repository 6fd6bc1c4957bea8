/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak.h: what the files of the soak driver share. Two processes, A and B, hold some lanes: a lane
 * is one RC connection after another, each with its epoch number. Both sides post whatever comes to
 * their mind; what must arrive follows from lane, epoch, direction and sequence number, so that
 * each completion, byte and atomic is checked where it shows. Plain libibverbs.
 */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    MAX_LANES = 8,
    DEPTH = 12, /* WRs of a lane outstanding */
    SLOT_BYTES = 1 << 20,
    WRITE_SLOTS = 3, /* targets of plain Writes, of each lane */
    IMM_SLOTS = 3,   /* targets of Writes with immediate */
    NOISE_BYTES = 3 << 20,
    SRQ_RECVS = 5,  /* few, so that senders find none at times */
    LANE_RECVS = 3, /* of a lane without SRQ */
    FADD_STEP = 3,
    PORT = 1,
    INLINE_BYTES = 64,
};

enum kind {
    KIND_SEND,
    KIND_SEND_IMM,
    KIND_WRITE_IMM,
    KIND_WRITE,
    KIND_READ,      /* of what the peer has had since its start */
    KIND_READ_BACK, /* of what was written */
    KIND_FETCH_ADD,
    KIND_SHARED_ADD, /* of a cell that all lanes use */
    KIND_CMP_SWP,
    KIND_CREDIT, /* a Write: so many Writes with immediate were checked */
    KINDS,
};
extern const char *const kind_name[KINDS];

/* A WR that was posted. */
struct op {
    uint64_t serial;
    enum kind kind;
    bool outstanding, signaled;
    bool miss;      /* a Compare-and-Swap that must not swap */
    unsigned place; /* of DEPTH: result and read buffer */
    uint32_t bytes;
    uint64_t seed, expect;
};

enum lane_state {
    LANE_IDLE,
    LANE_OPENING, /* A: OPEN is sent; B: ACCEPT is sent */
    LANE_RUN,
    LANE_DRAIN, /* posts no more */
    LANE_DONE,  /* DONE is sent */
};

/* What the two sides tell each other. */
enum message_kind { SAY_OPEN, SAY_ACCEPT, SAY_GO, SAY_BROKEN, SAY_DRAIN, SAY_DONE, SAY_BYE };

struct message {
    uint32_t kind, lane;
    uint64_t epoch;
    uint32_t qpn, psn, rkey, spare;
    union ibv_gid gid;
    uint64_t base;          /* of the sender's memory */
    uint64_t fadd, cas;     /* the sender's cells of this lane */
    uint64_t posted, acked; /* messages that take a receive; of this epoch, in OPEN and ACCEPT of
                               the last one */
    uint64_t written[WRITE_SLOTS];
    uint64_t shared_posted, shared_acked;
};

struct lane {
    unsigned index;
    enum lane_state state;
    uint64_t epoch;
    bool use_srq, peer_done;
    bool broken;     /* to be given up */
    bool closing;    /* WRs are being flushed */
    bool in_session; /* it has been connected to this peer before */
    uint8_t timeout;
    struct ibv_qp *qp;
    struct message peer; /* its OPEN or ACCEPT */
    struct message peer_done_message;
    double opened, progress; /* seconds; progress: last completion, or nothing to wait for */
    struct op op[DEPTH];
    uint64_t posted, retired; /* serials of send WRs */
    unsigned recvs;           /* posted, of a lane without SRQ */

    /* As a sender, of this epoch. */
    uint64_t messages_posted, messages_acked, imms_posted;
    uint64_t fadd_base, fadd_posted, fadd_acked, cas_base, cas_posted, cas_acked;
    uint64_t written[WRITE_SLOTS]; /* seed of the last one acknowledged; 0: none */
    uint64_t writing[WRITE_SLOTS]; /* posted */
    /* As a receiver, of this epoch. */
    uint64_t messages_received, imms_received, credits_told;
};

struct soak {
    /* Options. */
    bool is_a, events;
    const char *device, *path;
    int gid_index;
    unsigned lanes, reconnect_ms;
    enum ibv_mtu mtu;
    uint64_t seed;

    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq[2];
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    uint8_t *memory;
    uint64_t memory_bytes;
    struct lane lane[MAX_LANES];
    int listen_fd, control_fd; /* -1: none */
    bool ending, bye_said, bye_heard;
    uint64_t random;
    uint64_t shared_base, shared_posted, shared_acked; /* since this peer came */
    bool shared_unsure;                                /* a connection broke meanwhile */

    uint64_t done[KINDS], bytes, received, received_bytes;
    uint64_t connections, reconnects, breaks, flushed, sessions;
};
extern struct soak s;

/* Where things are in the memory of a process, the same on both sides. */
uint64_t at_noise(uint64_t seed); /* of which the bytes are what seed means */
uint64_t at_write_slot(unsigned lane, unsigned slot);
uint64_t at_imm_slot(unsigned lane, unsigned slot);
uint64_t at_read(unsigned lane, unsigned place);
uint64_t at_result(unsigned lane, unsigned place);
uint64_t at_fadd(unsigned lane);
uint64_t at_cas(unsigned lane);
uint64_t at_credit(unsigned lane);
uint64_t at_shared(void);
uint64_t at_recv(unsigned index);
uint64_t memory_size(unsigned lanes);

static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
static inline uint64_t *word_at(uint64_t at)
{
    return (uint64_t *)(void *)(s.memory + at);
}

/* soak.c */
double now_seconds(void);
uint64_t random_next(void);
/* Says what is wrong, where and how to see it again; ends the process with exit code 1. */
void violation(const struct lane *l, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void say(const struct lane *l, enum message_kind kind);

/* lane.c */
void lane_init(struct lane *l, unsigned index);
void lane_open(struct lane *l); /* A */
void lane_heard(struct lane *l, const struct message *m);
/* The connection is given up: all WRs must come back. */
void lane_abort(struct lane *l);
void lane_drain(struct lane *l);
/* Posts, and sees to what is due. */
void lane_turn(struct lane *l);
void recv_post(struct lane *l, unsigned index);
struct lane *lane_of_qp(uint32_t qpn);
/* All that the completion queues hold; number of completions. */
unsigned completions_take(void);

/* work.c */
void work_begin(struct lane *l);
void work_post(struct lane *l);
void work_completed(struct lane *l, const struct ibv_wc *wc);
void work_received(struct lane *l, const struct ibv_wc *wc);
bool work_outstanding(const struct lane *l);
/* The peer's word on what it sent, against what came. */
void work_compare_done(struct lane *l, const struct message *m);
void work_compare_broken(struct lane *l, const struct message *m);

#endif
