/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netdev.c: what happens to the network interfaces of open contexts: they lose and get back their
 * link, addresses come and go, an interface goes for good. The kernel tells by a netlink socket,
 * which the helper thread waits on; a query looks at it first, so that it never answers with what
 * the kernel has already told to be past. Contexts hear of it by port events.
 *
 * All under the events lock, for the events' order is that of what happened.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MESSAGES_BYTES = 16 << 10,
    TAKEN_NS = 1000 * 1000, /* until the events lock is tried again */
};

void netdev_close(struct host *h)
{
    if (h->netlink_fd >= 0)
        close(h->netlink_fd);
    h->netlink_fd = -1;
}

/* A sandbox may not let us listen: then queries read anew, and nothing is told before. */
static bool refused(int error)
{
    return error == EPERM || error == EACCES || error == EAFNOSUPPORT || error == EPROTONOSUPPORT ||
           error == EOPNOTSUPP;
}

int netdev_open(struct host *h)
{
    struct sockaddr_nl a = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
    };
    h->netlink_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (h->netlink_fd >= 0 && bind(h->netlink_fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return 0;
    int error = errno;
    if (!refused(error))
        return -error;
    netdev_close(h);
    return 0;
}

static void tell(struct verbena_context *ctx, enum nic_event_type type)
{
    if (ctx->callbacks.async_event != NULL)
        ctx->callbacks.async_event(type, ctx->owner);
}

static void set_up(struct verbena_context *ctx, bool up)
{
    if (!ctx->gone && atomic_exchange(&ctx->up, up) != up)
        tell(ctx, up ? EVENT_PORT_ACTIVE : EVENT_PORT_ERR);
}

static void set_gone(struct verbena_context *ctx)
{
    set_up(ctx, false);
    if (!ctx->gone)
        tell(ctx, EVENT_DEVICE_FATAL);
    ctx->gone = true;
}

/* certain: an address has gone, even if it is back by now. */
static void addresses_changed(struct verbena_context *ctx, bool certain)
{
    int changed = gid_read(ctx);
    ctx->gid_stale = changed < 0;
    if (changed > 0 || certain)
        tell(ctx, EVENT_GID_CHANGE);
}

static void link_message(struct host *h, const struct nlmsghdr *m)
{
    const struct ifinfomsg *i = NLMSG_DATA(m);
    struct verbena_context *ctx;
    if (m->nlmsg_len < NLMSG_LENGTH(sizeof(*i)) || i->ifi_family != AF_UNSPEC)
        return; /* a bridge tells about its ports in the same way */
    TAILQ_FOREACH(ctx, &h->contexts, link)
    {
        if (ctx->device.ifindex != (unsigned)i->ifi_index)
            continue;
        atomic_store(&ctx->speed_until_ns, 0);
        if (m->nlmsg_type == RTM_DELLINK)
            set_gone(ctx);
        else
            set_up(ctx, device_flags_up(i->ifi_flags));
    }
}

static void address_message(struct host *h, const struct nlmsghdr *m)
{
    const struct ifaddrmsg *a = NLMSG_DATA(m);
    struct verbena_context *ctx;
    if (m->nlmsg_len < NLMSG_LENGTH(sizeof(*a)))
        return;
    TAILQ_FOREACH(ctx, &h->contexts, link)
    {
        if (ctx->device.ifindex == a->ifa_index && !ctx->gone)
            addresses_changed(ctx, m->nlmsg_type == RTM_DELADDR);
    }
}

/* More happened than the socket holds: whatever was missed, this is how things are now. */
static void look_anew(struct host *h)
{
    struct verbena_context *ctx;
    TAILQ_FOREACH(ctx, &h->contexts, link)
    {
        struct verbena_device d;
        if (ctx->gone)
            continue;
        int err = device_now(&ctx->device, &d);
        if (err == -ENODEV) {
            set_gone(ctx);
            continue;
        }
        if (err == 0)
            set_up(ctx, d.up);
        addresses_changed(ctx, false);
    }
}

static void take_messages(struct host *h)
{
    _Alignas(struct nlmsghdr) char bytes[MESSAGES_BYTES];
    if (h->netlink_fd < 0)
        look_anew(h);
    while (h->netlink_fd >= 0) {
        struct sockaddr_nl from = {0};
        socklen_t from_bytes = sizeof(from);
        ssize_t n = recvfrom(h->netlink_fd, bytes, sizeof(bytes), MSG_DONTWAIT,
                             (struct sockaddr *)&from, &from_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOBUFS)
            look_anew(h);
        else if (n <= 0)
            return;
        if (n <= 0 || from.nl_pid != 0)
            continue; /* not the kernel's */
        unsigned left = (unsigned)n;
        for (struct nlmsghdr *m = (struct nlmsghdr *)bytes; NLMSG_OK(m, left);
             m = NLMSG_NEXT(m, left)) {
            if (m->nlmsg_type == RTM_NEWLINK || m->nlmsg_type == RTM_DELLINK)
                link_message(h, m);
            else if (m->nlmsg_type == RTM_NEWADDR || m->nlmsg_type == RTM_DELADDR)
                address_message(h, m);
        }
    }
}

/* With events held, which is let go. */
static void look_and_unlock(struct host *h)
{
    struct verbena_context *ctx;
    take_messages(h);
    TAILQ_FOREACH(ctx, &h->contexts, link)
    {
        if (ctx->gid_stale)
            addresses_changed(ctx, false);
    }
    progress_unlock(&h->events);
    progress_dispatch(h); /* who found the lock taken left it to us */
}

void netdev_look(struct host *h)
{
    progress_lock(&h->events);
    look_and_unlock(h);
}

void netdev_try(struct host *h)
{
    if (progress_try_lock(&h->events))
        look_and_unlock(h);
    else
        h->netdev_again_ns = host_now_ns() + TAKEN_NS;
}

void netdev_add(struct verbena_context *ctx)
{
    struct host *h = ctx->host;
    struct verbena_device d;
    progress_lock(&h->events);
    /* Old news are none to the newcomer, whose state is read after them. */
    take_messages(h);
    int err = device_now(&ctx->device, &d);
    atomic_store(&ctx->up, err == 0 ? d.up : ctx->device.up);
    ctx->gid_stale = gid_read(ctx) < 0;
    TAILQ_INSERT_TAIL(&h->contexts, ctx, link);
    if (err == -ENODEV) /* since it was listed, and nobody will tell any more */
        set_gone(ctx);
    progress_unlock(&h->events);
    progress_dispatch(h);
}

void netdev_remove(struct verbena_context *ctx)
{
    struct host *h = ctx->host;
    progress_lock(&h->events);
    TAILQ_REMOVE(&h->contexts, ctx, link);
    ctx->callbacks = (struct verbena_callbacks){0};
    progress_unlock(&h->events);
    progress_dispatch(h);
}
