/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limits.c: the live device in a process that has no descriptor left, whose threads are
 * cancelled, that ends in a signal handler, or that runs with more rights than its user.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../port/descriptors.h"
#include "../port/private_net.h"
#include "../skips.h"
#include "endpoint.h"
#include "host/host_priv.h"

enum {
    MEMORY_BYTES = 1 << 16,
    OTHER_UID = 65534,
    HANDLER_ROUNDS = 8,
    CANCEL_ROUNDS = 20,
};

static void sleep_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void limits__connects_without_a_descriptor(void **state)
{
    (void)state;
    struct endpoint a, b;
    struct endpoint_name na, nb;
    struct verbena_gid gid;
    struct verbena_device device;
    struct nic_wc wc;
    endpoint_open(&a, "vb_lo", MEMORY_BYTES);
    endpoint_open(&b, "vb_lo", MEMORY_BYTES);
    use_up_descriptors();
    endpoint_name(&a, 0, &na);
    endpoint_name(&b, 0, &nb);
    assert_int_equal(verbena_gid_query(a.ctx, 0, &gid), 0);
    assert_int_equal(verbena_device_query(a.ctx, &device), 0);
    assert_string_equal(device.name, "vb_lo");
    endpoint_connect(&a, 0, &nb, 1024);
    endpoint_connect(&b, 0, &na, 1024);
    assert_int_equal(endpoint_post(&a, WR_RDMA_WRITE, &nb, 0, 10000, WR_SIGNALED), 0);
    assert_int_equal(endpoint_wait(&a, &wc), WC_SUCCESS);
    /* What must be made anew fails, and says why. */
    struct verbena_context *more;
    static const struct verbena_callbacks none;
    assert_int_equal(verbena_open("vb_lo", &none, NULL, &more), -EMFILE);
    give_back_descriptors();
    endpoint_close(&a);
    endpoint_close(&b);
}

static void end_here(int signal)
{
    (void)signal;
    exit(3);
}

static void limits__ends_in_a_signal_handler(void **state)
{
    (void)state;
    for (int i = 0; i < HANDLER_ROUNDS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct endpoint e;
            struct nic_wc wc;
            endpoint_open(&e, "vb_lo", MEMORY_BYTES);
            signal(SIGALRM, end_here);
            const struct itimerval soon = {
                .it_value = {0, 3000 + 31 * i}
            };
            setitimer(ITIMER_REAL, &soon, NULL);
            for (;;)
                verbena_cq_poll(e.ctx, e.cq, 1, &wc);
        }
        int status = 0;
        pid_t ended = 0;
        for (int ms = 0; ms < 5000 && ended == 0; ms += 5) {
            sleep_ms(5);
            ended = waitpid(pid, &status, WNOHANG);
        }
        if (ended == 0) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
        assert_int_equal(ended, pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
}

static void *ask_gids(void *arg)
{
    struct verbena_context *ctx = arg;
    struct verbena_gid gid;
    for (;;) {
        verbena_gid_query(ctx, 0, &gid);
        pthread_testcancel();
    }
    return NULL;
}

static void *open_and_close(void *arg)
{
    static const struct verbena_callbacks none;
    (void)arg;
    for (;;) {
        struct verbena_context *ctx;
        int cancel_state;
        if (verbena_open("vb_lo", &none, NULL, &ctx) == 0)
            verbena_close(ctx);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
        if (cancel_state != PTHREAD_CANCEL_ENABLE)
            abort();
    }
    return NULL;
}

static void limits__cancelled_thread_leaves_no_lock(void **state)
{
    (void)state;
    struct endpoint e;
    struct verbena_gid gid;
    void *(*const work[])(void *) = {ask_gids, open_and_close};
#if UNDER_ASAN
    SKIP_TEST("AddressSanitizer takes the unwinding of a cancelled thread for an error");
#endif
    alarm(60); /* a lock left behind: for ever */
    for (unsigned i = 0; i < 2 * CANCEL_ROUNDS; i++) {
        pthread_t t;
        endpoint_open(&e, "vb_lo", MEMORY_BYTES);
        assert_int_equal(pthread_create(&t, NULL, work[i % 2], e.ctx), 0);
        sleep_ms(2);
        pthread_cancel(t);
        pthread_join(t, NULL);
        assert_int_equal(verbena_gid_query(e.ctx, 0, &gid), 0);
        endpoint_close(&e);
    }
    alarm(0);
}

static char self_path[4096];

/* In a set-user-ID copy of this program the environment names no file. */
static void limits__settings_are_not_for_setuid_programs(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_limits.XXXXXX", copy[64], command[4400];
    struct statvfs fs;
#if UNDER_ASAN
    SKIP_TEST("AddressSanitizer reads /proc/self, which a set-user-ID program may not");
#endif
    if (geteuid() != 0 || mkdtemp(folder) == NULL || statvfs(folder, &fs) != 0 ||
        (fs.f_flag & ST_NOSUID) != 0)
        SKIP_TEST("needs root and a file system that honours set-user-ID");
    snprintf(copy, sizeof(copy), "%s/copy", folder);
    snprintf(command, sizeof(command), "cp '%s' %s", self_path, copy);
    assert_int_equal(system(command), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    setenv("VERBENA_STATS", "/somewhere", 1);
    for (int setuid = 0; setuid < 2; setuid++) {
        if (setuid && (chown(copy, OTHER_UID, 0) != 0 || chmod(copy, 04755) != 0))
            fail();
        snprintf(command, sizeof(command), "%s settings", copy);
        assert_int_equal(WEXITSTATUS(system(command)), setuid ? 20 : 10);
    }
    unsetenv("VERBENA_STATS");
    unlink(copy);
    rmdir(folder);
}

/* 10: the setting counts; 20: it does not, and the system says that it must not. */
static int settings_child(void)
{
    struct host_config c;
    if (config_read(&c) != 0)
        return 1;
    return (c.stats_path == NULL ? 10 : 0) + (getauxval(AT_SECURE) != 0 ? 10 : 0) +
           (c.stats_path != NULL && getauxval(AT_SECURE) == 0 ? 10 : 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "settings") == 0)
        return settings_child();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits__connects_without_a_descriptor),
        cmocka_unit_test(limits__ends_in_a_signal_handler),
        cmocka_unit_test(limits__cancelled_thread_leaves_no_lock),
        cmocka_unit_test(limits__settings_are_not_for_setuid_programs),
    };
    ssize_t n = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    self_path[n > 0 ? n : 0] = '\0';
    private_net_enter();
    (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
