/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim_open.c: open and fopen in all their forms.
 */
#define _GNU_SOURCE
#include "files/shim.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* 0, or what the kernel would refuse the flags with. */
static int check(const struct files_node *node, int flags)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;

    if ((flags & O_PATH) != 0)
        writes = false;
    if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0)
        return EEXIST;
    if (node->kind == FILES_LINK) /* at the end, and not to be followed */
        return ELOOP;
    if (node->kind == FILES_DIR)
        return writes || (flags & O_CREAT) != 0 ? EISDIR : 0;
    if ((flags & O_DIRECTORY) != 0)
        return ENOTDIR;
    return node->kind == FILES_FILE && writes ? EACCES : 0;
}

__attribute__((noinline)) int shim_open_at(int dirfd, const char *path, int flags, mode_t mode)
{
    struct files_found f;

    switch (shim_find(dirfd, path, (flags & O_NOFOLLOW) == 0, &f)) {
    case FILES_OURS:
        break;
    case FILES_ERROR:
        if (errno == ENOENT && (flags & O_CREAT) != 0)
            errno = EACCES;
        return -1;
    default:
        return REAL(openat)(dirfd, shim_path(&f, path), flags, mode);
    }
    int error = check(&f.node, flags);
    if (error != 0) {
        errno = error;
        return -1;
    }
    if (f.node.kind == FILES_DIR)
        return shim_open_dir(&f.node, flags);
    if (f.node.kind == FILES_CHAR)
        return REAL(openat)(AT_FDCWD, "/dev/null", flags & ~O_CREAT, 0);
    return shim_open_file(&f.node, flags);
}

/* The mode is there only when a file may be made. */
#define TAKE_MODE(flags, mode)                                                                     \
    mode_t mode = 0;                                                                               \
    if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) {                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode = va_arg(args, mode_t);                                                               \
        va_end(args);                                                                              \
    }

static inline int open_by(const char *path, int flags, mode_t mode)
{
    return shim_maybe(AT_FDCWD, path) ? shim_open_at(AT_FDCWD, path, flags, mode)
                                      : REAL(open)(path, flags, mode);
}

static inline int openat_by(int dirfd, const char *path, int flags, mode_t mode)
{
    return shim_maybe(dirfd, path) ? shim_open_at(dirfd, path, flags, mode)
                                   : REAL(openat)(dirfd, path, flags, mode);
}

SHIM_API int open(const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return open_by(path, flags, mode);
}

SHIM_API int open64(const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return open_by(path, flags, mode);
}

SHIM_API int openat(int dirfd, const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return openat_by(dirfd, path, flags, mode);
}

SHIM_API int openat64(int dirfd, const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return openat_by(dirfd, path, flags, mode);
}

SHIM_API int __open_2(const char *path, int flags)
{
    return open_by(path, flags, 0);
}

SHIM_API int __open64_2(const char *path, int flags)
{
    return open_by(path, flags, 0);
}

SHIM_API int __openat_2(int dirfd, const char *path, int flags)
{
    return openat_by(dirfd, path, flags, 0);
}

SHIM_API int __openat64_2(int dirfd, const char *path, int flags)
{
    return openat_by(dirfd, path, flags, 0);
}

__attribute__((noinline)) static FILE *fopen_by(const char *path, const char *mode)
{
    int flags = mode[0] == 'r' ? O_RDONLY : mode[0] == 'w' ? O_WRONLY | O_TRUNC : O_WRONLY;
    struct files_found f;

    switch (shim_find(AT_FDCWD, path, true, &f)) {
    case FILES_OURS:
        break;
    case FILES_ERROR:
        return NULL;
    default:
        return REAL(fopen)(shim_path(&f, path), mode);
    }
    if (f.node.kind == FILES_CHAR)
        return REAL(fopen)("/dev/null", mode);
    if (strchr(mode, '+') != NULL)
        flags = O_RDWR;
    if (strchr(mode, 'e') != NULL)
        flags |= O_CLOEXEC;
    int fd = shim_open_at(AT_FDCWD, path, flags, 0);
    if (fd < 0)
        return NULL;
    FILE *out = fdopen(fd, "r");
    if (out == NULL)
        close(fd);
    return out;
}

SHIM_API FILE *fopen(const char *path, const char *mode)
{
    return shim_maybe(AT_FDCWD, path) ? fopen_by(path, mode) : REAL(fopen)(path, mode);
}

SHIM_API FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}
