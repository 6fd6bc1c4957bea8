/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_path.c: traces become steps: their order, packets put together, and what came before it
 * left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_path.h"

/* A write of two packets and its word: PSN 10 to 12; the answer is PSN 20. Packets of the message
 * before have lower times. */
static const char source[] = "{'points': {'make': 1000, 'made': 1500, 'post': 2000, 'posted': "
                             "3000, 'word': 3100, 'worded': 3300,"
                             " 'completed': 6000, 'acknowledged': 8000},"
                             " 'packets': [{'ns': 900, 'sent': true, 'opcode': 10, 'psn': 9},"
                             " {'ns': 2100, 'sent': true, 'opcode': 6, 'psn': 10}, {'ns': 2200, "
                             "'sent': true, 'opcode': 8, 'psn': 11},"
                             " {'ns': 3200, 'sent': true, 'opcode': 4, 'psn': 12},"
                             " {'ns': 5500, 'sent': false, 'opcode': 17, 'psn': 12}, {'ns': 7500, "
                             "'sent': false, 'opcode': 4, 'psn': 20}]}";
static const char target[] =
    "{'points': {'told': 4000, 'checked': 4500, 'answer': 4600, 'answered': 4900},"
    " 'packets': [{'ns': 800, 'sent': false, 'opcode': 10, 'psn': 9},"
    " {'ns': 700, 'sent': false, 'opcode': 6, 'psn': 10}, {'ns': 2300, 'sent': false, 'opcode': 8, "
    "'psn': 11},"
    " {'ns': 3300, 'sent': false, 'opcode': 4, 'psn': 12},"
    " {'ns': 3400, 'sent': true, 'opcode': 17, 'psn': 12}, {'ns': 4700, 'sent': true, 'opcode': 4, "
    "'psn': 20}]}";

static json_t *load(const char *text)
{
    char *copy = strdup(text);
    for (char *p = copy; *p != '\0'; p++)
        if (*p == '\'')
            *p = '"';
    json_t *o = json_loads(copy, 0, NULL);
    free(copy);
    assert_non_null(o);
    return o;
}

static bool two_clocks;

static void check_what(const json_t *step, unsigned i, const char *part)
{
    const char *what = json_string_value(json_object_get(step, "what"));
    if (strstr(what, part) == NULL)
        fail_msg("%u: %s instead of %s", i + 1, what, part);
}

static json_t *make(enum lab_op op, enum lab_transport transport, const char *from, const char *to)
{
    json_t *a = load(from), *b = load(to);
    json_t *path = lab_path_make(op, transport, 8192, a, b, two_clocks);
    json_decref(a);
    json_decref(b);
    return path;
}

static void lab_path_make__write(void **state)
{
    (void)state;
    static const struct {
        const char *end;
        json_int_t begin_ns, end_ns;
        const char *what, *proves;
    } rows[] = {
        {"source", 0,    500,  "makes the contents",                                               "byte by byte"                   },
        {"source", 1000, 2000, "goes into the send queue",                                         "may use the slot"               },
        {"source", 1100, 1200,
         "reads memory and sends: 2 packets, RDMA WRITE First, PSN 10 to RDMA WRITE Last, PSN 11", "has left"                       },
        {"target", 1100, 1300, "data arrive and go into memory: 2 packets",                        "is here"                        },
        {"source", 2100, 2300, "the word of it goes into the send queue",                          "will be told"                   },
        {"source", 2200, 2200, "sends the word of it: SEND Only, PSN 12",                          "has left"                       },
        {"target", 2300, 2300, "the word of it arrives",                                           "is here"                        },
        {"target", 2400, 2400, "acknowledges to the far NIC",                                      "this NIC has all up to this PSN"},
        {"target", 3000, 3000, "is told",                                                          "all of it is in memory here"    },
        {"target", 3500, 3500, "has looked at each byte",                                          "whole"                          },
        {"target", 3600, 3900, "acknowledgement goes into the send queue",
         "needs the slot no longer"                                                                                                 },
        {"target", 3700, 3700, "sends the application's acknowledgement: SEND Only, PSN 20",
         "has left"                                                                                                                 },
        {"source", 4500, 4500, "is acknowledged by the far NIC: Acknowledge, PSN 12",
         "the far NIC has all"                                                                                                      },
        {"source", 5000, 5000, "polls the completion",                                             "the far NIC has all of it"      },
        {"source", 6500, 6500, "the application's acknowledgement arrives",                        "is here"                        },
        {"source", 7000, 7000, "has the far application's acknowledgement",                        "may be used again"              },
    };
    json_t *path = make(LAB_WRITE, LAB_RC, source, target);
    const json_t *steps = json_object_get(path, "steps");
    assert_true(json_is_true(json_object_get(path, "packets")));
    assert_int_equal(json_array_size(steps), sizeof(rows) / sizeof(rows[0]));
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *end, *what, *proves, *fails;
        json_int_t number, begin_ns, end_ns;
        assert_int_equal(json_unpack(json_array_get(steps, i), "{s:I,s:s,s:s,s:I,s:I,s:s,s:s}",
                                     "number", &number, "end", &end, "what", &what, "begin_ns",
                                     &begin_ns, "end_ns", &end_ns, "proves", &proves, "not",
                                     &fails),
                         0);
        assert_int_equal(number, i + 1);
        assert_string_equal(end, rows[i].end);
        if (strstr(what, rows[i].what) == NULL || strstr(proves, rows[i].proves) == NULL)
            fail_msg("%u: %s: %s", i + 1, what, proves);
        assert_int_equal(begin_ns, rows[i].begin_ns);
        assert_int_equal(end_ns, rows[i].end_ns);
    }
    json_decref(path);
}

