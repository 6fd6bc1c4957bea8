/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_fork.c: fork with an open device. Apart from the other live tests because under
 * ThreadSanitizer a forked child cannot start the engine's thread.
 */
#include "../skips.h"
#include "live_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 200 };

/* A child's inherited context is dead, a new one works, and the parent's goes on. */
static void fork__child_opens_anew(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_context *idle = ibv_open_device(r.ctx->device);
    assert_non_null(idle);
    pid_t pid = fork();
    if (pid == 0) {
        struct ibv_wc wc;
        int bad = ibv_poll_cq(r.cq, 1, &wc) == -EIO ? 0 : 1;
        if (ibv_destroy_qp(r.qp[0]) != EIO || ibv_close_device(idle) != 0)
            bad |= 4;
        struct ibv_device **list = ibv_get_device_list(NULL);
        struct ibv_context *ctx = list != NULL ? ibv_open_device(list[0]) : NULL;
        struct ibv_pd *pd = ctx != NULL ? ibv_alloc_pd(ctx) : NULL;
        if (pd == NULL || ibv_dealloc_pd(pd) != 0 || ibv_close_device(ctx) != 0)
            bad |= 2;
        _exit(bad);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(ibv_close_device(idle), 0);
    rig_recv(&r, r.qp[1], 100, 1024, 64);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad_wr;
    assert_int_equal(ibv_post_send(r.qp[0], &wr, &bad_wr), 0);
    assert_int_equal(rig_wait(&r).wr_id, 100);
    rig_close(&r);
}

static void *list_devices(void *stop)
{
    while (!atomic_load((_Atomic bool *)stop))
        ibv_free_device_list(ibv_get_device_list(NULL));
    return NULL;
}

/* While another thread of the parent lists devices, and holds what guards the list. */
static void fork__child_lists_devices(void **state)
{
    (void)state;
    _Atomic bool stop = false;
    pthread_t t;

#if UNDER_ASAN
    SKIP_TEST("AddressSanitizer's allocator keeps locks of the parent's threads");
#endif
    assert_int_equal(pthread_create(&t, NULL, list_devices, &stop), 0);
    for (unsigned i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(10); /* ends a child that waits for ever */
            ibv_free_device_list(ibv_get_device_list(NULL));
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    pthread_join(t, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork__child_lists_devices),
        cmocka_unit_test(fork__child_opens_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
