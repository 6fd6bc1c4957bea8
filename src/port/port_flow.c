/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_flow.c: sockets for single flows. A process that is not the leader gets its packets by way
 * of the leader; after some from one source, all its own, it adds a socket connected to that
 * source, which the kernel prefers from then on. Peers may share one source port among QPs of
 * several of our processes: at the first foreign packet the socket is given up for a while. Packets
 * keep their order: a new socket is not read before what the leader still held has come.
 *
 * A process that is stopped keeps its sockets, and with them what the same source sends to others.
 * So who waits for answers in vain looks for sockets in which packets stay, and connects a newer
 * one to the same source: the kernel prefers it. Such a rescued flow is not given up: it passes the
 * other packets on to their owners.
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint64_t HOLD_NS = 5000000; /* longest, for what is on its way by the leader */
static const uint64_t BACKOFF_FIRST_NS = 100000000;
static const uint64_t BACKOFF_MAX_NS = 10000000000;
static const uint64_t IDLE_NS = 30000000000;      /* its source most likely is no more */
static const uint64_t SUPERSEDED_NS = 1000000000; /* by then what was on its way has come */
/* Unread that long: its owner is stopped. Of a source that never sent to us, only while we hear
 * nothing at all: busy processes are slow, too. */
static const uint64_t STUCK_OURS_NS = 40000000;
static const uint64_t STUCK_OTHERS_NS = 250000000;
static const uint64_t LOOK_NS = 20000000;         /* least between looks */
static const uint64_t LOOK_STALE_NS = 5000000000; /* a look that long ago says nothing */
static const uint64_t SILENCE_NS = 150000000;
static const uint64_t FORGET_NS = 60000000000;
enum { OTHERS_LOOKS = 3, FLOWS_EASY = 16 };

struct udp_source *udp_flow_source(struct port_udp *u, const struct net_addr *addr, uint16_t sport)
{
    struct udp_source *s = &u->source[udp_addr_hash(addr, sport) % UDP_SOURCES];
    if (s->sport != sport || memcmp(&s->addr, addr, sizeof(*addr)) != 0) {
        /* Another source takes the place; a flow socket of the former one lives on by itself. */
        if (s->flow != NULL)
            s->flow->source = NULL;
        *s = (struct udp_source){.addr = *addr, .sport = sport};
    }
    return s;
}

/* The same, if it is known. */
static const struct udp_source *source_find(const struct port_udp *u, const struct net_addr *addr,
                                            uint16_t sport)
{
    const struct udp_source *s = &u->source[udp_addr_hash(addr, sport) % UDP_SOURCES];
    return s->sport == sport && memcmp(&s->addr, addr, sizeof(*addr)) == 0 ? s : NULL;
}

static void back_off(struct port_udp *u, struct udp_source *s)
{
    s->streak = 0;
    s->backoff_ns = s->backoff_ns == 0 ? BACKOFF_FIRST_NS : s->backoff_ns * 2;
    if (s->backoff_ns > BACKOFF_MAX_NS)
        s->backoff_ns = BACKOFF_MAX_NS;
    s->no_flow_until_ns = u->rx_now_ns + s->backoff_ns;
}

/* Connects fd to the source; true when the kernel chose the local address that the run came to. */
static bool flow_connect(int fd, const struct udp_run *run)
{
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(run->sport)}, l6;
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(run->sport)}, l4;
    socklen_t n;
    if (net_addr_is_v4(&run->src)) {
        memcpy(&a4.sin_addr, run->src.b + 12, 4);
        n = sizeof(l4);
        return connect(fd, (struct sockaddr *)&a4, sizeof(a4)) == 0 &&
               getsockname(fd, (struct sockaddr *)&l4, &n) == 0 &&
               memcmp(&l4.sin_addr, run->dst.b + 12, 4) == 0;
    }
    memcpy(&a6.sin6_addr, run->src.b, 16);
    if (net_addr_is_link_local(&run->src))
        a6.sin6_scope_id = run->ifindex;
    n = sizeof(l6);
    return connect(fd, (struct sockaddr *)&a6, sizeof(a6)) == 0 &&
           getsockname(fd, (struct sockaddr *)&l6, &n) == 0 &&
           memcmp(&l6.sin6_addr, run->dst.b, 16) == 0;
}

/* It may hold packets, if only because we were stopped: they are read when this call has done with
 * the buffers, then it is closed. */
void udp_flow_retire(struct port_udp *u, struct udp_fd *flow)
{
    if (flow->retired)
        return;
    if (flow->source != NULL)
        flow->source->flow = NULL;
    flow->source = NULL;
    flow->retired = true;
    TAILQ_REMOVE(&u->flows, flow, link);
    TAILQ_INSERT_TAIL(&u->retired, flow, link);
    if (u->hot == flow)
        u->hot = NULL;
    u->flow_count--;
    udp_count(u, UDP_flow_closed, 1);
}

