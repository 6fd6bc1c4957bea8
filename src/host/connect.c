/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect.c: the one communication manager (CM) of a process: what its users ask for, and the
 * service names that its listeners hold. Its events are in connect_event.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/host_priv.h"

enum {
    FAREWELLS = 3,       /* DREQs at the end, as one may be lost */
    MAX_TIME_CODE = 31,  /* of 5 bits */
    ACK_DELAY_CODE = 15, /* of the answer to a packet, at most: 134 ms */
    RATE_10_GBPS = 3,    /* a code; nobody reads it */
    FAILOVER_NOT_SUPPORTED = 1,
};

/* Users and ids. */

static uint64_t any_guid(void)
{
    struct verbena_device *d;
    size_t n;
    uint64_t guid = 0;
    if (verbena_device_list(&d, &n) == 0 && n != 0)
        guid = d[0].node_guid;
    free(d);
    return guid != 0 ? guid : host_random() | 1;
}

static int cm_make(struct host *h)
{
    struct cm_config config = {
        .seed = host_random(), .slot = port_udp_slot(h->udp), .ca_guid = any_guid()};
    progress_lock(&h->events);
    int err = h->connect.cm == NULL ? cm_create(&config, &h->connect.cm) : 0;
    progress_unlock(&h->events);
    progress_dispatch(h);
    return err;
}

int verbena_cm_open(const struct verbena_cm_callbacks *cb, struct verbena_cm **out)
{
    struct verbena_cm *user = calloc(1, sizeof(*user));
    if (user == NULL)
        return -ENOMEM;
    user->callbacks = *cb;
    int err = host_acquire(&user->host);
    if (err != 0) {
        free(user);
        return err;
    }
    err = cm_make(user->host);
    if (err != 0) {
        host_release(user->host);
        free(user);
        return err;
    }
    *out = user;
    return 0;
}

void verbena_cm_close(struct verbena_cm *user)
{
    struct host *h = user->host;
    bool left = user->ids != 0;
    if (host_alive(h))
        host_release(h);
    /* Ids that the program left behind keep it. */
    if (!left)
        free(user);
}

/* For calls on the cm. false: in a child. */
static bool enter(struct verbena_cm_id *id)
{
    if (!host_alive(id->host))
        return false;
    progress_lock(&id->host->events);
    return true;
}

static int leave(struct verbena_cm_id *id, int result)
{
    struct host *h = id->host;
    connect_settle(h);
    progress_unlock(&h->events);
    progress_send(h);
    return result;
}

/* The same for calls that concern the port, too. */
static bool enter_port(struct verbena_cm_id *id)
{
    if (!host_alive(id->host))
        return false;
    progress_lock(&id->host->rx);
    progress_lock(&id->host->events);
    return true;
}

static int leave_port(struct verbena_cm_id *id, int result)
{
    struct host *h = id->host;
    connect_settle(h);
    progress_unlock(&h->events);
    progress_unlock(&h->rx);
    progress_send(h);
    return result;
}

/* The last that the peer hears of this id, and the caller may end at once: what went to the peer by
 * a socket of our own must not end with us. */
static int leave_for_good(struct verbena_cm_id *id, int result)
{
    if (result == 0)
        progress_pass_on(id->host);
    return result;
}

int verbena_cm_id_create(struct verbena_cm *user, void *owner, struct verbena_cm_id **out)
{
    struct host *h = user->host;
    if (!host_alive(h))
        return -EIO;
    progress_lock(&h->events);
    *out = connect_id_new(user, owner);
    progress_unlock(&h->events);
    progress_dispatch(h);
    return *out != NULL ? 0 : -ENOMEM;
}

/* Its peer needs no farewell. With rx and events held. */
static void strike_out(struct verbena_cm_id *id)
{
    if (id->note >= 0)
        port_udp_deaths_forget(id->host->udp, id->note);
    id->note = -1;
    connect_id_move(id, NULL);
}

/* With rx and events held. */
static void forget_connection(struct verbena_cm_id *id)
{
    struct host *h = id->host;
    strike_out(id);
    connect_ease(id);
    if (id->cm_id != NULL)
        cm_id_destroy(h->connect.cm, host_now_ns(), id->cm_id);
    id->cm_id = NULL;
    id->connected = false;
    connect_expect(id, 0);
}

static void unbind(struct verbena_cm_id *id)
{
    struct connect_service *s = id->bound;
    id->bound = NULL;
    if (s == NULL)
        return;
    s->holder = NULL;
    port_udp_service_rest(s->claim, host_now_ns());
    if (s->connections == 0)
        atomic_store(&id->host->connect.tidy_due, true);
}

