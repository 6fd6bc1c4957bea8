/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_cq.c: completion queues: bounds, sizes, polling in batches, arming, waiting for acks.
 */
#include "fake_host.h"

#include <pthread.h>
#include <unistd.h>

static void create__bounds(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_context *other = fake_open();
    struct ibv_comp_channel *ch = ibv_create_comp_channel(other);
    static const struct {
        int cqe;
        int vector;
    } bad[] = {
        {0,         0 },
        {-1,        0 },
        {1,         1 },
        {1,         -1},
        {INT32_MIN, 0 }
    };

    for (unsigned i = 0; i < 5; i++) {
        errno = 0;
        assert_null(ibv_create_cq(ctx, bad[i].cqe, NULL, NULL, bad[i].vector));
        assert_int_equal(errno, EINVAL);
    }
    assert_null(ibv_create_cq(ctx, 1, NULL, ch, 0)); /* of another context */
    assert_int_equal(errno, EINVAL);
    fake.fail = ENOMEM;
    assert_null(ibv_create_cq(ctx, 1, NULL, NULL, 0));
    assert_int_equal(errno, ENOMEM);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, &fake, NULL, 0);
    assert_non_null(cq);
    assert_int_equal(cq->cqe, 5); /* what was given */
    assert_ptr_equal(cq->cq_context, &fake);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(ch), 0);
    assert_int_equal(ibv_close_device(other), 0);
    fake_close(ctx);
}

static void resize__real_size_or_error(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);

    assert_int_equal(ibv_resize_cq(cq, 100), 0);
    assert_int_equal(cq->cqe, 101);
    fake.fail = EINVAL;
    assert_int_equal(ibv_resize_cq(cq, 2), EINVAL);
    assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
    assert_int_equal(ibv_resize_cq(cq, -1), EINVAL);
    assert_int_equal(cq->cqe, 101);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    fake_close(ctx);
}

static void poll__more_than_a_batch(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
    struct ibv_wc wc[64];

    assert_int_equal(ibv_poll_cq(cq, 64, wc), 0);
    for (unsigned i = 0; i < 40; i++)
        fake.wc[i].wr_id = i;
    fake.wcs = 40;
    assert_int_equal(ibv_poll_cq(cq, 3, wc), 3);
    assert_int_equal(fake.largest_poll, 16);
    assert_int_equal(ibv_poll_cq(cq, 64, wc), 37);
    for (unsigned i = 0; i < 37; i++)
        assert_int_equal(wc[i].wr_id, i + 3);
    fake.fail = EIO; /* after a fork */
    assert_int_equal(ibv_poll_cq(cq, 1, wc), -EIO);
    assert_int_equal(ibv_poll_cq(cq, 0, wc), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    fake_close(ctx);
}

static void arm__solicited_and_errors(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);

    assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
    assert_true(fake.armed_solicited);
    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    assert_false(fake.armed_solicited);
    fake.fail = EIO;
    assert_int_equal(ibv_req_notify_cq(cq, 0), EIO);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    fake_close(ctx);
}

static void destroy__busy_keeps_it(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);

    fake.fail = EBUSY;
    assert_int_equal(ibv_destroy_cq(cq), EBUSY);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    fake_close(ctx);
}

static void *ack_later(void *cq)
{
    usleep(100 * 1000);
    fake.largest_poll = 1; /* seen by the destroyer only when it waited */
    ibv_ack_cq_events(cq, 2);
    return NULL;
}

static void destroy__waits_for_acks(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, &fake, ch, 0), *got;
    void *cq_context;
    pthread_t thread;

    assert_int_equal(ch->refcnt, 1);
    assert_int_equal(ibv_destroy_comp_channel(ch), EBUSY);
    for (unsigned i = 0; i < 3; i++)
        fake.callbacks.completion(fake.cq_owner);
    for (unsigned i = 0; i < 2; i++) { /* the third nobody gets: not waited for */
        assert_int_equal(ibv_get_cq_event(ch, &got, &cq_context), 0);
        assert_ptr_equal(got, cq);
        assert_ptr_equal(cq_context, &fake);
    }
    assert_int_equal(pthread_create(&thread, NULL, ack_later, cq), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(fake.largest_poll, 1);
    pthread_join(thread, NULL);
    assert_int_equal(ch->refcnt, 0);
    assert_int_equal(ibv_destroy_comp_channel(ch), 0);
    fake_close(ctx);
}

static void modify__moderation(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
    struct ibv_modify_cq_attr attr = {
        IBV_CQ_ATTR_MODERATE, {UINT16_MAX, 16}
    };
    static const uint32_t bad[] = {0, 2, 3, UINT32_MAX};

    assert_int_equal(ibv_modify_cq(cq, &attr), 0);
    assert_true(fake.moderation == (UINT64_C(0xffff) << 32 | 16));
    fake.moderation = 0;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        attr.attr_mask = bad[i];
        assert_int_equal(ibv_modify_cq(cq, &attr), EINVAL);
    }
    assert_true(fake.moderation == 0);
    attr.attr_mask = IBV_CQ_ATTR_MODERATE;
    fake.fail = EIO;
    assert_int_equal(ibv_modify_cq(cq, &attr), EIO);
    assert_int_equal(ibv_destroy_cq(cq), 0);
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
        cmocka_unit_test_setup(create__bounds, reset),
        cmocka_unit_test_setup(resize__real_size_or_error, reset),
        cmocka_unit_test_setup(poll__more_than_a_batch, reset),
        cmocka_unit_test_setup(arm__solicited_and_errors, reset),
        cmocka_unit_test_setup(destroy__busy_keeps_it, reset),
        cmocka_unit_test_setup(destroy__waits_for_acks, reset),
        cmocka_unit_test_setup(modify__moderation, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
