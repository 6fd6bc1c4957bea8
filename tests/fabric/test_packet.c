/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_packet.c: the pool and its lists.
 */
#include "rig.h"

static void take__all_then_none(void **state)
{
    (void)state;
    struct packet_pool pool;
    assert_int_equal(packet_pool_init(&pool, 3), 0);
    assert_int_equal(packet_take(&pool), 0);
    assert_int_equal(packet_take(&pool), 1);
    assert_int_equal(packet_take(&pool), 2);
    assert_int_equal(packet_take(&pool), PACKET_NONE);
    assert_int_equal(pool.in_use, 3);
    packet_give(&pool, 1);
    packet_give(&pool, 0);
    assert_int_equal(packet_take(&pool), 0); /* the last one given */
    assert_int_equal(packet_take(&pool), 1);
    assert_int_equal(packet_take(&pool), PACKET_NONE);
    packet_pool_fini(&pool);
}

static void pop__first_in_first_out(void **state)
{
    (void)state;
    struct packet_pool pool;
    struct packet_list list = {PACKET_NONE, PACKET_NONE};
    assert_int_equal(packet_pool_init(&pool, 4), 0);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 4; i++)
            packet_push(&pool, &list, i);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(packet_pop(&pool, &list), i);
        assert_int_equal(list.head, PACKET_NONE);
        assert_int_equal(list.tail, PACKET_NONE);
    }
    packet_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take__all_then_none),
        cmocka_unit_test(pop__first_in_first_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