/* The peer has to be told, and may not hear it the first time: the id lives on without its user.
 * false: that is not so. With events held. */
static bool take_leave(struct verbena_cm_id *id)
{
    struct connect *c = &id->host->connect;
    if (id->list == NULL)
        return false;
    enum cm_state state = cm_id_state(id->cm_id);
    struct cm_private none = {0};
    if (state == CM_STATE_ESTABLISHED && cm_disconnect(c->cm, host_now_ns(), id->cm_id, none) != 0)
        return false;
    if (state != CM_STATE_ESTABLISHED && state != CM_STATE_DREQ_SENT)
        return false;
    connect_ease(id);
    connect_expect(id, 0);
    connect_id_move(id, &c->leaving);
    id->user->ids--;
    c->ids--;
    id->user = NULL;
    return true;
}

void verbena_cm_id_destroy(struct verbena_cm_id *id)
{
    struct host *h = id->host;
    if (!enter_port(id)) {
        connect_id_free(id);
        return;
    }
    unbind(id);
    if (!take_leave(id)) {
        forget_connection(id);
        connect_id_free(id);
    }
    connect_settle(h);
    progress_unlock(&h->events);
    progress_unlock(&h->rx);
    progress_send(h);
}

void verbena_cm_set_owner(struct verbena_cm_id *id, void *owner)
{
    /* Written where events are told, or before anybody else knows the id. */
    __atomic_store_n(&id->owner, owner, __ATOMIC_RELEASE);
}

void verbena_cm_migrate(struct verbena_cm_id *id, struct verbena_cm *user)
{
    if (!enter(id))
        return;
    id->user->ids--;
    id->user = user;
    user->ids++;
    leave(id, 0);
}

/* Services. */

static enum cm_bind bind_of(const struct net_addr *addr)
{
    static const struct net_addr any4 =
                                     {
                                         {[10] = 0xff, [11] = 0xff}
    },
                                 any6;
    if (addr == NULL)
        return CM_BIND_ANY;
    if (memcmp(addr, &any4, sizeof(any4)) == 0)
        return CM_BIND_ANY_V4;
    return memcmp(addr, &any6, sizeof(any6)) == 0 ? CM_BIND_ANY_V6 : CM_BIND_ADDR;
}

static void service_give_up(struct host *h, struct connect_service *s)
{
    if (s->claim != NULL)
        port_udp_service_release(h->udp, s->claim);
    s->claim = NULL;
    if (s->connections != 0)
        return;
    TAILQ_REMOVE(&h->connect.services, s, link);
    free(s);
}

/* first <= last: one of these, added to the service id. With rx and events held. */
static int claim(struct verbena_cm_id *id, struct connect_service *s, uint32_t first, uint32_t last,
                 const struct net_addr *addr)
{
    struct host *h = id->host;
    struct connect_service *old, *next;
    s->bind = bind_of(addr);
    if (addr != NULL)
        s->addr = *addr;
    /* What only waits for late RTUs does not keep its name from its own process. */
    for (old = TAILQ_FIRST(&h->connect.services); old != NULL; old = next) {
        next = TAILQ_NEXT(old, link);
        uint64_t number = old->service_id - s->service_id;
        if (old->holder == NULL && number >= first && number <= last)
            service_give_up(h, old);
    }
    int err = first == 0 && last == 0
                  ? port_udp_service_claim(h->udp, s->service_id, addr, &s->claim)
                  : port_udp_service_claim_free(h->udp, s->service_id, first, last, addr,
                                                &s->service_id, &s->claim);
    if (err != 0)
        return err;
    port_udp_service_rest(s->claim, host_now_ns()); /* until verbena_cm_listen */
    s->holder = id;
    id->bound = s;
    TAILQ_INSERT_TAIL(&h->connect.services, s, link);
    return 0;
}

/* Our own user's programs know each other; a name that another user holds is somebody's mistake, or
 * no good, and nothing else tells of it. */
static void say_holder(uint64_t service_id, const struct net_addr *addr)
{
    char holder[256];
    const char *uid =
        strstr(port_udp_service_holder(service_id, addr, holder, sizeof(holder)), "(uid ");
    if (uid != NULL && strtoul(uid + strlen("(uid "), NULL, 10) != geteuid())
        fprintf(stderr, "verbena: port %u, service %#" PRIx64 ", belongs to %s\n",
                cm_ip_service_port(service_id), service_id, holder);
}

