/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_udp.c: the UDP port over real loopback sockets, on a UDP port of the test's own: trains
 * out and packets in, slots, forwarding, flow sockets, malformed datagrams.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/port_udp_priv.h"
#include "private_net.h"
#include "wire/roce.h"

enum {
    TEST_UDP_PORT = 14791,
    MAX_GOT = 256,
    SPORT = 0xC123,
};

static const struct nic_path path4 = {
    .local = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .remote = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .udp_sport = SPORT,
    .traffic_class = 0x8a,
    .hop_limit = 64,
};
static const struct nic_path path6 = {
    .local = {{[15] = 1}},
    .remote = {{[15] = 1}},
    .udp_sport = SPORT,
    .traffic_class = 0x2,
    .hop_limit = 7,
};

static uint8_t source[1 << 16];

/* What a port received, payloads compared with source at psn * 7. */
struct got {
    struct port_receiver r;
    unsigned n, bad_icrc, bad_payload;
    struct rx_packet p[MAX_GOT];
};

static void got_packets(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    struct got *g = (struct got *)r;
    for (unsigned i = 0; i < n; i++) {
        assert_true(g->n < MAX_GOT);
        g->bad_icrc += !p[i].icrc_ok;
        if (p[i].payload_bytes != 0)
            g->bad_payload +=
                memcmp(p[i].payload, source + p[i].h.bth.psn.v * 7, p[i].payload_bytes) != 0;
        g->p[g->n++] = p[i];
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct port *make(uint64_t seed, bool no_gso, bool no_flows)
{
    struct port_udp_config c = {
        .udp_port = TEST_UDP_PORT, .seed = seed, .no_gso = no_gso, .no_flows = no_flows};
    struct port *p;
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (uint8_t)(i * 31 + (i >> 8));
    assert_int_equal(port_udp_create(&c, &p), 0);
    return p;
}

static uint64_t count_of(struct port *p, const char *want)
{
    const char *name;
    uint64_t v;
    for (unsigned i = 0; (name = p->ops->counter(p, i, &v)) != NULL; i++) {
        if (strcmp(name, want) == 0)
            return v;
    }
    fail_msg("no counter %s", want);
    return 0;
}

/* Packets to a QPN: the last one is last_bytes long, the others bytes. */
static void build(struct train *t, const struct nic_path *path, uint32_t qpn, unsigned packets,
                  uint32_t bytes, uint32_t last_bytes)
{
    memset(t, 0, sizeof(*t));
    t->path = path;
    for (unsigned i = 0; i < packets; i++) {
        struct train_packet *k = &t->packet[i];
        bool last = i + 1 == packets;
        k->payload_bytes = last ? last_bytes : bytes;
        k->h.bth.opcode = opcode_make(SERVICE_RC, last ? OP_SEND_LAST : OP_SEND_MIDDLE);
        k->h.bth.pkey = PKEY_DEFAULT;
        k->h.bth.dest_qp = qpn;
        k->h.bth.psn = psn_make(i + 1);
        k->h.bth.pad_bytes = roce_pad(k->payload_bytes);
        k->h.bth.ack_req = last;
        /* Two spans each, so that joints are tested. */
        uint32_t head = k->payload_bytes / 3;
        k->first_span = t->spans;
        k->spans = 2;
        t->span[t->spans++] = (struct span){source + (i + 1) * 7, head};
        t->span[t->spans++] = (struct span){source + (i + 1) * 7 + head, k->payload_bytes - head};
        uint32_t n = roce_packet_bytes(k->h.bth.opcode, k->payload_bytes);
        t->packet_bytes = i == 0 ? n : t->packet_bytes;
        t->total_bytes += n;
    }
    t->packets = (uint16_t)packets;
}

static void send_train(struct port *p, const struct train *t)
{
    p->sink.train(&p->sink, t);
    p->ops->flush(p, now_ns());
}

/* Receives on all ports until nothing comes any more. */
static void settle(struct port **p, struct got *g, unsigned n)
{
    unsigned empty = 0;
    while (empty < 2 * PORT_EMPTY_CALLS) {
        unsigned seen = 0;
        for (unsigned i = 0; i < n; i++)
            seen += p[i]->ops->receive(p[i], now_ns(), &g[i].r, 512);
        empty = seen != 0 ? 0 : empty + 1;
    }
}

static void got_init(struct got *g, unsigned n)
{
    memset(g, 0, n * sizeof(*g));
    for (unsigned i = 0; i < n; i++)
        g[i].r.packets = got_packets;
}

static void udp__trains_arrive_as_sent(void **state)
{
    (void)state;
    static const struct {
        unsigned packets;
        uint32_t bytes, last_bytes;
    } rows[] = {
        {1,  0,    0   },
        {1,  1,    1   },
        {1,  4096, 4096},
        {2,  256,  256 },
        {2,  1024, 3   },
        {15, 4096, 1   },
        {14, 4096, 4096},
        {57, 1024, 7   },
        {64, 256,  255 },
        {64, 8,    8   }
    };
    for (unsigned mode = 0; mode < 4; mode++) {
        const struct nic_path *path = (mode & 1) != 0 ? &path6 : &path4;
        struct port *p = make(1, (mode & 2) != 0, false);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            static struct train t;
            static struct got g;
            got_init(&g, 1);
            build(&t, path, port_udp_slot(p) << 14 | 77, rows[i].packets, rows[i].bytes,
                  rows[i].last_bytes);
            send_train(p, &t);
            settle(&p, &g, 1);
            assert_int_equal(g.n, rows[i].packets);
            assert_int_equal(g.bad_icrc, 0);
            assert_int_equal(g.bad_payload, 0);
            for (unsigned k = 0; k < g.n; k++) {
                assert_memory_equal(&g.p[k].h, &t.packet[k].h, sizeof(g.p[k].h));
                assert_int_equal(g.p[k].payload_bytes, t.packet[k].payload_bytes);
                assert_memory_equal(&g.p[k].src, &path->local, 16);
                assert_memory_equal(&g.p[k].dst, &path->remote, 16);
                assert_int_equal(g.p[k].traffic_class, path->traffic_class);
            }
        }
        assert_int_equal(count_of(p, "udp_rx_foreign_id"), 0);
        assert_int_equal(count_of(p, "udp_tx_gso_fallback"), 0);
        p->ops->close(p);
    }
}

static void udp__flipped_bit_fails_the_icrc(void **state)
{
    (void)state;
    struct port *p = make(1, false, false);
    static struct train t;
    static struct got g;
    got_init(&g, 1);
    build(&t, &path6, port_udp_slot(p) << 14 | 77, 1, 100, 100);
    /* Payload and ICRC; a flip of the destination QPN might make it somebody else's. */
    for (uint32_t bit = BTH_BYTES * 8; bit < t.total_bytes * 8; bit += 5)
        p->ops->train_flipped(p, &t, bit);
    p->ops->flush(p, now_ns());
    settle(&p, &g, 1);
    assert_true(g.n > 100);
    assert_int_equal(g.bad_icrc, g.n);
    p->ops->close(p);
}

/* Two local addresses share the class of one source port, in either order. */
static void udp__each_packet_leaves_from_its_path(void **state)
{
    (void)state;
    for (uint8_t first = 1; first <= 2; first++) {
        struct nic_path path = path4;
        struct port *p = make(1, false, false);
        static struct train t;
        static struct got g;
        got_init(&g, 1);
        for (unsigned i = 0; i < 4; i++) {
            path.local.b[15] = i % 2 == 0 ? first : 3 - first;
            build(&t, &path, port_udp_slot(p) << 14 | 77, 3, 100, 50);
            send_train(p, &t);
            settle(&p, &g, 1);
            assert_int_equal(g.n, 3 * (i + 1));
            assert_memory_equal(&g.p[g.n - 1].src, &path.local, sizeof(path.local));
        }
        assert_int_equal(g.bad_icrc + g.bad_payload, 0);
        p->ops->close(p);
    }
}

static bool shows(struct port *p)
{
    struct epoll_event e;
    return epoll_wait(p->ops->fd(p), &e, 1, 0) == 1;
}

/* Who polls need not be woken; nothing is lost by that, wherever it comes. */
static void udp__eased_fd_is_silent_and_receive_is_not(void **state)
{
    (void)state;
    struct port *p = make(1, false, false);
    static struct train t4, t6;
    static struct got g;
    got_init(&g, 1);
    build(&t4, &path4, port_udp_slot(p) << 14 | 9, 2, 100, 100);
    build(&t6, &path6, port_udp_slot(p) << 14 | 9, 2, 100, 100);
    send_train(p, &t4);
    assert_true(shows(p));
    settle(&p, &g, 1);
    for (unsigned i = 0; i < 3; i++) {
        got_init(&g, 1);
        assert_true(port_udp_ease(p, true));
        assert_true(port_udp_ease(p, true));
        send_train(p, &t4);
        assert_false(shows(p));
        send_train(p, &t6); /* elsewhere: shown as before */
        assert_true(shows(p));
        settle(&p, &g, 1);
        assert_int_equal(g.n, 4);
        send_train(p, &t4); /* the last were of the other socket */
        settle(&p, &g, 1);
        assert_int_equal(g.n, 6);
        send_train(p, &t4);
        assert_false(shows(p));
        assert_true(port_udp_ease(p, false)); /* what waits is shown */
        assert_true(shows(p));
        settle(&p, &g, 1);
        assert_int_equal(g.n, 8);
        assert_false(shows(p));
        assert_int_equal(g.bad_icrc + g.bad_payload, 0);
    }
    assert_true(port_udp_ease(p, true));
    p->ops->close(p);
}

static void udp__sends_that_cannot_leave_are_counted(void **state)
{
    (void)state;
    struct nic_path none = path4, mixed = path4;
    none.local.b[12] = 203; /* not our address */
    mixed.remote = path6.remote;
    static const struct nic_path *paths[2];
    paths[0] = &none;
    paths[1] = &mixed;
    struct port *p = make(1, false, false);
    for (unsigned i = 0; i < 2; i++) {
        static struct train t;
        build(&t, paths[i], port_udp_slot(p) << 14 | 77, 4, 100, 100);
        send_train(p, &t);
        assert_int_equal(count_of(p, "udp_tx_drop_error"), 4 * (i + 1));
        assert_true(p->ops->writable(p));
    }
    p->ops->close(p);
}

static void udp__slots_differ_and_are_free_after_close(void **state)
{
    (void)state;
    struct port *a = make(5, false, false), *b = make(5, false, false);
    uint32_t first = port_udp_slot(a);
    assert_int_equal(port_udp_slot(b), (first + 1) % 1024);
    assert_int_equal(count_of(b, "slot_skipped"), 1);
    a->ops->close(a);
    a = make(5, false, false);
    assert_int_equal(port_udp_slot(a), first);
    a->ops->close(a);
    b->ops->close(b);
}

static void udp__leader_forwards_and_flows_take_over(void **state)
{
    (void)state;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        const struct nic_path *path = v6 != 0 ? &path6 : &path4;
        struct port *p[2] = {make(1, false, false), make(2, false, false)};
        static struct train t;
        static struct got g[2];
        got_init(g, 2);
        /* 40 packets in a run: forwarded by p[0], then p[1] has a socket of its own for them. */
        build(&t, path, port_udp_slot(p[1]) << 14 | 9, 40, 512, 512);
        send_train(p[0], &t);
        settle(p, g, 2);
        assert_int_equal(g[0].n, 0);
        assert_int_equal(g[1].n, 40);
        assert_int_equal(g[1].bad_icrc + g[1].bad_payload, 0);
        assert_memory_equal(&g[1].p[39].h, &t.packet[39].h, sizeof(t.packet[39].h));
        assert_int_equal(count_of(p[0], "slot_forwarded"), 41); /* and a mark */
        assert_int_equal(count_of(p[1], "slot_received"), 41);
        assert_int_equal(count_of(p[1], "flow_opened"), 1);
        send_train(p[0], &t);
        settle(p, g, 2);
        assert_int_equal(g[1].n, 80);
        assert_int_equal(g[1].bad_icrc + g[1].bad_payload, 0);
        assert_int_equal(count_of(p[0], "slot_forwarded"), 41);
        /* A packet of another owner on that flow: it is passed on and the socket given up. */
        build(&t, path, port_udp_slot(p[0]) << 14 | 9, 3, 512, 512);
        send_train(p[0], &t);
        settle(p, g, 2);
        assert_int_equal(g[0].n, 3);
        assert_int_equal(g[0].bad_icrc + g[0].bad_payload, 0);
        assert_int_equal(count_of(p[1], "flow_closed"), 1);
        assert_int_equal(count_of(p[1], "slot_forwarded"), 3);
        send_train(p[0], &t);
        settle(p, g, 2);
        assert_int_equal(g[0].n, 6);
        assert_int_equal(count_of(p[1], "slot_forwarded"), 3);
        p[0]->ops->close(p[0]);
        p[1]->ops->close(p[1]);
    }
}