static void flow_give_up(struct port_udp *u, struct udp_fd *flow)
{
    if (flow->source != NULL)
        back_off(u, flow->source);
    udp_flow_retire(u, flow);
}

void udp_flow_tidy(struct port_udp *u)
{
    struct udp_fd *oldest;
    while ((oldest = TAILQ_LAST(&u->flows, udp_fd_list)) != NULL) {
        /* The more there are, the sooner an idle one goes: a server of many that come and go, each
         * from ports of its own, does not keep them all. */
        uint64_t idle_ns = IDLE_NS / (1 + u->flow_count / FLOWS_EASY);
        if (oldest->used_ns + idle_ns >= u->rx_now_ns)
            return;
        udp_flow_retire(u, oldest);
    }
}

static bool flow_open(struct port_udp *u, struct udp_source *s, const struct udp_run *run)
{
    bool v6 = !net_addr_is_v4(&run->src);
    struct udp_fd *f = NULL;
    int fd = udp_socket_wildcard(u, v6);
    bool ok = fd >= 0 && flow_connect(fd, run);
    if (fd >= 0 && !ok)
        close(fd);
    if (!ok || udp_fd_add(u, fd, UDP_FD_FLOW, v6, &f) != 0) {
        udp_count(u, UDP_flow_failed, 1);
        back_off(u, s);
        return false;
    }
    udp_count(u, UDP_flow_opened, 1);
    f->source = s;
    f->opened_ns = f->used_ns = u->rx_now_ns;
    if (run->from != NULL) {
        f->held_until_ns = u->rx_now_ns + HOLD_NS;
        f->mark = ++u->flow_mark;
        udp_watch_mark(u, v6, f->mark);
    }
    s->flow = f;
    u->flow_count++;
    if (u->flow_count > u->flow_max) {
        struct udp_fd *oldest = TAILQ_LAST(&u->flows, udp_fd_list);
        flow_give_up(u, oldest);
    }
    udp_flow_tidy(u);
    return true;
}

void udp_flow_heard(struct port_udp *u, struct udp_source *s, const struct udp_run *run,
                    unsigned own, unsigned foreign)
{
    struct udp_fd *f = run->from;
    if (foreign != 0) {
        s->streak = 0;
        if (f->kind == UDP_FD_FLOW && !f->rescued)
            flow_give_up(u, f);
        return;
    }
    if (f->kind != UDP_FD_FLOW)
        s->heard_ns = u->rx_now_ns;
    if (f->kind != UDP_FD_CONNECTION || u->config.no_flows || u->guest.on)
        return;
    /* Ours come by way of another, although we have a socket for them: that one has a newer. */
    if (s->flow != NULL && u->rx_now_ns - s->flow->opened_ns > SUPERSEDED_NS)
        udp_flow_retire(u, s->flow);
    if (s->flow != NULL)
        return;
    s->streak += own;
    if (s->streak >= UDP_FLOW_AFTER_PACKETS && u->rx_now_ns >= s->no_flow_until_ns)
        flow_open(u, s, run);
}

bool udp_flow_open_for(struct port_udp *u, struct udp_fd *flow)
{
    if (flow->held_until_ns != 0 && u->rx_now_ns < flow->held_until_ns)
        return false;
    flow->held_until_ns = 0;
    return true;
}

void udp_flow_marked(struct port_udp *u, uint32_t mark)
{
    struct udp_fd *f;
    TAILQ_FOREACH(f, &u->flows, link)
    {
        if ((int32_t)(f->mark - mark) <= 0)
            f->held_until_ns = 0;
    }
}

void udp_flow_used(struct port_udp *u, struct udp_fd *flow)
{
    flow->used_ns = u->rx_now_ns;
    if (flow != TAILQ_FIRST(&u->flows) && !flow->retired) {
        TAILQ_REMOVE(&u->flows, flow, link);
        TAILQ_INSERT_HEAD(&u->flows, flow, link);
    }
}

/* An address as /proc/net writes it: words in the machine's order, in hexadecimal. */
static bool proc_addr(const char *text, bool v6, struct net_addr *out)
{
    *out = (struct net_addr){
        .b = {[10] = 0xff, [11] = 0xff}
    };
    unsigned words = v6 ? 4 : 1;
    if (strlen(text) != 8 * words)
        return false;
    for (unsigned i = 0; i < words; i++) {
        uint32_t word;
        if (sscanf(text + 8 * i, "%8x", &word) != 1)
            return false;
        memcpy(out->b + (v6 ? 0 : 12) + 4 * i, &word, 4);
    }
    return true;
}

