/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_fork.c: fork with an open device. Apart from the other live tests because under
 * ThreadSanitizer a forked child cannot start the engine's thread; in suite `plain`, too, for what
 * AddressSanitizer does not bear.
 */
#include "../forks.h"
#include "../skips.h"
#include "live_rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/share.h"

enum { FORKS = 200, STREAM_FORKS = 12, GUARD_BYTES = 100, HALF_BYTES = RIG_BYTES / 2 };

/* A child's inherited context is dead, a new one works, and the parent's goes on. */
static void fork__child_opens_anew(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_context *idle = ibv_open_device(r.ctx->device);
    assert_non_null(idle);
    pid_t pid = quiet_fork();
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
    assert_true(pid > 0);
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

/* A region in the midst of pages that it does not fill, and WRITEs of one half of it to the other,
 * as many as the queue takes, that go on across the forks. */
struct stream {
    struct rig *r;
    uint8_t *around; /* GUARD_BYTES, the region, GUARD_BYTES */
    struct ibv_mr *mr;
    uint64_t posted, done;
};

static uint8_t *stream_half(struct stream *s, unsigned half)
{
    return s->around + GUARD_BYTES + half * HALF_BYTES;
}

/* The n-th WRITE has its own 4 KiB of each half, filled by its number. */
static void stream_post(struct stream *s)
{
    uint64_t n = s->posted++;
    size_t at = n % RIG_DEPTH * 4096;
    struct ibv_sge sge = {(uintptr_t)stream_half(s, 0) + at, 4096, s->mr->lkey};
    struct ibv_send_wr wr =
                           {
                               .wr_id = n,
                               .opcode = IBV_WR_RDMA_WRITE,
                               .send_flags = IBV_SEND_SIGNALED,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .wr.rdma = {.remote_addr = (uintptr_t)stream_half(s, 1) + at,
                                           .rkey = s->mr->rkey}
    },
                       *bad;

    memset(stream_half(s, 0) + at, (uint8_t)(n + 1), 4096);
    assert_int_equal(ibv_post_send(s->r->qp[0], &wr, &bad), 0);
}

static void stream_wait(struct stream *s)
{
    struct ibv_wc wc = rig_wait(s->r);
    size_t at = wc.wr_id % RIG_DEPTH * 4096;

    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, s->done++);
    assert_int_equal(stream_half(s, 1)[at], (uint8_t)(wc.wr_id + 1));
    assert_memory_equal(stream_half(s, 0) + at, stream_half(s, 1) + at, 4096);
}

static void stream_go_on(struct stream *s, unsigned n)
{
    for (; n > 0; n--) {
        while (s->posted - s->done < RIG_DEPTH)
            stream_post(s);
        stream_wait(s);
    }
}

static void expect_guards(const struct stream *s, uint8_t value)
{
    for (unsigned i = 0; i < GUARD_BYTES; i++) {
        assert_int_equal(s->around[i], value);
        assert_int_equal(s->around[GUARD_BYTES + RIG_BYTES + i], value);
    }
}

enum child_way { CHILD_LEAVES, CHILD_EXITS, CHILD_EXECS, CHILD_DIES, CHILD_WAYS };

/* The region, what is beside it in its pages, and the library's objects are the child's to touch:
 * they are its own copies. Then it ends in some way. */
static void child(const struct stream *s, enum child_way way)
{
    static char *const words[] = {(char *)"true", NULL};

    if (s->around[0] != 0x5a)
        _exit(3);
    memset(s->around, 0xee, RIG_BYTES + 2 * GUARD_BYTES);
    for (unsigned i = 0; i < RIG_BYTES + 2 * GUARD_BYTES; i++)
        if (s->around[i] != 0xee) /* no packet of the parent's arrives here */
            _exit(4);
    if (way == CHILD_EXECS)
        execvp(words[0], words);
    if (way == CHILD_DIES)
        raise(SIGKILL);
#if !UNDER_ASAN /* it would look for leaks */
    if (way == CHILD_EXITS)
        exit(0);
#endif
    _exit(0);
}

