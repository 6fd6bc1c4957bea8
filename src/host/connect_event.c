/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect_event.c: what goes between the communication manager (CM) and QP 1, and the CM's events
 * as the users of this floor see them. All under the events lock.
 */
#include <errno.h>
#include <stdlib.h>

#include "host/host_priv.h"

enum { INPUT_MADS = 64 }; /* taken in before answers go out */

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), "one order")
SAME(VERBENA_CM_REQ, CM_EVENT_REQ);
SAME(VERBENA_CM_REP, CM_EVENT_REP);
SAME(VERBENA_CM_ESTABLISHED, CM_EVENT_ESTABLISHED);
SAME(VERBENA_CM_REJ, CM_EVENT_REJ);
SAME(VERBENA_CM_UNREACHABLE, CM_EVENT_UNREACHABLE);
SAME(VERBENA_CM_MRA, CM_EVENT_MRA);
SAME(VERBENA_CM_DREQ, CM_EVENT_DREQ);
SAME(VERBENA_CM_DISCONNECTED, CM_EVENT_DISCONNECTED);
SAME(VERBENA_CM_TIMEWAIT_EXIT, CM_EVENT_TIMEWAIT_EXIT);
SAME(VERBENA_CM_SIDR_REQ, CM_EVENT_SIDR_REQ);
SAME(VERBENA_CM_SIDR_REP, CM_EVENT_SIDR_REP);
SAME(VERBENA_CM_EVENTS, CM_EVENT_COUNT);
SAME(VERBENA_CM_SENT_REQ, CM_REQ);
SAME(VERBENA_CM_SENT_REP, CM_REP);
SAME(VERBENA_CM_SENT_DREQ, CM_DREQ);
SAME(VERBENA_CM_SENT_SIDR_REQ, CM_SIDR_REQ);
SAME(VERBENA_CM_REJ_TIMEOUT, CM_REJ_TIMEOUT);
SAME(VERBENA_CM_REJ_INVALID_SERVICE_ID, CM_REJ_INVALID_SERVICE_ID);
SAME(VERBENA_CM_REJ_INVALID_TRANSPORT_TYPE, CM_REJ_INVALID_TRANSPORT_TYPE);
SAME(VERBENA_CM_REJ_STALE_CONN, CM_REJ_STALE_CONN);
SAME(VERBENA_CM_REJ_CONSUMER_DEFINED, CM_REJ_CONSUMER_DEFINED);
SAME(VERBENA_CM_REJ_VENDOR_OPTION, CM_REJ_VENDOR_OPTION_NOT_SUPPORTED);
SAME(VERBENA_CM_REQ_BYTES, CM_REQ_PRIVATE_BYTES);
SAME(VERBENA_CM_REQ_IP_BYTES, CM_IP_REQ_USER_BYTES);
SAME(VERBENA_CM_REP_BYTES, CM_REP_PRIVATE_BYTES);
SAME(VERBENA_CM_REJ_BYTES, CM_REJ_PRIVATE_BYTES);
SAME(VERBENA_CM_REJ_INFO_BYTES, CM_INFO_BYTES);
SAME(VERBENA_CM_RTU_BYTES, CM_RTU_PRIVATE_BYTES);
SAME(VERBENA_CM_DREQ_BYTES, CM_DREQ_PRIVATE_BYTES);
SAME(VERBENA_CM_MRA_BYTES, CM_MRA_PRIVATE_BYTES);
SAME(VERBENA_CM_SIDR_REQ_BYTES, CM_SIDR_REQ_PRIVATE_BYTES);
SAME(VERBENA_CM_SIDR_REQ_IP_BYTES, CM_IP_SIDR_REQ_USER_BYTES);
SAME(VERBENA_CM_SIDR_REP_BYTES, CM_SIDR_REP_PRIVATE_BYTES);
SAME(VERBENA_CM_RESPONSE_TIMEOUT, CM_DEFAULT_RESPONSE_TIMEOUT);
SAME(VERBENA_CM_MAX_RETRIES, CM_DEFAULT_MAX_RETRIES);

struct verbena_cm_id *connect_id_new(struct verbena_cm *user, void *owner)
{
    struct verbena_cm_id *id = calloc(1, sizeof(*id));
    if (id == NULL)
        return NULL;
    id->host = user->host;
    id->user = user;
    id->owner = owner;
    id->note = -1;
    user->ids++;
    user->host->connect.ids++;
    return id;
}

void connect_id_free(struct verbena_cm_id *id)
{
    id->user->ids--;
    id->host->connect.ids--;
    free(id);
}

void connect_id_move(struct verbena_cm_id *id, struct connect_id_list *list)
{
    if (id->list != NULL)
        TAILQ_REMOVE(id->list, id, link);
    id->list = list;
    if (list != NULL)
        TAILQ_INSERT_TAIL(list, id, link);
}

