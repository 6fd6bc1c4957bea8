/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_alloc.c: zeroed memory, and NULL instead of a size that wrapped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"

static void alloc_touched__zeroed(void **state)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        uint8_t *p = alloc_touched(sizes[s], 3);

        assert_non_null(p);
        for (size_t i = 0; i < sizes[s] * 3; i++)
            assert_int_equal(p[i], 0);
        free(p);
    }
}

static void alloc_touched__size_wraps(void **state)
{
    static const struct {
        size_t n, bytes;
    } rows[] = {
        {SIZE_MAX,         2       },
        {2,                SIZE_MAX},
        {SIZE_MAX / 2 + 1, 2       },
        {1,                0       }
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_null(alloc_touched(rows[i].n, rows[i].bytes));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_touched__zeroed),
        cmocka_unit_test(alloc_touched__size_wraps),
    };

    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
