/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_conn.c: connections and lookups of datagram services: listened for, made, accepted, refused,
 * ended.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "rdmacm/rdma_objects.h"

enum {
    /* A program's backlog is counted as the kernel does: of requests that it has not got. But where
     * fewer are allowed and many clients come at once, the others would wait 4.3 s. */
    CONN_MIN_BACKLOG = 256,
    CONN_DEFAULT_RETRY = 7,
    CONN_DEFAULT_ACK_TIMEOUT = 17, /* 0.54 s, as the kernel's for RoCE */
    CONN_PSN_MASK = 0xffffff,
    CONN_LABEL_MASK = 0xfffff,
};

static uint8_t conn_min(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* What this side says of itself. param: the program's, or NULL. offered: the peer's wishes as our
 * resources, or what the device has. */
static struct verbena_cm_param conn_param(struct rdma_id_obj *id,
                                          const struct rdma_conn_param *param,
                                          uint8_t offered_resources, uint8_t offered_depth)
{
    struct verbena_cm_param p = {
        .qpn = id->pub.qp != NULL ? id->pub.qp->qp_num
               : param != NULL    ? param->qp_num
                                  : 0,
        .psn = id->conn.local_psn,
        .qkey = RDMA_UDP_QKEY,
        .responder_resources = conn_min(offered_resources, id->device->max_responder_resources),
        .initiator_depth = conn_min(offered_depth, id->device->max_initiator_depth),
        .retry_count = CONN_DEFAULT_RETRY,
        .rnr_retry_count = CONN_DEFAULT_RETRY,
        .srq = id->pub.qp != NULL ? id->pub.qp->srq != NULL : param != NULL && param->srq,
        .ece_vendor_id = id->local_ece.vendor_id,
        .ece_options = id->local_ece.options,
    };

    if (param == NULL)
        return p;
    if (param->responder_resources != RDMA_MAX_RESP_RES)
        p.responder_resources = param->responder_resources;
    if (param->initiator_depth != RDMA_MAX_INIT_DEPTH)
        p.initiator_depth = param->initiator_depth;
    p.flow_control = param->flow_control != 0;
    p.retry_count = conn_min(param->retry_count, CONN_DEFAULT_RETRY);
    p.rnr_retry_count = conn_min(param->rnr_retry_count, CONN_DEFAULT_RETRY);
    p.private_data.data = param->private_data;
    p.private_data.bytes = param->private_data != NULL ? param->private_data_len : 0;
    return p;
}

/* 0 or a positive errno. limit: bytes of private data. */
static int conn_check(const struct rdma_id_obj *id, const struct rdma_conn_param *param,
                      size_t limit)
{
    if (!rdma_id_alive(id))
        return EIO;
    if (id->device == NULL || (param == NULL && id->pub.qp == NULL))
        return EINVAL;
    if (param == NULL)
        return 0;
    if (param->private_data_len > limit ||
        (param->private_data == NULL && param->private_data_len != 0))
        return EINVAL;
    if (rdma_id_datagram(id))
        return 0;
    if (param->responder_resources != RDMA_MAX_RESP_RES &&
        param->responder_resources > id->device->max_responder_resources)
        return EINVAL;
    return param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
                   param->initiator_depth > id->device->max_initiator_depth
               ? EINVAL
               : 0;
}

static uint32_t conn_random(void)
{
    uint32_t r = 0;

    if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
        r = (uint32_t)getpid() * 2654435761u;
    return r;
}

uint32_t rdma_random_psn(void)
{
    return conn_random() & CONN_PSN_MASK;
}

static void conn_prepare(struct rdma_id_obj *id, struct verbena_cm_connect *c)
{
    const struct rdma_addr *a = &id->pub.route.addr;
    struct rdma_conn *k = &id->conn;

    k->local_psn = rdma_random_psn();
    k->path = (struct nic_path){
        .local = rdma_sockaddr_net(&a->src_addr),
        .remote = rdma_sockaddr_net(&a->dst_addr),
        .scope_id = rdma_sockaddr_link_local(&a->dst_addr) ? id->device->ifindex : 0,
        .traffic_class = id->tos,
        .hop_limit = RDMA_HOP_LIMIT,
        .flow_label = conn_random() & CONN_LABEL_MASK,
    };
    k->path_mtu_bytes = (uint16_t)(128u << rdma_device_mtu(id->device));
    k->ack_timeout = id->ack_timeout_set ? id->ack_timeout : CONN_DEFAULT_ACK_TIMEOUT;
    *c = (struct verbena_cm_connect){
        .path = k->path,
        .service_id = rdma_sockaddr_service(id->pub.ps, &a->dst_addr),
        .src_port = rdma_sockaddr_port(&a->src_addr),
        .qp_type = (enum qp_type)id->pub.qp_type,
        .path_mtu_bytes = k->path_mtu_bytes,
        .ack_timeout = k->ack_timeout,
        .max_retries = -1,
    };
}

int rdma_conn_ask(struct rdma_id_obj *id)
{
    return rdma_id_datagram(id) ? -verbena_cm_sidr_connect(id->cm, &id->request)
                                : -verbena_cm_connect(id->cm, &id->request);
}

RDMACM_ABI int rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
    struct rdma_id_obj *id = obj_id(pub);
    bool datagram = rdma_id_datagram(id);
    struct verbena_cm_connect *c = &id->request;

    int err =
        conn_check(id, param, datagram ? VERBENA_CM_SIDR_REQ_IP_BYTES : VERBENA_CM_REQ_IP_BYTES);
    if (err == 0)
        err = rdma_engine_id(id);
    if (err != 0)
        return rdma_fail(err);
    if (!rdma_id_step(id, ID_ROUTE_RESOLVED, ID_CONNECTING))
        return rdma_fail(EINVAL);
    conn_prepare(id, c);
    c->param = conn_param(id, param, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH);
    id->conn.retry_count = c->param.retry_count;
    id->conn.asked_rnr_retry_count = c->param.rnr_retry_count;
    if (c->param.private_data.bytes > 0)
        memcpy(id->request_data, c->param.private_data.data, c->param.private_data.bytes);
    c->param.private_data.data = id->request_data;
    err = rdma_conn_ask(id);
    if (err != 0) {
        rdma_id_step(id, ID_CONNECTING, ID_ROUTE_RESOLVED);
        return rdma_fail(err);
    }
    return rdma_id_complete(id);
}

