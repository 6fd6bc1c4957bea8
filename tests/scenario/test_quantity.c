/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_quantity.c: texts and what they come to, exactly.
 */
#include "scenario/quantity.h"

#include "bench.h"

static void parse__rows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum quantity_kind kind;
        uint64_t value;
    } rows[] = {
        {"100Gbps",              QUANTITY_RATE,  UINT64_C(100000000000) },
        {"2.5 Gb/s",             QUANTITY_RATE,  2500000000             },
        {"1bps",                 QUANTITY_RATE,  1                      },
        {"0.0005Mbps",           QUANTITY_RATE,  500                    },
        {"1us",                  QUANTITY_TIME,  1000000                },
        {"1000ns",               QUANTITY_TIME,  1000000                },
        {"2.000000001s",         QUANTITY_TIME,  UINT64_C(2000000001000)},
        {"0.5ps",                QUANTITY_KINDS, 0                      },
        {"4MiB",                 QUANTITY_BYTES, 4194304                },
        {"4 MB",                 QUANTITY_BYTES, 4000000                },
        {"1.5KiB",               QUANTITY_BYTES, 1536                   },
        {"7",                    QUANTITY_BYTES, 7                      },
        {"0",                    QUANTITY_COUNT, 0                      },
        {"18446744073709551609", QUANTITY_COUNT, UINT64_MAX - 6         },
        {"18446744073709551610", QUANTITY_COUNT, UINT64_MAX - 5         },
        {"18446744073709551615", QUANTITY_COUNT, UINT64_MAX             },
        {"1%",                   QUANTITY_PPM,   10000                  },
        {"0.2",                  QUANTITY_PPM,   200000                 },
        {"5ppm",                 QUANTITY_PPM,   5                      },
        {"0",                    QUANTITY_PPM,   0                      },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t value = 99;
        if (rows[i].kind == QUANTITY_KINDS)
            continue;
        assert_true(quantity_parse(rows[i].text, rows[i].kind, &value));
        assert_int_equal(value, rows[i].value);
    }
}

/* What is printed is what was meant, and is parsed as that. */
static void print__rows(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        enum quantity_kind kind;
        const char *text;
    } rows[] = {
        {3600 * UINT64_C(1000000000000), QUANTITY_TIME,  "3600s"                 },
        {UINT64_C(655360000000),         QUANTITY_TIME,  "655.36ms"              },
        {1000000,                        QUANTITY_TIME,  "1us"                   },
        {1,                              QUANTITY_TIME,  "1ps"                   },
        {1001,                           QUANTITY_TIME,  "1.001ns"               },
        {UINT64_C(1000000000001),        QUANTITY_TIME,  "1.000000000001s"       },
        {0,                              QUANTITY_TIME,  "0ps"                   },
        {1000000,                        QUANTITY_RATE,  "1Mbps"                 },
        {UINT64_C(10000000000000),       QUANTITY_RATE,  "10Tbps"                },
        {999,                            QUANTITY_RATE,  "999bps"                },
        {UINT32_MAX,                     QUANTITY_BYTES, "4294967295B"           },
        {UINT64_C(1) << 50,              QUANTITY_BYTES, "1048576GiB"            },
        {9000,                           QUANTITY_BYTES, "9000B"                 },
        {16384,                          QUANTITY_BYTES, "16KiB"                 },
        {0,                              QUANTITY_BYTES, "0B"                    },
        {UINT64_MAX,                     QUANTITY_COUNT, "18446744073709551615"  },
        {0,                              QUANTITY_COUNT, "0"                     },
        {1000000,                        QUANTITY_PPM,   "100%"                  },
        {1,                              QUANTITY_PPM,   "0.0001%"               },
        {UINT64_MAX,                     QUANTITY_TIME,  "18446744.073709551615s"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[QUANTITY_TEXT_BYTES];
        uint64_t value = 99;
        assert_string_equal(quantity_print(rows[i].value, rows[i].kind, text), rows[i].text);
        assert_true(quantity_parse(text, rows[i].kind, &value));
        assert_int_equal(value, rows[i].value);
    }
}

static void parse__refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum quantity_kind kind;
    } rows[] = {
        {"",                     QUANTITY_RATE },
        {"100",                  QUANTITY_RATE },
        {"100Gb",                QUANTITY_RATE },
        {"Gbps",                 QUANTITY_RATE },
        {"-1Gbps",               QUANTITY_RATE },
        {"100GBps",              QUANTITY_RATE },
        {"0.1bps",               QUANTITY_RATE },
        {"1..5us",               QUANTITY_TIME },
        {"1.us",                 QUANTITY_TIME },
        {"5",                    QUANTITY_TIME },
        {"0.5ps",                QUANTITY_TIME },
        {"1h",                   QUANTITY_TIME },
        {"4Mib",                 QUANTITY_BYTES},
        {"4 Potato",             QUANTITY_BYTES},
        {"0.5",                  QUANTITY_BYTES},
        {"1.5",                  QUANTITY_COUNT},
        {"0x10",                 QUANTITY_COUNT},
        {"1 2",                  QUANTITY_COUNT},
        {"18446744073709551616", QUANTITY_COUNT},
        {"18446744073709551620", QUANTITY_COUNT},
        {"99999999999999999999", QUANTITY_COUNT},
        {"20000000000Tbps",      QUANTITY_RATE },
        {"1 %%",                 QUANTITY_PPM  },
        {"0.0000001",            QUANTITY_PPM  },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t value;
        if (quantity_parse(rows[i].text, rows[i].kind, &value))
            fail_msg("'%s' was taken", rows[i].text);
        assert_non_null(strstr(quantity_example(rows[i].kind), "a "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse__rows),
        cmocka_unit_test(parse__refused),
        cmocka_unit_test(print__rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
