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
#include <pthread.h>
#include <string.h>
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

/* Copies of the engine: what is not there is an error, and of a store not a byte has landed. */
static void memory_copies__each_kind_of_page(void **state)
{
    (void)state;
    static const struct {
        int64_t offset;
        size_t n;
        bool read, write;
    } rows[] = {
        {0,            1,    true,  true },
        {1,            4095, true,  true },
        {0,            PAGE, true,  true },
        {4 * PAGE,     PAGE, true,  true },
        {PAGE - 4,     8,    true,  false},
        {PAGE,         PAGE, true,  false},
        {2 * PAGE - 1, 2,    false, false},
        {2 * PAGE,     1,    false, false},
        {3 * PAGE,     8,    false, false},
        {4 * PAGE - 1, 2,    false, false},
    };
    static const char from[PAGE] = {[0 ... PAGE - 1] = 'x'};
    char to[PAGE];
    char *at = patchwork();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(at, 0, PAGE);
        assert_int_equal(memory_fetch(to, at + rows[i].offset, rows[i].n), rows[i].read);
        assert_int_equal(memory_store(at + rows[i].offset, from, rows[i].n), rows[i].write);
        if (rows[i].write)
            assert_memory_equal(at + rows[i].offset, from, rows[i].n);
        else if (rows[i].offset < PAGE)
            assert_int_equal(at[rows[i].offset], 0);
    }
    assert_false(memory_fetch(to, NULL, 8));
    assert_false(memory_store((void *)(UINTPTR_MAX - 7), from, 8));
    munmap(at, 3 * (size_t)PAGE);
    munmap(at + 4 * PAGE, PAGE);
}

static _Atomic bool over;

static void *unmap_and_map(void *at)
{
    while (!over) {
        munmap(at, PAGE);
        mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    return NULL;
}

/* Another thread takes the page away while we copy: whatever comes of it, the program goes on. */
static void memory_copies__page_goes_meanwhile(void **state)
{
    (void)state;
    enum { ROUNDS = 20000 };
    static char bytes[2048];
    unsigned failed = 0;
    pthread_t thread;
    char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(at != MAP_FAILED);
    assert_int_equal(pthread_create(&thread, NULL, unmap_and_map, at), 0);
    /* Until both have had their turns, on a machine of one CPU, too. */
    for (unsigned i = 0; i < ROUNDS || (failed == 0 && i < 100 * ROUNDS); i++) {
        failed += !memory_store(at + 1, bytes, sizeof(bytes));
        failed += !memory_fetch(bytes, at + 1, sizeof(bytes));
    }
    over = true;
    pthread_join(thread, NULL);
    assert_true(failed != 0);
    munmap(at, PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_touch__each_kind_of_page),
        cmocka_unit_test(memory_touch__far_addresses),
        cmocka_unit_test(memory_touch__makes_present),
        cmocka_unit_test(memory_copies__each_kind_of_page),
        cmocka_unit_test(memory_copies__page_goes_meanwhile),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
