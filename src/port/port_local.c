/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_local.c: connections to the owners of slots of this machine, and how much each may be given.
 * A sequenced-packet socket takes a message while what waits in it is less than its buffer, so with
 * an upper bound of what a message takes there it is known beforehand that a train will go.
 */
#define _GNU_SOURCE
#include "port/port_local.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port/port_udp_priv.h"
#include "wire/opcode.h"

static const uint64_t LOOK_NS = 1000000000;  /* what an address or a slot is may change */
static const uint64_t IDLE_NS = 30000000000; /* then a descriptor is given back */
static const uint64_t RETRY_NS = 50000;
/* A connection that takes something at this age was accepted: who refuses does so at once. */
static const uint64_t YOUNG_NS = 1000000000;
static const uint64_t REFUSED_NS = 60000000000; /* then it is tried again */
/* As long as a link pauses a sender, at most. A process that takes nothing for so long is stopped,
 * or has the wrong program; a QP that sends to others as well must go on. */
static const uint64_t STALL_NS = 1000000000;

_Static_assert((int)UDP_LOCAL_SLOTS == (int)UDP_SLOTS, "one for each");

/* What waits should fit into a cache of the machine, and be soon over. */
enum { WINDOW_BYTES = 1 << 20 };

enum { ADDRESS_WAYS = 4 };
_Static_assert(UDP_LOCAL_ADDRESSES % ADDRESS_WAYS == 0, "whole sets");

enum answer { NOT_HERE, HERE, UNKNOWN };

struct udp_local {
    struct udp_tx_socket socket; /* fd -1: it cannot be reached so, or has gone */
    uint32_t slot;
    uint64_t used_ns;
    int64_t buffer_bytes; /* of the socket */
    int64_t room_bytes;   /* at least so much may be queued */
    int64_t queued_bytes; /* not yet given to the kernel */
    int64_t outq_bytes;   /* what waited there at the last look */
    uint64_t looked_ns;   /* then it had no room; 0: never */
    uint64_t full_ns;     /* no room since, and nothing taken; 0: there is */
    bool stalled;
    uint64_t dialled_ns;
    unsigned refusals;     /* connections in a row that ended young */
    uint64_t udp_until_ns; /* it refuses us: by UDP, at least so long */
};

/* What a message of n bytes takes of a socket's buffer, at most: the kernel rounds up to powers of
 * two, above 16 KiB to pages. */
static int64_t cost(uint32_t n)
{
    int64_t small = 2 * (int64_t)n + 1024, large = (int64_t)n + (18 << 10);
    return small < large ? small : large;
}

/* Of a call that failed: short of something, or is the address just not one to be sent to? */
static enum answer failed(int error)
{
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EAGAIN: /* no port is free */
    case EINTR:
        return UNKNOWN;
    default:
        return NOT_HERE;
    }
}

/* Is the address this machine's? Then the kernel sends from it to it. */
static enum answer address_ask(const struct net_addr *a, uint32_t scope_id)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(9)}, l4;
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)}, l6;
    bool v6 = !net_addr_is_v4(a);
    struct sockaddr *to = v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
    struct sockaddr *from = v6 ? (struct sockaddr *)&l6 : (struct sockaddr *)&l4;
    socklen_t n = v6 ? sizeof(l6) : sizeof(l4);
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return failed(errno);
    memcpy(&a6.sin6_addr, a->b, 16);
    memcpy(&a4.sin_addr, a->b + 12, 4);
    a6.sin6_scope_id = net_addr_is_link_local(a) ? scope_id : 0;
    enum answer here;
    if (connect(fd, to, n) != 0 || getsockname(fd, from, &n) != 0)
        here = failed(errno);
    else if (v6)
        here = memcmp(&l6.sin6_addr, a->b, 16) == 0 ? HERE : NOT_HERE;
    else
        here = memcmp(&l4.sin_addr, a->b + 12, 4) == 0 ? HERE : NOT_HERE;
    close(fd);
    return here;
}

static struct udp_local_address *address_set(struct udp_locals *l, const struct nic_path *path)
{
    uint32_t h = udp_addr_hash(&path->remote, path->scope_id);
    return &l->address[h % UDP_LOCAL_ADDRESSES / ADDRESS_WAYS * ADDRESS_WAYS];
}

