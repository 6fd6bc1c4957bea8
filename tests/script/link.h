/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.h: what is between a dialogue's peer and its engine. link_direct.c: nothing, packets are
 * arguments; link_fabric.c: a simulated link, at whose end the engine is a host of the fabric.
 */
#ifndef TESTS_SCRIPT_LINK_H
#define TESTS_SCRIPT_LINK_H

#include "script.h"

enum { LINK_BEGIN_NS = 1000000 }; /* what the engine's clock says at first */

/* What the peer gets. */
struct link_sink {
    struct nic_sink nic; /* trains, where nothing is between */
    void (*packet)(struct link_sink *sink, const struct rx_packet *packet,
                   const struct nic_path *path); /* as the frame says */
};

/* NULL, or why this dialogue cannot be held here. */
const char *link_refuses(const struct dialogue *d);
void link_create(const struct setup *with, struct nic *nic, struct link_sink *sink);
/* The dialogue's QP; NULL: it goes. */
void link_qp(struct qp *qp);
void link_destroy(void);

/* A packet of the peer arrives. */
void link_input(uint64_t now_ns, const struct rx_packet *packet);
/* The engine sends what it has to, and does what is due. */
void link_drain(uint64_t now_ns);
/* So many trains and no more. */
void link_trains(uint64_t now_ns, unsigned n);
/* Time passes from one to the other; sending or not. */
void link_pass(uint64_t from_ns, uint64_t to_ns, bool sends);

#endif
