/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_xrc.c: domains of extended reliable connections. Those who open one with the same file share
 * it, as far as they are of one process. DEVIATES: ibv_open_xrcd(3): processes do not share
 * domains: who joins one that another has is refused; with O_CREAT alone it gets one of its own.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/ibv_objects.h"

struct ibv_xrcd *ibv_open_xrcd_op(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

    if (attr->comp_mask != both) {
        errno = (attr->comp_mask & ~both) != 0 ? EOPNOTSUPP : EINVAL;
        return NULL;
    }
    struct ibv_xrcd_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    obj->ibv.context = context;
    int err = verbena_xrcd_open(obj_ctx(context)->host, attr->fd, attr->oflags, &obj->xrcd);
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj_born(context);
    return &obj->ibv;
}

int ibv_close_xrcd_op(struct ibv_xrcd *xrcd)
{
    struct ibv_xrcd_obj *obj = obj_xrcd(xrcd);
    struct ibv_context *context = xrcd->context;

    int err = verbena_xrcd_close(obj_ctx(context)->host, obj->xrcd);
    if (err != 0)
        return -err;
    free(obj);
    obj_died(context);
    return 0;
}

/* Targets that were made and are not gone; guards their lists of openers, too. */
static pthread_mutex_t tgt_mutex = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, ibv_qp_obj) makers = LIST_HEAD_INITIALIZER(makers);

static void tgt_lock(void)
{
    pthread_mutex_lock(&tgt_mutex);
}

static void tgt_unlock(void)
{
    pthread_mutex_unlock(&tgt_mutex);
}

/* A child must not inherit the mutex from a thread that it does not have: callbacks take it. */
__attribute__((constructor)) static void tgt_watch_fork(void)
{
    static const struct verbena_fork_hook hook = {tgt_lock, tgt_unlock, tgt_unlock};

    verbena_fork_hook(VERBENA_FORK_VERBS_TARGET, &hook);
}

void ibv_tgt_made(struct ibv_qp_obj *obj, struct xrcd *xrcd)
{
    tgt_lock();
    obj->xrcd = xrcd;
    LIST_INSERT_HEAD(&makers, obj, tgt_link);
    tgt_unlock();
}

/* Into the list of those who have it open. NULL: no such target in the domain. */
static struct ibv_qp_obj *tgt_join(struct ibv_qp_obj *obj, const struct xrcd *xrcd, uint32_t number)
{
    struct ibv_qp_obj *maker;

    tgt_lock();
    LIST_FOREACH(maker, &makers, tgt_link)
    if (maker->xrcd == xrcd && maker->pub.qp.qp_num == number)
        break;
    obj->maker = maker;
    if (maker != NULL) {
        obj->qp = maker->qp;
        LIST_INSERT_HEAD(&maker->openers, obj, tgt_link);
    }
    tgt_unlock();
    return maker;
}

struct ibv_qp *ibv_open_qp_op(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;

    if ((attr->comp_mask & ~(need | IBV_QP_OPEN_ATTR_CONTEXT)) != 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if ((attr->comp_mask & need) != need || attr->qp_type != IBV_QPT_XRC_RECV ||
        attr->xrcd->context != context) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_qp_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    struct ibv_qp *qp = &obj->pub.qp;
    obj->host = obj_ctx(context)->host;
    qp->context = context;
    if ((attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0)
        qp->qp_context = attr->qp_context;
    qp->qp_num = attr->qp_num;
    qp->qp_type = IBV_QPT_XRC_RECV;
    ibv_qp_init_obj(obj);
    qp->handle = obj_born(context);
    if (tgt_join(obj, obj_xrcd(attr->xrcd)->xrcd, attr->qp_num) == NULL) {
        obj_died(context);
        free(obj);
        errno = EINVAL;
        return NULL;
    }
    return qp;
}

struct ibv_qp_obj *ibv_tgt_leave(struct ibv_qp_obj *obj, bool *keep)
{
    struct ibv_qp_obj *maker = obj->maker != NULL ? obj->maker : obj;

    tgt_lock();
    if (maker == obj)
        obj->left = true;
    else
        LIST_REMOVE(obj, tgt_link);
    bool last = maker->left && LIST_EMPTY(&maker->openers);
    if (last)
        LIST_REMOVE(maker, tgt_link);
    tgt_unlock();
    *keep = maker == obj && !last;
    return last ? maker : NULL;
}

void ibv_tgt_return(struct ibv_qp_obj *obj, struct ibv_qp_obj *maker)
{
    tgt_lock();
    if (maker == obj)
        obj->left = false;
    else
        LIST_INSERT_HEAD(&maker->openers, obj, tgt_link);
    LIST_INSERT_HEAD(&makers, maker, tgt_link);
    tgt_unlock();
}

static void tgt_push(struct ibv_qp_obj *obj, int type)
{
    for (unsigned i = 0; i < QP_EVENTS; i++)
        if (obj->event[i].type == type)
            event_queue_push(&obj_ctx(obj->pub.qp.context)->async, &obj->event[i]);
}

void ibv_tgt_event(struct ibv_qp_obj *maker, int type)
{
    struct ibv_qp_obj *obj;

    tgt_lock();
    if (!maker->left)
        tgt_push(maker, type);
    LIST_FOREACH(obj, &maker->openers, tgt_link)
    tgt_push(obj, type);
    tgt_unlock();
}
