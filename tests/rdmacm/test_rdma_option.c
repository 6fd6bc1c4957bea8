/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_option.c: options, each with values it has and has not; ECE.
 */
#include "cm_rig.h"

#include <infiniband/sa.h>

struct row {
    int level, name;
    int value;
    size_t length;
    int err;
};

static void set_option__rows(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,         0x68, 1, 0     },
        {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,         0x68, 4, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,   1,    4, 0     },
        {RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,   1,    1, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,      1,    4, 0     },
        {RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,      1,    8, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 14,   1, 0     },
        {RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 32,   1, EINVAL},
        {RDMA_OPTION_ID, 4,                          0,    1, ENOSYS},
        {RDMA_OPTION_ID, -1,                         0,    1, ENOSYS},
        {RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,        0,    4, EINVAL},
        {RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,        0,    0, EINVAL},
        {RDMA_OPTION_IB, 2,                          0,    4, ENOSYS},
        {7,              RDMA_OPTION_ID_TOS,         0,    1, ENOSYS},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
        int64_t value = rows[i].value;
        int ret = rdma_set_option(id, rows[i].level, rows[i].name, &value, rows[i].length);
        if (ret != (rows[i].err == 0 ? 0 : -1) || (ret != 0 && errno != rows[i].err))
            fail_msg("row %u: %d, errno %d", i, ret, errno);
        rdma_destroy_id(id);
    }
}

static void set_option__too_late(void **state)
{
    (void)state;
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
    union rig_addr any = rig_addr("::", 0);
    int on = 1, off = 0;

    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_bind_addr(id, &any.sa), 0);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)),
                     -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(
        rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &off, sizeof(off)), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_id(id);
}

/* RDMA_OPTION_IB_PATH stands for rdma_resolve_route. */
static void set_path__rows(void **state)
{
    (void)state;
    const uint32_t good = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
    static const struct {
        uint32_t clear, set; /* flags */
        bool resolved, swapped;
        size_t paths, more_bytes;
        int err;
    } rows[] = {
        {0,                     0,                       true,  false, 1, 0, 0     },
        {0,                     0,                       true,  false, 3, 0, 0     }, /* the last */
        {0,                     0,                       false, false, 1, 0, EINVAL},
        {0,                     0,                       true,  true,  1, 0, EINVAL}, /* not ours */
        {0,                     0,                       true,  false, 1, 1, EINVAL},
        {0,                     0,                       true,  false, 0, 0, EINVAL},
        {IBV_PATH_FLAG_GMP,     0,                       true,  false, 1, 0, EINVAL},
        {IBV_PATH_FLAG_PRIMARY, IBV_PATH_FLAG_ALTERNATE, true,  false, 1, 0, EINVAL},
    };
    struct rdma_event_channel *ch = rig_channel();

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
        union rig_addr dst = rig_addr("127.0.0.1", 7);
        struct ibv_path_data path[4] = {0};
        if (rows[i].resolved) {
            assert_int_equal(rdma_resolve_addr(id, NULL, &dst.sa, 1000), 0);
            rig_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
        }
        struct ibv_path_data *p = &path[rows[i].paths > 0 ? rows[i].paths - 1 : 0];
        p->flags = (good & ~rows[i].clear) | rows[i].set;
        p->path.sgid = id->route.addr.addr.ibaddr.sgid;
        p->path.dgid = id->route.addr.addr.ibaddr.dgid;
        p->path.dgid.raw[15] += rows[i].swapped;
        p->path.tclass = 0x68;
        int ret = rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path,
                                  rows[i].paths * sizeof(path[0]) + rows[i].more_bytes);
        if (ret != (rows[i].err == 0 ? 0 : -1) || (ret != 0 && errno != rows[i].err))
            fail_msg("row %u: %d, errno %d", i, ret, errno);
        if (ret == 0) {
            rig_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
            assert_int_equal(id->route.path_rec->traffic_class, 0x68);
            assert_int_equal(rdma_resolve_route(id, 1000), -1); /* it is */
            assert_int_equal(errno, EINVAL);
        }
        rig_expect_none(ch);
        rdma_destroy_id(id);
    }
    rdma_destroy_event_channel(ch);
}

/* An ack timeout is of connections. */
static void set_option__of_datagrams(void **state)
{
    (void)state;
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_UDP);
    uint8_t value = 14;

    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1),
                     -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, 1), 0);
    rdma_destroy_id(id);
}

