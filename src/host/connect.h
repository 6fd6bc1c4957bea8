/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect.h: connection management, as libverbena.so.0 offers it to librdmacm: ids that listen,
 * connect, accept and disconnect by messages of QP 1. A part of host.h. Addresses, routes, QP
 * transitions and channels are the caller's.
 *
 * All functions may be called from any thread; int results are 0 or -errno. -EINVAL, unless said
 * otherwise: the id is in a state that has no such call, or a value cannot be; nothing has changed
 * then. After fork() the child's inherited ids answer -EIO, and can only be destroyed.
 *
 * Life of a connection. Active: verbena_cm_connect -> REP -> (QP to RTR and RTS) verbena_cm_ready.
 * Passive: verbena_cm_listen -> REQ with a new id -> (QP to RTR, RTS) verbena_cm_accept ->
 * ESTABLISHED, when the RTU comes or the QP that was named gets its first packet. Or else REJ or
 * UNREACHABLE. Then verbena_cm_disconnect -> DISCONNECTED, or DREQ when the peer did;
 * TIMEWAIT_EXIT last. Should the process die meanwhile, another one of the address sends the DREQ.
 *
 * Datagrams: verbena_cm_sidr_connect -> SIDR_REP or UNREACHABLE; verbena_cm_listen -> SIDR_REQ with
 * a new id -> verbena_cm_sidr_reply.
 */
#ifndef HOST_CONNECT_H
#define HOST_CONNECT_H

#include "verbena/types.h"

#ifndef VERBENA_EXPORT
#define VERBENA_EXPORT __attribute__((visibility("default")))
#endif

struct verbena_cm;    /* a user of the process's connection manager; keeps it as a context does */
struct verbena_cm_id; /* a listener, or one side of a connection or of a SIDR exchange */

enum verbena_cm_event_type {
    VERBENA_CM_REQ,         /* passive: a new id */
    VERBENA_CM_REP,         /* active. Answer: verbena_cm_ready or verbena_cm_reject */
    VERBENA_CM_ESTABLISHED, /* active: during verbena_cm_ready already */
    VERBENA_CM_REJ,         /* before it was established; status: the reason. The end. */
    VERBENA_CM_UNREACHABLE, /* nobody answered; status: what was sent in vain. The end. */
    VERBENA_CM_MRA,         /* the peer needs time. For information */
    VERBENA_CM_DREQ,        /* the peer disconnected; its DREP is owed until we do, too. TIMEWAIT */
    VERBENA_CM_DISCONNECTED, /* our DREQ was answered or nobody did; or a REJ (status: reason) ended
                                an established connection. TIMEWAIT */
    VERBENA_CM_TIMEWAIT_EXIT, /* the QP's number may be used again. The end. */
    VERBENA_CM_SIDR_REQ,      /* passive: a new id. Answer: verbena_cm_sidr_reply */
    VERBENA_CM_SIDR_REP,      /* active; status: 0, or why not. The end. */
    VERBENA_CM_EVENTS
};

enum {
    /* Status of UNREACHABLE, as attribute IDs of MADs. */
    VERBENA_CM_SENT_REQ = 0x10,
    VERBENA_CM_SENT_REP = 0x13,
    VERBENA_CM_SENT_DREQ = 0x15,
    VERBENA_CM_SENT_SIDR_REQ = 0x17,
    /* Some reasons of REJ (IBA 12.6.7.2); any other number may come, too. */
    VERBENA_CM_REJ_TIMEOUT = 4,
    VERBENA_CM_REJ_INVALID_SERVICE_ID = 8,
    VERBENA_CM_REJ_INVALID_TRANSPORT_TYPE = 9,
    VERBENA_CM_REJ_STALE_CONN = 10,
    VERBENA_CM_REJ_CONSUMER_DEFINED = 28,
    VERBENA_CM_REJ_VENDOR_OPTION = 35, /* enhanced connection establishment */
    /* Private data that the caller may give, at most; with IP: REQs and SIDR_REQs of IP services.
     */
    VERBENA_CM_REQ_BYTES = 92,
    VERBENA_CM_REQ_IP_BYTES = 56,
    VERBENA_CM_REP_BYTES = 196,
    VERBENA_CM_REJ_BYTES = 148,
    VERBENA_CM_REJ_INFO_BYTES = 72,
    VERBENA_CM_RTU_BYTES = 224,
    VERBENA_CM_DREQ_BYTES = 220,
    VERBENA_CM_MRA_BYTES = 222,
    VERBENA_CM_SIDR_REQ_BYTES = 216,
    VERBENA_CM_SIDR_REQ_IP_BYTES = 180,
    VERBENA_CM_SIDR_REP_BYTES = 136,
    /* The kernel's values: 4.096 us << 20 between 1 + 15 tries. */
    VERBENA_CM_RESPONSE_TIMEOUT = 20,
    VERBENA_CM_MAX_RETRIES = 15,
};

