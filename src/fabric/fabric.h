/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric.h: a data-centre network under virtual time: links, switches with a shared buffer, PFC and
 * ECN, hosts with flows. Same arguments, same results, bit for bit. No IO, no clock; all memory is
 * taken by fabric_create. Time is in picoseconds.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/trace.h"
#include "nic/cc/cc.h"

enum {
    FABRIC_PRIORITIES = 8,
    FABRIC_DSCPS = 64,
    FABRIC_MAX_NODES = 65536,
    FABRIC_MAX_LINKS = 262144,
    FABRIC_MAX_FLOWS = 4 << 20,
    FABRIC_MAX_FRAME_BYTES = 16384,
    FABRIC_MAX_MESSAGE_BYTES = 1 << 20,
    FABRIC_MAX_RECEIVES = 4096,
    FABRIC_WINDOW_BYTES = 256 * 1024,    /* of a NIC that is given none */
    FABRIC_MAX_POSTED = (1 << 22) - 1,   /* of a host: its CQ holds no more */
    FABRIC_QUANTUM_BYTES = 64,           /* 512 bit times (IEEE 802.3 31B) */
    FABRIC_QUANTA_HELD = UINT16_MAX + 1, /* not on any wire: a pause that lasts until the resume */
};
#define FABRIC_NEVER      UINT64_MAX
#define FABRIC_NO_GROUP   UINT32_MAX
#define FABRIC_US         UINT64_C(1000000)
#define FABRIC_MS         UINT64_C(1000000000)
#define FABRIC_MAX_RNR_PS (655360 * FABRIC_US) /* the most that an RNR NAK can ask for */

struct fabric_link {
    uint32_t node[2];
    uint64_t rate_bps;
    uint64_t delay_ps;
    uint32_t mtu_bytes;   /* larger payloads are dropped, both ways; 0: none is too large */
    uint32_t loss_ppm;    /* data frames that arrive broken, and are dropped */
    uint32_t corrupt_ppm; /* data frames with a bit turned that no FCS shows: hosts drop them */
};

struct fabric_topology {
    uint32_t nodes, links;
    const uint8_t *is_switch; /* a node; others are hosts, with one link each */
    const struct fabric_link *link;
};

enum fabric_verb {
    FABRIC_WRITE,
    FABRIC_WRITE_IMM,
    FABRIC_SEND,
    FABRIC_READ, /* dst asks, src answers: bytes go from src to dst as ever */
    FABRIC_FETCH_ADD,
    FABRIC_CMP_SWAP,
};

/* How NIC engines move the bytes of a flow. All zero: by RDMA WRITE. */
struct fabric_work {
    enum fabric_verb verb;
    uint32_t message_bytes; /* of a work request; 0: 1 MiB, which is the most; atomics have 8 */
    uint32_t receives;      /* SEND, WRITE_IMM: that dst has posted at the start */
    uint64_t receive_ps;    /* after a message, until one more is; one after the other */
    bool wrong_rkey;
};

struct fabric_flow {
    uint32_t src, dst; /* hosts */
    uint8_t priority;  /* travels as DSCP priority * 8 */
    uint64_t bytes;    /* >= 1 */
    uint64_t start_ps;
    /* Groups: when all flows of group `after` are finished, start_ps runs from then on. */
    uint32_t group, after; /* FABRIC_NO_GROUP: none */
    struct fabric_work work;
};

/* A switch whose table from DSCP, or PCP, to priority differs. */
struct fabric_mapping {
    uint32_t node;
    uint8_t dscp, priority;
    bool pcp; /* `dscp` is one */
};

enum fabric_watchdog {
    WATCHDOG_OFF,
    WATCHDOG_DROP,    /* the queue's frames are dropped until pauses cease */
    WATCHDOG_FORWARD, /* pauses are not obeyed */
    WATCHDOG_ALERT,   /* counted only */
};

/* From at_ps on a link is down, or up again. */
struct fabric_fault {
    uint64_t at_ps;
    uint32_t link;
    bool up;
};

