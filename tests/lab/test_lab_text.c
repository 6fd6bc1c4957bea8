/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_text.c: any bytes become a JSON string, and what is UTF-8 stays as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lab/lab_text.h"

static void lab_text_json__any_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *becomes;
    } rows[] = {
        {"",                     ""                    },
        {"host",                 "host"                },
        {"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac"},
        {"\xf0\x9f\x98\x80",     "\xf0\x9f\x98\x80"    },
        {"\xff",                 "?"                   },
        {"a\xff\xfe"
         "b",           "a??b"                },
        {"cut \xe2\x82",         "cut ??"              },
        {"\xc3\xa4\xc3",         "\xc3\xa4?"           },
        {"\x80"
         "a",           "?a"                  }, /* goes on with nothing */
        {"\xc0\xaf",             "??"                  }, /* longer than need be */
        {"\xed\xa0\x80",         "???"                 }, /* half of a pair */
        {"\xf4\x90\x80\x80",     "????"                }, /* beyond the last */
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *o = lab_text_json(rows[i].text);
        assert_non_null(o);
        assert_string_equal(json_string_value(o), rows[i].becomes);
        json_decref(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lab_text_json__any_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
