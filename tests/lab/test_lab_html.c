/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_html.c: the page carries the record as it is, whatever stands in it. How it looks is
 * judged in a browser: tests/e2e/test_lab_report.py.
 */
#include "lab/lab_html.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char *page(const json_t *record)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(lab_html_write(record, out), 0);
    fclose(out);
    return text;
}

/* The data of a page, read as a browser would. */
static json_t *data_of(const char *text)
{
    static const char begin[] = "<script id=\"data\" type=\"application/json\">";
    const char *from = strstr(text, begin), *to = from == NULL ? NULL : strstr(from, "</script");
    assert_non_null(to);
    from += sizeof(begin) - 1;
    return json_loadb(from, (size_t)(to - from), 0, NULL);
}

static void lab_html_write__carries_the_record(void **state)
{
    (void)state;
    static const char *const hosts[] = {
        "host-a", "", "</script><script>alert(1)</script>", "<!--", "\\u003c \" {{data}}", "\u00b5",
    };
    for (unsigned i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        json_t *record = json_pack("{s:{s:s},s:[],s:f,s:I}", "source", "host", hosts[i], "cases",
                                   "gbps", 12.3456789, "ns", (json_int_t)1 << 40);
        char *text = page(record);
        json_t *read = data_of(text);
        assert_true(json_equal(read, record));
        json_decref(read);
        json_decref(record);
        free(text);
    }
}

static void lab_html_write__names_both_ends(void **state)
{
    (void)state;
    static const struct {
        const char *record, *title;
    } rows[] = {
        {"{\"source\":{\"host\":\"a\"},\"target\":{\"host\":\"b\"}}", "<title>RDMA path: a to b<"     },
        {"{\"source\":{\"host\":\"<a>\"},\"target\":null}",           "<title>RDMA path: &lt;a> to ?<"},
        {"{}",                                                        "<title>RDMA path: ? to ?<"     },
        {"{\"source\":{\"host\":7},\"target\":[]}",                   "<title>RDMA path: ? to ?<"     },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *record = json_loads(rows[i].record, 0, NULL);
        char *text = page(record);
        if (strstr(text, rows[i].title) == NULL)
            fail_msg("row %u: no %s", i, rows[i].title);
        json_decref(record);
        free(text);
    }
}

static void lab_html_write__of_many_ranks(void **state)
{
    (void)state;
    json_t *record = json_loads("{\"ranks\": [{}, {}, {}], \"meetings\": []}", 0, NULL);
    char *text = page(record);
    json_t *read = data_of(text);
    assert_non_null(strstr(text, "<title>RDMA paths of 3 ranks<"));
    assert_non_null(strstr(text, "lab_html_many.js"));
    assert_null(strstr(text, "lab_html_data.js"));
    assert_non_null(strstr(text, "lab_html_settings.js")); /* as pages of two ends have it */
    assert_true(json_equal(read, record));
    json_decref(read);
    json_decref(record);
    free(text);
}

static void lab_html_write__tells_of_a_full_disk(void **state)
{
    (void)state;
    json_t *record = json_object();
    FILE *out = fopen("/dev/full", "w");
    assert_non_null(out);
    assert_int_equal(lab_html_write(record, out), -ENOSPC);
    fclose(out);
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_html_write__carries_the_record),
        cmocka_unit_test(lab_html_write__names_both_ends),
        cmocka_unit_test(lab_html_write__of_many_ranks),
        cmocka_unit_test(lab_html_write__tells_of_a_full_disk),
    };
    if (lab_html_missing() != NULL) {
        printf("1..0 # SKIP %s\n", lab_html_missing());
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
