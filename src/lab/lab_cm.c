/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_cm.c: the queue pair is ours and not the id's, since a case needs it before there is an id:
 * rdma_init_qp_attr() tells what each of its states wants. All waiting has the limit of the run.
 */
#include "lab/lab_cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lab/lab_clock.h"

static int fail(struct lab_end *e, int error, const char *what)
{
    snprintf(e->message, sizeof(e->message), "connect: %s: %s", what, strerror(error));
    return error > 0 ? -error : -EIO;
}

static int from_control(struct lab_end *e, int error)
{
    if (error != 0)
        lab_message_copy(e->message, e->control.message);
    return error;
}

/* The peer may give up meanwhile: what it says comes by the control connection. */
static int hear(struct lab_end *e)
{
    json_t *o = NULL;
    int n = lab_control_hear(&e->control, "nothing", &o);
    json_decref(o);
    return n < 0 ? from_control(e, n) : 0;
}

/* The next event, which must be of that kind. It is acknowledged; a new id of it stays. */
static int await(struct lab_cm *cm, struct lab_end *e, enum rdma_cm_event_type type,
                 struct rdma_cm_id **id)
{
    uint64_t deadline = lab_now_ns() + e->settings.timeout_ns;
    for (;;) {
        struct pollfd p[2] = {
            {.fd = cm->channel->fd, .events = POLLIN},
            {.fd = e->control.fd,   .events = POLLIN}
        };
        struct rdma_cm_event *event;
        if (lab_now_ns() > deadline) {
            snprintf(e->message, sizeof(e->message), "connect: no %s for %llu ms while %s",
                     rdma_event_str(type), (unsigned long long)(e->settings.timeout_ns / 1000000),
                     e->control.doing);
            return -ETIMEDOUT;
        }
        if (poll(p, 2, 50) <= 0)
            continue;
        if ((p[0].revents & POLLIN) == 0) {
            int error = hear(e);
            if (error != 0)
                return error;
            continue;
        }
        if (rdma_get_cm_event(cm->channel, &event) != 0)
            return fail(e, errno, "rdma_get_cm_event");
        enum rdma_cm_event_type got = event->event;
        int status = event->status;
        if (id != NULL && got == type)
            *id = event->id;
        rdma_ack_cm_event(event);
        if (got == type)
            return 0;
        snprintf(e->message, sizeof(e->message), "connect: %s instead of %s (status %d)",
                 rdma_event_str(got), rdma_event_str(type), status);
        return -ECONNREFUSED;
    }
}

static int to_state(struct lab_cm *cm, struct lab_end *e, struct lab_queue *q,
                    enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask;
    if (rdma_init_qp_attr(cm->id, &attr, &mask) != 0)
        return fail(e, errno, "rdma_init_qp_attr");
    int error = ibv_modify_qp(q->qp, &attr, mask);
    return error == 0 ? 0 : fail(e, error, "queue pair");
}

static struct rdma_conn_param parameters(const struct lab_queue *q)
{
    return (struct rdma_conn_param){
        .responder_resources = (uint8_t)q->self.reads,
        .initiator_depth = (uint8_t)q->self.reads,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .qp_num = q->qp->qp_num,
    };
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
};

/* That of our device, which need not be the one of the control connection. */
static int own_address(struct lab_end *e, union address *a)
{
    struct in6_addr gid;
    memcpy(&gid, e->rig.gid.raw, sizeof(gid));
    *a = (union address){.room = {0}};
    if (IN6_IS_ADDR_LINKLOCAL(&gid)) {
        /* A GID does not say which link; the connection does, if it goes there. */
        socklen_t bytes = sizeof(*a);
        if (getsockname(e->control.fd, &a->any, &bytes) != 0)
            return fail(e, errno, "own address");
        if (a->any.sa_family != AF_INET6 || memcmp(&a->v6.sin6_addr, &gid, sizeof(gid)) != 0)
            return fail(e, EADDRNOTAVAIL, "the device has but a link-local address");
        a->v6.sin6_port = 0;
    } else if (IN6_IS_ADDR_V4MAPPED(&gid)) {
        a->v4.sin_family = AF_INET;
        memcpy(&a->v4.sin_addr, gid.s6_addr + 12, 4);
    } else {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_addr = gid;
    }
    return 0;
}

/* The peer's, as it tells it; on which link, we know ourselves. */
static bool parse_address(const char *text, const union address *own, uint16_t port,
                          union address *a)
{
    *a = *own;
    if (own->any.sa_family == AF_INET) {
        a->v4.sin_port = htons(port);
        return inet_pton(AF_INET, text, &a->v4.sin_addr) == 1;
    }
    a->v6.sin6_port = htons(port);
    return inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1;
}

