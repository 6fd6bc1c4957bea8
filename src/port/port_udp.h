/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_udp.h: RoCE v2 over UDP 4791 by sockets, without privileges, several processes on one
 * address. Every process binds the wildcard address with SO_REUSEPORT; the kernel gives all flows
 * it does not know to one of them, the leader, and whoever receives a packet whose QPN slot is
 * another's forwards it. A slot is an abstract unix socket name: claimed atomically, gone with its
 * process.
 */
#ifndef PORT_PORT_UDP_H
#define PORT_PORT_UDP_H

#include <sys/types.h>

#include "port/port.h"

enum { MAX_ALLOW_UIDS = 32 };

struct port_udp_config {
    uint16_t udp_port; /* 0: 4791 */
    uint64_t seed;     /* which slot is tried first */
    bool no_gso;       /* every packet is its own datagram */
    bool no_flows; /* no sockets for single flows: all of a non-leader's packets are forwarded */
    uid_t allow_uid[MAX_ALLOW_UIDS]; /* who may hold the port for us, and we for them */
    unsigned allow_uids;
    struct port_observer *observer; /* or NULL */
};

/* 0, -EADDRINUSE (see port_udp_holder), -ENOSPC: no slot is free, or what a system call said. */
int port_udp_create(const struct port_udp_config *config, struct port **out);
/* One more slot of QPNs, while nothing is received: 0, -ENOSPC, or what a system call said. */
int port_udp_claim(struct port *p, uint32_t *slot);
/* The first slot of QPNs that this process owns. */
uint32_t port_udp_slot(const struct port *p);
/* One QP more (1) or less (-1) that is connected and expects packets. While there is one, the port
 * watches that the process which gets the unknown flows is not stopped. */
void port_udp_expect(struct port *p, bool v6, int qps);
/* What was sent stays unanswered: look for the reason now. */
void port_udp_suspect(struct port *p);
/*
 * Receiving side. On: somebody calls receive again and again, so the descriptor need not show what
 * comes where packets came last: waking nobody takes the kernel less. Off: it shows all again;
 * false: it could not (no memory), try later.
 */
bool port_udp_ease(struct port *p, bool on);
/* Bytes that the receiving socket may hold, as the kernel counts them (with its own overhead). */
uint32_t port_udp_rcvbuf_bytes(const struct port *p);
/* Who holds this UDP port, as text for a message ("user nobody (uid 65534), pid 12", "the kernel
 * (rdma_rxe is loaded)"); "" when nobody is seen. Returns out. */
char *port_udp_holder(uint16_t udp_port, char *out, size_t cap);

#endif
