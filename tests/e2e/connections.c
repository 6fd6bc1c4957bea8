/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connections.c: very many connections of one server process, all open at the same time. Each
 * carries a number to the server and its answer back; the server answers when it has heard from
 * all. Then the clients disconnect them. Everything by events, of one channel and one CQ a process.
 * Plain librdmacm.
 *
 * connections server ADDRESS PORT CONNECTIONS ROUNDS
 *   prints what the process has after each round, when everything of it should be gone
 * connections client ADDRESS PORT CONNECTIONS
 *   one of those who share a round
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_CONNECTIONS = 4000,
    PATIENCE_MS = 60000,
    SETTLE_MS = 3000, /* TIMEWAIT, and slots of processes that have ended */
};

struct connection {
    struct rdma_cm_id *id;
    uint64_t out, in;
    bool heard;
};

static struct connection all[MAX_CONNECTIONS];
static unsigned wanted, used, heard, gone;
static bool server;
static struct rdma_event_channel *channel;
static struct ibv_comp_channel *completions;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

#define DEMAND(condition) demand(condition, #condition, __LINE__)
static void demand(bool condition, const char *text, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: %s (%s); %u used, %u heard, %u gone\n", server ? "server" : "client",
            line, text, strerror(errno), used, heard, gone);
    exit(1);
}

static void nonblocking(int fd)
{
    DEMAND(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
}

static void shared_make(struct ibv_context *verbs)
{
    if (pd != NULL)
        return;
    pd = ibv_alloc_pd(verbs);
    completions = ibv_create_comp_channel(verbs);
    DEMAND(pd != NULL && completions != NULL);
    nonblocking(completions->fd);
    cq = ibv_create_cq(verbs, (int)(2 * wanted), NULL, completions, 0);
    mr = ibv_reg_mr(pd, all, sizeof(all), IBV_ACCESS_LOCAL_WRITE);
    DEMAND(cq != NULL && mr != NULL);
    DEMAND(ibv_req_notify_cq(cq, 0) == 0);
}

/* A QP with its receive posted. */
static void qp_make(struct connection *c)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_sge sge = {(uintptr_t)&c->in, sizeof(c->in), mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)(c - all), .sg_list = &sge, .num_sge = 1}, *bad;
    DEMAND(rdma_create_qp(c->id, pd, &init) == 0);
    DEMAND(ibv_post_recv(c->id->qp, &wr, &bad) == 0);
}

static void say(struct connection *c, uint64_t number)
{
    c->out = number;
    struct ibv_sge sge = {(uintptr_t)&c->out, sizeof(c->out), mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)(c - all),
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND},
                       *bad;
    DEMAND(ibv_post_send(c->id->qp, &wr, &bad) == 0);
}

static void end(struct connection *c)
{
    rdma_destroy_qp(c->id);
    DEMAND(rdma_destroy_id(c->id) == 0);
    c->id = NULL;
    gone++;
}

static void on_request(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
    DEMAND(used < wanted);
    struct connection *c = &all[used++];
    *c = (struct connection){.id = id};
    id->context = c;
    shared_make(id->verbs);
    qp_make(c);
    DEMAND(rdma_accept(id, &param) == 0);
}

static void on_route(struct connection *c)
{
    struct rdma_conn_param param = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
    shared_make(c->id->verbs);
    qp_make(c);
    DEMAND(rdma_connect(c->id, &param) == 0);
}

static void on_event(enum rdma_cm_event_type type, struct rdma_cm_id *id, int status)
{
    struct connection *c = id->context;
    switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        on_request(id);
        break;
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        DEMAND(rdma_resolve_route(id, 5000) == 0);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        on_route(c);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (!server)
            say(c, (uint64_t)getpid() << 32 | (uint64_t)(c - all));
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        if (server)
            DEMAND(rdma_disconnect(id) == 0); /* which must do no harm */
        end(c);
        break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default:
        fprintf(stderr, "%s, status %d\n", rdma_event_str(type), status);
        DEMAND(!"an event of the good kind");
    }
}

