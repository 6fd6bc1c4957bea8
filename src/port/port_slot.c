/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_slot.c: which process owns which QPNs, and passing packets on to their owner. A slot is
 * claimed by binding an abstract unix socket: at once or not at all, within the network namespace,
 * and gone with the process. Runs go over SEQPACKET connections, a message each: header, packets.
 *
 * Anybody may bind such a name, so packets are given only to listeners, and taken only from
 * connections, of our own user or of one that the user allowed.
 */
#define _GNU_SOURCE
#include "port/port_peer.h"
#include "port/port_udp_priv.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    FORWARD_MAGIC = 0x56425231,
    DIRECT_MAGIC, /* from the sender itself: port_local.c */
    LISTEN_BACKLOG = 64,
    ACCEPTS_MAX = 2 * LISTEN_BACKLOG, /* of one call */
};

/* What precedes the packets; one machine, hence host order. */
struct forward_header {
    uint32_t magic;
    uint32_t ifindex;
    struct net_addr src, dst;
    uint16_t sport;
    uint16_t segment;
    uint16_t first_id;
    uint8_t tos;
    uint8_t ttl;
};
_Static_assert(sizeof(struct forward_header) == SLOT_HEAD_BYTES, "no holes");
_Static_assert(sizeof(struct forward_header) <= UDP_RX_HEAD_BYTES, "fits before the packets");

socklen_t udp_slot_name(uint32_t slot, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena/slot/%u", slot);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int slot_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

static bool peer_allowed(const struct port_udp *u, int fd)
{
    uid_t uid;
    return port_peer_uid(fd, &uid) && udp_uid_allowed(u, uid);
}

int udp_slot_bind(uint32_t slot)
{
    struct sockaddr_un a;
    socklen_t n = udp_slot_name(slot, &a);
    int fd = slot_socket();
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&a, n) != 0 || listen(fd, LISTEN_BACKLOG) != 0)) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

int udp_slot_claim(struct port_udp *u, uint32_t *out)
{
    uint32_t first = rng_below(&u->rng, UDP_SLOTS);
    for (uint32_t i = 0; i < UDP_SLOTS; i++) {
        uint32_t slot = (first + i) % UDP_SLOTS;
        int fd = udp_slot_bind(slot);
        if (fd >= 0) {
            struct udp_fd *f;
            int err = udp_fd_add(u, fd, UDP_FD_LISTENER, false, &f);
            u->slot_mine[slot] = err == 0;
            *out = slot;
            return err;
        }
        if (fd != -EADDRINUSE)
            return fd;
        udp_count(u, UDP_slot_skipped, 1);
    }
    return -ENOSPC;
}

void udp_slot_fini(struct port_udp *u)
{
    if (u->accept_spare_fd >= 0)
        close(u->accept_spare_fd);
    u->accept_spare_fd = -1;
}

/* The next connection, or -errno. */
static int accept_next(struct port_udp *u, const struct udp_fd *listener)
{
    const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    int fd = accept4(listener->fd, NULL, NULL, flags);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && u->accept_spare_fd >= 0) {
        /* Most likely the leader, by whom all of our packets come. */
        close(u->accept_spare_fd);
        u->accept_spare_fd = -1;
        fd = accept4(listener->fd, NULL, NULL, flags);
    }
    return fd < 0 ? -errno : fd;
}

void udp_slot_accept(struct port_udp *u, struct udp_fd *listener)
{
    /* Not for ever: another user may connect as fast as we refuse. */
    for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept_next(u, listener);
        if (fd == -EAGAIN)
            return;
        if (fd == -EINTR || fd == -ECONNABORTED)
            continue;
        struct udp_fd *f;
        if (fd < 0) {
            u->accept_later = true;
            return;
        }
        if (!peer_allowed(u, fd) || u->connection_count >= UDP_MAX_CONNECTIONS) {
            udp_count(u, UDP_slot_refused, 1);
            close(fd);
        } else if (udp_fd_add(u, fd, UDP_FD_CONNECTION, false, &f) == 0) {
            u->connection_count++;
            f->listener = listener;
        }
    }
    /* It is watched for changes only: set anew, it shows at once what still waits. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = listener};
    epoll_ctl(u->epoll_fd, EPOLL_CTL_MOD, listener->fd, &event);
}

void udp_slot_accept_all(struct port_udp *u)
{
    struct udp_fd *f;
    u->accept_later = false;
    TAILQ_FOREACH(f, &u->fds, link)
    {
        if (f->kind == UDP_FD_LISTENER)
            udp_slot_accept(u, f);
    }
}

/* A message to a run; false: it makes no sense. */
static bool run_from_message(uint8_t *bytes, uint32_t n, struct udp_fd *from, struct udp_run *run)
{
    struct forward_header h;
    if (n <= sizeof(h))
        return false;
    memcpy(&h, bytes, sizeof(h));
    if ((h.magic != FORWARD_MAGIC && h.magic != DIRECT_MAGIC) || h.segment == 0)
        return false;
    if (net_addr_is_v4(&h.src) != net_addr_is_v4(&h.dst))
        return false;
    *run = (struct udp_run){
        .src = h.src,
        .dst = h.dst,
        .sport = h.sport,
        .tos = h.tos,
        .ttl = h.ttl,
        .ifindex = h.ifindex,
        .segment = h.segment,
        .first_id = h.first_id,
        .direct = h.magic == DIRECT_MAGIC,
        .bytes = bytes + sizeof(h),
        .n = n - (uint32_t)sizeof(h),
        .from = from,
    };
    return true;
}

