/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_guest.c: processes of several users on one address. Each member is a thread with a user
 * id of its own (the kernel has one a thread) that drives its port like a host does. Needs root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/port_udp.h"
#include "private_net.h"
#include "wire/roce.h"

enum {
    TEST_UDP_PORT = 14793,
    MAX_MEMBERS = 4,
    ROOT = 0,
    ALICE = 64001,
    BOB = 64002,
    PACKETS = 20,
    LIMIT_SECONDS = 30,
};

static const struct nic_path paths[2] = {
    {.local = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
     .remote = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
     .udp_sport = 0xC300,
     .hop_limit = 64                                                                                                  },
    {.local = {{[15] = 1}},                               .remote = {{[15] = 1}}, .udp_sport = 0xC300, .hop_limit = 64},
};

struct member {
    struct port_receiver r;
    uid_t uid, later_uid; /* which it takes when the port is open */
    struct port_udp_config config;
    struct port *port;
    pthread_t thread;
    bool running;     /* the thread is to be joined */
    bool interrupted; /* signals come all the time while it opens */
    int status;       /* of the opening */
    atomic_bool opened, stop, paused;
    _Atomic unsigned received;
    _Atomic unsigned to_send; /* slot << 1 | v6, + 1; 0: nothing */
};
static struct member all[MAX_MEMBERS];

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void packets(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    struct member *m = (struct member *)r;
    for (unsigned i = 0; i < n; i++)
        atomic_fetch_add(&m->received, p[i].icrc_ok ? 1 : 1000000);
}

static void send_packets(struct member *m, unsigned what)
{
    static const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static _Thread_local struct train t;
    memset(&t, 0, sizeof(t));
    t.path = &paths[what & 1];
    t.packets = PACKETS;
    for (unsigned i = 0; i < PACKETS; i++) {
        struct train_packet *k = &t.packet[i];
        k->payload_bytes = sizeof(bytes);
        k->h.bth.opcode = opcode_make(SERVICE_RC, OP_SEND_ONLY);
        k->h.bth.pkey = PKEY_DEFAULT;
        k->h.bth.dest_qp = (what >> 1) << 14 | 9;
        k->h.bth.psn = psn_make(i);
        k->first_span = t.spans;
        k->spans = 1;
        t.span[t.spans++] = (struct span){bytes, sizeof(bytes)};
        t.packet_bytes = roce_packet_bytes(k->h.bth.opcode, sizeof(bytes));
        t.total_bytes += t.packet_bytes;
    }
    m->port->sink.train(&m->port->sink, &t);
    m->port->ops->flush(m->port, now_ns());
}

static void nothing(int signal)
{
    (void)signal;
}

/* Opens with a signal each millisecond, as a profiler sends them. */
static int open_interrupted(struct member *m)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    const struct itimerspec often = {
        {0, 1000000},
        {0, 1000000}
    };
    timer_t timer;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = nothing}, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return -errno;
    timer_settime(timer, 0, &often, NULL);
    int status = port_udp_create(&m->config, &m->port);
    timer_delete(timer);
    return status;
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    /* Not by setresuid(): glibc changes all threads. */
    m->status = (int)syscall(SYS_setresuid, m->uid, m->uid, -1);
    if (m->status != 0)
        m->status = -EPERM;
    else if (m->interrupted)
        m->status = open_interrupted(m);
    else
        m->status = port_udp_create(&m->config, &m->port);
    if (m->later_uid != m->uid && syscall(SYS_setresuid, -1, m->later_uid, -1) != 0)
        m->status = -EPERM;
    atomic_store(&m->opened, true);
    while (m->status == 0 && !atomic_load(&m->stop)) {
        struct pollfd p = {.fd = m->port->ops->fd(m->port), .events = POLLIN};
        poll(&p, 1, 1);
        unsigned what = atomic_exchange(&m->to_send, 0);
        if (what != 0)
            send_packets(m, what - 1);
        uint64_t now = now_ns();
        if (atomic_load(&m->paused))
            continue;
        if (m->port->ops->deadline(m->port) <= now)
            m->port->ops->flush(m->port, now);
        for (unsigned k = 0; k < PORT_EMPTY_CALLS; k++)
            m->port->ops->receive(m->port, now, &m->r, 512);
    }
    if (m->status == 0)
        m->port->ops->close(m->port);
    m->port = NULL;
    return NULL;
}

