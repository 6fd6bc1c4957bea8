/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_objects.h: what stands behind the pointers that programs hold (each public struct first,
 * then ours), and what the files of this floor share.
 *
 * Locks: one for the floor, rdma_lock: channels and their events, the state of ids, devices. It is
 * never held across a call of libverbena, which may call back before it returns.
 */
#ifndef RDMACM_RDMA_OBJECTS_H
#define RDMACM_RDMA_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "host/connect.h"
#include "host/host.h"
#include "rdmacm/rdma_mcast.h"
#include "rdmacm/rdmacm_newer.h"
#include "verbena/types.h"

enum {
    RDMA_PRIVATE_BYTES = 224, /* the most that any message carries */
    RDMA_DEFAULT_PKEY = 0xffff,
    RDMA_HOP_LIMIT = 64,
};

struct rdma_device {
    struct ibv_context *verbs; /* opened, and not closed before the process ends */
    struct ibv_pd *pd;         /* that ids have when the program gives none */
    struct ibv_xrcd *xrcd;     /* the same; NULL until the first needs it */
    unsigned ifindex;
    uint32_t vendor_id;
    uint8_t max_initiator_depth;
    uint8_t max_responder_resources;
    struct verbena_context *watch; /* tells when the interface goes */
    /* Under rdma_lock; also read without it. */
    _Atomic bool gone;
    TAILQ_HEAD(, rdma_id_obj) ids; /* that are on it; under rdma_lock */
    TAILQ_ENTRY(rdma_device) link;
};

struct rdma_channel_obj {
    struct rdma_event_channel pub; /* fd: an eventfd that counts the list */
    TAILQ_HEAD(rdma_event_list, rdma_event_obj) events;
    unsigned generation;
    unsigned getters; /* threads in rdma_get_cm_event, under the lock */
    unsigned users;   /* those, ids, and the program until it destroys it */
    bool closed;      /* the program has destroyed it */
};

/* The order of states: IDLE -> BOUND -> ADDR_RESOLVED -> ROUTE_RESOLVED -> CONNECTING -> CONNECTED
 * -> DISCONNECTED; BOUND -> LISTENING; and what a listener gave: REQUESTED -> ACCEPTING ->
 * CONNECTED. A refused attempt goes back to ROUTE_RESOLVED. */
enum rdma_id_state {
    ID_IDLE,
    ID_BOUND,
    ID_ADDR_RESOLVED,
    ID_ROUTE_RESOLVED,
    ID_LISTENING,
    ID_CONNECTING,
    ID_RESPONDED, /* active, got the REP and has not answered it */
    ID_REQUESTED, /* passive, got the REQ or SIDR_REQ */
    ID_ACCEPTING, /* passive, sent the REP */
    ID_CONNECTED,
    ID_DISCONNECTED,
    ID_FINISHED, /* refused, timed out, or an answered SIDR */
};

/* What both sides agreed on, from which a QP's attributes follow. */
struct rdma_conn {
    struct nic_path path;            /* as the connection manager has it */
    uint32_t remote_qpn, remote_psn; /* PSN that it expects, so that we send from */
    uint32_t local_psn;              /* that we expect */
    uint16_t path_mtu_bytes;
    uint8_t ack_timeout; /* code */
    uint8_t retry_count, rnr_retry_count;
    uint8_t asked_rnr_retry_count; /* of the peer; 7: for ever, 0 also before we asked */
    uint8_t responder_resources, initiator_depth;
};