/* Forks in mid-stream, with and without exec: the parent's traffic and memory stay whole. */
static void case_107(void **state)
{
    (void)state;
    struct rig r;
    pid_t pid[STREAM_FORKS];

    assert_int_equal(ibv_fork_init(), 0);
    rig_connect(&r);
    assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
    assert_int_equal(ibv_fork_init(), 0);
    struct stream s = {.r = &r, .around = malloc(RIG_BYTES + 2 * GUARD_BYTES)};
    assert_non_null(s.around);
    memset(s.around, 0x5a, RIG_BYTES + 2 * GUARD_BYTES);
    s.mr = ibv_reg_mr(r.pd, s.around + GUARD_BYTES, RIG_BYTES,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(s.mr);
    fflush(NULL);
    for (unsigned i = 0; i < STREAM_FORKS; i++) {
        stream_go_on(&s, 20);
        assert_int_equal(s.posted - s.done, RIG_DEPTH - 1); /* WRITEs are out */
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0)
            child(&s, (enum child_way)(i % CHILD_WAYS));
        stream_go_on(&s, 20);
        if (i % 2 == 1) /* two children at a time */
            for (unsigned k = i - 1; k <= i; k++) {
                int status;
                assert_int_equal(waitpid(pid[k], &status, 0), pid[k]);
                assert_int_equal(status, k % CHILD_WAYS == CHILD_DIES ? SIGKILL : 0);
            }
        expect_guards(&s, 0x5a);
    }
    stream_go_on(&s, 100);
    while (s.done < s.posted)
        stream_wait(&s);
    assert_int_equal(ibv_dereg_mr(s.mr), 0);
    free(s.around);
    rig_close(&r);
}

/* Threads that open and close the only context, ask the process's share socket, as any user of the
 * machine can, and fork: none waits for the others for ever. */
static struct {
    struct ibv_device *device;
    _Atomic uint64_t socket; /* the name's number */
    _Atomic bool stop;
    _Atomic unsigned opens, forks;
} busy;

static void *busy_open(void *arg)
{
    (void)arg;
    struct verbena_cmd cmd;

    while (!busy.stop) {
        struct ibv_context *ctx = ibv_open_device(busy.device);
        if (ctx == NULL)
            continue;
        if (pread(ctx->cmd_fd, &cmd, sizeof(cmd), 0) == sizeof(cmd))
            busy.socket = cmd.process;
        usleep(200);
        ibv_close_device(ctx);
        busy.opens++;
    }
    return NULL;
}

static void *busy_fork(void *arg)
{
    (void)arg;
    while (!busy.stop) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid > 0 && waitpid(pid, NULL, 0) == pid)
            busy.forks++;
    }
    return NULL;
}

static void *busy_ask(void *arg)
{
    (void)arg;
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    const struct verbena_share_request q = {
        .token = {1, 2}
    };
    struct verbena_share_reply r;
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    (void)bind(s, (const struct sockaddr *)&any, sizeof(sa_family_t));
    while (!busy.stop) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena/share/%016llx",
                         (unsigned long long)busy.socket);
        (void)sendto(s, &q, sizeof(q), 0, (struct sockaddr *)&a,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
        (void)recv(s, &r, sizeof(r), 0);
    }
    close(s);
    return NULL;
}

static void fork__while_closed_and_asked(void **state)
{
    (void)state;
    if (UNDER_ASAN)
        SKIP_TEST("AddressSanitizer's allocator keeps locks of the parent's threads");
    enum { OPENS = 150, TURN_MS = 100, TURNS = 50, STUCK = 100 };
    static void *(*const all[])(void *) = {busy_open, busy_fork, busy_ask, busy_ask};
    pthread_t thread[4];
    struct ibv_device **list = ibv_get_device_list(NULL);
    unsigned stuck = 0, last = 0;

    assert_non_null(list);
    busy.device = list[0];
    assert_non_null(busy.device);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, all[i], NULL), 0);
    for (unsigned i = 0; (i < TURNS && busy.opens < OPENS) || stuck != 0; i++) {
        usleep(TURN_MS * 1000);
        unsigned opens = busy.opens;
        stuck = opens == last ? stuck + 1 : 0;
        last = opens;
        assert_true(stuck < STUCK);
    }
    busy.stop = true;
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    ibv_free_device_list(list);
    assert_true(busy.opens > 0 && busy.forks > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork__child_lists_devices),
        cmocka_unit_test(fork__child_opens_anew),
        cmocka_unit_test(fork__while_closed_and_asked),
        cmocka_unit_test(case_107),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
