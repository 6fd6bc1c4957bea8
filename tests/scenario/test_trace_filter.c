/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_trace_filter.c: filters of traces: what they take, and a message for each mistake.
 */
#include "scenario/trace_file.h"

#include "bench.h"

static uint32_t find(const void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "h-1") == 0 ? 7 : UINT32_MAX;
}

static const struct trace_names names = {find, NULL, 0, 0, 0};
/* What there is. */
static const struct trace_names counted = {find, NULL, 10, 4, 200};

static void takes__by_fields(void **state)
{
    (void)state;
    static const struct {
        const char *filter;
        struct fabric_trace event;
        bool takes;
    } rows[] = {
        {"kind=drop",                {.kind = TRACE_DROP},                        true },
        {"kind=drop",                {.kind = TRACE_MARK},                        false},
        {"kind=drop+mark",           {.kind = TRACE_MARK},                        true },
        {"node=h-1",                 {.node = 7},                                 true },
        {"node=h-1",                 {.node = 1},                                 false},
        {"node=1-3+9",               {.node = 3},                                 true },
        {"node=1-3+9",               {.node = 4},                                 false},
        {"node=1-3+9",               {.node = 9},                                 true },
        {"port=0",                   {.port = 1},                                 false},
        {"priority=3,flow=10-20",    {.priority = 3, .flow = 20},                 true },
        {"priority=3,flow=10-20",    {.priority = 3, .flow = 21},                 false},
        {"priority=3,flow=10-20",    {.priority = 2, .flow = 20},                 false},
        {"flow=0-4294967294",        {.flow = FABRIC_TRACE_NONE},                 false},
        {"kind=pause,node=7,port=2", {.kind = TRACE_PAUSE, .node = 7, .port = 2}, true },
        {"kind=pause,node=7,port=2", {.kind = TRACE_PAUSE, .node = 7, .port = 3}, false},
        {"kind=send,kind=arrive",    {.kind = TRACE_ARRIVE},                      true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trace_filter filter = {0};
        struct scenario_error e;
        if (!trace_filter_add(&filter, rows[i].filter, &names, &e))
            fail_msg("%s", e.text);
        struct trace_filter again = {0};
        assert_true(trace_filter_add(&again, rows[i].filter, &counted, &e));
        if (trace_filter_takes(&filter, &rows[i].event) != rows[i].takes)
            fail_msg("row %zu: %s", i, rows[i].filter);
    }
    struct trace_filter all = {0};
    assert_true(trace_filter_takes(&all, &(struct fabric_trace){.flow = FABRIC_TRACE_NONE}));
}

static void add__mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *message;
    } rows[] = {
        {"",                                                                          "FIELD=VALUE is expected; fields are node, port" },
        {"kind",                                                                      "FIELD=VALUE is expected"                        },
        {"kind=",                                                                     "a value is missing"                             },
        {"kind=drop,",                                                                "FIELD=VALUE is expected"                        },
        {"kind=drop+",                                                                "a value is missing"                             },
        {"kind=fall",                                                                 "'fall' is no kind of event; send, arrive"       },
        {"kind=1",                                                                    "'1' is no kind"                                 },
        {"colour=red",                                                                "'colour' is no field; node, port, priority"     },
        {"node=h9",                                                                   "'h9' is no node; a name or a number is expected"},
        {"port=x",                                                                    "'x' is no number; 3 or 3-7 is expected"         },
        {"port=7-3",                                                                  "'7-3' is no number"                             },
        {"port=-3",                                                                   "'-3' is no number"                              },
        {"priority=9",                                                                "'9' is too large; numbers up to 8 are expected" },
        {"priority=3-9",                                                              "'3-9' is too large; numbers up to 8"            },
        {"node=9+10",                                                                 "'10' is too large; numbers up to 9"             },
        {"port=4-9",                                                                  "'4-9' is too large; numbers up to 3"            },
        {"flow=200",                                                                  "'200' is too large; numbers up to 199"          },
        {"flow=1-",                                                                   "'1-' is no number"                              },
        {"flow=4294967295",                                                           "'4294967295' is no number"                      },
        {"flow=1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1",                                    "at most 16 are expected"                        },
        {"port=00000000000000000000000000000000000000000000000000000000000000000001",
         "a value is missing or too long"                                                                                              },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trace_filter filter = {0};
        struct scenario_error e = {""};
        if (trace_filter_add(&filter, rows[i].filter, &counted, &e))
            fail_msg("taken: %s", rows[i].filter);
        bench_contains(e.text, rows[i].message);
        bench_contains(e.text, "--trace-filter ");
    }
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes__by_fields),
        cmocka_unit_test(add__mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
