/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_udp_counters.h: what the UDP port counts. The names are what users see (VERBENA_STATS);
 * each counter has one writer, the sending or the receiving side.
 */
#ifndef PORT_PORT_UDP_COUNTERS_H
#define PORT_PORT_UDP_COUNTERS_H

#define UDP_COUNTERS(X)                                                                            \
    X(udp_tx_packets)         /* packets sent */                                                   \
    X(udp_tx_bytes)           /* UDP payload bytes sent */                                         \
    X(udp_tx_messages)        /* datagrams and runs given to the kernel */                         \
    X(udp_tx_calls)           /* sendmmsg calls */                                                 \
    X(udp_tx_gso_fallback)    /* runs the kernel refused to cut, sent packet by packet */          \
    X(udp_tx_full)            /* flushes that found a sending socket full; what is left waits */   \
    X(udp_tx_drop_size)       /* lost: larger than the interface's or path's MTU */                \
    X(udp_tx_drop_full)       /* lost: no buffer space */                                          \
    X(udp_tx_drop_error)      /* lost: no route, address gone, other errors */                     \
    X(udp_rx_packets)         /* packets received for this process */                              \
    X(udp_rx_bytes)           /* UDP payload bytes of them */                                      \
    X(udp_rx_messages)        /* datagrams and runs taken from the kernel */                       \
    X(udp_rx_calls)           /* receive calls that found something */                             \
    X(udp_rx_drop_too_short)  /* malformed: ends inside its headers */                             \
    X(udp_rx_drop_bad_opcode) /* malformed: no such opcode */                                      \
    X(udp_rx_drop_bad_tver)   /* malformed: transport version */                                   \
    X(udp_rx_drop_bad_length) /* malformed: payload, pad or length */                              \
    X(udp_rx_drop_truncated)  /* longer than any packet, or without its addresses */               \
    X(udp_rx_foreign_id)      /* ICRC right for another IPv4 id or DF than expected */             \
    X(local_tx_packets)       /* packets of UC and UD given to processes of this machine */        \
    X(local_asked)            /* times that the kernel was asked whether an address is here */     \
    X(local_waits)            /* times that one of them had no room and the sender waited */       \
    X(local_drop_stalled)     /* lost: it takes nothing for a second */                            \
    X(local_drop_error)       /* lost: it has gone, or no buffer space */                          \
    X(local_rx_packets)       /* packets received that way */                                      \
    X(slot_forwarded)         /* packets passed on to the process that owns their QPN */           \
    X(slot_received)          /* packets that another process passed on to us */                   \
    X(slot_drop_unknown)      /* lost: nobody owns the slot */                                     \
    X(slot_drop_full)         /* lost: the owner does not keep up */                               \
    X(slot_drop_uid)          /* lost: the owner belongs to another user */                        \
    X(slot_drop_malformed)    /* lost: forwarded runs that make no sense */                        \
    X(slot_refused)           /* connections of other users */                                     \
    X(slot_skipped)           /* slots found taken when ours was claimed */                        \
    X(service_forwarded)      /* CM messages passed on to the process that listens */              \
    X(service_held)           /* requests that waited for a service's next listener */             \
    X(service_unknown)        /* nobody listens there, or owns that id: refused by us */           \
    X(service_drop_full)      /* lost: who listens does not keep up, or no descriptor is left */   \
    X(service_squatted)       /* service names found held by users that we do not allow */         \
    X(death_served)           /* processes that died, whose peers we told */                       \
    X(death_connections)      /* connections of theirs */                                          \
    X(death_refused)          /* wills not taken: too many, or they make no sense */               \
    X(flow_opened)            /* sockets added for one peer's flow */                              \
    X(flow_closed)            /* given up */                                                       \
    X(flow_failed)            /* could not be made, or had another local address */                \
    X(flow_rescued)           /* taken over from a process that does not read */                   \
    X(leader_asked)           /* questions whether the leader runs */                              \
    X(leader_stalled)         /* it did not answer */                                              \
    X(leader_moved)           /* we gave the part to one that answers */                           \
    X(leader_unknown)         /* nobody answered from any place */                                 \
    X(guest_hosts)            /* members of another user's port found to pass packets on to us */  \
    X(guest_took_port)        /* the other user's processes were gone */

enum udp_counter {
#define X(name) UDP_##name,
    UDP_COUNTERS(X)
#undef X
        UDP_COUNTER_COUNT
};

#endif
