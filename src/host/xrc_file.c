/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xrc_file.c: XRC domains that have a file: who opens one with the same file and device shares it,
 * within a process. Other processes have engines of their own, which know nothing of its queues
 * (docs/decisions/0020-xrc-domains.md): so that none takes a domain of its own for the shared one,
 * a domain is claimed by binding an abstract unix socket, which the kernel gives back when the
 * process dies, and the file is held, lest its number becomes another file's. Who would make the
 * domain if there were none does so (ibv_xsrq_pingpong, whose two sides share nothing but the name
 * of a file); who only joins is refused.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* All under the open lock, so that a forked child finds the list whole. */
struct xrc_file {
    struct xrcd *xrcd;
    unsigned ifindex;
    dev_t dev;
    ino_t ino;
    uint32_t opens;
    int file_fd;
    int name_fd; /* -1: another process has the name */
    LIST_ENTRY(xrc_file) link;
};

static struct xrc_file *find(struct host *h, unsigned ifindex, const struct stat *st)
{
    struct xrc_file *f;
    LIST_FOREACH(f, &h->xrc_files, link)
    if (f->ifindex == ifindex && f->dev == st->st_dev && f->ino == st->st_ino)
        return f;
    return NULL;
}

static socklen_t name_of(const struct xrc_file *f, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena/xrcd/%u/%ju/%ju",
                     f->ifindex, (uintmax_t)f->dev, (uintmax_t)f->ino);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Why there is no domain to join: -EADDRINUSE: another process has it; -EAGAIN: nobody. The name is
 * not even claimed for a moment, in which another could not make the domain. */
static int look_for_name(const struct xrc_file *f)
{
    struct sockaddr_un a;
    socklen_t bytes = name_of(f, &a);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    bool nobody = connect(fd, (struct sockaddr *)&a, bytes) != 0 && errno == ECONNREFUSED;
    close(fd);
    return nobody ? -EAGAIN : -EADDRINUSE;
}

/* A descriptor that holds the name; -EADDRINUSE: another process has it. */
static int claim_name(const struct xrc_file *f)
{
    struct sockaddr_un a;
    socklen_t bytes = name_of(f, &a);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&a, bytes) != 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

static int hold(struct xrc_file *f, int fd, bool own)
{
    f->name_fd = claim_name(f);
    if (f->name_fd < 0 && (f->name_fd != -EADDRINUSE || !own))
        return f->name_fd;
    f->file_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (f->file_fd >= 0)
        return 0;
    int err = -errno;
    if (f->name_fd >= 0)
        close(f->name_fd);
    return err;
}

static void release(struct xrc_file *f)
{
    close(f->file_fd);
    if (f->name_fd >= 0)
        close(f->name_fd);
}

/* The first of this process. */
static int open_new(struct verbena_context *ctx, int fd, const struct stat *st, int flags,
                    struct xrcd **out)
{
    struct host *h = ctx->host;
    struct xrc_file *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return -ENOMEM;
    *f = (struct xrc_file){
        .ifindex = ctx->device.ifindex, .dev = st->st_dev, .ino = st->st_ino, .opens = 1};
    int err = (flags & O_CREAT) == 0 ? look_for_name(f) : hold(f, fd, (flags & O_EXCL) == 0);
    if (err == -EADDRINUSE) /* there is one, and it cannot be had */
        err = (flags & O_EXCL) != 0 ? -EINVAL : -EOPNOTSUPP;
    if (err != 0) {
        free(f);
        return err;
    }
    err = xrc_domain_create(h->nic, &f->xrcd);
    if (err != 0) {
        release(f);
        free(f);
        return err;
    }
    LIST_INSERT_HEAD(&h->xrc_files, f, link);
    *out = f->xrcd;
    return 0;
}

static int open_file(struct verbena_context *ctx, int fd, int flags, struct xrcd **out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    struct xrc_file *f = find(ctx->host, ctx->device.ifindex, &st);
    if (f == NULL)
        return open_new(ctx, fd, &st, flags, out);
    if ((flags & O_EXCL) != 0)
        return -EINVAL;
    f->opens++;
    *out = f->xrcd;
    return 0;
}

static int close_file(struct host *h, struct xrcd *xrcd)
{
    struct xrc_file *f;
    LIST_FOREACH(f, &h->xrc_files, link)
    if (f->xrcd == xrcd)
        break;
    if (f != NULL && f->opens > 1) {
        f->opens--;
        return 0;
    }
    int err = xrc_domain_destroy(xrcd);
    if (err != 0 || f == NULL)
        return err;
    LIST_REMOVE(f, link);
    release(f);
    free(f);
    return 0;
}

int verbena_xrcd_open(struct verbena_context *ctx, int fd, int flags, struct xrcd **out)
{
    if (!host_alive(ctx->host))
        return -EIO;
    if (fd == -1)
        return xrc_domain_create(ctx->host->nic, out);
    int cancel_state = host_lock_open();
    int err = open_file(ctx, fd, flags, out);
    host_unlock_open(cancel_state);
    return err;
}

int verbena_xrcd_close(struct verbena_context *ctx, struct xrcd *xrcd)
{
    if (!host_alive(ctx->host))
        return -EIO;
    int cancel_state = host_lock_open();
    int err = close_file(ctx->host, xrcd);
    host_unlock_open(cancel_state);
    return err;
}

void xrc_file_abandon(struct host *h)
{
    struct xrc_file *f;
    LIST_FOREACH(f, &h->xrc_files, link)
    release(f);
}