static int bind_some(struct verbena_cm_id *id, uint64_t *service_id, uint32_t first, uint32_t last,
                     const struct net_addr *addr)
{
    if (first > last)
        return -EINVAL;
    struct connect_service *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return -ENOMEM;
    s->service_id = *service_id;
    if (!enter_port(id)) {
        free(s);
        return -EIO;
    }
    int err = id->bound != NULL ? -EINVAL : claim(id, s, first, last, addr);
    if (err == 0)
        *service_id = s->service_id;
    else
        free(s);
    leave_port(id, err);
    if (err == -EADDRINUSE && first == last)
        say_holder(*service_id + first, addr);
    return err;
}

int verbena_cm_bind(struct verbena_cm_id *id, uint64_t service_id, const struct net_addr *addr)
{
    return bind_some(id, &service_id, 0, 0, addr);
}

int verbena_cm_bind_free(struct verbena_cm_id *id, uint64_t base, uint32_t first, uint32_t last,
                         const struct net_addr *addr, uint64_t *service_id)
{
    uint64_t found = base;
    int err = bind_some(id, &found, first, last, addr);
    if (err == 0)
        *service_id = found;
    return err;
}

static bool listening(const struct verbena_cm_id *id)
{
    return id->cm_id != NULL && cm_id_state(id->cm_id) == CM_STATE_LISTEN;
}

void verbena_cm_unbind(struct verbena_cm_id *id)
{
    if (!enter_port(id))
        return;
    if (listening(id))
        forget_connection(id);
    unbind(id);
    leave_port(id, 0);
}

void connect_tidy(struct host *h)
{
    struct connect *c = &h->connect;
    struct connect_service *s, *next;
    struct verbena_cm_id *id;
    progress_lock(&h->rx);
    progress_lock(&h->events);
    atomic_store(&c->tidy_due, false);
    for (s = TAILQ_FIRST(&c->services); s != NULL; s = next) {
        next = TAILQ_NEXT(s, link);
        if (s->holder == NULL && s->connections == 0)
            service_give_up(h, s);
    }
    while ((id = TAILQ_FIRST(&c->over)) != NULL) {
        strike_out(id);
        if (id->user != NULL)
            continue;
        cm_id_destroy(c->cm, host_now_ns(), id->cm_id);
        free(id);
    }
    connect_settle(h);
    progress_unlock(&h->events);
    progress_unlock(&h->rx);
}

static void farewell(struct host *h, const struct verbena_cm_id *id, unsigned times)
{
    struct cm_ends ends;
    uint8_t mad[MAD_BYTES];
    enum cm_state state = cm_id_state(id->cm_id);
    if (state != CM_STATE_ESTABLISHED && state != CM_STATE_DREQ_SENT)
        return;
    cm_id_ends(id->cm_id, &ends);
    cm_farewell(&ends, mad);
    struct nic_path path = connect_path_out(&ends.path);
    for (unsigned i = 0; i < times; i++)
        (void)gsi_send(h->nic, &path, GSI_QPN, mad);
}

void connect_farewell(struct host *h)
{
    struct verbena_cm_id *id;
    progress_lock(&h->events);
    /* Nobody is there to repeat it, so it goes out several times at once. */
    TAILQ_FOREACH(id, &h->connect.known, link)
    farewell(h, id, FAREWELLS);
    TAILQ_FOREACH(id, &h->connect.leaving, link)
    farewell(h, id, FAREWELLS - 1);
    if (h->connect.cm != NULL) {
        cm_say_again(h->connect.cm);
        cm_say_again(h->connect.cm);
        connect_settle(h);
    }
    progress_unlock(&h->events);
}

int verbena_cm_listen(struct verbena_cm_id *id, unsigned backlog)
{
    if (!enter(id))
        return -EIO;
    const struct connect_service *s = id->bound;
    int err = s == NULL || id->cm_id != NULL ? -EINVAL : 0;
    if (err == 0) {
        struct cm_service service = {.service_id = s->service_id, .bind = s->bind, .addr = s->addr};
        err = cm_listen(id->host->connect.cm, &service, backlog, id, &id->cm_id);
    }
    if (err == 0) {
        port_udp_service_rest(s->claim, 0);
        bool v4 =
            s->bind == CM_BIND_ANY_V4 || (s->bind == CM_BIND_ADDR && net_addr_is_v4(&s->addr));
        connect_expect(id, s->bind == CM_BIND_ANY ? CONNECT_V4 | CONNECT_V6
                           : v4                   ? CONNECT_V4
                                                  : CONNECT_V6);
    }
    return leave(id, err);
}

