/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_addrinfo.c: names and services to addresses, by the system's getaddrinfo.
 */
#include <errno.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rdma_objects.h"

static bool addrinfo_extended(int type)
{
    return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

/* Which port space and QP type the hints mean. XRC has no port space of IP. */
static void addrinfo_kind(const struct rdma_addrinfo *hints, struct rdma_addrinfo *kind)
{
    int space = hints != NULL ? hints->ai_port_space : 0;
    int type = hints != NULL ? hints->ai_qp_type : 0;

    if (space == 0)
        space = type == IBV_QPT_UD        ? RDMA_PS_UDP
                : addrinfo_extended(type) ? RDMA_PS_IB
                                          : RDMA_PS_TCP;
    if (type == 0)
        type = space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
    kind->ai_port_space = space;
    kind->ai_qp_type = type;
    kind->ai_flags = hints != NULL ? hints->ai_flags : 0;
}

static struct addrinfo addrinfo_hints(const struct rdma_addrinfo *hints,
                                      const struct rdma_addrinfo *kind)
{
    struct addrinfo h = {
        .ai_socktype = kind->ai_port_space == RDMA_PS_UDP ? SOCK_DGRAM : SOCK_STREAM,
        .ai_family = hints != NULL && hints->ai_family != AF_IB ? hints->ai_family : AF_UNSPEC,
    };

    if ((kind->ai_flags & RAI_PASSIVE) != 0)
        h.ai_flags |= AI_PASSIVE;
    if ((kind->ai_flags & RAI_NUMERICHOST) != 0)
        h.ai_flags |= AI_NUMERICHOST;
    return h;
}

static void addrinfo_free(struct rdma_addrinfo *res)
{
    while (res != NULL) {
        struct rdma_addrinfo *next = res->ai_next;
        free(res->ai_src_addr);
        free(res->ai_dst_addr);
        free(res->ai_src_canonname);
        free(res->ai_dst_canonname);
        free(res->ai_route);
        free(res->ai_connect);
        free(res);
        res = next;
    }
}

static struct sockaddr *addrinfo_copy(const struct sockaddr *from, socklen_t length)
{
    struct sockaddr_storage *to = calloc(1, sizeof(*to));

    if (to != NULL)
        memcpy(to, from, length);
    return (struct sockaddr *)to;
}

/* Copies an address of the hints to where there is none yet. False: no memory, or no address. */
static bool addrinfo_take(struct sockaddr **to, socklen_t *to_length, const struct sockaddr *from,
                          socklen_t length)
{
    if (*to != NULL || from == NULL || length == 0)
        return true;
    if (length > sizeof(struct sockaddr_storage))
        return false;
    *to = addrinfo_copy(from, length);
    *to_length = length;
    return *to != NULL;
}

/* What name lookup has not found, the hints may say. */
static bool addrinfo_take_hints(struct rdma_addrinfo *to, const struct rdma_addrinfo *hints)
{
    return hints == NULL || (addrinfo_take(&to->ai_src_addr, &to->ai_src_len, hints->ai_src_addr,
                                           hints->ai_src_len) &&
                             addrinfo_take(&to->ai_dst_addr, &to->ai_dst_len, hints->ai_dst_addr,
                                           hints->ai_dst_len));
}

static struct rdma_addrinfo *addrinfo_convert(const struct addrinfo *from,
                                              const struct rdma_addrinfo *kind,
                                              const struct rdma_addrinfo *hints)
{
    struct rdma_addrinfo *to = calloc(1, sizeof(*to));
    bool passive = (kind->ai_flags & RAI_PASSIVE) != 0;

    if (to == NULL)
        return NULL;
    *to = *kind;
    to->ai_family = from->ai_family;
    socklen_t bytes = from->ai_addrlen;
    struct sockaddr *addr = addrinfo_copy(from->ai_addr, bytes);
    if (addr != NULL && hints != NULL && hints->ai_family == AF_IB) {
        uint64_t service = rdma_sockaddr_service((enum rdma_port_space)kind->ai_port_space, addr);
        rdma_sockaddr_to_gid((struct sockaddr_storage *)addr, service);
        to->ai_family = AF_IB;
        bytes = rdma_sockaddr_length(addr);
    }
    char *name = from->ai_canonname != NULL ? strdup(from->ai_canonname) : NULL;
    if (passive) {
        to->ai_src_addr = addr;
        to->ai_src_len = bytes;
        to->ai_src_canonname = name;
    } else {
        to->ai_dst_addr = addr;
        to->ai_dst_len = bytes;
        to->ai_dst_canonname = name;
    }
    if (addr == NULL || !addrinfo_take_hints(to, hints)) {
        addrinfo_free(to);
        return NULL;
    }
    return to;
}

static int addrinfo_by_name(const char *node, const char *service,
                            const struct rdma_addrinfo *hints, const struct rdma_addrinfo *kind,
                            struct rdma_addrinfo **list)
{
    struct addrinfo wanted = addrinfo_hints(hints, kind), *found;
    struct rdma_addrinfo **end = list;

    int err = getaddrinfo(node, service, &wanted, &found);
    if (err != 0)
        return err; /* EAI_*: programs print it with gai_strerror */
    for (struct addrinfo *f = found; f != NULL; f = f->ai_next) {
        if (f->ai_family != AF_INET && f->ai_family != AF_INET6)
            continue;
        *end = addrinfo_convert(f, kind, hints);
        if (*end == NULL) {
            err = EAI_MEMORY;
            break;
        }
        end = &(*end)->ai_next;
    }
    freeaddrinfo(found);
    return err == 0 && *list == NULL ? EAI_FAMILY : err;
}

/* Without a name the addresses are those of the hints. */
static int addrinfo_by_hints(const struct rdma_addrinfo *hints, const struct rdma_addrinfo *kind,
                             struct rdma_addrinfo **out)
{
    struct rdma_addrinfo *to = calloc(1, sizeof(*to));

    if (to == NULL)
        return EAI_MEMORY;
    *to = *kind;
    *out = to;
    if (!addrinfo_take_hints(to, hints))
        return EAI_MEMORY;
    const struct sockaddr *one = to->ai_dst_addr != NULL ? to->ai_dst_addr : to->ai_src_addr;
    if (one == NULL)
        return EAI_NONAME;
    if (rdma_sockaddr_length(one) == 0)
        return EAI_FAMILY;
    to->ai_family = one->sa_family;
    return 0;
}

RDMACM_ABI int rdma_getaddrinfo(const char *node, const char *service,
                                const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
    struct rdma_addrinfo kind = {0}, *list = NULL;
    bool named = node != NULL || service != NULL;

    if (!named && hints == NULL)
        return rdma_fail(EINVAL);
    addrinfo_kind(hints, &kind);
    int err = named ? addrinfo_by_name(node, service, hints, &kind, &list)
                    : addrinfo_by_hints(hints, &kind, &list);
    if (err == 0)
        *res = list;
    else
        addrinfo_free(list);
    return err;
}

RDMACM_ABI void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
    addrinfo_free(res);
}

