/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_memory.c: what the operating system knows of memory, and regions that it has or has not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../skips.h"
#include "host/memory.h"

enum { PAGE = 4096, PAGES = 5 };

/* Writable, read-only, forbidden, a hole, writable again. */
static char *patchwork(void)
{
    char *at = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);

    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + PAGE, PAGE, PROT_READ), 0);
    assert_int_equal(mprotect(at + 2 * PAGE, PAGE, PROT_NONE), 0);
    assert_int_equal(munmap(at + 3 * PAGE, PAGE), 0);
    return at;
}

static void memory_touch__each_kind_of_page(void **state)
{
    (void)state;
    static const struct {
        int64_t offset;
        uint64_t n;
        bool read, write;
    } rows[] = {
        {0,               1,                      true,  true },
        {PAGE - 1,        1,                      true,  true },
        {0,               PAGE,                   true,  true },
        {1,               PAGE - 1,               true,  true },
        {4 * PAGE,        PAGE,                   true,  true },
        {0,               0,                      true,  true },
        {0,               PAGE + 1,               true,  false},
        {PAGE,            PAGE,                   true,  false},
        {2 * PAGE - 1,    2,                      false, false},
        {2 * PAGE,        1,                      false, false},
        {3 * PAGE,        1,                      false, false},
        {3 * PAGE + 4000, 97,                     false, false},
        {0,               PAGES * (uint64_t)PAGE, false, false},
    };
    char *at = patchwork();

    if (madvise(at, PAGE, 22) != 0)
        SKIP_TEST("the kernel has no MADV_POPULATE_READ");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(memory_touch(at + rows[i].offset, rows[i].n, false), rows[i].read);
        assert_int_equal(memory_touch(at + rows[i].offset, rows[i].n, true), rows[i].write);
    }
    munmap(at, 3 * (size_t)PAGE);
    munmap(at + 4 * PAGE, PAGE);
}

/* No address at all, and the last ones there are. */
static void memory_touch__far_addresses(void **state)
{
    (void)state;
    static const struct {
        uintptr_t addr;
        uint64_t n;
    } rows[] = {
        {0,                   1 },
        {8,                   8 },
        {UINTPTR_MAX,         1 },
        {UINTPTR_MAX - 7,     8 },
        {UINTPTR_MAX - PAGE,  8 },
        {(uintptr_t)1 << 62,  8 },
        {UINTPTR_MAX / 2 + 1, 16},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(memory_touch((const void *)rows[i].addr, rows[i].n, false));
        assert_false(memory_touch((const void *)rows[i].addr, rows[i].n, true));
    }
}

/* What is touched is there afterwards: that is the point of a prefetch. */
static void memory_touch__makes_present(void **state)
{
    (void)state;
    unsigned char there[2];
    char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(at != MAP_FAILED);
    assert_true(memory_touch(at + PAGE, 1, true));
    assert_int_equal(mincore(at, 2 * PAGE, there), 0);
    assert_int_equal(there[0] & 1, 0);
    assert_int_equal(there[1] & 1, 1);
    munmap(at, 2 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_touch__each_kind_of_page),
        cmocka_unit_test(memory_touch__far_addresses),
        cmocka_unit_test(memory_touch__makes_present),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
