/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_watch.h: watching over the process that gets the packets of unknown flows (port_watch.c). A
 * part of port_udp_priv.h.
 */
#ifndef PORT_PORT_WATCH_H
#define PORT_PORT_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct port_udp;
struct udp_run;

enum udp_watch_state {
    UDP_WATCH_REST,  /* until due_ns */
    UDP_WATCH_ASKED, /* an answer is due, or has come */
    UDP_WATCH_SCAN,  /* looking for our place in the group */
};

/* Of one address family; port_watch.c. The sending side's, but for what is atomic. */
struct udp_watch {
    _Atomic int fd;                   /* our wildcard socket, -1: none; by the receiving side */
    _Atomic uint32_t wanted;          /* QPs that expect packets; any thread */
    _Atomic uint64_t hosted_until_ns; /* on behalf of a guest; by the receiving side */
    _Atomic uint64_t due_ns;   /* next turn; the receiving side moves it when an answer comes */
    _Atomic uint64_t asked_ns; /* the last question */
    _Atomic uint64_t answer_due_ns;
    _Atomic uint64_t interval_ns; /* from it to the next, if answered */
    _Atomic uint32_t answer;      /* sequence number; by the receiving side */
    _Atomic uint32_t members;     /* that ask, as the leader told; by the receiving side */
    _Atomic uint32_t place;       /* lowest that answered; lowered by the receiving side */
    _Atomic uint32_t scan_sequence;
    enum udp_watch_state state;
    int claim_fd; /* the name of who looks for a leader; -1: not we */
    unsigned asks, moves, quiet, refusals;
    uint32_t sequence, first_sequence, scan_at, scan_batch, jitter;
    uint64_t packets; /* sent and received when asked */
};

void udp_watch_init(struct port_udp *u);
/* The program of fd's group: places[leader] gets what has no socket of its own. -errno. */
int udp_watch_program(int fd, uint32_t leader);
/* Receiving side: a mark to ourselves by way of the leader, behind all that it holds; it comes back
 * to udp_flow_marked. */
void udp_watch_mark(struct port_udp *u, bool v6, uint32_t mark);
/* This process is a member now. */
void udp_watch_member(struct port_udp *u, bool v6, int fd);
/* Receiving side: a guest expects packets, too. */
void udp_watch_hosted(struct port_udp *u, uint64_t until_ns);
/* qps: 1 or -1 that expect packets. */
void udp_watch_expect(struct port_udp *u, bool v6, int qps);
/* Its descriptors. */
void udp_watch_close(struct port_udp *u);
/* Sending side: what is due. */
void udp_watch_turn(struct port_udp *u, uint64_t now_ns);
uint64_t udp_watch_deadline(struct port_udp *u);
/* Receiving side: a run of probes. Returns 1. */
unsigned udp_watch_probe(struct port_udp *u, const struct udp_run *run);

#endif
