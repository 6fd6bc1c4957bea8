/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_slot.h: slots of QPNs: claiming them, finding their owners, passing packets on to them.
 */
#ifndef PORT_PORT_SLOT_H
#define PORT_PORT_SLOT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct port_udp;
struct sockaddr_un;
struct udp_fd;
struct udp_run;

enum { SLOT_HEAD_BYTES = 48 }; /* before the packets of a run that is passed on */

int udp_slot_claim(struct port_udp *u, uint32_t *out);
/* A socket that listens as the owner of a slot; -EADDRINUSE: it has one. */
int udp_slot_bind(uint32_t slot);
socklen_t udp_slot_name(uint32_t slot, struct sockaddr_un *a);
/* A new connection to who listens there, if its user is allowed; or -errno. Where no descriptor is
 * left another connection is given up for it. */
int udp_name_dial(struct port_udp *u, const struct sockaddr_un *a, socklen_t n);
/* The same to the owner of a slot. */
int udp_slot_dial(struct port_udp *u, uint32_t slot);
/* The same with a descriptor that is left, or none. */
int udp_slot_dial_spare(const struct port_udp *u, uint32_t slot);
/* The same by the sending side, which has connections of its own; only where we are sure to be
 * accepted. */
int udp_slot_dial_sender(const struct port_udp *u, uint32_t slot);
void udp_slot_fini(struct port_udp *u);
/* A connection's end, or that of all that came by a listener which is about to go. */
void udp_slot_hangup(struct port_udp *u, struct udp_fd *connection);
void udp_slot_hangup_all(struct port_udp *u, const struct udp_fd *listener);
/* The owner of a slot has gone, or its connection is given up. */
void udp_slot_gone(struct port_udp *u, struct udp_fd *owner);
void udp_slot_accept(struct port_udp *u, struct udp_fd *listener);
void udp_slot_accept_all(struct port_udp *u);
/* Reads forwarded runs; returns packets seen. */
unsigned udp_slot_read(struct port_udp *u, struct udp_fd *connection);
/* What goes before the packets of a run; returns its size. */
size_t udp_slot_head(const struct udp_run *run, uint8_t out[SLOT_HEAD_BYTES]);
/* Passes n bytes of a run, packets of one slot, on to its owner; counts what is lost. */
void udp_slot_forward(struct port_udp *u, uint32_t slot, const struct udp_run *run, uint8_t *bytes,
                      uint32_t n, uint16_t first_id);
/* The same in two parts: 0 or -errno, -ECONNREFUSED: the slot has no owner; and the count. */
int udp_slot_send(struct port_udp *u, uint32_t slot, const struct udp_run *run, uint8_t *bytes,
                  uint32_t n, uint16_t first_id);
void udp_slot_lost(struct port_udp *u, int err, unsigned packets);
/* By a connection. */
int udp_slot_pass(int fd, const struct udp_run *run, uint8_t *bytes, uint32_t n, uint16_t first_id);

#endif
