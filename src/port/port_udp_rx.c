/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_udp_rx.c: takes runs of datagrams from the sockets, cuts them into packets, checks and
 * parses each, and hands batches to the receiver. Packets whose QPN is another process's go on to
 * it (port_slot.c).
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "wire/net.h"

enum {
    EPOLL_EVENTS = 16,
    BUSY_CALLS_MAX = 16, /* receive calls that may look at one socket only */
};

int udp_rx_init(struct port_udp *u)
{
    u->rx_packet = calloc(UDP_RX_BATCH, sizeof(*u->rx_packet));
    u->rx_buffer = mmap(NULL, (size_t)UDP_RX_MESSAGES * UDP_RX_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (u->rx_buffer == MAP_FAILED)
        u->rx_buffer = NULL;
    u->rx_want = UDP_RX_MESSAGES;
    return u->rx_packet == NULL || u->rx_buffer == NULL ? -ENOMEM : 0;
}

void udp_rx_fini(struct port_udp *u)
{
    free(u->rx_packet);
    if (u->rx_buffer != NULL)
        munmap(u->rx_buffer, (size_t)UDP_RX_MESSAGES * UDP_RX_BUFFER_BYTES);
    u->rx_packet = NULL;
    u->rx_buffer = NULL;
}

static void hand_over(struct port_udp *u)
{
    if (u->rx_packets != 0)
        u->receiver->packets(u->receiver, u->rx_packet, u->rx_packets);
    u->rx_packets = 0;
}

static void observe_received(struct port_udp *u, const struct udp_run *run,
                             const struct icrc_pseudo *ip, const uint8_t *bytes, uint32_t n)
{
    struct net_headers h = {
        .v6 = ip->v6,
        .tos = run->tos,
        .ttl = run->ttl,
        .ip_id = ip->ip_id,
        .dont_fragment = ip->dont_fragment,
        .udp_sport = ip->udp_sport,
        .udp_dport = ip->udp_dport,
        .udp_checksum_set = true,
    };
    memcpy(h.src, ip->src, sizeof(h.src));
    memcpy(h.dst, ip->dst, sizeof(h.dst));
    struct port_observer *o = u->config.observer;
    o->packet(o, udp_observed_ns(), &h, bytes, n, false);
}

static void count_malformed(struct port_udp *u, enum roce_verdict v)
{
    static const enum udp_counter counter[ROCE_VERDICT_COUNT] = {
        [ROCE_TOO_SHORT] = UDP_udp_rx_drop_too_short,
        [ROCE_BAD_OPCODE] = UDP_udp_rx_drop_bad_opcode,
        [ROCE_BAD_TVER] = UDP_udp_rx_drop_bad_tver,
        [ROCE_BAD_LENGTH] = UDP_udp_rx_drop_bad_length,
    };
    udp_count(u, counter[v], 1);
}

/* One packet of our own. ip carries the expected id in and the real one out. */
static void packet_input(struct port_udp *u, const struct udp_run *run, struct icrc_pseudo *ip,
                         const uint8_t *bytes, uint32_t n)
{
    udp_count(u, UDP_udp_rx_packets, 1);
    udp_count(u, UDP_udp_rx_bytes, n);
    enum roce_verdict v = roce_check(bytes, n);
    bool icrc_ok = false;
    if (v == ROCE_OK) {
        uint16_t expected = ip->ip_id;
        ip->udp_bytes = (uint16_t)(UDP_HEADER_BYTES + n);
        icrc_ok = icrc_check_unknown_id(ip, bytes, n);
        if (ip->ip_id != expected)
            udp_count(u, UDP_udp_rx_foreign_id, 1);
    }
    if (u->config.observer != NULL)
        observe_received(u, run, ip, bytes, n);
    if (v != ROCE_OK) {
        count_malformed(u, v);
        return;
    }
    struct rx_packet *p = &u->rx_packet[u->rx_packets];
    roce_parse(bytes, n, &p->h, &p->payload, &p->payload_bytes);
    p->src = run->src;
    p->dst = run->dst;
    p->ifindex = run->ifindex;
    p->traffic_class = run->tos;
    p->hop_limit = run->ttl;
    p->icrc_ok = icrc_ok;
    if (++u->rx_packets == UDP_RX_BATCH)
        hand_over(u);
}

static void run_pseudo(const struct port_udp *u, const struct udp_run *run, struct icrc_pseudo *ip)
{
    bool v6 = !net_addr_is_v4(&run->src);
    *ip = (struct icrc_pseudo){.v6 = v6, .udp_sport = run->sport, .udp_dport = u->udp_port};
    if (v6) {
        memcpy(ip->src, run->src.b, 16);
        memcpy(ip->dst, run->dst.b, 16);
    } else {
        memcpy(ip->src, run->src.b + 12, 4);
        memcpy(ip->dst, run->dst.b + 12, 4);
    }
}

/* Is this packet for us? Too short to say, QP0, multicast and QP1 (port_service.c) count as ours.
 */
static bool packet_ours(const struct port_udp *u, const uint8_t *bytes, uint32_t n)
{
    if (n < 8)
        return true;
    uint32_t qpn = (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
    return qpn <= 1 || qpn == QPN_MULTICAST || u->slot_mine[udp_packet_slot(bytes)];
}

/* Bytes of the packets from at on that are all for the same other process. */
static uint32_t foreign_bytes(const struct port_udp *u, const struct udp_run *run, uint32_t at)
{
    uint32_t slot = udp_packet_slot(run->bytes + at);
    uint32_t end = at;
    while (end < run->n) {
        uint32_t n = run->n - end < run->segment ? run->n - end : run->segment;
        const uint8_t *p = run->bytes + end;
        if (packet_ours(u, p, n) || udp_packet_slot(p) != slot)
            break;
        end += n;
    }
    return end - at;
}

unsigned udp_rx_run(struct port_udp *u, struct udp_run *run)
{
    if (udp_watch_is_probe(run))
        return udp_watch_probe(u, run);
    struct icrc_pseudo ip;
    run_pseudo(u, run, &ip);
    /* What comes directly is of no flow, and has its ids from 0 on. */
    struct udp_source of_none = {0};
    struct udp_source *s = run->direct ? &of_none : udp_flow_source(u, &run->src, run->sport);
    /* From our own kind the first id of a send is 0; another sender counts on from packet to
     * packet. */
    uint16_t base = run->first_id != 0 ? 0 : s->next_id;
    bool df = !ip.v6 && !s->clears_df;
    unsigned own = 0, foreign = 0, gsi = 0;
    for (uint32_t at = 0; at < run->n;) {
        uint32_t n = run->n - at < run->segment ? run->n - at : run->segment;
        uint16_t index = (uint16_t)(run->first_id + own + foreign + gsi);
        bool to_gsi = udp_packet_gsi(run->bytes + at, n);
        if (to_gsi && udp_service_foreign(u, run, run->bytes + at, n, index)) {
            gsi++;
            at += n;
            continue;
        }
        if (!packet_ours(u, run->bytes + at, n)) {
            uint32_t all = foreign_bytes(u, run, at);
            udp_slot_forward(u, udp_packet_slot(run->bytes + at), run, run->bytes + at, all, index);
            foreign += (all + run->segment - 1) / run->segment;
            at += all;
            continue;
        }
        uint16_t expected = ip.v6 ? 0 : (uint16_t)(base + index);
        ip.ip_id = expected;
        ip.dont_fragment = df;
        packet_input(u, run, &ip, run->bytes + at, n);
        df = ip.dont_fragment;
        base = (uint16_t)(base + ip.ip_id - expected);
        if (to_gsi)
            gsi++;
        else
            own++;
        at += n;
    }
    s->next_id = base == 0 ? 0 : (uint16_t)(base + run->first_id + own + foreign + gsi);
    s->clears_df = !ip.v6 && !df;
    /* Connection management comes from one port for all processes: no reason for a flow, nor
     * against one. */
    if (own + foreign != 0 && !run->direct)
        udp_flow_heard(u, s, run, own, foreign);
    return own + foreign + gsi;
}

static void addr_from_v4(struct net_addr *out, const void *four)
{
    *out = (struct net_addr){
        .b = {[10] = 0xff, [11] = 0xff}
    };
    memcpy(out->b + 12, four, 4);
}

/* Ancillary data to run; false: the destination address is missing. */
static bool run_control(struct msghdr *h, struct udp_run *run)
{
    bool have_dst = false;
    int value;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
        const void *data = CMSG_DATA(c);
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, data, sizeof(info));
            addr_from_v4(&run->dst, &info.ipi_addr);
            run->ifindex = (uint32_t)info.ipi_ifindex;
            have_dst = true;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, data, sizeof(info));
            memcpy(run->dst.b, &info.ipi6_addr, 16);
            run->ifindex = info.ipi6_ifindex;
            have_dst = true;
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            run->tos = *(const uint8_t *)data;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&value, data, sizeof(value));
            run->tos = (uint8_t)value;
        } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
                   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
            memcpy(&value, data, sizeof(value));
            run->ttl = (uint8_t)value;
        } else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
            memcpy(&value, data, sizeof(value));
            run->segment = (uint16_t)value;
        }
    }
    return have_dst;
}