static bool says(const json_t *path, const char *member, const char *text)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(path, "steps"), i, s)
    {
        if (strstr(json_string_value(json_object_get(s, member)), text) != NULL)
            return true;
    }
    return false;
}

struct promise {
    enum lab_op op;
    enum lab_transport transport;
    const char *proves, *fails; /* to prove */
};

/* The path of such traces, in which some step says both. */
static json_t *promise(const struct promise *p, const char *from, const char *to)
{
    json_t *path = make(p->op, p->transport, from, to);
    if (!says(path, "proves", p->proves) || !says(path, "not", p->fails))
        fail_msg("op %d over transport %d: no step proves '%s', and not '%s'", (int)p->op,
                 (int)p->transport, p->proves, p->fails);
    return path;
}

/* The same completion proves other things of other operations. */
static void lab_path_make__what_a_completion_proves(void **state)
{
    (void)state;
    static const struct promise rows[] = {
        {LAB_WRITE,  LAB_RC, "the far NIC has all of it", "that the far application knows of it"},
        {LAB_SEND,   LAB_RC, "the far NIC has all of it", "has looked at it"                    },
        {LAB_READ,   LAB_RC, "the data are here",         "has noticed anything"                },
        {LAB_ATOMIC, LAB_RC, "changed once",              "has noticed anything"                },
        {LAB_WRITE,  LAB_UC, "needs the slot no longer",  "nobody acknowledges"                 },
        {LAB_SEND,   LAB_UD, "needs the slot no longer",  "nobody acknowledges"                 },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *path = promise(&rows[i], "{'points': {'completed': 5}}", "{'points': {}}");
        assert_false(json_is_true(json_object_get(path, "packets")));
        json_decref(path);
    }
}

/* What the reader may believe differs: the word of a Write of UC comes without it, too. */
static void lab_path_make__what_being_told_proves(void **state)
{
    (void)state;
    static const struct promise rows[] = {
        {LAB_WRITE,     LAB_RC, "all of it is in memory",                  "what the far application meant"  },
        {LAB_WRITE_IMM, LAB_RC, "all of it is in memory",                  "what the far application meant"  },
        {LAB_SEND,      LAB_RC, "all of it is in memory",                  "what the far application meant"  },
        {LAB_READ,      LAB_RC, "has made the data",                       "they are to be read"             },
        {LAB_WRITE,     LAB_UC, "has written",                             "a Write is lost without its word"},
        {LAB_WRITE_IMM, LAB_UC, "all of this message",                     "that it has not come before"     },
        {LAB_SEND,      LAB_UC, "all of this message",                     "that it has not come before"     },
        {LAB_SEND,      LAB_UD, "all of this message",                     "that it has not come before"     },
        {LAB_ATOMIC,    LAB_RC, "nobody has changed it since the message",
         "still as this one left it"                                                                         },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool atomic = rows[i].op == LAB_ATOMIC;
        json_t *path = promise(&rows[i],
                               atomic ? "{'points': {'checked': 5}, 'packets': [{'ns': 6, 'sent': "
                                        "true, 'opcode': 20, 'psn': 3}]}"
                                      : "{'points': {'told': 5}}",
                               atomic ? "{'points': {}, 'packets': [{'ns': 7, 'sent': true, "
                                        "'opcode': 18, 'psn': 3}]}"
                                      : "{'points': {}}");
        assert_int_equal(says(path, "what", "looked at each byte"), false);
        assert_int_equal(says(path, "what", "has changed the word, and sends what it was"), atomic);
        json_decref(path);
    }
}

