/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_device.c: devices and GID tables of interfaces that come, change and go, in a network
 * namespace of the test's own. Without the right to make interfaces the tests are skipped.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../port/private_net.h"
#include "../skips.h"
#include "host/host.h"

static bool able; /* to make interfaces */

static bool ip(const char *what)
{
    char command[256];
    snprintf(command, sizeof(command), "PATH=$PATH:/usr/sbin:/sbin ip %s >/dev/null 2>&1", what);
    return system(command) == 0;
}

static int make_pair(void **state)
{
    (void)state;
    if (able)
        return !(ip("link add vt0 type veth peer name vt1") && ip("link set vt0 up") &&
                 ip("link set vt1 up"));
    return 0;
}

static int remove_pair(void **state)
{
    (void)state;
    ip("link del vt0");
    return 0;
}

static const struct verbena_device *find(const struct verbena_device *d, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(d[i].name, name) == 0)
            return &d[i];
    }
    return NULL;
}

static void device__listed_when_it_has_an_address(void **state)
{
    (void)state;
    struct verbena_device *d;
    size_t n;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    assert_true(ip("addr add 10.88.0.1/24 dev vt0 label vt0:one"));
    assert_true(ip("-6 addr flush dev vt1"));
    assert_int_equal(verbena_device_list(&d, &n), 0);
    const struct verbena_device *vt = find(d, n, "vb_vt0"), *lo = find(d, n, "vb_lo");
    assert_non_null(vt);
    assert_non_null(lo);
    assert_null(find(d, n, "vb_vt1"));
    assert_null(find(d, n, "vb_vt0:one"));
    assert_true(vt < lo);
    assert_true(vt == d);
    assert_true(vt->up && !vt->loopback && lo->loopback);
    assert_true(vt->node_guid != 0 && lo->node_guid != 0 && vt->node_guid != lo->node_guid);
    assert_int_equal(vt->node_guid >> 24 & 0xffff, 0xfffe); /* RFC 4291 appendix A */
    free(d);
}

static void device__path_mtu_that_fits(void **state)
{
    (void)state;
    static const struct {
        uint32_t mtu;
        uint16_t active;
    } rows[] = {
        {9000, 4096},
        {4200, 4096},
        {4176, 4096},
        {4175, 2048},
        {2128, 2048},
        {1500, 1024},
        {1104, 1024},
        {1103, 512 },
        {576,  256 },
        {300,  256 }
    };
    static const struct verbena_callbacks none;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    assert_true(ip("addr add 10.88.0.1/24 dev vt0"));
    struct verbena_context *ctx;
    assert_int_equal(verbena_open("vb_vt0", &none, NULL, &ctx), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char set[64];
        struct verbena_device d;
        snprintf(set, sizeof(set), "link set vt0 mtu %u", rows[i].mtu);
        assert_true(ip(set));
        assert_int_equal(verbena_device_query(ctx, &d), 0);
        assert_int_equal(d.mtu_bytes, rows[i].mtu);
        assert_int_equal(d.active_mtu_bytes, rows[i].active);
    }
    struct verbena_device d;
    assert_true(ip("link set vt0 down"));
    assert_int_equal(verbena_device_query(ctx, &d), 0);
    assert_false(d.up);
    assert_true(ip("link del vt0"));
    assert_int_equal(verbena_device_query(ctx, &d), -ENODEV);
    verbena_close(ctx);
}

/* The kernel tells of a new IPv6 address some time after it was added, without DAD too: from a work
 * queue. */
