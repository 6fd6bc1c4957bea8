/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_death.c: processes that are killed, whose connections a surviving one is told of, once.
 * The dead are children of this process; the members in it survive.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "descriptors.h"
#include "members.h"
#include "private_net.h"

enum { MEMBERS = 4, CONNECTIONS = 40, DEATHS = 200, NOBODY = 65534 };
static const uint64_t WAIT_NS = 30000000000; /* at most; most things take milliseconds */

/* What a member was told. */
struct told {
    struct port_deaths d;
    uint32_t slot;
    unsigned calls, connections;
    uint64_t qpns; /* numbers below 64 */
};

static struct member m[MEMBERS];
static struct told told[MEMBERS];

static void told_connections(struct port_deaths *d, uint32_t slot, const struct port_connection *c,
                             unsigned n)
{
    struct told *t = (struct told *)d;
    t->slot = slot;
    t->calls++;
    t->connections += n;
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(port_udp_id_slot(c[i].local_id), slot);
        t->qpns |= 1ull << c[i].remote_qpn;
    }
}

static void member_serves(unsigned who)
{
    make(&m[who], who + 1);
    told[who] = (struct told){.d.connections = told_connections};
    assert_int_equal(port_udp_deaths_serve(m[who].port, &told[who].d), 0);
}

static int nobody_yet(void **state)
{
    (void)state;
    memset(m, 0, sizeof(m));
    memset(told, 0, sizeof(told));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++)
        close_member(&m[i]);
    return 0;
}

static unsigned told_sum(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < MEMBERS; i++)
        sum += m[i].port != NULL ? count_of(&m[i], "death_connections") : 0;
    return (unsigned)sum;
}

static unsigned accepted(const struct member *one)
{
    const struct udp_deaths *d = &udp_of(one->port)->deaths;
    unsigned n = 0;
    for (unsigned i = 0; i < DEATH_EXECUTORS; i++)
        n += d->executor[i].fd != NULL && d->executor[i].accepted;
    return n;
}

static struct port_connection connection(const struct port *p, uint32_t number)
{
    return (struct port_connection){
        .local_id = port_udp_slot(p) << 22 | number,
        .remote_id = 1000 + number,
        .local_qpn = port_udp_slot(p) << 14 | number,
        .remote_qpn = number,
        .path = {.local = local4, .remote = other4, .hop_limit = 64},
    };
}

/* A process with a port of its own and so many connections, of which the last is closed again. */
struct mortal {
    pid_t pid;
    uint32_t slot;
};

static void mortal_main(int ready, uid_t uid, uid_t allow, unsigned connections, unsigned executors)
{
    struct member me;
    bool ok = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (m[i].port != NULL)
            m[i].port->ops->abandon(m[i].port);
    }
    ok = ok && (uid == 0 || setresuid(uid, uid, uid) == 0);
    const struct port_udp_config c = {.seed = (uint64_t)getpid() << 32 | (uint64_t)ready,
                                      .udp_port = TEST_UDP_PORT,
                                      .allow_uid = {allow},
                                      .allow_uids = uid != allow};
    me = (struct member){.r.packets = member_packets};
    ok = ok && port_udp_create(&c, &me.port) == 0;
    int last = -1;
    for (uint32_t i = 1; i <= connections + 1 && ok; i++) {
        struct port_connection k = connection(me.port, i);
        last = port_udp_deaths_note(me.port, &k);
        ok = last >= 0;
    }
    if (ok)
        port_udp_deaths_forget(me.port, last);
    for (uint64_t end = now_ns() + WAIT_NS; ok && accepted(&me) < executors && now_ns() < end;)
        drive(&me, 1);
    uint32_t slot = ok && accepted(&me) >= executors ? port_udp_slot(me.port) : UINT32_MAX;
    (void)!write(ready, &slot, sizeof(slot));
    for (;;)
        drive_for(&me, 1, 1);
}