/* An IP service: the port in a service ID. space: the low byte of enum rdma_port_space. port: host
 * order. */
static inline uint64_t verbena_cm_service(uint8_t space, uint16_t port)
{
    return 1ull << 24 | (uint64_t)space << 16 | port;
}

struct verbena_cm_private {
    const void *data; /* NULL: none */
    size_t bytes;     /* -EINVAL when more than the message has room for */
};

/* What the two sides tell each other; each says it of itself. */
struct verbena_cm_param {
    uint32_t qpn, psn;                            /* psn: that its peer sends from */
    uint32_t qkey;                                /* datagrams */
    uint8_t responder_resources, initiator_depth; /* READs and atomics it answers, it sends */
    uint8_t retry_count;                          /* REQ: of the QPs */
    uint8_t rnr_retry_count;                      /* of the peer's QP */
    bool flow_control, srq;
    uint32_t ece_vendor_id, ece_options;
    struct verbena_cm_private private_data;
};

struct verbena_cm_connect {
    struct nic_path path; /* udp_sport does not count */
    uint64_t service_id;
    uint16_t src_port;    /* IP services; host order */
    enum qp_type qp_type; /* RC, UC or XRC INI; SIDR: does not count */
    uint16_t path_mtu_bytes;
    uint8_t ack_timeout;      /* of the QPs: 4.096 us << it; 5 bits */
    uint8_t response_timeout; /* between tries: 4.096 us << it; 5 bits. 0: the kernel's */
    int max_retries;          /* 0..15 further tries; -1: the kernel's */
    struct verbena_cm_param param;
};

struct verbena_cm_event {
    enum verbena_cm_event_type type;
    struct verbena_cm_id *id;
    void *owner;                  /* of the id; of a new one: NULL */
    struct verbena_cm_id *listen; /* REQ, SIDR_REQ: who listened */
    void *listen_owner;
    int status;
    struct nic_path path; /* the id's, for the QP; udp_sport 0 */
    /* REQ, SIDR_REQ; addresses and port as the peer says them when has_ip, else the path's and 0 */
    uint64_t service_id;
    bool has_ip;
    uint16_t peer_port;
    struct net_addr peer_addr, local_addr;
    /* REQ */
    enum qp_type qp_type; /* RC, UC or XRC TGT: what ours is to be */
    uint16_t path_mtu_bytes;
    uint8_t ack_timeout;
    /* REQ, REP, SIDR_REP: the peer's. private_data: of whatever message made the event, in full
     * length (there is none on the wire), valid during the call. */
    struct verbena_cm_param param;
    const uint8_t *info; /* REJ: additional information */
    size_t info_bytes;
};

/*
 * Called while progress is made, on any thread, with no engine lock held, one at a time. It must
 * not call back into host.h or connect.h, but for verbena_cm_set_owner of the new id. Calls below,
 * too, may call it before they return: hold no lock across them that it takes. REQ and SIDR_REQ: 0:
 * the new id is the callee's, who destroys it later; else it is rejected and gone: a REQ for the
 * reason that a positive result says, or, when negative, for want of resources. All other events:
 * the result does not count. An id has none after its destroy.
 */
struct verbena_cm_callbacks {
    int (*event)(const struct verbena_cm_event *e);
};

/* Errors as verbena_open, without -ENODEV. No device need be open. */
VERBENA_EXPORT int verbena_cm_open(const struct verbena_cm_callbacks *cb, struct verbena_cm **out);
/* All ids must be gone. What is under way (DREQs, TIMEWAIT) goes on while the process has another
 * user or context, else ends here. */
VERBENA_EXPORT void verbena_cm_close(struct verbena_cm *cm);

VERBENA_EXPORT int verbena_cm_id_create(struct verbena_cm *cm, void *owner,
                                        struct verbena_cm_id **out);
