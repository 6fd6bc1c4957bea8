/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_group.c: which multicast groups this process is in. The kernel gives each member process a
 * copy of its own of what is sent to a group, on the sockets that any sender may reach; sockets of
 * single flows are in none.
 *
 * But where one socket alone has joined an IPv4 group, the kernel (6.18) finds it by a short cut,
 * and then, since it shares its port, gives the packet to the leader of those that share it. So
 * each process has a second socket in the group, which drops what it gets: two are no single one.
 */
#define _GNU_SOURCE
#include "port/port_group.h"
#include "port/port_udp_priv.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <unistd.h>

/* 0 or -errno. */
static int member(int fd, const struct net_addr *group, uint32_t ifindex, bool join)
{
    int r;
    if (net_addr_is_v4(group)) {
        struct ip_mreqn m = {.imr_ifindex = (int)ifindex};
        memcpy(&m.imr_multiaddr, group->b + 12, 4);
        r = setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &m,
                       sizeof(m));
    } else {
        struct ipv6_mreq m = {.ipv6mr_interface = ifindex};
        memcpy(&m.ipv6mr_multiaddr, group->b, 16);
        r = setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &m, sizeof(m));
    }
    return r == 0 ? 0 : -errno;
}

/* The socket that anybody's packets of this family come to; NULL: we are a guest, or there is none.
 */
static const struct udp_fd *wildcard(const struct port_udp *u, bool v6)
{
    const struct udp_fd *f;
    TAILQ_FOREACH(f, &u->fds, link)
    {
        if (f->kind == UDP_FD_WILDCARD && f->v6 == v6)
            return f;
    }
    return NULL;
}

static struct udp_group *find(struct port_udp *u, const struct net_addr *group, uint32_t ifindex)
{
    for (unsigned i = 0; i < UDP_GROUPS; i++) {
        struct udp_group *g = &u->group[i];
        if (g->users != 0 && g->ifindex == ifindex && memcmp(&g->addr, group, sizeof(*group)) == 0)
            return g;
    }
    return NULL;
}

/* A descriptor or -errno. */
static int second_socket(const struct port_udp *u, const struct net_addr *group, uint32_t ifindex)
{
    int on = 1, off = 0;
    struct sock_filter drop[] = {
        {BPF_RET | BPF_K, 0, 0, 0}
    };
    struct sock_fprog program = {1, drop};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(u->udp_port)};
    memcpy(&a.sin_addr, group->b + 12, 4); /* no packet to an address of ours finds it */
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int err = 0;
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off)) != 0 ||
        bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
        err = -errno;
    if (err == 0)
        err = member(fd, group, ifindex, true);
    if (err == 0)
        return fd;
    close(fd);
    return err;
}

static int join(struct port_udp *u, const struct net_addr *group, uint32_t ifindex)
{
    const struct udp_fd *f = wildcard(u, !net_addr_is_v4(group));
    struct udp_group *g = u->group;
    while (g != u->group + UDP_GROUPS && g->users != 0)
        g++;
    if (f == NULL)
        return -EOPNOTSUPP;
    int err = g == u->group + UDP_GROUPS ? -ENOMEM : member(f->fd, group, ifindex, true);
    if (err != 0)
        return err;
    int second = net_addr_is_v4(group) ? second_socket(u, group, ifindex) : -1;
    if (net_addr_is_v4(group) && second < 0) {
        (void)member(f->fd, group, ifindex, false);
        return second;
    }
    *g = (struct udp_group){.addr = *group, .ifindex = ifindex, .users = 1, .second_fd = second};
    return 0;
}

int port_udp_join(struct port *p, const struct net_addr *group, uint32_t ifindex)
{
    struct port_udp *u = udp_of(p);
    struct udp_group *g = find(u, group, ifindex);
    if (g == NULL)
        return join(u, group, ifindex);
    g->users++;
    return 0;
}

void port_udp_leave(struct port *p, const struct net_addr *group, uint32_t ifindex)
{
    struct port_udp *u = udp_of(p);
    struct udp_group *g = find(u, group, ifindex);
    const struct udp_fd *f = wildcard(u, !net_addr_is_v4(group));
    if (g == NULL || --g->users != 0)
        return;
    if (g->second_fd >= 0)
        close(g->second_fd);
    if (f != NULL)
        (void)member(f->fd, group, ifindex, false); /* the interface may have gone */
}

void udp_group_close(struct port_udp *u)
{
    for (unsigned i = 0; i < UDP_GROUPS; i++) {
        if (u->group[i].users != 0 && u->group[i].second_fd >= 0)
            close(u->group[i].second_fd);
        u->group[i].users = 0;
    }
}

void udp_group_again(struct port_udp *u, const struct udp_fd *f)
{
    for (unsigned i = 0; i < UDP_GROUPS; i++) {
        const struct udp_group *g = &u->group[i];
        if (g->users != 0 && net_addr_is_v4(&g->addr) != f->v6)
            (void)member(f->fd, &g->addr, g->ifindex, true);
    }
}
