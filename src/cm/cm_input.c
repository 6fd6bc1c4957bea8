/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_input.c: what the peer says: one function a message, each a line of checks before it changes
 * anything. IBA 12.9
 */
#include "cm/cm_priv.h"

#include "base/bytes.h"

/* A MAD on its way through the checks. */
struct arrival {
    struct cm *cm;
    uint64_t now_ns;
    const struct cm_path *path;
    const uint8_t *mad;
    struct cm_msg m;
};

static const struct cm_private nothing;

/* Says what would be said if we were not there. */
static void refuse(const struct arrival *a)
{
    uint8_t answer[MAD_BYTES];
    if (cm_refuse(a->mad, MAD_BYTES, answer))
        cm_emit_mad(a->cm, a->path, answer);
}

/* A REJ without an id behind it. */
static void reject(const struct arrival *a, enum cm_about about, enum cm_rej_reason reason,
                   struct cm_private info)
{
    struct cm_msg m = {
        .header = {.attribute = CM_REJ, .tid = a->m.header.tid}
    };
    m.rej.local_comm_id = cm_msg_remote_comm_id(&a->m);
    m.rej.remote_comm_id = cm_msg_local_comm_id(&a->m);
    m.rej.about = (uint8_t)about;
    m.rej.reason = (uint16_t)reason;
    m.rej.info_bytes = (uint8_t)info.bytes;
    cm_private_copy(m.rej.info, info);
    cm_emit(a->cm, a->path, &m);
}

static uint8_t auto_mra_code(const struct cm_id *id)
{
    unsigned retries_left = id->asked < id->max_retries ? id->max_retries - id->asked : 0;
    unsigned most = CM_MAX_MRA_CODE - CM_AUTO_MRA_FIRST_CODE;
    unsigned less = id->asked < most ? most - id->asked : 0;
    return (uint8_t)(CM_MAX_MRA_CODE - (less < retries_left ? less : retries_left));
}

/* "I have your message, but need time", without being asked for by the owner. */
static void ask_for_time(struct cm_id *id)
{
    struct cm_msg m = cm_id_msg(id, CM_MRA);
    m.mra.about = id->state == CM_STATE_REQ_RCVD ? CM_ABOUT_REQ : CM_ABOUT_REP;
    m.mra.service_timeout = auto_mra_code(id);
    if (id->asked < UINT8_MAX)
        id->asked++;
    cm_emit(id->cm, &id->path, &m);
}

/* The id that a message names as its receiver, if it comes from that id's peer; NULL is counted. */
static struct cm_id *addressee(const struct arrival *a, bool sidr)
{
    struct cm_id *id = cm_find_local(a->cm, cm_msg_remote_comm_id(&a->m));
    if (id == NULL || id->state == CM_STATE_LISTEN || id->state == CM_STATE_FINISHED ||
        id->sidr != sidr) {
        cm_count_one(a->cm, CM_COUNT_UNKNOWN_ID);
        return NULL;
    }
    if (!cm_addr_equal(&id->path.remote, &a->path->remote) ||
        !cm_addr_equal(&id->path.local, &a->path->local)) {
        cm_count_one(a->cm, CM_COUNT_WRONG_PEER);
        return NULL;
    }
    return id;
}

/* The same where both ids must be those of the connection. */
static struct cm_id *connection(const struct arrival *a)
{
    struct cm_id *id = addressee(a, false);
    if (id != NULL && id->remote_comm_id != cm_msg_local_comm_id(&a->m)) {
        cm_count_one(a->cm, CM_COUNT_UNKNOWN_ID);
        return NULL;
    }
    return id;
}

static void stop_timer(struct cm_id *id)
{
    if (heap_holds(&id->timer))
        heap_remove(&id->cm->timers, &id->timer);
}

/* The end of an id that was not established, as a REJ would have made it. An owner who has not even
 * seen the REQ never hears of it. */
static void end_rejected(struct cm_id *id, const uint8_t *mad)
{
    if (id->unseen) {
        cm_id_drop_events(id);
        id->orphan = true;
    }
    cm_id_event(id, CM_EVENT_REJ, 0, mad);
    cm_id_finish(id);
}