/* 0: as many as possible. */
static unsigned conn_backlog(int wanted)
{
    if (wanted <= 0)
        return 0;
    return wanted < CONN_MIN_BACKLOG ? CONN_MIN_BACKLOG : (unsigned)wanted;
}

RDMACM_ABI int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
    struct rdma_id_obj *id = obj_id(pub);

    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    if (id->state == ID_IDLE) {
        struct sockaddr_storage any = {.ss_family = AF_INET};
        if (rdma_bind_addr(pub, (struct sockaddr *)&any) != 0)
            return -1;
    }
    if (!rdma_id_step(id, ID_BOUND, ID_LISTENING))
        return rdma_fail(EINVAL);
    int err = rdma_port_claim(id);
    if (err == 0)
        err = -verbena_cm_listen(id->cm, conn_backlog(backlog));
    if (err != 0) {
        rdma_id_step(id, ID_LISTENING, ID_BOUND);
        return rdma_fail(err);
    }
    return 0;
}

static int conn_accept_datagram(struct rdma_id_obj *id, struct rdma_conn_param *param)
{
    if (!rdma_id_step(id, ID_REQUESTED, ID_CONNECTED))
        return rdma_fail(EINVAL);
    rdma_turn_used(id);
    struct verbena_cm_param p = conn_param(id, param, 0, 0);
    int err = -verbena_cm_sidr_reply(id->cm, 0, &p);
    if (err != 0) {
        rdma_id_step(id, ID_CONNECTED, ID_REQUESTED);
        return rdma_fail(err);
    }
    return 0;
}

/* For a program with a QP of its own that does nothing about ECE: what the engine does for any QP
 * of ours is answered for it, and nothing of another vendor's. */
static void conn_answer_ece(const struct rdma_id_obj *id, struct verbena_cm_param *p)
{
    p->ece_vendor_id = id->remote_ece.vendor_id;
    if (p->ece_vendor_id == id->device->vendor_id)
        p->ece_options = id->remote_ece.options & ECE_RTT_PROBES;
}

