/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect_rig.c: see connect_rig.h.
 */
#define _GNU_SOURCE
#include "connect_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MEMORY_BYTES = 1 << 16 };

const struct net_addr rig_v4 = {
    {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}
};
const struct net_addr rig_v6 = {{[15] = 1}};

struct greeting {
    uint64_t addr;
    uint32_t rkey;
};

static void fail(const char *what, int value)
{
    fprintf(stderr, "connect_rig: %s (%d)\n", what, value);
    abort();
}

static void must(int err, const char *what)
{
    if (err != 0)
        fail(what, err);
}

static int on_event(const struct verbena_cm_event *e)
{
    bool new = e->type == VERBENA_CM_REQ || e->type == VERBENA_CM_SIDR_REQ;
    struct rig *r = new ? e->listen_owner : e->owner;
    pthread_mutex_lock(&r->lock);
    int refuse = new ? r->refuse : 0;
    if (refuse == 0) {
        if (r->events == RIG_EVENTS)
            fail("too many events", 0);
        struct rig_event *q = &r->event[r->events++];
        *q = (struct rig_event){.e = *e};
        if (e->param.private_data.bytes != 0)
            memcpy(q->data, e->param.private_data.data, e->param.private_data.bytes);
        if (e->info_bytes != 0)
            memcpy(q->info, e->info, e->info_bytes);
        if (new)
            verbena_cm_set_owner(e->id, r);
        pthread_cond_broadcast(&r->there);
    }
    pthread_mutex_unlock(&r->lock);
    return refuse;
}

void rig_open(struct rig *r)
{
    static const struct verbena_cm_callbacks cb = {on_event};
    memset(r, 0, sizeof(*r));
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->there, NULL);
    r->event = calloc(RIG_EVENTS, sizeof(*r->event));
    must(r->event == NULL ? -ENOMEM : 0, "memory");
    must(verbena_cm_open(&cb, &r->cm), "cm open");
}

void rig_close(struct rig *r)
{
    verbena_cm_close(r->cm);
    pthread_cond_destroy(&r->there);
    pthread_mutex_destroy(&r->lock);
    free(r->event);
}

/* Of the event, as rig_wait is asked. */
static bool concerns(const struct rig_event *q, const struct verbena_cm_id *id)
{
    bool new = q->e.type == VERBENA_CM_REQ || q->e.type == VERBENA_CM_SIDR_REQ;
    return (new ? q->e.listen : q->e.id) == id && q->e.type != VERBENA_CM_MRA;
}

static int find(const struct rig *r, const struct verbena_cm_id *id)
{
    for (unsigned i = 0; i < r->events; i++) {
        if (concerns(&r->event[i], id))
            return (int)i;
    }
    return -1;
}

static void take(struct rig *r, int at)
{
    r->events--;
    memmove(r->event + at, r->event + at + 1, (r->events - (unsigned)at) * sizeof(*r->event));
}

void rig_wait(struct rig *r, struct verbena_cm_id *id, enum verbena_cm_event_type type,
              struct rig_event *out)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += RIG_WAIT_S;
    pthread_mutex_lock(&r->lock);
    int at, err = 0;
    while ((at = find(r, id)) < 0 && err == 0)
        err = pthread_cond_timedwait(&r->there, &r->lock, &end);
    if (at < 0)
        fail("nothing came; expected", (int)type);
    *out = r->event[at];
    take(r, at);
    pthread_mutex_unlock(&r->lock);
    out->e.param.private_data.data = out->data;
    out->e.info = out->info;
    if (out->e.type != type) {
        fprintf(stderr, "connect_rig: expected %d, status %d came with\n", (int)type,
                out->e.status);
        fail("another event", (int)out->e.type);
    }
}

bool rig_pending(struct rig *r, struct verbena_cm_id *id)
{
    pthread_mutex_lock(&r->lock);
    bool found = find(r, id) >= 0;
    pthread_mutex_unlock(&r->lock);
    return found;
}

struct verbena_cm_id *rig_id(struct rig *r)
{
    struct verbena_cm_id *id;
    must(verbena_cm_id_create(r->cm, r, &id), "id");
    return id;
}

