/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vgold.c: plays one small, fixed RDMA exchange between two hosts, the same one that a capture of
 * tests/golden/rxe holds (of the operations; CM and UD are not played). Plain libibverbs: the
 * same program runs on the kernel's rdma_rxe in the guest and on Verbena.
 *
 *   responder:  vgold [options] SCENARIO
 *   requester:  vgold [options] SCENARIO RESPONDER-ADDRESS
 *
 *   -d DEV device (rxe0)   -g IDX source GID index (1)   -m MTU path MTU (1024)
 *   -p PORT TCP port of the side channel (18600)         -t N ack timeout code (18)
 *   -r N retry_cnt (7)     -R N rnr_retry (7)            -n N min_rnr_timer code (12)
 *   -P PSN requester's first PSN (0x100)                 -Q PSN responder's (0x200)
 *   -e N the status that this side sees where the exchange goes wrong, instead of the one that
 *        the specification names; for a peer that departs from it
 *
 * The two sides exchange "qpn psn gid rkey addr" as text over TCP. The requester's buffer has
 * i & 0xff at byte i, the responder's 0xff - (i & 0xff). Exit code 0: all came out as it must.
 */
#include "vgold.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE = 256, WRS = 64, PORT = 1, LIMIT_SECONDS = 15, WHOLE_SECONDS = 40 };

struct vgold v = {
    .o = {.device = "rxe0",
          .gid_index = 1,
          .mtu = 1024,
          .port = 18600,
          .timeout = 18,
          .retry_cnt = 7,
          .rnr_retry = 7,
          .min_rnr_timer = 12,
          .requester_psn = 0x100,
          .responder_psn = 0x200,
          .error = ANY},
};

void die(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fflush(stdout);
    fprintf(stderr, "vgold: ");
    vfprintf(stderr, format, ap);
    fprintf(stderr, "%s%s\n", errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
    va_end(ap);
    exit(1);
}

void fault(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    printf("wrong: ");
    vprintf(format, ap);
    printf("\n");
    va_end(ap);
    v.failures++;
}

void nap_ms(int ms)
{
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&t, NULL);
}

/* The side channel. */

static int tcp_accept(void)
{
    int on = 1;
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)v.o.port)};
    int l = socket(AF_INET6, SOCK_STREAM, 0);
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(l, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(l, 1) != 0)
        die("listen on port %d", v.o.port);
    int fd = accept(l, NULL, NULL);
    close(l);
    return fd;
}

