/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_settings.c: texts that become settings, texts that do not, and what both ends must have
 * alike.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_settings.h"

static struct lab_settings s;
static char message[LAB_MESSAGE_BYTES];

static int set(struct lab_settings *of, const char *name, const char *text)
{
    int place = lab_settings_find(name);
    assert_true(place >= 0);
    return lab_settings_set(of, (unsigned)place, text, message);
}

static void lab_settings_set__valid(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *becomes;
    } rows[] = {
        {"op",         "write",        "write"          },
        {"op",         "send,read",    "read,send"      },
        {"transport",  "ud",           "ud"             },
        {"size",       "2",            "2"              },
        {"size",       "64,4KiB,1MiB", "64,4096,1048576"},
        {"size",       "8MiB",         "8388608"        },
        {"size",       "0.5KiB,1.5k",  "512,1536"       },
        {"depth",      "1,2,64",       "1,2,64"         },
        {"slots",      "1024",         "1024"           },
        {"slot-bytes", "64KiB",        "65536"          },
        {"iterations", "1000000000",   "1000000000"     },
        {"wait",       "event",        "event"          },
        {"baseline",   "off",          "off"            },
        {"timeout",    "1.5s",         "1500ms"         },
        {"timeout",    "1ms",          "1ms"            },
        {"plant",      "stale-data",   "stale-data"     },
        {"gid-index",  "0",            "0"              },
        {"gid-index",  "any",          "any"            },
        {"max-p99",    "20us",         "20us"           },
        {"min-gbps",   "10",           "10.000000"      },
        {"min-gbps",   "0.000001",     "0.000001"       },
        {"min-ratio",  "1.25x",        "1.250000"       },
        {"peer",       "10.0.0.1",     "10.0.0.1"       },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512], again[512];
        unsigned place = (unsigned)lab_settings_find(rows[i].name);
        lab_settings_init(&s);
        assert_int_equal(set(&s, rows[i].name, rows[i].text), 0);
        lab_settings_text(&s, place, text, sizeof(text));
        assert_string_equal(text, rows[i].becomes);
        assert_true(s.given == 1ull << place);
        assert_int_equal(lab_settings_set(&s, place, text, message), 0); /* what is told is taken */
        lab_settings_text(&s, place, again, sizeof(again));
        assert_string_equal(text, again);
    }
}

