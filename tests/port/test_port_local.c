/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_local.c: UC and UD between two ports of this machine: nothing is lost, a full neighbour
 * shows beforehand, one that takes nothing is given up after a while, one that has gone is noticed;
 * and what goes by UDP all the same. Time is the test's own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sockios.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <time.h>

#include <cmocka.h>

#include "port/port_udp.h"
#include "private_net.h"
#include "wire/net.h"
#include "wire/roce.h"

enum {
    TEST_UDP_PORT = 14793,
    BYTES = 1024,
    MANY = 100000, /* trains: more than any socket holds */
};

#define MS 1000000ull

static const struct nic_path path4 = {
    .local = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .remote = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .udp_sport = 0xC123,
    .traffic_class = 0x8a,
    .hop_limit = 64,
};
static const struct nic_path path6 = {
    .local = {{[15] = 1}},
    .remote = {{[15] = 1}},
    .udp_sport = 0xC123,
    .hop_limit = 64,
};
/* Not an address that the kernel sends from, hence nobody's as far as is known. */
static const struct nic_path elsewhere = {
    .local = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .remote = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 2}},
    .udp_sport = 0xC123,
    .hop_limit = 64,
};

static uint8_t payload[64 * BYTES];

/* The port's looks at a socket. */
static unsigned looks;

int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument);

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
    looks += request == SIOCOUTQ;
    return __real_ioctl(fd, request, argument);
}

/* PSNs come in order, payloads whole. */
struct got {
    struct port_receiver r;
    bool some; /* not all of the PSNs */
    uint32_t packets;
    struct rx_packet last;
};

struct ends {
    struct port *a, *b;
    struct got got;
    uint64_t now;
    uint32_t psn; /* of the next packet */
};

static void got_packets(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    struct got *g = (struct got *)r;
    for (unsigned i = 0; i < n; i++) {
        assert_true(p[i].icrc_ok);
        if (!g->some)
            assert_int_equal(p[i].h.bth.psn.v, g->packets & 0xffffff);
        assert_memory_equal(p[i].payload, payload + (p[i].h.bth.psn.v % 64), p[i].payload_bytes);
        g->packets++;
        g->last = p[i];
    }
}

static struct port *open_port(uint64_t seed, bool local)
{
    const struct port_udp_config c = {.seed = seed, .udp_port = TEST_UDP_PORT, .local = local};
    struct port *p;
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

static int setup(void **state)
{
    static struct ends e;
    e = (struct ends){.got.r.packets = got_packets, .now = 1000 * MS};
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 31 + (i >> 8));
    e.a = open_port(1, true);
    e.b = open_port(2, true);
    *state = &e;
    return 0;
}

static int teardown(void **state)
{
    struct ends *e = *state;
    e->a->ops->close(e->a);
    if (e->b != NULL)
        e->b->ops->close(e->b);
    return 0;
}

static uint32_t qpn_of(const struct port *p)
{
    return port_udp_slot(p) << 14 | 5;
}

/* The next packets of a service, from a, to two QPs in turn. */
static void give_two(struct ends *e, const struct nic_path *path, uint8_t opcode,
                     const uint32_t qpn[2], unsigned packets)
{
    struct train t = {.path = path, .packets = (uint16_t)packets};
    /* As the engine does: it also tells the time. */
    if (opcode >> 5 != SERVICE_RC && e->a->sink.room != NULL)
        e->a->sink.room(&e->a->sink, e->now, path, qpn[0]);
    t.packet_bytes = roce_packet_bytes(opcode, BYTES);
    t.total_bytes = packets * t.packet_bytes;
    for (unsigned i = 0; i < packets; i++) {
        struct train_packet *k = &t.packet[i];
        k->h.bth.opcode = opcode;
        k->h.bth.pkey = PKEY_DEFAULT;
        k->h.bth.dest_qp = qpn[i % 2];
        k->h.bth.psn = psn_make(e->psn & 0xffffff);
        k->payload_bytes = BYTES;
        k->first_span = t.spans;
        k->spans = 1;
        t.span[t.spans++] = (struct span){payload + (e->psn++ % 64), BYTES};
    }
    e->a->sink.train(&e->a->sink, &t);
}

