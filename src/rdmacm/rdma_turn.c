/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_turn.c: connection requests are given to a program one at a time. Servers exist that keep
 * the last request in one variable, from which another thread takes it (rping -P): two at once, and
 * the first is lost. In the kernel each request takes so long that it rarely happens; here clients
 * that start together bring many at once.
 *
 * So the next request waits until the program has done something with the one before: called
 * anything with its id, or given it a context. Not for ever, for a program may want to collect
 * them: each wait in vain halves the next. And not on a descriptor that is O_NONBLOCK, whose reader
 * has other things to do.
 */
#include <fcntl.h>
#include <time.h>

#include "rdmacm/rdma_objects.h"

enum {
    TURN_FIRST_MS = 256,
    TURN_VAIN_MAX = 9, /* then it does not wait at all */
    TURN_LOOK_MS = 1,  /* nobody tells us of a context */
};

static pthread_cond_t turn_over = PTHREAD_COND_INITIALIZER;

/* Under the lock, as all here. */
static bool turn_used(const struct rdma_id_obj *request)
{
    return __atomic_load_n(&request->pub.context, __ATOMIC_RELAXED) != request->turn_context;
}

static void turn_end(struct rdma_id_obj *request)
{
    struct rdma_id_obj *listen = request->turn_of;

    if (listen == NULL)
        return;
    request->turn_of = NULL;
    listen->turn = NULL;
    listen->turns_in_vain = 0;
    pthread_cond_broadcast(&turn_over);
}

void rdma_turn_await(struct rdma_id_obj *listen, struct rdma_id_obj *request)
{
    unsigned waited_ms = 0;

    rdma_lock();
    bool blocking =
        listen->turn == NULL || (fcntl(listen->pub.channel->fd, F_GETFL) & O_NONBLOCK) == 0;
    while (listen->turn != NULL && !listen->closing && !obj_channel(listen->pub.channel)->closed) {
        if (turn_used(listen->turn)) {
            turn_end(listen->turn);
            break;
        }
        if (!blocking || waited_ms >= (unsigned)TURN_FIRST_MS >> listen->turns_in_vain)
            break;
        rdma_wait_ms(&turn_over, TURN_LOOK_MS);
        waited_ms += TURN_LOOK_MS;
    }
    if (listen->turn != NULL) {
        listen->turn->turn_of = NULL;
        listen->turns_in_vain += listen->turns_in_vain < TURN_VAIN_MAX;
    }
    listen->turn = request;
    request->turn_of = listen;
    request->turn_context = request->pub.context;
    rdma_unlock();
}

void rdma_turn_used(struct rdma_id_obj *request)
{
    rdma_lock();
    turn_end(request);
    rdma_unlock();
}

void rdma_turn_forget(struct rdma_id_obj *id)
{
    turn_end(id);
    if (id->turn != NULL)
        id->turn->turn_of = NULL;
    id->turn = NULL;
    pthread_cond_broadcast(&turn_over);
}
