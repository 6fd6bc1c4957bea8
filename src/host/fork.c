/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork.c: a forked child must neither use nor keep the parent's sockets: inherited copies would
 * live on after the parent and swallow its address's packets. fork() runs our handlers; a raw clone
 * does not, and is seen by the wiped page at the child's first call.
 *
 * Handlers run in the order of their registration, which would be that of a program's first calls:
 * so these are the only ones, and the floors above have theirs called from here, by rank.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"

#include <unistd.h>

static struct host *fork_host; /* whose locks the forking thread holds, or NULL */

/* Nothing half-done may be copied: the child walks the descriptor lists. */
static void host_prepare(void)
{
    pthread_mutex_lock(&host_open_lock);
    struct host *h = host_current;
    fork_host = h != NULL && host_alive(h) ? h : NULL;
    if (fork_host != NULL) {
        progress_lock(&h->rx);
        progress_lock(&h->tx);
    }
}

static void host_parent(void)
{
    struct host *h = fork_host;
    if (h != NULL) {
        progress_unlock(&h->tx);
        progress_unlock(&h->rx);
        /* What others left to us is the helper's: callbacks would take locks that the ranks before
         * this one still hold, and without the open lock another may close the host. */
        progress_wake(h);
    }
    fork_host = NULL;
    pthread_mutex_unlock(&host_open_lock);
}

static void host_child(void)
{
    struct host *locked = fork_host;
    if (host_current != NULL)
        fork_abandon(host_current);
    if (locked != NULL) /* the thread's, before it took the locks */
        pthread_setcancelstate(locked->rx.cancel_state, NULL);
    fork_host = NULL;
    pthread_mutex_unlock(&host_open_lock); /* ours: the thread that forked took it */
}

static const struct verbena_fork_hook host_hook = {host_prepare, host_parent, host_child};

/* Held across a fork: whose hook was called before is called after. */
static pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;
static const struct verbena_fork_hook *fork_hooks[VERBENA_FORK_RANKS] = {[VERBENA_FORK_HOST] =
                                                                             &host_hook};

static void before_fork(void)
{
    pthread_mutex_lock(&fork_mutex);
    for (unsigned i = 0; i < VERBENA_FORK_RANKS; i++)
        if (fork_hooks[i] != NULL)
            fork_hooks[i]->prepare();
}

static void in_parent(void)
{
    for (unsigned i = VERBENA_FORK_RANKS; i-- > 0;)
        if (fork_hooks[i] != NULL)
            fork_hooks[i]->parent();
    pthread_mutex_unlock(&fork_mutex);
}

static void in_child(void)
{
    for (unsigned i = VERBENA_FORK_RANKS; i-- > 0;)
        if (fork_hooks[i] != NULL)
            fork_hooks[i]->child();
    pthread_mutex_unlock(&fork_mutex);
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
    share_close(h);
    xrc_file_abandon(h);
    host_current = NULL; /* its memory stays: contexts still point to it */
}

static int fork_error; /* what registration came to */

/* As the library is loaded: later it would be under locks that the handlers take. */
__attribute__((constructor)) static void watch(void)
{
    fork_error = pthread_atfork(before_fork, in_parent, in_child);
}

int fork_watch(void)
{
    return -fork_error;
}

void verbena_fork_hook(enum verbena_fork_rank rank, const struct verbena_fork_hook *hook)
{
    pthread_mutex_lock(&fork_mutex);
    fork_hooks[rank] = hook;
    pthread_mutex_unlock(&fork_mutex);
}