struct rdma_id_obj {
    struct rdma_cm_id pub;
    /* Changed under the lock; looked at also without. */
    _Atomic(enum rdma_id_state) state;
    unsigned generation;
    bool sync;    /* its channel is its own, and calls wait */
    bool closing; /* rdma_destroy_id has begun: no more events */
    bool claimed; /* its service is bound in the connection manager */
    bool reuse_addr;
    bool af_only;
    bool srq_on_recv_cq; /* its SRQ is of XRC, whose completions go to the id's recv_cq */
    bool tos_set;
    uint8_t tos;
    bool ack_timeout_set;
    uint8_t ack_timeout;
    struct rdma_device *device;
    TAILQ_ENTRY(rdma_id_obj) device_link;
    struct verbena_cm_id *cm; /* or NULL: not needed so far */
    struct rdma_conn conn;
    /* What it asks its peer, for when nobody listens there yet. */
    struct verbena_cm_connect request;
    uint8_t request_data[RDMA_PRIVATE_BYTES];
    unsigned refusals;
    uint32_t delivered, acked; /* events got and acknowledged */
    pthread_cond_t acks;
    /* A passive endpoint: what QPs its connections are to have. */
    struct ibv_qp_init_attr *ep_init;
    struct ibv_pd *ep_pd;
    struct ibv_ece local_ece, remote_ece;
    struct rdma_addrinfo *addrinfo; /* of rdma_resolve_addrinfo */
    /* rdma_turn.c, under the lock. A listener: the request that the program got last and has done
     * nothing with, and waits for it in a row that were in vain. */
    struct rdma_id_obj *turn;
    unsigned turns_in_vain;
    /* That request: its listener, and the context that it began with. */
    struct rdma_id_obj *turn_of;
    void *turn_context;
    struct rdma_mcast_list groups; /* under the lock */
    bool groups_busy;              /* a thread attaches or detaches the QP; it tells by acks */
};

struct rdma_event_obj {
    struct rdma_cm_event pub;
    TAILQ_ENTRY(rdma_event_obj) link;
    struct rdma_id_obj *counted; /* whose end waits for the acknowledgement */
    struct rdma_mcast *mcast;    /* MULTICAST_JOIN: which; else NULL */
    uint8_t private_data[RDMA_PRIVATE_BYTES];
};

static inline struct rdma_id_obj *obj_id(struct rdma_cm_id *id)
{
    return (struct rdma_id_obj *)id;
}

static inline struct rdma_channel_obj *obj_channel(struct rdma_event_channel *c)
{
    return (struct rdma_channel_obj *)c;
}

/* -1, errno set; err is positive. */
int rdma_fail(int err);

/* rdma_channel.c */
void rdma_lock(void);
void rdma_unlock(void);
void rdma_wait(pthread_cond_t *cond); /* under the lock */
void rdma_wait_ms(pthread_cond_t *cond, unsigned ms);
/* Counts the forks between the first process and this one; what another count made is dead here. */
unsigned rdma_generation(void);
/* Under the lock: the id's events go there, from now on, or nowhere (NULL). */
void rdma_channel_set(struct rdma_id_obj *id, struct rdma_event_channel *channel);
/* NULL: no memory. */
struct rdma_event_obj *rdma_event_new(struct rdma_id_obj *id, enum rdma_cm_event_type type,
                                      int status);
/* Under the lock, as the two below: to the channel of the id that it is counted at. */
void rdma_event_push(struct rdma_event_obj *e);
/* Events of this id that nobody got; those of new connections go to requests: their ids must be
 * destroyed. */
void rdma_event_purge(struct rdma_id_obj *id, struct rdma_event_list *requests);
/* The event of this join, if nobody got it. */
void rdma_event_purge_mcast(struct rdma_id_obj *id, const struct rdma_mcast *m);
/* Got, but not by the program. */
void rdma_event_drop(struct rdma_event_obj *e);
void rdma_event_move(struct rdma_id_obj *id, struct rdma_event_channel *to);
/* An event that is there as soon as the call was made. 0 or -1 and errno. */
int rdma_event_raise(struct rdma_id_obj *id, enum rdma_cm_event_type type, int status);
/* Of a synchronous id: waits for the outcome of the call; of another: 0 at once. -1 and errno when
 * the outcome is an error. */
int rdma_id_complete(struct rdma_id_obj *id);

/* rdma_id.c */
/* NULL: no memory. */
struct rdma_id_obj *rdma_id_new(struct rdma_event_channel *channel, void *context,
                                enum rdma_port_space ps, enum ibv_qp_type qp_type);
/* Not of another process, from before a fork. */
bool rdma_id_alive(const struct rdma_id_obj *id);
/* From one state to the next; false: it is in another one. */
bool rdma_id_step(struct rdma_id_obj *id, enum rdma_id_state from, enum rdma_id_state to);
static inline bool rdma_id_datagram(const struct rdma_id_obj *id)
{
    return id->pub.ps == RDMA_PS_UDP || id->pub.ps == RDMA_PS_IPOIB;
}

