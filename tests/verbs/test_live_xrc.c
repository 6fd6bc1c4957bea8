/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_xrc.c: extended reliable connections of one process on the loopback device, through the
 * real library and real packets: an initiator, a target, and two shared receive queues, each with a
 * CQ of its own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../port/private_net.h"
#include "../skips.h"
#include "live_rig.h"

enum { DATA_AT = 1 << 15, QUEUES = 2 };

struct xrc {
    struct rig r; /* qp[0]: initiator, qp[1]: target */
    struct ibv_xrcd *xrcd;
    struct ibv_cq *cq[QUEUES];
    struct ibv_srq *srq[QUEUES];
    uint32_t number[QUEUES];
};

static struct ibv_xrcd *open_domain(struct rig *r, int fd, int oflags)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};

    errno = 0;
    return ibv_open_xrcd(r->ctx, &attr);
}

static void create_queue(struct xrc *x, unsigned i)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 4, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = x->r.pd,
        .xrcd = x->xrcd
    };

    x->cq[i] = ibv_create_cq(x->r.ctx, 4, NULL, NULL, 0);
    assert_non_null(x->cq[i]);
    attr.cq = x->cq[i];
    x->srq[i] = ibv_create_srq_ex(x->r.ctx, &attr);
    assert_non_null(x->srq[i]);
    assert_int_equal(ibv_get_srq_num(x->srq[i], &x->number[i]), 0);
}

static struct ibv_qp *create_target(struct xrc *x)
{
    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = x->xrcd};
    struct ibv_qp *qp = ibv_create_qp_ex(x->r.ctx, &target);

    assert_non_null(qp);
    return qp;
}

static void connect_halves(struct xrc *x)
{
    struct rig *r = &x->r;
    struct ibv_qp_attr rts = rig_rts_attr();

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rig_to_init(r->qp[i]), 0);
    struct ibv_qp_attr to_target = rig_rtr_attr(r, r->qp[1]->qp_num);
    struct ibv_qp_attr to_initiator = rig_rtr_attr(r, r->qp[0]->qp_num);
    /* An initiator answers no READs and waits for no receives. */
    assert_int_equal(
        ibv_modify_qp(r->qp[0], &to_target,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
        0);
    assert_int_equal(ibv_modify_qp(r->qp[0], &rts, rig_rts_mask), 0);
    assert_int_equal(ibv_modify_qp(r->qp[1], &to_initiator, rig_rtr_mask), 0);
}

static void setup(struct xrc *x)
{
    memset(x, 0, sizeof(*x));
    rig_open(&x->r);
    x->xrcd = open_domain(&x->r, -1, 0);
    assert_non_null(x->xrcd);
    for (unsigned i = 0; i < QUEUES; i++)
        create_queue(x, i);
    struct ibv_qp_init_attr init = rig_qp_init(&x->r);
    init.qp_type = IBV_QPT_XRC_SEND;
    init.recv_cq = NULL;
    x->r.qp[0] = ibv_create_qp(x->r.pd, &init);
    assert_non_null(x->r.qp[0]);
    assert_int_equal(init.cap.max_recv_wr, 0);
    x->r.qp[1] = create_target(x);
    connect_halves(x);
    for (uint32_t i = DATA_AT; i < RIG_BYTES; i++)
        x->r.buf[i] = (uint8_t)(i * 7 + i / 256);
}

static void teardown(struct xrc *x)
{
    for (unsigned i = 0; i < QUEUES; i++) {
        if (x->srq[i] != NULL)
            assert_int_equal(ibv_destroy_srq(x->srq[i]), 0);
        assert_int_equal(ibv_destroy_cq(x->cq[i]), 0);
    }
    if (x->r.qp[1] != NULL) {
        assert_int_equal(ibv_close_xrcd(x->xrcd), EBUSY);
        assert_int_equal(ibv_destroy_qp(x->r.qp[1]), 0);
        x->r.qp[1] = NULL;
    }
    assert_int_equal(ibv_close_xrcd(x->xrcd), 0);
    rig_close(&x->r);
}

static void post_to(struct xrc *x, unsigned queue, uint64_t wr_id, size_t at, uint32_t length)
{
    struct ibv_sge sge = rig_sge(&x->r, at, length);
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

    assert_int_equal(ibv_post_srq_recv(x->srq[queue], &wr, &bad), 0);
}

static int post(struct xrc *x, uint32_t number, enum ibv_wr_opcode opcode, uint32_t length)
{
    struct ibv_sge sge = rig_sge(&x->r, DATA_AT, length);
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = 1,
                                 .opcode = opcode,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .wr.rdma = {(uintptr_t)x->r.buf, x->r.mr->rkey},
                                 .qp_type.xrc.remote_srqn = number,
    };

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.rkey = x->r.mr->rkey;
    }
    return ibv_post_send(x->r.qp[0], &wr, &bad);
}

static struct ibv_wc from_queue(struct xrc *x, unsigned queue)
{
    struct ibv_cq *all = x->r.cq;
    x->r.cq = x->cq[queue];
    struct ibv_wc wc = rig_wait(&x->r);
    x->r.cq = all;
    return wc;
}