/* What the leader still holds when the other opens a socket comes before what goes there. */
static void udp__new_flow_keeps_the_order(void **state)
{
    (void)state;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        struct port *p[2] = {make(1, true, false), make(2, true, false)};
        static struct train t;
        static struct got g[2];
        uint64_t then_ns = now_ns(); /* all in one moment: it is the mark that counts, not time */
        got_init(g, 2);
        build(&t, v6 != 0 ? &path6 : &path4, port_udp_slot(p[1]) << 14 | 9, 60, 64, 64);
        send_train(p[1], &t);
        /* The leader reads some; with them the other has enough for a socket. */
        for (unsigned i = 0; count_of(p[1], "flow_opened") == 0; i++) {
            assert_true(i < 1000);
            p[0]->ops->receive(p[0], then_ns, &g[0].r, 1);
            p[1]->ops->receive(p[1], then_ns, &g[1].r, 512);
        }
        assert_true(g[1].n < 60);
        for (unsigned i = 0; i < t.packets; i++) {
            t.packet[i].h.bth.psn = psn_make(61 + i);
            t.span[2 * i].addr = source + (61 + i) * 7;
            t.span[2 * i + 1].addr = source + (61 + i) * 7 + t.span[2 * i].bytes;
        }
        send_train(p[1], &t);
        for (unsigned i = 0; i < 100; i++)
            p[1]->ops->receive(p[1], then_ns, &g[1].r, 512);
        assert_true(g[1].n <= 60);
        for (unsigned i = 0; i < 10000 && g[1].n < 120; i++) {
            p[0]->ops->receive(p[0], then_ns, &g[0].r, 512);
            p[1]->ops->receive(p[1], then_ns, &g[1].r, 512);
        }
        assert_int_equal(g[1].n, 120);
        assert_int_equal(g[1].bad_icrc + g[1].bad_payload, 0);
        for (unsigned i = 0; i < 120; i++)
            assert_int_equal(g[1].p[i].h.bth.psn.v, i + 1);
        p[0]->ops->close(p[0]);
        p[1]->ops->close(p[1]);
    }
}

