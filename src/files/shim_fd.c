/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim_fd.c: what shim.h says of descriptors, and the calls that come after ours.
 */
#define _GNU_SOURCE
#include "files/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_limit.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define MEMFD_NAME "verbena:" /* and the path */
#define LINK_HEAD  "/memfd:" MEMFD_NAME
#define LINK_TAIL  " (deleted)"

enum { PROC_BYTES = 32 };

void *_Atomic shim_next[SHIM_CALL_COUNT];
_Atomic bool shim_marked;

void *shim_look_up(enum shim_call c)
{
    static const char *const name[SHIM_CALL_COUNT] = {
#define X(n) [SHIM_CALL_##n] = #n,
        SHIM_CALLS(X)
#undef X
    };
    void *p = dlsym(RTLD_NEXT, name[c]);
    /* What glibc keeps only for old programs has its old version and no default one. */
    if (p == NULL)
        p = dlvsym(RTLD_NEXT, name[c], "GLIBC_2.2.5");
    if (p == NULL)
        abort(); /* who called it was linked to a libc that has it */
    atomic_store_explicit(&shim_next[c], p, memory_order_release);
    return p;
}

static void proc_path(int fd, char out[PROC_BYTES])
{
    snprintf(out, PROC_BYTES, "/proc/self/fd/%d", fd);
}

bool shim_identify(int fd, char path[FILES_PATH_BYTES])
{
    enum { HEAD = sizeof(LINK_HEAD) - 1, TAIL = sizeof(LINK_TAIL) - 1 };
    char proc[PROC_BYTES], link[HEAD + FILES_PATH_BYTES + TAIL];
    int error = errno;

    if (fd < 0 || !atomic_load_explicit(&shim_marked, memory_order_relaxed))
        return false;
    proc_path(fd, proc);
    long n = syscall(SYS_readlink, proc, link, sizeof(link));
    errno = error;
    if (n <= HEAD + TAIL || n >= (long)sizeof(link) || memcmp(link, LINK_HEAD, HEAD) != 0 ||
        memcmp(link + n - TAIL, LINK_TAIL, TAIL) != 0)
        return false;
    memcpy(path, link + HEAD, (size_t)n - HEAD - TAIL);
    path[(size_t)n - HEAD - TAIL] = '\0';
    return true;
}

static int new_memfd(const char *path)
{
    char name[sizeof(MEMFD_NAME) + FILES_PATH_BYTES];
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

    snprintf(name, sizeof(name), MEMFD_NAME "%s", path);
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, flags);
    return fd;
}

/* Opens the same memory anew, as it was asked for, under the same number: the lowest, as every
 * open gives it. Without /proc it stays as it was made. */
static int finish(int fd, int flags, int close_on_exec)
{
    char proc[PROC_BYTES];

    proc_path(fd, proc);
    int again = (int)syscall(SYS_openat, AT_FDCWD, proc, flags | O_CLOEXEC, 0);
    if (again >= 0) {
        dup3(again, fd, close_on_exec);
        close(again);
    } else if (close_on_exec == 0) {
        fcntl(fd, F_SETFD, 0);
    }
    atomic_store(&shim_marked, true);
    return fd;
}

/* O_PATH, so that reading it fails, as reading a directory does. */
int shim_open_dir(const struct files_node *node, int flags)
{
    int fd = new_memfd(node->path);

    return fd < 0 ? -1 : finish(fd, O_PATH, flags & O_CLOEXEC);
}

int shim_open_file(const struct files_node *node, int flags)
{
    char text[FILES_TEXT_BYTES];
    int error = errno;
    ssize_t n = files_read(&files_live, node, text);

    errno = error;
    /* The kernel opens it and fails the read. Any epoll descriptor can be opened, and not read. */
    if (n == -EINVAL)
        return epoll_create1((flags & O_CLOEXEC) != 0 ? EPOLL_CLOEXEC : 0);
    if (n < 0) {
        errno = (int)-n;
        return -1;
    }
    if (!file_limit_allows((uint64_t)n)) {
        errno = EFBIG;
        return -1;
    }
    int fd = new_memfd(node->path);
    if (fd < 0)
        return -1;
    if (pwrite(fd, text, (size_t)n, 0) != n) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    if (!files_counts(node))
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    fd = finish(fd, flags & (O_PATH | O_NONBLOCK), flags & O_CLOEXEC);
    if (files_counts(node) && (flags & O_PATH) == 0)
        shim_watch(fd);
    return fd;
}

/* Is dirfd (or the working directory) this one? */
static bool is_dir(int dirfd, const char *path)
{
    struct stat at, there;

    return syscall(SYS_newfstatat, dirfd, dirfd == AT_FDCWD ? "." : "", &at,
                   dirfd == AT_FDCWD ? 0 : AT_EMPTY_PATH) == 0 &&
           syscall(SYS_newfstatat, AT_FDCWD, path, &there, 0) == 0 && at.st_dev == there.st_dev &&
           at.st_ino == there.st_ino;
}

static enum files_verdict find(int dirfd, const char *path, bool follow, struct files_found *f)
{
    char at[FILES_PATH_BYTES];

    if (path[0] == '/')
        return files_resolve(&files_live, "/", path, follow, f);
    if (path[0] == '\0')
        return FILES_FOREIGN;
    if (dirfd != AT_FDCWD && shim_identify(dirfd, at))
        return files_resolve(&files_live, at, path, follow, f);
    const char *base = files_path_base(path);
    if (base == NULL)
        return FILES_FOREIGN;
    if (path[0] == 'i' && is_dir(dirfd, "/dev"))
        base = "/dev";
    else if (!is_dir(dirfd, base))
        return FILES_FOREIGN;
    return files_resolve(&files_live, base, path, follow, f);
}

enum files_verdict shim_find(int dirfd, const char *path, bool follow, struct files_found *f)
{
    int error = errno;

    f->verdict = find(dirfd, path, follow, f);
    errno = f->verdict == FILES_ERROR ? f->error : error;
    return f->verdict;
}
