/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_mr.c: memory regions.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

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

static void mr_set_keys(struct ibv_mr_obj *obj, uint32_t key)
{
    obj->ibv.lkey = key;
    obj->ibv.rkey = key;
}

static struct ibv_mr_obj *mr_obj_of(struct share *s)
{
    return (struct ibv_mr_obj *)(void *)((char *)s - offsetof(struct ibv_mr_obj, share));
}

struct ibv_mr *ibv_mr_born(struct ibv_mr_obj *obj, struct mr *mr, int err)
{
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->ibv.handle = obj_born(obj->ibv.context);
    mr_set_keys(obj, verbena_mr_key(mr)); /* before others can destroy it */
    share_add(&obj->share, obj->ibv.context, obj->ibv.handle, VERBENA_SHARE_MR, mr);
    obj_pd_use(obj->ibv.pd, 1);
    return &obj->ibv;
}

int ibv_mr_make(const struct ibv_mr_obj *obj, void *addr, uint64_t length, uint64_t iova,
                unsigned access, struct mr **out)
{
    struct ibv_pd *pd = obj->ibv.pd;

    int err = ibv_pd_hold(pd);
    if (err != 0)
        return err;
    err =
        verbena_mr_reg(obj_ctx(pd->context)->host, obj_pd(pd)->pd, addr, length, iova, access, out);
    ibv_pd_release(pd);
    return err;
}

static int mr_make_null(const struct ibv_mr_obj *obj, struct mr **out)
{
    struct ibv_pd *pd = obj->ibv.pd;

    int err = ibv_pd_hold(pd);
    if (err != 0)
        return err;
    err = verbena_mr_reg_null(obj_ctx(pd->context)->host, obj_pd(pd)->pd, out);
    ibv_pd_release(pd);
    return err;
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
    struct mr *mr = NULL;
    int err = ibv_mr_make(obj, addr, length, iova, access, &mr);
    return ibv_mr_born(obj, mr, err);
}

struct ibv_mr *ibv_alloc_null_mr_op(struct ibv_pd *pd)
{
    struct ibv_mr_obj *obj = ibv_mr_new(pd, NULL, SIZE_MAX);

    if (obj == NULL)
        return NULL;
    struct mr *mr = NULL;
    int err = mr_make_null(obj, &mr);
    return ibv_mr_born(obj, mr, err);
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

int ibv_mr_end(struct share *s)
{
    int err = verbena_mr_dereg(obj_ctx(mr_obj_of(s)->ibv.context)->host, s->object);

    if (err == 0 && s->behind != NULL)
        ibv_dm_unuse(s->behind);
    return err;
}

static void mr_free(struct ibv_mr_obj *obj)
{
    struct ibv_context *context = obj->ibv.context;

    obj_pd_use(obj->ibv.pd, -1);
    free(obj);
    obj_died(context);
}

VERBS_ABI int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct ibv_mr_obj *obj = (struct ibv_mr_obj *)mr;

    int err = share_leave(&obj->share);
    if (err != 0)
        return -err;
    err = ibv_mr_end(&obj->share);
    if (err != 0) {
        share_return(&obj->share);
        return -err;
    }
    mr_free(obj);
    return 0;
}

static int mr_change_check(const struct ibv_mr_obj *obj, int flags, const struct ibv_pd *pd,
                           const void *addr, size_t length, unsigned access)
{
    bool translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;

    if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0)
        return EINVAL;
    if (translation && (addr == NULL || length == 0 || obj->share.behind != NULL))
        return EINVAL;
    if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && (pd == NULL || pd->context != obj->ibv.context))
        return EINVAL;
    if ((flags & IBV_REREG_MR_CHANGE_ACCESS) == 0)
        return access != 0 ? EINVAL : 0;
    /* Device memory has no addresses but those from 0 on. */
    if (obj->share.behind != NULL && (access & (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
                                                IBV_ACCESS_MW_BIND)) != IBV_ACCESS_ZERO_BASED)
        return EINVAL;
    return (access & ~(unsigned)ACCESS_KNOWN) != 0 ? EINVAL : 0;
}

struct mr_change {
    struct verbena_context *host;
    unsigned flags;
    struct ibv_pd *pd;
    void *addr;
    size_t length;
    unsigned access;
    uint32_t key; /* afterwards */
};

static int mr_change(void *with, void **object)
{
    struct mr_change *c = with;
    struct mr *mr = *object;

    if (c->pd != NULL && ibv_pd_gone(c->pd))
        return -EINVAL;
    int err = verbena_mr_change(c->host, &mr, c->flags, c->pd != NULL ? obj_pd(c->pd)->pd : NULL,
                                c->addr, c->length, c->access);
    c->key = verbena_mr_key(mr);
    *object = mr;
    return err;
}

