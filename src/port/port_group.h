/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_group.h: multicast groups of the UDP port.
 */
#ifndef PORT_PORT_GROUP_H
#define PORT_PORT_GROUP_H

#include "port/port.h"

/*
 * Receiving side. Packets to this group that come in by the interface are ours, too, until as many
 * leaves as joins. 0; -ENOMEM: too many groups, here or for the kernel; -EOPNOTSUPP: a guest of
 * another user has no socket for it; or what the kernel said (-ENODEV: no such interface).
 */
int port_udp_join(struct port *p, const struct net_addr *group, uint32_t ifindex);
void port_udp_leave(struct port *p, const struct net_addr *group, uint32_t ifindex);

#endif
