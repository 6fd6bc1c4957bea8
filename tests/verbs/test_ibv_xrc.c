/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_xrc.c: extended reliable connections: domains, their shared receive queues, the two
 * kinds of queue pairs; what is refused before the engine is asked, and what it is asked.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_host.h"

struct rig {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_xrcd *xrcd;
};

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd, int oflags)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};

    errno = 0;
    return ibv_open_xrcd(ctx, &attr);
}

static struct rig rig_up(void)
{
    struct rig r = {.ctx = fake_open()};

    r.pd = ibv_alloc_pd(r.ctx);
    r.cq = ibv_create_cq(r.ctx, 8, NULL, NULL, 0);
    r.xrcd = open_domain(r.ctx, -1, 0);
    assert_non_null(r.xrcd);
    return r;
}

static void rig_down(struct rig *r)
{
    assert_int_equal(ibv_close_xrcd(r->xrcd), 0);
    assert_int_equal(ibv_destroy_cq(r->cq), 0);
    assert_int_equal(ibv_dealloc_pd(r->pd), 0);
    fake_close(r->ctx);
}

static void open__by_file_or_by_none(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    FILE *file = tmpfile();
    struct ibv_xrcd *xrcd = open_domain(ctx, fileno(file), O_CREAT | O_EXCL);
    assert_non_null(xrcd);
    assert_ptr_equal(xrcd->context, ctx);
    assert_int_equal(fake.xrcd_fd, fileno(file));
    assert_int_equal(fake.xrcd_flags, O_CREAT | O_EXCL);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    xrcd = open_domain(ctx, -1, 0);
    assert_non_null(xrcd);
    assert_int_equal(fake.xrcd_fd, -1);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    fclose(file);
    fake_close(ctx);
}

static void open__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    const uint32_t masks[][2] = {
        {0,                                                     EINVAL    },
        {IBV_XRCD_INIT_ATTR_FD,                                 EINVAL    },
        {IBV_XRCD_INIT_ATTR_OFLAGS,                             EINVAL    },
        {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS | 4, EOPNOTSUPP},
        {4,                                                     EOPNOTSUPP},
    };

    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        struct ibv_xrcd_init_attr attr = {.comp_mask = masks[i][0], .fd = -1};
        errno = 0;
        assert_null(ibv_open_xrcd(ctx, &attr));
        assert_int_equal(errno, masks[i][1]);
    }
    fake.fail = EAGAIN;
    assert_null(open_domain(ctx, -1, 0));
    assert_int_equal(errno, EAGAIN);
    struct ibv_xrcd *xrcd = open_domain(ctx, -1, 0);
    fake.fail = EBUSY;
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    fake_close(ctx);
}

static void srq__what_it_needs(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_context *other = fake_open();
    struct ibv_cq *foreign = ibv_create_cq(other, 1, NULL, NULL, 0);
    const uint32_t all = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                         IBV_SRQ_INIT_ATTR_CQ;
    const struct {
        uint32_t mask;
        enum ibv_srq_type type;
        struct ibv_cq *cq;
        int want;
    } rows[] = {
        {all,                           IBV_SRQT_XRC,   r.cq,    0         },
        {all,                           IBV_SRQT_XRC,   foreign, EINVAL    },
        {all & ~IBV_SRQ_INIT_ATTR_CQ,   IBV_SRQT_XRC,   r.cq,    EINVAL    },
        {all & ~IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQT_XRC,   r.cq,    EINVAL    },
        {all & ~IBV_SRQ_INIT_ATTR_PD,   IBV_SRQT_XRC,   r.cq,    EINVAL    },
        {all & ~IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_XRC,   r.cq,    EINVAL    },
        {all,                           IBV_SRQT_BASIC, r.cq,    EINVAL    },
        {all,                           IBV_SRQT_TM,    r.cq,    EOPNOTSUPP},
        {all | IBV_SRQ_INIT_ATTR_TM,    IBV_SRQT_XRC,   r.cq,    EOPNOTSUPP},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_srq_init_attr_ex attr = {
            .attr = {.max_wr = 4, .max_sge = 1},
            .comp_mask = rows[i].mask,
            .srq_type = rows[i].type,
            .pd = r.pd,
            .xrcd = r.xrcd,
            .cq = rows[i].cq
        };
        uint32_t number = 0;
        errno = 0;
        struct ibv_srq *srq = ibv_create_srq_ex(r.ctx, &attr);
        assert_int_equal(srq == NULL, rows[i].want != 0);
        if (srq == NULL) {
            assert_int_equal(errno, rows[i].want);
            continue;
        }
        assert_int_equal(attr.attr.max_wr, 5); /* as given */
        assert_int_equal(ibv_get_srq_num(srq, &number), 0);
        assert_true(number & 0x80000);
        assert_int_equal(ibv_destroy_srq(srq), 0);
    }
    assert_int_equal(ibv_destroy_cq(foreign), 0);
    assert_int_equal(ibv_close_device(other), 0);
    rig_down(&r);
}

static void srq_number__of_a_basic_one(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 4, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
        .pd = r.pd
    };
    uint32_t number = 77;
    struct ibv_srq *srq = ibv_create_srq_ex(r.ctx, &attr);

    assert_non_null(srq);
    assert_int_equal(ibv_get_srq_num(srq, &number), EINVAL);
    assert_int_equal(number, 77);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    rig_down(&r);
}

