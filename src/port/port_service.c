/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_service.c: connection management among processes that share an address. All of them are QP 1
 * to their peers. Each MAD says for whom it is: a REQ or SIDR_REQ by its service id and the address
 * that it came to; all others by the communication id of ours that they carry, which begins with
 * the slot of its process.
 *
 * A listener claims the abstract unix socket `verbena/svc/<service id>/<address>`, or `any`, `any4`
 * or `any6` for an address: at once or not at all, in the network namespace, gone with the process.
 * It listens there like on its slot, and takes the same messages; a connection brings one. As with
 * slots, anybody may bind such a name, so only listeners of our own user, or of one that the user
 * allowed, are given anything.
 *
 * All of it is the receiving side's.
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/cm_msg.h"
#include "wire/rtt.h"

enum {
    /* Offsets in a packet: BTH, DETH, MAD header, message. */
    AT_MAD = BTH_BYTES + DETH_BYTES,
    AT_CLASS = AT_MAD + 1,
    AT_CLASS_VERSION = AT_MAD + 2,
    AT_METHOD = AT_MAD + 3,
    AT_ATTRIBUTE = AT_MAD + 16,
    AT_FIRST_ID = AT_MAD + MAD_HEADER_BYTES,
    AT_SECOND_ID = AT_FIRST_ID + 4,
    AT_SERVICE_ID = AT_FIRST_ID + 8,
    LOOKS = 4, /* at listeners in the way, which may give up */
    LOOK_MS = 2,
};

enum udp_service_bind { BIND_ADDR, BIND_ANY_V4, BIND_ANY_V6, BIND_ANY };

enum { LOOKUPS = 3 };

void udp_service_parse(const uint8_t *packet, uint32_t n, struct udp_route *out)
{
    *out = (struct udp_route){.kind = UDP_ROUTE_OWN};
    if (n == UDP_CM_PACKET_BYTES && packet[0] == opcode_make(SERVICE_UD, OP_SEND_ONLY) &&
        rtt_check(packet + AT_MAD, MAD_BYTES)) {
        out->kind = UDP_ROUTE_SLOT;
        out->slot = get_be32(packet + AT_MAD + RTT_TO_QPN_AT) >> (24 - UDP_SLOT_BITS);
        return;
    }
    if (n != UDP_CM_PACKET_BYTES || packet[0] != opcode_make(SERVICE_UD, OP_SEND_ONLY) ||
        packet[AT_MAD] != MAD_BASE_VERSION || packet[AT_CLASS] != MAD_CLASS_CM ||
        packet[AT_CLASS_VERSION] != MAD_CLASS_CM_VERSION || packet[AT_METHOD] != MAD_METHOD_SEND)
        return;
    uint32_t first = get_be32(packet + AT_FIRST_ID), second = get_be32(packet + AT_SECOND_ID);
    switch (get_be16(packet + AT_ATTRIBUTE)) {
    case CM_REQ:
    case CM_SIDR_REQ:
        out->kind = UDP_ROUTE_SERVICE;
        out->service_id = get_be64(packet + AT_SERVICE_ID);
        out->sender_id = first;
        break;
    case CM_SIDR_REP:
        out->kind = UDP_ROUTE_SLOT;
        out->slot = port_udp_id_slot(first);
        break;
    case CM_REJ:
        /* IBA 12.6.7: who rejects before it was told our id has none to name. */
        out->kind = second == 0 ? UDP_ROUTE_RECENT : UDP_ROUTE_SLOT;
        out->sender_id = first;
        out->slot = port_udp_id_slot(second);
        break;
    case CM_MRA:
    case CM_REP:
    case CM_RTU:
    case CM_DREQ:
    case CM_DREP:
    case CM_LAP:
    case CM_APR:
        out->kind = UDP_ROUTE_SLOT;
        out->slot = port_udp_id_slot(second);
        break;
    }
}