/* A Send is data, a word, a notice or an acknowledgement, by operation and direction. */
static void lab_path_make__what_a_send_is(void **state)
{
    (void)state;
    static const char to_target[] =
        "{'points': {'post': 1}, 'packets': [{'ns': 2, 'sent': true, 'opcode': 4, 'psn': 1}]}";
    static const char to_source[] =
        "{'points': {'told': 1}, 'packets': [{'ns': 2, 'sent': true, 'opcode': 4, 'psn': 1}]}";
    static const struct {
        enum lab_op op;
        const char *to_target, *to_source;
    } rows[] = {
        {LAB_WRITE, "sends the word of it",                    "sends the application's acknowledgement"},
        {LAB_SEND,  "reads memory and sends",                  "sends the application's acknowledgement"},
        {LAB_READ,  "sends the application's acknowledgement", "sends the word that data are ready"     },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *path = make(rows[i].op, LAB_RC, to_target, "{}");
        assert_true(says(path, "what", rows[i].to_target));
        json_decref(path);
        path = make(rows[i].op, LAB_RC, "{}", to_source);
        assert_true(says(path, "what", rows[i].to_source));
        json_decref(path);
    }
}

/* Thousands of Middle packets are told as one; what is shown is the same, and the ends may have
 * them in other pieces. */
static void lab_path_make__middle_packets_as_one(void **state)
{
    (void)state;
    static const char from[] =
        "{'points': {'post': 1000, 'posted': 1100}, 'packets': ["
        "{'ns': 1200, 'sent': true, 'opcode': 6, 'psn': 16777214},"
        "{'ns': 1300, 'sent': true, 'opcode': 7, 'psn': 16777215, 'count': 2000, 'end_ns': 1900},"
        "{'ns': 2000, 'sent': true, 'opcode': 8, 'psn': 1999}]}";
    static const char to[] =
        "{'points': {'told': 5000}, 'packets': ["
        "{'ns': 1250, 'sent': false, 'opcode': 6, 'psn': 16777214},"
        "{'ns': 1270, 'sent': false, 'opcode': 7, 'psn': 16777215, 'count': 500, 'end_ns': 1400},"
        "{'ns': 1500, 'sent': true, 'opcode': 17, 'psn': 498},"
        "{'ns': 1600, 'sent': false, 'opcode': 7, 'psn': 499, 'count': 1500, 'end_ns': 2100},"
        "{'ns': 2200, 'sent': false, 'opcode': 8, 'psn': 1999}]}";
    static const struct {
        json_int_t begin_ns, end_ns;
        const char *what;
    } rows[] = {
        {0,    100,  "goes into the send queue"                                            },
        {200,  1000,
         "sends: 2002 packets, RDMA WRITE First, PSN 16777214 to RDMA WRITE Last, PSN 1999"},
        {250,  400,
         "arrive and go into memory: 501 packets, RDMA WRITE First, PSN 16777214 to RDMA "
         "WRITE Middle, PSN 498"                                                           },
        {500,  500,  "acknowledges to the far NIC"                                         },
        {600,  1200,
         "arrive and go into memory: 1501 packets, RDMA WRITE Middle, PSN 499 to RDMA "
         "WRITE Last, PSN 1999"                                                            },
        {4000, 4000, "is told"                                                             },
    };
    json_t *path = make(LAB_WRITE, LAB_RC, from, to);
    const json_t *steps = json_object_get(path, "steps");
    assert_int_equal(json_array_size(steps), sizeof(rows) / sizeof(rows[0]));
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const json_t *s = json_array_get(steps, i);
        check_what(s, i, rows[i].what);
        assert_int_equal(json_integer_value(json_object_get(s, "begin_ns")), rows[i].begin_ns);
        assert_int_equal(json_integer_value(json_object_get(s, "end_ns")), rows[i].end_ns);
    }
    json_decref(path);
    two_clocks = true;
    path = make(LAB_WRITE, LAB_RC, from, to);
    two_clocks = false;
    assert_int_equal(json_array_size(json_object_get(path, "steps")), 6);
    assert_true(says(path, "what", "arrive and go into memory: 501 packets"));
    json_decref(path);
}