static int tcp_connect(const char *host)
{
    char service[16];
    struct addrinfo *ai, hint = {.ai_socktype = SOCK_STREAM};
    int fd = -1;
    snprintf(service, sizeof(service), "%d", v.o.port);
    if (getaddrinfo(host, service, &hint, &ai) != 0)
        die("bad address %s", host);
    for (int i = 0; i < 100 && fd < 0; i++) { /* the responder may be a little late */
        fd = socket(ai->ai_family, SOCK_STREAM, 0);
        if (connect(fd, ai->ai_addr, ai->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
            nap_ms(100);
        }
    }
    freeaddrinfo(ai);
    return fd;
}

static void tcp_open(void)
{
    int on = 1;
    v.tcp = v.requester ? tcp_connect(v.o.host) : tcp_accept();
    if (v.tcp < 0)
        die("no connection");
    setsockopt(v.tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    errno = 0;
}

void tcp_line(char *line, size_t n)
{
    size_t k = 0;
    while (k + 1 < n && read(v.tcp, line + k, 1) == 1 && line[k] != '\n')
        k++;
    line[k] = '\0';
}

void sync_peer(void)
{
    char c = 's';
    if (write(v.tcp, &c, 1) != 1 || read(v.tcp, &c, 1) != 1)
        die("the peer is gone");
}

static void exchange(void)
{
    char line[256], gid[33];
    unsigned long long addr;
    for (int i = 0; i < 16; i++)
        sprintf(gid + 2 * i, "%02x", v.me.gid.raw[i]);
    dprintf(v.tcp, "%06x %06x %s %08x %016llx\n", v.me.qpn, v.me.psn, gid, v.me.rkey,
            (unsigned long long)v.me.addr);
    tcp_line(line, sizeof(line));
    if (sscanf(line, "%x %x %32s %x %llx", &v.peer.qpn, &v.peer.psn, gid, &v.peer.rkey, &addr) != 5)
        die("bad line from the peer: %s", line);
    v.peer.addr = addr;
    for (int i = 0; i < 16; i++) {
        unsigned b = 0;
        sscanf(gid + 2 * i, "%2x", &b);
        v.peer.gid.raw[i] = (uint8_t)b;
    }
    printf("%s: qpn 0x%06x psn 0x%06x rkey 0x%08x; peer: qpn 0x%06x psn 0x%06x rkey 0x%08x\n",
           v.requester ? "requester" : "responder", v.me.qpn, v.me.psn, v.me.rkey, v.peer.qpn,
           v.peer.psn, v.peer.rkey);
}

/* Device and connection. */

static void open_device(void)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    for (int i = 0; list != NULL && i < n && v.ctx == NULL; i++)
        if (strcmp(ibv_get_device_name(list[i]), v.o.device) == 0)
            v.ctx = ibv_open_device(list[i]);
    if (v.ctx == NULL)
        die("no device %s", v.o.device);
    ibv_free_device_list(list);
    v.pd = ibv_alloc_pd(v.ctx);
    v.cq = ibv_create_cq(v.ctx, QUEUE, NULL, NULL, 0);
    v.buffer = aligned_alloc(4096, BUFFER_BYTES);
    if (v.pd == NULL || v.cq == NULL || v.buffer == NULL)
        die("PD, CQ or memory");
    for (int i = 0; i < BUFFER_BYTES; i++)
        v.buffer[i] = (uint8_t)(v.requester ? i : 0xff - i);
    v.mr = ibv_reg_mr(v.pd, v.buffer, BUFFER_BYTES,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                          IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    if (v.mr == NULL && errno == EOPNOTSUPP) /* no memory windows here */
        v.mr = ibv_reg_mr(v.pd, v.buffer, BUFFER_BYTES,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    if (v.mr == NULL)
        die("MR");
}

static void create_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = v.cq,
        .recv_cq = v.cq,
        .qp_type = v.type,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = WRS, .max_recv_wr = WRS, .max_send_sge = 1, .max_recv_sge = 1}
    };
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
    if (v.type == IBV_QPT_RC)
        a.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    v.qp = ibv_create_qp(v.pd, &init);
    if (v.qp == NULL ||
        ibv_modify_qp(v.qp, &a,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
        die("QP in INIT");
    v.me.qpn = v.qp->qp_num;
    v.me.psn = v.requester ? v.o.requester_psn : v.o.responder_psn;
    v.me.rkey = v.mr->rkey;
    v.me.addr = (uintptr_t)v.buffer;
    if (ibv_query_gid(v.ctx, PORT, v.o.gid_index, &v.me.gid) != 0)
        die("GID %d", v.o.gid_index);
}

static enum ibv_mtu mtu_code(void)
{
    for (int m = IBV_MTU_256; m <= IBV_MTU_4096; m++)
        if (v.o.mtu == 128 << m)
            return (enum ibv_mtu)m;
    die("no such MTU: %d", v.o.mtu);
}

static void connect_qp(void)
{
    bool rc = v.type == IBV_QPT_RC;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = mtu_code(),
                            .dest_qp_num = v.peer.qpn,
                            .rq_psn = v.peer.psn,
                            .max_dest_rd_atomic = 4,
                            .min_rnr_timer = (uint8_t)v.o.min_rnr_timer};
    a.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = PORT};
    a.ah_attr.grh.dgid = v.peer.gid;
    a.ah_attr.grh.sgid_index = (uint8_t)v.o.gid_index;
    a.ah_attr.grh.hop_limit = 64;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    if (ibv_modify_qp(v.qp, &a, mask) != 0)
        die("QP to RTR");
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = v.me.psn;
    a.timeout = (uint8_t)v.o.timeout;
    a.retry_cnt = (uint8_t)v.o.retry_cnt;
    a.rnr_retry = (uint8_t)v.o.rnr_retry;
    a.max_rd_atomic = 4;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (rc)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    if (ibv_modify_qp(v.qp, &a, mask) != 0)
        die("QP to RTS");
    v.rkey = v.peer.rkey;
    v.remote_addr = v.peer.addr;
}