static int open_listener(struct lab_cm *cm, struct lab_end *e, char text[INET6_ADDRSTRLEN])
{
    union address own;
    int error = own_address(e, &own);
    if (error != 0)
        return error;
    const void *bytes = own.any.sa_family == AF_INET ? (const void *)&own.v4.sin_addr
                                                     : (const void *)&own.v6.sin6_addr;
    inet_ntop(own.any.sa_family, bytes, text, INET6_ADDRSTRLEN);
    if (rdma_create_id(cm->channel, &cm->listener, NULL, RDMA_PS_TCP) != 0)
        return fail(e, errno, "rdma_create_id");
    if (rdma_bind_addr(cm->listener, &own.any) != 0)
        return fail(e, errno, "rdma_bind_addr");
    return rdma_listen(cm->listener, 1) == 0 ? 0 : fail(e, errno, "rdma_listen");
}

static int accept_one(struct lab_cm *cm, struct lab_end *e, struct lab_queue *q)
{
    char address[INET6_ADDRSTRLEN] = "";
    int error = open_listener(cm, e, address);
    if (error != 0)
        return error;
    json_t *o = json_pack("{s:i,s:s}", "port", (int)ntohs(rdma_get_src_port(cm->listener)),
                          "address", address);
    error = from_control(e, lab_control_send(&e->control, "listening", o));
    if (error == 0)
        error = await(cm, e, RDMA_CM_EVENT_CONNECT_REQUEST, &cm->id);
    if (error == 0)
        error = to_state(cm, e, q, IBV_QPS_RTR);
    if (error == 0)
        error = to_state(cm, e, q, IBV_QPS_RTS);
    if (error != 0)
        return error;
    struct rdma_conn_param param = parameters(q);
    if (rdma_accept(cm->id, &param) != 0)
        return fail(e, errno, "rdma_accept");
    return await(cm, e, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static int resolve(struct lab_cm *cm, struct lab_end *e, const char *address, uint16_t port)
{
    union address own, peer;
    int limit_ms = (int)(e->settings.timeout_ns / 1000000);
    int error = own_address(e, &own);
    if (error != 0)
        return error;
    if (!parse_address(address, &own, port, &peer)) {
        snprintf(e->message, sizeof(e->message),
                 "connect: the peer's device is at '%.100s', which is of another family than ours",
                 address);
        return -EAFNOSUPPORT;
    }
    if (rdma_create_id(cm->channel, &cm->id, NULL, RDMA_PS_TCP) != 0)
        return fail(e, errno, "rdma_create_id");
    if (rdma_resolve_addr(cm->id, &own.any, &peer.any, limit_ms) != 0)
        return fail(e, errno, "rdma_resolve_addr");
    error = await(cm, e, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
    if (error != 0)
        return error;
    if (rdma_resolve_route(cm->id, limit_ms) != 0)
        return fail(e, errno, "rdma_resolve_route");
    return await(cm, e, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

static int connect_one(struct lab_cm *cm, struct lab_end *e, struct lab_queue *q)
{
    uint64_t port;
    json_t *o = lab_control_receive(&e->control, "listening");
    if (o == NULL)
        return from_control(e, -EPIPE);
    const char *address = lab_control_text(&e->control, o, "address");
    bool right = address != NULL && lab_control_number(&e->control, o, "port", 65535, &port);
    int error = right ? resolve(cm, e, address, (uint16_t)port) : from_control(e, -EPROTO);
    json_decref(o);
    if (error != 0)
        return error;
    struct rdma_conn_param param = parameters(q);
    if (rdma_connect(cm->id, &param) != 0)
        return fail(e, errno, "rdma_connect");
    error = await(cm, e, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL);
    if (error == 0)
        error = to_state(cm, e, q, IBV_QPS_RTR);
    if (error == 0)
        error = to_state(cm, e, q, IBV_QPS_RTS);
    if (error == 0 && rdma_establish(cm->id) != 0)
        error = fail(e, errno, "rdma_establish");
    return error;
}

int lab_cm_connect(struct lab_cm *cm, struct lab_end *e, struct lab_queue *q)
{
    *cm = (struct lab_cm){0};
    cm->channel = rdma_create_event_channel();
    if (cm->channel == NULL)
        return fail(e, errno, "rdma_create_event_channel");
    fcntl(cm->channel->fd, F_SETFD, FD_CLOEXEC);
    int error = e->serving ? accept_one(cm, e, q) : connect_one(cm, e, q);
    if (error == 0)
        error = e->serving ? lab_queue_tell_memory(q)
                           : lab_queue_learn_memory(q, e->control.fd, e->settings.timeout_ns);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    if (error == 0 && ibv_query_qp(q->qp, &attr, IBV_QP_DEST_QPN, &init) == 0)
        q->peer.qpn = attr.dest_qp_num;
    if (error != 0 && q->message[0] != '\0')
        lab_message_copy(e->message, q->message);
    return error;
}

void lab_cm_disconnect(struct lab_cm *cm)
{
    if (cm->id != NULL) {
        rdma_disconnect(cm->id);
        rdma_destroy_id(cm->id);
    }
    if (cm->listener != NULL)
        rdma_destroy_id(cm->listener);
    if (cm->channel != NULL)
        rdma_destroy_event_channel(cm->channel);
    *cm = (struct lab_cm){0};
}
