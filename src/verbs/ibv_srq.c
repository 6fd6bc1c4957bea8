/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_srq.c: shared receive queues.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/ibv_objects.h"

/* ex: of an XRC domain; else NULL. */
static struct ibv_srq *srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *init,
                                  const struct ibv_srq_init_attr_ex *ex)
{
    struct ibv_srq_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    struct ibv_context *context = pd->context;
    obj->host = obj_ctx(context)->host;
    obj->ibv.context = context;
    obj->ibv.srq_context = init->srq_context;
    obj->ibv.pd = pd;
    obj->event[0].type = IBV_EVENT_SRQ_ERR;
    obj->event[1].type = IBV_EVENT_SRQ_LIMIT_REACHED;
    obj->event[0].owner = obj;
    obj->event[1].owner = obj;
    /* Before the engine knows the owner: events may come at once. */
    pthread_mutex_init(&obj->ibv.mutex, NULL);
    pthread_cond_init(&obj->ibv.cond, NULL);
    uint32_t max_wr = init->attr.max_wr, max_sge = init->attr.max_sge;
    /* The limit is armed by modify; at creation it is ignored, as everywhere. */
    struct pd *engine_pd = obj_pd(pd)->pd;
    obj->xrc = ex != NULL;
    int err = ibv_pd_hold(pd);
    if (err == 0) {
        err = ex == NULL
                  ? verbena_srq_create(obj->host, engine_pd, &max_wr, &max_sge, 0, obj, &obj->srq)
                  : verbena_xrc_srq_create(obj->host, engine_pd, obj_xrcd(ex->xrcd)->xrcd,
                                           obj_cq(ex->cq)->cq, &max_wr, &max_sge, obj, &obj->srq);
        ibv_pd_release(pd);
    }
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    init->attr.max_wr = max_wr;
    init->attr.max_sge = max_sge;
    obj->ibv.handle = obj_born(context);
    obj_pd_use(pd, 1);
    return &obj->ibv;
}

VERBS_ABI struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    return srq_create(pd, init, NULL);
}

/* Comes here only with more than a PD and the basic type. */
struct ibv_srq *ibv_create_srq_ex_op(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t xrc = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                         IBV_SRQ_INIT_ATTR_CQ;

    if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 ||
        (attr->srq_type == IBV_SRQT_BASIC && (attr->comp_mask & ~xrc) == 0))
        errno = EINVAL; /* no PD, or a domain or CQ that a basic one does not have */
    else if (attr->srq_type != IBV_SRQT_XRC || (attr->comp_mask & ~xrc) != 0)
        errno = EOPNOTSUPP;
    else if (attr->comp_mask != xrc || attr->pd->context != context ||
             attr->xrcd->context != context || attr->cq->context != context)
        errno = EINVAL;
    else /* the extended struct starts as the plain one */
        return srq_create(attr->pd, (struct ibv_srq_init_attr *)(void *)attr, attr);
    return NULL;
}

int ibv_get_srq_num_op(struct ibv_srq *srq, uint32_t *number)
{
    if (!obj_srq(srq)->xrc)
        return EINVAL;
    *number = verbena_xrc_srq_number(obj_srq(srq)->srq);
    return 0;
}

VERBS_ABI int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    struct ibv_srq_obj *obj = obj_srq(srq);
    int err = 0;

    if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0)
        return EINVAL;
    if ((mask & IBV_SRQ_MAX_WR) != 0) {
        uint32_t max_wr = attr->max_wr;
        if (max_wr == 0)
            return EINVAL;
        err = verbena_srq_resize(obj->host, obj->srq, &max_wr);
        if (err == 0)
            attr->max_wr = max_wr;
    }
    if (err == 0 && (mask & IBV_SRQ_LIMIT) != 0)
        err = verbena_srq_set_limit(obj->host, obj->srq, attr->srq_limit);
    return -err;
}

VERBS_ABI int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    verbena_srq_query(obj_srq(srq)->srq, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
    return 0;
}

VERBS_ABI int ibv_destroy_srq(struct ibv_srq *srq)
{
    struct ibv_srq_obj *obj = obj_srq(srq);
    struct ibv_context *context = srq->context;

    int err = verbena_srq_destroy(obj->host, obj->srq);
    if (err != 0)
        return -err;
    obj_pd_use(srq->pd, -1);
    uint32_t delivered = 0;
    for (unsigned i = 0; i < 2; i++)
        delivered += event_queue_purge(&obj_ctx(context)->async, &obj->event[i]);
    event_await_acks(&srq->mutex, &srq->cond, &srq->events_completed, delivered);
    pthread_cond_destroy(&srq->cond);
    pthread_mutex_destroy(&srq->mutex);
    free(obj);
    obj_died(context);
    return 0;
}