/*
 * The peer's QP, which we believe connected, begins anew: the peer has restarted. What we believe
 * ends, and the peer's next try finds nothing in its way.
 */
static void drop_stale(const struct arrival *a, struct cm_id *id)
{
    struct cm_msg m = cm_id_msg(id, CM_REJ);
    uint8_t mad[MAD_BYTES];
    cm_id_unset_qpn(id);
    if (id->state == CM_STATE_ESTABLISHED) {
        cm_id_send_dreq(id, a->now_ns, nothing);
        return;
    }
    if (id->state == CM_STATE_DREQ_SENT)
        return;
    /* Half open: to the owner it is rejected as stale. */
    m.rej.reason = CM_REJ_STALE_CONN;
    cm_msg_build(&m, mad);
    end_rejected(id, mad);
}

/* REQ. */

static void duplicate_req(const struct arrival *a, struct cm_id *id)
{
    cm_count_one(a->cm, CM_COUNT_DUPLICATE);
    switch (id->state) {
    case CM_STATE_REQ_RCVD:
        if (id->step == CM_MRA)
            cm_id_resend(id);
        else
            ask_for_time(id);
        break;
    case CM_STATE_REP_SENT:
    case CM_STATE_REJ_SENT:
        cm_id_resend(id);
        break;
    case CM_STATE_TIMEWAIT:
        reject(a, CM_ABOUT_REQ, CM_REJ_STALE_CONN, nothing);
        break;
    default: /* it was answered, and the answer has arrived */
        break;
    }
}

/* Same id, but not the same REQ: who sent it has forgotten that it used this id before. */
static bool same_req(const struct arrival *a, const struct cm_id *id)
{
    return id->service_id == a->m.req.service_id && id->remote_qpn == a->m.req.local_qpn;
}

/* True: it is not a duplicate, and nothing that we know stands against it. */
static bool check_fresh(const struct arrival *a)
{
    struct cm_id *id = cm_find_peer(a->cm, &a->path->remote, a->m.req.local_comm_id, false);
    if (id != NULL && same_req(a, id)) {
        duplicate_req(a, id);
        return false;
    }
    if (id == NULL)
        id = cm_find_qpn(a->cm, &a->path->remote, a->m.req.local_qpn);
    if (id == NULL)
        return true;
    cm_count_one(a->cm, CM_COUNT_STALE);
    reject(a, CM_ABOUT_REQ, CM_REJ_STALE_CONN, nothing);
    if (id->in_qpn)
        drop_stale(a, id);
    return false;
}

/* Addresses of the header must be the packet's, or a program would believe a lie. */
static bool ip_header_good(const struct arrival *a, const uint8_t *data, size_t n)
{
    struct cm_ip ip;
    if (cm_ip_parse(data, n, &ip) && memcmp(ip.src, a->path->remote.b, sizeof(ip.src)) == 0 &&
        memcmp(ip.dst, a->path->local.b, sizeof(ip.dst)) == 0)
        return true;
    cm_count_one(a->cm, CM_COUNT_BAD_PRIVATE);
    return false;
}

/* True: we could serve what it asks for; else a REJ has said why not. */
static bool check_req(const struct arrival *a)
{
    const struct cm_req *r = &a->m.req;
    static const uint8_t largest_mtu = 5;
    if (r->transport != CM_TRANSPORT_RC && r->transport != CM_TRANSPORT_UC && !cm_msg_req_is_xrc(r))
        reject(a, CM_ABOUT_REQ, CM_REJ_INVALID_TRANSPORT_TYPE, nothing);
    else if (r->local_qpn <= QPN_GSI || r->local_qpn == 0xffffff)
        reject(a, CM_ABOUT_REQ, CM_REJ_UNSUPPORTED, nothing);
    else if (r->path_mtu < 1 || r->path_mtu > largest_mtu)
        reject(a, CM_ABOUT_REQ, CM_REJ_INVALID_MTU, (struct cm_private){&largest_mtu, 1});
    else if (memcmp(r->primary.local_gid, a->path->remote.b, sizeof(r->primary.local_gid)) != 0 ||
             memcmp(r->primary.remote_gid, a->path->local.b, sizeof(r->primary.remote_gid)) != 0)
        reject(a, CM_ABOUT_REQ, CM_REJ_INVALID_GID,
               (struct cm_private){a->path->local.b, sizeof(a->path->local.b)});
    else if (cm_ip_service_id_is(r->service_id) &&
             (cm_ip_service_datagrams(r->service_id) ||
              !ip_header_good(a, r->private_data, sizeof(r->private_data))))
        reject(a, CM_ABOUT_REQ, CM_REJ_CONSUMER_DEFINED, nothing);
    else
        return true;
    return false;
}