/* What the leader has not read when it ends is not lost to the others. */
static void udp__leader_that_ends_passes_on_what_it_holds(void **state)
{
    (void)state;
    for (unsigned row = 0; row < 4; row++) {
        struct port *p[2] = {make(1, false, false), make(2, false, false)};
        static struct train t;
        static struct got g[2];
        got_init(g, 2);
        build(&t, (row & 1) != 0 ? &path6 : &path4, port_udp_slot(p[1]) << 14 | 9, 40, 512, 512);
        send_train(p[1], &t);
        if ((row & 2) != 0)
            port_udp_retire(p[0]);
        else
            p[0]->ops->close(p[0]);
        settle(&p[1], &g[1], 1);
        assert_int_equal(g[1].n, 40);
        assert_int_equal(g[1].bad_icrc + g[1].bad_payload, 0);
        /* From now on p[1] is the leader. */
        send_train(p[1], &t);
        settle(&p[1], &g[1], 1);
        assert_int_equal(g[1].n, 80);
        if ((row & 2) != 0) {
            assert_int_equal(count_of(p[0], "slot_forwarded"), 40);
            p[0]->ops->close(p[0]);
        }
        p[1]->ops->close(p[1]);
    }
}

/* A forked child has copies of all descriptors until its handler has run, one without handlers for
 * as long as it lives: what is closed is watched no more. */
