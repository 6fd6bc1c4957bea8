/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_mr.c: memory regions.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/ibv_objects.h"

enum {
    /* Hints (relaxed ordering): one who does not know them may ignore them. */
    MR_ACCESS_HINTS = IBV_ACCESS_OPTIONAL_RANGE,
    MR_ACCESS_UNSUPPORTED = IBV_ACCESS_ON_DEMAND,
    /* Page size is nothing to us. */
    MR_ACCESS_NO_EFFECT = IBV_ACCESS_HUGETLB,
};

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                             unsigned access)
{
    access &= ~(unsigned)(MR_ACCESS_HINTS | MR_ACCESS_NO_EFFECT);
    if ((access & MR_ACCESS_UNSUPPORTED) != 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if ((access & ~(unsigned)ACCESS_KNOWN) != 0) {
        errno = EINVAL;
        return NULL;
    }
    if ((access & IBV_ACCESS_ZERO_BASED) != 0)
        iova = 0;
    struct ibv_mr_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int err = verbena_mr_reg(obj_ctx(pd->context)->host, obj_pd(pd)->pd, addr, length, iova, access,
                             &obj->mr);
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->ibv.context = pd->context;
    obj->ibv.pd = pd;
    obj->ibv.addr = addr;
    obj->ibv.length = length;
    obj->ibv.lkey = verbena_mr_key(obj->mr);
    obj->ibv.rkey = obj->ibv.lkey;
    obj->ibv.handle = obj_born(pd->context);
    return &obj->ibv;
}

#undef ibv_reg_mr
VERBS_ABI struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return mr_reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

#undef ibv_reg_mr_iova
VERBS_ABI struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
                                         uint64_t iova, int access)
{
    return mr_reg(pd, addr, length, iova, (unsigned)access);
}

VERBS_ABI struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                          uint64_t iova, unsigned access)
{
    return mr_reg(pd, addr, length, iova, access);
}

VERBS_ABI int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct ibv_mr_obj *obj = (struct ibv_mr_obj *)mr;
    struct ibv_context *context = mr->context;

    int err = verbena_mr_dereg(obj_ctx(context)->host, obj->mr);
    if (err != 0)
        return -err;
    free(obj);
    obj_died(context);
    return 0;
}

/* The region stays valid as it is. */
VERBS_ABI int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
                           size_t length, int access)
{
    (void)mr;
    (void)flags;
    (void)pd;
    (void)addr;
    (void)length;
    (void)access;
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

VERBS_ABI struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                           uint64_t iova, int fd, int access)
{
    (void)pd;
    (void)offset;
    (void)length;
    (void)iova;
    (void)fd;
    (void)access;
    errno = EOPNOTSUPP;
    return NULL;
}

VERBS_ABI struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd;
    (void)mr_handle;
    errno = EOPNOTSUPP;
    return NULL;
}

VERBS_ABI void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}
