/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_many.c: many members on one UDP port when some do not behave: stopped ones (here: ports
 * that nobody drives), dead ones, squatters, other users.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/port_udp.h"
#include "private_net.h"
#include "wire/roce.h"

enum {
    TEST_UDP_PORT = 14792,
    SPORT = 0xC200,
    MAX_PORTS = 6,
    SLOTS = 1024,
    NOBODY = 65534,
};
/* At most; most things take milliseconds, but who is always late takes long to call others so. */
static const uint64_t WAIT_NS = 30000000000;

static const struct nic_path path4 = {
    .local = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .remote = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .udp_sport = SPORT,
    .hop_limit = 64,
};
static const struct nic_path path6 = {
    .local = {{[15] = 1}},
    .remote = {{[15] = 1}},
    .udp_sport = SPORT,
    .hop_limit = 64,
};

/* A member; received counts what is its own. */
struct member {
    struct port_receiver r;
    struct port *port;
    unsigned received;
    bool stopped;
};

static void member_packets(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    struct member *m = (struct member *)r;
    for (unsigned i = 0; i < n; i++)
        assert_true(p[i].icrc_ok);
    m->received += n;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_member(struct member *m, const struct port_udp_config *c)
{
    struct port_udp_config copy = *c;
    copy.udp_port = TEST_UDP_PORT;
    *m = (struct member){.r.packets = member_packets};
    return port_udp_create(&copy, &m->port);
}

static void make(struct member *m, uint64_t seed)
{
    const struct port_udp_config c = {.seed = seed};
    assert_int_equal(open_member(m, &c), 0);
}

static void close_member(struct member *m)
{
    if (m->port != NULL)
        m->port->ops->close(m->port);
    m->port = NULL;
}

static uint64_t count_of(const struct member *m, const char *want)
{
    const char *name;
    uint64_t v;
    for (unsigned i = 0; (name = m->port->ops->counter(m->port, i, &v)) != NULL; i++) {
        if (strcmp(name, want) == 0)
            return v;
    }
    fail_msg("no counter %s", want);
    return 0;
}

/* One turn of each member that is there and runs, as a host would do it. */
static void drive(struct member *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (m[i].port == NULL || m[i].stopped)
            continue;
        uint64_t now = now_ns();
        if (m[i].port->ops->deadline(m[i].port) <= now)
            m[i].port->ops->flush(m[i].port, now);
        for (unsigned k = 0; k < PORT_EMPTY_CALLS; k++)
            m[i].port->ops->receive(m[i].port, now, &m[i].r, 512);
    }
}

/* So long, and so many turns at least: a busy machine may let the time pass without any. */
static void drive_for(struct member *m, unsigned n, unsigned ms)
{
    uint64_t end = now_ns() + ms * 1000000ull;
    for (unsigned turns = 0; turns < 20 || now_ns() < end; turns++) {
        drive(m, n);
        poll(NULL, 0, 1);
    }
}

/* Drives until the counter of m[who] is at least that; false: not within half a minute. */
static bool until(struct member *m, unsigned n, unsigned who, const char *counter, uint64_t least)
{
    for (uint64_t end = now_ns() + WAIT_NS; now_ns() < end;) {
        if (count_of(&m[who], counter) >= least)
            return true;
        drive(m, n);
        poll(NULL, 0, 1);
    }
    return false;
}

/* Packets of eight bytes from one member to QPN 9 of a slot. */
static void send_packets(struct member *from, const struct nic_path *path, uint32_t slot,
                         unsigned packets)
{
    static const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static struct train t;
    memset(&t, 0, sizeof(t));
    t.path = path;
    for (unsigned i = 0; i < packets; i++) {
        struct train_packet *k = &t.packet[i];
        k->payload_bytes = sizeof(bytes);
        k->h.bth.opcode = opcode_make(SERVICE_RC, OP_SEND_ONLY);
        k->h.bth.pkey = PKEY_DEFAULT;
        k->h.bth.dest_qp = slot << 14 | 9;
        k->h.bth.psn = psn_make(i);
        k->first_span = t.spans;
        k->spans = 1;
        t.span[t.spans++] = (struct span){bytes, sizeof(bytes)};
        t.packet_bytes = roce_packet_bytes(k->h.bth.opcode, sizeof(bytes));
        t.total_bytes += t.packet_bytes;
    }
    t.packets = (uint16_t)packets;
    from->port->sink.train(&from->port->sink, &t);
    from->port->ops->flush(from->port, now_ns());
}

