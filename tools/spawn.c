/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * spawn.c: all signals that can be passed on are blocked here and taken one by one. Those of a
 * terminal reach the program without us, as it is of the same process group.
 */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed_on[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGPIPE,
};

enum { PASSED_ON = sizeof(passed_on) / sizeof(passed_on[0]) };

/* The child's part: tells errno of a failed exec through the pipe, which a good one closes. */
static void start(const char *path, char **argv, const sigset_t *mask, int report)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(path, argv);
    int error = errno;
    ssize_t n = write(report, &error, sizeof(error));
    _exit(n == sizeof(error) ? 127 : 126);
}

static int wait_for(pid_t child, const sigset_t *signals)
{
    for (;;) {
        int status;
        siginfo_t info;
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
        if (sigwaitinfo(signals, &info) < 0 || info.si_signo == SIGCHLD)
            continue;
        /* SI_KERNEL: from the terminal, whose whole foreground group got it. */
        if (info.si_code != SI_KERNEL)
            kill(child, info.si_signo);
    }
}

int spawn_wait(const char *path, char **argv)
{
    sigset_t signals, before;
    int report[2];
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (unsigned i = 0; i < PASSED_ON; i++)
        sigaddset(&signals, passed_on[i]);
    if (pipe2(report, O_CLOEXEC) != 0)
        return -1;
    /* An ignored SIGCHLD, inherited, would take the exit status away. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &signals, &before);
    pid_t child = fork();
    if (child == 0)
        start(path, argv, &before, report[1]);
    int error = child < 0 ? errno : 0;
    close(report[1]);
    if (child > 0 && read(report[0], &error, sizeof(error)) == sizeof(error))
        waitpid(child, NULL, 0);
    close(report[0]);
    if (error != 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        errno = error;
        return -1;
    }
    int status = wait_for(child, &signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}
