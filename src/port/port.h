/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port.h: how packets leave and arrive, as the host drives it. A port is a nic_sink (trains out)
 * plus a batch receive. Wrappers (faults, capture) are ports around a port and see single packets.
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "verbena/port.h"

/* What a receiver of packets does with a batch; payload views are valid during the call. */
struct port_receiver {
    void (*packets)(struct port_receiver *r, const struct rx_packet *p, unsigned n);
};

struct port {
    struct nic_sink sink; /* trains queue up here; port_flush makes them leave */
    const struct port_ops *ops;
};

struct port_ops {
    /* Everything queued in the sink goes out now. */
    void (*flush)(struct port *p, uint64_t now_ns);
    /* May more trains be queued? false: the socket is full; wait until the fd is writable or some
     * time has passed. */
    bool (*writable)(struct port *p);
    /* Takes what has arrived, at most about max packets, hands it to r; returns packets seen (0:
     * nothing there). Never blocks. */
    unsigned (*receive)(struct port *p, uint64_t now_ns, struct port_receiver *r, unsigned max);
    /* An epoll descriptor that is readable while receive has work. */
    int (*fd)(struct port *p);
    /* Next time at which receive or flush must be called even without traffic (delayed packets);
     * UINT64_MAX: never. */
    uint64_t (*deadline)(struct port *p);
    /* Counter by index; NULL: no more. */
    const char *(*counter)(struct port *p, unsigned index, uint64_t *value);
    void (*close)(struct port *p);
};

#endif
