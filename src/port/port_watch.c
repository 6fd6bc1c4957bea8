/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_watch.c: does the process that gets the unknown flows still run? The kernel gives all flows
 * that have no socket to one member of the port's group, the leader, and goes on doing so while
 * that process is stopped. So who expects packets asks now and then: it sends a datagram to its own
 * slot through the port, from a source that nobody knows. A leader that lives passes it on like any
 * packet. When nothing comes back twice, the asker looks for a member that passes packets on (its
 * datagrams name a place, and the group's program puts them there) and makes its place the
 * leader's.
 *
 * Nothing is shared but the port itself: no memory, no files, no process ids. The leader tells with
 * each answer how many ask, and they take turns: the machine has about ten questions a second,
 * however many processes there are, and none when no QP is connected.
 *
 * udp_watch_turn runs on the sending side, udp_watch_probe on the receiving side; between them are
 * atomics only.
 */
#define _GNU_SOURCE
#include "port/port_udp_priv.h"

#include <errno.h>
#include <linux/filter.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"

enum {
    PROBE_LEADER = 0xfe, /* BTH opcodes that the specification leaves to manufacturers */
    PROBE_PLACE = 0xff,
    PROBE_QPN = 0x2000, /* in the asker's slot; neither 0, 1 nor 0xffffff */
    ASKS = 2,           /* in vain, then the leader counts as stalled */
    SCAN_FIRST = 8,
    SCAN_BATCH = 64,
    SCAN_PLACES = UDP_SLOTS + SCAN_BATCH, /* members, and sockets that are about to be connected */
    MOVES_MAX = 3,                        /* in a row, then a rest */
    REFUSALS_MAX = 10,                    /* then it is not a living process that keeps the name */
    QUIET_ASKS = 20, /* so many without any packet of ours: we ask less often */
    QUIET_FACTOR = 4,
};
static const uint64_t ASK_NS = 100000000;
static const uint64_t ASK_MAX_NS = 5000000000;
static const uint64_t ANSWER_NS = 40000000;
static const uint64_t LATE_NS = 10000000; /* a turn that much late proves nothing about others */
static const uint64_t LAG_MAX_NS = 500000000;
static const uint64_t SCAN_NS = 5000000;
static const uint64_t REST_NS = 1000000000;
static const uint64_t MEMBER_NS = 2 * ASK_MAX_NS; /* heard that lately: still a member */
static const uint32_t NOWHERE = UINT32_MAX;

/* A probe's bytes:  0 kind   1 not 0: a mark   2 place   4 destination QPN (as in a BTH)   8
 * members   12 sequence number   16 nonce. */
static void probe_build(const struct port_udp *u, uint8_t *b, uint8_t kind, uint32_t place,
                        uint32_t sequence)
{
    memset(b, 0, UDP_PROBE_BYTES);
    b[0] = kind;
    put_be16(b + 2, (uint16_t)place);
    put_be32(b + 4, u->slot << (24 - UDP_SLOT_BITS) | PROBE_QPN);
    put_be32(b + 12, sequence);
    put_be64(b + 16, u->watch_nonce);
}

int udp_watch_program(int fd, uint32_t leader)
{
    struct sock_filter code[] = {
        {BPF_LD | BPF_B | BPF_ABS,  0, 0, 0          },
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 2, PROBE_PLACE},
        {BPF_LD | BPF_H | BPF_ABS,  0, 0, 2          },
        {BPF_RET | BPF_A,           0, 0, 0          },
        {BPF_RET | BPF_K,           0, 0, leader     },
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    int r = setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
    return r == 0 ? 0 : -errno;
}

void udp_watch_init(struct port_udp *u)
{
    u->watch_nonce = rng_next(&u->rng);
    for (unsigned i = 0; i < 2; i++) {
        struct udp_watch *w = &u->watch[i];
        atomic_init(&w->fd, -1);
        w->claim_fd = -1;
        w->jitter = (uint32_t)rng_next(&u->rng);
        atomic_init(&w->due_ns, UINT64_MAX);
        atomic_init(&w->place, NOWHERE);
        atomic_init(&w->members, 1);
    }
}

void udp_watch_expect(struct port_udp *u, bool v6, int qps)
{
    struct udp_watch *w = &u->watch[v6];
    /* The first one wants the next turn, which comes with the next flush. */
    if (atomic_fetch_add(&w->wanted, (uint32_t)qps) == 0)
        atomic_store(&w->due_ns, 0);
}

void udp_watch_member(struct port_udp *u, bool v6, int fd)
{
    atomic_store(&u->watch[v6].fd, fd);
    if (atomic_load(&u->watch[v6].wanted) != 0)
        atomic_store(&u->watch[v6].due_ns, 0);
}

void udp_watch_hosted(struct port_udp *u, uint64_t until_ns)
{
    for (unsigned i = 0; i < 2; i++) {
        struct udp_watch *w = &u->watch[i];
        atomic_store(&w->hosted_until_ns, until_ns);
        /* Not at rest because somebody asked: then its turn comes anyhow. */
        uint64_t never = UINT64_MAX;
        if (atomic_load(&w->fd) >= 0)
            atomic_compare_exchange_strong(&w->due_ns, &never, 0);
    }
}

/* Does anybody expect packets: QPs of ours, or a guest? */
static bool wanted(const struct udp_watch *w, uint64_t now_ns)
{
    return atomic_load(&w->wanted) != 0 || atomic_load(&w->hosted_until_ns) > now_ns;
}

/* A datagram socket from whose port nobody has heard; or -1. */
static int probe_socket(bool v6)
{
    return socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool probe_send(const struct port_udp *u, int fd, bool v6, const uint8_t *b)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET,
                             .sin_port = htons(u->udp_port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(u->udp_port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return sendto(fd, b, UDP_PROBE_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT,
                  v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4,
                  v6 ? sizeof(a6) : sizeof(a4)) == UDP_PROBE_BYTES;
}

void udp_watch_mark(struct port_udp *u, bool v6, uint32_t mark)
{
    uint8_t b[UDP_PROBE_BYTES];
    int fd = probe_socket(v6);
    probe_build(u, b, PROBE_LEADER, 0, mark);
    b[1] = 1;
    if (fd < 0)
        return;
    probe_send(u, fd, v6, b);
    close(fd);
}

/* How long until the next question, when this one is answered. */
static uint64_t ask_interval_ns(struct port_udp *u, struct udp_watch *w)
{
    uint64_t packets = atomic_load_explicit(&u->counter[UDP_udp_rx_packets], memory_order_relaxed) +
                       atomic_load_explicit(&u->counter[UDP_udp_tx_packets], memory_order_relaxed);
    w->quiet = packets == w->packets ? w->quiet + 1 : 0;
    w->packets = packets;
    uint64_t ns = ASK_NS * atomic_load_explicit(&w->members, memory_order_relaxed);
    if (w->quiet > QUIET_ASKS)
        ns *= QUIET_FACTOR;
    if (ns > ASK_MAX_NS)
        ns = ASK_MAX_NS;
    /* Members that started together do not ask together: 3/4 to 5/4. */
    w->jitter = w->jitter * 1664525 + 1013904223;
    return ns / 4 * 3 + ns / 2 * (w->jitter >> 24) / 256;
}

/* Where we get our turns late, the leader may, too. */
static uint64_t answer_ns(struct port_udp *u)
{
    return ANSWER_NS + 4 * atomic_load_explicit(&u->lag_ns, memory_order_relaxed);
}

static void lag_update(struct port_udp *u, uint64_t late_ns)
{
    uint64_t lag = atomic_load_explicit(&u->lag_ns, memory_order_relaxed);
    lag -= lag / 16;
    if (late_ns > lag)
        lag = late_ns < LAG_MAX_NS ? late_ns : LAG_MAX_NS;
    atomic_store_explicit(&u->lag_ns, lag, memory_order_relaxed);
}

/* false: no descriptor, or no way to ourselves (lo is down). */
static bool ask(struct port_udp *u, struct udp_watch *w, bool v6, uint64_t now_ns)
{
    uint8_t b[UDP_PROBE_BYTES];
    int fd = probe_socket(v6);
    probe_build(u, b, PROBE_LEADER, 0, ++w->sequence);
    atomic_store(&w->asked_ns, now_ns);
    atomic_store(&w->answer_due_ns, now_ns + answer_ns(u));
    atomic_store(&w->due_ns, atomic_load(&w->answer_due_ns));
    bool sent = fd >= 0 && probe_send(u, fd, v6, b);
    if (fd >= 0)
        close(fd);
    if (sent)
        udp_count(u, UDP_leader_asked, 1);
    return sent;
}

static void rest(struct udp_watch *w, uint64_t ns, uint64_t now_ns)
{
    w->state = UDP_WATCH_REST;
    atomic_store(&w->due_ns, now_ns + ns);
}

static void ask_first(struct port_udp *u, struct udp_watch *w, bool v6, uint64_t now_ns)
{
    w->state = UDP_WATCH_ASKED;
    w->asks = 1;
    w->first_sequence = w->sequence + 1;
    atomic_store(&w->interval_ns, ask_interval_ns(u, w));
    if (!ask(u, w, v6, now_ns))
        rest(w, REST_NS, now_ns);
}

/*
 * The next places: who answers from there? Few at first, because each question wakes a process. A
 * place that does not exist is filled by chance; but either our own place is among those asked, and
 * the lowest that answers is not above it, or all are below it and so exist.
 */
static void scan(struct port_udp *u, struct udp_watch *w, bool v6, uint64_t now_ns)
{
    uint8_t b[UDP_PROBE_BYTES];
    int fd = probe_socket(v6);
    for (uint32_t i = 0; i < w->scan_batch && fd >= 0; i++) {
        probe_build(u, b, PROBE_PLACE, w->scan_at++, w->sequence);
        probe_send(u, fd, v6, b);
    }
    if (fd >= 0)
        close(fd);
    w->scan_batch = w->scan_batch * 2 < SCAN_BATCH ? w->scan_batch * 2 : SCAN_BATCH;
    if (fd < 0 || w->scan_at >= SCAN_PLACES)
        w->scan_at = SCAN_PLACES;
    atomic_store(&w->due_ns, now_ns + SCAN_NS);
}

/* One at a time: hundreds of members would wake one another. The name goes with the process;
 * whoever keeps it too long is ignored. */
static bool claim(struct udp_watch *w, bool v6)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena/leader/%d", v6 ? 6 : 4);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    w->claim_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (w->claim_fd >= 0 && bind(w->claim_fd, (struct sockaddr *)&a, length) == 0)
        return true;
    if (w->claim_fd >= 0)
        close(w->claim_fd);
    w->claim_fd = -1;
    return ++w->refusals > REFUSALS_MAX;
}

void udp_watch_close(struct port_udp *u)
{
    for (unsigned i = 0; i < 2; i++) {
        if (u->watch[i].claim_fd >= 0)
            close(u->watch[i].claim_fd);
        u->watch[i].claim_fd = -1;
    }
}

static void scan_begin(struct port_udp *u, struct udp_watch *w, bool v6, uint64_t now_ns)
{
    if (!claim(w, v6)) {
        /* Another is at it. */
        ask_first(u, w, v6, now_ns);
        w->asks = ASKS;
        return;
    }
    w->refusals = 0;
    udp_count(u, UDP_leader_stalled, 1);
    w->state = UDP_WATCH_SCAN;
    w->scan_at = 0;
    w->scan_batch = SCAN_FIRST;
    atomic_store(&w->scan_sequence, ++w->sequence);
    atomic_store(&w->place, NOWHERE);
    scan(u, w, v6, now_ns);
}

static void scan_end(struct port_udp *u, struct udp_watch *w, bool v6, uint64_t now_ns)
{
    uint32_t place = atomic_load(&w->place);
    if (place == NOWHERE && w->scan_at < SCAN_PLACES) {
        scan(u, w, v6, now_ns);
        return;
    }
    bool moved = place != NOWHERE && udp_watch_program(atomic_load(&w->fd), place) == 0;
    if (w->claim_fd >= 0)
        close(w->claim_fd);
    w->claim_fd = -1;
    if (!moved) {
        udp_count(u, UDP_leader_unknown, 1);
        rest(w, REST_NS, now_ns);
        return;
    }
    udp_count(u, UDP_leader_moved, 1);
    if (++w->moves > MOVES_MAX)
        rest(w, REST_NS, now_ns);
    else
        ask_first(u, w, v6, now_ns);
}

static bool answered(const struct udp_watch *w)
{
    return (int32_t)(atomic_load(&w->answer) - w->first_sequence) >= 0;
}

static void turn(struct port_udp *u, struct udp_watch *w, bool v6, uint64_t now_ns)
{
    uint64_t due_ns = atomic_load(&w->due_ns);
    uint64_t late_ns = due_ns != 0 && due_ns < now_ns ? now_ns - due_ns : 0;
    lag_update(u, late_ns);
    if (!wanted(w, now_ns) || atomic_load(&w->fd) < 0) {
        w->state = UDP_WATCH_REST;
        atomic_store(&w->due_ns, UINT64_MAX);
        if (wanted(w, now_ns) && atomic_load(&w->fd) >= 0)
            atomic_store(&w->due_ns, now_ns); /* wanted just now */
        return;
    }
    switch (w->state) {
    case UDP_WATCH_REST:
        ask_first(u, w, v6, now_ns);
        break;
    case UDP_WATCH_ASKED:
        if (answered(w)) {
            w->moves = w->refusals = 0;
            ask_first(u, w, v6, now_ns);
        } else if (late_ns > LATE_NS) {
            /* The answer may be here, unread because we did not run. */
            atomic_store(&w->due_ns, now_ns + answer_ns(u));
        } else if (w->asks < ASKS) {
            w->asks++;
            if (!ask(u, w, v6, now_ns))
                rest(w, REST_NS, now_ns);
        } else {
            scan_begin(u, w, v6, now_ns);
        }
        break;
    case UDP_WATCH_SCAN:
        scan_end(u, w, v6, now_ns);
        break;
    }
}

uint64_t udp_watch_deadline(struct port_udp *u)
{
    uint64_t a = atomic_load_explicit(&u->watch[0].due_ns, memory_order_relaxed);
    uint64_t b = atomic_load_explicit(&u->watch[1].due_ns, memory_order_relaxed);
    return a < b ? a : b;
}

void udp_watch_turn(struct port_udp *u, uint64_t now_ns)
{
    bool suspect =
        atomic_load_explicit(&u->suspect, memory_order_relaxed) && now_ns >= u->suspect_again_ns;
    if (!suspect && now_ns < udp_watch_deadline(u))
        return;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        struct udp_watch *w = &u->watch[v6];
        bool idle = w->state != UDP_WATCH_SCAN && (w->state == UDP_WATCH_REST || answered(w));
        if (atomic_load_explicit(&w->due_ns, memory_order_relaxed) <= now_ns ||
            (suspect && idle && atomic_load(&w->wanted) != 0))
            turn(u, w, v6 != 0, now_ns);
    }
    if (suspect)
        u->suspect_again_ns = now_ns + ASK_NS / 2;
}

/* How many processes asked lately, this one among them. */
static uint16_t members_count(struct port_udp *u, uint32_t slot)
{
    uint16_t n = 0;
    u->asker_ns[slot] = u->rx_now_ns;
    for (unsigned i = 0; i < UDP_SLOTS; i++)
        n += u->asker_ns[i] != 0 && u->rx_now_ns - u->asker_ns[i] < MEMBER_NS;
    return n;
}

/* Our own probe has come back. */
static void probe_returned(struct port_udp *u, const struct udp_run *run, const uint8_t *b)
{
    struct udp_watch *w = &u->watch[!net_addr_is_v4(&run->src)];
    if (get_be64(b + 16) != u->watch_nonce)
        return;
    if (b[1] != 0) {
        udp_flow_marked(u, get_be32(b + 12));
        return;
    }
    if (b[0] == PROBE_PLACE) {
        uint32_t place = get_be16(b + 2);
        if (place < atomic_load(&w->place) && get_be32(b + 12) == atomic_load(&w->scan_sequence))
            atomic_store(&w->place, place);
        return;
    }
    uint16_t members = get_be16(b + 8);
    if (run->from->kind == UDP_FD_WILDCARD)
        members = members_count(u, u->slot); /* we are the leader */
    atomic_store_explicit(&w->members, members != 0 ? members : 1, memory_order_relaxed);
    uint64_t asked_ns = atomic_load(&w->asked_ns);
    uint64_t due_ns = atomic_load(&w->answer_due_ns);
    atomic_store(&w->answer, get_be32(b + 12));
    /* Not before: who takes a turn there sees the answer. */
    atomic_compare_exchange_strong(&w->due_ns, &due_ns, asked_ns + atomic_load(&w->interval_ns));
    udp_flow_tidy(u);
    bool look = atomic_exchange(&u->suspect, false);
    /* Whoever only answers has nothing that could stay unanswered: looks when its peers fall
     * silent, though not at every turn. */
    if (!look && ++u->answers % 2 == 0)
        look = udp_flow_silence(u);
    if (look && udp_flow_rescue(u))
        atomic_store(&u->suspect, true);
}

unsigned udp_watch_probe(struct port_udp *u, const struct udp_run *run)
{
    for (uint32_t at = 0; at + UDP_PROBE_BYTES <= run->n; at += run->segment) {
        uint8_t *b = run->bytes + at;
        uint32_t slot = udp_packet_slot(b);
        if (u->slot_mine[slot]) {
            probe_returned(u, run, b);
        } else if (run->from->kind == UDP_FD_WILDCARD) {
            if (b[0] == PROBE_LEADER)
                put_be16(b + 8, members_count(u, slot));
            udp_slot_forward(u, slot, run, b, UDP_PROBE_BYTES, 0);
        }
    }
    return 1;
}