/* A new id that waits for its listener's owner; NULL: no room, and the peer will try again. */
static struct cm_id *new_child(const struct arrival *a, struct cm_id *listener)
{
    if (listener->waiting_children >= listener->backlog) {
        cm_count_one(a->cm, CM_COUNT_BACKLOG_FULL);
        return NULL;
    }
    struct cm_id *id = cm_id_new(a->cm, a->path, NULL);
    if (id == NULL) {
        cm_count_one(a->cm, CM_COUNT_NO_ID);
        return NULL;
    }
    id->tid = a->m.header.tid;
    id->unseen = true;
    id->listener = listener;
    listener->waiting_children++;
    TAILQ_INSERT_TAIL(&listener->children, id, link);
    return id;
}

static bool has_alternate(const struct cm_msg_path *p)
{
    static const struct cm_msg_path none;
    return p->local_lid != 0 || memcmp(p->local_gid, none.local_gid, sizeof(p->local_gid)) != 0;
}

static void input_req(struct arrival *a)
{
    const struct cm_req *r = &a->m.req;
    if (!check_fresh(a))
        return;
    struct cm_id *listener = cm_find_listener(a->cm, r->service_id, &a->path->local);
    if (listener == NULL) {
        cm_count_one(a->cm, CM_COUNT_NO_LISTENER);
        refuse(a);
        return;
    }
    if (!check_req(a))
        return;
    struct cm_id *id = new_child(a, listener);
    if (id == NULL)
        return;
    /* What the QP's packets shall carry is the requester's choice. */
    id->path.flow_label = r->primary.flow_label;
    id->path.traffic_class = r->primary.traffic_class;
    id->service_id = r->service_id;
    id->xrc = cm_msg_req_is_xrc(r);
    id->alternate = has_alternate(&r->alternate);
    id->max_retries = r->max_cm_retries;
    id->timeout_ns = cm_time_ns(r->local_cm_response_timeout, CM_MAX_TIME_CODE);
    id->linger_ns = 2 * cm_time_ns(r->remote_cm_response_timeout, CM_MAX_TIME_CODE);
    id->timewait_ns = cm_time_ns(r->primary.local_ack_timeout, CM_MAX_TIME_CODE);
    id->state = CM_STATE_REQ_RCVD;
    cm_id_set_peer(id, r->local_comm_id);
    cm_id_set_qpn(id, r->local_qpn);
    cm_id_event(id, CM_EVENT_REQ, 0, a->mad);
}

/* REP and RTU. */

static void duplicate_rep(const struct arrival *a, struct cm_id *id)
{
    cm_count_one(a->cm, CM_COUNT_DUPLICATE);
    switch (id->state) {
    case CM_STATE_REP_RCVD:
        if (id->step == CM_MRA)
            cm_id_resend(id);
        else
            ask_for_time(id);
        break;
    case CM_STATE_ESTABLISHED: /* the RTU was lost */
    case CM_STATE_REJ_SENT:
        cm_id_resend(id);
        break;
    case CM_STATE_TIMEWAIT:
        reject(a, CM_ABOUT_REP, CM_REJ_STALE_CONN, nothing);
        break;
    default: /* DREQ_SENT: the DREQ tells the peer all */
        break;
    }
}

