/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_engine.c: from the connection manager's events to those that programs get: the first half
 * when it tells them, on whatever thread, the second when the program gets them.
 */
#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/firm.h"
#include "rdmacm/rdma_objects.h"

static struct verbena_cm *engine_cm;
static unsigned engine_generation;
static struct firm_lock engine_firm = FIRM_LOCK_INITIALIZER;

/* A thread cancelled in a system call of what is done meanwhile would take the mutex along. */
static void engine_lock(void)
{
    firm_take(&engine_firm);
}

static void engine_unlock(void)
{
    firm_drop(&engine_firm);
}

/* A child must not inherit the mutex from a thread that it does not have. */
__attribute__((constructor)) static void engine_watch_fork(void)
{
    static const struct verbena_fork_hook hook = {engine_lock, engine_unlock, engine_unlock};

    verbena_fork_hook(VERBENA_FORK_RDMA_ENGINE, &hook);
}

static void engine_set_private(struct rdma_event_obj *e, const struct verbena_cm_private *from,
                               const void **data, uint8_t *length)
{
    size_t n = from->bytes <= sizeof(e->private_data) ? from->bytes : sizeof(e->private_data);

    if (from->data == NULL || n == 0)
        return;
    memcpy(e->private_data, from->data, n);
    *data = e->private_data;
    *length = (uint8_t)n;
}

/* What the peer says of itself, as the program sees it: its depth is our resources. */
static void engine_set_conn(struct rdma_event_obj *e, const struct verbena_cm_param *p)
{
    struct rdma_conn_param *c = &e->pub.param.conn;

    c->responder_resources = p->initiator_depth;
    c->initiator_depth = p->responder_resources;
    c->flow_control = p->flow_control;
    c->retry_count = p->retry_count;
    c->rnr_retry_count = p->rnr_retry_count;
    c->srq = p->srq;
    c->qp_num = p->qpn;
}

static void engine_learn(struct rdma_id_obj *id, const struct verbena_cm_event *from)
{
    struct rdma_conn *c = &id->conn;
    const struct verbena_cm_param *p = &from->param;

    c->path = from->path;
    c->remote_qpn = p->qpn;
    c->remote_psn = p->psn;
    c->rnr_retry_count = p->rnr_retry_count;
    c->responder_resources = p->initiator_depth;
    c->initiator_depth = p->responder_resources;
    id->remote_ece.vendor_id = p->ece_vendor_id;
    id->remote_ece.options = p->ece_options;
}

static struct rdma_id_obj *engine_new_id(struct rdma_id_obj *listen,
                                         const struct verbena_cm_event *from)
{
    struct rdma_id_obj *id =
        rdma_id_new(NULL, listen->pub.context, listen->pub.ps, listen->pub.qp_type);

    if (id == NULL)
        return NULL;
    id->state = ID_REQUESTED;
    id->cm = from->id;
    id->tos = listen->tos;
    id->ack_timeout_set = listen->ack_timeout_set;
    id->ack_timeout = listen->ack_timeout;
    engine_learn(id, from);
    id->conn.local_psn = rdma_random_psn(); /* a program may connect its QP before it accepts */
    id->conn.path_mtu_bytes = from->path_mtu_bytes;
    id->conn.ack_timeout = id->ack_timeout_set ? id->ack_timeout : from->ack_timeout;
    id->conn.retry_count = from->param.retry_count;
    struct rdma_addr *a = &id->pub.route.addr;
    rdma_sockaddr_build(&a->src_storage, &from->local_addr, (uint16_t)from->service_id,
                        from->path.scope_id);
    rdma_sockaddr_build(&a->dst_storage, &from->peer_addr, from->peer_port, from->path.scope_id);
    if (listen->pub.route.addr.src_addr.sa_family == AF_IB) {
        rdma_sockaddr_to_gid(&a->src_storage, from->service_id);
        rdma_sockaddr_to_gid(&a->dst_storage, from->peer_port);
    }
    return id;
}

/* 0, or not: the request is refused, for a reason of the connection manager's or (negative) for
 * want of what it takes. */
