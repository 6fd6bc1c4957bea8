/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_door.c: who comes is greeted as a peer is, for the address of another one is told to nobody
 * who has not the key.
 */
#include "lab/lab_door.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lab/lab_clock.h"
#include "lab/lab_net.h"

#define ANSWER_NS 1000000000ull /* who has the key and is no slower has shown it by then */
#define LAST_NS   100000000ull  /* for those who have come and not said who they are when it ends */

static void say_busy(const struct lab_door *d, char why[LAB_MESSAGE_BYTES])
{
    snprintf(why, LAB_MESSAGE_BYTES,
             "`lab serve' is busy with another peer, %s, since %s (for %.1f s); when that run has "
             "ended start it once more, or start another one with another --port, and try again",
             d->peer, d->since, (double)(lab_now_ns() - d->since_ns) / 1e9);
}

static void answer(struct lab_door *d, int fd)
{
    struct lab_control c;
    char why[LAB_MESSAGE_BYTES];
    uint64_t limit_ns = d->lobby.limit_ns < ANSWER_NS ? d->lobby.limit_ns : ANSWER_NS;
    int error = lab_control_open(&c, fd, true, d->key, limit_ns);
    if (error == 0) {
        say_busy(d, why);
        lab_control_refuse(&c, why);
    } else {
        lab_message_copy(why, c.message);
    }
    c.fd = -1; /* closed by who tells of it */
    lab_control_close(&c);
    lab_lobby_turn_away(&d->lobby, fd, why);
}

static void *stand(void *arg)
{
    struct lab_door *d = arg;
    char message[LAB_MESSAGE_BYTES];
    int fd;
    while ((fd = lab_lobby_next(&d->lobby, 0, message)) >= 0) {
        if (d->keeps_others && !lab_control_greets(fd))
            lab_lobby_return(&d->lobby, fd, &d->others);
        else
            answer(d, fd);
    }
    if (fd != -ECANCELED && d->lobby.turned_away != NULL)
        d->lobby.turned_away("whoever comes during this run", message);
    return NULL;
}

static void name_peer(struct lab_door *d, int peer)
{
    time_t now = time(NULL);
    struct tm utc;
    if (d->peer[0] != '\0')
        return;
    lab_net_who(peer, d->peer);
    d->since_ns = lab_now_ns();
    strftime(d->since, sizeof(d->since), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &utc));
}

int lab_door_keep(struct lab_door *d, struct lab_lobby *lobby, int peer, bool keeps_others,
                  char message[LAB_MESSAGE_BYTES])
{
    sigset_t all, before;
    name_peer(d, peer);
    d->wake = eventfd(0, EFD_CLOEXEC);
    int error = d->wake < 0 ? errno : 0;
    d->lobby = d->others = *lobby;
    d->others.count = 0;
    d->keeps_others = keeps_others;
    d->lobby.wake = &d->wake;
    sigfillset(&all); /* signals are for the thread that measures */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error == 0)
        error = pthread_create(&d->thread, NULL, stand, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    d->kept = error == 0;
    if (d->kept) {
        lobby->count = 0;
        return 0;
    }
    snprintf(message, LAB_MESSAGE_BYTES, "cannot start a thread that answers who else comes: %s",
             strerror(error));
    if (d->wake >= 0)
        close(d->wake);
    return -error;
}

void lab_door_halt(struct lab_door *d, struct lab_lobby *lobby)
{
    if (!d->kept)
        return;
    eventfd_write(d->wake, 1);
    pthread_join(d->thread, NULL);
    close(d->wake);
    d->kept = false;
    d->lobby.wake = NULL;
    *lobby = d->lobby;
    lab_lobby_move(lobby, &d->others);
}

static bool somebody_is_here(const struct lab_lobby *l)
{
    struct pollfd p = {.fd = l->listener, .events = POLLIN};
    return l->count > 0 || poll(&p, 1, 0) > 0;
}

void lab_door_leave(struct lab_door *d, struct lab_lobby *lobby)
{
    char message[LAB_MESSAGE_BYTES];
    uint64_t now, until_ns = lab_now_ns() + LAST_NS;
    lab_door_halt(d, lobby);
    d->lobby = *lobby;
    d->lobby.limit_ns = LAST_NS;
    while (d->peer[0] != '\0' && somebody_is_here(&d->lobby) && (now = lab_now_ns()) < until_ns) {
        int fd = lab_lobby_next(&d->lobby, until_ns - now, message);
        if (fd >= 0)
            answer(d, fd);
    }
    lab_lobby_close(&d->lobby);
    lobby->count = 0;
    sodium_memzero(d->key, sizeof(d->key));
}
