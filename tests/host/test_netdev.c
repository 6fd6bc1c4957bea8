/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_netdev.c: what contexts hear of their interface, in a network namespace of the test's own.
 * Without the right to make interfaces the tests are skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../port/descriptors.h"
#include "../port/private_net.h"
#include "../skips.h"
#include "host/host_priv.h"

enum { HEARD_MAX = 64, WAIT_MS = 5000 };

/* What one context heard, a letter an event: A active, E error, G GID table, F fatal. */
struct ear {
    pthread_mutex_t lock;
    unsigned n;
    char heard[HEARD_MAX + 1];
};

static bool able; /* to make interfaces */

static int bind_error; /* of netlink sockets */
static bool gone_before_bind;
static bool ip(const char *what);
int __real_bind(int fd, const struct sockaddr *a, socklen_t n);
int __wrap_bind(int fd, const struct sockaddr *a, socklen_t n);

int __wrap_bind(int fd, const struct sockaddr *a, socklen_t n)
{
    bool netlink = a->sa_family == AF_NETLINK;
    if (netlink && gone_before_bind)
        gone_before_bind = !ip("link del vt0");
    if (bind_error == 0 || !netlink)
        return __real_bind(fd, a, n);
    errno = bind_error;
    return -1;
}

static _Atomic unsigned speeds_read;
FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    speeds_read += strcmp(path, "/sys/class/net/vt0/speed") == 0;
    return __real_fopen64(path, mode);
}

static bool ip(const char *what)
{
    char command[512];
    snprintf(command, sizeof(command), "PATH=$PATH:/usr/sbin:/sbin ip %s >/dev/null 2>&1", what);
    return system(command) == 0;
}

static void hear(enum nic_event_type type, void *owner)
{
    static const char letter[] = {
        [EVENT_DEVICE_FATAL] = 'F',
        [EVENT_PORT_ACTIVE] = 'A',
        [EVENT_PORT_ERR] = 'E',
        [EVENT_GID_CHANGE] = 'G',
    };
    struct ear *e = owner;
    pthread_mutex_lock(&e->lock);
    if (e->n < HEARD_MAX)
        e->heard[e->n++] = letter[type];
    pthread_mutex_unlock(&e->lock);
}

static const struct verbena_callbacks callbacks = {.async_event = hear};

static bool has_heard(struct ear *e, const char *want)
{
    pthread_mutex_lock(&e->lock);
    bool yes = strcmp(e->heard, want) == 0;
    pthread_mutex_unlock(&e->lock);
    return yes;
}

/* Exactly this, and it is forgotten. */
static void expect(struct ear *e, const char *want)
{
    for (int ms = 0; ms < WAIT_MS && !has_heard(e, want); ms++) {
        const struct timespec t = {0, 1000000};
        nanosleep(&t, NULL);
    }
    char heard[sizeof(e->heard)];
    pthread_mutex_lock(&e->lock);
    memcpy(heard, e->heard, sizeof(heard));
    memset(e->heard, 0, sizeof(e->heard));
    e->n = 0;
    pthread_mutex_unlock(&e->lock);
    assert_string_equal(heard, want);
}

/* A test that failed leaves its context behind, which still calls back. */
static struct ear ears[3];

static void ear_init(struct ear *e)
{
    memset(e, 0, sizeof(*e));
    pthread_mutex_init(&e->lock, NULL);
}

/* Which is some time after the other end was set up. */
static bool has_link(const char *name)
{
    char what[64];
    snprintf(what, sizeof(what), "link show dev %s | grep -q ,LOWER_UP", name);
    for (int i = 0; i < WAIT_MS / 10; i++) {
        const struct timespec t = {0, 10000000};
        if (ip(what))
            return true;
        nanosleep(&t, NULL);
    }
    return false;
}

static int make_pair(void **state)
{
    (void)state;
    if (!able)
        return 0;
    /* Without IPv6 but where a test wants it: its addresses come at their own time. */
    return !(ip("link add vt0 type veth peer name vt1") && ip("link set vt0 addrgenmode none") &&
             ip("link set vt1 addrgenmode none") && ip("addr add 10.88.0.1/24 dev vt0") &&
             ip("link set vt0 up") && ip("link set vt1 up") && has_link("vt0") && has_link("vt1"));
}

static int remove_pair(void **state)
{
    (void)state;
    ip("link del vt0");
    return 0;
}