static void stale_rep(const struct arrival *a, struct cm_id *id, struct cm_id *old)
{
    struct cm_msg m = cm_id_msg(id, CM_REJ);
    uint8_t mad[MAD_BYTES];
    cm_count_one(a->cm, CM_COUNT_STALE);
    reject(a, CM_ABOUT_REP, CM_REJ_STALE_CONN, nothing);
    drop_stale(a, old);
    m.rej.reason = CM_REJ_STALE_CONN;
    m.rej.about = CM_ABOUT_REP;
    cm_msg_build(&m, mad);
    end_rejected(id, mad);
}

static void input_rep(struct arrival *a)
{
    const struct cm_rep *r = &a->m.rep;
    struct cm_id *id = addressee(a, false);
    if (id == NULL) {
        refuse(a);
        return;
    }
    if (id->state != CM_STATE_REQ_SENT) {
        if (id->active && id->remote_comm_id == r->local_comm_id) {
            duplicate_rep(a, id);
            return;
        }
        cm_count_one(a->cm, CM_COUNT_UNEXPECTED);
        /* To a REQ that was answered before by a life of the peer that has ended: the new one must
         * not wait for us. */
        if (id->remote_comm_id != r->local_comm_id)
            refuse(a);
        return;
    }
    uint32_t qpn = cm_msg_rep_qpn(r, id->xrc);
    if (qpn <= QPN_GSI || qpn == 0xffffff) {
        cm_count_one(a->cm, CM_COUNT_MALFORMED);
        return;
    }
    struct cm_id *old = cm_find_qpn(a->cm, &a->path->remote, qpn);
    if (old != NULL) {
        stale_rep(a, id, old);
        return;
    }
    stop_timer(id);
    id->state = CM_STATE_REP_RCVD;
    id->step = CM_REP; /* nothing of ours is kept that would answer a repetition */
    cm_id_set_peer(id, r->local_comm_id);
    cm_id_set_qpn(id, qpn);
    cm_id_event(id, CM_EVENT_REP, 0, a->mad);
}

static void input_rtu(struct arrival *a)
{
    struct cm_id *id = connection(a);
    if (id == NULL)
        return;
    if (id->state == CM_STATE_REJ_SENT) {
        cm_id_resend(id); /* the peer believes itself connected */
    } else if (id->state == CM_STATE_REP_SENT) {
        stop_timer(id);
        id->state = CM_STATE_ESTABLISHED;
        cm_id_event(id, CM_EVENT_ESTABLISHED, 0, a->mad);
    } else {
        cm_count_one(a->cm, CM_COUNT_DUPLICATE);
    }
}

/* MRA: the peer has our message and needs more time for its answer. */
static void input_mra(struct arrival *a)
{
    struct cm_id *id = addressee(a, false);
    if (id == NULL)
        return;
    bool fits = (id->state == CM_STATE_REQ_SENT && a->m.mra.about == CM_ABOUT_REQ) ||
                (id->state == CM_STATE_REP_SENT && a->m.mra.about == CM_ABOUT_REP &&
                 id->remote_comm_id == a->m.mra.local_comm_id);
    if (!fits) {
        cm_count_one(a->cm, CM_COUNT_UNEXPECTED);
        return;
    }
    heap_put(&a->cm->timers, &id->timer,
             a->now_ns + id->timeout_ns + cm_time_ns(a->m.mra.service_timeout, CM_MAX_MRA_CODE));
    cm_id_event(id, CM_EVENT_MRA, 0, a->mad);
}

/* REJ. */

/* A peer that gave up before it heard from us knows nothing but its own id. */
static struct cm_id *rejected(const struct arrival *a)
{
    const struct cm_rej *r = &a->m.rej;
    if (r->remote_comm_id != 0)
        return addressee(a, false);
    struct cm_id *id = cm_find_peer(a->cm, &a->path->remote, r->local_comm_id, false);
    if (id != NULL && r->reason == CM_REJ_TIMEOUT &&
        (id->state == CM_STATE_REQ_RCVD || id->state == CM_STATE_REP_SENT))
        return id;
    cm_count_one(a->cm, CM_COUNT_UNKNOWN_ID);
    return NULL;
}

