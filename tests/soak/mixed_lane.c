/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mixed_lane.c: what a lane of the mixed soak has during an epoch: made, connected and destroyed.
 */
#include "mixed.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH = 64,
    PSN = 0xfffff0, /* so that each epoch goes round */
    TIMEOUT = 16,   /* 0.27 s, eight times: the machine may be busy */
    RNR_TIMER = 12,
    FOR_EVER = 7,
    RD_ATOMIC = 4,
    QKEY = 0x1234,
    ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
          IBV_ACCESS_REMOTE_ATOMIC,
};

static void *demand(const struct lane *l, const char *what, void *made)
{
    if (made == NULL)
        violation(l, "%s: %s", what, strerror(errno));
    return made;
}

static void demand_0(const struct lane *l, const char *what, int status)
{
    if (status != 0)
        violation(l, "%s: %s", what, strerror(status));
}

static enum ibv_qp_type qp_type(enum lane_kind kind)
{
    static const enum ibv_qp_type type[LANE_KINDS] = {
        [LANE_RC] = IBV_QPT_RC, [LANE_XRC] = IBV_QPT_XRC_SEND, [LANE_UC] = IBV_QPT_UC,
        [LANE_UD] = IBV_QPT_UD, [LANE_MW] = IBV_QPT_RC,
    };
    return type[kind];
}

static void make_xrc(struct lane *l)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
    l->xrcd = demand(l, "open_xrcd", ibv_open_xrcd(m.ctx, &domain));
    struct ibv_srq_init_attr_ex queue = {
        .attr = {.max_wr = RECVS, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                     IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_XRC,
        .xrcd = l->xrcd,
        .cq = l->cq,
        .pd = l->pd,
    };
    l->srq = demand(l, "create_srq_ex", ibv_create_srq_ex(m.ctx, &queue));
    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = l->xrcd};
    l->target = demand(l, "create_qp_ex", ibv_create_qp_ex(m.ctx, &target));
}

