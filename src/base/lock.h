/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock.h: the lock of one object (QP, CQ, SRQ). Uncontended in normal use; a waiter sleeps instead
 * of spinning, since with few CPUs the holder may not be running. Order: QP, then SRQ or CQ, then
 * the NIC's scheduler.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
};

static inline void lock_init(struct lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
}

static inline void lock_fini(struct lock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

static inline void lock_take(struct lock *l)
{
    pthread_mutex_lock(&l->mutex);
}

static inline void lock_drop(struct lock *l)
{
    pthread_mutex_unlock(&l->mutex);
}

#endif
