/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h: what the measurements share: two processes, one a CPU, with a page between them. The
 * initiator is the parent on CPU 1, the target a child on CPU 0. A measurement is the median of
 * short slices of equal work, so that a moment without the CPU spoils one slice.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_POOL_BYTES = 1 << 20, /* each side's buffer: what is moved is warm, but not in L1 */
    BENCH_SLICES_MAX = 20000,
};

struct bench_peer {
    uint32_t qpn, psn, rkey;
    uint64_t addr;
    uint8_t gid[16];
};

struct bench_shared {
    _Atomic int ready; /* processes that have come to bench_meet, over all */
    _Atomic int stop;
    _Alignas(128) _Atomic uint64_t consumed; /* bytes that the target of a blast has taken */
    _Alignas(128) struct bench_peer peer[2];
    double result;
};

struct bench_case {
    const char *name;
    const char *what; /* the unit and meaning of the number */
    void (*initiator)(const struct bench_case *c);
    void (*target)(const struct bench_case *c);
    uint32_t bytes; /* of a message */
    uint32_t mtu;
    bool target_polls;
};

extern struct bench_shared *bench_shared;
extern const char *bench_device;
extern double bench_seconds;

uint64_t bench_now_ns(void);
_Noreturn void bench_die(const char *what);
/* Returns when both processes are here. */
void bench_meet(void);
bool bench_stopped(void);
/* Touched memory, aligned to a page. */
uint8_t *bench_memory(size_t n);

/* Slices: begin once, then tell of work as it is done; full: enough is measured. */
void bench_slice_begin(uint64_t slice_work);
bool bench_slice_work(uint64_t work);
/* Nanoseconds for one unit of work: the median over the slices. */
double bench_slice_median_ns(void);

/* bench_raw.c: sockets without any RDMA. */
void raw_blast_initiator(const struct bench_case *c);
void raw_blast_target(const struct bench_case *c);
void raw_tcp_initiator(const struct bench_case *c);
void raw_tcp_target(const struct bench_case *c);
void raw_ping_initiator(const struct bench_case *c);
void raw_ping_target(const struct bench_case *c);
/* The same with what a RoCE port asks of its sockets. */
void raw_roce_initiator(const struct bench_case *c);
void raw_roce_target(const struct bench_case *c);
/* A thread of the target blocks in recv, while its main thread spins on memory. */
void raw_blocked_initiator(const struct bench_case *c);
void raw_blocked_target(const struct bench_case *c);

/* bench_verbs.c: the public verbs API. */
void verbs_bandwidth_initiator(const struct bench_case *c);
void verbs_bandwidth_target(const struct bench_case *c);
void verbs_latency_initiator(const struct bench_case *c);
void verbs_latency_target(const struct bench_case *c);
void verbs_rate_initiator(const struct bench_case *c);
void verbs_rate_target(const struct bench_case *c);

/* bench_cm.c: connections; `bytes` of the case: so many under way at a time. */
void cm_connect_initiator(const struct bench_case *c);
void cm_connect_target(const struct bench_case *c);
void raw_connect_initiator(const struct bench_case *c);
void raw_connect_target(const struct bench_case *c);

#endif
