/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_provider_stubs.c: what vendor libraries call from their constructors, and the kinds of
 * answer of the rest.
 */
#include "fake_host.h"

void verbs_register_driver_25(void);
void verbs_register_driver_34(void);
void verbs_register_driver_65(void);
int ibv_cmd_create_qp(void);
int execute_ioctl(void);
void *verbs_open_device(void);
void *_verbs_init_and_alloc_context(void);
unsigned __ioctl_final_num_attrs(void);
extern bool verbs_allow_disassociate_destroy;

static void register__does_nothing(void **state)
{
    (void)state;
    verbs_register_driver_25();
    verbs_register_driver_34();
    verbs_register_driver_65();
    assert_int_equal(fake.alive, 0);
}

static void stubs__eopnotsupp(void **state)
{
    (void)state;
    assert_int_equal(ibv_cmd_create_qp(), EOPNOTSUPP);
    assert_int_equal(execute_ioctl(), EOPNOTSUPP);
    errno = 0;
    assert_null(verbs_open_device());
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_null(_verbs_init_and_alloc_context());
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(__ioctl_final_num_attrs(), 0);
    assert_false(verbs_allow_disassociate_destroy);
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
        cmocka_unit_test_setup(register__does_nothing, reset),
        cmocka_unit_test_setup(stubs__eopnotsupp, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
