/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_dm.c: device memory: memory of the device's own, which programs reach by copying and through
 * regions. Here the device is this process, and its memory a mapping; of a memfd, so that other
 * processes can have it, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "verbs/ibv_memory.h"

enum {
    DM_ALIGN = 4,         /* of copies, as adapters demand */
    DM_MAX_LOG_ALIGN = 12 /* a page */
};

/* Mapped until the last handle has gone, dead ones too: who frees it through another handle,
 * perhaps from another process, does not know who is copying at that moment. */
struct dm_memory {
    uint8_t *bytes;
    size_t length;
    int fd; /* -1: it is nobody else's */
    _Atomic uint32_t regions;
    _Atomic uint32_t refs; /* handles and regions */
};

struct ibv_dm_obj {
    struct ibv_dm ibv;
    struct dm_memory *memory;
    struct share share;
};

static struct ibv_dm_obj *dm_obj(struct ibv_dm *dm)
{
    return (struct ibv_dm_obj *)dm;
}

/* Maps fd, or, -1, memory that nobody else has. NULL: out of memory, and fd is closed. */
static struct dm_memory *dm_memory_new(int fd, size_t length)
{
    struct dm_memory *m = calloc(1, sizeof(*m));
    int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE;
    void *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, fd, 0);

    if (m == NULL || bytes == MAP_FAILED) {
        if (bytes != MAP_FAILED)
            munmap(bytes, length);
        if (fd >= 0)
            close(fd);
        free(m);
        return NULL;
    }
    m->bytes = bytes;
    m->length = length;
    m->fd = fd;
    atomic_store(&m->refs, 1);
    return m;
}

static void dm_memory_drop(struct dm_memory *m)
{
    if (atomic_fetch_sub(&m->refs, 1) != 1)
        return;
    munmap(m->bytes, m->length);
    if (m->fd >= 0)
        close(m->fd);
    free(m);
}

void ibv_dm_join(struct dm_memory *m)
{
    atomic_fetch_add(&m->refs, 1);
}

struct dm_memory *ibv_dm_map(int fd)
{
    struct stat st;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (own < 0)
        return NULL;
    /* What could still shrink under the mapping would end the process that touches it. */
    int seals = fcntl(own, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(own, &st) != 0 || st.st_size <= 0) {
        close(own);
        errno = EINVAL;
        return NULL;
    }
    struct dm_memory *m = dm_memory_new(own, (size_t)st.st_size);
    if (m != NULL)
        atomic_store(&m->regions, 1);
    else
        errno = ENOMEM;
    return m;
}

uint8_t *ibv_dm_at(struct dm_memory *m, uint64_t offset, uint64_t length)
{
    return offset <= m->length && length <= m->length - offset ? m->bytes + offset : NULL;
}

static bool dm_copy_allowed(struct ibv_dm_obj *obj, uint64_t offset, size_t length)
{
    return share_alive(&obj->share) && ibv_dm_at(obj->memory, offset, length) != NULL &&
           offset % DM_ALIGN == 0 && length % DM_ALIGN == 0;
}

static int dm_copy_to(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
    if (!dm_copy_allowed(dm_obj(dm), offset, length))
        return EINVAL;
    memmove(dm_obj(dm)->memory->bytes + offset, host, length);
    return 0;
}

static int dm_copy_from(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
    if (!dm_copy_allowed(dm_obj(dm), offset, length))
        return EINVAL;
    memmove(host, dm_obj(dm)->memory->bytes + offset, length);
    return 0;
}

static void dm_init(struct ibv_dm_obj *obj, struct ibv_context *context)
{
    obj->ibv.context = context;
    obj->ibv.memcpy_to_dm = dm_copy_to;
    obj->ibv.memcpy_from_dm = dm_copy_from;
}

/* A file for it, whose size nobody changes that gets it; -1: none can be had, and then it cannot be
 * exported. */
