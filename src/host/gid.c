/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gid.c: the GID table of a context: one entry an address of its interface. At first in the
 * kernel's order: link-local, IPv4, other IPv6. Later an address that goes leaves a hole, one that
 * comes back takes its own if that is still free, a new one the first, and no other entry moves.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

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
    return net_addr_is_link_local(out) ? 0 : 2;
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
    char name[IF_NAMESIZE];
    unsigned n = 0;
    if (getifaddrs(&all) != 0)
        return -errno;
    const char *netdev = device_netdev(d, name);
    for (int want = 0; want < 3; want++) {
        for (struct ifaddrs *i = all; i != NULL && n < max; i = i->ifa_next) {
            if (on_interface(i, netdev) && address_class(i->ifa_addr, &out[n]) == want &&
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

/* The place of an address that is not in the table; or VERBENA_GID_TABLE_SIZE. */
static unsigned place_for(const struct verbena_context *ctx, const struct net_addr *a)
{
    unsigned hole = VERBENA_GID_TABLE_SIZE;
    for (unsigned i = VERBENA_GID_TABLE_SIZE; i-- > 0;) {
        if (!verbena_gid_empty(&ctx->gid[i]))
            continue;
        if (memcmp(&ctx->gid_was[i], a, sizeof(*a)) == 0)
            return i;
        hole = i;
    }
    return hole;
}

/* back: only where it was before. */
static bool put_address(struct verbena_context *ctx, const struct net_addr *a, bool back)
{
    if (in_table(ctx, a))
        return false;
    unsigned at = place_for(ctx, a);
    if (at == VERBENA_GID_TABLE_SIZE || (back && memcmp(&ctx->gid_was[at], a, sizeof(*a)) != 0))
        return false;
    ctx->gid[at] = (struct verbena_gid){*a, ctx->device.ifindex};
    ctx->gid_was[at] = *a;
    return true;
}

/* In two rounds: those that come back must not find their places taken by newcomers. */
static bool put_addresses(struct verbena_context *ctx, const struct net_addr *now, unsigned n)
{
    bool changed = false;
    for (unsigned i = 0; i < n; i++)
        changed |= put_address(ctx, &now[i], true);
    for (unsigned i = 0; i < n; i++)
        changed |= put_address(ctx, &now[i], false);
    return changed;
}

int gid_read(struct verbena_context *ctx)
{
    struct net_addr now[VERBENA_GID_TABLE_SIZE];
    bool changed = false;
    int got = list_addresses(&ctx->device, now, VERBENA_GID_TABLE_SIZE);
    if (got < 0)
        return got;
    pthread_mutex_lock(&ctx->gid_lock);
    for (unsigned i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        if (!verbena_gid_empty(&ctx->gid[i]) && find(now, (unsigned)got, &ctx->gid[i].addr) < 0) {
            memset(&ctx->gid[i], 0, sizeof(ctx->gid[i]));
            changed = true;
        }
    }
    changed |= put_addresses(ctx, now, (unsigned)got);
    pthread_mutex_unlock(&ctx->gid_lock);
    return changed;
}

int gid_init(struct verbena_context *ctx)
{
    pthread_mutex_init(&ctx->gid_lock, NULL);
    int err = gid_read(ctx);
    if (err < 0)
        gid_fini(ctx);
    return err < 0 ? err : 0;
}

void gid_fini(struct verbena_context *ctx)
{
    pthread_mutex_destroy(&ctx->gid_lock);
}

/* Brings the table up to what the kernel has told. */
static int gid_look(struct verbena_context *ctx)
{
    if (ctx->host == NULL) /* a listing, of no open device */
        return 0;
    if (!host_alive(ctx->host))
        return -EIO;
    netdev_look(ctx->host);
    return 0;
}

int verbena_gid_table(struct verbena_context *ctx, struct verbena_gid out[VERBENA_GID_TABLE_SIZE])
{
    int err = gid_look(ctx);
    if (err != 0)
        return err;
    pthread_mutex_lock(&ctx->gid_lock);
    memcpy(out, ctx->gid, sizeof(ctx->gid));
    pthread_mutex_unlock(&ctx->gid_lock);
    return 0;
}

int verbena_gid_query(struct verbena_context *ctx, unsigned index, struct verbena_gid *out)
{
    memset(out, 0, sizeof(*out));
    if (index >= VERBENA_GID_TABLE_SIZE)
        return -EINVAL;
    int err = gid_look(ctx);
    if (err != 0)
        return err;
    pthread_mutex_lock(&ctx->gid_lock);
    *out = ctx->gid[index];
    pthread_mutex_unlock(&ctx->gid_lock);
    return verbena_gid_empty(out) ? -ENODATA : 0;
}

static bool copy_open(const struct verbena_device *d, struct verbena_gid *out)
{
    struct host *h = host_current;
    struct verbena_context *ctx;
    bool found = false;
    if (h == NULL || !host_alive(h))
        return false;
    netdev_look(h);
    progress_lock(&h->events);
    TAILQ_FOREACH(ctx, &h->contexts, link)
    {
        if (found || ctx->gone || ctx->device.ifindex != d->ifindex)
            continue;
        pthread_mutex_lock(&ctx->gid_lock);
        memcpy(out, ctx->gid, sizeof(ctx->gid));
        pthread_mutex_unlock(&ctx->gid_lock);
        found = true;
    }
    progress_unlock(&h->events);
    progress_dispatch(h);
    return found;
}

int verbena_device_gids(const struct verbena_device *d, struct verbena_gid *out)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&host_open_lock);
    bool open = copy_open(d, out);
    pthread_mutex_unlock(&host_open_lock);
    pthread_setcancelstate(cancel_state, NULL);
    if (open)
        return 1;
    struct verbena_context *ctx = calloc(1, sizeof(*ctx)); /* a listing */
    if (ctx == NULL)
        return -ENOMEM;
    ctx->device = *d;
    int err = gid_init(ctx);
    if (err == 0) {
        memcpy(out, ctx->gid, sizeof(ctx->gid));
        gid_fini(ctx);
    }
    free(ctx);
    return err;
}

int verbena_path_local(struct verbena_context *ctx, unsigned gid_index, struct nic_path *path)
{
    struct verbena_gid gid;
    int err = verbena_gid_query(ctx, gid_index, &gid);
    if (err != 0)
        return err;
    path->local = gid.addr;
    path->scope_id = net_addr_is_link_local(&gid.addr) ? gid.ifindex : 0;
    return 0;
}
