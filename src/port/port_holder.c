/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_holder.c: who holds a UDP port that cannot be bound, as far as /proc tells: for the message
 * that a user gets, and for who asks only that user.
 */
#define _GNU_SOURCE
#include "port/port_peer.h"
#include "port/port_udp.h"

#include <ctype.h>
#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct holder {
    bool found;
    unsigned uid;
    unsigned long inode;
};

static void scan_table(const char *path, uint16_t udp_port, struct holder *h)
{
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    char line[512];
    while (!h->found && fgets(line, sizeof(line), f) != NULL) {
        unsigned port, uid;
        unsigned long inode;
        /* slot: address:port address:port state queues timer retransmits uid timeout inode */
        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*u %lu", &port, &uid,
                   &inode) == 3 &&
            port == udp_port)
            *h = (struct holder){true, uid, inode};
    }
    fclose(f);
}

static struct holder holder_of(uint16_t udp_port)
{
    struct holder h = {0};
    scan_table("/proc/net/udp", udp_port, &h);
    if (!h.found)
        scan_table("/proc/net/udp6", udp_port, &h);
    return h;
}

static bool process_holds(const char *pid, unsigned long inode)
{
    char path[64], want[64], link[64];
    snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    int n = snprintf(want, sizeof(want), "socket:[%lu]", inode);
    DIR *d = opendir(path);
    if (d == NULL)
        return false;
    bool holds = false;
    struct dirent *e;
    while (!holds && (e = readdir(d)) != NULL) {
        ssize_t got = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
        holds = got == n && memcmp(link, want, (size_t)n) == 0;
    }
    closedir(d);
    return holds;
}

bool port_udp_holder_uid(uint16_t udp_port, uid_t *uid)
{
    struct holder h = holder_of(udp_port);
    *uid = h.uid;
    return h.found && port_uid_one(h.uid);
}

/* The process with this socket, 0: none that we may look into. */
static int find_process(unsigned long inode)
{
    DIR *d = opendir("/proc");
    if (d == NULL)
        return 0;
    int pid = 0;
    struct dirent *e;
    while (pid == 0 && (e = readdir(d)) != NULL) {
        if (isdigit((unsigned char)e->d_name[0]) && process_holds(e->d_name, inode))
            pid = atoi(e->d_name);
    }
    closedir(d);
    return pid;
}

char *port_udp_holder(uint16_t udp_port, char *out, size_t cap)
{
    struct holder h = holder_of(udp_port);
    out[0] = '\0';
    bool rxe = access("/sys/module/rdma_rxe", F_OK) == 0;
    int pid = h.found && h.inode != 0 ? find_process(h.inode) : 0;
    /* A socket of the kernel's own looks like root's, but no process has it; only root can tell. */
    bool kernel = h.uid == 0 && pid == 0 && (rxe || geteuid() == 0);
    if (h.found && h.inode != 0 && !kernel) {
        struct passwd *pw = getpwuid(h.uid);
        int n = snprintf(out, cap, "user %s (uid %u)", pw != NULL ? pw->pw_name : "?", h.uid);
        if (pid != 0 && n > 0 && (size_t)n < cap)
            snprintf(out + n, cap - (size_t)n, ", process %d", pid);
    } else if (h.found || rxe) {
        snprintf(out, cap, "the kernel%s", rxe ? " (module rdma_rxe is loaded)" : "");
    }
    return out;
}
