/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_spawn.c: a program's end is told as it was, and signals reach it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "spawn.h"

static int shell(const char *script)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    return spawn_wait("/bin/sh", argv);
}

static void spawn_wait__exit_codes(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, 64, 70, 127, 255};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        char script[32];
        snprintf(script, sizeof(script), "exit %d", codes[i]);
        int status = shell(script);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), codes[i]);
    }
}

static void spawn_wait__ends_by_signal(void **state)
{
    (void)state;
    static const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGUSR1, SIGPIPE};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        char script[32];
        snprintf(script, sizeof(script), "kill -%d $$", signals[i]);
        int status = shell(script);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
    }
}

static void spawn_wait__cannot_start(void **state)
{
    (void)state;
    char *argv[] = {(char *)"x", NULL};
    static const struct {
        const char *path;
        int error;
    } rows[] = {
        {"/does/not/exist", ENOENT },
        {"/etc/passwd",     EACCES },
        {"/etc",            EACCES },
        {"/etc/passwd/x",   ENOTDIR},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        assert_int_equal(spawn_wait(rows[i].path, argv), -1);
        assert_int_equal(errno, rows[i].error);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* Sent to us alone, as kill(1) does; the program counts it and ends. */
static void spawn_wait__passes_signals_on(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        int status;
        char script[200];
        pid_t parent = fork();
        if (parent == 0) {
            /* The trap is set before the parent, our forked self, is signalled. */
            snprintf(script, sizeof(script),
                     "trap 'exit 42' %d; kill -%d $PPID; while :; do sleep 0.05; done", signals[i],
                     signals[i]);
            status = shell(script);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
        }
        assert_int_equal(waitpid(parent, &status, 0), parent);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 42);
    }
}

/* The mask that the program gets is the one we had. */
static void spawn_wait__signal_mask_is_ours(void **state)
{
    (void)state;
    int status = shell("grep -q '^SigBlk:[[:space:]]*0*$' /proc/self/status");
    assert_int_equal(WEXITSTATUS(status), 0);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    assert_int_equal(sigismember(&now, SIGTERM), 0);
}

/* SIGKILL cannot be passed on: the program must not outlive us. */
static void spawn_wait__dies_with_us(void **state)
{
    (void)state;
    int ends[2], status;
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t parent = fork();
    if (parent == 0) {
        close(ends[0]);
        shell("echo; exec sleep 600 >/dev/null"); /* holds the pipe's other end */
        _exit(0);
    }
    close(ends[1]);
    kill(parent, SIGKILL);
    waitpid(parent, &status, 0);
    /* The end of file comes when the last holder, the program, has gone. */
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spawn_wait__exit_codes),
        cmocka_unit_test(spawn_wait__ends_by_signal),
        cmocka_unit_test(spawn_wait__cannot_start),
        cmocka_unit_test(spawn_wait__passes_signals_on),
        cmocka_unit_test(spawn_wait__signal_mask_is_ours),
        cmocka_unit_test(spawn_wait__dies_with_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
