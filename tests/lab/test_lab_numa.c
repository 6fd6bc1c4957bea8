/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_numa.c: which node is chosen, of any set of nodes; and that this machine does it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "lab/lab_numa.h"

static void lab_numa_choose__nodes(void **state)
{
    (void)state;
    static const struct {
        enum lab_near near;
        int device;
        uint64_t nodes;
        int thread, memory;
    } rows[] = {
        {LAB_ANYWHERE, 1,  0x3,                 0,  0 },
        {LAB_NEAR,     1,  0x3,                 1,  1 },
        {LAB_FAR,      1,  0x3,                 1,  0 },
        {LAB_FAR,      0,  0x3,                 0,  1 },
        {LAB_NEAR,     -1, 0x6,                 1,  1 },
        {LAB_FAR,      -1, 0x6,                 1,  2 },
        {LAB_NEAR,     0,  0x6,                 1,  1 }, /* not ours */
        {LAB_FAR,      64, 0x6,                 1,  2 },
        {LAB_FAR,      5,  1ull << 63 | 1 << 5, 5,  63},
        {LAB_NEAR,     0,  0x1,                 0,  0 },
        {LAB_FAR,      0,  0x1,                 0,  0 }, /* there is no other */
        {LAB_FAR,      0,  0,                   -1, -1},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_numa_place p = lab_numa_choose(rows[i].near, rows[i].device, rows[i].nodes);
        bool any = rows[i].near == LAB_ANYWHERE;
        assert_int_equal(p.thread, any ? -1 : rows[i].thread);
        assert_int_equal(p.memory, any ? -1 : rows[i].memory);
    }
}

static void lab_numa_place__and_back(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    char message[LAB_MESSAGE_BYTES] = "";
    uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memset(memory, 0x5a, BYTES);
    assert_true(lab_numa_nodes() >= 1);
    for (enum lab_near near = LAB_NEAR; near <= LAB_FAR; near++)
        if (lab_numa_place(near, "no_such_device", memory, BYTES, message) != 0)
            fail_msg("%s", message);
    if (lab_numa_place(LAB_ANYWHERE, "no_such_device", memory, BYTES, message) != 0)
        fail_msg("%s", message);
    for (unsigned i = 0; i < BYTES; i += 4096)
        assert_int_equal(memory[i], 0x5a);
    munmap(memory, BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_numa_choose__nodes),
        cmocka_unit_test(lab_numa_place__and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