/* All of the run ours? A run that was passed on once is never passed on again. */
static bool run_ours(const struct port_udp *u, const struct udp_run *run)
{
    for (uint32_t at = 0; at < run->n; at += run->segment) {
        uint32_t n = run->n - at < run->segment ? run->n - at : run->segment;
        const uint8_t *p = run->bytes + at;
        if (n < 8 ||
            !(udp_packet_gsi(p, n) ? udp_service_ours(u, p, n) : u->slot_mine[udp_packet_slot(p)]))
            return false;
    }
    return true;
}

unsigned udp_slot_read(struct port_udp *u, struct udp_fd *connection)
{
    for (unsigned i = 0; i < UDP_RX_MESSAGES; i++) {
        u->rx_iov[i] =
            (struct iovec){u->rx_buffer + (size_t)i * UDP_RX_BUFFER_BYTES, UDP_RX_BUFFER_BYTES};
        u->rx_message[i].msg_hdr = (struct msghdr){
            .msg_iov = &u->rx_iov[i],
            .msg_iovlen = 1,
            .msg_control = u->rx_control[i],
            .msg_controllen = UDP_RX_CONTROL_BYTES,
        };
    }
    int r = recvmmsg(connection->fd, u->rx_message, UDP_RX_MESSAGES,
                     MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
    int error = errno;
    unsigned seen = 0;
    bool closed = r == 0 || (r < 0 && error != EAGAIN && error != EINTR);
    for (int i = 0; i < r; i++) {
        uint32_t n = u->rx_message[i].msg_len;
        struct udp_run run;
        if (n == 0) {
            closed = true;
            break;
        }
        if (udp_death_message(u, connection, &u->rx_message[i].msg_hdr, u->rx_iov[i].iov_base, n))
            continue;
        if (udp_guest_is_hello(u->rx_iov[i].iov_base, n)) {
            udp_guest_answer(u, connection);
            continue;
        }
        if ((u->rx_message[i].msg_hdr.msg_flags & MSG_TRUNC) != 0 ||
            !run_from_message(u->rx_iov[i].iov_base, n, connection, &run) || !run_ours(u, &run)) {
            udp_count(u, UDP_slot_drop_malformed, 1);
            continue;
        }
        unsigned packets = udp_rx_run(u, &run);
        udp_count(u, run.direct ? UDP_local_rx_packets : UDP_slot_received, packets);
        seen += packets;
    }
    if (closed) {
        udp_slot_hangup(u, connection);
        udp_death_hangup(u);
    }
    return seen;
}

void udp_slot_hangup(struct port_udp *u, struct udp_fd *connection)
{
    u->connection_count--;
    udp_fd_close(u, connection);
    udp_death_ward_hangs_up(u, connection);
    if (u->accept_spare_fd < 0)
        u->accept_spare_fd = udp_spare_fd();
}

void udp_slot_hangup_all(struct port_udp *u, const struct udp_fd *listener)
{
    struct udp_fd *f, *next;
    for (f = TAILQ_FIRST(&u->fds); f != NULL; f = next) {
        next = TAILQ_NEXT(f, link);
        if (f->kind == UDP_FD_CONNECTION && f->listener == listener)
            udp_slot_hangup(u, f);
    }
}

/* Out of descriptors: gives another owner's connection up; what is queued in it still arrives.
 * false: there is none. */
static bool connection_spare(struct port_udp *u)
{
    uint32_t first = rng_below(&u->rng, UDP_SLOTS);
    for (uint32_t i = 0; i < UDP_SLOTS; i++) {
        struct udp_fd *owner = u->slot_fd[(first + i) % UDP_SLOTS];
        if (owner != NULL) {
            udp_slot_gone(u, owner);
            return true;
        }
    }
    return false;
}

/* fd, or the error of making it, becomes a connection. */
static int name_connect(const struct port_udp *u, int fd, const struct sockaddr_un *a, socklen_t n)
{
    if (fd < 0)
        return fd;
    int err = 0;
    if (connect(fd, (const struct sockaddr *)a, n) != 0)
        err = -errno;
    else if (!peer_allowed(u, fd))
        err = -EPERM;
    if (err != 0) {
        close(fd);
        return err;
    }
    return fd;
}

int udp_name_dial(struct port_udp *u, const struct sockaddr_un *a, socklen_t n)
{
    int fd = slot_socket();
    if ((fd == -EMFILE || fd == -ENFILE) && connection_spare(u))
        fd = slot_socket();
    return name_connect(u, fd, a, n);
}

static void large_buffer(int fd)
{
    int buffer = UDP_SOCKET_BUFFER_BYTES;
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
}

int udp_slot_dial(struct port_udp *u, uint32_t slot)
{
    struct sockaddr_un a;
    socklen_t n = udp_slot_name(slot, &a);
    int fd = udp_name_dial(u, &a, n);
    large_buffer(fd);
    return fd;
}

int udp_slot_dial_spare(const struct port_udp *u, uint32_t slot)
{
    struct sockaddr_un a;
    socklen_t n = udp_slot_name(slot, &a);
    int fd = name_connect(u, slot_socket(), &a, n);
    large_buffer(fd);
    return fd;
}

int udp_slot_dial_sender(const struct port_udp *u, uint32_t slot)
{
    int fd = udp_slot_dial_spare(u, slot);
    uid_t uid;
    /* What is sent before the other side has refused us is lost. Of the same user as we are now, it
     * knows us for sure; of others we know only that we would take theirs. */
    if (fd >= 0 && (!port_peer_uid(fd, &uid) || uid != geteuid())) {
        close(fd);
        return -EPERM;
    }
    return fd;
}

/* The same as udp_slot_dial, cached. */
static int slot_connect(struct port_udp *u, uint32_t slot)
{
    if (u->slot_fd[slot] == NULL) {
        struct udp_fd *f;
        int fd = udp_slot_dial(u, slot);
        int err = fd < 0 ? fd : udp_fd_add(u, fd, UDP_FD_OWNER, false, &f);
        if (err != 0)
            return err;
        f->slot = slot;
        u->slot_fd[slot] = f;
    }
    return u->slot_fd[slot]->fd;
}

void udp_slot_gone(struct port_udp *u, struct udp_fd *owner)
{
    u->slot_fd[owner->slot] = NULL;
    udp_fd_close(u, owner);
}

size_t udp_slot_head(const struct udp_run *run, uint8_t out[SLOT_HEAD_BYTES])
{
    struct forward_header h = {
        .magic = run->direct ? DIRECT_MAGIC : FORWARD_MAGIC,
        .ifindex = run->ifindex,
        .src = run->src,
        .dst = run->dst,
        .sport = run->sport,
        .segment = run->segment,
        .first_id = run->first_id,
        .tos = run->tos,
        .ttl = run->ttl,
    };
    memcpy(out, &h, sizeof(h));
    return sizeof(h);
}

int udp_slot_pass(int fd, const struct udp_run *run, uint8_t *bytes, uint32_t n, uint16_t first_id)
{
    uint8_t head[SLOT_HEAD_BYTES];
    struct udp_run part = *run;
    part.first_id = first_id;
    struct iovec iov[2] = {
        {head, udp_slot_head(&part, head)},
        {bytes,    n                  }
    };
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int udp_slot_send(struct port_udp *u, uint32_t slot, const struct udp_run *run, uint8_t *bytes,
                  uint32_t n, uint16_t first_id)
{
    int err = 0;
    /* The owner may have gone and another taken its slot: one more try on a fresh connection. */
    for (int i = 0; i < 2; i++) {
        int fd = slot_connect(u, slot);
        err = fd < 0 ? fd : udp_slot_pass(fd, run, bytes, n, first_id);
        if (err == 0) {
            udp_count(u, UDP_slot_forwarded, (n + run->segment - 1) / run->segment);
            return 0;
        }
        if (fd < 0 || err == -EAGAIN || err == -ENOBUFS || err == -ENOMEM)
            break;
        udp_slot_gone(u, u->slot_fd[slot]);
    }
    return err;
}

void udp_slot_lost(struct port_udp *u, int err, unsigned packets)
{
    enum udp_counter c = UDP_slot_drop_unknown;
    if (err == -EPERM)
        c = UDP_slot_drop_uid;
    else if (err == -EAGAIN || err == -ENOBUFS || err == -ENOMEM)
        c = UDP_slot_drop_full;
    udp_count(u, c, packets);
}

void udp_slot_forward(struct port_udp *u, uint32_t slot, const struct udp_run *run, uint8_t *bytes,
                      uint32_t n, uint16_t first_id)
{
    int err = udp_slot_send(u, slot, run, bytes, n, first_id);
    if (err != 0)
        udp_slot_lost(u, err, (n + run->segment - 1) / run->segment);
}