static void netdev__tells_what_happens(void **state)
{
    (void)state;
    static const struct {
        const char *what, *heard;
    } rows[] = {
        {"link set vt1 down",                                                  "E"  },
        {"link set vt1 up",                                                    "A"  },
        {"link set vt0 down",                                                  "E"  },
        {"link set vt0 up",                                                    "A"  },
        {"-batch - <<X\nlink set vt0 down\nlink set vt0 up\nX\ntrue",          "EA" },
        {"addr add 10.88.0.2/24 dev vt0",                                      "G"  },
        {"addr del 10.88.0.2/24 dev vt0",                                      "G"  },
        {"addr add fd00:88::1/64 dev vt0 nodad",                               "G"  },
 /* What is none of its business: */
        {"link set vt0 mtu 1400",                                              ""   },
        {"link set vt0 down; ip link set vt0 down; ip link set vt0 up",        "EGA"},
        {"link set vt0 up",                                                    ""   },
        {"addr add 10.88.0.1/24 dev vt0 2>/dev/null || true",                  ""   },
        {"addr change 10.88.0.1/24 dev vt0 valid_lft 2000 preferred_lft 1000", ""   },
        {"addr add 10.88.1.1/24 dev vt1",                                      ""   },
        {"addr del 10.88.1.1/24 dev vt1",                                      ""   },
        {"link add vt2 type veth peer name vt3 && ip link del vt2",            ""   },
        {"link set lo down",                                                   ""   },
        {"link set lo up",                                                     ""   },
        {"link del vt0",                                                       "EGF"},
    };
    struct verbena_context *ctx;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(ip(rows[i].what));
        if (rows[i].heard[0] == '\0') {
            /* Something that it does hear comes after it. */
            assert_true(ip("addr add 10.88.0.77/24 dev vt0"));
            expect(e, "G");
            assert_true(ip("addr del 10.88.0.77/24 dev vt0"));
            expect(e, "G");
        } else {
            expect(e, rows[i].heard);
        }
    }
    /* A new one of that name is another. */
    assert_true(ip("link add vt0 type veth peer name vt1"));
    assert_true(ip("addr add 10.88.0.1/24 dev vt0"));
    struct verbena_device d;
    assert_int_equal(verbena_device_query(ctx, &d), -ENODEV);
    netdev_look(ctx->host);
    expect(e, "");
    verbena_close(ctx);
}

static void netdev__all_contexts_hear_and_closed_ones_do_not(void **state)
{
    (void)state;
    struct ear *a = &ears[0], *b = &ears[1], *lo = &ears[2];
    struct verbena_context *first, *second, *other;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    ear_init(a);
    ear_init(b);
    ear_init(lo);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, a, &first), 0);
    assert_true(ip("link set vt1 down")); /* before the second: no news to it */
    expect(a, "E");
    assert_int_equal(verbena_open("vb_vt0", &callbacks, b, &second), 0);
    assert_int_equal(verbena_open("vb_lo", &callbacks, lo, &other), 0);
    assert_true(ip("link set vt1 up"));
    expect(a, "A");
    expect(b, "A");
    verbena_close(first);
    assert_true(ip("link set vt1 down"));
    expect(b, "E");
    expect(a, "");
    expect(lo, "");
    verbena_close(second);
    verbena_close(other);
}

static void netdev__queries_know_what_is_past(void **state)
{
    (void)state;
    static const struct verbena_callbacks none;
    struct verbena_context *ctx;
    struct verbena_gid gid;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    assert_int_equal(verbena_open("vb_vt0", &none, NULL, &ctx), 0);
    for (int i = 0; i < 20; i++) {
        assert_true(ip("addr add 10.88.0.9/24 dev vt0"));
        assert_int_equal(verbena_gid_query(ctx, 1, &gid), 0);
        assert_true(ip("addr del 10.88.0.9/24 dev vt0"));
        assert_int_equal(verbena_gid_query(ctx, 1, &gid), -ENODATA);
    }
    verbena_close(ctx);
}

static void netdev__renamed(void **state)
{
    (void)state;
    struct verbena_context *ctx;
    struct verbena_device d;
    struct verbena_gid gid;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    assert_true(ip("link set vt0 down"));
    expect(e, "E");
    assert_true(ip("link set vt0 name vt7"));
    assert_true(ip("link set vt7 up"));
    expect(e, "A");
    assert_true(ip("link add vt0 type veth peer name vt8")); /* takes the name */
    assert_true(ip("addr add 10.88.9.9/24 dev vt0"));
    assert_true(ip("addr add 10.88.0.9/24 dev vt7"));
    expect(e, "G");
    assert_int_equal(verbena_device_query(ctx, &d), 0);
    assert_true(d.up);
    assert_string_equal(d.name, "vb_vt0");
    assert_string_equal(d.netdev, "vt7");
    assert_int_equal(verbena_gid_query(ctx, 0, &gid), 0);
    assert_int_equal(verbena_gid_query(ctx, 1, &gid), 0);
    assert_int_equal(gid.addr.b[15], 9);
    assert_int_equal(verbena_gid_query(ctx, 2, &gid), -ENODATA);
    verbena_close(ctx);
    assert_true(ip("link del vt7"));
}

