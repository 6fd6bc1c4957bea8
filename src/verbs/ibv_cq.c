/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_cq.c: completion queues.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "verbs/ibv_convert.h"
#include "verbs/ibv_objects.h"

enum { CQ_POLL_BATCH = 16 };

/* NULL and errno when it cannot be. */
struct ibv_cq_obj *ibv_cq_new(struct ibv_context *context, int64_t cqe, void *cq_context,
                              struct ibv_comp_channel *channel, int64_t comp_vector)
{
    if (cqe < 1 || cqe > INT_MAX || comp_vector < 0 || comp_vector >= context->num_comp_vectors ||
        (channel != NULL && channel->context != context)) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_cq_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    obj->host = obj_ctx(context)->host;
    obj->comp_event.owner = obj;
    obj->err_event.owner = obj;
    obj->err_event.type = IBV_EVENT_CQ_ERR;
    obj->ibv.context = context;
    obj->ibv.channel = channel;
    obj->ibv.cq_context = cq_context;
    /* Before the engine knows the owner: events may come at once. */
    pthread_mutex_init(&obj->ibv.mutex, NULL);
    pthread_cond_init(&obj->ibv.cond, NULL);
    pthread_mutex_init(&obj->poll_mutex, NULL);
    int err = verbena_cq_create(obj->host, (int)cqe, obj, &obj->cq);
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->ibv.cqe = verbena_cq_capacity(obj->cq);
    obj->ibv.handle = obj_born(context);
    if (channel != NULL) {
        struct ibv_channel_obj *ch = (struct ibv_channel_obj *)channel;
        channel->refcnt = (int)atomic_fetch_add(&ch->users, 1) + 1;
    }
    return obj;
}

VERBS_ABI struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                       struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq_obj *obj = ibv_cq_new(context, cqe, cq_context, channel, comp_vector);

    return obj != NULL ? &obj->ibv : NULL;
}

VERBS_ABI int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    struct ibv_cq_obj *obj = obj_cq(cq);

    if (cqe < 1)
        return EINVAL;
    int err = verbena_cq_resize(obj->host, obj->cq, cqe);
    if (err != 0)
        return -err;
    /* Of threads that resize at once, whoever stores last has seen the size that stays. */
    int now;
    do {
        now = verbena_cq_capacity(obj->cq);
        __atomic_store_n(&cq->cqe, now, __ATOMIC_SEQ_CST);
    } while (verbena_cq_capacity(obj->cq) != now);
    return 0;
}

int ibv_modify_cq_op(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    struct ibv_cq_obj *obj = obj_cq(cq);

    if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
        return EINVAL;
    return -verbena_cq_moderate(obj->host, obj->cq, attr->moderate.cq_count,
                                attr->moderate.cq_period);
}

VERBS_ABI int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct ibv_cq_obj *obj = obj_cq(cq);
    struct ibv_context *context = cq->context;
    struct ibv_channel_obj *ch = (struct ibv_channel_obj *)cq->channel;

    int err = verbena_cq_destroy(obj->host, obj->cq);
    if (err != 0)
        return -err;
    uint32_t errors = event_queue_purge(&obj_ctx(context)->async, &obj->err_event);
    uint32_t completions = ch != NULL ? event_queue_purge(&ch->queue, &obj->comp_event) : 0;
    event_await_acks(&cq->mutex, &cq->cond, &cq->comp_events_completed, completions);
    event_await_acks(&cq->mutex, &cq->cond, &cq->async_events_completed, errors);
    if (obj->pd != NULL)
        obj_pd_use(obj->pd, -1);
    if (ch != NULL)
        ch->ibv.refcnt = (int)atomic_fetch_sub(&ch->users, 1) - 1;
    pthread_mutex_destroy(&obj->poll_mutex);
    pthread_cond_destroy(&cq->cond);
    pthread_mutex_destroy(&cq->mutex);
    free(obj);
    obj_died(context);
    return 0;
}

int ibv_poll_cq_op(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    struct ibv_cq_obj *obj = obj_cq(cq);
    struct nic_wc batch[CQ_POLL_BATCH];
    int done = 0;

    while (done < n) {
        int want = n - done < CQ_POLL_BATCH ? n - done : CQ_POLL_BATCH;
        int got = verbena_cq_poll(obj->host, obj->cq, want, batch);
        if (got < 0)
            return done > 0 ? done : got;
        for (int i = 0; i < got; i++)
            convert_wc(&batch[i], &wc[done + i]);
        done += got;
        if (got < want)
            break;
    }
    return done;
}

int ibv_req_notify_cq_op(struct ibv_cq *cq, int solicited_only)
{
    struct ibv_cq_obj *obj = obj_cq(cq);

    return -verbena_cq_arm(obj->host, obj->cq, solicited_only != 0);
}