static void lab_settings_set__invalid(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } rows[] = {
        {"op",           "",                                                                   "none of write, write-imm"                                             },
        {"op",           "write,",                                                             "'' is none of"                                                        },
        {"op",           "Write",                                                              "'Write' is none of"                                                   },
        {"op",           "writes",                                                             "is none of"                                                           },
        {"op",           "read,read",                                                          "read is there twice"                                                  },
        {"transport",    "rc,uc",                                                              "none of rc, uc, ud"                                                   },
        {"size",         "",                                                                   "not a number of bytes such as"                                        },
        {"size",         "1",                                                                  "too small"                                                            },
        {"size",         "0",                                                                  "too small"                                                            },
        {"size",         "8.1MiB",                                                             "not a whole number of bytes"                                          },
        {"size",         "9MiB",                                                               "too large"                                                            },
        {"size",         "-4",                                                                 "not a number"                                                         },
        {"size",         "4 KiB",                                                              "not a number"                                                         },
        {"size",         "4kib",                                                               "not a number"                                                         },
        {"size",         "64,64",                                                              "there twice"                                                          },
        {"size",         "64,,128",                                                            "not a number"                                                         },
        {"size",         "2.3",                                                                "not a whole number of bytes"                                          },
        {"size",         "99999999999999999999",                                               "too large; allowed are 2 to 8MiB"                                     },
        {"size",         "2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26",
         "more than 24 values"                                                                                                                                        },
        {"depth",        "0",                                                                  "too small"                                                            },
        {"depth",        "1025",                                                               "too large"                                                            },
        {"depth",        "1k",                                                                 "not a whole number"                                                   },
        {"slots",        "",                                                                   "not a whole number"                                                   },
        {"slots",        "1,2",                                                                "not a whole number"                                                   },
        {"iterations",   "1e6",                                                                "not a whole number"                                                   },
        {"signal-every", "0",                                                                  "too small"                                                            },
        {"wait",         "sleep",                                                              "none of poll, event"                                                  },
        {"baseline",     "yes",                                                                "none of off, on"                                                      },
        {"timeout",      "5",                                                                  "not a time such as"                                                   },
        {"timeout",      "1us",                                                                "1us is too small; allowed are 1ms to 3600s, in ns, us, ms or s"       },
        {"retry",        "1h",                                                                 "'1h' is not a time such as 20us, 1.5ms or 10s; allowed are 1ms to 10s"},
        {"timeout",      "2h",                                                                 "not a time"                                                           },
        {"gid-index",    "256",                                                                "too large; allowed are 0 to 255, or any"                              },
        {"port",         "0",                                                                  "too small"                                                            },
        {"port",         "65536",                                                              "too large"                                                            },
        {"max-p99",      "20",                                                                 "not a time"                                                           },
        {"max-p99",      "0us",                                                                "too small"                                                            },
        {"min-gbps",     "10Gbps",                                                             "not a number of Gbit/s"                                               },
        {"min-gbps",     ".5",                                                                 "not a number"                                                         },
        {"min-ratio",    "1.",                                                                 "not a ratio"                                                          },
        {"min-ratio",    "0.0000001",                                                          "not a ratio"                                                          },
        {"device",       "",                                                                   "is empty"                                                             },
        {"peer",         "",                                                                   "is empty"                                                             },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_settings before;
        lab_settings_init(&s);
        before = s;
        assert_int_equal(set(&s, rows[i].name, rows[i].text), -EINVAL);
        assert_memory_equal(&s, &before, sizeof(s));
        assert_int_equal(strncmp(message, rows[i].name, strlen(rows[i].name)), 0);
        if (strstr(message, rows[i].says) == NULL)
            fail_msg("%s=%s: %s", rows[i].name, rows[i].text, message);
    }
    char longest[LAB_MAX_TEXT + 8];
    memset(longest, 'a', sizeof(longest));
    longest[LAB_MAX_TEXT] = '\0';
    assert_int_equal(set(&s, "json", longest), -EINVAL);
    assert_non_null(strstr(message, "too long"));
    assert_int_equal(lab_settings_find("unknown"), -1);
}

/* Whatever option there is or will be: who is refused is told what is allowed. */
static void lab_settings_set__tells_what_is_allowed(void **state)
{
    (void)state;
    static const char *const texts[] = {"?", "-1", "1.0000000001", "99999999999999999999", "", ","};
    for (unsigned i = 0; i < lab_setting_count; i++) {
        const char *name = lab_setting_table[i].name;
        for (unsigned k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
            lab_settings_init(&s);
            if (lab_settings_set(&s, i, texts[k], message) == 0)
                continue; /* a name of something outside */
            assert_int_equal(strncmp(message, name, strlen(name)), 0);
            if (strstr(message, "; allowed are ") == NULL &&
                strstr(message, " is none of ") == NULL && strstr(message, "is empty") == NULL)
                fail_msg("%s", message);
        }
    }
}

