/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_qp.c: the QP and SRQ of an id, with the completion queues that go with them when the program
 * brings none.
 */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "rdmacm/rdma_objects.h"

_Static_assert(offsetof(struct ibv_qp_init_attr_ex, sq_sig_all) ==
                   offsetof(struct ibv_qp_init_attr, sq_sig_all),
               "the extended struct starts as the plain one");

/* A CQ with a channel of its own. 0 or a positive errno. */
static int qp_create_cq(struct rdma_cm_id *id, uint32_t wanted, struct ibv_comp_channel **channel,
                        struct ibv_cq **cq)
{
    *channel = ibv_create_comp_channel(id->verbs);
    if (*channel == NULL)
        return errno;
    *cq = ibv_create_cq(id->verbs, wanted > 0 ? (int)wanted : 1, id, *channel, 0);
    if (*cq == NULL) {
        int err = errno;
        ibv_destroy_comp_channel(*channel);
        *channel = NULL;
        return err;
    }
    return 0;
}

static void qp_destroy_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
    if (*cq == NULL)
        return;
    ibv_destroy_cq(*cq);
    ibv_destroy_comp_channel(*channel);
    *cq = NULL;
    *channel = NULL;
}

/* Those that neither the QP nor the SRQ needs any more. */
static void qp_release_cqs(struct rdma_cm_id *id)
{
    if (id->qp != NULL)
        return;
    qp_destroy_cq(&id->send_cq_channel, &id->send_cq);
    if (!obj_id(id)->srq_on_recv_cq)
        qp_destroy_cq(&id->recv_cq_channel, &id->recv_cq);
}

static int qp_need_recv_cq(struct rdma_cm_id *id, uint32_t wanted)
{
    return id->recv_cq != NULL ? 0 : qp_create_cq(id, wanted, &id->recv_cq_channel, &id->recv_cq);
}

/* A target of XRC has a domain, and no queues. */
static int qp_prepare_target(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attr->xrcd == NULL) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
        return rdma_device_xrcd(obj_id(id)->device, &attr->xrcd);
    }
    return attr->xrcd->context == id->verbs ? 0 : EINVAL;
}

static int qp_prepare(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    int err = 0;

    if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == NULL) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
        attr->pd = id->pd;
    }
    if (attr->pd == NULL || attr->pd->context != id->verbs || attr->qp_type != id->qp_type)
        return EINVAL;
    if (attr->qp_type == IBV_QPT_XRC_RECV)
        return qp_prepare_target(id, attr);
    bool receives = attr->qp_type != IBV_QPT_XRC_SEND;
    if (receives && attr->srq == NULL)
        attr->srq = id->srq;
    /* Programs post inline what they never asked room for: adapters have as much as a WQE's
     * elements take. */
    uint32_t room = attr->cap.max_send_sge * (uint32_t)sizeof(struct ibv_sge);
    if (attr->cap.max_inline_data < room && room <= MAX_INLINE_BYTES)
        attr->cap.max_inline_data = room;
    if (attr->send_cq == NULL) {
        err = qp_create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
        attr->send_cq = id->send_cq;
    }
    if (err == 0 && receives && attr->recv_cq == NULL) {
        err = qp_need_recv_cq(id, attr->cap.max_recv_wr);
        attr->recv_cq = id->recv_cq;
    }
    return err;
}

/* Ready for receives; a datagram QP for sends as well. */
static int qp_start(struct rdma_id_obj *id)
{
    int err = rdma_qp_to(id, IBV_QPS_INIT);

    if (err == 0 && id->pub.qp_type == IBV_QPT_UD)
        err = rdma_qp_to(id, IBV_QPS_RTR);
    if (err == 0 && id->pub.qp_type == IBV_QPT_UD)
        err = rdma_qp_to(id, IBV_QPS_RTS);
    return err;
}

/* ECE, as far as this side can tell when it makes the QP: what it can, or of what the peer has
 * asked for. Whose vendor the QP does not know gets its own number back, and no options. */
