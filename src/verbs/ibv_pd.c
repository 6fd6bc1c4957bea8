/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_pd.c: protection domains.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/ibv_memory.h"

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
    return &obj->ibv;
}

VERBS_ABI int ibv_dealloc_pd(struct ibv_pd *pd)
{
    struct ibv_context *context = pd->context;

    if (obj_pd(pd)->parent != NULL)
        return ibv_dealloc_parent_domain(obj_pd(pd));
    int err = verbena_pd_destroy(obj_ctx(context)->host, obj_pd(pd)->pd);
    if (err != 0)
        return -err;
    free(obj_pd(pd));
    obj_died(context);
    return 0;
}

VERBS_ABI struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    (void)context;
    (void)pd_handle;
    errno = EOPNOTSUPP;
    return NULL;
}

VERBS_ABI void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}
