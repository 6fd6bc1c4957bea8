/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_tap.h: an observer that writes every packet to a capture file: pcap, Ethernet, nanoseconds.
 * Several processes may write to one file: it is only appended to, whole records a write.
 */
#ifndef PORT_PORT_TAP_H
#define PORT_PORT_TAP_H

#include "port/port.h"

struct port_tap;

/*
 * Opens or creates the file; an empty one gets the pcap header. offset_ns: the clock that its
 * times are of minus the one that the port is given. 0; -EINVAL: the file is something else; or
 * what open said.
 */
int port_tap_create(const char *path, int64_t offset_ns, struct port_tap **out);
struct port_observer *port_tap_observer(struct port_tap *tap);
/* In a forked child: closes the descriptor only. */
void port_tap_abandon(struct port_tap *tap);
void port_tap_close(struct port_tap *tap);

#endif
