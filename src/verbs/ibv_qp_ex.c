/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_qp_ex.c: extended posting: work requests built call by call between ibv_wr_start and
 * ibv_wr_complete. They are collected here and posted at the end, so that an abort, or a mistake in
 * one of them, leaves the queue as it was.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/ibv_memory.h"

enum {
    QP_EX_FIRST_WRS = 16, /* room at first; it doubles up to the depth of the queue */
    QP_EX_FLAGS = WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE,
    QP_EX_OPS_RC = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                   IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                   IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV |
                   IBV_QP_EX_WITH_BIND_MW | NEWER_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE,
    QP_EX_OPS_UC = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
                   IBV_QP_EX_WITH_BIND_MW,
    /* wq.c says why; windows of type 1 are not bound by this way. */
    QP_EX_OPS_INI = QP_EX_OPS_RC & ~(IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV |
                                     IBV_QP_EX_WITH_BIND_MW),
    QP_EX_OPS_UD = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
};

struct qp_builder {
    pthread_mutex_t mutex; /* from start to complete or abort */
    int err;               /* of the first call that went wrong since start */
    uint32_t count;
    uint32_t room;
    uint32_t max_wr;
    uint32_t max_sge;
    uint32_t max_inline_bytes;
    /* Three arrays of room elements: WRs, their SGEs (max_sge each), their inline data. */
    struct nic_send_wr *wr;
    struct nic_sge *sge;
    uint8_t *inline_data;
};

static struct qp_builder *builder_of(struct ibv_qp_ex *qp)
{
    return ((struct ibv_qp_obj *)qp)->builder;
}

static void builder_fail(struct qp_builder *b, int err)
{
    if (b->err == 0)
        b->err = err;
}

static bool builder_grow(struct qp_builder *b)
{
    uint32_t room = b->room == 0 ? QP_EX_FIRST_WRS : b->room * 2;

    if (room > b->max_wr)
        room = b->max_wr;
    if (room <= b->room)
        return false;
    void *wr = realloc(b->wr, room * sizeof(*b->wr));
    if (wr != NULL)
        b->wr = wr;
    /* One element more than asked for: QPs without SGEs or inline data have none. */
    void *sge = realloc(b->sge, ((size_t)room * b->max_sge + 1) * sizeof(*b->sge));
    if (sge != NULL)
        b->sge = sge;
    void *data = realloc(b->inline_data, (size_t)room * b->max_inline_bytes + 1);
    if (data != NULL)
        b->inline_data = data;
    if (wr == NULL || sge == NULL || data == NULL)
        return false;
    b->room = room;
    return true;
}

/* A new WR, or NULL: then wr_complete will say why. */
static struct nic_send_wr *builder_add(struct ibv_qp_ex *qp, enum wr_opcode opcode)
{
    struct qp_builder *b = builder_of(qp);

    if (b->count == b->room && !builder_grow(b))
        builder_fail(b, ENOMEM);
    if (b->err != 0)
        return NULL;
    struct nic_send_wr *wr = &b->wr[b->count++];
    memset(wr, 0, sizeof(*wr));
    wr->wr_id = qp->wr_id;
    wr->opcode = opcode;
    wr->flags = qp->wr_flags & QP_EX_FLAGS & ~(unsigned)WR_INLINE; /* by how the data is given */
    return wr;
}

static void builder_rdma(struct ibv_qp_ex *qp, enum wr_opcode opcode, uint32_t rkey,
                         uint64_t remote_addr, uint32_t imm)
{
    struct nic_send_wr *wr = builder_add(qp, opcode);

    if (wr == NULL)
        return;
    wr->rkey = rkey;
    wr->remote_addr = remote_addr;
    wr->imm_or_inv = imm;
}

static void qp_ex_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
    builder_rdma(qp, WR_RDMA_READ, rkey, remote_addr, 0);
}

static void qp_ex_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
    builder_rdma(qp, WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void qp_ex_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
                                 __be32 imm_data)
{
    builder_rdma(qp, WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void qp_ex_send(struct ibv_qp_ex *qp)
{
    builder_rdma(qp, WR_SEND, 0, 0, 0);
}

static void qp_ex_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
    builder_rdma(qp, WR_SEND_WITH_IMM, 0, 0, imm_data);
}

static void qp_ex_send_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
    builder_rdma(qp, WR_SEND_WITH_INV, 0, 0, invalidate_rkey);
}

static void qp_ex_local_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
    builder_rdma(qp, WR_LOCAL_INV, 0, 0, invalidate_rkey);
}

