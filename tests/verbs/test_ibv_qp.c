/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_qp.c: queue pairs: what is refused before the engine is asked, what comes back.
 */
#include "fake_host.h"

struct rig {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
};

static struct rig rig_up(void)
{
    struct rig r = {.ctx = fake_open()};

    r.pd = ibv_alloc_pd(r.ctx);
    r.cq = ibv_create_cq(r.ctx, 8, NULL, NULL, 0);
    return r;
}

static void rig_down(struct rig *r)
{
    assert_int_equal(ibv_destroy_cq(r->cq), 0);
    assert_int_equal(ibv_dealloc_pd(r->pd), 0);
    fake_close(r->ctx);
}

static struct ibv_qp_init_attr rc_init(struct ibv_cq *cq)
{
    return (struct ibv_qp_init_attr){
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .qp_context = &fake,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 1,
                .max_recv_wr = 2,
                .max_send_sge = 3,
                .max_recv_sge = 4,
                .max_inline_data = 5},
    };
}

static struct ibv_qp_attr rtr_attr(void)
{
    return (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = 9,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.sgid_index = 2,
                            .dgid = {.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}}}},
    };
}

static void create__fields_and_caps(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp_init_attr init = rc_init(r.cq);
    struct ibv_qp *qp = ibv_create_qp(r.pd, &init);

    assert_non_null(qp);
    assert_int_equal(qp->qp_num, 0x123456);
    assert_int_equal(qp->state, IBV_QPS_RESET);
    assert_int_equal(qp->qp_type, IBV_QPT_RC);
    assert_ptr_equal(qp->qp_context, &fake);
    assert_ptr_equal(qp->send_cq, r.cq);
    assert_int_equal(fake.qp_init.type, QP_TYPE_RC);
    assert_true(fake.qp_init.sq_sig_all);
    assert_int_equal(fake.qp_init.cap.max_recv_wr, 2);
    assert_int_equal(fake.qp_init.cap.max_inline_bytes, 5);
    assert_int_equal(init.cap.max_send_wr, 4); /* as given */
    assert_null(ibv_qp_to_qp_ex(qp));
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_down(&r);
}

static void create__srq_takes_the_receive_queue(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_srq_init_attr srq_init = {
        .attr = {.max_wr = 4, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(r.pd, &srq_init);
    struct ibv_qp_init_attr init = rc_init(r.cq);

    init.srq = srq;
    struct ibv_qp *qp = ibv_create_qp(r.pd, &init);
    assert_non_null(qp);
    assert_ptr_equal(qp->srq, srq);
    assert_non_null(fake.qp_init.srq);
    assert_int_equal(fake.qp_init.cap.max_recv_wr, 0);
    assert_int_equal(init.cap.max_recv_wr, 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    rig_down(&r);
}

/* case 13 (types), case 10 (what the engine refuses) */
static void create__refused(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_context *other = fake_open();
    struct ibv_cq *foreign = ibv_create_cq(other, 1, NULL, NULL, 0);
    const struct {
        int type;
        struct ibv_cq *send_cq, *recv_cq;
        int fail;
        int want;
    } rows[] = {
        {0,                  r.cq,    r.cq,    0,          EINVAL    },
        {1,                  r.cq,    r.cq,    0,          EINVAL    }, /* the engine's GSI */
        {99,                 r.cq,    r.cq,    0,          EINVAL    },
        {-1,                 r.cq,    r.cq,    0,          EINVAL    },
        {IBV_QPT_RAW_PACKET, r.cq,    r.cq,    0,          EOPNOTSUPP},
        {IBV_QPT_DRIVER,     r.cq,    r.cq,    0,          EOPNOTSUPP},
        {IBV_QPT_UC,         r.cq,    r.cq,    EOPNOTSUPP, EOPNOTSUPP},
        {IBV_QPT_XRC_SEND,   NULL,    r.cq,    0,          EINVAL    },
        {IBV_QPT_XRC_SEND,   foreign, r.cq,    0,          EINVAL    },
        {IBV_QPT_XRC_RECV,   r.cq,    r.cq,    0,          EINVAL    }, /* no domain */
        {IBV_QPT_RC,         NULL,    r.cq,    0,          EINVAL    },
        {IBV_QPT_RC,         r.cq,    NULL,    0,          EINVAL    },
        {IBV_QPT_RC,         foreign, r.cq,    0,          EINVAL    },
        {IBV_QPT_RC,         r.cq,    foreign, 0,          EINVAL    },
        {IBV_QPT_RC,         r.cq,    r.cq,    EINVAL,     EINVAL    },
        {IBV_QPT_RC,         r.cq,    r.cq,    ENOMEM,     ENOMEM    },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp_init_attr init = rc_init(rows[i].send_cq);
        init.recv_cq = rows[i].recv_cq;
        init.qp_type = (enum ibv_qp_type)rows[i].type;
        fake.fail = rows[i].fail;
        errno = 0;
        assert_null(ibv_create_qp(r.pd, &init));
        assert_int_equal(errno, rows[i].want);
        assert_int_equal(init.cap.max_send_wr, 1);
    }
    assert_int_equal(ibv_destroy_cq(foreign), 0);
    assert_int_equal(ibv_close_device(other), 0);
    rig_down(&r);
}

static void create_ex__plain_or_unsupported(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_context *other = fake_open();
    struct ibv_pd *foreign = ibv_alloc_pd(other);
    struct ibv_qp_init_attr_ex ex = {.send_cq = r.cq,
                                     .recv_cq = r.cq,
                                     .qp_type = IBV_QPT_RC,
                                     .pd = r.pd,
                                     .cap = {.max_send_wr = 1}};
    const struct {
        uint32_t mask;
        uint32_t create_flags;
        struct ibv_pd *pd;
        int want;
    } rows[] = {
        {IBV_QP_INIT_ATTR_PD,                                   0, r.pd,    0         },
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,   0, r.pd,    0         },
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,   2, r.pd,    EOPNOTSUPP},
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0, r.pd,    0         },
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE,      0, r.pd,    EOPNOTSUPP},
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,   0, foreign, EINVAL    },
        {IBV_QP_INIT_ATTR_CREATE_FLAGS,                         0, r.pd,    EINVAL    },
        {0,                                                     0, r.pd,    EINVAL    },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ex.comp_mask = rows[i].mask;
        ex.create_flags = rows[i].create_flags;
        ex.pd = rows[i].pd;
        errno = 0;
        struct ibv_qp *qp = ibv_create_qp_ex(r.ctx, &ex);
        assert_int_equal(qp == NULL, rows[i].want != 0);
        if (qp != NULL)
            assert_int_equal(ibv_destroy_qp(qp), 0);
        else
            assert_int_equal(errno, rows[i].want);
    }
    assert_int_equal(ibv_dealloc_pd(foreign), 0);
    assert_int_equal(ibv_close_device(other), 0);
    rig_down(&r);
}

