/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_config.c: settings from the environment, and the counters that are left behind.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../port/private_net.h"
#include "endpoint.h"
#include "host/host_priv.h"

static int clear(void **state)
{
    (void)state;
    static const char *const names[] = {"VERBENA_FAULT",      "VERBENA_PCAP", "VERBENA_STATS",
                                        "VERBENA_ALLOW_UIDS", "VERBENA_GSO",  "VERBENA_FLOWS",
                                        "VERBENA_LOCAL",      "VERBENA_CC",   "VERBENA_PCAP_CLOCK"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    return 0;
}

static void config__valid(void **state)
{
    (void)state;
    struct host_config c;
    assert_int_equal(config_read(&c), 0);
    assert_false(c.faulty || c.udp.no_gso || c.udp.no_flows || !c.udp.local);
    assert_null(c.pcap_path);
    assert_false(c.pcap_monotonic);
    assert_null(c.stats_path);
    assert_int_equal(c.udp.allow_uids, 0);
    setenv("VERBENA_FAULT", "drop=1%,seed=4", 1);
    setenv("VERBENA_PCAP", "/tmp/x.pcap", 1);
    setenv("VERBENA_PCAP_CLOCK", "monotonic", 1);
    setenv("VERBENA_STATS", "-", 1);
    setenv("VERBENA_ALLOW_UIDS", "0,1000,65534", 1);
    setenv("VERBENA_GSO", "0", 1);
    setenv("VERBENA_FLOWS", "1", 1);
    setenv("VERBENA_LOCAL", "0", 1);
    assert_int_equal(config_read(&c), 0);
    assert_true(c.faulty && c.udp.no_gso && !c.udp.no_flows && !c.udp.local);
    assert_int_equal(c.fault.drop_ppb, 10000000);
    assert_string_equal(c.pcap_path, "/tmp/x.pcap");
    assert_true(c.pcap_monotonic);
    assert_string_equal(c.stats_path, "-");
    assert_int_equal(c.udp.allow_uids, 3);
    assert_int_equal(c.udp.allow_uid[1], 1000);
    assert_false(congestion_is_on(&c.congestion));
    setenv("VERBENA_LOCAL", "1", 1);
    setenv("VERBENA_CC", "dcqcn-hw", 1);
    assert_int_equal(config_read(&c), 0);
    assert_true(congestion_is_on(&c.congestion));
    assert_false(c.udp.local); /* only packets can be marked */
}

static void config__invalid_refuses_to_open(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"VERBENA_FAULT",      "drop"                                                             },
        {"VERBENA_FAULT",      "drop=1%,"                                                         },
        {"VERBENA_GSO",        "2"                                                                },
        {"VERBENA_GSO",        "no"                                                               },
        {"VERBENA_LOCAL",      "off"                                                              },
        {"VERBENA_FLOWS",      "00"                                                               },
        {"VERBENA_PCAP_CLOCK", "utc"                                                              },
        {"VERBENA_CC",         "hpcc"                                                             },
        {"VERBENA_CC",         "dcqcn-hw,rate=fast"                                               },
        {"VERBENA_ALLOW_UIDS", "x"                                                                },
        {"VERBENA_ALLOW_UIDS", "-1"                                                               },
        {"VERBENA_ALLOW_UIDS", "+1"                                                               },
        {"VERBENA_ALLOW_UIDS", "1,"                                                               },
        {"VERBENA_ALLOW_UIDS", ",1"                                                               },
        {"VERBENA_ALLOW_UIDS", "1 2"                                                              },
        {"VERBENA_ALLOW_UIDS", "4294967295"                                                       },
        {"VERBENA_ALLOW_UIDS", "99999999999999999999"                                             },
        {"VERBENA_ALLOW_UIDS", "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6"},
    };
    static const struct verbena_callbacks none;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct host_config c;
        struct verbena_context *ctx;
        clear(NULL);
        setenv(rows[i][0], rows[i][1], 1);
        if (config_read(&c) != -EINVAL)
            fail_msg("%s=%s was taken", rows[i][0], rows[i][1]);
        assert_int_equal(verbena_open("vb_lo", &none, NULL, &ctx), -EINVAL);
    }
    clear(NULL);
    setenv("VERBENA_PCAP", "/nonexistent/file", 1);
    struct verbena_context *ctx;
    assert_int_equal(verbena_open("vb_lo", &none, NULL, &ctx), -ENOENT);
}

static void config__stats_are_lines_of_four_words(void **state)
{
    (void)state;
    char path[] = "/tmp/test_config.XXXXXX", line[256];
    close(mkstemp(path));
    setenv("VERBENA_STATS", path, 1);
    struct endpoint a, b;
    struct endpoint_name na, nb;
    struct nic_wc wc;
    endpoint_open(&a, "vb_lo", 8192);
    endpoint_open(&b, "vb_lo", 8192);
    endpoint_name(&a, 0, &na);
    endpoint_name(&b, 0, &nb);
    endpoint_connect(&a, 0, &nb, 1024);
    endpoint_connect(&b, 0, &na, 1024);
    assert_int_equal(endpoint_post(&a, WR_RDMA_WRITE, &nb, 0, 5000, WR_SIGNALED), 0);
    assert_int_equal(endpoint_wait(&a, &wc), WC_SUCCESS);
    endpoint_close(&a);
    FILE *f = fopen(path, "r");
    assert_null(fgets(line, sizeof(line), f)); /* the device is still open */
    fclose(f);
    endpoint_close(&b);
    f = fopen(path, "r");
    unsigned long long rx_bytes = 0;
    while (fgets(line, sizeof(line), f) != NULL) {
        char name[64], program[64];
        unsigned long long value;
        int pid;
        assert_int_equal(sscanf(line, "%63s %llu %d %63s", name, &value, &pid, program), 4);
        assert_int_equal(pid, getpid());
        assert_true(value != 0);
        if (strcmp(name, "rx_bytes") == 0)
            rx_bytes = value;
    }
    fclose(f);
    unlink(path);
    assert_true(rx_bytes == 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(config__valid, clear),
        cmocka_unit_test_setup(config__invalid_refuses_to_open, clear),
        cmocka_unit_test_setup(config__stats_are_lines_of_four_words, clear),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
