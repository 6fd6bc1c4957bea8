/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_addr.c: addresses: what can be bound and resolved, to which device, and ports.
 */
#include "cm_rig.h"

#include <endian.h>
#include <infiniband/ib.h>
#include <net/if.h>

#include "../port/private_net.h"

struct bind_row {
    const char *addr;
    int err; /* 0: works */
    bool device;
};

static void bind__addresses(void **state)
{
    (void)state;
    static const struct bind_row rows[] = {
        {"10.77.0.1",   0,             true },
        {"127.0.0.1",   0,             false}, /* a loopback address: as "any", like the kernel */
        {"127.9.9.9",   EADDRNOTAVAIL, false},
        {"::1",         0,             false},
        {"0.0.0.0",     0,             false},
        {"::",          0,             false},
        {"192.0.2.1",   EADDRNOTAVAIL, false}, /* nobody's */
        {"2001:db8::1", EADDRNOTAVAIL, false},
        {"fe80::1",     EINVAL,        false}, /* link-local of no link */
        {"224.0.0.5",   EADDRNOTAVAIL, false},
    };

    bool own = private_net_add("lo:1", "10.77.0.1");
    for (unsigned i = own ? 0 : 1; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
        union rig_addr a = rig_addr(rows[i].addr, 0);
        int ret = rdma_bind_addr(id, &a.sa);
        if (ret != (rows[i].err == 0 ? 0 : -1) || (ret != 0 && errno != rows[i].err))
            fail_msg("%s: %d, errno %d", rows[i].addr, ret, errno);
        assert_int_equal(id->verbs != NULL, rows[i].device);
        assert_int_equal(id->pd != NULL, rows[i].device);
        assert_int_equal(id->port_num, rows[i].device);
        assert_int_equal(rdma_get_src_port(id) != 0, rows[i].err == 0);
        if (rows[i].device)
            assert_string_equal(ibv_get_device_name(id->verbs->device), "vb_lo");
        if (rows[i].err == 0) { /* once */
            assert_int_equal(rdma_bind_addr(id, &a.sa), -1);
            assert_int_equal(errno, EINVAL);
        }
        assert_int_equal(rdma_destroy_id(id), 0);
    }
}

static void bind__no_address(void **state)
{
    (void)state;
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
    struct sockaddr_storage odd = {.ss_family = AF_UNIX};

    assert_int_equal(rdma_bind_addr(id, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&odd), -1);
    assert_int_equal(errno, EAFNOSUPPORT);
    assert_int_equal(rdma_resolve_addr(id, NULL, NULL, 1000), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_id(id);
}

struct port_row {
    const char *first, *second;
    bool same_space, reuse;
    int err;
};

static void bind__ports(void **state)
{
    (void)state;
    static const struct port_row rows[] = {
        {"127.0.0.1", "127.0.0.1", true,  false, EADDRINUSE},
        {"0.0.0.0",   "127.0.0.1", true,  false, EADDRINUSE},
        {"127.0.0.1", "0.0.0.0",   true,  false, EADDRINUSE},
        {"::",        "::1",       true,  false, EADDRINUSE},
        {"::",        "0.0.0.0",   true,  false, EADDRINUSE},
        {"127.0.0.1", "::1",       true,  false, 0         },
        {"127.0.0.1", "127.0.0.1", false, false, 0         },
        {"127.0.0.1", "127.0.0.1", true,  true,  0         },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct port_row *r = &rows[i];
        struct rdma_cm_id *a = rig_id(NULL, RDMA_PS_TCP);
        struct rdma_cm_id *b = rig_id(NULL, r->same_space ? RDMA_PS_TCP : RDMA_PS_UDP);
        union rig_addr first = rig_addr(r->first, 0), second;
        assert_int_equal(rdma_bind_addr(a, &first.sa), 0);
        second = rig_addr(r->second, ntohs(rdma_get_src_port(a)));
        int on = 1;
        if (r->reuse)
            assert_int_equal(
                rdma_set_option(b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), 0);
        int ret = rdma_bind_addr(b, &second.sa);
        if (ret != (r->err == 0 ? 0 : -1) || (ret != 0 && errno != r->err))
            fail_msg("row %u: %d, errno %d", i, ret, errno);
        if (r->reuse) { /* but one of them listens */
            assert_int_equal(rdma_listen(b, 0), -1);
            assert_int_equal(errno, EADDRINUSE);
        }
        rdma_destroy_id(a);
        if (r->err != 0) /* given back with its id */
            assert_int_equal(rdma_bind_addr(b, &second.sa), 0);
        rdma_destroy_id(b);
    }
}

static void bind__one_family_only(void **state)
{
    (void)state;
    struct rdma_cm_id *a = rig_id(NULL, RDMA_PS_TCP), *b = rig_id(NULL, RDMA_PS_TCP);
    union rig_addr any6 = rig_addr("::", 0), any4;
    int on = 1;

    assert_int_equal(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), 0);
    assert_int_equal(rdma_bind_addr(a, &any6.sa), 0);
    any4 = rig_addr("0.0.0.0", ntohs(rdma_get_src_port(a)));
    assert_int_equal(rdma_bind_addr(b, &any4.sa), 0);
    rdma_destroy_id(a);
    rdma_destroy_id(b);
}

