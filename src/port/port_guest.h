/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_guest.h: living as the guest of another user's processes that hold the port (port_guest.c).
 * A part of port_udp_priv.h.
 */
#ifndef PORT_PORT_GUEST_H
#define PORT_PORT_GUEST_H

#include <stdbool.h>
#include <stdint.h>

struct port_udp;
struct udp_fd;

/* Of a process that does not hold the port. */
struct udp_guest {
    bool on;
    bool asked;           /* the host, which has not answered yet */
    struct udp_fd *host;  /* or NULL */
    struct udp_fd *timer; /* NULL: not a guest */
    unsigned candidates;  /* descriptors of kind HOST besides it */
    uint32_t looked;      /* slots, of this search */
    uint64_t retry_ns;
};

/* The port is another user's: finds a host. 0; -EADDRINUSE: there is none. */
int udp_guest_begin(struct port_udp *u);
void udp_guest_read(struct port_udp *u, struct udp_fd *host);
void udp_guest_timer(struct port_udp *u, struct udp_fd *timer);
/* Is this message a guest's question? Then it gets its answer. */
bool udp_guest_is_hello(const uint8_t *bytes, uint32_t n);
void udp_guest_answer(struct port_udp *u, const struct udp_fd *connection);

#endif