static void modify__passes_and_remembers(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp *qp = fake_qp(r.pd, r.cq);
    struct ibv_qp_attr attr = rtr_attr(), got;
    struct ibv_qp_init_attr init;
    const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN;

    assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
    assert_int_equal(qp->state, IBV_QPS_RTR);
    assert_int_equal(fake.mask, mask);
    assert_int_equal(fake.attr.path_mtu_bytes, 1024);
    assert_int_equal(fake.attr.active_mtu_bytes, 1024); /* case 32: the bound is the port's */
    assert_int_equal(fake.attr.dest_qpn, 9);
    assert_int_equal(fake.attr.path.local.b[15], 1);
    assert_int_equal(fake.attr.path.remote.b[15], 2);
    assert_int_equal(ibv_query_qp(qp, &got, IBV_QP_AV, &init), 0);
    assert_int_equal(got.ah_attr.grh.sgid_index, 2);
    assert_int_equal(got.dest_qp_num, 9);
    assert_int_equal(got.cap.max_send_sge, 2);
    assert_int_equal(init.cap.max_send_sge, 2);
    assert_ptr_equal(init.send_cq, r.cq);
    assert_int_equal(init.qp_type, IBV_QPT_RC);
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_query_qp(qp, &got, IBV_QP_AV, &init), 0);
    assert_int_equal(got.ah_attr.is_global, 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_down(&r);
}

/* case 2: a positive errno; and the state stays. */
static void modify__refused(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp *qp = fake_qp(r.pd, r.cq);
    struct ibv_qp_attr bad[6];
    const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PORT;

    for (unsigned i = 0; i < 6; i++) {
        bad[i] = rtr_attr();
        bad[i].port_num = 1;
    }
    bad[0].ah_attr.is_global = 0;
    bad[1].ah_attr.grh.sgid_index = 77;
    bad[2].path_mtu = (enum ibv_mtu)6;
    bad[3].port_num = 0;
    bad[4].port_num = 2;
    bad[5].ah_attr.port_num = 2;
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(ibv_modify_qp(qp, &bad[i], mask), EINVAL);
        assert_int_equal(fake.mask, 0); /* the engine was not asked */
        assert_int_equal(qp->state, IBV_QPS_RESET);
    }
    struct ibv_qp_attr good = rtr_attr(), got;
    struct ibv_qp_init_attr init;
    fake.fail = EINVAL;
    assert_int_equal(ibv_modify_qp(qp, &good, IBV_QP_STATE), EINVAL);
    assert_int_equal(qp->state, IBV_QPS_RESET);
    fake.fail = EIO;
    assert_int_equal(ibv_query_qp(qp, &got, 0, &init), EIO);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_down(&r);
}