static void lab_settings_check__host_and_port(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        uint64_t port;
    } rows[] = {
        {"10.0.0.1",       "10.0.0.1",     18470},
        {"10.0.0.1:5000",  "10.0.0.1",     5000 },
        {"host:1",         "host",         1    },
        {"fe80::1",        "fe80::1",      18470},
        {"::",             "::",           18470},
        {"[fe80::1%eth0]", "fe80::1%eth0", 18470},
        {"[::1]:65535",    "::1",          65535},
    };
    static const struct {
        const char *text, *port, *says;
    } wrong[] = {
        {"host:",      NULL, ": port '' is not a whole number; allowed are 1 to 65535"  },
        {"host:0",     NULL, ": port 0 is too small; allowed are 1 to 65535"            },
        {"host:65536", NULL, ": port 65536 is too large"                                },
        {"host:http",  NULL, ": port 'http' is not a whole number"                      },
        {"[::1]:x",    NULL, ": port 'x' is not"                                        },
        {":5000",      NULL,
         ": ':5000' is no host; allowed are HOST, HOST:PORT, [IPV6] and [IPV6]:PORT"    },
        {"[::1",       NULL, "is no host"                                               },
        {"[]:5",       NULL, "is no host"                                               },
        {"[]",         NULL, "is no host"                                               },
        {"[::1]5",     NULL, "is no host"                                               },
        {"host:5",     "6",  ": names port 5 and --port another one, 6; say one of them"},
    };
    static const char *const names[] = {"peer", "listen"};
    for (unsigned n = 0; n < 2; n++) {
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            lab_settings_init(&s);
            assert_int_equal(set(&s, names[n], rows[i].text), 0);
            for (unsigned k = 0; k < 2; k++) /* once more changes nothing */
                assert_int_equal(lab_settings_check(&s, message), 0);
            assert_string_equal(n == 0 ? s.peer : s.listen, rows[i].host);
            assert_int_equal(s.port, rows[i].port);
        }
        for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
            lab_settings_init(&s);
            assert_int_equal(set(&s, names[n], wrong[i].text), 0);
            if (wrong[i].port != NULL)
                assert_int_equal(set(&s, "port", wrong[i].port), 0);
            assert_int_equal(lab_settings_check(&s, message), -EINVAL);
            assert_int_equal(strncmp(message, names[n], strlen(names[n])), 0);
            if (strstr(message, wrong[i].says) == NULL)
                fail_msg("%s: %s", wrong[i].text, message);
        }
    }
}

