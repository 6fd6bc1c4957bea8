/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_addrinfo.c: names to addresses, with each hint.
 */
#include "cm_rig.h"

#include <endian.h>
#include <infiniband/ib.h>
#include <net/if.h>
#include <netdb.h>

#include "rdmacm/rdmacm_newer.h"

struct row {
    const char *node, *service;
    const struct rdma_addrinfo *hints;
    int space, type, family;
};

static void getaddrinfo__hints(void **state)
{
    (void)state;
    static const struct rdma_addrinfo any = {0}, udp = {.ai_port_space = RDMA_PS_UDP};
    static const struct rdma_addrinfo ud = {.ai_qp_type = IBV_QPT_UD};
    static const struct rdma_addrinfo xrc = {.ai_qp_type = IBV_QPT_XRC_SEND};
    static const struct rdma_addrinfo xrc_ib = {.ai_port_space = RDMA_PS_IB,
                                                .ai_qp_type = IBV_QPT_XRC_RECV};
    static const struct rdma_addrinfo ib = {.ai_port_space = RDMA_PS_IB};
    static const struct rdma_addrinfo passive4 = {.ai_flags = RAI_PASSIVE, .ai_family = AF_INET};
    static const struct rdma_addrinfo passive6 = {.ai_flags = RAI_PASSIVE, .ai_family = AF_INET6};
    static const struct row rows[] = {
        {"127.0.0.1", "7471", &any,      RDMA_PS_TCP, IBV_QPT_RC,       AF_INET },
        {"::1",       "7471", &any,      RDMA_PS_TCP, IBV_QPT_RC,       AF_INET6},
        {"127.0.0.1", "1",    &udp,      RDMA_PS_UDP, IBV_QPT_UD,       AF_INET },
        {"127.0.0.1", "1",    &ud,       RDMA_PS_UDP, IBV_QPT_UD,       AF_INET },
        {"127.0.0.1", "1",    &ib,       RDMA_PS_IB,  IBV_QPT_RC,       AF_INET },
        {"127.0.0.1", "1",    &xrc,      RDMA_PS_IB,  IBV_QPT_XRC_SEND, AF_INET },
        {"127.0.0.1", "1",    &xrc_ib,   RDMA_PS_IB,  IBV_QPT_XRC_RECV, AF_INET },
        {NULL,        "1",    &passive4, RDMA_PS_TCP, IBV_QPT_RC,       AF_INET },
        {NULL,        "1",    &passive6, RDMA_PS_TCP, IBV_QPT_RC,       AF_INET6},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        struct rdma_addrinfo *res = NULL;
        assert_int_equal(rdma_getaddrinfo(r->node, r->service, r->hints, &res), 0);
        assert_int_equal(res->ai_port_space, r->space);
        assert_int_equal(res->ai_qp_type, r->type);
        assert_int_equal(res->ai_family, r->family);
        bool passive = (r->hints->ai_flags & RAI_PASSIVE) != 0;
        assert_int_equal(res->ai_src_addr != NULL, passive);
        assert_int_equal(res->ai_dst_addr != NULL, !passive);
        assert_int_equal(passive ? res->ai_dst_len : res->ai_src_len, 0);
        rdma_freeaddrinfo(res);
    }
    rdma_freeaddrinfo(NULL);
}

static void getaddrinfo__refused(void **state)
{
    (void)state;
    struct rdma_addrinfo *res = NULL, numeric = {.ai_flags = RAI_NUMERICHOST};
    struct rdma_addrinfo ib = {.ai_family = AF_UNIX};

    assert_int_equal(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_getaddrinfo("localhost", "1", &numeric, &res), EAI_NONAME);
    assert_int_not_equal(rdma_getaddrinfo("127.0.0.1", "1", &ib, &res), 0);
    assert_int_not_equal(rdma_getaddrinfo("127.0.0.1", "no such service", NULL, &res), 0);
    assert_null(res);
}

