/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port.h: how packets leave and arrive, as the host drives it. A port is a nic_sink (trains out)
 * plus a batch receive. Wrappers (faults) are ports around a port; an observer (capture) is told of
 * every packet as bytes by the port that makes them.
 *
 * Threads: sink, flush, writable and train_flipped exclude one another (the sending side), and so
 * do receive calls (the receiving side); both sides may run at once. fd, deadline and counter may
 * be called at any time.
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "verbena/port.h"

struct net_headers;

/* What a receiver of packets does with a batch; payload views are valid during the call. */
struct port_receiver {
    void (*packets)(struct port_receiver *r, const struct rx_packet *p, unsigned n);
};

/* Sees each packet as the wire has it: its IP and UDP headers (MAC addresses zero) and the UDP
 * payload, BTH .. ICRC. Sent and received packets come from two threads at once. now_ns: of
 * CLOCK_MONOTONIC, before the kernel got it or after it came: the engine's last look may be old. */
struct port_observer {
    void (*packet)(struct port_observer *o, uint64_t now_ns, const struct net_headers *h,
                   const uint8_t *payload, uint32_t bytes, bool sent);
    /* A batch is over: write out what was gathered. */
    void (*done)(struct port_observer *o, bool sent);
    /* Packets will be sent from this UDP port; called before the first. */
    void (*source)(struct port_observer *o, bool v6, uint16_t sport);
};

struct port {
    struct nic_sink sink; /* trains queue up here; port_flush makes them leave */
    const struct port_ops *ops;
};

struct port_ops {
    /* Everything queued in the sink goes out now. */
    void (*flush)(struct port *p, uint64_t now_ns);
    /* May more trains be queued? false: the socket is full; wait until the port's deadline. */
    bool (*writable)(struct port *p);
    /* Sends a train of one packet with this bit of the packet (BTH .. ICRC) inverted after the ICRC
     * was computed; the bit is taken modulo the packet's length. */
    void (*train_flipped)(struct port *p, const struct train *t, uint32_t bit);
    /*
     * Takes what has arrived, at most about max packets, hands it to r; returns packets seen. Never
     * blocks. A single call may look only where packets came last; when PORT_EMPTY_CALLS calls in a
     * row return 0, nothing was there when they began.
     */
    unsigned (*receive)(struct port *p, uint64_t now_ns, struct port_receiver *r, unsigned max);
    /* An epoll descriptor that is readable while receive has work. */
    int (*fd)(struct port *p);
    /* Next time at which flush must be called even without traffic (delayed packets);
     * UINT64_MAX: never. */
    uint64_t (*deadline)(struct port *p);
    /* Counter by index; NULL: no more. */
    const char *(*counter)(struct port *p, unsigned index, uint64_t *value);
    /* In a forked child: closes the inherited descriptors and touches nothing else. */
    void (*abandon)(struct port *p);
    void (*close)(struct port *p);
};

enum { PORT_EMPTY_CALLS = 4 };

#endif