static void udp__closed_is_not_watched_by_its_copies(void **state)
{
    (void)state;
    struct port *p[2] = {make(1, false, false), make(2, false, false)};
    static struct train t;
    static struct got g[2];
    struct udp_fd *f;
    int copy = -1;
    got_init(g, 2);
    build(&t, &path4, port_udp_slot(p[1]) << 14 | 9, 40, 512, 512);
    send_train(p[0], &t);
    settle(p, g, 2);
    TAILQ_FOREACH(f, &udp_of(p[1])->fds, link)
    {
        if (f->kind == UDP_FD_CONNECTION)
            copy = dup(f->fd);
    }
    assert_true(copy >= 0);
    p[0]->ops->close(p[0]);
    for (unsigned i = 0; i < 2; i++)
        settle(&p[1], &g[1], 1);
    assert_int_equal(udp_of(p[1])->connection_count, 0);
    struct pollfd set = {.fd = p[1]->ops->fd(p[1]), .events = POLLIN};
    assert_int_equal(poll(&set, 1, 0), 0);
    close(copy);
    p[1]->ops->close(p[1]);
}

/* Of a source that is heard no more the socket is closed: not while it may well be heard again. */
static void udp__flow_without_packets_is_closed(void **state)
{
    (void)state;
    struct port *p[2] = {make(1, false, false), make(2, false, false)};
    static struct train t;
    static struct got g[2];
    got_init(g, 2);
    port_udp_expect(p[1], false, 1);
    build(&t, &path4, port_udp_slot(p[1]) << 14 | 9, 40, 512, 512);
    send_train(p[0], &t);
    settle(p, g, 2);
    assert_int_equal(count_of(p[1], "flow_opened"), 1);
    for (uint64_t later_ns = 0; later_ns <= 40000000000; later_ns += 20000000000) {
        uint64_t asked = count_of(p[1], "leader_asked");
        while (count_of(p[1], "leader_asked") == asked) {
            uint64_t now = now_ns() + later_ns;
            if (p[1]->ops->deadline(p[1]) <= now)
                p[1]->ops->flush(p[1], now);
            p[0]->ops->receive(p[0], now, &g[0].r, 512);
            p[1]->ops->receive(p[1], now, &g[1].r, 512);
        }
        for (unsigned i = 0; i < 200; i++) {
            usleep(100);
            p[0]->ops->receive(p[0], now_ns() + later_ns, &g[0].r, 512);
            p[1]->ops->receive(p[1], now_ns() + later_ns, &g[1].r, 512);
        }
        assert_int_equal(count_of(p[1], "flow_closed"), later_ns > 30000000000);
    }
    p[0]->ops->close(p[0]);
    p[1]->ops->close(p[1]);
}

