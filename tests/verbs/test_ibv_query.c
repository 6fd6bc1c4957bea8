/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_query.c: device and port attributes, for programs with shorter and longer structs.
 */
#include "fake_host.h"
#include "verbs/ibv_memory.h"

static void device__identity_and_limits(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_device_attr a;

    memset(&a, 0xa5, sizeof(a));
    assert_int_equal(ibv_query_device(ctx, &a), 0);
    assert_memory_equal(&a.node_guid, "\x02\x11\x22\x33\x44\x55\x66\x77", 8);
    assert_int_not_equal(a.vendor_id, 0);
    assert_int_equal(a.vendor_id >> 16 & 3, 2); /* local, not a group */
    assert_int_equal(a.vendor_id >> 24, 0);
    assert_int_equal(a.phys_port_cnt, 1);
    assert_int_equal(a.max_qp_wr, MAX_WR);
    assert_int_equal(a.max_sge, MAX_SGE);
    assert_int_equal(a.max_qp_rd_atom, MAX_RD_ATOMIC);
    assert_int_equal(a.max_pkeys, 1);
    assert_int_equal(a.max_mw, MAX_MR);
    assert_int_equal(a.max_mcast_grp, 16);
    assert_true(a.device_cap_flags & IBV_DEVICE_BAD_QKEY_CNTR);
    assert_true(a.device_cap_flags & IBV_DEVICE_XRC);
    assert_int_equal(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A, 0);
    for (unsigned i = 0; i < 2; i++) { /* forked, or the interface has gone: what it was */
        fake.fail = i == 0 ? EIO : ENODEV;
        memset(&a, 0, sizeof(a));
        assert_int_equal(ibv_query_device(ctx, &a), 0);
        assert_int_equal(((uint8_t *)&a.node_guid)[1], 0x11);
    }
    fake_close(ctx);
}

static void device_ex__sizes(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_query_device_ex_input bad = {.comp_mask = 1}, good = {0};
    struct {
        struct ibv_device_attr_ex a;
        uint64_t later;
    } u;

    memset(&u, 0xff, sizeof(u));
    assert_int_equal(ibv_query_device_ex_op(ctx, NULL, &u.a, sizeof(u)), 0);
    assert_int_equal(u.a.orig_attr.vendor_id, VERBS_VENDOR_ID);
    assert_int_equal(u.a.phys_port_cnt_ex, 1);
    assert_int_equal(u.a.hca_core_clock, 1000000);
    assert_int_equal(u.a.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
    assert_int_equal(u.a.odp_caps.per_transport_caps.ud_odp_caps,
                     IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV);
    assert_int_equal(u.a.odp_caps.per_transport_caps.rc_odp_caps, 0xff);
    assert_int_equal(u.a.xrc_odp_caps, 0xff);
    assert_int_equal(u.a.device_cap_flags_ex >> 32,
                     (NEWER_DEVICE_FLUSH_GLOBAL | NEWER_DEVICE_ATOMIC_WRITE) >> 32);
    assert_int_equal(u.a.max_dm_size, MEMORY_MAX_DM_BYTES);
    assert_int_equal(u.a.packet_pacing_caps.qp_rate_limit_min, 1);
    assert_int_equal(u.a.packet_pacing_caps.qp_rate_limit_max, UINT32_MAX);
    assert_int_equal(u.a.packet_pacing_caps.supported_qpts,
                     1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD | 1 << IBV_QPT_XRC_SEND);
    assert_int_equal(u.later, 0);
    memset(&u, 0xff, sizeof(u));
    assert_int_equal(ibv_query_device_ex_op(ctx, &good, &u.a, sizeof(u.a.orig_attr)), 0);
    assert_int_equal(u.a.comp_mask, UINT32_MAX); /* not ours to write */
    assert_int_equal(ibv_query_device_ex(ctx, &bad, &u.a), EINVAL);
    assert_int_equal(ibv_query_device_ex_op(ctx, NULL, &u.a, sizeof(u.a.orig_attr) - 1), EINVAL);
    assert_int_equal(ibv_query_device_ex_op(ctx, NULL, &u.a, 0), EINVAL);
    fake_close(ctx);
}

static void port__up_and_down(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_port_attr a;

    assert_int_equal(ibv_query_port(ctx, 1, &a), 0);
    assert_int_equal(a.state, IBV_PORT_ACTIVE);
    assert_int_equal(a.phys_state, 5);
    assert_int_equal(a.max_mtu, IBV_MTU_4096);
    assert_int_equal(a.active_mtu, IBV_MTU_1024);
    assert_int_equal(a.gid_tbl_len, VERBENA_GID_TABLE_SIZE);
    assert_int_equal(a.max_msg_sz, 1 << 30);
    assert_int_equal(a.lid, 0);
    assert_int_equal(a.link_layer, IBV_LINK_LAYER_ETHERNET);
    fake.device[0].up = false;
    assert_int_equal(ibv_query_port(ctx, 1, &a), 0);
    assert_int_equal(a.state, IBV_PORT_DOWN);
    fake.device[0].up = true;
    fake.fail = ENODEV;
    assert_int_equal(ibv_query_port(ctx, 1, &a), 0);
    assert_int_equal(a.state, IBV_PORT_DOWN);
    fake.fail = EIO;
    assert_int_equal(ibv_query_port(ctx, 1, &a), EIO);
    assert_int_equal(ibv_query_port(ctx, 0, &a), EINVAL);
    assert_int_equal(ibv_query_port(ctx, 2, &a), EINVAL);
    fake_close(ctx);
}

/* Whatever the program's struct measures: no byte behind it is touched. */
static void port__sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {48, 52, 56, 64};
    struct ibv_context *ctx = fake_open();

    for (unsigned i = 0; i < 4; i++) {
        uint8_t b[72];
        memset(b, 0xee, sizeof(b));
        assert_int_equal(ibv_query_port_op(ctx, 1, (struct ibv_port_attr *)(void *)b, sizes[i]), 0);
        assert_int_equal(b[sizes[i]], 0xee);
        assert_int_not_equal(b[sizes[i] - 1], 0xee);
    }
    uint8_t old[64];
    memset(old, 0xee, sizeof(old));
    assert_int_equal((ibv_query_port)(ctx, 1, (struct _compat_ibv_port_attr *)(void *)old), 0);
    assert_int_equal(old[47], IBV_QPF_GRH_REQUIRED);
    assert_int_equal(old[48], 0xee);
    fake_close(ctx);
}