static int qp_exchange_ece(struct rdma_id_obj *id)
{
    if (id->state != ID_REQUESTED)
        return ibv_query_ece(id->pub.qp, &id->local_ece);
    id->local_ece = id->remote_ece;
    if (ibv_set_ece(id->pub.qp, &id->local_ece) != 0)
        id->local_ece.options = 0;
    return 0;
}

RDMACM_ABI int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    if (attr == NULL || id->verbs == NULL || id->qp != NULL)
        return rdma_fail(EINVAL);
    if (!rdma_id_alive(obj_id(id)))
        return rdma_fail(EIO);
    int err = qp_prepare(id, attr);
    if (err == 0) {
        id->qp = ibv_create_qp_ex(id->verbs, attr);
        err = id->qp == NULL ? errno : qp_exchange_ece(obj_id(id));
    }
    if (err == 0)
        err = qp_start(obj_id(id));
    if (err == 0) {
        id->pd = attr->pd;
        return 0;
    }
    if (id->qp != NULL)
        ibv_destroy_qp(id->qp);
    id->qp = NULL;
    qp_release_cqs(id);
    return rdma_fail(err);
}

RDMACM_ABI int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
                              struct ibv_qp_init_attr *init)
{
    struct ibv_qp_init_attr_ex attr = {0};

    if (init == NULL)
        return rdma_fail(EINVAL);
    memcpy(&attr, init, offsetof(struct ibv_qp_init_attr, sq_sig_all) + sizeof(init->sq_sig_all));
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.pd = pd;
    if (rdma_create_qp_ex(id, &attr) != 0)
        return -1;
    memcpy(init, &attr, offsetof(struct ibv_qp_init_attr, sq_sig_all) + sizeof(init->sq_sig_all));
    return 0;
}

RDMACM_ABI void rdma_destroy_qp(struct rdma_cm_id *id)
{
    if (id->qp == NULL)
        return;
    rdma_mcast_detach_all(obj_id(id));
    ibv_destroy_qp(id->qp);
    id->qp = NULL;
    qp_release_cqs(id);
}

/* What the program does not say: the PD, and of an XRC SRQ its domain and its CQ. 0 or a positive
 * errno. */
static int srq_prepare(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    int err = 0;

    if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == NULL) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
        attr->pd = id->pd;
    }
    if (attr->pd == NULL || attr->pd->context != id->verbs)
        return EINVAL;
    if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || attr->srq_type == IBV_SRQT_BASIC)
        return 0;
    if (attr->srq_type != IBV_SRQT_XRC)
        return EOPNOTSUPP;
    if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0 || attr->xrcd == NULL) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
        err = rdma_device_xrcd(obj_id(id)->device, &attr->xrcd);
    }
    if (err == 0 && ((attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0 || attr->cq == NULL)) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
        err = qp_need_recv_cq(id, attr->attr.max_wr);
        attr->cq = id->recv_cq;
    }
    return err;
}

RDMACM_ABI int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    if (attr == NULL || id->verbs == NULL || id->srq != NULL)
        return rdma_fail(EINVAL);
    int err = srq_prepare(id, attr);
    struct ibv_srq *srq = err == 0 ? ibv_create_srq_ex(id->verbs, attr) : NULL;
    if (srq == NULL) {
        err = err != 0 ? err : errno;
        qp_release_cqs(id);
        return rdma_fail(err);
    }
    id->pd = attr->pd;
    id->srq = srq;
    obj_id(id)->srq_on_recv_cq =
        (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) != 0 && attr->cq == id->recv_cq;
    return 0;
}

RDMACM_ABI int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
                               struct ibv_srq_init_attr *init)
{
    if (init == NULL)
        return rdma_fail(EINVAL);
    struct ibv_srq_init_attr_ex attr = {
        .srq_context = init->srq_context,
        .attr = init->attr,
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
        .pd = pd,
    };
    if (rdma_create_srq_ex(id, &attr) != 0)
        return -1;
    init->attr = attr.attr;
    return 0;
}

RDMACM_ABI void rdma_destroy_srq(struct rdma_cm_id *id)
{
    if (id->srq == NULL)
        return;
    ibv_destroy_srq(id->srq);
    id->srq = NULL;
    obj_id(id)->srq_on_recv_cq = false;
    qp_release_cqs(id);
}
