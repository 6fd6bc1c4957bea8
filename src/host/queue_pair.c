/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue_pair.c: QPs of the live device: source ports, posts, and the grace period before one goes.
 */
#include "host/host_priv.h"

#include <errno.h>
#include <string.h>

#include "port/port_group.h"

enum {
    SPORT_FIRST = 0xC000,
    SPORT_MASK = 0x3fff,
    EXPECT_V4 = 1 << 0,
    EXPECT_V6 = 1 << 1,
};

static bool dead(const struct verbena_context *ctx)
{
    return !host_alive(ctx->host);
}

/* All QPNs are in use: claims one more slot. */
static int more_qpns(struct host *h)
{
    int err = 0;
    pthread_mutex_lock(&host_open_lock);
    progress_lock(&h->rx); /* who receives looks QPNs up */
    /* Unless another thread was faster. */
    if (nic_out_of_qpns(h->nic)) {
        err = h->qpn_slots < MAX_QPN_SLOTS ? 0 : -ENOMEM;
        if (err == 0 && !h->slot_claimed)
            err = port_udp_claim(h->udp, &h->claimed_slot);
        h->slot_claimed |= err == 0;
        err = err == 0 ? nic_add_qpns(h->nic, h->claimed_slot) : err;
        if (err == 0) {
            h->slot_claimed = false;
            h->qpn_slots++;
        }
    }
    progress_unlock(&h->rx);
    pthread_mutex_unlock(&host_open_lock);
    return err;
}

int verbena_qp_create(struct verbena_context *ctx, struct qp_init *init, struct qp **out)
{
    if (dead(ctx))
        return -EIO;
    void *owner = init->owner;
    struct host_object *o = host_object_create(ctx, owner);
    if (o == NULL)
        return -ENOMEM;
    /* One after the other, so that few QPs share a socket; the start is this process's own. */
    pthread_mutex_lock(&host_open_lock);
    o->sport = (uint16_t)(SPORT_FIRST | (ctx->host->next_sport++ & SPORT_MASK));
    pthread_mutex_unlock(&host_open_lock);
    init->owner = o;
    init->udp_sport = o->sport;
    int err = qp_create(ctx->host->nic, init, out);
    if (err == -ENOMEM && nic_out_of_qpns(ctx->host->nic) && more_qpns(ctx->host) == 0)
        err = qp_create(ctx->host->nic, init, out);
    init->owner = owner;
    if (err != 0)
        host_object_free(o);
    return err;
}

uint32_t verbena_qp_number(const struct qp *qp)
{
    return qp->qpn;
}

/* The port watches over what QPs expect: EXPECT_V4, EXPECT_V6, both, or nothing. */
static void expect(struct host *h, struct host_object *o, uint8_t versions)
{
    for (unsigned v6 = 0; v6 < 2; v6++) {
        int before = o->expects >> v6 & 1, now = versions >> v6 & 1;
        if (before != now)
            port_udp_expect(h->udp, v6 != 0, now - before);
    }
    o->expects = versions;
}

/* After a modify that went well. */
static void expect_modified(struct host *h, struct qp *qp, const struct nic_qp_attr *attr,
                            unsigned mask)
{
    if (qp->type == QP_TYPE_UD && (mask & QP_ATTR_STATE) != 0 && attr->state == QP_STATE_RTR)
        expect(h, qp->owner, EXPECT_V4 | EXPECT_V6);
    else if ((mask & QP_ATTR_AV) != 0)
        expect(h, qp->owner, net_addr_is_v4(&attr->path.remote) ? EXPECT_V4 : EXPECT_V6);
}

/*
 * Where its packets come from. Initiators and targets of XRC that belong to one pair of processes
 * share a port: programs (perftest's ib_send_lat -e) rely on a target's ACK being there before the
 * answer that an initiator sent later, and from two ports the two would go by two sockets.
 */
static uint16_t source_port(const struct host *h, const struct qp *qp,
                            const struct nic_qp_attr *attr)
{
    const struct host_object *o = qp->owner;
    uint32_t label = attr->path.flow_label & 0xfffff;
    if (label != 0)
        return verbena_label_sport(label);
    if (qp->type != QP_TYPE_XRC_INI && qp->type != QP_TYPE_XRC_TGT)
        return o->sport;
    uint32_t pair = port_udp_slot(h->udp) * QPN_SLOTS + (attr->dest_qpn >> QPN_SLOT_BITS);
    return (uint16_t)(SPORT_FIRST | ((pair * 0x9e3779b1u >> 16) & SPORT_MASK));
}

