/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_devices.c: `verbena devices`: what a program would find, without opening a device: nothing
 * is bound, so it never disturbs what runs.
 */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/host_priv.h"
#include "tool.h"

enum { SHORT_GIDS = 2, GID_TEXT_BYTES = 64 };

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    switch (key) {
    case 'v':
        *(bool *)state->input = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is not wanted here", state->argv[state->next - 1]);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"verbose", 'v', NULL, 0,
     "Also all GIDs, the GUID, and how packets would go: sockets, UDP port, buffers", 0},
    {0    },
};

static const struct argp devices_argp = {
    .options = options,
    .parser = parse_option,
    .doc = "Lists the devices of the software NIC: one for each network interface that has an "
           "address."
           "\vExit code: 0; 69 when there is no device; 70 failed. See verbena-devices(1).",
};

static void gid_text(const struct net_addr *a, char out[GID_TEXT_BYTES])
{
    if (inet_ntop(AF_INET6, a->b, out, GID_TEXT_BYTES) == NULL)
        snprintf(out, GID_TEXT_BYTES, "?");
}

/* The table that a context of this device would have. */
static struct verbena_context *read_gids(const struct verbena_device *d)
{
    struct verbena_context *ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL)
        tool_die(TOOL_FAILED, "out of memory");
    ctx->device = *d;
    int err = gid_init(ctx);
    if (err != 0)
        tool_die(TOOL_FAILED, "cannot list addresses: %s", strerror(-err));
    return ctx;
}

static const char *state_text(const struct verbena_device *d)
{
    return d->up ? "up" : "down";
}

static void print_short(const struct verbena_device *d)
{
    struct verbena_context *ctx = read_gids(d);
    unsigned shown = 0, more = 0;
    printf("%-16s %-12s %-5s %6" PRIu32 " %8u ", d->name, d->netdev, state_text(d), d->mtu_bytes,
           d->active_mtu_bytes);
    for (unsigned i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        struct verbena_gid gid;
        char text[GID_TEXT_BYTES];
        if (verbena_gid_query(ctx, i, &gid) != 0)
            continue;
        if (shown == SHORT_GIDS) {
            more++;
            continue;
        }
        gid_text(&gid.addr, text);
        printf(" %u: %s", i, text);
        shown++;
    }
    if (more > 0)
        printf(" and %u more", more);
    putchar('\n');
    free(ctx);
}

static void print_long(const struct verbena_device *d)
{
    struct verbena_context *ctx = read_gids(d);
    printf("%s\n", d->name);
    printf("    interface      %s (index %u)%s\n", d->netdev, d->ifindex,
           d->loopback ? ", loopback" : "");
    printf("    state          %s\n", state_text(d));
    printf("    MTU            %" PRIu32 "\n", d->mtu_bytes);
    printf("    path MTU       %u\n", d->active_mtu_bytes);
    if (d->speed_mbps != 0)
        printf("    speed          %" PRIu32 " Mbit/s\n", d->speed_mbps);
    else
        printf("    speed          unknown\n");
    printf("    node GUID      %04x:%04x:%04x:%04x\n", (unsigned)(d->node_guid >> 48 & 0xffff),
           (unsigned)(d->node_guid >> 32 & 0xffff), (unsigned)(d->node_guid >> 16 & 0xffff),
           (unsigned)(d->node_guid & 0xffff));
    for (unsigned i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        struct verbena_gid gid;
        char text[GID_TEXT_BYTES];
        if (verbena_gid_query(ctx, i, &gid) != 0)
            continue;
        gid_text(&gid.addr, text);
        printf("    GID %-3u        %s (RoCE v2)\n", i, text);
    }
    putchar('\n');
    free(ctx);
}

static bool udp_option(int fd, int option, int value)
{
    return fd >= 0 && setsockopt(fd, IPPROTO_UDP, option, &value, sizeof(value)) == 0;
}

static long read_limit(const char *path)
{
    FILE *f = fopen(path, "re");
    long value = -1;
    if (f == NULL)
        return -1;
    if (fscanf(f, "%ld", &value) != 1)
        value = -1;
    fclose(f);
    return value;
}

static void print_limit(const char *what, const char *path)
{
    long value = read_limit(path);
    if (value >= 0)
        printf("    %s %ld bytes (%s)\n", what, value, path);
    else
        printf("    %s unknown\n", what);
}

/* Not by binding it: a bound socket takes packets away from whom they are for. */
static void print_holder(void)
{
    char holder[256], me[32];
    port_udp_holder(ROCE_UDP_PORT, holder, sizeof(holder));
    snprintf(me, sizeof(me), "(uid %u)", (unsigned)getuid());
    printf("    UDP port %u  ", (unsigned)ROCE_UDP_PORT);
    if (holder[0] == '\0')
        printf("free\n");
    else if (strstr(holder, me) != NULL)
        printf("shared among your processes: %s\n", holder);
    else
        printf("not yours: %s; opening a device will fail\n", holder);
}

static void print_path(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const char *gso = getenv("VERBENA_GSO");
    bool no_gso = gso != NULL && strcmp(gso, "0") == 0;
    printf("path of packets: UDP sockets\n");
    printf("    GSO            %s\n", no_gso                              ? "off (VERBENA_GSO=0)"
                                      : udp_option(fd, UDP_SEGMENT, 1024) ? "available"
                                                                          : "not in this kernel");
    printf("    GRO            %s\n",
           udp_option(fd, UDP_GRO, 1) ? "available" : "not in this kernel");
    if (fd >= 0)
        close(fd);
    print_holder();
    print_limit("receive buffer", "/proc/sys/net/core/rmem_max");
    print_limit("send buffer   ", "/proc/sys/net/core/wmem_max");
}

int cmd_devices(int argc, char **argv)
{
    bool verbose = false;
    struct verbena_device *devices;
    size_t n;
    argp_parse(&devices_argp, argc, argv, 0, NULL, &verbose);
    int status = verbena_device_list(&devices, &n);
    if (status != 0)
        tool_die(TOOL_FAILED, "cannot list the network interfaces: %s", strerror(-status));
    if (n == 0)
        tool_die(TOOL_UNAVAILABLE, "no device: no network interface has an address; "
                                   "'ip link set lo up' gives at least vb_lo");
    if (!verbose)
        printf("%-16s %-12s %-5s %6s %8s  %s\n", "device", "interface", "state", "MTU", "path MTU",
               "GIDs");
    for (size_t i = 0; i < n; i++) {
        if (verbose)
            print_long(&devices[i]);
        else
            print_short(&devices[i]);
    }
    free(devices);
    if (verbose)
        print_path();
    return TOOL_OK;
}
