/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_cases.c: cases from the field that want an interface of the test's own (MTU, link,
 * addresses), large pages, or overrun queues, against the real library and engine. In a network
 * namespace of its own; where there is none, the tests that would change the machine's are skipped.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../port/private_net.h"
#include "../skips.h"
#include "live_rig.h"

enum {
    OVERRUN_WRS = 20,
    OVERRUN_CQE = 4,
    PAGE_2M = 2 << 20,
    GID_AGE_MS = 300, /* after that a GID table is read again */
};

static bool own_net;

static void need_own_net(void)
{
    if (!own_net)
        SKIP_TEST("no network namespace of its own");
}

static void lo_request(unsigned long what, struct ifreq *r)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    strcpy(r->ifr_name, "lo");
    assert_int_equal(ioctl(fd, what, r), 0);
    close(fd);
}

static void lo_mtu(int mtu)
{
    struct ifreq r = {.ifr_mtu = mtu};
    lo_request(SIOCSIFMTU, &r);
}

/* Both QPs from wherever they are to RTS again, with PSNs from there on. */
static void again_at(struct rig *r, uint32_t psn)
{
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
        assert_int_equal(ibv_modify_qp(r->qp[i], &attr, IBV_QP_STATE), 0);
        assert_int_equal(rig_to_init(r->qp[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr rtr = rig_rtr_attr(r, r->qp[1 - i]->qp_num), rts = rig_rts_attr();
        rtr.rq_psn = rts.sq_psn = psn;
        assert_int_equal(ibv_modify_qp(r->qp[i], &rtr, rig_rtr_mask), 0);
        assert_int_equal(ibv_modify_qp(r->qp[i], &rts, rig_rts_mask), 0);
    }
}

static void again(struct rig *r)
{
    again_at(r, 7);
}

/* One RDMA operation of qp[0], waited for. */
static enum ibv_wc_status rdma(struct rig *r, enum ibv_wr_opcode op, struct ibv_sge sge,
                               const void *to, uint32_t rkey)
{
    struct ibv_send_wr wr =
                           {
                               .wr_id = 1,
                               .opcode = op,
                               .send_flags = IBV_SEND_SIGNALED,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .wr.rdma = {.remote_addr = (uintptr_t)to, .rkey = rkey}
    },
                       *bad;
    assert_int_equal(ibv_post_send(r->qp[0], &wr, &bad), 0);
    return rig_wait(r).status;
}

static int send_bad(struct ibv_qp *qp, struct ibv_send_wr wr)
{
    struct ibv_send_wr *bad = NULL;
    int err = ibv_post_send(qp, &wr, &bad);

    assert_ptr_equal(bad, &wr);
    return err;
}

static int recv_bad(struct ibv_qp *qp, struct ibv_srq *srq, struct ibv_recv_wr wr)
{
    struct ibv_recv_wr *bad = NULL;
    int err = srq != NULL ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);

    assert_ptr_equal(bad, &wr);
    return err;
}

/* What fails at the queues says so by a positive errno, and names the WR. */
static void case_2__posts(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_srq_init_attr srq_init = {
        .attr = {.max_wr = 2, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(r.pd, &srq_init);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    init.srq = srq;
    struct ibv_qp *qp = ibv_create_qp(r.pd, &init);
    struct ibv_sge sge = rig_sge(&r, 0, 8), many[3] = {sge, sge, sge};
    struct ibv_recv_wr one = {.sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(send_bad(qp, (struct ibv_send_wr){.opcode = IBV_WR_SEND}), EINVAL); /* RESET */
    assert_int_equal(recv_bad(qp, NULL, one), EINVAL);
    assert_int_equal(rig_to_init(qp), 0);
    assert_int_equal(send_bad(qp, (struct ibv_send_wr){.opcode = IBV_WR_SEND}), EINVAL);
    assert_int_equal(recv_bad(qp, NULL, one), EINVAL); /* its receives are the SRQ's */
    for (unsigned i = 0; i < srq_init.attr.max_wr; i++)
        assert_int_equal(ibv_post_srq_recv(srq, &one, &bad), 0);
    assert_int_equal(recv_bad(NULL, srq, one), ENOMEM);
    assert_int_equal(recv_bad(NULL, srq, (struct ibv_recv_wr){.sg_list = many, .num_sge = 3}),
                     EINVAL);
    assert_int_equal(recv_bad(NULL, srq, (struct ibv_recv_wr){.num_sge = -1}), EINVAL);
    assert_int_equal(recv_bad(r.qp[0], NULL, (struct ibv_recv_wr){.num_sge = -1}), EINVAL);
    assert_int_equal(send_bad(r.qp[0], (struct ibv_send_wr){.num_sge = -1}), EINVAL);
    assert_int_equal(send_bad(r.qp[0], (struct ibv_send_wr){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                            .sg_list = many,
                                                            .num_sge = 2}),
                     EINVAL);
    assert_int_equal(send_bad(r.qp[0], (struct ibv_send_wr){.opcode = IBV_WR_BIND_MW}), EINVAL);
    for (unsigned i = 0; i < RIG_DEPTH; i++)
        assert_int_equal(ibv_post_recv(r.qp[0], &one, &bad), 0);
    assert_int_equal(recv_bad(r.qp[0], NULL, one), ENOMEM);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    rig_close(&r);
}

/* So does what fails at the objects; nothing has changed. */
static void case_2__modifies(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_qp_attr attr, got;
    struct ibv_qp_init_attr init;

    rig_connect(&r);
    for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_ERR; to++) {
        if (to == IBV_QPS_RTS || to == IBV_QPS_SQD || to == IBV_QPS_ERR)
            continue; /* from RTS they lead somewhere */
        attr = rig_rtr_attr(&r, 1);
        attr.qp_state = to;
        assert_int_equal(ibv_modify_qp(r.qp[0], &attr, IBV_QP_STATE), EINVAL);
        assert_int_equal(ibv_modify_qp(r.qp[0], &attr, rig_rtr_mask), EINVAL);
        assert_int_equal(ibv_query_qp(r.qp[0], &got, IBV_QP_STATE, &init), 0);
        assert_int_equal(got.qp_state, IBV_QPS_RTS);
    }
    assert_int_equal(ibv_modify_qp(r.qp[0], &attr, IBV_QP_DEST_QPN), EINVAL);
    attr.min_rnr_timer = 32;
    assert_int_equal(ibv_modify_qp(r.qp[0], &attr, IBV_QP_MIN_RNR_TIMER), EINVAL);
    assert_int_equal(ibv_resize_cq(r.cq, -1), EINVAL);
    struct ibv_srq_init_attr srq_init = {
        .attr = {.max_wr = 2, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(r.pd, &srq_init);
    struct ibv_srq_attr srq_attr = {.max_wr = 0, .srq_limit = 1000};
    assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR), EINVAL);
    assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_modify_srq(srq, &srq_attr, 1 << 20), EINVAL);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    rig_close(&r);
}

/* Inline pieces that are one byte too long together: wr_complete says so, nothing was queued. */
static void case_7__pieces(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    assert_int_equal(ibv_destroy_qp(r.qp[0]), 0);
    struct ibv_qp_init_attr_ex init = {
        .send_cq = r.cq,
        .recv_cq = r.cq,
        .qp_type = IBV_QPT_RC,
        .pd = r.pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
        .cap = {.max_send_wr = 4, .max_send_sge = 1, .max_inline_data = 60}
    };
    r.qp[0] = ibv_create_qp_ex(r.ctx, &init);
    assert_non_null(r.qp[0]);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(r.qp[0]);
    const uint32_t most = init.cap.max_inline_data;
    again(&r);
    uint8_t data[1024];
    for (unsigned i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i + 1);
    struct ibv_data_buf part[3] = {
        {data,      20           },
        {data + 20, 20           },
        {data + 40, most + 1 - 40}
    };
    for (int good = 0; good < 2; good++) {
        part[2].length = most + 1 - 40 - (unsigned)good;
        ibv_wr_start(ex);
        ex->wr_id = 7;
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(ex, r.mr->rkey, (uintptr_t)r.buf);
        ibv_wr_set_inline_data_list(ex, 3, part);
        int err = ibv_wr_complete(ex);
        assert_true(good ? err == 0 : err > 0);
        if (!good)
            rig_expect_none(&r);
    }
    struct ibv_wc wc = rig_wait(&r);
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_memory_equal(r.buf, data, most);
    assert_int_equal(r.buf[most], 0);
    rig_expect_none(&r);
    rig_close(&r);
}

/* Each kind of parent under one child alone: busy, and free again when the child has gone. */
static void case_14__each_alone(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r);
    struct ibv_pd *pd = ibv_alloc_pd(r.ctx);
    struct ibv_cq *cq = ibv_create_cq(r.ctx, 4, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, r.buf, 64, 0);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);

    pd = ibv_alloc_pd(r.ctx);
    struct ibv_ah_attr ah_attr = rig_rtr_attr(&r, 0).ah_attr;
    struct ibv_ah *ah = ibv_create_ah(pd, &ah_attr);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);

    pd = ibv_alloc_pd(r.ctx);
    struct ibv_srq_init_attr srq_init = {
        .attr = {.max_wr = 4, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(pd, &srq_init);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    init.srq = srq;
    struct ibv_qp *qp = ibv_create_qp(r.pd, &init); /* of another PD */
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);

    pd = ibv_alloc_pd(r.ctx);
    for (int side = 0; side < 2; side++) { /* the CQ of its sends alone, of its receives alone */
        init = rig_qp_init(&r);
        *(side == 0 ? &init.send_cq : &init.recv_cq) = cq;
        qp = ibv_create_qp(pd, &init);
        assert_int_equal(ibv_destroy_cq(cq), EBUSY);
        assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    rig_close(&r);
}

/* On a link of 1500 bytes: a path MTU over 1024 is refused at RTR, the state stays; with equal MTUs
 * a message of one byte more passes. */
static void case_32__on_a_1500_link(void **state)
{
    (void)state;
    struct rig r;

    need_own_net();
    lo_mtu(1500);
    rig_connect(&r);
    assert_int_equal(r.mtu, IBV_MTU_1024);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    struct ibv_qp *qp = ibv_create_qp(r.pd, &init);
    assert_int_equal(rig_to_init(qp), 0);
    for (enum ibv_mtu mtu = IBV_MTU_2048; mtu <= IBV_MTU_4096; mtu++) {
        struct ibv_qp_attr attr = rig_rtr_attr(&r, qp->qp_num), got;
        attr.path_mtu = mtu;
        assert_int_equal(ibv_modify_qp(qp, &attr, rig_rtr_mask), EINVAL);
        assert_int_equal(ibv_query_qp(qp, &got, IBV_QP_STATE, &init), 0);
        assert_int_equal(got.qp_state, IBV_QPS_INIT);
    }
    struct ibv_qp_attr attr = rig_rtr_attr(&r, qp->qp_num);
    attr.path_mtu = IBV_MTU_1024;
    assert_int_equal(ibv_modify_qp(qp, &attr, rig_rtr_mask), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    for (uint32_t n = 1023; n <= 1025; n++) {
        memset(r.buf, (int)n, n);
        assert_int_equal(rdma(&r, IBV_WR_RDMA_WRITE, rig_sge(&r, 0, n), r.buf + 4096, r.mr->rkey),
                         IBV_WC_SUCCESS);
        assert_memory_equal(r.buf, r.buf + 4096, n);
        assert_int_equal(r.buf[4096 + n], 0);
    }
    rig_close(&r);
    lo_mtu(65536);
}

/* Of the flushed ones, too, wr_id, status, qp_num and vendor_err are set, in post order. */
static void case_38__flushed(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    struct ibv_send_wr wr[3], *bad;
    for (unsigned i = 0; i < 3; i++)
        wr[i] = (struct ibv_send_wr){
            .wr_id = 70 + i,
            .opcode = IBV_WR_RDMA_READ,
            .next = i < 2 ? &wr[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .wr.rdma = {.remote_addr = 1, .rkey = r.mr->rkey}
        };
    assert_int_equal(ibv_post_send(r.qp[0], wr, &bad), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_wc wc = rig_wait(&r);
        assert_int_equal(wc.wr_id, 70 + i);
        assert_int_equal(wc.status, i == 0 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(wc.qp_num, r.qp[0]->qp_num);
        assert_int_equal(wc.vendor_err, 0);
        assert_string_equal(ibv_wc_status_str(wc.status),
                            i == 0 ? "remote access error" : "Work Request Flushed Error");
    }
    rig_expect_none(&r);
    rig_close(&r);
}

/* Reset in mid-traffic, a hundred times: nothing old completes, and the connection works anew (from
 * other PSNs: what is still on its way must not pass for new). */
static void case_42__live(void **state)
{
    (void)state;
    enum { RESETS = 100, PSNS_APART = 50000 };
    struct rig r;
    struct ibv_wc wc;

    rig_connect(&r);
    for (uint32_t round = 0; round < RESETS; round++) {
        for (unsigned i = 0; i + 1 < RIG_DEPTH; i++) { /* a SEND is there */
            struct ibv_sge sge = rig_sge(&r, 0, 16000);
            struct ibv_send_wr wr =
                                   {
                                       .wr_id = i,
                                       .opcode = i % 3 == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                                       .send_flags = IBV_SEND_SIGNALED,
                                       .sg_list = &sge,
                                       .num_sge = 1,
                                       .wr.rdma = {.remote_addr = (uintptr_t)r.buf + 16384,
                                                   .rkey = r.mr->rkey}
            },
                               *bad;
            assert_int_equal(ibv_post_send(r.qp[round % 2], &wr, &bad), 0);
            rig_recv(&r, r.qp[0], i, 0, 8);
        }
        if (round % 4 == 3) /* some of it done */
            assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
        again_at(&r, (round + 1) * PSNS_APART);
        assert_int_equal(ibv_poll_cq(r.cq, 1, &wc), 0);
        r.buf[40000] = (uint8_t)round;
        r.buf[41000] = (uint8_t)~round;
        rig_recv(&r, r.qp[1], 100 + round, 41000, 8);
        struct ibv_sge sge = rig_sge(&r, 40000, 1);
        struct ibv_send_wr wr = {
            .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .wr_id = 1000};
        struct ibv_send_wr *bad;
        assert_int_equal(ibv_post_send(r.qp[0], &wr, &bad), 0);
        wc = rig_wait(&r);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, 100 + round);
        assert_int_equal(r.buf[41000], (uint8_t)round);
    }
    rig_close(&r);
}

/* Wait, arm, poll again, a thousand times: no message is missed. */
static void case_72__no_hang(void **state)
{
    (void)state;
    enum { MESSAGES = 1000 };
    struct rig r;

    rig_connect(&r);
    struct pollfd p = {.fd = r.channel->fd, .events = POLLIN};
    unsigned sent = 0, received = 0, events = 0;
    assert_int_equal(ibv_req_notify_cq(r.cq, 0), 0);
    while (received < MESSAGES) {
        while (sent < MESSAGES && sent - received < RIG_DEPTH / 2) {
            struct ibv_sge sge = rig_sge(&r, 0, 8);
            struct ibv_send_wr wr = {.wr_id = MESSAGES,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .sg_list = &sge,
                                     .num_sge = 1},
                               *bad;
            rig_recv(&r, r.qp[1], sent++, 1024, 64);
            if (ibv_post_send(r.qp[0], &wr, &bad) != 0)
                fail_msg("message %u of %u received", sent, received);
        }
        assert_int_equal(poll(&p, 1, RIG_WAIT_MS), 1);
        struct ibv_cq *cq;
        void *context;
        struct ibv_wc wc;
        assert_int_equal(ibv_get_cq_event(r.channel, &cq, &context), 0);
        events++;
        assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
        while (ibv_poll_cq(cq, 1, &wc) == 1) {
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
            if (wc.wr_id != MESSAGES)
                assert_int_equal(wc.wr_id, received++);
        }
    }
    ibv_ack_cq_events(r.cq, events);
    rig_close(&r);
}

static struct ibv_async_event next_event(struct rig *r)
{
    struct pollfd p = {.fd = r->ctx->async_fd, .events = POLLIN};
    struct ibv_async_event event;

    assert_int_equal(poll(&p, 1, RIG_WAIT_MS), 1);
    assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
    return event;
}

static int ack_done;

static void *ack_later(void *event)
{
    usleep(200 * 1000);
    __atomic_store_n(&ack_done, 1, __ATOMIC_SEQ_CST);
    ibv_ack_async_event(event);
    return NULL;
}

/* destroy_qp and destroy_srq wait for the event that was got and not acknowledged. */
static void case_76__qp_and_srq(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_async_event event;
    pthread_t thread;

    rig_connect(&r);
    assert_int_equal(rdma(&r, IBV_WR_RDMA_WRITE, rig_sge(&r, 0, 8), r.buf + RIG_BYTES, r.mr->rkey),
                     IBV_WC_REM_ACCESS_ERR);
    do {
        event = next_event(&r);
        if (event.event_type != IBV_EVENT_QP_ACCESS_ERR)
            ibv_ack_async_event(&event);
    } while (event.event_type != IBV_EVENT_QP_ACCESS_ERR);
    assert_ptr_equal(event.element.qp, r.qp[1]);
    __atomic_store_n(&ack_done, 0, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_create(&thread, NULL, ack_later, &event), 0);
    assert_int_equal(ibv_destroy_qp(r.qp[1]), 0);
    assert_int_equal(__atomic_load_n(&ack_done, __ATOMIC_SEQ_CST), 1);
    pthread_join(thread, NULL);
    r.qp[1] = NULL;

    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = 4, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(r.pd, &init);
    struct ibv_srq_attr attr = {.srq_limit = 1};
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0); /* empty: at once */
    event = next_event(&r);
    assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    __atomic_store_n(&ack_done, 0, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_create(&thread, NULL, ack_later, &event), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(__atomic_load_n(&ack_done, __ATOMIC_SEQ_CST), 1);
    pthread_join(thread, NULL);
    rig_close(&r);
}

/* A CQ of 4 and 20 completions: the event, the QP in ERR, and exactly the first 4 to be polled. */
static void case_77__twenty_sends(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_cq *cq = ibv_create_cq(r.ctx, OVERRUN_CQE, NULL, NULL, 0);
    assert_int_equal(cq->cqe, OVERRUN_CQE);
    assert_int_equal(ibv_destroy_qp(r.qp[0]), 0);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    init.send_cq = cq;
    init.cap.max_send_wr = OVERRUN_WRS;
    r.qp[0] = ibv_create_qp(r.pd, &init);
    again(&r);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    for (unsigned i = 0; i < OVERRUN_WRS; i++) {
        struct ibv_send_wr wr =
                               {
                                   .wr_id = i,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .wr.rdma = {.remote_addr = (uintptr_t)r.buf + 64,
                                               .rkey = r.mr->rkey}
        },
                           *bad;
        if (ibv_post_send(r.qp[0], &wr, &bad) != 0)
            break; /* it has failed meanwhile */
    }
    bool overrun = false, fatal = false;
    while (!overrun || !fatal) {
        struct ibv_async_event event = next_event(&r);
        if (event.event_type == IBV_EVENT_CQ_ERR) {
            assert_false(overrun);
            assert_ptr_equal(event.element.cq, cq);
            overrun = true;
        } else if (event.event_type == IBV_EVENT_QP_FATAL) {
            assert_ptr_equal(event.element.qp, r.qp[0]);
            fatal = true;
        }
        ibv_ack_async_event(&event);
    }
    struct ibv_qp_attr attr;
    assert_int_equal(ibv_query_qp(r.qp[0], &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_ERR);
    struct ibv_wc wc[OVERRUN_WRS];
    assert_int_equal(ibv_poll_cq(cq, OVERRUN_WRS, wc), OVERRUN_CQE);
    for (unsigned i = 0; i < OVERRUN_CQE; i++) {
        assert_int_equal(wc[i].wr_id, i);
        assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
    }
    assert_int_equal(ibv_poll_cq(cq, OVERRUN_WRS, wc), 0);
    assert_int_equal(ibv_destroy_qp(r.qp[0]), 0);
    r.qp[0] = NULL;
    assert_int_equal(ibv_destroy_cq(cq), 0);
    rig_close(&r);
}

/* Three events are three reads; in between the descriptor stays readable, then it is not. */
static void case_79__three_events(void **state)
{
    (void)state;
    enum { EVENTS = 3 };
    struct rig r;
    struct ibv_srq *srq[EVENTS];
    struct ibv_async_event event;

    rig_open(&r);
    struct pollfd p = {.fd = r.ctx->async_fd, .events = POLLIN};
    for (unsigned i = 0; i < EVENTS; i++) {
        struct ibv_srq_init_attr init = {
            .attr = {.max_wr = 4, .max_sge = 1}
        };
        srq[i] = ibv_create_srq(r.pd, &init);
        struct ibv_srq_attr attr = {.srq_limit = 1};
        assert_int_equal(ibv_modify_srq(srq[i], &attr, IBV_SRQ_LIMIT), 0);
    }
    for (unsigned i = 0; i < EVENTS; i++) {
        assert_int_equal(poll(&p, 1, RIG_WAIT_MS), 1);
        assert_int_equal(ibv_get_async_event(r.ctx, &event), 0);
        assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
        assert_ptr_equal(event.element.srq, srq[i]);
        ibv_ack_async_event(&event);
    }
    assert_int_equal(poll(&p, 1, 50), 0);
    assert_int_equal(fcntl(p.fd, F_SETFL, fcntl(p.fd, F_GETFL) | O_NONBLOCK), 0);
    errno = 0;
    assert_int_equal(ibv_get_async_event(r.ctx, &event), -1);
    assert_int_equal(errno, EAGAIN);
    for (unsigned i = 0; i < EVENTS; i++)
        assert_int_equal(ibv_destroy_srq(srq[i]), 0);
    rig_close(&r);
}

/* GUIDs are not zero, differ, and are the same the next time. */
static void case_92(void **state)
{
    (void)state;
    int n, again_n;
    struct ibv_device **list = ibv_get_device_list(&n), **again_list;

    assert_non_null(list);
    again_list = ibv_get_device_list(&again_n);
    assert_int_equal(n, again_n);
    for (int i = 0; i < n; i++) {
        uint64_t guid = ibv_get_device_guid(list[i]);
        assert_true(guid != 0);
        assert_true(guid == ibv_get_device_guid(again_list[i]));
        for (int k = 0; k < i; k++)
            assert_true(guid != ibv_get_device_guid(list[k]));
    }
    ibv_free_device_list(list);
    ibv_free_device_list(again_list);
}

/* A region of length bytes at base + skew: its whole is writable and readable from afar, not a byte
 * before it or behind it. */
static void exact_bounds(struct rig *r, uint8_t *base, size_t skew, uint32_t length)
{
    uint8_t *start = base + skew;
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    static const struct {
        int64_t from, end; /* relative to start, and to start + length */
        enum ibv_wc_status status;
    } rows[] = {
        {0,  0, IBV_WC_SUCCESS       },
        {1,  0, IBV_WC_SUCCESS       },
        {-1, 0, IBV_WC_REM_ACCESS_ERR},
        {0,  1, IBV_WC_REM_ACCESS_ERR},
    };
    uint8_t *own = base + PAGE_2M;
    struct ibv_mr *mr = ibv_reg_mr(r->pd, start, length, access);
    struct ibv_mr *local = ibv_reg_mr(r->pd, own, PAGE_2M, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_non_null(local);
    for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        bool read = i % 2 == 1, good = rows[i / 2].status == IBV_WC_SUCCESS;
        uint8_t *from = start + rows[i / 2].from;
        uint32_t n = (uint32_t)(start + length + rows[i / 2].end - from);
        struct ibv_sge sge = {(uintptr_t)own, n, local->lkey};
        memset(base, 0x33, PAGE_2M);
        memset(own, 0x44, PAGE_2M);
        again(r);
        assert_int_equal(rdma(r, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, sge, from, mr->rkey),
                         rows[i / 2].status);
        assert_int_equal(start[-1], 0x33);
        assert_int_equal(start[length], 0x33);
        assert_int_equal(from[0], good && !read ? 0x44 : 0x33);
        assert_int_equal(start[length - 1], good && !read ? 0x44 : 0x33);
        assert_int_equal(own[n], 0x44);
        assert_int_equal(own[n - 1], good && read ? 0x33 : 0x44);
        /* A long READ goes in pieces: the first ones may be good, and are there. */
        if (good || rows[i / 2].from < 0)
            assert_int_equal(own[0], good && read ? 0x33 : 0x44);
    }
    assert_int_equal(ibv_dereg_mr(local), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void in_pages(struct rig *r, uint8_t *pages)
{
    exact_bounds(r, pages, 3, 100001);
    exact_bounds(r, pages, 4096 - 5, 1 << 20);
    exact_bounds(r, pages, 1, PAGE_2M - 2); /* all of the page but its first and last byte */
}

/* Within pages of 2 MiB that the program asked for. */
static void case_109__hugetlb(void **state)
{
    (void)state;
    struct rig r;
    uint8_t *pages = mmap(NULL, 2 * PAGE_2M, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    if (pages == MAP_FAILED)
        SKIP_TEST("no huge pages are set aside (vm.nr_hugepages)");
    rig_connect(&r);
    in_pages(&r, pages);
    rig_close(&r);
    munmap(pages, 2 * PAGE_2M);
}

/* Within memory that the kernel may make huge pages of. */
static void case_109__transparent(void **state)
{
    (void)state;
    struct rig r;
    uint8_t *pages = aligned_alloc(PAGE_2M, 2 * PAGE_2M);

    assert_non_null(pages);
    (void)madvise(pages, 2 * PAGE_2M, MADV_HUGEPAGE); /* without them it is as good a test */
    rig_connect(&r);
    in_pages(&r, pages);
    rig_close(&r);
    free(pages);
}

static void ip(const char *what)
{
    char command[128];

    snprintf(command, sizeof(command), "PATH=$PATH:/usr/sbin:/sbin ip %s >/dev/null 2>&1", what);
    if (system(command) != 0)
        SKIP_TEST("addresses cannot be changed here");
}

/* The table, checked entry by entry against the other ways to ask. */
static unsigned whole_table(struct rig *r, struct ibv_gid_entry *table)
{
    static const union ibv_gid zero;
    struct ibv_port_attr port;
    unsigned found = 0;

    assert_int_equal(ibv_query_port(r->ctx, 1, &port), 0);
    ssize_t n = ibv_query_gid_table(r->ctx, table, (size_t)port.gid_tbl_len, 0);
    assert_true(n > 0);
    for (int i = 0; i < port.gid_tbl_len; i++) {
        struct ibv_gid_entry e;
        union ibv_gid gid;
        assert_int_equal(ibv_query_gid(r->ctx, 1, i, &gid), 0);
        int err = ibv_query_gid_ex(r->ctx, 1, (uint32_t)i, &e, 0);
        if (err != 0) {
            assert_int_equal(err, ENODATA);
            assert_memory_equal(&gid, &zero, sizeof(gid));
            continue;
        }
        assert_true(found < (unsigned)n);
        assert_memory_equal(&e, &table[found], sizeof(e));
        assert_memory_equal(&gid, &e.gid, sizeof(gid));
        assert_int_equal(e.gid_index, i);
        assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
        assert_int_equal(e.ndev_ifindex, if_nametoindex("lo"));
        found++;
    }
    assert_int_equal(found, n);
    return found;
}

/* An entry is in the table exactly when it is filled; an empty one is all zero. */
static void case_111__query_gid_table(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_gid_entry table[256];

    rig_open(&r);
    unsigned n = whole_table(&r, table);
    if (own_net)
        assert_int_equal(n, 2); /* 127.0.0.1, ::1 */
    assert_int_equal(ibv_query_gid_table(r.ctx, table, n, 0), n);
    assert_int_equal(ibv_query_gid_table(r.ctx, table, n - 1, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(r.ctx, table, n, 1), -EOPNOTSUPP);
    rig_close(&r);
}

/* WRITEs, one after the other, until the table must have been read again. */
static void traffic(struct rig *r)
{
    for (unsigned i = 0; i < GID_AGE_MS; i++) {
        r->buf[0] = (uint8_t)i;
        assert_int_equal(rdma(r, IBV_WR_RDMA_WRITE, rig_sge(r, 0, 64), r->buf + 128, r->mr->rkey),
                         IBV_WC_SUCCESS);
        assert_int_equal(r->buf[128], (uint8_t)i);
        usleep(1000);
    }
}

/* Addresses come and go under traffic: entries stay where they are, new ones take the holes. */
static void case_112__under_traffic(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_gid_entry before[256], one[256], two[256], after[256];

    need_own_net();
    ip("-6 addr add fd00::a/128 dev lo");
    ip("-6 addr add fd00::b/128 dev lo");
    rig_connect(&r);
    unsigned n = whole_table(&r, before);
    assert_int_equal(n, 4);
    traffic(&r);
    ip("-6 addr del fd00::a/128 dev lo");
    traffic(&r);
    assert_int_equal(whole_table(&r, one), n - 1);
    unsigned gone = 0;
    while (memcmp(&before[gone], &one[gone], sizeof(one[0])) == 0)
        gone++;
    assert_int_equal(before[gone].gid.raw[15], 0xa);
    assert_memory_equal(&before[gone + 1], &one[gone], (n - 1 - gone) * sizeof(one[0]));
    ip("-6 addr add fd00::c/128 dev lo");
    traffic(&r);
    assert_int_equal(whole_table(&r, two), n);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(two[i].gid_index, before[i].gid_index);
        if (i != gone)
            assert_memory_equal(&two[i], &before[i], sizeof(two[i]));
    }
    assert_int_equal(two[gone].gid.raw[15], 0xc); /* the hole is taken */
    ip("-6 addr del fd00::b/128 dev lo");
    ip("-6 addr del fd00::c/128 dev lo");
    traffic(&r);
    assert_int_equal(whole_table(&r, after), n - 2);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_2__posts),
        cmocka_unit_test(case_2__modifies),
        cmocka_unit_test(case_7__pieces),
        cmocka_unit_test(case_14__each_alone),
        cmocka_unit_test(case_32__on_a_1500_link),
        cmocka_unit_test(case_38__flushed),
        cmocka_unit_test(case_42__live),
        cmocka_unit_test(case_72__no_hang),
        cmocka_unit_test(case_76__qp_and_srq),
        cmocka_unit_test(case_77__twenty_sends),
        cmocka_unit_test(case_79__three_events),
        cmocka_unit_test(case_92),
        cmocka_unit_test(case_109__hugetlb),
        cmocka_unit_test(case_109__transparent),
        cmocka_unit_test(case_111__query_gid_table),
        cmocka_unit_test(case_112__under_traffic),
    };
    ino_t before = private_net_inode();

    private_net_enter();
    own_net = private_net_inode() != before;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
