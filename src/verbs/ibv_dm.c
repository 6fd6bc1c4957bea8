/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_dm.c: device memory: memory of the device's own, which programs reach by copying and through
 * regions. Here the device is this process, and its memory a mapping.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs/ibv_memory.h"

enum {
    DM_ALIGN = 4,         /* of copies, as adapters demand */
    DM_MAX_LOG_ALIGN = 12 /* a page */
};

struct ibv_dm_obj {
    struct ibv_dm ibv;
    uint8_t *memory;
    size_t length;
    _Atomic uint32_t regions;
};

static struct ibv_dm_obj *dm_obj(struct ibv_dm *dm)
{
    return (struct ibv_dm_obj *)dm;
}

static bool dm_holds(const struct ibv_dm_obj *obj, uint64_t offset, size_t length)
{
    return offset <= obj->length && length <= obj->length - offset;
}

static bool dm_copy_allowed(const struct ibv_dm_obj *obj, uint64_t offset, size_t length)
{
    return dm_holds(obj, offset, length) && offset % DM_ALIGN == 0 && length % DM_ALIGN == 0;
}

static int dm_copy_to(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
    if (!dm_copy_allowed(dm_obj(dm), offset, length))
        return EINVAL;
    memmove(dm_obj(dm)->memory + offset, host, length);
    return 0;
}

static int dm_copy_from(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
    if (!dm_copy_allowed(dm_obj(dm), offset, length))
        return EINVAL;
    memmove(host, dm_obj(dm)->memory + offset, length);
    return 0;
}

struct ibv_dm *ibv_alloc_dm_op(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    if (attr->comp_mask != 0 || attr->length == 0 || attr->length > MEMORY_MAX_DM_BYTES ||
        attr->log_align_req > DM_MAX_LOG_ALIGN) {
        errno = attr->comp_mask != 0 ? EOPNOTSUPP : EINVAL;
        return NULL;
    }
    struct ibv_dm_obj *obj = calloc(1, sizeof(*obj));
    void *memory = mmap(NULL, attr->length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (obj == NULL || memory == MAP_FAILED) {
        if (memory != MAP_FAILED)
            munmap(memory, attr->length);
        free(obj);
        errno = ENOMEM;
        return NULL;
    }
    obj->memory = memory;
    obj->length = attr->length;
    obj->ibv.context = context;
    obj->ibv.memcpy_to_dm = dm_copy_to;
    obj->ibv.memcpy_from_dm = dm_copy_from;
    obj->ibv.handle = obj_born(context);
    return &obj->ibv;
}

int ibv_free_dm_op(struct ibv_dm *dm)
{
    struct ibv_dm_obj *obj = dm_obj(dm);
    struct ibv_context *context = dm->context;

    if (atomic_load(&obj->regions) != 0)
        return EBUSY;
    munmap(obj->memory, obj->length);
    free(obj);
    obj_died(context);
    return 0;
}

void ibv_dm_unuse(struct ibv_dm_obj *dm)
{
    atomic_fetch_sub(&dm->regions, 1);
}

/* It has no addresses but its own: a region of it counts from 0. */
struct ibv_mr *ibv_reg_dm_mr_op(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
                                size_t length, unsigned access)
{
    struct ibv_dm_obj *obj = dm_obj(dm);
    const unsigned allowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                             IBV_ACCESS_ZERO_BASED | NEWER_ACCESS_FLUSH_GLOBAL |
                             NEWER_ACCESS_FLUSH_PERSISTENT; /* the engine refuses this one */

    access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
    if ((access & ~allowed) != 0 || (access & IBV_ACCESS_ZERO_BASED) == 0 ||
        pd->context != dm->context || !dm_holds(obj, dm_offset, length)) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_mr_obj *mr = ibv_mr_new(pd, NULL, length);
    if (mr == NULL)
        return NULL;
    int err = verbena_mr_reg(obj_ctx(pd->context)->host, obj_pd(pd)->pd, obj->memory + dm_offset,
                             length, 0, access, &mr->mr);
    if (err == 0) {
        mr->dm = obj;
        atomic_fetch_add(&obj->regions, 1);
    }
    return ibv_mr_born(mr, err);
}
