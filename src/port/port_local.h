/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_local.h: UC and UD to processes of this machine. Nothing tells a sender that a UDP socket is
 * full: the kernel drops what comes, and nobody sends it again. So what has no acknowledgements
 * goes to the owner of the QPN's slot by the connection that also takes what others pass on
 * (port_slot.c): it loses nothing, and shows how much waits in it. A QP whose peer has no room
 * waits (nic_sink.room). All of this belongs to the sending side.
 */
#ifndef PORT_PORT_LOCAL_H
#define PORT_PORT_LOCAL_H

#include <stdatomic.h>

#include "verbena/port.h"

struct port_udp;
struct udp_local;
struct udp_tx_message;
struct udp_tx_socket;

enum { UDP_LOCAL_ADDRESSES = 1 << 10, UDP_LOCAL_SLOTS = 1 << 10 };

struct udp_locals {
    struct udp_local *of_slot[UDP_LOCAL_SLOTS]; /* or NULL */
    unsigned count;
    struct udp_local_address { /* those asked for; a place is one of a few that follow its hash */
        struct net_addr addr;
        uint32_t scope_id;
        bool here;         /* this machine's, as seen before: */
        uint64_t until_ns; /* 0: nothing is here */
    } address[UDP_LOCAL_ADDRESSES];
    _Atomic uint64_t retry_ns; /* 0, or when somebody who waits asks again */
};

/* The process to which this goes without UDP, or NULL; n: so many packets from at on go together.
 */
struct udp_local *udp_local_to(struct port_udp *u, const struct train *t, unsigned at, unsigned *n);
/* As nic_sink's. */
bool udp_local_room(struct nic_sink *sink, uint64_t now_ns, const struct nic_path *path,
                    uint32_t qpn);
/* It has taken nothing for so long that what comes for it is lost. */
bool udp_local_stalled(const struct udp_local *l);
/* Messages to it are of this socket. */
struct udp_tx_socket *udp_local_socket(struct udp_local *l, const struct nic_path *path);
/* A message to it is complete and waits to be sent; it waits no longer. */
void udp_local_queued(struct port_udp *u, struct udp_tx_message *m);
void udp_local_sent(struct port_udp *u, const struct udp_tx_message *m);
/* It could not be sent; false: try again. */
bool udp_local_failed(struct port_udp *u, struct udp_tx_message *m, int error);
/* The time is that now. */
void udp_local_turn(struct port_udp *u, uint64_t now_ns);
/* All descriptors. */
void udp_local_close(struct port_udp *u);
void udp_local_fini(struct port_udp *u);

#endif
