/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_dlopen.c: programs that load the libraries when they need them, in whatever order, and
 * let go of them again: forks before, between and after find their locks in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../port/private_net.h"

enum { CHILD_SECONDS = 20 };

static void *load(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", BUILD_ROOT, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    return library;
}

static bool verbs_work(void *verbs)
{
    __typeof__(ibv_get_device_list) *list = dlsym(verbs, "ibv_get_device_list");
    __typeof__(ibv_free_device_list) *drop = dlsym(verbs, "ibv_free_device_list");
    __typeof__(ibv_open_device) *opens = dlsym(verbs, "ibv_open_device");
    __typeof__(ibv_close_device) *closes = dlsym(verbs, "ibv_close_device");
    if (list == NULL || drop == NULL || opens == NULL || closes == NULL)
        return false;
    struct ibv_device **all = list(NULL);
    if (all == NULL || all[0] == NULL)
        return false;
    struct ibv_context *ctx = opens(all[0]);
    drop(all);
    return ctx != NULL && closes(ctx) == 0;
}

static bool channel_works(void *rdmacm)
{
    __typeof__(rdma_create_event_channel) *makes = dlsym(rdmacm, "rdma_create_event_channel");
    __typeof__(rdma_destroy_event_channel) *drops = dlsym(rdmacm, "rdma_destroy_event_channel");
    struct rdma_event_channel *ch = makes != NULL && drops != NULL ? makes() : NULL;
    if (ch != NULL)
        drops(ch);
    return ch != NULL;
}

static bool all_works(bool verbs_first)
{
    void *verbs = NULL, *rdmacm = NULL;
    bool good = true;

    for (int i = 0; i < 2 && good; i++) {
        if (verbs_first == (i == 0))
            good = (verbs = load("libibverbs.so.1")) != NULL && verbs_work(verbs);
        else
            good = (rdmacm = load("librdmacm.so.1")) != NULL && channel_works(rdmacm);
    }
    return good && dlclose(verbs) == 0 && dlclose(rdmacm) == 0;
}

/* A child that ends, after it has loaded and used them, too. */
static bool child_works(bool verbs_first)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        alarm(CHILD_SECONDS);
        _exit(all_works(verbs_first) ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* As the process that has loaded nothing yet: 0, or where it failed. */
static int worker(bool verbs_first)
{
    if (!child_works(!verbs_first))
        return 1;
    for (int round = 0; round < 3; round++) {
        if (!all_works(verbs_first))
            return 2;
        if (!child_works(!verbs_first) || !child_works(verbs_first))
            return 3;
    }
    return 0;
}

static void expect_worker(bool verbs_first)
{
    int status = -1;

    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(worker(verbs_first));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void dlopen__verbs_first(void **state)
{
    (void)state;
    expect_worker(true);
}

static void dlopen__rdmacm_first(void **state)
{
    (void)state;
    expect_worker(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dlopen__verbs_first),
        cmocka_unit_test(dlopen__rdmacm_first),
    };

    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
