/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_addr.c: an id's addresses: bound to a local one, resolved to a remote one, and the path
 * between the two that programs look at.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rdma_objects.h"

/* 0, or a positive errno for what is no address to bind to. */
static int addr_check(const struct sockaddr *addr)
{
    if (addr == NULL)
        return EINVAL;
    if (rdma_sockaddr_length(addr) == 0)
        return EAFNOSUPPORT;
    struct net_addr a = rdma_sockaddr_net(addr);
    if (addr->sa_family == AF_IB) /* a GID table tells the interface */
        return 0;
    return net_addr_is_link_local(&a) && rdma_sockaddr_scope(addr) == 0 ? EINVAL : 0;
}

void rdma_addr_set_gids(struct rdma_id_obj *id)
{
    struct rdma_addr *a = &id->pub.route.addr;
    struct net_addr src = rdma_sockaddr_net(&a->src_addr);
    struct net_addr dst = rdma_sockaddr_net(&a->dst_addr);

    memcpy(a->addr.ibaddr.sgid.raw, src.b, sizeof(src.b));
    if (rdma_sockaddr_length(&a->dst_addr) != 0)
        memcpy(a->addr.ibaddr.dgid.raw, dst.b, sizeof(dst.b));
    a->addr.ibaddr.pkey = htobe16(RDMA_DEFAULT_PKEY);
}

int rdma_addr_set_path(struct rdma_id_obj *id)
{
    enum { EXACTLY = 2, RATE_100_GBPS = IBV_RATE_100_GBPS, LIFE_TIME = 16 };
    struct rdma_route *route = &id->pub.route;

    if (route->path_rec == NULL)
        route->path_rec = calloc(1, sizeof(*route->path_rec));
    if (route->path_rec == NULL)
        return ENOMEM;
    *route->path_rec = (struct ibv_sa_path_rec){
        .dgid = route->addr.addr.ibaddr.dgid,
        .sgid = route->addr.addr.ibaddr.sgid,
        .hop_limit = RDMA_HOP_LIMIT,
        .traffic_class = id->tos,
        .reversible = 1,
        .numb_path = 1,
        .pkey = htobe16(RDMA_DEFAULT_PKEY),
        .mtu_selector = EXACTLY,
        .mtu = (uint8_t)rdma_device_mtu(id->device),
        .rate_selector = EXACTLY,
        .rate = RATE_100_GBPS,
        .packet_life_time_selector = EXACTLY,
        .packet_life_time = LIFE_TIME,
    };
    route->num_paths = 1;
    return 0;
}

/* 0 or a positive errno. only_connects: the id will not listen. */
static int addr_bind(struct rdma_id_obj *id, const struct sockaddr *addr, bool only_connects)
{
    int err = addr_check(addr);

    if (err == 0 && !rdma_id_alive(id))
        err = EIO;
    if (err != 0)
        return err;
    if (!rdma_id_step(id, ID_IDLE, ID_BOUND))
        return EINVAL;
    if (!rdma_sockaddr_any(addr))
        err = rdma_device_attach(id, addr);
    /* As with the kernel, an id bound to a loopback address has no device until it is resolved:
     * libfabric asks what "localhost" belongs to, and would leave out all devices but that one. */
    if (err == 0 && rdma_sockaddr_loopback(addr))
        rdma_device_detach(id);
    if (err == 0)
        err = rdma_port_bind(id, addr, only_connects);
    struct sockaddr_ib *gid = (struct sockaddr_ib *)(void *)&id->pub.route.addr.src_storage;
    if (err == 0 && id->device != NULL && gid->sib_family == AF_IB && gid->sib_scope_id == 0)
        gid->sib_scope_id = id->device->ifindex;
    if (err == 0 && id->device != NULL)
        rdma_addr_set_gids(id);
    if (err != 0) {
        memset(&id->pub.route.addr, 0, sizeof(id->pub.route.addr));
        rdma_device_detach(id);
        rdma_id_step(id, ID_BOUND, ID_IDLE);
    }
    return err;
}

