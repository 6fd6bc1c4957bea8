/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_mcast.h: the multicast groups that an id has joined. A part of rdma_objects.h.
 */
#ifndef RDMACM_RDMA_MCAST_H
#define RDMACM_RDMA_MCAST_H

#include <stdbool.h>
#include <sys/queue.h>

#include <rdma/rdma_cma.h>

struct rdma_event_obj;
struct rdma_id_obj;

/* One join. Its end waits for the acknowledgement of its event. */
struct rdma_mcast {
    struct sockaddr_storage addr; /* as the program gave it */
    union ibv_gid group;
    bool send_only;
    /* Under rdma_lock. */
    bool attached; /* the id's QP is in the group because of this join */
    bool held;     /* its event was got and not acknowledged */
    TAILQ_ENTRY(rdma_mcast) link;
};

TAILQ_HEAD(rdma_mcast_list, rdma_mcast);

/* Before the program gets MULTICAST_JOIN: its QP joins, and the event says by what path to send. */
void rdma_mcast_deliver(struct rdma_event_obj *e);
/* The id's QP is about to go: out of its groups. */
void rdma_mcast_detach_all(struct rdma_id_obj *id);
/* The id is about to go; all its events were acknowledged. */
void rdma_mcast_forget_all(struct rdma_id_obj *id);

#endif