static socklen_t service_name(uint64_t id, enum udp_service_bind bind, const struct net_addr *addr,
                              struct sockaddr_un *a)
{
    static const char *const any[] = {
        [BIND_ANY_V4] = "any4", [BIND_ANY_V6] = "any6", [BIND_ANY] = "any"};
    char text[INET6_ADDRSTRLEN];
    if (bind != BIND_ADDR)
        snprintf(text, sizeof(text), "%s", any[bind]);
    else if (net_addr_is_v4(addr))
        inet_ntop(AF_INET, addr->b + 12, text, sizeof(text));
    else
        inet_ntop(AF_INET6, addr->b, text, sizeof(text));
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n =
        snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena/svc/%" PRIx64 "/%s", id, text);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* A connection to who holds a name; -ECONNREFUSED: nobody; -EPERM: another user. */
static int service_dial(struct port_udp *u, uint64_t id, enum udp_service_bind bind,
                        const struct net_addr *addr)
{
    struct sockaddr_un a;
    socklen_t n = service_name(id, bind, addr, &a);
    int fd = udp_name_dial(u, &a, n);
    if (fd == -EPERM)
        udp_count(u, UDP_service_squatted, 1);
    return fd;
}

static const struct udp_service *service_own(const struct port_udp *u, uint64_t id,
                                             enum udp_service_bind bind,
                                             const struct net_addr *addr)
{
    const struct udp_service *s;
    TAILQ_FOREACH(s, &u->services.list, link)
    {
        if (s->id == id && s->bind == bind &&
            (bind != BIND_ADDR || memcmp(&s->addr, addr, sizeof(*addr)) == 0))
            return s;
    }
    return NULL;
}

/* Routing. */

/* What is looked up, the narrowest first, for a message to an address. */
static enum udp_service_bind lookup(unsigned i, const struct net_addr *dst)
{
    const enum udp_service_bind look[LOOKUPS] = {
        BIND_ADDR, net_addr_is_v4(dst) ? BIND_ANY_V4 : BIND_ANY_V6, BIND_ANY};
    return look[i];
}

static const struct udp_service *own_for(const struct port_udp *u, uint64_t id,
                                         const struct net_addr *dst)
{
    const struct udp_service *s = NULL;
    for (unsigned i = 0; i < LOOKUPS && s == NULL; i++)
        s = service_own(u, id, lookup(i, dst), dst);
    return s;
}

/* To the process that listens. false: it is this one, or nobody does: our CM says so. */
static bool to_listener(struct port_udp *u, uint64_t id, const struct udp_run *run, uint8_t *packet,
                        uint32_t n, uint16_t index)
{
    bool full = false;
    for (unsigned i = 0; i < LOOKUPS; i++) {
        enum udp_service_bind look = lookup(i, &run->dst);
        if (service_own(u, id, look, &run->dst) != NULL)
            return false;
        int fd = service_dial(u, id, look, &run->dst);
        /* A queue that is full says nothing of whose it is: another's must not stand before ours.
         */
        full = full || fd == -EAGAIN;
        if (fd == -ECONNREFUSED || fd == -EPERM || fd == -EAGAIN)
            continue;
        int err = fd < 0 ? fd : udp_slot_pass(fd, run, packet, n, index);
        if (fd >= 0)
            close(fd); /* what was sent is still taken */
        udp_count(u, err == 0 ? UDP_service_forwarded : UDP_service_drop_full, 1);
        return true;
    }
    if (full)
        udp_count(u, UDP_service_drop_full, 1);
    return full;
}

static struct udp_service_recent *recent_place(struct port_udp *u, const struct net_addr *src,
                                               uint32_t sender_id)
{
    return &u->services.recent[udp_addr_hash(src, sender_id) % SERVICE_RECENT];
}

/* A REJ that names no id of ours goes where its REQ went. */
static bool to_recent(struct port_udp *u, uint32_t sender_id, const struct udp_run *run,
                      uint8_t *packet, uint32_t n, uint16_t index)
{
    const struct udp_service_recent *r = recent_place(u, &run->src, sender_id);
    if (r->sender_id != sender_id || memcmp(&r->src, &run->src, sizeof(r->src)) != 0 ||
        memcmp(&r->dst, &run->dst, sizeof(r->dst)) != 0)
        return false;
    if (to_listener(u, r->service_id, run, packet, n, index))
        return true;
    if (own_for(u, r->service_id, &run->dst) == NULL)
        udp_count(u, UDP_service_unknown, 1);
    return false;
}

static bool to_slot(struct port_udp *u, uint32_t slot, const struct udp_run *run, uint8_t *packet,
                    uint32_t n, uint16_t index)
{
    if (u->slot_mine[slot])
        return false;
    int err = udp_slot_send(u, slot, run, packet, n, index);
    if (err == -ECONNREFUSED) {
        /* Its process has gone: our CM tells the peer that it knows of no such connection. */
        udp_count(u, UDP_service_unknown, 1);
        return false;
    }
    if (err != 0)
        udp_slot_lost(u, err, 1);
    return true;
}

bool udp_service_waits(struct port_udp *u, uint64_t id, const struct net_addr *dst)
{
    for (unsigned i = 0; i < LOOKUPS; i++) {
        enum udp_service_bind look = lookup(i, dst);
        const struct udp_service *s = service_own(u, id, look, dst);
        if (s != NULL)
            return atomic_load(&s->rests_ns) != 0;
        int fd = service_dial(u, id, look, dst);
        if (fd >= 0)
            close(fd);
        if (fd >= 0 || (fd != -ECONNREFUSED && fd != -EPERM))
            return false;
    }
    return true;
}

/* To who listens; false: our own CM shall have it. */
static bool request_foreign(struct port_udp *u, const struct udp_route *r,
                            const struct udp_run *run, uint8_t *packet, uint32_t n, uint16_t index)
{
    bool first_hand = run->from->kind != UDP_FD_CONNECTION;
    if (first_hand && to_listener(u, r->service_id, run, packet, n, index)) {
        udp_hold_know(u, r->service_id, u->rx_now_ns);
        *recent_place(u, &run->src, r->sender_id) =
            (struct udp_service_recent){run->src, run->dst, r->sender_id, r->service_id};
        return true;
    }
    const struct udp_service *own = own_for(u, r->service_id, &run->dst);
    uint64_t rests_ns = own != NULL ? atomic_load(&own->rests_ns) : 0;
    bool may_wait = run->from->kind != UDP_FD_HOLD && (own == NULL || rests_ns != 0);
    if (may_wait && udp_hold(u, r->service_id, rests_ns, run, packet, index))
        return true;
    if (own == NULL && first_hand)
        udp_count(u, UDP_service_unknown, 1);
    return false;
}

bool udp_service_foreign(struct port_udp *u, const struct udp_run *run, uint8_t *packet, uint32_t n,
                         uint16_t index)
{
    struct udp_route r;
    udp_service_parse(packet, n, &r);
    if (r.kind == UDP_ROUTE_SERVICE)
        return request_foreign(u, &r, run, packet, n, index);
    /* What was passed on once is never passed on again. */
    if (run->from->kind == UDP_FD_CONNECTION)
        return false;
    switch (r.kind) {
    case UDP_ROUTE_RECENT:
        return to_recent(u, r.sender_id, run, packet, n, index);
    case UDP_ROUTE_SLOT:
        return to_slot(u, r.slot, run, packet, n, index);
    case UDP_ROUTE_SERVICE:
    case UDP_ROUTE_OWN:
        break;
    }
    return false;
}

bool udp_service_ours(const struct port_udp *u, const uint8_t *packet, uint32_t n)
{
    struct udp_route r;
    udp_service_parse(packet, n, &r);
    return r.kind == UDP_ROUTE_SERVICE || r.kind == UDP_ROUTE_RECENT ||
           (r.kind == UDP_ROUTE_SLOT && u->slot_mine[r.slot]);
}

/* Claiming. */

static enum udp_service_bind bind_of(const struct net_addr *addr)
{
    static const struct net_addr any4 =
                                     {
                                         {[10] = 0xff, [11] = 0xff}
    },
                                 any6;
    if (addr == NULL)
        return BIND_ANY;
    if (memcmp(addr, &any4, sizeof(any4)) == 0)
        return BIND_ANY_V4;
    return memcmp(addr, &any6, sizeof(any6)) == 0 ? BIND_ANY_V6 : BIND_ADDR;
}

/* Does somebody, who counts, hold this name? 1, 0, or -errno. */
static int held(struct port_udp *u, uint64_t id, enum udp_service_bind bind,
                const struct net_addr *addr)
{
    if (service_own(u, id, bind, addr) != NULL)
        return 1;
    int fd = service_dial(u, id, bind, addr);
    if (fd >= 0)
        close(fd);
    /* EAGAIN: its queue is full. Whoever does that on purpose must not be in the way. */
    if (fd == -ECONNREFUSED || fd == -EPERM || fd == -EAGAIN)
        return 0;
    return fd >= 0 ? 1 : fd;
}

/* A name that serves what `bind` would serve, too. */
static int held_wider(struct port_udp *u, uint64_t id, enum udp_service_bind bind, bool v4)
{
    int r = bind == BIND_ANY ? 0 : held(u, id, BIND_ANY, NULL);
    if (r == 0 && bind == BIND_ADDR)
        r = held(u, id, v4 ? BIND_ANY_V4 : BIND_ANY_V6, NULL);
    return r;
}

/* A name that serves a part of it: of one family, or one of this machine's addresses. */
static int held_narrower(struct port_udp *u, uint64_t id, enum udp_service_bind bind)
{
    struct ifaddrs *all = NULL;
    int r = 0;
    if (bind == BIND_ADDR)
        return 0;
    for (unsigned v6 = 0; v6 < 2 && r == 0 && bind == BIND_ANY; v6++)
        r = held(u, id, v6 ? BIND_ANY_V6 : BIND_ANY_V4, NULL);
    if (r != 0 || getifaddrs(&all) != 0)
        return r != 0 ? r : -errno;
    for (const struct ifaddrs *i = all; i != NULL && r == 0; i = i->ifa_next) {
        int family = i->ifa_addr == NULL ? AF_UNSPEC : i->ifa_addr->sa_family;
        struct net_addr a = {
            {[10] = 0xff, [11] = 0xff}
        };
        if (family == AF_INET && bind != BIND_ANY_V6)
            memcpy(a.b + 12, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, 4);
        else if (family == AF_INET6 && bind != BIND_ANY_V4)
            memcpy(a.b, &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr, 16);
        else
            continue;
        r = held(u, id, BIND_ADDR, &a);
    }
    freeifaddrs(all);
    return r;
}

/*
 * Of two that claim at once, one for an address and one for any, each sees the other: first both
 * listen, then both look. The wider one waits a moment, for the other to give up.
 */
static int look_around(struct port_udp *u, const struct udp_service *s)
{
    int r = held_wider(u, s->id, s->bind, net_addr_is_v4(&s->addr));
    for (unsigned i = 0; i < LOOKS && r == 0; i++) {
        r = held_narrower(u, s->id, s->bind);
        if (r <= 0 || i + 1 == LOOKS)
            break;
        poll(NULL, 0, LOOK_MS);
        r = 0;
    }
    return r > 0 ? -EADDRINUSE : r;
}

/* The name itself; -EADDRINUSE. */
static int name_bind(struct port_udp *u, const struct udp_service *s)
{
    struct sockaddr_un a;
    socklen_t n = service_name(s->id, s->bind, &s->addr, &a);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, SERVICE_BACKLOG) == 0)
        return fd;
    int err = -errno;
    close(fd);
    if (err == -EADDRINUSE)
        held(u, s->id, s->bind, &s->addr); /* counts squatters */
    return err;
}

