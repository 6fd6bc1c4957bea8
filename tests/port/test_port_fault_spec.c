/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_fault_spec.c: the text of a fault specification, understood or refused with a message.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "port/port_fault.h"

static void fault_spec__valid(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct fault_spec want;
    } rows[] = {
        {"drop=1%",                                                                     {.drop_ppb = 10000000}                           },
        {"drop=0%",                                                                     {0}                                              },
        {"drop=100%",                                                                   {.drop_ppb = 1000000000}                         },
        {"drop=100.0000000%",                                                           {.drop_ppb = 1000000000}                         },
        {"dup=0.1%",                                                                    {.dup_ppb = 1000000}                             },
        {"corrupt=0.0000001%",                                                          {.corrupt_ppb = 1}                               },
        {"reorder=1%:50us",                                                             {.reorder_ppb = 10000000, .reorder_ns = 50000}   },
        {"ce=12.5%",                                                                    {.ce_ppb = 125000000}                            },
        {"delay=20us",                                                                  {.delay_ns = 20000}                              },
        {"delay=3ns",                                                                   {.delay_ns = 3}                                  },
        {"delay=7ms",                                                                   {.delay_ns = 7000000}                            },
        {"delay=86400s",                                                                {.delay_ns = 86400000000000}                     },
        {"down=5s+2s",                                                                  {.down_at_ns = 5000000000, .down_ns = 2000000000}},
        {"down=0s+10ms",                                                                {.down_ns = 10000000}                            },
        {"seed=7",                                                                      {.seed = 7}                                      },
        {"seed=18446744073709551615",                                                   {.seed = UINT64_MAX}                             },
        {"drop=1%,dup=0.1%,reorder=1%:50us,corrupt=0.01%,delay=20us,down=5s+2s,seed=7",
         {.drop_ppb = 10000000,
          .dup_ppb = 1000000,
          .reorder_ppb = 10000000,
          .reorder_ns = 50000,
          .corrupt_ppb = 100000,
          .delay_ns = 20000,
          .down_at_ns = 5000000000,
          .down_ns = 2000000000,
          .seed = 7}                                                                                                                     },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fault_spec got;
        char message[FAULT_MESSAGE_BYTES];
        memset(&got, 0xa5, sizeof(got));
        if (fault_parse(rows[i].text, &got, message) != 0)
            fail_msg("%s: %s", rows[i].text, message);
        assert_int_equal(got.drop_ppb, rows[i].want.drop_ppb);
        assert_int_equal(got.dup_ppb, rows[i].want.dup_ppb);
        assert_int_equal(got.corrupt_ppb, rows[i].want.corrupt_ppb);
        assert_int_equal(got.ce_ppb, rows[i].want.ce_ppb);
        assert_int_equal(got.reorder_ppb, rows[i].want.reorder_ppb);
        assert_int_equal(got.reorder_ns, rows[i].want.reorder_ns);
        assert_int_equal(got.delay_ns, rows[i].want.delay_ns);
        assert_int_equal(got.down_at_ns, rows[i].want.down_at_ns);
        assert_int_equal(got.down_ns, rows[i].want.down_ns);
        assert_int_equal(got.seed, rows[i].want.seed);
    }
}

static void fault_spec__invalid(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says; /* part of the message */
    } rows[] = {
        {"",                             "empty"               },
        {"drop",                         "want drop="          },
        {"=1%",                          "want drop="          },
        {"drops=1%",                     "\"drops=1%\""        },
        {"Drop=1%",                      "want drop="          },
        {" drop=1%",                     "want drop="          },
        {"drop=1% ",                     "like drop=1%"        },
        {"drop=",                        "like drop=1%"        },
        {"drop=1",                       "like drop=1%"        },
        {"drop=%",                       "like drop=1%"        },
        {"drop=-1%",                     "like drop=1%"        },
        {"drop=101%",                    "like drop=1%"        },
        {"drop=100.1%",                  "like drop=1%"        },
        {"drop=1.%",                     "like drop=1%"        },
        {"drop=.5%",                     "like drop=1%"        },
        {"drop=0.00000001%",             "like drop=1%"        },
        {"drop=1%%",                     "like drop=1%"        },
        {"drop=1%,",                     "want drop="          },
        {",drop=1%",                     "want drop="          },
        {"drop=1%,,dup=1%",              "want drop="          },
        {"drop=1%,drop=2%",              "given twice"         },
        {"dup=1e-3%",                    "like dup=0.1%"       },
        {"reorder=1%",                   "like reorder=1%:50us"},
        {"reorder=1%:",                  "like reorder=1%:50us"},
        {"reorder=1%:50",                "like reorder=1%:50us"},
        {"reorder=50us:1%",              "like reorder=1%:50us"},
        {"delay=20",                     "like delay=20us"     },
        {"delay=20m",                    "like delay=20us"     },
        {"delay=1.5us",                  "like delay=20us"     },
        {"delay=86401s",                 "like delay=20us"     },
        {"delay=99999999999999999999ns", "like delay=20us"     },
        {"down=5s",                      "like down=5s+2s"     },
        {"down=5s+",                     "like down=5s+2s"     },
        {"down=5s-2s",                   "like down=5s+2s"     },
        {"seed=",                        "like seed=7"         },
        {"seed=0x7",                     "like seed=7"         },
        {"seed=18446744073709551616",    "like seed=7"         },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fault_spec got = {.seed = 1234};
        char message[FAULT_MESSAGE_BYTES];
        if (fault_parse(rows[i].text, &got, message) != -EINVAL)
            fail_msg("\"%s\" was taken", rows[i].text);
        if (strstr(message, rows[i].says) == NULL)
            fail_msg("\"%s\" says: %s", rows[i].text, message);
        assert_int_equal(got.seed, 1234);
    }
    char longest[1024], message[FAULT_MESSAGE_BYTES];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    struct fault_spec got;
    assert_int_equal(fault_parse(longest, &got, message), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault_spec__valid),
        cmocka_unit_test(fault_spec__invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
