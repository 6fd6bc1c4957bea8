/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_gid.c: the GID and P_Key tables of the port.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "verbs/ibv_objects.h"

/* Room that the newest struct ibv_gid_entry takes; smaller ones are those of no release. */
_Static_assert(sizeof(struct ibv_gid_entry) == 32, "ibv_gid_entry");

static int gid_read(struct ibv_context *context, uint32_t index, struct verbena_gid *g)
{
    if (index >= VERBENA_GID_TABLE_SIZE)
        return EINVAL;
    return -verbena_gid_query(obj_ctx(context)->host, index, g);
}

VERBS_ABI int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
                            union ibv_gid *gid)
{
    struct verbena_gid g;

    int err =
        port_num == VERBS_PORT && index >= 0 ? gid_read(context, (uint32_t)index, &g) : EINVAL;
    if (err == ENODATA) {
        memset(gid, 0, sizeof(*gid));
        return 0;
    }
    if (err != 0) {
        errno = err;
        return -1;
    }
    memcpy(gid->raw, g.addr.b, sizeof(gid->raw));
    return 0;
}

static struct ibv_gid_entry gid_entry(uint32_t index, const struct verbena_gid *g)
{
    struct ibv_gid_entry e = {
        .gid_index = index,
        .port_num = VERBS_PORT,
        .gid_type = IBV_GID_TYPE_ROCE_V2,
        .ndev_ifindex = g->ifindex,
    };
    memcpy(e.gid.raw, g->addr.b, sizeof(e.gid.raw));
    return e;
}

VERBS_ABI int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
                                struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    struct verbena_gid g;

    if (flags != 0)
        return EOPNOTSUPP;
    if (port_num != VERBS_PORT || entry_size < sizeof(struct ibv_gid_entry))
        return EINVAL;
    int err = gid_read(context, gid_index, &g);
    if (err != 0)
        return err;
    struct ibv_gid_entry e = gid_entry(gid_index, &g);
    memset(entry, 0, entry_size);
    memcpy(entry, &e, sizeof(e));
    return 0;
}

VERBS_ABI ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                       size_t max_entries, uint32_t flags, size_t entry_size)
{
    struct verbena_gid table[VERBENA_GID_TABLE_SIZE];
    size_t n = 0;

    if (flags != 0)
        return -EOPNOTSUPP;
    if (entry_size < sizeof(struct ibv_gid_entry))
        return -EINVAL;
    int err = verbena_gid_table(obj_ctx(context)->host, table);
    if (err != 0)
        return err;
    for (uint32_t i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        if (verbena_gid_empty(&table[i]))
            continue;
        if (n == max_entries)
            return -EINVAL;
        struct ibv_gid_entry e = gid_entry(i, &table[i]);
        uint8_t *to = (uint8_t *)entries + n * entry_size;
        memset(to, 0, entry_size);
        memcpy(to, &e, sizeof(e));
        n++;
    }
    return (ssize_t)n;
}

VERBS_ABI int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
                                 enum gid_type_sysfs *type)
{
    struct verbena_gid g;

    int err = port_num == VERBS_PORT ? gid_read(context, index, &g) : EINVAL;
    if (err != 0 && err != ENODATA) {
        errno = err;
        return -1;
    }
    *type = err == 0 ? GID_TYPE_SYSFS_ROCE_V2 : GID_TYPE_SYSFS_IB_OR_ROCE_V1;
    return 0;
}

VERBS_ABI int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
    (void)context;
    if (port_num != VERBS_PORT || index != 0) {
        errno = EINVAL;
        return -1;
    }
    put_be16((uint8_t *)pkey, VERBS_DEFAULT_PKEY);
    return 0;
}

VERBS_ABI int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
    __be16 ours;

    if (ibv_query_pkey(context, port_num, 0, &ours) != 0)
        return -1;
    if (ours != pkey) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}
