/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_mcast.c: joining a group is refused cleanly.
 */
#include "cm_rig.h"

static void join__not_there_yet(void **state)
{
    (void)state;
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_UDP);
    union rig_addr lo = rig_addr("127.0.0.1", 0), group = rig_addr("224.0.1.9", 0);
    struct rdma_cm_join_mc_attr_ex ex = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
                                                      RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
                                         .addr = &group.sa};

    assert_int_equal(rdma_join_multicast(id, &group.sa, NULL), -1);
    assert_int_equal(errno, EINVAL); /* of no device */
    assert_int_equal(rdma_bind_addr(id, &lo.sa), 0);
    assert_int_equal(rdma_join_multicast(id, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_join_multicast(id, &group.sa, NULL), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(rdma_join_multicast_ex(id, &ex, NULL), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    ex.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
    assert_int_equal(rdma_join_multicast_ex(id, &ex, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_join_multicast_ex(id, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_leave_multicast(id, &group.sa), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_false(rig_readable(id->channel->fd));
    rdma_destroy_id(id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(join__not_there_yet)};

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
