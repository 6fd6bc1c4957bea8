/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_hold.h: requests for a service between two of its listeners (port_hold.c). A part of
 * port_udp_priv.h.
 */
#ifndef PORT_PORT_HOLD_H
#define PORT_PORT_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "verbena/types.h"

struct port_udp;
struct udp_fd;
struct udp_held_request;
struct udp_run;

enum { HOLD_KNOWN = 64 }; /* services heard of lately */

struct udp_hold_known {
    uint64_t service_id;
    uint64_t seen_ns; /* 0: none */
};

struct udp_hold {
    struct udp_hold_known known[HOLD_KNOWN];
    struct udp_held_request *held; /* or NULL */
    unsigned count;
    struct udp_fd *timer; /* while there are any */
};

/* Somebody listened to this service at that time. */
void udp_hold_know(struct port_udp *u, uint64_t service_id, uint64_t seen_ns);
/* A REQ or SIDR_REQ (UDP_CM_PACKET_BYTES) that nobody listens to now; since when its name is held
 * for nobody, or 0. True: it waits a moment. */
bool udp_hold(struct port_udp *u, uint64_t service_id, uint64_t rests_ns, const struct udp_run *run,
              const uint8_t *packet, uint16_t index);
void udp_hold_timer(struct port_udp *u, struct udp_fd *timer);
/* The process ends: what others listen to goes on to them; who asked for the rest will ask again.
 */
void udp_hold_retire(struct port_udp *u);
/* Its memory only. */
void udp_hold_fini(struct port_udp *u);

#endif