static void add_to_times(json_t *trace, json_int_t ns)
{
    const char *name;
    json_t *value;
    size_t i;
    json_object_foreach(json_object_get(trace, "points"), name, value)
        json_integer_set(value, json_integer_value(value) + ns);
    json_array_foreach(json_object_get(trace, "packets"), i, value)
    {
        json_t *at = json_object_get(value, "ns");
        json_integer_set(at, json_integer_value(at) + ns);
    }
}

/* However far the target's clock is from ours: each end in the order of its own, from its own first
 * step, and nothing before what causes it. */
static void lab_path_make__two_clocks(void **state)
{
    (void)state;
    static const json_int_t ahead_ns[] = {0, 1000000000000, -1000000000000, 2000};
    static const struct {
        bool target;
        json_int_t begin_ns;
        const char *what;
    } rows[] = {
        {false, 0,    "makes the contents"                       },
        {false, 1000, "goes into the send queue"                 },
        {false, 1100, "reads memory and sends: 2 packets"        },
        {false, 2100, "the word of it goes into the send queue"  },
        {false, 2200, "sends the word of it"                     },
        {true,  0,    "data arrive and go into memory: 2 packets"},
        {true,  2600, "the word of it arrives"                   },
        {true,  2700, "acknowledges to the far NIC"              },
        {true,  3300, "is told"                                  },
        {true,  3800, "has looked at each byte"                  },
        {true,  3900, "acknowledgement goes into the send queue" },
        {true,  4000, "sends the application's acknowledgement"  },
        {false, 4500, "is acknowledged by the far NIC"           },
        {false, 5000, "polls the completion"                     },
        {false, 6500, "the application's acknowledgement arrives"},
        {false, 7000, "has the far application's acknowledgement"},
    };
    for (unsigned k = 0; k < sizeof(ahead_ns) / sizeof(ahead_ns[0]); k++) {
        json_t *here = load(source), *there = load(target);
        add_to_times(there, ahead_ns[k]);
        json_t *path = lab_path_make(LAB_WRITE, LAB_RC, 8192, here, there, true);
        const json_t *steps = json_object_get(path, "steps");
        assert_int_equal(json_integer_value(json_object_get(path, "clocks")), 2);
        assert_int_equal(json_array_size(steps), sizeof(rows) / sizeof(rows[0]));
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const json_t *s = json_array_get(steps, i);
            check_what(s, i, rows[i].what);
            assert_string_equal(json_string_value(json_object_get(s, "end")),
                                rows[i].target ? "target" : "source");
            assert_int_equal(json_integer_value(json_object_get(s, "begin_ns")), rows[i].begin_ns);
        }
        json_decref(path);
        json_decref(here);
        json_decref(there);
    }
}

/* Without packets, what the applications say orders them. */
static void lab_path_make__two_clocks_of_other_nics(void **state)
{
    (void)state;
    static const char reader[] =
        "{'points': {'told': 10, 'post': 20, 'posted': 30, 'completed': 40, 'checked': 50,"
        " 'answer': 60, 'answered': 70}}";
    static const char read_from[] =
        "{'points': {'make': 900, 'made': 910, 'word': 920, 'worded': 930, 'acknowledged': 940}}";
    static const char *const wanted[] = {"makes",
                                         "the word",
                                         "is told",
                                         "goes into",
                                         "polls the",
                                         "has looked",
                                         "acknowledgement goes",
                                         "has the far"};
    two_clocks = true;
    json_t *path = make(LAB_READ, LAB_RC, reader, read_from);
    two_clocks = false;
    const json_t *steps = json_object_get(path, "steps");
    assert_int_equal(json_array_size(steps), 8);
    for (unsigned i = 0; i < 8; i++) {
        const char *what = json_string_value(json_object_get(json_array_get(steps, i), "what"));
        if (strstr(what, wanted[i]) == NULL)
            fail_msg("%u: %s instead of %s", i + 1, what, wanted[i]);
    }
    json_decref(path);
}

