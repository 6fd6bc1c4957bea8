/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_service.c: which process of an address gets a MAD: listeners by name, connections by
 * the slot in their communication id; names that others hold, and of processes that die.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "descriptors.h"
#include "members.h"
#include "private_net.h"

enum { MEMBERS = 3, LISTENERS = 100, NOBODY = 65534 };
static const uint64_t TCP = 0x01060000; /* the port space */

static struct member m[MEMBERS];

static int make_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++)
        make(&m[i], i + 1);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++)
        close_member(&m[i]);
    return 0;
}

static struct udp_service *claim(unsigned who, uint64_t id, const struct net_addr *addr)
{
    struct udp_service *s;
    assert_int_equal(port_udp_service_claim(m[who].port, id, addr, &s), 0);
    return s;
}

static uint32_t id_of(unsigned who, uint32_t number)
{
    return port_udp_slot(m[who].port) << 22 | number;
}

static int request_reaches(unsigned attribute, unsigned from, const struct net_addr *to,
                           uint64_t service)
{
    uint8_t mad[MAD_BYTES];
    mad_make(mad, attribute, id_of(from, 7), 0, service);
    return mad_reaches(m, MEMBERS, from, to, mad);
}

/* Bytes of a packet, BTH .. ICRC, as the parser sees them. */
static void packet_make(uint8_t packet[280], const uint8_t mad[MAD_BYTES])
{
    memset(packet, 0, 280);
    packet[0] = opcode_make(SERVICE_UD, OP_SEND_ONLY);
    packet[7] = 1;
    memcpy(packet + 20, mad, MAD_BYTES);
}

static void parse__messages(void **state)
{
    (void)state;
    static const struct {
        unsigned attribute;
        enum udp_route_kind kind;
        uint32_t slot; /* of the ids 5 << 22 (first) and 9 << 22 (second) */
    } rows[] = {
        {CM_REQ,      UDP_ROUTE_SERVICE, 0},
        {CM_SIDR_REQ, UDP_ROUTE_SERVICE, 0},
        {CM_MRA,      UDP_ROUTE_SLOT,    9},
        {CM_REJ,      UDP_ROUTE_SLOT,    9},
        {CM_REP,      UDP_ROUTE_SLOT,    9},
        {CM_RTU,      UDP_ROUTE_SLOT,    9},
        {CM_DREQ,     UDP_ROUTE_SLOT,    9},
        {CM_DREP,     UDP_ROUTE_SLOT,    9},
        {CM_LAP,      UDP_ROUTE_SLOT,    9},
        {CM_APR,      UDP_ROUTE_SLOT,    9},
        {CM_SIDR_REP, UDP_ROUTE_SLOT,    5},
        {0,           UDP_ROUTE_OWN,     0},
        {1,           UDP_ROUTE_OWN,     0}, /* ClassPortInfo */
        {0x0f,        UDP_ROUTE_OWN,     0},
        {0x1b,        UDP_ROUTE_OWN,     0},
        {0x1011,      UDP_ROUTE_OWN,     0},
        {0xffff,      UDP_ROUTE_OWN,     0},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t mad[MAD_BYTES], packet[280];
        struct udp_route r;
        mad_make(mad, rows[i].attribute, 5u << 22 | 3, 9u << 22 | 4, TCP + 1);
        packet_make(packet, mad);
        udp_service_parse(packet, sizeof(packet), &r);
        assert_int_equal(r.kind, rows[i].kind);
        assert_int_equal(r.slot, rows[i].slot);
        assert_int_equal(r.service_id, rows[i].kind == UDP_ROUTE_SERVICE ? TCP + 1 : 0);
    }
}

static void parse__what_is_no_message(void **state)
{
    (void)state;
    static const struct {
        unsigned at;
        uint8_t value;
        uint32_t n;
    } rows[] = {
        {0,  0x65, 280}, /* with immediate data */
        {0,  0x04, 280}, /* RC */
        {20, 2,    280}, /* base version */
        {21, 3,    280}, /* class: subnet administration */
        {22, 1,    280}, /* class version */
        {23, 0x81, 280}, /* method */
        {0,  0x64, 279},
        {0,  0x64, 281},
        {0,  0x64, 52 }, /* ends before the second id */
        {0,  0x64, 8  },
        {0,  0x64, 0  },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t mad[MAD_BYTES], packet[280];
        struct udp_route r;
        mad_make(mad, CM_REQ, 1, 0, TCP);
        packet_make(packet, mad);
        packet[rows[i].at] = rows[i].value;
        /* No byte more than there is: the sanitizer looks. */
        uint8_t *exact = malloc(rows[i].n + 1);
        memcpy(exact, packet, rows[i].n < 280 ? rows[i].n : 280);
        udp_service_parse(exact, rows[i].n, &r);
        assert_int_equal(r.kind, UDP_ROUTE_OWN);
        free(exact);
    }
}

