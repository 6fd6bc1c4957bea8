/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file_limit.h: the size that files of this process may have (RLIMIT_FSIZE, `ulimit -f'), unnamed
 * ones in memory as well. To write beyond it, or to make a file longer, is a signal that ends the
 * program unless it expects it: a library that can do without the file asks first.
 */
#ifndef BASE_FILE_LIMIT_H
#define BASE_FILE_LIMIT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

static inline bool file_limit_allows(uint64_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

/* What strerror() says, and where the limit was it, who set it. */
static inline const char *file_limit_strerror(int error)
{
    return error == EFBIG ? "File too large: see ulimit -f" : strerror(error);
}

#endif
