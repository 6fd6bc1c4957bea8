/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_events.c: completion channels and asynchronous events: from the engine's callbacks to the
 * blocking calls of programs, and the count of what they have not acknowledged.
 */
#include "verbs/ibv_events.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "verbs/ibv_objects.h"

int event_queue_init(struct event_queue *q)
{
    /* Blocking at first, as the kernel's: a program that wants otherwise sets O_NONBLOCK. */
    q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (q->fd < 0)
        return -errno;
    pthread_mutex_init(&q->mutex, NULL);
    TAILQ_INIT(&q->list);
    q->getters = 0;
    q->closed = false;
    q->pid = getpid();
    return 0;
}

void event_queue_fini(struct event_queue *q)
{
    static const struct timespec moment = {.tv_nsec = 1000000};

    if (event_queue_inherited(
            q)) { /* a thread that a forked child does not have may hold the mutex */
        close(q->fd);
        return;
    }
    pthread_mutex_lock(&q->mutex);
    q->closed = true;
    while (q->getters != 0) {
        uint64_t wake = q->getters;
        ssize_t n = write(q->fd, &wake, sizeof(wake));
        (void)n;
        pthread_mutex_unlock(&q->mutex);
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&q->mutex);
    }
    pthread_mutex_unlock(&q->mutex);
    close(q->fd);
    pthread_mutex_destroy(&q->mutex);
}

bool event_queue_inherited(const struct event_queue *q)
{
    return q->pid != getpid();
}

void event_queue_push(struct event_queue *q, struct event_node *node)
{
    static const uint64_t one = 1;

    pthread_mutex_lock(&q->mutex);
    if (node->pending > 0 && node->type == IBV_EVENT_GID_CHANGE) {
        /* Who gets it reads the table as it is then. */
        pthread_mutex_unlock(&q->mutex);
        return;
    }
    if (node->pending++ == 0)
        TAILQ_INSERT_TAIL(&q->list, node, link);
    /* Cannot fail or block: the count would have to reach 2^64 - 1. */
    ssize_t n = write(q->fd, &one, sizeof(one));
    (void)n;
    pthread_mutex_unlock(&q->mutex);
}

struct event_getter {
    struct event_queue *q;
    uint64_t taken; /* from the fd's count, and not yet from the list */
};

/* Also of a thread that is cancelled while it waits. C libraries before 2.41 may do that when its
 * read() has taken the count already. */
static void event_queue_leave(void *arg)
{
    struct event_getter *g = arg;
    struct event_queue *q = g->q;

    pthread_mutex_lock(&q->mutex);
    if (g->taken != 0) {
        ssize_t n = write(q->fd, &g->taken, sizeof(g->taken));
        (void)n;
    }
    q->getters--;
    pthread_mutex_unlock(&q->mutex);
}

static struct event_node *event_queue_first(struct event_queue *q)
{
    struct event_node *node = TAILQ_FIRST(&q->list);

    if (node == NULL)
        return NULL;
    TAILQ_REMOVE(&q->list, node, link);
    if (--node->pending > 0)
        TAILQ_INSERT_TAIL(&q->list, node, link);
    node->delivered++;
    return node;
}

/* NULL and errno. */
static struct event_node *event_queue_take(struct event_getter *g)
{
    struct event_queue *q = g->q;

    for (;;) {
        ssize_t n = read(q->fd, &g->taken, sizeof(g->taken));
        int err = errno;
        pthread_mutex_lock(&q->mutex);
        g->taken = 0;
        bool closed = q->closed;
        struct event_node *node = n > 0 && !closed ? event_queue_first(q) : NULL;
        pthread_mutex_unlock(&q->mutex);
        errno = closed ? EBADF : err;
        if (node != NULL || n < 0 || closed)
            return node;
        /* Its object was destroyed between the read and the lock. */
    }
}

int event_queue_get(struct event_queue *q, struct event_node **out)
{
    /* On adapters such a thread waits for ever, and a program that ends in that moment shall not
     * have it as an error. */
    static const struct timespec grace = {.tv_sec = 1};
    struct event_getter g = {.q = q};
    int err;

    pthread_mutex_lock(&q->mutex);
    q->getters++;
    pthread_mutex_unlock(&q->mutex);
    pthread_cleanup_push(event_queue_leave, &g);
    *out = event_queue_take(&g);
    err = errno;
    pthread_cleanup_pop(1);
    if (*out != NULL)
        return 0;
    if (err == EBADF)
        nanosleep(&grace, NULL);
    errno = err;
    return -1;
}

uint32_t event_queue_purge(struct event_queue *q, struct event_node *node)
{
    pthread_mutex_lock(&q->mutex);
    if (node->pending > 0)
        TAILQ_REMOVE(&q->list, node, link);
    for (; node->pending > 0; node->pending--) {
        /* Without waiting, whatever the fd's flags: a count that is missing was just taken by a
         * thread in event_queue_get, which will find the list shorter and go on waiting. */
        uint64_t one;
        struct iovec iov = {.iov_base = &one, .iov_len = sizeof(one)};
        ssize_t n = preadv2(q->fd, &iov, 1, -1, RWF_NOWAIT);
        (void)n;
    }
    uint32_t delivered = node->delivered;
    pthread_mutex_unlock(&q->mutex);
    return delivered;
}

void event_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
                      uint32_t delivered)
{
    pthread_mutex_lock(mutex);
    while (*completed != delivered)
        pthread_cond_wait(cond, mutex);
    pthread_mutex_unlock(mutex);
}