static enum answer address_here(struct port_udp *u, uint64_t now_ns, const struct nic_path *path)
{
    struct udp_local_address *set = address_set(&u->locals, path), *a = NULL, *oldest = set;
    for (unsigned i = 0; i < ADDRESS_WAYS; i++) {
        if (set[i].until_ns != 0 && set[i].scope_id == path->scope_id &&
            memcmp(&set[i].addr, &path->remote, sizeof(set[i].addr)) == 0)
            a = &set[i];
        if (set[i].until_ns < oldest->until_ns)
            oldest = &set[i];
    }
    if (a != NULL && a->until_ns > now_ns)
        return a->here ? HERE : NOT_HERE;
    enum answer here = address_ask(&path->remote, path->scope_id);
    udp_count(u, UDP_local_asked, 1);
    /* Short of descriptors, say. What was so a second ago is so still: packets that change their
     * way overtake others. */
    if (here == UNKNOWN && a != NULL)
        here = a->here ? HERE : NOT_HERE;
    if (here == UNKNOWN)
        return UNKNOWN;
    *(a != NULL ? a : oldest) = (struct udp_local_address){.addr = path->remote,
                                                           .scope_id = path->scope_id,
                                                           .here = here == HERE,
                                                           .until_ns = now_ns + LOOK_NS};
    return here;
}

static void hang_up(struct port_udp *u, struct udp_local *l)
{
    if (l->socket.fd < 0)
        return;
    close(l->socket.fd);
    l->socket.fd = -1;
    u->locals.count--;
}

static void dial(struct port_udp *u, struct udp_local *l)
{
    int buffer = 0;
    socklen_t n = sizeof(buffer);
    int fd = udp_slot_dial_sender(u, l->slot);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, &n) != 0) {
        close(fd);
        return;
    }
    u->locals.count++;
    l->socket.fd = fd;
    l->buffer_bytes = buffer < WINDOW_BYTES ? buffer : WINDOW_BYTES;
    l->room_bytes = l->buffer_bytes - l->queued_bytes;
    l->outq_bytes = 0;
    l->looked_ns = 0;
    l->full_ns = 0;
    l->stalled = false;
    l->dialled_ns = u->tx_now_ns;
}

