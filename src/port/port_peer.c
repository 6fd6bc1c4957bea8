/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_peer.c: who is at the other end of a unix socket, for all who trust only some users. The
 * kernel tells (SO_PEERCRED), but in a user namespace one number may stand for many users.
 */
#define _GNU_SOURCE
#include "port/port_peer.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    OVERFLOW_UID = 65534, /* unless the system has another */
    PEER_PIDFD = 77,      /* Linux 6.5; older C libraries do not name it */
};

bool port_uid_map_whole(FILE *map)
{
    unsigned long long inside, outside, n, known = 0;
    /* Ranges do not overlap: their sizes tell. (uid_t)-1 is nobody's. */
    while (fscanf(map, "%llu %llu %llu", &inside, &outside, &n) == 3)
        known += n;
    return known >= UINT32_MAX;
}

static uid_t overflow_uid(void)
{
    unsigned uid = OVERFLOW_UID;
    FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");
    if (f != NULL) {
        if (fscanf(f, "%u", &uid) != 1)
            uid = OVERFLOW_UID;
        fclose(f);
    }
    return uid;
}

bool port_uid_one(uid_t uid)
{
    if (uid != overflow_uid())
        return true;
    /* Read anew: a process may enter a namespace, or get its map, at any time. */
    FILE *map = fopen("/proc/self/uid_map", "re");
    bool whole = map != NULL && port_uid_map_whole(map);
    if (map != NULL)
        fclose(map);
    return whole;
}

/* Has the other end's process our user, in the kernel's own numbers? One may signal one's own
 * processes. Asked by descriptor: a process id may be another's by now. */
static bool may_signal(int fd)
{
    int pidfd = -1;
    socklen_t n = sizeof(pidfd);
    if (getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &pidfd, &n) != 0)
        return false;
    bool may = syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0;
    close(pidfd);
    return may;
}

bool port_peer_uid(int fd, uid_t *uid)
{
    struct ucred cred;
    socklen_t n = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) != 0)
        return false;
    *uid = cred.uid;
    return port_uid_one(cred.uid) || (cred.uid == geteuid() && may_signal(fd));
}

bool port_peer_knows_us(void)
{
    int pair[2];
    uid_t uid;
    if (port_uid_one(geteuid()))
        return true;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    bool known = port_peer_uid(pair[0], &uid);
    close(pair[0]);
    close(pair[1]);
    return known;
}