int port_udp_service_claim(struct port *p, uint64_t service_id, const struct net_addr *addr,
                           struct udp_service **out)
{
    struct port_udp *u = udp_of(p);
    struct udp_service *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return -ENOMEM;
    s->id = service_id;
    s->bind = bind_of(addr);
    if (addr != NULL)
        s->addr = *addr;
    int fd = name_bind(u, s);
    int err = fd < 0 ? fd : udp_fd_add(u, fd, UDP_FD_LISTENER, false, &s->fd);
    if (err == 0) {
        err = look_around(u, s);
        if (err != 0)
            udp_fd_close(u, s->fd);
    }
    if (err != 0) {
        free(s);
        return err;
    }
    TAILQ_INSERT_TAIL(&u->services.list, s, link);
    *out = s;
    return 0;
}

int port_udp_service_claim_free(struct port *p, uint64_t base, uint32_t first, uint32_t last,
                                const struct net_addr *addr, uint64_t *service_id,
                                struct udp_service **out)
{
    struct port_udp *u = udp_of(p);
    uint32_t n = last - first + 1;
    uint32_t start = rng_below(&u->rng, n);
    for (uint32_t i = 0; i < n; i++) {
        *service_id = base + first + (start + i) % n;
        int err = port_udp_service_claim(p, *service_id, addr, out);
        if (err != -EADDRINUSE)
            return err;
    }
    return -EADDRINUSE;
}