static void give(struct ends *e, const struct nic_path *path, uint8_t opcode, uint32_t qpn,
                 unsigned packets)
{
    give_two(e, path, opcode, (const uint32_t[]){qpn, qpn}, packets);
}

static bool room(struct ends *e, const struct nic_path *path)
{
    return e->a->sink.room(&e->a->sink, e->now, path, qpn_of(e->b));
}

static void flush(struct ends *e)
{
    e->a->ops->flush(e->a, e->now);
}

static unsigned receive(struct ends *e, struct port *p)
{
    return p->ops->receive(p, e->now, &e->got.r, 512);
}

static void settle(struct ends *e)
{
    for (unsigned empty = 0; empty < 2 * PORT_EMPTY_CALLS;)
        empty = receive(e, e->b) + receive(e, e->a) != 0 ? 0 : empty + 1;
    e->now++; /* time passes */
}

enum { UC_ONLY = SERVICE_UC << 5 | OP_SEND_ONLY, UD_ONLY = SERVICE_UD << 5 | OP_SEND_ONLY };

/* Trains until there is no room; packets. */
static uint32_t fill(struct ends *e, const struct nic_path *path, uint8_t opcode)
{
    uint32_t before = e->psn;
    for (unsigned i = 0; i < MANY && room(e, path); i++) {
        give(e, path, opcode, qpn_of(e->b), 60);
        if (i % 3 == 2)
            flush(e);
    }
    flush(e);
    assert_false(room(e, path));
    return e->psn - before;
}

static void local__nothing_is_lost_when_the_receiver_waits(void **state)
{
    struct ends *e = *state;
    static const struct {
        const struct nic_path *path;
        uint8_t opcode;
    } rows[] = {
        {&path4, UC_ONLY},
        {&path6, UC_ONLY},
        {&path4, UD_ONLY},
        {&path6, UD_ONLY},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t sent = fill(e, rows[i].path, rows[i].opcode);
        assert_in_range(sent, 120, 64 << 10); /* not for ever */
        assert_int_equal(e->got.packets, e->psn - sent);
        settle(e);
        assert_int_equal(e->got.packets, e->psn);
        assert_true(room(e, rows[i].path));
        assert_memory_equal(&e->got.last.src, &rows[i].path->local, sizeof(struct net_addr));
        assert_memory_equal(&e->got.last.dst, &rows[i].path->remote, sizeof(struct net_addr));
        assert_int_equal(e->got.last.traffic_class, rows[i].path->traffic_class);
    }
    assert_int_equal(count_of(e->a, "local_tx_packets"), e->psn);
    assert_int_equal(count_of(e->b, "local_rx_packets"), e->psn);
    assert_int_equal(count_of(e->a, "udp_tx_packets"), 0);
    assert_int_equal(count_of(e->b, "flow_opened"), 0);
}

/* Who has no room asks again by the port's deadline, and is not forgotten there. */
static void local__who_waits_asks_again(void **state)
{
    struct ends *e = *state;
    fill(e, &path4, UC_ONLY);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t due = e->a->ops->deadline(e->a);
        assert_in_range(due, e->now + 1, e->now + MS);
        e->now = due;
        assert_false(room(e, &path4));
        flush(e);
    }
    assert_true(count_of(e->a, "local_waits") >= 20);
    assert_true(e->a->ops->writable(e->a)); /* others go on */
    settle(e);
    e->now = e->a->ops->deadline(e->a);
    assert_true(room(e, &path4));
    flush(e);
    assert_true(e->a->ops->deadline(e->a) > e->now + MS);
}