static void make(struct lane *l)
{
    l->pd = demand(l, "alloc_pd", ibv_alloc_pd(m.ctx));
    l->mr = demand(l, "reg_mr",
                   ibv_reg_mr(l->pd, l->memory, MEMORY_BYTES,
                              ALL | (l->kind == LANE_MW ? IBV_ACCESS_MW_BIND : 0)));
    l->channel = demand(l, "create_comp_channel", ibv_create_comp_channel(m.ctx));
    l->cq = demand(l, "create_cq", ibv_create_cq(m.ctx, DEPTH + MESSAGES, NULL, l->channel, 0));
    if (l->kind == LANE_XRC)
        make_xrc(l);
    struct ibv_qp_init_attr init = {
        .send_cq = l->cq,
        .recv_cq = l->cq,
        .qp_type = qp_type(l->kind),
        .cap = {.max_send_wr = DEPTH,
                .max_recv_wr = lane_unreliable(l) ? MESSAGES : DEPTH,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    l->qp = demand(l, "create_qp", ibv_create_qp(l->pd, &init));
    if (l->kind == LANE_MW)
        l->mw = demand(l, "alloc_mw", ibv_alloc_mw(l->pd, IBV_MW_TYPE_2));
}

static void initialize(struct lane *l, struct ibv_qp *qp)
{
    bool ud = l->kind == LANE_UD;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = QKEY};
    attr.qp_access_flags = l->kind == LANE_UC ? IBV_ACCESS_REMOTE_WRITE : ALL;
    demand_0(l, "to INIT",
             ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                               (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

/* One way or both: responder masks are for who takes requests, requester masks for who sends. */
static void connect_qp(struct lane *l, struct ibv_qp *qp, uint32_t dest)
{
    bool ud = l->kind == LANE_UD, reliable = !ud && l->kind != LANE_UC;
    bool takes = reliable && qp->qp_type != IBV_QPT_XRC_SEND;
    bool sends = reliable && qp->qp_type != IBV_QPT_XRC_RECV;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest,
        .rq_psn = PSN,
        .max_dest_rd_atomic = RD_ATOMIC,
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = {.is_global = 1,
                    .port_num = PORT,
                    .grh = {.dgid = l->peer.gid, .hop_limit = 64}},
    };
    int mask = IBV_QP_STATE;
    if (!ud)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (takes)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    demand_0(l, "to RTR", ibv_modify_qp(qp, &attr, mask));
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = PSN;
    attr.timeout = TIMEOUT;
    attr.retry_cnt = FOR_EVER;
    attr.rnr_retry = FOR_EVER;
    attr.max_rd_atomic = RD_ATOMIC;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (reliable)
        mask |= IBV_QP_TIMEOUT;
    if (sends)
        mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    demand_0(l, "to RTS", ibv_modify_qp(qp, &attr, mask));
}

bool lane_unreliable(const struct lane *l)
{
    return l->kind == LANE_UC || l->kind == LANE_UD;
}

uint8_t *lane_recv_at(struct lane *l, unsigned index)
{
    if (lane_unreliable(l))
        return l->memory + ALL_SLOTS * SLOT_BYTES + (size_t)index * UNRELIABLE_RECV_BYTES;
    return l->memory + (size_t)(AT_RECV + index) * SLOT_BYTES;
}

void lane_post_recv(struct lane *l, unsigned index)
{
    uint32_t bytes = lane_unreliable(l) ? UNRELIABLE_RECV_BYTES : SLOT_BYTES;
    struct ibv_sge sge = {(uintptr_t)lane_recv_at(l, index), bytes, l->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1};
    demand_0(l, "post_recv",
             l->srq != NULL ? ibv_post_srq_recv(l->srq, &wr, &bad)
                            : ibv_post_recv(l->qp, &wr, &bad));
}

bool lane_open(struct lane *l)
{
    struct hello own = {.stop = m.stop, .epoch = l->epoch, .gid = m.gid};
    make(l);
    initialize(l, l->qp);
    own.qpn = l->qp->qp_num;
    own.rkey = l->mr->rkey;
    own.base = (uintptr_t)l->memory;
    if (l->target != NULL) {
        initialize(l, l->target);
        own.target_qpn = l->target->qp_num;
        demand_0(l, "get_srq_num", ibv_get_srq_num(l->srq, &own.srq_number));
    }
    memset(l->memory, 0xcc, MEMORY_BYTES);
    for (unsigned i = 0; i < (lane_unreliable(l) ? MESSAGES : RECVS); i++)
        lane_post_recv(l, i);
    tell(l, &own, sizeof(own));
    hear(l, &l->peer, sizeof(l->peer));
    if (l->peer.epoch != l->epoch)
        violation(l, "the peer is in epoch %llu", (unsigned long long)l->peer.epoch);
    if (own.stop || l->peer.stop) {
        lane_close(l);
        return false;
    }
    connect_qp(l, l->qp, l->target != NULL ? l->peer.target_qpn : l->peer.qpn);
    if (l->target != NULL)
        connect_qp(l, l->target, l->peer.qpn);
    if (l->kind == LANE_UD) {
        struct ibv_ah_attr to = {
            .is_global = 1, .port_num = PORT, .grh = {.dgid = l->peer.gid, .hop_limit = 64}
        };
        l->ah = demand(l, "create_ah", ibv_create_ah(l->pd, &to));
    }
    uint8_t ready = 1;
    tell(l, &ready, sizeof(ready));
    hear(l, &ready, sizeof(ready));
    return true;
}

void lane_close(struct lane *l)
{
    if (l->ah != NULL)
        demand_0(l, "destroy_ah", ibv_destroy_ah(l->ah));
    if (l->mw != NULL)
        demand_0(l, "dealloc_mw", ibv_dealloc_mw(l->mw));
    demand_0(l, "destroy_qp", ibv_destroy_qp(l->qp));
    if (l->target != NULL)
        demand_0(l, "destroy_qp of the target", ibv_destroy_qp(l->target));
    if (l->srq != NULL)
        demand_0(l, "destroy_srq", ibv_destroy_srq(l->srq));
    if (l->xrcd != NULL)
        demand_0(l, "close_xrcd", ibv_close_xrcd(l->xrcd));
    demand_0(l, "destroy_cq", ibv_destroy_cq(l->cq));
    demand_0(l, "destroy_comp_channel", ibv_destroy_comp_channel(l->channel));
    demand_0(l, "dereg_mr", ibv_dereg_mr(l->mr));
    demand_0(l, "dealloc_pd", ibv_dealloc_pd(l->pd));
    l->ah = NULL;
    l->mw = NULL;
    l->target = NULL;
    l->srq = NULL;
    l->xrcd = NULL;
}

/* Sleeps on the channel until something may have come; false: nothing within the time. */
static bool wait_event(struct lane *l, int limit_ms)
{
    struct pollfd p = {.fd = l->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    if (poll(&p, 1, limit_ms) <= 0)
        return false;
    demand_0(l, "get_cq_event", ibv_get_cq_event(l->channel, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    return true;
}

bool lane_poll(struct lane *l, struct ibv_wc *wc, int limit_ms)
{
    for (;;) {
        int n = ibv_poll_cq(l->cq, 1, wc);
        if (n == 0) {
            demand_0(l, "req_notify_cq", ibv_req_notify_cq(l->cq, 0));
            n = ibv_poll_cq(l->cq, 1, wc);
        }
        if (n < 0)
            violation(l, "poll_cq: %d", n);
        if (n == 1)
            return true;
        if (!wait_event(l, limit_ms))
            return false;
    }
}