void verbena_cm_attend(struct verbena_cm_id *id)
{
    if (!enter(id))
        return;
    if (id->cm_id != NULL)
        cm_attend(id->cm_id);
    leave(id, 0);
}

void verbena_cm_unlisten(struct verbena_cm_id *id)
{
    if (!enter_port(id))
        return;
    if (listening(id)) {
        forget_connection(id);
        port_udp_service_rest(id->bound->claim, host_now_ns());
    }
    leave_port(id, 0);
}

/* Connections. */

static struct cm_private private_in(const struct verbena_cm_private *p)
{
    return p == NULL || p->data == NULL ? (struct cm_private){0}
                                        : (struct cm_private){p->data, p->bytes};
}

/* Of the device with this address; 0: the cm's own. Events held. */
static uint64_t guid_of(struct host *h, const struct net_addr *local)
{
    struct verbena_context *ctx;
    uint64_t guid = 0;
    TAILQ_FOREACH(ctx, &h->contexts, link)
    {
        pthread_mutex_lock(&ctx->gid_lock);
        for (unsigned i = 0; guid == 0 && i < VERBENA_GID_TABLE_SIZE; i++) {
            if (memcmp(&ctx->gid[i].addr, local, sizeof(*local)) == 0)
                guid = ctx->device.node_guid;
        }
        pthread_mutex_unlock(&ctx->gid_lock);
    }
    return guid;
}

static uint8_t mtu_code(uint16_t bytes)
{
    for (uint8_t code = 1; code <= 5; code++) {
        if (bytes == 128u << code)
            return code;
    }
    return 0;
}

/* The user's private data, behind the addressing header where there must be one (CM_IP). */
struct full_private {
    struct cm_private data;
    uint8_t bytes[CM_MAX_PRIVATE_BYTES];
};

static int private_of_request(const struct verbena_cm_connect *c, size_t limit,
                              struct full_private *out)
{
    struct cm_private user = private_in(&c->param.private_data);
    size_t header = cm_ip_service_id_is(c->service_id) ? CM_IP_HEADER_BYTES : 0;
    if (header + user.bytes > limit || user.bytes > limit)
        return -EINVAL;
    if (header != 0) {
        struct cm_ip ip = {.v6 = !net_addr_is_v4(&c->path.local), .src_port = c->src_port};
        memcpy(ip.src, c->path.local.b, sizeof(ip.src));
        memcpy(ip.dst, c->path.remote.b, sizeof(ip.dst));
        cm_ip_build(&ip, out->bytes);
    }
    if (user.bytes != 0)
        memcpy(out->bytes + header, user.data, user.bytes);
    out->data = (struct cm_private){out->bytes, header + user.bytes};
    return 0;
}

static int request_fits(const struct verbena_cm_connect *c)
{
    bool one_family = net_addr_is_v4(&c->path.local) == net_addr_is_v4(&c->path.remote);
    return one_family && c->response_timeout <= MAX_TIME_CODE && c->max_retries >= -1 &&
                   c->max_retries <= CM_DEFAULT_MAX_RETRIES
               ? 0
               : -EINVAL;
}

static uint8_t timeout_of(const struct verbena_cm_connect *c)
{
    return c->response_timeout != 0 ? c->response_timeout : CM_DEFAULT_RESPONSE_TIMEOUT;
}

static uint8_t retries_of(const struct verbena_cm_connect *c)
{
    return (uint8_t)(c->max_retries >= 0 ? c->max_retries : CM_DEFAULT_MAX_RETRIES);
}