void connect_expect(struct verbena_cm_id *id, unsigned versions)
{
    struct port *udp = id->host->udp;
    unsigned more = versions & ~id->expects, less = id->expects & ~versions;
    id->expects = versions;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        if ((more >> v6 & 1) != 0)
            port_udp_expect(udp, v6 != 0, 1);
        if ((less >> v6 & 1) != 0)
            port_udp_expect(udp, v6 != 0, -1);
    }
}

void connect_ease(struct verbena_cm_id *id)
{
    if (id->qp != NULL)
        id->qp->cm_id = NULL;
    id->qp = NULL;
    struct connect_service *s = id->served;
    id->served = NULL;
    if (s != NULL && --s->connections == 0 && s->holder == NULL)
        atomic_store(&id->host->connect.tidy_due, true);
}

static void private_is(struct verbena_cm_event *e, const uint8_t *data, size_t bytes)
{
    e->param.private_data = (struct verbena_cm_private){data, bytes};
}

/* Of a REQ or SIDR_REQ; the addressing header of an IP service is not the user's. */
static void requested(struct verbena_cm_event *e, const struct cm_event *c, uint64_t service_id,
                      const uint8_t *data, size_t bytes)
{
    e->service_id = service_id;
    e->has_ip = cm_ip_service_id_is(service_id);
    e->peer_addr = c->path.remote;
    e->local_addr = c->path.local;
    if (e->has_ip) {
        e->peer_port = c->ip.src_port;
        memcpy(e->peer_addr.b, c->ip.src, sizeof(c->ip.src));
        memcpy(e->local_addr.b, c->ip.dst, sizeof(c->ip.dst));
        data += CM_IP_HEADER_BYTES;
        bytes -= CM_IP_HEADER_BYTES;
    }
    private_is(e, data, bytes);
}

/* Of a QP that answers. */
static enum qp_type type_of(const struct cm_req *r)
{
    if (cm_msg_req_is_xrc(r))
        return QP_TYPE_XRC_TGT;
    return r->transport == CM_TRANSPORT_UC ? QP_TYPE_UC : QP_TYPE_RC;
}

static void from_req(struct verbena_cm_event *e, const struct cm_event *c)
{
    const struct cm_req *r = &c->msg.req;
    requested(e, c, r->service_id, r->private_data, sizeof(r->private_data));
    e->qp_type = type_of(r);
    e->path_mtu_bytes = (uint16_t)(128u << r->path_mtu);
    e->ack_timeout = r->primary.local_ack_timeout;
    struct verbena_cm_param *p = &e->param;
    p->qpn = r->local_qpn;
    p->psn = r->starting_psn;
    p->qkey = r->local_qkey;
    p->responder_resources = r->responder_resources;
    p->initiator_depth = r->initiator_depth;
    p->retry_count = r->retry_count;
    p->rnr_retry_count = r->rnr_retry_count;
    p->flow_control = r->flow_control;
    p->srq = r->srq;
    p->ece_vendor_id = r->ece_vendor_id;
    p->ece_options = c->msg.header.modifier;
}

static void from_rep(struct verbena_cm_event *e, const struct cm_event *c)
{
    const struct cm_rep *r = &c->msg.rep;
    private_is(e, r->private_data, sizeof(r->private_data));
    struct verbena_cm_param *p = &e->param;
    p->qpn = cm_msg_rep_qpn(r, c->xrc);
    p->psn = r->starting_psn;
    p->qkey = r->local_qkey;
    p->responder_resources = r->responder_resources;
    p->initiator_depth = r->initiator_depth;
    p->rnr_retry_count = r->rnr_retry_count;
    p->flow_control = r->flow_control;
    p->srq = r->srq;
    p->ece_vendor_id = r->ece_vendor_id;
    p->ece_options = c->msg.header.modifier;
}

static void from_sidr_rep(struct verbena_cm_event *e, const struct cm_event *c)
{
    const struct cm_sidr_rep *r = &c->msg.sidr_rep;
    private_is(e, r->private_data, sizeof(r->private_data));
    e->status = r->status;
    e->info = r->info;
    e->info_bytes = r->info_bytes;
    e->service_id = r->service_id;
    e->param.qpn = r->qpn;
    e->param.qkey = r->qkey;
    e->param.ece_vendor_id = r->ece_vendor_id;
    e->param.ece_options = c->msg.header.modifier;
}

static void from_rej(struct verbena_cm_event *e, const struct cm_rej *r)
{
    private_is(e, r->private_data, sizeof(r->private_data));
    e->status = r->reason;
    e->info = r->info;
    e->info_bytes = r->info_bytes;
}