static void options__reach_the_peer(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
    uint8_t tos = 0x68;

    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
    rig_resolve(id, "127.0.0.1", 7);
    assert_int_equal(id->route.path_rec->traffic_class, 0x68);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(ch);
}

static void ece__rows(void **state)
{
    (void)state;
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
    struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 3}, none = {0};
    struct ibv_ece mask = {.vendor_id = 1, .comp_mask = 1}, got;

    assert_int_equal(rdma_set_local_ece(id, &ece), 0);
    assert_int_equal(rdma_set_local_ece(id, &none), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_set_local_ece(id, &mask), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_set_local_ece(id, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_get_remote_ece(id, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_get_remote_ece(id, &got), 0);
    assert_int_equal(got.vendor_id, 0);
    rdma_destroy_id(id);
}

/* From one side's calls to the other's. */
static void ece__told(void **state)
{
    (void)state;
    struct rig_pair p;
    struct rdma_conn_param param = {.qp_num = 2};
    struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 0x30000012}, got;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, false);
    assert_int_equal(rdma_set_local_ece(p.client, &ece), 0);
    assert_int_equal(rdma_connect(p.client, &param), 0);
    rdma_ack_cm_event(rig_pair_request(&p, false));
    assert_int_equal(rdma_get_remote_ece(p.server, &got), 0);
    assert_int_equal(got.vendor_id, ece.vendor_id);
    assert_int_equal(rdma_reject_ece(p.server, NULL, 0), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_REJECTED, 35);
    rig_pair_close(&p);
}

/* The answer's way: the active side learns it with CONNECT_RESPONSE. */
static void ece__answered(void **state)
{
    (void)state;
    struct rig_pair p;
    struct rdma_conn_param param = {.qp_num = 2};
    struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 0x10000001}, got = {0};

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, false);
    assert_int_equal(rdma_connect(p.client, &param), 0);
    rdma_ack_cm_event(rig_pair_request(&p, false));
    assert_int_equal(rdma_get_remote_ece(p.server, &got), 0);
    assert_int_equal(got.vendor_id, 0); /* the client said nothing */
    assert_int_equal(rdma_set_local_ece(p.server, &ece), 0);
    param.qp_num = 3;
    assert_int_equal(rdma_accept(p.server, &param), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    assert_int_equal(rdma_get_remote_ece(p.client, &got), 0);
    assert_int_equal(got.vendor_id, ece.vendor_id);
    assert_int_equal(got.options, ece.options);
    rig_pair_close(&p);
}

enum { OUR_VENDOR = 0x564552, PROBES = 1 };

static void expect_ece(struct ibv_qp *qp, uint32_t options)
{
    struct ibv_ece got = {0};

    assert_int_equal(ibv_query_ece(qp, &got), 0);
    assert_int_equal(got.vendor_id, OUR_VENDOR);
    assert_int_equal(got.options, options);
}

/* The library's QPs on both sides agree, without the programs. */
static void ece__of_qps_made_here(void **state)
{
    (void)state;
    struct rig_pair p;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
    rig_pair_connect(&p);
    expect_ece(p.client->qp, PROBES);
    expect_ece(p.server->qp, PROBES);
    rig_pair_close(&p);
}

/* What a program with a QP of its own says, to a QP made here, and the answer. */
static void ece__asked_by_programs(void **state)
{
    (void)state;
    static const struct {
        struct ibv_ece said; /* vendor 0: nothing */
        uint32_t vendor, options, used;
    } rows[] = {
        {{OUR_VENDOR, PROBES, 0},     OUR_VENDOR, PROBES, PROBES},
        {{OUR_VENDOR, UINT32_MAX, 0}, OUR_VENDOR, PROBES, PROBES},
        {{OUR_VENDOR, 0, 0},          OUR_VENDOR, 0,      0     },
        {{0x15b3, 0x30000001, 0},     0x15b3,     0,      0     },
        {{0, 0, 0},                   0,          0,      0     },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig_pair p;
        struct rdma_conn_param param = {.qp_num = 2};
        struct ibv_ece said = rows[i].said, got;
        rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, false);
        if (said.vendor_id != 0)
            assert_int_equal(rdma_set_local_ece(p.client, &said), 0);
        assert_int_equal(rdma_connect(p.client, &param), 0);
        rdma_ack_cm_event(rig_pair_request(&p, true));
        assert_int_equal(rdma_accept(p.server, NULL), 0);
        rig_expect(p.client_ch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
        assert_int_equal(rdma_get_remote_ece(p.client, &got), 0);
        assert_int_equal(got.vendor_id, rows[i].vendor);
        assert_int_equal(got.options, rows[i].options);
        expect_ece(p.server->qp, rows[i].used);
        rig_pair_close(&p);
    }
}