/* Half of the time and a millisecond at the least. Of two clocks nobody knows. */
static void lab_path_make__longest_wait(void **state)
{
    (void)state;
    static const struct {
        long long told, acknowledged; /* in us; posting takes from 1 to 3 */
        unsigned before;              /* step; 0: there is none */
        const char *who;
    } rows[] = {
        {100,  200,   0, NULL    },
        {900,  950,   0, NULL    },
        {1000, 1001,  0, NULL    },
        {1003, 1100,  2, "target"},
        {3000, 4000,  2, "target"},
        {3000, 7000,  3, "source"},
        {3000, 90000, 3, "source"},
        {5000, 10003, 3, "source"},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *from =
            json_pack("{s:{s:I,s:I,s:I}}", "points", "post", (json_int_t)1000, "posted",
                      (json_int_t)3000, "acknowledged", (json_int_t)(1000 * rows[i].acknowledged));
        json_t *to = json_pack("{s:{s:I}}", "points", "told", (json_int_t)(1000 * rows[i].told));
        json_t *path = lab_path_make(LAB_WRITE, LAB_RC, 8, from, to, false);
        const json_t *wait = json_object_get(path, "wait");
        assert_int_equal(json_integer_value(json_object_get(wait, "before")), rows[i].before);
        if (rows[i].who != NULL)
            assert_non_null(strstr(json_string_value(json_object_get(wait, "says")), rows[i].who));
        json_decref(path);
        path = lab_path_make(LAB_WRITE, LAB_RC, 8, from, to, true);
        assert_null(json_object_get(path, "wait"));
        json_decref(path);
        json_decref(from);
        json_decref(to);
    }
}

/* The target is a peer: nothing that it tells breaks us. */
static void lab_path_make__nonsense(void **state)
{
    (void)state;
    static const char *const traces[] = {
        "{}",
        "{'points': 5, 'packets': {}}",
        "{'points': {'told': 'x', 'post': -7, 'other': 1}, 'packets': [5, {}, {'ns': 'x'}]}",
        "{'packets': [{'ns': 5, 'sent': true, 'opcode': 255, 'psn': -1}]}",
        "{'packets': [{'ns': 5, 'sent': true, 'opcode': 7, 'psn': 3, 'count': -4, 'end_ns': -1}]}",
        "{'packets': [{'ns': 6, 'sent': false, 'opcode': 7, 'count': 9000000000, 'end_ns': 'x'}]}",
    };
    for (unsigned i = 0; i < sizeof(traces) / sizeof(traces[0]); i++) {
        for (two_clocks = false;; two_clocks = true) {
            json_t *path = make(LAB_WRITE, LAB_RC, traces[i], traces[i]);
            assert_true(json_is_array(json_object_get(path, "steps")));
            json_decref(path);
            if (two_clocks)
                break;
        }
        two_clocks = false;
    }
}

static void lab_path_write__walk_and_timeline(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "The path of one write of 8192 bytes over rc",
        "  3        1.1 .. 1.2  source, NIC: reads memory and sends: 2 packets",
        "       proves: what has left, in this order; does not prove: that it arrives\n",
        "       1.1  o 3   --------------->                      |\n",
        "       2.4  |                         <---------------  o 8\n",
        "       3.5  |                                           o 10\n",
        "       5.0  o 14                                        |\n",
    };
    char *text = NULL;
    size_t bytes;
    json_t *path = make(LAB_WRITE, LAB_RC, source, target);
    FILE *f = open_memstream(&text, &bytes);
    assert_int_equal(lab_path_write(path, f), 0);
    fclose(f);
    json_decref(path);
    for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (strstr(text, wanted[i]) == NULL)
            fail_msg("not there: %s\namong:\n%s", wanted[i], text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_path_make__write),
        cmocka_unit_test(lab_path_make__what_a_completion_proves),
        cmocka_unit_test(lab_path_make__what_being_told_proves),
        cmocka_unit_test(lab_path_make__what_a_send_is),
        cmocka_unit_test(lab_path_make__middle_packets_as_one),
        cmocka_unit_test(lab_path_make__two_clocks),
        cmocka_unit_test(lab_path_make__two_clocks_of_other_nics),
        cmocka_unit_test(lab_path_make__longest_wait),
        cmocka_unit_test(lab_path_make__nonsense),
        cmocka_unit_test(lab_path_write__walk_and_timeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
