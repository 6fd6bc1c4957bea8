/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_qp_ex.c: extended posting: each operation, data by SGE and inline, abort and mistakes.
 */
#include "fake_host.h"

enum { ALL_OPS = 0x3ff & ~IBV_QP_EX_WITH_BIND_MW };

struct rig {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_qp_ex *ex;
};

static struct ibv_qp *create(struct rig *r, enum ibv_qp_type type, uint64_t ops)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = r->cq,
        .recv_cq = r->cq,
        .qp_type = type,
        .pd = r->pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = ops,
        .cap = {.max_send_wr = 20, .max_send_sge = 2, .max_inline_data = 16}
    };

    return ibv_create_qp_ex(r->ctx, &init);
}

static struct rig rig_up(void)
{
    struct rig r = {.ctx = fake_open()};

    r.pd = ibv_alloc_pd(r.ctx);
    r.cq = ibv_create_cq(r.ctx, 8, NULL, NULL, 0);
    r.qp = create(&r, IBV_QPT_RC, ALL_OPS);
    assert_non_null(r.qp);
    r.ex = ibv_qp_to_qp_ex(r.qp);
    assert_non_null(r.ex);
    return r;
}

static void rig_down(struct rig *r)
{
    assert_int_equal(ibv_destroy_qp(r->qp), 0);
    assert_int_equal(ibv_destroy_cq(r->cq), 0);
    assert_int_equal(ibv_dealloc_pd(r->pd), 0);
    fake_close(r->ctx);
}

static void wr__each_operation(void **state)
{
    (void)state;
    struct rig r = rig_up();
    static const enum wr_opcode want[] = {
        WR_RDMA_WRITE,
        WR_RDMA_WRITE_WITH_IMM,
        WR_SEND,
        WR_SEND_WITH_IMM,
        WR_RDMA_READ,
        WR_SEND_WITH_INV,
        WR_ATOMIC_CMP_AND_SWP,
        WR_ATOMIC_FETCH_AND_ADD,
        WR_LOCAL_INV,
        WR_BIND_MW,
    };
    struct ibv_mw *mw = ibv_alloc_mw(r.pd, IBV_MW_TYPE_2);
    const struct ibv_mw_bind_info info = {NULL, 0, 0, IBV_ACCESS_REMOTE_READ};

    ibv_wr_start(r.ex);
    r.ex->wr_id = 77;
    r.ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    ibv_wr_rdma_write(r.ex, 1, 2);
    ibv_wr_rdma_write_imm(r.ex, 1, 2, 3);
    ibv_wr_send(r.ex);
    ibv_wr_send_imm(r.ex, 3);
    ibv_wr_rdma_read(r.ex, 1, 2);
    ibv_wr_send_inv(r.ex, 3);
    ibv_wr_atomic_cmp_swp(r.ex, 1, 2, 4, 5);
    ibv_wr_atomic_fetch_add(r.ex, 1, 2, 4);
    ibv_wr_local_inv(r.ex, 3);
    ibv_wr_bind_mw(r.ex, mw, 0x42, &info);
    assert_int_equal(fake.posts, 0);
    assert_int_equal(ibv_wr_complete(r.ex), 0);
    assert_int_equal(fake.posts, 10);
    assert_int_equal(fake.kicks, 1);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(fake.sent[i].opcode, want[i]);
        assert_int_equal(fake.sent[i].wr_id, 77);
        assert_int_equal(fake.sent[i].flags, WR_SIGNALED | WR_FENCE);
    }
    assert_int_equal(fake.sent[1].rkey, 1);
    assert_int_equal(fake.sent[1].remote_addr, 2);
    assert_int_equal(fake.sent[1].imm_or_inv, 3);
    assert_int_equal(fake.sent[5].imm_or_inv, 3);
    assert_int_equal(fake.sent[6].compare_add, 4);
    assert_int_equal(fake.sent[6].swap, 5);
    assert_int_equal(fake.sent[7].compare_add, 4);
    assert_int_equal(fake.sent[8].imm_or_inv, 3);
    assert_int_equal(fake.sent[9].rkey, (mw->rkey & 0xffffff00) | 0x42);
    assert_int_equal(fake.sent[9].swap, IBV_ACCESS_REMOTE_READ);
    /* One that libibverbs cannot take fails the whole list. */
    ibv_wr_start(r.ex);
    ibv_wr_send(r.ex);
    ibv_wr_bind_mw(r.ex, NULL, 0x42, &info);
    assert_int_equal(ibv_wr_complete(r.ex), EINVAL);
    assert_int_equal(fake.posts, 10);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    rig_down(&r);
}

