/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_sockaddr.c: socket addresses to the engine's and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>

#include <infiniband/ib.h>

#include "rdmacm/rdma_objects.h"

struct row {
    int family;
    const char *text;
    uint8_t first, last; /* bytes 0 and 15 of the GID */
    bool any, link_local, loopback;
};

static void there_and_back(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {AF_INET,  "10.1.2.3",    0,    3, false, false, false},
        {AF_INET,  "0.0.0.0",     0,    0, true,  false, false},
        {AF_INET,  "169.254.1.1", 0,    1, false, false, false},
        {AF_INET,  "127.0.0.1",   0,    1, false, false, true },
        {AF_INET,  "127.255.0.9", 0,    9, false, false, true },
        {AF_INET,  "128.0.0.1",   0,    1, false, false, false},
        {AF_INET6, "::",          0,    0, true,  false, false},
        {AF_INET6, "::1",         0,    1, false, false, true },
        {AF_INET6, "::2",         0,    2, false, false, false},
        {AF_INET6, "2001:db8::7", 0x20, 7, false, false, false},
        {AF_INET6, "fe80::9",     0xfe, 9, false, true,  false},
        {AF_INET6, "ff02::1",     0xff, 1, false, true,  false},
        {AF_INET6, "ff0e::1",     0xff, 1, false, false, false},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        struct sockaddr_storage in = {.ss_family = (sa_family_t)r->family}, out;
        struct sockaddr *sa = (struct sockaddr *)&in;
        bool v4 = r->family == AF_INET;
        void *raw = v4 ? (void *)&((struct sockaddr_in *)&in)->sin_addr
                       : (void *)&((struct sockaddr_in6 *)&in)->sin6_addr;
        assert_int_equal(inet_pton(r->family, r->text, raw), 1);
        rdma_sockaddr_set_port(sa, 4791);
        assert_int_equal(rdma_sockaddr_port(sa), 4791);
        if (!v4)
            ((struct sockaddr_in6 *)&in)->sin6_scope_id = 3;
        assert_int_equal(rdma_sockaddr_scope(sa), v4 ? 0 : 3);
        assert_int_equal(rdma_sockaddr_any(sa), r->any);
        assert_int_equal(rdma_sockaddr_link_local(sa), r->link_local);
        assert_int_equal(rdma_sockaddr_loopback(sa), r->loopback);
        struct net_addr a = rdma_sockaddr_net(sa);
        assert_int_equal(a.b[0], r->first);
        assert_int_equal(a.b[15], r->last);
        assert_int_equal(net_addr_is_v4(&a), v4);
        rdma_sockaddr_build(&out, &a, 4791, 3);
        assert_memory_equal(&in, &out, sizeof(in));
    }
}

static void length__families(void **state)
{
    (void)state;
    static const struct {
        int family;
        size_t want;
    } rows[] = {
        {AF_INET,   sizeof(struct sockaddr_in) },
        {AF_INET6,  sizeof(struct sockaddr_in6)},
        {AF_IB,     sizeof(struct sockaddr_ib) },
        {AF_UNSPEC, 0                          },
        {AF_UNIX,   0                          },
        {AF_PACKET, 0                          },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sockaddr sa = {.sa_family = (sa_family_t)rows[i].family};
        assert_int_equal(rdma_sockaddr_length(&sa), rows[i].want);
    }
}

/* A GID is an address with a service id for a port. */
static void gid__there_and_back(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool any, loopback, link_local;
    } rows[] = {
        {"::",                  true,  false, false},
        {"0.0.0.0",             true,  false, false}, /* of both families, as a GID */
        {"::1",                 false, true,  false},
        {"127.0.0.1",           false, true,  false},
        {"::ffff:127.0.0.1",    false, true,  false},
        {"10.89.0.1",           false, false, false},
        {"2001:db8::1",         false, false, false},
        {"fe80::1",             false, false, true },
        {"ff02::9",             false, false, true },
        {"ff0e::9",             false, false, false},
        {"febf::1",             false, false, true },
        {"fec0::1",             false, false, false},
        {"::ffff:224.2.2.2",    false, false, false},
        {"::ffff:255.2.255.25", false, false, false},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        union {
            struct sockaddr_storage all;
            struct sockaddr sa;
            struct sockaddr_in v4;
            struct sockaddr_in6 v6;
            struct sockaddr_ib gid;
        } a = {.all = {0}};
        a.sa.sa_family = strchr(rows[i].text, ':') != NULL ? AF_INET6 : AF_INET;
        void *at = a.sa.sa_family == AF_INET ? (void *)&a.v4.sin_addr : (void *)&a.v6.sin6_addr;
        assert_int_equal(inet_pton(a.sa.sa_family, rows[i].text, at), 1);
        rdma_sockaddr_set_port(&a.sa, 4711);
        if (a.sa.sa_family == AF_INET6)
            a.v6.sin6_scope_id = 5;
        assert_true(rdma_sockaddr_service(RDMA_PS_UDP, &a.sa) == (0x1110000ull | 4711));
        struct net_addr before = rdma_sockaddr_net(&a.sa), after;
        bool v4 = a.sa.sa_family == AF_INET;
        rdma_sockaddr_to_gid(&a.all, 0x0106ull << 16 | 4711);
        assert_int_equal(a.sa.sa_family, AF_IB);
        after = rdma_sockaddr_net(&a.sa);
        if (!rows[i].any)
            assert_memory_equal(&before, &after, sizeof(before));
        assert_int_equal(rdma_sockaddr_any(&a.sa), rows[i].any);
        assert_int_equal(rdma_sockaddr_loopback(&a.sa), rows[i].loopback);
        assert_int_equal(rdma_sockaddr_link_local(&a.sa), rows[i].link_local);
        assert_int_equal(rdma_sockaddr_scope(&a.sa), v4 ? 0 : 5);
        assert_int_equal(rdma_sockaddr_port(&a.sa), 4711);
        rdma_sockaddr_set_port(&a.sa, 1);
        assert_int_equal(rdma_sockaddr_port(&a.sa), 1);
        assert_true(rdma_sockaddr_service(RDMA_PS_UDP, &a.sa) == 0x1060001);
        struct net_addr other = {
            .b = {1, 2, 3}
        };
        rdma_sockaddr_set_net(&a.sa, &other);
        after = rdma_sockaddr_net(&a.sa);
        assert_memory_equal(&other, &after, sizeof(other));
        assert_int_equal(rdma_sockaddr_port(&a.sa), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(length__families),
        cmocka_unit_test(gid__there_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
