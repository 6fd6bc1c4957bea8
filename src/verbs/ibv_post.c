/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_post.c: the data path's way in: work requests, one by one into the engine, then a kick. A
 * failing one ends the chain: it is *bad_wr, those before it run, the answer is a positive errno.
 */
#include "verbs/ibv_convert.h"
#include "verbs/ibv_objects.h"

int ibv_post_send_op(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct ibv_qp_obj *obj = obj_qp(qp);
    int err = 0;

    for (; wr != NULL; wr = wr->next) {
        struct nic_send_wr n;
        convert_send_wr(wr, &n);
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
