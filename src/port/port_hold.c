/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_hold.c: a service whose listener has just gone, or is just coming. Programs end one listener
 * and begin the next, and a peer that asks between the two would be told that there is no such
 * service, for good: rdma_cm of the kernel does not ask again. So such a request waits here until
 * somebody listens, or HOLD_NS are over; then it is refused as any other.
 *
 * Only for services that were listened to lately (LATELY_NS), a few at a time: who asks for what
 * never was is told at once. All of it is the receiving side's.
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    HOLD_MAX = 32,
    LOOK_NS = 10 * 1000 * 1000,
    HOLD_NS = 500 * 1000 * 1000,
};
_Static_assert(HOLD_MAX *UDP_CM_PACKET_BYTES <= UDP_RX_BUFFER_BYTES, "no room for all");
static const uint64_t LATELY_NS = 5000000000u;

struct udp_held_request {
    struct udp_run run; /* bytes: not used */
    uint8_t packet[UDP_CM_PACKET_BYTES];
    uint64_t service_id;
    uint16_t index;
    uint64_t until_ns;
};

static struct udp_hold_known *known_place(struct port_udp *u, uint64_t service_id)
{
    return &u->hold.known[service_id * 0x9e3779b97f4a7c15u >> 32 & (HOLD_KNOWN - 1)];
}

void udp_hold_know(struct port_udp *u, uint64_t service_id, uint64_t seen_ns)
{
    *known_place(u, service_id) = (struct udp_hold_known){service_id, seen_ns};
}

static bool expected(struct port_udp *u, uint64_t service_id, uint64_t rests_ns)
{
    const struct udp_hold_known *k = known_place(u, service_id);
    uint64_t seen_ns = k->service_id == service_id ? k->seen_ns : 0;
    if (rests_ns > seen_ns)
        seen_ns = rests_ns;
    return seen_ns != 0 && u->rx_now_ns < seen_ns + LATELY_NS;
}

/* Room, and something that wakes us. */
static bool ready(struct port_udp *u)
{
    struct udp_hold *h = &u->hold;
    const struct itimerspec each = {.it_value = {.tv_nsec = LOOK_NS},
                                    .it_interval = {.tv_nsec = LOOK_NS}};
    if (h->held == NULL)
        h->held = calloc(HOLD_MAX, sizeof(*h->held));
    if (h->held == NULL || h->timer != NULL)
        return h->held != NULL;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0 || udp_fd_add(u, fd, UDP_FD_HOLD, false, &h->timer) != 0)
        return false;
    timerfd_settime(fd, 0, &each, NULL);
    return true;
}

bool udp_hold(struct port_udp *u, uint64_t service_id, uint64_t rests_ns, const struct udp_run *run,
              const uint8_t *packet, uint16_t index)
{
    struct udp_hold *h = &u->hold;
    if (!expected(u, service_id, rests_ns) || h->count == HOLD_MAX || !ready(u))
        return false;
    struct udp_held_request *held = &h->held[h->count++];
    held->run = *run;
    held->service_id = service_id;
    held->index = index;
    held->until_ns = u->rx_now_ns + HOLD_NS;
    memcpy(held->packet, packet, sizeof(held->packet));
    udp_count(u, UDP_service_held, 1);
    return true;
}

static struct udp_run run_of(const struct udp_held_request *held, uint8_t *bytes,
                             struct udp_fd *timer)
{
    struct udp_run run = held->run;
    memcpy(bytes, held->packet, UDP_CM_PACKET_BYTES);
    run.bytes = bytes;
    run.n = run.segment = UDP_CM_PACKET_BYTES;
    run.first_id = held->index;
    run.from = timer;
    return run;
}

void udp_hold_timer(struct port_udp *u, struct udp_fd *timer)
{
    struct udp_hold *h = &u->hold;
    uint64_t count;
    if (read(timer->fd, &count, sizeof(count)) < 0)
        return;
    unsigned kept = 0, all = h->count;
    for (unsigned i = 0; i < all; i++) {
        struct udp_held_request *held = &h->held[i];
        if (udp_service_waits(u, held->service_id, &held->run.dst) &&
            u->rx_now_ns < held->until_ns) {
            h->held[kept++] = *held;
            continue;
        }
        /* The receiver looks at it after we have returned. */
        struct udp_run run = run_of(held, u->rx_buffer + (size_t)i * UDP_CM_PACKET_BYTES, timer);
        udp_rx_run(u, &run);
    }
    h->count = kept;
    if (kept != 0)
        return;
    udp_fd_close(u, timer);
    h->timer = NULL;
}

void udp_hold_retire(struct port_udp *u)
{
    struct udp_hold *h = &u->hold;
    for (; h->count > 0; h->count--) {
        const struct udp_held_request *held = &h->held[h->count - 1];
        uint8_t packet[UDP_CM_PACKET_BYTES];
        struct udp_run run = run_of(held, packet, h->timer);
        udp_service_foreign(u, &run, packet, run.n, held->index);
    }
}

void udp_hold_fini(struct port_udp *u)
{
    free(u->hold.held);
    u->hold.held = NULL;
    u->hold.count = 0;
}
