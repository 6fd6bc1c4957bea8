/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_kinds.c: each kind takes the fields that are its own, and refuses those of all others.
 */
#include "scenario/kinds.h"

#include "bench.h"

struct words {
    const char *at;
    char word[32];
};

static bool next(struct words *w)
{
    size_t n = strcspn(w->at, " ");
    assert_in_range(n, 0, sizeof(w->word) - 1);
    snprintf(w->word, sizeof(w->word), "%.*s", (int)n, w->at);
    w->at += n + (w->at[n] == ' ');
    return n > 0;
}

static bool has(const char *fields, const char *word)
{
    struct words w = {.at = fields};
    while (next(&w))
        if (strcmp(w.word, word) == 0)
            return true;
    return false;
}

/* What the scenario says of one more field: without a value, so that its own kind complains of that
 * at most. */
static void try_field(const char *format, const char *kind, const char *field,
                      struct scenario_error *e)
{
    char text[512];
    struct scenario s;
    *e = (struct scenario_error){""};
    snprintf(text, sizeof(text), format, kind, field);
    scenario_init(&s);
    (void)scenario_read_yaml(&s, bench_file(text), NULL, 0, e);
    scenario_free(&s);
}

static void check_table(const struct kind *kinds, const char *format, const char *key)
{
    unsigned refused = 0, taken = 0;
    for (const struct kind *k = kinds; k->name != NULL; k++)
        for (const struct kind *other = kinds; other->name != NULL; other++) {
            struct words w = {.at = other->fields};
            assert_true(has(k->fields, key));
            while (next(&w)) {
                struct scenario_error e;
                char want[96];
                snprintf(want, sizeof(want), "there is no field '%s' with %s %s; expected: %s",
                         w.word, key, k->name, key);
                if (strcmp(w.word, key) == 0)
                    continue;
                try_field(format, k->name, w.word, &e);
                bool own = has(k->fields, w.word);
                if ((strstr(e.text, want) == NULL) != own)
                    fail_msg("%s of %s: %s", w.word, k->name, e.text);
                refused += !own;
                taken += own;
            }
        }
    assert_true(refused > 0 && taken > 0);
}

#define STAR "topology: {shape: star, hosts: 4}\n"
#define WORK "workload: [{op: incast, to: h3}]\n"

static void kinds__take_their_own(void **state)
{
    (void)state;
    check_table(kinds_shape, "topology: {shape: %s, %s: }\n" WORK, "shape");
    check_table(kinds_op, STAR "workload: [{op: %s, %s: }]\n", "op");
    check_table(kinds_fault, STAR WORK "faults: [{fault: %s, %s: }]\n", "fault");
    check_table(kinds_nic, STAR WORK "hosts: {nic: %s, %s: }\n", "nic");
}

static void verbs__take_their_own(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (const struct kind *k = kinds_verb; k->name != NULL; k++) {
        struct words w = {.at = KINDS_VERB_FIELDS}, own = {.at = k->fields};
        while (next(&own))
            assert_true(has(KINDS_VERB_FIELDS, own.word));
        while (next(&w)) {
            struct scenario_error e;
            if (strcmp(w.word, "verb") == 0)
                continue;
            try_field(STAR "workload: [{op: incast, to: h3, verb: %s, %s: }]\n", k->name, w.word,
                      &e);
            if ((strstr(e.text, "it has no meaning with verb ") == NULL) != has(k->fields, w.word))
                fail_msg("%s of %s: %s", w.word, k->name, e.text);
            refused += !has(k->fields, w.word);
        }
    }
    assert_in_range(refused, 1, 99);
}

struct meaning {
    const char *text, *message; /* NULL: taken */
};

