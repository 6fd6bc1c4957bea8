/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_mr.c: memory regions: access flags, iova, keys, errors.
 */
#include "fake_host.h"

static char mr_buf[64];

static void reg__fields(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, mr_buf, sizeof(mr_buf), IBV_ACCESS_LOCAL_WRITE);

    assert_non_null(mr);
    assert_ptr_equal(mr->context, ctx);
    assert_ptr_equal(mr->pd, pd);
    assert_ptr_equal(mr->addr, mr_buf);
    assert_int_equal(mr->length, sizeof(mr_buf));
    assert_int_equal(mr->lkey, 0x1234);
    assert_int_equal(mr->rkey, 0x1234);
    assert_int_equal(fake.mr_iova, (uintptr_t)mr_buf);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_mr_iova(pd, mr_buf, sizeof(mr_buf), 0x1000, IBV_ACCESS_REMOTE_READ);
    assert_int_equal(fake.mr_iova, 0x1000);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_mr(pd, mr_buf, sizeof(mr_buf), IBV_ACCESS_ZERO_BASED);
    assert_int_equal(fake.mr_iova, 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

/* case 17: hints are dropped, not refused. */
static void reg__optional_bits_are_ignored(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);

    for (unsigned bit = 20; bit < 30; bit++) {
        volatile int access = IBV_ACCESS_LOCAL_WRITE | (int)(1u << bit);
        struct ibv_mr *mr = ibv_reg_mr(pd, mr_buf, sizeof(mr_buf), access);
        assert_non_null(mr);
        assert_int_equal(fake.mr_access, ACCESS_LOCAL_WRITE);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    struct ibv_mr *mr = ibv_reg_mr_iova2(pd, mr_buf, 1, 5, IBV_ACCESS_HUGETLB);
    assert_non_null(mr);
    assert_int_equal(fake.mr_access, 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

static void reg__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    static const struct {
        unsigned access;
        int fail;
        int want;
    } rows[] = {
        {1u << 10,                      0,          EINVAL    },
        {NEWER_ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP, EOPNOTSUPP},
        {1u << 19,                      0,          EINVAL    },
        {1u << 30,                      0,          EINVAL    },
        {1u << 31,                      0,          EINVAL    },
        {IBV_ACCESS_ON_DEMAND,          EFAULT,     EFAULT    },
        {IBV_ACCESS_REMOTE_WRITE,       EINVAL,     EINVAL    },
        {0,                             ENOMEM,     ENOMEM    },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake.fail = rows[i].fail;
        errno = 0;
        assert_null(ibv_reg_mr_iova2(pd, mr_buf, sizeof(mr_buf), 0, rows[i].access));
        assert_int_equal(errno, rows[i].want);
    }
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

static void dereg__busy_keeps_it(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, mr_buf, sizeof(mr_buf), 0);

    fake.fail = EBUSY;
    assert_int_equal(ibv_dereg_mr(mr), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

/* What libibverbs itself refuses never reaches the engine; what that refuses changes nothing. */
static void rereg__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, mr_buf, sizeof(mr_buf), 0);
    const struct {
        int flags;
        struct ibv_pd *pd;
        void *addr;
        size_t length;
        int access, fail, want;
    } rows[] = {
        {0,                               pd,    mr_buf, 8, 0,       0,     EINVAL},
        {8,                               pd,    mr_buf, 8, 0,       0,     EINVAL},
        {IBV_REREG_MR_CHANGE_TRANSLATION, pd,    NULL,   8, 0,       0,     EINVAL},
        {IBV_REREG_MR_CHANGE_TRANSLATION, pd,    mr_buf, 0, 0,       0,     EINVAL},
        {IBV_REREG_MR_CHANGE_TRANSLATION, pd,    mr_buf, 8, 1,       0,     EINVAL},
        {IBV_REREG_MR_CHANGE_PD,          NULL,  NULL,   0, 0,       0,     EINVAL},
        {IBV_REREG_MR_CHANGE_ACCESS,      NULL,  NULL,   0, 1 << 19, 0,     EINVAL},
        {IBV_REREG_MR_CHANGE_PD,          other, NULL,   0, 0,       EBUSY, EBUSY },
        {IBV_REREG_MR_CHANGE_TRANSLATION, NULL,  mr_buf, 8, 0,       EBUSY, EBUSY },
    };
    const struct ibv_mr before = *mr;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake.fail = rows[i].fail;
        errno = 0;
        assert_int_equal(ibv_rereg_mr(mr, rows[i].flags, rows[i].pd, rows[i].addr, rows[i].length,
                                      rows[i].access),
                         IBV_REREG_MR_ERR_INPUT);
        assert_int_equal(errno, rows[i].want);
        assert_int_equal(fake.mr_change, 0);
        assert_memory_equal(mr, &before, sizeof(before));
    }
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    fake_close(ctx);
}

static void rereg__fields(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, mr_buf, sizeof(mr_buf), 0);
    /* Hints and the size of pages are nothing to the engine. */
    volatile int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;

    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access), 0);
    assert_int_equal(fake.mr_change, MR_CHANGE_ACCESS);
    assert_int_equal(fake.mr_access, ACCESS_LOCAL_WRITE);
    assert_int_equal(mr->lkey, 0x1234);
    assert_ptr_equal(mr->addr, mr_buf);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION,
                                  other, mr_buf + 8, 16, 0),
                     0);
    assert_int_equal(fake.mr_change, MR_CHANGE_PD | MR_CHANGE_TRANSLATION);
    assert_ptr_equal(mr->pd, other);
    assert_ptr_equal(mr->addr, mr_buf + 8);
    assert_int_equal(mr->length, 16);
    assert_int_equal(mr->lkey, 0x1235);
    assert_int_equal(mr->rkey, 0x1235);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_dealloc_pd(other), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    fake_close(ctx);
}

