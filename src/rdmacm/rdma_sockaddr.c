/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_sockaddr.c: socket addresses of IPv4, IPv6 and AF_IB, and what the engine has for them. One
 * of AF_IB is a GID, which on RoCE v2 is an IP address, with a service id instead of a port.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>
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

static const struct sockaddr_ib *sockaddr_gid(const struct sockaddr *sa)
{
    return (const struct sockaddr_ib *)(const void *)sa;
}

socklen_t rdma_sockaddr_length(const struct sockaddr *sa)
{
    switch (sa->sa_family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    case AF_IB:
        return sizeof(struct sockaddr_ib);
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
    else if (sa->sa_family == AF_INET6)
        memcpy(a.b, &sockaddr_v6(sa)->sin6_addr, 16);
    else
        memcpy(a.b, &sockaddr_gid(sa)->sib_addr, 16);
    return a;
}

void rdma_sockaddr_set_net(struct sockaddr *sa, const struct net_addr *addr)
{
    if (sa->sa_family == AF_INET)
        memcpy(&((struct sockaddr_in *)(void *)sa)->sin_addr, addr->b + 12, 4);
    else if (sa->sa_family == AF_INET6)
        memcpy(&((struct sockaddr_in6 *)(void *)sa)->sin6_addr, addr->b, 16);
    else
        memcpy(&((struct sockaddr_ib *)(void *)sa)->sib_addr, addr->b, 16);
}

bool rdma_sockaddr_any(const struct sockaddr *sa)
{
    static const struct net_addr any;
    struct net_addr a = rdma_sockaddr_net(sa);

    if (sa->sa_family == AF_INET)
        return sockaddr_v4(sa)->sin_addr.s_addr == htonl(INADDR_ANY);
    return memcmp(&a, &any, sizeof(a)) == 0;
}

bool rdma_sockaddr_loopback(const struct sockaddr *sa)
{
    enum { LOOPBACK_NET = 127 };
    static const struct net_addr loopback6 = {.b = {[15] = 1}};
    struct net_addr a = rdma_sockaddr_net(sa);

    return net_addr_is_v4(&a) ? a.b[12] == LOOPBACK_NET : memcmp(&a, &loopback6, sizeof(a)) == 0;
}

bool rdma_sockaddr_link_local(const struct sockaddr *sa)
{
    struct net_addr a = rdma_sockaddr_net(sa);

    return net_addr_is_link_local(&a) ||
           (!net_addr_is_v4(&a) && net_addr_is_group(&a) && (a.b[1] & 0xf) == 2);
}

uint16_t rdma_sockaddr_port(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_IB)
        return (uint16_t)be64toh(sockaddr_gid(sa)->sib_sid);
    return ntohs(sockaddr_v4(sa)->sin_port);
}

void rdma_sockaddr_set_port(struct sockaddr *sa, uint16_t port)
{
    struct sockaddr_ib *sib = (struct sockaddr_ib *)(void *)sa;

    if (sa->sa_family == AF_IB)
        sib->sib_sid = htobe64((be64toh(sib->sib_sid) & ~0xffffull) | port);
    else
        ((struct sockaddr_in *)(void *)sa)->sin_port = htons(port);
}

uint32_t rdma_sockaddr_scope(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_IB)
        return (uint32_t)sockaddr_gid(sa)->sib_scope_id;
    return sa->sa_family == AF_INET6 ? sockaddr_v6(sa)->sin6_scope_id : 0;
}

uint64_t rdma_sockaddr_service(enum rdma_port_space ps, const struct sockaddr *sa)
{
    return sa->sa_family == AF_IB ? be64toh(sockaddr_gid(sa)->sib_sid)
                                  : (uint64_t)ps << 16 | rdma_sockaddr_port(sa);
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

void rdma_sockaddr_to_gid(struct sockaddr_storage *sa, uint64_t service_id)
{
    enum { EVERYONE = 0xffff };
    struct sockaddr_ib sib = {
        .sib_family = AF_IB,
        .sib_pkey = htobe16(EVERYONE),
        .sib_sid = htobe64(service_id),
        .sib_sid_mask = UINT64_MAX,
        .sib_scope_id = rdma_sockaddr_scope((struct sockaddr *)sa),
    };
    struct net_addr addr = rdma_sockaddr_net((struct sockaddr *)sa);

    if (!rdma_sockaddr_any((struct sockaddr *)sa)) /* any is any of both families */
        memcpy(&sib.sib_addr, addr.b, sizeof(addr.b));
    memset(sa, 0, sizeof(*sa));
    memcpy(sa, &sib, sizeof(sib));
}