static void send__to_the_queue_that_is_named(void **state)
{
    (void)state;
    struct xrc x;

    setup(&x);
    post_to(&x, 0, 10, 0, 5000);
    post_to(&x, 1, 11, 8192, 5000);
    assert_int_equal(post(&x, x.number[1], IBV_WR_SEND, 4000), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_SUCCESS);
    struct ibv_wc wc = from_queue(&x, 1);
    assert_int_equal(wc.wr_id, 11);
    assert_int_equal(wc.byte_len, 4000);
    assert_int_equal(wc.qp_num, x.r.qp[1]->qp_num);
    assert_int_equal(wc.src_qp, x.r.qp[0]->qp_num);
    assert_memory_equal(x.r.buf + 8192, x.r.buf + DATA_AT, 4000);
    assert_int_equal(post(&x, x.number[0], IBV_WR_SEND_WITH_IMM, 1), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_SUCCESS);
    wc = from_queue(&x, 0);
    assert_int_equal(wc.wr_id, 10);
    assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
    teardown(&x);
}

static void write_read_and_atomic(void **state)
{
    (void)state;
    struct xrc x;

    setup(&x);
    assert_int_equal(post(&x, x.number[0], IBV_WR_RDMA_WRITE, 3000), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_SUCCESS);
    assert_memory_equal(x.r.buf, x.r.buf + DATA_AT, 3000);
    memset(x.r.buf, 0x3c, 3000);
    assert_int_equal(post(&x, x.number[1], IBV_WR_RDMA_READ, 3000), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_SUCCESS);
    assert_memory_equal(x.r.buf + DATA_AT, x.r.buf, 3000);
    assert_int_equal(post(&x, x.number[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 8), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_SUCCESS);
    teardown(&x);
}

/* A queue that has gone is nobody's: the target refuses, the initiator hears it. */
static void queue__has_gone(void **state)
{
    (void)state;
    struct xrc x;

    setup(&x);
    assert_int_equal(ibv_destroy_srq(x.srq[1]), 0);
    x.srq[1] = NULL;
    assert_int_equal(post(&x, x.number[1], IBV_WR_SEND, 8), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_REM_INV_REQ_ERR);
    teardown(&x);
}

static void halves__have_nothing_else(void **state)
{
    (void)state;
    struct xrc x;
    struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1};
    struct ibv_send_wr *bad, send = {.opcode = IBV_WR_SEND};
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    setup(&x);
    assert_int_equal(ibv_post_recv(x.r.qp[0], &recv, &bad_recv), EINVAL);
    assert_int_equal(ibv_post_recv(x.r.qp[1], &recv, &bad_recv), EINVAL);
    assert_int_equal(ibv_post_send(x.r.qp[1], &send, &bad), EINVAL);
    assert_int_equal(post(&x, 0x1000000, IBV_WR_SEND, 8), EINVAL); /* no number */
    assert_int_equal(ibv_query_qp(x.r.qp[1], &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
    assert_int_equal(attr.qp_state, IBV_QPS_RTR);
    assert_null(init.send_cq);
    teardown(&x);
}

/* ibv_open_xrcd(3): the flags are as those of open. */
static void domain__shared_by_file(void **state)
{
    (void)state;
    struct rig r;
    FILE *file[2] = {tmpfile(), tmpfile()};
    int fd = fileno(file[0]);

    rig_open(&r);
    assert_null(open_domain(&r, fd, 0));
    assert_int_equal(errno, EAGAIN);
    struct ibv_xrcd *first = open_domain(&r, fd, O_CREAT | O_EXCL);
    assert_non_null(first);
    assert_null(open_domain(&r, fd, O_CREAT | O_EXCL));
    assert_int_equal(errno, EINVAL);
    struct ibv_xrcd *second = open_domain(&r, fd, 0);
    struct ibv_xrcd *other = open_domain(&r, fileno(file[1]), O_CREAT);
    assert_non_null(second);
    assert_non_null(other);
    /* A queue that was made with the one is found by a target of the other. */
    struct xrc x = {.r = r, .xrcd = first};
    create_queue(&x, 0);
    assert_int_equal(ibv_close_xrcd(first), 0); /* not the last */
    assert_int_equal(ibv_close_xrcd(second), EBUSY);
    assert_int_equal(ibv_close_xrcd(other), 0);
    assert_int_equal(ibv_destroy_srq(x.srq[0]), 0);
    assert_int_equal(ibv_close_xrcd(second), 0);
    assert_null(open_domain(&r, fd, 0));
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(ibv_destroy_cq(x.cq[0]), 0);
    fclose(file[0]);
    fclose(file[1]);
    rig_close(&r);
}

static struct ibv_qp *open_target(struct xrc *x, uint32_t number, void *context)
{
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
                                    .qp_num = number,
                                    .xrcd = x->xrcd,
                                    .qp_context = context,
                                    .qp_type = IBV_QPT_XRC_RECV};

    errno = 0;
    return ibv_open_qp(x->r.ctx, &attr);
}

/* Both handles hear what happens to it. */
static void expect_established(struct xrc *x, struct ibv_qp *opened)
{
    bool heard[2] = {false, false};

    for (unsigned i = 0; i < 2; i++) {
        struct ibv_async_event e;
        assert_int_equal(ibv_get_async_event(x->r.ctx, &e), 0);
        assert_int_equal(e.event_type, IBV_EVENT_COMM_EST);
        heard[e.element.qp == opened] = true;
        ibv_ack_async_event(&e);
    }
    assert_true(heard[0] && heard[1]);
}

/* A target goes with the last that has it open, be it its maker or not. */
static void open_qp__outlives_its_maker(void **state)
{
    (void)state;
    struct xrc x;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    setup(&x);
    struct ibv_qp *opened = open_target(&x, x.r.qp[1]->qp_num, &x);
    assert_non_null(opened);
    assert_int_equal(opened->qp_num, x.r.qp[1]->qp_num);
    assert_ptr_equal(opened->qp_context, &x);
    post_to(&x, 0, 1, 0, 8);
    post_to(&x, 0, 2, 0, 8);
    assert_int_equal(post(&x, x.number[0], IBV_WR_SEND, 8), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_SUCCESS);
    expect_established(&x, opened);
    assert_int_equal(ibv_destroy_qp(x.r.qp[1]), 0);
    assert_int_equal(ibv_query_qp(opened, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_RTR);
    assert_int_equal(post(&x, x.number[0], IBV_WR_SEND, 8), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_SUCCESS);
    x.r.qp[1] = opened;
    teardown(&x);
}

static void open_qp__closed_before_its_maker(void **state)
{
    (void)state;
    struct xrc x;

    setup(&x);
    struct ibv_qp *opened = open_target(&x, x.r.qp[1]->qp_num, NULL);
    assert_non_null(opened);
    assert_int_equal(ibv_destroy_qp(opened), 0);
    post_to(&x, 0, 1, 0, 8);
    assert_int_equal(post(&x, x.number[0], IBV_WR_SEND, 8), 0);
    assert_int_equal(rig_wait(&x.r).status, IBV_WC_SUCCESS);
    teardown(&x);
}

static void open_qp__refused(void **state)
{
    (void)state;
    struct xrc x;
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD,
                                    .qp_type = IBV_QPT_XRC_RECV};

    setup(&x);
    struct ibv_xrcd *own = x.xrcd;
    uint32_t target = x.r.qp[1]->qp_num;
    assert_null(open_target(&x, x.r.qp[0]->qp_num, NULL)); /* an initiator */
    assert_int_equal(errno, EINVAL);
    x.xrcd = open_domain(&x.r, -1, 0);
    assert_null(open_target(&x, target, NULL)); /* in another domain */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_close_xrcd(x.xrcd), 0);
    x.xrcd = own;
    attr.qp_num = target;
    attr.xrcd = own;
    assert_null(ibv_open_qp(x.r.ctx, &attr)); /* of no type */
    assert_int_equal(errno, EINVAL);
    attr.comp_mask = 1 << 20;
    assert_null(ibv_open_qp(x.r.ctx, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    teardown(&x);
}

/* What a child of its own gets that opens the domain of a file: 0, or errno. */
static int open_in_a_child(int fd, int oflags)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        struct rig own;
        rig_open(&own);
        _exit(open_domain(&own, fd, oflags) != NULL ? 0 : errno);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* DEVIATES: ibv_open_xrcd(3): what another process has is not shared: who only joins is refused,
 * who would make it gets one of his own. */
static void domain__of_one_process(void **state)
{
    (void)state;
    if (UNDER_TSAN)
        SKIP_TEST("ThreadSanitizer's runtime lets no thread start in a forked child");
    struct rig r;
    FILE *file = tmpfile();

    rig_open(&r);
    struct ibv_xrcd *xrcd = open_domain(&r, fileno(file), O_CREAT);
    assert_non_null(xrcd);
    assert_int_equal(open_in_a_child(fileno(file), 0), EOPNOTSUPP);
    assert_int_equal(open_in_a_child(fileno(file), O_CREAT), 0);
    assert_int_equal(open_in_a_child(fileno(file), O_CREAT | O_EXCL), EINVAL);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    assert_int_equal(open_in_a_child(fileno(file), 0), EAGAIN);
    assert_int_equal(open_in_a_child(fileno(file), O_CREAT | O_EXCL), 0);
    /* which has died with it */
    xrcd = open_domain(&r, fileno(file), O_CREAT | O_EXCL);
    assert_non_null(xrcd);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    fclose(file);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send__to_the_queue_that_is_named),
        cmocka_unit_test(write_read_and_atomic),
        cmocka_unit_test(queue__has_gone),
        cmocka_unit_test(halves__have_nothing_else),
        cmocka_unit_test(domain__shared_by_file),
        cmocka_unit_test(domain__of_one_process),
        cmocka_unit_test(open_qp__outlives_its_maker),
        cmocka_unit_test(open_qp__closed_before_its_maker),
        cmocka_unit_test(open_qp__refused),
    };

    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