static void target__has_but_a_domain(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp_init_attr_ex ex = {.send_cq = r.cq,
                                     .recv_cq = r.cq,
                                     .qp_type = IBV_QPT_XRC_RECV,
                                     .comp_mask = IBV_QP_INIT_ATTR_XRCD,
                                     .xrcd = r.xrcd};
    struct ibv_qp *qp = ibv_create_qp_ex(r.ctx, &ex);

    assert_non_null(qp);
    assert_ptr_equal(qp->context, r.ctx);
    assert_null(qp->pd);
    assert_null(qp->send_cq);
    assert_null(qp->recv_cq);
    assert_int_equal(fake.qp_init.type, QP_TYPE_XRC_TGT);
    assert_non_null(fake.qp_init.xrcd);
    assert_null(fake.qp_init.pd);
    assert_null(fake.qp_init.recv_cq);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS; /* no domain */
    ex.pd = r.pd;
    errno = 0;
    assert_null(ibv_create_qp_ex(r.ctx, &ex));
    assert_int_equal(errno, EINVAL);
    rig_down(&r);
}

/* A forked child waits for no mutex: one that a thread held it would wait for for ever. */
static void destroy__in_a_forked_child(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp_init_attr_ex ex = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = r.xrcd};
    struct ibv_qp *made = ibv_create_qp_ex(r.ctx, &ex);
    assert_non_null(made);
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = made->qp_num,
                                    .xrcd = r.xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *opened = ibv_open_qp(r.ctx, &attr);
    int status = -1;

    assert_non_null(opened);
    pthread_mutex_lock(&obj_ctx(r.ctx)->async.mutex);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(ibv_destroy_qp(opened) == EIO && ibv_destroy_qp(made) == EIO ? 0 : 1);
    }
    pthread_mutex_unlock(&obj_ctx(r.ctx)->async.mutex);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(ibv_destroy_qp(opened), 0);
    assert_int_equal(ibv_destroy_qp(made), 0);
    rig_down(&r);
}

/* The engine refuses, as in a forked child: the handles stay, and go later. */
static void target__not_destroyed(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp_init_attr_ex ex = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = r.xrcd};
    struct ibv_qp *made = ibv_create_qp_ex(r.ctx, &ex);
    assert_non_null(made);
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = made->qp_num,
                                    .xrcd = r.xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};

    for (unsigned i = 0; i < 2; i++) {
        fake.fail = EIO;
        assert_int_equal(ibv_destroy_qp(made), EIO);
    }
    struct ibv_qp *opened = ibv_open_qp(r.ctx, &attr);
    assert_non_null(opened);
    assert_int_equal(ibv_destroy_qp(made), 0);
    for (unsigned i = 0; i < 2; i++) {
        fake.fail = EIO;
        assert_int_equal(ibv_destroy_qp(opened), EIO);
    }
    assert_int_equal(ibv_destroy_qp(opened), 0);
    rig_down(&r);
}

static void initiator__posts_with_a_number(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp_init_attr_ex ex = {
        .send_cq = r.cq,
        .qp_type = IBV_QPT_XRC_SEND,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = r.pd,
        .cap = {.max_send_wr = 4},
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ};
    struct ibv_qp *qp = ibv_create_qp_ex(r.ctx, &ex);
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = 0x123};

    assert_non_null(qp);
    assert_null(qp->recv_cq);
    assert_null(fake.qp_init.recv_cq);
    assert_int_equal(fake.qp_init.type, QP_TYPE_XRC_INI);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    assert_int_equal(fake.sent[0].xrc_srqn, 0x123);
    struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(qpx);
    ibv_wr_send(qpx);
    ibv_wr_set_xrc_srqn(qpx, 0x456);
    assert_int_equal(ibv_wr_complete(qpx), 0);
    assert_int_equal(fake.sent[1].xrc_srqn, 0x456);
    ibv_wr_start(qpx);
    ibv_wr_set_xrc_srqn(qpx, 0x456); /* of nothing */
    assert_int_equal(ibv_wr_complete(qpx), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_down(&r);
}

/* Another type has no such number: what a program left there says nothing. */
static void post__of_rc_has_no_number(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp *qp = fake_qp(r.pd, r.cq);
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = 0x123};

    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    assert_int_equal(fake.sent[0].xrc_srqn, 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_down(&r);
}

static void rc__takes_no_xrc_srq(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 4, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = r.pd,
        .xrcd = r.xrcd,
        .cq = r.cq
    };
    struct ibv_srq *srq = ibv_create_srq_ex(r.ctx, &attr);
    struct ibv_qp_init_attr init = {
        .send_cq = r.cq, .recv_cq = r.cq, .srq = srq, .qp_type = IBV_QPT_RC};

    assert_non_null(srq);
    errno = 0;
    assert_null(ibv_create_qp(r.pd, &init));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    rig_down(&r);
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(open__by_file_or_by_none, reset),
        cmocka_unit_test_setup(open__refused, reset),
        cmocka_unit_test_setup(srq__what_it_needs, reset),
        cmocka_unit_test_setup(srq_number__of_a_basic_one, reset),
        cmocka_unit_test_setup(target__has_but_a_domain, reset),
        cmocka_unit_test_setup(destroy__in_a_forked_child, reset),
        cmocka_unit_test_setup(target__not_destroyed, reset),
        cmocka_unit_test_setup(initiator__posts_with_a_number, reset),
        cmocka_unit_test_setup(post__of_rc_has_no_number, reset),
        cmocka_unit_test_setup(rc__takes_no_xrc_srq, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
