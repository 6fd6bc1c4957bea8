/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pfc.c: pause frames byte for byte, there and back; what is none.
 */
#include "wire/pfc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#define SRC                                                                                        \
    {                                                                                              \
        0x02, 0x11, 0x22, 0x33, 0x44, 0x55                                                         \
    }

/* Priority 3 pauses for as long as can be said, and resumes (V17). With 4 bytes of FCS: 64. */
static void build__bytes(void **state)
{
    (void)state;
    static const uint8_t head[] = {0x01, 0x80, 0xc2, 0,    0,    1,    0x02, 0x11, 0x22,
                                   0x33, 0x44, 0x55, 0x88, 0x08, 0x01, 0x01, 0x00, 0x08};
    for (int resume = 0; resume < 2; resume++) {
        struct pfc_frame p = {.src = SRC, .enabled = 1 << 3};
        uint8_t got[PFC_FRAME_BYTES], want[PFC_FRAME_BYTES] = {0};
        p.quanta[3] = resume ? 0 : 0xffff;
        memcpy(want, head, sizeof(head));
        want[18 + 6] = want[18 + 7] = resume ? 0 : 0xff;
        pfc_build(&p, got);
        assert_memory_equal(got, want, sizeof(want));
        assert_int_equal(sizeof(got) + 4, 64);
    }
}

static void parse__there_and_back(void **state)
{
    (void)state;
    static const struct pfc_frame rows[] = {
        {SRC, false, 0xff, {1, 2, 3, 4, 5, 6, 7, 0xffff}},
        {SRC, false, 0x81, {0x1234, 0, 0, 0, 0, 0, 0, 9}},
        {SRC, false, 0,    {0}                          },
        {SRC, true,  0,    {0x8001}                     },
        {SRC, true,  0,    {0}                          },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t bytes[PFC_FRAME_BYTES];
        struct pfc_frame got;
        pfc_build(&rows[i], bytes);
        assert_true(pfc_parse(bytes, sizeof(bytes), &got));
        assert_memory_equal(got.src, rows[i].src, 6);
        assert_int_equal(got.link, rows[i].link);
        assert_int_equal(got.enabled, rows[i].enabled);
        assert_memory_equal(got.quanta, rows[i].quanta, sizeof(got.quanta));
    }
}

static void parse__refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        size_t bytes;
    } rows[] = {
        {0,  0x03, 60},
        {5,  0x02, 60},
        {12, 0x08, 60},
        {13, 0x00, 60},
        {14, 0x02, 60},
        {15, 0x02, 60},
        {15, 0x01, 33},
        {15, 0x01, 17},
        {15, 0x01, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pfc_frame p = {.src = SRC, .enabled = 1}, got;
        uint8_t bytes[PFC_FRAME_BYTES];
        pfc_build(&p, bytes);
        bytes[rows[i].at] = rows[i].value;
        assert_false(pfc_parse(bytes, rows[i].bytes, &got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build__bytes),
        cmocka_unit_test(parse__there_and_back),
        cmocka_unit_test(parse__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
