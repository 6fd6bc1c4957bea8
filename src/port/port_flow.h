/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_flow.h: sockets for single flows (port_flow.c). A part of port_udp_priv.h.
 */
#ifndef PORT_PORT_FLOW_H
#define PORT_PORT_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "verbena/types.h"

struct port_udp;
struct udp_fd;
struct udp_run;
struct udp_source;

/* A flow of another process, packets waiting. */
struct udp_stuck {
    struct net_addr local, remote;
    uint16_t sport;
    uint32_t bytes;
    unsigned looks;    /* that found them, and never fewer bytes */
    uint64_t since_ns; /* the first of them */
    uint64_t packets;  /* that we had received by then */
};

struct udp_source *udp_flow_source(struct port_udp *u, const struct net_addr *addr, uint16_t sport);
/* Tells how a run went: packets of our own, packets of others. */
void udp_flow_heard(struct port_udp *u, struct udp_source *s, const struct udp_run *run,
                    unsigned own, unsigned foreign);
/* May its packets be taken in? Before that come those that went by way of the leader. */
bool udp_flow_open_for(struct port_udp *u, struct udp_fd *flow);
/* All that the leader held when this mark was sent has come. */
void udp_flow_marked(struct port_udp *u, uint32_t mark);
void udp_flow_used(struct port_udp *u, struct udp_fd *flow);
/* No more a flow of ours: the end of this receive call reads what it holds, and closes it. */
void udp_flow_retire(struct port_udp *u, struct udp_fd *flow);
/* Gives those up that long had no packet. */
void udp_flow_tidy(struct port_udp *u);
/* The leader runs, but own packets stay unanswered, or sources are silent: flows whose owners do
 * not read are taken over. True: look again soon. */
bool udp_flow_rescue(struct port_udp *u);
bool udp_flow_silence(const struct port_udp *u); /* of a source heard lately */

#endif