static void qp_ex_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
                          const struct ibv_mw_bind_info *bind_info)
{
    struct nic_send_wr *wr = builder_add(qp, WR_BIND_MW);

    if (wr == NULL)
        return;
    int err = ibv_mw_fill_bind(&qp->qp_base, mw, rkey, bind_info, wr);
    if (err != 0)
        builder_fail(builder_of(qp), -err);
}

static void qp_ex_atomic(struct ibv_qp_ex *qp, enum wr_opcode opcode, uint32_t rkey,
                         uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
    struct nic_send_wr *wr = builder_add(qp, opcode);

    if (wr == NULL)
        return;
    wr->rkey = rkey;
    wr->remote_addr = remote_addr;
    wr->compare_add = compare_add;
    wr->swap = swap;
}

static void qp_ex_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
                          uint64_t compare, uint64_t swap)
{
    qp_ex_atomic(qp, WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void qp_ex_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
    qp_ex_atomic(qp, WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void qp_ex_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
                               const void *atomic_wr)
{
    uint64_t value;

    memcpy(&value, atomic_wr, sizeof(value));
    qp_ex_atomic(qp, WR_ATOMIC_WRITE, rkey, remote_addr, 0, value);
}

/* Of a whole region no length is told. */
static void qp_ex_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                        uint8_t type, uint8_t level)
{
    bool region = level == NEWER_FLUSH_MR;

    if ((type & ~(NEWER_FLUSH_GLOBAL | NEWER_FLUSH_PERSISTENT)) != 0 ||
        (!region && level != NEWER_FLUSH_RANGE))
        builder_fail(builder_of(qp), EINVAL);
    qp_ex_atomic(qp, WR_FLUSH, rkey, remote_addr, region ? 0 : len,
                 region ? type | FLUSH_MR : type);
}

/* The WR that data is being given to; NULL: none, and that is an error. */
static struct nic_send_wr *builder_last(struct qp_builder *b)
{
    if (b->count == 0)
        builder_fail(b, EINVAL);
    return b->err == 0 ? &b->wr[b->count - 1] : NULL;
}

static void qp_ex_set_sge_list(struct ibv_qp_ex *qp, size_t num_sge, const struct ibv_sge *sg_list)
{
    struct qp_builder *b = builder_of(qp);
    struct nic_send_wr *wr = builder_last(b);

    if (wr == NULL)
        return;
    if (num_sge > b->max_sge) {
        builder_fail(b, EINVAL);
        return;
    }
    if (num_sge > 0)
        memcpy(&b->sge[(size_t)(b->count - 1) * b->max_sge], sg_list, num_sge * sizeof(*sg_list));
    wr->num_sge = (int)num_sge;
}

static void qp_ex_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

    qp_ex_set_sge_list(qp, 1, &sge);
}

static void qp_ex_set_inline_list(struct ibv_qp_ex *qp, size_t num_buf,
                                  const struct ibv_data_buf *list)
{
    struct qp_builder *b = builder_of(qp);
    struct nic_send_wr *wr = builder_last(b);
    size_t length = 0;

    if (wr == NULL)
        return;
    uint8_t *to = &b->inline_data[(size_t)(b->count - 1) * b->max_inline_bytes];
    for (size_t i = 0; i < num_buf; i++) {
        if (list[i].length > b->max_inline_bytes - length) {
            builder_fail(b, EINVAL);
            return;
        }
        if (list[i].length > 0)
            memcpy(to + length, list[i].addr, list[i].length);
        length += list[i].length;
    }
    wr->flags |= WR_INLINE;
    wr->num_sge = length > 0 && b->max_sge > 0 ? 1 : 0;
    if (wr->num_sge == 1)
        b->sge[(size_t)(b->count - 1) * b->max_sge].length = (uint32_t)length;
}

static void qp_ex_set_inline(struct ibv_qp_ex *qp, void *addr, size_t length)
{
    struct ibv_data_buf buf = {.addr = addr, .length = length};

    qp_ex_set_inline_list(qp, 1, &buf);
}

/* What is wrong with it shows at the end: without a path the engine takes no datagram. */
static void qp_ex_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn,
                              uint32_t remote_qkey)
{
    struct nic_send_wr *wr = builder_last(builder_of(qp));

    if (wr == NULL)
        return;
    if (ah == NULL || obj_pd(ah->pd)->pd != obj_pd(qp->qp_base.pd)->pd) {
        builder_fail(builder_of(qp), EINVAL);
        return;
    }
    wr->path = &obj_ah(ah)->path;
    wr->dest_qpn = remote_qpn;
    wr->qkey = remote_qkey;
}

static void qp_ex_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t remote_srqn)
{
    struct nic_send_wr *wr = builder_last(builder_of(qp));

    if (wr != NULL)
        wr->xrc_srqn = remote_srqn;
}

