/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_trace.c: only the traced message, only the first time, and what a file that is none
 * leads to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    assert_int_equal(lab_trace_start(&t, message), 0);
    assert_int_equal(lab_trace_start(&other, message), 0);
    assert_true(t.on);
    assert_string_not_equal(t.capture, other.capture);
    assert_string_equal(getenv("VERBENA_PCAP"), other.capture);
    memcpy(capture, t.capture, sizeof(capture));
    FILE *f = fopen(capture, "we");
    assert_non_null(f);
    fclose(f);
    lab_trace_stop(&t);
    assert_int_not_equal(access(capture, F_OK), 0);
    lab_trace_stop(&t); /* nothing is left to do */
    lab_trace_stop(&other);
    unsetenv("VERBENA_PCAP");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_trace_at__first_time_of_the_message),
        cmocka_unit_test(lab_trace_rest__only_before_the_message),
        cmocka_unit_test(lab_trace_json__without_a_capture),
        cmocka_unit_test(lab_trace_start__file_of_its_own),
        cmocka_unit_test(lab_point_name__all_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
