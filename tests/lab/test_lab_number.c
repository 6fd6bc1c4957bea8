/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_number.c: texts that are numbers and texts that are none; who is refused is told why and
 * what is allowed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_number.h"

static const struct lab_range pieces = {LAB_PIECES, 1, 65535}, bytes = {LAB_BYTES, 2, 8 << 20},
                              retry = {LAB_TIME, 1000000, 10000000000},
                              limit = {LAB_TIME, 1, 3600000000000},
                              rate = {LAB_RATE, 1, 10000000000}, ratio = {LAB_RATIO, 1, 1000000000},
                              any = {LAB_PIECES, 0, UINT64_MAX / 4};

static void lab_number_parse__valid(void **state)
{
    (void)state;
    static const struct {
        const struct lab_range *range;
        const char *text;
        uint64_t value;
    } rows[] = {
        {&pieces, "1",            1            },
        {&pieces, "0065535",      65535        },
        {&pieces, "7.000000000",  7            },
        {&bytes,  "0.5KiB",       512          },
        {&bytes,  "8M",           8 << 20      },
        {&bytes,  "64B",          64           },
        {&limit,  "1.0000000s",   1000000000   },
        {&limit,  "0.001us",      1            },
        {&limit,  "3600s",        3600000000000},
        {&retry,  "10s",          10000000000  },
        {&rate,   "0.000001",     1            },
        {&rate,   "10000",        10000000000  },
        {&ratio,  "1.25x",        1250000      },
        {&any,    "999999999999", 999999999999 },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char why[LAB_NUMBER_BYTES];
        uint64_t value = 0;
        if (!lab_number_parse(rows[i].range, rows[i].text, strlen(rows[i].text), &value, why))
            fail_msg("%s: %s", rows[i].text, why);
        assert_true(value == rows[i].value);
    }
}

static void lab_number_parse__invalid(void **state)
{
    (void)state;
    static const struct {
        const struct lab_range *range;
        const char *text, *why;
    } rows[] = {
        {&retry,  "1h",
         "'1h' is not a time such as 20us, 1.5ms or 10s; allowed are 1ms to 10s, in ns, us, ms or "
         "s"                                                                                                         },
        {&retry,  "0.5ms",                          "0.5ms is too small; allowed are 1ms to 10s, in ns, us, ms or s" },
        {&retry,  "11s",                            "11s is too large; allowed are 1ms to 10s, in ns, us, ms or s"   },
        {&retry,  "10",
         "'10' is not a time such as 20us, 1.5ms or 10s; allowed are 1ms to 10s, in ns, us, ms or "
         "s"                                                                                                         },
        {&limit,  "0.5ns",
         "'0.5ns' is not a whole number of ns; allowed are 1ns to 3600s, in ns, us, ms or s"                         },
        {&limit,  "99999999999999999999999999999s",
         "99999999999999999999999999999s is too large; allowed are 1ns to 3600s, in ns, us, ms or "
         "s"                                                                                                         },
        {&rate,   "0.0000001",
         "'0.0000001' is not a number of Gbit/s with six decimals at most; allowed are 0.000001 to "
         "10000, in Gbit/s, without a unit"                                                                          },
        {&rate,   "10Gbps",
         "'10Gbps' is not a number of Gbit/s such as 10 or 2.5; allowed are 0.000001 to 10000, in "
         "Gbit/s, without a unit"                                                                                    },
        {&rate,   "0",
         "0 is too small; allowed are 0.000001 to 10000, in Gbit/s, without a "
         "unit"                                                                                                      },
        {&ratio,  "1001",                           "1001 is too large; allowed are 0.000001 to 1000"                },
        {&ratio,  "0.0000001",
         "'0.0000001' is not a ratio with six decimals at most; allowed are 0.000001 to 1000"                        },
        {&ratio,  "1.",                             "'1.' is not a ratio such as 1.5; allowed are 0.000001 to 1000"  },
        {&bytes,  "1",                              "1 is too small; allowed are 2 to 8MiB, in bytes (B), KiB or MiB"},
        {&bytes,  "8.1MiB",
         "'8.1MiB' is not a whole number of bytes; allowed are 2 to 8MiB, in bytes (B), KiB or "
         "MiB"                                                                                                       },
        {&bytes,  "1GiB",
         "'1GiB' is not a number of bytes such as 64, 4KiB or 1MiB; allowed are 2 to 8MiB, in "
         "bytes "
         "(B), KiB or MiB"                                                                                           },
        {&pieces, "1.5",                            "'1.5' is not a whole number; allowed are 1 to 65535"            },
        {&pieces, "-1",                             "'-1' is not a whole number; allowed are 1 to 65535"             },
        {&pieces, "",                               "'' is not a whole number; allowed are 1 to 65535"               },
        {&pieces, "65536",                          "65536 is too large; allowed are 1 to 65535"                     },
        {&pieces, "18446744073709551617",
         "18446744073709551617 is too large; allowed are 1 to 65535"                                                 },
        {&pieces, "184467440737095516170",
         "184467440737095516170 is too large; allowed are 1 to 65535"                                                },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char why[LAB_NUMBER_BYTES] = "";
        uint64_t value = 4711;
        assert_false(
            lab_number_parse(rows[i].range, rows[i].text, strlen(rows[i].text), &value, why));
        assert_string_equal(why, rows[i].why);
        assert_int_equal(value, 4711);
    }
    char longest[400], why[LAB_NUMBER_BYTES];
    uint64_t value;
    memset(longest, '7', sizeof(longest));
    assert_false(lab_number_parse(&bytes, longest, sizeof(longest), &value, why));
    assert_non_null(strstr(why, " is too large; allowed are 2 to 8MiB, in bytes (B), KiB or MiB"));
}

static void lab_number_say__shortest(void **state)
{
    (void)state;
    static const struct {
        enum lab_quantity quantity;
        uint64_t value;
        const char *text;
    } rows[] = {
        {LAB_PIECES, 0,             "0"       },
        {LAB_BYTES,  0,             "0"       },
        {LAB_BYTES,  1023,          "1023"    },
        {LAB_BYTES,  65536,         "64KiB"   },
        {LAB_BYTES,  8 << 20,       "8MiB"    },
        {LAB_TIME,   0,             "0ns"     },
        {LAB_TIME,   1500000,       "1500us"  },
        {LAB_TIME,   3600000000000, "3600s"   },
        {LAB_RATE,   1,             "0.000001"},
        {LAB_RATE,   10000000000,   "10000"   },
        {LAB_RATIO,  1250000,       "1.25"    },
        {LAB_RATIO,  0,             "0"       },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[32];
        lab_number_say(rows[i].quantity, rows[i].value, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_number_parse__valid),
        cmocka_unit_test(lab_number_parse__invalid),
        cmocka_unit_test(lab_number_say__shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