struct verbena_cm_id *rig_listen(struct rig *r, uint64_t service_id, const struct net_addr *addr)
{
    struct verbena_cm_id *id = rig_id(r);
    must(verbena_cm_bind(id, service_id, addr), "bind");
    must(verbena_cm_listen(id, 0), "listen");
    return id;
}

void rig_request(const struct net_addr *addr, uint64_t service_id, struct verbena_cm_connect *out)
{
    *out = (struct verbena_cm_connect){
        .path = {.local = *addr,   .remote = *addr, .hop_limit = 64},
        .service_id = service_id,
        .src_port = 4000,
        .qp_type = QP_TYPE_RC,
        .path_mtu_bytes = 1024,
        .ack_timeout = 8,
        .response_timeout = 17, /* 0.5 s */
        .max_retries = -1,
        .param = { .qpn = 0x123456,
                 .psn = 0x654321,
                 .responder_resources = 5,
                 .initiator_depth = 4,
                 .retry_count = 7,
                 .rnr_retry_count = 6,
                 .flow_control = true},
    };
}

void rig_side_open(struct rig_side *s, struct rig *r)
{
    memset(s, 0, sizeof(*s));
    s->rig = r;
    endpoint_open(&s->e, "vb_lo", MEMORY_BYTES);
}

void rig_destroy(struct rig *r, struct verbena_cm_id *id)
{
    int at;
    verbena_cm_id_destroy(id);
    /* Its memory may be that of the next one. */
    pthread_mutex_lock(&r->lock);
    while ((at = find(r, id)) >= 0)
        take(r, at);
    pthread_mutex_unlock(&r->lock);
}

void rig_side_close(struct rig_side *s)
{
    if (s->id != NULL)
        rig_destroy(s->rig, s->id);
    endpoint_close(&s->e);
}

static void greet(struct rig_side *s, unsigned gid_index, struct verbena_cm_param *p,
                  struct greeting *g)
{
    struct endpoint_name own;
    endpoint_name(&s->e, gid_index, &own);
    *g = (struct greeting){own.addr, own.rkey};
    p->qpn = own.qpn;
    p->psn = own.psn;
    p->private_data = (struct verbena_cm_private){g, sizeof(*g)};
}

static void meet(struct rig_side *s, unsigned gid_index, const struct rig_event *q)
{
    struct greeting g;
    memcpy(&g, q->data, sizeof(g));
    s->peer = (struct endpoint_name){.qpn = q->e.param.qpn,
                                     .psn = q->e.param.psn,
                                     .rkey = g.rkey,
                                     .addr = g.addr,
                                     .gid = q->e.path.remote};
    if (s->only_receives)
        endpoint_receive(&s->e, gid_index, &s->peer, 1024);
    else
        endpoint_connect(&s->e, gid_index, &s->peer, 1024);
}

void rig_connect(struct rig_side *s, unsigned gid_index, uint64_t service_id)
{
    struct verbena_cm_connect c;
    struct greeting g;
    rig_request(gid_index == 0 ? &rig_v4 : &rig_v6, service_id, &c);
    if (s->rig->response_timeout != 0)
        c.response_timeout = s->rig->response_timeout;
    greet(s, gid_index, &c.param, &g);
    if (s->id == NULL)
        s->id = rig_id(s->rig);
    must(verbena_cm_connect(s->id, &c), "connect");
}

void rig_ready(struct rig_side *s, unsigned gid_index)
{
    struct rig_event q;
    rig_wait(s->rig, s->id, VERBENA_CM_REP, &q);
    meet(s, gid_index, &q);
    must(verbena_cm_ready(s->id, NULL), "ready");
}

void rig_accept(struct rig_side *s, struct verbena_cm_id *listener, unsigned gid_index)
{
    struct rig_event q;
    struct greeting g;
    struct verbena_cm_param p = {
        .responder_resources = 3, .initiator_depth = 2, .rnr_retry_count = 7};
    rig_wait(s->rig, listener, VERBENA_CM_REQ, &q);
    s->id = q.e.id;
    meet(s, gid_index, &q);
    greet(s, gid_index, &p, &g);
    must(verbena_cm_accept(s->id, &p), "accept");
}