static void udp__mixed_run_is_split_by_owner(void **state)
{
    (void)state;
    struct port *p[2] = {make(1, false, true), make(2, false, true)};
    static struct train t;
    static struct got g[2];
    got_init(g, 2);
    build(&t, &path4, 0, 30, 64, 64);
    for (unsigned i = 0; i < 30; i++)
        t.packet[i].h.bth.dest_qp = port_udp_slot(p[i / 4 % 2]) << 14 | 9;
    send_train(p[0], &t);
    settle(p, g, 2);
    assert_int_equal(g[0].n, 16);
    assert_int_equal(g[1].n, 14);
    assert_int_equal(g[0].bad_icrc + g[1].bad_icrc, 0);
    assert_int_equal(g[0].bad_payload + g[1].bad_payload, 0);
    assert_int_equal(count_of(p[1], "flow_opened"), 0);
    p[0]->ops->close(p[0]);
    p[1]->ops->close(p[1]);
}

static void udp__unknown_slot_is_counted(void **state)
{
    (void)state;
    struct port *p = make(1, false, false);
    static struct train t;
    static struct got g;
    got_init(&g, 1);
    /* A slot that nobody owns: one that could just be claimed. */
    struct port *other = make(99, false, false);
    uint32_t slot = port_udp_slot(other);
    other->ops->close(other);
    build(&t, &path4, slot << 14 | 9, 5, 64, 64);
    send_train(p, &t);
    settle(&p, &g, 1);
    assert_int_equal(g.n, 0);
    assert_int_equal(count_of(p, "slot_drop_unknown"), 5);
    p->ops->close(p);
}

