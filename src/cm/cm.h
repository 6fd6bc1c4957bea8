/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm.h: the InfiniBand communication manager of one process: MADs of QP 1 in, MADs, events and the
 * next deadline out. Sans-IO as the NIC: no clock, sockets, threads or printing; all memory is
 * taken by cm_create.
 *
 * Threads: none here. The caller lets one call in at a time, cm_route and cm_refuse excepted.
 *
 * Life of a connection. Active: cm_connect -> REP event -> (QP to RTR, RTS) cm_ready -> ESTABLISHED
 * event. Passive: cm_listen -> REQ event with a new id -> (QP to RTR) cm_reply -> ESTABLISHED event
 * when the RTU comes, or cm_establish was called. Instead of any of these: REJ or UNREACHABLE,
 * after which the id is finished. Then cm_disconnect -> DISCONNECTED, or DREQ when the peer did;
 * then TIMEWAIT_EXIT. Every id that a call or an event gave must be given back by cm_id_destroy, in
 * whatever state; what the peer must hear then is still said, without the caller.
 *
 * Datagrams: cm_sidr_connect -> SIDR_REP event or UNREACHABLE; cm_listen -> SIDR_REQ event ->
 * cm_sidr_reply.
 */
#ifndef CM_CM_H
#define CM_CM_H

#include "verbena/types.h"
#include "wire/cm_ip.h"
#include "wire/cm_msg.h"

enum {
    /* A communication id, as a QPN, begins with the 10-bit slot of the process that it belongs to;
     * the other bits are unpredictable. */
    CM_SLOT_BITS = 10,
    CM_SLOT_SHIFT = 32 - CM_SLOT_BITS,
    CM_MAX_IDS = 16384, /* of one process, TIMEWAIT included: default and upper limit */
    CM_MAX_BACKLOG = 1024,
    CM_DEFAULT_RESPONSE_TIMEOUT = 20, /* codes and counts as the kernel's rdma_cm has them */
    CM_DEFAULT_MAX_RETRIES = 15,
};

struct cm;
struct cm_id; /* a listener, or one side of a connection or of a SIDR exchange */

struct cm_config {
    uint64_t seed;    /* from the operating system's randomness when live */
    uint32_t slot;    /* 0..1023: the process's, as in its QPNs */
    uint64_t ca_guid; /* of the device; not 0 */
    uint32_t max_ids; /* 0: CM_MAX_IDS; listeners count too */
};

/* Where a MAD goes to or came from. */
struct cm_path {
    struct net_addr local, remote; /* our GID and the peer's */
    uint32_t scope_id;             /* interface index of a link-local address, else 0 */
    uint32_t flow_label;           /* 20 bits; names the UDP source port of the QP's packets */
    uint8_t traffic_class, hop_limit;
};

/* Where cm_output puts MADs: UD SEND ONLY from QP 1 to QP 1, Q_Key QKEY_GSI, P_Key 0xffff. What it
 * cannot send is lost, as on a wire. */
struct cm_sink {
    void (*mad)(struct cm_sink *sink, const struct cm_path *path, const uint8_t mad[MAD_BYTES]);
};

int cm_create(const struct cm_config *config, struct cm **out); /* 0, -EINVAL or -ENOMEM */
/* Forgets everything; nothing is sent. */
void cm_destroy(struct cm *cm);

/*
 * A MAD that came to our QP 1 (n bytes; anything but 256 is counted and dropped). path: local is
 * the address that it came to, remote its sender; flow_label, traffic_class and hop_limit are what
 * an answer shall have.
 */
void cm_input(struct cm *cm, uint64_t now_ns, const struct cm_path *path, const uint8_t *mad,
              size_t n);
/* Hands out what is to be sent. Call it after each call that may have made something to send:
 * all but cm_event_next, cm_deadline and the lookers below. True: there is more. */
