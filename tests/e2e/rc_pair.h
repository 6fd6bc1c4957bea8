/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rc_pair.h: what the test programs of this folder share: two processes, an RC connection between
 * them made through a TCP connection, and waiting with limits. They are plain users of libibverbs
 * and know nothing of Verbena.
 */
#ifndef TESTS_E2E_RC_PAIR_H
#define TESTS_E2E_RC_PAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { RC_LIMIT_SECONDS = 60 };

struct rc_options {
    const char *device; /* NULL: the first */
    int gid_index;
    int port;
    enum ibv_mtu mtu;
    uint64_t bytes;  /* of the buffer; each program's own default */
    unsigned rounds; /* each program's own default */
    unsigned seed;
    uint8_t timeout, retry_cnt, rnr_retry; /* as in ibv_qp_attr */
    const char *host;                      /* NULL: server */
    unsigned pause_us;                     /* between polls; 0: none */
    int connection;        /* to the partner, when there is one already; 0: make one */
    const char *operation; /* what a program does with it; each program's own default */
};

/* What the two sides tell each other. */
struct rc_address {
    uint32_t qpn, psn, rkey;
    uint32_t spare;
    uint64_t addr, bytes;
    union ibv_gid gid;
};

struct rc_pair {
    struct rc_options o;
    int tcp;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *buffer;
    struct rc_address mine, theirs;
};

/* Prints the message and ends the program with exit code 1. */
void rc_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* -d device -g gid -p port -m mtu -s bytes -n rounds -S seed -t timeout -r retry_cnt -c connection
 * -o operation [host]; the rest gets its default. */
void rc_options(struct rc_options *o, int argc, char **argv);
/* As o.host says: to it, or the first who comes. */
int rc_tcp_connect(const struct rc_options *o);
/* TCP connection, device, PD, CQ, MR of o.bytes with all rights. */
void rc_open(struct rc_pair *p, const struct rc_options *o);
/* A QP in state INIT. */
void rc_create_qp(struct rc_pair *p);
/* Exchanges addresses and brings the QP to RTS. */
void rc_connect(struct rc_pair *p);
/* create and connect */
void rc_new_qp(struct rc_pair *p);
void rc_destroy_qp(struct rc_pair *p);
void rc_close(struct rc_pair *p);
/* Both sides are here when it returns. */
void rc_barrier(struct rc_pair *p);
void rc_tcp_write(struct rc_pair *p, const void *bytes, size_t n);
void rc_tcp_read(struct rc_pair *p, void *bytes, size_t n);

/* One SGE of the pair's own buffer; remote at the same offset of the peer's. */
void rc_post(struct rc_pair *p, enum ibv_wr_opcode opcode, uint64_t wr_id, uint64_t local_at,
             uint64_t remote_at, uint32_t bytes, unsigned flags);
void rc_post_recv(struct rc_pair *p, uint64_t wr_id, uint64_t at, uint32_t bytes);
/* The next completion, whatever its status; fails after RC_LIMIT_SECONDS. */
struct ibv_wc rc_wait(struct rc_pair *p);
/* The next completion, which must be a success with this id. */
struct ibv_wc rc_expect(struct rc_pair *p, uint64_t wr_id);

/* Byte i of pattern `seed`. */
static inline uint8_t rc_byte(uint64_t seed, uint64_t i)
{
    uint64_t x = (seed * 0x9e3779b97f4a7c15u) ^ (i * 0xbf58476d1ce4e5b9u);
    return (uint8_t)(x >> 56 ^ x >> 24 ^ i);
}
static inline void rc_fill(uint8_t *b, uint64_t n, uint64_t seed)
{
    for (uint64_t i = 0; i < n; i++)
        b[i] = rc_byte(seed, i);
}
/* Fails, naming the first wrong byte. */
void rc_check(const uint8_t *b, uint64_t n, uint64_t seed, const char *what);
double rc_now_seconds(void);

#endif
