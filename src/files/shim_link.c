/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim_link.c: links and canonical names; and extended attributes, of which ours have none (`ls -l`
 * asks for them).
 */
#define _GNU_SOURCE
#include "files/shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

__attribute__((noinline)) static ssize_t readlink_at(int dirfd, const char *path, char *buf,
                                                     size_t n)
{
    char target[FILES_TARGET_BYTES];
    struct files_found f;

    switch (shim_find(dirfd, path, false, &f)) {
    case FILES_OURS:
        break;
    case FILES_ERROR:
        return -1;
    default:
        return REAL(readlinkat)(dirfd, shim_path(&f, path), buf, n);
    }
    if (f.node.kind != FILES_LINK) {
        errno = EINVAL;
        return -1;
    }
    size_t length = files_target(&f.node, target);
    if (length > n)
        length = n;
    memcpy(buf, target, length);
    return (ssize_t)length;
}

SHIM_API ssize_t readlink(const char *path, char *buf, size_t n)
{
    return shim_maybe(AT_FDCWD, path) ? readlink_at(AT_FDCWD, path, buf, n)
                                      : REAL(readlink)(path, buf, n);
}

SHIM_API ssize_t readlinkat(int dirfd, const char *path, char *buf, size_t n)
{
    return shim_maybe(dirfd, path) ? readlink_at(dirfd, path, buf, n)
                                   : REAL(readlinkat)(dirfd, path, buf, n);
}

SHIM_API ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t size)
{
    return n <= size && shim_maybe(AT_FDCWD, path) ? readlink_at(AT_FDCWD, path, buf, n)
                                                   : REAL(__readlink_chk)(path, buf, n, size);
}

SHIM_API ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t n, size_t size)
{
    return n <= size && shim_maybe(dirfd, path) ? readlink_at(dirfd, path, buf, n)
                                                : REAL(__readlinkat_chk)(dirfd, path, buf, n, size);
}

__attribute__((noinline)) static char *real_path(const char *path, char *resolved)
{
    struct files_found f;

    switch (shim_find(AT_FDCWD, path, true, &f)) {
    case FILES_OURS:
        break;
    case FILES_ERROR:
        return NULL;
    default:
        return REAL(realpath)(shim_path(&f, path), resolved);
    }
    if (resolved == NULL)
        return strdup(f.node.path);
    return memcpy(resolved, f.node.path, strlen(f.node.path) + 1);
}

SHIM_API char *realpath(const char *path, char *resolved)
{
    return shim_maybe(AT_FDCWD, path) ? real_path(path, resolved) : REAL(realpath)(path, resolved);
}

SHIM_API char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}

SHIM_API char *__realpath_chk(const char *path, char *resolved, size_t size)
{
    return size >= PATH_MAX && shim_maybe(AT_FDCWD, path)
               ? real_path(path, resolved)
               : REAL(__realpath_chk)(path, resolved, size);
}

/* -1, with errno; or 1: ask the system, about *path. */
__attribute__((noinline)) static int attributes(struct files_found *f, const char **path,
                                                bool follow)
{
    switch (shim_find(AT_FDCWD, *path, follow, f)) {
    case FILES_OURS:
        errno = EOPNOTSUPP;
        return -1;
    case FILES_ERROR:
        return -1;
    default:
        *path = shim_path(f, *path);
        return 1;
    }
}

SHIM_API ssize_t getxattr(const char *path, const char *name, void *value, size_t n)
{
    if (shim_maybe(AT_FDCWD, path)) {
        struct files_found f;
        return attributes(&f, &path, true) < 0 ? -1 : REAL(getxattr)(path, name, value, n);
    }
    return REAL(getxattr)(path, name, value, n);
}

SHIM_API ssize_t lgetxattr(const char *path, const char *name, void *value, size_t n)
{
    if (shim_maybe(AT_FDCWD, path)) {
        struct files_found f;
        return attributes(&f, &path, false) < 0 ? -1 : REAL(lgetxattr)(path, name, value, n);
    }
    return REAL(lgetxattr)(path, name, value, n);
}

SHIM_API ssize_t listxattr(const char *path, char *list, size_t n)
{
    if (shim_maybe(AT_FDCWD, path)) {
        struct files_found f;
        return attributes(&f, &path, true) < 0 ? -1 : REAL(listxattr)(path, list, n);
    }
    return REAL(listxattr)(path, list, n);
}

SHIM_API ssize_t llistxattr(const char *path, char *list, size_t n)
{
    if (shim_maybe(AT_FDCWD, path)) {
        struct files_found f;
        return attributes(&f, &path, false) < 0 ? -1 : REAL(llistxattr)(path, list, n);
    }
    return REAL(llistxattr)(path, list, n);
}
