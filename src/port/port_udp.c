/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_udp.c: the UDP port as a whole: sockets on the RoCE port, the epoll set, life and death,
 * counters.
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

bool udp_uid_allowed(const struct port_udp *u, uid_t uid)
{
    if (uid == u->uid || uid == geteuid())
        return true;
    for (unsigned i = 0; i < u->config.allow_uids; i++) {
        if (u->config.allow_uid[i] == uid)
            return true;
    }
    return false;
}

int udp_fd_add(struct port_udp *u, int fd, enum udp_fd_kind kind, bool v6, struct udp_fd **out)
{
    struct udp_fd *f = calloc(1, sizeof(*f));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = f};
    /* A connection that cannot be taken (no descriptor is left) must not keep us awake. */
    if (kind == UDP_FD_LISTENER)
        event.events |= EPOLLET;
    /* Of an owner we want to know when it goes, nothing else. */
    if (kind == UDP_FD_OWNER)
        event.events = EPOLLRDHUP | EPOLLET;
    if (f == NULL || epoll_ctl(u->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        int err = f == NULL ? -ENOMEM : -errno;
        free(f);
        close(fd);
        return err;
    }
    f->fd = fd;
    f->kind = kind;
    f->v6 = v6;
    if (kind == UDP_FD_FLOW)
        TAILQ_INSERT_HEAD(&u->flows, f, link);
    else
        TAILQ_INSERT_TAIL(&u->fds, f, link);
    *out = f;
    return 0;
}

void udp_fd_close(struct port_udp *u, struct udp_fd *f)
{
    if (f->retired)
        TAILQ_REMOVE(&u->retired, f, link);
    else if (f->kind == UDP_FD_FLOW)
        TAILQ_REMOVE(&u->flows, f, link);
    else
        TAILQ_REMOVE(&u->fds, f, link);
    /* Closing would not do: a child between fork and exec, or its first handler, has a copy, and
     * the set goes on watching what any copy is left of. The eased one is not in it. */
    if (u->eased != f)
        epoll_ctl(u->epoll_fd, EPOLL_CTL_DEL, f->fd, NULL);
    close(f->fd);
    f->fd = -1;
    f->dead = true;
    if (u->hot == f)
        u->hot = NULL;
    if (u->eased == f)
        u->eased = NULL;
    TAILQ_INSERT_TAIL(&u->graveyard, f, link);
}

int udp_spare_fd(void)
{
    return eventfd(0, EFD_CLOEXEC);
}

static void wildcard_options(struct port_udp *u, int fd, bool v6)
{
    int on = 1, off = 0, buffer = UDP_SOCKET_BUFFER_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
    if (v6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        /* Soft-RoCE and adapters send checksum 0 over IPv6, too: the ICRC is the check (RFC 6936).
         */
        setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on));
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof(off));
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
        if (u->config.observer != NULL)
            setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on));
    } else {
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off));
        setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
        setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
        if (u->config.observer != NULL)
            setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
    }
}

/* A socket of the port's group. first: brings the program along, which is possible only for the
 * first of a group; -EADDRINUSE when there is one. */
static int group_socket(struct port_udp *u, bool v6, bool first)
{
    int on = 1;
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    wildcard_options(u, fd, v6);
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(u->udp_port)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(u->udp_port)};
    int err = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ? -errno : 0;
    if (err == 0 && first)
        err = udp_watch_program(fd, 0);
    if (err == 0 && bind(fd, v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4,
                         v6 ? sizeof(a6) : sizeof(a4)) != 0)
        err = -errno;
    if (err != 0) {
        close(fd);
        return err;
    }
    return fd;
}

int udp_socket_wildcard(struct port_udp *u, bool v6)
{
    return group_socket(u, v6, false);
}

/*
 * The member at the leader's place gets every flow that has no socket. When it closes, the kernel
 * moves the last member into its place; when it is stopped, another place becomes the leader's
 * (port_watch.c). So who joins must leave the program alone, and who is the first must bring it
 * along: set after the bind, it would undo a choice made meanwhile.
 */
