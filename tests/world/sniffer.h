/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sniffer.h: what the packets on the links tell of each direction, and when link.c and world.c show
 * them.
 */
#ifndef TESTS_WORLD_SNIFFER_H
#define TESTS_WORLD_SNIFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/psn.h"

struct direction;
struct flight;
struct roce_headers;
struct rx_packet;
struct world;

enum { MAX_ASKED = 64 }; /* over what any world allows */

/* What sniffer.c saw of one direction. Offsets are PSNs counted from the direction's first. */
struct sniffed {
    uint32_t sent; /* PSNs that went out at least once */
    struct {
        uint32_t first, end;
    } asked[MAX_ASKED]; /* READs and atomics on the wire without an answer */
    uint32_t asks;
    uint32_t lost, resent;   /* una + 1 when a later answer came; when it was sent again */
    uint32_t answered;       /* one past the last PSN that a response spoke of */
    uint32_t gap, naked;     /* expected offset + 1 when a later packet came; of the last NAK */
    uint64_t quiet_until_ns; /* an RNR NAK asks for it */
    uint32_t una;            /* after the last batch */
    bool waiting;            /* an RNR NAK came and nothing was sent since */
    uint32_t rnr_naks;       /* since the last progress */
    uint32_t refusals;       /* of them, each of a request that went out after the one before */
    uint32_t sqd_begun;      /* messages begun in SQD */
    bool drained;            /* so said an event; until it leaves SQD */
    bool limit_known;        /* credits */
    struct psn limit;
    uint64_t wait_until_ns; /* at most, after the last RNR NAK */
    uint32_t next;          /* one past the last request that went out */
    bool timer_runs;        /* the ACK timer, since */
    uint64_t timer_ns;
    bool excused; /* there is a reason to go back other than time */
    bool excused_by_rnr;
    int tries;          /* times that it went back since the last progress, at least */
    uint32_t went_back; /* and at most */
    uint32_t answers;   /* that were such reasons */
};

void sniff_sent(struct world *w, struct direction *d, const struct roce_headers *h,
                uint32_t payload_bytes);
/* Not of the life that its QP has now, or of nobody at all? */
bool sniff_is_stale(struct world *w, int to, const struct flight *f);
/* Gives it to the engine, which may not take anything from it. */
void sniff_stale(struct world *w, int to, const struct rx_packet *rx);
/* After the engine has taken this batch. */
void sniff_received(struct world *w, int to, const struct rx_packet *rx, unsigned n);
/* EVENT_SQ_DRAINED came for the requester. */
void sniff_drained(struct world *w, struct direction *d);
/* The node has nothing more to send. */
void sniff_idle(struct world *w, int node);
/* The requester gave up for want of answers: after exactly as many tries as it has? */
void sniff_gave_up(struct world *w, const struct direction *d);

#endif
