/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vcm.c: small fixed dialogues of connection management by librdmacm, one binary for both sides.
 * Each side says what must happen next, event by event: type, status, every byte of private data,
 * completions. The exit code is 0 when all of it did.
 *
 *   vcm -s -a ADDRESS -p PORT DIALOGUE     the listener
 *   vcm -a ADDRESS -p PORT DIALOGUE        who connects to it
 */
#include "vcm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 30000, RESOLVE_MS = 5000, BACKLOG = 8, QUEUE_DEPTH = 16 };

struct vcm v;

void die(const char *format, ...)
{
    va_list a;
    va_start(a, format);
    vprintf(format, a);
    va_end(a);
    printf(": %s\n", strerror(errno));
    exit(2);
}

void fault(const char *format, ...)
{
    va_list a;
    printf("wrong: ");
    va_start(a, format);
    vprintf(format, a);
    va_end(a);
    printf("\n");
    v.failures++;
}

void nap_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

/* Byte i of what a side says: a pattern of its own behind the name of its memory. */
static uint8_t private_byte(bool of_server, size_t i)
{
    return (uint8_t)(i * 7 + (of_server ? 0x80 : 0x11));
}

void private_build(size_t bytes)
{
    struct memory_name name = {htonl((uint32_t)((uintptr_t)v.buffer >> 32)),
                               htonl((uint32_t)(uintptr_t)v.buffer),
                               htonl(v.mr != NULL ? v.mr->rkey : 0)};
    for (size_t i = 0; i < bytes; i++)
        v.own_data[i] = private_byte(v.server, i);
    memcpy(v.own_data, &name, sizeof(name));
    v.param.private_data = v.own_data;
    v.param.private_data_len = (uint8_t)bytes;
}

void private_check(size_t bytes)
{
    struct memory_name name;
    if (v.data_bytes < bytes) {
        fault("%zu bytes of private data, not %zu", v.data_bytes, bytes);
        return;
    }
    for (size_t i = sizeof(name); i < bytes; i++)
        if (v.data[i] != private_byte(!v.server, i)) {
            fault("byte %zu of the private data is 0x%02x", i, v.data[i]);
            return;
        }
    memcpy(&name, v.data, sizeof(name));
    v.remote_addr = (uint64_t)ntohl(name.high) << 32 | ntohl(name.low);
    v.remote_rkey = ntohl(name.rkey);
}

static struct rdma_cm_event *next_event(int limit_ms)
{
    struct pollfd p = {.fd = v.channel->fd, .events = POLLIN};
    struct rdma_cm_event *e;
    if (poll(&p, 1, limit_ms) != 1)
        return NULL;
    if (rdma_get_cm_event(v.channel, &e) != 0)
        die("rdma_get_cm_event");
    return e;
}

void await(enum rdma_cm_event_type type, int status)
{
    struct rdma_cm_event *e = next_event(LIMIT_MS);
    if (e == NULL) {
        fault("no %s within %d ms", rdma_event_str(type), LIMIT_MS);
        exit(1);
    }
    bool datagram = v.space == RDMA_PS_UDP;
    const void *data = datagram ? e->param.ud.private_data : e->param.conn.private_data;
    v.data_bytes = datagram ? e->param.ud.private_data_len : e->param.conn.private_data_len;
    printf("event: %s, status %d, %zu bytes\n", rdma_event_str(e->event), e->status, v.data_bytes);
    if (e->event != type || e->status != status)
        fault("not %s, status %d", rdma_event_str(type), status);
    if (v.data_bytes != 0)
        memcpy(v.data, data, v.data_bytes);
    v.peer_param = e->param.conn;
    v.peer_ud = e->param.ud;
    if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
        v.id = e->id;
    v.last = e->event;
    if (rdma_ack_cm_event(e) != 0)
        die("rdma_ack_cm_event");
}

void expect_silence(int ms)
{
    struct rdma_cm_event *e = next_event(ms);
    if (e == NULL)
        return;
    fault("event %s, status %d", rdma_event_str(e->event), e->status);
    rdma_ack_cm_event(e);
}