static void lab_settings_check__together(void **state)
{
    (void)state;
    static const struct {
        const char *set[6]; /* name, text, ... */
        const char *says;   /* NULL: they go together */
    } rows[] = {
        {{"size", "8MiB"},                                                   NULL                                              },
        {{"size", "64KiB", "slot-bytes", "64KiB"},                           NULL                                              },
        {{"size", "64KiB", "slot-bytes", "65535"},                           "do not fit into slots of 65535"                  },
        {{"depth", "64"},                                                    NULL                                              },
        {{"depth", "65"},                                                    "65 messages under way need as many slots"        },
        {{"slots", "8", "depth", "1,16"},                                    "16 messages"                                     },
        {{"slots", "1024", "slot-bytes", "2MiB"},                            "more than 1 GiB"                                 },
        {{"transport", "uc"},                                                NULL                                              },
        {{"transport", "uc", "op", "write,read"},                            "transport uc has no read"                        },
        {{"transport", "ud", "op", "write"},                                 "transport ud has no write"                       },
        {{"transport", "ud", "op", "send", "size", "64"},                    NULL                                              },
        {{"buffers", "direct,bounce,gather,temporary,pool,inline,register"}, NULL                                              },
        {{"buffers", "pool", "op", "write"},                                 "buffers: pool goes with none of these operations"},
        {{"buffers", "register", "transport", "uc"},                         "buffers: register goes with none"                },
        {{"buffers", "inline", "size", "257"},                               "buffers: inline goes with none"                  },
        {{"buffers", "gather", "size", "32"},                                "buffers: gather goes with none"                  },
        {{"buffers", "bounce", "op", "read"},                                "buffers: bounce goes with none"                  },
        {{"buffers", "pool", "transport", "uc"},
         "buffers: pool goes with none of these operations"                                                                    },
        {{"buffers", "pool", "transport", "ud"},                             NULL                                              },
        {{"qps", "4", "depth", "16", "threads", "1,2,4"},                    NULL                                              },
        {{"qps", "4,1", "depth", "1", "threads", "4,1"},                     NULL                                              },
        {{"qps", "4"},                                                       NULL                                              },
        {{"slots", "3"},                                                     NULL                                              },
        {{"slots", "2", "qps", "3"},                                         "3 messages under way need as many slots"         },
        {{"qps", "5", "depth", "16"},                                        "80 messages under way need as many slots"        },
        {{"qps", "4", "depth", "1", "threads", "5"},
         "threads: 5 does not go with these queue pairs"                                                                       },
        {{"qps", "1,4", "depth", "1", "threads", "2"},                       "qps: 1 does not go with these threads"           },
        {{"qps", "2", "depth", "1", "wait", "event"},
         "threads: 1 does not go with these queue pairs: with --wait event"                                                    },
        {{"qps", "2", "threads", "2", "wait", "event"},                      NULL                                              },
        {{"experiment", "torn", "transport", "uc"},                          "experiment: is for transport rc"                 },
        {{"experiment", "flag", "slots", "7", "depth", "1"},
         "experiment: is for transport rc, with 8 slots"                                                                       },
        {{"offset", "0,1,4095", "size", "64KiB"},                            NULL                                              },
        {{"offset", "1", "size", "64KiB", "slot-bytes", "64KiB"},            "do not fit into slots of 65535"                  },
        {{"connect", "cm"},                                                  NULL                                              },
        {{"connect", "cm", "transport", "uc"},                               "connect: cm is for transport rc"                 },
        {{"min-ratio", "1", "baseline", "off"},                              "needs the baseline"                              },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        lab_settings_init(&s);
        for (unsigned k = 0; k < 6 && rows[i].set[k] != NULL; k += 2)
            assert_int_equal(set(&s, rows[i].set[k], rows[i].set[k + 1]), 0);
        int error = lab_settings_check(&s, message);
        assert_int_equal(error, rows[i].says == NULL ? 0 : -EINVAL);
        if (rows[i].says != NULL && strstr(message, rows[i].says) == NULL)
            fail_msg("%u: %s", i, message);
    }
}

static void lab_settings_check__operations_of_the_transport(void **state)
{
    (void)state;
    lab_settings_init(&s);
    assert_int_equal(lab_settings_check(&s, message), 0);
    assert_int_equal(s.ops, (1 << LAB_OPS) - 1);
    assert_int_equal(set(&s, "transport", "ud"), 0);
    assert_int_equal(lab_settings_check(&s, message), 0);
    assert_int_equal(s.ops, 1 << LAB_SEND);
}

/* What one end has said must be so at the other; what it has not said is taken over. */
static void case_138__mismatch_by_name(void **state)
{
    (void)state;
    struct lab_settings peer;
    lab_settings_init(&s);
    lab_settings_init(&peer);
    assert_int_equal(set(&peer, "size", "2,4"), 0);
    assert_int_equal(set(&peer, "transport", "uc"), 0);
    assert_int_equal(lab_settings_agree(&s, &peer, message), 0);
    assert_int_equal(set(&s, "size", "4,2"), 0); /* in this order */
    assert_int_equal(lab_settings_agree(&s, &peer, message), -EINVAL);
    assert_non_null(strstr(message, "size is 4,2 for `lab serve' and 2,4 for `lab run'"));
    assert_null(strstr(message, "transport"));
    assert_int_equal(set(&s, "transport", "rc"), 0);
    assert_int_equal(lab_settings_agree(&s, &peer, message), -EINVAL);
    assert_non_null(strstr(message, "size is"));
    assert_non_null(strstr(message, "transport is rc for"));
    assert_int_equal(set(&s, "size", "2,4"), 0);
    assert_int_equal(set(&s, "transport", "uc"), 0);
    assert_int_equal(set(&s, "device", "other"), 0); /* each end's own business */
    assert_int_equal(lab_settings_agree(&s, &peer, message), 0);
}