static struct mortal born_as(uid_t uid, uid_t allow, unsigned connections, unsigned executors)
{
    struct mortal one = {0, UINT32_MAX};
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC | O_NONBLOCK), 0);
    one.pid = fork();
    if (one.pid == 0)
        mortal_main(ready[1], uid, allow, connections, executors);
    for (uint64_t end = now_ns() + WAIT_NS; now_ns() < end;) {
        drive(m, MEMBERS);
        if (read(ready[0], &one.slot, sizeof(one.slot)) == sizeof(one.slot))
            break;
        poll(NULL, 0, 1);
    }
    close(ready[0]);
    close(ready[1]);
    if (one.slot == UINT32_MAX)
        kill(one.pid, SIGKILL);
    assert_int_not_equal(one.slot, UINT32_MAX);
    return one;
}

static struct mortal born(unsigned connections, unsigned executors)
{
    return born_as(geteuid(), geteuid(), connections, executors);
}

static void die(struct mortal one)
{
    kill(one.pid, SIGKILL);
    assert_int_equal(waitpid(one.pid, NULL, 0), one.pid);
}

/* Drives until so many connections are told of; false: not within the time. */
static bool until_told(unsigned connections)
{
    for (uint64_t end = now_ns() + WAIT_NS; now_ns() < end;) {
        drive(m, MEMBERS);
        if (told_sum() >= connections)
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

static bool name_is_free(uint32_t slot)
{
    int fd = udp_slot_bind(slot);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void death__is_told_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        member_serves(i);
    for (unsigned round = 1; round <= 3; round++) {
        struct mortal one = born(CONNECTIONS, 2);
        assert_int_equal(told_sum(), (round - 1) * CONNECTIONS);
        die(one);
        assert_true(until_told(round * CONNECTIONS));
        drive_for(m, MEMBERS, 50);
        assert_int_equal(told_sum(), round * CONNECTIONS);
    }
    uint64_t qpns = 0, served = 0;
    for (unsigned i = 0; i < 3; i++) {
        qpns |= told[i].qpns;
        served += count_of(&m[i], "death_served");
    }
    assert_int_equal(qpns, (2ull << CONNECTIONS) - 2);
    assert_int_equal(served, 3);
}

/* Dead a moment after its first connection, before it could look around: the peer on the same
 * machine had its will at once. */
static void death__at_once_after_the_connection(void **state)
{
    (void)state;
    member_serves(0);
    pid_t pid = fork();
    if (pid == 0) {
        m[0].port->ops->abandon(m[0].port);
        const struct port_udp_config c = {.seed = 99, .udp_port = TEST_UDP_PORT};
        struct port *p;
        if (port_udp_create(&c, &p) != 0)
            _exit(1);
        struct port_connection k = connection(p, 1);
        k.path.remote = k.path.local;
        k.remote_id = port_udp_slot(m[0].port) << 22 | 7;
        if (port_udp_deaths_note(p, &k) < 0)
            _exit(2);
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_true(until_told(1));
}

/* What the peers answer comes to who took leave of them; afterwards the slot is free. */
static void death__answers_come_to_the_survivor(void **state)
{
    (void)state;
    uint8_t mad[MAD_BYTES];
    for (unsigned i = 0; i < 3; i++)
        member_serves(i);
    struct mortal one = born(1, 2);
    unsigned connections = 0;
    for (unsigned i = 0; i < 3; i++)
        connections += udp_of(m[i].port)->connection_count;
    die(one);
    assert_true(until_told(1));
    int who = 0;
    while (told[who].connections == 0)
        who++;
    assert_int_equal(told[who].slot, one.slot);
    mad_make(mad, CM_DREP, 1001, one.slot << 22 | 1, 0);
    assert_int_equal(mad_reaches(m, MEMBERS, 0, &local4, mad), who);
    assert_int_equal(mad_reaches(m, MEMBERS, 2, &local4, mad), who);
    assert_false(name_is_free(one.slot));
    /* The message to a peer may be lost: it is sent again, by the same. */
    drive_for(m, MEMBERS, 2200);
    assert_true(name_is_free(one.slot));
    assert_int_equal(told_sum(), 1);
    assert_int_equal(told[who].calls, 3);
    assert_int_equal(told[0].calls + told[1].calls + told[2].calls, 3);
    /* And so are the connections by which the answers came: the dead one's two have gone as well.
     */
    drive_for(m, MEMBERS, 10);
    for (unsigned i = 0; i < 3; i++) {
        assert_null(udp_of(m[i].port)->slot_fd[one.slot]);
        connections -= udp_of(m[i].port)->connection_count;
    }
    assert_int_equal(connections, 2);
}

/* Executors are killed, and later who had given them its will: new ones are found. */
static void death__of_executors_first(void **state)
{
    (void)state;
    member_serves(0);
    member_serves(1);
    struct mortal one = born(3, 2);
    close_member(&m[0]);
    close_member(&m[1]);
    member_serves(2);
    member_serves(3);
    for (uint64_t end = now_ns() + WAIT_NS;
         now_ns() < end && udp_of(m[2].port)->deaths.wards + udp_of(m[3].port)->deaths.wards < 2;)
        drive_for(m, MEMBERS, 1);
    die(one);
    assert_true(until_told(3));
    assert_int_equal(told[0].connections + told[1].connections, 0);
}

/* Two processes, each with connections: each other's executors, although one came first. */
static void death__of_the_first_of_two(void **state)
{
    (void)state;
    member_serves(0);
    struct port_connection c = connection(m[0].port, 1);
    assert_true(port_udp_deaths_note(m[0].port, &c) >= 0);
    drive_for(m, MEMBERS, 200);
    assert_int_equal(accepted(&m[0]), 0);
    member_serves(1);
    c = connection(m[1].port, 1);
    assert_true(port_udp_deaths_note(m[1].port, &c) >= 0);
    for (uint64_t end = now_ns() + WAIT_NS;
         (accepted(&m[0]) == 0 || accepted(&m[1]) == 0) && now_ns() < end;)
        drive_for(m, MEMBERS, 1);
    assert_int_equal(accepted(&m[0]), 1);
    assert_int_equal(accepted(&m[1]), 1);
    close_member(&m[0]);
    assert_true(until_told(1));
    assert_int_equal(told[1].connections, 1);
}

/* Who ends in order, with all connections closed, is nothing to tell of. */
static void death__without_connections(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        member_serves(i);
    struct port_connection c = connection(m[2].port, 1);
    int index = port_udp_deaths_note(m[2].port, &c);
    assert_true(index >= 0);
    for (uint64_t end = now_ns() + WAIT_NS; accepted(&m[2]) < 2 && now_ns() < end;)
        drive_for(m, MEMBERS, 1);
    assert_int_equal(accepted(&m[2]), 2);
    port_udp_deaths_forget(m[2].port, index);
    uint32_t slot = port_udp_slot(m[2].port);
    close_member(&m[2]);
    drive_for(m, MEMBERS, 100);
    assert_int_equal(told[0].calls + told[1].calls, 0);
    assert_int_equal(count_of(&m[0], "death_served") + count_of(&m[1], "death_served"), 0);
    assert_true(name_is_free(slot));
}

/* An executor that is stopped is no loss; when it goes on, all is done. */
static void death__executor_stopped(void **state)
{
    (void)state;
    member_serves(0);
    member_serves(1);
    struct mortal one = born(5, 2);
    m[1].stopped = true;
    die(one);
    assert_true(until_told(5));
    assert_int_equal(told[0].connections, 5);
    drive_for(m, MEMBERS, 2200); /* the slot is free again */
    m[1].stopped = false;
    drive_for(m, MEMBERS, 50);
    assert_int_equal(told_sum(), 5);
}

static void death__two_hundred(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        member_serves(i);
    die(born(0, 2)); /* the members have their timers from then on */
    drive_for(m, MEMBERS, 20);
    unsigned before = open_descriptors();
    for (unsigned i = 0; i < DEATHS; i++) {
        die(born(1, 2));
        assert_true(until_told(i + 1));
        assert_in_range(open_descriptors(), before, before + 2 * 2 * DEATH_MAX_HELD + 4);
    }
    drive_for(m, MEMBERS, 2200);
    assert_int_equal(told_sum(), DEATHS);
    assert_int_equal(open_descriptors(), before);
    for (unsigned i = 0; i < 2; i++) {
        const struct udp_deaths *d = &udp_of(m[i].port)->deaths;
        assert_int_equal(d->wards, 0);
        assert_int_equal(d->held_count, 0);
    }
}

/* Users that allow one another serve one another's wills. */
static void death__of_a_guest(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    for (unsigned i = 0; i < 2; i++) {
        const struct port_udp_config c = {
            .seed = i, .udp_port = TEST_UDP_PORT, .allow_uid = {NOBODY}, .allow_uids = 1};
        m[i] = (struct member){.r.packets = member_packets};
        assert_int_equal(port_udp_create(&c, &m[i].port), 0);
        told[i] = (struct told){.d.connections = told_connections};
        assert_int_equal(port_udp_deaths_serve(m[i].port, &told[i].d), 0);
    }
    struct mortal one = born_as(NOBODY, 0, 7, 2);
    die(one);
    assert_true(until_told(7));
    drive_for(m, MEMBERS, 50);
    assert_int_equal(told_sum(), 7);
}

/* A fork keeps nothing of it: the parent's death is seen, the child's is not. */
static void death__of_a_forked_child(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        member_serves(i);
    struct port_connection c = connection(m[2].port, 1);
    assert_true(port_udp_deaths_note(m[2].port, &c) >= 0);
    for (uint64_t end = now_ns() + WAIT_NS; accepted(&m[2]) < 2 && now_ns() < end;)
        drive_for(m, MEMBERS, 1);
    struct mortal one = born(1, 2); /* which wards the members have while they fork */
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0; i < 3; i++)
            m[i].port->ops->abandon(m[i].port);
        unsigned left = 0;
        for (int fd = 3; fd < 1024; fd++) {
            char path[32], link[64] = "";
            snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
            left += readlink(path, link, sizeof(link) - 1) > 0 &&
                    (strncmp(link, "socket", 6) == 0 || strstr(link, "memfd") != NULL);
        }
        _exit((int)left);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    drive_for(m, MEMBERS, 50);
    assert_int_equal(told_sum(), 0);
    die(one);
    assert_true(until_told(1));
}

/* Anything that comes instead of a will: refused, its descriptors closed. */
static void send_message(int fd, uint32_t magic, uint32_t slot, size_t bytes, const int *fds,
                         unsigned n)
{
    uint32_t words[3] = {magic, slot, 0};
    struct iovec iov = {words, bytes};
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof(control));
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = n != 0 ? &control : NULL,
                       .msg_controllen = n != 0 ? CMSG_SPACE(n * sizeof(int)) : 0};
    if (n != 0) {
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
    }
    assert_true(sendmsg(fd, &h, MSG_NOSIGNAL) >= 0);
}