static void qp_ex_start(struct ibv_qp_ex *qp)
{
    struct qp_builder *b = builder_of(qp);

    pthread_mutex_lock(&b->mutex);
    b->count = 0;
    b->err = 0;
}

static void qp_ex_abort(struct ibv_qp_ex *qp)
{
    pthread_mutex_unlock(&builder_of(qp)->mutex);
}

/*
 * DEVIATES: ibv_wr_complete(3): it promises all or nothing. A queue that fills up, or an operation
 * that the engine refuses, behind others of the same list leaves those posted; what can be seen
 * here (too many SGEs or WRs, too much inline data) posts nothing.
 */
static int qp_ex_complete(struct ibv_qp_ex *qp)
{
    struct ibv_qp_obj *obj = (struct ibv_qp_obj *)qp;
    struct qp_builder *b = obj->builder;
    int err = b->err;

    for (uint32_t i = 0; i < b->count && err == 0; i++) {
        struct nic_sge *sge = &b->sge[(size_t)i * b->max_sge];
        if ((b->wr[i].flags & WR_INLINE) != 0 && b->wr[i].num_sge == 1)
            sge->addr = (uintptr_t)&b->inline_data[(size_t)i * b->max_inline_bytes];
        b->wr[i].sg_list = sge;
        err = -verbena_post_send(obj->host, obj->qp, &b->wr[i]);
    }
    pthread_mutex_unlock(&b->mutex);
    verbena_kick(obj->host);
    return err;
}

static void qp_ex_set_ops(union qp_newest *pub)
{
    struct ibv_qp_ex *ex = &pub->ex;

    pub->newest.wr_flush = qp_ex_flush;
    ex->wr_atomic_write = qp_ex_atomic_write;
    ex->wr_atomic_cmp_swp = qp_ex_cmp_swp;
    ex->wr_atomic_fetch_add = qp_ex_fetch_add;
    ex->wr_bind_mw = qp_ex_bind_mw;
    ex->wr_local_inv = qp_ex_local_inv;
    ex->wr_rdma_read = qp_ex_rdma_read;
    ex->wr_rdma_write = qp_ex_rdma_write;
    ex->wr_rdma_write_imm = qp_ex_rdma_write_imm;
    ex->wr_send = qp_ex_send;
    ex->wr_send_imm = qp_ex_send_imm;
    ex->wr_send_inv = qp_ex_send_inv;
    ex->wr_set_inline_data = qp_ex_set_inline;
    ex->wr_set_inline_data_list = qp_ex_set_inline_list;
    ex->wr_set_sge = qp_ex_set_sge;
    ex->wr_set_sge_list = qp_ex_set_sge_list;
    ex->wr_set_ud_addr = qp_ex_set_ud_addr;
    ex->wr_set_xrc_srqn = qp_ex_set_xrc_srqn;
    ex->wr_start = qp_ex_start;
    ex->wr_complete = qp_ex_complete;
    ex->wr_abort = qp_ex_abort;
}

int ibv_qp_ex_init(struct ibv_qp_obj *obj, uint64_t send_ops_flags, const struct ibv_qp_cap *cap)
{
    const enum ibv_qp_type type = obj->pub.qp.qp_type;
    uint64_t offered = type == IBV_QPT_RC         ? QP_EX_OPS_RC
                       : type == IBV_QPT_XRC_SEND ? QP_EX_OPS_INI
                       : type == IBV_QPT_UC       ? QP_EX_OPS_UC
                       : type == IBV_QPT_UD       ? QP_EX_OPS_UD
                                                  : 0;

    if ((send_ops_flags & ~offered) != 0)
        return EOPNOTSUPP;
    obj->builder = calloc(1, sizeof(*obj->builder));
    if (obj->builder == NULL)
        return ENOMEM;
    pthread_mutex_init(&obj->builder->mutex, NULL);
    obj->builder->max_wr = cap->max_send_wr;
    obj->builder->max_sge = cap->max_send_sge;
    obj->builder->max_inline_bytes = cap->max_inline_data;
    qp_ex_set_ops(&obj->pub);
    return 0;
}

void ibv_qp_ex_fini(struct ibv_qp_obj *obj)
{
    struct qp_builder *b = obj->builder;

    if (b == NULL)
        return;
    free(b->wr);
    free(b->sge);
    free(b->inline_data);
    pthread_mutex_destroy(&b->mutex);
    free(b);
    obj->builder = NULL;
}

/* NULL for QPs that were not created for it. */
VERBS_ABI struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return obj_qp(qp)->builder != NULL ? &obj_qp(qp)->pub.ex : NULL;
}
