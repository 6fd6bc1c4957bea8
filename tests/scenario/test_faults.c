/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_faults.c: which faults a scenario may have, and in which order they come about.
 */
#include "bench.h"

#define RING                                                                                       \
    "topology: {shape: ring, switches: 3, hosts: 1}\nworkload: [{op: all-to-all}]\nfaults:\n"
#define DOWN(at) "- {fault: link-down, a: s0, b: s1, at: " at "}\n"
#define UP(at)   "- {fault: link-up, a: s1, b: s0, at: " at "}\n"
#define LOSS     "- {fault: link-loss, a: s0, b: s1}\n"
#define S2_LOSS  "- {fault: link-loss, a: s2, b: s1}\n"
#define H0_LOSS  "- {fault: link-loss, a: h0, b: s1}\n"
#define S9_LOSS  "- {fault: link-loss, a: s9, b: s1}\n"
#define CORRUPT  "- {fault: link-corrupt, a: s0, b: s1}\n"
#define MTU      "- {fault: link-mtu, a: s0, b: s1}\n"
#define MAP      "- {fault: mapping, switch: s0, dscp: 24}\n"
#define LAST_MAP "- {fault: mapping, switch: s0, dscp: 63}\n"
#define S1_MAP   "- {fault: mapping, switch: s1, dscp: 24}\n"
#define H0_MAP   "- {fault: mapping, switch: h0, dscp: 24}\n"
#define S2_DOWN  "- {fault: link-down, a: s2, b: s1, at: 3us}\n"

static const struct {
    const char *text, *message; /* NULL: taken */
} rows[] = {
    {DOWN("1us"),                                         NULL                                                                         },
    {DOWN("1us") UP("2us"),                               NULL                                                                         },
    {UP("2us") DOWN("1us"),                               NULL                                                                         },
    {DOWN("1us") UP("2us") DOWN("3us") UP("4us") S2_DOWN, NULL                                                                         },
    {DOWN("1us") UP("1us"),                               NULL                                                                         },
    {UP("1us"),                                           "text.yaml:4: faults.0: s0 - s1 is up already at 1us; a link-down in between"},
    {UP("1us") DOWN("1us"),                               "text.yaml:4: faults.0: s0 - s1 is up already at 1us"                        },
    {DOWN("2us") UP("1us"),                               "text.yaml:5: faults.1: s0 - s1 is up already at 1us"                        },
    {DOWN("2us") S2_DOWN DOWN("1us"),
     "text.yaml:4: faults.0: s0 - s1 is down already at 2us; a link-up in between is expected"                                         },
    {DOWN("1us") UP("2us") UP("3us"),                     "text.yaml:6: faults.2: s0 - s1 is up already at 3us"                        },
    {LOSS S2_LOSS CORRUPT MTU DOWN("1us"),                NULL                                                                         },
    {LOSS LOSS,                                           "text.yaml:5: faults.1: there is a link-loss of this link before"            },
    {CORRUPT CORRUPT,                                     "text.yaml:5: faults.1: there is a link-corrupt of this link before"         },
    {MTU DOWN("1us") MTU,                                 "text.yaml:6: faults.2: there is a link-mtu of this link before"             },
    {MAP LAST_MAP S1_MAP,                                 NULL                                                                         },
    {MAP MAP,                                             "text.yaml:5: faults.1: dscp 24 is mapped by s0 before"                      },
    {LAST_MAP LAST_MAP,                                   "faults.1: dscp 63 is mapped by s0 before, once is"                          },
    {H0_LOSS,                                             "text.yaml:4: faults.0: there is no link between h0 and s1"                  },
    {S9_LOSS,                                             "text.yaml:4: faults.0.a: there is no node 's9'"                             },
    {H0_MAP,                                              "text.yaml:4: faults.0.switch: there is no switch 'h0'"                      },
};

/* Those that change nothing are refused, with the place of the one that does not. */
static void read__each_changes_something(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[1024];
        struct scenario s;
        struct scenario_error e = {""};
        snprintf(text, sizeof(text), RING "%s", rows[i].text);
        scenario_init(&s);
        bool taken = scenario_read_yaml(&s, bench_file(text), NULL, 0, &e);
        if (taken != (rows[i].message == NULL))
            fail_msg("%s: %s", text, e.text);
        if (!taken)
            bench_contains(e.text, rows[i].message);
        scenario_free(&s);
    }
}

/* By their times, those of one time as they stand in the file. */
static void read__in_order(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e;
    scenario_init(&s);
    const char *text = RING UP("5us") S2_DOWN DOWN("4us") DOWN("5us");
    assert_true(scenario_read_yaml(&s, bench_file(text), NULL, 0, &e));
    static const struct fabric_fault want[] = {
        {3 * FABRIC_US, 4, false},
        {4 * FABRIC_US, 3, false},
        {5 * FABRIC_US, 3, true },
        {5 * FABRIC_US, 3, false},
    };
    assert_int_equal(s.config.faults, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(s.config.fault[i].at_ps, want[i].at_ps);
        assert_int_equal(s.config.fault[i].link, want[i].link);
        assert_int_equal(s.config.fault[i].up, want[i].up);
    }
    scenario_free(&s);
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read__each_changes_something),
        cmocka_unit_test(read__in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