/* Does a packet to m[to], from a source that nobody knows, arrive? */
static bool arrives(struct member *m, unsigned n, unsigned from, unsigned to, bool v6)
{
    static uint16_t sport = 0xD000;
    struct nic_path path = v6 ? path6 : path4;
    /* From a class of source ports of its own each time, so that the socket is a new one. */
    path.udp_sport = sport++;
    unsigned before = m[to].received;
    send_packets(&m[from], &path, port_udp_slot(m[to].port), 1);
    uint64_t end = now_ns() + 200000000ull;
    for (unsigned turns = 0; (turns < 20 || now_ns() < end) && m[to].received == before; turns++)
        drive(m, n);
    return m[to].received == before + 1;
}

/* Sooner or later; a busy machine takes its time. */
static bool arrives_at_last(struct member *m, unsigned n, unsigned from, unsigned to)
{
    uint64_t end = now_ns() + WAIT_NS;
    while (now_ns() < end) {
        if (arrives(m, n, from, to, false))
            return true;
    }
    return false;
}

static void many__nobody_asks_before_a_qp_is_connected(void **state)
{
    (void)state;
    struct member m[2];
    make(&m[0], 1);
    make(&m[1], 2);
    drive_for(m, 2, 150);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(m[i].port->ops->deadline(m[i].port), UINT64_MAX);
        assert_int_equal(count_of(&m[i], "leader_asked"), 0);
    }
    /* Nor when the last has gone. */
    port_udp_expect(m[1].port, false, 1);
    assert_true(until(m, 2, 1, "leader_asked", 1));
    port_udp_expect(m[1].port, false, -1);
    drive_for(m, 2, 300);
    assert_int_equal(m[1].port->ops->deadline(m[1].port), UINT64_MAX);
    close_member(&m[0]);
    close_member(&m[1]);
}

static void many__leader_that_runs_is_left_alone(void **state)
{
    (void)state;
    struct member m[3];
    for (unsigned i = 0; i < 3; i++) {
        make(&m[i], i);
        port_udp_expect(m[i].port, false, 1);
        port_udp_expect(m[i].port, true, 1);
    }
    uint64_t asked = 0, start = now_ns();
    drive_for(m, 3, 1500);
    assert_true(until(m, 3, 0, "leader_asked", 4)); /* on a busy machine later */
    uint64_t ms = (now_ns() - start) / 1000000;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(count_of(&m[i], "leader_stalled"), 0);
        assert_int_equal(count_of(&m[i], "leader_moved"), 0);
        assert_int_equal(count_of(&m[i], "udp_rx_packets"), 0);
        asked += count_of(&m[i], "leader_asked");
    }
    /* Two families, about ten questions a second each, three members or not. */
    assert_in_range(asked, 8, 60 * ms / 1500);
    for (unsigned i = 0; i < 3; i++)
        close_member(&m[i]);
}

static void many__stalled_leader_is_replaced(void **state)
{
    (void)state;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        struct member m[MAX_PORTS] = {0};
        for (unsigned i = 0; i < 4; i++)
            make(&m[i], i);
        m[0].stopped = m[1].stopped = true;
        assert_false(arrives(m, 4, 3, 2, v6));
        port_udp_expect(m[2].port, v6, 1);
        assert_true(until(m, 4, 2, "leader_moved", 1));
        assert_true(arrives(m, 4, 3, 2, v6));
        assert_true(arrives(m, 4, 2, 3, v6));
        /* A newcomer changes nothing. */
        make(&m[4], 77);
        assert_true(arrives(m, 5, 3, 4, v6));
        assert_true(arrives(m, 5, 4, 2, v6));
        /* Who goes on is a member like others. */
        m[0].stopped = m[1].stopped = false;
        assert_true(arrives(m, 5, 3, 0, v6));
        assert_true(arrives(m, 5, 0, 2, v6));
        drive_for(m, 5, 200);
        assert_int_equal(count_of(&m[2], "leader_moved"), 1);
        /* Another one is asked for its part when the new leader stops. */
        m[2].stopped = true;
        port_udp_expect(m[0].port, v6, 1);
        assert_true(until(m, 5, 0, "leader_moved", 1));
        assert_true(arrives(m, 5, 3, 0, v6));
        assert_true(arrives(m, 5, 0, 4, v6));
        for (unsigned i = 0; i < 5; i++)
            close_member(&m[i]);
    }
}