static void local__stalled_is_given_up_until_it_reads(void **state)
{
    struct ends *e = *state;
    fill(e, &path4, UC_ONLY);
    uint32_t kept = e->psn;
    for (unsigned i = 0; i < 9; i++) {
        e->now += 100 * MS;
        assert_false(room(e, &path4));
    }
    e->now += 200 * MS;
    assert_true(room(e, &path4)); /* the QP goes on with what is for others */
    give(e, &path4, UC_ONLY, qpn_of(e->b), 7);
    flush(e);
    assert_int_equal(count_of(e->a, "local_drop_stalled"), 7);
    settle(e);
    assert_int_equal(e->got.packets, kept);
    e->psn = kept;
    assert_true(room(e, &path4));
    give(e, &path4, UC_ONLY, qpn_of(e->b), 7);
    flush(e);
    settle(e);
    assert_int_equal(e->got.packets, kept + 7);
    assert_int_equal(count_of(e->a, "local_drop_stalled"), 7);
}

/* Slow is not stalled: as long as something is taken, who waits waits. */
static void local__slow_is_waited_for(void **state)
{
    struct ends *e = *state;
    fill(e, &path4, UC_ONLY);
    for (unsigned i = 0; i < 30; i++) {
        e->now += 900 * MS;
        while (receive(e, e->b) == 0) {
        }
        if (room(e, &path4))
            fill(e, &path4, UC_ONLY);
    }
    settle(e);
    assert_int_equal(e->got.packets, e->psn);
    assert_int_equal(count_of(e->a, "local_drop_stalled"), 0);
}

static void local__who_has_gone_is_noticed(void **state)
{
    struct ends *e = *state;
    uint32_t qpn = qpn_of(e->b);
    give(e, &path4, UC_ONLY, qpn, 3);
    flush(e);
    settle(e);
    e->b->ops->close(e->b);
    e->b = NULL;
    give(e, &path4, UC_ONLY, qpn, 3);
    flush(e);
    assert_int_equal(count_of(e->a, "local_drop_error"), 3);
    give(e, &path4, UC_ONLY, qpn, 2); /* by UDP, where nobody knows it either */
    flush(e);
    assert_int_equal(count_of(e->a, "local_drop_error"), 3);
    assert_int_equal(count_of(e->a, "udp_tx_packets"), 2);
    for (unsigned i = 0; i < 2 * PORT_EMPTY_CALLS; i++)
        receive(e, e->a);
    /* Another process has its slot: what is sent to it arrives. */
    e->now += 2000 * MS;
    for (uint64_t seed = 2; e->b == NULL; seed++) {
        struct port *p = open_port(seed, true);
        if (port_udp_slot(p) == qpn >> 14)
            e->b = p;
        else
            p->ops->close(p);
        assert_in_range(seed, 2, 100000);
    }
    e->got.packets = e->psn;
    give(e, &path4, UC_ONLY, qpn, 4);
    flush(e);
    settle(e);
    assert_int_equal(e->got.packets, e->psn);
}

/* A process that ends, and one that takes its slot at once: nothing of the old connection counts.
 */
static void local__a_slot_changes_hands(void **state)
{
    struct ends *e = *state;
    give(e, &path4, UC_ONLY, qpn_of(e->b), 3);
    flush(e);
    settle(e);
    e->b->ops->close(e->b);
    e->b = open_port(2, true);
    give(e, &path4, UC_ONLY, qpn_of(e->b), 4);
    flush(e);
    settle(e);
    assert_int_equal(e->got.packets, e->psn);
    assert_int_equal(count_of(e->a, "local_drop_error"), 0);
}

static void local__others_go_by_udp(void **state)
{
    struct ends *e = *state;
    uint32_t qpn = qpn_of(e->b);
    static const struct {
        const struct nic_path *path;
        uint8_t opcode;
        uint32_t qpn; /* 0: b's */
    } rows[] = {
        {&path4,     SERVICE_RC << 5 | OP_SEND_ONLY, 0            },
        {&elsewhere, UC_ONLY,                        0            },
        {&path4,     UD_ONLY,                        QPN_MULTICAST},
        {&path4,     UD_ONLY,                        1            },
        {&path4,     UC_ONLY,                        0x3ff << 14  }, /* nobody's, most likely */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t to = rows[i].qpn == 0 ? qpn : rows[i].qpn;
        if (to >> 14 == port_udp_slot(e->a) || (to != qpn && to >> 14 == port_udp_slot(e->b)))
            continue;
        uint64_t before = count_of(e->a, "udp_tx_packets");
        assert_true(e->a->sink.room(&e->a->sink, e->now, rows[i].path, to));
        give(e, rows[i].path, rows[i].opcode, to, 1);
        flush(e);
        assert_int_equal(count_of(e->a, "udp_tx_packets"), before + 1);
    }
    assert_int_equal(count_of(e->a, "local_tx_packets"), 0);
}