static void request__goes_to_who_listens(void **state)
{
    (void)state;
    const struct net_addr *const binds[] = {&local4, &any4, NULL, &local6, &any6, NULL};
    for (unsigned who = 0; who < MEMBERS; who++) {
        for (unsigned i = 0; i < 6; i++) {
            const struct net_addr *to = i < 3 ? &local4 : &local6;
            struct udp_service *s = claim(who, TCP + 18515, binds[i]);
            for (unsigned from = 0; from < MEMBERS; from++) {
                assert_int_equal(request_reaches(CM_REQ, from, to, TCP + 18515), (int)who);
                assert_int_equal(request_reaches(CM_SIDR_REQ, from, to, TCP + 18515), (int)who);
            }
            port_udp_service_release(m[who].port, s);
        }
    }
    assert_int_equal(count_of(&m[0], "service_unknown"), 0);
    assert_true(count_of(&m[0], "service_forwarded") >= 72);
    assert_int_equal(count_of(&m[0], "service_squatted"), 0);
}

/* Whoever received it has it, for its CM to refuse; nobody else hears of it. */
static void request__nobody_listens(void **state)
{
    (void)state;
    struct udp_service *a = claim(1, TCP + 1, &other4), *b = claim(2, TCP + 2, &any6);
    assert_int_equal(request_reaches(CM_REQ, 2, &local4, TCP + 1), 0); /* another address */
    assert_int_equal(request_reaches(CM_REQ, 1, &local4, TCP + 2), 0); /* another family */
    assert_int_equal(request_reaches(CM_REQ, 1, &local4, TCP + 3), 0);
    assert_int_equal(request_reaches(CM_REQ, 1, &local6, TCP + 1), 0);
    assert_int_equal(count_of(&m[0], "service_unknown"), 4);
    port_udp_service_release(m[1].port, a);
    port_udp_service_release(m[2].port, b);
    assert_int_equal(request_reaches(CM_REQ, 1, &local6, TCP + 2), 0);
}

static void request__two_addresses_two_processes(void **state)
{
    (void)state;
    claim(1, TCP + 1, &local4);
    claim(2, TCP + 1, &other4);
    assert_int_equal(request_reaches(CM_REQ, 0, &local4, TCP + 1), 1);
    assert_int_equal(request_reaches(CM_REQ, 0, &other4, TCP + 1), 2);
}

/* As with TCP ports. */
static void claim__what_excludes_what(void **state)
{
    (void)state;
    static const struct {
        const struct net_addr *first, *second;
        int want;
    } rows[] = {
        {&local4, &other4, 0          },
        {&local4, &local6, 0          },
        {&local4, &any6,   0          },
        {&any4,   &any6,   0          },
        {&any4,   &local6, 0          },
        {&any6,   &local4, 0          },
        {&local4, &local4, -EADDRINUSE},
        {&local6, &local6, -EADDRINUSE},
        {&local4, &any4,   -EADDRINUSE},
        {&local6, &any6,   -EADDRINUSE},
        {&local4, NULL,    -EADDRINUSE},
        {&local6, NULL,    -EADDRINUSE},
        {&any4,   &local4, -EADDRINUSE},
        {&any6,   &local6, -EADDRINUSE},
        {&any4,   &any4,   -EADDRINUSE},
        {&any4,   NULL,    -EADDRINUSE},
        {&any6,   NULL,    -EADDRINUSE},
        {NULL,    &local4, -EADDRINUSE},
        {NULL,    &any4,   -EADDRINUSE},
        {NULL,    &any6,   -EADDRINUSE},
        {NULL,    NULL,    -EADDRINUSE},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned second = 0; second < 2; second++) { /* the same process, and another */
            struct udp_service *a = claim(0, TCP + 5, rows[i].first), *b, *c;
            assert_int_equal(port_udp_service_claim(m[second].port, TCP + 5, rows[i].second, &b),
                             rows[i].want);
            if (rows[i].want == 0)
                port_udp_service_release(m[second].port, b);
            /* What did not work left nothing; another service is another matter. */
            c = claim(second, TCP + 6, rows[i].second);
            port_udp_service_release(m[second].port, c);
            port_udp_service_release(m[0].port, a);
            b = claim(second, TCP + 5, rows[i].second);
            port_udp_service_release(m[second].port, b);
        }
    }
    drive_for(m, MEMBERS, 1);
}

