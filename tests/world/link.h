/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.h: the network between the nodes: one link towards each, with what is on it.
 */
#ifndef TESTS_WORLD_LINK_H
#define TESTS_WORLD_LINK_H

#include <sys/queue.h>

#include "nic/nic.h"

struct world;

/* A packet on its way. */
struct flight {
    TAILQ_ENTRY(flight) link;
    uint64_t at_ns;
    struct rx_packet rx;
    uint8_t *bytes; /* payload, or the whole packet when the byte path is used */
    uint32_t n;
    bool raw;
    int pair; /* whose it is */
};

TAILQ_HEAD(flight_list, flight);

enum fault_kind {
    FAULT_LOST,
    FAULT_TWICE,
    FAULT_LATE,
    FAULT_CORRUPT,
    FAULT_DOWN,  /* lost while the link was down */
    FAULT_BURST, /* lost in a burst */
    FAULT_HOLE,  /* lost for its size */
    FAULT_PATH,  /* lost when the path changed */
    FAULT_KINDS,
};

/* The way to a node. */
struct link {
    struct world *world;
    int to;
    struct flight_list flights;
    uint64_t busy_until_ns, last_at_ns;
    uint64_t down_until_ns, hole_until_ns;
    bool burst;
    uint32_t latency_ns, packets;
};

/* Where the trains of a node go. */
struct source {
    struct nic_sink sink;
    struct world *world;
    int from;
};

extern const char *const link_fault_name[FAULT_KINDS];
/* Draws what else may befall the path. */
void link_draw(struct world *w);
void link_init(struct world *w, int node);
void link_fini(struct world *w, int node);
uint64_t link_next_ns(const struct link *l);
/* Hands what is due to the node's engine. */
void link_deliver(struct world *w, struct link *l);

#endif