static int dm_file(size_t length)
{
    int fd = -1;

    if (file_limit_allows(length))
        fd = memfd_create("verbena-dm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, (off_t)length) != 0 ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

struct ibv_dm *ibv_alloc_dm_op(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    if (attr->comp_mask != 0 || attr->length == 0 || attr->length > MEMORY_MAX_DM_BYTES ||
        attr->log_align_req > DM_MAX_LOG_ALIGN) {
        errno = attr->comp_mask != 0 ? EOPNOTSUPP : EINVAL;
        return NULL;
    }
    struct ibv_dm_obj *obj = calloc(1, sizeof(*obj));
    struct dm_memory *memory = dm_memory_new(dm_file(attr->length), attr->length);
    if (obj == NULL || memory == NULL) {
        if (memory != NULL)
            dm_memory_drop(memory);
        free(obj);
        errno = ENOMEM;
        return NULL;
    }
    dm_init(obj, context);
    obj->memory = memory;
    obj->ibv.handle = obj_born(context);
    share_add(&obj->share, context, obj->ibv.handle, VERBENA_SHARE_DM, memory);
    return &obj->ibv;
}

/* Under regions it stays. */
int ibv_dm_end(struct share *s)
{
    struct dm_memory *m = s->object;

    return atomic_load(&m->regions) != 0 ? -EBUSY : 0;
}

static void dm_free(struct ibv_dm_obj *obj)
{
    struct ibv_context *context = obj->ibv.context;

    dm_memory_drop(obj->memory);
    free(obj);
    obj_died(context);
}

int ibv_free_dm_op(struct ibv_dm *dm)
{
    struct ibv_dm_obj *obj = dm_obj(dm);

    int err = share_leave(&obj->share);
    if (err != 0)
        return -err;
    err = ibv_dm_end(&obj->share);
    if (err != 0) {
        share_return(&obj->share);
        return -err;
    }
    dm_free(obj);
    return 0;
}

int ibv_dm_tell(const struct share *s, struct verbena_share_reply *r, int *fd)
{
    const struct dm_memory *m = s->object;

    return ibv_dm_tell_region(m, m->bytes, r, fd);
}

int ibv_dm_tell_region(const struct dm_memory *m, const void *addr, struct verbena_share_reply *r,
                       int *fd)
{
    if (m->fd < 0)
        return -EOPNOTSUPP;
    *fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
    if (*fd < 0)
        return -errno;
    r->memory = VERBENA_SHARE_FD;
    r->offset = (uint64_t)((const uint8_t *)addr - m->bytes);
    return 0;
}

VERBS_ABI struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    struct ibv_dm_obj *obj = calloc(1, sizeof(*obj));
    struct verbena_share_reply r;
    int fd;

    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int err = share_import(&obj->share, context, dm_handle, VERBENA_SHARE_DM, &r, &fd);
    if (err == 0) {
        obj->memory = obj->share.object;
    } else if (err == 1) {
        obj->memory = fd >= 0 ? ibv_dm_map(fd) : NULL;
        err = obj->memory != NULL ? 0 : fd >= 0 ? -errno : -EINVAL;
        if (err == 0) {
            atomic_store(&obj->memory->regions, 0);
            share_add_foreign(&obj->share, context, dm_handle, VERBENA_SHARE_DM, obj->memory);
        }
    }
    if (fd >= 0)
        close(fd);
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    dm_init(obj, context);
    obj->ibv.handle = dm_handle;
    obj_born(context);
    return &obj->ibv;
}

VERBS_ABI void ibv_unimport_dm(struct ibv_dm *dm)
{
    if (share_let_go(&dm_obj(dm)->share) != SHARE_REST_OBJECT)
        dm_free(dm_obj(dm)); /* a copy's memory goes with the last that refers to it */
}

void ibv_dm_unuse(struct dm_memory *m)
{
    atomic_fetch_sub(&m->regions, 1);
    dm_memory_drop(m);
}

/* For a region that comes: from now on it cannot be freed. */
static int dm_use(void *with, void **memory)
{
    struct dm_memory *m = *memory;

    (void)with;
    atomic_fetch_add(&m->regions, 1);
    atomic_fetch_add(&m->refs, 1);
    return 0;
}

/* It has no addresses but its own: a region of it counts from 0. */
struct ibv_mr *ibv_reg_dm_mr_op(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
                                size_t length, unsigned access)
{
    struct dm_memory *m = dm_obj(dm)->memory;
    const unsigned allowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                             IBV_ACCESS_ZERO_BASED | NEWER_ACCESS_FLUSH_GLOBAL |
                             NEWER_ACCESS_FLUSH_PERSISTENT; /* the engine refuses this one */

    access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
    if ((access & ~allowed) != 0 || (access & IBV_ACCESS_ZERO_BASED) == 0 ||
        pd->context != dm->context || ibv_dm_at(m, dm_offset, length) == NULL ||
        share_change(&dm_obj(dm)->share, dm_use, NULL) != 0) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_mr_obj *mr = ibv_mr_new(pd, NULL, length);
    if (mr == NULL) {
        ibv_dm_unuse(m);
        return NULL;
    }
    struct mr *region = NULL;
    mr->share.behind = m;
    int err = ibv_mr_make(mr, m->bytes + dm_offset, length, 0, access, &region);
    if (err != 0)
        ibv_dm_unuse(m);
    return ibv_mr_born(mr, region, err);
}
