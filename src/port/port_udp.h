/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_udp.h: RoCE v2 over UDP 4791 by sockets, without privileges, several processes on one
 * address. See DESIGN rules in docs/architecture.md: slots, leader, forwarding.
 */
#ifndef PORT_PORT_UDP_H
#define PORT_PORT_UDP_H

#include "port/port.h"

#endif
