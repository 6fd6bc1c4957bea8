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

/* One thread at a time changes which groups the id's QP is in: else one that leaves could decide
 * to detach, and do so after another has attached. Not rdma_lock, which must not be held across
 * libverbena; and who is cancelled in there must not leave the others waiting. Returns what
 * mcast_end needs. */
static int mcast_begin(struct rdma_id_obj *id)
{
    int cancel_state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    rdma_lock();
    while (rdma_id_alive(id) && id->groups_busy)
        rdma_wait(&id->acks);
    id->groups_busy = true;
    rdma_unlock();
    return cancel_state;
}

static void mcast_end(struct rdma_id_obj *id, int cancel_state)
{
    rdma_lock();
    id->groups_busy = false;
    pthread_cond_broadcast(&id->acks);
    rdma_unlock();
    pthread_setcancelstate(cancel_state, NULL);
}

/* This join has the QP in the group no more; true: nor has another one of the id. */
static bool mcast_last(struct rdma_id_obj *id, struct rdma_mcast *m)
{
    struct rdma_mcast *other;

    rdma_lock();
    bool last = m->attached;
    m->attached = false;
    TAILQ_FOREACH(other, &id->groups, link)
    {
        if (other->attached && memcmp(&other->group, &m->group, sizeof(m->group)) == 0)
            last = false;
    }
    rdma_unlock();
    return last;
}

/* Of a join that nobody else can free: its event is held, or it has left the list. */
static int mcast_attach(struct rdma_id_obj *id, struct rdma_mcast *m)
{
    int cancel_state = mcast_begin(id);
    int err = ibv_attach_mcast(id->pub.qp, &m->group, 0);

    rdma_lock();
    m->attached = err == 0;
    rdma_unlock();
    mcast_end(id, cancel_state);
    return err;
}

static void mcast_detach(struct rdma_id_obj *id, struct rdma_mcast *m)
{
    int cancel_state = mcast_begin(id);

    if (mcast_last(id, m) && id->pub.qp != NULL)
        (void)ibv_detach_mcast(id->pub.qp, &m->group, 0);
    mcast_end(id, cancel_state);
}

void rdma_mcast_deliver(struct rdma_event_obj *e)
{
    struct rdma_id_obj *id = e->counted;
    struct rdma_mcast *m = e->mcast;
    struct rdma_ud_param *ud = &e->pub.param.ud;

    int err = mcast_ah(id, &m->group, &ud->ah_attr);
    if (err == 0 && id->pub.qp != NULL && !m->send_only)
        err = mcast_attach(id, m);
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

/* Under rdma_lock: the first join by this name, or NULL. */
static struct rdma_mcast *mcast_find(struct rdma_id_obj *id, const struct sockaddr *addr)
{
    struct rdma_mcast *m;

    TAILQ_FOREACH(m, &id->groups, link)
    {
        if (memcmp(&m->addr, addr, rdma_sockaddr_length(addr)) == 0)
            break;
    }
    return m;
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
    while ((m = mcast_find(id, addr)) != NULL) {
        rdma_event_purge_mcast(id, m);
        if (!m->held) {
            TAILQ_REMOVE(&id->groups, m, link);
            break;
        }
        rdma_wait(&id->acks); /* meanwhile another thread may leave by this join */
    }
    rdma_unlock();
    if (m == NULL)
        return rdma_fail(EADDRNOTAVAIL);
    mcast_detach(id, m);
    free(m);
    return 0;
}

/* Some group that the QP is in; it counts as left by all joins from now on. */
static bool mcast_take_group(struct rdma_id_obj *id, union ibv_gid *group)
{
    struct rdma_mcast *m;
    bool found = false;

    rdma_lock();
    TAILQ_FOREACH(m, &id->groups, link)
    {
        if (!m->attached || (found && memcmp(&m->group, group, sizeof(*group)) != 0))
            continue;
        *group = m->group;
        m->attached = false;
        found = true;
    }
    rdma_unlock();
    return found;
}

void rdma_mcast_detach_all(struct rdma_id_obj *id)
{
    union ibv_gid group;
    int cancel_state = mcast_begin(id);

    while (mcast_take_group(id, &group))
        (void)ibv_detach_mcast(id->pub.qp, &group, 0);
    mcast_end(id, cancel_state);
}

void rdma_mcast_forget_all(struct rdma_id_obj *id)
{
    struct rdma_mcast *m;

    do {
        rdma_lock();
        m = TAILQ_FIRST(&id->groups);
        if (m != NULL)
            TAILQ_REMOVE(&id->groups, m, link);
        rdma_unlock();
        if (m != NULL)
            mcast_detach(id, m);
        free(m);
    } while (m != NULL);
}