/* A row of the table to s; false: not a flow of this port, or all of its packets are read. */
static bool proc_row(const struct port_udp *u, const char *row, bool v6, struct udp_stuck *s)
{
    char local[33], remote[33];
    unsigned local_port, remote_port;
    if (sscanf(row, " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*x:%x", local, &local_port, remote,
               &remote_port, &s->bytes) != 5)
        return false;
    s->sport = (uint16_t)remote_port;
    return local_port == u->udp_port && remote_port != 0 && s->bytes != 0 &&
           proc_addr(local, v6, &s->local) && proc_addr(remote, v6, &s->remote);
}

static unsigned stuck_read(const struct port_udp *u, struct udp_stuck *list)
{
    static const char *const table[] = {"/proc/net/udp", "/proc/net/udp6"};
    char row[512];
    unsigned n = 0;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        FILE *f = fopen(table[v6], "re");
        while (f != NULL && n < UDP_STUCK && fgets(row, sizeof(row), f) != NULL)
            n += proc_row(u, row, v6 != 0, &list[n]);
        if (f != NULL)
            fclose(f);
    }
    return n;
}

static bool same_flow(const struct udp_stuck *a, const struct udp_stuck *b)
{
    return a->sport == b->sport && memcmp(&a->remote, &b->remote, sizeof(a->remote)) == 0 &&
           memcmp(&a->local, &b->local, sizeof(a->local)) == 0;
}

static void flow_rescue(struct port_udp *u, const struct udp_stuck *k)
{
    struct udp_source *s = udp_flow_source(u, &k->remote, k->sport);
    struct udp_run run = {.src = k->remote, .dst = k->local, .sport = k->sport};
    if (s->flow != NULL || u->rx_now_ns < s->no_flow_until_ns || net_addr_is_link_local(&k->remote))
        return;
    if (!flow_open(u, s, &run) || s->flow == NULL)
        return;
    s->flow->rescued = true;
    udp_count(u, UDP_flow_rescued, 1);
}

/* What a look found: since when, if the last look found it, too. */
static void stuck_since(const struct port_udp *u, struct udp_stuck *now)
{
    now->looks = 1;
    now->since_ns = u->rx_now_ns;
    now->packets = atomic_load_explicit(&u->counter[UDP_udp_rx_packets], memory_order_relaxed);
    for (unsigned i = 0; i < u->stuck_count; i++) {
        const struct udp_stuck *last = &u->stuck[i];
        if (same_flow(now, last) && now->bytes >= last->bytes) {
            now->looks = last->looks + 1;
            now->since_ns = last->since_ns;
            now->packets = last->packets;
        }
    }
}

bool udp_flow_silence(const struct port_udp *u)
{
    for (unsigned i = 0; i < UDP_SOURCES; i++) {
        const struct udp_source *s = &u->source[i];
        uint64_t since = u->rx_now_ns - s->heard_ns;
        if (s->heard_ns != 0 && s->flow == NULL && since > SILENCE_NS && since < FORGET_NS)
            return true;
    }
    return false;
}

bool udp_flow_rescue(struct port_udp *u)
{
    struct udp_stuck now[UDP_STUCK];
    uint64_t since = u->rx_now_ns - u->stuck_ns;
    uint64_t lag = atomic_load_explicit(&u->lag_ns, memory_order_relaxed);
    uint64_t received = atomic_load_explicit(&u->counter[UDP_udp_rx_packets], memory_order_relaxed);
    bool again = false;
    if (u->config.no_flows || u->guest.on || since < LOOK_NS)
        return false;
    if (since > LOOK_STALE_NS)
        u->stuck_count = 0;
    unsigned n = stuck_read(u, now);
    for (unsigned i = 0; i < n; i++) {
        stuck_since(u, &now[i]);
        const struct udp_source *s = source_find(u, &now[i].remote, now[i].sport);
        bool ours = s != NULL && s->heard_ns != 0;
        again |= ours && s->flow == NULL && !net_addr_is_link_local(&s->addr);
        uint64_t least = (ours ? STUCK_OURS_NS : STUCK_OTHERS_NS) + 4 * lag;
        bool deaf = now[i].looks >= OTHERS_LOOKS && now[i].packets == received;
        if (u->rx_now_ns - now[i].since_ns >= least && (ours || deaf))
            flow_rescue(u, &now[i]);
    }
    memcpy(u->stuck, now, n * sizeof(now[0]));
    u->stuck_count = n;
    u->stuck_ns = u->rx_now_ns;
    return again;
}
