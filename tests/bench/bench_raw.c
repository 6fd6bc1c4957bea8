/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_raw.c: what sockets can do on 127.0.0.1 without any RDMA on top: runs of UDP_SEGMENT into
 * UDP_GRO, a TCP stream, and ping-pong. The limits that the other measurements are held against.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORT_INITIATOR = 14791,
    PORT_TARGET = 14792,
    SOCKET_BUFFER_BYTES = 8 << 20,
    WINDOW_BYTES = 512 << 10,
    SLICE_BYTES = 1 << 20,
    RUN_MAX_BYTES = 64 << 10,
    TCP_READ_BYTES = 256 << 10,
    PINGS_A_SLICE = 20,
    SPINS_BEFORE_LOOK = 200,
};

static struct sockaddr_in address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

static int udp_socket(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0), buffer = SOCKET_BUFFER_BYTES;
    struct sockaddr_in a = address(port);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
        bench_die("UDP socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    return fd;
}

static void udp_connect(int fd, uint16_t port)
{
    struct sockaddr_in a = address(port);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
        bench_die("connect");
}

/* The target's credit comes through memory. Whoever waits looks at its socket now and then, as a
 * sender that waits for ACKs does; that also lets the kernel's deferred work run. */
static void await_credit(int fd, uint64_t sent)
{
    uint64_t spins = 0;
    while (sent - atomic_load_explicit(&bench_shared->consumed, memory_order_relaxed) >
               WINDOW_BYTES &&
           !bench_stopped()) {
        char byte;
        if (++spins > SPINS_BEFORE_LOOK)
            (void)recv(fd, &byte, 1, MSG_DONTWAIT);
    }
}

/* c->bytes a send, cut into datagrams of c->mtu. */
void raw_blast_initiator(const struct bench_case *c)
{
    int fd = udp_socket(PORT_INITIATOR);
    uint8_t *pool = bench_memory(BENCH_POOL_BYTES);
    struct sockaddr_in to = address(PORT_TARGET);
    char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    struct iovec iov = {pool, c->bytes};
    struct msghdr h = {
        .msg_name = &to,
        .msg_namelen = sizeof(to),
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    struct cmsghdr *m = CMSG_FIRSTHDR(&h);
    uint16_t segment = (uint16_t)c->mtu;
    m->cmsg_level = SOL_UDP;
    m->cmsg_type = UDP_SEGMENT;
    m->cmsg_len = CMSG_LEN(sizeof(segment));
    memcpy(CMSG_DATA(m), &segment, sizeof(segment));
    uint64_t sent = 0;
    size_t offset = 0;
    bench_meet();
    while (!bench_stopped()) {
        await_credit(fd, sent + c->bytes);
        iov.iov_base = pool + offset;
        if (sendmsg(fd, &h, 0) < 0)
            bench_die("sendmsg");
        sent += c->bytes;
        offset = offset + 2 * c->bytes > BENCH_POOL_BYTES ? 0 : offset + c->bytes;
    }
    close(fd);
}

void raw_blast_target(const struct bench_case *c)
{
    int fd = udp_socket(PORT_TARGET), on = 1;
    uint8_t *pool = bench_memory(BENCH_POOL_BYTES);
    if (setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on)) != 0)
        bench_die("UDP_GRO");
    udp_connect(fd, PORT_INITIATOR);
    char control[64];
    size_t offset = 0;
    bool full = false;
    bench_meet();
    bench_slice_begin(c->mtu < 1000 ? SLICE_BYTES / 16 : SLICE_BYTES);
    while (!full) {
        struct iovec iov = {pool + offset, RUN_MAX_BYTES};
        struct msghdr h = {
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof(control),
        };
        ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT);
        if (n <= 0)
            continue;
        atomic_fetch_add_explicit(&bench_shared->consumed, (uint64_t)n, memory_order_relaxed);
        offset = offset + (size_t)n + RUN_MAX_BYTES > BENCH_POOL_BYTES ? 0 : offset + (size_t)n;
        full = bench_slice_work((uint64_t)n);
    }
    double ns = bench_slice_median_ns();
    bench_shared->result = c->mtu < 1000 ? 1e3 / (ns * c->mtu) : 8 / ns;
    atomic_store(&bench_shared->stop, 1);
    close(fd);
}

