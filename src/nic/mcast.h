/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mcast.h: which UD QPs are attached to which multicast groups, and the way of a datagram to all of
 * them. That packets of a group reach the machine at all is the port's business.
 */
#ifndef NIC_MCAST_H
#define NIC_MCAST_H

#include "base/lock.h"
#include "verbena/port.h"
#include "verbena/types.h"

struct nic;
struct qp;

enum {
    MAX_MCAST_GROUPS = 16,     /* of one process: Linux lets a socket join 20 of IPv4 */
    MAX_MCAST_ATTACHES = 1024, /* QPs times groups */
};

struct mcast_attach {
    struct net_addr group;
    struct qp *qp;
};

struct mcast {
    struct lock lock; /* before a QP's */
    uint32_t count;
    struct mcast_attach *attach; /* MAX_MCAST_ATTACHES; NULL until the first */
};

void mcast_init(struct nic *nic);
void mcast_fini(struct nic *nic);
/* 0, also when it is attached already (*fresh: it was not); -EINVAL: not a UD QP, or no group
 * address; -ENOMEM: too many groups or QPs. */
int mcast_attach(struct nic *nic, struct qp *qp, const struct net_addr *group, bool *fresh);
/* 0 or -EINVAL: not attached. */
int mcast_detach(struct nic *nic, struct qp *qp, const struct net_addr *group);
/* Is the QP in any group? Then it must be detached before it goes. */
bool mcast_attached(struct nic *nic, const struct qp *qp);

/* Calls give for each QP in the group, with the QP's lock held; returns how many. */
unsigned mcast_each(struct nic *nic, const struct net_addr *group,
                    void (*give)(struct qp *qp, void *with), void *with);

#endif
