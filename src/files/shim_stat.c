/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim_stat.c: stat and access in all their forms. On x86-64 struct stat64 is struct stat.
 */
#define _GNU_SOURCE
#include "files/shim.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout");

enum { SYSFS_FILE_BYTES = 4096 }; /* what the kernel says of every attribute */

/* FNV-1a; the upper bits keep it apart from the system's. */
uint64_t shim_inode(const char *path)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *path != '\0'; path++)
        h = (h ^ (unsigned char)*path) * 0x100000001b3u;
    return (h >> 2) | (UINT64_C(1) << 62);
}

/* As the file system's own files, but for what is said of the node. */
static void fill(const struct files_node *node, struct stat *st)
{
    char target[FILES_TARGET_BYTES];
    int error = errno;

    memset(st, 0, sizeof(*st));
    const char *like = node->kind == FILES_CHAR ? "/dev/null" : "/sys";
    if (syscall(SYS_newfstatat, AT_FDCWD, like, st, 0) != 0 && node->kind == FILES_CHAR)
        *st = (struct stat){.st_mode = S_IFCHR | 0666, .st_rdev = makedev(1, 3)};
    errno = error;
    st->st_ino = shim_inode(node->path);
    st->st_nlink = 1;
    st->st_blksize = SYSFS_FILE_BYTES;
    st->st_size = 0;
    switch (node->kind) {
    case FILES_DIR:
        st->st_mode = S_IFDIR | 0755;
        break;
    case FILES_FILE:
        st->st_mode = S_IFREG | 0444;
        st->st_size = SYSFS_FILE_BYTES;
        break;
    case FILES_LINK:
        st->st_mode = S_IFLNK | 0777;
        st->st_size = (off_t)files_target(node, target);
        break;
    case FILES_CHAR:
        break;
    }
}

/* A descriptor of ours says what its path says, but for its size: who copies by that and finds that
 * the memory has an end (cp) would fill up with zeros. */
static void correct(int fd, struct stat *st)
{
    char path[FILES_PATH_BYTES];
    struct files_node node;
    struct stat memory = *st;
    int error = errno;

    if (S_ISREG(st->st_mode) && st->st_nlink == 0 && shim_identify(fd, path) &&
        files_lookup(&files_live, path, &node)) {
        fill(&node, st);
        st->st_size = memory.st_size;
        st->st_blocks = memory.st_blocks;
    }
    errno = error;
}

__attribute__((noinline)) static int stat_at(int dirfd, const char *path, struct stat *st,
                                             int flags)
{
    struct files_found f;

    switch (shim_find(dirfd, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, &f)) {
    case FILES_OURS:
        fill(&f.node, st);
        return 0;
    case FILES_ERROR:
        return -1;
    default:
        break;
    }
    int status = (int)syscall(SYS_newfstatat, dirfd, shim_path(&f, path), st, flags);
    if (status == 0 && path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0)
        correct(dirfd, st);
    return status;
}

SHIM_API int stat(const char *path, struct stat *st)
{
    return shim_maybe(AT_FDCWD, path) ? stat_at(AT_FDCWD, path, st, 0) : REAL(stat)(path, st);
}

SHIM_API int lstat(const char *path, struct stat *st)
{
    return shim_maybe(AT_FDCWD, path) ? stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)
                                      : REAL(lstat)(path, st);
}

SHIM_API int fstat(int fd, struct stat *st)
{
    int status = REAL(fstat)(fd, st);

    if (status == 0 && atomic_load_explicit(&shim_marked, memory_order_relaxed))
        correct(fd, st);
    return status;
}

SHIM_API int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
    return shim_maybe(dirfd, path) ? stat_at(dirfd, path, st, flags)
                                   : REAL(fstatat)(dirfd, path, st, flags);
}

SHIM_API int stat64(const char *path, struct stat64 *st)
{
    return stat(path, (struct stat *)st);
}

SHIM_API int lstat64(const char *path, struct stat64 *st)
{
    return lstat(path, (struct stat *)st);
}

SHIM_API int fstat64(int fd, struct stat64 *st)
{
    return fstat(fd, (struct stat *)st);
}

SHIM_API int fstatat64(int dirfd, const char *path, struct stat64 *st, int flags)
{
    return fstatat(dirfd, path, (struct stat *)st, flags);
}

SHIM_API int __xstat(int version, const char *path, struct stat *st)
{
    return shim_maybe(AT_FDCWD, path) ? stat_at(AT_FDCWD, path, st, 0)
                                      : REAL(__xstat)(version, path, st);
}

SHIM_API int __lxstat(int version, const char *path, struct stat *st)
{
    return shim_maybe(AT_FDCWD, path) ? stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)
                                      : REAL(__lxstat)(version, path, st);
}

