/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_unsupported.c: what this device lacks answers EOPNOTSUPP, by return value or by NULL and
 * errno.
 */
#include "fake_host.h"

int ibv_dofork_range(void *base, size_t size);
int ibv_dontfork_range(void *base, size_t size);

static void fork__needs_no_help(void **state)
{
    (void)state;
    assert_int_equal(ibv_fork_init(), 0);
    assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
    assert_int_equal(ibv_dontfork_range(NULL, 1), 0);
    assert_int_equal(ibv_dofork_range(NULL, 1), 0);
}

#define NONE(call)                                                                                 \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_null(call);                                                                         \
        assert_int_equal(errno, EOPNOTSUPP);                                                       \
    } while (0)

static void pointers__null_and_errno(void **state)
{
    (void)state;
    struct ibv_buf *buf;

    NONE(ibv_alloc_dmah(NULL, NULL));
    NONE(ibv_reg_mr_ex(NULL, NULL));
    NONE(ibv_alloc_buf(NULL, 1, &buf));
    NONE(ibv_reg_buf_mr(NULL, NULL, NULL, 0, 0));
    NONE(ibv_create_comp_cntr(NULL, NULL));
    ibv_free_buf(NULL);
}

static void ints__positive_errno(void **state)
{
    (void)state;
    uint64_t value;

    assert_int_equal(ibv_dealloc_dmah(NULL), EOPNOTSUPP);
    assert_int_equal(_ibv_query_comp_cntr_caps(NULL, NULL, 0), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_comp_cntr(NULL), EOPNOTSUPP);
    assert_int_equal(ibv_set_comp_cntr(NULL, 1), EOPNOTSUPP);
    assert_int_equal(ibv_set_err_comp_cntr(NULL, 1), EOPNOTSUPP);
    assert_int_equal(ibv_inc_comp_cntr(NULL, 1), EOPNOTSUPP);
    assert_int_equal(ibv_inc_err_comp_cntr(NULL, 1), EOPNOTSUPP);
    assert_int_equal(ibv_read_comp_cntr(NULL, &value), EOPNOTSUPP);
    assert_int_equal(ibv_read_err_comp_cntr(NULL, &value), EOPNOTSUPP);
    assert_int_equal(ibv_qp_attach_comp_cntr(NULL, NULL, NULL), EOPNOTSUPP);
    errno = 0;
    assert_int_equal(ibv_dm_export_dmabuf_fd(NULL), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_int_equal(ibv_export_buf_dmabuf_fd(NULL), -1);
    assert_int_equal(errno, EOPNOTSUPP);
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
        cmocka_unit_test_setup(fork__needs_no_help, reset),
        cmocka_unit_test_setup(pointers__null_and_errno, reset),
        cmocka_unit_test_setup(ints__positive_errno, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
