/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_local.c: UC and UD between two ports of this machine: nothing is lost, a full neighbour
 * shows beforehand, one that takes nothing is given up after a while, one that has gone is noticed;
 * and what goes by UDP all the same. Time is the test's own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "port/port_udp.h"
#include "private_net.h"
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

/* PSNs come in order, payloads whole. */
struct got {
    struct port_receiver r;
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
        assert_int_equal(p[i].h.bth.psn.v, g->packets & 0xffffff);
        assert_memory_equal(p[i].payload, payload + (g->packets % 64), p[i].payload_bytes);
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

/* The next packets of a service, from a. */
static void give(struct ends *e, const struct nic_path *path, uint8_t opcode, uint32_t qpn,
                 unsigned packets)
{
    struct train t = {.path = path, .packets = (uint16_t)packets};
    t.packet_bytes = roce_packet_bytes(opcode, BYTES);
    t.total_bytes = packets * t.packet_bytes;
    for (unsigned i = 0; i < packets; i++) {
        struct train_packet *k = &t.packet[i];
        k->h.bth.opcode = opcode;
        k->h.bth.pkey = PKEY_DEFAULT;
        k->h.bth.dest_qp = qpn;
        k->h.bth.psn = psn_make(e->psn & 0xffffff);
        k->payload_bytes = BYTES;
        k->first_span = t.spans;
        k->spans = 1;
        t.span[t.spans++] = (struct span){payload + (e->psn++ % 64), BYTES};
    }
    e->a->sink.train(&e->a->sink, &t);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
