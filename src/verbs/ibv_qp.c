/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_qp.c: queue pairs: create, modify, query, destroy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/ibv_convert.h"
#include "verbs/ibv_objects.h"

/* 0; EINVAL: nobody's type; EOPNOTSUPP: one that this device does not have. */
static int qp_check_type(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return 0;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_DRIVER:
        return EOPNOTSUPP;
    default:
        return EINVAL;
    }
}

/* What a QP is made of; NULL what its type does not have, whatever the program gave. */
struct qp_parts {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_xrcd *xrcd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
};

static bool is_foreign(const struct qp_parts *p, const struct ibv_cq *cq)
{
    return cq == NULL || cq->context != p->context;
}

/* parts: context, PD and XRC domain on entry. */
static int qp_check_init(struct qp_parts *parts, const struct ibv_qp_init_attr *init)
{
    int err = qp_check_type(init->qp_type);
    if (err != 0)
        return err;
    if (init->qp_type == IBV_QPT_XRC_RECV) {
        parts->pd = NULL;
        return parts->xrcd != NULL && parts->xrcd->context == parts->context ? 0 : EINVAL;
    }
    if (parts->pd == NULL || parts->pd->context != parts->context)
        return EINVAL;
    parts->xrcd = NULL;
    parts->send_cq = init->send_cq;
    if (is_foreign(parts, parts->send_cq))
        return EINVAL;
    if (init->qp_type == IBV_QPT_XRC_SEND)
        return 0;
    parts->recv_cq = init->recv_cq;
    parts->srq = init->srq;
    if (is_foreign(parts, parts->recv_cq))
        return EINVAL;
    /* An XRC SRQ serves those that name it, not one QP. */
    if (parts->srq != NULL && (parts->srq->context != parts->context || obj_srq(parts->srq)->xrc))
        return EINVAL;
    return 0;
}

/* Events, and what destroying waits with. */
void ibv_qp_init_obj(struct ibv_qp_obj *obj)
{
    static const int types[QP_EVENTS] = {
        IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
        IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_LAST_WQE_REACHED,
    };

    for (unsigned i = 0; i < QP_EVENTS; i++) {
        obj->event[i].owner = obj;
        obj->event[i].type = types[i];
    }
    LIST_INIT(&obj->openers);
    pthread_mutex_init(&obj->pub.qp.mutex, NULL);
    pthread_cond_init(&obj->pub.qp.cond, NULL);
}

/* What the program sees of a new QP. */
static void qp_init_public(struct ibv_qp *qp, const struct qp_parts *parts,
                           const struct ibv_qp_init_attr *init)
{
    qp->context = parts->context;
    qp->qp_context = init->qp_context;
    qp->pd = parts->pd;
    qp->send_cq = parts->send_cq;
    qp->recv_cq = parts->recv_cq;
    qp->srq = parts->srq;
    qp->qp_type = init->qp_type;
    qp->state = IBV_QPS_RESET;
}

static struct ibv_qp *qp_create_with(struct qp_parts parts, struct ibv_qp_init_attr *init,
                                     bool block_self_loopback)
{
    int err = qp_check_init(&parts, init);
    struct ibv_qp_obj *obj = err == 0 ? calloc(1, sizeof(*obj)) : NULL;
    if (obj == NULL) {
        errno = err != 0 ? err : ENOMEM;
        return NULL;
    }
    struct qp_init n = {
        .type = (enum qp_type)init->qp_type,
        .pd = parts.pd != NULL ? obj_pd(parts.pd)->pd : NULL,
        .send_cq = parts.send_cq != NULL ? obj_cq(parts.send_cq)->cq : NULL,
        .recv_cq = parts.recv_cq != NULL ? obj_cq(parts.recv_cq)->cq : NULL,
        .srq = parts.srq != NULL ? obj_srq(parts.srq)->srq : NULL,
        .xrcd = parts.xrcd != NULL ? obj_xrcd(parts.xrcd)->xrcd : NULL,
        .sq_sig_all = init->sq_sig_all != 0,
        .owner = obj,
        .block_self_loopback = block_self_loopback,
    };
    convert_cap_to_nic(&init->cap, &n.cap);
    if (parts.srq != NULL) { /* the QP has no receive queue of its own */
        n.cap.max_recv_wr = 0;
        n.cap.max_recv_sge = 0;
    }
    obj->host = obj_ctx(parts.context)->host;
    obj->sq_sig_all = n.sq_sig_all;
    qp_init_public(&obj->pub.qp, &parts, init);
    ibv_qp_init_obj(obj); /* before the engine knows the owner: events may come at once */
    err = parts.pd != NULL ? ibv_pd_hold(parts.pd) : 0;
    if (err == 0) {
        err = verbena_qp_create(obj->host, &n, &obj->qp);
        if (parts.pd != NULL)
            ibv_pd_release(parts.pd);
    }
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    convert_cap_from_nic(&n.cap, &init->cap);
    obj->pub.qp.qp_num = verbena_qp_number(obj->qp);
    obj->pub.qp.handle = obj_born(parts.context);
    if (parts.xrcd != NULL)
        ibv_tgt_made(obj, n.xrcd);
    obj_pd_use(parts.pd, 1);
    return &obj->pub.qp;
}

