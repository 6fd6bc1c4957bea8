/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.c: one device for each network interface that has an address.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ROCE_OVERHEAD_BYTES = 80, /* what the kernel's soft-RoCE takes off: IPv6, UDP, headers, ICRC */
    MAX_DEVICES = 1024,
    SPEED_KEEP_NS = 1000 * 1000 * 1000,
};

static uint16_t active_mtu(uint32_t mtu_bytes)
{
    uint32_t m = PATH_MTU_MAX_BYTES;
    while (m > PATH_MTU_MIN_BYTES && m + ROCE_OVERHEAD_BYTES > mtu_bytes)
        m /= 2;
    return (uint16_t)m;
}

/* EUI-64 of a MAC (RFC 4291 appendix A); interfaces without one get a number of our own. */
static uint64_t guid_from(const struct sockaddr *hw, unsigned ifindex)
{
    const uint8_t *m = (const uint8_t *)hw->sa_data;
    static const uint8_t none[6];
    if (hw->sa_family != ARPHRD_ETHER || memcmp(m, none, sizeof(none)) == 0)
        return 0x0256420000000000u | ifindex; /* locally administered */
    uint8_t g[8] = {m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | g[i];
    return v;
}

static uint32_t speed_of(const char *netdev)
{
    char path[64 + IF_NAMESIZE];
    snprintf(path, sizeof(path), "/sys/class/net/%.*s/speed", IF_NAMESIZE, netdev);
    FILE *f = fopen(path, "re");
    long speed = 0;
    if (f == NULL)
        return 0;
    if (fscanf(f, "%ld", &speed) != 1 || speed < 0)
        speed = 0;
    fclose(f);
    return (uint32_t)speed;
}

static bool ask(int fd, struct ifreq *r, unsigned long what, const char *netdev)
{
    memset(r, 0, sizeof(*r));
    snprintf(r->ifr_name, sizeof(r->ifr_name), "%s", netdev);
    return ioctl(fd, what, r) == 0;
}

/* SIOCGIFFLAGS and netlink have the same ones. */
bool device_flags_up(unsigned flags)
{
    return (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0;
}

/* All but the speed. 0, -ENODEV, or -errno: no descriptor to ask with. */
static int describe(const char *netdev, struct verbena_device *out)
{
    struct ifreq r;
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "vb_%s", netdev);
    snprintf(out->netdev, sizeof(out->netdev), "%s", netdev);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    bool ok = ask(fd, &r, SIOCGIFINDEX, netdev);
    out->ifindex = (unsigned)r.ifr_ifindex;
    ok = ok && ask(fd, &r, SIOCGIFMTU, netdev);
    out->mtu_bytes = ok ? (uint32_t)r.ifr_mtu : 0;
    ok = ok && ask(fd, &r, SIOCGIFFLAGS, netdev);
    unsigned flags = ok ? (unsigned short)r.ifr_flags : 0;
    ok = ok && ask(fd, &r, SIOCGIFHWADDR, netdev);
    close(fd);
    if (!ok)
        return -ENODEV;
    out->up = device_flags_up(flags);
    out->loopback = (flags & IFF_LOOPBACK) != 0;
    out->node_guid = guid_from(&r.ifr_hwaddr, out->ifindex);
    out->active_mtu_bytes = active_mtu(out->mtu_bytes);
    return 0;
}

int device_describe(const char *netdev, struct verbena_device *out)
{
    int err = describe(netdev, out);
    if (err == 0)
        out->speed_mbps = speed_of(netdev);
    return err;
}

static int by_place(const void *a, const void *b)
{
    const struct verbena_device *x = a, *y = b;
    if (x->loopback != y->loopback)
        return x->loopback ? 1 : -1;
    return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

static bool listed(const struct verbena_device *d, size_t n, const char *netdev)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(d[i].netdev, netdev) == 0)
            return true;
    }
    return false;
}