static void take_events(void)
{
    struct rdma_cm_event *e;
    while (rdma_get_cm_event(channel, &e) == 0) {
        enum rdma_cm_event_type type = e->event;
        struct rdma_cm_id *id = e->id;
        int status = e->status;
        DEMAND(rdma_ack_cm_event(e) == 0);
        on_event(type, id, status);
    }
    DEMAND(errno == EAGAIN);
}

/* All have been heard: the server answers, the clients are done. */
static void on_last(void)
{
    for (unsigned i = 0; i < wanted; i++) {
        if (server)
            say(&all[i], all[i].in + 1);
        else
            DEMAND(rdma_disconnect(all[i].id) == 0);
    }
}

static void take_completions(void)
{
    struct ibv_cq *which;
    struct ibv_wc wc;
    void *context;
    if (cq == NULL)
        return;
    while (ibv_get_cq_event(completions, &which, &context) == 0)
        ibv_ack_cq_events(which, 1);
    DEMAND(ibv_req_notify_cq(cq, 0) == 0);
    while (ibv_poll_cq(cq, 1, &wc) == 1) {
        struct connection *c = &all[wc.wr_id];
        DEMAND(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
        if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV)
            continue;
        DEMAND(!c->heard && (server || c->in == c->out + 1));
        c->heard = true;
        if (++heard == wanted)
            on_last();
    }
}

static void serve(void)
{
    while (gone < wanted) {
        struct pollfd p[2] = {
            {.fd = channel->fd,                                .events = POLLIN},
            {.fd = completions != NULL ? completions->fd : -1, .events = POLLIN},
        };
        DEMAND(poll(p, 2, PATIENCE_MS) > 0);
        take_events();
        take_completions();
    }
    DEMAND(heard == wanted);
}

static void print_level(unsigned round)
{
    /* Of what was freed the allocator keeps more or less, as it lies. */
    malloc_trim(0);
    DIR *d = opendir("/proc/self/fd");
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned fds = 0;
    unsigned long pages = 0;
    DEMAND(d != NULL && f != NULL);
    while (readdir(d) != NULL)
        fds++;
    DEMAND(fscanf(f, "%*u %lu", &pages) == 1);
    fclose(f);
    closedir(d);
    printf("round %u: %u connections, %u descriptors, %lu KiB\n", round, heard, fds, pages * 4);
    fflush(stdout);
}

static void run_server(struct sockaddr *addr, unsigned rounds)
{
    struct rdma_cm_id *listener;
    DEMAND(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
    DEMAND(rdma_bind_addr(listener, addr) == 0);
    DEMAND(rdma_listen(listener, 1024) == 0);
    for (unsigned round = 1; round <= rounds; round++) {
        used = heard = gone = 0;
        serve();
        poll(NULL, 0, SETTLE_MS);
        print_level(round);
    }
    DEMAND(rdma_destroy_id(listener) == 0);
}

static void run_client(struct sockaddr *addr)
{
    for (; used < wanted; used++) {
        struct connection *c = &all[used];
        DEMAND(rdma_create_id(channel, &c->id, c, RDMA_PS_TCP) == 0);
        DEMAND(rdma_resolve_addr(c->id, NULL, addr, 5000) == 0);
    }
    serve();
}

int main(int argc, char **argv)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    server = argc == 6 && strcmp(argv[1], "server") == 0;
    if (!server && (argc != 5 || strcmp(argv[1], "client") != 0)) {
        fprintf(stderr, "usage: see the head of the source\n");
        return 2;
    }
    DEMAND(inet_pton(AF_INET, argv[2], &addr.sin_addr) == 1);
    addr.sin_port = htons((uint16_t)atoi(argv[3]));
    wanted = (unsigned)atoi(argv[4]);
    DEMAND(wanted > 0 && wanted <= MAX_CONNECTIONS);
    channel = rdma_create_event_channel();
    DEMAND(channel != NULL);
    nonblocking(channel->fd);
    if (server)
        run_server((struct sockaddr *)&addr, (unsigned)atoi(argv[5]));
    else
        run_client((struct sockaddr *)&addr);
    return 0;
}
