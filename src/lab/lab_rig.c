/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_rig.c: choosing a device and registering memory, all of it touched beforehand.
 */
#include "lab/lab_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lab/lab_clock.h"
#include "lab/lab_numa.h"

enum { NO_GID = -1 };

uint32_t lab_rig_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

static bool is_roce_v2(struct ibv_context *context, uint8_t port, uint32_t index,
                       union ibv_gid *gid)
{
    struct ibv_gid_entry entry;
    if (ibv_query_gid_ex(context, port, index, &entry, 0) != 0)
        return false;
    *gid = entry.gid;
    return entry.gid_type == IBV_GID_TYPE_ROCE_V2;
}

/* The entry with the address; own NULL: the first IPv4 address, else the first entry of all. */
static int find_gid(struct ibv_context *context, uint8_t port, const struct ibv_port_attr *attr,
                    const uint8_t *own)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    int first = NO_GID;
    union ibv_gid gid;
    for (uint32_t i = 0; i < (uint32_t)attr->gid_tbl_len; i++) {
        if (!is_roce_v2(context, port, i, &gid))
            continue;
        if (own != NULL ? memcmp(gid.raw, own, 16) == 0 : memcmp(gid.raw, mapped, 12) == 0)
            return (int)i;
        if (first == NO_GID)
            first = (int)i;
    }
    return own != NULL ? NO_GID : first;
}

/* Opens one device and looks for an active port, with that address if own is given. error: why it
 * does not open. */
static bool try_device(struct lab_rig *r, struct ibv_device *d, const uint8_t *own, int *error)
{
    errno = 0;
    r->context = ibv_open_device(d);
    if (r->context == NULL) {
        *error = errno;
        return false;
    }
    if (ibv_query_device(r->context, &r->device) == 0) {
        for (uint8_t port = 1; port <= r->device.phys_port_cnt; port++) {
            if (ibv_query_port(r->context, port, &r->port_attr) != 0 ||
                r->port_attr.state != IBV_PORT_ACTIVE)
                continue;
            r->port = port;
            r->gid_index = find_gid(r->context, port, &r->port_attr, own);
            if (own == NULL || r->gid_index != NO_GID)
                return true;
        }
    }
    ibv_close_device(r->context);
    r->context = NULL;
    return false;
}

static bool choose(struct lab_rig *r, struct ibv_device **list, const char *name,
                   const uint8_t *own, int *error)
{
    for (unsigned i = 0; list[i] != NULL; i++)
        if (name[0] == '\0' || strcmp(name, ibv_get_device_name(list[i])) == 0)
            if (try_device(r, list[i], own, error))
                return true;
    return false;
}

/* error: why one did not open, or 0. */
static void tell_not_found(struct ibv_device **list, const char *wanted, int error,
                           char message[LAB_MESSAGE_BYTES])
{
    char there[LAB_MESSAGE_BYTES / 2] = "";
    size_t used = 0;
    for (unsigned i = 0; list[i] != NULL && used < sizeof(there); i++)
        used += (size_t)snprintf(there + used, sizeof(there) - used, "%s%s", i > 0 ? ", " : "",
                                 ibv_get_device_name(list[i]));
    const char *why = error == 0            ? ""
                      : error == EADDRINUSE ? "another user holds UDP port 4791"
                      : error == EMFILE || error == ENFILE
                          ? "too many files are open, see ulimit -n"
                          : strerror(error);
    bool any = wanted[0] == '\0';
    snprintf(message, LAB_MESSAGE_BYTES, "%s%s%s can be opened and has an active port, of %s%s%s",
             any ? "no RDMA device" : "device: no '", wanted, any ? "" : "' that", there,
             error == 0 ? "" : "; opening failed: ", why);
}

static int open_device(struct lab_rig *r, const struct lab_settings *s, const uint8_t *own,
                       char message[LAB_MESSAGE_BYTES])
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (list == NULL || list[0] == NULL) {
        snprintf(message, LAB_MESSAGE_BYTES, "there is no RDMA device");
        if (list != NULL)
            ibv_free_device_list(list);
        return -ENODEV;
    }
    int error = 0;
    bool found =
        choose(r, list, s->device, own, &error) || choose(r, list, s->device, NULL, &error);
    if (found)
        snprintf(r->name, sizeof(r->name), "%s", ibv_get_device_name(r->context->device));
    else
        tell_not_found(list, s->device, error, message);
    ibv_free_device_list(list);
    return found ? 0 : -ENODEV;
}