static void lab_settings_adopt__agreed_only(void **state)
{
    (void)state;
    struct lab_settings peer;
    lab_settings_init(&s);
    lab_settings_init(&peer);
    assert_int_equal(set(&peer, "size", "2,4"), 0);
    assert_int_equal(set(&peer, "iterations", "7"), 0);
    assert_int_equal(set(&peer, "device", "theirs"), 0);
    assert_int_equal(set(&s, "device", "ours"), 0);
    lab_settings_adopt(&s, &peer);
    assert_int_equal(s.sizes.count, 2);
    assert_int_equal(s.sizes.value[1], 4);
    assert_int_equal(s.iterations, 7);
    assert_string_equal(s.device, "ours");
}

/* All at once is one case, whatever lists were given. */
static void lab_settings_for_together__one_case(void **state)
{
    (void)state;
    static const char *const lists[][3] = {
        {"op",      "write,send,read",    "write"  },
        {"size",    "64,1MiB,4KiB",       "1048576"},
        {"depth",   "1,8,2",              "8"      },
        {"offset",  "0,63",               "0"      },
        {"qps",     "4,8,1",              "8"      },
        {"threads", "1,4,2",              "4"      },
        {"numa",    "any,near,far",       "any"    },
        {"buffers", "bounce,direct,pool", "direct" },
        {"max-p99", "1s",                 "0ns"    },
    };
    lab_settings_init(&s);
    for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        assert_int_equal(set(&s, lists[i][0], lists[i][1]), 0);
    lab_settings_for_together(&s);
    for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        char text[LAB_MAX_TEXT];
        lab_settings_text(&s, (unsigned)lab_settings_find(lists[i][0]), text, sizeof(text));
        assert_string_equal(text, lists[i][2]);
    }
    for (unsigned i = 0; i < lab_setting_count; i++) { /* and whatever list there will be */
        char text[LAB_MAX_TEXT];
        lab_settings_text(&s, i, text, sizeof(text));
        if ((lab_setting_table[i].roles & LAB_ROLE_RANKS) != 0 && strchr(text, ',') != NULL)
            fail_msg("%s is still %s", lab_setting_table[i].name, text);
    }
}

static void lab_settings_iterations__bounded_by_bytes(void **state)
{
    (void)state;
    lab_settings_init(&s);
    assert_int_equal(lab_settings_iterations(&s, 64), 1000);
    assert_int_equal(lab_settings_iterations(&s, 1 << 20), 128);
    assert_int_equal(lab_settings_iterations(&s, LAB_MAX_SIZE), 16);
    assert_int_equal(set(&s, "iterations", "5000"), 0);
    assert_int_equal(lab_settings_iterations(&s, LAB_MAX_SIZE), 5000);
    assert_int_equal(lab_settings_slot_bytes(&s), 1 << 20);
    assert_int_equal(set(&s, "size", "70001"), 0);
    assert_int_equal(lab_settings_slot_bytes(&s), 70016);
    assert_int_equal(set(&s, "size", "2"), 0);
    assert_int_equal(lab_settings_slot_bytes(&s), 65536);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_settings_set__valid),
        cmocka_unit_test(lab_settings_set__invalid),
        cmocka_unit_test(lab_settings_set__tells_what_is_allowed),
        cmocka_unit_test(lab_settings_check__together),
        cmocka_unit_test(lab_settings_check__host_and_port),
        cmocka_unit_test(lab_settings_check__operations_of_the_transport),
        cmocka_unit_test(case_138__mismatch_by_name),
        cmocka_unit_test(lab_settings_adopt__agreed_only),
        cmocka_unit_test(lab_settings_for_together__one_case),
        cmocka_unit_test(lab_settings_iterations__bounded_by_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