struct resolve_row {
    const char *src, *dst, *local;
};

/* rpma#1934, rxe#27, rxe#43: this machine's own addresses are resolved like any other. */
static void case_104(void **state)
{
    (void)state;
    static const struct resolve_row rows[] = {
        {NULL,        "127.0.0.1", "127.0.0.1"},
        {NULL,        "::1",       "::1"      },
        {"127.0.0.1", "127.0.0.1", "127.0.0.1"},
        {"0.0.0.0",   "127.0.0.1", "127.0.0.1"},
        {NULL,        "0.0.0.0",   "127.0.0.1"},
        {NULL,        "::",        "::1"      },
    };
    struct rdma_event_channel *ch = rig_channel();

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
        union rig_addr src = rig_addr(rows[i].src != NULL ? rows[i].src : "::", 0);
        union rig_addr dst = rig_addr(rows[i].dst, 4711), local = rig_addr(rows[i].local, 0);
        assert_int_equal(rdma_resolve_addr(id, rows[i].src != NULL ? &src.sa : NULL, &dst.sa, 1000),
                         0);
        rig_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
        local.v4.sin_port = rdma_get_src_port(id);
        assert_int_not_equal(local.v4.sin_port, 0);
        assert_memory_equal(rdma_get_local_addr(id), &local,
                            local.sa.sa_family == AF_INET ? sizeof(local.v4) : sizeof(local.v6));
        assert_int_equal(ntohs(rdma_get_dst_port(id)), 4711);
        assert_string_equal(ibv_get_device_name(id->verbs->device), "vb_lo");
        assert_null(id->route.path_rec);
        assert_int_equal(rdma_resolve_route(id, 1000), 0);
        rig_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
        assert_int_equal(id->route.num_paths, 1);
        assert_int_equal(id->route.path_rec->mtu, IBV_MTU_4096);
        assert_memory_equal(&id->route.path_rec->sgid, &id->route.addr.addr.ibaddr.sgid, 16);
        assert_memory_equal(&id->route.path_rec->dgid, &id->route.addr.addr.ibaddr.dgid, 16);
        rdma_destroy_id(id);
    }
    rdma_destroy_event_channel(ch);
}

static void resolve__no_way(void **state)
{
    (void)state;
    static const struct {
        const char *src, *dst;
        int err;
    } rows[] = {
        {NULL,        "192.0.2.1",   ENETUNREACH  }, /* nothing but lo here */
        {NULL,        "2001:db8::1", ENETUNREACH  },
        {NULL,        "fe80::1",     EINVAL       },
        {"127.0.0.1", "::1",         EINVAL       },
        {"192.0.2.1", "127.0.0.1",   EADDRNOTAVAIL},
    };
    struct rdma_event_channel *ch = rig_channel();

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
        union rig_addr src = rig_addr(rows[i].src != NULL ? rows[i].src : "::", 0);
        union rig_addr dst = rig_addr(rows[i].dst, 4711);
        int ret = rdma_resolve_addr(id, rows[i].src != NULL ? &src.sa : NULL, &dst.sa, 1000);
        bool machine = rows[i].err == ENETUNREACH && ret == 0; /* not in a namespace of our own */
        if (!machine && (ret != -1 || errno != rows[i].err))
            fail_msg("%s: %d, errno %d", rows[i].dst, ret, errno);
        if (!machine)
            rig_expect_none(ch);
        rdma_destroy_id(id);
    }
    rdma_destroy_event_channel(ch);
}

static void resolve__out_of_order(void **state)
{
    (void)state;
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
    union rig_addr dst = rig_addr("127.0.0.1", 4711);

    assert_int_equal(rdma_resolve_route(id, 1000), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_resolve_addr(id, NULL, &dst.sa, 1000), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, &dst.sa, 1000), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_resolve_route(id, 1000), 0);
    assert_int_equal(rdma_resolve_route(id, 1000), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_listen(id, 1), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_id(id);
}