struct fabric_switches {
    uint64_t buffer_bytes;         /* each, shared by its ports */
    uint32_t headroom_bytes;       /* a port and lossless priority; 0: by each link (buffer.c) */
    uint32_t headroom_delays;      /* not 0: headroom is so many times rate * delay, once a port */
    uint32_t reserve_bytes;        /* a port */
    uint32_t alpha_num, alpha_den; /* threshold = alpha * what is free */
    bool alpha_by_rate;            /* doubled for each doubling over the switch's slowest port */
    uint32_t xon_offset_bytes;     /* resume so far below the threshold */
    uint8_t lossless;              /* mask of priorities */
    uint8_t control;               /* mask of those that no limit applies to */
    uint8_t
        weight[FABRIC_PRIORITIES]; /* 0: strict, the higher first and before all weighted ones */
    uint32_t pause_quanta;         /* 1..65535 or FABRIC_QUANTA_HELD */
    uint32_t response_quanta;      /* how long whoever is paused goes on */
    bool link_pause; /* IEEE 802.3 31B: all of the link pauses, whatever priority is too much */
    bool trust_pcp;  /* the VLAN tag's priority counts, not the DSCP; without a tag it is 0 */
    uint8_t ecn;     /* mask of priorities that are marked */
    bool ecn_at_dequeue;
    uint64_t kmin_bytes, kmax_bytes; /* at ecn_rate_bps; in proportion for other rates */
    uint64_t ecn_rate_bps;           /* 0: the same at all rates */
    uint32_t pmax_ppm;
    /* How long after a link went or came back, and stayed so, all ways are measured anew. Till then
     * the switches at its ends alone know. FABRIC_NEVER: it is not done. */
    uint64_t converge_ps;
};

struct fabric_hosts {
    bool engine; /* hosts are NIC engines: each flow is a pair */
    bool vlan;   /* frames have a tag, with the priority; 4 bytes more than what is said here */
    uint32_t payload_bytes; /* of a full packet */
    uint32_t header_bytes;  /* of each data frame, as buffers count it */
    uint32_t ack_bytes, cnp_bytes;
    uint8_t ack_priority, cnp_priority;
    bool ack_in_class; /* ACKs go by the priority of the data */
    bool cnp_by_ack;   /* the echo of a mark is a flag of the ACK; else packets of their own */
    uint64_t cnp_interval_ps; /* between two CNPs of a flow */
    uint64_t timeout_ps;      /* without progress, all that is not acknowledged is sent again; 0 */
    /* Of bare sources: a flow is one message, and what is lost of it has all of it sent again, from
     * its first frame on; else from the missing one on. */
    bool go_back_0;
    /* Of engines: how often in a row, as in verbs (rnr_retry 7: for ever); what a peer without a
     * receive asks to wait, rounded up to what an RNR NAK can say, FABRIC_MAX_RNR_PS at most. */
    uint8_t retry, rnr_retry;
    uint64_t rnr_timer_ps;
    const char *cc; /* of CC_NAMES; NULL: none */
    /* HPCC: percent of a link to be used; round trips in a row that only add; what each adds, as a
     * part of the host's link. */
    uint32_t hpcc_eta_percent, hpcc_stages, hpcc_parts;
    uint64_t window_bytes; /* in flight of a flow; 0: no limit, or a NIC's */
};

struct fabric;

struct fabric_config {
    uint64_t seed;
    uint32_t gap_bytes; /* preamble, start, gap: on the wire, not in buffers */
    uint32_t pfc_bytes; /* a PFC frame */
    uint32_t min_frame_bytes;
    uint32_t max_packets; /* at once in the whole fabric; 0: by the buffers */
    bool bytes; /* of engines: frames have bytes and an ICRC; the same comes out, more slowly */
    struct fabric_switches switches;
    struct fabric_hosts hosts;
    enum fabric_watchdog watchdog;
    uint64_t detect_ps, restore_ps;
    uint64_t stall_ps; /* nothing moved for so long: the run ends. 0: what the hosts' retries take,
                          and 20 ms more */
    uint64_t limit_ps; /* the run ends; 0: none */
    uint32_t mappings, faults;
    const struct fabric_mapping *mapping;
    const struct fabric_fault *fault; /* in order of time */
    /* Each pause or resume frame that a node received, a call a priority; FABRIC_PRIORITIES: one
     * for the whole link. May be NULL. */
    void (*on_pfc)(void *arg, uint64_t time_ps, uint32_t node, uint32_t port, unsigned priority,
                   uint32_t quanta);
    void *on_pfc_arg;
    uint32_t trace_kinds; /* mask: of what happens is traced */
    struct fabric_tracer *tracer;
    /* Called sample_ps after the beginning, and then after as many ps as it returns (0: never
     * again), to look at the fabric; nothing of the run depends on it. May be NULL. */
    uint64_t (*on_sample)(void *arg, struct fabric *f);
    void *on_sample_arg;
    uint64_t sample_ps;
};

