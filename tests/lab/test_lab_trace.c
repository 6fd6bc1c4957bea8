/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_trace.c: only the traced message, only the first time, and what a file that is none
 * leads to.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/lab_trace.h"

static void lab_trace_at__first_time_of_the_message(void **state)
{
    (void)state;
    struct lab_trace t = {.sequence = 5};
    lab_trace_at(&t, 5, LAB_AT_POST); /* it is off */
    assert_int_equal(t.at_ns[LAB_AT_POST], 0);
    t.on = true;
    lab_trace_at(&t, 4, LAB_AT_POST);
    assert_int_equal(t.at_ns[LAB_AT_POST], 0);
    lab_trace_at(&t, 5, LAB_AT_POST);
    uint64_t first = t.at_ns[LAB_AT_POST];
    assert_true(first > 0);
    lab_trace_at(&t, 5, LAB_AT_POST);
    assert_int_equal(t.at_ns[LAB_AT_POST], first);
    assert_int_equal(t.at_ns[LAB_AT_POSTED], 0);
}

static void lab_trace_rest__only_before_the_message(void **state)
{
    (void)state;
    struct lab_trace t = {.on = true, .sequence = 5};
    uint64_t start = lab_now_ns();
    lab_trace_rest(&t, 5);
    assert_true(lab_now_ns() - start >= 20000000);
}

static void lab_trace_json__without_a_capture(void **state)
{
    (void)state;
    static const char *const files[] = {"", "/nowhere/capture", "/dev/null", "/proc/self/status"};
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct lab_trace t = {.on = true};
        strcpy(t.capture, files[i]); /* NOLINT: they are short */
        t.at_ns[LAB_AT_TOLD] = 7;
        json_t *o = lab_trace_json(&t);
        assert_int_equal(json_array_size(json_object_get(o, "packets")), 0);
        assert_int_equal(json_object_size(json_object_get(o, "points")), 1);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "points"), "told")),
                         7);
        json_decref(o);
    }
}

static void lab_point_name__all_differ(void **state)
{
    (void)state;
    for (unsigned a = 0; a < LAB_POINTS; a++)
        for (unsigned b = 0; b < a; b++)
            assert_string_not_equal(lab_point_name(a), lab_point_name(b));
}

static void lab_trace_start__file_of_its_own(void **state)
{
    (void)state;
    struct lab_trace t = {0}, other = {0};
    char message[LAB_MESSAGE_BYTES], capture[sizeof(t.capture)];
    assert_int_equal(lab_trace_start(&t, 1000, message), 0);
    assert_int_equal(lab_trace_start(&other, 1000, message), 0);
    assert_true(t.on);
    assert_string_not_equal(t.capture, other.capture);
    assert_string_equal(getenv("VERBENA_PCAP"), other.capture);
    assert_string_equal(getenv("VERBENA_PCAP_CLOCK"), "monotonic"); /* as lab_now_ns() */
    memcpy(capture, t.capture, sizeof(capture));
    FILE *f = fopen(capture, "we");
    assert_non_null(f);
    fclose(f);
    lab_trace_stop(&t);
    assert_int_not_equal(access(capture, F_OK), 0);
    lab_trace_stop(&t); /* nothing is left to do */
    lab_trace_stop(&other);
    unsetenv("VERBENA_PCAP");
    unsetenv("VERBENA_PCAP_CLOCK");
}

/* Else the library would end the capture somewhere, and what is missing would look as if it had
 * never been. */
static void lab_trace_start__no_room(void **state)
{
    (void)state;
    static const struct {
        rlim_t limit;
        uint64_t bytes;
        bool fits;
    } rows[] = {
        {0,             1,             false},
        {999,           1000,          false},
        {1000,          1000,          true },
        {RLIM_INFINITY, UINT64_MAX,    true },
        {1 << 20,       (1 << 20) + 1, false},
    };
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_trace t = {0};
        char message[LAB_MESSAGE_BYTES] = "";
        struct rlimit small = {rows[i].limit, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        int error = lab_trace_start(&t, rows[i].bytes, message);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(error, rows[i].fits ? 0 : -EFBIG);
        assert_int_equal(strstr(message, "raise ulimit -f") != NULL, !rows[i].fits);
        assert_int_equal(t.on, rows[i].fits);
        lab_trace_stop(&t);
    }
    unsetenv("VERBENA_PCAP");
    unsetenv("VERBENA_PCAP_CLOCK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_trace_at__first_time_of_the_message),
        cmocka_unit_test(lab_trace_rest__only_before_the_message),
        cmocka_unit_test(lab_trace_json__without_a_capture),
        cmocka_unit_test(lab_trace_start__file_of_its_own),
        cmocka_unit_test(lab_trace_start__no_room),
        cmocka_unit_test(lab_point_name__all_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
