/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_mw.c: memory windows: what a bind becomes on its way to the engine, and what stops it.
 */
#include "fake_host.h"

static char mw_buf[64];

struct mw_rig {
    struct ibv_context *ctx;
    struct ibv_pd *pd, *other;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr, *foreign;
    struct ibv_mw *one, *two;
};

static void rig_open(struct mw_rig *r)
{
    r->ctx = fake_open();
    r->pd = ibv_alloc_pd(r->ctx);
    r->other = ibv_alloc_pd(r->ctx);
    r->cq = ibv_create_cq(r->ctx, 8, NULL, NULL, 0);
    r->qp = fake_qp(r->pd, r->cq);
    r->mr = ibv_reg_mr(r->pd, mw_buf, sizeof(mw_buf), IBV_ACCESS_MW_BIND);
    r->foreign = ibv_reg_mr(r->other, mw_buf, sizeof(mw_buf), IBV_ACCESS_MW_BIND);
    r->one = ibv_alloc_mw(r->pd, IBV_MW_TYPE_1);
    r->two = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
    assert_non_null(r->one);
    assert_non_null(r->two);
}

static void rig_close(struct mw_rig *r)
{
    assert_int_equal(ibv_dealloc_mw(r->one), 0);
    assert_int_equal(ibv_dealloc_mw(r->two), 0);
    assert_int_equal(ibv_dereg_mr(r->mr), 0);
    assert_int_equal(ibv_dereg_mr(r->foreign), 0);
    assert_int_equal(ibv_destroy_qp(r->qp), 0);
    assert_int_equal(ibv_destroy_cq(r->cq), 0);
    assert_int_equal(ibv_dealloc_pd(r->pd), 0);
    assert_int_equal(ibv_dealloc_pd(r->other), 0);
    fake_close(r->ctx);
}

static void alloc__fields_and_errors(void **state)
{
    (void)state;
    struct mw_rig r;
    static const struct {
        int type, fail, want;
    } rows[] = {
        {0, 0,      EINVAL},
        {3, 0,      EINVAL},
        {1, ENOMEM, ENOMEM},
        {2, EIO,    EIO   },
    };

    rig_open(&r);
    assert_ptr_equal(r.two->context, r.ctx);
    assert_ptr_equal(r.two->pd, r.pd);
    assert_int_equal(r.two->rkey, 0x123400fe);
    assert_int_equal(r.two->type, IBV_MW_TYPE_2);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake.fail = rows[i].fail;
        errno = 0;
        assert_null(ibv_alloc_mw(r.pd, (enum ibv_mw_type)rows[i].type));
        assert_int_equal(errno, rows[i].want);
    }
    fake.fail = EIO;
    assert_int_equal(ibv_dealloc_mw(r.one), EIO);
    rig_close(&r);
}

static void expect_bind(const struct mw_rig *r, const struct nic_send_wr *wr, uint32_t rkey)
{
    assert_int_equal(wr->opcode, WR_BIND_MW);
    assert_int_equal(wr->wr_id, 9);
    assert_int_equal(wr->flags, WR_SIGNALED);
    assert_int_equal(wr->rkey, rkey);
    assert_int_equal(wr->imm_or_inv, r->mr->lkey);
    assert_int_equal(wr->remote_addr, (uintptr_t)mw_buf + 8);
    assert_int_equal(wr->compare_add, 16);
    assert_int_equal(wr->swap, IBV_ACCESS_REMOTE_READ);
    assert_int_equal(wr->num_sge, 0);
}

/* Only the last 8 bits of a key are the program's; they come round. */
static void bind__becomes_a_work_request(void **state)
{
    (void)state;
    struct mw_rig r;
    struct ibv_send_wr *bad;

    rig_open(&r);
    struct ibv_mw_bind_info info = {r.mr, (uintptr_t)mw_buf + 8, 16, IBV_ACCESS_REMOTE_READ};
    struct ibv_mw_bind bind = {9, IBV_SEND_SIGNALED, info};
    for (unsigned i = 0; i < 3; i++) {
        const uint32_t key = 0x12340000 | ((0xff + i) & 0xff);
        assert_int_equal(ibv_bind_mw(r.qp, r.one, &bind), 0);
        assert_int_equal(r.one->rkey, key);
        expect_bind(&r, &fake.sent[i], key);
        assert_int_equal(fake.kicks, i + 1);
    }
    struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    wr.bind_mw.mw = r.two;
    wr.bind_mw.rkey = 0xabcdef42;
    wr.bind_mw.bind_info = info;
    assert_int_equal(ibv_post_send(r.qp, &wr, &bad), 0);
    expect_bind(&r, &fake.sent[3], 0x12340042);
    assert_int_equal(r.two->rkey, 0x123400fe); /* the program's to change */
    rig_close(&r);
}

static void bind__refused(void **state)
{
    (void)state;
    struct mw_rig r;
    struct ibv_send_wr *bad;

    rig_open(&r);
    struct ibv_mw *other = ibv_alloc_mw(r.other, IBV_MW_TYPE_2);
    const struct {
        struct ibv_mw *mw;
        struct ibv_mw_bind_info info;
    } rows[] = {
        {NULL,  {r.mr, 0, 8, 0}       },
        {r.one, {r.mr, 0, 8, 0}       },
        {other, {r.mr, 0, 8, 0}       },
        {other, {r.foreign, 0, 8, 0}  },
        {r.two, {r.foreign, 0, 8, 0}  },
        {r.two, {NULL, 1, 0, 0}       },
        {r.two, {NULL, 0, 1, 0}       },
        {r.two, {r.mr, 0, 8, 1u << 19}},
        {r.two, {r.mr, 0, 8, 1u << 31}},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

        wr.bind_mw.mw = rows[i].mw;
        wr.bind_mw.bind_info = rows[i].info;
        bad = NULL;
        assert_int_equal(ibv_post_send(r.qp, &wr, &bad), EINVAL);
        assert_ptr_equal(bad, &wr);
    }
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
    wr.bind_mw.mw = r.two;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){r.mr, 0, 8, 0};
    r.qp->qp_type = IBV_QPT_XRC_SEND; /* takes no requests */
    assert_int_equal(ibv_post_send(r.qp, &wr, &bad), EINVAL);
    r.qp->qp_type = IBV_QPT_RC;
    struct ibv_mw_bind bind = {
        .bind_info = {r.mr, 0, 8, IBV_ACCESS_ZERO_BASED}
    };
    assert_int_equal(ibv_bind_mw(r.qp, r.one, &bind), EINVAL);
    bind.bind_info.mw_access_flags = 0;
    fake.fail_post_at = 0;
    fake.fail_post = ENOMEM;
    assert_int_equal(ibv_bind_mw(r.qp, r.one, &bind), ENOMEM);
    assert_int_equal(r.one->rkey, 0x123400fe); /* as before */
    assert_int_equal(fake.posts, 0);
    assert_int_equal(ibv_dealloc_mw(other), 0);
    rig_close(&r);
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
        cmocka_unit_test_setup(alloc__fields_and_errors, reset),
        cmocka_unit_test_setup(bind__becomes_a_work_request, reset),
        cmocka_unit_test_setup(bind__refused, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
