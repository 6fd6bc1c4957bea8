/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_option.c: options of an id, and what the two sides say of vendor features (ECE).
 */
#include <errno.h>
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
        if (octet > OPTION_MAX_ACK_TIMEOUT)
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

RDMACM_ABI int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
                               size_t optlen)
{
    /* Paths of a subnet administrator (RDMA_OPTION_IB_PATH) are InfiniBand's. */
    int err = level == RDMA_OPTION_ID ? option_set_id(obj_id(id), optname, optval, optlen) : ENOSYS;

    return err != 0 ? rdma_fail(err) : 0;
}

/* For programs with QPs of their own; the QPs made here have no vendor features. */
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
