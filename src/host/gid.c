/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gid.c: the GID table of a context: one entry an address of its interface. At first in the
 * kernel's order: link-local, IPv4, other IPv6. Later an address that goes leaves a hole, one that
 * comes takes the first hole, and no other entry moves.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

static const uint64_t READ_AGAIN_NS = 200000000;

static bool is_zero(const struct net_addr *a)
{
    static const struct net_addr zero;
    return memcmp(a, &zero, sizeof(zero)) == 0;
}

static bool is_link_local(const struct net_addr *a)
{
    return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

/* 0: link-local, 1: IPv4, 2: other IPv6; -1: not an address for us. */
static int address_class(const struct sockaddr *a, struct net_addr *out)
{
    memset(out, 0, sizeof(*out));
    if (a->sa_family == AF_INET) {
        out->b[10] = out->b[11] = 0xff;
        memcpy(out->b + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
        return 1;
    }
    if (a->sa_family != AF_INET6)
        return -1;
    memcpy(out->b, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
    return is_link_local(out) ? 0 : 2;
}

static bool on_interface(const struct ifaddrs *i, const char *netdev)
{
    size_t n = strcspn(i->ifa_name, ":");
    return i->ifa_addr != NULL && strlen(netdev) == n && memcmp(i->ifa_name, netdev, n) == 0;
}

/* Addresses of the interface in order; returns how many, or -errno. */
static int list_addresses(const struct verbena_device *d, struct net_addr *out, unsigned max)
{
    struct ifaddrs *all;
    unsigned n = 0;
    if (getifaddrs(&all) != 0)
        return -errno;
    for (int want = 0; want < 3; want++) {
        for (struct ifaddrs *i = all; i != NULL && n < max; i = i->ifa_next) {
            if (on_interface(i, d->netdev) && address_class(i->ifa_addr, &out[n]) == want &&
                !(d->loopback && want == 0))
                n++;
        }
    }
    freeifaddrs(all);
    return (int)n;
}

static int find(const struct net_addr *list, unsigned n, const struct net_addr *a)
{
    for (unsigned i = 0; i < n; i++) {
        if (memcmp(&list[i], a, sizeof(*a)) == 0)
            return (int)i;
    }
    return -1;
}

static bool in_table(const struct verbena_context *ctx, const struct net_addr *a)
{
    for (unsigned i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        if (memcmp(&ctx->gid[i].addr, a, sizeof(*a)) == 0)
            return true;
    }
    return false;
}

static void read_table(struct verbena_context *ctx)
{
    struct net_addr now[VERBENA_GID_TABLE_SIZE];
    int got = list_addresses(&ctx->device, now, VERBENA_GID_TABLE_SIZE);
    if (got < 0)
        return; /* no descriptor or memory to ask with: as it was */
    unsigned n = (unsigned)got;
    for (unsigned i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        if (!is_zero(&ctx->gid[i].addr) && find(now, n, &ctx->gid[i].addr) < 0)
            memset(&ctx->gid[i], 0, sizeof(ctx->gid[i]));
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned hole = 0;
        if (in_table(ctx, &now[i]))
            continue;
        while (hole < VERBENA_GID_TABLE_SIZE && !is_zero(&ctx->gid[hole].addr))
            hole++;
        if (hole < VERBENA_GID_TABLE_SIZE)
            ctx->gid[hole] = (struct verbena_gid){now[i], ctx->device.ifindex};
    }
    ctx->gid_read_ns = host_now_ns();
}

void gid_init(struct verbena_context *ctx)
{
    pthread_mutex_init(&ctx->gid_lock, NULL);
    read_table(ctx);
}

int verbena_gid_query(struct verbena_context *ctx, unsigned index, struct verbena_gid *out)
{
    memset(out, 0, sizeof(*out));
    if (index >= VERBENA_GID_TABLE_SIZE)
        return -EINVAL;
    if (ctx->host != NULL && !host_alive(ctx->host)) /* NULL: a listing, of no open device */
        return -EIO;
    /* A thread cancelled while it asks the system would take the lock along. */
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&ctx->gid_lock);
    if (host_now_ns() - ctx->gid_read_ns > READ_AGAIN_NS)
        read_table(ctx);
    *out = ctx->gid[index];
    pthread_mutex_unlock(&ctx->gid_lock);
    pthread_setcancelstate(cancel_state, NULL);
    return is_zero(&out->addr) ? -ENODATA : 0;
}

int verbena_path_local(struct verbena_context *ctx, unsigned gid_index, struct nic_path *path)
{
    struct verbena_gid gid;
    int err = verbena_gid_query(ctx, gid_index, &gid);
    if (err != 0)
        return err;
    path->local = gid.addr;
    path->scope_id = is_link_local(&gid.addr) ? gid.ifindex : 0;
    return 0;
}
