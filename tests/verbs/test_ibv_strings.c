/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_strings.c: every value has a name, and no value crashes.
 */
#include "fake_host.h"

#include <limits.h>

const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

static void names__of_all_values(void **state)
{
    (void)state;
    for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++)
        assert_string_not_equal(ibv_wc_status_str((enum ibv_wc_status)i), "unknown");
    for (int i = 0; i <= NEWER_EVENT_DEVICE_SPEED_CHANGE; i++)
        assert_string_not_equal(ibv_event_type_str((enum ibv_event_type)i), "unknown");
    for (int i = 0; i <= IBV_PORT_ACTIVE_DEFER; i++)
        assert_string_not_equal(ibv_port_state_str((enum ibv_port_state)i), "unknown");
    for (int i = IBV_NODE_CA; i <= IBV_NODE_UNSPECIFIED; i++)
        assert_string_not_equal(ibv_node_type_str((enum ibv_node_type)i), "unknown");
    for (int i = 0; i <= IBV_WR_TSO; i++)
        assert_string_not_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)i), "unknown");
    assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)NEWER_WR_FLUSH), "FLUSH");
    assert_string_equal(ibv_wr_opcode_str(IBV_WR_ATOMIC_WRITE), "ATOMIC_WRITE");
}

static void names__of_the_usual(void **state)
{
    (void)state;
    assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
    assert_non_null(strstr(ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR), "remote access"));
    assert_non_null(strstr(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "retry"));
    assert_non_null(strstr(ibv_port_state_str(IBV_PORT_ACTIVE), "active"));
}

static void names__unknown(void **state)
{
    (void)state;
    static const int bad[] = {-1, INT_MIN, INT_MAX, 100};

    for (unsigned i = 0; i < 4; i++) {
        assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)bad[i]), "unknown");
        assert_string_equal(ibv_event_type_str((enum ibv_event_type)bad[i]), "unknown");
        assert_string_equal(ibv_node_type_str((enum ibv_node_type)bad[i]), "unknown");
        assert_string_equal(ibv_port_state_str((enum ibv_port_state)bad[i]), "unknown");
        assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)bad[i]), "unknown");
    }
    assert_string_equal(ibv_node_type_str((enum ibv_node_type)0), "unknown");
    assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)13), "unknown");
    assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)16), "unknown");
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
        cmocka_unit_test_setup(names__of_all_values, reset),
        cmocka_unit_test_setup(names__of_the_usual, reset),
        cmocka_unit_test_setup(names__unknown, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
