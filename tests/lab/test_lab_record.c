/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_record.c: members of a record, whole and broken off, and that what cannot be written is
 * told.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_record.h"
#include "made_run.h"

static struct lab_end e;
static struct lab_run run;

static int setup(void **state)
{
    (void)state;
    made_run(&e, &run, 5000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lab_run_clear(&run);
    return 0;
}

static void lab_record_make__members(void **state)
{
    (void)state;
    run.results[1].source.user_us = 1000;
    run.results[1].source.registered_bytes = 4096;
    run.results[1].batches = (struct lab_batches){
        .count = 2, .ns = {70, 50}
    };
    json_t *o = lab_record_make(&e, &run, NULL), *measure;
    const char *kind, *op, *name, *starts, *stops, *sizes;
    json_int_t version, samples, p50, p99, messages;
    double memcpy_ns, gbps, ratio, limit, latency;
    assert_int_equal(json_unpack(o, "{s:s,s:i,s:{s:s},s:[{s:F}]}", "record", &kind, "version",
                                 &version, "settings", "size", &sizes, "memcpy", "ns", &memcpy_ns),
                     0);
    assert_string_equal(kind, "verbena lab");
    assert_string_equal(sizes, "1000");
    assert_true(memcpy_ns == 100);
    json_t *c = json_array_get(json_object_get(o, "cases"), 1);
    assert_int_equal(json_unpack(c, "{s:s,s:I,s:F,s:F,s:F}", "op", &op, "messages", &messages,
                                 "gbps", &gbps, "throughput_ratio_tcp", &ratio,
                                 "throughput_ratio_memcpy", &limit),
                     0);
    assert_string_equal(op, "write");
    assert_int_equal(messages, 100);
    assert_true(gbps == 1.6 && ratio == 2 && limit == 0.02);
    json_int_t registered, batch;
    assert_int_equal(json_unpack(c, "{s:{s:I},s:[I,I],s:F,s:F}", "source", "registered_bytes",
                                 &registered, "batches_ns", &batch, &batch, "cpu_us_a_message",
                                 &ratio, "cpu_ratio_memcpy", &limit),
                     0);
    assert_true(registered == 4096 && batch == 50 && ratio == 10 && limit == 0.01);
    assert_int_equal(json_array_size(json_object_get(c, "measures")), 2);
    measure = json_array_get(json_object_get(c, "measures"), 1);
    assert_int_equal(json_unpack(measure, "{s:s,s:s,s:s,s:I,s:I,s:I,s:F}", "name", &name, "starts",
                                 &starts, "stops", &stops, "samples", &samples, "p50_ns", &p50,
                                 "p99_ns", &p99, "latency_ratio_tcp", &latency),
                     0);
    assert_string_equal(name, "write + application ack");
    assert_int_equal(samples, 100);
    assert_int_equal(p50, 5000);
    assert_true(strlen(starts) > 0 && strlen(stops) > 0 && latency == 2);
    assert_int_equal(json_unpack(measure, "{s:{s:F},s:{s:F}}", "ratios_tcp", "p99", &latency,
                                 "ratios_memcpy", "max", &limit),
                     0);
    assert_true(latency == 2 && limit == 0.02);
    measure = json_array_get(json_object_get(c, "measures"), 0); /* TCP has no completion */
    assert_null(json_object_get(measure, "ratios_tcp"));
    assert_non_null(json_object_get(measure, "ratios_memcpy"));
    assert_non_null(json_object_get(o, "verdict"));
    assert_null(json_object_get(o, "error"));
    json_decref(o);
}

/* What was measured before a failure is kept; a verdict there is none. */
static void lab_record_make__broken_off(void **state)
{
    (void)state;
    run.count = 1;
    json_t *o = lab_record_make(&e, &run, "the peer is gone");
    assert_string_equal(json_string_value(json_object_get(o, "error")), "the peer is gone");
    assert_null(json_object_get(o, "verdict"));
    assert_int_equal(json_array_size(json_object_get(o, "cases")), 1);
    json_decref(o);
    run.count = 3;
}

static void lab_record_write__reads_back(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes;
    json_t *o = lab_record_make(&e, &run, NULL);
    FILE *f = open_memstream(&text, &bytes);
    assert_int_equal(lab_record_write(o, f), 0);
    fclose(f);
    json_t *again = json_loads(text, 0, NULL);
    assert_non_null(again);
    assert_true(json_equal(json_object_get(o, "settings"), json_object_get(again, "settings")));
    json_decref(again);
    json_decref(o);
    free(text);
}

static void lab_record_write__disk_full(void **state)
{
    (void)state;
    json_t *o = lab_record_make(&e, &run, NULL);
    FILE *f = fopen("/dev/full", "w");
    assert_non_null(f);
    assert_int_equal(lab_record_write(o, f), -ENOSPC);
    fclose(f);
    f = fopen("/dev/full", "w");
    assert_non_null(f);
    assert_int_equal(lab_report_write(o, f), -ENOSPC);
    fclose(f);
    json_decref(o);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A small copy takes few ns, of which parts count. */
static void lab_record_make__parts_of_a_ns(void **state)
{
    (void)state;
    double ns, gbps;
    run.memcpy_ns[0] = 2.125;
    json_t *o = lab_record_make(&e, &run, NULL);
    assert_int_equal(json_unpack(o, "{s:[{s:F,s:F}]}", "memcpy", "ns", &ns, "gbps", &gbps), 0);
    assert_true(ns == 2.125 && gbps == 3764.706);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lab_record_make__members),    TEST(lab_record_make__parts_of_a_ns),
        TEST(lab_record_make__broken_off), TEST(lab_record_write__reads_back),
        TEST(lab_record_write__disk_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
