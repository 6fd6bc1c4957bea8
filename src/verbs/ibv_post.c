/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_post.c: the data path's way in: work requests, one by one into the engine, then a kick. A
 * failing one ends the chain: it is *bad_wr, those before it run, the answer is a positive errno.
 */
#include <errno.h>

#include "verbs/ibv_convert.h"
#include "verbs/ibv_memory.h"

/* Where a datagram goes. false: no address handle, or one of another protection domain. */
static bool post_address(const struct ibv_qp *qp, const struct ibv_send_wr *wr,
                         struct nic_send_wr *to)
{
    struct ibv_ah *ah = wr->wr.ud.ah;

    if (ah == NULL || obj_pd(ah->pd)->pd != obj_pd(qp->pd)->pd)
        return false;
    to->path = &obj_ah(ah)->path;
    to->dest_qpn = wr->wr.ud.remote_qpn;
    to->qkey = wr->wr.ud.remote_qkey;
    return true;
}

/* What needs more than the conversion, or is not offered here. 0 or -EINVAL. */
static int post_special(const struct ibv_qp *qp, const struct ibv_send_wr *wr,
                        struct nic_send_wr *to)
{
    switch ((int)wr->opcode) {
    case IBV_WR_BIND_MW:
        return ibv_mw_fill_bind(qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info, to);
    case IBV_WR_ATOMIC_WRITE:
        return wr->num_sge > 0 ? 0 : -EINVAL; /* without SGEs the engine takes what lies in swap */
    case NEWER_WR_FLUSH:
        return -EINVAL; /* a struct ibv_send_wr cannot say of what: ibv_wr_flush */
    default:
        return 0;
    }
}

int ibv_post_send_op(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct ibv_qp_obj *obj = obj_qp(qp);
    int err = 0;

    for (; wr != NULL; wr = wr->next) {
        struct nic_send_wr n;
        convert_send_wr(wr, &n);
        if (qp->qp_type == IBV_QPT_XRC_SEND)
            n.xrc_srqn = wr->qp_type.xrc.remote_srqn;
        if (wr->opcode >= IBV_WR_BIND_MW)
            err = post_special(qp, wr, &n);
        else if (qp->qp_type == IBV_QPT_UD && !post_address(qp, wr, &n))
            err = -EINVAL;
        if (err == 0)
            err = verbena_post_send(obj->host, obj->qp, &n);
        if (err != 0) {
            *bad_wr = wr;
            break;
        }
    }
    verbena_kick(obj->host);
    return -err;
}

int ibv_post_recv_op(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct ibv_qp_obj *obj = obj_qp(qp);

    for (; wr != NULL; wr = wr->next) {
        struct nic_recv_wr n;
        convert_recv_wr(wr, &n);
        int err = verbena_post_recv(obj->host, obj->qp, &n);
        if (err != 0) {
            *bad_wr = wr;
            return -err;
        }
    }
    return 0;
}

int ibv_post_srq_recv_op(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct ibv_srq_obj *obj = obj_srq(srq);

    for (; wr != NULL; wr = wr->next) {
        struct nic_recv_wr n;
        convert_recv_wr(wr, &n);
        int err = verbena_srq_post(obj->host, obj->srq, &n);
        if (err != 0) {
            *bad_wr = wr;
            return -err;
        }
    }
    return 0;
}