static void local__off_goes_by_udp(void **state)
{
    struct ends *e = *state;
    struct port *p = open_port(77, false);
    assert_null(p->sink.room);
    struct port *a = e->a;
    e->a = p;
    give(e, &path4, UC_ONLY, qpn_of(e->b), 2);
    flush(e);
    assert_int_equal(count_of(p, "udp_tx_packets"), 2);
    assert_int_equal(count_of(p, "local_tx_packets"), 0);
    p->ops->close(p);
    e->a = a;
}

/* One train, two processes. The engine gives none such; who does loses nothing. */
static void local__a_train_for_two_is_cut(void **state)
{
    struct ends *e = *state;
    struct port *c = open_port(3, true);
    struct got c_got = {.r.packets = got_packets, .some = true};
    e->got.some = true;
    const uint32_t far = 0x3fe << 14 | 5;
    const uint32_t both[] = {qpn_of(e->b), port_udp_slot(c) << 14 | 5};
    give_two(e, &path4, UD_ONLY, both, 60);
    give_two(e, &path6, UD_ONLY, both, 1);
    give_two(e, &path4, UD_ONLY, (const uint32_t[]){far, both[0]}, 6);
    flush(e);
    settle(e);
    for (unsigned empty = 0; empty < 2 * PORT_EMPTY_CALLS; empty++) {
        if (c->ops->receive(c, e->now, &c_got.r, 512) != 0)
            empty = 0;
    }
    c->ops->close(c);
    assert_int_equal(e->got.packets, 30 + 1 + 3);
    assert_int_equal(c_got.packets, 30);
    e->got.some = false;
}

/* What the owner of a slot sees of us is the user that we are now. */
static void local__another_user_than_before(void **state)
{
    struct ends *e = *state;
    if (seteuid(64001) != 0)
        skip();
    give(e, &path4, UC_ONLY, qpn_of(e->b), 7);
    flush(e);
    assert_int_equal(seteuid(0), 0);
    settle(e);
    assert_int_equal(e->got.packets, e->psn);
    assert_int_equal(count_of(e->a, "udp_tx_packets"), 7);
    give(e, &path4, UC_ONLY, qpn_of(e->b), 7); /* and stays so */
    flush(e);
    e->now += 2000 * MS;
    settle(e);
    give(e, &path4, UC_ONLY, qpn_of(e->b), 7); /* until there is a pause */
    flush(e);
    settle(e);
    assert_int_equal(e->got.packets, e->psn);
    assert_int_equal(count_of(e->a, "local_tx_packets"), 7);
    /* A connection that was accepted stays. */
    assert_int_equal(seteuid(64001), 0);
    give(e, &path4, UC_ONLY, qpn_of(e->b), 7);
    flush(e);
    assert_int_equal(seteuid(0), 0);
    settle(e);
    assert_int_equal(e->got.packets, e->psn);
    assert_int_equal(count_of(e->a, "local_tx_packets"), 14);
}

/* Takes all connections that wait and closes them; how many. */
static unsigned refuse(int listener)
{
    unsigned n = 0;
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0; n++)
        close(fd);
    return n;
}