static void will__nonsense_is_refused(void **state)
{
    (void)state;
    static const uint32_t MAGIC = 0x56425744;
    member_serves(0);
    member_serves(1); /* takes the sockets' part */
    die(born(0, 2));
    drive_for(m, MEMBERS, 1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), empty = memfd_create("x", MFD_CLOEXEC),
        garbage = memfd_create("y", MFD_CLOEXEC);
    uint8_t bytes[4096];
    memset(bytes, 0xa5, sizeof(bytes));
    assert_int_equal(write(garbage, bytes, sizeof(bytes)), sizeof(bytes));
    const int several[4] = {garbage, null, empty, null};
    const struct {
        uint32_t magic, slot;
        size_t bytes;
        const int *fds;
        unsigned n;
        bool taken;
    } rows[] = {
        {MAGIC,     5,    8,  NULL,     0, false},
        {MAGIC,     5,    8,  &null,    1, false}, /* no memfd */
        {MAGIC,     1024, 8,  &garbage, 1, false},
        {MAGIC,     ~0u,  8,  &garbage, 1, false},
        {MAGIC + 1, 5,    8,  &garbage, 1, false},
        {MAGIC,     5,    4,  &garbage, 1, false},
        {MAGIC,     5,    12, several,  4, false},
        {MAGIC,     5,    8,  &garbage, 1, true }, /* found out when it is read */
        {MAGIC,     5,    8,  &empty,   1, true },
        {MAGIC,     5,    8,  several,  4, true }, /* the first counts */
    };
    unsigned before = open_descriptors();
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct port_udp *u = udp_of(m[0].port);
        int fd = udp_slot_dial(udp_of(m[1].port), u->slot);
        assert_true(fd >= 0);
        send_message(fd, rows[i].magic, rows[i].slot, rows[i].bytes, rows[i].fds, rows[i].n);
        drive_for(m, MEMBERS, 1);
        assert_int_equal(u->deaths.wards, rows[i].taken);
        close(fd);
        drive_for(m, MEMBERS, 1);
        assert_int_equal(u->deaths.wards, 0);
        assert_int_equal(open_descriptors(), before);
    }
    assert_int_equal(told_sum(), 0);
    close(null);
    close(empty);
    close(garbage);
}

