/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_ah.c: which address vectors are paths, address handles, the way back from a datagram.
 */
#include "fake_host.h"

static struct ibv_ah_attr good_v4(void)
{
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = 1,
        .grh = {.sgid_index = 2,
                .hop_limit = 9,
                .traffic_class = 0x42,
                .flow_label = 0xabcde,
                .dgid = {.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}}},
    };
}

static void path__all_fields(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_ah_attr attr = good_v4();
    struct nic_path path;

    assert_int_equal(ibv_ah_path(ctx, &attr, &path), 0);
    assert_int_equal(path.local.b[12], 10);
    assert_memory_equal(path.remote.b, attr.grh.dgid.raw, 16);
    assert_int_equal(path.traffic_class, 0x42);
    assert_int_equal(path.hop_limit, 9);
    assert_int_equal(path.flow_label, 0xabcde);
    assert_int_equal(path.udp_sport, 0xc000 | ((0xabcde ^ 0xabcde >> 14) & 0x3fff));
    attr.grh.flow_label = 0;
    assert_int_equal(ibv_ah_path(ctx, &attr, &path), 0);
    assert_int_equal(path.udp_sport, 0); /* the QP's own */
    attr.grh.hop_limit = 0;
    assert_int_equal(ibv_ah_path(ctx, &attr, &path), 0);
    assert_int_equal(path.hop_limit, 64);
    fake_close(ctx);
}

/* Codes of the IBTA; 0 is whatever the port can. */
static void path__static_rate(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    static const struct {
        uint8_t code;
        unsigned rate; /* of 312.5 Mb/s */
    } rows[] = {
        {IBV_RATE_MAX,       0   },
        {IBV_RATE_2_5_GBPS,  8   },
        {IBV_RATE_14_GBPS,   45  },
        {IBV_RATE_25_GBPS,   82  },
        {IBV_RATE_100_GBPS,  330 },
        {IBV_RATE_1200_GBPS, 4080},
    };
    static const uint8_t nobodys[] = {1, IBV_RATE_1200_GBPS + 1, 0x80, 0xff};
    struct nic_path path;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_ah_attr attr = good_v4();
        attr.static_rate = rows[i].code;
        assert_int_equal(ibv_ah_path(ctx, &attr, &path), 0);
        assert_int_equal(path.rate, rows[i].rate);
    }
    for (unsigned i = 0; i < sizeof(nobodys); i++) {
        struct ibv_ah_attr attr = good_v4();
        attr.static_rate = nobodys[i];
        assert_int_equal(ibv_ah_path(ctx, &attr, &path), -EINVAL);
    }
    fake_close(ctx);
}

static void path__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_ah_attr bad[7];
    struct nic_path path;

    for (unsigned i = 0; i < 7; i++)
        bad[i] = good_v4();
    bad[0].is_global = 0;
    bad[1].port_num = 0;
    bad[2].port_num = 2;
    bad[3].grh.sgid_index = 1; /* empty */
    bad[4].grh.sgid_index = FAKE_GIDS;
    memset(&bad[5].grh.dgid, 0, sizeof(bad[5].grh.dgid));
    bad[6].grh.sgid_index = 0; /* IPv6 here, IPv4 there */
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(ibv_ah_path(ctx, &bad[i], &path), -EINVAL);
        struct ibv_pd *pd = ibv_alloc_pd(ctx);
        errno = 0;
        assert_null(ibv_create_ah(pd, &bad[i]));
        assert_int_equal(errno, EINVAL);
        assert_int_equal(ibv_dealloc_pd(pd), 0);
    }
    fake_close(ctx);
}

static void ah__counts_on_its_pd(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_ah_attr attr = good_v4();
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);

    assert_non_null(ah);
    assert_ptr_equal(ah->pd, pd);
    assert_ptr_equal(ah->context, ctx);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

/* IBA A17, IBA A17.4.5.2 */
static void init_ah_from_wc__ipv4(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_ah_attr attr;
    union {
        struct ibv_grh grh;
        uint8_t b[40];
    } u = {
        .b = {0x60, [20] = 0x45, [21] = 0x88, [30] = 0xa6, 0x6f, 10, 0, 0, 7, 10, 0, 0, 1}
    };

    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &u.grh, &attr), 0);
    assert_int_equal(attr.grh.sgid_index, 2);
    assert_int_equal(attr.grh.traffic_class, 0x88);
    assert_int_equal(attr.grh.dgid.raw[11], 0xff);
    assert_int_equal(attr.grh.dgid.raw[15], 7);
    assert_int_equal(attr.is_global, 1);
    fake_close(ctx);
}

static void init_ah_from_wc__ipv6(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_ah_attr attr;
    union {
        struct ibv_grh grh;
        uint8_t b[40];
    } u = {
        .b = {0x64, 0x2a, 0xbc, 0xde, [8] = 0xfe, 0x80, [23] = 9, [24] = 0xfe, 0x80, [39] = 1}
    };

    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &u.grh, &attr), 0);
    assert_int_equal(attr.grh.sgid_index, 0);
    assert_int_equal(attr.grh.traffic_class, 0x42);
    assert_int_equal(attr.grh.flow_label, 0xabcde);
    assert_int_equal(attr.grh.dgid.raw[15], 9);
    fake_close(ctx);
}

static void init_ah_from_wc__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_wc with = {.wc_flags = IBV_WC_GRH}, without = {0};
    struct ibv_ah_attr attr;
    union {
        struct ibv_grh grh;
        uint8_t b[40];
    } ours =
        {
            .b = {[20] = 0x45, [30] = 0xa6, 0xf7, 10, 0, 0, 7, 10, 0, 0, 1}
    },
      other = ours, none = {.b = {0}}, broken = ours, options = ours;

    other.b[39] = 99; /* was not sent to us */
    other.b[31] = (uint8_t)(other.b[31] - 98);
    broken.b[35] ^= 1; /* rc#462: its checksum tells */
    options.b[20] = 0x46;
    options.b[30]--;
    assert_int_equal(ibv_init_ah_from_wc(ctx, 2, &with, &ours.grh, &attr), -1);
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &without, &ours.grh, &attr), -1);
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &with, &other.grh, &attr), -1);
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &with, &none.grh, &attr), -1);
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &with, &broken.grh, &attr), -1);
    assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &with, &options.grh, &attr), -1);
    assert_null(ibv_create_ah_from_wc(pd, &with, &other.grh, 1));
    assert_int_equal(errno, EINVAL);
    struct ibv_ah *ah = ibv_create_ah_from_wc(pd, &with, &ours.grh, 1);
    assert_non_null(ah);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
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
        cmocka_unit_test_setup(path__all_fields, reset),
        cmocka_unit_test_setup(path__static_rate, reset),
        cmocka_unit_test_setup(path__refused, reset),
        cmocka_unit_test_setup(ah__counts_on_its_pd, reset),
        cmocka_unit_test_setup(init_ah_from_wc__ipv4, reset),
        cmocka_unit_test_setup(init_ah_from_wc__ipv6, reset),
        cmocka_unit_test_setup(init_ah_from_wc__refused, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