/* Posting. */

void post_recv(int n, uint32_t bytes)
{
    for (int i = 0; i < n; i++) {
        uint64_t id = v.next_recv_id++;
        struct ibv_sge s = {(uintptr_t)v.buffer + ARRIVE + id % 8 * SLOT, bytes, v.mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = 100 + id, .sg_list = &s, .num_sge = 1}, *bad;
        if (ibv_post_recv(v.qp, &wr, &bad) != 0)
            die("post_recv");
    }
}

void post(struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    wr->wr_id = v.next_wr_id++;
    errno = ibv_post_send(v.qp, wr, &bad);
    if (errno != 0)
        die("post_send, opcode %d", wr->opcode);
}

uint64_t post_send(enum ibv_wr_opcode op, uint32_t at, uint32_t bytes, uint32_t imm, int flags)
{
    struct ibv_sge s = {(uintptr_t)v.buffer + at, bytes, v.mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = bytes != 0, .opcode = op, .send_flags = (unsigned)flags};
    if (op == IBV_WR_SEND_WITH_INV)
        wr.invalidate_rkey = imm;
    else
        wr.imm_data = htonl(imm);
    wr.wr.rdma.remote_addr = v.remote_addr;
    wr.wr.rdma.rkey = v.rkey;
    post(&wr);
    return wr.wr_id;
}

uint64_t post_atomic(enum ibv_wr_opcode op, uint64_t a, uint64_t b)
{
    struct ibv_sge s = {(uintptr_t)v.buffer + ARRIVE, 8, v.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = op};
    wr.wr.atomic.remote_addr = v.remote_addr;
    wr.wr.atomic.rkey = v.rkey;
    wr.wr.atomic.compare_add = a;
    wr.wr.atomic.swap = b;
    post(&wr);
    return wr.wr_id;
}

/* Waiting and judging. */

static void print_completion(const struct ibv_wc *wc)
{
    printf("wc: wr_id %llu status %d (%s)", (unsigned long long)wc->wr_id, wc->status,
           ibv_wc_status_str(wc->status));
    if (wc->status == IBV_WC_SUCCESS) {
        printf(" opcode %d", wc->opcode);
        if ((wc->opcode & IBV_WC_RECV) != 0)
            printf(" len %u", wc->byte_len);
        if ((wc->wc_flags & IBV_WC_WITH_IMM) != 0)
            printf(" imm 0x%08x", ntohl(wc->imm_data));
        if ((wc->wc_flags & IBV_WC_WITH_INV) != 0)
            printf(" invalidated 0x%08x", wc->invalidated_rkey);
    }
    printf("\n");
}

struct ibv_wc reap(void)
{
    struct ibv_wc wc;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (;;) {
        int n = ibv_poll_cq(v.cq, 1, &wc);
        if (n < 0)
            die("poll_cq");
        if (n > 0) {
            print_completion(&wc);
            if (wc.qp_num != v.qp->qp_num)
                fault("completion of QP 0x%06x", wc.qp_num);
            return wc;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > LIMIT_SECONDS)
            die("no completion in %d s", LIMIT_SECONDS);
        nap_ms(1);
    }
}

struct ibv_wc expect(uint64_t wr_id, int status, int opcode)
{
    struct ibv_wc wc = reap();
    if (wc.wr_id != wr_id)
        fault("wr_id %llu, not %llu", (unsigned long long)wc.wr_id, (unsigned long long)wr_id);
    if (status != ANY && (int)wc.status != status)
        fault("status %d, not %d", wc.status, status);
    else if (wc.status == IBV_WC_SUCCESS && opcode != ANY && (int)wc.opcode != opcode)
        fault("opcode %d, not %d", wc.opcode, opcode);
    return wc;
}