static void claim__free_one_of_a_range(void **state)
{
    (void)state;
    struct udp_service *s[8], *none;
    uint64_t id, seen = 0;
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(
            port_udp_service_claim_free(m[i % 2].port, TCP, 50000, 50007, NULL, &id, &s[i]), 0);
        assert_in_range(id, TCP + 50000, TCP + 50007);
        seen |= 1u << (id - TCP - 50000);
    }
    assert_int_equal(seen, 0xff);
    assert_int_equal(port_udp_service_claim_free(m[2].port, TCP, 50000, 50007, &local4, &id, &none),
                     -EADDRINUSE);
    port_udp_service_release(m[1].port, s[3]);
    assert_int_equal(port_udp_service_claim_free(m[2].port, TCP, 50000, 50007, &local4, &id, &none),
                     0);
}

static void reply__goes_to_the_slot_of_its_id(void **state)
{
    (void)state;
    static const unsigned attributes[] = {CM_MRA,  CM_REJ,  CM_REP, CM_RTU,
                                          CM_DREQ, CM_DREP, CM_LAP, CM_APR};
    uint8_t mad[MAD_BYTES];
    for (unsigned to = 0; to < MEMBERS; to++) {
        for (unsigned i = 0; i < 8; i++) {
            mad_make(mad, attributes[i], id_of((to + 1) % MEMBERS, 3), id_of(to, i), 0);
            assert_int_equal(mad_reaches(m, MEMBERS, 1, i % 2 ? &local4 : &local6, mad), (int)to);
        }
        mad_make(mad, CM_SIDR_REP, id_of(to, 9), id_of((to + 1) % MEMBERS, 3), 0);
        assert_int_equal(mad_reaches(m, MEMBERS, 1, &local4, mad), (int)to);
    }
    assert_int_equal(count_of(&m[0], "service_unknown"), 0);
    assert_int_equal(count_of(&m[0], "slot_drop_unknown"), 0);
    /* One source, MADs for all: no reason for a flow of anybody's. */
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_int_equal(count_of(&m[i], "flow_opened"), 0);
}

/* The process of the id has gone: the peer gets an answer all the same. */
static void reply__nobody_owns_the_slot(void **state)
{
    (void)state;
    uint8_t mad[MAD_BYTES];
    uint32_t gone = id_of(2, 5);
    mad_make(mad, CM_DREQ, 1, gone, 0);
    assert_int_equal(mad_reaches(m, MEMBERS, 1, &local4, mad), 2);
    close_member(&m[2]);
    assert_int_equal(mad_reaches(m, 2, 1, &local4, mad), 0);
    assert_int_equal(count_of(&m[0], "service_unknown"), 1);
    assert_int_equal(count_of(&m[0], "slot_drop_unknown"), 0);
}

/* IBA 12.6.7: a REJ of who waited in vain names only its own id. */
static void reject__without_an_id_follows_its_request(void **state)
{
    (void)state;
    uint8_t mad[MAD_BYTES];
    claim(2, TCP + 1, &local4);
    mad_make(mad, CM_REJ, id_of(1, 7), 0, 0);
    assert_int_equal(mad_reaches(m, MEMBERS, 1, &local4, mad), 0);
    assert_int_equal(request_reaches(CM_REQ, 1, &local4, TCP + 1), 2);
    assert_int_equal(mad_reaches(m, MEMBERS, 1, &local4, mad), 2);
    assert_int_equal(mad_reaches(m, MEMBERS, 1, &local6, mad), 0); /* another's */
    mad_make(mad, CM_REJ, id_of(1, 8), 0, 0);
    assert_int_equal(mad_reaches(m, MEMBERS, 1, &local4, mad), 0);
}