VERBS_ABI struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    return qp_create_with((struct qp_parts){.context = pd->context, .pd = pd}, init, false);
}

/* Comes here only with more than a PD in the mask. */
struct ibv_qp *ibv_create_qp_ex_op(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                           IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    struct qp_parts parts = {.context = context};

    uint32_t flags =
        (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 ? attr->create_flags : 0;
    uint32_t offered = attr->qp_type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
    if ((attr->comp_mask & ~known) != 0 || (flags & ~offered) != 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0)
        parts.pd = attr->pd;
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0)
        parts.xrcd = attr->xrcd;
    /* The extended struct starts as the plain one. */
    struct ibv_qp *qp = qp_create_with(parts, (struct ibv_qp_init_attr *)(void *)attr, flags != 0);
    if (qp == NULL || (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0)
        return qp;
    int err = ibv_qp_ex_init(obj_qp(qp), attr->send_ops_flags, &attr->cap);
    if (err != 0) {
        ibv_destroy_qp(qp);
        errno = err;
        return NULL;
    }
    return qp;
}

VERBS_ABI int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp_obj *obj = obj_qp(qp);
    struct nic_qp_attr n;

    int err = convert_qp_attr_to_nic(attr, (unsigned)mask, &n);
    if (err == 0 && (mask & IBV_QP_PORT) != 0 && attr->port_num != VERBS_PORT)
        err = -EINVAL;
    if (err == 0 && (mask & IBV_QP_AV) != 0)
        err = ibv_ah_path(qp->context, &attr->ah_attr, &n.path);
    bool ud_ready =
        qp->qp_type == IBV_QPT_UD && (mask & IBV_QP_STATE) != 0 && attr->qp_state == IBV_QPS_RTR;
    if (err == 0 && ((mask & IBV_QP_PATH_MTU) != 0 || ud_ready)) {
        struct verbena_device info;
        err = verbena_device_query(obj->host, &info);
        n.active_mtu_bytes = err == 0 ? info.active_mtu_bytes : 0;
        n.line_mbps = err == 0 ? info.speed_mbps : 0;
    }
    if (err == 0)
        err = verbena_qp_modify(obj->host, obj->qp, &n, (unsigned)mask);
    if (err != 0)
        return -err;
    pthread_mutex_lock(&qp->mutex);
    if ((mask & IBV_QP_STATE) != 0)
        qp->state = attr->qp_state;
    if ((mask & IBV_QP_STATE) != 0 && attr->qp_state == IBV_QPS_RESET)
        memset(&obj->ah_attr, 0, sizeof(obj->ah_attr));
    if ((mask & IBV_QP_AV) != 0)
        obj->ah_attr = attr->ah_attr;
    pthread_mutex_unlock(&qp->mutex);
    return 0;
}

/* The typical size of packets would be of use to who cannot know their sizes. */
int ibv_modify_qp_rate_limit_op(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
    const struct nic_qp_attr n = {
        .rate_limit_kbps = attr->rate_limit,
        .max_burst_bytes = attr->max_burst_sz,
    };

    if (attr->comp_mask != 0)
        return EOPNOTSUPP;
    return -verbena_qp_modify(obj_qp(qp)->host, obj_qp(qp)->qp, &n, QP_ATTR_RATE_LIMIT);
}

