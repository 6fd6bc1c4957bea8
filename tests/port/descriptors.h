/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * descriptors.h: a process without a free descriptor, for tests of what still works then. Include
 * after cmocka.h.
 */
#ifndef TESTS_PORT_DESCRIPTORS_H
#define TESTS_PORT_DESCRIPTORS_H

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_FILES = 128 };

static int filler[MAX_FILES];
static int fillers;

static inline void use_up_descriptors(void)
{
    struct rlimit few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &few), 0);
    few.rlim_cur = MAX_FILES;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int fd;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        filler[fillers++] = fd;
    assert_int_equal(errno, EMFILE);
}

static inline void give_back_descriptors(void)
{
    while (fillers > 0)
        close(filler[--fillers]);
}

#endif
