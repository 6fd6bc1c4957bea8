/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_mw.c: memory windows. A window is bound by a work request: of type 1 through ibv_bind_mw,
 * which chooses the new key, of type 2 through a post, where the program chooses its last 8 bits.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/ibv_memory.h"

enum {
    MW_KEY_OWNED = 0xff, /* bits of the key that the program chooses */
    MW_ACCESS_KNOWN = ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE,
};

struct ibv_mw_obj {
    struct ibv_mw ibv;
    struct mw *mw;
};

struct ibv_mw *ibv_alloc_mw_op(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct ibv_mw_obj *obj = calloc(1, sizeof(*obj));

    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int err = ibv_pd_hold(pd);
    if (err == 0) {
        err = verbena_mw_create(obj_ctx(pd->context)->host, obj_pd(pd)->pd, (int)type, &obj->mw);
        ibv_pd_release(pd);
    }
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->ibv.context = pd->context;
    obj->ibv.pd = pd;
    obj->ibv.rkey = verbena_mw_key(obj->mw);
    obj->ibv.type = type;
    obj->ibv.handle = obj_born(pd->context);
    obj_pd_use(pd, 1);
    return &obj->ibv;
}

int ibv_dealloc_mw_op(struct ibv_mw *mw)
{
    struct ibv_mw_obj *obj = (struct ibv_mw_obj *)mw;
    struct ibv_context *context = mw->context;
    struct ibv_pd *pd = mw->pd;

    int err = verbena_mw_destroy(obj_ctx(context)->host, obj->mw);
    if (err != 0)
        return -err;
    obj_pd_use(pd, -1);
    free(obj);
    obj_died(context);
    return 0;
}

/* What can be seen before the work request runs; all else is the engine's. */
static int mw_fill(const struct ibv_qp *qp, const struct ibv_mw *mw, uint32_t rkey,
                   const struct ibv_mw_bind_info *info, struct nic_send_wr *to)
{
    const struct ibv_mr *mr = info->mr;

    if (qp->pd == NULL || (mr == NULL && (info->addr != 0 || info->length != 0)))
        return -EINVAL; /* a target of XRC has no domain, and sends nothing */
    if (obj_pd(mw->pd)->pd != obj_pd(qp->pd)->pd ||
        (mr != NULL && obj_pd(mr->pd)->pd != obj_pd(qp->pd)->pd))
        return -EINVAL;
    if ((info->mw_access_flags & ~(unsigned)MW_ACCESS_KNOWN) != 0)
        return -EINVAL;
    to->rkey = (mw->rkey & ~(uint32_t)MW_KEY_OWNED) | (rkey & MW_KEY_OWNED);
    to->imm_or_inv = mr != NULL ? mr->lkey : 0;
    to->remote_addr = info->addr;
    to->compare_add = info->length;
    to->swap = info->mw_access_flags;
    to->num_sge = 0;
    return 0;
}

int ibv_mw_fill_bind(const struct ibv_qp *qp, const struct ibv_mw *mw, uint32_t rkey,
                     const struct ibv_mw_bind_info *info, struct nic_send_wr *to)
{
    if (mw == NULL || mw->type != IBV_MW_TYPE_2 || qp->qp_type == IBV_QPT_XRC_SEND)
        return -EINVAL;
    return mw_fill(qp, mw, rkey, info, to);
}

/* The key changes when the request is taken, as binds follow one another in the queue; peers can
 * use it once the completion is there. */
int ibv_bind_mw_op(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct ibv_qp_obj *obj = obj_qp(qp);
    struct nic_send_wr wr = {
        .wr_id = bind->wr_id,
        .opcode = WR_BIND_MW,
        .flags = bind->send_flags & (WR_FENCE | WR_SIGNALED | WR_INLINE),
    };

    if ((bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0)
        return EINVAL; /* IBA o10-36.2.2 */
    int err = mw_fill(qp, mw, ibv_inc_rkey(mw->rkey), &bind->bind_info, &wr);
    if (err == 0)
        err = verbena_post_send(obj->host, obj->qp, &wr);
    if (err != 0)
        return -err;
    mw->rkey = wr.rkey;
    verbena_kick(obj->host);
    return 0;
}