void raw_tcp_initiator(const struct bench_case *c)
{
    uint8_t *pool = bench_memory(BENCH_POOL_BYTES);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    bench_meet();
    udp_connect(fd, PORT_TARGET);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    size_t offset = 0;
    while (!bench_stopped()) {
        if (send(fd, pool + offset, c->bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
            break;
        offset = (offset + c->bytes) % BENCH_POOL_BYTES;
    }
    close(fd);
}

void raw_tcp_target(const struct bench_case *c)
{
    (void)c;
    uint8_t *pool = bench_memory(BENCH_POOL_BYTES);
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = address(PORT_TARGET);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(listener, 1) != 0)
        bench_die("listen");
    bench_meet();
    int fd = accept(listener, NULL, NULL);
    size_t offset = 0;
    bool full = false;
    bench_slice_begin(SLICE_BYTES);
    while (!full) {
        ssize_t n = recv(fd, pool + offset, TCP_READ_BYTES, MSG_DONTWAIT);
        if (n <= 0)
            continue;
        offset = offset + (size_t)n + TCP_READ_BYTES > BENCH_POOL_BYTES ? 0 : offset + (size_t)n;
        full = bench_slice_work((uint64_t)n);
    }
    bench_shared->result = 8 / bench_slice_median_ns();
    atomic_store(&bench_shared->stop, 1);
    close(fd);
    close(listener);
}

void raw_ping_initiator(const struct bench_case *c)
{
    int fd = udp_socket(PORT_INITIATOR);
    char buffer[64] = {0};
    bench_meet();
    udp_connect(fd, PORT_TARGET);
    bool full = false;
    bench_slice_begin(PINGS_A_SLICE);
    while (!full) {
        buffer[0]++;
        if (send(fd, buffer, c->bytes, 0) < 0)
            bench_die("send");
        while (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) < 0)
            ;
        full = bench_slice_work(1);
    }
    bench_shared->result = bench_slice_median_ns() / 1e3 / 2;
    close(fd);
}

void raw_blocked_initiator(const struct bench_case *c)
{
    raw_ping_initiator(c);
}

void raw_ping_target(const struct bench_case *c)
{
    int fd = udp_socket(PORT_TARGET);
    char buffer[64];
    udp_connect(fd, PORT_INITIATOR);
    bench_meet();
    while (!bench_stopped())
        if (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0 && send(fd, buffer, c->bytes, 0) < 0)
            break;
    close(fd);
}

/*
 * The same with the socket calls that a RoCE port cannot do without: its sender is not connected
 * (else the kernel numbers the packets at random, and the ICRC covers that number), its receiver
 * asks for destination, traffic class and runs, and an ACK goes along with each message.
 */
struct roce_ping {
    int in, out;
    struct sockaddr_in to;
    char data[64];
};

enum { ACK_BYTES = 20, WRITE_BYTES = 40 };

static void roce_ping_open(struct roce_ping *r, uint16_t mine, uint16_t other)
{
    int on = 1, discover = IP_PMTUDISC_DO, segment = WRITE_BYTES;
    *r = (struct roce_ping){.in = udp_socket(mine), .out = udp_socket(0), .to = address(other)};
    setsockopt(r->in, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
    setsockopt(r->in, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
    setsockopt(r->out, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
    if (setsockopt(r->in, SOL_UDP, UDP_GRO, &on, sizeof(on)) != 0 ||
        setsockopt(r->out, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)) != 0)
        bench_die("UDP_SEGMENT, UDP_GRO");
}

static void roce_ping_send(struct roce_ping *r)
{
    if (sendto(r->out, r->data, WRITE_BYTES + ACK_BYTES, 0, (struct sockaddr *)&r->to,
               sizeof(r->to)) < 0)
        bench_die("sendto");
}

static bool roce_ping_receive(struct roce_ping *r)
{
    char control[128];
    struct sockaddr_in from;
    struct iovec iov = {r->data, sizeof(r->data)};
    struct msghdr h = {
        .msg_name = &from,
        .msg_namelen = sizeof(from),
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    return recvmsg(r->in, &h, MSG_DONTWAIT) > 0;
}

void raw_roce_initiator(const struct bench_case *c)
{
    (void)c;
    struct roce_ping r;
    bool full = false;
    roce_ping_open(&r, PORT_INITIATOR, PORT_TARGET);
    bench_meet();
    bench_slice_begin(PINGS_A_SLICE);
    while (!full) {
        roce_ping_send(&r);
        while (!roce_ping_receive(&r))
            ;
        full = bench_slice_work(1);
    }
    bench_shared->result = bench_slice_median_ns() / 1e3 / 2;
    atomic_store(&bench_shared->stop, 1);
    close(r.in);
    close(r.out);
}

void raw_roce_target(const struct bench_case *c)
{
    (void)c;
    struct roce_ping r;
    roce_ping_open(&r, PORT_TARGET, PORT_INITIATOR);
    bench_meet();
    while (!bench_stopped())
        if (roce_ping_receive(&r))
            roce_ping_send(&r);
    close(r.in);
    close(r.out);
}

static _Atomic char blocked_byte;

static void *blocked_main(void *arg)
{
    const int *fd = arg;
    char buffer[64];
    while (!bench_stopped())
        if (recv(*fd, buffer, sizeof(buffer), 0) > 0)
            atomic_store(&blocked_byte, buffer[0]);
    return NULL;
}

void raw_blocked_target(const struct bench_case *c)
{
    int fd = udp_socket(PORT_TARGET);
    struct timeval patience = {.tv_usec = 200000};
    char buffer[64] = {0};
    pthread_t thread;
    udp_connect(fd, PORT_INITIATOR);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (pthread_create(&thread, NULL, blocked_main, &fd) != 0)
        bench_die("pthread_create");
    bench_meet();
    while (!bench_stopped()) {
        char now = atomic_load_explicit(&blocked_byte, memory_order_relaxed);
        if (now == buffer[0])
            continue;
        buffer[0] = now;
        if (send(fd, buffer, c->bytes, 0) < 0)
            break;
    }
    pthread_join(thread, NULL);
    close(fd);
}