int verbena_qp_modify(struct verbena_context *ctx, struct qp *qp, const struct nic_qp_attr *attr,
                      unsigned mask)
{
    if (dead(ctx))
        return -EIO;
    struct nic_qp_attr copy = *attr;
    if ((mask & QP_ATTR_AV) != 0 && copy.path.udp_sport == 0)
        copy.path.udp_sport = source_port(ctx->host, qp, attr);
    /* An old rate limit held until now, and now is what is flushed. */
    nic_tell_time(ctx->host->nic, host_now_ns());
    if ((mask & QP_ATTR_STATE) != 0)
        progress_flush(ctx->host); /* RESET and ERR forget the answers that are owed */
    int err = qp_modify(qp, &copy, mask);
    if (err == 0)
        expect_modified(ctx->host, qp, &copy, mask);
    progress_send(ctx->host);
    return err;
}

int verbena_qp_query(struct verbena_context *ctx, struct qp *qp, struct nic_qp_attr *attr,
                     struct nic_qp_cap *cap)
{
    if (dead(ctx))
        return -EIO;
    qp_query(qp, attr, cap);
    return 0;
}

int verbena_qp_set_ece(struct verbena_context *ctx, struct qp *qp, uint32_t *options)
{
    return dead(ctx) ? -EIO : qp_set_ece(qp, options);
}

int verbena_qp_query_ece(struct verbena_context *ctx, struct qp *qp, uint32_t *options)
{
    if (dead(ctx))
        return -EIO;
    *options = qp_query_ece(qp);
    return 0;
}

int verbena_qp_destroy(struct verbena_context *ctx, struct qp *qp)
{
    if (dead(ctx))
        return -EIO;
    struct host *h = ctx->host;
    struct host_object *o = qp->owner;
    if (mcast_attached(h->nic, qp))
        return -EBUSY;
    /* The program may have seen the partner's last message before its ACK left: without that ACK
     * the partner would ask in vain until its retries are exhausted. */
    progress_flush(h);
    qp_unlink(qp);
    progress_grace(h);
    expect(h, o, 0);
    progress_lock(&h->events);
    connect_forget_qp(o);
    qp_free(qp);
    host_object_free(o);
    progress_unlock(&h->events);
    progress_dispatch(h);
    return 0;
}

int verbena_mcast_attach(struct verbena_context *ctx, struct qp *qp, const struct net_addr *group)
{
    if (dead(ctx))
        return -EIO;
    struct host *h = ctx->host;
    bool fresh;
    progress_lock(&h->rx);
    int err = mcast_attach(h->nic, qp, group, &fresh);
    if (fresh) {
        err = port_udp_join(h->udp, group, ctx->device.ifindex);
        if (err != 0)
            (void)mcast_detach(h->nic, qp, group);
    }
    progress_unlock(&h->rx);
    progress_send(h); /* whoever stayed away because we waited left it to us */
    return err;
}

int verbena_mcast_detach(struct verbena_context *ctx, struct qp *qp, const struct net_addr *group)
{
    if (dead(ctx))
        return -EIO;
    struct host *h = ctx->host;
    progress_lock(&h->rx);
    int err = mcast_detach(h->nic, qp, group);
    if (err == 0)
        port_udp_leave(h->udp, group, ctx->device.ifindex);
    progress_unlock(&h->rx);
    progress_send(h);
    return err;
}

int verbena_post_send(struct verbena_context *ctx, struct qp *qp, const struct nic_send_wr *wr)
{
    return dead(ctx) ? -EIO : wq_post_send(qp, wr);
}

int verbena_post_recv(struct verbena_context *ctx, struct qp *qp, const struct nic_recv_wr *wr)
{
    return dead(ctx) ? -EIO : wq_post_recv(qp, wr);
}

void verbena_kick(struct verbena_context *ctx)
{
    if (!dead(ctx))
        progress_send(ctx->host);
}