/* Of a port, all priorities together. */
struct fabric_port_sample {
    uint64_t peak_bytes;          /* the longest queue since it was last asked for */
    uint64_t tx_bytes, paused_ps; /* since the beginning */
};

enum fabric_state {
    FABRIC_RUNNING,
    FABRIC_FINISHED, /* all flows */
    FABRIC_STALLED,  /* flows are left and nothing moves */
    FABRIC_LIMIT,    /* of time */
    FABRIC_FULL,     /* max_packets was not enough */
    FABRIC_FAILED,   /* nothing is left to do, but flows ended with an error */
    FABRIC_LIVELOCK, /* flows are left; frames arrive again and again, and nobody gets on */
};

struct fabric_flow_result {
    uint64_t start_ps; /* FABRIC_NEVER: it did not start */
    uint64_t fct_ps;   /* FABRIC_NEVER: not finished */
    uint64_t ideal_ps;
    uint32_t retries; /* times that it went back */
    uint32_t cnps;    /* that slowed it, or would have */
    /* Of engines. */
    uint64_t failed_ps; /* FABRIC_NEVER: it did not fail */
    uint8_t status;     /* enum wc_status of the completion that ended it */
    uint8_t state[2];   /* enum qp_state at src and dst */
    uint32_t rnr_naks;
};

struct fabric_port_result {
    uint32_t node, port; /* the node's port */
    uint64_t max_queue_bytes, paused_received_ps, paused_sent_ps, tx_bytes, ecn_marks, drops;
};

struct fabric_totals {
    uint64_t now_ps, events, link_hops;
    uint64_t progress_ps; /* when a flow last started or got on, or ways changed */
    uint64_t drops, pauses, resumes, ecn_marks;
    uint64_t max_queue_bytes;
    uint64_t drops_headroom, drops_threshold, drops_route, drops_mtu, drops_link, drops_watchdog,
        drops_icrc;
    uint64_t storms;             /* that the watchdog saw */
    uint64_t bytes, acked_bytes; /* of all flows */
    uint64_t arrived_bytes;      /* the sum of fabric_flow_arrived */
    uint32_t flows, finished, failed;
    uint64_t deadlock_ps; /* FABRIC_NEVER: none was seen */
};

/* The figures of RoCE v2 on Ethernet, 100G: what a caller starts from. */
void fabric_defaults(struct fabric_config *config);
/*
 * 0, -ENOMEM, -EINVAL (the caller checks what it gives: names and lines are not known here), or
 * -EHOSTUNREACH: there is no way for flow *bad, or -ENOSPC: reserve and headroom of a switch's
 * ports take *bad bytes, and its buffer has no more, or -E2BIG: flows of node *bad have more work
 * requests and receives at once than FABRIC_MAX_POSTED. What config, topology and flows point to
 * must stay.
 */
int fabric_create(const struct fabric_config *config, const struct fabric_topology *topology,
                  const struct fabric_flow *flows, uint32_t flow_count, struct fabric **out,
                  uint32_t *bad);
void fabric_destroy(struct fabric *f);
/* At most so many events; FABRIC_RUNNING: call again. */
enum fabric_state fabric_run(struct fabric *f, uint64_t max_events);

void fabric_totals(const struct fabric *f, struct fabric_totals *out);
void fabric_flow_result(const struct fabric *f, uint32_t flow, struct fabric_flow_result *out);
/* What a full packet of the flow and its acknowledgement take on an empty network; 0: not known. */
uint64_t fabric_round_trip_ps(const struct fabric *f, uint32_t flow);
/* Ports in order of nodes, then of links as given. */
uint32_t fabric_ports(const struct fabric *f);
void fabric_port_result(const struct fabric *f, uint32_t port, unsigned priority,
                        struct fabric_port_result *out);
void fabric_port_sample(struct fabric *f, uint32_t port, struct fabric_port_sample *out);
/* Payload of the flow that came to where it goes, what was sent again included. */
uint64_t fabric_flow_arrived(const struct fabric *f, uint32_t flow);
/* Mask of a port's queues that wait for one another in a circle, as found first. */
uint8_t fabric_deadlock(const struct fabric *f, uint32_t port);
/* What a port's ECN and PFC thresholds come to, for warnings. */
void fabric_thresholds(const struct fabric *f, uint32_t port, uint64_t *kmax_bytes,
                       uint64_t *xoff_bytes);
/* Bytes of memory that the fabric holds, packets in use included. */
uint64_t fabric_memory_bytes(const struct fabric *f);

#endif
