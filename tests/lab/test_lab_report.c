/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_report.c: the text of a record, and of records that lack things.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_record.h"
#include "made_run.h"

static char *text;

static const char *report(const json_t *record)
{
    size_t bytes;
    free(text);
    text = NULL;
    FILE *f = open_memstream(&text, &bytes);
    assert_int_equal(lab_report_write(record, f), 0);
    fclose(f);
    return text;
}

static int teardown(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static void lab_report_write__has_all(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "tcp + application ack                    direct        1000B        1     10.0     10.0   "
        "  "
        "10.0     "
        "10.0 "
        "    10.0       -    0.800    100.0       -  0.0100\n",
        "write completion                         direct        1000B        1      2.5      2.5   "
        "   "
        "2.5      "
        "2.5 "
        "     2.5       -    1.600    200.0    2.00  0.0200\n",
        "write + application ack                  direct        1000B        1      5.0      5.0   "
        "   "
        "5.0      "
        "5.0 "
        "     5.0    2.00\n",
        "atomic                                   direct           8B        1      0.5      0.5   "
        "   "
        "0.5      "
        "0.5 "
        "     0.5       -   0.0640   1000.0       -       -\n",
        "  write completion: starts before the work request is posted; stops when its",
        /* Each as ratios: of TCP 10 us, and of memcpy 0.1 us. */
        "write completion                         direct        1000B        1       -       -     "
        "  "
        "-       -       -    2.00       - |  0.0400  0.0400  0.0400  0.0400  0.0400  0.0200       "
        "-\n",
        "write + application ack                  direct        1000B        1    2.00    2.00    "
        "2.00    2.00    2.00       -       - |  0.0200  0.0200  0.0200  0.0200  0.0200       -    "
        "   -\n",
        "pool of 4.00 MiB registered in 7.0 us",
        " 0.25\n",
        "write      direct        1000B        1  source",
        "write      direct        1000B        1  target     0.00     1.00     0.00",
        "write of 1000B at depth 1, direct, target: retransmitted_packets 3\n",
        "write of 1000B at depth 1, direct, source: resent 7\n",
        "write of 1000B at depth 1, direct, target: duplicates 2\n",
        "Verdict: passed; RDMA pays for this load",
    };
    struct lab_end e;
    struct lab_run run;
    made_run(&e, &run, 5000);
    json_object_set_new(run.results[1].target, "counters",
                        json_pack("{s:i,s:i}", "retransmitted_packets", 3, "tx_packets", 9));
    run.results[1].source.resent = 7;
    json_object_set_new(run.results[1].target, "duplicates", json_integer(2));
    json_object_set_new(run.results[1].target, "lost", json_integer(0));
    run.results[1].source.registered_bytes = 256 << 10;
    json_t *record = lab_record_make(&e, &run, NULL);
    json_object_set_new(record, "source",
                        json_pack("{s:i,s:i}", "registered_bytes", 4 << 20, "register_ns", 7000));
    report(record);
    for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (strstr(text, wanted[i]) == NULL)
            fail_msg("not there: %s\namong:\n%s", wanted[i], text);
    assert_null(strstr(text, "tx_packets")); /* no trouble */
    assert_null(strstr(text, ": lost"));
    json_decref(record);
    lab_run_clear(&run);
}

static void lab_report_write__what_lacks(void **state)
{
    (void)state;
    static const char *const records[] = {
        "{}",
        "{\"cases\": [], \"error\": \"x\"}",
        "{\"cases\": [{}], \"source\": 5, \"verdict\": {}}",
        "{\"cases\": [{\"measures\": [{}], \"source\": {\"wall_ns\": 0}}]}",
        "{\"cases\": [{\"measures\": {}, \"target\": []}], \"verdict\": []}",
    };
    for (unsigned i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        json_t *record = json_loads(records[i], 0, NULL);
        assert_non_null(record);
        report(record);
        json_decref(record);
    }
}

static void lab_report_bytes__units(void **state)
{
    (void)state;
    char out[24];
    assert_string_equal(lab_report_bytes(0, out), "0B");
    assert_string_equal(lab_report_bytes(1023, out), "1023B");
    assert_string_equal(lab_report_bytes(1024, out), "1KiB");
    assert_string_equal(lab_report_bytes(65537, out), "65537B");
    assert_string_equal(lab_report_bytes(1 << 20, out), "1MiB");
    assert_string_equal(lab_report_bytes(UINT64_MAX, out), "18446744073709551615B");
}

static void lab_report_number__digits(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0,          "0.000"    },
        {0.000001,   "1.00e-06" },
        {0.0001,     "0.000100" },
        {0.00123456, "0.00123"  },
        {0.0999,     "0.0999"   },
        {0.1,        "0.100"    },
        {1.2345,     "1.234"    },
        {99.5,       "99.500"   },
        {12345.6,    "12345.600"},
        {-1,         "-1.000"   },
    };
    char out[24];
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(lab_report_number(rows[i].value, out), rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lab_report_write__has_all, teardown),
        cmocka_unit_test_teardown(lab_report_write__what_lacks, teardown),
        cmocka_unit_test(lab_report_bytes__units),
        cmocka_unit_test(lab_report_number__digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
