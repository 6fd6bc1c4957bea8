/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_congestion_option.c: what VERBENA_CC and --cc take, and what they say to the rest.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/congestion_option.h"

static void parse__valid(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
        uint64_t line_bps, interval_ns;
        uint8_t class;
    } rows[] = {
        {"none",                                             "none",         0,             50000,      0xc0},
        {"dcqcn-hw",                                         "dcqcn-hw",     0,             50000,      0xc0},
        {"dcqcn-paper,rate=25Gb/s",                          "dcqcn-paper",  25000000000,   50000,      0xc0},
        {"timely,rate=100Mb/s",                              "timely",       100000000,     50000,      0xc0},
        {"timely,rate=1600Gb/s",                             "timely",       1600000000000, 50000,      0xc0},
        {"ztr-target,cnp_dscp=0",                            "ztr-target",   0,             50000,      0   },
        {"ztr-template,cnp_dscp=63",                         "ztr-template", 0,             50000,      0xfc},
        {"dcqcn-hw,cnp_interval=0ns",                        "dcqcn-hw",     0,             0,          0xc0},
        {"dcqcn-hw,cnp_interval=4us",                        "dcqcn-hw",     0,             4000,       0xc0},
        {"dcqcn-hw,cnp_interval=1000ms",                     "dcqcn-hw",     0,             1000000000, 0xc0},
        {"dcqcn-hw,cnp_interval=1ms,rate=1Gb/s,cnp_dscp=46", "dcqcn-hw",     1000000000,    1000000,    184 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct congestion_config c;
        char message[CONGESTION_MESSAGE_BYTES];
        if (congestion_parse(rows[i].text, &c, message) != 0)
            fail_msg("%s: %s", rows[i].text, message);
        assert_string_equal(c.algorithm, rows[i].name);
        assert_int_equal(c.line_bps, rows[i].line_bps);
        assert_int_equal(c.cnp_interval_ns, rows[i].interval_ns);
        assert_int_equal(c.cnp_class, rows[i].class);
        assert_int_equal(congestion_check(&c), 0);
        assert_int_equal(congestion_is_on(&c), strcmp(rows[i].name, "none") != 0);
    }
}

static void parse__invalid(void **state)
{
    (void)state;
    static const struct {
        const char *text, *say;
    } rows[] = {
        {"",                                                           "want none, dcqcn-hw"           },
        {"dcqcn",                                                      "\"dcqcn\": want none, dcqcn-hw"},
        {"DCQCN-HW",                                                   "want none"                     },
        {"dcqcn-paper-polled",                                         "want none"                     },
        {"hpcc",                                                       "INT"                           },
        {"dcqcn-hw,",                                                  "want values like rate="        },
        {"dcqcn-hw,speed=1Gb/s",                                       "\"speed=1Gb/s\""               },
        {"dcqcn-hw,rate",                                              "\"rate\""                      },
        {"dcqcn-hw,rate=",                                             "rate="                         },
        {"dcqcn-hw,rate=0Gb/s",                                        "rate=0Gb/s"                    },
        {"dcqcn-hw,rate=1",                                            "rate=1"                        },
        {"dcqcn-hw,rate=1gb/s",                                        "rate=1gb/s"                    },
        {"dcqcn-hw,rate=1Gb/s ",                                       "rate=1Gb/s "                   },
        {"dcqcn-hw,rate=-1Gb/s",                                       "rate=-1Gb/s"                   },
        {"dcqcn-hw,rate=1601Gb/s",                                     "rate=1601Gb/s"                 },
        {"dcqcn-hw,rate=18446744073709551617Mb/s",                     "rate=18446744073709551617Mb/s" },
        {"dcqcn-hw,cnp_dscp=64",                                       "cnp_dscp=64"                   },
        {"dcqcn-hw,cnp_dscp=0x10",                                     "cnp_dscp=0x10"                 },
        {"dcqcn-hw,cnp_interval=50",                                   "cnp_interval=50"               },
        {"dcqcn-hw,cnp_interval=1001ms",                               "cnp_interval=1001ms"           },
        {"dcqcn-hw,cnp_dscp=1,cnp_dscp=1",                             "given twice"                   },
        {"dcqcn-hw,rate=1Gb/s,cnp_dscp=1,cnp_interval=1us,rate=1Gb/s", "given twice"                   },
        {"dcqcn-hw,"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",        "is too long"                   },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct congestion_config c;
        char message[CONGESTION_MESSAGE_BYTES];
        if (congestion_parse(rows[i].text, &c, message) != -EINVAL)
            fail_msg("%s was taken", rows[i].text);
        if (strstr(message, rows[i].say) == NULL)
            fail_msg("%s: %s", rows[i].text, message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse__valid),
        cmocka_unit_test(parse__invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