static bool wait_for(bool (*condition)(void))
{
    uint64_t end = now_ns() + LIMIT_SECONDS * 1000000000ull;
    while (!condition()) {
        if (now_ns() > end)
            return false;
        usleep(500);
    }
    return true;
}

static struct member *member_make(unsigned index, uid_t uid, uid_t allow, uid_t allow_too)
{
    struct member *m = &all[index];
    memset(m, 0, sizeof(*m));
    m->r.packets = packets;
    m->uid = m->later_uid = uid;
    m->config = (struct port_udp_config){.udp_port = TEST_UDP_PORT, .seed = index + 1};
    for (unsigned i = 0; i < 2; i++) {
        uid_t a = i == 0 ? allow : allow_too;
        if (a != 0)
            m->config.allow_uid[m->config.allow_uids++] = a == UINT32_MAX ? ROOT : a;
    }
    return m;
}

static void launch(struct member *m)
{
    assert_int_equal(pthread_create(&m->thread, NULL, member_main, m), 0);
    m->running = true;
}

static int launched(const struct member *m)
{
    while (!atomic_load(&m->opened))
        usleep(500);
    return m->status;
}

/* Opens a port as uid, which allows up to two others (0: none; root is said as UINT32_MAX). */
static int start(unsigned index, uid_t uid, uid_t allow, uid_t allow_too)
{
    struct member *m = member_make(index, uid, allow, allow_too);
    launch(m);
    return launched(m);
}

static void end(unsigned index)
{
    struct member *m = &all[index];
    if (!m->running)
        return;
    atomic_store(&m->stop, true);
    pthread_join(m->thread, NULL);
    m->running = false;
}

static uint64_t count_of(unsigned index, const char *want)
{
    struct port *p = all[index].port;
    const char *name;
    uint64_t v;
    for (unsigned i = 0; (name = p->ops->counter(p, i, &v)) != NULL; i++) {
        if (strcmp(name, want) == 0)
            return v;
    }
    fail_msg("no counter %s", want);
    return 0;
}

/* All packets that `from` sends to `to` arrive, in both families; a few tries: who changes places
 * loses some. */
static bool reaches(unsigned from, unsigned to)
{
    for (unsigned v6 = 0; v6 < 2; v6++) {
        bool whole = false;
        for (unsigned tries = 0; tries < 20 && !whole; tries++) {
            unsigned before = atomic_load(&all[to].received);
            atomic_store(&all[from].to_send, (port_udp_slot(all[to].port) << 1 | v6) + 1);
            for (unsigned i = 0; i < 400 && !whole; i++) {
                usleep(500);
                whole = atomic_load(&all[to].received) - before == PACKETS;
            }
        }
        if (!whole)
            return false;
    }
    return true;
}

static int nobody_yet(void **state)
{
    (void)state;
    memset(all, 0, sizeof(all));
    return 0;
}

static int end_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MAX_MEMBERS; i++)
        end(i);
    return 0;
}

static void guest__both_users_must_allow(void **state)
{
    (void)state;
    static const struct {
        uid_t holder_allows, guest_allows;
        int want;
    } rows[] = {
        {0,     0,          -EADDRINUSE},
        {ALICE, 0,          -EADDRINUSE},
        {0,     UINT32_MAX, -EADDRINUSE},
        {BOB,   UINT32_MAX, -EADDRINUSE},
        {ALICE, BOB,        -EADDRINUSE},
        {ALICE, UINT32_MAX, 0          },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(start(0, ROOT, rows[i].holder_allows, 0), 0);
        assert_int_equal(start(1, ALICE, rows[i].guest_allows, 0), rows[i].want);
        end(1);
        end(0);
    }
}