static void from_message(struct verbena_cm_event *e, const struct cm_event *c)
{
    const struct cm_msg *m = &c->msg;
    switch (m->header.attribute) {
    case CM_REQ:
        from_req(e, c);
        break;
    case CM_REP:
        from_rep(e, c);
        break;
    case CM_REJ:
        from_rej(e, &m->rej);
        break;
    case CM_SIDR_REQ:
        requested(e, c, m->sidr_req.service_id, m->sidr_req.private_data,
                  sizeof(m->sidr_req.private_data));
        break;
    case CM_SIDR_REP:
        from_sidr_rep(e, c);
        break;
    case CM_MRA:
        private_is(e, m->mra.private_data, sizeof(m->mra.private_data));
        break;
    case CM_RTU:
        private_is(e, m->rtu.private_data, sizeof(m->rtu.private_data));
        break;
    case CM_DREQ:
        private_is(e, m->dreq.private_data, sizeof(m->dreq.private_data));
        break;
    case CM_DREP:
        private_is(e, m->drep.private_data, sizeof(m->drep.private_data));
        break;
    default:
        break;
    }
}

/* A REQ or SIDR_REQ: an id for the user of the listener. false: there is none. */
static bool adopt(struct host *h, const struct cm_event *c, struct verbena_cm_event *e)
{
    struct verbena_cm_id *listener = c->listen_owner;
    int reason = -ENOMEM;
    e->listen = listener;
    e->listen_owner = listener->owner;
    e->id = connect_id_new(listener->user, NULL);
    if (e->id != NULL) {
        e->id->cm_id = c->id;
        cm_set_owner(c->id, e->id);
        e->id->served = listener->bound;
        if (listener->bound != NULL)
            listener->bound->connections++;
        reason = listener->user->callbacks.event(e);
        if (reason == 0)
            return true;
        connect_ease(e->id);
        connect_id_free(e->id);
    }
    struct cm_private none = {0};
    uint64_t now = host_now_ns();
    if (c->type == CM_EVENT_REQ)
        (void)cm_reject(h->connect.cm, now, c->id,
                        reason > 0 ? (enum cm_rej_reason)reason : CM_REJ_NO_RESOURCES, none, none);
    cm_id_destroy(h->connect.cm, now, c->id);
    return false;
}

static void tell_one(struct host *h, const struct cm_event *c)
{
    struct verbena_cm_event e = {
        .type = (enum verbena_cm_event_type)c->type,
        .path = connect_path_out(&c->path),
    };
    if (c->type == CM_EVENT_UNREACHABLE || c->type == CM_EVENT_DISCONNECTED)
        e.status = c->type == CM_EVENT_UNREACHABLE ? (int)c->step : 0;
    if (c->has_msg)
        from_message(&e, c);
    if (c->type == CM_EVENT_REQ || c->type == CM_EVENT_SIDR_REQ) {
        (void)adopt(h, c, &e);
        return;
    }
    e.id = c->owner;
    e.owner = e.id->owner;
    if (e.id->list != NULL && c->type != CM_EVENT_MRA && c->type != CM_EVENT_ESTABLISHED) {
        connect_id_move(e.id, &h->connect.over);
        atomic_store(&h->connect.tidy_due, true);
    }
    if (e.id->user == NULL)
        return;
    if (c->type != CM_EVENT_MRA)
        connect_ease(e.id);
    e.id->connected |= c->type == CM_EVENT_ESTABLISHED;
    e.id->user->callbacks.event(&e);
}

static void tell_all(struct host *h)
{
    struct cm_event c;
    while (cm_event_next(h->connect.cm, &c))
        tell_one(h, &c);
}

/* Between the cm and QP 1. */

static struct cm_path path_of_mad(const struct nic_mad *m)
{
    return (struct cm_path){.local = m->dst,
                            .remote = m->src,
                            .scope_id = net_addr_is_link_local(&m->src) ? m->ifindex : 0,
                            .traffic_class = m->traffic_class,
                            .hop_limit = CONNECT_HOP_LIMIT};
}

static struct host *host_of(struct connect *c)
{
    return (struct host *)((char *)c - offsetof(struct host, connect));
}

/* What does not fit is lost, as on a wire; connect_settle asks first. */
static void sink_mad(struct cm_sink *sink, const struct cm_path *path, const uint8_t mad[MAD_BYTES])
{
    struct connect *c = (struct connect *)((char *)sink - offsetof(struct connect, sink));
    struct nic_path p = connect_path_out(path);
    (void)gsi_send(host_of(c)->nic, &p, GSI_QPN, mad);
    c->mads_queued = true;
}

