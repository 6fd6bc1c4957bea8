/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_strings.c: every event has a name of its own, nothing else has one.
 */
#include "cm_rig.h"

static void event_str__all(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        const char *name = rdma_event_str((enum rdma_cm_event_type)i);
        assert_int_equal(strncmp(name, "RDMA_CM_EVENT_", 14), 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name, rdma_event_str((enum rdma_cm_event_type)k));
    }
    assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
    static const int unknown[] = {-1, 20, 1000};
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(rdma_event_str((enum rdma_cm_event_type)unknown[i]), "UNKNOWN EVENT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(event_str__all)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