static struct sockaddr_ib gid_addr(const char *text, uint64_t sid, uint64_t mask)
{
    struct sockaddr_ib sib = {
        .sib_family = AF_IB, .sib_sid = htobe64(sid), .sib_sid_mask = htobe64(mask)};

    assert_int_equal(inet_pton(AF_INET6, text, &sib.sib_addr), 1);
    return sib;
}

/* Addresses that are GIDs: the service id says port space and port. */
static void bind__gids(void **state)
{
    (void)state;
    enum { ALL = -1, SPACE = ~0xffff };
    static const struct {
        enum rdma_port_space ps;
        const char *gid;
        uint64_t sid;
        int64_t mask;
        int err;
        uint64_t space; /* that it has then */
    } rows[] = {
        {RDMA_PS_TCP,   "::ffff:10.77.0.1", 0,          0,     0,               0x106},
        {RDMA_PS_TCP,   "::1",              0x1060000,  SPACE, 0,               0x106},
        {RDMA_PS_IB,    "::1",              0,          0,     0,               0x13f},
        {RDMA_PS_IB,    "::",               0x13f0000,  SPACE, 0,               0x13f},
        {RDMA_PS_IB,    "::1",              0x1060000,  SPACE, 0,               0x106},
        {RDMA_PS_IB,    "::1",              0x1064711,  ALL,   0,               0x106},
        {RDMA_PS_UDP,   "::1",              0x1110000,  SPACE, 0,               0x111},
        {RDMA_PS_IPOIB, "::1",              0x20000,    SPACE, 0,               0x2  },
        {RDMA_PS_TCP,   "::1",              0x1110000,  SPACE, EPROTONOSUPPORT, 0    },
        {RDMA_PS_UDP,   "::1",              0x1060000,  SPACE, EPROTONOSUPPORT, 0    },
        {RDMA_PS_IB,    "::1",              0x9990000,  SPACE, EPROTONOSUPPORT, 0    },
        {RDMA_PS_IB,    "::1",              1ull << 60, ALL,   EPROTONOSUPPORT, 0    },
        {RDMA_PS_TCP,   "2001:db8::1",      0,          0,     EADDRNOTAVAIL,   0    },
        {RDMA_PS_TCP,   "fe80::1",          0,          0,     EADDRNOTAVAIL,   0    },
        {RDMA_PS_TCP,   "ff02::1",          0,          0,     EADDRNOTAVAIL,   0    },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_id *id = rig_id(NULL, rows[i].ps);
        struct sockaddr_ib sib = gid_addr(rows[i].gid, rows[i].sid, (uint64_t)rows[i].mask);
        int ret = rdma_bind_addr(id, (struct sockaddr *)&sib);
        if (ret != (rows[i].err == 0 ? 0 : -1) || (ret != 0 && errno != rows[i].err))
            fail_msg("row %u: %d, errno %d", i, ret, errno);
        uint64_t sid = be64toh(((struct sockaddr_ib *)&id->route.addr.src_storage)->sib_sid);
        assert_int_equal(sid >> 16, rows[i].space);
        assert_int_equal(ntohs(rdma_get_src_port(id)), sid & 0xffff);
        assert_int_equal((sid & 0xffff) != 0, ret == 0);
        if ((rows[i].sid & 0xffff) != 0)
            assert_int_equal(sid & 0xffff, rows[i].sid & 0xffff);
        rdma_destroy_id(id);
    }
}

