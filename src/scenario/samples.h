/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.h: what went on in a fabric over time, in at most so many intervals of equal length: when
 * they are used up, each two become one. Integers only, so the same run gives the same samples.
 */
#ifndef SCENARIO_SAMPLES_H
#define SCENARIO_SAMPLES_H

#include "scenario/scenario.h"

enum {
    SAMPLES_MOST = 240, /* intervals; an even number */
    SAMPLES_FLOWS = 24, /* the largest flows, that are followed one by one */
};

/* A port in an interval, all priorities together. */
struct samples_port {
    uint64_t tx_bytes, paused_ps;
    uint32_t peak_bytes; /* the longest queue */
    uint32_t pauses;     /* frames that told it to pause, or to go on */
};

struct samples {
    const struct scenario *scenario;
    uint32_t most, count; /* intervals; the last one may be shorter */
    uint64_t interval_ps, end_ps;
    uint64_t now_ps;       /* of the last look */
    uint64_t first_pfc_ps; /* FABRIC_NEVER: there was none */
    uint32_t ports, flows;
    uint32_t flow[SAMPLES_FLOWS];
    uint32_t *first_port;                   /* of each node */
    struct samples_port *port;              /* ports of an interval, then those of the next */
    struct samples_port *last;              /* sums as they were at the last look */
    uint64_t (*arrived)[SAMPLES_FLOWS + 1]; /* payload, of those flows and of all */
    uint64_t last_arrived[SAMPLES_FLOWS + 1];
};

/* Sets the scenario's callback; before scenario_make. false: no memory. */
bool samples_begin(struct samples *m, struct scenario *s);
/* A pause or resume frame came to a node's port. */
void samples_pfc(struct samples *m, uint64_t time_ps, uint32_t node, uint32_t port);
/* What there was since the last look. */
void samples_end(struct samples *m, struct fabric *f);
void samples_free(struct samples *m);

#endif
