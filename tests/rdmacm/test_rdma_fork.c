/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_fork.c: forks while other threads are in the midst of calls of both libraries,
 * whichever of them the program called first.
 */
#include "../skips.h"
#include "cm_rig.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FORKS = UNDER_ASAN   ? 60
            : UNDER_TSAN ? 200
                         : 300,
    WORKS_EVERY = 20,
    CHILD_SECONDS = 20,
    WORKER_SECONDS = 100,
    /* A child of AddressSanitizer's may find its allocator locked, one of ThreadSanitizer's may
     * start no thread. */
    CHILDREN_CALL = !UNDER_ASAN,
    CHILDREN_OPEN = !UNDER_ASAN && !UNDER_TSAN,
};

static _Atomic bool stop;
static _Atomic unsigned refused, opened, changed, bound; /* how often threads came round */

static bool channel_works(void)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    if (ch != NULL)
        rdma_destroy_event_channel(ch);
    return ch != NULL;
}

static bool verbs_work(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
    struct ibv_device_attr attr;
    bool good = ctx != NULL && ibv_query_device(ctx, &attr) == 0;
    if (ctx != NULL)
        good = ibv_close_device(ctx) == 0 && good;
    if (list != NULL)
        ibv_free_device_list(list);
    return good;
}

static bool port_is_bound(void)
{
    struct rdma_cm_id *id;
    union rig_addr any = rig_addr("127.0.0.1", 0);

    return rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0 && rdma_bind_addr(id, &any.sa) == 0 &&
           rdma_destroy_id(id) == 0;
}

/* As far as the answer that nobody listens: callbacks push events. */
static bool connect_is_refused(void)
{
    struct rdma_cm_id *id;
    struct rdma_conn_param param = {.qp_num = 2};
    union rig_addr dst = rig_addr("127.0.0.1", 4711);

    if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0)
        return false;
    bool good = rdma_resolve_addr(id, NULL, &dst.sa, 1000) == 0 &&
                rdma_resolve_route(id, 1000) == 0 && rdma_connect(id, &param) == -1 &&
                errno == ECONNREFUSED;
    return rdma_destroy_id(id) == 0 && good;
}

static void *connects(void *unused)
{
    while (!atomic_load(&stop) && connect_is_refused())
        atomic_fetch_add(&refused, 1);
    return unused;
}

static void *binds(void *unused)
{
    while (!atomic_load(&stop) && port_is_bound())
        atomic_fetch_add(&bound, 1);
    return unused;
}

static void *opens(void *unused)
{
    while (!atomic_load(&stop) && verbs_work())
        atomic_fetch_add(&opened, 1);
    return unused;
}

static void *changes(void *unused)
{
    while (!atomic_load(&stop) && channel_works()) {
        struct ibv_context **list = rdma_get_devices(NULL);
        if (list == NULL)
            break;
        rdma_free_devices(list);
        atomic_fetch_add(&changed, 1);
    }
    return unused;
}

/* Each mutex of both libraries is some thread's at this moment or that: what the child inherited
 * locked it would wait for. */
static bool calls_return(bool all)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (list != NULL)
        ibv_free_device_list(list);
    return list != NULL && channel_works() && (!CHILDREN_OPEN || port_is_bound()) &&
           (!all || !CHILDREN_OPEN || (verbs_work() && connect_is_refused()));
}

/* all: the child opens a device and connects, too. */
static bool child_ends(bool all)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        alarm(CHILD_SECONDS); /* ends one that waits for ever */
        _exit(!CHILDREN_CALL || calls_return(all) ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* 0, or what went wrong. */
static int worker(bool verbs_first)
{
    void *(*const mains[])(void *) = {connects, opens, changes, binds};
    pthread_t t[4];
    unsigned forks = 0;

    alarm(WORKER_SECONDS);
    for (unsigned i = 0; i < 2; i++)
        if (!(verbs_first == (i == 0) ? verbs_work() : channel_works()))
            return 1;
    for (unsigned i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, mains[i], NULL) != 0)
            return 2;
    while (forks < FORKS && child_ends(forks % WORKS_EVERY == 0))
        forks++;
    unsigned r = refused, o = opened, c = changed, b = bound;
    /* None gave up: each comes round once more. */
    while (refused == r || opened == o || changed == c || bound == b)
        usleep(1000);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    return forks == FORKS ? 0 : 3;
}

/* In a program of its own that has called nothing yet; a mere fork could start no thread under
 * ThreadSanitizer. */
static void expect_worker(bool verbs_first)
{
    int status = -1;

    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "worker", verbs_first ? "verbs" : "channel", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void fork__verbs_called_first(void **state)
{
    (void)state;
    expect_worker(true);
}

static void fork__channel_created_first(void **state)
{
    (void)state;
    expect_worker(false);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return worker(strcmp(argv[1], "verbs") == 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork__verbs_called_first),
        cmocka_unit_test(fork__channel_created_first),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