bool cm_output(struct cm *cm, struct cm_sink *sink, unsigned max_mads);
bool cm_has_output(const struct cm *cm);
/* Earliest time at which cm_advance has work, UINT64_MAX when never. */
uint64_t cm_deadline(const struct cm *cm);
void cm_advance(struct cm *cm, uint64_t now_ns);

enum cm_event_type {
    CM_EVENT_REQ,           /* passive: a new id; msg.req */
    CM_EVENT_REP,           /* active: msg.rep. Answer: cm_ready or cm_reject */
    CM_EVENT_ESTABLISHED,   /* passive: msg.rtu when has_msg; active: at cm_ready */
    CM_EVENT_REJ,           /* either, before it was established: msg.rej. The end. */
    CM_EVENT_UNREACHABLE,   /* nobody answered; step: what was sent in vain. The end. */
    CM_EVENT_MRA,           /* the peer needs time; msg.mra. For information only */
    CM_EVENT_DREQ,          /* the peer disconnected; msg.dreq. TIMEWAIT. cm_disconnect answers */
    CM_EVENT_DISCONNECTED,  /* our DREQ was answered (msg.drep when has_msg) or went in vain (step
                               CM_DREQ), or a REJ (msg.rej: has_msg and its attribute) ended a
                               connection that was established. TIMEWAIT */
    CM_EVENT_TIMEWAIT_EXIT, /* the QP's number may be used again. The end. */
    CM_EVENT_SIDR_REQ,      /* passive: a new id; msg.sidr_req. Answer: cm_sidr_reply */
    CM_EVENT_SIDR_REP,      /* active: msg.sidr_rep, success or not. The end. */
    CM_EVENT_COUNT
};
const char *cm_event_name(enum cm_event_type type);

struct cm_event {
    enum cm_event_type type;
    struct cm_id *id;
    void *owner;          /* of the id; of REQ and SIDR_REQ: NULL */
    struct cm_id *listen; /* REQ, SIDR_REQ: who listened */
    void *listen_owner;
    unsigned step; /* UNREACHABLE, DISCONNECTED: enum cm_attribute */
    bool has_msg;
    bool xrc;            /* the id's connection is an extended one */
    struct cm_path path; /* the id's */
    struct cm_msg msg;
    struct cm_ip ip; /* REQ, SIDR_REQ of an IP service: the addressing header, else zeros */
};

/* Copies out the oldest event; false: none. An id has no events after its cm_id_destroy. */
bool cm_event_next(struct cm *cm, struct cm_event *out);
bool cm_has_event(const struct cm *cm);

/*
 * Private data: (NULL, 0) for none. All calls that take it: -EINVAL when it is longer than its
 * message has room. In REQ and SIDR_REQ of an IP service the caller puts the addressing header
 * before it (cm_ip_build).
 */
struct cm_private {
    const void *data;
    size_t bytes;
};

/* Whom a listener serves: one address, or any of a family. */
enum cm_bind {
    CM_BIND_ADDR,
    CM_BIND_ANY_V4,
    CM_BIND_ANY_V6,
    CM_BIND_ANY, /* both families */
};
struct cm_service {
    uint64_t service_id;
    enum cm_bind bind;
    struct net_addr addr; /* CM_BIND_ADDR */
};

/*
 * REQs and SIDR_REQs of this service make events from now on. An exact address goes before any of a
 * family, that before any. backlog: so many of them may wait for cm_attend (or their answer); more
 * are dropped in silence, so that their senders try again. 0 or over CM_MAX_BACKLOG:
 * CM_MAX_BACKLOG.
 * 0, -EADDRINUSE (same service and bind) or -ENOMEM (all ids in use).
 */
int cm_listen(struct cm *cm, const struct cm_service *service, unsigned backlog, void *owner,
              struct cm_id **out);

