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
    bool local;    /* UC and UD to processes of this machine do not go by UDP: port_local.h */
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
/* Receiving side, where a program ends: nothing comes in any more but by sockets of single flows
 * and from other processes; what has come for others goes on to them. */
void port_udp_retire(struct port *p);
/* Bytes that the receiving socket may hold, as the kernel counts them (with its own overhead). */
uint32_t port_udp_rcvbuf_bytes(const struct port *p);

/*
 * Connection management. All processes of an address are one QP 1 to their peers; whoever receives
 * a MAD passes it on to the process that it is for: a REQ or SIDR_REQ to who claimed its service,
 * all else to the slot with which the communication id of ours begins. What nobody claimed, and ids
 * of processes that are gone, go to whoever received them, so that its CM answers (cm_refuse). A
 * service is best kept until no connection made through it waits for its RTU: repeated REQs come by
 * it.
 *
 * All calls below: while nothing is received (the receiving side).
 */
struct udp_service;

static inline uint32_t port_udp_id_slot(uint32_t communication_id)
{
    return communication_id >> 22;
}

/*
 * Listens for a service on an address; 0.0.0.0 as ::ffff:0.0.0.0: any IPv4 one, ::: any IPv6 one,
 * NULL: any. A link-local address is the same on all interfaces. An address and an any that covers
 * it exclude each other, as with TCP. One descriptor. 0; -EADDRINUSE: somebody holds it (see
 * port_udp_service_holder; counted when of another user that is not allowed); -ENOMEM, or what a
 * system call said.
 */
int port_udp_service_claim(struct port *p, uint64_t service_id, const struct net_addr *addr,
                           struct udp_service **out);
/* One that is free of base + first .. base + last, for ports that the caller does not choose. */
int port_udp_service_claim_free(struct port *p, uint64_t base, uint32_t first, uint32_t last,
                                const struct net_addr *addr, uint64_t *service_id,
                                struct udp_service **out);
void port_udp_service_release(struct port *p, struct udp_service *s);
/* Nobody listens by this name since then, though it is held; 0: somebody does (as after a claim).
 * Requests that come soon after that wait a moment for the next listener. Any thread. */
void port_udp_service_rest(struct udp_service *s, uint64_t since_ns);
/* Who holds it, as text for a message ("user nobody (uid 65534), process 12"); "" when nobody is
 * seen. Returns out. */
char *port_udp_service_holder(uint64_t service_id, const struct net_addr *addr, char *out,
                              size_t cap);

/* A connection that is open: enough to take leave of its peer. */
struct port_connection {
    uint32_t local_id, remote_id; /* communication ids; ours begins with port_udp_slot */
    uint32_t local_qpn, remote_qpn;
    struct nic_path path;
};

/*
 * When this process dies, whatever the way, without having said that a connection ended, another
 * process of the address is told to end it. Index of the entry, for port_udp_deaths_forget;
 * -ENOSPC: too many, -EINVAL: no such connection can be, or what a system call said (no memory, no
 * descriptor): then the peer is told by nobody.
 */
int port_udp_deaths_note(struct port *p, const struct port_connection *c);
void port_udp_deaths_forget(struct port *p, int index);

/* Told of the dead, during receive: a process that owned this slot died, and these connections were
 * open. All of one process come in one receive call, in one call or more; and again, some tenths of
 * a second later, twice: the message to a peer may be lost, and a second one does no harm. */
struct port_deaths {
    void (*connections)(struct port_deaths *d, uint32_t slot, const struct port_connection *c,
                        unsigned n);
};
/* From now on this process does that for others; NULL: no more. 0. It takes descriptors only while
 * it has something to do: two for each process that chose it. */
int port_udp_deaths_serve(struct port *p, struct port_deaths *d);

/* Who holds this UDP port, as text for a message ("user nobody (uid 65534), pid 12", "the kernel
 * (rdma_rxe is loaded)"); "" when nobody is seen. Returns out. */
char *port_udp_holder(uint16_t udp_port, char *out, size_t cap);
/* Its user; false: nobody is seen, or who it is cannot be told (port_peer.h). */
bool port_udp_holder_uid(uint16_t udp_port, uid_t *uid);

#endif