void event_on_completion(void *cq_owner)
{
    struct ibv_cq_obj *cq = cq_owner;

    if (cq->ibv.channel != NULL)
        event_queue_push(&((struct ibv_channel_obj *)cq->ibv.channel)->queue, &cq->comp_event);
}

static struct ibv_context *event_context(enum nic_event_type type, void *owner)
{
    switch (type) {
    case EVENT_CQ_ERR:
        return ((struct ibv_cq_obj *)owner)->ibv.context;
    case EVENT_SRQ_ERR:
    case EVENT_SRQ_LIMIT_REACHED:
        return ((struct ibv_srq_obj *)owner)->ibv.context;
    case EVENT_QP_FATAL:
    case EVENT_QP_REQ_ERR:
    case EVENT_QP_ACCESS_ERR:
    case EVENT_COMM_EST:
    case EVENT_SQ_DRAINED:
    case EVENT_QP_LAST_WQE_REACHED:
        return ((struct ibv_qp_obj *)owner)->pub.qp.context;
    case EVENT_PORT_ACTIVE:
    case EVENT_PORT_ERR:
    case EVENT_GID_CHANGE:
    case EVENT_DEVICE_FATAL:
        return &((struct ibv_ctx_obj *)owner)->newest.vctx.context;
    case EVENT_QP_HEARD: /* the host's own */
        break;
    }
    return NULL;
}

static struct event_node *event_find(enum nic_event_type type, void *owner)
{
    struct event_node *nodes = NULL;
    unsigned n = 0;

    switch (type) {
    case EVENT_CQ_ERR:
        return &((struct ibv_cq_obj *)owner)->err_event;
    case EVENT_SRQ_ERR:
    case EVENT_SRQ_LIMIT_REACHED:
        nodes = ((struct ibv_srq_obj *)owner)->event;
        n = 2;
        break;
    case EVENT_PORT_ACTIVE:
    case EVENT_PORT_ERR:
    case EVENT_GID_CHANGE:
    case EVENT_DEVICE_FATAL:
        nodes = ((struct ibv_ctx_obj *)owner)->event;
        n = CONTEXT_EVENTS;
        break;
    default:
        nodes = ((struct ibv_qp_obj *)owner)->event;
        n = QP_EVENTS;
        break;
    }
    for (unsigned i = 0; i < n; i++) {
        if (nodes[i].type == (int)type)
            return &nodes[i];
    }
    return NULL;
}

static bool of_qp(enum nic_event_type type)
{
    return (type >= EVENT_QP_FATAL && type <= EVENT_SQ_DRAINED) ||
           type == EVENT_QP_LAST_WQE_REACHED;
}

void event_on_async(enum nic_event_type type, void *owner)
{
    if (of_qp(type) && ((struct ibv_qp_obj *)owner)->pub.qp.qp_type == IBV_QPT_XRC_RECV) {
        ibv_tgt_event(owner, (int)type);
        return;
    }
    struct ibv_context *ctx = event_context(type, owner);
    struct event_node *node = ctx != NULL ? event_find(type, owner) : NULL;

    if (node != NULL)
        event_queue_push(&obj_ctx(ctx)->async, node);
}

VERBS_ABI struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct ibv_channel_obj *ch = calloc(1, sizeof(*ch));
    if (ch == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int err = event_queue_init(&ch->queue);
    if (err != 0) {
        free(ch);
        errno = -err;
        return NULL;
    }
    ch->ibv.context = context;
    ch->ibv.fd = ch->queue.fd;
    obj_born(context);
    return &ch->ibv;
}

VERBS_ABI int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct ibv_channel_obj *ch = (struct ibv_channel_obj *)channel;

    if (atomic_load(&ch->users) != 0)
        return EBUSY;
    obj_died(channel->context);
    event_queue_fini(&ch->queue);
    free(ch);
    return 0;
}

VERBS_ABI int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                               void **cq_context)
{
    struct event_node *node;

    if (event_queue_get(&((struct ibv_channel_obj *)channel)->queue, &node) != 0)
        return -1;
    struct ibv_cq_obj *obj = node->owner;
    *cq = &obj->ibv;
    *cq_context = obj->ibv.cq_context;
    return 0;
}

VERBS_ABI void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

VERBS_ABI int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct event_node *node;

    if (event_queue_get(&obj_ctx(context)->async, &node) != 0)
        return -1;
    event->event_type = (enum ibv_event_type)node->type;
    switch (node->type) {
    case IBV_EVENT_CQ_ERR:
        event->element.cq = &((struct ibv_cq_obj *)node->owner)->ibv;
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        event->element.srq = &((struct ibv_srq_obj *)node->owner)->ibv;
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_GID_CHANGE:
        event->element.port_num = VERBS_PORT;
        break;
    case IBV_EVENT_DEVICE_FATAL: /* of no port */
        event->element.port_num = 0;
        break;
    default:
        event->element.qp = &((struct ibv_qp_obj *)node->owner)->pub.qp;
        break;
    }
    return 0;
}

static void event_ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
    pthread_mutex_lock(mutex);
    (*completed)++;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(mutex);
}

VERBS_ABI void ibv_ack_async_event(struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR: {
        struct ibv_cq *cq = event->element.cq;
        event_ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
        break;
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
        struct ibv_srq *srq = event->element.srq;
        event_ack(&srq->mutex, &srq->cond, &srq->events_completed);
        break;
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
        struct ibv_qp *qp = event->element.qp;
        event_ack(&qp->mutex, &qp->cond, &qp->events_completed);
        break;
    }
    default: /* of a port or device: nothing waits for these */
        break;
    }
}