/* The kernel puts the last member where one closes: places change behind everybody's back. */
static void many__places_change_when_members_go(void **state)
{
    (void)state;
    struct member m[MAX_PORTS] = {0};
    for (unsigned i = 0; i < MAX_PORTS; i++)
        make(&m[i], i);
    for (unsigned i = 2; i < MAX_PORTS; i++)
        port_udp_expect(m[i].port, false, 1);
    m[0].stopped = m[1].stopped = true;
    close_member(&m[2]);
    for (unsigned i = 3; i < MAX_PORTS; i++)
        assert_true(arrives_at_last(m, MAX_PORTS, 3, i));
    /* Whoever the leader is now, it goes; twice. */
    for (unsigned gone = 5; gone > 3; gone--) {
        close_member(&m[gone]);
        for (unsigned i = 3; i < gone; i++)
            assert_true(arrives_at_last(m, MAX_PORTS, 3, i));
    }
    for (unsigned i = 0; i < MAX_PORTS; i++)
        close_member(&m[i]);
}

/* Bytes that look like a question's answer, from anybody. */
static void many__forged_answers_count_for_nothing(void **state)
{
    (void)state;
    struct member m[2];
    make(&m[0], 0);
    make(&m[1], 1);
    port_udp_expect(m[1].port, false, 1);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(TEST_UDP_PORT),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint32_t slot = port_udp_slot(m[1].port);
    assert_true(until(m, 2, 1, "leader_asked", 1));
    drive_for(m, 2, 10);
    /* The last thing that the leader passes on: an answer to much that was never asked. */
    const uint8_t far[28] = {[0] = 0xfe, [5] = slot >> 2, [6] = slot << 6, [13] = 0x10, [23] = 1};
    sendto(fd, far, sizeof(far), 0, (struct sockaddr *)&to, sizeof(to));
    drive(m, 2);
    m[0].stopped = true;
    uint64_t end = now_ns() + WAIT_NS;
    while (count_of(&m[1], "leader_moved") == 0 && now_ns() < end) {
        for (unsigned kind = 0xfe; kind <= 0xff; kind++) {
            uint8_t b[28] = {[0] = (uint8_t)kind, [3] = 1, [5] = slot >> 2, [6] = slot << 6};
            b[15] = 255;
            sendto(fd, b, sizeof(b), 0, (struct sockaddr *)&to, sizeof(to));
        }
        drive(m, 2);
    }
    assert_int_equal(count_of(&m[1], "leader_moved"), 1);
    assert_true(arrives(m, 2, 1, 1, false));
    close(fd);
    close_member(&m[0]);
    close_member(&m[1]);
}

/* m[1] has a socket for the source, then stops; the same source has packets for m[2]. */
static void many__flow_of_a_stopped_process_is_rescued(void **state)
{
    (void)state;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        const struct nic_path *path = v6 != 0 ? &path6 : &path4;
        struct member m[3];
        for (unsigned i = 0; i < 3; i++)
            make(&m[i], i);
        send_packets(&m[0], path, port_udp_slot(m[1].port), 20);
        drive_for(m, 3, 20);
        assert_int_equal(count_of(&m[1], "flow_opened"), 1);
        assert_int_equal(m[1].received, 20);
        m[1].stopped = true;
        send_packets(&m[0], path, port_udp_slot(m[2].port), 2);
        drive_for(m, 3, 20);
        assert_int_equal(m[2].received, 0);
        port_udp_expect(m[2].port, v6, 1);
        for (uint64_t end = now_ns() + WAIT_NS; count_of(&m[2], "flow_rescued") == 0;) {
            assert_true(now_ns() < end);
            port_udp_suspect(m[2].port);
            drive_for(m, 3, 10);
        }
        send_packets(&m[0], path, port_udp_slot(m[2].port), 2);
        drive_for(m, 3, 20);
        assert_int_equal(m[2].received, 2);
        /* The other's are passed on, and wait for it. */
        send_packets(&m[0], path, port_udp_slot(m[1].port), 3);
        drive_for(m, 3, 20);
        assert_int_equal(count_of(&m[2], "slot_forwarded"), 3);
        send_packets(&m[0], path, port_udp_slot(m[2].port), 1);
        drive_for(m, 3, 20);
        assert_int_equal(m[2].received, 3);
        m[1].stopped = false;
        drive_for(m, 3, 20);
        assert_int_equal(m[1].received, 23);
        for (unsigned i = 0; i < 3; i++)
            close_member(&m[i]);
    }
}