/* Queues and memory on the device of the id. */
void make_qp(void)
{
    bool datagram = v.space == RDMA_PS_UDP;
    v.pd = ibv_alloc_pd(v.id->verbs);
    v.cq = ibv_create_cq(v.id->verbs, 2 * QUEUE_DEPTH, NULL, NULL, 0);
    if (v.pd == NULL || v.cq == NULL)
        die("pd or cq");
    v.mr = ibv_reg_mr(v.pd, v.buffer, BUFFER_BYTES,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                          IBV_ACCESS_REMOTE_ATOMIC);
    struct ibv_qp_init_attr init = {
        .send_cq = v.cq,
        .recv_cq = v.cq,
        .qp_type = datagram ? IBV_QPT_UD : IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = QUEUE_DEPTH,
                .max_recv_wr = QUEUE_DEPTH,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    if (v.mr == NULL || rdma_create_qp(v.id, v.pd, &init) != 0)
        die("mr or qp");
}

void free_qp(void)
{
    if (v.id->qp == NULL)
        return;
    rdma_destroy_qp(v.id);
    ibv_dereg_mr(v.mr);
    if (ibv_destroy_cq(v.cq) != 0 || ibv_dealloc_pd(v.pd) != 0)
        fault("cq or pd is still in use");
}

void free_id(void)
{
    free_qp();
    if (rdma_destroy_id(v.id) != 0)
        fault("rdma_destroy_id: %s", strerror(errno));
    v.id = NULL;
}

void listen_here(void)
{
    if (rdma_create_id(v.channel, &v.listener, NULL, v.space) != 0 ||
        rdma_bind_addr(v.listener, (struct sockaddr *)&v.address) != 0 ||
        rdma_listen(v.listener, BACKLOG) != 0)
        die("listener");
    printf("listens\n");
}

void resolve(void)
{
    if (rdma_create_id(v.channel, &v.id, NULL, v.space) != 0 ||
        rdma_resolve_addr(v.id, NULL, (struct sockaddr *)&v.address, RESOLVE_MS) != 0)
        die("rdma_resolve_addr");
    await(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    if (rdma_resolve_route(v.id, RESOLVE_MS) != 0)
        die("rdma_resolve_route");
    await(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

void post_recv(uint32_t at, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)v.buffer + at, bytes, v.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = RECV_ID, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(v.id->qp, &wr, &bad) != 0)
        die("ibv_post_recv");
}

void post(enum ibv_wr_opcode op, uint32_t at, uint32_t bytes, uint64_t remote, uint32_t rkey)
{
    struct ibv_sge sge = {(uintptr_t)v.buffer + at, bytes, v.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = SEND_ID, .opcode = op, .sg_list = &sge, .num_sge = 1}, *bad;
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = ATOMIC_ADD;
    } else if (v.space == RDMA_PS_UDP) {
        wr.wr.ud.ah = v.ah;
        wr.wr.ud.remote_qpn = v.peer_ud.qp_num;
        wr.wr.ud.remote_qkey = v.peer_ud.qkey;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = rkey;
    }
    if (ibv_post_send(v.id->qp, &wr, &bad) != 0)
        die("ibv_post_send");
}

void reap(uint64_t wr_id, int status)
{
    struct ibv_wc wc;
    for (int waited = 0; waited < LIMIT_MS; waited++) {
        int n = ibv_poll_cq(v.cq, 1, &wc);
        if (n < 0)
            die("ibv_poll_cq");
        if (n == 1) {
            printf("completion: %s, status %d, %u bytes\n",
                   wc.wr_id == RECV_ID ? "receive" : "send", wc.status,
                   wc.status == IBV_WC_SUCCESS ? wc.byte_len : 0);
            if (wc.wr_id != wr_id || (int)wc.status != status)
                fault("not the %s with status %d", wr_id == RECV_ID ? "receive" : "send", status);
            v.bytes = wc.byte_len;
            return;
        }
        nap_ms(1);
    }
    fault("no completion within %d ms", LIMIT_MS);
    exit(1);
}

void fill(uint32_t at, uint32_t bytes, unsigned seed)
{
    for (uint32_t i = 0; i < bytes; i++)
        v.buffer[at + i] = (uint8_t)(seed + i + (i >> 8) * 3);
}

void check(uint32_t at, uint32_t bytes, unsigned seed)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (v.buffer[at + i] != (uint8_t)(seed + i + (i >> 8) * 3)) {
            fault("byte %u of %u at %u is 0x%02x", i, bytes, at, v.buffer[at + i]);
            return;
        }
}

static void parse_address(const char *text, const char *port)
{
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&v.address;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&v.address;
    uint16_t number = htons((uint16_t)atoi(port));
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = number;
    } else if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = number;
    } else {
        errno = EINVAL;
        die("address %s", text);
    }
}

int main(int argc, char **argv)
{
    const char *address = "127.0.0.1", *port = "18700";
    int option;
    while ((option = getopt(argc, argv, "sa:p:")) != -1) {
        if (option == 's')
            v.server = true;
        else if (option == 'a')
            address = optarg;
        else if (option == 'p')
            port = optarg;
        else
            return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct vcm_dialogue *d = vcm_dialogues;
    while (d->name != NULL && (optind >= argc || strcmp(d->name, argv[optind]) != 0))
        d++;
    if (d->name == NULL || (v.server && d->server == NULL)) {
        fprintf(stderr, "vcm: no such dialogue\n");
        return 2;
    }
    parse_address(address, port);
    v.space = d->space;
    v.buffer = aligned_alloc(4096, BUFFER_BYTES);
    v.channel = rdma_create_event_channel();
    if (v.buffer == NULL || v.channel == NULL)
        die("memory or channel");
    memset(v.buffer, 0, BUFFER_BYTES);
    v.param = (struct rdma_conn_param){
        .responder_resources = 4, .initiator_depth = 4, .retry_count = 7, .rnr_retry_count = 7};
    if (v.server) {
        listen_here();
        await(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
        d->server();
    } else {
        resolve();
        d->client();
    }
    if (v.listener != NULL && rdma_destroy_id(v.listener) != 0)
        fault("rdma_destroy_id: %s", strerror(errno));
    rdma_destroy_event_channel(v.channel);
    free(v.buffer);
    printf(v.failures == 0 ? "all right\n" : "%d wrong\n", v.failures);
    return v.failures != 0;
}
