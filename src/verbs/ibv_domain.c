/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_domain.c: thread domains and parent domains: a protection domain under another name, with
 * advice on how its objects will be used. The engine's locks cost nothing worth saving when nobody
 * else wants them, and its queues are its own memory, so the advice is taken and not followed:
 * allocators of a program are never called.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/ibv_memory.h"

struct ibv_td_obj {
    struct ibv_td ibv;
    _Atomic uint32_t users; /* parent domains */
};

struct ibv_td *ibv_alloc_td_op(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    if (attr->comp_mask != 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    struct ibv_td_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    obj->ibv.context = context;
    obj_born(context);
    return &obj->ibv;
}

int ibv_dealloc_td_op(struct ibv_td *td)
{
    struct ibv_td_obj *obj = (struct ibv_td_obj *)td;
    struct ibv_context *context = td->context;

    if (atomic_load(&obj->users) != 0)
        return EBUSY;
    free(obj);
    obj_died(context);
    return 0;
}

struct ibv_pd *ibv_alloc_parent_domain_op(struct ibv_context *context,
                                          struct ibv_parent_domain_init_attr *attr)
{
    const uint32_t allocators = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
    const uint32_t known = allocators | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    struct ibv_td_obj *td = (struct ibv_td_obj *)attr->td;

    if ((attr->comp_mask & ~known) != 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (attr->pd == NULL || attr->pd->context != context ||
        (td != NULL && td->ibv.context != context) ||
        ((attr->comp_mask & allocators) != 0 && (attr->alloc == NULL || attr->free == NULL))) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_pd_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int err = ibv_pd_hold(attr->pd); /* as long as it lives */
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->pd = obj_pd(attr->pd)->pd;
    obj->parent = attr->pd;
    obj->td = td;
    obj->ibv.context = context;
    obj->ibv.handle = obj_born(context);
    obj_pd_use(attr->pd, 1);
    if (td != NULL)
        atomic_fetch_add(&td->users, 1);
    return &obj->ibv;
}

int ibv_dealloc_parent_domain(struct ibv_pd_obj *domain)
{
    struct ibv_context *context = domain->ibv.context;

    if (atomic_load(&domain->users) != 0)
        return EBUSY;
    if (domain->td != NULL)
        atomic_fetch_sub(&domain->td->users, 1);
    obj_pd_use(domain->parent, -1);
    ibv_pd_release(&domain->ibv);
    free(domain);
    obj_died(context);
    return 0;
}