RDMACM_ABI int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
    int err = addr_bind(obj_id(id), addr, false);

    return err != 0 ? rdma_fail(err) : 0;
}

/* No source yet: any address of the destination's family. */
static int addr_bind_any(struct rdma_id_obj *id, const struct sockaddr *src,
                         const struct sockaddr *dst)
{
    struct sockaddr_storage any = {.ss_family = dst->sa_family};

    if (src == NULL || rdma_sockaddr_length(src) == 0)
        src = (struct sockaddr *)&any;
    return addr_bind(id, src, true);
}

/* The address of this machine, for "any". */
static void addr_set_destination(struct rdma_id_obj *id, const struct sockaddr *dst)
{
    static const struct net_addr loopback4 = {
        .b = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}
    };
    static const struct net_addr loopback6 = {.b = {[15] = 1}};
    struct rdma_addr *a = &id->pub.route.addr;

    memset(&a->dst_storage, 0, sizeof(a->dst_storage));
    memcpy(&a->dst_storage, dst, rdma_sockaddr_length(dst));
    if (!rdma_sockaddr_any(dst))
        return;
    if (!rdma_sockaddr_any(&a->src_addr)) {
        struct net_addr own = rdma_sockaddr_net(&a->src_addr);
        rdma_sockaddr_set_net(&a->dst_addr, &own);
        if (dst->sa_family == AF_INET6)
            a->dst_sin6.sin6_scope_id = rdma_sockaddr_scope(&a->src_addr);
        return;
    }
    rdma_sockaddr_set_net(&a->dst_addr, dst->sa_family == AF_INET ? &loopback4 : &loopback6);
}

static int addr_resolve(struct rdma_id_obj *id, const struct sockaddr *dst)
{
    struct rdma_addr *a = &id->pub.route.addr;

    if (a->src_addr.sa_family != dst->sa_family)
        return EINVAL;
    addr_set_destination(id, dst);
    /* Unlike the kernel it does not wait for the neighbour to answer, since a
     * socket cannot ask without sending; an absent one shows as UNREACHABLE of the connection. */
    int err = rdma_route_local(&a->dst_addr, &a->src_storage);
    if (err != 0)
        return err;
    if (id->device == NULL)
        err = rdma_device_attach(id, &a->src_addr);
    rdma_addr_set_gids(id);
    /* The route exists but no device of ours has it: told by an event, as the kernel does. */
    enum rdma_cm_event_type type =
        err == 0 ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR;
    if (err == 0)
        rdma_id_step(id, ID_BOUND, ID_ADDR_RESOLVED);
    return rdma_event_raise(id, type, -err) != 0 ? errno : 0;
}

RDMACM_ABI int rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src, struct sockaddr *dst,
                                 int timeout_ms)
{
    struct rdma_id_obj *id = obj_id(pub);

    (void)timeout_ms; /* nothing is waited for */
    int err = addr_check(dst);
    if (err == 0 && !rdma_id_alive(id))
        err = EIO;
    if (err == 0 && id->state == ID_IDLE)
        err = addr_bind_any(id, src, dst);
    if (err == 0 && id->state != ID_BOUND)
        err = EINVAL;
    if (err == 0)
        err = addr_resolve(id, dst);
    return err != 0 ? rdma_fail(err) : rdma_id_complete(id);
}

int rdma_addr_route(struct rdma_id_obj *id)
{
    if (!rdma_id_step(id, ID_ADDR_RESOLVED, ID_ROUTE_RESOLVED))
        return EINVAL;
    int err = rdma_addr_set_path(id);
    if (err == 0 && rdma_event_raise(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0) != 0)
        err = errno;
    if (err != 0)
        rdma_id_step(id, ID_ROUTE_RESOLVED, ID_ADDR_RESOLVED);
    return err;
}

RDMACM_ABI int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
    struct rdma_id_obj *id = obj_id(pub);

    (void)timeout_ms;
    int err = rdma_id_alive(id) ? rdma_addr_route(id) : EIO;
    return err != 0 ? rdma_fail(err) : rdma_id_complete(id);
}