/*
 * Sends a REQ. Filled in here: local_comm_id, local_ca_guid (when 0), both GIDs, LIDs, flow label,
 * traffic class and hop limit of the primary path; all else is the caller's: service_id, local_qpn,
 * starting_psn, transport, pkey, path_mtu, retry counts, timeouts, primary.local_ack_timeout.
 * req->private_data is ignored. A REQ is sent 1 + max_cm_retries times,
 * 4.096 us << remote_cm_response_timeout apart. Transport: RC, UC or XRC; local_qpn of an XRC is
 * the initiator's, and what only a responder has (responder_resources, retry counts, srq) goes as
 * 0, as the kernel sends it.
 * 0, -EINVAL (private data, or a field that cannot be) or -ENOMEM (all ids in use).
 */
int cm_connect(struct cm *cm, uint64_t now_ns, const struct cm_path *path, const struct cm_req *req,
               struct cm_private data, void *owner, struct cm_id **out);
/* Passive, after REQ or SIDR_REQ: whoever shall answer has got to know of it. Not counted in its
 * listener's backlog any more. In other states nothing happens. */
void cm_attend(struct cm_id *id);
/* All below: -EINVAL in a state that has no such answer; nothing has changed then. */

/* Passive, after REQ: sends a REP; filled in: both communication ids, local_ca_guid (when 0). Of an
 * XRC local_qpn is the target's and goes where EECNs do; srq is set, and what only an initiator has
 * (initiator_depth, flow_control) goes as 0. */
int cm_reply(struct cm *cm, uint64_t now_ns, struct cm_id *id, const struct cm_rep *rep,
             struct cm_private data);
/* Active, after REP: sends the RTU; ESTABLISHED. */
int cm_ready(struct cm *cm, uint64_t now_ns, struct cm_id *id, struct cm_private data);
/* Passive, after REQ or cm_reply; active, after REP: sends a REJ. The id is finished. */
int cm_reject(struct cm *cm, uint64_t now_ns, struct cm_id *id, enum cm_rej_reason reason,
              struct cm_private info, struct cm_private data);
/* Passive, after REQ; active, after REP: asks the peer to wait 4.096 us << service_timeout. Without
 * it, one goes out by itself when the peer repeats its message. */
int cm_mra(struct cm *cm, uint64_t now_ns, struct cm_id *id, uint8_t service_timeout,
           struct cm_private data);
/* Passive, after cm_reply: the QP got a packet before the RTU came (EVENT_COMM_EST). 0, also when
 * it was established already. */
int cm_establish(struct cm *cm, uint64_t now_ns, struct cm_id *id);
/* Established: sends a DREQ. 0, also when the peer's DREQ has come first: that is answered. */
int cm_disconnect(struct cm *cm, uint64_t now_ns, struct cm_id *id, struct cm_private data);

/* Sends a SIDR_REQ; filled in: request_id. timeout, max_retries: as those of a REQ. */
int cm_sidr_connect(struct cm *cm, uint64_t now_ns, const struct cm_path *path,
                    const struct cm_sidr_req *req, uint8_t response_timeout, uint8_t max_retries,
                    struct cm_private data, void *owner, struct cm_id **out);
/* After SIDR_REQ: sends the SIDR_REP, success or not; filled in: request_id, service_id. The id is
 * finished; repetitions are answered without the caller. */
int cm_sidr_reply(struct cm *cm, uint64_t now_ns, struct cm_id *id, const struct cm_sidr_rep *rep,
                  struct cm_private data);

/* Before the process ends: sends once more the answers that a peer could ask for again (DREP, REJ,
 * SIDR_REP), for soon nobody is there to be asked. */
void cm_say_again(struct cm *cm);

/*
 * Gives an id back, in any state; it is invalid from now on. A connection under way is rejected
 * (active before REP: REJ timeout; else consumer defined), an established one gets a DREQ, whose
 * repetitions and TIMEWAIT run on unseen. A listener takes along its connections of which the
 * caller has not seen the REQ event.
 */
void cm_id_destroy(struct cm *cm, uint64_t now_ns, struct cm_id *id);

void cm_set_owner(struct cm_id *id, void *owner);
void *cm_owner(const struct cm_id *id);

