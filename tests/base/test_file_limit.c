/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_file_limit.c: what is allowed can be done; what is not would be a signal, or an error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file_limit.h"

static void file_limit_allows__as_the_kernel(void **state)
{
    (void)state;
    static const struct {
        rlim_t limit;
        uint64_t bytes;
        bool allowed;
    } rows[] = {
        {0,             0,    true },
        {0,             1,    false},
        {1,             1,    true },
        {1,             2,    false},
        {4096,          4096, true },
        {4096,          4097, false},
        {4096,          9000, false},
        {4096,          1,    true },
        {RLIM_INFINITY, 9000, true },
    };
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rlimit small = {rows[i].limit, before.rlim_max};
        int fd = memfd_create("test", MFD_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        bool allowed = file_limit_allows(rows[i].bytes);
        int r = ftruncate(fd, (off_t)rows[i].bytes), error = errno;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(allowed, rows[i].allowed);
        assert_int_equal(r == 0, rows[i].allowed);
        if (r != 0)
            assert_non_null(strstr(file_limit_strerror(error), "ulimit -f"));
        close(fd);
    }
    signal(SIGXFSZ, SIG_DFL);
    assert_string_equal(file_limit_strerror(ENOSPC), strerror(ENOSPC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_limit_allows__as_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