static void guest__packets_go_both_ways(void **state)
{
    (void)state;
    assert_int_equal(start(0, ROOT, ALICE, BOB), 0);
    assert_int_equal(start(1, ALICE, UINT32_MAX, BOB), 0);
    assert_int_equal(start(2, BOB, UINT32_MAX, ALICE), 0);
    for (unsigned from = 0; from < 3; from++)
        for (unsigned to = 0; to < 3; to++)
            assert_true(reaches(from, to));
    assert_true(count_of(1, "slot_received") >= 6 * PACKETS);
    assert_int_equal(count_of(1, "slot_forwarded"), 0);
    assert_int_equal(count_of(1, "guest_took_port"), 0);
    assert_int_equal(count_of(1, "flow_opened"), 0);
    assert_true(count_of(0, "slot_forwarded") >= 12 * PACKETS);
    assert_int_equal(count_of(0, "slot_drop_uid"), 0);
}

/* A member that does not know the guest's user passes nothing on to it, and the other way round. */
static void guest__packets_of_unknown_users_stay_out(void **state)
{
    (void)state;
    assert_int_equal(start(0, ROOT, 0, 0), 0); /* the leader knows nobody */
    assert_int_equal(start(1, ROOT, ALICE, 0), 0);
    assert_int_equal(start(2, ALICE, UINT32_MAX, 0), 0);
    atomic_store(&all[1].to_send, port_udp_slot(all[2].port) << 1 | 1);
    for (unsigned i = 0; i < 400 && count_of(0, "slot_drop_uid") < PACKETS; i++)
        usleep(500);
    assert_int_equal(count_of(0, "slot_drop_uid"), PACKETS);
    assert_int_equal(atomic_load(&all[2].received), 0);
}

static bool one_took_the_port(void)
{
    return count_of(1, "guest_took_port") == 1;
}

static void guest__takes_the_port_and_serves_others(void **state)
{
    (void)state;
    assert_int_equal(start(0, ROOT, ALICE, 0), 0);
    assert_int_equal(start(1, ALICE, UINT32_MAX, 0), 0);
    end(0);
    assert_true(wait_for(one_took_the_port));
    assert_true(reaches(1, 1));
    /* The tables are turned: now the first user's next process is the guest. */
    assert_int_equal(start(0, ROOT, 0, 0), -EADDRINUSE);
    end(0);
    assert_int_equal(start(0, ROOT, ALICE, 0), 0);
    assert_true(reaches(0, 1));
    assert_true(reaches(1, 0));
    assert_int_equal(count_of(0, "guest_hosts"), 1);
}

static bool found_another_host(void)
{
    return count_of(2, "guest_hosts") == 2;
}

static void guest__host_leaves_others_stay(void **state)
{
    (void)state;
    assert_int_equal(start(0, ROOT, ALICE, 0), 0);
    assert_int_equal(start(2, ALICE, UINT32_MAX, 0), 0);
    assert_int_equal(start(1, ROOT, ALICE, 0), 0);
    end(0);
    assert_true(wait_for(found_another_host));
    assert_int_equal(count_of(2, "guest_took_port"), 0);
    assert_true(reaches(1, 2));
    assert_true(reaches(2, 1));
}

/* Who does not answer is left; its place as the leader goes to one that does. */
static void guest__stopped_host_is_left(void **state)
{
    (void)state;
    assert_int_equal(start(0, ROOT, ALICE, 0), 0);
    assert_int_equal(start(2, ALICE, UINT32_MAX, 0), 0);
    assert_int_equal(start(1, ROOT, ALICE, 0), 0);
    atomic_store(&all[0].paused, true);
    assert_true(wait_for(found_another_host));
    assert_true(reaches(1, 2));
    assert_true(reaches(2, 1));
    assert_true(count_of(1, "leader_moved") >= 1);
}

static bool one_holds_the_other_found_it(void)
{
    uint64_t took[2] = {count_of(1, "guest_took_port"), count_of(2, "guest_took_port")};
    return took[0] + took[1] == 1 && count_of(took[0] == 1 ? 2 : 1, "guest_hosts") == 2;
}