static int member_socket(struct port_udp *u, bool v6)
{
    int fd = group_socket(u, v6, true);
    return fd == -EADDRINUSE ? group_socket(u, v6, false) : fd;
}

static void udp_close(struct port *p)
{
    struct port_udp *u = udp_of(p);
    struct udp_fd *f;
    udp_rx_retire(u);
    udp_death_fini(u);
    while ((f = TAILQ_FIRST(&u->flows)) != NULL)
        udp_fd_close(u, f);
    while ((f = TAILQ_FIRST(&u->fds)) != NULL)
        udp_fd_close(u, f);
    while ((f = TAILQ_FIRST(&u->graveyard)) != NULL) {
        TAILQ_REMOVE(&u->graveyard, f, link);
        free(f);
    }
    udp_service_fini(u);
    udp_hold_fini(u);
    udp_slot_fini(u);
    udp_rx_fini(u);
    udp_tx_fini(u);
    udp_watch_close(u);
    udp_group_close(u);
    if (u->epoll_fd >= 0)
        close(u->epoll_fd);
    free(u);
}

static void udp_abandon(struct port *p)
{
    struct port_udp *u = udp_of(p);
    struct udp_fd *f;
    /* The epoll set first: it is shared with the parent and must keep what it watches. */
    close(u->epoll_fd);
    TAILQ_FOREACH(f, &u->flows, link)
    close(f->fd);
    TAILQ_FOREACH(f, &u->fds, link)
    close(f->fd);
    udp_death_close(u);
    udp_slot_fini(u);
    udp_tx_close(u);
    udp_watch_close(u);
    udp_group_close(u);
}

static void udp_sink(struct nic_sink *sink, const struct train *t)
{
    udp_tx_train((struct port_udp *)((char *)sink - offsetof(struct port_udp, port.sink)), t);
}

static void udp_train_flipped(struct port *p, const struct train *t, uint32_t bit)
{
    udp_tx_train_flipped(udp_of(p), t, bit);
}

static void udp_flush(struct port *p, uint64_t now_ns)
{
    udp_tx_flush(udp_of(p), now_ns);
    udp_local_turn(udp_of(p), now_ns);
    udp_watch_turn(udp_of(p), now_ns);
}

static bool udp_writable(struct port *p)
{
    return atomic_load_explicit(&udp_of(p)->tx_retry_ns, memory_order_relaxed) == 0;
}

static unsigned udp_receive(struct port *p, uint64_t now_ns, struct port_receiver *r, unsigned max)
{
    return udp_rx_receive(udp_of(p), now_ns, r, max);
}

static int udp_fd(struct port *p)
{
    return udp_of(p)->epoll_fd;
}

static uint64_t udp_deadline(struct port *p)
{
    uint64_t t = atomic_load_explicit(&udp_of(p)->tx_retry_ns, memory_order_relaxed);
    uint64_t local = atomic_load_explicit(&udp_of(p)->locals.retry_ns, memory_order_relaxed);
    uint64_t watch = udp_watch_deadline(udp_of(p));
    t = t == 0 || (local != 0 && local < t) ? local : t;
    return t == 0 || watch < t ? watch : t;
}

static const char *udp_counter(struct port *p, unsigned index, uint64_t *value)
{
    static const char *const name[UDP_COUNTER_COUNT] = {
#define X(n) #n,
        UDP_COUNTERS(X)
#undef X
    };
    if (index >= UDP_COUNTER_COUNT)
        return NULL;
    *value = atomic_load_explicit(&udp_of(p)->counter[index], memory_order_relaxed);
    return name[index];
}

static const struct port_ops udp_ops = {
    .flush = udp_flush,
    .writable = udp_writable,
    .train_flipped = udp_train_flipped,
    .receive = udp_receive,
    .fd = udp_fd,
    .deadline = udp_deadline,
    .counter = udp_counter,
    .abandon = udp_abandon,
    .close = udp_close,
};

static uint32_t rcvbuf_of(int fd)
{
    int size = 0;
    socklen_t n = sizeof(size);
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &n);
    return (uint32_t)size;
}

/* One family may be missing from the kernel, not both. IPv4 first, always: of two users that reach
 * for a free port one gets neither. */