/* The same for one that only answers, and had packets of that source before. */
static void many__flow_is_rescued_by_who_only_answers(void **state)
{
    (void)state;
    struct member m[3];
    for (unsigned i = 0; i < 3; i++)
        make(&m[i], i);
    send_packets(&m[0], &path4, port_udp_slot(m[2].port), 2);
    drive_for(m, 3, 20);
    assert_int_equal(m[2].received, 2);
    send_packets(&m[0], &path4, port_udp_slot(m[1].port), 20);
    drive_for(m, 3, 20);
    assert_int_equal(count_of(&m[1], "flow_opened"), 1);
    m[1].stopped = true;
    port_udp_expect(m[2].port, false, 1);
    /* A requester elsewhere sends again and again. */
    for (uint64_t end = now_ns() + WAIT_NS; m[2].received < 3;) {
        assert_true(now_ns() < end);
        send_packets(&m[0], &path4, port_udp_slot(m[2].port), 1);
        drive_for(m, 3, 50);
    }
    assert_int_equal(count_of(&m[2], "flow_rescued"), 1);
    for (unsigned i = 0; i < 3; i++)
        close_member(&m[i]);
}

/* Sockets with packets in them whose owner reads them, and none at all, are let alone. */
static void many__flows_that_are_read_stay(void **state)
{
    (void)state;
    struct member m[3];
    for (unsigned i = 0; i < 3; i++)
        make(&m[i], i);
    port_udp_expect(m[2].port, false, 1);
    for (unsigned i = 0; i < 20; i++) {
        port_udp_suspect(m[2].port);
        send_packets(&m[0], &path4, port_udp_slot(m[1].port), 20);
        drive_for(m, 3, 10);
    }
    assert_int_equal(count_of(&m[2], "flow_rescued"), 0);
    assert_int_equal(m[1].received, 400);
    for (unsigned i = 0; i < 3; i++)
        close_member(&m[i]);
}

/* Stopped for longer than a flow may be idle: packets came meanwhile, and are read before its
 * socket goes. */
static void many__idle_flow_is_read_before_it_goes(void **state)
{
    (void)state;
    enum { PACKETS = 60 };
    struct member m[2];
    for (unsigned i = 0; i < 2; i++)
        make(&m[i], i);
    struct nic_path path = path4, other = path4;
    other.udp_sport++;
    send_packets(&m[0], &path, port_udp_slot(m[1].port), 20);
    assert_true(until(m, 2, 1, "flow_opened", 1));
    drive_for(m, 2, 10); /* its mark, too */
    assert_int_equal(m[1].received, 20);
    m[1].stopped = true;
    /* First those for which another flow is made, which has a look at the old ones. */
    send_packets(&m[0], &other, port_udp_slot(m[1].port), 20);
    assert_true(until(m, 2, 0, "slot_forwarded", 40));
    for (unsigned i = 0; i < PACKETS; i++)
        send_packets(&m[0], &path, port_udp_slot(m[1].port), 1);
    for (unsigned i = 0; i < 10; i++)
        m[1].port->ops->receive(m[1].port, now_ns() + 60000000000u, &m[1].r, 64);
    assert_int_equal(count_of(&m[1], "flow_opened"), 2);
    assert_int_equal(count_of(&m[1], "flow_closed"), 1);
    assert_int_equal(m[1].received, 40 + PACKETS);
    for (unsigned i = 0; i < 2; i++)
        close_member(&m[i]);
}

