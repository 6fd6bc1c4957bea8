/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_udp_tx.c: trains become bytes in one contiguous area (payload copied and summed in one go)
 * and leave by sendmmsg, a train of several packets as one UDP_SEGMENT send.
 *
 * The ICRC covers the IPv4 identification, so it must be known beforehand: an unconnected socket
 * with IP_PMTUDISC_DO sends id 0 and DF, and the segments of one send get 0, 1, 2...
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/net.h"

#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70
#endif

enum {
    DEFAULT_HOP_LIMIT = 64,
    BIND_TRIES = 256,
    SMALL_PAYLOAD_BYTES = 256,
    GSO_FAILURES_OFF = 3, /* that many refused runs in a row: stop trying for a while */
};
static const uint64_t GSO_OFF_NS = 1000000000;
static const uint64_t FULL_RETRY_NS = 100000;

int udp_tx_init(struct port_udp *u)
{
    for (unsigned i = 0; i < UDP_TX_SOCKETS; i++)
        u->tx4[i].fd = u->tx6[i].fd = -1;
    u->tx_spare_fd = udp_spare_fd();
    u->tx_message = calloc(UDP_TX_MESSAGES, sizeof(*u->tx_message));
    u->tx_arena = mmap(NULL, UDP_TX_ARENA_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (u->tx_arena == MAP_FAILED)
        u->tx_arena = NULL;
    if (u->tx_message == NULL || u->tx_arena == NULL)
        return -ENOMEM;
    /* Does the kernel know UDP_SEGMENT at all? Limits of a single path show when it is used. */
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int segment = 1024;
    u->gso = !u->config.no_gso && fd >= 0 &&
             setsockopt(fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0;
    if (fd >= 0)
        close(fd);
    return 0;
}

void udp_tx_close(struct port_udp *u)
{
    for (unsigned i = 0; i < UDP_TX_SOCKETS; i++) {
        if (u->tx4[i].fd >= 0)
            close(u->tx4[i].fd);
        if (u->tx6[i].fd >= 0)
            close(u->tx6[i].fd);
        u->tx4[i].fd = u->tx6[i].fd = -1;
    }
    if (u->tx_spare_fd >= 0)
        close(u->tx_spare_fd);
    u->tx_spare_fd = -1;
    udp_local_close(u);
}

void udp_tx_fini(struct port_udp *u)
{
    udp_tx_close(u);
    udp_local_fini(u);
    if (u->tx_arena != NULL)
        munmap(u->tx_arena, UDP_TX_ARENA_BYTES);
    free(u->tx_message);
    u->tx_arena = NULL;
    u->tx_message = NULL;
}

static void tx_socket_options(int fd, bool v6)
{
    int on = 1, off = 0, buffer = UDP_SOCKET_BUFFER_BYTES, least = 1;
    /* Nothing is ever read here: whatever is sent to it is dropped by a filter. */
    struct sock_filter drop[] = {
        {BPF_RET | BPF_K, 0, 0, 0}
    };
    struct sock_fprog program = {1, drop};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    int limit = DEFAULT_HOP_LIMIT;
    if (v6) {
        int discover = IPV6_PMTUDISC_DO;
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof(discover));
        setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &limit, sizeof(limit));
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &limit, sizeof(limit));
        setsockopt(fd, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, &off, sizeof(off));
    } else {
        int discover = IP_PMTUDISC_DO;
        setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
        setsockopt(fd, IPPROTO_IP, IP_TTL, &limit, sizeof(limit));
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &limit, sizeof(limit));
    }
}

/* To the address that s->local says; 0 or errno. */
static int tx_socket_bind(const struct udp_tx_socket *s, int fd)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(s->sport)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(s->sport)};
    bool v6 = !net_addr_is_v4(&s->local);
    memcpy(&a4.sin_addr, s->local.b + 12, 4);
    int r = v6 ? bind(fd, (struct sockaddr *)&a6, sizeof(a6))
               : bind(fd, (struct sockaddr *)&a4, sizeof(a4));
    return r == 0 ? 0 : errno;
}

/*
 * Binds to a port near the wanted one; false: all that were tried are taken. IPv4: to the local
 * address, which each send then need not name. Not so with IPv6, where the kernel goes on sending
 * from an address that the socket has and the machine has not any more.
 */