/* Back before anybody looked: the table is the same, but what was bound to the address is not. */
static void netdev__address_removed_and_added_again(void **state)
{
    (void)state;
    struct verbena_context *ctx;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    progress_lock(&ctx->host->events);
    assert_true(ip("addr del 10.88.0.1/24 dev vt0"));
    assert_true(ip("addr add 10.88.0.1/24 dev vt0"));
    progress_unlock(&ctx->host->events);
    expect(e, "G");

    /* Seen at once with a new one, it has its old place all the same. */
    struct verbena_gid gid;
    assert_true(ip("addr del 10.88.0.1/24 dev vt0"));
    expect(e, "G");
    progress_lock(&ctx->host->events);
    assert_true(ip("addr add 10.88.0.5/24 dev vt0"));
    assert_true(ip("addr add 10.88.0.1/24 dev vt0"));
    progress_unlock(&ctx->host->events);
    expect(e, "G");
    assert_int_equal(verbena_gid_query(ctx, 0, &gid), 0);
    assert_int_equal(gid.addr.b[15], 1);
    assert_int_equal(verbena_gid_query(ctx, 1, &gid), 0);
    assert_int_equal(gid.addr.b[15], 5);
    verbena_close(ctx);
}

/* Told that the table has changed, but without a descriptor to read it with: as soon as there is.
 */
static void netdev__table_is_read_when_it_can_be(void **state)
{
    (void)state;
    struct verbena_context *ctx;
    struct verbena_gid gid;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    use_up_descriptors();
    bool added = ip("addr add 10.88.0.9/24 dev vt0");
    int without = verbena_gid_query(ctx, 1, &gid), old = verbena_gid_query(ctx, 0, &gid);
    give_back_descriptors();
    assert_true(added);
    assert_int_equal(without, -ENODATA);
    assert_int_equal(old, 0);
    assert_int_equal(verbena_gid_query(ctx, 1, &gid), 0);
    expect(e, "G");
    verbena_close(ctx);
}

/* The kernel drops what the socket does not hold: how things are is read instead. */
static void netdev__more_than_the_socket_holds(void **state)
{
    (void)state;
    struct verbena_context *ctx;
    struct verbena_gid gid;
    int least = 1;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    struct host *h = ctx->host;
    assert_int_equal(setsockopt(h->netlink_fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
    progress_lock(&h->events); /* nobody takes them */
    for (int i = 0; i < 10; i++) {
        assert_true(ip("link set lo mtu 60000"));
        assert_true(ip("link set lo mtu 65536"));
    }
    assert_true(ip("link set vt0 down"));
    assert_true(ip("addr add 10.88.0.9/24 dev vt0"));
    progress_unlock(&h->events);
    expect(e, "EG");
    assert_int_equal(verbena_gid_query(ctx, 1, &gid), 0);

    /* What it still holds comes after what was read instead, and is no news. */
    assert_true(ip("addr flush dev vt0"));
    expect(e, "GG");
    int more = 16 << 10;
    assert_int_equal(setsockopt(h->netlink_fd, SOL_SOCKET, SO_RCVBUF, &more, sizeof(more)), 0);
    progress_lock(&h->events);
    assert_true(ip("link del vt0"));
    for (int i = 0; i < 30; i++)
        assert_true(ip("link set lo mtu 60000") && ip("link set lo mtu 65536"));
    progress_unlock(&h->events);
    expect(e, "F");
    netdev_look(h);
    expect(e, "");
    verbena_close(ctx);
}

/* A sandbox without netlink's groups: a query still knows. */
static void netdev__deaf_it_looks_when_asked(void **state)
{
    (void)state;
    struct verbena_context *ctx;
    struct verbena_gid gid;
    struct verbena_device d;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    bind_error = ENOMEM;
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), -ENOMEM);
    bind_error = EPERM;
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    bind_error = 0;
    assert_int_equal(ctx->host->netlink_fd, -1);
    assert_int_equal(verbena_gid_query(ctx, 1, &gid), -ENODATA);
    assert_true(ip("addr add 10.88.0.9/24 dev vt0"));
    assert_int_equal(verbena_gid_query(ctx, 1, &gid), 0);
    expect(e, "G");
    assert_true(ip("link set vt0 down"));
    assert_int_equal(verbena_device_query(ctx, &d), 0);
    assert_false(d.up);
    verbena_close(ctx);
}

