/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_qp_attr.c: attributes of a QP for each state, as they follow from what the connection's two
 * sides told each other; for QPs that the library moves and for those that programs move.
 */
#include <errno.h>
#include <string.h>

#include "rdmacm/rdma_objects.h"

enum {
    /* 0.64 ms. The kernel's code 0 means 655 ms, far more than a receive takes to post. */
    QP_ATTR_RNR_TIMER = 12,
    /* 164 ms, when the peer does not try for ever: the time that a program needs must be in it. */
    QP_ATTR_RNR_TIMER_LIMITED = 28,
    QP_ATTR_RNR_FOR_EVER = 7,
};

static enum ibv_mtu qp_attr_mtu(uint16_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 128u << (mtu + 1) <= bytes)
        mtu++;
    return mtu;
}

int rdma_qp_attr_ah(struct rdma_id_obj *id, const struct nic_path *path, struct ibv_ah_attr *ah)
{
    uint32_t index;

    int err = rdma_device_gid(id->device, &path->local, &index);
    if (err != 0)
        return err;
    memset(ah, 0, sizeof(*ah));
    memcpy(ah->grh.dgid.raw, path->remote.b, sizeof(path->remote.b));
    ah->grh.flow_label = path->flow_label;
    ah->grh.sgid_index = (uint8_t)index;
    ah->grh.hop_limit = path->hop_limit != 0 ? path->hop_limit : RDMA_HOP_LIMIT;
    ah->grh.traffic_class = path->traffic_class;
    ah->is_global = 1;
    ah->port_num = id->pub.port_num;
    return 0;
}

static void qp_attr_init(struct rdma_id_obj *id, struct ibv_qp_attr *attr, int *mask)
{
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    attr->port_num = id->pub.port_num;
    if (id->pub.qp_type == IBV_QPT_UD) {
        *mask |= IBV_QP_QKEY;
        attr->qkey = RDMA_UDP_QKEY;
        return;
    }
    *mask |= IBV_QP_ACCESS_FLAGS;
    attr->qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

static int qp_attr_rtr(struct rdma_id_obj *id, struct ibv_qp_attr *attr, int *mask)
{
    const struct rdma_conn *c = &id->conn;

    *mask = IBV_QP_STATE;
    if (id->pub.qp_type == IBV_QPT_UD)
        return 0;
    *mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    attr->path_mtu = qp_attr_mtu(c->path_mtu_bytes);
    attr->dest_qp_num = c->remote_qpn;
    attr->rq_psn = c->local_psn;
    if (id->pub.qp_type == IBV_QPT_RC || id->pub.qp_type == IBV_QPT_XRC_RECV) {
        *mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        attr->max_dest_rd_atomic = c->responder_resources;
        attr->min_rnr_timer = c->asked_rnr_retry_count == QP_ATTR_RNR_FOR_EVER
                                  ? QP_ATTR_RNR_TIMER
                                  : QP_ATTR_RNR_TIMER_LIMITED;
    }
    return rdma_qp_attr_ah(id, &c->path, &attr->ah_attr);
}

static void qp_attr_rts(struct rdma_id_obj *id, struct ibv_qp_attr *attr, int *mask)
{
    const struct rdma_conn *c = &id->conn;

    *mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    attr->sq_psn = c->remote_psn;
    if (id->pub.qp_type == IBV_QPT_XRC_RECV) { /* it sends nothing but answers */
        *mask |= IBV_QP_TIMEOUT;
        attr->timeout = c->ack_timeout;
    }
    if (id->pub.qp_type != IBV_QPT_RC && id->pub.qp_type != IBV_QPT_XRC_SEND)
        return;
    *mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    attr->timeout = c->ack_timeout;
    attr->retry_cnt = c->retry_count;
    attr->rnr_retry = c->rnr_retry_count;
    attr->max_rd_atomic = c->initiator_depth;
}

/* Does the id know its peer? */
static bool qp_attr_connects(const struct rdma_id_obj *id)
{
    return id->state == ID_RESPONDED || id->state == ID_REQUESTED || id->state == ID_ACCEPTING ||
           id->state == ID_CONNECTED;
}

int rdma_qp_attr_fill(struct rdma_id_obj *id, struct ibv_qp_attr *attr, int *mask)
{
    enum ibv_qp_state state = attr->qp_state;
    bool knows = id->pub.qp_type == IBV_QPT_UD || qp_attr_connects(id);

    rdma_turn_used(id);
    if (id->device == NULL)
        return EINVAL;
    memset(attr, 0, sizeof(*attr));
    attr->qp_state = state;
    if (state == IBV_QPS_INIT) {
        qp_attr_init(id, attr, mask);
        return 0;
    }
    if (state == IBV_QPS_RTR && knows)
        return qp_attr_rtr(id, attr, mask);
    if (state == IBV_QPS_RTS && knows) {
        qp_attr_rts(id, attr, mask);
        return 0;
    }
    return EINVAL;
}

int rdma_qp_to(struct rdma_id_obj *id, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask = IBV_QP_STATE;

    if (id->pub.qp == NULL)
        return 0;
    int err = state == IBV_QPS_ERR ? 0 : rdma_qp_attr_fill(id, &attr, &mask);
    return err != 0 ? err : ibv_modify_qp(id->pub.qp, &attr, mask);
}

RDMACM_ABI int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr,
                                 int *qp_attr_mask)
{
    int err = qp_attr == NULL || qp_attr_mask == NULL
                  ? EINVAL
                  : rdma_qp_attr_fill(obj_id(id), qp_attr, qp_attr_mask);

    return err != 0 ? rdma_fail(err) : 0;
}
