/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workload.h: who sends what to whom, as flows.
 */
#ifndef SCENARIO_WORKLOAD_H
#define SCENARIO_WORKLOAD_H

#include "base/rng.h"
#include "scenario/scenario.h"

enum workload_sizes { SIZES_WEBSEARCH, SIZES_FB_HADOOP };
#define WORKLOAD_SIZES "websearch fb-hadoop"

struct workload {
    uint64_t bytes, start_ps;
    uint8_t priority;
    uint32_t rounds;      /* one after the other */
    uint64_t compute_ps;  /* between two rounds */
    uint32_t connections; /* that a flow's bytes are spread over, each a flow of its own; 0: one */
    struct fabric_work work;
};

/* Each returns false when there is no memory for so many flows. Hosts are those of the scenario. */
bool workload_flow(struct scenario *s, const struct workload *w, uint32_t from, uint32_t to);
/* The first `senders` hosts other than `to`, all at once; the next round when all are through. */
bool workload_incast(struct scenario *s, const struct workload *w, uint32_t to, uint32_t senders);
/* Host i to host i + shift. */
bool workload_permutation(struct scenario *s, const struct workload *w, uint32_t shift);
bool workload_all_to_all(struct scenario *s, const struct workload *w);
/* Ring AllReduce of so many bytes: 2 (n - 1) steps, of an n-th each, from each host to the next;
 * a host sends on what it has received. */
bool workload_allreduce(struct scenario *s, const struct workload *w);
/* Each host but the first `servers` reads `bytes` from a server, or writes them to it, `rounds`
 * times one after another; which server, and with reads_ppm which of both, the seed chooses.
 * Engines READ.
 */
bool workload_storage(struct scenario *s, const struct workload *w, uint32_t servers,
                      uint32_t reads_ppm, struct rng *rng);
/* Independent flows of a published distribution between random hosts, for so long, so that each
 * host's link is loaded by load_ppm on average. */
bool workload_poisson(struct scenario *s, const struct workload *w, enum workload_sizes sizes,
                      uint32_t load_ppm, uint64_t rate_bps, uint64_t duration_ps, struct rng *rng);

/* For tests: the size at so many 2^-32 of the distribution, and -ln(u / 2^32) in 2^-24. */
uint64_t workload_size(enum workload_sizes sizes, uint32_t u);
uint64_t workload_ln(uint32_t u);

#endif