/* rdma_device.c: 0 or a positive errno. */
int rdma_device_get(unsigned ifindex, struct rdma_device **out); /* ENODEV: none has it */
/* The device of an address of ours becomes the id's. */
int rdma_device_attach(struct rdma_id_obj *id, const struct sockaddr *local);
/* It has none any more, and hears nothing of it. */
void rdma_device_detach(struct rdma_id_obj *id);
/* The place of an address in the device's GID table. */
int rdma_device_gid(struct rdma_device *d, const struct net_addr *addr, uint32_t *index);
enum ibv_mtu rdma_device_mtu(struct rdma_device *d);
/* The domain of extended reliable connections that ids of the device share; 0 or a positive errno.
 */
int rdma_device_xrcd(struct rdma_device *d, struct ibv_xrcd **out);

/* rdma_sockaddr.c */
socklen_t rdma_sockaddr_length(const struct sockaddr *sa); /* 0: of no IP family */
struct net_addr rdma_sockaddr_net(const struct sockaddr *sa);
/* The address only; of the family that sa has. */
void rdma_sockaddr_set_net(struct sockaddr *sa, const struct net_addr *addr);
bool rdma_sockaddr_any(const struct sockaddr *sa);
bool rdma_sockaddr_loopback(const struct sockaddr *sa);
bool rdma_sockaddr_link_local(const struct sockaddr *sa);
uint16_t rdma_sockaddr_port(const struct sockaddr *sa);
void rdma_sockaddr_set_port(struct sockaddr *sa, uint16_t port);
uint32_t rdma_sockaddr_scope(const struct sockaddr *sa);
void rdma_sockaddr_build(struct sockaddr_storage *out, const struct net_addr *addr, uint16_t port,
                         uint32_t scope_id);
/* An address of this family, with this service id, instead of an IP address. */
void rdma_sockaddr_to_gid(struct sockaddr_storage *sa, uint64_t service_id);
/* What is listened for there. */
uint64_t rdma_sockaddr_service(enum rdma_port_space ps, const struct sockaddr *sa);

/* rdma_route.c: by the kernel's tables. 0 or a positive errno. */
/* The interface that has this address of ours. */
int rdma_route_interface(const struct sockaddr *local, unsigned *ifindex);
/* The address that packets to dst leave from. local: the one wanted, or any; replaced by what it
 * is; its port stays. */
int rdma_route_local(const struct sockaddr *dst, struct sockaddr_storage *local);

/* rdma_port.c: 0 or a positive errno. */
/* The source address with its port becomes the id's. Port 0: a free one, unless the id only
 * connects (then any). */
int rdma_port_bind(struct rdma_id_obj *id, const struct sockaddr *addr, bool only_connects);
/* Of an id that shall listen: the port must be its own now. */
int rdma_port_claim(struct rdma_id_obj *id);

/* rdma_addr.c: the GIDs of the id's addresses. */
void rdma_addr_set_gids(struct rdma_id_obj *id);
/* 0 or a positive errno: what the program sees of the path. */
int rdma_addr_set_path(struct rdma_id_obj *id);
/* 0 or a positive errno: from ADDR_RESOLVED to ROUTE_RESOLVED, with the event. */
int rdma_addr_route(struct rdma_id_obj *id);

/* rdma_qp_attr.c: 0 or a positive errno. */
int rdma_qp_attr_ah(struct rdma_id_obj *id, const struct nic_path *path, struct ibv_ah_attr *ah);
int rdma_qp_attr_fill(struct rdma_id_obj *id, struct ibv_qp_attr *attr, int *mask);
int rdma_qp_to(struct rdma_id_obj *id, enum ibv_qp_state state);

/* rdma_conn.c: sends the id's request, again. 0 or a positive errno. */
int rdma_conn_ask(struct rdma_id_obj *id);
uint32_t rdma_random_psn(void);

/* rdma_turn.c */
/* The program gets this request next: until it has done something with the one before. */
void rdma_turn_await(struct rdma_id_obj *listen, struct rdma_id_obj *request);
void rdma_turn_used(struct rdma_id_obj *request);
/* Under the lock: a listener or a request goes away. */
void rdma_turn_forget(struct rdma_id_obj *id);

/* rdma_engine.c: the connection manager's id behind an id. 0 or a positive errno. */
int rdma_engine_id(struct rdma_id_obj *id);
/* What rdma_get_cm_event has still to do before the program gets an event. False: it does not get
 * it; the event has gone. */
bool rdma_engine_deliver(struct rdma_event_obj *e);

#endif