/* Not closed at the other side? Nothing is ever to be read. */
static bool connected(const struct udp_local *l)
{
    char c;
    return recv(l->socket.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void tidy(struct port_udp *u, uint64_t now_ns)
{
    for (unsigned i = 0; i < UDP_LOCAL_SLOTS; i++) {
        struct udp_local *l = u->locals.of_slot[i];
        if (l == NULL || l->socket.fd < 0 || l->queued_bytes != 0 || now_ns - l->used_ns <= IDLE_NS)
            continue;
        if (connected(l))
            l->refusals = 0;
        hang_up(u, l);
    }
}

static struct udp_local *slot_of(struct port_udp *u, uint32_t slot)
{
    struct udp_local *l = u->locals.of_slot[slot];
    if (l == NULL) {
        l = calloc(1, sizeof(*l));
        if (l == NULL)
            return NULL;
        l->slot = slot;
        l->socket.fd = -1;
        u->locals.of_slot[slot] = l;
    }
    return l;
}

static struct udp_local *find(struct port_udp *u, uint64_t now_ns, const struct nic_path *path,
                              uint32_t qpn)
{
    if (!u->config.local || qpn <= 1 || qpn == QPN_MULTICAST)
        return NULL;
    enum answer here = address_here(u, now_ns, path);
    if (here == NOT_HERE)
        return NULL;
    struct udp_local *l = slot_of(u, qpn >> (24 - UDP_SLOT_BITS));
    if (l == NULL)
        return NULL;
    /* Whoever is sent to by UDP goes on to be: a change would let packets overtake others. */
    bool fresh = l->used_ns == 0 || now_ns - l->used_ns > LOOK_NS;
    l->used_ns = now_ns;
    if (here == UNKNOWN)
        return NULL;
    if (l->socket.fd < 0 && fresh && now_ns >= l->udp_until_ns) {
        tidy(u, now_ns);
        if (u->locals.count < u->flow_max)
            dial(u, l);
    }
    return l->socket.fd >= 0 ? l : NULL;
}

struct udp_local *udp_local_to(struct port_udp *u, const struct train *t, unsigned at, unsigned *n)
{
    const struct bth *h = &t->packet[at].h.bth;
    uint8_t service = opcode_info(h->opcode)->service;
    *n = t->packets - at;
    if (!u->config.local || (service != SERVICE_UC && service != SERVICE_UD))
        return NULL;
    /* A process has no use for what is another's. */
    for (unsigned i = 1; service == SERVICE_UD && i < *n; i++) {
        if ((t->packet[at + i].h.bth.dest_qp ^ h->dest_qp) >> (24 - UDP_SLOT_BITS) != 0)
            *n = i;
    }
    return find(u, u->tx_now_ns, t->path, h->dest_qp);
}

bool udp_local_stalled(const struct udp_local *l)
{
    return l->stalled;
}

/* Room for a train? After a look at what waits. */
static bool look(struct udp_local *l, uint64_t now_ns)
{
    int outq = 0;
    if (l->looked_ns == now_ns)
        return false;
    if (ioctl(l->socket.fd, SIOCOUTQ, &outq) != 0)
        return true;
    bool moved = outq < l->outq_bytes;
    l->outq_bytes = outq;
    l->room_bytes = l->buffer_bytes - outq - l->queued_bytes;
    if (l->room_bytes >= cost(TRAIN_MAX_BYTES) || outq + l->queued_bytes == 0) {
        l->full_ns = 0;
        l->stalled = false;
        return true;
    }
    if (moved || l->full_ns == 0) {
        l->full_ns = now_ns;
        l->stalled = false;
    }
    l->stalled = l->stalled || now_ns - l->full_ns >= STALL_NS;
    if (!l->stalled)
        l->looked_ns = now_ns;
    return l->stalled;
}

bool udp_local_room(struct nic_sink *sink, uint64_t now_ns, const struct nic_path *path,
                    uint32_t qpn)
{
    struct port_udp *u = (struct port_udp *)((char *)sink - offsetof(struct port_udp, port.sink));
    u->tx_now_ns = now_ns;
    struct udp_local *l = find(u, now_ns, path, qpn);
    if (l == NULL || l->room_bytes >= cost(TRAIN_MAX_BYTES) || look(l, now_ns))
        return true;
    udp_count(u, UDP_local_waits, 1);
    /* One that is due now is over by the end of this turn. */
    if (atomic_load_explicit(&u->locals.retry_ns, memory_order_relaxed) <= now_ns)
        atomic_store_explicit(&u->locals.retry_ns, now_ns + RETRY_NS, memory_order_relaxed);
    return false;
}

void udp_local_turn(struct port_udp *u, uint64_t now_ns)
{
    if (atomic_load_explicit(&u->locals.retry_ns, memory_order_relaxed) <= now_ns)
        atomic_store_explicit(&u->locals.retry_ns, 0, memory_order_relaxed);
}

struct udp_tx_socket *udp_local_socket(struct udp_local *l, const struct nic_path *path)
{
    l->socket.local = path->local;
    l->socket.sport = (uint16_t)(UDP_SPORT_FIRST | (path->udp_sport & 0x3fff));
    return &l->socket;
}

static void addr_of(struct net_addr *out, bool v6, const uint8_t *bytes)
{
    static const struct net_addr mapped = {
        .b = {[10] = 0xff, [11] = 0xff}
    };
    *out = mapped;
    memcpy(out->b + (v6 ? 0 : 12), bytes, v6 ? 16 : 4);
}

void udp_local_queued(struct port_udp *u, struct udp_tx_message *m)
{
    struct udp_run run = {
        .sport = m->ip.udp_sport,
        .tos = m->tos,
        .ttl = u->config.observer != NULL ? m->ttl : 0,
        .segment = m->segment,
        .ifindex = m->ip.v6 ? m->to.v6.sin6_scope_id : 0,
        .direct = true,
    };
    addr_of(&run.src, m->ip.v6, m->ip.src);
    addr_of(&run.dst, m->ip.v6, m->ip.dst);
    m->control_bytes = 0;
    m->iov[0] = (struct iovec){m->control, udp_slot_head(&run, m->control)};
    m->local->room_bytes -= cost(m->n);
    m->local->queued_bytes += cost(m->n);
}

void udp_local_sent(struct port_udp *u, const struct udp_tx_message *m)
{
    struct udp_local *l = m->local;
    l->queued_bytes -= cost(m->n);
    if (l->refusals != 0 && u->tx_now_ns - l->dialled_ns > YOUNG_NS)
        l->refusals = 0;
    udp_count(u, UDP_local_tx_packets, m->packets);
}

bool udp_local_failed(struct port_udp *u, struct udp_tx_message *m, int error)
{
    struct udp_local *l = m->local;
    bool gone = error == EPIPE || error == ECONNRESET || error == ENOTCONN;
    if (gone) {
        hang_up(u, l);
        /* The slot may have another owner by now. Or its owner closes what we open: it has too many
         * connections, or does not know our user any more. */
        if (l->refusals++ == 0)
            dial(u, l);
        else
            l->udp_until_ns = u->tx_now_ns + REFUSED_NS;
        if (l->socket.fd >= 0)
            return false;
    }
    l->queued_bytes -= cost(m->n);
    udp_count(u, UDP_local_drop_error, m->packets);
    return true;
}

void udp_local_close(struct port_udp *u)
{
    for (unsigned i = 0; i < UDP_LOCAL_SLOTS; i++) {
        if (u->locals.of_slot[i] != NULL)
            hang_up(u, u->locals.of_slot[i]);
    }
}

void udp_local_fini(struct port_udp *u)
{
    udp_local_close(u);
    for (unsigned i = 0; i < UDP_LOCAL_SLOTS; i++) {
        free(u->locals.of_slot[i]);
        u->locals.of_slot[i] = NULL;
    }
}
