/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_port.c: any bytes as what a receiving port takes: messages of a process that forwards to us,
 * or a run of datagrams. It runs in a network namespace of its own, where nobody owns the other
 * slots; where it may not have one, all slots are ours and nothing is passed on.
 *
 * Input: mode (bit 0: messages, bit 1: an observer listens), then messages of two bytes length and
 * so many bytes, the first HEADER_BYTES a forward header as port_slot.c has it; or source (16),
 * destination (16), port (2), segment (2), index (2), TOS, TTL, and the datagrams.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "port/port_udp_priv.h"
#include "wire_props.h"

enum { RUN_HEAD_BYTES = 40, MINE = 5 /* of the slots */ };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct port_udp port;
static bool alone; /* in the namespace */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    alone = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
    port.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    PROP(port.epoll_fd >= 0 && udp_rx_init(&port) == 0);
    return 0;
}

/* Every byte of a payload lies in the receive buffer. */
static void take(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    const uint8_t *end = port.rx_buffer + (size_t)UDP_RX_MESSAGES * UDP_RX_BUFFER_BYTES;
    (void)r;
    for (unsigned i = 0; i < n; i++) {
        PROP(p[i].payload_bytes <= ROCE_MAX_PACKET_BYTES);
        PROP(p[i].payload >= port.rx_buffer && p[i].payload + p[i].payload_bytes <= end);
        PROP(opcode_info(p[i].h.bth.opcode) != NULL);
        PROP(net_addr_is_v4(&p[i].src) == net_addr_is_v4(&p[i].dst));
    }
}

static void observe(struct port_observer *o, uint64_t now_ns, const struct net_headers *h,
                    const uint8_t *payload, uint32_t bytes, bool sent)
{
    uint8_t head[NET_MAX_HEADER_BYTES];
    (void)o;
    (void)now_ns;
    PROP(!sent && net_build(h, payload, bytes, head) <= sizeof(head));
}

static void observe_done(struct port_observer *o, bool sent)
{
    (void)o;
    (void)sent;
}

/* As after its creation, but for what is expensive. */
static void reset(uint8_t mode)
{
    static struct port_receiver receiver = {.packets = take};
    static struct port_observer observer = {.packet = observe, .done = observe_done};
    struct rx_packet *packets = port.rx_packet;
    uint8_t *buffer = port.rx_buffer;
    int epoll_fd = port.epoll_fd;
    memset(&port, 0, sizeof(port));
    port.rx_packet = packets;
    port.rx_buffer = buffer;
    port.epoll_fd = epoll_fd;
    port.udp_port = ROCE_UDP_PORT;
    port.config.no_flows = true;
    port.config.observer = mode & 2 ? &observer : NULL;
    port.receiver = &receiver;
    port.accept_spare_fd = -1;
    port.connection_count = 1;
    port.rx_now_ns = 1;
    TAILQ_INIT(&port.fds);
    TAILQ_INIT(&port.flows);
    TAILQ_INIT(&port.graveyard);
    TAILQ_INIT(&port.services.list);
    udp_death_init(&port);
    for (unsigned i = 0; i < UDP_SLOTS; i++)
        port.slot_mine[i] = !alone || i % 8 == MINE;
}

static void messages(const uint8_t *data, size_t n)
{
    int pair[2];
    struct udp_fd *connection;
    PROP(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    PROP(udp_fd_add(&port, pair[0], UDP_FD_CONNECTION, false, &connection) == 0);
    for (unsigned i = 0; i < UDP_RX_MESSAGES && n >= 2; i++) {
        size_t bytes = get_be16(data);
        data += 2;
        n -= 2;
        bytes = bytes < n ? bytes : n;
        if (send(pair[1], data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            break;
        data += bytes;
        n -= bytes;
    }
    udp_slot_read(&port, connection);
    take(port.receiver, port.rx_packet, port.rx_packets);
    if (!connection->dead)
        udp_fd_close(&port, connection);
    close(pair[1]);
    free(connection);
}

static void run(const uint8_t *data, size_t n)
{
    static struct udp_fd wildcard = {.fd = -1, .kind = UDP_FD_WILDCARD};
    if (n <= RUN_HEAD_BYTES || n - RUN_HEAD_BYTES > UDP_RX_BUFFER_BYTES - UDP_RX_HEAD_BYTES)
        return;
    struct udp_run r = {
        .sport = get_be16(data + 32),
        .segment = get_be16(data + 34),
        .first_id = get_be16(data + 36),
        .tos = data[38],
        .ttl = data[39],
        .bytes = port.rx_buffer + UDP_RX_HEAD_BYTES,
        .n = (uint32_t)(n - RUN_HEAD_BYTES),
        .from = &wildcard,
    };
    memcpy(r.src.b, data, 16);
    memcpy(r.dst.b, data + 16, 16);
    memcpy(r.bytes, data + RUN_HEAD_BYTES, r.n);
    if (net_addr_is_v4(&r.src) != net_addr_is_v4(&r.dst)) /* no socket has both */
        memcpy(r.dst.b, r.src.b, 12);
    if (net_addr_is_v4(&r.src) != net_addr_is_v4(&r.dst))
        return;
    if (r.segment == 0 || r.segment > r.n)
        r.segment = (uint16_t)r.n;
    unsigned packets = (r.n + r.segment - 1u) / r.segment;
    unsigned seen = udp_rx_run(&port, &r);
    PROP(seen == packets || (seen == 1 && r.bytes[0] >= 0xfe));
    take(port.receiver, port.rx_packet, port.rx_packets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    reset(data[0]);
    if (data[0] & 1)
        messages(data + 1, n - 1);
    else
        run(data + 1, n - 1);
    udp_slot_fini(&port);
    return 0;
}