static unsigned datagram_input(struct port_udp *u, struct udp_fd *f, unsigned i)
{
    struct msghdr *h = &u->rx_message[i].msg_hdr;
    struct udp_run run = {.bytes = u->rx_iov[i].iov_base, .n = u->rx_message[i].msg_len, .from = f};
    if ((h->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || !run_control(h, &run)) {
        udp_count(u, UDP_udp_rx_drop_truncated, 1);
        return 1;
    }
    if (run.n == 0) {
        udp_count(u, UDP_udp_rx_drop_too_short, 1);
        return 1;
    }
    if (f->v6) {
        memcpy(run.src.b, &u->rx_name[i].sin6_addr, 16);
        run.sport = ntohs(u->rx_name[i].sin6_port);
    } else {
        struct sockaddr_in a;
        memcpy(&a, &u->rx_name[i], sizeof(a));
        addr_from_v4(&run.src, &a.sin_addr);
        run.sport = ntohs(a.sin_port);
    }
    if (run.segment == 0 || run.segment > run.n)
        run.segment = (uint16_t)run.n;
    return udp_rx_run(u, &run);
}

/* As recvmmsg, which costs more for one. */
static int datagrams_take(struct port_udp *u, int fd, unsigned want)
{
    if (want > 1)
        return recvmmsg(fd, u->rx_message, want, MSG_DONTWAIT, NULL);
    ssize_t n = recvmsg(fd, &u->rx_message[0].msg_hdr, MSG_DONTWAIT);
    u->rx_message[0].msg_len = (unsigned)n;
    return n < 0 ? -1 : 1;
}

/* One look at a datagram socket; returns packets seen. */
static unsigned datagrams_read(struct port_udp *u, struct udp_fd *f)
{
    /* Looking for one more than there is costs a third of a system call: as many as are likely. */
    unsigned want = u->rx_want;
    for (unsigned i = 0; i < want; i++) {
        u->rx_iov[i] =
            (struct iovec){u->rx_buffer + (size_t)i * UDP_RX_BUFFER_BYTES + UDP_RX_HEAD_BYTES,
                           UDP_RX_BUFFER_BYTES - UDP_RX_HEAD_BYTES};
        u->rx_message[i].msg_hdr = (struct msghdr){
            .msg_name = &u->rx_name[i],
            .msg_namelen = sizeof(u->rx_name[i]),
            .msg_iov = &u->rx_iov[i],
            .msg_iovlen = 1,
            .msg_control = u->rx_control[i],
            .msg_controllen = UDP_RX_CONTROL_BYTES,
        };
    }
    int r = datagrams_take(u, f->fd, want);
    u->rx_want = r <= 0 ? 1 : 2 * (unsigned)r + 1;
    if (u->rx_want > UDP_RX_MESSAGES)
        u->rx_want = UDP_RX_MESSAGES;
    unsigned seen = 0;
    for (int i = 0; i < r; i++) {
        seen += datagram_input(u, f, (unsigned)i);
        u->rx_bytes += u->rx_message[i].msg_len;
    }
    if (r > 0) {
        udp_count(u, UDP_udp_rx_messages, (uint64_t)r);
        if (f->kind == UDP_FD_FLOW)
            udp_flow_used(u, f);
    }
    return seen;
}

/* Reads one descriptor; packets go to the receiver before the buffers are used again. */
static unsigned fd_read(struct port_udp *u, struct udp_fd *f)
{
    unsigned seen = 0;
    switch (f->kind) {
    case UDP_FD_FLOW:
        if (!udp_flow_open_for(u, f))
            return 0;
        seen = datagrams_read(u, f);
        break;
    case UDP_FD_WILDCARD:
        seen = datagrams_read(u, f);
        break;
    case UDP_FD_LISTENER:
        udp_slot_accept(u, f);
        break;
    case UDP_FD_CONNECTION:
        seen = udp_slot_read(u, f);
        break;
    case UDP_FD_HOST:
        udp_guest_read(u, f);
        break;
    case UDP_FD_TIMER:
        udp_guest_timer(u, f);
        break;
    case UDP_FD_EXECUTOR:
        udp_death_executor(u, f);
        break;
    case UDP_FD_DEATHS:
        udp_death_timer(u, f);
        break;
    case UDP_FD_HOLD:
        udp_hold_timer(u, f);
        break;
    case UDP_FD_OWNER:
        udp_slot_gone(u, f);
        break;
    }
    hand_over(u);
    if (seen != 0 && !f->dead && !f->retired)
        u->hot = f;
    return seen;
}

static unsigned ready_read(struct port_udp *u, const struct udp_fd *except, unsigned max)
{
    struct epoll_event event[EPOLL_EVENTS];
    int r = epoll_wait(u->epoll_fd, event, EPOLL_EVENTS, 0);
    unsigned seen = 0;
    if (u->accept_later)
        udp_slot_accept_all(u);
    for (int i = 0; i < r && seen < max; i++) {
        struct udp_fd *f = event[i].data.ptr;
        if (!f->dead && f != except)
            seen += fd_read(u, f);
    }
    struct udp_fd *dead;
    while ((dead = TAILQ_FIRST(&u->graveyard)) != NULL) {
        TAILQ_REMOVE(&u->graveyard, dead, link);
        free(dead);
    }
    return seen;
}

bool udp_rx_ease(struct port_udp *u, bool on)
{
    struct udp_fd *f = on ? u->hot : u->eased;
    if (f == NULL || (f->kind != UDP_FD_WILDCARD && f->kind != UDP_FD_FLOW))
        return true;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = f};
    if (on == (u->eased != NULL))
        return true;
    if (epoll_ctl(u->epoll_fd, on ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, f->fd, &event) != 0)
        return on;
    u->eased = on ? f : NULL;
    return true;
}