static void local__who_refuses_us_is_sent_to_by_udp(void **state)
{
    struct ends *e = *state;
    uint32_t slot = 0x155;
    while (slot == port_udp_slot(e->a) || slot == port_udp_slot(e->b))
        slot++;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena/slot/%u", slot);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
                     0);
    assert_int_equal(listen(fd, 8), 0);
    /* Twice it may have been another process's end. */
    for (unsigned i = 0; i < 2; i++) {
        give(e, &path4, UC_ONLY, slot << 14 | 5, 3);
        flush(e);
        assert_int_equal(refuse(fd), 1);
        e->now += 10 * MS;
    }
    give(e, &path4, UC_ONLY, slot << 14 | 5, 3);
    flush(e);
    assert_int_equal(count_of(e->a, "local_tx_packets"), 6);
    assert_int_equal(count_of(e->a, "local_drop_error"), 3);
    /* However rarely something is sent. */
    for (unsigned i = 0; i < 5; i++) {
        e->now += 10000 * MS;
        give(e, &path4, UC_ONLY, slot << 14 | 5, 1);
        flush(e);
        assert_int_equal(refuse(fd), 0);
        assert_int_equal(count_of(e->a, "udp_tx_packets"), i + 1);
    }
    e->now += 20000 * MS;
    give(e, &path4, UC_ONLY, slot << 14 | 5, 1);
    flush(e);
    assert_int_equal(refuse(fd), 1);
    /* One that is taken in the end is believed. */
    give(e, &path4, UC_ONLY, slot << 14 | 5, 1);
    flush(e);
    e->now += 61000 * MS;
    uint64_t before = count_of(e->a, "local_tx_packets");
    for (unsigned i = 0; i < 2; i++) {
        give(e, &path4, UC_ONLY, slot << 14 | 5, 1);
        flush(e);
        e->now += 2000 * MS;
    }
    assert_int_equal(refuse(fd), 1);
    give(e, &path4, UC_ONLY, slot << 14 | 5, 1);
    flush(e);
    assert_int_equal(count_of(e->a, "local_tx_packets"), before + 3);
    close(fd);
}

static void local__many_addresses_are_remembered(void **state)
{
    struct ends *e = *state;
    enum { ADDRESSES = 200 };
    for (unsigned i = 0; i < 5 * ADDRESSES; i++) {
        struct nic_path path = i % 2 == 0 ? path4 : path6;
        path.remote.b[12 + i % 2] = (uint8_t)(127 - i % 2);
        path.remote.b[15] = (uint8_t)(i % ADDRESSES + 2);
        room(e, &path);
    }
    assert_in_range(count_of(e->a, "local_asked"), ADDRESSES, ADDRESSES * 11 / 10);
    e->now += 1000 * MS; /* what an address is may change */
    struct nic_path path = elsewhere;
    uint64_t before = count_of(e->a, "local_asked");
    room(e, &path);
    room(e, &path);
    assert_int_equal(count_of(e->a, "local_asked"), before + 1);
}

/* Without a descriptor nobody can tell what an address is; what it was it is. */
static void local__no_descriptor_changes_no_way(void **state)
{
    struct ends *e = *state;
    struct rlimit files, none;
    static const bool early[] = {false, true};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = files;
    none.rlim_cur = 3;
    for (unsigned i = 0; i < 2; i++) {
        const struct nic_path *path = i == 0 ? &path4 : &path6;
        uint32_t qpn = i == 0 ? qpn_of(e->b) : qpn_of(e->a);
        give(e, &elsewhere, UC_ONLY, 0x3fe << 14, 1); /* a socket for UDP, of each family */
        give(e, path, SERVICE_RC << 5 | OP_SEND_ONLY, 0x3fe << 14, 1);
        if (!early[i])
            give(e, path, UC_ONLY, qpn, 1);
        flush(e);
        uint64_t local = count_of(e->a, "local_tx_packets");
        e->now += 1500 * MS;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        give(e, path, UC_ONLY, qpn, 1);
        flush(e);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
        give(e, path, UC_ONLY, qpn, 1);
        flush(e);
        assert_int_equal(count_of(e->a, "local_tx_packets"), local + (early[i] ? 0 : 2));
        e->now += 1500 * MS;
        give(e, path, UC_ONLY, qpn, 1);
        flush(e);
        assert_int_equal(count_of(e->a, "local_tx_packets"), local + (early[i] ? 1 : 3));
    }
    e->got.some = true;
    settle(e);
    e->got.some = false;
}