static bool gid_comes(struct verbena_context *ctx, unsigned index, const char *want, char *got)
{
    struct verbena_gid gid;
    for (unsigned ms = 0; ms < 10000; ms++) {
        int err = verbena_gid_query(ctx, index, &gid);
        assert_true(err == 0 || err == -ENODATA);
        snprintf(got, INET6_ADDRSTRLEN, "-");
        if (err == 0)
            inet_ntop(AF_INET6, gid.addr.b, got, INET6_ADDRSTRLEN);
        if (strncmp(got, want, strlen(want)) == 0)
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

/* want: all of it, but for the link-local one, which begins like this. */
static void expect_gid(struct verbena_context *ctx, unsigned index, const char *want)
{
    char got[INET6_ADDRSTRLEN];
    if (!gid_comes(ctx, index, want, got) || strcmp(want, "fe80:") != 0)
        assert_string_equal(got, want);
}

static void case_112__gid_indexes_stay_while_addresses_come_and_go(void **state)
{
    (void)state;
    static const struct verbena_callbacks none;
    if (!able)
        SKIP_TEST("network interfaces cannot be made here");
    assert_true(ip("addr add fd00:88::1/64 dev vt0 nodad"));
    assert_true(ip("addr add 10.88.0.1/24 dev vt0"));
    assert_true(ip("addr add 10.88.0.9/24 dev vt0"));
    struct verbena_context *ctx;
    struct nic_path path;
    assert_int_equal(verbena_open("vb_vt0", &none, NULL, &ctx), 0);
    expect_gid(ctx, 0, "fe80:");
    expect_gid(ctx, 1, "::ffff:10.88.0.1");
    expect_gid(ctx, 2, "::ffff:10.88.0.9");
    expect_gid(ctx, 3, "fd00:88::1");
    expect_gid(ctx, 4, "-");
    assert_int_equal(verbena_path_local(ctx, 0, &path), 0);
    assert_true(path.scope_id != 0);
    assert_int_equal(verbena_path_local(ctx, 1, &path), 0);
    assert_int_equal(path.scope_id, 0);
    assert_int_equal(verbena_path_local(ctx, 4, &path), -ENODATA);
    assert_int_equal(verbena_path_local(ctx, VERBENA_GID_TABLE_SIZE, &path), -EINVAL);

    assert_true(ip("addr del 10.88.0.9/24 dev vt0"));
    assert_true(ip("addr add fd00:88::2/64 dev vt0 nodad"));
    assert_true(ip("addr add fd00:88::3/64 dev vt0 nodad"));
    expect_gid(ctx, 0, "fe80:");
    expect_gid(ctx, 1, "::ffff:10.88.0.1");
    char got[INET6_ADDRSTRLEN];
    assert_true(gid_comes(ctx, 2, "fd00:88::", got)); /* one of the new ones took it */
    expect_gid(ctx, 3, "fd00:88::1");
    assert_true(gid_comes(ctx, 4, "fd00:88::", got));
    expect_gid(ctx, 5, "-");

    assert_true(ip("addr del fd00:88::1/64 dev vt0"));
    expect_gid(ctx, 1, "::ffff:10.88.0.1");
    expect_gid(ctx, 3, "-");
    assert_true(gid_comes(ctx, 4, "fd00:88::", got));

    /* Who comes back finds its own place again, unless another has it. */
    assert_true(ip("addr del 10.88.0.1/24 dev vt0"));
    assert_true(ip("addr add fd00:88::1/64 dev vt0 nodad"));
    expect_gid(ctx, 1, "-");
    expect_gid(ctx, 3, "fd00:88::1");
    assert_true(ip("addr add fd00:88::4/64 dev vt0 nodad"));
    expect_gid(ctx, 1, "fd00:88::4");
    assert_true(ip("addr add 10.88.0.1/24 dev vt0"));
    expect_gid(ctx, 5, "::ffff:10.88.0.1");
    verbena_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(device__listed_when_it_has_an_address, make_pair,
                                        remove_pair),
        cmocka_unit_test_setup_teardown(device__path_mtu_that_fits, make_pair, remove_pair),
        cmocka_unit_test_setup_teardown(case_112__gid_indexes_stay_while_addresses_come_and_go,
                                        make_pair, remove_pair),
    };
    ino_t before = private_net_inode();
    private_net_enter();
    able = private_net_inode() != before && ip("link add vt0 type veth peer name vt1") &&
           ip("link del vt0");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
