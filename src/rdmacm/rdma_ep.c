/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_ep.c: endpoints: an id with address, route and QP in one call, whose calls wait.
 */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>

#include "rdmacm/rdma_objects.h"

enum { EP_TIMEOUT_MS = 2000 };

static int ep_connects(struct rdma_cm_id *id, struct rdma_addrinfo *res)
{
    if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, EP_TIMEOUT_MS) != 0)
        return -1;
    if (res->ai_route_len != 0)
        return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
                               res->ai_route_len);
    return rdma_resolve_route(id, EP_TIMEOUT_MS);
}

/* What the QPs of its connections are to have. */
static int ep_remember(struct rdma_id_obj *id, struct ibv_pd *pd,
                       const struct ibv_qp_init_attr *init)
{
    id->ep_init = malloc(sizeof(*id->ep_init));
    if (id->ep_init == NULL)
        return rdma_fail(ENOMEM);
    *id->ep_init = *init;
    id->ep_pd = pd;
    return 0;
}

RDMACM_ABI int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
                              struct ibv_qp_init_attr *init)
{
    struct rdma_cm_id *id;

    if (out == NULL || res == NULL)
        return rdma_fail(EINVAL);
    bool passive = (res->ai_flags & RAI_PASSIVE) != 0;
    /* The other port spaces say by themselves what their connections are. */
    if ((res->ai_qp_type == IBV_QPT_XRC_SEND || res->ai_qp_type == IBV_QPT_XRC_RECV) &&
        res->ai_port_space != RDMA_PS_IB)
        return rdma_fail(EINVAL);
    if (rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)res->ai_port_space) != 0)
        return -1;
    if (res->ai_qp_type != 0)
        id->qp_type = (enum ibv_qp_type)res->ai_qp_type;
    int ret = passive ? rdma_bind_addr(id, res->ai_src_addr) : ep_connects(id, res);
    if (ret == 0 && init != NULL) {
        init->qp_type = id->qp_type;
        ret = passive ? ep_remember(obj_id(id), pd, init) : rdma_create_qp(id, pd, init);
    }
    if (ret != 0) {
        int err = errno;
        rdma_destroy_ep(id);
        return rdma_fail(err);
    }
    *out = id;
    return 0;
}

RDMACM_ABI void rdma_destroy_ep(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

/* The new connection, synchronous itself. */
static int ep_adopt(struct rdma_id_obj *listen, struct rdma_cm_id *id)
{
    if (rdma_migrate_id(id, NULL) != 0)
        return -1;
    if (listen->ep_init == NULL)
        return 0;
    struct ibv_qp_init_attr init = *listen->ep_init;
    return rdma_create_qp(id, listen->ep_pd, &init);
}

RDMACM_ABI int rdma_get_request(struct rdma_cm_id *pub, struct rdma_cm_id **out)
{
    struct rdma_id_obj *listen = obj_id(pub);
    struct rdma_cm_event *event;

    if (out == NULL || !listen->sync || listen->state != ID_LISTENING)
        return rdma_fail(EINVAL);
    if (pub->event != NULL) {
        rdma_ack_cm_event(pub->event);
        pub->event = NULL;
    }
    if (rdma_get_cm_event(pub->channel, &event) != 0)
        return -1;
    int err = 0;
    if (event->status != 0)
        err = event->status < 0 ? -event->status : ECONNREFUSED;
    else if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
        err = EINVAL;
    else if (ep_adopt(listen, event->id) != 0)
        err = errno;
    if (err == 0) {
        *out = event->id;
        event->id->event = event;
        return 0;
    }
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        struct rdma_cm_id *id = event->id;
        rdma_ack_cm_event(event);
        rdma_destroy_ep(id);
    } else {
        pub->event = event;
    }
    return rdma_fail(err);
}
