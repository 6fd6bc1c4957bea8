/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_convert.c: attributes, and the assertions that let values pass through unchanged.
 */
#include "verbs/ibv_convert.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "verbs/verbs_newer.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(QP_TYPE_RC, IBV_QPT_RC);
SAME(QP_TYPE_UC, IBV_QPT_UC);
SAME(QP_TYPE_UD, IBV_QPT_UD);
SAME(QP_TYPE_XRC_INI, IBV_QPT_XRC_SEND);
SAME(QP_TYPE_XRC_TGT, IBV_QPT_XRC_RECV);

SAME(QP_STATE_RESET, IBV_QPS_RESET);
SAME(QP_STATE_INIT, IBV_QPS_INIT);
SAME(QP_STATE_RTR, IBV_QPS_RTR);
SAME(QP_STATE_RTS, IBV_QPS_RTS);
SAME(QP_STATE_SQD, IBV_QPS_SQD);
SAME(QP_STATE_SQE, IBV_QPS_SQE);
SAME(QP_STATE_ERR, IBV_QPS_ERR);

SAME(WR_RDMA_WRITE, IBV_WR_RDMA_WRITE);
SAME(WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME(WR_SEND, IBV_WR_SEND);
SAME(WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);
SAME(WR_RDMA_READ, IBV_WR_RDMA_READ);
SAME(WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);
SAME(WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
SAME(WR_LOCAL_INV, IBV_WR_LOCAL_INV);
SAME(WR_BIND_MW, IBV_WR_BIND_MW);
SAME(WR_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);
SAME(WR_FLUSH, NEWER_WR_FLUSH);
SAME(WR_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE);

SAME(WR_FENCE, IBV_SEND_FENCE);
SAME(WR_SIGNALED, IBV_SEND_SIGNALED);
SAME(WR_SOLICITED, IBV_SEND_SOLICITED);
SAME(WR_INLINE, IBV_SEND_INLINE);

SAME(ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_MW_BIND, IBV_ACCESS_MW_BIND);
SAME(ACCESS_ZERO_BASED, IBV_ACCESS_ZERO_BASED);
SAME(ACCESS_ON_DEMAND, IBV_ACCESS_ON_DEMAND);
SAME(ACCESS_HUGETLB, IBV_ACCESS_HUGETLB);
SAME(ACCESS_FLUSH_GLOBAL, NEWER_ACCESS_FLUSH_GLOBAL);
SAME(ACCESS_FLUSH_PERSISTENT, NEWER_ACCESS_FLUSH_PERSISTENT);

SAME(FLUSH_GLOBAL, NEWER_FLUSH_GLOBAL);
SAME(FLUSH_PERSISTENT, NEWER_FLUSH_PERSISTENT);

SAME(WC_SUCCESS, IBV_WC_SUCCESS);
SAME(WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
SAME(WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR);
SAME(WC_LOC_EEC_OP_ERR, IBV_WC_LOC_EEC_OP_ERR);
SAME(WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
SAME(WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
SAME(WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR);
SAME(WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR);
SAME(WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR);
SAME(WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
SAME(WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
SAME(WC_REM_OP_ERR, IBV_WC_REM_OP_ERR);
SAME(WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR);
SAME(WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR);
SAME(WC_REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR);
SAME(WC_FATAL_ERR, IBV_WC_FATAL_ERR);
SAME(WC_GENERAL_ERR, IBV_WC_GENERAL_ERR);

SAME(WC_SEND, IBV_WC_SEND);
SAME(WC_RDMA_WRITE, IBV_WC_RDMA_WRITE);
SAME(WC_RDMA_READ, IBV_WC_RDMA_READ);
SAME(WC_COMP_SWAP, IBV_WC_COMP_SWAP);
SAME(WC_FETCH_ADD, IBV_WC_FETCH_ADD);
SAME(WC_BIND_MW, IBV_WC_BIND_MW);
SAME(WC_LOCAL_INV, IBV_WC_LOCAL_INV);
SAME(WC_FLUSH, NEWER_WC_FLUSH);
SAME(WC_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE);
SAME(WC_RECV, IBV_WC_RECV);
SAME(WC_RECV_RDMA_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
SAME(WC_GRH, IBV_WC_GRH);
SAME(WC_WITH_IMM, IBV_WC_WITH_IMM);
SAME(WC_WITH_INV, IBV_WC_WITH_INV);

SAME(EVENT_CQ_ERR, IBV_EVENT_CQ_ERR);
SAME(EVENT_QP_FATAL, IBV_EVENT_QP_FATAL);
SAME(EVENT_QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
SAME(EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
SAME(EVENT_COMM_EST, IBV_EVENT_COMM_EST);
SAME(EVENT_SQ_DRAINED, IBV_EVENT_SQ_DRAINED);
SAME(EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);
SAME(EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE);
SAME(EVENT_PORT_ERR, IBV_EVENT_PORT_ERR);
SAME(EVENT_SRQ_ERR, IBV_EVENT_SRQ_ERR);
SAME(EVENT_SRQ_LIMIT_REACHED, IBV_EVENT_SRQ_LIMIT_REACHED);
SAME(EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED);
SAME(EVENT_GID_CHANGE, IBV_EVENT_GID_CHANGE);

SAME(QP_ATTR_STATE, IBV_QP_STATE);
SAME(QP_ATTR_CUR_STATE, IBV_QP_CUR_STATE);
SAME(QP_ATTR_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY);
SAME(QP_ATTR_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
SAME(QP_ATTR_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(QP_ATTR_PORT, IBV_QP_PORT);
SAME(QP_ATTR_QKEY, IBV_QP_QKEY);
SAME(QP_ATTR_AV, IBV_QP_AV);
SAME(QP_ATTR_PATH_MTU, IBV_QP_PATH_MTU);
SAME(QP_ATTR_TIMEOUT, IBV_QP_TIMEOUT);
SAME(QP_ATTR_RETRY_CNT, IBV_QP_RETRY_CNT);
SAME(QP_ATTR_RNR_RETRY, IBV_QP_RNR_RETRY);
SAME(QP_ATTR_RQ_PSN, IBV_QP_RQ_PSN);
SAME(QP_ATTR_MAX_QP_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(QP_ATTR_ALT_PATH, IBV_QP_ALT_PATH);
SAME(QP_ATTR_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(QP_ATTR_SQ_PSN, IBV_QP_SQ_PSN);
SAME(QP_ATTR_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME(QP_ATTR_PATH_MIG_STATE, IBV_QP_PATH_MIG_STATE);
SAME(QP_ATTR_CAP, IBV_QP_CAP);
SAME(QP_ATTR_DEST_QPN, IBV_QP_DEST_QPN);
SAME(QP_ATTR_RATE_LIMIT, IBV_QP_RATE_LIMIT);

_Static_assert(sizeof(struct nic_sge) == sizeof(struct ibv_sge), "SGE");
_Static_assert(offsetof(struct nic_sge, addr) == offsetof(struct ibv_sge, addr), "SGE addr");
_Static_assert(offsetof(struct nic_sge, length) == offsetof(struct ibv_sge, length), "SGE length");
_Static_assert(offsetof(struct nic_sge, lkey) == offsetof(struct ibv_sge, lkey), "SGE lkey");
_Static_assert(offsetof(struct ibv_send_wr, wr.rdma.remote_addr) ==
                   offsetof(struct ibv_send_wr, wr.atomic.remote_addr),
               "one read serves both");

uint16_t convert_mtu_to_bytes(enum ibv_mtu mtu)
{
    if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
        return 0;
    return (uint16_t)(128U << mtu);
}

enum ibv_mtu convert_mtu_from_bytes(uint32_t bytes)
{
    int mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 128U << (mtu + 1) <= bytes)
        mtu++;
    return (enum ibv_mtu)mtu;
}

void convert_cap_to_nic(const struct ibv_qp_cap *from, struct nic_qp_cap *to)
{
    to->max_send_wr = from->max_send_wr;
    to->max_recv_wr = from->max_recv_wr;
    to->max_send_sge = from->max_send_sge;
    to->max_recv_sge = from->max_recv_sge;
    to->max_inline_bytes = from->max_inline_data;
}

void convert_cap_from_nic(const struct nic_qp_cap *from, struct ibv_qp_cap *to)
{
    to->max_send_wr = from->max_send_wr;
    to->max_recv_wr = from->max_recv_wr;
    to->max_send_sge = from->max_send_sge;
    to->max_recv_sge = from->max_recv_sge;
    to->max_inline_data = from->max_inline_bytes;
}

int convert_qp_attr_to_nic(const struct ibv_qp_attr *from, unsigned mask, struct nic_qp_attr *to)
{
    memset(to, 0, sizeof(*to));
    to->state = (enum qp_state)from->qp_state;
    to->cur_state = (enum qp_state)from->cur_qp_state;
    to->en_sqd_async_notify = from->en_sqd_async_notify != 0;
    to->access_flags = from->qp_access_flags & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
    to->pkey_index = from->pkey_index;
    to->port_num = from->port_num;
    to->qkey = from->qkey;
    to->timeout = from->timeout;
    to->retry_cnt = from->retry_cnt;
    to->rnr_retry = from->rnr_retry;
    to->min_rnr_timer = from->min_rnr_timer;
    to->max_rd_atomic = from->max_rd_atomic;
    to->max_dest_rd_atomic = from->max_dest_rd_atomic;
    to->rq_psn = from->rq_psn & 0xffffff; /* as the kernel: programs pass 32 random bits */
    to->sq_psn = from->sq_psn & 0xffffff;
    to->dest_qpn = from->dest_qp_num;
    to->rate_limit_kbps = from->rate_limit;
    if ((mask & IBV_QP_PATH_MTU) != 0) {
        to->path_mtu_bytes = convert_mtu_to_bytes(from->path_mtu);
        if (to->path_mtu_bytes == 0)
            return -EINVAL;
    }
    return 0;
}

void convert_qp_attr_from_nic(const struct nic_qp_attr *from, struct ibv_qp_attr *to)
{
    memset(to, 0, sizeof(*to));
    to->qp_state = (enum ibv_qp_state)from->state;
    to->cur_qp_state = to->qp_state;
    to->path_mtu =
        from->path_mtu_bytes != 0 ? convert_mtu_from_bytes(from->path_mtu_bytes) : IBV_MTU_256;
    to->path_mig_state = IBV_MIG_MIGRATED;
    to->qkey = from->qkey;
    to->rq_psn = from->rq_psn & 0xffffff; /* as the kernel: programs pass 32 random bits */
    to->sq_psn = from->sq_psn & 0xffffff;
    to->dest_qp_num = from->dest_qpn;
    to->qp_access_flags = from->access_flags;
    to->pkey_index = from->pkey_index;
    to->en_sqd_async_notify = from->en_sqd_async_notify;
    to->max_rd_atomic = from->max_rd_atomic;
    to->max_dest_rd_atomic = from->max_dest_rd_atomic;
    to->min_rnr_timer = from->min_rnr_timer;
    to->port_num = from->port_num;
    to->timeout = from->timeout;
    to->retry_cnt = from->retry_cnt;
    to->rnr_retry = from->rnr_retry;
    to->rate_limit = from->rate_limit_kbps;
}
