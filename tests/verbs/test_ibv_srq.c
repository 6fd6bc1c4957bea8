/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_srq.c: shared receive queues.
 */
#include "fake_host.h"

static void srq__create_query_modify(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_srq_init_attr init = {
        .srq_context = &fake, .attr = {.max_wr = 10, .max_sge = 2, .srq_limit = 5}
    };
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct ibv_srq_attr attr;

    assert_non_null(srq);
    assert_ptr_equal(srq->srq_context, &fake);
    assert_int_equal(init.attr.max_wr, 11);
    assert_int_equal(init.attr.max_sge, 3);
    assert_int_equal(fake.srq_limit, 0);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.max_wr, 11);
    attr.max_wr = 100; /* case 20 */
    attr.srq_limit = 7;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
    assert_int_equal(attr.max_wr, 101);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.max_wr, 101);
    assert_int_equal(attr.srq_limit, 7);
    assert_int_equal(ibv_modify_srq(srq, &attr, 0), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

static void srq__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = 10, .max_sge = 2}
    };
    struct ibv_srq_attr attr = {.max_wr = 5, .srq_limit = 3};

    fake.fail = EINVAL;
    errno = 0;
    assert_null(ibv_create_srq(pd, &init));
    assert_int_equal(errno, EINVAL);
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    assert_int_equal(ibv_modify_srq(srq, &attr, 4), EINVAL);
    assert_int_equal(ibv_modify_srq(srq, &attr, -1), EINVAL);
    fake.fail = EINVAL;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(fake.srq_limit, 0); /* the second half was not done */
    attr.max_wr = 0;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
    fake.fail = EBUSY;
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), 0);
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
        cmocka_unit_test_setup(srq__create_query_modify, reset),
        cmocka_unit_test_setup(srq__refused, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
