/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_mr.c: memory regions.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "verbs/ibv_memory.h"

enum {
    /* Hints (relaxed ordering): one who does not know them may ignore them. */
    MR_ACCESS_HINTS = IBV_ACCESS_OPTIONAL_RANGE,
    /* Page size is nothing to us. */
    MR_ACCESS_NO_EFFECT = IBV_ACCESS_HUGETLB,
};

struct ibv_mr_obj *ibv_mr_new(struct ibv_pd *pd, void *addr, size_t length)
{
    struct ibv_mr_obj *obj = calloc(1, sizeof(*obj));

    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    obj->ibv.context = pd->context;
    obj->ibv.pd = pd;
    obj->ibv.addr = addr;
    obj->ibv.length = length;
    return obj;
}

static void mr_set_keys(struct ibv_mr_obj *obj)
{
    obj->ibv.lkey = verbena_mr_key(obj->mr);
    obj->ibv.rkey = obj->ibv.lkey;
}

struct ibv_mr *ibv_mr_born(struct ibv_mr_obj *obj, int err)
{
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    mr_set_keys(obj);
    obj->ibv.handle = obj_born(obj->ibv.context);
    obj_pd_use(obj->ibv.pd, 1);
    return &obj->ibv;
}

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                             unsigned access)
{
    access &= ~(unsigned)(MR_ACCESS_HINTS | MR_ACCESS_NO_EFFECT);
    if ((access & ~(unsigned)ACCESS_KNOWN) != 0) {
        errno = EINVAL;
        return NULL;
    }
    if ((access & IBV_ACCESS_ZERO_BASED) != 0)
        iova = 0;
    struct ibv_mr_obj *obj = ibv_mr_new(pd, addr, length);
    if (obj == NULL)
        return NULL;
    return ibv_mr_born(obj, verbena_mr_reg(obj_ctx(pd->context)->host, obj_pd(pd)->pd, addr, length,
                                           iova, access, &obj->mr));
}

struct ibv_mr *ibv_alloc_null_mr_op(struct ibv_pd *pd)
{
    struct ibv_mr_obj *obj = ibv_mr_new(pd, NULL, SIZE_MAX);

    if (obj == NULL)
        return NULL;
    return ibv_mr_born(obj,
                       verbena_mr_reg_null(obj_ctx(pd->context)->host, obj_pd(pd)->pd, &obj->mr));
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
    if (obj->dm != NULL)
        ibv_dm_unuse(obj->dm);
    obj_pd_use(mr->pd, -1);
    free(obj);
    obj_died(context);
    return 0;
}

static int mr_change_check(const struct ibv_mr_obj *obj, int flags, const struct ibv_pd *pd,
                           const void *addr, size_t length, unsigned access)
{
    bool translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;

    if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0)
        return EINVAL;
    if (translation && (addr == NULL || length == 0 || obj->dm != NULL))
        return EINVAL;
    if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && (pd == NULL || pd->context != obj->ibv.context))
        return EINVAL;
    if ((flags & IBV_REREG_MR_CHANGE_ACCESS) == 0)
        return access != 0 ? EINVAL : 0;
    /* Device memory has no addresses but those from 0 on. */
    if (obj->dm != NULL && (access & (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
                                      IBV_ACCESS_MW_BIND)) != IBV_ACCESS_ZERO_BASED)
        return EINVAL;
    return (access & ~(unsigned)ACCESS_KNOWN) != 0 ? EINVAL : 0;
}

/* Whatever fails leaves the region as it was. A new translation has new keys, other changes keep
 * them. */
VERBS_ABI int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
                           size_t length, int access_flags)
{
    struct ibv_mr_obj *obj = (struct ibv_mr_obj *)mr;
    unsigned access = (unsigned)access_flags & ~(unsigned)(MR_ACCESS_HINTS | MR_ACCESS_NO_EFFECT);

    int err = mr_change_check(obj, flags, pd, addr, length, access);
    if (err == 0)
        err = -verbena_mr_change(obj_ctx(mr->context)->host, &obj->mr, (unsigned)flags,
                                 pd != NULL ? obj_pd(pd)->pd : NULL, addr, length, access);
    if (err != 0) {
        errno = err;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
        mr->addr = addr;
        mr->length = length;
    }
    if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) {
        obj_pd_use(mr->pd, -1);
        obj_pd_use(pd, 1);
        mr->pd = pd;
    }
    mr_set_keys(obj);
    return 0;
}

/* Pages come when they are used, at no great cost; here they come before. It is done when the call
 * returns, flushed or not. */
int ibv_advise_mr_op(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *sg_list, uint32_t num_sge)
{
    bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;

    if (!write && advice != IBV_ADVISE_MR_ADVICE_PREFETCH &&
        advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return EOPNOTSUPP;
    if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) != 0 || num_sge == 0 || num_sge > INT_MAX)
        return EINVAL;
    return -verbena_mr_prefetch(obj_ctx(pd->context)->host, obj_pd(pd)->pd,
                                (const struct nic_sge *)(const void *)sg_list, (int)num_sge, write);
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
