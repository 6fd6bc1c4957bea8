/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_port.c: ports of the port spaces: an id that may listen takes its port at bind time among
 * all processes of the address, by the connection manager. Who only connects needs no port of its
 * own: connections are told apart by their communication ids.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "rdmacm/rdma_objects.h"

/* As the kernel's default range of local ports. */
enum { PORT_FIRST = 32768, PORT_LAST = 60999 };

/* Of a GID: which port space its service id is of, and that it has all its bits. 0 or a positive
 * errno. */
static int port_space(const struct rdma_id_obj *id, struct sockaddr_ib *sib)
{
    static const enum rdma_port_space spaces[] = {RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP,
                                                  RDMA_PS_IPOIB};
    const uint64_t port = 0xffff;
    uint64_t mask = be64toh(sib->sib_sid_mask) & ~port, sid = be64toh(sib->sib_sid);

    for (unsigned i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        uint64_t base = (uint64_t)spaces[i] << 16;
        if ((id->pub.ps != RDMA_PS_IB && id->pub.ps != spaces[i]) || (sid & mask) != (base & mask))
            continue;
        sib->sib_sid = htobe64(base | (sid & port));
        sib->sib_sid_mask = UINT64_MAX;
        return 0;
    }
    return EPROTONOSUPPORT;
}

/* For whom: an address, any of one family, or NULL: any of both. */
static const struct net_addr *port_whom(const struct rdma_id_obj *id, struct net_addr *addr)
{
    const struct sockaddr *src = &id->pub.route.addr.src_addr;

    *addr = rdma_sockaddr_net(src);
    return src->sa_family != AF_INET && rdma_sockaddr_any(src) && !id->af_only ? NULL : addr;
}

int rdma_port_claim(struct rdma_id_obj *id)
{
    struct sockaddr *src = &id->pub.route.addr.src_addr;
    struct net_addr addr;
    uint64_t service;

    if (id->claimed)
        return 0;
    int err = rdma_engine_id(id);
    if (err != 0)
        return err;
    const struct net_addr *whom = port_whom(id, &addr);
    service = rdma_sockaddr_service(id->pub.ps, src);
    if (rdma_sockaddr_port(src) != 0) {
        err = -verbena_cm_bind(id->cm, service, whom);
    } else {
        err = -verbena_cm_bind_free(id->cm, service, PORT_FIRST, PORT_LAST, whom, &service);
    }
    if (err != 0)
        return err;
    id->claimed = true;
    rdma_sockaddr_set_port(src, (uint16_t)service);
    return 0;
}

static uint16_t port_any(void)
{
    uint16_t r = 0;

    if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != (ssize_t)sizeof(r))
        r = (uint16_t)(uintptr_t)&r; /* any will do */
    return (uint16_t)(PORT_FIRST + r % (PORT_LAST - PORT_FIRST + 1));
}

int rdma_port_bind(struct rdma_id_obj *id, const struct sockaddr *addr, bool only_connects)
{
    struct sockaddr *src = &id->pub.route.addr.src_addr;
    uint16_t port = rdma_sockaddr_port(addr);

    memcpy(&id->pub.route.addr.src_storage, addr, rdma_sockaddr_length(addr));
    if (src->sa_family == AF_IB) {
        int err = port_space(id, (struct sockaddr_ib *)(void *)src);
        if (err != 0)
            return err;
    }
    if (only_connects && port == 0) {
        rdma_sockaddr_set_port(src, port_any());
        return 0;
    }
    /* Ids that share a port must not listen, so only who listens takes it. */
    if (id->reuse_addr && port != 0)
        return 0;
    return rdma_port_claim(id);
}