static void input_rej(struct arrival *a)
{
    const struct cm_rej *r = &a->m.rej;
    struct cm_id *id = rejected(a);
    if (id == NULL)
        return;
    bool from_peer = r->local_comm_id != 0 && r->local_comm_id == id->remote_comm_id;
    switch (id->state) {
    case CM_STATE_REQ_SENT: /* who rejects our REQ needs no id of its own */
        end_rejected(id, a->mad);
        return;
    case CM_STATE_REQ_RCVD:
    case CM_STATE_REP_SENT:
    case CM_STATE_REP_RCVD:
        if (!from_peer)
            break;
        end_rejected(id, a->mad);
        return;
    case CM_STATE_ESTABLISHED:
    case CM_STATE_DREQ_SENT:
        if (!from_peer)
            break;
        cm_id_event(id, CM_EVENT_DISCONNECTED, CM_REJ, a->mad);
        cm_id_timewait(id, a->now_ns);
        return;
    default:
        break;
    }
    cm_count_one(a->cm, CM_COUNT_UNEXPECTED);
}

/* DREQ and DREP. */

static void emit_drep(const struct cm_id *id)
{
    struct cm_msg m = cm_id_msg(id, CM_DREP);
    m.header.tid = id->drep_tid;
    cm_emit(id->cm, &id->path, &m);
}

static void send_drep(const struct arrival *a, struct cm_id *id)
{
    id->drep_owed = false;
    id->drep_sent = true;
    id->drep_tid = a->m.header.tid;
    emit_drep(id);
}

void cm_id_pay_drep(struct cm_id *id)
{
    if (!id->drep_owed)
        return;
    id->drep_owed = false;
    id->drep_sent = true;
    emit_drep(id);
}

void cm_say_again(struct cm *cm)
{
    for (uint32_t i = 0; i < cm->fresh; i++) {
        struct cm_id *id = &cm->ids[i];
        if (id->state == CM_STATE_TIMEWAIT && (id->drep_sent || id->drep_owed))
            emit_drep(id);
        if (id->state == CM_STATE_REJ_SENT || id->state == CM_STATE_SIDR_REP_SENT)
            cm_emit_mad(cm, &id->path, id->mad);
    }
}

/*
 * As with the kernel the DREP waits until the caller disconnects, too: it tells the peer that
 * nothing is on its way any more and its QP can go. Unlike the kernel a caller that is slow to hear
 * of the end keeps the peer waiting no longer than for one repetition.
 */
static void input_dreq(struct arrival *a)
{
    struct cm_id *id = connection(a);
    if (id == NULL) {
        refuse(a);
        return;
    }
    if (a->m.dreq.remote_qpn != id->local_qpn) {
        cm_count_one(a->cm, CM_COUNT_UNEXPECTED);
        return;
    }
    switch (id->state) {
    case CM_STATE_REP_SENT: /* the RTU was lost, but the peer was connected */
        cm_id_event(id, CM_EVENT_ESTABLISHED, 0, NULL);
        break;
    case CM_STATE_ESTABLISHED:
    case CM_STATE_DREQ_SENT: /* both at once */
        break;
    case CM_STATE_TIMEWAIT:
        cm_count_one(a->cm, CM_COUNT_DUPLICATE);
        send_drep(a, id);
        return;
    default:
        cm_count_one(a->cm, CM_COUNT_UNEXPECTED);
        return;
    }
    if (id->state == CM_STATE_DREQ_SENT || id->orphan) {
        send_drep(a, id);
    } else {
        id->drep_owed = true;
        id->drep_tid = a->m.header.tid;
    }
    cm_id_event(id, CM_EVENT_DREQ, 0, a->mad);
    cm_id_timewait(id, a->now_ns);
}

static void input_drep(struct arrival *a)
{
    struct cm_id *id = connection(a);
    if (id == NULL)
        return;
    if (id->state != CM_STATE_DREQ_SENT) {
        cm_count_one(a->cm, CM_COUNT_UNEXPECTED);
        return;
    }
    cm_id_event(id, CM_EVENT_DISCONNECTED, 0, a->mad);
    cm_id_timewait(id, a->now_ns);
}