static void packets_dropped(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    (void)r;
    (void)p;
    (void)n;
}

/* The kernel drops what a closed socket holds. Not for ever: it may be filled as fast as we read,
 * but what it holds now comes first. */
static unsigned drain_and_close(struct port_udp *u, struct udp_fd *f)
{
    const uint64_t end = u->rx_bytes + u->rcvbuf_bytes;
    unsigned seen = 0, more = 1;
    while (more != 0 && u->rx_bytes < end) {
        more = datagrams_read(u, f);
        hand_over(u);
        seen += more;
    }
    udp_fd_close(u, f);
    return seen;
}

/* No read is going on, whose buffers this needs. */
static unsigned retired_close(struct port_udp *u)
{
    struct udp_fd *f;
    unsigned seen = 0;
    while ((f = TAILQ_FIRST(&u->retired)) != NULL)
        seen += drain_and_close(u, f);
    return seen;
}

/* The leader's socket holds other processes' packets, and so may that of a flow. */
void udp_rx_retire(struct port_udp *u)
{
    struct port_receiver nobody = {.packets = packets_dropped};
    struct udp_fd *f, *next;
    u->receiver = &nobody;
    while ((f = TAILQ_FIRST(&u->flows)) != NULL) {
        udp_flow_retire(u, f);
        retired_close(u);
    }
    for (f = TAILQ_FIRST(&u->fds); f != NULL; f = next) {
        next = TAILQ_NEXT(f, link);
        if (f->kind != UDP_FD_WILDCARD)
            continue;
        udp_watch_member(u, f->v6, -1);
        drain_and_close(u, f);
    }
    udp_hold_retire(u);
    u->receiver = NULL;
}

unsigned udp_rx_receive(struct port_udp *u, uint64_t now_ns, struct port_receiver *r, unsigned max)
{
    u->receiver = r;
    u->rx_now_ns = now_ns;
    unsigned seen = 0;
    const struct udp_fd *hot = u->hot;
    if (u->hot != NULL)
        seen = fd_read(u, u->hot);
    /* Asking epoll costs as much as reading a socket, hence not at every call. */
    bool look = seen != 0 ? ++u->busy_calls >= BUSY_CALLS_MAX
                          : ++u->empty_calls >= PORT_EMPTY_CALLS || hot == NULL;
    if (seen != 0)
        u->empty_calls = 0;
    if (look) {
        u->busy_calls = u->empty_calls = 0;
        if (u->eased != NULL && u->eased != u->hot)
            seen += fd_read(u, u->eased);
        seen += ready_read(u, seen != 0 ? hot : NULL, max);
    }
    seen += retired_close(u);
    if (seen != 0) {
        udp_count(u, UDP_udp_rx_calls, 1);
        if (u->config.observer != NULL)
            u->config.observer->done(u->config.observer, false);
    }
    u->receiver = NULL;
    return seen;
}