static void will__no_descriptor_is_left(void **state)
{
    (void)state;
    member_serves(0);
    make(&m[1], 2);
    struct port_connection c = connection(m[1].port, 1), wrong = c;
    wrong.local_id ^= 1u << 31;
    drive_for(m, MEMBERS, 1);
    use_up_descriptors();
    unsigned before = open_descriptors();
    assert_int_equal(port_udp_deaths_note(m[1].port, &c), -EMFILE);
    assert_int_equal(open_descriptors(), before);
    give_back_descriptors();
    before = open_descriptors();
    assert_int_equal(port_udp_deaths_note(m[1].port, &wrong), -EINVAL);
    assert_true(port_udp_deaths_note(m[1].port, &c) >= 0);
    for (uint64_t end = now_ns() + WAIT_NS; accepted(&m[1]) == 0 && now_ns() < end;)
        drive_for(m, MEMBERS, 1);
    assert_int_equal(accepted(&m[1]), 1);
    close_member(&m[1]);
    assert_true(until_told(1));
}

/* Out of descriptors it asks nobody until there are some, and gives no connection up by which
 * packets go. */
static void will__search_gives_nothing_up(void **state)
{
    (void)state;
    uint8_t mad[MAD_BYTES];
    make(&m[0], 1);
    make(&m[1], 2);
    uint32_t slot = port_udp_slot(m[1].port);
    mad_make(mad, CM_DREQ, 7, slot << 22, 0);
    assert_int_equal(mad_reaches(m, MEMBERS, 0, &local4, mad), 1);
    struct port_udp *u = udp_of(m[0].port);
    assert_non_null(u->slot_fd[slot]); /* by the first of them come all packets */
    member_serves(2);
    struct port_connection c = connection(m[0].port, 1);
    assert_true(port_udp_deaths_note(m[0].port, &c) >= 0);
    use_up_descriptors();
    drive_for(m, MEMBERS, 50);
    assert_non_null(u->slot_fd[slot]);
    assert_int_equal(u->deaths.looked, 0);
    assert_int_not_equal(u->deaths.backoff_ns, 0);
    give_back_descriptors();
    assert_int_equal(accepted(&m[0]), 0);
    for (uint64_t end = now_ns() + WAIT_NS; accepted(&m[0]) == 0 && now_ns() < end;)
        drive_for(m, MEMBERS, 1);
    assert_int_equal(accepted(&m[0]), 1);
}