/* In any state. What the peer must hear (REJ, DREQ) is said, without the caller. */
VERBENA_EXPORT void verbena_cm_id_destroy(struct verbena_cm_id *id);
VERBENA_EXPORT void verbena_cm_set_owner(struct verbena_cm_id *id, void *owner);
/* From now on the id's events go to this user's callback. An event that is being told meanwhile may
 * still go to the other. */
VERBENA_EXPORT void verbena_cm_migrate(struct verbena_cm_id *id, struct verbena_cm *cm);

/*
 * Takes a service of the address for this id, among all processes: what listening needs, and what
 * makes a source port one's own. addr: 0.0.0.0 (as ::ffff:0.0.0.0): any IPv4 address, ::: any IPv6
 * one, NULL: any of both. An address and an any that covers it exclude each other. One descriptor.
 * -EADDRINUSE: somebody has it; -EINVAL: the id has one.
 */
VERBENA_EXPORT int verbena_cm_bind(struct verbena_cm_id *id, uint64_t service_id,
                                   const struct net_addr *addr);
/* The same with one that is free of base + first .. base + last. */
VERBENA_EXPORT int verbena_cm_bind_free(struct verbena_cm_id *id, uint64_t base, uint32_t first,
                                        uint32_t last, const struct net_addr *addr,
                                        uint64_t *service_id);
VERBENA_EXPORT void verbena_cm_unbind(struct verbena_cm_id *id);
/* REQs and SIDR_REQs of the bound service make events. So many may wait for verbena_cm_attend or
 * their answer, more are dropped and come again after a while; 0: as many as possible. Again:
 * -EINVAL. */
VERBENA_EXPORT int verbena_cm_listen(struct verbena_cm_id *id, unsigned backlog);
/* Passive, after REQ or SIDR_REQ: the program knows of it; it counts in the backlog no longer. */
VERBENA_EXPORT void verbena_cm_attend(struct verbena_cm_id *id);
/* No more; the service stays bound. REQs that wait for their accept stay, too. */
VERBENA_EXPORT void verbena_cm_unlisten(struct verbena_cm_id *id);

/* Sends a REQ. An id whose last try has ended (REJ, UNREACHABLE, TIMEWAIT_EXIT) may try again.
 * -ENOMEM: too many connections. */
VERBENA_EXPORT int verbena_cm_connect(struct verbena_cm_id *id, const struct verbena_cm_connect *c);
/* Passive, after REQ: sends a REP. A first packet for the QP of this number counts as RTU
 * while it is in RTR. */
VERBENA_EXPORT int verbena_cm_accept(struct verbena_cm_id *id,
                                     const struct verbena_cm_param *param);
/* Active, after REP: sends the RTU. */
VERBENA_EXPORT int verbena_cm_ready(struct verbena_cm_id *id,
                                    const struct verbena_cm_private *private_data);
/* Passive, after REQ or accept; active, after REP. The end; nothing is told any more. */
VERBENA_EXPORT int verbena_cm_reject(struct verbena_cm_id *id, unsigned reason,
                                     const struct verbena_cm_private *info,
                                     const struct verbena_cm_private *private_data);
/* After REQ or REP: the peer shall wait 4.096 us << service_timeout (5 bits) for the answer. */
VERBENA_EXPORT int verbena_cm_mra(struct verbena_cm_id *id, uint8_t service_timeout,
                                  const struct verbena_cm_private *private_data);
/* Passive, after accept: the caller knows that the peer is there (a packet came). 0, also when it
 * was established before. */
VERBENA_EXPORT int verbena_cm_establish(struct verbena_cm_id *id);
/* Sends a DREQ, or after DREQ the DREP. 0, also when the connection has come to its end before. */
VERBENA_EXPORT int verbena_cm_disconnect(struct verbena_cm_id *id,
                                         const struct verbena_cm_private *private_data);

/* Sends a SIDR_REQ; of param only private_data counts. */
VERBENA_EXPORT int verbena_cm_sidr_connect(struct verbena_cm_id *id,
                                           const struct verbena_cm_connect *c);
/* After SIDR_REQ. status: 0 (qpn, qkey and private_data count), 2: rejected, 3: no QP. The end. */
VERBENA_EXPORT int verbena_cm_sidr_reply(struct verbena_cm_id *id, unsigned status,
                                         const struct verbena_cm_param *param);

#endif
