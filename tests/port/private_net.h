/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * private_net.h: a network namespace of a test's own with nothing but lo, so that UDP ports and
 * slots are not shared with whatever else runs on the machine. Where that is not allowed the test
 * runs in the machine's.
 */
#ifndef TESTS_PORT_PRIVATE_NET_H
#define TESTS_PORT_PRIVATE_NET_H

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names the network namespace we are in. */
static inline ino_t private_net_inode(void)
{
    struct stat st;
    return stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
}

static inline void private_net_enter(void)
{
    const uid_t uid = geteuid();
    if (unshare(CLONE_NEWNET) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
            return;
        /* Else we are nobody, whom older kernels cannot tell from strangers. */
        FILE *map = fopen("/proc/self/uid_map", "w");
        if (map != NULL) {
            fprintf(map, "%u %u 1", (unsigned)uid, (unsigned)uid);
            fclose(map);
        }
    }
    struct ifreq r;
    memset(&r, 0, sizeof(r));
    strcpy(r.ifr_name, "lo");
    r.ifr_flags = IFF_UP;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    (void)!ioctl(fd, SIOCSIFFLAGS, &r);
    close(fd);
}

/* Gives an interface, or a label of one, an IPv4 address. False: not allowed. */
static inline bool private_net_add(const char *label, const char *addr)
{
    struct ifreq r;
    memset(&r, 0, sizeof(r));
    strncpy(r.ifr_name, label, sizeof(r.ifr_name) - 1);
    struct sockaddr_in *sin = (struct sockaddr_in *)(void *)&r.ifr_addr;
    sin->sin_family = AF_INET;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool ok = inet_pton(AF_INET, addr, &sin->sin_addr) == 1 && ioctl(fd, SIOCSIFADDR, &r) == 0;
    close(fd);
    return ok;
}

#endif
