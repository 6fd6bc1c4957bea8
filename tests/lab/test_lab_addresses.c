/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_addresses.c: prefixes, and connecting to the first of several addresses that takes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>

#include "lab/lab_addresses.h"
#include "lab/lab_net.h"

static void lab_network_parse__rows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int family; /* -1: refused */
        unsigned bits;
    } rows[] = {
        {"",                              0,        0  },
        {"10.0.0.0/8",                    AF_INET,  8  },
        {"10.1.2.3",                      AF_INET,  32 },
        {"0.0.0.0/0",                     AF_INET,  0  },
        {"fd00::/8",                      AF_INET6, 8  },
        {"::1",                           AF_INET6, 128},
        {"10.0.0.0/33",                   -1,       0  },
        {"fd00::/129",                    -1,       0  },
        {"10.0.0.0/",                     -1,       0  },
        {"10.0.0.0/ 8",                   -1,       0  },
        {"10.0.0.0/-8",                   -1,       0  },
        {"10.0.0.0/8x",                   -1,       0  },
        {"10.0.0/8",                      -1,       0  },
        {"/8",                            -1,       0  },
        {"eth0",                          -1,       0  },
        {"10.0.0.0/8/8",                  -1,       0  },
        {"10.0.0.0/99999999999999999999", -1,       0  },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_network n;
        char message[LAB_MESSAGE_BYTES] = "";
        int got = lab_network_parse(&n, rows[i].text, message);
        if (rows[i].family < 0) {
            assert_int_equal(got, -EINVAL);
            assert_non_null(strstr(message, "is no prefix such as"));
            continue;
        }
        assert_int_equal(got, 0);
        assert_int_equal(n.family, rows[i].family);
        assert_int_equal(n.bits, rows[i].bits);
    }
}

static void lab_network_has__rows(void **state)
{
    (void)state;
    static const struct {
        const char *network, *address;
        bool has;
    } rows[] = {
        {"",             "10.1.2.3",       true },
        {"",             "fd00::1",        true },
        {"10.0.0.0/8",   "10.9.9.9",       true },
        {"10.0.0.0/8",   "11.0.0.0",       false},
        {"10.128.0.0/9", "10.200.0.1",     true },
        {"10.128.0.0/9", "10.127.255.255", false},
        {"10.1.2.3",     "10.1.2.3",       true },
        {"10.1.2.3",     "10.1.2.2",       false},
        {"0.0.0.0/0",    "1.2.3.4",        true },
        {"0.0.0.0/0",    "fd00::1",        false},
        {"fd00::/8",     "fdff::1",        true },
        {"fd00::/8",     "fc00::1",        false},
        {"fd00::/8",     "10.0.0.1",       false},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_network n;
        char message[LAB_MESSAGE_BYTES];
        uint8_t bytes[16];
        int family = strchr(rows[i].address, ':') != NULL ? AF_INET6 : AF_INET;
        assert_int_equal(lab_network_parse(&n, rows[i].network, message), 0);
        assert_int_equal(inet_pton(family, rows[i].address, bytes), 1);
        assert_int_equal(lab_network_has(&n, family, bytes), rows[i].has);
    }
}

static void lab_addresses_own__loopback(void **state)
{
    (void)state;
    struct lab_network n;
    char message[LAB_MESSAGE_BYTES];
    assert_int_equal(lab_network_parse(&n, "127.0.0.0/8", message), 0);
    json_t *own = lab_addresses_own(&n);
    assert_string_equal(json_string_value(json_array_get(own, 0)), "127.0.0.1");
    json_decref(own);
    assert_int_equal(lab_network_parse(&n, "203.0.113.77", message), 0); /* nobody's */
    own = lab_addresses_own(&n);
    assert_int_equal(json_array_size(own), 0);
    json_decref(own);
}

static void lab_addresses_connect__in_turn(void **state)
{
    (void)state;
    char message[LAB_MESSAGE_BYTES];
    int listener = lab_net_listen("127.0.0.2", 0, message);
    assert_true(listener >= 0);
    uint16_t port = lab_net_port(listener);
    json_t *list = json_pack("[s,s]", "127.0.0.1", "127.0.0.2"); /* nobody is at the first */
    int fd = lab_addresses_connect(list, port, true, 1000000000, message);
    assert_true(fd >= 0);
    assert_string_equal(message, ""); /* what was tried before is no failure */
    close(fd);
    assert_true(lab_addresses_connect(list, port, false, 1000000000, message) < 0);
    assert_non_null(strstr(message, "no address that we could reach"));
    close(listener);
    assert_true(lab_addresses_connect(list, port, true, 1000000000, message) < 0);
    assert_non_null(strstr(message, "127.0.0.1 port "));
    json_decref(list);
    list = json_pack("[i]", 5);
    assert_true(lab_addresses_connect(list, port, true, 1000000000, message) < 0);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_network_parse__rows),
        cmocka_unit_test(lab_network_has__rows),
        cmocka_unit_test(lab_addresses_own__loopback),
        cmocka_unit_test(lab_addresses_connect__in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
