/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h: flows and what a host keeps of them, whoever sends their frames: the bare source, or an
 * engine (engine.c), whose state begins with a struct source.
 */
#ifndef FABRIC_SOURCE_H
#define FABRIC_SOURCE_H

#include "fabric/fabric_priv.h"

struct flow {
    /* The sender's. */
    uint64_t next, acked; /* bytes: sent up to, acknowledged up to */
    uint64_t furthest;    /* that acked ever was */
    uint64_t bytes;
    uint64_t window_bytes; /* that may be under way; UINT64_MAX: no limit */
    uint64_t progress_ps;  /* when something was last acknowledged or sent anew */
    uint32_t ring_next, ring_prev;
    uint32_t dst;  /* index of the host */
    uint32_t home; /* that of the host that begins it: dst, when it reads */
    uint32_t index;
    uint32_t retries, cnps;
    uint32_t hash, back_hash;
    uint8_t priority;
    bool started, in_ring, done;
    struct heap_node timer; /* start, then timeout */
    struct heap_node pace;  /* when its rate lets it send again */
    uint64_t next_ps;       /* the same, passed or not */
    uint64_t probe_ps;      /* when the probe under way left; 0: none is */
    struct cc cc;
    uint64_t start_ps, fct_ps;
    uint32_t group, next_waiting; /* of those that wait for the same group */
    /* The receiver's. */
    uint64_t expected;
    uint64_t arrived; /* payload, whatever came of it */
    uint64_t cnp_ps;  /* when the last CNP left, + 1; 0: none did */
    uint32_t src;     /* index of the host */
    bool gap;         /* told the sender that something is missing */
};

struct source {
    struct heap heap;  /* timers of flows */
    struct heap paced; /* and their paces */
    struct cc_params cc;
    uint64_t engine_ps;               /* when its engine wants to be called; FABRIC_NEVER */
    uint32_t ring[FABRIC_PRIORITIES]; /* whose turn it is; PACKET_NONE: nobody has anything */
};

int source_init(struct fabric *f, struct endpoint *e, struct source *s);
/* The host's event at the first of its times. */
void source_arm(struct fabric *f, struct endpoint *e);
void source_started(struct fabric *f, struct flow *w);
void source_finish(struct fabric *f, struct endpoint *e, struct flow *w);
/* It ended otherwise; who waits for it waits for ever. */
void source_fail(struct fabric *f, struct endpoint *e, struct flow *w, unsigned status);

#endif