static void port__speeds(void **state)
{
    (void)state;
    static const struct {
        uint32_t mbps;
        uint8_t width;
        uint8_t speed;
        uint32_t speed_ex;
    } rows[] = {
        {0,          1, 4,   0  }, /* unknown */
        {10,         1, 1,   0  },
        {1000,       1, 1,   0  },
        {10000,      1, 4,   0  },
        {25000,      1, 32,  0  },
        {40000,      2, 4,   0  },
        {50000,      1, 64,  0  },
        {100000,     2, 32,  0  },
        {200000,     2, 64,  0  },
        {400000,     2, 128, 0  },
        {800000,     2, 128, 256},
        {UINT32_MAX, 2, 128, 256},
    };
    struct ibv_context *ctx = fake_open();

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        union port_attr_newest a;
        fake.device[0].speed_mbps = rows[i].mbps;
        assert_int_equal(ibv_query_port_op(ctx, 1, &a.attr, sizeof(a)), 0);
        assert_int_equal(a.attr.active_width, rows[i].width);
        assert_int_equal(a.attr.active_speed, rows[i].speed);
        assert_int_equal(a.active_speed_ex, rows[i].speed_ex);
    }
    uint64_t speed = 0;
    fake.device[0].speed_mbps = 25000;
    assert_int_equal(ibv_query_port_speed(ctx, 1, &speed), 0);
    assert_int_equal(speed, 250);
    assert_int_equal(ibv_query_port_speed(ctx, 2, &speed), EINVAL);
    fake.fail = ENODEV;
    assert_int_equal(ibv_query_port_speed(ctx, 1, &speed), ENODEV);
    fake_close(ctx);
}

static void rt_values__raw_clock(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 7};

    assert_int_equal(ibv_query_rt_values_ex(ctx, &v), 0);
    assert_int_equal(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
    assert_int_equal(v.raw_clock.tv_sec, 0);
    assert_true(v.raw_clock.tv_nsec > 0);
    fake_close(ctx);
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(device__identity_and_limits, reset),
        cmocka_unit_test_setup(device_ex__sizes, reset),
        cmocka_unit_test_setup(port__up_and_down, reset),
        cmocka_unit_test_setup(port__sizes, reset),
        cmocka_unit_test_setup(port__speeds, reset),
        cmocka_unit_test_setup(rt_values__raw_clock, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