int verbena_device_list(struct verbena_device **out, size_t *n)
{
    struct ifaddrs *all;
    *out = NULL;
    *n = 0;
    if (getifaddrs(&all) != 0)
        return -errno;
    struct verbena_device *d = calloc(MAX_DEVICES, sizeof(*d));
    size_t count = 0;
    int err = d == NULL ? -ENOMEM : 0;
    for (struct ifaddrs *i = all; err == 0 && i != NULL && count < MAX_DEVICES; i = i->ifa_next) {
        int family = i->ifa_addr == NULL ? AF_UNSPEC : i->ifa_addr->sa_family;
        char netdev[IF_NAMESIZE];
        /* An IPv4 address may carry a label: interface:anything. */
        snprintf(netdev, sizeof(netdev), "%.*s", (int)strcspn(i->ifa_name, ":"), i->ifa_name);
        if ((family != AF_INET && family != AF_INET6) || listed(d, count, netdev))
            continue;
        err = device_describe(netdev, &d[count]);
        count += err == 0;
        err = err == -ENODEV ? 0 : err; /* gone meanwhile */
    }
    freeifaddrs(all);
    if (err != 0) {
        free(d);
        return err;
    }
    qsort(d, count, sizeof(*d), by_place);
    /* Interfaces stacked on one another share a MAC, GUIDs must differ. */
    for (size_t i = 1; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (d[k].node_guid == d[i].node_guid)
                d[i].node_guid ^= (uint64_t)(d[i].ifindex & 0xffff) << 24;
        }
    }
    *out = d;
    *n = count;
    return 0;
}

int device_find(const char *name, struct verbena_device *out)
{
    struct verbena_device *d;
    size_t n;
    int err = verbena_device_list(&d, &n);
    if (err != 0)
        return err;
    err = -ENODEV;
    for (size_t i = 0; i < n && err != 0; i++) {
        if (strcmp(d[i].name, name) == 0) {
            *out = d[i];
            err = 0;
        }
    }
    free(d);
    return err;
}

const char *device_netdev(const struct verbena_device *d, char name[IF_NAMESIZE])
{
    if (if_indextoname(d->ifindex, name) != NULL)
        return name;
    /* Gone: its name may be another's by now. Else nobody could be asked. */
    return errno == ENXIO ? "" : d->netdev;
}

int device_now(const struct verbena_device *d, struct verbena_device *out)
{
    char name[IF_NAMESIZE];
    int err = describe(device_netdev(d, name), out);
    if (err == 0 && out->ifindex != d->ifindex)
        err = -ENODEV; /* another, which has its name */
    if (err == 0) {
        /* What the program knows it by. */
        memcpy(out->name, d->name, sizeof(out->name));
        out->node_guid = d->node_guid;
    }
    return err;
}

/* The kernel asks the driver, under a lock of all interfaces: not for each connection. Whoever
 * changes it without touching the link is seen a second later. */
static uint32_t speed_lately(struct verbena_context *ctx, const char *netdev)
{
    uint64_t now = host_now_ns();
    if (now < atomic_load(&ctx->speed_until_ns))
        return atomic_load(&ctx->speed_mbps);
    uint32_t speed = speed_of(netdev);
    atomic_store(&ctx->speed_mbps, speed);
    atomic_store(&ctx->speed_until_ns, now + SPEED_KEEP_NS);
    return speed;
}

int verbena_device_query(struct verbena_context *ctx, struct verbena_device *out)
{
    if (!host_alive(ctx->host))
        return -EIO;
    /* An interface that lost its addresses is still there. */
    int err = device_now(&ctx->device, out);
    if (err == 0)
        out->speed_mbps = speed_lately(ctx, out->netdev);
    if (err == 0 || err == -ENODEV)
        return err;
    *out = ctx->device; /* no descriptor to ask with */
    out->up = atomic_load(&ctx->up);
    return 0;
}