/* A quarter of the descriptors are for flows: the one that was quiet for longest is given up. */
static void many__flows_are_few_where_descriptors_are(void **state)
{
    (void)state;
    enum { FILES = 160, FLOWS = FILES / 4, SOURCES = FLOWS + 10 };
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = FILES;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct member m[2];
    for (unsigned i = 0; i < 2; i++)
        make(&m[i], i);
    struct nic_path path = path4;
    for (unsigned i = 0; i < SOURCES; i++) {
        path.udp_sport = (uint16_t)(SPORT + i);
        send_packets(&m[0], &path, port_udp_slot(m[1].port), 20);
        assert_true(until(m, 2, 1, "udp_rx_packets", 20 * (i + 1)));
        assert_int_equal(count_of(&m[1], "flow_opened"), i + 1);
        assert_int_equal(count_of(&m[1], "flow_closed"), i < FLOWS ? 0 : i + 1 - FLOWS);
    }
    /* The last one still has its socket, the first one has none and is heard all the same. */
    drive_for(m, 2, 10); /* its mark, too */
    uint64_t forwarded = count_of(&m[0], "slot_forwarded");
    send_packets(&m[0], &path, port_udp_slot(m[1].port), 3);
    assert_true(until(m, 2, 1, "udp_rx_packets", 20 * SOURCES + 3));
    assert_int_equal(count_of(&m[0], "slot_forwarded"), forwarded);
    path.udp_sport = SPORT;
    send_packets(&m[0], &path, port_udp_slot(m[1].port), 3);
    assert_true(until(m, 2, 1, "udp_rx_packets", 20 * SOURCES + 6));
    assert_int_equal(count_of(&m[0], "slot_forwarded"), forwarded + 3);
    assert_int_equal(count_of(&m[1], "flow_failed"), 0);
    for (unsigned i = 0; i < 2; i++)
        close_member(&m[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static int squat(uint32_t slot)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena/slot/%u", slot);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, length) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Who serves many that come and go does not keep all of their flows for the time that few have. */
static void many__idle_flows_go_sooner_where_they_are_many(void **state)
{
    (void)state;
    static const struct {
        unsigned seconds, closed; /* when another one comes after so long: so many in all */
    } rows[] = {
        {5,  0 },
        {8,  3 },
        {11, 20},
        {16, 37},
        {31, 48},
    };
    enum { FLOWS = 48 };
    struct member m[2];
    for (unsigned i = 0; i < 2; i++)
        make(&m[i], i);
    struct nic_path path = path4;
    for (unsigned i = 0; i < FLOWS; i++) {
        path.udp_sport = (uint16_t)(SPORT + i);
        send_packets(&m[0], &path, port_udp_slot(m[1].port), 20);
        assert_true(until(m, 2, 1, "udp_rx_packets", 20 * (i + 1)));
    }
    assert_int_equal(count_of(&m[1], "flow_opened"), FLOWS);
    uint64_t then = now_ns();
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        path.udp_sport++;
        send_packets(&m[0], &path, port_udp_slot(m[1].port), 20);
        while (count_of(&m[1], "flow_opened") == FLOWS + i) {
            uint64_t later = then + rows[i].seconds * 1000000000ull;
            m[0].port->ops->receive(m[0].port, now_ns(), &m[0].r, 64);
            m[1].port->ops->receive(m[1].port, later, &m[1].r, 64);
        }
        assert_int_equal(count_of(&m[1], "flow_closed"), rows[i].closed);
    }
    for (unsigned i = 0; i < 2; i++)
        close_member(&m[i]);
}

static void many__squatted_slots_are_skipped(void **state)
{
    (void)state;
    static int fd[SLOTS];
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < SLOTS + 64)
        skip();
    for (uint32_t i = 0; i < SLOTS; i++)
        fd[i] = squat(i);
    struct member m;
    const struct port_udp_config c = {.seed = 3};
    assert_int_equal(open_member(&m, &c), -ENOSPC);
    /* Bound without listening or not: a name is a name. One is let go. */
    close(fd[700]);
    assert_int_equal(open_member(&m, &c), 0);
    assert_int_equal(port_udp_slot(m.port), 700);
    assert_in_range(count_of(&m, "slot_skipped"), 1, SLOTS - 1);
    /* A squatter gets nothing: nobody listens there. */
    send_packets(&m, &path4, 701, 2);
    drive_for(&m, 1, 10);
    assert_int_equal(count_of(&m, "slot_drop_unknown"), 2);
    assert_true(arrives(&m, 1, 0, 0, false));
    close_member(&m);
    for (uint32_t i = 0; i < SLOTS; i++)
        if (i != 700)
            close(fd[i]);
}

/* Another user listens at a slot: what does it get? Its exit code. */
static int listen_as_nobody(uint32_t slot, int ready)
{
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        return 9;
    int fd = squat(slot), got = 0;
    char b[256];
    if (fd < 0 || listen(fd, 8) != 0 || write(ready, "x", 1) != 1)
        return 8;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 3000) == 1 && (p.fd = accept(fd, NULL, NULL)) >= 0 && poll(&p, 1, 3000) == 1)
        got = (int)recv(p.fd, b, sizeof(b), 0);
    return got > 0 ? 1 : 0;
}