VERBS_ABI int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                           struct ibv_qp_init_attr *init)
{
    struct ibv_qp_obj *obj = obj_qp(qp);
    struct nic_qp_attr n;
    struct nic_qp_cap cap;

    (void)attr_mask; /* a hint: all of it is at hand */
    int err = verbena_qp_query(obj->host, obj->qp, &n, &cap);
    if (err != 0)
        return -err;
    convert_qp_attr_from_nic(&n, attr);
    convert_cap_from_nic(&cap, &attr->cap);
    pthread_mutex_lock(&qp->mutex);
    attr->ah_attr = obj->ah_attr;
    qp->state = attr->qp_state;
    pthread_mutex_unlock(&qp->mutex);
    memset(init, 0, sizeof(*init));
    init->qp_context = qp->qp_context;
    init->send_cq = qp->send_cq;
    init->recv_cq = qp->recv_cq;
    init->srq = qp->srq;
    init->cap = attr->cap;
    init->qp_type = qp->qp_type;
    init->sq_sig_all = obj->sq_sig_all;
    return 0;
}

/* What nobody got is taken back, what was got is waited for. */
static void qp_end_events(struct ibv_qp_obj *obj)
{
    struct ibv_qp *qp = &obj->pub.qp;
    uint32_t delivered = 0;

    for (unsigned i = 0; i < QP_EVENTS; i++)
        delivered += event_queue_purge(&obj_ctx(qp->context)->async, &obj->event[i]);
    event_await_acks(&qp->mutex, &qp->cond, &qp->events_completed, delivered);
}

static void qp_free_obj(struct ibv_qp_obj *obj)
{
    struct ibv_context *context = obj->pub.qp.context;

    ibv_qp_ex_fini(obj);
    pthread_cond_destroy(&obj->pub.qp.cond);
    pthread_mutex_destroy(&obj->pub.qp.mutex);
    free(obj);
    obj_died(context);
}

/* One of several handles, perhaps: the QP goes with the last. */
static int qp_destroy_target(struct ibv_qp_obj *obj)
{
    bool keep;

    /* The engine is asked for the last handle only, and would say it. */
    if (event_queue_inherited(&obj_ctx(obj->pub.qp.context)->async))
        return EIO;
    struct ibv_qp_obj *maker = ibv_tgt_leave(obj, &keep);
    int err = maker != NULL ? verbena_qp_destroy(maker->host, maker->qp) : 0;

    if (err != 0) {
        ibv_tgt_return(obj, maker);
        return -err;
    }
    qp_end_events(obj);
    if (!keep)
        qp_free_obj(obj);
    if (maker != NULL && maker != obj)
        qp_free_obj(maker); /* its program is done with it long since */
    return 0;
}

VERBS_ABI int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct ibv_qp_obj *obj = obj_qp(qp);

    if (qp->qp_type == IBV_QPT_XRC_RECV)
        return qp_destroy_target(obj);
    int err = verbena_qp_destroy(obj->host, obj->qp);
    if (err != 0)
        return -err;
    obj_pd_use(qp->pd, -1);
    qp_end_events(obj);
    qp_free_obj(obj);
    return 0;
}

/* Of the bytes of one message only this is promised: the last one comes last. */
VERBS_ABI int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp;
    (void)op;
    (void)flags;
    return 0;
}

static int qp_ece_result(int err)
{
    if (err != 0)
        errno = err;
    return err;
}

/* Options that this device does not know are left out, as those of a newer one. Vendor 0 is who has
 * no ECE; another vendor's options mean nothing here. */
VERBS_ABI int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    struct ibv_qp_obj *obj = obj_qp(qp);

    if (ece->vendor_id == 0)
        return qp_ece_result(EOPNOTSUPP);
    if (ece->vendor_id != VERBS_VENDOR_ID || ece->comp_mask != 0)
        return qp_ece_result(EINVAL);
    return qp_ece_result(-verbena_qp_set_ece(obj->host, obj->qp, &ece->options));
}

VERBS_ABI int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    struct ibv_qp_obj *obj = obj_qp(qp);

    *ece = (struct ibv_ece){.vendor_id = VERBS_VENDOR_ID};
    return qp_ece_result(-verbena_qp_query_ece(obj->host, obj->qp, &ece->options));
}

/* On RoCE a group is an address, the LID says nothing. */
VERBS_ABI int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct net_addr group;

    (void)lid;
    memcpy(group.b, gid->raw, sizeof(group.b));
    return -verbena_mcast_attach(obj_qp(qp)->host, obj_qp(qp)->qp, &group);
}

VERBS_ABI int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct net_addr group;

    (void)lid;
    memcpy(group.b, gid->raw, sizeof(group.b));
    return -verbena_mcast_detach(obj_qp(qp)->host, obj_qp(qp)->qp, &group);
}
