/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_device.c: the devices that ids are bound to. Each is opened when an id first needs it and
 * stays open, as programs expect of librdmacm: they keep the contexts that ids show.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/firm.h"
#include "rdmacm/rdma_objects.h"

enum { DEVICE_PORT = 1 };

static TAILQ_HEAD(, rdma_device) device_open = TAILQ_HEAD_INITIALIZER(device_open);
static unsigned device_generation;
/* One opens at a time. Not rdma_lock, which must not be held across libverbena. */
static struct firm_lock device_firm = FIRM_LOCK_INITIALIZER;

/* A thread cancelled in a system call of what is done meanwhile would take the mutex along. */
static void device_lock(void)
{
    firm_take(&device_firm);
}

static void device_unlock(void)
{
    firm_drop(&device_firm);
}

/* A child must not inherit the mutex from a thread that it does not have. */
__attribute__((constructor)) static void device_watch_fork(void)
{
    static const struct verbena_fork_hook hook = {device_lock, device_unlock, device_unlock};

    verbena_fork_hook(VERBENA_FORK_RDMA_DEVICE, &hook);
}

static uint8_t device_limit(int n)
{
    return n > 0xff ? 0xff : (uint8_t)n;
}

/* On whatever thread makes progress. */
static void device_on_event(enum nic_event_type type, void *owner)
{
    struct rdma_device *d = owner;
    struct rdma_id_obj *id;

    if (type != EVENT_DEVICE_FATAL)
        return;
    rdma_lock();
    atomic_store(&d->gone, true);
    TAILQ_FOREACH(id, &d->ids, device_link)
    {
        struct rdma_event_obj *e =
            id->closing ? NULL : rdma_event_new(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
        if (e != NULL)
            rdma_event_push(e);
    }
    rdma_unlock();
}

/* What the program shall see, and a view of our own. 0 or a positive errno. */
static int device_begin(struct rdma_device *d, struct ibv_device *dev, struct ibv_device_attr *attr)
{
    static const struct verbena_callbacks callbacks = {.async_event = device_on_event};

    d->verbs = ibv_open_device(dev);
    if (d->verbs == NULL)
        return errno;
    int err = ibv_query_device(d->verbs, attr);
    if (err != 0)
        return err;
    d->pd = ibv_alloc_pd(d->verbs);
    return d->pd == NULL ? errno : -verbena_open(dev->name, &callbacks, d, &d->watch);
}

static int device_new(struct ibv_device *dev, struct rdma_device **out)
{
    struct ibv_device_attr attr = {0};
    struct rdma_device *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return ENOMEM;
    TAILQ_INIT(&d->ids);
    int err = device_begin(d, dev, &attr);
    if (err != 0) {
        if (d->pd != NULL)
            ibv_dealloc_pd(d->pd);
        if (d->verbs != NULL)
            ibv_close_device(d->verbs);
        free(d);
        return err;
    }
    d->ifindex = (unsigned)ibv_get_device_index(dev);
    d->max_initiator_depth = device_limit(attr.max_qp_init_rd_atom);
    d->vendor_id = attr.vendor_id;
    d->max_responder_resources = device_limit(attr.max_qp_rd_atom);
    TAILQ_INSERT_TAIL(&device_open, d, link);
    *out = d;
    return 0;
}

/* Under the mutex. */
static struct rdma_device *device_find(unsigned ifindex)
{
    struct rdma_device *d;

    if (device_generation != rdma_generation()) {
        /* Contexts from before the fork are dead here; what refers to them keeps them. */
        TAILQ_INIT(&device_open);
        device_generation = rdma_generation();
    }
    TAILQ_FOREACH(d, &device_open, link)
    {
        if (d->ifindex == ifindex && !atomic_load(&d->gone))
            return d;
    }
    return NULL;
}

int rdma_device_get(unsigned ifindex, struct rdma_device **out)
{
    int err = ENODEV;

    device_lock();
    *out = device_find(ifindex);
    if (*out != NULL) {
        device_unlock();
        return 0;
    }
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (list == NULL)
        err = errno;
    for (struct ibv_device **p = list; p != NULL && *p != NULL; p++) {
        if ((unsigned)ibv_get_device_index(*p) != ifindex)
            continue;
        err = device_new(*p, out);
        break;
    }
    if (list != NULL)
        ibv_free_device_list(list);
    device_unlock();
    return err;
}

/* The open device that has this address, or NULL. Its GID table is up to date; a list of all
 * interfaces from the kernel takes much longer. */
static struct rdma_device *device_with(const struct sockaddr *local)
{
    struct net_addr addr = rdma_sockaddr_net(local);
    uint32_t scope = rdma_sockaddr_link_local(local) ? rdma_sockaddr_scope(local) : 0, index;
    struct rdma_device *d;

    device_lock();
    device_find(0); /* forgets those from before a fork */
    TAILQ_FOREACH(d, &device_open, link)
    {
        if (!atomic_load(&d->gone) && (scope == 0 || scope == d->ifindex) &&
            rdma_device_gid(d, &addr, &index) == 0)
            break;
    }
    device_unlock();
    return d;
}

int rdma_device_attach(struct rdma_id_obj *id, const struct sockaddr *local)
{
    unsigned ifindex;
    int err = 0;

    struct rdma_device *d = device_with(local);
    if (d == NULL)
        err = rdma_route_interface(local, &ifindex);
    if (d == NULL && err == 0)
        err = rdma_device_get(ifindex, &d);
    if (err != 0)
        return err;
    rdma_device_detach(id);
    rdma_lock();
    if (atomic_load(&d->gone)) {
        rdma_unlock();
        return ENODEV;
    }
    id->device = d;
    TAILQ_INSERT_TAIL(&d->ids, id, device_link);
    rdma_unlock();
    id->pub.verbs = d->verbs;
    id->pub.pd = d->pd;
    id->pub.port_num = DEVICE_PORT;
    return 0;
}

void rdma_device_detach(struct rdma_id_obj *id)
{
    rdma_lock();
    if (id->device != NULL)
        TAILQ_REMOVE(&id->device->ids, id, device_link);
    id->device = NULL;
    rdma_unlock();
    id->pub.verbs = NULL;
    id->pub.pd = NULL;
    id->pub.port_num = 0;
}

int rdma_device_gid(struct rdma_device *d, const struct net_addr *addr, uint32_t *index)
{
    struct ibv_gid_entry table[VERBENA_GID_TABLE_SIZE];

    ssize_t n = ibv_query_gid_table(d->verbs, table, VERBENA_GID_TABLE_SIZE, 0);
    if (n < 0)
        return (int)-n;
    for (ssize_t i = 0; i < n; i++) {
        if (memcmp(table[i].gid.raw, addr->b, sizeof(addr->b)) == 0) {
            *index = table[i].gid_index;
            return 0;
        }
    }
    return EADDRNOTAVAIL;
}

enum ibv_mtu rdma_device_mtu(struct rdma_device *d)
{
    struct ibv_port_attr attr;

    if (ibv_query_port(d->verbs, DEVICE_PORT, &attr) != 0)
        return IBV_MTU_1024;
    return attr.active_mtu;
}

int rdma_device_xrcd(struct rdma_device *d, struct ibv_xrcd **out)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = -1, /* no file: nobody else joins it */
        .oflags = O_CREAT,
    };
    int err = 0;

    device_lock();
    if (d->xrcd == NULL)
        d->xrcd = ibv_open_xrcd(d->verbs, &attr);
    if (d->xrcd == NULL)
        err = errno;
    *out = d->xrcd;
    device_unlock();
    return err;
}

RDMACM_ABI struct ibv_context **rdma_get_devices(int *num_devices)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    size_t n = 0;

    if (num_devices != NULL)
        *num_devices = 0;
    if (list == NULL)
        return NULL;
    while (list[n] != NULL)
        n++;
    struct ibv_context **out = calloc(n + 1, sizeof(struct ibv_context *));
    size_t got = 0;
    for (size_t i = 0; out != NULL && i < n; i++) {
        struct rdma_device *d;
        int err = rdma_device_get((unsigned)ibv_get_device_index(list[i]), &d);
        if (err == 0)
            out[got++] = d->verbs;
        else
            errno = err;
    }
    ibv_free_device_list(list);
    if (out != NULL && got == 0) { /* as without RDMA devices; errno says why */
        free(out);
        return NULL;
    }
    if (num_devices != NULL)
        *num_devices = (int)got;
    return out;
}

RDMACM_ABI void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}