/* Nobody wants wills: it is asked now and then, not all the time. */
static void will__nobody_serves(void **state)
{
    (void)state;
    make(&m[0], 1);
    make(&m[1], 2);
    struct port_connection c = connection(m[1].port, 1);
    assert_true(port_udp_deaths_note(m[1].port, &c) >= 0);
    drive_for(m, MEMBERS, 400);
    assert_int_equal(accepted(&m[1]), 0);
    assert_in_range(count_of(&m[0], "death_refused"), 1, 3);
    assert_int_equal(port_udp_deaths_serve(m[0].port, &told[0].d), 0);
    for (uint64_t end = now_ns() + WAIT_NS; accepted(&m[1]) == 0 && now_ns() < end;)
        drive_for(m, MEMBERS, 1);
    assert_int_equal(accepted(&m[1]), 1);
}

int main(void)
{
#define DEATH(name) cmocka_unit_test_setup_teardown(name, nobody_yet, close_all)
    const struct CMUnitTest tests[] = {
        DEATH(death__is_told_once),
        DEATH(death__answers_come_to_the_survivor),
        DEATH(death__at_once_after_the_connection),
        DEATH(death__of_executors_first),
        DEATH(death__of_the_first_of_two),
        DEATH(death__without_connections),
        DEATH(death__executor_stopped),
        DEATH(death__two_hundred),
        DEATH(death__of_a_guest),
        DEATH(death__of_a_forked_child),
        DEATH(will__nonsense_is_refused),
        DEATH(will__nobody_serves),
        DEATH(will__no_descriptor_is_left),
        DEATH(will__search_gives_nothing_up),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
