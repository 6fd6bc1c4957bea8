/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_priv.h: what the files of this floor share: an id with its state, timer and last message, and
 * the tables that find it. cm.c owns ids, tables, timers, events and output; cm_call.c what the
 * owner asks for, cm_input.c what the peer says; cm_route.c needs none of it.
 */
#ifndef CM_CM_PRIV_H
#define CM_CM_PRIV_H

#include <string.h>
#include <sys/queue.h>

#include "base/heap.h"
#include "base/rng.h"
#include "cm/cm.h"

enum {
    /* Undelivered events of one id: MRA, REP, ESTABLISHED, DREQ or DISCONNECTED, TIMEWAIT_EXIT. The
     * other ends come before ESTABLISHED. */
    CM_ID_EVENTS = 5,
    CM_OUT_SLOTS = 256,
    /* Times that a peer asks for are kept within these: 1 ms to 17 s, MRA up to 69 s. */
    CM_MIN_TIME_CODE = 8,
    CM_MAX_TIME_CODE = 22,
    CM_MAX_MRA_CODE = 24,
    /* Service timeouts of the MRAs that go out by themselves: the first ask for 1.1 s. Until the
     * end of what it is given the peer does not repeat itself, and would wait as long for an answer
     * that got lost. Each further one asks for twice as much, and the last that its retries allow
     * for 69 s. */
    CM_AUTO_MRA_FIRST_CODE = 18,
    CM_SIDR_LINGER_CODE = 21,
};

struct cm_slot {
    TAILQ_ENTRY(cm_slot) link;
    struct cm_id *id;
    enum cm_event_type type;
    unsigned step;
    bool used, has_msg;
    uint8_t mad[MAD_BYTES];
};

struct cm_id {
    struct cm *cm;
    enum cm_state state;
    bool orphan; /* the caller has given it back */
    bool unseen; /* the caller has not got its first event yet (passive) */
    bool sidr;
    bool active;
    bool xrc;       /* an extended reliable connection */
    bool alternate; /* its REQ offered an alternate path */
    void *owner;
    struct cm_id *listener; /* passive, before the answer */
    struct cm_path path;
    uint32_t local_comm_id, remote_comm_id; /* SIDR: the request id; whoever chose it is local */
    uint32_t local_qpn, remote_qpn;
    uint64_t local_ca_guid; /* that we told the peer in our REQ or REP */
    uint64_t tid;           /* of the exchange under way */
    uint64_t drep_tid;      /* of the DREQ that we have answered, or have to */
    bool drep_sent;
    bool drep_owed;      /* sent once the caller wants to disconnect, too, or the peer asks again */
    uint64_t service_id; /* LISTEN, SIDR */
    uint64_t timeout_ns; /* between repetitions of what we send */
    uint64_t linger_ns;  /* how long the peer may still repeat what was rejected */
    uint64_t timewait_ns;
    uint8_t max_retries, tries_left;
    uint8_t asked; /* MRAs that went out by themselves */
    /* The last message that may have to be sent again, by timer or as the answer to a
     * repetition. */
    unsigned step; /* its attribute */
    uint8_t mad[MAD_BYTES];
    bool waits; /* in cm.waiting: it found the output full */
    TAILQ_ENTRY(cm_id) waiting;
    struct heap_node timer;
    struct cm_slot slot[CM_ID_EVENTS];
    struct cm_id *next_local, *next_peer, *next_qpn; /* chains of the tables */
    bool in_peer, in_qpn;
    /* LISTEN */
    enum cm_bind bind;
    unsigned backlog, waiting_children;
    TAILQ_HEAD(, cm_id) children;
    /* Of a listener's children; free, lingering or listening ids. */
    TAILQ_ENTRY(cm_id) link;
    bool lingers;
};
TAILQ_HEAD(cm_id_list, cm_id);

struct cm_out {
    struct cm_path path;
    uint8_t mad[MAD_BYTES];
};

