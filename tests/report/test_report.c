/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_report.c: the page has each of its parts, and no text of the data or title becomes markup.
 */
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *page(const char *title, const char *data)
{
    const struct report r = {.title = title, .script = "report.head({});", .data = data};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(report_write(out, &r), 0);
    fclose(out);
    return text;
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        n++;
    return n;
}

/* Without the library, which has a few of them of its own. */
static char *own_parts(char *text)
{
    char *begin = strstr(text, "!function");
    char *end = begin == NULL ? NULL : strstr(begin, "</script>");
    assert_non_null(end);
    memmove(begin, end, strlen(end) + 1);
    return text;
}

static void report_write__has_all_parts(void **state)
{
    (void)state;
    char *text = page("Lab report", "{\"figure\":42}");
    static const char *const parts[] = {
        "<title>Lab report</title>",
        "{\"figure\":42}</script>",
        "report.head({});</script>",
        "const report = ",
        "echarts",
        "prefers-color-scheme: dark",
        "Apache", /* the library's licence stays with it */
    };
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("no '%s'", parts[i]);
    own_parts(text);
    assert_int_equal(count(text, "{{"), 0);
    assert_int_equal(count(text, "</html>"), 1);
    free(text);
}

/* Nothing that a browser would fetch. */
static void report_write__asks_for_nothing(void **state)
{
    (void)state;
    static const char *const words[] = {" src=", "<link", "url(", "@import", "fetch(", "http"};
    char *text = own_parts(page("t", "{}"));
    assert_non_null(strstr(text, "default-src 'none'"));
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const char *found = strstr(text, words[i]);
        if (found != NULL && strncmp(found, "http-equiv", 10) != 0)
            fail_msg("'%.60s'", found);
    }
    free(text);
}

static void report_write__data_stay_data(void **state)
{
    (void)state;
    static const struct {
        const char *title, *data, *wanted;
    } rows[] = {
        {"t",             "[\"</script><b>\"]", "[\"\\u003c/script>\\u003cb>\"]</script>"},
        {"t",             "[\"<!--<script>\"]", "[\"\\u003c!--\\u003cscript>\"]</script>"},
        {"t",             "[\"{{title}}\"]",    "[\"{{title}}\"]</script>"               },
        {"t",             "[\"\xe2\x80\xa8\"]", "[\"\xe2\x80\xa8\"]</script>"            },
        {"</title><b>&c", "[]",                 "<title>&lt;/title>&lt;b>&amp;c</title>" },
        {"{{data}}",      "[]",                 "<title>{{data}}</title>"                },
    };
    char *plain = own_parts(page("t", "[]"));
    unsigned scripts = count(plain, "</script");
    free(plain);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text = own_parts(page(rows[i].title, rows[i].data));
        if (strstr(text, rows[i].wanted) == NULL)
            fail_msg("row %u: no '%s'", i, rows[i].wanted);
        assert_int_equal(count(text, "</script"), scripts);
        free(text);
    }
}

static void report_write__tells_of_a_full_disk(void **state)
{
    (void)state;
    const struct report r = {.title = "t", .script = "", .data = "[]"};
    FILE *out = fopen("/dev/full", "w");
    assert_non_null(out);
    assert_int_equal(report_write(out, &r), -28); /* ENOSPC */
    fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_write__has_all_parts),
        cmocka_unit_test(report_write__asks_for_nothing),
        cmocka_unit_test(report_write__data_stay_data),
        cmocka_unit_test(report_write__tells_of_a_full_disk),
    };
    if (!report_can()) {
        printf("1..0 # SKIP %s\n", REPORT_CANNOT);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
