/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forks.h: a fork whose child may call anything, under AddressSanitizer, too. Its runtime does not
 * hold its allocator's locks across a fork: were an engine's thread just starting, which allocates,
 * the child would wait for ever for a lock that it inherited.
 */
#ifndef TESTS_FORKS_H
#define TESTS_FORKS_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "skips.h"

/* Does every other thread of the process sleep in ppoll(), as engines' threads do? */
static inline int forks_threads_sleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int sleep = tasks != NULL;
    for (struct dirent *d; sleep && (d = readdir(tasks)) != NULL;) {
        char path[64], text[32] = "";
        if (atoi(d->d_name) == 0 || atoi(d->d_name) == (int)syscall(SYS_gettid))
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", atoi(d->d_name));
        FILE *f = fopen(path, "re");
        if (f == NULL)
            continue; /* has ended since */
        sleep = fgets(text, sizeof(text), f) != NULL && atoi(text) == SYS_ppoll;
        fclose(f);
    }
    if (tasks != NULL)
        closedir(tasks);
    return sleep;
}

/* fork() once they sleep; -1 with ETIMEDOUT if they do not within 10 s. */
static inline pid_t quiet_fork(void)
{
    for (unsigned ms = 0; ms < 10000; ms++) {
        if (!UNDER_ASAN || forks_threads_sleep())
            return fork();
        usleep(1000);
    }
    errno = ETIMEDOUT;
    return -1;
}

#endif
