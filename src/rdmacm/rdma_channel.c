/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_channel.c: event channels: a list and an eventfd whose count is the list's length, so that
 * the fd polls readable while there is something to get. And the one lock of this floor.
 */
#include "rdmacm/rdma_objects.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/firm.h"

static struct firm_lock channel_firm = FIRM_LOCK_INITIALIZER; /* rping cancels threads */
static _Atomic unsigned channel_generation;
enum { CHANNEL_RETIRED = 64 };
static struct rdma_channel_obj *channel_retired[CHANNEL_RETIRED]; /* destroyed last */
static unsigned channel_next_retired;

int rdma_fail(int err)
{
    errno = err;
    return -1;
}

/* A child must not inherit the mutex from a thread that it does not have. */
static void channel_in_child(void)
{
    atomic_fetch_add(&channel_generation, 1);
    rdma_unlock();
}

__attribute__((constructor)) static void channel_watch_fork(void)
{
    static const struct verbena_fork_hook hook = {rdma_lock, rdma_unlock, channel_in_child};

    verbena_fork_hook(VERBENA_FORK_RDMA_CHANNEL, &hook);
}

void rdma_lock(void)
{
    firm_take(&channel_firm);
}

void rdma_unlock(void)
{
    firm_drop(&channel_firm);
}

void rdma_wait(pthread_cond_t *cond)
{
    int was = channel_firm.cancel_state;

    pthread_cond_wait(cond, &channel_firm.mutex);
    channel_firm.cancel_state = was;
}

void rdma_wait_ms(pthread_cond_t *cond, unsigned ms)
{
    int was = channel_firm.cancel_state;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_clockwait(cond, &channel_firm.mutex, CLOCK_MONOTONIC, &until);
    channel_firm.cancel_state = was;
}

unsigned rdma_generation(void)
{
    return atomic_load(&channel_generation);
}

/* The eventfd of a parent's channel is the parent's too: a child must not take from its count. */
static bool channel_alive(const struct rdma_channel_obj *ch)
{
    return ch->generation == rdma_generation();
}

RDMACM_ABI struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct rdma_channel_obj *ch = calloc(1, sizeof(*ch));
    if (ch == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    /* Blocking at first, as the kernel's: a program that wants otherwise sets O_NONBLOCK. */
    ch->pub.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (ch->pub.fd < 0) {
        free(ch);
        return NULL;
    }
    TAILQ_INIT(&ch->events);
    ch->generation = rdma_generation();
    ch->users = 1;
    return &ch->pub;
}

/* Nobody of ours uses it any more; but a thread of the program may be about to (those of rping end
 * like that), so its memory stays for a while. */
static void channel_unuse(struct rdma_channel_obj *ch)
{
    if (--ch->users != 0)
        return;
    struct rdma_channel_obj **place = &channel_retired[channel_next_retired++ % CHANNEL_RETIRED];
    free(*place);
    *place = ch;
}

void rdma_channel_set(struct rdma_id_obj *id, struct rdma_event_channel *channel)
{
    if (channel != NULL)
        obj_channel(channel)->users++;
    if (id->pub.channel != NULL)
        channel_unuse(obj_channel(id->pub.channel));
    id->pub.channel = channel;
}

/* What nobody got goes; requests: of connections whose ids must be destroyed. */
static void channel_close(struct rdma_channel_obj *ch, struct rdma_event_list *requests)
{
    struct rdma_event_obj *e;
    bool alive = channel_alive(ch);

    ch->closed = true;
    while (alive && (e = TAILQ_FIRST(&ch->events)) != NULL) {
        TAILQ_REMOVE(&ch->events, e, link);
        if (e->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            TAILQ_INSERT_TAIL(requests, e, link);
        else
            free(e);
    }
    /* Who waits is woken, and the last of them closes the descriptor: else its number could be
     * another's before a thread that is on its way to read() gets there. */
    uint64_t wake = ch->getters;
    if (!alive || wake == 0)
        close(ch->pub.fd);
    else if (write(ch->pub.fd, &wake, sizeof(wake)) != (ssize_t)sizeof(wake))
        abort(); /* the count would have to reach 2^64 - 1 */
    channel_unuse(ch);
}

RDMACM_ABI void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    struct rdma_channel_obj *ch = obj_channel(channel);
    struct rdma_event_list requests = TAILQ_HEAD_INITIALIZER(requests);
    struct rdma_event_obj *e;

    rdma_lock();
    if (!ch->closed)
        channel_close(ch, &requests);
    rdma_unlock();
    while ((e = TAILQ_FIRST(&requests)) != NULL) {
        TAILQ_REMOVE(&requests, e, link);
        rdma_destroy_id(e->pub.id);
        free(e);
    }
}

