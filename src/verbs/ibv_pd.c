/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_pd.c: protection domains.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/ibv_memory.h"

static struct ibv_pd_obj *pd_of(struct share *s)
{
    return (struct ibv_pd_obj *)(void *)((char *)s - offsetof(struct ibv_pd_obj, share));
}

static void pd_free(struct ibv_pd_obj *obj)
{
    struct ibv_context *context = obj->ibv.context;

    free(obj);
    obj_died(context);
}

VERBS_ABI struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int err = verbena_pd_create(obj_ctx(context)->host, &obj->pd);
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->ibv.context = context;
    obj->ibv.handle = obj_born(context);
    share_add(&obj->share, context, obj->ibv.handle, VERBENA_SHARE_PD, obj->pd);
    return &obj->ibv;
}

bool ibv_pd_gone(struct ibv_pd *pd)
{
    /* A parent domain counts as a child of what it was made of. */
    return obj_pd(pd)->parent == NULL && obj_pd(pd)->share.gone;
}

static int pd_hold(void *with, void **object)
{
    (void)with;
    verbena_pd_count(*object, 1);
    return 0;
}

int ibv_pd_hold(struct ibv_pd *pd)
{
    if (obj_pd(pd)->parent == NULL)
        return share_change(&obj_pd(pd)->share, pd_hold, NULL);
    verbena_pd_count(obj_pd(pd)->pd, 1);
    return 0;
}

void ibv_pd_release(struct ibv_pd *pd)
{
    verbena_pd_count(obj_pd(pd)->pd, -1);
}

int ibv_pd_end(struct share *s)
{
    return verbena_pd_destroy(obj_ctx(pd_of(s)->ibv.context)->host, s->object);
}

VERBS_ABI int ibv_dealloc_pd(struct ibv_pd *pd)
{
    struct ibv_pd_obj *obj = obj_pd(pd);

    if (obj->parent != NULL)
        return ibv_dealloc_parent_domain(obj);
    int err = share_leave(&obj->share);
    if (err != 0)
        return -err;
    err = ibv_pd_end(&obj->share);
    if (err != 0) {
        share_return(&obj->share);
        return -err;
    }
    pd_free(obj);
    return 0;
}

/* Another process's: one of this process's engine, which has the rest of the handle's life. */
static int pd_copy(struct ibv_pd_obj *obj, struct ibv_context *context, uint32_t handle)
{
    int err = verbena_pd_create(obj_ctx(context)->host, &obj->pd);

    if (err == 0)
        share_add_foreign(&obj->share, context, handle, VERBENA_SHARE_PD, obj->pd);
    return err;
}

VERBS_ABI struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    struct ibv_pd_obj *obj = calloc(1, sizeof(*obj));
    struct verbena_share_reply r;
    int fd;

    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    obj->ibv.context = context; /* before others can destroy it */
    int err = share_import(&obj->share, context, pd_handle, VERBENA_SHARE_PD, &r, &fd);
    if (fd >= 0)
        close(fd);
    if (err == 0)
        obj->pd = obj->share.object;
    else if (err == 1)
        err = pd_copy(obj, context, pd_handle);
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->ibv.handle = pd_handle;
    obj_born(context);
    return &obj->ibv;
}

VERBS_ABI void ibv_unimport_pd(struct ibv_pd *pd)
{
    struct ibv_pd_obj *obj = obj_pd(pd);

    if (obj->parent != NULL)
        return;
    enum share_rest rest = share_let_go(&obj->share);
    if (rest == SHARE_REST_OBJECT)
        return;
    /* A copy goes, but not under what is on it. */
    if (rest == SHARE_REST_COPY && ibv_pd_end(&obj->share) != 0)
        share_return(&obj->share);
    else
        pd_free(obj);
}