/* The lookup is made here, not in the background; only its outcome is told by an event. */
RDMACM_ABI int rdma_resolve_addrinfo(struct rdma_cm_id *pub, const char *node, const char *service,
                                     const struct rdma_addrinfo *hints)
{
    struct rdma_id_obj *id = obj_id(pub);
    const int both = NEWER_RAI_SA | NEWER_RAI_DNS;
    struct rdma_addrinfo *found = NULL;

    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    if ((node == NULL && service == NULL) || (hints != NULL && (hints->ai_flags & both) == both))
        return rdma_fail(EINVAL);
    if (hints != NULL && (hints->ai_flags & NEWER_RAI_SA) != 0)
        return rdma_fail(EOPNOTSUPP); /* a subnet administrator: InfiniBand has one, RoCE none */
    int err = rdma_getaddrinfo(node, service, hints, &found);
    if (err == 0) {
        addrinfo_free(id->addrinfo);
        id->addrinfo = found;
    }
    int type = err == 0 ? NEWER_EVENT_ADDRINFO_RESOLVED : NEWER_EVENT_ADDRINFO_ERROR;
    int status = err == 0 ? 0 : err == EAI_MEMORY ? -ENOMEM : -ENODATA;
    if (rdma_event_raise(id, (enum rdma_cm_event_type)type, status) != 0)
        return -1;
    return rdma_id_complete(id);
}

RDMACM_ABI int rdma_query_addrinfo(struct rdma_cm_id *pub, struct rdma_addrinfo **info)
{
    struct rdma_id_obj *id = obj_id(pub);

    if (info == NULL || id->addrinfo == NULL)
        return rdma_fail(info == NULL ? EINVAL : ENODATA);
    *info = id->addrinfo; /* the caller's from now on */
    id->addrinfo = NULL;
    return 0;
}
