/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork.c: a forked child must neither use nor keep the parent's sockets: inherited copies would
 * live on after the parent and swallow its address's packets. fork() runs our handlers; a raw clone
 * does not, and is seen by the wiped page at the child's first call.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"

#include <unistd.h>

/* Nothing half-done may be copied: the child walks the descriptor lists. */
static void before_fork(void)
{
    pthread_mutex_lock(&host_open_lock);
    struct host *h = host_current;
    if (h != NULL && host_alive(h)) {
        progress_lock(&h->rx);
        progress_lock(&h->tx);
    }
}

static void in_parent(void)
{
    struct host *h = host_current;
    if (h != NULL && host_alive(h)) {
        progress_unlock(&h->tx);
        progress_unlock(&h->rx);
        progress_send(h); /* what others left to us */
    }
    pthread_mutex_unlock(&host_open_lock);
}

static void in_child(void)
{
    struct host *h = host_current;
    if (h != NULL) {
        int cancel_state = h->rx.cancel_state; /* the thread's, before it took the locks */
        fork_abandon(h);
        pthread_setcancelstate(cancel_state, NULL);
    }
    pthread_mutex_init(&host_open_lock, NULL);
}

void fork_abandon(struct host *h)
{
    atomic_store(h->alive, 0); /* where the kernel did not wipe */
    h->port->ops->abandon(h->port);
    if (h->tap != NULL)
        port_tap_abandon(h->tap);
    close(h->control_fd);
    netdev_close(h);
    tally_close(h);
    host_current = NULL; /* its memory stays: contexts still point to it */
}

int fork_watch(void)
{
    static bool done; /* under the open lock */
    int err = done ? 0 : pthread_atfork(before_fork, in_parent, in_child);
    done = done || err == 0;
    return -err;
}
