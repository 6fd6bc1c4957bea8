/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_gid.c: the GID table through each of its four doors, and the P_Key table.
 */
#include "fake_host.h"

#include <arpa/inet.h>

static void query_gid__filled_empty_outside(void **state)
{
    (void)state;
    static const union ibv_gid none;
    struct ibv_context *ctx = fake_open();
    union ibv_gid gid;

    assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
    assert_int_equal(gid.raw[0], 0xfe);
    assert_int_equal(ibv_query_gid(ctx, 1, 2, &gid), 0);
    assert_int_equal(gid.raw[12], 10);
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &gid), 0);
    assert_memory_equal(&gid, &none, sizeof(gid));
    static const struct {
        uint8_t port;
        int index;
    } bad[] = {
        {0, 0                     },
        {2, 0                     },
        {1, -1                    },
        {1, VERBENA_GID_TABLE_SIZE},
        {1, INT32_MAX             }
    };
    for (unsigned i = 0; i < 5; i++) {
        errno = 0;
        assert_int_equal(ibv_query_gid(ctx, bad[i].port, bad[i].index, &gid), -1);
        assert_int_equal(errno, EINVAL);
    }
    fake_close(ctx);
}

static void query_gid_ex__entry_and_errors(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_gid_entry e;

    assert_int_equal(ibv_query_gid_ex(ctx, 1, 2, &e, 0), 0);
    assert_int_equal(e.gid.raw[12], 10);
    assert_int_equal(e.gid_index, 2);
    assert_int_equal(e.port_num, 1);
    assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
    assert_int_equal(e.ndev_ifindex, 2);
    assert_int_equal(ibv_query_gid_ex(ctx, 1, 1, &e, 0), ENODATA);
    assert_int_equal(ibv_query_gid_ex(ctx, 1, 256, &e, 0), EINVAL);
    assert_int_equal(ibv_query_gid_ex(ctx, 0, 0, &e, 0), EINVAL);
    assert_int_equal(ibv_query_gid_ex(ctx, 2, 0, &e, 0), EINVAL);
    assert_int_equal(ibv_query_gid_ex(ctx, 1, 0, &e, 1), EOPNOTSUPP);
    assert_int_equal(_ibv_query_gid_ex(ctx, 1, 0, &e, 0, sizeof(e) - 1), EINVAL);
    fake_close(ctx);
}

static void query_gid_table__all_or_einval(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_gid_entry e[4];

    assert_int_equal(ibv_query_gid_table(ctx, e, 4, 0), 2);
    assert_int_equal(e[0].gid_index, 0);
    assert_int_equal(e[1].gid_index, 2);
    assert_int_equal(ibv_query_gid_table(ctx, e, 2, 0), 2);
    assert_int_equal(ibv_query_gid_table(ctx, e, 1, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(ctx, e, 0, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(ctx, e, 4, 1), -EOPNOTSUPP);
    assert_int_equal(_ibv_query_gid_table(ctx, e, 4, 0, 8), -EINVAL);
    fake_close(ctx);
}

static void query_gid_table__larger_entries(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct {
        struct ibv_gid_entry e;
        uint64_t later;
    } big[2];

    memset(big, 0xff, sizeof(big));
    assert_int_equal(_ibv_query_gid_table(ctx, &big[0].e, 2, 0, sizeof(big[0])), 2);
    assert_int_equal(big[1].e.gid_index, 2);
    assert_int_equal(big[0].later, 0);
    assert_int_equal(big[1].later, 0);
    fake_close(ctx);
}

static void query_gid_type__v2_where_filled(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    enum gid_type_sysfs type = 77;

    assert_int_equal(ibv_query_gid_type(ctx, 1, 0, &type), 0);
    assert_int_equal(type, GID_TYPE_SYSFS_ROCE_V2);
    assert_int_equal(ibv_query_gid_type(ctx, 1, 1, &type), 0);
    assert_int_equal(type, GID_TYPE_SYSFS_IB_OR_ROCE_V1);
    assert_int_equal(ibv_query_gid_type(ctx, 1, 256, &type), -1);
    assert_int_equal(ibv_query_gid_type(ctx, 2, 0, &type), -1);
    fake_close(ctx);
}

static void pkey__one_entry(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    __be16 pkey;

    assert_int_equal(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
    assert_int_equal(ntohs(pkey), 0xffff);
    assert_int_equal(ibv_get_pkey_index(ctx, 1, pkey), 0);
    assert_int_equal(ibv_query_pkey(ctx, 1, 1, &pkey), -1);
    assert_int_equal(ibv_query_pkey(ctx, 1, -1, &pkey), -1);
    assert_int_equal(ibv_query_pkey(ctx, 2, 0, &pkey), -1);
    assert_int_equal(ibv_get_pkey_index(ctx, 1, htons(0x7fff)), -1);
    assert_int_equal(ibv_get_pkey_index(ctx, 0, htons(0xffff)), -1);
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
        cmocka_unit_test_setup(query_gid__filled_empty_outside, reset),
        cmocka_unit_test_setup(query_gid_ex__entry_and_errors, reset),
        cmocka_unit_test_setup(query_gid_table__all_or_einval, reset),
        cmocka_unit_test_setup(query_gid_table__larger_entries, reset),
        cmocka_unit_test_setup(query_gid_type__v2_where_filled, reset),
        cmocka_unit_test_setup(pkey__one_entry, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