/* GIDs, as `ucmatose -f gid` asks for them. */
static void getaddrinfo__gids(void **state)
{
    (void)state;
    static const struct {
        const char *node, *service, *gid;
        int space, flags;
        uint64_t sid;
    } rows[] = {
        {"::1",       "7471", "::1",              RDMA_PS_TCP, RAI_NUMERICHOST | RAI_FAMILY, 0x1061d2f},
        {"127.0.0.1", "1",    "::ffff:127.0.0.1", RDMA_PS_IB,  RAI_NUMERICHOST | RAI_FAMILY, 0x13f0001},
        {NULL,        "5",    "::",               RDMA_PS_UDP, RAI_PASSIVE | RAI_FAMILY,     0x1110005},
        {"::1",       NULL,   "::1",              RDMA_PS_TCP, RAI_PASSIVE | RAI_NOROUTE,    0x1060000},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_addrinfo *res = NULL, hints = {.ai_flags = rows[i].flags,
                                                   .ai_family = AF_IB,
                                                   .ai_port_space = rows[i].space};
        uint8_t gid[16];
        assert_int_equal(inet_pton(AF_INET6, rows[i].gid, gid), 1);
        assert_int_equal(rdma_getaddrinfo(rows[i].node, rows[i].service, &hints, &res), 0);
        bool passive = (rows[i].flags & RAI_PASSIVE) != 0;
        const struct sockaddr_ib *sib = (void *)(passive ? res->ai_src_addr : res->ai_dst_addr);
        assert_int_equal(res->ai_family, AF_IB);
        assert_int_equal(passive ? res->ai_src_len : res->ai_dst_len, sizeof(*sib));
        assert_int_equal(sib->sib_family, AF_IB);
        assert_memory_equal(&sib->sib_addr, gid, 16);
        assert_true(be64toh(sib->sib_sid) == rows[i].sid);
        rdma_freeaddrinfo(res);
    }
    struct rdma_addrinfo *res = NULL, hints = {.ai_flags = RAI_NUMERICHOST, .ai_family = AF_IB};
    assert_int_equal(rdma_getaddrinfo("localhost", "1", &hints, &res), EAI_NONAME);
    assert_int_equal(rdma_getaddrinfo("::1", "no such service", &hints, &res), EAI_SERVICE);
    assert_null(res);
}

/* A link-local address with its interface. */
static void getaddrinfo__scope(void **state)
{
    (void)state;
    struct rdma_addrinfo *res = NULL, hints = {.ai_flags = RAI_NUMERICHOST};

    assert_int_equal(rdma_getaddrinfo("fe80::1%lo", "7", &hints, &res), 0);
    assert_int_equal(((struct sockaddr_in6 *)(void *)res->ai_dst_addr)->sin6_scope_id,
                     if_nametoindex("lo"));
    rdma_freeaddrinfo(res);
    hints.ai_family = AF_IB;
    assert_int_equal(rdma_getaddrinfo("fe80::1%lo", "7", &hints, &res), 0);
    assert_int_equal(((struct sockaddr_ib *)(void *)res->ai_dst_addr)->sib_scope_id,
                     if_nametoindex("lo"));
    rdma_freeaddrinfo(res);
    assert_int_not_equal(rdma_getaddrinfo("fe80::1%no such", "7", &hints, &res), 0);
}

static void getaddrinfo__source_of_the_hints(void **state)
{
    (void)state;
    union rig_addr src = rig_addr("127.0.0.1", 0);
    struct rdma_addrinfo *res = NULL,
                         hints = {.ai_src_addr = &src.sa, .ai_src_len = sizeof(src.v4)};

    assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7", &hints, &res), 0);
    assert_int_equal(res->ai_src_len, sizeof(src.v4));
    assert_ptr_not_equal(res->ai_src_addr, &src.sa);
    assert_memory_equal(res->ai_src_addr, &src, sizeof(src.v4));
    rdma_freeaddrinfo(res);
}