static bool tx_socket_port(struct udp_tx_socket *s, int fd, const struct net_addr *local,
                           uint16_t wanted)
{
    static const struct net_addr any4 =
                                     {
                                         .b = {[10] = 0xff, [11] = 0xff}
    },
                                 any6;
    uint32_t offset = wanted;
    bool v6 = !net_addr_is_v4(local);
    s->local = v6 ? any6 : *local;
    for (unsigned i = 0; i < BIND_TRIES; i++) {
        s->sport = (uint16_t)(UDP_SPORT_FIRST | (offset & 0x3fff));
        int err = tx_socket_bind(s, fd);
        if (err == 0)
            return true;
        if (err == EADDRNOTAVAIL && !v6) /* the address has gone; it may come back */
            s->local = any4;
        else
            offset += 97; /* somewhere else: neighbours are likely to be taken as well */
    }
    return false;
}

/* Any socket that is there; NULL: none. */
static struct udp_tx_socket *tx_socket_any(struct udp_tx_socket *all)
{
    for (unsigned i = 0; i < UDP_TX_SOCKETS; i++) {
        if (all[i].fd >= 0)
            return &all[i];
    }
    return NULL;
}

/* The socket for a path: its source port itself when it is the first of its class and free, else
 * the one that the class already has, else (no descriptor or port is left) any. NULL: none. */
static struct udp_tx_socket *tx_socket(struct port_udp *u, const struct nic_path *path)
{
    const int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    bool v6 = !net_addr_is_v4(&path->local);
    struct udp_tx_socket *all = v6 ? u->tx6 : u->tx4;
    struct udp_tx_socket *s = &all[path->udp_sport % UDP_TX_SOCKETS];
    if (s->fd >= 0)
        return s;
    int fd = socket(v6 ? AF_INET6 : AF_INET, type, 0);
    if (fd < 0 && tx_socket_any(all) == NULL && u->tx_spare_fd >= 0) {
        close(u->tx_spare_fd);
        u->tx_spare_fd = -1;
        fd = socket(v6 ? AF_INET6 : AF_INET, type, 0);
    }
    if (fd < 0)
        return tx_socket_any(all);
    tx_socket_options(fd, v6);
    if (!tx_socket_port(s, fd, &path->local, path->udp_sport)) {
        close(fd);
        return tx_socket_any(all);
    }
    s->fd = fd;
    if (u->config.observer != NULL)
        u->config.observer->source(u->config.observer, v6, s->sport);
    return s;
}

static void control_add(struct udp_tx_message *m, int level, int type, const void *data, size_t n)
{
    assert(m->control_bytes + CMSG_SPACE(n) <= sizeof(m->control));
    struct cmsghdr *c = (struct cmsghdr *)(m->control + m->control_bytes);
    memset(c, 0, CMSG_SPACE(n));
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(n);
    memcpy(CMSG_DATA(c), data, n);
    m->control_bytes += (uint32_t)CMSG_SPACE(n);
}

