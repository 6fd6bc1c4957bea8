/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect_priv.h: connection management as the other files of the live device know it: the one
 * communication manager (struct cm) of the process, fed from QP 1, and what keeps it going.
 *
 * The cm and all ids are under the events lock, for most of what it does ends in callbacks. What
 * concerns the port (service names, the list for the case of death) needs the rx lock as well,
 * which comes first.
 */
#ifndef HOST_CONNECT_PRIV_H
#define HOST_CONNECT_PRIV_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "cm/cm.h"
#include "host/connect.h"
#include "port/port_udp.h"

struct host;
struct host_object;

/* A service name that this process has claimed. It stays while connections made through it wait for
 * their RTU, as their REQ may come again. */
struct connect_service {
    uint64_t service_id;
    enum cm_bind bind;
    struct net_addr addr;
    struct udp_service *claim;    /* NULL: given up before its time, for another */
    struct verbena_cm_id *holder; /* NULL: unbound */
    unsigned connections;         /* that wait */
    TAILQ_ENTRY(connect_service) link;
};

TAILQ_HEAD(connect_id_list, verbena_cm_id);

struct connect {
    struct cm *cm;             /* NULL: nobody has used it; once made it stays */
    unsigned ids;              /* of callers */
    bool mads_queued;          /* since somebody asked */
    struct cm_sink sink;       /* to QP 1 */
    struct port_deaths deaths; /* called with rx held */
    TAILQ_HEAD(, connect_service) services;
    /* Ids whose peers must hear when this process goes: of callers; given back before the peer had
     * answered the DREQ; and those that no longer are. */
    struct connect_id_list known, leaving, over;
    /* As the last who used the cm left it; read without a lock. */
    _Atomic uint64_t deadline_ns;
    _Atomic bool has_event;
    _Atomic bool has_output; /* QP 1 had no room */
    _Atomic bool tidy_due;
    _Atomic uint64_t count[CM_COUNTERS];
};

struct verbena_cm {
    struct host *host;
    struct verbena_cm_callbacks callbacks;
    unsigned ids;
};

enum { CONNECT_V4 = 1 << 0, CONNECT_V6 = 1 << 1 };

struct verbena_cm_id {
    struct host *host;
    struct verbena_cm *user; /* NULL: given back */
    void *owner;
    struct cm_id *cm_id;            /* NULL: neither listens nor connects */
    struct connect_service *bound;  /* its own */
    struct connect_service *served; /* passive: the one it came by, while that must stay */
    bool connected;                 /* was established once */
    struct host_object *qp;         /* passive: whose first packet counts as RTU */
    struct connect_id_list *list;   /* that it is in, or NULL */
    TAILQ_ENTRY(verbena_cm_id) link;
    int note;         /* in the port's list; -1: not there */
    unsigned expects; /* CONNECT_V4, _V6: what the port watches over for it */
};

enum { CONNECT_HOP_LIMIT = 64 }; /* of those who name none */

static inline struct nic_path connect_path_out(const struct cm_path *p)
{
    return (struct nic_path){.local = p->local,
                             .remote = p->remote,
                             .scope_id = p->scope_id,
                             .traffic_class = p->traffic_class,
                             .hop_limit = p->hop_limit,
                             .flow_label = p->flow_label};
}

static inline struct cm_path connect_path_in(const struct nic_path *p)
{
    return (struct cm_path){.local = p->local,
                            .remote = p->remote,
                            .scope_id = p->scope_id,
                            .flow_label = p->flow_label & 0xfffff,
                            .traffic_class = p->traffic_class,
                            .hop_limit = p->hop_limit != 0 ? p->hop_limit : CONNECT_HOP_LIMIT};
}

/* connect_event.c */
void connect_init(struct host *h);
void connect_fini(struct host *h);
/* Is there anything for connect_serve, as far as can be seen without a lock? */
bool connect_work(const struct host *h);
/* With events held: takes some MADs, tells the time, calls back, answers. True: QP 1 has to send
 * now. */
bool connect_serve(struct host *h);
static inline uint64_t connect_deadline(const struct connect *c)
{
    return atomic_load_explicit(&c->deadline_ns, memory_order_relaxed);
}
/* With events held: a QP got its first packet; goes away. */
void connect_established(struct host *h, struct host_object *qp);
void connect_forget_qp(struct host_object *qp);
/* After the cm was used, with events held. */
void connect_settle(struct host *h);

/* The connection needs its service and its QP no longer, or the end has come. */
void connect_ease(struct verbena_cm_id *id);
struct verbena_cm_id *connect_id_new(struct verbena_cm *user, void *owner);
void connect_id_free(struct verbena_cm_id *id);
/* Into another list, or none. */
void connect_id_move(struct verbena_cm_id *id, struct connect_id_list *list);
/* What the port shall watch over for this id from now on. */
void connect_expect(struct verbena_cm_id *id, unsigned versions);

/* connect.c */
/* Gives up what nobody needs any more. No lock is held. */
void connect_tidy(struct host *h);
/* The process goes: DREQs to all peers, without waiting for what they say. No lock is held. */
void connect_farewell(struct host *h);

#endif
