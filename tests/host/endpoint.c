/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint.c: see endpoint.h. Failures abort, so that it serves forked children and threads too.
 */
#include "endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void must(int err, const char *what)
{
    if (err != 0) {
        fprintf(stderr, "endpoint: %s: %s\n", what, strerror(-err));
        abort();
    }
}

void endpoint_open(struct endpoint *e, const char *device, size_t bytes)
{
    static const struct verbena_callbacks none;
    memset(e, 0, sizeof(*e));
    must(verbena_open(device, &none, NULL, &e->ctx), "open");
    must(verbena_pd_create(e->ctx, &e->pd), "pd");
    e->bytes = bytes;
    e->memory = calloc(1, bytes);
    must(e->memory == NULL ? -12 : 0, "memory");
    must(verbena_mr_reg(e->ctx, e->pd, e->memory, bytes, (uintptr_t)e->memory,
                        ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
                            ACCESS_REMOTE_ATOMIC,
                        &e->mr),
         "mr");
    must(verbena_cq_create(e->ctx, 1024, NULL, &e->cq), "cq");
    struct qp_init init = {
        .type = QP_TYPE_RC,
        .pd = e->pd,
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 256, .max_recv_wr = 256, .max_send_sge = 4, .max_recv_sge = 4},
    };
    must(verbena_qp_create(e->ctx, &init, &e->qp), "qp");
}

void endpoint_name(struct endpoint *e, unsigned gid_index, struct endpoint_name *out)
{
    struct verbena_gid gid;
    must(verbena_gid_query(e->ctx, gid_index, &gid), "gid");
    *out = (struct endpoint_name){
        .qpn = verbena_qp_number(e->qp),
        .psn = verbena_qp_number(e->qp) * 7919 & 0xffffff,
        .rkey = verbena_mr_key(e->mr),
        .addr = (uintptr_t)e->memory,
        .gid = gid.addr,
    };
}

void endpoint_receive(struct endpoint *e, unsigned gid_index, const struct endpoint_name *peer,
                      uint16_t mtu_bytes)
{
    struct nic_qp_attr a = {
        .state = QP_STATE_INIT,
        .port_num = 1,
        .access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
    };
    must(
        verbena_qp_modify(e->ctx, e->qp, &a,
                          QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS),
        "INIT");
    a.state = QP_STATE_RTR;
    a.path_mtu_bytes = mtu_bytes;
    a.dest_qpn = peer->qpn;
    a.rq_psn = peer->psn;
    a.max_dest_rd_atomic = 8;
    a.min_rnr_timer = 12;
    a.path.remote = peer->gid;
    a.path.hop_limit = 64;
    must(verbena_path_local(e->ctx, gid_index, &a.path), "path");
    must(verbena_qp_modify(e->ctx, e->qp, &a,
                           QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                               QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER),
         "RTR");
}

void endpoint_connect(struct endpoint *e, unsigned gid_index, const struct endpoint_name *peer,
                      uint16_t mtu_bytes)
{
    struct endpoint_name own;
    endpoint_name(e, gid_index, &own);
    endpoint_receive(e, gid_index, peer, mtu_bytes);
    struct nic_qp_attr a = {
        .state = QP_STATE_RTS,
        .timeout = 12,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .sq_psn = own.psn,
        .max_rd_atomic = 8,
    };
    must(verbena_qp_modify(e->ctx, e->qp, &a,
                           QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                               QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC),
         "RTS");
}

void endpoint_close(struct endpoint *e)
{
    must(verbena_qp_destroy(e->ctx, e->qp), "qp destroy");
    must(verbena_cq_destroy(e->ctx, e->cq), "cq destroy");
    must(verbena_mr_dereg(e->ctx, e->mr), "mr dereg");
    must(verbena_pd_destroy(e->ctx, e->pd), "pd destroy");
    verbena_close(e->ctx);
    free(e->memory);
}

int endpoint_post(struct endpoint *e, enum wr_opcode op, const struct endpoint_name *peer,
                  uint64_t offset, uint32_t bytes, unsigned flags)
{
    struct nic_sge sge = {(uintptr_t)e->memory + offset, bytes, verbena_mr_key(e->mr)};
    struct nic_send_wr wr = {
        .wr_id = offset,
        .opcode = op,
        .flags = flags,
        .sg_list = &sge,
        .num_sge = bytes != 0,
        .remote_addr = peer->addr + offset,
        .rkey = peer->rkey,
    };
    int err = verbena_post_send(e->ctx, e->qp, &wr);
    verbena_kick(e->ctx);
    return err;
}

int endpoint_post_recv(struct endpoint *e, uint64_t offset, uint32_t bytes)
{
    struct nic_sge sge = {(uintptr_t)e->memory + offset, bytes, verbena_mr_key(e->mr)};
    struct nic_recv_wr wr = {.wr_id = offset, .sg_list = &sge, .num_sge = 1};
    return verbena_post_recv(e->ctx, e->qp, &wr);
}

int endpoint_wait(struct endpoint *e, struct nic_wc *wc)
{
    time_t end = time(NULL) + 10;
    while (time(NULL) < end) {
        int n = verbena_cq_poll(e->ctx, e->cq, 1, wc);
        if (n != 0)
            return n < 0 ? -1 : (int)wc->status;
    }
    return -1;
}
