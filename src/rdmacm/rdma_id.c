/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_id.c: communication identifiers: made, moved between channels, destroyed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "rdmacm/rdma_objects.h"

struct rdma_id_obj *rdma_id_new(struct rdma_event_channel *channel, void *context,
                                enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
    struct rdma_id_obj *id = calloc(1, sizeof(*id));

    if (id == NULL)
        return NULL;
    rdma_lock();
    rdma_channel_set(id, channel);
    rdma_unlock();
    id->pub.context = context;
    id->pub.ps = ps;
    id->pub.qp_type = qp_type;
    id->generation = rdma_generation();
    TAILQ_INIT(&id->groups);
    pthread_cond_init(&id->acks, NULL);
    return id;
}

bool rdma_id_alive(const struct rdma_id_obj *id)
{
    return id->generation == rdma_generation();
}

bool rdma_id_step(struct rdma_id_obj *id, enum rdma_id_state from, enum rdma_id_state to)
{
    rdma_lock();
    bool was = id->state == from;
    if (was)
        id->state = to;
    rdma_unlock();
    return was;
}

static bool id_qp_type(enum rdma_port_space ps, enum ibv_qp_type *type)
{
    switch (ps) {
    case RDMA_PS_TCP:
    case RDMA_PS_IB:
        *type = IBV_QPT_RC;
        return true;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
        *type = IBV_QPT_UD;
        return true;
    default:
        return false;
    }
}

RDMACM_ABI int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out,
                              void *context, enum rdma_port_space ps)
{
    enum ibv_qp_type type;
    bool sync = channel == NULL;

    if (out == NULL || !id_qp_type(ps, &type))
        return rdma_fail(EINVAL);
    if (sync) {
        channel = rdma_create_event_channel();
        if (channel == NULL)
            return -1;
    }
    struct rdma_id_obj *id = rdma_id_new(channel, context, ps, type);
    if (id == NULL) {
        if (sync)
            rdma_destroy_event_channel(channel);
        return rdma_fail(ENOMEM);
    }
    id->sync = sync;
    *out = &id->pub;
    return 0;
}

/* Under the lock: until the program has acknowledged what it got. */
static void id_await_acks(struct rdma_id_obj *id)
{
    while (rdma_id_alive(id) && id->acked != id->delivered)
        rdma_wait(&id->acks);
}

static void id_ack_own(struct rdma_id_obj *id)
{
    if (id->pub.event == NULL)
        return;
    rdma_ack_cm_event(id->pub.event);
    id->pub.event = NULL;
}

RDMACM_ABI int rdma_destroy_id(struct rdma_cm_id *pub)
{
    struct rdma_id_obj *id = obj_id(pub);
    struct rdma_event_list requests = TAILQ_HEAD_INITIALIZER(requests);
    struct rdma_event_obj *e;

    id_ack_own(id);
    rdma_lock();
    id->closing = true;
    rdma_turn_forget(id);
    rdma_event_purge(id, &requests);
    id_await_acks(id); /* also of threads that still work on an event */
    rdma_turn_forget(id);
    rdma_unlock();
    /* Connections that the program has never seen; their peers are told no. */
    while ((e = TAILQ_FIRST(&requests)) != NULL) {
        TAILQ_REMOVE(&requests, e, link);
        rdma_destroy_id(e->pub.id);
        free(e);
    }
    rdma_device_detach(id);
    if (id->cm != NULL)
        verbena_cm_id_destroy(id->cm); /* no calls from it any more */
    if (id->sync)
        rdma_destroy_event_channel(pub->channel);
    rdma_lock();
    rdma_channel_set(id, NULL);
    rdma_unlock();
    rdma_mcast_forget_all(id);
    rdma_freeaddrinfo(id->addrinfo);
    free(pub->route.path_rec);
    free(id->ep_init);
    pthread_cond_destroy(&id->acks);
    free(id);
    return 0;
}

RDMACM_ABI int rdma_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
    struct rdma_id_obj *id = obj_id(pub);
    struct rdma_event_channel *own = id->sync ? pub->channel : NULL;
    bool sync = channel == NULL;

    if (sync && id->sync)
        return rdma_fail(EINVAL);
    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    if (sync) {
        channel = rdma_create_event_channel();
        if (channel == NULL)
            return -1;
    }
    if (id->sync)
        id_ack_own(id);
    rdma_lock();
    rdma_turn_forget(id);
    rdma_event_move(id, channel);
    id->sync = sync;
    id_await_acks(id);
    rdma_unlock();
    if (own != NULL)
        rdma_destroy_event_channel(own);
    return 0;
}

static __be16 id_port(const struct sockaddr *sa)
{
    return rdma_sockaddr_length(sa) != 0 ? htons(rdma_sockaddr_port(sa)) : 0;
}

RDMACM_ABI __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return id_port(&id->route.addr.src_addr);
}

RDMACM_ABI __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return id_port(&id->route.addr.dst_addr);
}