static void udp__owner_that_dies_leaves_its_slot(void **state)
{
    (void)state;
    struct port *p = make(1, false, true);
    int fd[2], status;
    uint32_t slot;
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        p->ops->abandon(p);
        struct port *mine = make(2, false, true);
        static struct got g;
        got_init(&g, 1);
        slot = port_udp_slot(mine);
        if (write(fd[1], &slot, sizeof(slot)) != sizeof(slot))
            _exit(2);
        for (uint64_t end = now_ns() + 30000000000u; g.n < 40 && now_ns() < end;)
            mine->ops->receive(mine, now_ns(), &g.r, 512);
        _exit(g.n == 40 && g.bad_icrc == 0 && g.bad_payload == 0 ? 0 : 1);
    }
    assert_int_equal(read(fd[0], &slot, sizeof(slot)), sizeof(slot));
    assert_int_not_equal(slot, port_udp_slot(p));
    static struct train t;
    static struct got g;
    got_init(&g, 1);
    build(&t, &path4, slot << 14 | 9, 40, 512, 512);
    send_train(p, &t);
    settle(&p, &g, 1);
    assert_int_equal(count_of(p, "slot_forwarded"), 40);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    send_train(p, &t);
    settle(&p, &g, 1);
    assert_int_equal(g.n, 0);
    assert_int_equal(count_of(p, "slot_drop_unknown"), 40);
    close(fd[0]);
    close(fd[1]);
    p->ops->close(p);
}

static void udp__malformed_is_counted_and_goes_nowhere(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint8_t bytes[24]; /* QPN 1: nobody's slot */
        const char *counter;
    } rows[] = {
        {0,  {0},                               "udp_rx_drop_too_short" },
        {1,  {4},                               "udp_rx_drop_too_short" },
        {7,  {4},                               "udp_rx_drop_too_short" },
        {15, {4, 0, 0xff, 0xff, 0, 0, 0, 1},    "udp_rx_drop_too_short" },
        {16, {0x1f, 0, 0xff, 0xff, 0, 0, 0, 1}, "udp_rx_drop_bad_opcode"},
        {16, {0xff, 0, 0xff, 0xff, 0, 0, 0, 1}, "udp_rx_drop_bad_opcode"},
        {16, {4, 1, 0xff, 0xff, 0, 0, 0, 1},    "udp_rx_drop_bad_tver"  },
        {17, {4, 0, 0xff, 0xff, 0, 0, 0, 1},    "udp_rx_drop_bad_length"},
        {16, {4, 0x30, 0xff, 0xff, 0, 0, 0, 1}, NULL                    },
        {24, {0x11, 0, 0xff, 0xff, 0, 0, 0, 1}, "udp_rx_drop_bad_length"},
    };
    struct port *p = make(1, false, false);
    static struct got g;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(TEST_UDP_PORT),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t before = rows[i].counter != NULL ? count_of(p, rows[i].counter) : 0;
        got_init(&g, 1);
        assert_int_equal(
            sendto(fd, rows[i].bytes, rows[i].n, 0, (struct sockaddr *)&to, sizeof(to)),
            (ssize_t)rows[i].n);
        settle(&p, &g, 1);
        assert_int_equal(g.n, 0);
        if (rows[i].counter != NULL)
            assert_int_equal(count_of(p, rows[i].counter), before + 1);
    }
    close(fd);
    p->ops->close(p);
}