/* A process that says it passes something on to us. */
static void passed_on(unsigned to, const uint8_t mad[MAD_BYTES])
{
    struct port_udp *u = udp_of(m[to].port);
    uint8_t packet[280];
    packet_make(packet, mad);
    struct udp_run run = {
        .src = local4, .dst = local4, .sport = GSI_SPORT, .segment = sizeof(packet)};
    int fd = udp_slot_dial(u, u->slot);
    assert_true(fd >= 0);
    assert_int_equal(udp_slot_pass(fd, &run, packet, sizeof(packet), 0), 0);
    close(fd);
    drive_for(m, MEMBERS, 2);
}

static void passed_on__never_twice(void **state)
{
    (void)state;
    uint8_t mad[MAD_BYTES];
    claim(2, TCP + 1, &local4);
    any_icrc = true;
    const char *const received = "udp_rx_packets";
    /* To one whose it is not: lost. */
    mad_make(mad, CM_REP, 1, id_of(2, 1), 0);
    passed_on(1, mad);
    assert_int_equal(count_of(&m[1], "slot_drop_malformed"), 1);
    mad_make(mad, 0x30, 1, id_of(1, 1), 0);
    passed_on(1, mad);
    assert_int_equal(count_of(&m[1], "slot_drop_malformed"), 2);
    assert_int_equal(count_of(&m[1], received), 0);
    /* Who listened has just stopped: its CM refuses. */
    mad_make(mad, CM_REQ, 1, 0, TCP + 1);
    passed_on(1, mad);
    mad_make(mad, CM_REP, 1, id_of(1, 1), 0);
    passed_on(1, mad);
    assert_int_equal(count_of(&m[1], received), 2);
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_int_equal(count_of(&m[i], "service_forwarded") + count_of(&m[i], "slot_forwarded"),
                         0);
    assert_int_equal(count_of(&m[2], received), 0);
    any_icrc = false;
}

/* A child with these names, as this user, until it is killed. */
static pid_t child_holds(uid_t uid, const char *const *names, unsigned n)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0; i < MEMBERS; i++)
            m[i].port->ops->abandon(m[i].port);
        bool ok = uid == 0 || setresuid(uid, uid, uid) == 0;
        ok = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ok;
        for (unsigned i = 0; i < n; i++) {
            struct sockaddr_un a = {.sun_family = AF_UNIX};
            int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
            memcpy(a.sun_path + 1, names[i], strlen(names[i]));
            socklen_t length =
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(names[i]));
            ok = ok && bind(fd, (struct sockaddr *)&a, length) == 0 && listen(fd, 8) == 0;
        }
        (void)!write(ready[1], &ok, sizeof(ok));
        for (;;)
            pause();
    }
    bool ok = false;
    assert_int_equal(read(ready[0], &ok, sizeof(ok)), sizeof(ok));
    assert_true(ok);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void child_end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A process of another user, who shares the port: it listens to service 1, asks for service 2, and
 * says through the pipe which slot it has, then which message came. */
static void guest_main(int out)
{
    const struct port_udp_config c = {.seed = 99, .udp_port = TEST_UDP_PORT, .allow_uids = 1};
    struct member me = {.r.packets = member_packets};
    struct udp_service *s;
    uint8_t mad[MAD_BYTES];
    for (unsigned i = 0; i < MEMBERS; i++)
        m[i].port->ops->abandon(m[i].port);
    if (setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        port_udp_create(&c, &me.port) != 0 ||
        port_udp_service_claim(me.port, TCP + 1, NULL, &s) != 0)
        _exit(1);
    uint32_t word = port_udp_slot(me.port);
    (void)!write(out, &word, sizeof(word));
    for (unsigned seen = 0;;) {
        drive_for(&me, 1, 1);
        if (me.mads == seen)
            continue;
        seen = me.mads;
        word = get_be16(me.mad + 16);
        (void)!write(out, &word, sizeof(word));
        if (word == CM_REQ) {
            mad_make(mad, CM_REQ, port_udp_slot(me.port) << 22 | 1, 0, TCP + 2);
            mad_send(&me, &local4, mad);
        }
    }
}

static uint32_t guest_says(int in)
{
    uint32_t word = UINT32_MAX;
    for (uint64_t end = now_ns() + 30000000000u; now_ns() < end; poll(NULL, 0, 1)) {
        drive(m, MEMBERS);
        if (read(in, &word, sizeof(word)) == sizeof(word))
            break;
    }
    return word;
}