static int take_gid(struct lab_rig *r, const struct lab_settings *s,
                    char message[LAB_MESSAGE_BYTES])
{
    if (s->gid_index != LAB_ANY_GID)
        r->gid_index = (int)s->gid_index;
    else if (r->gid_index == NO_GID)
        r->gid_index = 0;
    static const union ibv_gid nothing;
    if (ibv_query_gid(r->context, r->port, r->gid_index, &r->gid) != 0 ||
        memcmp(&r->gid, &nothing, sizeof(nothing)) == 0) {
        snprintf(message, LAB_MESSAGE_BYTES, "gid-index: %s has no entry %d", r->name,
                 r->gid_index);
        return -EINVAL;
    }
    return 0;
}

static int register_pool(struct lab_rig *r, char message[LAB_MESSAGE_BYTES])
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    int atomic = r->device.atomic_cap != IBV_ATOMIC_NONE ? IBV_ACCESS_REMOTE_ATOMIC : 0;
    uint64_t start = lab_now_ns();
    r->mr = ibv_reg_mr(r->pd, r->memory, r->memory_bytes, access | atomic);
    r->register_ns = lab_now_ns() - start;
    if (r->mr == NULL) {
        snprintf(message, LAB_MESSAGE_BYTES, "slots: %s cannot register %llu bytes: %s", r->name,
                 (unsigned long long)r->memory_bytes, strerror(errno));
        return -EIO;
    }
    return 0;
}

int lab_rig_place(struct lab_rig *r, enum lab_near near, char message[LAB_MESSAGE_BYTES])
{
    if (near == r->near)
        return 0;
    ibv_dereg_mr(r->mr);
    r->mr = NULL;
    int error = lab_numa_place(near, r->name, r->memory, r->memory_bytes, message);
    if (error != 0)
        return error;
    /* To ask for no node moves nothing: pages that are touched anew lie where they did at first. */
    if (near == LAB_ANYWHERE && madvise(r->memory, r->memory_bytes, MADV_DONTNEED) == 0)
        memset(r->memory, 0, r->memory_bytes);
    r->near = near;
    return register_pool(r, message);
}

static int make_pool(struct lab_rig *r, const struct lab_settings *s,
                     char message[LAB_MESSAGE_BYTES])
{
    uint32_t slot_bytes = lab_settings_slot_bytes(s);
    /* Words behind the slots are aligned, whatever the slots' size is: atomics demand it. */
    r->memory_bytes = ((s->slots * slot_bytes + 63) & ~63ull) + LAB_RIG_EXTRA_BYTES;
    r->memory = mmap(NULL, r->memory_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (r->memory == MAP_FAILED) {
        r->memory = NULL;
        snprintf(message, LAB_MESSAGE_BYTES, "slots: no memory for %llu bytes",
                 (unsigned long long)r->memory_bytes);
        return -ENOMEM;
    }
    memset(r->memory, 0, r->memory_bytes);
    if (lab_pool_init(&r->pool, r->memory, (uint32_t)s->slots, slot_bytes) != 0)
        return -ENOMEM;
    return register_pool(r, message);
}

int lab_rig_open(struct lab_rig *r, const struct lab_settings *s, const uint8_t own[16],
                 char message[LAB_MESSAGE_BYTES])
{
    *r = (struct lab_rig){.gid_index = NO_GID};
    int error = open_device(r, s, own, message);
    if (error == 0)
        error = take_gid(r, s, message);
    if (error == 0 && (r->pd = ibv_alloc_pd(r->context)) == NULL) {
        snprintf(message, LAB_MESSAGE_BYTES, "%s has no protection domain for us: %s", r->name,
                 strerror(errno));
        error = -EIO;
    }
    if (error == 0)
        error = make_pool(r, s, message);
    if (error != 0)
        lab_rig_close(r);
    return error;
}

void lab_rig_close(struct lab_rig *r)
{
    if (r->mr != NULL)
        ibv_dereg_mr(r->mr);
    lab_pool_clear(&r->pool);
    if (r->memory != NULL)
        munmap(r->memory, r->memory_bytes);
    if (r->pd != NULL)
        ibv_dealloc_pd(r->pd);
    if (r->context != NULL)
        ibv_close_device(r->context);
    *r = (struct lab_rig){.gid_index = NO_GID};
}

bool lab_rig_is_verbena(const struct lab_rig *r)
{
    enum { VENDOR_ID = 0x564552 }; /* as ibv_devinfo shows it; nobody else's */
    return r->device.vendor_id == VENDOR_ID;
}

uint64_t *lab_rig_counter(const struct lab_rig *r)
{
    return (uint64_t *)(void *)(r->memory + r->memory_bytes - LAB_RIG_EXTRA_BYTES);
}