/* Of a star of four with an incast. */
static const struct meaning of_a_star[] = {
    {"watchdog: {action: off, detect: 1ms}\n",
     "3: watchdog.detect: there is no watchdog; action drop, forward or alert"                                                                    },
    {"watchdog: {action: off, restore: 1ms}\n",                                           "3: watchdog.restore: there is no watchdog"             },
    {"watchdog: {action: alert, restore: 1ms}\n",
     "3: watchdog.restore: an alert leaves nothing to restore; action drop or"                                                                    },
    {"watchdog: {action: alert, detect: 1ms}\n",                                          NULL                                                    },
    {"watchdog: {action: forward, detect: 1ms, restore: 1ms}\n",                          NULL                                                    },
    {"watchdog: {detect: 1ms, restore: 1ms}\n",                                           NULL                                                    },
    {"watchdog: {action: off}\n",                                                         NULL                                                    },
    {"switches: {lossless: []}\nwatchdog: {action: drop}\n",
     "4: watchdog: nothing is lossless, and so never paused; action off"                                                                          },
    {"switches: {lossless: []}\nwatchdog: {action: off}\n",                               NULL                                                    },
    {"switches:\n  lossless: []\n  headroom: 9KB\n",                                      "5: switches.headroom: nothing is lossless"             },
    {"switches:\n  lossless: []\n  pause: link\n",                                        "5: switches.pause: nothing is lossless"                },
    {"switches:\n  lossless: []\n  pause_quanta: 7\n",
     "5: switches.pause_quanta: nothing is lossless"                                                                                              },
    {"switches:\n  lossless: []\n  response_quanta: 7\n",
     "5: switches.response_quanta: nothing is lossless"                                                                                           },
    {"switches:\n  lossless: []\n  xon_offset: 1KB\n",
     "5: switches.xon_offset: nothing is lossless, and so never paused; some in "
     "switches.lossless"                                                                                                                          },
    {"switches: {lossless: [], reserve: 1KB, alpha: 1/4}\n",                              NULL                                                    },
    {"switches: {lossless: [3], headroom: 9KB, pause: link, pause_quanta: 7}\n",          NULL                                                    },
    {"profile: hpcc-compat\nswitches: {lossless: [], headroom: 9KB}\n",                   NULL                                                    },
    {"profile: hpcc-compat\nswitches: {lossless: [], pause: link}\n",
     "switches.pause: nothing is lossless"                                                                                                        },
    {"switches:\n  ecn: {priorities: [], kmin: 9KB}\n",
     "4: switches.ecn.kmin: nothing is marked; some in switches.ecn.priorities"                                                                   },
    {"switches: {ecn: {priorities: [], kmax: 9KB}}\n",                                    "switches.ecn.kmax: nothing is marked"                  },
    {"switches: {ecn: {priorities: [], pmax: 9%}}\n",                                     "switches.ecn.pmax: nothing is marked"                  },
    {"switches: {ecn: {priorities: [], rate: 9Gbps}}\n",                                  "switches.ecn.rate: nothing is marked"                  },
    {"switches: {ecn: {priorities: [], at: dequeue}}\n",                                  "switches.ecn.at: nothing is marked"                    },
    {"switches: {ecn: {priorities: [1], kmin: 1KB, kmax: 9KB, pmax: 9%, at: dequeue}}\n", NULL                                                    },
    {"switches: {ecn: {priorities: []}}\nhosts: {cc: timely, cnp_interval: 9us}\n",
     "4: hosts.cnp_interval: nothing is marked"                                                                                                   },
    {"hosts: {cnp_priority: 5}\n",
     "3: hosts.cnp_priority: a NIC without congestion control sends no CNPs; another hosts.cc"                                                    },
    {"hosts: {cc: none, cnp_interval: 9us}\n",
     "3: hosts.cnp_interval: a NIC without congestion control"                                                                                    },
    {"hosts: {cc: dcqcn-hw, cnp_priority: 5, cnp_interval: 9us}\n",                       NULL                                                    },
    {"hosts: {nic: none, cnp_priority: 5, cnp_interval: 9us}\n",                          NULL                                                    },
    {"profile: hpcc-compat\nhosts: {cnp_priority: 5}\n",
     "4: hosts.cnp_priority: in this profile a flag of the ACK stands for a CNP"                                                                  },
    {"profile: hpcc-compat\nhosts: {cc: hpcc, ack_priority: 5}\n",
     "4: hosts.ack_priority: ACKs go by the class of the data"                                                                                    },
    {"profile: hpcc-compat\nhosts: {ack_priority: 5}\n",                                  NULL                                                    },
    {"hosts: {recovery: go-back-0}\n",                                                    "3: hosts: there is no field 'recovery' with nic engine"},
    {"hosts: {nic: none, recovery: go-back-0}\n",                                         NULL                                                    },
    {"hosts: {nic: none, recovery: go-back-1}\n",
     "3: hosts.recovery: 'go-back-1' is unknown; one of these is expected: go-back-n"                                                             },
    {"faults: [{fault: mapping, switch: s0, pcp: 3}]\n",
     "3: faults.0.pcp: switches trust the DSCP; dscp, or switches.trust: pcp"                                                                     },
    {"faults: [{fault: mapping, switch: s0, dscp: 3}]\n",                                 NULL                                                    },
    {"switches: {trust: pcp}\nfaults: [{fault: mapping, switch: s0, dscp: 3}]\n",
     "4: faults.0.dscp: switches trust the PCP; pcp, or switches.trust: dscp"                                                                     },
    {"switches: {trust: pcp}\nfaults: [{fault: mapping, switch: s0, pcp: 3}]\n",          NULL                                                    },
};
static void try_meaning(const struct meaning *row)
{
    char text[512];
    struct scenario s, again;
    struct scenario_error e = {""};
    snprintf(text, sizeof(text), "%s%s", STAR WORK, row->text);
    scenario_init(&s);
    bool taken = scenario_read_yaml(&s, bench_file(text), NULL, 0, &e);
    if (taken != (row->message == NULL))
        fail_msg("%s: %s", text, e.text);
    if (!taken)
        bench_contains(e.text, row->message);
    scenario_init(&again); /* what is recorded has a meaning */
    if (taken && !scenario_read_text(&again, "again", s.text, NULL, 0, &e))
        fail_msg("%s in\n%s", e.text, s.text);
    scenario_free(&again);
    scenario_free(&s);
}