static void flush(struct ibv_qp_ex *ex, size_t len, uint8_t type, uint8_t level)
{
    /* As the inline function of release 45. */
    ((union qp_newest *)(void *)ex)->newest.wr_flush(ex, 1, 2, len, type, level);
}

/* The 8 bytes are taken at the call, and stay with their request while the arrays grow. */
static void wr__atomic_write(void **state)
{
    (void)state;
    struct rig r = rig_up();

    ibv_wr_start(r.ex);
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t value = ~i;

        r.ex->wr_id = i;
        r.ex->wr_flags = i % 2 != 0 ? IBV_SEND_SIGNALED | IBV_SEND_INLINE : 0;
        ibv_wr_atomic_write(r.ex, 1, 2, &value);
    }
    assert_int_equal(ibv_wr_complete(r.ex), 0);
    assert_int_equal(fake.posts, 20);
    for (uint64_t i = 0; i < 20; i++) {
        const struct nic_send_wr *wr = &fake.sent[i];

        assert_int_equal(wr->opcode, WR_ATOMIC_WRITE);
        assert_int_equal(wr->wr_id, i);
        assert_int_equal(wr->flags, i % 2 != 0 ? WR_SIGNALED : 0);
        assert_int_equal(wr->rkey, 1);
        assert_int_equal(wr->remote_addr, 2);
        assert_int_equal(wr->num_sge, 0);
        assert_int_equal(wr->swap, ~i);
    }
    rig_down(&r);
}

static void wr__flush(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        uint8_t type, level;
        int err;
        uint64_t swap, bytes;
    } rows[] = {
        {64,       1,    0,    0,      FLUSH_GLOBAL,                               64      },
        {SIZE_MAX, 2,    0,    0,      FLUSH_PERSISTENT,                           SIZE_MAX}, /* the engine's to refuse */
        {0,        3,    1,    0,      FLUSH_GLOBAL | FLUSH_PERSISTENT | FLUSH_MR, 0       },
        {SIZE_MAX, 1,    1,    0,      FLUSH_GLOBAL | FLUSH_MR,                    0       },
        {64,       4,    0,    EINVAL, 0,                                          0       },
        {64,       0x11, 0,    EINVAL, 0,                                          0       },
        {64,       0x81, 0,    EINVAL, 0,                                          0       },
        {64,       1,    2,    EINVAL, 0,                                          0       },
        {64,       1,    0x11, EINVAL, 0,                                          0       },
    };
    struct rig r = rig_up();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake.posts = 0;
        ibv_wr_start(r.ex);
        flush(r.ex, rows[i].len, rows[i].type, rows[i].level);
        assert_int_equal(ibv_wr_complete(r.ex), rows[i].err);
        assert_int_equal(fake.posts, rows[i].err == 0);
        if (rows[i].err != 0)
            continue;
        assert_int_equal(fake.sent[0].opcode, WR_FLUSH);
        assert_int_equal(fake.sent[0].rkey, 1);
        assert_int_equal(fake.sent[0].remote_addr, 2);
        assert_int_equal(fake.sent[0].compare_add, rows[i].bytes);
        assert_int_equal(fake.sent[0].swap, rows[i].swap);
    }
    rig_down(&r);
}

/* 20 WRs: the arrays grow on the way; SGEs and inline bytes stay with their WR. */
static void wr__data_stays_with_its_request(void **state)
{
    (void)state;
    struct rig r = rig_up();

    ibv_wr_start(r.ex);
    for (unsigned i = 0; i < 20; i++) {
        uint8_t bytes[3] = {(uint8_t)i, 1, 2};
        struct ibv_sge list[2] = {
            {.addr = i,  .length = 1, .lkey = 2},
            {.addr = i + 1}
        };
        struct ibv_data_buf bufs[2] = {
            {bytes,     1},
            {bytes + 1, 2}
        };
        ibv_wr_send(r.ex);
        if (i % 3 == 0)
            ibv_wr_set_sge_list(r.ex, 2, list);
        else if (i % 3 == 1)
            ibv_wr_set_inline_data_list(r.ex, 2, bufs);
        else
            ibv_wr_set_sge(r.ex, 5, i, 7);
        memset(bytes, 0xff, sizeof(bytes)); /* may be reused at once (case 9) */
    }
    assert_int_equal(ibv_wr_complete(r.ex), 0);
    assert_int_equal(fake.posts, 20);
    for (unsigned i = 0; i < 20; i++) {
        const struct nic_send_wr *wr = &fake.sent[i];
        assert_int_equal(wr->num_sge, i % 3 == 0 ? 2 : 1);
        if (i % 3 == 1) {
            assert_int_equal(wr->flags, WR_INLINE);
            const uint8_t *p = (const uint8_t *)(uintptr_t)wr->sg_list[0].addr;
            assert_int_equal(wr->sg_list[0].length, 3);
            assert_int_equal(p[0], i);
            assert_int_equal(p[2], 2);
        } else {
            assert_int_equal(wr->flags, 0);
            assert_int_equal(wr->sg_list[0].addr, i);
            assert_int_equal(wr->sg_list[0].lkey, i % 3 == 0 ? 2 : 5);
        }
    }
    rig_down(&r);
}