static void advise__what_reaches_the_engine(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_sge sge[2] = {{0}};
    static const struct {
        int advice;
        uint32_t flags, num;
        int advised, want;
    } rows[] = {
        {IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        2,        2,  0         },
        {IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,    IBV_ADVISE_MR_FLAG_FLUSH, 2,        -2, 0         },
        {IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, 1,        1,  0         },
        {3,                                      0,                        1,        0,  EOPNOTSUPP},
        {IBV_ADVISE_MR_ADVICE_PREFETCH,          2,                        1,        0,  EINVAL    },
        {IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        0,        0,  EINVAL    },
        {IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        1u << 31, 0,  EINVAL    },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake.advised = 0;
        assert_int_equal(ibv_advise_mr(pd, (enum ibv_advise_mr_advice)rows[i].advice, rows[i].flags,
                                       sge, rows[i].num),
                         rows[i].want);
        assert_int_equal(fake.advised, rows[i].advised);
    }
    fake.fail = EFAULT;
    assert_int_equal(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 1), EFAULT);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

static void null_mr__fields(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);

    fake.fail = ENOMEM;
    errno = 0;
    assert_null(ibv_alloc_null_mr(pd));
    assert_int_equal(errno, ENOMEM);
    struct ibv_mr *mr = ibv_alloc_null_mr(pd);
    assert_non_null(mr);
    assert_null(mr->addr);
    assert_int_equal(mr->lkey, 0x77);
    assert_ptr_equal(mr->pd, pd);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

static void unsupported__leaves_the_region(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, mr_buf, sizeof(mr_buf), 0);

    errno = 0;
    assert_null(ibv_reg_dmabuf_mr(pd, 0, 1, 0, 0, 0));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
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
        cmocka_unit_test_setup(reg__fields, reset),
        cmocka_unit_test_setup(reg__optional_bits_are_ignored, reset),
        cmocka_unit_test_setup(reg__refused, reset),
        cmocka_unit_test_setup(dereg__busy_keeps_it, reset),
        cmocka_unit_test_setup(rereg__refused, reset),
        cmocka_unit_test_setup(rereg__fields, reset),
        cmocka_unit_test_setup(advise__what_reaches_the_engine, reset),
        cmocka_unit_test_setup(null_mr__fields, reset),
        cmocka_unit_test_setup(unsupported__leaves_the_region, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
