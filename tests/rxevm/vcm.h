/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vcm.h: what the dialogues (vcm_play.c) use. Events and completions are awaited in order, with a
 * limit; what else happens is printed and counted as wrong.
 */
#ifndef RXEVM_VCM_H
#define RXEVM_VCM_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    BUFFER_BYTES = 128 << 10,
    ARRIVE = 64 << 10, /* in the buffer: where things arrive */
    CELL = 48 << 10,   /* of atomics */
    RECV_ID = 1,
    SEND_ID = 2,
    ATOMIC_ADD = 1000,
    GRH_BYTES = 40,
    /* Bytes of private data for the user: IBA 12.6, less the addresses in a request. */
    REQ_BYTES = 56,
    REP_BYTES = 196,
    REJ_BYTES = 148,
    SIDR_REQ_BYTES = 180,
    SIDR_REP_BYTES = 136,
};

/* Of the sender's buffer, in the first bytes of private data; network order. */
struct memory_name {
    uint32_t high, low, rkey;
};

struct vcm {
    bool server;
    enum rdma_port_space space;
    struct sockaddr_storage address;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener, *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_ah *ah;
    uint8_t *buffer;
    int failures;
    struct rdma_conn_param param; /* for connect, accept */
    uint8_t own_data[256];
    /* Of the last event and completion. */
    enum rdma_cm_event_type last;
    struct rdma_conn_param peer_param;
    struct rdma_ud_param peer_ud;
    uint8_t data[256];
    size_t data_bytes;
    uint32_t bytes;
    /* Of the peer's buffer. */
    uint64_t remote_addr;
    uint32_t remote_rkey;
};

extern struct vcm v;

/* The server's part begins with the request there and v.id its id; the client's with addresses and
 * route resolved. */
struct vcm_dialogue {
    const char *name;
    enum rdma_port_space space;
    void (*server)(void);
    void (*client)(void);
};
extern const struct vcm_dialogue vcm_dialogues[]; /* ends with a NULL name */

void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
void nap_ms(int ms);

/* The next event must be this one. */
void await(enum rdma_cm_event_type type, int status);
void expect_silence(int ms);
/* Private data of this length into v.param. */
void private_build(size_t bytes);
/* That of the last event is the peer's, whole; it names the peer's memory. */
void private_check(size_t bytes);

void resolve(void);
void listen_here(void);
void make_qp(void);
void free_qp(void);
void free_id(void);

void post_recv(uint32_t at, uint32_t bytes);
void post(enum ibv_wr_opcode op, uint32_t at, uint32_t bytes, uint64_t remote, uint32_t rkey);
/* The next completion must be this one. */
void reap(uint64_t wr_id, int status);
void fill(uint32_t at, uint32_t bytes, unsigned seed);
void check(uint32_t at, uint32_t bytes, unsigned seed);

#endif
