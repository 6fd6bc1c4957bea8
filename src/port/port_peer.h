/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_peer.h: who is at the other end of a unix socket.
 */
#ifndef PORT_PORT_PEER_H
#define PORT_PORT_PEER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Is this number one user's, as we see it? In a user namespace that does not know all users, the
 * kernel gives those that it does not know the number of nobody (/proc/sys/kernel/overflowuid,
 * 65534): there it names nobody in particular, even if it is our own.
 */
bool port_uid_one(uid_t uid);
/* The other end's user when it connected or listened; false: the kernel does not tell. Where our
 * own number is such a one, we know our own processes all the same if the kernel is 6.5 or later,
 * and nobody else. */
bool port_peer_uid(int fd, uid_t *uid);
/* Would our own processes be known? */
bool port_peer_knows_us(void);

/* Does a uid_map (user_namespaces(7)) know all users? */
bool port_uid_map_whole(FILE *map);

#endif
