/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vgold.h: what the two halves of vgold share: vgold.c makes the connection and posts, waits and
 * checks; vgold_play.c has the exchanges. One process is one side of one exchange.
 */
#ifndef TESTS_RXEVM_VGOLD_H
#define TESTS_RXEVM_VGOLD_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    BUFFER_BYTES = 256 << 10,
    ARRIVE = 128 << 10, /* where received messages, writes and read data land */
    SLOT = 16 << 10,    /* one receive buffer; the largest message is 3 * 4096 + 101 */
    CELL = 4096,        /* of the atomics */
    ANY = -1,           /* a status or opcode that does not matter */
};

struct vgold_peer {
    uint32_t qpn, psn, rkey;
    uint64_t addr;
    union ibv_gid gid;
};

struct vgold_options {
    const char *device, *host; /* host NULL: responder */
    int gid_index, mtu, port;
    int timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint32_t requester_psn, responder_psn;
    int error; /* the status that this side must see where the exchange goes wrong; or ANY */
};

struct vgold {
    struct vgold_options o;
    bool requester;
    enum ibv_qp_type type;
    int tcp, failures;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    uint8_t *buffer;
    struct vgold_peer me, peer;
    uint32_t rkey; /* what requests carry: the peer's, until an exchange says otherwise */
    uint64_t remote_addr;
    uint64_t next_wr_id, next_recv_id; /* of posts */
};

extern struct vgold v;

struct vgold_scenario {
    const char *name;
    enum ibv_qp_type type;
    void (*run)(void);
};
extern const struct vgold_scenario vgold_scenarios[]; /* ends with a NULL name */

/* Prints the message and ends the program. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Prints the message and counts a failure. */
void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
void nap_ms(int ms);
void tcp_line(char *line, size_t n);
/* Both sides are here when it returns. */
void sync_peer(void);

void post_recv(int n, uint32_t bytes);
uint64_t post_send(enum ibv_wr_opcode op, uint32_t at, uint32_t bytes, uint32_t imm, int flags);
uint64_t post_atomic(enum ibv_wr_opcode op, uint64_t a, uint64_t b);
void post(struct ibv_send_wr *wr);

/* The next completion, printed; status ANY when none came in time. */
struct ibv_wc reap(void);
/* The next completion must have this id and status; of a success, also this opcode. */
struct ibv_wc expect(uint64_t wr_id, int status, int opcode);
struct ibv_wc expect_recv(uint32_t bytes, const uint32_t *imm);
/* Prints the state of the QP and the asynchronous event that came for it. */
void tell_qp(void);
/* The bytes at `at` must be those that the requester's or responder's buffer has at `from`. */
void check(uint32_t at, uint32_t n, bool of_requester, uint32_t from);

#endif
