/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_mcast.c: multicast groups, which the engine does not have yet: joining one is refused.
 */
#include <errno.h>

#include "rdmacm/rdma_objects.h"

/* 0 or a positive errno. */
static int mcast_check(const struct rdma_cm_id *id, const struct sockaddr *addr)
{
    if (addr == NULL || id->verbs == NULL)
        return EINVAL;
    return rdma_sockaddr_length(addr) == 0 ? EAFNOSUPPORT : 0;
}

RDMACM_ABI int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    (void)context;
    int err = mcast_check(id, addr);
    return rdma_fail(err != 0 ? err : EOPNOTSUPP);
}

RDMACM_ABI int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
                                      void *context)
{
    const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

    if (attr == NULL || attr->comp_mask != needed || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
        return rdma_fail(EINVAL);
    return rdma_join_multicast(id, attr->addr, context);
}

RDMACM_ABI int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
    int err = mcast_check(id, addr);
    return rdma_fail(err != 0 ? err : EADDRNOTAVAIL);
}
