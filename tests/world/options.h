/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h: the swarm options of one test world: which operations, sizes, depths, delays and
 * faults are on in it. plan.c draws them, once.
 */
#ifndef TESTS_WORLD_OPTIONS_H
#define TESTS_WORLD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { NODES = 4 }; /* at most */

enum event_mode {
    EVENTS_NONE,      /* the program polls */
    EVENTS_ANY,       /* waits for any completion */
    EVENTS_SOLICITED, /* for solicited ones, and looks now and then */
    EVENTS_MIXED,
};

struct options {
    int nodes, pairs; /* pairs: of QPs, whatever lives follow */
    uint32_t mtu;
    uint32_t ops_min, ops_max;
    unsigned op_weight[16]; /* by enum wr_opcode */
    uint32_t max_len;
    bool big;
    uint32_t send_depth, recv_depth, sges, inline_bytes;
    uint32_t unsignalled_ppm, fence_ppm, solicited_ppm, inline_ppm;
    unsigned small; /* 0, or which of small.c's worlds it is */
    bool srq, sig_all, v6, raw, perfect;
    bool lives;           /* QPs are reset or destroyed and live again */
    bool keys;            /* regions get other keys under way */
    bool forged;          /* packets that nobody sent */
    bool overflow;        /* CQs are too small */
    bool paced;           /* QPs have rate limits: pace.c */
    bool marked;          /* there is congestion control: marks.c */
    bool limited;         /* faults never use up the retries of a QP */
    bool late_rts[NODES]; /* only answers at first */
    bool rnr_exhausted;   /* RNR retries may be used up */
    enum event_mode events;
    int cq_mode; /* 0: one a node, 1: send and receive, 2: two a QP */
    uint32_t srq_limit;
    uint8_t rd_atomic[NODES], dest_rd_atomic[NODES];
    uint8_t timeout, retry_cnt, rnr_retry, rnr_timer;
    uint32_t window_bytes;
    /* Time. */
    uint32_t latency_ns, latency2_ns, jitter_ns, byte_ns_x16, tick_ns;
    uint32_t post_gap_ns, recv_gap_ns, poll_gap_ns, post_burst, recv_burst, poll_max, input_batch;
    uint32_t max_trains;
    /* Faults. */
    uint32_t drop_ppm, dup_ppm, reorder_ppm, corrupt_ppm, down_ppm;
    uint32_t reorder_ns, down_ns;
    uint32_t fault_packets; /* then they stop */
    uint32_t
        shift_packets; /* every so many a path of another delay, up to latency2 more; 0: never */
    int one_way;       /* 0, or 1 + the only node towards which there are faults */
    uint32_t burst_ppm, burst_end_ppm, burst_drop_ppm; /* bursts begin, end, lose in between */
    /* Congestion. */
    uint8_t algorithm[NODES];
    uint32_t mark_ppm, line_gbps, cnp_interval_ns, burst_ns;
    uint32_t hole_ppm, hole_ns, hole_bytes; /* times when larger packets are lost */
};

#endif