static void many__listener_of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    for (unsigned allowed = 0; allowed < 2; allowed++) {
        struct port_udp_config c = {.allow_uid = {NOBODY}, .allow_uids = allowed};
        struct member m;
        int ready[2], status;
        char x;
        assert_int_equal(open_member(&m, &c), 0);
        uint32_t slot = (port_udp_slot(m.port) + 1) % SLOTS;
        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        if (pid == 0) {
            m.port->ops->abandon(m.port);
            _exit(listen_as_nobody(slot, ready[1]));
        }
        close(ready[1]);
        bool there = read(ready[0], &x, 1) == 1;
        send_packets(&m, &path4, slot, 3);
        drive_for(&m, 1, 20);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!there && WEXITSTATUS(status) == 9)
            skip(); /* a user namespace with one user */
        assert_int_equal(status, allowed != 0 ? 0x100 : 0);
        assert_int_equal(count_of(&m, "slot_drop_uid"), allowed != 0 ? 0 : 3);
        assert_int_equal(count_of(&m, "slot_forwarded"), allowed != 0 ? 3 : 0);
        close(ready[0]);
        close_member(&m);
    }
}

static void many__slot_of_the_dead_is_used_again(void **state)
{
    (void)state;
    struct member m[2];
    make(&m[0], 1);
    int ready[2];
    uint32_t slot;
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        if (pid == 0) {
            m[0].port->ops->abandon(m[0].port);
            make(&m[1], 5);
            slot = port_udp_slot(m[1].port);
            (void)!write(ready[1], &slot, sizeof(slot));
            pause();
            _exit(0);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &slot, sizeof(slot)), sizeof(slot));
        send_packets(&m[0], &path4, slot, 3);
        drive_for(m, 1, 10);
        assert_int_equal(count_of(&m[0], "slot_forwarded"), 6 * round + 3);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(ready[0]);
        /* The next one at that place hears from us, though we know the dead one's connection. */
        make(&m[1], 5);
        assert_int_equal(port_udp_slot(m[1].port), slot);
        send_packets(&m[0], &path4, slot, 3);
        drive_for(m, 2, 10);
        assert_int_equal(m[1].received, 3);
        close_member(&m[1]);
    }
    close_member(&m[0]);
}

static unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* Processes that come, get a few packets by way of us, and go. */
static void many__nothing_of_the_dead_is_kept(void **state)
{
    (void)state;
    struct member m[1 + MAX_PORTS];
    make(&m[0], 1);
    drive_for(m, 1, 10);
    unsigned before = descriptors();
    for (unsigned i = 1; i <= MAX_PORTS; i++) {
        make(&m[i], 5 + i);
        send_packets(&m[0], &path4, port_udp_slot(m[i].port), 3);
    }
    drive_for(m, 1 + MAX_PORTS, 10);
    assert_int_equal(count_of(&m[0], "slot_forwarded"), 3 * MAX_PORTS);
    for (unsigned i = 1; i <= MAX_PORTS; i++) {
        assert_int_equal(m[i].received, 3);
        close_member(&m[i]);
    }
    drive_for(m, 1, 10);
    assert_int_equal(descriptors(), before + 1); /* from which it sent */
    close_member(&m[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many__nobody_asks_before_a_qp_is_connected),
        cmocka_unit_test(many__leader_that_runs_is_left_alone),
        cmocka_unit_test(many__stalled_leader_is_replaced),
        cmocka_unit_test(many__places_change_when_members_go),
        cmocka_unit_test(many__forged_answers_count_for_nothing),
        cmocka_unit_test(many__flow_of_a_stopped_process_is_rescued),
        cmocka_unit_test(many__flow_is_rescued_by_who_only_answers),
        cmocka_unit_test(many__flows_that_are_read_stay),
        cmocka_unit_test(many__idle_flow_is_read_before_it_goes),
        cmocka_unit_test(many__flows_are_few_where_descriptors_are),
        cmocka_unit_test(many__idle_flows_go_sooner_where_they_are_many),
        cmocka_unit_test(many__squatted_slots_are_skipped),
        cmocka_unit_test(many__listener_of_another_user),
        cmocka_unit_test(many__slot_of_the_dead_is_used_again),
        cmocka_unit_test(many__nothing_of_the_dead_is_kept),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