struct rdma_event_obj *rdma_event_new(struct rdma_id_obj *id, enum rdma_cm_event_type type,
                                      int status)
{
    struct rdma_event_obj *e = calloc(1, sizeof(*e));

    if (e == NULL)
        return NULL;
    e->pub.id = &id->pub;
    e->pub.event = type;
    e->pub.status = status;
    e->counted = id;
    return e;
}

void rdma_event_push(struct rdma_event_obj *e)
{
    static const uint64_t one = 1;
    struct rdma_channel_obj *ch = obj_channel(e->counted->pub.channel);

    if (ch->closed) { /* before its ids, which have no business any more */
        free(e);
        return;
    }
    TAILQ_INSERT_TAIL(&ch->events, e, link);
    /* Cannot fail or block: the count would have to reach 2^64 - 1. */
    ssize_t n = write(ch->pub.fd, &one, sizeof(one));
    (void)n;
}

/* One event less. Without waiting, whatever the fd's flags: a count that is missing was just taken
 * by a thread in channel_take, which will find the list shorter and go on waiting. */
static void channel_uncount(struct rdma_channel_obj *ch)
{
    uint64_t one;
    struct iovec iov = {.iov_base = &one, .iov_len = sizeof(one)};
    ssize_t n = preadv2(ch->pub.fd, &iov, 1, -1, RWF_NOWAIT);
    (void)n;
}

