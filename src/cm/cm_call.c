/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_call.c: what the owner of an id asks for, what time does to it, and the messages that both
 * make.
 */
#include "cm/cm_priv.h"

#include <assert.h>
#include <errno.h>

#include "base/bytes.h"

static const struct cm_private nothing;

static bool too_long(struct cm_private data, unsigned attribute)
{
    return data.bytes > cm_msg_private_bytes(attribute);
}

/* Messages. */

void cm_id_send_rej(struct cm_id *id, uint64_t now_ns, enum cm_rej_reason reason,
                    struct cm_private info, struct cm_private data)
{
    struct cm_msg m = cm_id_msg(id, CM_REJ);
    /* As the kernel says it: what is rejected is what was received last. */
    m.rej.about = id->state == CM_STATE_REQ_RCVD   ? CM_ABOUT_REQ
                  : id->state == CM_STATE_REP_RCVD ? CM_ABOUT_REP
                                                   : CM_ABOUT_OTHER;
    m.rej.reason = (uint16_t)reason;
    m.rej.info_bytes = (uint8_t)info.bytes;
    cm_private_copy(m.rej.info, info);
    cm_private_copy(m.rej.private_data, data);
    cm_id_send(id, now_ns, &m, CM_NO_TIMER);
    cm_id_linger(id, now_ns, CM_STATE_REJ_SENT, id->linger_ns);
}

void cm_id_send_dreq(struct cm_id *id, uint64_t now_ns, struct cm_private data)
{
    /* A transaction of our own, whoever began the one before. */
    id->tid = (uint64_t)id->cm->tid_high << 32 | id->local_comm_id;
    struct cm_msg m = cm_id_msg(id, CM_DREQ);
    m.dreq.remote_qpn = id->remote_qpn;
    cm_private_copy(m.dreq.private_data, data);
    cm_id_send(id, now_ns, &m, id->max_retries);
    id->state = CM_STATE_DREQ_SENT;
}

void cm_id_send_timeout(struct cm_id *id)
{
    struct cm_msg m = cm_id_msg(id, CM_REJ);
    m.rej.about = id->state == CM_STATE_REQ_SENT ? CM_ABOUT_REQ : CM_ABOUT_OTHER;
    m.rej.reason = CM_REJ_TIMEOUT;
    /* The peer may know us by nothing but our id and the CA that we named. */
    m.rej.info_bytes = 8;
    put_be64(m.rej.info, id->local_ca_guid);
    cm_emit(id->cm, &id->path, &m);
}

/* Time. */

static void exhausted(struct cm_id *id, uint64_t now_ns)
{
    cm_count_one(id->cm, CM_COUNT_RETRY_EXCEEDED);
    switch (id->state) {
    case CM_STATE_REQ_SENT:
        cm_id_send_timeout(id);
        cm_id_event(id, CM_EVENT_UNREACHABLE, CM_REQ, NULL);
        cm_id_finish(id);
        break;
    case CM_STATE_REP_SENT: {
        uint8_t guid[8];
        put_be64(guid, id->local_ca_guid);
        cm_id_event(id, CM_EVENT_UNREACHABLE, CM_REP, NULL);
        cm_id_send_rej(id, now_ns, CM_REJ_TIMEOUT, (struct cm_private){guid, sizeof(guid)},
                       nothing);
        break;
    }
    case CM_STATE_DREQ_SENT:
        cm_id_event(id, CM_EVENT_DISCONNECTED, CM_DREQ, NULL);
        cm_id_timewait(id, now_ns);
        break;
    default:
        assert(id->state == CM_STATE_SIDR_REQ_SENT);
        cm_id_event(id, CM_EVENT_UNREACHABLE, CM_SIDR_REQ, NULL);
        cm_id_finish(id);
    }
}

