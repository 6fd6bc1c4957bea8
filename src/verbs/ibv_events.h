/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_events.h: events on their way to a program: a list and an eventfd whose count is the list's
 * length, so that the fd polls readable while there is something to get. Nodes live in the objects
 * that raise them; raising needs no memory.
 */
#ifndef VERBS_IBV_EVENTS_H
#define VERBS_IBV_EVENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "verbena/types.h"

struct event_node {
    TAILQ_ENTRY(event_node) link;
    void *owner;        /* struct ibv_{ctx,cq,qp,srq}_obj, by type */
    int type;           /* IBV_EVENT_*; unused for completion events */
    uint32_t pending;   /* raised and not got; > 0: linked */
    uint32_t delivered; /* got */
};

struct event_queue {
    int fd;
    pthread_mutex_t mutex;
    TAILQ_HEAD(event_node_list, event_node) list;
    unsigned getters; /* threads in event_queue_get, under the mutex */
    bool closed;
    pid_t pid; /* whose threads they are */
};

int event_queue_init(struct event_queue *q); /* 0 or -errno */
/* Threads that wait are sent away, and gone when it returns. */
void event_queue_fini(struct event_queue *q);
/* In a forked child, where nothing may wait for its mutex. */
bool event_queue_inherited(const struct event_queue *q);
void event_queue_push(struct event_queue *q, struct event_node *node);
/* Waits (unless the fd is O_NONBLOCK) for the next event. 0, or -1 and errno: EAGAIN, EINTR, EBADF
 * (after fini)... */
int event_queue_get(struct event_queue *q, struct event_node **out);
/* Takes back what nobody got. Returns how many of this node's events were got in its life. */
uint32_t event_queue_purge(struct event_queue *q, struct event_node *node);
/* Blocks until *completed, guarded by mutex and signalled by cond, has reached delivered. */
void event_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
                      uint32_t delivered);

/* What host.h calls back. */
void event_on_completion(void *cq_owner);
void event_on_async(enum nic_event_type type, void *owner);

#endif
