/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_source.c: see fake_source.h.
 */
#include "fake_source.h"

#include <stdlib.h>

int fake_fail;

static int failing(void)
{
    int err = fake_fail;

    fake_fail = 0;
    return err;
}

static int fake_devices(struct verbena_device **out, size_t *n)
{
    static const struct verbena_device devices[] = {
        {.name = "vb_eth0",
         .netdev = "eth0",
         .ifindex = 3,
         .node_guid = 0x0211223344556677,
         .up = true,
         .speed_mbps = 25000},
        {.name = "vb_lo",                 .netdev = "lo", .ifindex = 1, .node_guid = 1, .loopback = true},
    };
    int err = failing();

    if (err != 0)
        return err;
    *out = malloc(sizeof(devices));
    assert_non_null(*out);
    memcpy(*out, devices, sizeof(devices));
    *n = 2;
    return 0;
}

static int fake_gids(const struct verbena_device *d, struct verbena_gid *out)
{
    static const uint8_t link_local[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
    static const uint8_t ipv4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
    int err = failing();

    memset(out, 0, VERBENA_GID_TABLE_SIZE * sizeof(*out));
    if (err == 0 && strcmp(d->netdev, "eth0") == 0) {
        memcpy(out[0].addr.b, link_local, sizeof(link_local));
        memcpy(out[2].addr.b, ipv4, sizeof(ipv4));
    }
    return err;
}

static const char *fake_counter_name(unsigned index)
{
    static const char *const names[] = {
        "tx_packets",           "tx_bytes",          "rx_packets", "rx_bytes",
        "rx_icrc_encapsulated", "rx_drop_malformed",
    };
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

/* 1000, 1001...; those of vb_lo are 0. */
static void fake_counters(const struct verbena_device *d, uint64_t *value, unsigned n)
{
    for (unsigned i = 0; i < n && d->ifindex == 3; i++)
        value[i] = 1000 + i;
}

static bool fake_exists(const char *path)
{
    return strcmp(path, "/sys/class/net/eth0/device/numa_node") == 0;
}

const struct files_source fake_source = {
    .devices = fake_devices,
    .gids = fake_gids,
    .counter_name = fake_counter_name,
    .counters = fake_counters,
    .exists = fake_exists,
};