/* Addresses and ancillary data from a path. */
static void message_address(struct port_udp *u, struct udp_tx_message *m, const struct nic_path *p)
{
    bool v6 = !net_addr_is_v4(&p->local);
    int tos = p->traffic_class;
    int ttl = p->hop_limit != 0 ? p->hop_limit : DEFAULT_HOP_LIMIT;
    m->tos = p->traffic_class;
    m->ttl = (uint8_t)ttl;
    m->control_bytes = 0;
    memset(&m->to, 0, sizeof(m->to));
    m->ip = (struct icrc_pseudo){.v6 = v6, .udp_dport = u->udp_port, .dont_fragment = !v6};
    if (v6) {
        memcpy(m->ip.src, p->local.b, 16);
        memcpy(m->ip.dst, p->remote.b, 16);
        m->to.v6.sin6_family = AF_INET6;
        m->to.v6.sin6_port = htons(u->udp_port);
        m->to.v6.sin6_scope_id = net_addr_is_link_local(&p->remote) ? p->scope_id : 0;
        memcpy(&m->to.v6.sin6_addr, p->remote.b, 16);
        struct in6_pktinfo info = {.ipi6_ifindex = p->scope_id};
        memcpy(&info.ipi6_addr, p->local.b, 16);
        control_add(m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
        if (tos != 0)
            control_add(m, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
        if (ttl != DEFAULT_HOP_LIMIT)
            control_add(m, IPPROTO_IPV6, IPV6_HOPLIMIT, &ttl, sizeof(ttl));
    } else {
        memcpy(m->ip.src, p->local.b + 12, 4);
        memcpy(m->ip.dst, p->remote.b + 12, 4);
        m->to.v4.sin_family = AF_INET;
        m->to.v4.sin_port = htons(u->udp_port);
        memcpy(&m->to.v4.sin_addr, p->remote.b + 12, 4);
        struct in_pktinfo info = {.ipi_ifindex = 0};
        memcpy(&info.ipi_spec_dst, p->local.b + 12, 4);
        if (memcmp(&m->socket->local, &p->local, sizeof(p->local)) != 0)
            control_add(m, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
        if (tos != 0)
            control_add(m, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
        if (ttl != DEFAULT_HOP_LIMIT)
            control_add(m, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
    }
}

/* Payload and pad of a packet to out; returns the CRC after the headers and them. */
static uint32_t stage_payload(const struct train *t, const struct train_packet *k, uint32_t crc,
                              size_t head, uint8_t pad, uint8_t *out)
{
    bool small = k->payload_bytes <= SMALL_PAYLOAD_BYTES;
    uint8_t *p = out + head;
    if (!small)
        crc = icrc_update(crc, out + BTH_BYTES, head - BTH_BYTES);
    for (unsigned i = 0; i < k->spans; i++) {
        const struct span *s = &t->span[k->first_span + i];
        if (small)
            memcpy(p, s->addr, s->bytes);
        else
            crc = icrc_copy(crc, p, s->addr, s->bytes);
        p += s->bytes;
    }
    assert(p == out + head + k->payload_bytes);
    memset(p, 0, pad);
    if (small) /* one sum over all costs less than one over each piece */
        return icrc_update(crc, out + BTH_BYTES, head - BTH_BYTES + k->payload_bytes + pad);
    return icrc_update(crc, p, pad);
}

/* Bytes of one packet to out; returns how many. */
static uint32_t stage_packet(const struct train *t, const struct train_packet *k,
                             struct icrc_pseudo *ip, uint8_t *out)
{
    size_t head = roce_build_headers(&k->h, out);
    uint8_t pad = roce_pad(k->payload_bytes);
    uint32_t total = (uint32_t)head + k->payload_bytes + pad + ICRC_BYTES;
    ip->udp_bytes = (uint16_t)(UDP_HEADER_BYTES + total);
    uint32_t crc = stage_payload(t, k, icrc_begin(ip, out), head, pad, out);
    put_le32(out + total - ICRC_BYTES, icrc_end(crc));
    return total;
}

/* The next free message, addressed; NULL: no socket, the packets are lost. */
static struct udp_tx_message *message_begin(struct port_udp *u, const struct nic_path *path,
                                            struct udp_local *local)
{
    bool v6 = !net_addr_is_v4(&path->local);
    struct udp_tx_socket *s = local != NULL ? udp_local_socket(local, path) : tx_socket(u, path);
    if (s == NULL || v6 != !net_addr_is_v4(&path->remote))
        return NULL;
    struct udp_tx_message *m = &u->tx_message[u->tx_messages];
    m->socket = s;
    m->local = local;
    m->bytes = u->tx_arena + u->tx_used;
    m->n = 0;
    m->packets = 0;
    m->segment = 0;
    message_address(u, m, path);
    m->ip.udp_sport = s->sport;
    /* Whoever records what we send is known by the source ports of our sockets: else the receiver
     * would record it again. */
    const struct udp_tx_socket *known =
        local != NULL && u->config.observer != NULL ? tx_socket(u, path) : NULL;
    if (known != NULL)
        m->ip.udp_sport = known->sport;
    return m;
}

static void message_packet(struct udp_tx_message *m, const struct train *t,
                           const struct train_packet *k)
{
    m->ip.ip_id = m->ip.v6 ? 0 : m->packets;
    uint32_t n = stage_packet(t, k, &m->ip, m->bytes + m->n);
    if (m->packets == 0)
        m->segment = (uint16_t)n;
    m->n += n;
    m->packets++;
}

static void message_end(struct port_udp *u, struct udp_tx_message *m)
{
    if (m->local != NULL)
        udp_local_queued(u, m);
    else if (m->packets > 1)
        control_add(m, SOL_UDP, UDP_SEGMENT, &m->segment, sizeof(m->segment));
    u->tx_used += (m->n + 63) & ~63u;
    u->tx_messages++;
}

static bool gso_usable(const struct port_udp *u)
{
    return u->gso && u->tx_now_ns >= u->gso_off_until_ns;
}

/* Room for a train, after sending what waits when there is none. */
static bool tx_room(struct port_udp *u, const struct train *t, unsigned messages)
{
    uint32_t bytes = t->total_bytes + 64u * t->packets;
    for (int i = 0; i < 2; i++) {
        if (u->tx_messages + messages <= UDP_TX_MESSAGES &&
            u->tx_used + bytes <= UDP_TX_ARENA_BYTES)
            return true;
        udp_tx_flush(u, u->tx_now_ns);
    }
    return false;
}

/* Packets at .. at + n - 1 of a train, to one process or by UDP. */
static void train_part(struct port_udp *u, const struct train *t, unsigned at, unsigned n,
                       struct udp_local *local)
{
    if (local != NULL && udp_local_stalled(local)) {
        udp_count(u, UDP_local_drop_stalled, n);
        return;
    }
    unsigned per_message = local != NULL || gso_usable(u) ? n : 1;
    if (!tx_room(u, t, n / per_message)) {
        udp_count(u, UDP_udp_tx_drop_full, n);
        return;
    }
    for (unsigned i = 0; i < n; i += per_message) {
        struct udp_tx_message *m = message_begin(u, t->path, local);
        if (m == NULL) {
            udp_count(u, UDP_udp_tx_drop_error, n - i);
            return;
        }
        for (unsigned k = 0; k < per_message; k++)
            message_packet(m, t, &t->packet[at + i + k]);
        message_end(u, m);
    }
}

void udp_tx_train(struct port_udp *u, const struct train *t)
{
    for (unsigned at = 0, n; at < t->packets; at += n) {
        struct udp_local *local = udp_local_to(u, t, at, &n);
        train_part(u, t, at, n, local);
    }
}

void udp_tx_train_flipped(struct port_udp *u, const struct train *t, uint32_t bit)
{
    assert(t->packets == 1);
    unsigned before = u->tx_messages;
    udp_tx_train(u, t);
    if (u->tx_messages == 0 || u->tx_messages == before)
        return;
    struct udp_tx_message *m = &u->tx_message[u->tx_messages - 1];
    bit %= m->n * 8;
    m->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

uint64_t udp_observed_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void observe_sent(struct port_udp *u, const struct udp_tx_message *m)
{
    struct net_headers h = {
        .v6 = m->ip.v6,
        .tos = m->tos,
        .ttl = m->ttl,
        .dont_fragment = m->ip.dont_fragment,
        .udp_sport = m->ip.udp_sport,
        .udp_dport = m->ip.udp_dport,
        .udp_checksum_set = true,
    };
    memcpy(h.src, m->ip.src, sizeof(h.src));
    memcpy(h.dst, m->ip.dst, sizeof(h.dst));
    struct port_observer *o = u->config.observer;
    for (uint32_t at = 0; at < m->n; at += m->segment) {
        uint32_t n = m->n - at < m->segment ? m->n - at : m->segment;
        o->packet(o, u->tx_observed_ns, &h, m->bytes + at, n, true);
        h.ip_id++;
    }
}

static void message_sent(struct port_udp *u, const struct udp_tx_message *m)
{
    if (m->local != NULL) {
        udp_local_sent(u, m);
    } else {
        udp_count(u, UDP_udp_tx_packets, m->packets);
        udp_count(u, UDP_udp_tx_bytes, m->n);
        udp_count(u, UDP_udp_tx_messages, 1);
    }
    if (u->config.observer != NULL)
        observe_sent(u, m);
}

static void header_of(struct udp_tx_message *m, struct msghdr *h)
{
    m->iov[1] = (struct iovec){m->bytes, m->n};
    if (m->local != NULL) {
        m->iov[0].iov_base = m->control; /* the message may have moved */
        *h = (struct msghdr){.msg_iov = m->iov, .msg_iovlen = 2};
        return;
    }
    *h = (struct msghdr){
        .msg_name = &m->to,
        .msg_namelen = m->ip.v6 ? sizeof(m->to.v6) : sizeof(m->to.v4),
        .msg_iov = &m->iov[1],
        .msg_iovlen = 1,
        .msg_control = m->control_bytes != 0 ? m->control : NULL,
        .msg_controllen = m->control_bytes,
    };
}

static void count_error(struct port_udp *u, int error, unsigned packets)
{
    enum udp_counter c = UDP_udp_tx_drop_error;
    if (error == EMSGSIZE)
        c = UDP_udp_tx_drop_size;
    else if (error == ENOBUFS || error == ENOMEM || error == EAGAIN)
        c = UDP_udp_tx_drop_full;
    udp_count(u, c, packets);
}

/* A run that the kernel refused to cut: each packet on its own, with the ICRC for id 0. */
static void send_singly(struct port_udp *u, struct udp_tx_message *run)
{
    udp_count(u, UDP_udp_tx_gso_fallback, 1);
    struct udp_tx_message m = *run;
    m.control_bytes -= (uint32_t)CMSG_SPACE(sizeof(m.segment)); /* UDP_SEGMENT was added last */
    m.packets = 1;
    m.ip.ip_id = 0;
    for (uint32_t at = 0; at < run->n; at += run->segment) {
        m.bytes = run->bytes + at;
        m.n = run->n - at < run->segment ? run->n - at : run->segment;
        m.ip.udp_bytes = (uint16_t)(UDP_HEADER_BYTES + m.n);
        m.segment = (uint16_t)m.n;
        uint32_t crc = icrc_begin(&m.ip, m.bytes);
        crc = icrc_update(crc, m.bytes + BTH_BYTES, m.n - BTH_BYTES - ICRC_BYTES);
        put_le32(m.bytes + m.n - ICRC_BYTES, icrc_end(crc));
        struct msghdr h;
        header_of(&m, &h);
        if (sendmsg(m.socket->fd, &h, MSG_NOSIGNAL) >= 0)
            message_sent(u, &m);
        else
            count_error(u, errno, 1);
    }
}

/* Message m failed with error; true: it is dealt with, false: keep it for later. */
static bool message_failed(struct port_udp *u, struct udp_tx_message *m, int error)
{
    if (m->local != NULL)
        return udp_local_failed(u, m, error);
    if (error == EAGAIN)
        return false;
    bool cut = m->packets > 1 &&
               (error == EINVAL || error == EIO || error == EMSGSIZE || error == EOPNOTSUPP);
    if (!cut) {
        count_error(u, error, m->packets);
        return true;
    }
    if (++u->gso_failures >= GSO_FAILURES_OFF) {
        u->gso_failures = 0;
        u->gso_off_until_ns = u->tx_now_ns + GSO_OFF_NS;
    }
    send_singly(u, m);
    return true;
}

/* Sends messages list[0..n) of one socket in order; returns how many are dealt with. */
static unsigned send_list(struct port_udp *u, struct udp_tx_message **list, unsigned n)
{
    struct mmsghdr vector[UDP_TX_MESSAGES];
    for (unsigned i = 0; i < n; i++)
        header_of(list[i], &vector[i].msg_hdr);
    unsigned done = 0;
    if (u->config.observer != NULL)
        u->tx_observed_ns = udp_observed_ns();
    while (done < n) {
        int fd = list[0]->socket->fd;
        int r = n - done == 1 ? sendmsg(fd, &vector[done].msg_hdr, MSG_NOSIGNAL) >= 0 ? 1 : -1
                              : sendmmsg(fd, vector + done, n - done, MSG_NOSIGNAL);
        int error = errno;
        udp_count(u, UDP_udp_tx_calls, 1);
        if (r < 0 && error == EINTR)
            continue;
        for (int i = 0; i < r && done < n; i++) {
            if (list[done]->packets > 1)
                u->gso_failures = 0;
            message_sent(u, list[done++]);
        }
        if (r <= 0 && done < n) {
            if (message_failed(u, list[done], r == 0 ? EAGAIN : error))
                done++;
            else if (list[done]->local == NULL)
                break;
        }
    }
    return done;
}

void udp_tx_flush(struct port_udp *u, uint64_t now_ns)
{
    u->tx_now_ns = now_ns;
    if (u->tx_messages == 0)
        return;
    bool dealt[UDP_TX_MESSAGES] = {false};
    struct udp_tx_message *list[UDP_TX_MESSAGES];
    unsigned left = 0;
    for (unsigned i = 0; i < u->tx_messages; i++) {
        if (dealt[i])
            continue;
        unsigned n = 0;
        for (unsigned k = i; k < u->tx_messages; k++) {
            if (!dealt[k] && u->tx_message[k].socket == u->tx_message[i].socket) {
                list[n++] = &u->tx_message[k];
                dealt[k] = true;
            }
        }
        unsigned done = send_list(u, list, n);
        for (unsigned k = done; k < n; k++)
            dealt[list[k] - u->tx_message] = false;
        if (done < n) {
            udp_count(u, UDP_udp_tx_full, 1);
            break;
        }
    }
    for (unsigned i = 0; i < u->tx_messages; i++) {
        if (!dealt[i] && left++ != i)
            u->tx_message[left - 1] = u->tx_message[i];
    }
    u->tx_messages = left;
    if (left == 0)
        u->tx_used = 0;
    atomic_store_explicit(&u->tx_retry_ns, left == 0 ? 0 : now_ns + FULL_RETRY_NS,
                          memory_order_relaxed);
    if (u->config.observer != NULL)
        u->config.observer->done(u->config.observer, true);
}