int udp_members_open(struct port_udp *u)
{
    struct udp_fd *f[2] = {NULL, NULL};
    int err = 0;
    for (int v6 = 0; v6 < 2 && err == 0; v6++) {
        int fd = member_socket(u, v6 != 0);
        if (fd >= 0) {
            u->rcvbuf_bytes = rcvbuf_of(fd);
            err = udp_fd_add(u, fd, UDP_FD_WILDCARD, v6 != 0, &f[v6]);
        } else if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL) {
            err = fd;
        }
    }
    if (err == 0 && f[0] == NULL && f[1] == NULL)
        err = -EAFNOSUPPORT;
    for (int v6 = 0; v6 < 2; v6++) {
        if (f[v6] == NULL)
            continue;
        if (err != 0) {
            udp_fd_close(u, f[v6]);
            continue;
        }
        udp_watch_member(u, v6 != 0, f[v6]->fd);
        udp_group_again(u, f[v6]);
        if (u->hot == NULL)
            u->hot = f[v6];
    }
    return err;
}

/* As a member of the port, or, where it is another user's, as a guest. */
static int join(struct port_udp *u)
{
    int err = udp_members_open(u);
    if (err != -EADDRINUSE || u->config.allow_uids == 0)
        return err;
    /* What a member that passes packets on to us takes in. */
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    wildcard_options(u, fd, false);
    u->rcvbuf_bytes = rcvbuf_of(fd);
    close(fd);
    return udp_guest_begin(u);
}

int port_udp_create(const struct port_udp_config *config, struct port **out)
{
    struct port_udp *u = calloc(1, sizeof(*u));
    if (u == NULL)
        return -ENOMEM;
    u->port.ops = &udp_ops;
    u->port.sink.train = udp_sink;
    if (config->local)
        u->port.sink.room = udp_local_room;
    u->config = *config;
    u->uid = geteuid();
    u->udp_port = config->udp_port != 0 ? config->udp_port : ROCE_UDP_PORT;
    rng_init(&u->rng, config->seed);
    udp_watch_init(u);
    TAILQ_INIT(&u->fds);
    TAILQ_INIT(&u->flows);
    TAILQ_INIT(&u->retired);
    TAILQ_INIT(&u->graveyard);
    TAILQ_INIT(&u->services.list);
    udp_death_init(u);
    u->accept_spare_fd = udp_spare_fd();
    struct rlimit files;
    u->flow_max = UDP_MAX_FLOWS;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < u->flow_max)
        u->flow_max = (unsigned)(files.rlim_cur / 4);
    u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int err = u->epoll_fd < 0 ? -errno : 0;
    err = udp_tx_init(u) != 0 ? -ENOMEM : err;
    err = err == 0 ? udp_rx_init(u) : err;
    /* The slot comes before the sockets: whoever gets our packets must be able to pass them on. */
    err = err == 0 ? udp_slot_claim(u, &u->slot) : err;
    err = err == 0 ? join(u) : err;
    if (err != 0) {
        udp_close(&u->port);
        return err;
    }
    *out = &u->port;
    return 0;
}

uint32_t port_udp_slot(const struct port *p)
{
    return ((const struct port_udp *)((const char *)p - offsetof(struct port_udp, port)))->slot;
}

int port_udp_claim(struct port *p, uint32_t *slot)
{
    return udp_slot_claim(udp_of(p), slot);
}

void port_udp_expect(struct port *p, bool v6, int qps)
{
    udp_watch_expect(udp_of(p), v6, qps);
}

void port_udp_suspect(struct port *p)
{
    atomic_store_explicit(&udp_of(p)->suspect, true, memory_order_relaxed);
}

void port_udp_retire(struct port *p)
{
    udp_rx_retire(udp_of(p));
}

bool port_udp_ease(struct port *p, bool on)
{
    return udp_rx_ease(udp_of(p), on);
}

uint32_t port_udp_rcvbuf_bytes(const struct port *p)
{
    return ((const struct port_udp *)((const char *)p - offsetof(struct port_udp, port)))
        ->rcvbuf_bytes;
}