struct ibv_wc expect_recv(uint32_t bytes, const uint32_t *imm)
{
    static uint64_t next = 100;
    struct ibv_wc wc = expect(next++, IBV_WC_SUCCESS, ANY);
    if (wc.status != IBV_WC_SUCCESS)
        return wc;
    if ((wc.opcode & IBV_WC_RECV) == 0 || wc.byte_len != bytes)
        fault("opcode %d, %u bytes, not %u", wc.opcode, wc.byte_len, bytes);
    if (((wc.wc_flags & IBV_WC_WITH_IMM) != 0) != (imm != NULL) ||
        (imm != NULL && ntohl(wc.imm_data) != *imm))
        fault("flags 0x%x, immediate 0x%08x", wc.wc_flags, ntohl(wc.imm_data));
    return wc;
}

void tell_qp(void)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    struct ibv_async_event e;
    struct pollfd p = {.fd = v.ctx->async_fd, .events = POLLIN};
    int event = ANY;
    if (poll(&p, 1, 0) == 1 && ibv_get_async_event(v.ctx, &e) == 0) {
        event = e.event_type;
        ibv_ack_async_event(&e);
    }
    if (ibv_query_qp(v.qp, &a, IBV_QP_STATE, &init) != 0)
        die("query_qp");
    printf("qp: state %d event %d\n", a.qp_state, event);
}

void check(uint32_t at, uint32_t n, bool of_requester, uint32_t from)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t want = (uint8_t)(of_requester ? from + i : 0xff - (from + i));
        if (v.buffer[at + i] != want) {
            fault("byte %u of %u: %02x, not %02x", i, n, v.buffer[at + i], want);
            return;
        }
    }
    printf("check ok: %u bytes\n", n);
}

static const struct vgold_scenario *find_scenario(const char *name)
{
    const struct vgold_scenario *s = vgold_scenarios;
    while (s->name != NULL && (name == NULL || strcmp(name, s->name) != 0))
        s++;
    if (s->name != NULL)
        return s;
    fprintf(stderr, "usage: vgold [options] SCENARIO [RESPONDER]; scenarios:");
    for (s = vgold_scenarios; s->name != NULL; s++)
        fprintf(stderr, " %s", s->name);
    fprintf(stderr, "\n");
    exit(2);
}

static void read_options(int argc, char **argv)
{
    struct vgold_options *o = &v.o;
    const struct {
        char letter;
        int *where;
    } numbers[] = {
        {'g', &o->gid_index    },
        {'m', &o->mtu          },
        {'p', &o->port         },
        {'t', &o->timeout      },
        {'r', &o->retry_cnt    },
        {'R', &o->rnr_retry    },
        {'e', &o->error        },
        {'n', &o->min_rnr_timer}
    };
    int c;
    while ((c = getopt(argc, argv, "d:g:m:p:t:r:R:n:P:Q:e:")) != -1) {
        if (c == '?')
            exit(2);
        else if (c == 'd')
            o->device = optarg;
        else if (c == 'P')
            o->requester_psn = (uint32_t)strtoul(optarg, NULL, 0);
        else if (c == 'Q')
            o->responder_psn = (uint32_t)strtoul(optarg, NULL, 0);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
            if (c == numbers[i].letter)
                *numbers[i].where = atoi(optarg);
    }
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(WHOLE_SECONDS);
    read_options(argc, argv);
    const struct vgold_scenario *s = find_scenario(argv[optind]);
    v.o.host = argv[optind + 1];
    v.requester = v.o.host != NULL;
    v.type = s->type;
    tcp_open();
    open_device();
    create_qp();
    exchange();
    connect_qp();
    sync_peer();
    s->run();
    sync_peer(); /* no QP goes away while the other side still needs it */
    if (v.qp != NULL && ibv_destroy_qp(v.qp) != 0)
        fault("destroy_qp");
    if (ibv_dereg_mr(v.mr) != 0 || ibv_destroy_cq(v.cq) != 0 || ibv_dealloc_pd(v.pd) != 0 ||
        ibv_close_device(v.ctx) != 0)
        fault("an object cannot be destroyed");
    printf("%s: %s\n", s->name, v.failures != 0 ? "FAILED" : "ok");
    return v.failures != 0;
}