static void local__one_look_for_all_who_wait(void **state)
{
    struct ends *e = *state;
    fill(e, &path4, UC_ONLY);
    for (unsigned turn = 0; turn < 3; turn++) {
        e->now += MS;
        looks = 0;
        for (unsigned i = 0; i < 100; i++)
            assert_false(room(e, &path4));
        assert_int_equal(looks, 1);
    }
    assert_true(count_of(e->a, "local_waits") >= 300);
}

/* What comes directly is of no flow, and leaves alone what is known of those: how much came in a
 * row. */
static void local__directly_is_no_flow(void **state)
{
    struct ends *e = *state;
    e->got.some = true; /* RC and UC go different ways */
    for (unsigned i = 0; i < 8000; i++) {
        struct nic_path path = path4;
        if (i % 1000 == 0)
            give(e, &path4, SERVICE_RC << 5 | OP_SEND_ONLY, qpn_of(e->b), 3);
        path.udp_sport = (uint16_t)(0xC200 + i);
        give(e, &path, UC_ONLY, qpn_of(e->b), 1);
        flush(e);
        settle(e);
    }
    e->now += 10 * MS;
    settle(e);
    assert_int_equal(count_of(e->b, "flow_opened"), 1);
    assert_int_equal(e->got.packets, e->psn);
}

/* A capture: packets that were sent, and whether their source ports were told before. */
struct watcher {
    struct port_observer o;
    uint16_t told[2];
    unsigned tells, sent, untold;
    uint64_t begun_ns; /* and no packet is told to have been before, whatever the engine's time */
    unsigned early;
};

static void watcher_packet(struct port_observer *o, uint64_t now_ns, const struct net_headers *h,
                           const uint8_t *packet, uint32_t bytes, bool sent)
{
    struct watcher *w = (struct watcher *)o;
    (void)packet;
    (void)bytes;
    w->early += now_ns < w->begun_ns;
    if (sent) {
        w->sent++;
        w->untold += h->udp_sport != w->told[h->v6];
    }
}

static void watcher_done(struct port_observer *o, bool sent)
{
    (void)o;
    (void)sent;
}

static void watcher_source(struct port_observer *o, bool v6, uint16_t sport)
{
    struct watcher *w = (struct watcher *)o;
    w->told[v6] = sport;
    w->tells++;
}

static uint64_t clock_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void local__a_capture_knows_its_packets(void **state)
{
    struct ends *e = *state;
    struct watcher w = {
        .o = {watcher_packet, watcher_done, watcher_source},
        .begun_ns = clock_now_ns(),
    };
    const struct port_udp_config c = {
        .seed = 8, .udp_port = TEST_UDP_PORT, .local = true, .observer = &w.o};
    struct port *a = e->a;
    assert_int_equal(port_udp_create(&c, &e->a), 0);
    for (unsigned i = 0; i < 4; i++) {
        give(e, i % 2 == 0 ? &path4 : &path6, i < 2 ? UC_ONLY : UD_ONLY, qpn_of(e->b), 5);
        flush(e);
        settle(e);
    }
    assert_int_equal(count_of(e->a, "local_tx_packets"), 20);
    e->a->ops->close(e->a);
    e->a = a;
    assert_int_equal(w.sent, 20);
    assert_int_equal(w.tells, 2);
    assert_int_equal(w.untold, 0);
    assert_int_equal(w.early, 0);
    assert_int_equal(e->got.packets, 20); /* whose ICRCs are right */
}

int main(void)
{
    private_net_enter();
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(local__nothing_is_lost_when_the_receiver_waits),
        T(local__who_waits_asks_again),
        T(local__stalled_is_given_up_until_it_reads),
        T(local__slow_is_waited_for),
        T(local__who_has_gone_is_noticed),
        T(local__a_slot_changes_hands),
        T(local__others_go_by_udp),
        T(local__off_goes_by_udp),
        T(local__a_train_for_two_is_cut),
        T(local__another_user_than_before),
        T(local__who_refuses_us_is_sent_to_by_udp),
        T(local__many_addresses_are_remembered),
        T(local__no_descriptor_changes_no_way),
        T(local__one_look_for_all_who_wait),
        T(local__directly_is_no_flow),
        T(local__a_capture_knows_its_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
