/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h: what happens in a fabric, for whoever wants to know: what there is to tell, how it is
 * kept, and where it goes.
 */
#ifndef FABRIC_TRACE_H
#define FABRIC_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum fabric_trace_kind {
    TRACE_SEND,   /* a frame begins to leave by the port; value: bytes that wait behind it */
    TRACE_ARRIVE, /* it has come in whole */
    TRACE_DROP,
    TRACE_MARK,  /* value: bytes of the queue */
    TRACE_PAUSE, /* a pause frame came; value: its quanta */
    TRACE_RESUME,
    TRACE_START, /* a flow, at its first host; value: its bytes */
    TRACE_FINISH,
    TRACE_FAIL,  /* value: enum wc_status */
    TRACE_STORM, /* the watchdog of this port saw one */
    TRACE_DOWN,  /* this end of a link */
    TRACE_UP,
    FABRIC_TRACE_KINDS
};
#define FABRIC_TRACE_NONE UINT32_MAX
enum { FABRIC_TRACE_NO_FRAME = 15 };

/* What happened. node, port and flow: FABRIC_TRACE_NONE where there is none. */
struct fabric_trace {
    uint64_t time_ps;
    uint32_t node, port; /* the node's port */
    uint32_t flow;
    uint32_t seq;   /* of a frame: its PSN, or the low bits of its place in the flow */
    uint32_t value; /* by the kind */
    uint16_t bytes; /* of a frame */
    uint8_t kind;   /* enum fabric_trace_kind */
    uint8_t priority : 4, frame : 4; /* 8: all; enum packet_kind or FABRIC_TRACE_NO_FRAME */
};

/* The same as it is kept: traces are long. */
struct fabric_record {
    uint64_t when, what, how;
};

/* Where to it goes, and what of it is wanted. Whoever hands it to the fabric keeps it. */
struct fabric_tracer {
    struct fabric_record *record; /* record[0 .. count) are there, count < room */
    uint32_t count, room;
    /* Called when count has become room: takes them, and makes count 0. It may set another room. */
    void (*full)(void *arg);
    void *arg;
    bool selective;      /* not all by what follows */
    uint16_t priorities; /* mask; bit FABRIC_PRIORITIES: what is of all */
    /* A bit each, NULL: whichever. Ports as in fabric_port_result; what has no flow is of none. */
    const uint64_t *port, *flow;
};

/* Without a node, and with the port as in fabric_port_result. */
void fabric_record_read(const struct fabric_record *r, struct fabric_trace *out);

#endif
