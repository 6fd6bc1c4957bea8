/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_cq_ex.c: extended completion queues: polling one completion at a time through functions that
 * the program finds in the object.
 */
#include <errno.h>
#include <time.h>

#include "verbs/ibv_objects.h"

enum {
    CQ_EX_WC_FLAGS = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
                     IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
                     IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
};

static struct ibv_cq_obj *cq_ex_obj(struct ibv_cq_ex *cq)
{
    return (struct ibv_cq_obj *)cq;
}

/* 0, ENOENT: none there, or another errno. */
static int cq_ex_fetch(struct ibv_cq_obj *obj)
{
    int n = verbena_cq_poll(obj->host, obj->cq, 1, &obj->current);

    if (n <= 0)
        return n == 0 ? ENOENT : -n;
    obj->ex.wr_id = obj->current.wr_id;
    obj->ex.status = (enum ibv_wc_status)obj->current.status;
    return 0;
}

static int cq_ex_next_poll(struct ibv_cq_ex *cq)
{
    return cq_ex_fetch(cq_ex_obj(cq));
}

static void cq_ex_end_poll(struct ibv_cq_ex *cq)
{
    if (!cq_ex_obj(cq)->poll_unlocked)
        pthread_mutex_unlock(&cq_ex_obj(cq)->poll_mutex);
}

static int cq_ex_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    struct ibv_cq_obj *obj = cq_ex_obj(cq);

    if (attr->comp_mask != 0)
        return EINVAL;
    if (!obj->poll_unlocked)
        pthread_mutex_lock(&obj->poll_mutex);
    int err = cq_ex_fetch(obj);
    if (err != 0)
        cq_ex_end_poll(cq); /* the program does not call it then */
    return err;
}

static enum ibv_wc_opcode cq_ex_read_opcode(struct ibv_cq_ex *cq)
{
    return (enum ibv_wc_opcode)cq_ex_obj(cq)->current.opcode;
}

static uint32_t cq_ex_read_vendor_err(struct ibv_cq_ex *cq)
{
    return cq_ex_obj(cq)->current.vendor_err;
}

static uint32_t cq_ex_read_byte_len(struct ibv_cq_ex *cq)
{
    return cq_ex_obj(cq)->current.byte_len;
}

/* Immediate data in network order, or the invalidated key. */
static __be32 cq_ex_read_imm_data(struct ibv_cq_ex *cq)
{
    return cq_ex_obj(cq)->current.imm_or_inv;
}

static uint32_t cq_ex_read_qp_num(struct ibv_cq_ex *cq)
{
    return cq_ex_obj(cq)->current.qp_num;
}

static uint32_t cq_ex_read_src_qp(struct ibv_cq_ex *cq)
{
    return cq_ex_obj(cq)->current.src_qp;
}

static unsigned cq_ex_read_wc_flags(struct ibv_cq_ex *cq)
{
    return cq_ex_obj(cq)->current.flags;
}

static uint8_t cq_ex_read_sl(struct ibv_cq_ex *cq)
{
    return cq_ex_obj(cq)->current.sl;
}

/* Of InfiniBand's link layer: always zero here. */
static uint32_t cq_ex_read_slid(struct ibv_cq_ex *cq)
{
    (void)cq;
    return 0;
}

static uint8_t cq_ex_read_zero(struct ibv_cq_ex *cq)
{
    (void)cq;
    return 0;
}

/* The NIC's clock is CLOCK_MONOTONIC: what ibv_query_rt_values_ex tells, too. */
static uint64_t cq_ex_read_completion_ts(struct ibv_cq_ex *cq)
{
    return cq_ex_obj(cq)->current.time_ns;
}

static int64_t cq_ex_clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t cq_ex_read_wallclock_ns(struct ibv_cq_ex *cq)
{
    int64_t age_ns = cq_ex_clock_ns(CLOCK_MONOTONIC) - (int64_t)cq_ex_obj(cq)->current.time_ns;

    return (uint64_t)(cq_ex_clock_ns(CLOCK_REALTIME) - age_ns);
}

struct ibv_cq_ex *ibv_create_cq_ex_op(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    uint32_t flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;

    bool domain = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;

    if ((attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) !=
            0 ||
        (attr->wc_flags & ~(uint64_t)CQ_EX_WC_FLAGS) != 0 ||
        (flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    /* Not any protection domain: what it would add, a parent domain has. */
    if (domain && (attr->parent_domain == NULL || attr->parent_domain->context != context ||
                   obj_pd(attr->parent_domain)->parent == NULL)) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_cq_obj *obj =
        ibv_cq_new(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
    if (obj == NULL)
        return NULL;
    if (domain) {
        obj->pd = attr->parent_domain;
        obj_pd_use(obj->pd, 1);
    }
    obj->poll_unlocked = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
    obj->ex.start_poll = cq_ex_start_poll;
    obj->ex.next_poll = cq_ex_next_poll;
    obj->ex.end_poll = cq_ex_end_poll;
    obj->ex.read_opcode = cq_ex_read_opcode;
    obj->ex.read_vendor_err = cq_ex_read_vendor_err;
    obj->ex.read_byte_len = cq_ex_read_byte_len;
    obj->ex.read_imm_data = cq_ex_read_imm_data;
    obj->ex.read_qp_num = cq_ex_read_qp_num;
    obj->ex.read_src_qp = cq_ex_read_src_qp;
    obj->ex.read_wc_flags = cq_ex_read_wc_flags;
    obj->ex.read_slid = cq_ex_read_slid;
    obj->ex.read_sl = cq_ex_read_sl;
    obj->ex.read_dlid_path_bits = cq_ex_read_zero;
    obj->ex.read_completion_ts = cq_ex_read_completion_ts;
    obj->ex.read_completion_wallclock_ns = cq_ex_read_wallclock_ns;
    return &obj->ex;
}