/* Whatever fails leaves the region as it was. A new translation has new keys, other changes keep
 * them. */
VERBS_ABI int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
                           size_t length, int access_flags)
{
    struct ibv_mr_obj *obj = (struct ibv_mr_obj *)mr;
    unsigned access = (unsigned)access_flags & ~(unsigned)(MR_ACCESS_HINTS | MR_ACCESS_NO_EFFECT);

    struct mr_change change = {obj_ctx(mr->context)->host,
                               (unsigned)flags,
                               (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? pd : NULL,
                               addr,
                               length,
                               access,
                               0};
    int err = mr_change_check(obj, flags, pd, addr, length, access);
    if (err == 0)
        err = -share_change(&obj->share, mr_change, &change);
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
    mr_set_keys(obj, change.key);
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

/* Memory of another process is that only which this process has as well. */
int ibv_mr_tell(const struct share *s, struct verbena_share_reply *r, int *fd)
{
    struct verbena_region region;

    verbena_mr_describe(s->object, &region);
    r->length = region.length;
    r->iova = region.iova;
    r->access = region.access;
    r->memory = VERBENA_SHARE_NULL;
    if (region.null)
        return 0;
    if (s->behind != NULL)
        return ibv_dm_tell_region(s->behind, region.addr, r, fd);
    r->memory = VERBENA_SHARE_MAPPED;
    return verbena_mapping_of(region.addr, region.length, &r->mapping);
}

/* A region of this process's engine of the memory that another process told of. */
static int mr_copy(struct ibv_mr_obj *obj, const struct verbena_share_reply *r, int fd,
                   struct mr **mr)
{
    const unsigned writes = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
    void *addr = NULL;

    if (r->memory == VERBENA_SHARE_NULL)
        return mr_make_null(obj, mr);
    if (r->memory == VERBENA_SHARE_MAPPED) {
        int err = verbena_mapping_find(&r->mapping, r->length, (r->access & writes) != 0, &addr);
        if (err != 0)
            return err;
    } else {
        if (fd < 0)
            return -EINVAL;
        obj->share.behind = ibv_dm_map(fd);
        if (obj->share.behind == NULL)
            return -errno;
        addr = ibv_dm_at(obj->share.behind, r->offset, r->length);
    }
    int err = addr == NULL ? -EINVAL : ibv_mr_make(obj, addr, r->length, r->iova, r->access, mr);
    if (err != 0 && obj->share.behind != NULL)
        ibv_dm_unuse(obj->share.behind);
    return err;
}

struct mr_view {
    struct verbena_region region;
    uint32_t key;
};

static int mr_look(void *with, void **object)
{
    struct mr_view *v = with;

    verbena_mr_describe(*object, &v->region);
    v->key = verbena_mr_key(*object);
    return 0;
}

VERBS_ABI struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    struct ibv_mr_obj *obj = ibv_mr_new(pd, NULL, 0);
    struct verbena_share_reply r;
    struct mr_view view;
    int fd;

    if (obj == NULL)
        return NULL;
    int err = share_import(&obj->share, pd->context, mr_handle, VERBENA_SHARE_MR, &r, &fd);
    if (err == 1) {
        struct mr *mr = NULL;
        err = mr_copy(obj, &r, fd, &mr);
        if (err == 0)
            share_add_foreign(&obj->share, pd->context, mr_handle, VERBENA_SHARE_MR, mr);
    }
    if (fd >= 0)
        close(fd);
    if (err == 0) {
        err = share_change(&obj->share, mr_look, &view);
        if (err != 0) /* destroyed through another handle meanwhile */
            share_let_go(&obj->share);
    }
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->ibv.length = view.region.length;
    obj->ibv.handle = mr_handle;
    mr_set_keys(obj, view.key);
    obj_born(pd->context);
    obj_pd_use(pd, 1);
    return &obj->ibv;
}

VERBS_ABI void ibv_unimport_mr(struct ibv_mr *mr)
{
    struct ibv_mr_obj *obj = (struct ibv_mr_obj *)mr;

    enum share_rest rest = share_let_go(&obj->share);
    if (rest == SHARE_REST_OBJECT)
        return;
    if (rest == SHARE_REST_COPY && ibv_mr_end(&obj->share) != 0)
        share_return(&obj->share);
    else
        mr_free(obj);
}