static void request__to_and_from_a_guest(void **state)
{
    (void)state;
    int words[2];
    uint8_t mad[MAD_BYTES];
    if (geteuid() != 0)
        skip();
    close_all(NULL);
    for (unsigned i = 0; i < MEMBERS; i++) {
        const struct port_udp_config c = {
            .seed = i, .udp_port = TEST_UDP_PORT, .allow_uid = {NOBODY}, .allow_uids = 1};
        m[i] = (struct member){.r.packets = member_packets};
        assert_int_equal(port_udp_create(&c, &m[i].port), 0);
    }
    claim(1, TCP + 2, &local4);
    assert_int_equal(pipe2(words, O_CLOEXEC | O_NONBLOCK), 0);
    pid_t child = fork();
    if (child == 0)
        guest_main(words[1]);
    uint32_t slot = guest_says(words[0]);
    assert_true(slot < UDP_SLOTS);
    struct udp_service *s;
    assert_int_equal(port_udp_service_claim(m[1].port, TCP + 1, &local4, &s), -EADDRINUSE);
    mad_make(mad, CM_REQ, id_of(2, 1), 0, TCP + 1);
    mad_send(&m[2], &local4, mad);
    assert_int_equal(guest_says(words[0]), CM_REQ);
    for (uint64_t end = now_ns() + 30000000000u; m[1].mads == 0 && now_ns() < end;)
        drive(m, MEMBERS);
    assert_int_equal(get_be16(m[1].mad + 16), CM_REQ);
    assert_int_equal(port_udp_id_slot(get_be32(m[1].mad + 24)), slot);
    mad_make(mad, CM_REP, id_of(1, 1), slot << 22 | 1, 0);
    mad_send(&m[1], &local6, mad);
    assert_int_equal(guest_says(words[0]), CM_REP);
    child_end(child);
    assert_int_equal(request_reaches(CM_REQ, 2, &local4, TCP + 1), 0);
    close(words[0]);
    close(words[1]);
}

static void claim__squatters_get_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"verbena/svc/1060001/127.0.0.1", "verbena/svc/1060002/any",
                                        "verbena/svc/1060003/::1"};
    struct udp_service *s;
    char holder[128];
    if (geteuid() != 0)
        skip();
    pid_t child = child_holds(NOBODY, names, 3);
    assert_int_equal(port_udp_service_claim(m[1].port, TCP + 1, &local4, &s), -EADDRINUSE);
    assert_int_equal(count_of(&m[1], "service_squatted"), 1);
    port_udp_service_holder(TCP + 1, &local4, holder, sizeof(holder));
    assert_non_null(strstr(holder, "(uid 65534), process "));
    port_udp_service_holder(TCP + 9, &local4, holder, sizeof(holder));
    assert_string_equal(holder, "");
    /* Nor do they keep others from what they do not hold, or get what is for those. */
    claim(1, TCP + 1, &any4);
    claim(2, TCP + 2, &local4);
    assert_int_equal(request_reaches(CM_REQ, 0, &local4, TCP + 1), 1);
    assert_int_equal(request_reaches(CM_REQ, 0, &local4, TCP + 2), 2);
    assert_int_equal(request_reaches(CM_REQ, 0, &local6, TCP + 3), 0);
    assert_true(count_of(&m[0], "service_squatted") >= 2);
    assert_int_equal(count_of(&m[0], "service_unknown"), 1);
    child_end(child);
}

static void claim__name_of_a_killed_process_is_free(void **state)
{
    (void)state;
    static const char *const names[] = {"verbena/svc/1060001/any"};
    for (unsigned i = 0; i < 20; i++) {
        struct udp_service *s;
        pid_t child = child_holds(0, names, 1);
        assert_int_equal(port_udp_service_claim(m[1].port, TCP + 1, NULL, &s), -EADDRINUSE);
        assert_int_equal(port_udp_service_claim(m[1].port, TCP + 1, &local6, &s), -EADDRINUSE);
        child_end(child);
        port_udp_service_release(m[1].port, claim(1, TCP + 1, NULL));
    }
    assert_int_equal(count_of(&m[1], "service_squatted"), 0);
}

