/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_route.c: which address and interface the kernel would use: asked with a UDP socket that is
 * connected and sends nothing, and with the list of interfaces.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <infiniband/ib.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm/rdma_objects.h"

enum { ROUTE_PORT = 4791 }; /* so that rules about the port of the packets to come apply */

int rdma_route_interface(const struct sockaddr *local, unsigned *ifindex)
{
    struct ifaddrs *all;
    struct net_addr wanted = rdma_sockaddr_net(local);
    uint32_t scope = rdma_sockaddr_link_local(local) ? rdma_sockaddr_scope(local) : 0;

    if (getifaddrs(&all) != 0)
        return errno;
    int err = EADDRNOTAVAIL;
    for (struct ifaddrs *i = all; i != NULL && err != 0; i = i->ifa_next) {
        if (i->ifa_addr == NULL || rdma_sockaddr_length(i->ifa_addr) == 0)
            continue;
        struct net_addr has = rdma_sockaddr_net(i->ifa_addr);
        if (memcmp(&has, &wanted, sizeof(has)) != 0)
            continue;
        unsigned index = if_nametoindex(i->ifa_name);
        if (index == 0 || (scope != 0 && scope != index))
            continue;
        *ifindex = index;
        err = 0;
    }
    freeifaddrs(all);
    return err;
}

static int route_local(const struct sockaddr *dst, struct sockaddr_storage *local)
{
    struct sockaddr *from = (struct sockaddr *)local;
    uint16_t port = rdma_sockaddr_port(from);
    struct sockaddr_storage to = {0};
    socklen_t length = rdma_sockaddr_length(dst), got = sizeof(*local);
    struct net_addr group = rdma_sockaddr_net(dst);
    int err = 0;

    /* A group is behind whatever interface has the source address, whether there is a route or not.
     */
    if (net_addr_is_group(&group) && !rdma_sockaddr_any(from))
        return 0;
    int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    memcpy(&to, dst, length);
    rdma_sockaddr_set_port((struct sockaddr *)&to, ROUTE_PORT);
    rdma_sockaddr_set_port(from, 0);
    if ((!rdma_sockaddr_any(from) && bind(fd, from, length) != 0) ||
        connect(fd, (struct sockaddr *)&to, length) != 0 || getsockname(fd, from, &got) != 0)
        err = errno;
    close(fd);
    rdma_sockaddr_set_port(from, port);
    return err;
}

/* The IP address that a GID is. scope: when it says none. */
static void route_ip(const struct sockaddr *gid, struct sockaddr_storage *ip, uint32_t scope)
{
    struct net_addr addr = rdma_sockaddr_net(gid);
    uint32_t own = rdma_sockaddr_scope(gid);

    rdma_sockaddr_build(ip, &addr, rdma_sockaddr_port(gid), own != 0 ? own : scope);
}

int rdma_route_local(const struct sockaddr *dst, struct sockaddr_storage *local)
{
    struct sockaddr *from = (struct sockaddr *)local;
    struct sockaddr_storage to, ip;

    if (dst->sa_family != AF_IB)
        return route_local(dst, local);
    route_ip(dst, &to, rdma_sockaddr_scope(from));
    route_ip(from, &ip, 0);
    if (rdma_sockaddr_any(from))
        ip = (struct sockaddr_storage){.ss_family = to.ss_family};
    if (ip.ss_family != to.ss_family)
        return EINVAL;
    int err = route_local((struct sockaddr *)&to, &ip);
    if (err == 0) {
        struct net_addr found = rdma_sockaddr_net((struct sockaddr *)&ip);
        rdma_sockaddr_set_net(from, &found);
    }
    return err;
}