struct cm {
    struct cm_config config;
    struct rng rng;
    uint64_t hash_key;
    uint32_t tid_high;
    struct cm_id *ids; /* max_ids; those from `fresh` on were never used */
    uint32_t fresh, in_use;
    uint32_t mask; /* buckets - 1 */
    struct cm_id **by_local, **by_peer, **by_qpn;
    struct cm_id_list unused, listeners;
    struct cm_id_list lingering; /* given back, kept for repetitions: oldest first */
    struct cm_id_list waiting;
    struct heap timers;
    TAILQ_HEAD(, cm_slot) events;
    struct cm_out *out;
    unsigned out_first, out_count;
    uint64_t counters[CM_COUNTERS];
};

/* 4.096 us << code, code kept between CM_MIN_TIME_CODE and max_code. */
uint64_t cm_time_ns(uint8_t code, uint8_t max_code);

/* A new id, in no table but by_local; NULL: all in use. Takes the oldest lingering one if need be.
 */
struct cm_id *cm_id_new(struct cm *cm, const struct cm_path *path, void *owner);
/* Into and out of the tables by (peer's address, its communication id or QPN). */
void cm_id_set_peer(struct cm_id *id, uint32_t remote_comm_id);
void cm_id_set_qpn(struct cm_id *id, uint32_t remote_qpn);
void cm_id_unset_qpn(struct cm_id *id);
struct cm_id *cm_find_local(const struct cm *cm, uint32_t local_comm_id);
struct cm_id *cm_find_peer(const struct cm *cm, const struct net_addr *remote, uint32_t id,
                           bool sidr);
struct cm_id *cm_find_qpn(const struct cm *cm, const struct net_addr *remote, uint32_t qpn);
struct cm_id *cm_find_listener(const struct cm *cm, uint64_t service_id,
                               const struct net_addr *addr);
/* No longer counted in its listener's backlog. */
void cm_id_leave_listener(struct cm_id *id);

/* For the owner, unless he has given the id back. mad: what came, or NULL. */
void cm_id_event(struct cm_id *id, enum cm_event_type type, unsigned step, const uint8_t *mad);
void cm_id_drop_events(struct cm_id *id);

/* Puts a message on its way; lost when the queue is full. */
void cm_emit(struct cm *cm, const struct cm_path *path, const struct cm_msg *m);
void cm_emit_mad(struct cm *cm, const struct cm_path *path, const uint8_t mad[MAD_BYTES]);
/* The same for a message of an id that is kept: by timer (retries: so often again) or, with
 * CM_NO_TIMER, only when the peer repeats what it answers. */
enum { CM_NO_TIMER = -1 };
void cm_id_send(struct cm_id *id, uint64_t now_ns, const struct cm_msg *m, int retries);
/* The kept message again. */
void cm_id_resend(struct cm_id *id);

/* Ways to an end. */
void cm_id_finish(struct cm_id *id); /* FINISHED, or free when given back */
void cm_id_timewait(struct cm_id *id, uint64_t now_ns);
/* Sends a REJ and keeps it for repetitions. */
void cm_id_send_rej(struct cm_id *id, uint64_t now_ns, enum cm_rej_reason reason,
                    struct cm_private info, struct cm_private data);
/* The answer to the peer's DREQ, if it still has none. */
void cm_id_pay_drep(struct cm_id *id);
void cm_id_send_dreq(struct cm_id *id, uint64_t now_ns, struct cm_private data);
/* Nobody answered our REQ, or we no longer want to know: the peer may forget it. */
void cm_id_send_timeout(struct cm_id *id);
void cm_id_linger(struct cm_id *id, uint64_t now_ns, enum cm_state state, uint64_t linger_ns);
/* Its timer is due. */
void cm_id_expire(struct cm_id *id, uint64_t now_ns);

static inline bool cm_addr_equal(const struct net_addr *a, const struct net_addr *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

static inline void cm_count_one(struct cm *cm, enum cm_counter c)
{
    cm->counters[c]++;
}

/* A message of an id: attribute, TID and both communication ids set. */
static inline struct cm_msg cm_id_msg(const struct cm_id *id, unsigned attribute)
{
    struct cm_msg m = {
        .header = {.attribute = (uint16_t)attribute, .tid = id->tid}
    };
    m.mra.local_comm_id = id->local_comm_id; /* the same place in all that have both */
    m.mra.remote_comm_id = id->remote_comm_id;
    return m;
}

static inline void cm_private_copy(uint8_t *to, struct cm_private data)
{
    if (data.data != NULL)
        memcpy(to, data.data, data.bytes);
}

#endif