/* Its name and another address are back before anybody looked: nothing of that is the context's. */
static void netdev__name_taken_at_once(void **state)
{
    (void)state;
    struct verbena_context *ctx;
    struct verbena_gid gid;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    progress_lock(&ctx->host->events);
    assert_true(ip("link del vt0"));
    assert_true(ip("link add vt0 type veth peer name vt1"));
    assert_true(ip("addr add 10.88.7.7/24 dev vt0"));
    progress_unlock(&ctx->host->events);
    expect(e, "EGF");
    for (unsigned i = 0; i < VERBENA_GID_TABLE_SIZE; i++)
        assert_int_equal(verbena_gid_query(ctx, i, &gid), -ENODATA);
    verbena_close(ctx);
}

/* While the device is being opened, before anybody listens. */
static void netdev__gone_while_it_is_opened(void **state)
{
    (void)state;
    struct verbena_context *ctx;
    struct verbena_gid gid;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    gone_before_bind = true;
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    assert_false(gone_before_bind);
    expect(e, "EF");
    assert_int_equal(verbena_gid_query(ctx, 0, &gid), -ENODATA);
    verbena_close(ctx);
}

/* Only the kernel is believed. */
static void netdev__others_are_not_heard(void **state)
{
    (void)state;
    struct verbena_context *ctx;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    struct ear *e = &ears[0];
    ear_init(e);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, e, &ctx), 0);
    struct {
        struct nlmsghdr h;
        struct ifinfomsg i;
    } m = {
        .h = {.nlmsg_len = sizeof(m), .nlmsg_type = RTM_DELLINK},
        .i = {.ifi_index = (int)ctx->device.ifindex                     },
    };
    struct sockaddr_nl to = {.nl_family = AF_NETLINK};
    socklen_t n = sizeof(to);
    assert_int_equal(getsockname(ctx->host->netlink_fd, (struct sockaddr *)&to, &n), 0);
    to.nl_groups = 0;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    assert_int_equal(sendto(fd, &m, sizeof(m), 0, (struct sockaddr *)&to, sizeof(to)), sizeof(m));
    close(fd);
    assert_true(ip("link set vt1 down"));
    expect(e, "E");
    verbena_close(ctx);
}

/* Each connection asks what the interface is like; its speed is read when it may have changed. */
static void netdev__speed_is_kept_while_the_link_is(void **state)
{
    (void)state;
    enum { QUERIES = 50 };
    static const struct {
        const char *what, *heard;
    } rows[] = {
        {"link set vt1 down", "E"},
        {"link set vt1 up",   "A"},
    };
    struct verbena_context *ctx;
    struct verbena_device d;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    ear_init(&ears[0]);
    assert_int_equal(verbena_open("vb_vt0", &callbacks, &ears[0], &ctx), 0);
    for (size_t i = 0; i <= sizeof(rows) / sizeof(rows[0]); i++) {
        speeds_read = 0;
        for (int k = 0; k < QUERIES; k++)
            assert_int_equal(verbena_device_query(ctx, &d), 0);
        assert_in_range(speeds_read, 1, QUERIES / 4);
        if (i < sizeof(rows) / sizeof(rows[0])) {
            assert_true(ip(rows[i].what));
            expect(&ears[0], rows[i].heard);
        }
    }
    /* Without news it is not kept for ever. */
    atomic_store(&ctx->speed_until_ns, host_now_ns());
    speeds_read = 0;
    assert_int_equal(verbena_device_query(ctx, &d), 0);
    assert_int_equal(speeds_read, 1);
    verbena_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(netdev__tells_what_happens, make_pair, remove_pair),
        cmocka_unit_test_setup_teardown(netdev__all_contexts_hear_and_closed_ones_do_not, make_pair,
                                        remove_pair),
        cmocka_unit_test_setup_teardown(netdev__queries_know_what_is_past, make_pair, remove_pair),
        cmocka_unit_test_setup_teardown(netdev__address_removed_and_added_again, make_pair,
                                        remove_pair),
        cmocka_unit_test_setup_teardown(netdev__table_is_read_when_it_can_be, make_pair,
                                        remove_pair),
        cmocka_unit_test_setup_teardown(netdev__renamed, make_pair, remove_pair),
        cmocka_unit_test_setup_teardown(netdev__speed_is_kept_while_the_link_is, make_pair,
                                        remove_pair),
        cmocka_unit_test_setup_teardown(netdev__more_than_the_socket_holds, make_pair, remove_pair),
        cmocka_unit_test_setup_teardown(netdev__deaf_it_looks_when_asked, make_pair, remove_pair),
        cmocka_unit_test_setup_teardown(netdev__name_taken_at_once, make_pair, remove_pair),
        cmocka_unit_test_setup_teardown(netdev__gone_while_it_is_opened, make_pair, remove_pair),
        cmocka_unit_test_setup_teardown(netdev__others_are_not_heard, make_pair, remove_pair),
    };
    ino_t before = private_net_inode();
    private_net_enter();
    able = private_net_inode() != before && ip("link add vt0 type veth peer name vt1") &&
           ip("link del vt0");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