void rdma_event_purge(struct rdma_id_obj *id, struct rdma_event_list *requests)
{
    struct rdma_channel_obj *ch = obj_channel(id->pub.channel);
    struct rdma_event_obj *next;

    if (ch == NULL || !channel_alive(ch))
        return;
    for (struct rdma_event_obj *e = TAILQ_FIRST(&ch->events); e != NULL; e = next) {
        next = TAILQ_NEXT(e, link);
        if (e->counted != id)
            continue;
        TAILQ_REMOVE(&ch->events, e, link);
        channel_uncount(ch);
        if (e->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            TAILQ_INSERT_TAIL(requests, e, link);
        else
            free(e);
    }
}

void rdma_event_purge_mcast(struct rdma_id_obj *id, const struct rdma_mcast *m)
{
    struct rdma_channel_obj *ch = obj_channel(id->pub.channel);
    struct rdma_event_obj *e;

    TAILQ_FOREACH(e, &ch->events, link)
    {
        if (e->mcast == m)
            break;
    }
    if (e == NULL)
        return;
    TAILQ_REMOVE(&ch->events, e, link);
    channel_uncount(ch);
    free(e);
}

void rdma_event_drop(struct rdma_event_obj *e)
{
    rdma_lock();
    e->counted->delivered--;
    pthread_cond_broadcast(&e->counted->acks);
    rdma_unlock();
    free(e);
}

void rdma_event_move(struct rdma_id_obj *id, struct rdma_event_channel *to)
{
    struct rdma_channel_obj *from = obj_channel(id->pub.channel);
    struct rdma_event_list moved = TAILQ_HEAD_INITIALIZER(moved);
    struct rdma_event_obj *e, *next;

    for (e = from != NULL ? TAILQ_FIRST(&from->events) : NULL; e != NULL; e = next) {
        next = TAILQ_NEXT(e, link);
        if (e->counted != id)
            continue;
        TAILQ_REMOVE(&from->events, e, link);
        channel_uncount(from);
        TAILQ_INSERT_TAIL(&moved, e, link);
    }
    rdma_channel_set(id, to);
    while ((e = TAILQ_FIRST(&moved)) != NULL) {
        TAILQ_REMOVE(&moved, e, link);
        /* A connection that the program has not seen goes where it will be seen. */
        if (e->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            rdma_event_move(obj_id(e->pub.id), to);
        rdma_event_push(e);
    }
}

int rdma_event_raise(struct rdma_id_obj *id, enum rdma_cm_event_type type, int status)
{
    struct rdma_event_obj *e = rdma_event_new(id, type, status);

    if (e == NULL)
        return rdma_fail(ENOMEM);
    rdma_lock();
    rdma_event_push(e);
    rdma_unlock();
    return 0;
}

/* The first event, or NULL: its id was destroyed or moved between the read and the lock. */
static struct rdma_event_obj *channel_first(struct rdma_channel_obj *ch)
{
    struct rdma_event_obj *e = TAILQ_FIRST(&ch->events);

    if (e != NULL) {
        TAILQ_REMOVE(&ch->events, e, link);
        e->counted->delivered++;
        if (e->mcast != NULL)
            e->mcast->held = true;
    }
    return e;
}

struct channel_getter {
    struct rdma_channel_obj *ch;
    uint64_t taken; /* from the fd's count, and not yet from the list */
};

/* Waits, unless the fd is O_NONBLOCK. NULL and errno: EAGAIN, EINTR, EBADF (destroyed)... */
static struct rdma_event_obj *channel_take(struct channel_getter *g)
{
    struct rdma_channel_obj *ch = g->ch;

    for (;;) {
        ssize_t n = read(ch->pub.fd, &g->taken, sizeof(g->taken));
        int err = errno;
        rdma_lock();
        g->taken = 0;
        struct rdma_event_obj *e = n > 0 && !ch->closed ? channel_first(ch) : NULL;
        bool closed = ch->closed;
        rdma_unlock();
        errno = closed ? EBADF : err;
        if (e != NULL || n < 0 || closed)
            return e;
    }
}

static bool channel_enter(struct rdma_channel_obj *ch)
{
    rdma_lock();
    bool open = !ch->closed;
    ch->users += open;
    ch->getters += open;
    rdma_unlock();
    return open;
}

/* Also of a thread that is cancelled while it waits. C libraries before 2.41 may do that when its
 * read() has taken the count already. */
static void channel_leave(void *arg)
{
    struct channel_getter *g = arg;
    struct rdma_channel_obj *ch = g->ch;
    int err = errno;

    rdma_lock();
    if (g->taken != 0) {
        ssize_t n = write(ch->pub.fd, &g->taken, sizeof(g->taken));
        (void)n;
    }
    if (--ch->getters == 0 && ch->closed)
        close(ch->pub.fd);
    channel_unuse(ch);
    rdma_unlock();
    errno = err;
}

/* Only who waits for an event can be cancelled. One that was taken would be lost, and its id never
 * end. */
static bool channel_deliver(struct rdma_event_obj *e)
{
    int cancel_state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    bool got = rdma_engine_deliver(e);
    pthread_setcancelstate(cancel_state, NULL);
    return got;
}

static struct rdma_event_obj *channel_get(struct rdma_channel_obj *ch)
{
    struct rdma_event_obj *volatile e;
    struct channel_getter g = {.ch = ch};

    if (!channel_enter(ch)) {
        errno = EBADF;
        return NULL;
    }
    pthread_cleanup_push(channel_leave, &g);
    do
        e = channel_take(&g);
    while (e != NULL && !channel_deliver(e));
    pthread_cleanup_pop(1);
    return e;
}

RDMACM_ABI int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    /* In the kernel, a thread that waits on a channel which another one destroys waits for ever,
     * and there are programs (rping) that end in that moment; as an error it would be their exit
     * code. Who goes on after this time shall know. */
    static const struct timespec grace = {.tv_sec = 1};

    if (channel == NULL || event == NULL)
        return rdma_fail(EINVAL);
    struct rdma_channel_obj *ch = obj_channel(channel);
    if (!channel_alive(ch))
        return rdma_fail(EIO);
    struct rdma_event_obj *e = channel_get(ch);
    if (e == NULL && errno == EBADF) {
        nanosleep(&grace, NULL);
        errno = EBADF;
    }
    if (e == NULL)
        return -1;
    *event = &e->pub;
    return 0;
}

RDMACM_ABI int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    if (event == NULL)
        return rdma_fail(EINVAL);
    struct rdma_event_obj *e = (struct rdma_event_obj *)event;
    rdma_lock();
    e->counted->acked++;
    if (e->mcast != NULL)
        e->mcast->held = false;
    pthread_cond_broadcast(&e->counted->acks);
    rdma_unlock();
    free(e);
    return 0;
}

int rdma_id_complete(struct rdma_id_obj *id)
{
    if (!id->sync)
        return 0;
    if (id->pub.event != NULL) {
        rdma_ack_cm_event(id->pub.event);
        id->pub.event = NULL;
    }
    int ret;
    do
        ret = rdma_get_cm_event(id->pub.channel, &id->pub.event);
    while (ret != 0 && errno == EINTR);
    if (ret != 0)
        return ret;
    if (id->pub.event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
        return rdma_fail(ENODEV);
    int status = id->pub.event->status;
    if (status == 0)
        return 0;
    /* A peer that refuses, with its reason as positive status, refuses as a TCP port does. */
    if (id->pub.event->event == RDMA_CM_EVENT_REJECTED)
        return rdma_fail(ECONNREFUSED);
    return rdma_fail(status < 0 ? -status : ETIMEDOUT);
}
