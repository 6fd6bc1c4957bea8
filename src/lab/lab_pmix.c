/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_pmix.c: the plug-in verbena-lab-pmix.so: every process puts its text, all wait for all, and
 * read what the others put. PMIx is left at once: nothing of it runs while something is measured.
 */
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/lab_boot.h"
#include "lab/lab_clock.h"

#define NAME "verbena.lab"

struct fence {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    pmix_status_t status;
};

static int fail(char message[LAB_MESSAGE_BYTES], const char *what, pmix_status_t status)
{
    snprintf(message, LAB_MESSAGE_BYTES, "the launcher's PMIx: %s: %s", what,
             PMIx_Error_string(status));
    return -EIO;
}

static void fence_over(pmix_status_t status, void *context)
{
    struct fence *f = context;
    pthread_mutex_lock(&f->lock);
    f->status = status;
    f->over = true;
    pthread_cond_signal(&f->ended);
    pthread_mutex_unlock(&f->lock);
}

/* What a late callback would write to must stay, so that it is none of a stack. */
static struct fence fence = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

/* By a clock that nobody sets: one that is set forward would end the waiting at once. */
static pmix_status_t wait_for_all(const pmix_proc_t *all, uint64_t timeout_ns)
{
    bool yes = true;
    static pmix_info_t collect;
    uint64_t until_ns = lab_now_ns() + timeout_ns;
    const struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    pmix_status_t status = PMIx_Fence_nb(all, 1, &collect, 1, fence_over, &fence);
    if (status != PMIX_SUCCESS)
        return status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
    pthread_mutex_lock(&fence.lock);
    int error = 0;
    while (!fence.over && error == 0)
        error = pthread_cond_clockwait(&fence.ended, &fence.lock, CLOCK_MONOTONIC, &until);
    status = fence.over ? fence.status : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&fence.lock);
    return status;
}

static int read_texts(struct lab_boot *b, const char *space, char message[LAB_MESSAGE_BYTES])
{
    for (unsigned i = 0; i < b->ranks; i++) {
        pmix_proc_t one;
        pmix_value_t *value;
        PMIX_LOAD_PROCID(&one, space, i);
        pmix_status_t status = PMIx_Get(&one, NAME, NULL, 0, &value);
        if (status == PMIX_SUCCESS && value->type == PMIX_STRING)
            b->texts[i] = strdup(value->data.string);
        if (status == PMIX_SUCCESS)
            PMIX_VALUE_RELEASE(value);
        if (b->texts[i] == NULL)
            return fail(message, "a process said nothing of itself", status);
    }
    return 0;
}

static int gather(struct lab_boot *b, const pmix_proc_t *me, const char *mine, uint64_t timeout_ns,
                  char message[LAB_MESSAGE_BYTES])
{
    pmix_proc_t all;
    pmix_value_t *size, value = {.type = PMIX_STRING};
    PMIX_LOAD_PROCID(&all, me->nspace, PMIX_RANK_WILDCARD);
    pmix_status_t status = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &size);
    if (status != PMIX_SUCCESS)
        return fail(message, "how many are we?", status);
    b->rank = me->rank;
    b->ranks = size->data.uint32;
    PMIX_VALUE_RELEASE(size);
    if (b->ranks < 2 || b->ranks > LAB_MAX_RANKS) {
        snprintf(message, LAB_MESSAGE_BYTES,
                 "the launcher started %u, where 2 to %d processes can be: mpirun -np N verbena "
                 "lab mpi",
                 b->ranks, LAB_MAX_RANKS);
        return -ERANGE;
    }
    b->texts = calloc(b->ranks, sizeof(*b->texts));
    char *copy = strdup(mine);
    value.data.string = copy;
    status =
        b->texts == NULL || copy == NULL ? PMIX_ERR_NOMEM : PMIx_Put(PMIX_GLOBAL, NAME, &value);
    free(copy);
    if (status == PMIX_SUCCESS)
        status = PMIx_Commit();
    if (status != PMIX_SUCCESS)
        return fail(message, "telling of ourselves", status);
    status = wait_for_all(&all, timeout_ns);
    if (status != PMIX_SUCCESS)
        return fail(message, "waiting for all processes", status);
    return read_texts(b, me->nspace, message);
}

int lab_pmix_gather(struct lab_boot *b, const char *mine, uint64_t timeout_ns,
                    char message[LAB_MESSAGE_BYTES])
{
    pmix_proc_t me;
    pmix_status_t status = PMIx_Init(&me, NULL, 0);
    if (status != PMIX_SUCCESS)
        return fail(message, "cannot reach it", status);
    int error = gather(b, &me, mine, timeout_ns, message);
    if (error != 0 && error != -ERANGE)
        return error; /* leaving in order would wait for who is not there */
    PMIx_Finalize(NULL, 0);
    return error;
}