/* What another setting leaves without effect is refused, and only that. */
static void fields__without_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(of_a_star) / sizeof(of_a_star[0]); i++)
        try_meaning(&of_a_star[i]);
    bench_end();
}

/* What the file has, a --set beside it; what is said, NULL: it is taken. */
static const struct {
    const char *text, *set, *message;
} compared[] = {
    {"watchdog: {detect: 5ms, restore: 5ms}\n",                                     "watchdog.action=off",          NULL                                             },
    {"watchdog: {detect: 5ms, restore: 5ms}\n",                                     "watchdog.action=alert",        NULL                                             },
    {"watchdog: {action: off}\n",                                                   "watchdog.restore=5ms",
     "--set watchdog.restore: there is no watchdog"                                                                                                                  },
    {"watchdog: {detect: 5ms, action: off}\n",                                      "hosts.vlan=on",
     "watchdog.detect: there is no watchdog"                                                                                                                         },
    {"switches: {ecn: {kmin: 9KB, at: dequeue}}\n",                                 "switches.ecn.priorities=none", NULL                                             },
    {"switches: {ecn: {priorities: []}}\n",                                         "switches.ecn.kmin=9KB",
     "--set switches.ecn.kmin: nothing is marked"                                                                                                                    },
    {"switches: {pause: link, headroom: 9KB}\n",                                    "switches.lossless=none",       NULL                                             },
    {"switches: {pause: link}\n",                                                   "switches.control=3,6",         NULL                                             },
    {"hosts: {cc: dcqcn-hw, cnp_interval: 9us}\n",                                  "hosts.cc=none",                NULL                                             },
    {"hosts: {cc: dcqcn-hw, cnp_interval: 9us}\n",                                  "switches.ecn.priorities=none", NULL                                             },
    {"hosts: {cnp_interval: 9us}\n",                                                "switches.buffer=9MB",          "hosts.cnp_interval: a NIC without"              },
    {"hosts: {nic: none, cc: hpcc, hpcc_stages: 1}\n",                              "hosts.cc=timely",              NULL                                             },
    {"hosts: {nic: none, recovery: go-back-0, ack_priority: 5}\n",                  "hosts.nic=engine",             NULL                                             },
    {"hosts: {retry: 1, rnr_timer: 9us}\n",                                         "hosts.nic=none",               NULL                                             },
    {"hosts: {retry: 1, retries: 9}\n",                                             "hosts.nic=none",               "there is no field 'retries' with nic"           },
    {"hosts: {nic: engine, retry: 1, rnr_timer: 9us}\n",                            "profile=hpcc-compat",          NULL                                             },
    {"hosts: {cc: dcqcn-hw, cnp_priority: 5, cnp_interval: 9us}\n",                 "profile=hpcc-compat",          NULL                                             },
    {"hosts: {nic: none, cc: hpcc, ack_priority: 5}\n",                             "profile=hpcc-compat",          NULL                                             },
    {"profile: hpcc-compat\nhosts: {payload: 1024, recovery: go-back-0}\n",         "profile=none",                 NULL                                             },
    {"profile: hpcc-compat\nhosts: {nic: none, ack_priority: 5}\n",                 "profile=none",                 NULL                                             },
    {"profile: hpcc-compat\nhosts: {payload: 1000}\n",                              "profile=none",
     "hosts.payload: 1000 is no path MTU"                                                                                                                            },
    {"profile: hpcc-compat\nhosts: {ack_priority: 5}\n",                            "hosts.nic=engine",
     "hosts.nic: hosts of this profile have no NIC"                                                                                                                  },
    {"hosts: {retry: 1, retries: 9}\n",                                             "profile=hpcc-compat",
     "there is no field 'retries' with nic none"                                                                                                                     },
    {"profile: hpcc-compat\nhosts: {retry: 1}\n",                                   "seed=4",
     "hosts: there is no field 'retry' with nic none"                                                                                                                },
    {"hosts: {nic: none}\n",                                                        "hosts.retry=1",                "hosts.retry: there is no field 'retry' with nic"},
    {"switches: {trust: dscp}\nfaults: [{fault: mapping, switch: s0, dscp: 46}]\n",
     "switches.trust=pcp",                                                                                          "faults.0.dscp: switches trust the PCP"          },
};

/* One scenario is run in several ways: what --set leaves without effect is passed over, and not in
 * what is recorded. */
static void fields__passed_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++) {
        char text[512];
        struct scenario s, again;
        struct scenario_error e = {""};
        struct scenario_set set = {.text = compared[i].set};
        snprintf(text, sizeof(text), "%s%s", STAR WORK, compared[i].text);
        scenario_init(&s);
        bool taken = scenario_read_yaml(&s, bench_file(text), &set, 1, &e);
        if (taken != (compared[i].message == NULL))
            fail_msg("%s --set %s: %s", text, set.text, e.text);
        if (!taken)
            bench_contains(e.text, compared[i].message);
        scenario_init(&again);
        if (taken && !scenario_read_text(&again, "again", s.text, NULL, 0, &e))
            fail_msg("%s in\n%s", e.text, s.text);
        if (taken)
            assert_string_equal(s.text, again.text);
        if (taken && s.config.hosts.engine)
            assert_false(s.config.hosts.go_back_0);
        scenario_free(&again);
        scenario_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds__take_their_own),
        cmocka_unit_test(verbs__take_their_own),
        cmocka_unit_test(fields__passed_over),
        cmocka_unit_test(fields__without_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
