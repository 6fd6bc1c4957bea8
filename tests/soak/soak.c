/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak.c: one process of a pair that talks RC for minutes, whatever happens to it, its peer and the
 * network; scripts/soak.py starts and disturbs it. The two find each other by a unix socket, which
 * no disturbance of the network reaches. SIGTERM to A ends both in order.
 *
 * soak -r a|b -c SOCKET -d DEVICE -g GID_INDEX -l LANES -m MTU -S SEED -R RECONNECT_MS [-e]
 */
#define _GNU_SOURCE
#include "soak.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 100, POLL_PAUSE_US = 100, CQ_ENTRIES = 1024 };

static const double STARVED_SECONDS = 0.25; /* without a turn */

struct soak s = {.listen_fd = -1, .control_fd = -1, .lanes = 4, .mtu = IBV_MTU_1024};
static volatile sig_atomic_t end_wanted;

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t random_next(void)
{
    return s.random = mix(s.random);
}

void violation(const struct lane *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("VIOLATION at=%.3f side=%c pid=%d", now_seconds(), s.is_a ? 'a' : 'b', (int)getpid());
    if (l != NULL)
        printf(" lane=%u epoch=%llu", l->index, (unsigned long long)l->epoch);
    printf(": ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    exit(1);
}

static void stat_print(const char *head)
{
    printf("%s", head);
    for (unsigned i = 0; i < KINDS; i++)
        printf(" %s=%llu", kind_name[i], (unsigned long long)s.done[i]);
    printf(" bytes=%llu received=%llu received_bytes=%llu connections=%llu reconnects=%llu "
           "breaks=%llu flushed=%llu sessions=%llu\n",
           (unsigned long long)s.bytes, (unsigned long long)s.received,
           (unsigned long long)s.received_bytes, (unsigned long long)s.connections,
           (unsigned long long)s.reconnects, (unsigned long long)s.breaks,
           (unsigned long long)s.flushed, (unsigned long long)s.sessions);
    fflush(stdout);
}

void say(const struct lane *l, enum message_kind kind)
{
    struct message m = {.kind = kind, .shared_posted = s.shared_posted};
    m.shared_acked = s.shared_acked;
    m.base = (uintptr_t)s.memory;
    m.rkey = s.mr->rkey;
    if (l != NULL) {
        m.lane = l->index;
        m.epoch = l->epoch;
        m.qpn = l->qp->qp_num;
        m.psn = (uint32_t)mix(s.seed ^ l->epoch << 8 ^ l->index << 1 ^ s.is_a) & 0xffffff;
        m.fadd = *word_at(at_fadd(l->index));
        m.cas = *word_at(at_cas(l->index));
        m.posted = l->messages_posted;
        m.acked = l->messages_acked;
        memcpy(m.written, l->written, sizeof(m.written));
        if (ibv_query_gid(s.ctx, PORT, s.gid_index, &m.gid) != 0 && kind <= SAY_ACCEPT)
            violation(l, "query_gid %d: %s", s.gid_index, strerror(errno));
    }
    if (s.control_fd >= 0)
        send(s.control_fd, &m, sizeof(m), MSG_NOSIGNAL); /* that the peer is gone shows in recv */
}

/* What the peer added to our shared cell, against what it says. */
static void shared_compare(const struct message *m)
{
    uint64_t sum = *word_at(at_shared()) - s.shared_base;
    if (sum < m->shared_acked || sum > m->shared_posted ||
        (!s.shared_unsure && m->shared_acked != m->shared_posted))
        violation(NULL, "the shared cell grew by %llu; %llu acknowledged, %llu posted",
                  (unsigned long long)sum, (unsigned long long)m->shared_acked,
                  (unsigned long long)m->shared_posted);
}

static void session_begin(int fd)
{
    s.control_fd = fd;
    s.sessions++;
    s.shared_base = *word_at(at_shared());
    s.shared_posted = s.shared_acked = 0;
    s.shared_unsure = false;
    for (unsigned i = 0; i < s.lanes; i++) {
        s.lane[i].in_session = false;
        if (s.is_a)
            lane_open(&s.lane[i]);
    }
}

/* The peer is gone. */
static void session_end(void)
{
    for (unsigned i = 0; i < s.lanes; i++)
        if (s.lane[i].qp != NULL)
            lane_abort(&s.lane[i]);
    close(s.control_fd);
    s.control_fd = -1;
    printf("peer gone at=%.3f\n", now_seconds());
}

static void control_read(void)
{
    struct message m;
    ssize_t n = recv(s.control_fd, &m, sizeof(m), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof(m)) {
        session_end();
        return;
    }
    if (m.kind == SAY_BYE) {
        shared_compare(&m);
        s.bye_heard = true;
        if (!s.bye_said)
            say(NULL, SAY_BYE);
    } else if (m.lane < s.lanes) {
        lane_heard(&s.lane[m.lane], &m);
    }
}

static struct sockaddr_un control_address(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", s.path);
    return a;
}

/* Nobody to talk to: looks for one. */
static void control_find(void)
{
    struct sockaddr_un a = control_address();
    int fd = s.is_a ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)
                    : accept4(s.listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (s.is_a && connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
        close(fd);
    else
        session_begin(fd);
}

static void control_listen(void)
{
    struct sockaddr_un a = control_address();
    s.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(s.path);
    if (bind(s.listen_fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(s.listen_fd, 4) != 0)
        violation(NULL, "%s: %s", s.path, strerror(errno));
}

static void device_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (unsigned i = 0; list != NULL && list[i] != NULL; i++)
        if (strcmp(ibv_get_device_name(list[i]), s.device) == 0)
            s.ctx = ibv_open_device(list[i]);
    if (s.ctx == NULL)
        violation(NULL, "cannot open %s: %s", s.device, strerror(errno));
    ibv_free_device_list(list);
    fcntl(s.ctx->async_fd, F_SETFL, fcntl(s.ctx->async_fd, F_GETFL) | O_NONBLOCK);
}

static void objects_create(void)
{
    struct ibv_srq_init_attr srq = {
        .attr = {.max_wr = SRQ_RECVS, .max_sge = 1}
    };
    device_open();
    s.memory_bytes = memory_size(s.lanes);
    s.memory =
        mmap(NULL, s.memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s.memory == MAP_FAILED)
        violation(NULL, "no memory");
    memset(s.memory, 0, s.memory_bytes);
    uint64_t x = s.seed;
    for (uint64_t i = 0; i < NOISE_BYTES; i += sizeof(x)) {
        x = mix(x);
        memcpy(s.memory + i, &x, sizeof(x));
    }
    s.pd = ibv_alloc_pd(s.ctx);
    s.channel = s.events ? ibv_create_comp_channel(s.ctx) : NULL;
    for (unsigned i = 0; i < 2; i++)
        s.cq[i] = ibv_create_cq(s.ctx, CQ_ENTRIES, NULL, s.channel, 0);
    s.mr = s.pd == NULL ? NULL
                        : ibv_reg_mr(s.pd, s.memory, s.memory_bytes,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    s.srq = s.pd == NULL ? NULL : ibv_create_srq(s.pd, &srq);
    if (s.cq[0] == NULL || s.cq[1] == NULL || s.mr == NULL || s.srq == NULL ||
        (s.events && s.channel == NULL))
        violation(NULL, "an object cannot be created: %s", strerror(errno));
    if (s.channel != NULL)
        fcntl(s.channel->fd, F_SETFL, fcntl(s.channel->fd, F_GETFL) | O_NONBLOCK);
    for (unsigned i = 0; i < SRQ_RECVS; i++)
        recv_post(NULL, i);
}

static void objects_destroy(void)
{
    if (ibv_destroy_srq(s.srq) != 0 || ibv_dereg_mr(s.mr) != 0 || ibv_destroy_cq(s.cq[0]) != 0 ||
        ibv_destroy_cq(s.cq[1]) != 0 || ibv_dealloc_pd(s.pd) != 0 ||
        (s.channel != NULL && ibv_destroy_comp_channel(s.channel) != 0) ||
        ibv_close_device(s.ctx) != 0)
        violation(NULL, "an object cannot be destroyed: %s", strerror(errno));
}

static void async_take(void)
{
    struct ibv_async_event event;
    while (ibv_get_async_event(s.ctx, &event) == 0) {
        if (event.event_type == IBV_EVENT_CQ_ERR || event.event_type == IBV_EVENT_DEVICE_FATAL)
            violation(NULL, "event %s", ibv_event_type_str(event.event_type));
        ibv_ack_async_event(&event);
    }
}

/* Sleeps until something happens, if nothing is there. */
static void wait_for_more(void)
{
    if (!s.events) {
        usleep(s.control_fd >= 0 ? POLL_PAUSE_US : TICK_MS * 1000);
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        if (ibv_req_notify_cq(s.cq[i], 0) != 0)
            violation(NULL, "req_notify_cq");
    if (completions_take() > 0)
        return;
    struct pollfd fds[] = {
        {s.channel->fd,                       POLLIN, 0},
        {s.ctx->async_fd,                     POLLIN, 0},
        {s.control_fd,                        POLLIN, 0},
        {s.control_fd < 0 ? s.listen_fd : -1, POLLIN, 0}
    };
    poll(fds, 4, TICK_MS);
    struct ibv_cq *cq;
    void *context;
    while (ibv_get_cq_event(s.channel, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
}

/* How long this thread has waited for a CPU, in seconds; 0 where the kernel does not tell. */
static double waited_seconds(void)
{
    static int fd = -1;
    char text[80] = "";
    unsigned long long waited_ns = 0;
    if (fd < 0)
        fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0 ||
        sscanf(text, "%*u %llu", &waited_ns) != 1)
        return 0;
    return (double)waited_ns / 1e9;
}

/* A machine that gives us no CPU for a while may break a connection: told, so that it is not taken
 * for a fault. gap: since the last turn. */
static void starved_tell(double gap, double now)
{
    static double before;
    double waited = waited_seconds();
    if (gap > STARVED_SECONDS && waited - before > gap / 2)
        printf("starved for=%.3f at=%.3f\n", gap, now);
    before = waited;
}

/* We, too, may have been stopped: that is no time in which the peer did nothing. */
static void gap_forgive(double gap)
{
    for (unsigned i = 0; i < s.lanes; i++)
        s.lane[i].progress += gap;
}

static bool all_idle(void)
{
    for (unsigned i = 0; i < s.lanes; i++)
        if (s.lane[i].state != LANE_IDLE)
            return false;
    return true;
}

static void run(void)
{
    double last = now_seconds(), told = last;
    while (!s.bye_heard) {
        s.ending |= end_wanted != 0;
        unsigned n = completions_take();
        if (s.control_fd < 0 && !s.ending)
            control_find();
        if (s.control_fd >= 0)
            control_read();
        for (unsigned i = 0; i < s.lanes; i++)
            lane_turn(&s.lane[i]);
        async_take();
        if (s.ending && all_idle() && !s.bye_said) {
            s.bye_said = true;
            say(NULL, SAY_BYE);
        }
        if (s.ending && s.control_fd < 0)
            break;
        if (n == 0)
            wait_for_more();
        double now = now_seconds();
        if (now - last > 5 * TICK_MS / 1e3)
            gap_forgive(now - last);
        starved_tell(now - last, now);
        last = now;
        if (now - told > 1) {
            stat_print("stat");
            told = now;
        }
    }
}

static void on_term(int number)
{
    (void)number;
    end_wanted = 1;
}

static void options(int argc, char **argv)
{
    int c;
    while ((c = getopt(argc, argv, "r:c:d:g:l:m:S:R:e")) != -1) {
        switch (c) {
        case 'r':
            s.is_a = optarg[0] == 'a';
            break;
        case 'c':
            s.path = optarg;
            break;
        case 'd':
            s.device = optarg;
            break;
        case 'g':
            s.gid_index = atoi(optarg);
            break;
        case 'l':
            s.lanes = (unsigned)atoi(optarg);
            break;
        case 'm':
            s.mtu = (enum ibv_mtu)(atoi(optarg) == 4096 ? IBV_MTU_4096 : IBV_MTU_1024);
            break;
        case 'S':
            s.seed = strtoull(optarg, NULL, 0);
            break;
        case 'R':
            s.reconnect_ms = (unsigned)atoi(optarg);
            break;
        case 'e':
            s.events = true;
            break;
        default:
            exit(64);
        }
    }
    if (s.path == NULL || s.device == NULL || s.lanes == 0 || s.lanes > MAX_LANES)
        exit(64);
}

int main(int argc, char **argv)
{
    options(argc, argv);
    s.random = mix(s.seed ^ (s.is_a ? 0xa : 0xb));
    signal(SIGTERM, s.is_a ? on_term : SIG_IGN);
    objects_create();
    for (unsigned i = 0; i < s.lanes; i++)
        lane_init(&s.lane[i], i);
    if (!s.is_a)
        control_listen();
    run();
    objects_destroy();
    stat_print("end");
    if (s.listen_fd >= 0)
        unlink(s.path);
    return 0;
}
