/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_fork.c: what a child inherits of the live device: nothing it could use, no descriptor, and
 * the parent's traffic goes on. By fork() and by a clone that runs no handlers.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../forks.h"
#include "../port/private_net.h"
#include "endpoint.h"

enum { MEMORY_BYTES = 1 << 20 };

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void connect_pair(struct endpoint *a, struct endpoint *b, struct endpoint_name *na,
                         struct endpoint_name *nb)
{
    endpoint_open(a, "vb_lo", MEMORY_BYTES);
    endpoint_open(b, "vb_lo", MEMORY_BYTES);
    endpoint_name(a, 0, na);
    endpoint_name(b, 0, nb);
    endpoint_connect(a, 0, nb, 1024);
    endpoint_connect(b, 0, na, 1024);
}

static bool write_works(struct endpoint *e, const struct endpoint_name *peer)
{
    struct nic_wc wc;
    return endpoint_post(e, WR_RDMA_WRITE, peer, 0, 100000, WR_SIGNALED) == 0 &&
           endpoint_wait(e, &wc) == WC_SUCCESS;
}

/* 0 when every call on the inherited context is refused. */
static int use_inherited(struct endpoint *e, const struct endpoint_name *peer)
{
    struct nic_wc wc;
    struct nic_qp_attr attr = {.state = QP_STATE_ERR};
    struct nic_qp_cap cap;
    struct pd *pd;
    struct mr *mr;
    struct cq *cq;
    if (verbena_cq_poll(e->ctx, e->cq, 1, &wc) != -EIO)
        return 1;
    if (endpoint_post(e, WR_RDMA_WRITE, peer, 0, 8, WR_SIGNALED) != -EIO)
        return 2;
    if (endpoint_post_recv(e, 0, 8) != -EIO || verbena_cq_arm(e->ctx, e->cq, false) != -EIO)
        return 3;
    if (verbena_pd_create(e->ctx, &pd) != -EIO || verbena_cq_create(e->ctx, 1, NULL, &cq) != -EIO ||
        verbena_mr_reg(e->ctx, e->pd, e->memory, 8, 0, 0, &mr) != -EIO)
        return 4;
    struct mw *mw;
    mr = e->mr;
    if (verbena_mr_reg_null(e->ctx, e->pd, &mr) != -EIO ||
        verbena_mw_create(e->ctx, e->pd, 1, &mw) != -EIO ||
        verbena_mr_change(e->ctx, &mr, MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != -EIO ||
        verbena_mr_prefetch(e->ctx, e->pd, NULL, 0, false) != -EIO || mr != e->mr)
        return 9;
    if (verbena_qp_modify(e->ctx, e->qp, &attr, QP_ATTR_STATE) != -EIO ||
        verbena_qp_query(e->ctx, e->qp, &attr, &cap) != -EIO)
        return 5;
    if (verbena_qp_destroy(e->ctx, e->qp) != -EIO || verbena_mr_dereg(e->ctx, e->mr) != -EIO ||
        verbena_cq_destroy(e->ctx, e->cq) != -EIO || verbena_pd_destroy(e->ctx, e->pd) != -EIO)
        return 6;
    struct verbena_gid gid;
    struct verbena_device device;
    struct verbena_gid gids[VERBENA_GID_TABLE_SIZE];
    if (verbena_gid_query(e->ctx, 0, &gid) != -EIO || verbena_gid_table(e->ctx, gids) != -EIO ||
        verbena_device_query(e->ctx, &device) != -EIO)
        return 8;
    uint64_t value;
    return verbena_counter(0, &value) != NULL ? 7 : 0;
}

static void fork__child_inherits_no_descriptor(void **state)
{
    (void)state;
    struct endpoint a, b;
    struct endpoint_name na, nb;
    int status;
    unsigned before = open_descriptors();
    connect_pair(&a, &b, &na, &nb);
    assert_true(write_works(&a, &nb)); /* sending sockets exist */
    assert_true(open_descriptors() > before);
    for (unsigned i = 0; i < 3; i++) {
        pid_t pid = quiet_fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            int cancel_state;
            pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
            if (cancel_state != PTHREAD_CANCEL_ENABLE)
                _exit(101);
            _exit(open_descriptors() == before ? use_inherited(&a, &nb) : 100);
        }
        assert_true(write_works(&a, &nb));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(write_works(&a, &nb));
    }
    endpoint_close(&a);
    endpoint_close(&b);
    assert_int_equal(open_descriptors(), before);
}

static void fork__clone_without_handlers_is_noticed(void **state)
{
    (void)state;
    struct endpoint a, b;
    struct endpoint_name na, nb;
    int status;
    connect_pair(&a, &b, &na, &nb);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(use_inherited(&a, &nb));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(write_works(&a, &nb));
    endpoint_close(&a);
    endpoint_close(&b);
}

/* The child outlives its parent: were it still in the socket group, it would be the leader and
 * swallow what is sent to the address. */
static void fork__orphan_does_not_swallow_packets(void **state)
{
    (void)state;
    int up[2];
    pid_t orphan;
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct endpoint a, b;
        struct endpoint_name na, nb;
        connect_pair(&a, &b, &na, &nb);
        orphan = fork();
        if (orphan == 0) {
            pause();
            _exit(0);
        }
        _exit(write(up[1], &orphan, sizeof(orphan)) == sizeof(orphan) ? 0 : 1);
    }
    assert_int_equal(read(up[0], &orphan, sizeof(orphan)), sizeof(orphan));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct endpoint a, b;
    struct endpoint_name na, nb;
    connect_pair(&a, &b, &na, &nb);
    assert_true(write_works(&a, &nb));
    endpoint_close(&a);
    endpoint_close(&b);
    kill(orphan, SIGKILL);
    close(up[0]);
    close(up[1]);
}

static char order[32];

static void note(char c)
{
    size_t n = strlen(order);
    if (n + 1 < sizeof(order))
        order[n] = c;
}

#define HOOK(name, upper, lower, digit)                                                            \
    static void name##_prepare(void)                                                               \
    {                                                                                              \
        note(upper);                                                                               \
    }                                                                                              \
    static void name##_parent(void)                                                                \
    {                                                                                              \
        note(lower);                                                                               \
    }                                                                                              \
    static void name##_child(void)                                                                 \
    {                                                                                              \
        note(digit);                                                                               \
    }                                                                                              \
    static const struct verbena_fork_hook name = {name##_prepare, name##_parent, name##_child}
HOOK(first, 'A', 'a', '1');
HOOK(second, 'B', 'b', '2');
HOOK(third, 'C', 'c', '3');

/* Whoever came first: locks are taken in the order of ranks, and given back the other way round. */
static void fork__hooks_by_rank(void **state)
{
    (void)state;
    int status;
    verbena_fork_hook(VERBENA_FORK_RDMA_CHANNEL, &third);
    verbena_fork_hook(VERBENA_FORK_RDMA_DEVICE, &first);
    verbena_fork_hook(VERBENA_FORK_VERBS_DEVICE, &second);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(strcmp(order, "ABC321") == 0 ? 0 : 1);
    verbena_fork_hook(VERBENA_FORK_RDMA_CHANNEL, NULL);
    verbena_fork_hook(VERBENA_FORK_RDMA_DEVICE, NULL);
    verbena_fork_hook(VERBENA_FORK_VERBS_DEVICE, NULL);
    assert_string_equal(order, "ABCcba");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork__child_inherits_no_descriptor),
        cmocka_unit_test(fork__clone_without_handlers_is_noticed),
        cmocka_unit_test(fork__orphan_does_not_swallow_packets),
        cmocka_unit_test(fork__hooks_by_rank),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
