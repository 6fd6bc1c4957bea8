/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_context.c: what an open device looks like to programs of every age, and its end.
 */
#include "fake_host.h"

#include <fcntl.h>
#include <unistd.h>

static void open__dispatch_is_complete(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct verbs_context *v = verbs_get_ctx(ctx);

    assert_non_null(v);
    assert_int_equal(v->sz, 696);
    assert_non_null(v->query_port);
    assert_non_null(v->query_device_ex);
    assert_non_null(v->create_qp_ex);
    assert_non_null(v->close_xrcd);
    /* Called without a look. */
    assert_non_null(ctx->ops.poll_cq);
    assert_non_null(ctx->ops.req_notify_cq);
    assert_non_null(ctx->ops.post_send);
    assert_non_null(ctx->ops.post_recv);
    assert_non_null(ctx->ops.post_srq_recv);
    assert_non_null(ctx->ops.bind_mw);
    assert_non_null(ctx->ops.dealloc_mw);
    assert_int_equal(ctx->num_comp_vectors, 1);
    fake_close(ctx);
}

static void open__descriptors_are_private(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();

    assert_true(ctx->cmd_fd >= 0);
    assert_true(ctx->async_fd >= 0);
    assert_true(fcntl(ctx->cmd_fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(ctx->async_fd, F_GETFD) & FD_CLOEXEC);
    assert_false(fcntl(ctx->async_fd, F_GETFL) & O_NONBLOCK);
    int fd = ctx->async_fd;
    fake_close(ctx);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void open__fails_as_the_host(void **state)
{
    (void)state;
    static const int errors[] = {ENODEV, EADDRINUSE, ENOMEM};

    struct ibv_device **list = ibv_get_device_list(NULL);
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(before);
    for (unsigned i = 0; i < 3; i++) {
        fake.fail = errors[i];
        errno = 0;
        assert_null(ibv_open_device(list[0]));
        assert_int_equal(errno, errors[i]);
    }
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(after, before); /* no descriptor left over */
    close(after);
    ibv_free_device_list(list);
}

static void close__with_objects_keeps_them(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);

    assert_int_equal(ibv_close_device(ctx), 0);
    assert_int_equal(fake.alive, 2);
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
        cmocka_unit_test_setup(open__dispatch_is_complete, reset),
        cmocka_unit_test_setup(open__descriptors_are_private, reset),
        cmocka_unit_test_setup(open__fails_as_the_host, reset),
        cmocka_unit_test_setup(close__with_objects_keeps_them, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
