/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_verbs.c: RC WRITEs through the public verbs API, as any program would make them.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    QUEUE_DEPTH = 512,
    BANDWIDTH_BYTES = 8 << 20, /* posted and not complete */
    LIST_LENGTH = 32,          /* WRs of one post, when measuring the rate */
    PINGS_A_SLICE = 20,
    PINGS_TO_WARM_UP = 500,
    MESSAGES_A_SLICE = 4096,
    POLL_BATCH = 16,
};

struct side {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    uint8_t *memory;
    struct bench_peer *me, *other;
};

static struct ibv_context *open_device(void)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *context = NULL;
    for (int i = 0; i < n; i++)
        if (strcmp(ibv_get_device_name(list[i]), bench_device) == 0)
            context = ibv_open_device(list[i]);
    if (list != NULL)
        ibv_free_device_list(list);
    if (context == NULL)
        bench_die("ibv_open_device");
    return context;
}

static enum ibv_mtu mtu_code(uint32_t mtu)
{
    return mtu == 4096 ? IBV_MTU_4096 : IBV_MTU_1024;
}

static void connect_qp(struct side *s, uint32_t mtu)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE,
    };
    if (ibv_modify_qp(s->qp, &a,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
        bench_die("INIT");
    bench_meet(); /* both have written who they are */
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_code(mtu),
        .dest_qp_num = s->other->qpn,
        .rq_psn = s->other->psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
    };
    memcpy(a.ah_attr.grh.dgid.raw, s->other->gid, 16);
    if (ibv_modify_qp(s->qp, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
        bench_die("RTR");
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .sq_psn = s->me->psn,
        .max_rd_atomic = 1,
    };
    if (ibv_modify_qp(s->qp, &a,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
        bench_die("RTS");
}

static void side_open(struct side *s, int which, const struct bench_case *c)
{
    union ibv_gid gid;
    *s = (struct side){.me = &bench_shared->peer[which], .other = &bench_shared->peer[!which]};
    s->memory = bench_memory(BENCH_POOL_BYTES);
    s->context = open_device();
    s->pd = ibv_alloc_pd(s->context);
    if (s->pd == NULL || ibv_query_gid(s->context, 1, 0, &gid) != 0)
        bench_die("ibv_alloc_pd");
    s->mr = ibv_reg_mr(s->pd, s->memory, BENCH_POOL_BYTES,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    s->cq = ibv_create_cq(s->context, 2 * QUEUE_DEPTH, NULL, NULL, 0);
    if (s->mr == NULL || s->cq == NULL)
        bench_die("ibv_create_cq");
    struct ibv_qp_init_attr init = {
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .cap = {QUEUE_DEPTH, 1, 1, 1, 64},
        .qp_type = IBV_QPT_RC,
    };
    s->qp = ibv_create_qp(s->pd, &init);
    if (s->qp == NULL)
        bench_die("ibv_create_qp");
    *s->me = (struct bench_peer){
        .qpn = s->qp->qp_num,
        .psn = (uint32_t)getpid() & 0xffffff,
        .rkey = s->mr->rkey,
        .addr = (uintptr_t)s->memory,
    };
    memcpy(s->me->gid, gid.raw, 16);
    connect_qp(s, c->mtu);
    bench_meet(); /* both are in RTS */
}

static void side_close(struct side *s)
{
    ibv_destroy_qp(s->qp);
    ibv_destroy_cq(s->cq);
    ibv_dereg_mr(s->mr);
    ibv_dealloc_pd(s->pd);
    ibv_close_device(s->context);
}

static void post_write(struct side *s, size_t offset, uint32_t bytes, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)s->memory + offset, bytes, s->mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = flags,
                                 .wr.rdma = {s->other->addr + offset, s->other->rkey},
    };
    if (ibv_post_send(s->qp, &wr, &bad) != 0)
        bench_die("ibv_post_send");
}

/* Completions that are there; each must be a success. */
static unsigned poll_some(struct side *s)
{
    struct ibv_wc wc[POLL_BATCH];
    int n = ibv_poll_cq(s->cq, POLL_BATCH, wc);
    for (int i = 0; i < n; i++)
        if (wc[i].status != IBV_WC_SUCCESS) {
            fprintf(stderr, "bench: completion with error: %s\n", ibv_wc_status_str(wc[i].status));
            exit(1);
        }
    return n < 0 ? 0 : (unsigned)n;
}

void verbs_bandwidth_initiator(const struct bench_case *c)
{
    struct side s;
    unsigned depth = BANDWIDTH_BYTES / c->bytes, out = 0;
    size_t offset = 0;
    bool full = false;
    side_open(&s, 0, c);
    bench_slice_begin(BANDWIDTH_BYTES); /* completions may come all at once */
    while (!full) {
        for (; out < depth; out++) {
            post_write(&s, offset, c->bytes, IBV_SEND_SIGNALED);
            offset = (offset + c->bytes) % BENCH_POOL_BYTES;
        }
        unsigned n = poll_some(&s);
        out -= n;
        if (n != 0)
            full = bench_slice_work((uint64_t)n * c->bytes);
    }
    while (out != 0)
        out -= poll_some(&s);
    bench_shared->result = 8 / bench_slice_median_ns();
    atomic_store(&bench_shared->stop, 1);
    side_close(&s);
}

/* Either polls, or sleeps and leaves all to the library's own thread. */
void verbs_bandwidth_target(const struct bench_case *c)
{
    struct side s;
    side_open(&s, 1, c);
    while (!bench_stopped()) {
        if (c->target_polls)
            poll_some(&s);
        else
            usleep(1000);
    }
    side_close(&s);
}

/* Waits for the other's number to show in memory, with or without polling meanwhile. */
static bool await_number(struct side *s, uint64_t number, bool polls)
{
    const volatile uint64_t *in = (const volatile uint64_t *)s->memory;
    while (*in != number) {
        if (polls)
            poll_some(s);
        if (bench_stopped())
            return false;
    }
    return true;
}

/* My number is in the second 8 bytes and goes to the first of the other. */
static void send_number(struct side *s, uint64_t number)
{
    struct ibv_sge sge = {(uintptr_t)s->memory + 8, 8, s->mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
                                 .wr.rdma = {s->other->addr, s->other->rkey},
    };
    memcpy(s->memory + 8, &number, 8);
    if (ibv_post_send(s->qp, &wr, &bad) != 0)
        bench_die("ibv_post_send");
}

void verbs_latency_initiator(const struct bench_case *c)
{
    struct side s;
    bool full = false;
    side_open(&s, 0, c);
    for (uint64_t i = 1; !full; i++) {
        if (i == PINGS_TO_WARM_UP)
            bench_slice_begin(PINGS_A_SLICE);
        send_number(&s, i);
        await_number(&s, i, true);
        if (i >= PINGS_TO_WARM_UP)
            full = bench_slice_work(1);
    }
    bench_shared->result = bench_slice_median_ns() / 1e3 / 2;
    atomic_store(&bench_shared->stop, 1);
    side_close(&s);
}

void verbs_latency_target(const struct bench_case *c)
{
    struct side s;
    side_open(&s, 1, c);
    for (uint64_t i = 1; await_number(&s, i, c->target_polls); i++) {
        send_number(&s, i);
        if (i % (QUEUE_DEPTH / 2) == 0) /* whoever only spins on memory takes completions in bulk */
            while (poll_some(&s) != 0)
                ;
    }
    side_close(&s);
}

/* Lists of small inline WRITEs, one completion a list. */
void verbs_rate_initiator(const struct bench_case *c)
{
    struct side s;
    struct ibv_send_wr wr[LIST_LENGTH] = {0}, *bad;
    bool full = false;
    unsigned lists = 0;
    side_open(&s, 0, c);
    struct ibv_sge sge = {(uintptr_t)s.memory, c->bytes, s.mr->lkey};
    for (unsigned i = 0; i < LIST_LENGTH; i++) {
        wr[i].next = i + 1 < LIST_LENGTH ? &wr[i + 1] : NULL;
        wr[i].sg_list = &sge;
        wr[i].num_sge = 1;
        wr[i].opcode = IBV_WR_RDMA_WRITE;
        wr[i].send_flags = IBV_SEND_INLINE | (i + 1 == LIST_LENGTH ? IBV_SEND_SIGNALED : 0);
        wr[i].wr.rdma.remote_addr = s.other->addr + (uint64_t)i * 64;
        wr[i].wr.rdma.rkey = s.other->rkey;
    }
    bench_slice_begin(MESSAGES_A_SLICE);
    while (!full) {
        for (; (lists + 1) * LIST_LENGTH <= QUEUE_DEPTH; lists++)
            if (ibv_post_send(s.qp, wr, &bad) != 0)
                bench_die("ibv_post_send");
        unsigned n = poll_some(&s);
        lists -= n;
        if (n != 0)
            full = bench_slice_work((uint64_t)n * LIST_LENGTH);
    }
    while (lists != 0)
        lists -= poll_some(&s);
    bench_shared->result = 1e3 / bench_slice_median_ns();
    atomic_store(&bench_shared->stop, 1);
    side_close(&s);
}

void verbs_rate_target(const struct bench_case *c)
{
    verbs_bandwidth_target(c);
}
