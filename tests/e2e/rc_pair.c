/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rc_pair.c: connecting two test programs, and the small calls that both sides make all the time.
 */
#define _GNU_SOURCE
#include "rc_pair.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE = 256, PORT = 1, PSN_MASK = 0xffffff };

void rc_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

double rc_now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static enum ibv_mtu mtu_of(int bytes)
{
    for (int m = IBV_MTU_256; m <= IBV_MTU_4096; m++)
        if (bytes == 128 << m)
            return (enum ibv_mtu)m;
    rc_fail("no such MTU: %d", bytes);
}

void rc_options(struct rc_options *o, int argc, char **argv)
{
    int c;
    o->port = o->port != 0 ? o->port : 18700;
    o->mtu = o->mtu != 0 ? o->mtu : IBV_MTU_1024;
    o->timeout = 14; /* 67 ms */
    o->retry_cnt = 7;
    o->rnr_retry = 7; /* for ever */
    while ((c = getopt(argc, argv, "d:g:p:m:s:n:S:t:r:c:o:")) != -1) {
        switch (c) {
        case 'd':
            o->device = optarg;
            break;
        case 'g':
            o->gid_index = atoi(optarg);
            break;
        case 'p':
            o->port = atoi(optarg);
            break;
        case 'm':
            o->mtu = mtu_of(atoi(optarg));
            break;
        case 's':
            o->bytes = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            o->rounds = (unsigned)atoi(optarg);
            break;
        case 'S':
            o->seed = (unsigned)atoi(optarg);
            break;
        case 't':
            o->timeout = (uint8_t)atoi(optarg);
            break;
        case 'r':
            o->retry_cnt = (uint8_t)atoi(optarg);
            break;
        case 'c':
            o->connection = atoi(optarg);
            break;
        case 'o':
            o->operation = optarg;
            break;
        default:
            exit(64);
        }
    }
    o->host = argv[optind];
}

int rc_tcp_connect(const struct rc_options *o)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = o->host ? 0 : AI_PASSIVE};
    struct addrinfo *found;
    char port[16];
    int on = 1, off = 0;
    snprintf(port, sizeof(port), "%d", o->port);
    hints.ai_family = o->host != NULL ? AF_UNSPEC : AF_INET6;
    int status = getaddrinfo(o->host, port, &hints, &found);
    if (status != 0)
        rc_fail("%s: %s", o->host ? o->host : "server", gai_strerror(status));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (o->host != NULL) {
        if (connect(fd, found->ai_addr, found->ai_addrlen) != 0)
            rc_fail("connect: %s", strerror(errno));
        freeaddrinfo(found);
        return fd;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, IPPROTO_IPV6, 26 /* IPV6_V6ONLY */, &off, sizeof(off));
    if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0)
        rc_fail("port %d: %s", o->port, strerror(errno));
    freeaddrinfo(found);
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0)
        rc_fail("accept: %s", strerror(errno));
    close(fd);
    return peer;
}