static int req_of(struct host *h, const struct verbena_cm_connect *c, struct cm_req *r)
{
    const struct verbena_cm_param *p = &c->param;
    static const enum cm_transport transports[] = {
        [QP_TYPE_RC] = CM_TRANSPORT_RC,
        [QP_TYPE_UC] = CM_TRANSPORT_UC,
        [QP_TYPE_XRC_INI] = CM_TRANSPORT_EXTENDED,
    };
    bool xrc = c->qp_type == QP_TYPE_XRC_INI;
    if (c->qp_type != QP_TYPE_RC && c->qp_type != QP_TYPE_UC && !xrc)
        return -EINVAL;
    if (c->ack_timeout > MAX_TIME_CODE || p->qpn > 0xffffff || p->psn > 0xffffff ||
        p->retry_count > 7 || p->rnr_retry_count > 7 || p->ece_vendor_id > 0xffffff ||
        mtu_code(c->path_mtu_bytes) == 0)
        return -EINVAL;
    *r = (struct cm_req){
        .service_id = c->service_id,
        .local_ca_guid = guid_of(h, &c->path.local),
        .local_qkey = p->qkey,
        .local_qpn = p->qpn,
        .ece_vendor_id = p->ece_vendor_id,
        .ece_options = p->ece_options,
        .responder_resources = p->responder_resources,
        .initiator_depth = p->initiator_depth,
        .remote_cm_response_timeout = timeout_of(c),
        .local_cm_response_timeout = timeout_of(c),
        .transport = transports[c->qp_type],
        .transport_extended = xrc ? CM_TRANSPORT_EXTENDED_XRC : 0,
        .flow_control = p->flow_control,
        .starting_psn = p->psn,
        .retry_count = p->retry_count,
        .pkey = PKEY_DEFAULT,
        .path_mtu = mtu_code(c->path_mtu_bytes),
        .rnr_retry_count = p->rnr_retry_count,
        .max_cm_retries = retries_of(c),
        .srq = p->srq,
        .primary = {.packet_rate = RATE_10_GBPS, .local_ack_timeout = c->ack_timeout},
    };
    return 0;
}

/* No try is under way: what the last one left goes. With rx and events held. */
static int start(struct verbena_cm_id *id)
{
    if (id->cm_id != NULL && cm_id_state(id->cm_id) != CM_STATE_FINISHED)
        return -EINVAL;
    forget_connection(id);
    return 0;
}

static void started(struct verbena_cm_id *id, const struct nic_path *path)
{
    connect_expect(id, net_addr_is_v4(&path->remote) ? CONNECT_V4 : CONNECT_V6);
}

int verbena_cm_connect(struct verbena_cm_id *id, const struct verbena_cm_connect *c)
{
    struct full_private data;
    struct cm_req req;
    struct cm_path path = connect_path_in(&c->path);
    int err = request_fits(c);
    err = err == 0 ? private_of_request(c, CM_REQ_PRIVATE_BYTES, &data) : err;
    if (!enter_port(id))
        return -EIO;
    struct host *h = id->host;
    err = err == 0 ? req_of(h, c, &req) : err;
    err = err == 0 ? start(id) : err;
    err = err == 0
              ? cm_connect(h->connect.cm, host_now_ns(), &path, &req, data.data, id, &id->cm_id)
              : err;
    if (err == 0)
        started(id, &c->path);
    return leave_port(id, err);
}

int verbena_cm_sidr_connect(struct verbena_cm_id *id, const struct verbena_cm_connect *c)
{
    struct full_private data;
    struct cm_path path = connect_path_in(&c->path);
    struct cm_sidr_req req = {.pkey = PKEY_DEFAULT, .service_id = c->service_id};
    int err = request_fits(c);
    err = err == 0 ? private_of_request(c, CM_SIDR_REQ_PRIVATE_BYTES, &data) : err;
    if (!enter_port(id))
        return -EIO;
    err = err == 0 ? start(id) : err;
    err = err == 0 ? cm_sidr_connect(id->host->connect.cm, host_now_ns(), &path, &req,
                                     timeout_of(c), retries_of(c), data.data, id, &id->cm_id)
                   : err;
    if (err == 0)
        started(id, &c->path);
    return leave_port(id, err);
}

/* The peer is about to know our side: should this process go, it is told. With rx and events held.
 */
static void make_known(struct verbena_cm_id *id)
{
    struct cm_ends ends;
    if (id->list != NULL)
        return;
    cm_id_ends(id->cm_id, &ends);
    struct port_connection c = {.local_id = ends.local_comm_id,
                                .remote_id = ends.remote_comm_id,
                                .local_qpn = ends.local_qpn,
                                .remote_qpn = ends.remote_qpn,
                                .path = connect_path_out(&ends.path)};
    int index = port_udp_deaths_note(id->host->udp, &c);
    id->note = index < 0 ? -1 : index;
    connect_id_move(id, &id->host->connect.known);
}

/* The QP whose first packet is as good as an RTU. */
static void watch_qp(struct verbena_cm_id *id, uint32_t qpn)
{
    struct qp *qp = nic_find_qp(id->host->nic, qpn);
    struct host_object *o = qp != NULL ? qp->owner : NULL;
    if (o == NULL || o->cm_id != NULL)
        return;
    o->cm_id = id;
    id->qp = o;
    qp_await_packet(qp); /* it may be in RTS before the RTU that is lost */
}

