/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live_rig.c: see live_rig.h.
 */
#include "live_rig.h"
#include "../skips.h"

#include <stdlib.h>
#include <time.h>

const int rig_init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
const int rig_rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
const int rig_rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

static void rig_find_gid(struct rig *r)
{
    static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1};
    struct ibv_port_attr port;

    assert_int_equal(ibv_query_port(r->ctx, 1, &port), 0);
    r->mtu = port.active_mtu;
    for (r->gid_index = 0; r->gid_index < port.gid_tbl_len; r->gid_index++) {
        assert_int_equal(ibv_query_gid(r->ctx, 1, r->gid_index, &r->gid), 0);
        if (memcmp(r->gid.raw, loopback, sizeof(loopback)) == 0)
            return;
    }
    fail_msg("lo has no 127.0.0.1");
}

void rig_open(struct rig *r)
{
    struct ibv_device **list = ibv_get_device_list(NULL), *lo = NULL;

    memset(r, 0, sizeof(*r));
    assert_non_null(list);
    for (unsigned i = 0; list[i] != NULL; i++) {
        if (strcmp(ibv_get_device_name(list[i]), "vb_lo") == 0)
            lo = list[i];
    }
    if (lo == NULL) {
        ibv_free_device_list(list);
        SKIP_TEST("there is no vb_lo");
    }
    r->ctx = ibv_open_device(lo);
    assert_non_null(r->ctx);
    ibv_free_device_list(list);
    rig_find_gid(r);
    r->pd = ibv_alloc_pd(r->ctx);
    assert_non_null(r->pd);
    r->channel = ibv_create_comp_channel(r->ctx);
    assert_non_null(r->channel);
    r->cq = ibv_create_cq(r->ctx, 64, r, r->channel, 0);
    assert_non_null(r->cq);
    r->buf = calloc(1, RIG_BYTES);
    assert_non_null(r->buf);
    r->mr = ibv_reg_mr(r->pd, r->buf, RIG_BYTES,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC);
    assert_non_null(r->mr);
}

struct ibv_qp_init_attr rig_qp_init(const struct rig *r)
{
    return (struct ibv_qp_init_attr){
        .send_cq = r->cq,
        .recv_cq = r->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = RIG_DEPTH,
                .max_recv_wr = RIG_DEPTH,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 64},
    };
}

int rig_to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};

    return ibv_modify_qp(qp, &attr, rig_init_mask);
}

struct ibv_qp_attr rig_rtr_attr(const struct rig *r, uint32_t dest_qpn)
{
    return (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest_qpn,
        .rq_psn = 7,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.sgid_index = (uint8_t)r->gid_index, .hop_limit = 64, .dgid = r->gid}},
    };
}

struct ibv_qp_attr rig_rts_attr(void)
{
    return (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .sq_psn = 7,
                                .max_rd_atomic = 1};
}

void rig_connect(struct rig *r)
{
    rig_open(r);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = rig_qp_init(r);
        r->qp[i] = ibv_create_qp(r->pd, &init);
        assert_non_null(r->qp[i]);
        assert_int_equal(rig_to_init(r->qp[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr rtr = rig_rtr_attr(r, r->qp[1 - i]->qp_num), rts = rig_rts_attr();
        assert_int_equal(ibv_modify_qp(r->qp[i], &rtr, rig_rtr_mask), 0);
        assert_int_equal(ibv_modify_qp(r->qp[i], &rts, rig_rts_mask), 0);
    }
}

void rig_ready(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RIG_QKEY};
    assert_int_equal(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0xfffff0;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct ibv_qp *rig_datagram(struct rig *r)
{
    struct ibv_qp_init_attr init = rig_qp_init(r);
    init.qp_type = IBV_QPT_UD;
    struct ibv_qp *qp = ibv_create_qp(r->pd, &init);
    assert_non_null(qp);
    rig_ready(qp);
    return qp;
}

void rig_close(struct rig *r)
{
    for (unsigned i = 0; i < 2; i++) {
        if (r->qp[i] != NULL)
            assert_int_equal(ibv_destroy_qp(r->qp[i]), 0);
    }
    assert_int_equal(ibv_dereg_mr(r->mr), 0);
    assert_int_equal(ibv_destroy_cq(r->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(r->channel), 0);
    assert_int_equal(ibv_dealloc_pd(r->pd), 0);
    assert_int_equal(ibv_close_device(r->ctx), 0);
    free(r->buf);
}

struct ibv_sge rig_sge(const struct rig *r, size_t offset, uint32_t length)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)r->buf + offset, .length = length, .lkey = r->mr->lkey};
}

void rig_recv(struct rig *r, struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t length)
{
    struct ibv_sge sge = rig_sge(r, offset, length);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static uint64_t rig_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct ibv_wc rig_wait(struct rig *r)
{
    uint64_t end = rig_now_ms() + RIG_WAIT_MS;
    struct ibv_wc wc;

    memset(&wc, 0xa5, sizeof(wc));
    do {
        int n = ibv_poll_cq(r->cq, 1, &wc);
        assert_true(n >= 0);
        if (n == 1)
            return wc;
    } while (rig_now_ms() < end);
    fail_msg("no completion");
    return wc;
}

void rig_expect_none(struct rig *r)
{
    uint64_t end = rig_now_ms() + 50;
    struct ibv_wc wc;

    while (rig_now_ms() < end)
        assert_int_equal(ibv_poll_cq(r->cq, 1, &wc), 0);
}