/* case 7: a mistake posts nothing, and the next list is good again. */
static void wr__mistakes_post_nothing(void **state)
{
    (void)state;
    uint8_t bytes[17] = {0};
    struct ibv_sge three[3] = {{0}};
    struct ibv_data_buf parts[3] = {
        {bytes, 6},
        {bytes, 6},
        {bytes, 5}
    }; /* 17 of 16 */
    struct ibv_data_buf huge[2] = {
        {bytes, 1       },
        {bytes, SIZE_MAX}
    };
    struct rig r = rig_up();

    for (unsigned kind = 0; kind < 7; kind++) {
        int want = EINVAL;
        ibv_wr_start(r.ex);
        if (kind == 5)
            ibv_wr_set_sge(r.ex, 1, 2, 3); /* of what? */
        ibv_wr_send(r.ex);
        switch (kind) {
        case 0:
            ibv_wr_set_sge_list(r.ex, 3, three);
            break;
        case 1:
            ibv_wr_set_inline_data(r.ex, bytes, 17);
            break;
        case 2:
            ibv_wr_set_inline_data_list(r.ex, 3, parts);
            break;
        case 3:
            ibv_wr_set_inline_data_list(r.ex, 2, huge);
            break;
        case 4:
            for (unsigned i = 0; i < 40; i++) /* depth is 20 and a few */
                ibv_wr_send(r.ex);
            want = ENOMEM;
            break;
        case 6:
            ibv_wr_set_sge_list(r.ex, SIZE_MAX, three);
            break;
        default:
            break;
        }
        ibv_wr_send(r.ex);
        assert_int_equal(ibv_wr_complete(r.ex), want);
        assert_int_equal(fake.posts, 0);
    }
    ibv_wr_start(r.ex);
    ibv_wr_send(r.ex);
    ibv_wr_set_inline_data(r.ex, bytes, 16);
    assert_int_equal(ibv_wr_complete(r.ex), 0);
    assert_int_equal(fake.posts, 1);
    rig_down(&r);
}

static void wr__abort_and_engine_errors(void **state)
{
    (void)state;
    struct rig r = rig_up();

    ibv_wr_start(r.ex);
    ibv_wr_send(r.ex);
    ibv_wr_abort(r.ex);
    assert_int_equal(fake.posts, 0);
    fake.fail_post_at = 0;
    fake.fail_post = ENOMEM;
    ibv_wr_start(r.ex);
    ibv_wr_send(r.ex);
    assert_int_equal(ibv_wr_complete(r.ex), ENOMEM);
    /* DEVIATES: ibv_wr_complete(3): what stands before the one that is refused stays posted. */
    fake.fail_post_at = 1;
    ibv_wr_start(r.ex);
    ibv_wr_send(r.ex);
    ibv_wr_send(r.ex);
    assert_int_equal(ibv_wr_complete(r.ex), ENOMEM);
    assert_int_equal(fake.posts, 1);
    fake.posts = 0;
    fake.fail_post_at = UINT32_MAX;
    ibv_wr_start(r.ex);
    assert_int_equal(ibv_wr_complete(r.ex), 0); /* of nothing */
    assert_int_equal(fake.posts, 0);
    rig_down(&r);
}

