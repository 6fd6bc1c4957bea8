/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_net.h: TCP sockets of a run: the listener of the serving end, by which the control connection
 * and the baseline's data come, and the connections of the other one.
 */
#ifndef LAB_LAB_NET_H
#define LAB_LAB_NET_H

#include <netinet/in.h>
#include <stdint.h>

#include "lab/lab_settings.h"

/* Each returns a descriptor, or -errno and a message that names the address and port. */
/* Address "": all. Port 0: any, see lab_net_port(). */
int lab_net_listen(const char *address, uint16_t port, char message[LAB_MESSAGE_BYTES]);
/* Waits for timeout_ns at most, for ever if that is 0. */
int lab_net_accept(int listener, uint64_t timeout_ns, char message[LAB_MESSAGE_BYTES]);
int lab_net_connect(const char *host, uint16_t port, uint64_t timeout_ns,
                    char message[LAB_MESSAGE_BYTES]);
uint16_t lab_net_port(int fd);
/* Who is at the other end: "192.0.2.7 port 4711". */
const char *lab_net_who(int fd, char out[80]);
/* Another connection to where fd leads. */
int lab_net_again(int fd, uint64_t timeout_ns, char message[LAB_MESSAGE_BYTES]);
/* Our address of a connection as a GID: IPv4 is ::ffff:a.b.c.d. */
int lab_net_gid(int fd, uint8_t gid[16]);

#endif
