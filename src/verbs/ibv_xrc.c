/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_xrc.c: domains of extended reliable connections. Those who open one with the same file share
 * it, as far as they are of one process. DEVIATES: ibv_open_xrcd(3): processes do not share
 * domains.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "verbs/ibv_objects.h"

/* The file behind a descriptor: 1; 0: none is meant; -errno. */
static int xrcd_file(int fd, uint64_t file[2])
{
    struct stat st;

    if (fd == -1)
        return 0;
    if (fstat(fd, &st) != 0)
        return -errno;
    file[0] = (uint64_t)st.st_dev;
    file[1] = (uint64_t)st.st_ino;
    return 1;
}

struct ibv_xrcd *ibv_open_xrcd_op(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    uint64_t file[2];

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
    int err = xrcd_file(attr->fd, file);
    if (err >= 0)
        err = verbena_xrcd_open(obj_ctx(context)->host, err == 1 ? file : NULL, attr->oflags,
                                &obj->xrcd);
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