void rc_tcp_write(struct rc_pair *p, const void *bytes, size_t n)
{
    if (send(p->tcp, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        rc_fail("the partner has gone");
}

void rc_tcp_read(struct rc_pair *p, void *bytes, size_t n)
{
    if (recv(p->tcp, bytes, n, MSG_WAITALL) != (ssize_t)n)
        rc_fail("the partner has gone, or said nothing for %d s", RC_LIMIT_SECONDS);
}

void rc_barrier(struct rc_pair *p)
{
    char here = 'h';
    rc_tcp_write(p, &here, 1);
    rc_tcp_read(p, &here, 1);
}

static struct ibv_context *open_device(const char *name)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    if (list == NULL || n == 0)
        rc_fail("no device");
    for (int i = 0; i < n; i++) {
        if (name != NULL && strcmp(ibv_get_device_name(list[i]), name) != 0)
            continue;
        struct ibv_context *ctx = ibv_open_device(list[i]);
        if (ctx == NULL)
            rc_fail("cannot open %s: %s", ibv_get_device_name(list[i]), strerror(errno));
        ibv_free_device_list(list);
        return ctx;
    }
    rc_fail("no device %s", name);
}

void rc_open(struct rc_pair *p, const struct rc_options *o)
{
    struct timeval limit = {.tv_sec = RC_LIMIT_SECONDS};
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                 IBV_ACCESS_REMOTE_ATOMIC;
    *p = (struct rc_pair){.o = *o};
    p->ctx = open_device(o->device);
    p->pd = ibv_alloc_pd(p->ctx);
    if (p->pd == NULL)
        rc_fail("alloc_pd: %s", strerror(errno));
    p->cq = ibv_create_cq(p->ctx, 2 * QUEUE, NULL, NULL, 0);
    if (p->cq == NULL)
        rc_fail("create_cq: %s", strerror(errno));
    p->buffer = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->buffer == MAP_FAILED)
        rc_fail("no memory");
    p->mr = ibv_reg_mr(p->pd, p->buffer, o->bytes, access);
    if (p->mr == NULL)
        rc_fail("reg_mr of %llu bytes: %s", (unsigned long long)o->bytes, strerror(errno));
    p->tcp = o->connection != 0 ? o->connection : rc_tcp_connect(o);
    setsockopt(p->tcp, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void rc_create_qp(struct rc_pair *p)
{
    struct ibv_qp_init_attr init = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = QUEUE,
                .max_recv_wr = QUEUE,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64},
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = PORT,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    p->qp = ibv_create_qp(p->pd, &init);
    if (p->qp == NULL)
        rc_fail("create_qp: %s", strerror(errno));
    int status = ibv_modify_qp(
        p->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (status != 0)
        rc_fail("modify_qp INIT: %s", strerror(status));
}

void rc_connect(struct rc_pair *p)
{
    struct rc_address *m = &p->mine;
    m->qpn = p->qp->qp_num;
    m->psn = (uint32_t)(rc_now_seconds() * 1e6) & PSN_MASK;
    m->rkey = p->mr->rkey;
    m->addr = (uintptr_t)p->buffer;
    m->bytes = p->o.bytes;
    if (ibv_query_gid(p->ctx, PORT, p->o.gid_index, &m->gid) != 0)
        rc_fail("query_gid %d: %s", p->o.gid_index, strerror(errno));
    rc_tcp_write(p, m, sizeof(*m));
    rc_tcp_read(p, &p->theirs, sizeof(p->theirs));

    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = p->o.mtu,
        .dest_qp_num = p->theirs.qpn,
        .rq_psn = p->theirs.psn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = PORT,
                    .grh = {.dgid = p->theirs.gid,
                            .sgid_index = (uint8_t)p->o.gid_index,
                            .hop_limit = 64}},
    };
    int status =
        ibv_modify_qp(p->qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (status != 0)
        rc_fail("modify_qp RTR: %s", strerror(status));
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = p->o.timeout;
    attr.retry_cnt = p->o.retry_cnt;
    attr.rnr_retry = p->o.rnr_retry;
    attr.sq_psn = m->psn;
    attr.max_rd_atomic = 4;
    status = ibv_modify_qp(p->qp, &attr,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (status != 0)
        rc_fail("modify_qp RTS: %s", strerror(status));
    rc_barrier(p);
}

void rc_new_qp(struct rc_pair *p)
{
    rc_create_qp(p);
    rc_connect(p);
}

void rc_destroy_qp(struct rc_pair *p)
{
    int status = ibv_destroy_qp(p->qp);
    if (status != 0)
        rc_fail("destroy_qp: %s", strerror(status));
    p->qp = NULL;
}

void rc_close(struct rc_pair *p)
{
    if (p->qp != NULL)
        rc_destroy_qp(p);
    if (ibv_dereg_mr(p->mr) != 0 || ibv_destroy_cq(p->cq) != 0 || ibv_dealloc_pd(p->pd) != 0)
        rc_fail("an object is said to be in use: %s", strerror(errno));
    if (ibv_close_device(p->ctx) != 0)
        rc_fail("close_device: %s", strerror(errno));
    munmap(p->buffer, p->o.bytes);
    close(p->tcp);
}

void rc_post(struct rc_pair *p, enum ibv_wr_opcode opcode, uint64_t wr_id, uint64_t local_at,
             uint64_t remote_at, uint32_t bytes, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)p->buffer + local_at, bytes, p->mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = bytes > 0,
        .opcode = opcode,
        .send_flags = flags,
        .wr = {.rdma = {p->theirs.addr + remote_at, p->theirs.rkey}},
    };
    struct ibv_send_wr *bad;
    int status = ibv_post_send(p->qp, &wr, &bad);
    if (status != 0)
        rc_fail("post_send: %s", strerror(status));
}

void rc_post_recv(struct rc_pair *p, uint64_t wr_id, uint64_t at, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)p->buffer + at, bytes, p->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = bytes > 0};
    struct ibv_recv_wr *bad;
    int status = ibv_post_recv(p->qp, &wr, &bad);
    if (status != 0)
        rc_fail("post_recv: %s", strerror(status));
}

struct ibv_wc rc_wait(struct rc_pair *p)
{
    struct ibv_wc wc;
    double limit = rc_now_seconds() + RC_LIMIT_SECONDS;
    for (;;) {
        int n = ibv_poll_cq(p->cq, 1, &wc);
        if (n < 0)
            rc_fail("poll_cq: %d", n);
        if (n == 1)
            return wc;
        if (rc_now_seconds() > limit)
            rc_fail("no completion within %d s", RC_LIMIT_SECONDS);
        if (p->o.pause_us != 0)
            usleep(p->o.pause_us);
    }
}

struct ibv_wc rc_expect(struct rc_pair *p, uint64_t wr_id)
{
    struct ibv_wc wc = rc_wait(p);
    if (wc.status != IBV_WC_SUCCESS || wc.wr_id != wr_id)
        rc_fail("completion of %llu: %s; wanted success of %llu", (unsigned long long)wc.wr_id,
                ibv_wc_status_str(wc.status), (unsigned long long)wr_id);
    return wc;
}

void rc_check(const uint8_t *b, uint64_t n, uint64_t seed, const char *what)
{
    for (uint64_t i = 0; i < n; i++)
        if (b[i] != rc_byte(seed, i))
            rc_fail("%s of %llu bytes: byte %llu is 0x%02x, wanted 0x%02x", what,
                    (unsigned long long)n, (unsigned long long)i, b[i], rc_byte(seed, i));
}