static void create__operations_by_type(void **state)
{
    (void)state;
    struct rig r = rig_up();
    static const struct {
        enum ibv_qp_type type;
        uint64_t ops;
        bool good;
    } rows[] = {
        {IBV_QPT_RC,       0,                                 true },
        {IBV_QPT_RC,       ALL_OPS,                           true },
        {IBV_QPT_UC,       IBV_QP_EX_WITH_SEND,               true },
        {IBV_QPT_UC,       IBV_QP_EX_WITH_RDMA_READ,          false},
        {IBV_QPT_UC,       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, false},
        {IBV_QPT_UD,       IBV_QP_EX_WITH_SEND,               true },
        {IBV_QPT_UD,       IBV_QP_EX_WITH_SEND_WITH_IMM,      true },
        {IBV_QPT_UD,       IBV_QP_EX_WITH_RDMA_WRITE,         false},
        {IBV_QPT_UD,       IBV_QP_EX_WITH_SEND_WITH_INV,      false},
        {IBV_QPT_RC,       IBV_QP_EX_WITH_BIND_MW,            true },
        {IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_RDMA_READ,          true },
        {IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_LOCAL_INV,          false},
        {IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND_WITH_INV,      false},
        {IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_BIND_MW,            false},
        {IBV_QPT_UD,       IBV_QP_EX_WITH_BIND_MW,            false},
        {IBV_QPT_RC,       IBV_QP_EX_WITH_TSO,                false},
        {IBV_QPT_RC,       IBV_QP_EX_WITH_ATOMIC_WRITE,       true },
        {IBV_QPT_RC,       NEWER_QP_EX_WITH_FLUSH,            true },
        {IBV_QPT_XRC_SEND, NEWER_QP_EX_WITH_FLUSH,            true },
        {IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_ATOMIC_WRITE,       true },
        {IBV_QPT_UC,       NEWER_QP_EX_WITH_FLUSH,            false},
        {IBV_QPT_UD,       NEWER_QP_EX_WITH_FLUSH,            false},
        {IBV_QPT_UC,       IBV_QP_EX_WITH_ATOMIC_WRITE,       false},
        {IBV_QPT_UD,       IBV_QP_EX_WITH_ATOMIC_WRITE,       false},
        {IBV_QPT_RC,       1 << 13,                           false},
        {IBV_QPT_RC,       UINT64_C(1) << 63,                 false},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned alive = fake.alive;
        errno = 0;
        struct ibv_qp *qp = create(&r, rows[i].type, rows[i].ops);
        assert_int_equal(qp != NULL, rows[i].good);
        if (qp != NULL)
            assert_int_equal(ibv_destroy_qp(qp), 0);
        else
            assert_int_equal(errno, EOPNOTSUPP);
        assert_int_equal(fake.alive, alive);
    }
    rig_down(&r);
}

/* Each request its own address; one that is nobody's, or another domain's, posts nothing. */
static void wr__datagram_addresses(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_pd *other = ibv_alloc_pd(r.ctx);
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {.sgid_index = 2, .dgid = {.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}}}
    };
    struct ibv_ah *ah = ibv_create_ah(r.pd, &attr), *foreign = ibv_create_ah(other, &attr);
    struct ibv_qp *qp = create(&r, IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_ud_addr(ex, ah, 5, 6);
    ibv_wr_send_imm(ex, 1);
    ibv_wr_set_ud_addr(ex, ah, 7, 8);
    assert_int_equal(ibv_wr_complete(ex), 0);
    assert_int_equal(fake.posts, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(fake.sent[i].path->remote.b[15], 2);
        assert_int_equal(fake.sent[i].dest_qpn, 5 + 2 * i);
        assert_int_equal(fake.sent[i].qkey, 6 + 2 * i);
    }
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_ud_addr(ex, foreign, 5, 6);
    assert_int_equal(ibv_wr_complete(ex), EINVAL);
    ibv_wr_start(ex);
    ibv_wr_set_ud_addr(ex, ah, 5, 6); /* of no request */
    assert_int_equal(ibv_wr_complete(ex), EINVAL);
    assert_int_equal(fake.posts, 2);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_ah(foreign), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
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
        cmocka_unit_test_setup(wr__each_operation, reset),
        cmocka_unit_test_setup(wr__atomic_write, reset),
        cmocka_unit_test_setup(wr__flush, reset),
        cmocka_unit_test_setup(wr__data_stays_with_its_request, reset),
        cmocka_unit_test_setup(wr__mistakes_post_nothing, reset),
        cmocka_unit_test_setup(wr__abort_and_engine_errors, reset),
        cmocka_unit_test_setup(create__operations_by_type, reset),
        cmocka_unit_test_setup(wr__datagram_addresses, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
