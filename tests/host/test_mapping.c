/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mapping.c: which memory others may have as well, and where this process has it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/memory.h"

enum { PAGE = 4096, PAGES = 8, BYTES = PAGES * PAGE };

static int memfd(void)
{
    int fd = memfd_create("mapping", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, BYTES), 0);
    return fd;
}

static uint8_t *map(int fd, int prot, int flags, size_t bytes, off_t offset)
{
    void *p = mmap(NULL, bytes, prot, flags, fd, offset);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

/* One file mapped twice: the same bytes at two addresses. */
static void find__the_other_mapping(void **state)
{
    (void)state;
    int fd = memfd();
    uint8_t *a = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, BYTES, 0);
    struct verbena_mapping m;
    void *found;
    static const struct {
        size_t at, length;
    } rows[] = {
        {0,          BYTES           },
        {0,          1               },
        {PAGE + 100, 2 * PAGE        },
        {BYTES - 1,  1               },
        {7,          BYTES - PAGE - 9},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(verbena_mapping_of(a + rows[i].at, rows[i].length, &m), 0);
        assert_int_equal(m.offset, rows[i].at);
        assert_int_equal(verbena_mapping_find(&m, rows[i].length, true, &found), 0);
        assert_ptr_equal(found, a + rows[i].at);
    }
    assert_int_equal(verbena_mapping_of(a, BYTES, &m), 0);
    munmap(a, BYTES);
    assert_int_equal(verbena_mapping_find(&m, BYTES, true, &found), -EOPNOTSUPP);
    uint8_t *b = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, BYTES, 0);
    assert_int_equal(verbena_mapping_find(&m, BYTES, true, &found), 0);
    assert_ptr_equal(found, b);
    munmap(b, BYTES);
    close(fd);
}

/* Anonymous memory that children inherit is a file to the kernel. */
static void of__shared_anonymous(void **state)
{
    (void)state;
    uint8_t *a = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, BYTES, 0);
    struct verbena_mapping m;
    void *found;

    assert_int_equal(verbena_mapping_of(a + 5, 100, &m), 0);
    assert_int_equal(verbena_mapping_find(&m, 100, true, &found), 0);
    assert_ptr_equal(found, a + 5);
    munmap(a, BYTES);
}

static void of__nobody_elses(void **state)
{
    (void)state;
    int fd = memfd();
    uint8_t on_stack[64];
    uint8_t *private = map(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, BYTES, 0);
    uint8_t *copied = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE, BYTES, 0);
    uint8_t *shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, BYTES, 0);
    struct verbena_mapping m;

    const struct {
        const void *addr;
        uint64_t length;
    } rows[] = {
        {on_stack, sizeof(on_stack)},
        {private,  BYTES           },
        {copied,   BYTES           },
        {shared,   BYTES + 1       },
        {shared,   0               },
        {NULL,     8               },
        {shared,   UINT64_MAX      },
    };
    munmap(private, PAGE); /* whatever lies behind is something else */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].length == 0)
            continue;
        assert_int_equal(verbena_mapping_of(rows[i].addr, rows[i].length, &m), -EOPNOTSUPP);
    }
    munmap(private + PAGE, BYTES - PAGE);
    munmap(copied, BYTES);
    munmap(shared, BYTES);
    close(fd);
}

/* A hole, another order, another file: not the bytes that are meant. */
static void find__only_all_of_it(void **state)
{
    (void)state;
    int fd = memfd(), other = memfd();
    uint8_t *a = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, BYTES, 0);
    struct verbena_mapping m;
    void *found;

    assert_int_equal(verbena_mapping_of(a, BYTES, &m), 0);
    assert_ptr_equal(mmap(a + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, PAGE), a + PAGE);
    assert_int_equal(verbena_mapping_find(&m, BYTES, false, &found), 0); /* in pieces */
    assert_ptr_equal(found, a);
    assert_int_equal(verbena_mapping_of(a, BYTES, &m), 0);
    assert_int_equal(verbena_mapping_find(&m, BYTES, true, &found), -EOPNOTSUPP);
    assert_int_equal(verbena_mapping_find(&m, PAGE, true, &found), 0);
    assert_ptr_equal(mmap(a + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 3 * PAGE),
                     a + PAGE);
    assert_int_equal(verbena_mapping_find(&m, BYTES, false, &found), -EOPNOTSUPP);
    assert_ptr_equal(mmap(a + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, other, PAGE),
                     a + PAGE);
    assert_int_equal(verbena_mapping_find(&m, BYTES, false, &found), -EOPNOTSUPP);
    assert_int_equal(verbena_mapping_of(a, BYTES, &m), -EOPNOTSUPP);
    munmap(a, BYTES);
    close(fd);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find__the_other_mapping),
        cmocka_unit_test(of__shared_anonymous),
        cmocka_unit_test(of__nobody_elses),
        cmocka_unit_test(find__only_all_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