int verbena_cm_accept(struct verbena_cm_id *id, const struct verbena_cm_param *p)
{
    if (p->qpn > 0xffffff || p->psn > 0xffffff || p->rnr_retry_count > 7 ||
        p->ece_vendor_id > 0xffffff)
        return -EINVAL;
    if (!enter_port(id))
        return -EIO;
    struct host *h = id->host;
    struct cm_rep rep = {
        .local_qkey = p->qkey,
        .local_qpn = p->qpn,
        .ece_vendor_id = p->ece_vendor_id,
        .ece_options = p->ece_options,
        .starting_psn = p->psn,
        .responder_resources = p->responder_resources,
        .initiator_depth = p->initiator_depth,
        .target_ack_delay = ACK_DELAY_CODE,
        .failover_accepted = FAILOVER_NOT_SUPPORTED,
        .flow_control = p->flow_control,
        .rnr_retry_count = p->rnr_retry_count,
        .srq = p->srq,
    };
    int err = id->cm_id == NULL ? -EINVAL
                                : cm_reply(h->connect.cm, host_now_ns(), id->cm_id, &rep,
                                           private_in(&p->private_data));
    if (err == 0) {
        make_known(id);
        watch_qp(id, p->qpn);
    }
    return leave_port(id, err);
}

int verbena_cm_ready(struct verbena_cm_id *id, const struct verbena_cm_private *data)
{
    if (!enter_port(id))
        return -EIO;
    int err = id->cm_id == NULL
                  ? -EINVAL
                  : cm_ready(id->host->connect.cm, host_now_ns(), id->cm_id, private_in(data));
    if (err == 0)
        make_known(id);
    return leave_port(id, err);
}

int verbena_cm_reject(struct verbena_cm_id *id, unsigned reason,
                      const struct verbena_cm_private *info, const struct verbena_cm_private *data)
{
    if (reason == 0 || reason > UINT16_MAX)
        return -EINVAL;
    if (!enter_port(id))
        return -EIO;
    int err = id->cm_id == NULL
                  ? -EINVAL
                  : cm_reject(id->host->connect.cm, host_now_ns(), id->cm_id,
                              (enum cm_rej_reason)reason, private_in(info), private_in(data));
    if (err == 0)
        forget_connection(id);
    return leave_for_good(id, leave_port(id, err));
}

int verbena_cm_mra(struct verbena_cm_id *id, uint8_t service_timeout,
                   const struct verbena_cm_private *data)
{
    if (service_timeout > MAX_TIME_CODE)
        return -EINVAL;
    if (!enter(id))
        return -EIO;
    return leave(id, id->cm_id == NULL ? -EINVAL
                                       : cm_mra(id->host->connect.cm, host_now_ns(), id->cm_id,
                                                service_timeout, private_in(data)));
}

int verbena_cm_establish(struct verbena_cm_id *id)
{
    if (!enter(id))
        return -EIO;
    return leave(id, id->cm_id == NULL
                         ? -EINVAL
                         : cm_establish(id->host->connect.cm, host_now_ns(), id->cm_id));
}

int verbena_cm_disconnect(struct verbena_cm_id *id, const struct verbena_cm_private *data)
{
    if (!enter(id))
        return -EIO;
    int err = id->cm_id == NULL
                  ? -EINVAL
                  : cm_disconnect(id->host->connect.cm, host_now_ns(), id->cm_id, private_in(data));
    bool over = id->connected && cm_id_state(id->cm_id) == CM_STATE_FINISHED;
    return leave(id, over ? 0 : err);
}

int verbena_cm_sidr_reply(struct verbena_cm_id *id, unsigned status,
                          const struct verbena_cm_param *p)
{
    if (status > CM_SIDR_UNSUPPORTED_VERSION || p->qpn > 0xffffff || p->ece_vendor_id > 0xffffff)
        return -EINVAL;
    if (!enter(id))
        return -EIO;
    struct cm_sidr_rep rep = {.status = (uint8_t)status,
                              .qpn = p->qpn,
                              .qkey = p->qkey,
                              .ece_vendor_id = p->ece_vendor_id,
                              .ece_options = p->ece_options};
    int err =
        leave(id, id->cm_id == NULL ? -EINVAL
                                    : cm_sidr_reply(id->host->connect.cm, host_now_ns(), id->cm_id,
                                                    &rep, private_in(&p->private_data)));
    return leave_for_good(id, err);
}