SHIM_API int __fxstat(int version, int fd, struct stat *st)
{
    int status = REAL(__fxstat)(version, fd, st);

    if (status == 0 && atomic_load_explicit(&shim_marked, memory_order_relaxed))
        correct(fd, st);
    return status;
}

SHIM_API int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags)
{
    return shim_maybe(dirfd, path) ? stat_at(dirfd, path, st, flags)
                                   : REAL(__fxstatat)(version, dirfd, path, st, flags);
}

SHIM_API int __xstat64(int version, const char *path, struct stat64 *st)
{
    return __xstat(version, path, (struct stat *)st);
}

SHIM_API int __lxstat64(int version, const char *path, struct stat64 *st)
{
    return __lxstat(version, path, (struct stat *)st);
}

SHIM_API int __fxstat64(int version, int fd, struct stat64 *st)
{
    return __fxstat(version, fd, (struct stat *)st);
}

SHIM_API int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags)
{
    return __fxstatat(version, dirfd, path, (struct stat *)st, flags);
}

static struct statx_timestamp time_of(struct timespec t)
{
    return (struct statx_timestamp){.tv_sec = t.tv_sec, .tv_nsec = (uint32_t)t.tv_nsec};
}

static void to_statx(const struct stat *st, struct statx *x)
{
    *x = (struct statx){
        .stx_mask = STATX_BASIC_STATS,
        .stx_blksize = (uint32_t)st->st_blksize,
        .stx_nlink = (uint32_t)st->st_nlink,
        .stx_uid = st->st_uid,
        .stx_gid = st->st_gid,
        .stx_mode = (uint16_t)st->st_mode,
        .stx_ino = st->st_ino,
        .stx_size = (uint64_t)st->st_size,
        .stx_blocks = (uint64_t)st->st_blocks,
        .stx_atime = time_of(st->st_atim),
        .stx_ctime = time_of(st->st_ctim),
        .stx_mtime = time_of(st->st_mtim),
        .stx_rdev_major = major(st->st_rdev),
        .stx_rdev_minor = minor(st->st_rdev),
        .stx_dev_major = major(st->st_dev),
        .stx_dev_minor = minor(st->st_dev),
    };
}

__attribute__((noinline)) static int statx_at(int dirfd, const char *path, int flags, unsigned mask,
                                              struct statx *x)
{
    struct files_found f;
    struct stat st;
    char ours[FILES_PATH_BYTES];

    if (path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0 && shim_identify(dirfd, ours)) {
        if (fstat(dirfd, &st) != 0)
            return -1;
        to_statx(&st, x);
        return 0;
    }
    switch (shim_find(dirfd, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, &f)) {
    case FILES_OURS:
        fill(&f.node, &st);
        to_statx(&st, x);
        return 0;
    case FILES_ERROR:
        return -1;
    default:
        return REAL(statx)(dirfd, shim_path(&f, path), flags, mask, x);
    }
}

SHIM_API int statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *x)
{
    return shim_maybe(dirfd, path) ? statx_at(dirfd, path, flags, mask, x)
                                   : REAL(statx)(dirfd, path, flags, mask, x);
}

__attribute__((noinline)) static int access_at(int dirfd, const char *path, int mode, int flags)
{
    struct files_found f;

    switch (shim_find(dirfd, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, &f)) {
    case FILES_OURS:
        break;
    case FILES_ERROR:
        return -1;
    default:
        return REAL(faccessat)(dirfd, shim_path(&f, path), mode, flags);
    }
    int allowed = f.node.kind == FILES_CHAR  ? R_OK | W_OK
                  : f.node.kind == FILES_DIR ? R_OK | X_OK
                                             : R_OK;
    if (f.node.kind == FILES_LINK || (mode & ~allowed) == 0)
        return 0;
    errno = EACCES;
    return -1;
}

SHIM_API int access(const char *path, int mode)
{
    return shim_maybe(AT_FDCWD, path) ? access_at(AT_FDCWD, path, mode, 0)
                                      : REAL(access)(path, mode);
}

SHIM_API int faccessat(int dirfd, const char *path, int mode, int flags)
{
    return shim_maybe(dirfd, path) ? access_at(dirfd, path, mode, flags)
                                   : REAL(faccessat)(dirfd, path, mode, flags);
}

SHIM_API int euidaccess(const char *path, int mode)
{
    return shim_maybe(AT_FDCWD, path) ? access_at(AT_FDCWD, path, mode, AT_EACCESS)
                                      : REAL(euidaccess)(path, mode);
}

SHIM_API int eaccess(const char *path, int mode)
{
    return euidaccess(path, mode);
}
