/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_device.c: the device list.
 */
#include "fake_host.h"

static void list__order_names_guids(void **state)
{
    (void)state;
    int n = -1;
    struct ibv_device **list = ibv_get_device_list(&n);

    assert_int_equal(n, 2);
    assert_null(list[2]);
    assert_string_equal(ibv_get_device_name(list[0]), "vb_eth0");
    assert_string_equal(ibv_get_device_name(list[1]), "vb_lo");
    assert_int_equal(list[0]->node_type, IBV_NODE_CA);
    assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);
    assert_int_equal(ibv_get_device_index(list[0]), 2);
    assert_int_not_equal(strlen(list[0]->dev_name), 0);
    assert_non_null(strstr(list[0]->ibdev_path, "/class/infiniband/vb_eth0"));
    __be64 guid = ibv_get_device_guid(list[0]);
    assert_memory_equal(&guid, "\x02\x11\x22\x33\x44\x55\x66\x77", 8);
    ibv_free_device_list(list);
}

static void list__private_part_is_zero(void **state)
{
    (void)state;
    static const uint8_t zero[1024];
    struct ibv_device **list = ibv_get_device_list(NULL);

    assert_memory_equal((const char *)list[0] + 664, zero, sizeof(zero));
    ibv_free_device_list(list);
}

static void list__same_pointer_while_held(void **state)
{
    (void)state;
    struct ibv_device **a = ibv_get_device_list(NULL);
    struct ibv_device **b = ibv_get_device_list(NULL);

    assert_ptr_equal(a[0], b[0]);
    assert_ptr_not_equal(a[0], a[1]);
    ibv_free_device_list(a);
    assert_string_equal(ibv_get_device_name(b[0]), "vb_eth0");
    ibv_free_device_list(b);
}

static void list__context_keeps_device(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open(); /* frees its list */

    assert_string_equal(ibv_get_device_name(ctx->device), "vb_eth0");
    fake_close(ctx);
}

static void list__none_and_failure(void **state)
{
    (void)state;
    int n = -1;

    fake.devices = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    assert_non_null(list);
    assert_null(list[0]);
    assert_int_equal(n, 0);
    ibv_free_device_list(list);
    ibv_free_device_list(NULL);
    fake.fail = EMFILE;
    n = -1;
    errno = 0;
    assert_null(ibv_get_device_list(&n));
    assert_int_equal(errno, EMFILE);
    assert_int_equal(n, 0);
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
        cmocka_unit_test_setup(list__order_names_guids, reset),
        cmocka_unit_test_setup(list__private_part_is_zero, reset),
        cmocka_unit_test_setup(list__same_pointer_while_held, reset),
        cmocka_unit_test_setup(list__context_keeps_device, reset),
        cmocka_unit_test_setup(list__none_and_failure, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
