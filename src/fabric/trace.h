/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h: what happens in a fabric, for whoever wants to know: what there is to tell, and where it
 * goes. It is kept as words of 64 bits, two an event, or three where its fields are large.
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

/* Where to it goes, and what of it is wanted. Whoever hands it to the fabric keeps it. */
struct fabric_tracer {
    uint64_t *next;   /* where the next event goes; there is room for its three words */
    uint64_t *enough; /* full() is called when next has come so far */
    uint64_t last_ps; /* of the last event; FABRIC_TRACE_ANEW: the next says when by itself */
    uint64_t longs;   /* events that took three words; others take two */
    /* Takes what is there, and sets next back; what follows can be read without it if last_ps is
     * made FABRIC_TRACE_ANEW. It may set another `enough`. */
    void (*full)(void *arg);
    void *arg;
    bool selective;      /* not all by what follows */
    uint16_t priorities; /* mask; bit FABRIC_PRIORITIES: what is of all */
    /* A bit each, NULL: whichever. Ports as in fabric_port_result; what has no flow is of none. */
    const uint64_t *port, *flow;
};
#define FABRIC_TRACE_ANEW (UINT64_C(1) << 62)

/*
 * The event that begins at word[0]: how many words it takes, 0: there is none (a word of 0, or not
 * all of it, or one that depends on what was before while *now_ps is FABRIC_TRACE_ANEW). *now_ps
 * is the time of the event before it, then its own. Without a node, and with the port as in
 * fabric_port_result.
 */
unsigned fabric_trace_read(const uint64_t *word, uint32_t left, uint64_t *now_ps,
                           struct fabric_trace *out);

#endif
