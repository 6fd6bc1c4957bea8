/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim.h: what the files of the shim share. libverbena_files.so.0 stands before libc, by
 * LD_PRELOAD, and answers the calls that ask for files of ours (files_tree.h); all others go to
 * libc as they are. Nothing is kept on disk: a file is a memfd, filled when it is opened, and a
 * directory a list, made when it is opened. It has no constructor, and starts no engine.
 *
 * For a path that is not ours a call costs one comparison of its beginning, and may be made where
 * the system's may: in signal handlers, between fork and exec. For ours it lists interfaces, and
 * may not.
 */
#ifndef FILES_SHIM_H
#define FILES_SHIM_H

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "files/files_path.h"

#define SHIM_API __attribute__((visibility("default")))

/* glibc's own, for programs built before 2.33 or with _FORTIFY_SOURCE; no header declares them. */
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);
char *__realpath_chk(const char *path, char *resolved, size_t size);
ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t size);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t n, size_t size);
ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t size);
ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t size);

/* Calls that have a successor: ours, or libc's. */
#define SHIM_CALLS(X)                                                                              \
    X(stat)                                                                                        \
    X(lstat)                                                                                       \
    X(fstat)                                                                                       \
    X(fstatat)                                                                                     \
    X(statx)                                                                                       \
    X(__xstat)                                                                                     \
    X(__lxstat)                                                                                    \
    X(__fxstat)                                                                                    \
    X(__fxstatat)                                                                                  \
    X(access)                                                                                      \
    X(faccessat)                                                                                   \
    X(euidaccess)                                                                                  \
    X(open)                                                                                        \
    X(openat)                                                                                      \
    X(fopen)                                                                                       \
    X(read)                                                                                        \
    X(pread)                                                                                       \
    X(__read_chk)                                                                                  \
    X(__pread_chk)                                                                                 \
    X(opendir)                                                                                     \
    X(fdopendir)                                                                                   \
    X(readdir)                                                                                     \
    X(readdir_r)                                                                                   \
    X(closedir)                                                                                    \
    X(rewinddir)                                                                                   \
    X(telldir)                                                                                     \
    X(seekdir)                                                                                     \
    X(dirfd)                                                                                       \
    X(scandir)                                                                                     \
    X(glob)                                                                                        \
    X(readlink)                                                                                    \
    X(readlinkat)                                                                                  \
    X(realpath)                                                                                    \
    X(__realpath_chk)                                                                              \
    X(__readlink_chk)                                                                              \
    X(__readlinkat_chk)                                                                            \
    X(getxattr)                                                                                    \
    X(lgetxattr)                                                                                   \
    X(listxattr)                                                                                   \
    X(llistxattr)

enum shim_call {
#define X(name) SHIM_CALL_##name,
    SHIM_CALLS(X)
#undef X
        SHIM_CALL_COUNT
};

extern void *_Atomic shim_next[SHIM_CALL_COUNT];
void *shim_look_up(enum shim_call c);

static inline void *shim_real(enum shim_call c)
{
    void *p = atomic_load_explicit(&shim_next[c], memory_order_acquire);
    return p != NULL ? p : shim_look_up(c);
}
/* The next function of that name after ours. */
#define REAL(name) ((__typeof__(&(name)))shim_real(SHIM_CALL_##name))

/* shim_fd.c: descriptors of ours know their path by their memfd's name, so they need no table, and
 * are known in children, too. */

/* Some were given out by this process. */
extern _Atomic bool shim_marked;
/* Is it one of ours? Then its path. Leaves errno alone. */
bool shim_identify(int fd, char path[FILES_PATH_BYTES]);
/* A descriptor that stands for a directory, or one with a file's text. flags: of open. -1 and errno
 * as open. */
int shim_open_dir(const struct files_node *node, int flags);
int shim_open_file(const struct files_node *node, int flags);

/* Is it worth asking shim_find? */
static inline bool shim_maybe(int dirfd, const char *path)
{
    if (path == NULL)
        return false;
    if (path[0] == '/')
        return files_path_ours(path);
    if (dirfd != AT_FDCWD && atomic_load_explicit(&shim_marked, memory_order_relaxed))
        return true;
    return files_path_base(path) != NULL;
}
/* Whose it is; leaves errno alone but for FILES_ERROR, where it is set. */
enum files_verdict shim_find(int dirfd, const char *path, bool follow, struct files_found *out);
/* What the system's call is to be given, for FILES_FOREIGN and FILES_ELSEWHERE. */
static inline const char *shim_path(const struct files_found *f, const char *path)
{
    return f->verdict == FILES_ELSEWHERE ? f->path : path;
}

/* shim_open.c */
int shim_open_at(int dirfd, const char *path, int flags, mode_t mode);

/* shim_read.c: a descriptor of a counter, whose text is renewed when it is read from its start. */
void shim_watch(int fd);

/* shim_stat.c */
uint64_t shim_inode(const char *path);

#endif
