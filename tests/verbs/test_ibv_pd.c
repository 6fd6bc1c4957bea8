/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_pd.c: protection domains.
 */
#include "fake_host.h"

static void pd__born_and_gone(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *a = ibv_alloc_pd(ctx), *b = ibv_alloc_pd(ctx);

    assert_ptr_equal(a->context, ctx);
    assert_int_not_equal(a->handle, b->handle);
    assert_int_equal(ibv_dealloc_pd(a), 0);
    assert_int_equal(ibv_dealloc_pd(b), 0);
    fake_close(ctx);
}

static void pd__errors(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();

    fake.fail = ENOMEM;
    errno = 0;
    assert_null(ibv_alloc_pd(ctx));
    assert_int_equal(errno, ENOMEM);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    fake.fail = EIO;
    assert_int_equal(ibv_dealloc_pd(pd), EIO);
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
        cmocka_unit_test_setup(pd__born_and_gone, reset),
        cmocka_unit_test_setup(pd__errors, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
