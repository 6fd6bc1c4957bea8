/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * firm.h: a lock under which system calls are made. They are cancellation points, and a thread that
 * is cancelled in one would take the lock along: so its holder is not cancelled.
 */
#ifndef BASE_FIRM_H
#define BASE_FIRM_H

#include <pthread.h>
#include <stddef.h>

struct firm_lock {
    pthread_mutex_t mutex;
    int cancel_state; /* the holder's, to be restored */
};

#define FIRM_LOCK_INITIALIZER                                                                      \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }

static inline void firm_take(struct firm_lock *l)
{
    int was;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    pthread_mutex_lock(&l->mutex);
    l->cancel_state = was;
}

static inline void firm_drop(struct firm_lock *l)
{
    int was = l->cancel_state;

    pthread_mutex_unlock(&l->mutex);
    pthread_setcancelstate(was, NULL);
}

#endif
