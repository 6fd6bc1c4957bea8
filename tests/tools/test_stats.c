/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stats.c: counters of several processes add up; lines that make no sense change nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stats.h"

static char *print(const char *text, unsigned *processes)
{
    char *out = NULL;
    size_t bytes;
    FILE *in = tmpfile();
    FILE *to = open_memstream(&out, &bytes);
    assert_non_null(in);
    assert_non_null(to);
    fputs(text, in);
    rewind(in);
    *processes = stats_print(in, to);
    fclose(in);
    fclose(to);
    return out;
}

#define LONG_NAME "a_name_of_a_counter_that_is_longer_than_any_name_that_there_is_or_will_be"

static const struct row {
    const char *text;
    unsigned processes;
    const char *has[3]; /* what the output has */
    const char * not ;  /* and what it has not */
} rows[] = {
  /* valid */
    {"rx 5 10 ping\n",                        1, {"of 1 process\n", "rx ", " 5\n"}, "processes"  },
    {"rx 5 10 ping\nrx 7 11 ping\n",          2, {"of 2 processes", " 12\n"},       " 5\n"       },
    {"rx 5 10 ping\nrx 7 10 ping\n",          1, {"of 1 process\n", " 12\n"},       " 5\n"       },
    {"tx 1 10 a b c\nrx 2 10 a b c\n",        1, {" 1\n", " 2\n"},                  " 3\n"       },
    {"rx 18446744073709551615 1 p\n",         1, {"18446744073709551615"},          "-1"         },
 /* invalid: passed over */
    {"",                                      0, {"no counters"},                   "counters of"},
    {"rx\n",                                  0, {"no counters"},                   "rx"         },
    {"rx 5\n",                                0, {"no counters"},                   "rx"         },
    {"rx 5 10\n",                             0, {"no counters"},                   "rx"         },
    {"rx 5 10 \n",                            0, {"no counters"},                   "rx"         },
    {"rx 5 10 ping",                          0, {"no counters"},                   "rx"         },
    {"rx -5 10 ping\n",                       0, {"no counters"},                   "rx"         },
    {"rx five 10 ping\n",                     0, {"no counters"},                   "rx"         },
    {"rx 5x 10 ping\n",                       0, {"no counters"},                   "rx"         },
    {" 5 10 ping\n",                          0, {"no counters"},                   " 5"         },
    {"rx 5 10 ping\nrubbish\nrx 1 10 ping\n", 1, {" 6\n"},                          "rubbish"    },
    {LONG_NAME " 5 10 ping\n",                0, {"no counters"},                   "longer"     },
};

static void stats_print__rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned processes;
        char *out = print(rows[i].text, &processes);
        if (processes != rows[i].processes)
            fail_msg("%s: %u processes", rows[i].text, processes);
        for (unsigned k = 0; k < 3 && rows[i].has[k] != NULL; k++)
            if (strstr(out, rows[i].has[k]) == NULL)
                fail_msg("%s: no '%s' in '%s'", rows[i].text, rows[i].has[k], out);
        if (strstr(out, rows[i].not ) != NULL)
            fail_msg("%s: '%s' in '%s'", rows[i].text, rows[i].not, out);
        free(out);
    }
}

static void stats_print__more_counters_than_fit(void **state)
{
    enum { MANY = 2000 };
    char *text = malloc(MANY * 40), *at = text, *out;
    unsigned processes;
    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        at += sprintf(at, "counter_%u 1 %u p\n", i, i);
    out = print(text, &processes);
    assert_int_equal(processes, MANY);
    assert_non_null(strstr(out, "counter_511 "));
    assert_null(strstr(out, "counter_512 "));
    free(out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stats_print__rows),
        cmocka_unit_test(stats_print__more_counters_than_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