RDMACM_ABI int rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
    struct rdma_id_obj *id = obj_id(pub);
    bool datagram = rdma_id_datagram(id);

    int err = conn_check(id, param, datagram ? VERBENA_CM_SIDR_REP_BYTES : VERBENA_CM_REP_BYTES);
    if (err != 0)
        return rdma_fail(err);
    if (datagram)
        return conn_accept_datagram(id, param);
    if (id->state != ID_REQUESTED)
        return rdma_fail(EINVAL);
    rdma_turn_used(id);
    struct verbena_cm_param p =
        conn_param(id, param, id->conn.responder_resources, id->conn.initiator_depth);
    if (p.ece_vendor_id == 0)
        conn_answer_ece(id, &p);
    id->conn.responder_resources = p.responder_resources;
    id->conn.initiator_depth = p.initiator_depth;
    id->conn.asked_rnr_retry_count = p.rnr_retry_count;
    /* The peer may send as soon as it has the REP. */
    err = rdma_qp_to(id, IBV_QPS_RTR);
    if (err == 0)
        err = rdma_qp_to(id, IBV_QPS_RTS);
    if (err != 0)
        return rdma_fail(err);
    if (!rdma_id_step(id, ID_REQUESTED, ID_ACCEPTING))
        return rdma_fail(EINVAL);
    err = -verbena_cm_accept(id->cm, &p);
    if (err != 0) {
        rdma_id_step(id, ID_ACCEPTING, ID_REQUESTED);
        rdma_qp_to(id, IBV_QPS_ERR);
        return rdma_fail(err);
    }
    return rdma_id_complete(id);
}

static int conn_reject(struct rdma_cm_id *pub, unsigned reason, const void *data, uint8_t bytes)
{
    enum { SIDR_REJECTED = 2 };
    struct rdma_id_obj *id = obj_id(pub);
    bool datagram = rdma_id_datagram(id);
    struct verbena_cm_param p = {
        .private_data = {.data = data, .bytes = bytes}
    };

    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    if (id->cm == NULL || (data == NULL && bytes != 0))
        return rdma_fail(EINVAL);
    if (id->state != ID_REQUESTED && id->state != ID_RESPONDED && id->state != ID_ACCEPTING)
        return rdma_fail(EINVAL);
    rdma_turn_used(id);
    int err = datagram ? -verbena_cm_sidr_reply(id->cm, SIDR_REJECTED, &p)
                       : -verbena_cm_reject(id->cm, reason, NULL, &p.private_data);
    if (err != 0)
        return rdma_fail(err);
    rdma_lock();
    id->state = ID_FINISHED;
    rdma_unlock();
    rdma_qp_to(id, IBV_QPS_ERR);
    return 0;
}

RDMACM_ABI int rdma_reject(struct rdma_cm_id *id, const void *private_data,
                           uint8_t private_data_len)
{
    return conn_reject(id, VERBENA_CM_REJ_CONSUMER_DEFINED, private_data, private_data_len);
}

RDMACM_ABI int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
                               uint8_t private_data_len)
{
    return conn_reject(id, VERBENA_CM_REJ_VENDOR_OPTION, private_data, private_data_len);
}

/* The active side with a QP of its own has connected it. */
RDMACM_ABI int rdma_establish(struct rdma_cm_id *pub)
{
    struct rdma_id_obj *id = obj_id(pub);

    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    if (pub->qp != NULL || !rdma_id_step(id, ID_RESPONDED, ID_CONNECTED))
        return rdma_fail(EINVAL);
    int err = -verbena_cm_ready(id->cm, NULL);
    if (err != 0) {
        rdma_id_step(id, ID_CONNECTED, ID_RESPONDED);
        return rdma_fail(err);
    }
    return 0;
}

RDMACM_ABI int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
    struct rdma_id_obj *id = obj_id(pub);

    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    if (id->cm == NULL || event != IBV_EVENT_COMM_EST)
        return rdma_fail(EINVAL);
    int err = -verbena_cm_establish(id->cm);
    return err != 0 ? rdma_fail(err) : 0;
}

RDMACM_ABI int rdma_disconnect(struct rdma_cm_id *pub)
{
    struct rdma_id_obj *id = obj_id(pub);

    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    if (id->cm == NULL || rdma_id_datagram(id) || id->state < ID_CONNECTING)
        return rdma_fail(EINVAL);
    int err = rdma_qp_to(id, IBV_QPS_ERR);
    if (err == 0)
        err = -verbena_cm_disconnect(id->cm, NULL);
    if (err == EINVAL && (id->state == ID_DISCONNECTED || id->state == ID_FINISHED))
        err = 0; /* the peer was faster */
    return err != 0 ? rdma_fail(err) : rdma_id_complete(id);
}

RDMACM_ABI int rdma_write_cm_event(struct rdma_cm_id *pub, enum rdma_cm_event_type event,
                                   int status, uint64_t arg)
{
    struct rdma_id_obj *id = obj_id(pub);

    if ((int)event != NEWER_EVENT_USER)
        return rdma_fail(EINVAL);
    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    struct rdma_event_obj *e = rdma_event_new(id, event, status);
    if (e == NULL)
        return rdma_fail(ENOMEM);
    ((union rdma_event_param_newest *)(void *)&e->pub.param)->arg = arg;
    rdma_lock();
    rdma_event_push(e);
    rdma_unlock();
    return 0;
}
