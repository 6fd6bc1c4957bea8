/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rtt.c: probes of the round-trip time: bytes there and back, and what is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/rtt.h"

static const struct rtt_mad sample = {.answer = true,
                                      .to_qpn = 0x123456,
                                      .from_qpn = 0xabcdef,
                                      .stamp_ns = 0x0102030405060708,
                                      .held_ns = 0x1112131415161718};

static void build__parse_is_its_inverse(void **state)
{
    (void)state;
    for (int answer = 0; answer < 2; answer++) {
        struct rtt_mad in = sample, out;
        uint8_t mad[MAD_BYTES];
        in.answer = answer;
        rtt_build(&in, mad);
        assert_true(rtt_check(mad, sizeof(mad)));
        rtt_parse(mad, &out);
        assert_int_equal(out.answer, in.answer);
        assert_int_equal(out.to_qpn, in.to_qpn);
        assert_int_equal(out.from_qpn, in.from_qpn);
        assert_int_equal(out.stamp_ns, in.stamp_ns);
        assert_int_equal(out.held_ns, in.held_ns);
    }
}

/* As docs/rtt-probes.md has it. */
static void build__bytes(void **state)
{
    (void)state;
    static const uint8_t head[64] = {
        1, 0x3a, 1, 3, 0, 0,    0,    0,    1,    2,    3,    4,    5,    6,    7,    8,
        0, 0x11, 0, 0, 0, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
        0, 0,    0, 0, 0, 0x56, 0x45, 0x52, 0,    0x12, 0x34, 0x56, 0,    0xab, 0xcd, 0xef,
        1, 2,    3, 4, 5, 6,    7,    8,    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18};
    static const uint8_t rest[MAD_BYTES - sizeof(head)];
    uint8_t mad[MAD_BYTES];
    rtt_build(&sample, mad);
    assert_memory_equal(mad, head, sizeof(head));
    assert_memory_equal(mad + sizeof(head), rest, sizeof(rest));
}

static void check__one_byte_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t at;
        uint8_t value;
    } rows[] = {
        {"base version",       0,  2   },
        {"class of CM",        1,  7   },
        {"another class",      1,  0x3b},
        {"class version",      2,  2   },
        {"method Get",         3,  1   },
        {"method GetResp",     3,  0x81},
        {"status",             5,  0x0c},
        {"TID",                15, 9   },
        {"attribute before",   17, 0x0f},
        {"attribute behind",   17, 0x12},
        {"attribute high",     16, 1   },
        {"reserved",           36, 1   },
        {"OUI",                37, 0   },
        {"OUI last",           39, 0x53},
        {"QPN of 32 bits",     40, 1   },
        {"own QPN of 32 bits", 44, 1   },
        {"stamp is not TID",   48, 0xff},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t mad[MAD_BYTES];
        rtt_build(&sample, mad);
        mad[rows[i].at] = rows[i].value;
        if (rtt_check(mad, sizeof(mad)))
            fail_msg("%s", rows[i].what);
    }
}

static void check__length(void **state)
{
    (void)state;
    uint8_t mad[MAD_BYTES + 1] = {0};
    rtt_build(&sample, mad);
    assert_false(rtt_check(mad, 0));
    assert_false(rtt_check(mad, 24));
    assert_false(rtt_check(mad, MAD_BYTES - 1));
    assert_false(rtt_check(mad, MAD_BYTES + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build__parse_is_its_inverse),
        cmocka_unit_test(build__bytes),
        cmocka_unit_test(check__one_byte_wrong),
        cmocka_unit_test(check__length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
