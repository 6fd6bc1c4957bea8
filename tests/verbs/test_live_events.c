/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_events.c: cases from the field about completion and asynchronous events, against the
 * real library and engine on the loopback device.
 */
#include "live_rig.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static void post_send(struct rig *r, uint64_t wr_id, unsigned flags)
{
    struct ibv_sge sge = rig_sge(r, 0, 8);
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .opcode = IBV_WR_SEND,
                             .send_flags = flags,
                             .sg_list = &sge,
                             .num_sge = 1},
                       *bad;

    assert_int_equal(ibv_post_send(r->qp[0], &wr, &bad), 0);
}

static bool event_within(struct rig *r, int ms)
{
    struct pollfd p = {.fd = r->channel->fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void get_event(struct rig *r)
{
    struct ibv_cq *cq;
    void *context;

    assert_int_equal(ibv_get_cq_event(r->channel, &cq, &context), 0);
    assert_ptr_equal(cq, r->cq);
    assert_ptr_equal(context, r);
    ibv_ack_cq_events(cq, 1);
}

/* One event an arming; what was there before gives none. */
static void case_72(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    for (unsigned i = 0; i < 6; i++)
        rig_recv(&r, r.qp[1], 100 + i, 1024, 64);
    post_send(&r, 1, 0);
    while (!event_within(&r, 0)) { /* not armed: the receive completes without an event */
        struct ibv_wc wc;
        if (ibv_poll_cq(r.cq, 1, &wc) == 1) {
            assert_int_equal(wc.wr_id, 100);
            break;
        }
    }
    assert_int_equal(ibv_req_notify_cq(r.cq, 0), 0);
    assert_false(event_within(&r, 50));
    post_send(&r, 2, 0);
    assert_true(event_within(&r, RIG_WAIT_MS)); /* the helper thread alone drives it now */
    get_event(&r);
    post_send(&r, 3, 0);
    assert_int_equal(rig_wait(&r).wr_id, 101);
    assert_int_equal(rig_wait(&r).wr_id, 102);
    assert_false(event_within(&r, 50)); /* one shot */
    rig_close(&r);
}

/* With moderation an event comes all the same: when there are enough completions, and when there
 * are not, in its time, which the helper thread keeps. */
static void moderation__events_come(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_modify_cq_attr attr = {
        IBV_CQ_ATTR_MODERATE, {4, 2000}
    };

    rig_connect(&r);
    assert_int_equal(ibv_modify_cq(r.cq, &attr), 0);
    for (unsigned sends = 1; sends <= 4; sends += 3) { /* and as many receives */
        for (unsigned i = 0; i < sends; i++)
            rig_recv(&r, r.qp[1], 100 + i, 1024, 64);
        assert_int_equal(ibv_req_notify_cq(r.cq, 0), 0);
        for (unsigned i = 0; i < sends; i++)
            post_send(&r, i, IBV_SEND_SIGNALED);
        assert_true(event_within(&r, RIG_WAIT_MS));
        get_event(&r);
        for (unsigned i = 0; i < 2 * sends; i++)
            assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
        assert_false(event_within(&r, 20));
    }
    rig_close(&r); /* with the setting */
}

/* solicited_only: only for messages sent with the solicited bit, and for errors. */
static void case_74(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    for (unsigned i = 0; i < 3; i++)
        rig_recv(&r, r.qp[1], 100 + i, 1024, i == 2 ? 4 : 64);
    assert_int_equal(ibv_req_notify_cq(r.cq, 1), 0);
    post_send(&r, 1, IBV_SEND_SIGNALED);
    assert_false(event_within(&r, 100));
    assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
    assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
    post_send(&r, 2, IBV_SEND_SOLICITED);
    assert_true(event_within(&r, RIG_WAIT_MS));
    get_event(&r);
    assert_int_equal(rig_wait(&r).wr_id, 101);
    assert_int_equal(ibv_req_notify_cq(r.cq, 1), 0);
    post_send(&r, 3, 0); /* too long for its receive */
    assert_true(event_within(&r, RIG_WAIT_MS));
    get_event(&r);
    rig_close(&r);
}

static int ack_done;

static void *ack_later(void *cq)
{
    usleep(200 * 1000);
    __atomic_store_n(&ack_done, 1, __ATOMIC_SEQ_CST);
    ibv_ack_cq_events(cq, 1);
    return NULL;
}

/* destroy_cq waits for the event that was got and not acknowledged. */
static void case_76(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_cq *cq;
    void *context;
    pthread_t thread;

    rig_connect(&r);
    rig_recv(&r, r.qp[1], 100, 1024, 64);
    assert_int_equal(ibv_req_notify_cq(r.cq, 0), 0);
    post_send(&r, 1, 0);
    assert_int_equal(ibv_get_cq_event(r.channel, &cq, &context), 0);
    __atomic_store_n(&ack_done, 0, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_create(&thread, NULL, ack_later, cq), 0);
    rig_close(&r);
    assert_int_equal(__atomic_load_n(&ack_done, __ATOMIC_SEQ_CST), 1);
    pthread_join(thread, NULL);
}

/* One async event a read; a non-blocking descriptor ends in EAGAIN. */
static void case_79(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_async_event event;

    rig_connect(&r);
    struct pollfd p = {.fd = r.ctx->async_fd, .events = POLLIN};
    assert_int_equal(fcntl(p.fd, F_SETFL, fcntl(p.fd, F_GETFL) | O_NONBLOCK), 0);
    while (ibv_get_async_event(r.ctx, &event) == 0) /* COMM_EST, if any */
        ibv_ack_async_event(&event);
    assert_int_equal(errno, EAGAIN);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    struct ibv_send_wr wr =
                           {
                               .opcode = IBV_WR_RDMA_WRITE,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .wr.rdma = {.remote_addr = (uintptr_t)r.buf, .rkey = 1}
    },
                       *bad;
    if (r.mr->rkey == 1)
        wr.wr.rdma.rkey = 2;
    assert_int_equal(ibv_post_send(r.qp[0], &wr, &bad), 0);
    bool violation = false;
    while (!violation && poll(&p, 1, RIG_WAIT_MS) == 1) {
        assert_int_equal(ibv_get_async_event(r.ctx, &event), 0);
        violation = event.event_type == IBV_EVENT_QP_ACCESS_ERR;
        assert_true(!violation || event.element.qp == r.qp[1]);
        ibv_ack_async_event(&event);
    }
    assert_true(violation);
    while (ibv_get_async_event(r.ctx, &event) == 0)
        ibv_ack_async_event(&event);
    assert_int_equal(errno, EAGAIN);
    rig_close(&r);
}

static void case_80(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device_attr dev;

    rig_open(&r);
    assert_int_equal(ibv_query_device(r.ctx, &dev), 0);
    const int bad[] = {-1, 0, 0, INT32_MIN, dev.max_cqe + 1, INT32_MAX};
    for (unsigned i = 0; i < 6; i++) {
        errno = 0;
        assert_null(ibv_create_cq(r.ctx, bad[i], NULL, NULL, 0));
        assert_int_equal(errno, EINVAL);
    }
    const int good[] = {1, 2, 1000, 65536};
    for (unsigned i = 0; i < 4; i++) {
        struct ibv_cq *cq = ibv_create_cq(r.ctx, good[i], NULL, NULL, 0);
        assert_non_null(cq);
        assert_true(cq->cqe >= good[i]);
        assert_int_equal(ibv_destroy_cq(cq), 0);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moderation__events_come),
        cmocka_unit_test(case_72),
        cmocka_unit_test(case_74),
        cmocka_unit_test(case_76),
        cmocka_unit_test(case_79),
        cmocka_unit_test(case_80),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
