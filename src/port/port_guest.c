/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_guest.c: a process that cannot have the RoCE port because another user's processes hold it
 * (the kernel lets only one user share a port). It lives as their guest, if both users allowed it:
 * it owns a slot like everybody, sends from its own source ports, and gets all of its packets
 * passed on by the members of the port. A connection to one member, its host, tells that there is
 * one; that member watches over the leader for it. When the host goes, the guest looks for another,
 * and takes the port itself when it is free.
 *
 * Who may be a host and who a guest is said by the kernel (SO_PEERCRED) and by
 * VERBENA_ALLOW_UIDS of both: a member refuses connections of users that it does not know, and a
 * guest asks only listeners of users that it knows.
 *
 * All of it is the receiving side's.
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    HELLO_MAGIC = 0x56425248,
    CANDIDATES = 16, /* asked at a time */
};
static const uint64_t ANSWER_NS = 300000000;
static const uint64_t KEEP_NS = 3000000000;    /* between questions to the host */
static const uint64_t STALLED_NS = 1000000000; /* a host that does not answer is left */
static const uint64_t RETRY_FIRST_NS = 5000000;
static const uint64_t RETRY_MAX_NS = 1000000000;
static const uint64_t OPEN_ANSWER_NS = 500000000;
static const uint64_t HOSTED_NS = 10000000000; /* so long a member watches after a question */

enum hello_kind { HELLO_QUESTION, HELLO_ANSWER };

/* One machine, hence host order. */
struct hello {
    uint32_t magic;
    uint32_t kind;
    uint32_t holds; /* in answers: the port is ours */
};

static bool hello_send(int fd, enum hello_kind kind, bool holds)
{
    struct hello h = {HELLO_MAGIC, kind, holds};
    return send(fd, &h, sizeof(h), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(h);
}

bool udp_guest_is_hello(const uint8_t *bytes, uint32_t n)
{
    struct hello h;
    if (n != sizeof(h))
        return false;
    memcpy(&h, bytes, sizeof(h));
    return h.magic == HELLO_MAGIC && h.kind == HELLO_QUESTION;
}

void udp_guest_answer(struct port_udp *u, const struct udp_fd *connection)
{
    hello_send(connection->fd, HELLO_ANSWER, !u->guest.on);
    if (!u->guest.on)
        udp_watch_hosted(u, u->rx_now_ns + HOSTED_NS);
}

static void timer_set(struct port_udp *u, uint64_t ns)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}
    };
    if (u->guest.timer != NULL)
        timerfd_settime(u->guest.timer->fd, 0, &t, NULL);
}

static void host_close(struct port_udp *u, struct udp_fd *f)
{
    if (f == u->guest.host)
        u->guest.host = NULL;
    else
        u->guest.candidates--;
    udp_fd_close(u, f);
}

static void hosts_close(struct port_udp *u, const struct udp_fd *except)
{
    struct udp_fd *f = TAILQ_FIRST(&u->fds);
    while (f != NULL) {
        struct udp_fd *next = TAILQ_NEXT(f, link);
        if (f->kind == UDP_FD_HOST && f != except)
            host_close(u, f);
        f = next;
    }
}

/* Asks the next owners of slots; number of those asked, 0: all were. */
static unsigned search(struct port_udp *u)
{
    struct udp_guest *g = &u->guest;
    unsigned before = g->candidates;
    for (; g->looked < UDP_SLOTS && g->candidates - before < CANDIDATES; g->looked++) {
        uint32_t slot = (u->slot + g->looked) % UDP_SLOTS;
        int fd = u->slot_mine[slot] ? -1 : udp_slot_dial(u, slot);
        struct udp_fd *f;
        if (fd < 0)
            continue;
        if (!hello_send(fd, HELLO_QUESTION, false))
            close(fd);
        else if (udp_fd_add(u, fd, UDP_FD_HOST, false, &f) == 0)
            g->candidates++;
    }
    return g->candidates - before;
}

