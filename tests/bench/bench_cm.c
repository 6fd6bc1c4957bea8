/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_cm.c: connections made and ended, as any program would with librdmacm: address, route, QP,
 * connect, disconnect, destroy; so many at a time. Beside it TCP connections that carry one byte.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORT_CM = 7471,
    PORT_TCP = 17471,
    BACKLOG = 128,
    CONNECTIONS_A_SLICE = 32,
    RESOLVE_MS = 2000,
    TARGET_POLL_MS = 20, /* how soon the target sees that all is over */
};

/* What all QPs of a process share; made with the first id that has a device. */
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void give_qp(struct rdma_cm_id *id)
{
    if (pd == NULL) {
        pd = ibv_alloc_pd(id->verbs);
        cq = ibv_create_cq(id->verbs, 1024, NULL, NULL, 0);
    }
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0},
                .qp_type = IBV_QPT_RC
    };
    if (pd == NULL || cq == NULL || rdma_create_qp(id, pd, &init) != 0)
        bench_die("rdma_create_qp");
}

static void end(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    if (rdma_destroy_id(id) != 0)
        bench_die("rdma_destroy_id");
}

static void begin(struct rdma_event_channel *channel)
{
    struct sockaddr_in to = loopback(PORT_CM);
    struct rdma_cm_id *id = NULL;
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0 ||
        rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, RESOLVE_MS) != 0)
        bench_die("rdma_resolve_addr");
}

/* The active side's next step; true: a connection has come and gone. */
static bool go_on(struct rdma_cm_id *id, enum rdma_cm_event_type event)
{
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    int rc = 0;
    switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        rc = rdma_resolve_route(id, RESOLVE_MS);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        give_qp(id);
        rc = rdma_connect(id, &param);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        rc = rdma_disconnect(id);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        end(id);
        return true;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default:
        errno = EPROTO;
        fprintf(stderr, "bench: %s\n", rdma_event_str(event));
        rc = -1;
    }
    if (rc != 0)
        bench_die("a connection's next step");
    return false;
}

void cm_connect_initiator(const struct bench_case *c)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (channel == NULL)
        bench_die("rdma_create_event_channel");
    bench_meet();
    bench_slice_begin(CONNECTIONS_A_SLICE);
    uint32_t under_way = 0;
    for (; under_way < c->bytes; under_way++)
        begin(channel);
    bool full = false;
    while (under_way > 0) {
        struct rdma_cm_event *e = NULL;
        if (rdma_get_cm_event(channel, &e) != 0)
            bench_die("rdma_get_cm_event");
        struct rdma_cm_id *id = e->id;
        enum rdma_cm_event_type event = e->status == 0 ? e->event : RDMA_CM_EVENT_CONNECT_ERROR;
        rdma_ack_cm_event(e);
        if (!go_on(id, event))
            continue;
        under_way--;
        full = full || bench_slice_work(1);
        if (!full) {
            begin(channel);
            under_way++;
        }
    }
    bench_shared->result = 1e6 / bench_slice_median_ns();
    rdma_destroy_event_channel(channel);
}

/* The passive side's next step. */
static void serve(struct rdma_cm_id *id, enum rdma_cm_event_type event)
{
    struct rdma_conn_param param = {.rnr_retry_count = 7};
    if (event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        give_qp(id);
        if (rdma_accept(id, &param) != 0)
            bench_die("rdma_accept");
    } else if (event == RDMA_CM_EVENT_DISCONNECTED) {
        rdma_disconnect(id);
        end(id);
    }
}

void cm_connect_target(const struct bench_case *c)
{
    (void)c;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_in at = loopback(PORT_CM);
    struct rdma_cm_id *listener = NULL;
    if (channel == NULL || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) != 0 ||
        rdma_bind_addr(listener, (struct sockaddr *)&at) != 0 ||
        rdma_listen(listener, BACKLOG) != 0)
        bench_die("rdma_listen");
    bench_meet();
    while (!bench_stopped()) {
        struct pollfd p = {.fd = channel->fd, .events = POLLIN};
        struct rdma_cm_event *e = NULL;
        if (poll(&p, 1, TARGET_POLL_MS) <= 0)
            continue;
        if (rdma_get_cm_event(channel, &e) != 0)
            bench_die("rdma_get_cm_event");
        struct rdma_cm_id *id = e->id;
        enum rdma_cm_event_type event = e->event;
        rdma_ack_cm_event(e);
        serve(id, event);
    }
}

void raw_connect_initiator(const struct bench_case *c)
{
    (void)c;
    struct sockaddr_in to = loopback(PORT_TCP);
    /* Ends by RST: no TIME_WAIT, which would use up the ports. */
    struct linger abort = {.l_onoff = 1, .l_linger = 0};
    bench_meet();
    bench_slice_begin(CONNECTIONS_A_SLICE);
    bool full = false;
    while (!full) {
        char byte = 1;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
            recv(fd, &byte, 1, 0) != 1 ||
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)) != 0)
            bench_die("a TCP connection");
        close(fd);
        full = bench_slice_work(1);
    }
    bench_shared->result = 1e6 / bench_slice_median_ns();
}

void raw_connect_target(const struct bench_case *c)
{
    (void)c;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in at = loopback(PORT_TCP);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, BACKLOG) != 0)
        bench_die("listen");
    bench_meet();
    while (!bench_stopped()) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        char byte = 1;
        if (poll(&p, 1, TARGET_POLL_MS) <= 0)
            continue;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue; /* it has ended already */
        (void)!send(fd, &byte, 1, MSG_NOSIGNAL);
        close(fd);
    }
    close(listener);
}