void port_udp_service_release(struct port *p, struct udp_service *s)
{
    struct port_udp *u = udp_of(p);
    uint64_t rests_ns = atomic_load(&s->rests_ns);
    if (rests_ns != 0)
        udp_hold_know(u, s->id, rests_ns);
    TAILQ_REMOVE(&u->services.list, s, link);
    udp_fd_close(u, s->fd);
    free(s);
}

void port_udp_service_rest(struct udp_service *s, uint64_t since_ns)
{
    atomic_store(&s->rests_ns, since_ns);
}

void udp_service_fini(struct port_udp *u)
{
    struct udp_service *s;
    while ((s = TAILQ_FIRST(&u->services.list)) != NULL) {
        TAILQ_REMOVE(&u->services.list, s, link);
        free(s);
    }
}

char *port_udp_service_holder(uint64_t service_id, const struct net_addr *addr, char *out,
                              size_t cap)
{
    struct sockaddr_un a;
    socklen_t n = service_name(service_id, bind_of(addr), addr, &a);
    struct ucred cred;
    socklen_t size = sizeof(cred);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    out[0] = '\0';
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, n) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0) {
        const struct passwd *pw = getpwuid(cred.uid);
        snprintf(out, cap, "user %s (uid %u), process %d", pw != NULL ? pw->pw_name : "?", cred.uid,
                 cred.pid);
    }
    if (fd >= 0)
        close(fd);
    return out;
}
