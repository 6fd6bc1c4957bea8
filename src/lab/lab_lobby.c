/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_lobby.c: SO_RCVLOWAT lets poll() wake us when there is enough, or the end.
 */
#include "lab/lab_lobby.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/lab_clock.h"
#include "lab/lab_net.h"

enum { MOST_BYTES = 256 /* that are looked at */ };

void lab_lobby_turn_away(const struct lab_lobby *l, int fd, const char *why)
{
    if (l->turned_away != NULL)
        l->turned_away(l->who, why);
    close(fd);
}

static void set_enough(int fd, int bytes)
{
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

static int leave_seat(struct lab_lobby *l, unsigned i)
{
    int fd = l->seat[i].fd;
    memcpy(l->who, l->seat[i].who, sizeof(l->who));
    l->count--;
    memmove(&l->seat[i], &l->seat[i + 1], (l->count - i) * sizeof(l->seat[0]));
    return fd;
}

/* Where all seats are taken, who has sat longest goes. */
static void seat(struct lab_lobby *l, int fd, const char who[LAB_WHO_BYTES], uint64_t came_ns)
{
    if (l->count == LAB_LOBBY_SEATS)
        lab_lobby_turn_away(l, leave_seat(l, 0), "too many others wait");
    set_enough(fd, (int)l->bytes);
    l->seat[l->count].fd = fd;
    l->seat[l->count].came_ns = came_ns;
    memcpy(l->seat[l->count++].who, who, LAB_WHO_BYTES);
}

static int seat_next(struct lab_lobby *l, char message[LAB_MESSAGE_BYTES])
{
    int fd = lab_net_accept(l->listener, 1, message);
    if (fd < 0)
        return fd == -ETIMEDOUT ? 0 : fd; /* it has hung up before we came to it */
    char who[LAB_WHO_BYTES];
    seat(l, fd, lab_net_who(fd, who), lab_now_ns());
    return 0;
}

/* 1: it has said enough; 0: not yet; -1: it never will. */
static int look_at(const struct lab_lobby *l, unsigned i, const char **why)
{
    uint8_t bytes[MOST_BYTES];
    ssize_t n = recv(l->seat[i].fd, bytes, l->bytes, MSG_PEEK | MSG_DONTWAIT);
    *why = n == 0 ? "it has hung up" : strerror(errno);
    if (n >= (ssize_t)l->bytes)
        return 1;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return -1;
    struct pollfd p = {.fd = l->seat[i].fd, .events = POLLRDHUP};
    bool ended = poll(&p, 1, 0) > 0;
    *why = ended ? "it has hung up" : "it does not say who it is in time";
    return ended || lab_now_ns() - l->seat[i].came_ns >= l->limit_ns ? -1 : 0;
}

/* The first that has said enough, or -1. */
static int look_around(struct lab_lobby *l)
{
    for (unsigned i = 0; i < l->count;) {
        const char *why;
        int n = look_at(l, i, &why);
        if (n == 0) {
            i++;
            continue;
        }
        int fd = leave_seat(l, i);
        if (n > 0) {
            set_enough(fd, 1);
            return fd;
        }
        lab_lobby_turn_away(l, fd, why);
    }
    return -1;
}

/* How long poll() may wait; -1: for ever, for there is nobody who may sit too long. */
static int patience_ms(const struct lab_lobby *l, uint64_t until_ns)
{
    enum { LOOK_MS = 500 };
    if (l->count == 0 && until_ns == UINT64_MAX)
        return -1;
    uint64_t now = lab_now_ns(), left_ms = until_ns > now ? (until_ns - now) / 1000000 + 1 : 0;
    return left_ms < LOOK_MS ? (int)left_ms : LOOK_MS;
}

/* 1: somebody knocks; 0: nobody; -ECANCELED. */
static int wait_for_any(const struct lab_lobby *l, uint64_t until_ns)
{
    enum { LISTENER, WAKE, SEATS };
    struct pollfd all[SEATS + LAB_LOBBY_SEATS] = {
        [LISTENER] = {.fd = l->listener,                     .events = POLLIN},
        [WAKE] = {.fd = l->wake != NULL ? *l->wake : -1, .events = POLLIN},
    };
    for (unsigned i = 0; i < l->count; i++)
        all[SEATS + i] = (struct pollfd){.fd = l->seat[i].fd, .events = POLLIN | POLLRDHUP};
    poll(all, SEATS + l->count, patience_ms(l, until_ns));
    if ((all[WAKE].revents & POLLIN) != 0)
        return -ECANCELED;
    return (all[LISTENER].revents & POLLIN) != 0;
}

int lab_lobby_next(struct lab_lobby *l, uint64_t timeout_ns, char message[LAB_MESSAGE_BYTES])
{
    uint64_t until_ns = timeout_ns == 0 ? UINT64_MAX : lab_now_ns() + timeout_ns;
    for (;;) {
        int fd = look_around(l);
        if (fd >= 0)
            return fd;
        if (lab_now_ns() >= until_ns) {
            snprintf(message, LAB_MESSAGE_BYTES, "nobody came to port %u who said who it is",
                     lab_net_port(l->listener));
            return -ETIMEDOUT;
        }
        int n = wait_for_any(l, until_ns);
        if (n > 0)
            n = seat_next(l, message);
        if (n < 0)
            return n;
    }
}

void lab_lobby_move(struct lab_lobby *here, struct lab_lobby *there)
{
    for (unsigned i = 0; i < there->count; i++)
        seat(here, there->seat[i].fd, there->seat[i].who, there->seat[i].came_ns);
    there->count = 0;
}

void lab_lobby_return(struct lab_lobby *l, int fd, struct lab_lobby *there)
{
    seat(there, fd, l->who, lab_now_ns());
}

void lab_lobby_close(struct lab_lobby *l)
{
    while (l->count > 0)
        close(leave_seat(l, 0));
}
