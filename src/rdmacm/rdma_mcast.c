/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_mcast.c: multicast groups on RoCE v2. There is no subnet manager to ask: a group's GID is
 * its IP address, and being in it is the business of the machine's own network stack. So a join has
 * its outcome at once; the QP goes into the group when the program gets the event.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rdma_objects.h"

enum { MCAST_QPN = 0xffffff }; /* what datagrams to a group name as their destination QP */

/* The group's GID; false: it is none. */
static bool mcast_group(const struct sockaddr *addr, struct net_addr *group)
{
    if (rdma_sockaddr_length(addr) == 0)
        return false;
    *group = rdma_sockaddr_net(addr);
    return net_addr_is_group(group);
}

/* Of the device, for this id to talk to the group: the one of its source address, unless that is of
 * the other family. */
static int mcast_source(struct rdma_id_obj *id, const struct net_addr *group,
                        struct net_addr *local)
{
    struct ibv_gid_entry table[VERBENA_GID_TABLE_SIZE];
    bool v4 = net_addr_is_v4(group);

    *local = rdma_sockaddr_net(&id->pub.route.addr.src_addr);
    if (net_addr_is_v4(local) == v4)
        return 0;
    ssize_t n = ibv_query_gid_table(id->device->verbs, table, VERBENA_GID_TABLE_SIZE, 0);
    for (ssize_t i = 0; i < n; i++) {
        memcpy(local->b, table[i].gid.raw, sizeof(local->b));
        if (net_addr_is_v4(local) == v4)
            return 0;
    }
    return EADDRNOTAVAIL;
}

static int mcast_ah(struct rdma_id_obj *id, const union ibv_gid *gid, struct ibv_ah_attr *ah)
{
    struct nic_path path = {.traffic_class = id->tos, .hop_limit = RDMA_HOP_LIMIT};

    memcpy(path.remote.b, gid->raw, sizeof(path.remote.b));
    int err = mcast_source(id, &path.remote, &path.local);
    return err != 0 ? err : rdma_qp_attr_ah(id, &path, ah);
}

void rdma_mcast_deliver(struct rdma_event_obj *e)
{
    struct rdma_id_obj *id = e->counted;
    struct rdma_mcast *m = e->mcast;
    struct rdma_ud_param *ud = &e->pub.param.ud;

    int err = mcast_ah(id, &m->group, &ud->ah_attr);
    if (err == 0 && id->pub.qp != NULL && !m->send_only) {
        err = ibv_attach_mcast(id->pub.qp, &m->group, 0);
        m->attached = err == 0;
    }
    if (err == 0)
        return;
    e->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
    e->pub.status = -err;
}

/* 0 or a positive errno. */
static int mcast_check(struct rdma_id_obj *id, const struct sockaddr *addr, struct net_addr *group)
{
    if (!rdma_id_alive(id))
        return EIO;
    if (addr == NULL || !mcast_group(addr, group) || id->pub.qp_type != IBV_QPT_UD)
        return EINVAL;
    if (id->state == ID_IDLE || id->state == ID_LISTENING)
        return EINVAL;
    const struct sockaddr *src = &id->pub.route.addr.src_addr;
    if (id->device != NULL)
        return 0;
    /* One that is bound to a loopback address gets its device late. */
    return rdma_sockaddr_any(src) ? EINVAL : rdma_device_attach(id, src);
}

static int mcast_join(struct rdma_id_obj *id, const struct sockaddr *addr, uint32_t flags,
                      void *context)
{
    struct net_addr group;

    int err = mcast_check(id, addr, &group);
    if (err != 0)
        return rdma_fail(err);
    struct rdma_mcast *m = calloc(1, sizeof(*m));
    struct rdma_event_obj *e =
        m != NULL ? rdma_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0) : NULL;
    if (e == NULL) {
        free(m);
        return rdma_fail(ENOMEM);
    }
    memcpy(&m->addr, addr, rdma_sockaddr_length(addr));
    memcpy(m->group.raw, group.b, sizeof(m->group.raw));
    m->send_only = flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
    e->mcast = m;
    e->pub.param.ud.private_data = context;
    e->pub.param.ud.qp_num = MCAST_QPN;
    e->pub.param.ud.qkey = RDMA_UDP_QKEY;
    rdma_lock();
    TAILQ_INSERT_TAIL(&id->groups, m, link);
    rdma_event_push(e);
    rdma_unlock();
    return rdma_id_complete(id);
}

RDMACM_ABI int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    return mcast_join(obj_id(id), addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context);
}

RDMACM_ABI int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
                                      void *context)
{
    if (attr == NULL)
        return rdma_fail(EINVAL);
    if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
        return rdma_fail(EOPNOTSUPP);
    bool has_flags = (attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) != 0;
    if ((attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) == 0 ||
        (has_flags && attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED))
        return rdma_fail(EINVAL);
    uint32_t flags = has_flags ? attr->join_flags : RDMA_MC_JOIN_FLAG_FULLMEMBER;
    return mcast_join(obj_id(id), attr->addr, flags, context);
}

/* Out of the group, unless another join of the id has the QP there, too. */
static void mcast_detach(struct rdma_id_obj *id, struct rdma_mcast *m)
{
    struct rdma_mcast *other;

    if (!m->attached)
        return;
    m->attached = false;
    TAILQ_FOREACH(other, &id->groups, link)
    {
        if (other->attached && memcmp(&other->group, &m->group, sizeof(m->group)) == 0)
            return;
    }
    if (id->pub.qp != NULL)
        (void)ibv_detach_mcast(id->pub.qp, &m->group, 0);
}

RDMACM_ABI int rdma_leave_multicast(struct rdma_cm_id *pub, struct sockaddr *addr)
{
    struct rdma_id_obj *id = obj_id(pub);
    struct rdma_mcast *m;

    if (addr == NULL || rdma_sockaddr_length(addr) == 0)
        return rdma_fail(EINVAL);
    if (!rdma_id_alive(id))
        return rdma_fail(EIO);
    /* A synchronous id holds the event of its last call itself. */
    if (id->sync && pub->event != NULL) {
        rdma_ack_cm_event(pub->event);
        pub->event = NULL;
    }
    rdma_lock();
    TAILQ_FOREACH(m, &id->groups, link)
    {
        if (memcmp(&m->addr, addr, rdma_sockaddr_length(addr)) == 0)
            break;
    }
    if (m != NULL) {
        rdma_event_purge_mcast(id, m);
        while (m->held)
            rdma_wait(&id->acks);
        TAILQ_REMOVE(&id->groups, m, link);
    }
    rdma_unlock();
    if (m == NULL)
        return rdma_fail(EADDRNOTAVAIL);
    mcast_detach(id, m);
    free(m);
    return 0;
}

void rdma_mcast_detach_all(struct rdma_id_obj *id)
{
    struct rdma_mcast *m;

    TAILQ_FOREACH(m, &id->groups, link)
    mcast_detach(id, m);
}

void rdma_mcast_forget_all(struct rdma_id_obj *id)
{
    struct rdma_mcast *m;

    while ((m = TAILQ_FIRST(&id->groups)) != NULL) {
        TAILQ_REMOVE(&id->groups, m, link);
        mcast_detach(id, m);
        free(m);
    }
}