static void claim__hundred_listeners(void **state)
{
    (void)state;
    struct udp_service *s[LISTENERS];
    for (unsigned from = 0; from < 2; from++) /* with the sockets that it sends from */
        assert_int_equal(request_reaches(CM_REQ, from, &local4, TCP), 0);
    unsigned before = open_descriptors();
    for (unsigned i = 0; i < LISTENERS; i++)
        s[i] = claim(i % MEMBERS, TCP + 1000 + i, i % 2 ? NULL : &local4);
    assert_int_equal(open_descriptors(), before + LISTENERS);
    for (unsigned i = 0; i < LISTENERS; i++)
        assert_int_equal(request_reaches(CM_REQ, i % 2, &local4, TCP + 1000 + i),
                         (int)(i % MEMBERS));
    for (unsigned i = 0; i < LISTENERS; i++)
        port_udp_service_release(m[i % MEMBERS].port, s[i]);
    drive_for(m, MEMBERS, 1);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(request_reaches(CM_REQ, 1, &local4, TCP + 1001), 0);
}

/* A burst that its listener has not looked at yet: nothing is lost. */
static void request__many_at_once(void **state)
{
    (void)state;
    claim(2, TCP + 1, NULL);
    m[2].stopped = true;
    for (unsigned i = 0; i < 300; i++) {
        uint8_t mad[MAD_BYTES];
        mad_make(mad, CM_REQ, id_of(1, i), 0, TCP + 1);
        mad_send(&m[1], &local4, mad);
        drive(m, 2);
    }
    m[2].stopped = false;
    for (uint64_t end = now_ns() + 30000000000u; m[2].mads < 300 && now_ns() < end;)
        drive(m, MEMBERS);
    assert_int_equal(m[2].mads, 300);
    assert_int_equal(count_of(&m[0], "service_drop_full"), 0);
}

static void claim__no_descriptor_is_left(void **state)
{
    (void)state;
    struct udp_service *s;
    uint64_t id;
    claim(2, TCP + 1, &local4);
    assert_int_equal(request_reaches(CM_REQ, 1, &local4, TCP + 1), 2);
    use_up_descriptors();
    unsigned before = open_descriptors();
    assert_int_equal(port_udp_service_claim(m[1].port, TCP + 2, &local4, &s), -EMFILE);
    assert_int_equal(port_udp_service_claim_free(m[1].port, TCP, 1, 9, NULL, &id, &s), -EMFILE);
    assert_int_equal(open_descriptors(), before);
    /* Passing on takes one: lost, counted, and the next one is not. */
    uint8_t mad[MAD_BYTES];
    mad_make(mad, CM_REQ, 1, 0, TCP + 1);
    mad_send(&m[1], &local4, mad);
    drive_for(m, MEMBERS, 5);
    assert_int_equal(m[2].mads, 1);
    assert_int_equal(count_of(&m[0], "service_drop_full"), 1);
    give_back_descriptors();
    assert_int_equal(request_reaches(CM_REQ, 1, &local4, TCP + 1), 2);
}

/* What a forked child inherited goes, and what the parent has stays. */
static void claim__fork_closes_the_childs(void **state)
{
    (void)state;
    claim(2, TCP + 1, NULL);
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0; i < MEMBERS; i++)
            m[i].port->ops->abandon(m[i].port);
        unsigned sockets = 0;
        for (int fd = 3; fd < 1024; fd++) {
            int type;
            socklen_t n = sizeof(type);
            sockets += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0;
        }
        _exit(sockets == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(request_reaches(CM_REQ, 1, &local4, TCP + 1), 2);
}

int main(void)
{
#define SERVICE(name) cmocka_unit_test_setup_teardown(name, make_all, close_all)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse__messages),
        cmocka_unit_test(parse__what_is_no_message),
        SERVICE(request__goes_to_who_listens),
        SERVICE(request__nobody_listens),
        SERVICE(request__two_addresses_two_processes),
        SERVICE(request__many_at_once),
        SERVICE(request__to_and_from_a_guest),
        SERVICE(claim__what_excludes_what),
        SERVICE(claim__free_one_of_a_range),
        SERVICE(claim__squatters_get_nothing),
        SERVICE(claim__name_of_a_killed_process_is_free),
        SERVICE(claim__hundred_listeners),
        SERVICE(claim__fork_closes_the_childs),
        SERVICE(reply__goes_to_the_slot_of_its_id),
        SERVICE(reply__nobody_owns_the_slot),
        SERVICE(reject__without_an_id_follows_its_request),
        SERVICE(passed_on__never_twice),
        SERVICE(claim__no_descriptor_is_left),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