static int engine_on_request(const struct verbena_cm_event *from)
{
    struct rdma_id_obj *listen = from->listen_owner;
    /* Who listens for one kind of connection could do nothing with another. */
    if (from->type == VERBENA_CM_REQ && (int)from->qp_type != (int)listen->pub.qp_type)
        return VERBENA_CM_REJ_INVALID_TRANSPORT_TYPE;
    struct rdma_id_obj *id = engine_new_id(listen, from);
    struct rdma_event_obj *e =
        id != NULL ? rdma_event_new(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;

    if (e == NULL) {
        free(id);
        return -ENOMEM;
    }
    e->counted = listen;
    e->pub.listen_id = &listen->pub;
    if (from->type == VERBENA_CM_REQ) {
        engine_set_conn(e, &from->param);
        engine_set_private(e, &from->param.private_data, &e->pub.param.conn.private_data,
                           &e->pub.param.conn.private_data_len);
    } else {
        engine_set_private(e, &from->param.private_data, &e->pub.param.ud.private_data,
                           &e->pub.param.ud.private_data_len);
    }
    verbena_cm_set_owner(from->id, id);
    rdma_lock();
    bool closing = listen->closing || obj_channel(listen->pub.channel)->closed;
    if (!closing) {
        rdma_channel_set(id, listen->pub.channel);
        rdma_event_push(e);
    }
    rdma_unlock();
    if (!closing)
        return 0;
    free(e);
    free(id);
    return -ECANCELED;
}

/* The event of an id that is there, or NULL: the program hears nothing of it. Under the lock. */
static struct rdma_event_obj *engine_translate(struct rdma_id_obj *id,
                                               const struct verbena_cm_event *from)
{
    switch (from->type) {
    case VERBENA_CM_REP:
        id->state = ID_RESPONDED;
        engine_learn(id, from);
        return rdma_event_new(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    case VERBENA_CM_ESTABLISHED:
        if (id->state != ID_ACCEPTING) /* the active side knows from its own answer to the REP */
            return NULL;
        id->state = ID_CONNECTED;
        return rdma_event_new(id, RDMA_CM_EVENT_ESTABLISHED, 0);
    case VERBENA_CM_REJ:
        id->state = ID_FINISHED;
        return rdma_event_new(id, RDMA_CM_EVENT_REJECTED, from->status);
    case VERBENA_CM_UNREACHABLE:
        id->state = ID_FINISHED;
        return rdma_event_new(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    case VERBENA_CM_DREQ:
    case VERBENA_CM_DISCONNECTED:
        if (id->state == ID_DISCONNECTED)
            return NULL; /* once, also when both sides ask at the same time */
        id->state = ID_DISCONNECTED;
        return rdma_event_new(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    case VERBENA_CM_TIMEWAIT_EXIT:
        return rdma_event_new(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
    case VERBENA_CM_SIDR_REP:
        id->state = from->status == 0 ? ID_CONNECTED : ID_FINISHED;
        engine_learn(id, from);
        return rdma_event_new(
            id, from->status == 0 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE,
            from->status);
    default: /* MRA */
        return NULL;
    }
}

/* Memory that is short when an event comes loses it, as a full queue would; what follows from it
 * (a time that runs out, a DREQ) still tells. */
static int engine_on_event(const struct verbena_cm_event *from)
{
    struct rdma_id_obj *id = from->owner;

    if (from->type == VERBENA_CM_REQ || from->type == VERBENA_CM_SIDR_REQ)
        return engine_on_request(from);
    rdma_lock();
    struct rdma_event_obj *e = id->closing ? NULL : engine_translate(id, from);
    if (e != NULL && from->type == VERBENA_CM_SIDR_REP) {
        e->pub.param.ud.qp_num = from->param.qpn;
        e->pub.param.ud.qkey = from->param.qkey;
        engine_set_private(e, &from->param.private_data, &e->pub.param.ud.private_data,
                           &e->pub.param.ud.private_data_len);
    } else if (e != NULL) {
        if (from->type == VERBENA_CM_REP)
            engine_set_conn(e, &from->param);
        engine_set_private(e, &from->param.private_data, &e->pub.param.conn.private_data,
                           &e->pub.param.conn.private_data_len);
    }
    if (e != NULL)
        rdma_event_push(e);
    rdma_unlock();
    return 0;
}

int rdma_engine_id(struct rdma_id_obj *id)
{
    static const struct verbena_cm_callbacks callbacks = {.event = engine_on_event};
    int err = 0;

    if (id->cm != NULL)
        return 0;
    engine_lock();
    if (engine_cm == NULL || engine_generation != rdma_generation()) {
        err = -verbena_cm_open(&callbacks, &engine_cm);
        engine_generation = rdma_generation();
        if (err != 0)
            engine_cm = NULL;
    }
    if (err == 0)
        err = -verbena_cm_id_create(engine_cm, id, &id->cm);
    engine_unlock();
    return err;
}

/* The new id's device is found here, since this may open it. */
static bool engine_deliver_request(struct rdma_event_obj *e)
{
    struct rdma_id_obj *id = obj_id(e->pub.id);

    rdma_turn_await(e->counted, id);
    verbena_cm_attend(id->cm);
    int err = rdma_device_attach(id, &id->pub.route.addr.src_addr);
    rdma_addr_set_gids(id);
    if (err == 0)
        err = rdma_addr_set_path(id);
    if (err == 0)
        return true;
    rdma_destroy_id(&id->pub); /* refuses it */
    rdma_event_drop(e);
    return false;
}

/* What the peer took of the options that this side told it. Others than those are not ours: some
 * adapters' peers answer with their own under whatever vendor they were asked by. And ECE is never
 * a reason to have no connection. */
static void engine_set_ece(struct rdma_id_obj *id)
{
    struct ibv_ece ece = id->remote_ece;

    if (ece.vendor_id == id->local_ece.vendor_id && (ece.options & ~id->local_ece.options) == 0)
        ibv_set_ece(id->pub.qp, &ece);
}

/* The peer has accepted. A QP of the library's is connected now; a program with its own does that
 * and says so with rdma_establish. */
static void engine_deliver_response(struct rdma_event_obj *e)
{
    struct rdma_id_obj *id = e->counted;

    if (id->pub.qp == NULL)
        return;
    engine_set_ece(id);
    int err = rdma_qp_to(id, IBV_QPS_RTR);
    if (err == 0)
        err = rdma_qp_to(id, IBV_QPS_RTS);
    if (err == 0)
        err = -verbena_cm_ready(id->cm, NULL);
    /* A DREQ that comes right behind ends what was there; a REJ says that it never was. The event
     * of either follows. */
    if (err == 0 && !rdma_id_step(id, ID_RESPONDED, ID_CONNECTED) &&
        !rdma_id_step(id, ID_DISCONNECTED, ID_DISCONNECTED))
        err = ECONNRESET;
    e->pub.event = err == 0 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_ERROR;
    e->pub.status = -err;
    if (err == 0)
        return;
    verbena_cm_reject(id->cm, VERBENA_CM_REJ_CONSUMER_DEFINED, NULL, NULL);
    rdma_id_step(id, ID_RESPONDED, ID_FINISHED);
    rdma_qp_to(id, IBV_QPS_ERR);
}

/* Nobody listens there. Programs that end one listener and begin the next (perftest -R) leave a gap
 * that a kernel's slower way hides: so it is asked again a few times, 63 ms in all, before the
 * program hears of it. True: asked; the event has gone. */
static bool engine_ask_again(struct rdma_event_obj *e)
{
    enum { ASK_AGAIN = 6, SIDR_NO_SERVICE = 1 };
    struct rdma_id_obj *id = e->counted;
    bool datagram = rdma_id_datagram(id);

    if (e->pub.event != (datagram ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED) ||
        e->pub.status != (datagram ? SIDR_NO_SERVICE : VERBENA_CM_REJ_INVALID_SERVICE_ID))
        return false;
    if (id->refusals >= ASK_AGAIN || id->closing || !rdma_id_step(id, ID_FINISHED, ID_CONNECTING))
        return false;
    usleep(1000u << id->refusals++);
    if (rdma_conn_ask(id) != 0) {
        rdma_id_step(id, ID_CONNECTING, ID_FINISHED);
        return false;
    }
    rdma_event_drop(e);
    return true;
}

bool rdma_engine_deliver(struct rdma_event_obj *e)
{
    struct rdma_id_obj *id = e->counted;

    if (engine_ask_again(e))
        return false;
    switch (e->pub.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        return engine_deliver_request(e);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        engine_deliver_response(e);
        return true;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (rdma_id_datagram(id))
            e->pub.status = -rdma_qp_attr_ah(id, &id->conn.path, &e->pub.param.ud.ah_attr);
        if (e->pub.status != 0)
            e->pub.event = RDMA_CM_EVENT_UNREACHABLE;
        return true;
    case RDMA_CM_EVENT_REJECTED:
        rdma_qp_to(id, IBV_QPS_ERR);
        return true;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
        rdma_mcast_deliver(e);
        return true;
    default:
        return true;
    }
}
