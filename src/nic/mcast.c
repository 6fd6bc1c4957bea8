/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mcast.c: the list of attachments. It is short and read only for multicast packets, so it is
 * searched from end to end.
 */
#include "nic/mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"

void mcast_init(struct nic *nic)
{
    lock_init(&nic->mcast.lock);
}

void mcast_fini(struct nic *nic)
{
    free(nic->mcast.attach);
    lock_fini(&nic->mcast.lock);
}

static bool same(const struct net_addr *a, const struct net_addr *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static uint32_t groups(const struct mcast *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t k = 0;
        while (!same(&m->attach[k].group, &m->attach[i].group))
            k++;
        n += k == i;
    }
    return n;
}

/* Index of an attachment, or count. */
static uint32_t find(const struct mcast *m, const struct qp *qp, const struct net_addr *group)
{
    uint32_t i = 0;
    while (i < m->count && (m->attach[i].qp != qp || !same(&m->attach[i].group, group)))
        i++;
    return i;
}

static bool list_create(struct mcast *m)
{
    if (m->attach == NULL)
        m->attach = calloc(MAX_MCAST_ATTACHES, sizeof(*m->attach));
    return m->attach != NULL;
}

static int attach(struct mcast *m, struct qp *qp, const struct net_addr *group, bool *fresh)
{
    if (find(m, qp, group) != m->count)
        return 0;
    if (!list_create(m) || m->count == MAX_MCAST_ATTACHES)
        return -ENOMEM;
    m->attach[m->count++] = (struct mcast_attach){*group, qp};
    *fresh = groups(m) <= MAX_MCAST_GROUPS;
    m->count -= !*fresh;
    return *fresh ? 0 : -ENOMEM;
}

int mcast_attach(struct nic *nic, struct qp *qp, const struct net_addr *group, bool *fresh)
{
    *fresh = false;
    if (qp->type != QP_TYPE_UD || !net_addr_is_group(group))
        return -EINVAL;
    lock_take(&nic->mcast.lock);
    int err = attach(&nic->mcast, qp, group, fresh);
    lock_drop(&nic->mcast.lock);
    return err;
}

int mcast_detach(struct nic *nic, struct qp *qp, const struct net_addr *group)
{
    struct mcast *m = &nic->mcast;
    lock_take(&m->lock);
    uint32_t i = find(m, qp, group);
    bool found = i != m->count;
    if (found)
        m->attach[i] = m->attach[--m->count];
    lock_drop(&m->lock);
    return found ? 0 : -EINVAL;
}

bool mcast_attached(struct nic *nic, const struct qp *qp)
{
    struct mcast *m = &nic->mcast;
    bool found = false;
    lock_take(&m->lock);
    for (uint32_t i = 0; i < m->count; i++)
        found |= m->attach[i].qp == qp;
    lock_drop(&m->lock);
    return found;
}

unsigned mcast_each(struct nic *nic, const struct net_addr *group,
                    void (*give)(struct qp *qp, void *with), void *with)
{
    struct mcast *m = &nic->mcast;
    unsigned n = 0;
    lock_take(&m->lock);
    for (uint32_t i = 0; i < m->count; i++) {
        if (!same(&m->attach[i].group, group))
            continue;
        struct qp *qp = m->attach[i].qp;
        lock_take(&qp->lock);
        give(qp, with);
        lock_drop(&qp->lock);
        n++;
    }
    lock_drop(&m->lock);
    return n;
}