static unsigned room(const struct host *h)
{
    const struct gsi *g = &h->nic->gsi;
    uint32_t waiting = atomic_load_explicit(&g->tx_count, memory_order_relaxed);
    return waiting < g->slots ? g->slots - waiting : 0;
}

void connect_settle(struct host *h)
{
    struct connect *c = &h->connect;
    if (c->cm == NULL)
        return;
    unsigned n;
    while (cm_has_output(c->cm) && (n = room(h)) != 0)
        (void)cm_output(c->cm, &c->sink, n);
    for (unsigned i = 0; i < CM_COUNTERS; i++)
        atomic_store_explicit(&c->count[i], cm_count(c->cm, (enum cm_counter)i),
                              memory_order_relaxed);
    atomic_store(&c->deadline_ns, cm_deadline(c->cm));
    atomic_store(&c->has_event, cm_has_event(c->cm));
    atomic_store(&c->has_output, cm_has_output(c->cm));
}

bool connect_work(const struct host *h)
{
    const struct connect *c = &h->connect;
    uint64_t deadline = connect_deadline(c);
    return gsi_waiting(&h->nic->gsi) || atomic_load_explicit(&c->has_event, memory_order_relaxed) ||
           (atomic_load_explicit(&c->has_output, memory_order_relaxed) && room(h) != 0) ||
           (deadline != UINT64_MAX && deadline <= atomic_load(&h->looked_ns));
}

static void take_mads(struct host *h)
{
    struct connect *c = &h->connect;
    struct nic_mad m;
    for (unsigned i = 0; i < INPUT_MADS && gsi_next(h->nic, &m); i++) {
        struct cm_path path = path_of_mad(&m);
        if (c->cm != NULL) {
            cm_input(c->cm, host_now_ns(), &path, m.bytes, sizeof(m.bytes));
            continue;
        }
        /* No connection can be ours, and the port knows of nobody else. */
        uint8_t answer[MAD_BYTES];
        if (cm_refuse(m.bytes, sizeof(m.bytes), answer))
            sink_mad(&c->sink, &path, answer);
    }
}

bool connect_serve(struct host *h)
{
    struct connect *c = &h->connect;
    take_mads(h);
    if (c->cm != NULL) {
        uint64_t looked = atomic_load(&h->looked_ns);
        if (cm_deadline(c->cm) <= looked)
            cm_advance(c->cm, looked);
        connect_settle(h);
        tell_all(h);
        connect_settle(h);
    }
    bool queued = c->mads_queued;
    c->mads_queued = false;
    return queued;
}

/* Another process has died; with rx held. */
static void died(struct port_deaths *d, uint32_t slot, const struct port_connection *list,
                 unsigned n)
{
    struct connect *c = (struct connect *)((char *)d - offsetof(struct connect, deaths));
    (void)slot;
    for (unsigned i = 0; i < n; i++) {
        struct cm_ends ends = {.path = connect_path_in(&list[i].path),
                               .local_comm_id = list[i].local_id,
                               .remote_comm_id = list[i].remote_id,
                               .local_qpn = list[i].local_qpn,
                               .remote_qpn = list[i].remote_qpn};
        uint8_t mad[MAD_BYTES];
        cm_farewell(&ends, mad);
        (void)gsi_send(host_of(c)->nic, &list[i].path, GSI_QPN, mad);
    }
}

void connect_init(struct host *h)
{
    struct connect *c = &h->connect;
    atomic_store(&c->deadline_ns, UINT64_MAX);
    c->sink.mad = sink_mad;
    c->deaths.connections = died;
    /* Without a descriptor for it the peers of the dead find out by themselves. */
    (void)port_udp_deaths_serve(h->udp, &c->deaths);
}

void connect_fini(struct host *h)
{
    struct connect *c = &h->connect;
    struct connect_service *s;
    struct verbena_cm_id *id;
    TAILQ_CONCAT(&c->leaving, &c->over, link);
    while ((id = TAILQ_FIRST(&c->leaving)) != NULL) {
        TAILQ_REMOVE(&c->leaving, id, link);
        free(id); /* the port's list knows it still, for who survives */
    }
    while ((s = TAILQ_FIRST(&c->services)) != NULL) {
        TAILQ_REMOVE(&c->services, s, link);
        free(s); /* the claim goes with the port */
    }
    if (c->cm != NULL)
        cm_destroy(c->cm);
    c->cm = NULL;
}

void connect_established(struct host *h, struct host_object *qp)
{
    if (qp->cm_id == NULL)
        return;
    (void)cm_establish(h->connect.cm, host_now_ns(), qp->cm_id->cm_id);
    connect_settle(h);
}

void connect_forget_qp(struct host_object *qp)
{
    if (qp->cm_id != NULL)
        qp->cm_id->qp = NULL;
    qp->cm_id = NULL;
}
