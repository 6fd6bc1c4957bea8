/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_flow.c: sockets for single flows. A process that is not the leader gets its packets by way
 * of the leader; after some from one source, all its own, it adds a socket connected to that
 * source, which the kernel prefers from then on. Peers may share one source port among QPs of
 * several of our processes: at the first foreign packet the socket is given up for a while.
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const uint64_t BACKOFF_FIRST_NS = 100000000;
static const uint64_t BACKOFF_MAX_NS = 10000000000;

static uint32_t source_hash(const struct net_addr *addr, uint16_t sport)
{
    uint64_t a, b;
    memcpy(&a, addr->b, 8);
    memcpy(&b, addr->b + 8, 8);
    uint64_t h = (a ^ b * 0x9e3779b97f4a7c15u ^ sport) * 0xd6e8feb86659fd93u;
    return (uint32_t)(h >> 40);
}

struct udp_source *udp_flow_source(struct port_udp *u, const struct net_addr *addr, uint16_t sport)
{
    struct udp_source *s = &u->source[source_hash(addr, sport) % UDP_SOURCES];
    if (s->sport != sport || memcmp(&s->addr, addr, sizeof(*addr)) != 0) {
        /* Another source takes the place; a flow socket of the former one lives on by itself. */
        if (s->flow != NULL)
            s->flow->source = NULL;
        *s = (struct udp_source){.addr = *addr, .sport = sport};
    }
    return s;
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
    if (udp_addr_v4(&run->src)) {
        memcpy(&a4.sin_addr, run->src.b + 12, 4);
        n = sizeof(l4);
        return connect(fd, (struct sockaddr *)&a4, sizeof(a4)) == 0 &&
               getsockname(fd, (struct sockaddr *)&l4, &n) == 0 &&
               memcmp(&l4.sin_addr, run->dst.b + 12, 4) == 0;
    }
    memcpy(&a6.sin6_addr, run->src.b, 16);
    if (udp_addr_link_local(&run->src))
        a6.sin6_scope_id = run->ifindex;
    n = sizeof(l6);
    return connect(fd, (struct sockaddr *)&a6, sizeof(a6)) == 0 &&
           getsockname(fd, (struct sockaddr *)&l6, &n) == 0 &&
           memcmp(&l6.sin6_addr, run->dst.b, 16) == 0;
}

static void flow_open(struct port_udp *u, struct udp_source *s, const struct udp_run *run)
{
    bool v6 = !udp_addr_v4(&run->src);
    struct udp_fd *f = NULL;
    int fd = udp_socket_wildcard(u, v6);
    bool ok = fd >= 0 && flow_connect(fd, run);
    if (fd >= 0 && !ok)
        close(fd);
    if (!ok || udp_fd_add(u, fd, UDP_FD_FLOW, v6, &f) != 0) {
        udp_count(u, UDP_flow_failed, 1);
        back_off(u, s);
        return;
    }
    udp_count(u, UDP_flow_opened, 1);
    f->source = s;
    s->flow = f;
    u->flow_count++;
    if (u->flow_count > u->flow_max) {
        struct udp_fd *oldest = TAILQ_LAST(&u->flows, udp_fd_list);
        udp_flow_give_up(u, oldest);
    }
}

void udp_flow_heard(struct port_udp *u, struct udp_source *s, const struct udp_run *run,
                    unsigned own, unsigned foreign)
{
    struct udp_fd *f = run->from;
    if (foreign != 0) {
        s->streak = 0;
        if (f->kind == UDP_FD_FLOW)
            f->give_up = true;
        return;
    }
    if (f->kind != UDP_FD_CONNECTION || s->flow != NULL || u->config.no_flows)
        return;
    s->streak += own;
    if (s->streak >= UDP_FLOW_AFTER_PACKETS && u->rx_now_ns >= s->no_flow_until_ns)
        flow_open(u, s, run);
}

void udp_flow_used(struct port_udp *u, struct udp_fd *flow)
{
    if (flow != TAILQ_FIRST(&u->flows) && !flow->dead) {
        TAILQ_REMOVE(&u->flows, flow, link);
        TAILQ_INSERT_HEAD(&u->flows, flow, link);
    }
}

void udp_flow_give_up(struct port_udp *u, struct udp_fd *flow)
{
    if (flow->source != NULL) {
        flow->source->flow = NULL;
        back_off(u, flow->source);
    }
    u->flow_count--;
    udp_count(u, UDP_flow_closed, 1);
    udp_fd_close(u, flow);
}