void cm_id_expire(struct cm_id *id, uint64_t now_ns)
{
    struct cm *cm = id->cm;
    switch (id->state) {
    case CM_STATE_REQ_SENT:
    case CM_STATE_REP_SENT:
    case CM_STATE_DREQ_SENT:
    case CM_STATE_SIDR_REQ_SENT:
        if (id->tries_left == 0) {
            exhausted(id, now_ns);
            return;
        }
        id->tries_left--;
        cm_count_one(cm, CM_COUNT_RETRIES);
        cm_id_resend(id);
        heap_put(&cm->timers, &id->timer, now_ns + id->timeout_ns);
        return;
    case CM_STATE_TIMEWAIT:
        cm_id_pay_drep(id);
        cm_id_event(id, CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
        cm_id_finish(id);
        return;
    default:
        assert(id->state == CM_STATE_REJ_SENT || id->state == CM_STATE_SIDR_REP_SENT);
        cm_id_finish(id);
    }
}

/* Listening. */

int cm_listen(struct cm *cm, const struct cm_service *service, unsigned backlog, void *owner,
              struct cm_id **out)
{
    struct cm_id *id;
    TAILQ_FOREACH(id, &cm->listeners, link)
    {
        if (id->service_id == service->service_id && id->bind == service->bind &&
            (id->bind != CM_BIND_ADDR || cm_addr_equal(&id->path.local, &service->addr)))
            return -EADDRINUSE;
    }
    id = cm_id_new(cm, NULL, owner);
    if (id == NULL)
        return -ENOMEM;
    id->state = CM_STATE_LISTEN;
    id->service_id = service->service_id;
    id->bind = service->bind;
    id->path.local = service->addr;
    id->backlog = backlog == 0 || backlog > CM_MAX_BACKLOG ? (unsigned)CM_MAX_BACKLOG : backlog;
    TAILQ_INSERT_TAIL(&cm->listeners, id, link);
    *out = id;
    return 0;
}

static void close_listener(struct cm_id *id, uint64_t now_ns)
{
    struct cm_id *child;
    while ((child = TAILQ_FIRST(&id->children)) != NULL) {
        cm_id_leave_listener(child);
        if (child->unseen)
            cm_id_destroy(id->cm, now_ns, child);
    }
}

void cm_attend(struct cm_id *id)
{
    cm_id_leave_listener(id);
}

/* Connecting. */

static bool path_possible(const struct cm_msg_path *p)
{
    return p->packet_rate < 64 && p->sl < 16 && p->local_ack_timeout < 32;
}

static bool transport_possible(const struct cm_req *r)
{
    return r->transport == CM_TRANSPORT_RC || r->transport == CM_TRANSPORT_UC ||
           cm_msg_req_is_xrc(r);
}

static bool req_possible(const struct cm_path *path, const struct cm_req *r)
{
    return transport_possible(r) && r->local_qpn > QPN_GSI && r->local_qpn < 1u << 24 &&
           r->starting_psn < 1u << 24 && r->ece_vendor_id < 1u << 24 && r->local_eecn == 0 &&
           r->remote_eecn == 0 && r->remote_cm_response_timeout < 32 &&
           r->local_cm_response_timeout < 32 && r->retry_count < 8 && r->rnr_retry_count < 8 &&
           r->max_cm_retries < 16 && r->path_mtu >= 1 && r->path_mtu <= 5 &&
           r->transport_extended < 8 && path_possible(&r->primary) &&
           path_possible(&r->alternate) && r->alternate.flow_label < 1u << 20 &&
           path->flow_label < 1u << 20;
}

/* An initiator responds to nothing. */
static void fill_xrc_req(struct cm_req *r)
{
    r->responder_resources = 0;
    r->retry_count = r->rnr_retry_count = 0;
    r->srq = false;
}

/* A target asks for nothing; its QPN lies where it cannot be taken for that of an RC. */
static void fill_xrc_rep(struct cm_rep *r)
{
    r->local_eecn = r->local_qpn;
    r->local_qpn = 0;
    r->initiator_depth = 0;
    r->flow_control = false;
    r->srq = true;
}

static void fill_path(struct cm_msg_path *p, const struct cm_path *path)
{
    p->local_lid = p->remote_lid = CM_LID_PERMISSIVE;
    memcpy(p->local_gid, path->local.b, sizeof(p->local_gid));
    memcpy(p->remote_gid, path->remote.b, sizeof(p->remote_gid));
    p->flow_label = path->flow_label;
    p->traffic_class = path->traffic_class;
    p->hop_limit = path->hop_limit;
}

int cm_connect(struct cm *cm, uint64_t now_ns, const struct cm_path *path, const struct cm_req *req,
               struct cm_private data, void *owner, struct cm_id **out)
{
    if (too_long(data, CM_REQ) || !req_possible(path, req))
        return -EINVAL;
    struct cm_id *id = cm_id_new(cm, path, owner);
    if (id == NULL)
        return -ENOMEM;
    struct cm_msg m = {
        .header = {.attribute = CM_REQ, .tid = id->tid},
          .req = *req
    };
    m.req.local_comm_id = id->local_comm_id;
    if (m.req.local_ca_guid == 0)
        m.req.local_ca_guid = cm->config.ca_guid;
    id->local_ca_guid = m.req.local_ca_guid;
    fill_path(&m.req.primary, path);
    id->xrc = cm_msg_req_is_xrc(req);
    if (id->xrc)
        fill_xrc_req(&m.req);
    memset(m.req.private_data, 0, sizeof(m.req.private_data));
    cm_private_copy(m.req.private_data, data);
    id->active = true;
    id->local_qpn = req->local_qpn;
    id->service_id = req->service_id;
    id->max_retries = req->max_cm_retries;
    id->timeout_ns = cm_time_ns(req->remote_cm_response_timeout, CM_MAX_TIME_CODE);
    id->linger_ns = 2 * cm_time_ns(req->local_cm_response_timeout, CM_MAX_TIME_CODE);
    id->timewait_ns = cm_time_ns(req->primary.local_ack_timeout, CM_MAX_TIME_CODE);
    id->state = CM_STATE_REQ_SENT;
    cm_id_send(id, now_ns, &m, id->max_retries);
    *out = id;
    return 0;
}

int cm_reply(struct cm *cm, uint64_t now_ns, struct cm_id *id, const struct cm_rep *rep,
             struct cm_private data)
{
    if (id->state != CM_STATE_REQ_RCVD || too_long(data, CM_REP) || rep->local_qpn <= QPN_GSI ||
        rep->local_qpn >= 1u << 24 || rep->starting_psn >= 1u << 24 ||
        rep->ece_vendor_id >= 1u << 24 || rep->local_eecn != 0 || rep->target_ack_delay >= 32 ||
        rep->failover_accepted >= 3 || rep->rnr_retry_count >= 8)
        return -EINVAL;
    struct cm_msg m = {
        .header = {.attribute = CM_REP, .tid = id->tid},
          .rep = *rep
    };
    m.rep.local_comm_id = id->local_comm_id;
    m.rep.remote_comm_id = id->remote_comm_id;
    if (m.rep.local_ca_guid == 0)
        m.rep.local_ca_guid = cm->config.ca_guid;
    id->local_ca_guid = m.rep.local_ca_guid;
    if (id->alternate)
        m.rep.failover_accepted = 1; /* there is one path */
    if (id->xrc)
        fill_xrc_rep(&m.rep);
    memset(m.rep.private_data, 0, sizeof(m.rep.private_data));
    cm_private_copy(m.rep.private_data, data);
    cm_id_leave_listener(id);
    id->local_qpn = rep->local_qpn;
    id->state = CM_STATE_REP_SENT;
    cm_id_send(id, now_ns, &m, id->max_retries);
    return 0;
}

int cm_ready(struct cm *cm, uint64_t now_ns, struct cm_id *id, struct cm_private data)
{
    (void)cm;
    if (id->state != CM_STATE_REP_RCVD || too_long(data, CM_RTU))
        return -EINVAL;
    struct cm_msg m = cm_id_msg(id, CM_RTU);
    cm_private_copy(m.rtu.private_data, data);
    id->state = CM_STATE_ESTABLISHED;
    cm_id_send(id, now_ns, &m, CM_NO_TIMER);
    cm_id_event(id, CM_EVENT_ESTABLISHED, 0, NULL);
    return 0;
}

int cm_reject(struct cm *cm, uint64_t now_ns, struct cm_id *id, enum cm_rej_reason reason,
              struct cm_private info, struct cm_private data)
{
    (void)cm;
    if ((id->state != CM_STATE_REQ_RCVD && id->state != CM_STATE_REP_SENT &&
         id->state != CM_STATE_REP_RCVD) ||
        too_long(data, CM_REJ) || info.bytes > CM_INFO_BYTES || (unsigned)reason > UINT16_MAX)
        return -EINVAL;
    cm_id_send_rej(id, now_ns, reason, info, data);
    return 0;
}

int cm_mra(struct cm *cm, uint64_t now_ns, struct cm_id *id, uint8_t service_timeout,
           struct cm_private data)
{
    (void)cm;
    if ((id->state != CM_STATE_REQ_RCVD && id->state != CM_STATE_REP_RCVD) ||
        too_long(data, CM_MRA) || service_timeout >= 32)
        return -EINVAL;
    struct cm_msg m = cm_id_msg(id, CM_MRA);
    m.mra.about = id->state == CM_STATE_REQ_RCVD ? CM_ABOUT_REQ : CM_ABOUT_REP;
    m.mra.service_timeout = service_timeout;
    cm_private_copy(m.mra.private_data, data);
    cm_id_send(id, now_ns, &m, CM_NO_TIMER);
    return 0;
}

int cm_establish(struct cm *cm, uint64_t now_ns, struct cm_id *id)
{
    (void)now_ns;
    if (id->state == CM_STATE_ESTABLISHED)
        return 0;
    if (id->state != CM_STATE_REP_SENT)
        return -EINVAL;
    id->state = CM_STATE_ESTABLISHED;
    heap_remove(&cm->timers, &id->timer);
    cm_id_event(id, CM_EVENT_ESTABLISHED, 0, NULL);
    return 0;
}

int cm_disconnect(struct cm *cm, uint64_t now_ns, struct cm_id *id, struct cm_private data)
{
    (void)cm;
    if (too_long(data, CM_DREQ))
        return -EINVAL;
    if (id->state == CM_STATE_DREQ_SENT || id->state == CM_STATE_TIMEWAIT) {
        cm_id_pay_drep(id);
        return 0;
    }
    if (id->state != CM_STATE_ESTABLISHED)
        return -EINVAL;
    cm_id_send_dreq(id, now_ns, data);
    return 0;
}

/* Datagrams. */

int cm_sidr_connect(struct cm *cm, uint64_t now_ns, const struct cm_path *path,
                    const struct cm_sidr_req *req, uint8_t response_timeout, uint8_t max_retries,
                    struct cm_private data, void *owner, struct cm_id **out)
{
    if (too_long(data, CM_SIDR_REQ) || response_timeout >= 32 || max_retries >= 16)
        return -EINVAL;
    struct cm_id *id = cm_id_new(cm, path, owner);
    if (id == NULL)
        return -ENOMEM;
    struct cm_msg m = {
        .header = {.attribute = CM_SIDR_REQ, .tid = id->tid},
          .sidr_req = *req
    };
    m.sidr_req.request_id = id->local_comm_id;
    memset(m.sidr_req.private_data, 0, sizeof(m.sidr_req.private_data));
    cm_private_copy(m.sidr_req.private_data, data);
    id->sidr = true;
    id->service_id = req->service_id;
    id->timeout_ns = cm_time_ns(response_timeout, CM_MAX_TIME_CODE);
    id->state = CM_STATE_SIDR_REQ_SENT;
    cm_id_send(id, now_ns, &m, max_retries);
    *out = id;
    return 0;
}

int cm_sidr_reply(struct cm *cm, uint64_t now_ns, struct cm_id *id, const struct cm_sidr_rep *rep,
                  struct cm_private data)
{
    (void)cm;
    if (id->state != CM_STATE_SIDR_REQ_RCVD || too_long(data, CM_SIDR_REP) ||
        rep->info_bytes > CM_INFO_BYTES || rep->qpn >= 1u << 24 || rep->ece_vendor_id >= 1u << 24)
        return -EINVAL;
    struct cm_msg m = {
        .header = {.attribute = CM_SIDR_REP, .tid = id->tid},
          .sidr_rep = *rep
    };
    m.sidr_rep.request_id = id->remote_comm_id;
    m.sidr_rep.service_id = id->service_id;
    memset(m.sidr_rep.private_data, 0, sizeof(m.sidr_rep.private_data));
    cm_private_copy(m.sidr_rep.private_data, data);
    cm_id_send(id, now_ns, &m, CM_NO_TIMER);
    cm_id_linger(id, now_ns, CM_STATE_SIDR_REP_SENT,
                 cm_time_ns(CM_SIDR_LINGER_CODE, CM_MAX_TIME_CODE));
    return 0;
}

/* The end. */

static void take_leave(struct cm_id *id, uint64_t now_ns)
{
    static const struct cm_sidr_rep refusal = {.status = CM_SIDR_REJECT};
    switch (id->state) {
    case CM_STATE_LISTEN:
        close_listener(id, now_ns);
        cm_id_finish(id);
        break;
    case CM_STATE_REQ_SENT:
        cm_id_send_timeout(id);
        cm_id_finish(id);
        break;
    case CM_STATE_REQ_RCVD:
    case CM_STATE_REP_RCVD:
    case CM_STATE_REP_SENT:
        cm_id_send_rej(id, now_ns, CM_REJ_CONSUMER_DEFINED, nothing, nothing);
        break;
    case CM_STATE_ESTABLISHED:
        cm_id_send_dreq(id, now_ns, nothing);
        break;
    case CM_STATE_SIDR_REQ_RCVD:
        cm_sidr_reply(id->cm, now_ns, id, &refusal, nothing);
        break;
    case CM_STATE_SIDR_REQ_SENT:
    case CM_STATE_FINISHED:
        cm_id_finish(id);
        break;
    default: /* what runs on unseen */
        cm_id_pay_drep(id);
        break;
    }
}

void cm_id_destroy(struct cm *cm, uint64_t now_ns, struct cm_id *id)
{
    assert(id->state != CM_STATE_FREE && !id->orphan);
    id->orphan = true;
    cm_id_drop_events(id);
    cm_id_leave_listener(id);
    take_leave(id, now_ns);
    if (id->state == CM_STATE_FREE)
        return;
    id->lingers = true;
    TAILQ_INSERT_TAIL(&cm->lingering, id, link);
}
