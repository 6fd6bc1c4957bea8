/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * skips.h: skipping a test with its reason, which cmocka has no place for, and which sanitizer a
 * test is built with, told alike by gcc and clang: their runtimes do not survive some tests.
 */
#ifndef TESTS_SKIPS_H
#define TESTS_SKIPS_H

#include <stdio.h>

/* The check runner reads this line and names the reason. Inside a cmocka test. */
#define SKIP_TEST(why)                                                                             \
    do {                                                                                           \
        printf("# skipped because: %s\n", why);                                                    \
        fflush(stdout);                                                                            \
        skip();                                                                                    \
    } while (0)

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif

#endif