/* The port is ours now, or stays another's. */
static int take_port(struct port_udp *u)
{
    int err = udp_members_open(u);
    if (err != 0)
        return err;
    udp_count(u, UDP_guest_took_port, 1);
    hosts_close(u, NULL);
    if (u->guest.timer != NULL)
        udp_fd_close(u, u->guest.timer);
    u->guest.timer = NULL;
    u->guest.on = false;
    return 0;
}

/* No host: takes the port if it is free, else asks around, else waits a little. */
static void host_lost(struct port_udp *u)
{
    struct udp_guest *g = &u->guest;
    if (take_port(u) == 0)
        return;
    if (search(u) != 0) {
        timer_set(u, ANSWER_NS);
        return;
    }
    g->looked = 0;
    g->retry_ns = g->retry_ns == 0 ? RETRY_FIRST_NS : 2 * g->retry_ns;
    if (g->retry_ns > RETRY_MAX_NS)
        g->retry_ns = RETRY_MAX_NS;
    timer_set(u, g->retry_ns);
}

void udp_guest_read(struct port_udp *u, struct udp_fd *f)
{
    struct udp_guest *g = &u->guest;
    struct hello h;
    ssize_t n = recv(f->fd, &h, sizeof(h), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == sizeof(h) && h.magic == HELLO_MAGIC && h.kind == HELLO_ANSWER && h.holds != 0) {
        if (g->host == NULL) {
            g->host = f;
            g->candidates--;
            g->looked = 0;
            g->retry_ns = 0;
            hosts_close(u, f);
            udp_count(u, UDP_guest_hosts, 1);
        }
        g->asked = false;
        timer_set(u, KEEP_NS);
        return;
    }
    bool lost = f == g->host;
    host_close(u, f);
    if (lost)
        host_lost(u);
    else if (g->host == NULL && g->candidates == 0)
        timer_set(u, 1);
}

void udp_guest_timer(struct port_udp *u, struct udp_fd *f)
{
    struct udp_guest *g = &u->guest;
    uint64_t expired;
    if (read(f->fd, &expired, sizeof(expired)) != sizeof(expired))
        return;
    if (g->host != NULL && !g->asked && hello_send(g->host->fd, HELLO_QUESTION, false)) {
        g->asked = true;
        timer_set(u, STALLED_NS);
        return;
    }
    hosts_close(u, NULL);
    g->asked = false;
    host_lost(u);
}

/* Until one of those asked is our host, none is left, or the time is over; false: no host. */
static bool answers_wait(struct port_udp *u)
{
    struct pollfd poll_fd[CANDIDATES + 1];
    struct udp_fd *of[CANDIDATES], *f;
    bool over = false;
    timer_set(u, OPEN_ANSWER_NS);
    while (u->guest.host == NULL && u->guest.candidates != 0 && !over) {
        nfds_t n = 0;
        TAILQ_FOREACH(f, &u->fds, link)
        {
            if (f->kind != UDP_FD_HOST || n == CANDIDATES)
                continue;
            of[n] = f;
            poll_fd[n++] = (struct pollfd){.fd = f->fd, .events = POLLIN};
        }
        poll_fd[n] = (struct pollfd){.fd = u->guest.timer->fd, .events = POLLIN};
        if (poll(poll_fd, n + 1, -1) < 0) {
            over = errno != EINTR;
            continue;
        }
        over = poll_fd[n].revents != 0;
        for (nfds_t i = 0; i < n && u->guest.host == NULL; i++)
            if (poll_fd[i].revents != 0)
                udp_guest_read(u, of[i]);
    }
    return u->guest.host != NULL;
}

int udp_guest_begin(struct port_udp *u)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    int err = udp_fd_add(u, fd, UDP_FD_TIMER, false, &u->guest.timer);
    if (err != 0)
        return err;
    u->guest.on = true;
    while (search(u) != 0) {
        if (answers_wait(u))
            return 0;
        hosts_close(u, NULL);
    }
    /* Who held it may have gone meanwhile. */
    return take_port(u);
}