/* RFC 6936: over IPv6, too, a checksum of 0 is none; adapters and soft-RoCE send so. */
static void udp__ipv6_without_checksum_is_heard(void **state)
{
    (void)state;
    static struct got g;
    static const uint8_t bytes[16] = {0x1f, 0, 0xff, 0xff, 0, 0, 0, 1}; /* counted when heard */
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(TEST_UDP_PORT)};
    struct port *p = make(1, false, false);
    int fd = socket(AF_INET6, SOCK_DGRAM, 0), on = 1;
    to.sin6_addr = in6addr_loopback;
    assert_int_equal(setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on)), 0);
    got_init(&g, 1);
    assert_int_equal(sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, sizeof(to)),
                     (ssize_t)sizeof(bytes));
    settle(&p, &g, 1);
    assert_int_equal(count_of(p, "udp_rx_drop_bad_opcode"), 1);
    close(fd);
    p->ops->close(p);
}

static void udp__holder_is_named(void **state)
{
    (void)state;
    char text[128];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t n = sizeof(any);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &n), 0);
    port_udp_holder(ntohs(any.sin_port), text, sizeof(text));
    char want[64];
    snprintf(want, sizeof(want), "(uid %u), process %d", (unsigned)getuid(), (int)getpid());
    assert_non_null(strstr(text, want));
    /* Held without SO_REUSEPORT: nobody else can have it. */
    struct port_udp_config c = {.udp_port = ntohs(any.sin_port)};
    struct port *p;
    assert_int_equal(port_udp_create(&c, &p), -EADDRINUSE);
    close(fd);
    assert_int_equal(port_udp_create(&c, &p), 0);
    p->ops->close(p);
    if (access("/sys/module/rdma_rxe", F_OK) != 0)
        assert_string_equal(port_udp_holder(ntohs(any.sin_port), text, sizeof(text)), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(udp__trains_arrive_as_sent),
        cmocka_unit_test(udp__flipped_bit_fails_the_icrc),
        cmocka_unit_test(udp__each_packet_leaves_from_its_path),
        cmocka_unit_test(udp__eased_fd_is_silent_and_receive_is_not),
        cmocka_unit_test(udp__sends_that_cannot_leave_are_counted),
        cmocka_unit_test(udp__slots_differ_and_are_free_after_close),
        cmocka_unit_test(udp__leader_forwards_and_flows_take_over),
        cmocka_unit_test(udp__new_flow_keeps_the_order),
        cmocka_unit_test(udp__leader_that_ends_passes_on_what_it_holds),
        cmocka_unit_test(udp__closed_is_not_watched_by_its_copies),
        cmocka_unit_test(udp__flow_without_packets_is_closed),
        cmocka_unit_test(udp__mixed_run_is_split_by_owner),
        cmocka_unit_test(udp__unknown_slot_is_counted),
        cmocka_unit_test(udp__owner_that_dies_leaves_its_slot),
        cmocka_unit_test(udp__malformed_is_counted_and_goes_nowhere),
        cmocka_unit_test(udp__ipv6_without_checksum_is_heard),
        cmocka_unit_test(udp__holder_is_named),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
