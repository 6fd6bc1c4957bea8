/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_counters.c: every counter has a name of its own; adding adds to that one only.
 */
#include "nic/counters.h"
#include "objects.h"

static void counters_name__all_different(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTER_COUNT; i++) {
        const char *name = counters_name((enum nic_counter)i);

        assert_non_null(name);
        assert_true(name[0] != '\0');
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name, counters_name((enum nic_counter)j));
    }
    assert_string_equal(counters_name(COUNTER_tx_packets), "tx_packets");
    assert_string_equal(counters_name(COUNTER_rp_cnp_handled), "rp_cnp_handled");
}

static void counters_name__no_such_counter(void **state)
{
    (void)state;
    assert_null(counters_name(COUNTER_COUNT));
    assert_null(counters_name((enum nic_counter) - 1));
}

static void counters_add__one_only(void **state)
{
    static struct nic_counters c;

    (void)state;
    for (int i = 0; i < COUNTER_COUNT; i++) {
        counters_add(&c, (enum nic_counter)i, (uint64_t)i + 1);
        counters_add(&c, (enum nic_counter)i, 1ull << 40);
    }
    for (int i = 0; i < COUNTER_COUNT; i++)
        assert_int_equal(counters_get(&c, (enum nic_counter)i), (1ull << 40) + (uint64_t)i + 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_name__all_different),
        cmocka_unit_test(counters_name__no_such_counter),
        cmocka_unit_test(counters_add__one_only),
    };

    return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