static void guest__two_users_want_the_free_port(void **state)
{
    (void)state;
    assert_int_equal(start(0, ROOT, ALICE, BOB), 0);
    assert_int_equal(start(1, ALICE, UINT32_MAX, BOB), 0);
    assert_int_equal(start(2, BOB, UINT32_MAX, ALICE), 0);
    end(0);
    assert_true(wait_for(one_holds_the_other_found_it));
    assert_true(reaches(1, 2));
    assert_true(reaches(2, 1));
}

static int slot_listener(unsigned slot)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena/slot/%u", slot);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
                     0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static void *nonsense_main(void *arg)
{
    int fd = *(const int *)arg, c = accept(fd, NULL, NULL);
    char b[64];
    if (c >= 0 && recv(c, b, sizeof(b), 0) > 0)
        send(c, "nonsense", 8, MSG_NOSIGNAL);
    if (c >= 0)
        close(c);
    return NULL;
}

/* Listeners of a known user that say nothing, or nonsense, are no hosts. */
static void guest__nonsense_is_no_answer(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(start(0, ROOT, 0, 0), 0);
    unsigned slot = port_udp_slot(all[0].port);
    int silent = slot_listener((slot + 500) % 1024), talks = slot_listener((slot + 501) % 1024);
    assert_int_equal(pthread_create(&thread, NULL, nonsense_main, &talks), 0);
    assert_int_equal(start(1, ALICE, UINT32_MAX, 0), -EADDRINUSE);
    pthread_join(thread, NULL);
    close(silent);
    close(talks);
}

/* It waits for a host that is slow, but not for ever; whatever the signals. */
static void guest__signals_do_not_end_the_wait(void **state)
{
    (void)state;
    assert_int_equal(start(0, ROOT, ALICE, 0), 0);
    for (unsigned silent = 0; silent < 2; silent++) {
        atomic_store(&all[0].paused, true);
        struct member *m = member_make(1, ALICE, UINT32_MAX, 0);
        m->interrupted = true;
        launch(m);
        usleep(100000);
        atomic_store(&all[0].paused, silent != 0);
        assert_int_equal(launched(m), silent != 0 ? -EADDRINUSE : 0);
        assert_true(silent != 0 || reaches(0, 1));
        end(1);
    }
}

/* As daemons do: opens the port, then gives its privileges up. It still is one of those with whom
 * it opened it. */
static void guest__user_changes_after_open(void **state)
{
    (void)state;
    assert_int_equal(start(0, ROOT, 0, 0), 0);
    struct member *m = member_make(1, ROOT, 0, 0);
    m->later_uid = ALICE;
    launch(m);
    assert_int_equal(launched(m), 0);
    assert_true(reaches(0, 1));
    assert_true(reaches(1, 0));
    assert_int_equal(count_of(1, "slot_refused"), 0);
    /* As the leader it is refused, and so loses its place. */
    end(0);
    assert_int_equal(start(0, ROOT, 0, 0), 0);
    port_udp_expect(all[0].port, false, 1);
    port_udp_expect(all[0].port, true, 1);
    assert_true(reaches(1, 0));
    assert_true(count_of(0, "slot_refused") > 0);
    assert_int_equal(count_of(0, "leader_moved"), 2);
}

int main(void)
{
    private_net_enter();
    if (geteuid() != 0 || syscall(SYS_setresuid, -1, ALICE, -1) != 0 ||
        syscall(SYS_setresuid, -1, ROOT, -1) != 0) {
        printf("1..0 # SKIP needs root and other users\n");
        return 0;
    }
#define GUEST(name) cmocka_unit_test_setup_teardown(guest__##name, nobody_yet, end_all)
    const struct CMUnitTest tests[] = {
        GUEST(both_users_must_allow),
        GUEST(packets_go_both_ways),
        GUEST(packets_of_unknown_users_stay_out),
        GUEST(takes_the_port_and_serves_others),
        GUEST(host_leaves_others_stay),
        GUEST(stopped_host_is_left),
        GUEST(two_users_want_the_free_port),
        GUEST(nonsense_is_no_answer),
        GUEST(signals_do_not_end_the_wait),
        GUEST(user_changes_after_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
