/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_endpoint.c: what a peer tells of its queue pair, there and back, and what is refused of
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_queue.h"

static const struct lab_endpoint sample = {
    .qpn = 0xffffff,
    .psn = 1,
    .lid = 0xffff,
    .mtu = IBV_MTU_4096,
    .address = 0x7fffffff1000,
    .rkey = UINT32_MAX,
    .length = 4096,
    .counter = 0x7fffffff1040,
    .reads = 16,
    .gid.raw = {0xfe, 0x80, [14] = 0xab, 0x01},
};

static struct lab_control c = {.doing = "testing"};

static void lab_endpoint_parse__round_trip(void **state)
{
    (void)state;
    struct lab_endpoint e = {0};
    json_t *o = lab_endpoint_json(&sample);
    assert_true(lab_endpoint_parse(&c, o, &e));
    assert_memory_equal(&e, &sample, sizeof(e));
    json_decref(o);
}

static void lab_endpoint_parse__invalid(void **state)
{
    (void)state;
    static const struct {
        const char *name, *json; /* NULL: the member is missing */
    } rows[] = {
        {"qpn",     NULL                                    },
        {"qpn",     "16777216"                              },
        {"qpn",     "-1"                                    },
        {"qpn",     "\"7\""                                 },
        {"psn",     "16777216"                              },
        {"lid",     "65536"                                 },
        {"mtu",     "0"                                     },
        {"mtu",     "6"                                     },
        {"address", "-5"                                    },
        {"address", "1.5"                                   },
        {"rkey",    "4294967296"                            },
        {"length",  NULL                                    },
        {"counter", "null"                                  },
        {"reads",   "256"                                   },
        {"gid",     NULL                                    },
        {"gid",     "17"                                    },
        {"gid",     "\"\""                                  },
        {"gid",     "\"fe8000000000000000000000000000\""    },
        {"gid",     "\"fe80000000000000000000000000ab0g\""  },
        {"gid",     "\"fe80000000000000000000000000ab0100\""},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_endpoint e;
        json_t *o = lab_endpoint_json(&sample);
        if (rows[i].json == NULL)
            json_object_del(o, rows[i].name);
        else
            json_object_set_new(o, rows[i].name, json_loads(rows[i].json, JSON_DECODE_ANY, NULL));
        assert_false(lab_endpoint_parse(&c, o, &e));
        if (strstr(c.message, rows[i].name) == NULL)
            fail_msg("%s=%s: %s", rows[i].name, rows[i].json, c.message);
        json_decref(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_endpoint_parse__round_trip),
        cmocka_unit_test(lab_endpoint_parse__invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
