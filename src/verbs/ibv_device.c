/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_device.c: the list of devices. A device's object lives while a list or a context holds it,
 * and later lists hold the same one, so that pointers can be compared.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "verbs/ibv_objects.h"

/* Where vendor libraries look for the private part of a device. */
_Static_assert(offsetof(struct ibv_dev_obj, zero) == 664, "behind struct ibv_device");

static pthread_mutex_t device_mutex = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, ibv_dev_obj) device_known = TAILQ_HEAD_INITIALIZER(device_known);

static void device_lock(void)
{
    pthread_mutex_lock(&device_mutex);
}

static void device_unlock(void)
{
    pthread_mutex_unlock(&device_mutex);
}

/* A child must not inherit the mutex from a thread that it does not have. Under it no other lock is
 * taken. */
__attribute__((constructor)) static void device_watch_fork(void)
{
    static const struct verbena_fork_hook hook = {device_lock, device_unlock, device_unlock};

    verbena_fork_hook(VERBENA_FORK_VERBS_DEVICE, &hook);
}

static struct ibv_dev_obj *device_new(const struct verbena_device *info)
{
    struct ibv_dev_obj *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return NULL;
    d->dev.node_type = IBV_NODE_CA;
    d->dev.transport_type = IBV_TRANSPORT_IB;
    snprintf(d->dev.name, sizeof(d->dev.name), "%s", info->name);
    snprintf(d->dev.dev_name, sizeof(d->dev.dev_name), "uverbs%u",
             VERBENA_UVERBS_FIRST + info->ifindex);
    snprintf(d->dev.dev_path, sizeof(d->dev.dev_path), "%.120s/class/infiniband_verbs/%s",
             ibv_get_sysfs_path(), d->dev.dev_name);
    snprintf(d->dev.ibdev_path, sizeof(d->dev.ibdev_path), "%.120s/class/infiniband/%s",
             ibv_get_sysfs_path(), d->dev.name);
    TAILQ_INSERT_TAIL(&device_known, d, link);
    return d;
}

/* With the mutex held. */
static struct ibv_dev_obj *device_get(const struct verbena_device *info)
{
    struct ibv_dev_obj *d;

    TAILQ_FOREACH(d, &device_known, link)
    {
        if (strcmp(d->dev.name, info->name) == 0)
            break;
    }
    if (d == NULL)
        d = device_new(info);
    if (d != NULL) {
        d->info = *info;
        d->refs++;
    }
    return d;
}

static void device_put(struct ibv_dev_obj *d)
{
    if (--d->refs > 0)
        return;
    TAILQ_REMOVE(&device_known, d, link);
    free(d);
}

struct ibv_dev_obj *ibv_device_ref(struct ibv_device *dev)
{
    struct ibv_dev_obj *d = (struct ibv_dev_obj *)dev;

    device_lock();
    d->refs++;
    device_unlock();
    return d;
}

void ibv_device_unref(struct ibv_dev_obj *d)
{
    device_lock();
    device_put(d);
    device_unlock();
}

static bool device_fill(struct ibv_device **list, const struct verbena_device *info, size_t n)
{
    size_t got = 0;

    device_lock();
    for (; got < n; got++) {
        struct ibv_dev_obj *d = device_get(&info[got]);
        if (d == NULL)
            break;
        list[got] = &d->dev;
    }
    device_unlock();
    return got == n;
}

static void device_list_free(struct ibv_device **list)
{
    if (list == NULL)
        return;
    device_lock();
    for (struct ibv_device **p = list; *p != NULL; p++)
        device_put((struct ibv_dev_obj *)*p);
    device_unlock();
    free(list);
}

VERBS_ABI struct ibv_device **ibv_get_device_list(int *num)
{
    struct verbena_device *info = NULL;
    size_t n = 0;

    if (num != NULL)
        *num = 0;
    int err = verbena_device_list(&info, &n);
    if (err != 0) {
        errno = -err;
        return NULL;
    }
    struct ibv_device **list = calloc(n + 1, sizeof(struct ibv_device *));
    bool complete = list != NULL && device_fill(list, info, n);
    free(info);
    if (!complete) {
        device_list_free(list);
        errno = ENOMEM;
        return NULL;
    }
    if (num != NULL)
        *num = (int)n;
    return list;
}

VERBS_ABI void ibv_free_device_list(struct ibv_device **list)
{
    device_list_free(list);
}

VERBS_ABI const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

void ibv_dev_info(const struct ibv_dev_obj *d, struct verbena_device *out)
{
    device_lock();
    *out = d->info;
    device_unlock();
}

VERBS_ABI __be64 ibv_get_device_guid(struct ibv_device *device)
{
    struct verbena_device info;
    __be64 guid;

    ibv_dev_info((struct ibv_dev_obj *)device, &info);
    put_be64((uint8_t *)&guid, info.node_guid);
    return guid;
}

VERBS_ABI int ibv_get_device_index(struct ibv_device *device)
{
    struct verbena_device info;

    ibv_dev_info((struct ibv_dev_obj *)device, &info);
    return (int)info.ifindex;
}
