/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim_read.c: some programs keep a counter's file open and read it again from its start, where the
 * kernel gives the value of that moment. So while such descriptors are open, reads look whether
 * theirs is one. Reads that libc makes for itself (stdio) do not pass here.
 */
#define _GNU_SOURCE
#include "files/shim.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file_limit.h"

enum { MAX_WATCHED = 64 }; /* more keep the value that they were opened with */

static _Atomic int watched[MAX_WATCHED]; /* descriptor + 1; 0: free */
static _Atomic int watched_count;

static bool is_watched(int fd, unsigned *at)
{
    for (unsigned i = 0; i < MAX_WATCHED; i++) {
        *at = i;
        if (atomic_load_explicit(&watched[i], memory_order_relaxed) == fd + 1)
            return true;
    }
    return false;
}

/* The number may be another file's by now: its close was not ours to see. */
static void forget(int fd, unsigned at)
{
    int was = fd + 1;

    if (atomic_compare_exchange_strong(&watched[at], &was, 0))
        atomic_fetch_sub(&watched_count, 1);
}

/* Makes room of what has been closed since. */
static void tidy(void)
{
    char path[FILES_PATH_BYTES];

    for (unsigned i = 0; i < MAX_WATCHED; i++) {
        int fd = atomic_load(&watched[i]) - 1;
        if (fd >= 0 && !shim_identify(fd, path))
            forget(fd, i);
    }
}

void shim_watch(int fd)
{
    unsigned at;

    if (is_watched(fd, &at))
        return;
    tidy();
    for (unsigned i = 0; i < MAX_WATCHED; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&watched[i], &none, fd + 1)) {
            atomic_fetch_add(&watched_count, 1);
            return;
        }
    }
}

static void renew(int fd)
{
    char path[FILES_PATH_BYTES], now[FILES_PATH_BYTES], proc[32], text[FILES_TEXT_BYTES];
    struct files_node node;
    unsigned at;
    int error = errno;

    if (!is_watched(fd, &at))
        return;
    if (!shim_identify(fd, path)) {
        forget(fd, at);
        return;
    }
    if (files_lookup(&files_live, path, &node) && files_counts(&node)) {
        ssize_t n = files_read(&files_live, &node, text);
        snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
        int again =
            n > 0 && file_limit_allows((uint64_t)n) ? REAL(open)(proc, O_WRONLY | O_CLOEXEC) : -1;
        if (again >= 0) {
            /* Another thread may have closed it meanwhile, and the number be a file's of its own.
             */
            if (shim_identify(again, now) && strcmp(now, path) == 0 &&
                pwrite(again, text, (size_t)n, 0) == n)
                (void)!ftruncate(again, n);
            close(again);
        }
    }
    errno = error;
}

/* Only from the start: who is in the middle reads on in the text that it began. */
static inline void renew_if_watched(int fd, off_t at)
{
    if (__builtin_expect(atomic_load_explicit(&watched_count, memory_order_relaxed) != 0, 0) &&
        at == 0)
        renew(fd);
}

/* A number that has become a pipe's, say, has no place in it: that is looked into, and forgotten.
 */
static inline void renew_if_at_start(int fd)
{
    unsigned at;

    if (__builtin_expect(atomic_load_explicit(&watched_count, memory_order_relaxed) != 0, 0) &&
        is_watched(fd, &at)) {
        int error = errno;
        if (lseek(fd, 0, SEEK_CUR) <= 0)
            renew(fd);
        errno = error;
    }
}

SHIM_API ssize_t read(int fd, void *buf, size_t n)
{
    renew_if_at_start(fd);
    return REAL(read)(fd, buf, n);
}

SHIM_API ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    renew_if_watched(fd, at);
    return REAL(pread)(fd, buf, n, at);
}

SHIM_API ssize_t pread64(int fd, void *buf, size_t n, off64_t at)
{
    return pread(fd, buf, n, at);
}

SHIM_API ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
    renew_if_at_start(fd);
    return REAL(__read_chk)(fd, buf, n, size);
}

SHIM_API ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t size)
{
    renew_if_watched(fd, at);
    return REAL(__pread_chk)(fd, buf, n, at, size);
}

SHIM_API ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t size)
{
    return __pread_chk(fd, buf, n, at, size);
}