/* From GID to GID, and the other side sees GIDs, too. */
static void resolve__gids(void **state)
{
    (void)state;
    static const struct {
        const char *listens, *dst, *src;
    } rows[] = {
        {"::1",              "::1",              "::1"             },
        {"::",               "::1",              "::1"             },
        {"::ffff:10.77.0.1", "::ffff:10.77.0.1", "::ffff:10.77.0.1"},
        {"::",               "::ffff:127.0.0.1", "::ffff:127.0.0.1"},
        {"::",               "::",               "::1"             },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig_pair p = {.server_ch = rig_channel(), .client_ch = rig_channel()};
        struct sockaddr_ib at = gid_addr(rows[i].listens, 0, 0), to, src;
        struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_RC);
        p.listen = rig_id(p.server_ch, RDMA_PS_IB);
        p.client = rig_id(p.client_ch, RDMA_PS_IB);
        assert_int_equal(rdma_bind_addr(p.listen, (struct sockaddr *)&at), 0);
        assert_int_equal(rdma_listen(p.listen, 1), 0);
        p.port = ntohs(rdma_get_src_port(p.listen));
        to = gid_addr(rows[i].dst, 0x13f0000ull | p.port, UINT64_MAX);
        src = gid_addr(rows[i].src, 0, 0);
        assert_int_equal(rdma_resolve_addr(p.client, NULL, (struct sockaddr *)&to, 1000), 0);
        rig_expect(p.client_ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
        struct rdma_addr *a = &p.client->route.addr;
        assert_int_equal(a->src_addr.sa_family, AF_IB);
        assert_memory_equal(&((struct sockaddr_ib *)&a->src_storage)->sib_addr, &src.sib_addr, 16);
        assert_memory_equal(a->addr.ibaddr.sgid.raw, &src.sib_addr, 16);
        assert_int_equal(ntohs(rdma_get_dst_port(p.client)), p.port);
        assert_int_equal(rdma_resolve_route(p.client, 1000), 0);
        rig_expect(p.client_ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
        assert_int_equal(rdma_create_qp(p.client, NULL, &init), 0);
        rig_pair_connect(&p);
        a = &p.server->route.addr;
        assert_int_equal(a->src_addr.sa_family, AF_IB);
        assert_int_equal(a->dst_addr.sa_family, AF_IB);
        assert_memory_equal(&((struct sockaddr_ib *)&a->dst_storage)->sib_addr, &src.sib_addr, 16);
        assert_int_equal(ntohs(rdma_get_src_port(p.server)), p.port);
        assert_int_equal(rdma_get_dst_port(p.server), rdma_get_src_port(p.client));
        rig_pair_close(&p);
    }
}

static void resolve__gids_no_way(void **state)
{
    (void)state;
    struct sockaddr_ib v4 = gid_addr("::ffff:127.0.0.1", 0x1060007, UINT64_MAX);
    struct sockaddr_ib v6 = gid_addr("::1", 0, 0);
    struct sockaddr_ib lost = gid_addr("fe80::9", 0x1060007, UINT64_MAX);
    union rig_addr ip = rig_addr("127.0.0.1", 0);
    struct {
        struct sockaddr *src, *dst;
        int err;
    } rows[] = {
        {(struct sockaddr *)&v6, (struct sockaddr *)&v4,   EINVAL}, /* of the other IP version */
        {&ip.sa,                 (struct sockaddr *)&v4,   EINVAL}, /* of another family */
        {(struct sockaddr *)&v6, &ip.sa,                   EINVAL},
        {NULL,                   (struct sockaddr *)&lost, EINVAL}, /* on which link? */
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
        int ret = rdma_resolve_addr(id, rows[i].src, rows[i].dst, 1000);
        if (ret != -1 || errno != rows[i].err)
            fail_msg("row %u: %d, errno %d", i, ret, errno);
        rdma_destroy_id(id);
    }
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
    assert_int_equal(rdma_get_src_port(id), 0); /* no address yet */
    assert_int_equal(rdma_get_dst_port(id), 0);
    rdma_destroy_id(id);
}

/* rc@56da3c20b: contexts of devices with a GUID, the same ones that ids show. */
static void case_92__devices(void **state)
{
    (void)state;
    int n = -1;
    struct ibv_context **list = rdma_get_devices(&n);
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
    union rig_addr lo = rig_addr("127.0.0.1", 7);
    bool found = false;

    assert_non_null(list);
    assert_true(n > 0);
    assert_null(list[n]);
    assert_int_equal(rdma_resolve_addr(id, NULL, &lo.sa, 1000), 0);
    for (int i = 0; i < n; i++) {
        found |= list[i] == id->verbs;
        assert_int_not_equal(ibv_get_device_guid(list[i]->device), 0);
    }
    assert_true(found);
    rdma_free_devices(list);
    rdma_destroy_id(id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bind__addresses),
        cmocka_unit_test(bind__no_address),
        cmocka_unit_test(bind__ports),
        cmocka_unit_test(bind__one_family_only),
        cmocka_unit_test(case_104),
        cmocka_unit_test(resolve__no_way),
        cmocka_unit_test(resolve__out_of_order),
        cmocka_unit_test(bind__gids),
        cmocka_unit_test(resolve__gids),
        cmocka_unit_test(resolve__gids_no_way),
        cmocka_unit_test(case_92__devices),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