/* LAP: there are no alternate paths here, as in the kernel's RoCE. */
static void input_lap(struct arrival *a)
{
    struct cm_id *id = connection(a);
    if (id == NULL) {
        refuse(a);
        return;
    }
    struct cm_msg m = cm_id_msg(id, CM_APR);
    m.header.tid = a->m.header.tid;
    m.apr.status = CM_APR_UNSUPPORTED;
    cm_emit(a->cm, &id->path, &m);
}

/* SIDR. */

static void refuse_sidr(const struct arrival *a, enum cm_sidr_status status)
{
    struct cm_msg m = {
        .header = {.attribute = CM_SIDR_REP, .tid = a->m.header.tid}
    };
    m.sidr_rep.request_id = a->m.sidr_req.request_id;
    m.sidr_rep.service_id = a->m.sidr_req.service_id;
    m.sidr_rep.status = (uint8_t)status;
    cm_emit(a->cm, a->path, &m);
}

static void input_sidr_req(struct arrival *a)
{
    const struct cm_sidr_req *r = &a->m.sidr_req;
    struct cm_id *id = cm_find_peer(a->cm, &a->path->remote, r->request_id, true);
    if (id != NULL) {
        cm_count_one(a->cm, CM_COUNT_DUPLICATE);
        if (id->state == CM_STATE_SIDR_REP_SENT)
            cm_id_resend(id);
        return;
    }
    struct cm_id *listener = cm_find_listener(a->cm, r->service_id, &a->path->local);
    if (listener == NULL) {
        cm_count_one(a->cm, CM_COUNT_NO_LISTENER);
        refuse(a);
        return;
    }
    if (cm_ip_service_id_is(r->service_id) &&
        (cm_ip_service_space(r->service_id) == CM_PORT_SPACE_TCP ||
         !ip_header_good(a, r->private_data, sizeof(r->private_data)))) {
        refuse_sidr(a, CM_SIDR_REJECT);
        return;
    }
    id = new_child(a, listener);
    if (id == NULL)
        return;
    id->sidr = true;
    id->service_id = r->service_id;
    id->state = CM_STATE_SIDR_REQ_RCVD;
    cm_id_set_peer(id, r->request_id);
    cm_id_event(id, CM_EVENT_SIDR_REQ, 0, a->mad);
}

static void input_sidr_rep(struct arrival *a)
{
    struct cm_id *id = addressee(a, true);
    if (id == NULL)
        return;
    if (id->state != CM_STATE_SIDR_REQ_SENT || id->service_id != a->m.sidr_rep.service_id) {
        cm_count_one(a->cm, CM_COUNT_UNEXPECTED);
        return;
    }
    cm_id_event(id, CM_EVENT_SIDR_REP, 0, a->mad);
    cm_id_finish(id);
}

static void input_apr(struct arrival *a)
{
    cm_count_one(a->cm, CM_COUNT_UNEXPECTED); /* we never send a LAP */
}

void cm_input(struct cm *cm, uint64_t now_ns, const struct cm_path *path, const uint8_t *mad,
              size_t n)
{
    static void (*const inputs[])(struct arrival *) = {
        [0] = input_req,
        [CM_MRA - CM_REQ] = input_mra,
        [CM_REJ - CM_REQ] = input_rej,
        [CM_REP - CM_REQ] = input_rep,
        [CM_RTU - CM_REQ] = input_rtu,
        [CM_DREQ - CM_REQ] = input_dreq,
        [CM_DREP - CM_REQ] = input_drep,
        [CM_SIDR_REQ - CM_REQ] = input_sidr_req,
        [CM_SIDR_REP - CM_REQ] = input_sidr_rep,
        [CM_LAP - CM_REQ] = input_lap,
        [CM_APR - CM_REQ] = input_apr,
    };
    struct arrival a = {.cm = cm, .now_ns = now_ns, .path = path, .mad = mad};
    cm_count_one(cm, CM_COUNT_IN);
    if (cm_msg_check(mad, n) != MAD_OK) {
        cm_count_one(cm, CM_COUNT_MALFORMED);
        return;
    }
    cm_msg_parse(mad, &a.m);
    inputs[a.m.header.attribute - CM_REQ](&a);
}