/* What a program answers a QP made here. Only what it was offered counts, and nothing that it says
 * keeps the connection from being. */
static void ece__answered_by_programs(void **state)
{
    (void)state;
    static const struct {
        struct ibv_ece said; /* vendor 0: nothing */
        uint32_t used;
    } rows[] = {
        {{OUR_VENDOR, PROBES, 0},              PROBES},
        {{OUR_VENDOR, 0, 0},                   0     },
        {{OUR_VENDOR, 0x30000000 | PROBES, 0}, 0     },
        {{0x15b3, PROBES, 0},                  0     },
        {{0, 0, 0},                            PROBES}, /* whose QP answers all the same */
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig_pair p;
        struct rdma_conn_param param = {.qp_num = 2};
        struct ibv_ece said = rows[i].said, asked;
        rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
        assert_int_equal(rdma_connect(p.client, NULL), 0);
        rdma_ack_cm_event(rig_pair_request(&p, false));
        assert_int_equal(rdma_get_remote_ece(p.server, &asked), 0);
        assert_int_equal(asked.vendor_id, OUR_VENDOR);
        assert_int_equal(asked.options, PROBES);
        if (said.vendor_id != 0)
            assert_int_equal(rdma_set_local_ece(p.server, &said), 0);
        assert_int_equal(rdma_accept(p.server, &param), 0);
        rig_expect(p.client_ch, RDMA_CM_EVENT_ESTABLISHED, 0);
        expect_ece(p.client->qp, rows[i].used);
        rig_pair_close(&p);
    }
}

/* A program with a QP of its own that does nothing about ECE: what its QP does in any case is
 * answered, of what was asked by ours. */
static void ece__answered_for_programs(void **state)
{
    (void)state;
    static const struct {
        struct ibv_ece asked; /* vendor 0: nothing */
        uint32_t vendor, options;
    } rows[] = {
        {{OUR_VENDOR, PROBES, 0},     OUR_VENDOR, PROBES},
        {{OUR_VENDOR, UINT32_MAX, 0}, OUR_VENDOR, PROBES},
        {{OUR_VENDOR, 0, 0},          OUR_VENDOR, 0     },
        {{OUR_VENDOR, ~PROBES, 0},    OUR_VENDOR, 0     },
        {{0x15b3, UINT32_MAX, 0},     0x15b3,     0     },
        {{0, 0, 0},                   0,          0     },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig_pair p;
        struct rdma_conn_param param = {.qp_num = 2};
        struct ibv_ece asked = rows[i].asked, got;
        rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, false);
        if (asked.vendor_id != 0)
            assert_int_equal(rdma_set_local_ece(p.client, &asked), 0);
        assert_int_equal(rdma_connect(p.client, &param), 0);
        rdma_ack_cm_event(rig_pair_request(&p, false));
        param.qp_num = 3;
        assert_int_equal(rdma_accept(p.server, &param), 0);
        rig_expect(p.client_ch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
        assert_int_equal(rdma_get_remote_ece(p.client, &got), 0);
        assert_int_equal(got.vendor_id, rows[i].vendor);
        assert_int_equal(got.options, rows[i].options);
        rig_pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_option__rows),
        cmocka_unit_test(set_option__too_late),
        cmocka_unit_test(set_path__rows),
        cmocka_unit_test(set_option__of_datagrams),
        cmocka_unit_test(options__reach_the_peer),
        cmocka_unit_test(ece__rows),
        cmocka_unit_test(ece__told),
        cmocka_unit_test(ece__answered),
        cmocka_unit_test(ece__of_qps_made_here),
        cmocka_unit_test(ece__asked_by_programs),
        cmocka_unit_test(ece__answered_by_programs),
        cmocka_unit_test(ece__answered_for_programs),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
