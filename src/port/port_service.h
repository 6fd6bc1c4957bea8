/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_service.h: which process a packet to QP 1 is for, and the names by which listeners are found
 * (port_service.c). A part of port_udp_priv.h.
 */
#ifndef PORT_PORT_SERVICE_H
#define PORT_PORT_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "verbena/types.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/roce.h"

struct port_udp;
struct udp_fd;
struct udp_run;

enum {
    SERVICE_RECENT = 512, /* REQs passed on, remembered for a REJ that has no other address */
    SERVICE_BACKLOG = 4096,
    UDP_CM_PACKET_BYTES = BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES,
};

/* What a packet says of whom it is for. */
enum udp_route_kind {
    UDP_ROUTE_OWN,     /* whoever receives it: no CM message, or none that says more */
    UDP_ROUTE_SERVICE, /* REQ, SIDR_REQ: who listens */
    UDP_ROUTE_SLOT,    /* the process of this slot */
    UDP_ROUTE_RECENT,  /* REJ of a REQ that has no answer yet: whoever got that */
};
struct udp_route {
    enum udp_route_kind kind;
    uint64_t service_id;
    uint32_t slot;
    uint32_t sender_id; /* the sender's communication id */
};

/* A listener's name, which this process holds. */
struct udp_service {
    uint64_t id;
    uint8_t bind; /* enum udp_service_bind */
    struct net_addr addr;
    _Atomic uint64_t rests_ns; /* since when nobody listens by it; 0: somebody does */
    struct udp_fd *fd;
    TAILQ_ENTRY(udp_service) link;
};
TAILQ_HEAD(udp_service_list, udp_service);

/* A REQ that went to another process. */
struct udp_service_recent {
    struct net_addr src, dst;
    uint32_t sender_id;
    uint64_t service_id;
};

struct udp_services {
    struct udp_service_list list;
    struct udp_service_recent recent[SERVICE_RECENT];
};

/* packet: BTH .. ICRC, to QPN 1; any bytes. */
void udp_service_parse(const uint8_t *packet, uint32_t n, struct udp_route *out);
/* Does the packet, to QPN 1, belong to another process? Then it has been passed on, or is lost and
 * counted. index: of the packet in its run. */
bool udp_service_foreign(struct port_udp *u, const struct udp_run *run, uint8_t *packet, uint32_t n,
                         uint16_t index);
/* Does nobody listen to it on this address now, here or in another process? */
bool udp_service_waits(struct port_udp *u, uint64_t service_id, const struct net_addr *dst);
/* May a process that passed it on have meant us? */
bool udp_service_ours(const struct port_udp *u, const uint8_t *packet, uint32_t n);
/* Its memory only; the descriptors go with those of the port. */
void udp_service_fini(struct port_udp *u);

/* To QPN 1? */
static inline bool udp_packet_gsi(const uint8_t *packet, uint32_t n)
{
    return n >= 8 && packet[5] == 0 && packet[6] == 0 && packet[7] == 1;
}

#endif
