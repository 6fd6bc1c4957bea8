/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_sockaddr.c: socket addresses of IPv4 and IPv6, and what the engine has for them.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "rdmacm/rdma_objects.h"

_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
               "the port is at one place");

static const struct sockaddr_in *sockaddr_v4(const struct sockaddr *sa)
{
    return (const struct sockaddr_in *)(const void *)sa;
}

static const struct sockaddr_in6 *sockaddr_v6(const struct sockaddr *sa)
{
    return (const struct sockaddr_in6 *)(const void *)sa;
}

socklen_t rdma_sockaddr_length(const struct sockaddr *sa)
{
    switch (sa->sa_family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    default:
        return 0;
    }
}

struct net_addr rdma_sockaddr_net(const struct sockaddr *sa)
{
    struct net_addr a = {
        .b = {[10] = 0xff, [11] = 0xff}
    };

    if (sa->sa_family == AF_INET)
        memcpy(a.b + 12, &sockaddr_v4(sa)->sin_addr, 4);
    else
        memcpy(a.b, &sockaddr_v6(sa)->sin6_addr, 16);
    return a;
}

bool rdma_sockaddr_any(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET)
        return sockaddr_v4(sa)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&sockaddr_v6(sa)->sin6_addr);
}

bool rdma_sockaddr_loopback(const struct sockaddr *sa)
{
    enum { LOOPBACK_NET = 127 };

    if (sa->sa_family == AF_INET)
        return ntohl(sockaddr_v4(sa)->sin_addr.s_addr) >> 24 == LOOPBACK_NET;
    return IN6_IS_ADDR_LOOPBACK(&sockaddr_v6(sa)->sin6_addr);
}

bool rdma_sockaddr_link_local(const struct sockaddr *sa)
{
    return sa->sa_family == AF_INET6 && (IN6_IS_ADDR_LINKLOCAL(&sockaddr_v6(sa)->sin6_addr) ||
                                         IN6_IS_ADDR_MC_LINKLOCAL(&sockaddr_v6(sa)->sin6_addr));
}

uint16_t rdma_sockaddr_port(const struct sockaddr *sa)
{
    return ntohs(sockaddr_v4(sa)->sin_port);
}

void rdma_sockaddr_set_port(struct sockaddr *sa, uint16_t port)
{
    ((struct sockaddr_in *)(void *)sa)->sin_port = htons(port);
}

uint32_t rdma_sockaddr_scope(const struct sockaddr *sa)
{
    return sa->sa_family == AF_INET6 ? sockaddr_v6(sa)->sin6_scope_id : 0;
}

void rdma_sockaddr_build(struct sockaddr_storage *out, const struct net_addr *addr, uint16_t port,
                         uint32_t scope_id)
{
    memset(out, 0, sizeof(*out));
    if (net_addr_is_v4(addr)) {
        struct sockaddr_in *sin = (struct sockaddr_in *)out;
        sin->sin_family = AF_INET;
        sin->sin_port = htons(port);
        memcpy(&sin->sin_addr, addr->b + 12, 4);
        return;
    }
    struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;
    sin6->sin6_family = AF_INET6;
    sin6->sin6_port = htons(port);
    sin6->sin6_scope_id = scope_id;
    memcpy(&sin6->sin6_addr, addr->b, 16);
}
