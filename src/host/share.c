/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share.c: see share.h. Behind a command descriptor is a sealed memfd with a token that nobody can
 * guess and the name of its process's socket, an abstract one of datagrams, gone with the process.
 * Its helper thread answers.
 */
#define _GNU_SOURCE
#include "host/share.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "host/host_priv.h"

enum {
    SHARE_ANSWERS = 16, /* of one call */
    SHARE_PATIENCE_MS = 3000,
};
static const uint64_t SHARE_TAKEN_NS = 1000 * 1000;   /* until the server is asked again */
static const uint64_t CMD_MAGIC = 0x56425f434d445f31; /* VB_CMD_1 */

static const struct verbena_share_server *_Atomic share_server;

void verbena_share_serve(const struct verbena_share_server *server)
{
    atomic_store(&share_server, server);
}

static socklen_t share_name(uint64_t process, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena/share/%016llx",
                     (unsigned long long)process);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Without a socket, or in a sandbox, nobody imports. */
void share_open(struct host *h)
{
    struct sockaddr_un a;
    h->share_process = host_random();
    h->share_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (h->share_fd >= 0 &&
        bind(h->share_fd, (struct sockaddr *)&a, share_name(h->share_process, &a)) != 0)
        share_close(h);
}

void share_close(struct host *h)
{
    if (h->share_fd >= 0)
        close(h->share_fd);
    h->share_fd = -1;
}

int verbena_cmd_create(struct verbena_context *ctx, struct verbena_cmd *out)
{
    struct host *h = ctx->host;
    *out = (struct verbena_cmd){
        .magic = CMD_MAGIC,
        .process = h->share_fd >= 0 ? h->share_process : 0,
        .token = {host_random(), host_random()},
    };
    int fd = -1;
    if (file_limit_allows(sizeof(*out)))
        fd = memfd_create("verbena-cmd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) { /* in a sandbox, say: programs want a descriptor all the same, if not to import */
        fd = eventfd(0, EFD_CLOEXEC);
        return fd < 0 ? -errno : fd;
    }
    if (pwrite(fd, out, sizeof(*out), 0) != (ssize_t)sizeof(*out)) {
        close(fd);
        return -ENOMEM;
    }
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    return fd;
}

int verbena_cmd_read(int fd, struct verbena_cmd *out)
{
    ssize_t n = pread(fd, out, sizeof(*out), 0);
    if (n < 0)
        return errno == EBADF ? -EBADF : -EINVAL;
    return n == (ssize_t)sizeof(*out) && out->magic == CMD_MAGIC ? 0 : -EINVAL;
}

/* Room for one descriptor. */
union share_control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

/* fd: goes along unless -1. */
static ssize_t send_with(int socket, struct sockaddr_un *to, socklen_t to_bytes, void *data,
                         size_t n, int fd, int flags)
{
    union share_control control;
    struct iovec iov = {data, n};
    struct msghdr m = {.msg_name = to, .msg_namelen = to_bytes, .msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        memset(&control, 0, sizeof(control));
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    return sendmsg(socket, &m, flags | MSG_NOSIGNAL);
}

/* The next request, if any, while the server has begun. */
static bool serve_one(struct host *h, const struct verbena_share_server *server)
{
    struct sockaddr_un from;
    socklen_t from_bytes = sizeof(from);
    struct verbena_share_request q;
    struct verbena_share_reply r = {.err = -EINVAL};
    int fd = -1;
    /* What strangers send along is not taken: no room for it. */
    ssize_t n = recvfrom(h->share_fd, &q, sizeof(q), MSG_TRUNC | MSG_DONTWAIT,
                         (struct sockaddr *)&from, &from_bytes);
    if (n < 0)
        return false;
    if (n != (ssize_t)sizeof(q) || from_bytes <= sizeof(sa_family_t))
        return true;
    if (server != NULL)
        server->answer(&q, &r, &fd);
    (void)send_with(h->share_fd, &from, from_bytes, &r, sizeof(r), fd, MSG_DONTWAIT);
    if (fd >= 0)
        close(fd);
    return true;
}

/* A thread that forks may hold what the answer needs and wait for one that closes the device, which
 * waits for us: so a request is left in the socket until it can be answered at once. */
void share_serve(struct host *h)
{
    const struct verbena_share_server *server = atomic_load(&share_server);
    bool more = true;
    for (unsigned i = 0; i < SHARE_ANSWERS && more && !atomic_load(&h->stop); i++) {
        if (server != NULL && !server->begin()) {
            h->share_again_ns = host_now_ns() + SHARE_TAKEN_NS;
            return;
        }
        more = serve_one(h, server);
        if (server != NULL)
            server->end();
    }
}

static int receive_reply(int s, struct verbena_share_reply *r, int *fd)
{
    union share_control control;
    struct iovec iov = {r, sizeof(*r)};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct pollfd p = {.fd = s, .events = POLLIN};
    int ready;
    do {
        ready = poll(&p, 1, SHARE_PATIENCE_MS);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return ready == 0 ? -ETIMEDOUT : -errno;
    ssize_t n = recvmsg(s, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0)
        return -errno;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(*fd)))
        memcpy(fd, CMSG_DATA(c), sizeof(*fd));
    return n == (ssize_t)sizeof(*r) ? 0 : -EPROTO;
}

static int ask(int s, const struct verbena_cmd *cmd, const struct verbena_share_request *q,
               struct verbena_share_reply *r, int *fd)
{
    struct sockaddr_un a;
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    socklen_t n = share_name(cmd->process, &a);
    /* A name of its own, so that there is a way back; then only that process is heard. */
    if (bind(s, (const struct sockaddr *)&any, sizeof(sa_family_t)) != 0 ||
        connect(s, (struct sockaddr *)&a, n) != 0)
        return -errno;
    struct verbena_share_request copy = *q;
    const struct timeval patience = {.tv_sec = SHARE_PATIENCE_MS / 1000};
    (void)setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (send_with(s, NULL, 0, &copy, sizeof(copy), -1, 0) != (ssize_t)sizeof(copy))
        return errno == EAGAIN ? -ETIMEDOUT : -errno;
    return receive_reply(s, r, fd);
}

int verbena_share_ask(const struct verbena_cmd *cmd, const struct verbena_share_request *q,
                      struct verbena_share_reply *r, int *fd)
{
    int cancel_state, err;
    *fd = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    err = s < 0 ? -errno : ask(s, cmd, q, r, fd);
    if (s >= 0)
        close(s);
    if (err != 0 && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    pthread_setcancelstate(cancel_state, NULL);
    return err;
}
