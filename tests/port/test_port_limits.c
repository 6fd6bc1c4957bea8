/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_limits.c: the UDP port when no descriptor or memory is left, and when others connect to
 * its slot faster than they can be served. The linker puts our epoll_ctl before the real one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "port/port_udp_priv.h"
#include "private_net.h"

enum { TEST_UDP_PORT = 14792, CONNECTIONS = 3, LISTEN_BACKLOG = 64 };

static unsigned adds_until_refused; /* 0: never */
int __real_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
    if (op != EPOLL_CTL_ADD || adds_until_refused == 0 || --adds_until_refused != 0)
        return __real_epoll_ctl(epoll_fd, op, fd, event);
    errno = ENOSPC;
    return -1;
}

static void none(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    (void)r;
    (void)p;
    (void)n;
}

static void receive(struct port *p)
{
    struct port_receiver r = {.packets = none};
    for (unsigned i = 0; i < PORT_EMPTY_CALLS; i++)
        p->ops->receive(p, 1, &r, 512);
}

static bool readable(struct port *p)
{
    struct pollfd f = {.fd = p->ops->fd(p), .events = POLLIN};
    return poll(&f, 1, 0) == 1;
}

static struct port *make(void)
{
    const struct port_udp_config c = {.udp_port = TEST_UDP_PORT, .seed = 1};
    struct port *p;
    assert_int_equal(port_udp_create(&c, &p), 0);
    return p;
}

static void connect_slot(struct port *p, int fd)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena/slot/%u", port_udp_slot(p));
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, length), 0);
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

/* The first connection is served by a descriptor kept for it; the others wait, and wake nobody. */
static void limits__connections_without_a_descriptor(void **state)
{
    (void)state;
    struct port *p = make();
    int fd[CONNECTIONS];
    uint64_t malformed = 0;
    for (unsigned i = 0; i < CONNECTIONS; i++)
        fd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    use_up_descriptors();
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        connect_slot(p, fd[i]);
        assert_int_equal(send(fd[i], "x", 1, MSG_NOSIGNAL), 1);
        for (unsigned k = 0; k < 3; k++)
            receive(p);
        assert_false(readable(p));
        malformed = count_of(p, "slot_drop_malformed");
        assert_int_equal(malformed, 1);
    }
    give_back_descriptors();
    for (unsigned k = 0; k < 3; k++)
        receive(p);
    assert_int_equal(count_of(p, "slot_drop_malformed"), CONNECTIONS);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        close(fd[i]);
    p->ops->close(p);
}

/* All of a full backlog are taken, be it in several calls. */
static void limits__full_backlog_is_taken(void **state)
{
    (void)state;
    struct port *p = make();
    int fd[LISTEN_BACKLOG];
    for (unsigned i = 0; i < LISTEN_BACKLOG; i++) {
        fd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect_slot(p, fd[i]);
        assert_int_equal(send(fd[i], "x", 1, MSG_NOSIGNAL), 1);
    }
    assert_true(readable(p));
    for (unsigned k = 0; k < 100 && readable(p); k++)
        receive(p);
    assert_int_equal(count_of(p, "slot_drop_malformed"), LISTEN_BACKLOG);
    for (unsigned i = 0; i < LISTEN_BACKLOG; i++)
        close(fd[i]);
    receive(p);
    p->ops->close(p);
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* A member of both families or of none: a guest tries again and again, and must not gather halves
 * of a membership. */
static void limits__member_of_all_or_of_none(void **state)
{
    (void)state;
    struct port *p = make();
    struct port_udp *u = (struct port_udp *)((char *)p - offsetof(struct port_udp, port));
    const struct udp_fd *hot = u->hot;
    int v4 = u->watch[0].fd, v6 = u->watch[1].fd;
    unsigned before = open_descriptors();
    for (unsigned fails = 1; fails <= 2; fails++) {
        adds_until_refused = fails;
        assert_int_equal(udp_members_open(u), -ENOSPC);
        assert_int_equal(adds_until_refused, 0);
        assert_int_equal(open_descriptors(), before);
        assert_ptr_equal(u->hot, hot);
        assert_int_equal(u->watch[0].fd, v4);
        assert_int_equal(u->watch[1].fd, v6);
    }
    assert_int_equal(udp_members_open(u), 0);
    assert_int_equal(open_descriptors(), before + 2);
    p->ops->close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits__full_backlog_is_taken),
        cmocka_unit_test(limits__connections_without_a_descriptor),
        cmocka_unit_test(limits__member_of_all_or_of_none),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