static void rate_limit__both_ways_to_set_it(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp *qp = fake_qp(r.pd, r.cq);
    struct ibv_qp_rate_limit_attr limit = {
        .rate_limit = 7000, .max_burst_sz = 5000, .typical_pkt_sz = 64};
    struct ibv_qp_attr attr = {.rate_limit = 8000}, got;
    struct ibv_qp_init_attr init;

    assert_int_equal(ibv_modify_qp_rate_limit(qp, &limit), 0);
    assert_int_equal(fake.mask, QP_ATTR_RATE_LIMIT);
    assert_int_equal(fake.attr.rate_limit_kbps, 7000);
    assert_int_equal(fake.attr.max_burst_bytes, 5000);
    assert_int_equal(ibv_query_qp(qp, &got, IBV_QP_RATE_LIMIT, &init), 0);
    assert_int_equal(got.rate_limit, 7000);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT), 0);
    assert_int_equal(fake.attr.rate_limit_kbps, 8000);
    assert_int_equal(fake.attr.max_burst_bytes, 0); /* the usual */
    fake.mask = 0;
    limit.comp_mask = 1;
    assert_int_equal(ibv_modify_qp_rate_limit(qp, &limit), EOPNOTSUPP);
    assert_int_equal(fake.mask, 0);
    limit.comp_mask = 0;
    fake.fail = EINVAL;
    assert_int_equal(ibv_modify_qp_rate_limit(qp, &limit), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_down(&r);
}

static void mcast__group_and_errors(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp *qp = fake_qp(r.pd, r.cq);
    union ibv_gid gid = {
        .raw = {0xff, 0x0e, [15] = 9}
    };

    assert_int_equal(ibv_attach_mcast(qp, &gid, 0xc001), 0);
    assert_memory_equal(fake.group.b, gid.raw, 16);
    gid.raw[15] = 8;
    assert_int_equal(ibv_detach_mcast(qp, &gid, 0), 0);
    assert_memory_equal(fake.group.b, gid.raw, 16);
    fake.fail = EINVAL;
    assert_int_equal(ibv_attach_mcast(qp, &gid, 0), EINVAL);
    fake.fail = ENOMEM;
    assert_int_equal(ibv_detach_mcast(qp, &gid, 0), ENOMEM);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_down(&r);
}

/* Our vendor's options go to the engine, which says what it takes; nobody else's do. */
static void ece__rows(void **state)
{
    (void)state;
    enum { OURS = VERBS_VENDOR_ID, UNTOUCHED = 77 };
    static const struct {
        struct ibv_ece ece;
        int fail, err;
        uint32_t taken; /* UNTOUCHED: the engine has not heard of it */
        uint32_t options;
    } rows[] = {
        {{OURS, 1, 0},           0,      0,          1,          1   },
        {{OURS, 0, 0},           0,      0,          0,          0   },
        {{OURS, UINT32_MAX, 0},  0,      0,          UINT32_MAX, 1   },
        {{OURS, 1, 0},           EINVAL, EINVAL,     1,          1   }, /* too late */
        {{OURS, 1, 0},           EIO,    EIO,        1,          1   },
        {{0, 1, 0},              0,      EOPNOTSUPP, UNTOUCHED,  1   }, /* the peer has no ECE */
        {{0x15b3, 2, 0},         0,      EINVAL,     UNTOUCHED,  2   },
        {{OURS + 1, 0x30, 0},    0,      EINVAL,     UNTOUCHED,  0x30},
        {{OURS, 1, 1},           0,      EINVAL,     UNTOUCHED,  1   },
        {{OURS, 1, 0x80000000u}, 0,      EINVAL,     UNTOUCHED,  1   },
    };
    struct rig r = rig_up();
    struct ibv_qp *qp = fake_qp(r.pd, r.cq);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_ece ece = rows[i].ece;
        fake.ece = UNTOUCHED;
        fake.fail = rows[i].fail;
        errno = 0;
        assert_int_equal(ibv_set_ece(qp, &ece), rows[i].err);
        assert_int_equal(errno, rows[i].err);
        assert_int_equal(fake.ece, rows[i].taken);
        assert_int_equal(ece.options, rows[i].options);
        assert_int_equal(ece.vendor_id, rows[i].ece.vendor_id);
        fake.fail = 0;
    }
    struct ibv_ece ece = {.vendor_id = 1, .options = 2, .comp_mask = 3};
    fake.ece = 5;
    assert_int_equal(ibv_query_ece(qp, &ece), 0);
    assert_int_equal(ece.vendor_id, OURS);
    assert_int_equal(ece.options, 5);
    assert_int_equal(ece.comp_mask, 0);
    fake.fail = EIO;
    assert_int_equal(ibv_query_ece(qp, &ece), EIO);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_down(&r);
}

static void data_in_order__not_promised(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_qp *qp = fake_qp(r.pd, r.cq);

    assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
    fake.fail = EIO;
    assert_int_equal(ibv_destroy_qp(qp), EIO);
    assert_int_equal(ibv_destroy_qp(qp), 0);
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
        cmocka_unit_test_setup(create__fields_and_caps, reset),
        cmocka_unit_test_setup(create__srq_takes_the_receive_queue, reset),
        cmocka_unit_test_setup(create__refused, reset),
        cmocka_unit_test_setup(create_ex__plain_or_unsupported, reset),
        cmocka_unit_test_setup(modify__passes_and_remembers, reset),
        cmocka_unit_test_setup(modify__refused, reset),
        cmocka_unit_test_setup(rate_limit__both_ways_to_set_it, reset),
        cmocka_unit_test_setup(mcast__group_and_errors, reset),
        cmocka_unit_test_setup(ece__rows, reset),
        cmocka_unit_test_setup(data_in_order__not_promised, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
