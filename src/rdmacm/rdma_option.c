/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_option.c: options of an id, and what the two sides say of vendor features (ECE).
 */
#include <errno.h>
#include <infiniband/sa.h>
#include <string.h>

#include "rdmacm/rdma_objects.h"

enum { OPTION_MAX_ACK_TIMEOUT = 31 };

/* 0 or a positive errno. */
static int option_set_id(struct rdma_id_obj *id, int name, const void *value, size_t length)
{
    bool byte = name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT;

    if (name < RDMA_OPTION_ID_TOS || name > RDMA_OPTION_ID_ACK_TIMEOUT)
        return ENOSYS;
    if (value == NULL || length != (byte ? sizeof(uint8_t) : sizeof(int)))
        return EINVAL;
    uint8_t octet = *(const uint8_t *)value;
    int number = 0;
    if (!byte)
        memcpy(&number, value, sizeof(number));
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        id->tos = octet;
        return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        if (octet > OPTION_MAX_ACK_TIMEOUT || id->pub.qp_type == IBV_QPT_UD)
            return EINVAL;
        id->ack_timeout_set = true;
        id->ack_timeout = octet;
        return 0;
    case RDMA_OPTION_ID_REUSEADDR:
        if (id->state != ID_IDLE && !(id->state == ID_BOUND && number != 0))
            return EINVAL;
        id->reuse_addr = number != 0;
        return 0;
    default: /* RDMA_OPTION_ID_AFONLY */
        if (id->state != ID_IDLE)
            return EINVAL;
        id->af_only = number != 0;
        return 0;
    }
}

/* Does it go between the id's two addresses, both ways? */
static bool option_path_fits(const struct rdma_id_obj *id, const struct ibv_path_data *p)
{
    const uint32_t needed = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
    const struct rdma_ib_addr *a = &id->pub.route.addr.addr.ibaddr;

    return p->flags == needed && memcmp(&p->path.sgid, &a->sgid, sizeof(a->sgid)) == 0 &&
           memcmp(&p->path.dgid, &a->dgid, sizeof(a->dgid)) == 0;
}

/* Paths that the program has from elsewhere, instead of rdma_resolve_route. Of the one that fits
 * RoCE v2 has use for the traffic class only: it is routed as IP is. 0 or a positive errno. */
static int option_set_path(struct rdma_id_obj *id, const void *value, size_t length)
{
    struct ibv_path_data p;

    if (value == NULL || length == 0 || length % sizeof(p) != 0)
        return EINVAL;
    if (!rdma_id_alive(id))
        return EIO;
    for (size_t at = 0; at < length; at += sizeof(p)) {
        memcpy(&p, (const uint8_t *)value + at, sizeof(p));
        if (id->state != ID_ADDR_RESOLVED || !option_path_fits(id, &p))
            continue;
        if (p.path.tclass != 0)
            id->tos = p.path.tclass;
        return rdma_addr_route(id);
    }
    return EINVAL;
}

RDMACM_ABI int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
                               size_t optlen)
{
    int err = ENOSYS;

    if (level == RDMA_OPTION_ID)
        err = option_set_id(obj_id(id), optname, optval, optlen);
    else if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
        err = option_set_path(obj_id(id), optval, optlen);
    if (err != 0)
        return rdma_fail(err);
    return level == RDMA_OPTION_IB ? rdma_id_complete(obj_id(id)) : 0;
}

/* For programs with QPs of their own; for those made here it is done with them. */
RDMACM_ABI int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (id->qp != NULL || ece == NULL || ece->vendor_id == 0 || ece->comp_mask != 0)
        return rdma_fail(EINVAL);
    obj_id(id)->local_ece = *ece;
    return 0;
}

RDMACM_ABI int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (id->qp != NULL || ece == NULL)
        return rdma_fail(EINVAL);
    *ece = obj_id(id)->remote_ece;
    return 0;
}