enum cm_state {
    CM_STATE_FREE,
    CM_STATE_LISTEN,
    CM_STATE_REQ_SENT, /* active */
    CM_STATE_REP_RCVD, /* active */
    CM_STATE_REQ_RCVD, /* passive */
    CM_STATE_REP_SENT, /* passive */
    CM_STATE_ESTABLISHED,
    CM_STATE_DREQ_SENT,
    CM_STATE_TIMEWAIT,
    CM_STATE_REJ_SENT,      /* finished; answers repetitions for a while */
    CM_STATE_SIDR_REQ_SENT, /* active */
    CM_STATE_SIDR_REQ_RCVD, /* passive */
    CM_STATE_SIDR_REP_SENT, /* finished; answers repetitions for a while */
    CM_STATE_FINISHED,
    CM_STATE_COUNT
};
const char *cm_state_name(enum cm_state state);
enum cm_state cm_id_state(const struct cm_id *id);

/* Both ends of a connection, enough to take leave of the peer for a process that has died. */
struct cm_ends {
    struct cm_path path;
    uint32_t local_comm_id, remote_comm_id; /* 0: not known */
    uint32_t local_qpn, remote_qpn;
};
void cm_id_ends(const struct cm_id *id, struct cm_ends *out);
/* The DREQ that the process of these ends would have sent. */
void cm_farewell(const struct cm_ends *ends, uint8_t mad[MAD_BYTES]);

/* Which process a MAD is for. */
enum cm_route_kind {
    CM_ROUTE_NONE,    /* not a CM message: drop it */
    CM_ROUTE_SERVICE, /* REQ, SIDR_REQ: who listens to service_id on the destination address */
    CM_ROUTE_SLOT,    /* the process with this slot */
    CM_ROUTE_ALL,     /* REJ before its sender heard from us: every process of the address; those
                         that it does not concern take no notice */
};
struct cm_route {
    enum cm_route_kind kind;
    uint64_t service_id;
    uint32_t slot;
};
void cm_route(const uint8_t *mad, size_t n, struct cm_route *out);
/* The answer to a MAD for which there is no process (no such slot, nobody listens): REQ -> REJ 8,
 * SIDR_REQ -> SIDR_REP 1, REP -> REJ 6, DREQ -> DREP, LAP -> APR 1. False: none is due. The cm
 * gives the same answers by itself for what it does not know. */
bool cm_refuse(const uint8_t *mad, size_t n, uint8_t answer[MAD_BYTES]);

enum cm_counter {
    CM_COUNT_IN,             /* MADs that came */
    CM_COUNT_OUT,            /* MADs handed to the sink */
    CM_COUNT_MALFORMED,      /* cm_msg_check said no */
    CM_COUNT_UNKNOWN_ID,     /* for an id that we do not have */
    CM_COUNT_WRONG_PEER,     /* for an id of ours, from another address */
    CM_COUNT_UNEXPECTED,     /* in a state where it means nothing */
    CM_COUNT_DUPLICATE,      /* answered again */
    CM_COUNT_RETRIES,        /* messages sent again */
    CM_COUNT_RETRY_EXCEEDED, /* messages that nobody answered */
    CM_COUNT_NO_LISTENER,
    CM_COUNT_BACKLOG_FULL,
    CM_COUNT_NO_ID,       /* REQs dropped because all ids were in use */
    CM_COUNT_STALE,       /* REQs and REPs rejected as stale */
    CM_COUNT_BAD_PRIVATE, /* addressing headers that are none, or not of this packet */
    CM_COUNT_OUTPUT_LOST, /* answers for which the queue had no room */
    CM_COUNTERS
};
const char *cm_counter_name(enum cm_counter c);
uint64_t cm_count(const struct cm *cm, enum cm_counter c);
/* Ids in use, those included that only TIMEWAIT or repetitions keep. */
unsigned cm_ids_in_use(const struct cm *cm);

#endif