/* libfabric: no name, the addresses are in the hints. */
static void getaddrinfo__addresses_of_the_hints(void **state)
{
    (void)state;
    union rig_addr v4 = rig_addr("127.0.0.1", 7), v6 = rig_addr("::1", 8), none = {0};
    const struct {
        union rig_addr *src, *dst;
        int flags, err;
    } rows[] = {
        {NULL,  &v4,   0,           0         },
        {&v4,   &v4,   0,           0         },
        {&v6,   &v6,   0,           0         },
        {&v6,   NULL,  RAI_PASSIVE, 0         },
        {NULL,  NULL,  0,           EAI_NONAME},
        {NULL,  NULL,  RAI_PASSIVE, EAI_NONAME},
        {NULL,  &none, 0,           EAI_FAMILY},
        {&none, NULL,  RAI_PASSIVE, EAI_FAMILY},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sockaddr *src = rows[i].src != NULL ? &rows[i].src->sa : NULL;
        struct sockaddr *dst = rows[i].dst != NULL ? &rows[i].dst->sa : NULL;
        struct rdma_addrinfo *res = NULL, hints = {
                                              .ai_flags = rows[i].flags,
                                              .ai_src_addr = src,
                                              .ai_src_len = src != NULL ? sizeof(*rows[i].src) : 0,
                                              .ai_dst_addr = dst,
                                              .ai_dst_len = dst != NULL ? sizeof(*rows[i].dst) : 0,
                                          };
        assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), rows[i].err);
        if (rows[i].err != 0) {
            assert_null(res);
            continue;
        }
        assert_null(res->ai_next);
        assert_int_equal(res->ai_family, (dst != NULL ? dst : src)->sa_family);
        assert_int_equal(res->ai_flags, rows[i].flags);
        assert_int_equal(res->ai_src_addr != NULL, src != NULL);
        assert_int_equal(res->ai_dst_addr != NULL, dst != NULL);
        if (src != NULL)
            assert_memory_equal(res->ai_src_addr, src, sizeof(union rig_addr));
        if (dst != NULL)
            assert_memory_equal(res->ai_dst_addr, dst, sizeof(union rig_addr));
        rdma_freeaddrinfo(res);
    }
}

static void resolve_addrinfo__event(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
    struct rdma_addrinfo *res = NULL, sa = {.ai_flags = NEWER_RAI_SA};
    struct rdma_addrinfo both = {.ai_flags = NEWER_RAI_SA | NEWER_RAI_DNS};

    assert_int_equal(rdma_query_addrinfo(id, &res), -1);
    assert_int_equal(errno, ENODATA);
    assert_int_equal(rdma_resolve_addrinfo(id, NULL, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_resolve_addrinfo(id, "::1", "7", &both), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_resolve_addrinfo(id, NULL, "7", &sa), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(rdma_resolve_addrinfo(id, "127.0.0.1", "no such service", NULL), 0);
    rig_expect(ch, (enum rdma_cm_event_type)NEWER_EVENT_ADDRINFO_ERROR, -ENODATA);
    assert_int_equal(rdma_resolve_addrinfo(id, "127.0.0.1", "7", NULL), 0);
    rig_expect(ch, (enum rdma_cm_event_type)NEWER_EVENT_ADDRINFO_RESOLVED, 0);
    assert_int_equal(rdma_query_addrinfo(id, &res), 0);
    assert_int_equal(res->ai_family, AF_INET);
    rdma_freeaddrinfo(res);
    assert_int_equal(rdma_resolve_addrinfo(id, "127.0.0.1", "7", NULL), 0);
    assert_int_equal(rdma_destroy_id(id), 0); /* the answer goes with it */
    rdma_destroy_event_channel(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(getaddrinfo__hints),
        cmocka_unit_test(getaddrinfo__refused),
        cmocka_unit_test(getaddrinfo__gids),
        cmocka_unit_test(getaddrinfo__scope),
        cmocka_unit_test(getaddrinfo__source_of_the_hints),
        cmocka_unit_test(getaddrinfo__addresses_of_the_hints),
        cmocka_unit_test(resolve_addrinfo__event),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
