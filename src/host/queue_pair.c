/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue_pair.c: QPs of the live device: source ports, posts, and the grace period before one goes.
 */
#include "host/host_priv.h"

#include <errno.h>
#include <string.h>

enum {
    SPORT_FIRST = 0xC000,
    SPORT_MASK = 0x3fff,
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

/* A flow label asked for by the user spreads as it does for kernel senders: its upper six bits
 * folded into the lower fourteen. */
static uint16_t sport_from_label(uint32_t label)
{
    return (uint16_t)(SPORT_FIRST | ((label ^ label >> 14) & SPORT_MASK));
}

static bool addr_v4(const struct net_addr *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

/* The port watches over what connected QPs expect. */
static void expect(struct host *h, struct host_object *o, uint8_t version)
{
    if (o->expects != 0)
        port_udp_expect(h->udp, o->expects == 6, -1);
    o->expects = version;
    if (version != 0)
        port_udp_expect(h->udp, version == 6, 1);
}

int verbena_qp_modify(struct verbena_context *ctx, struct qp *qp, const struct nic_qp_attr *attr,
                      unsigned mask)
{
    if (dead(ctx))
        return -EIO;
    struct nic_qp_attr copy = *attr;
    if ((mask & QP_ATTR_AV) != 0 && copy.path.udp_sport == 0) {
        const struct host_object *o = qp->owner;
        uint32_t label = copy.path.flow_label & 0xfffff;
        copy.path.udp_sport = label != 0 ? sport_from_label(label) : o->sport;
    }
    if ((mask & QP_ATTR_STATE) != 0)
        progress_flush(ctx->host); /* RESET and ERR forget the answers that are owed */
    int err = qp_modify(qp, &copy, mask);
    if (err == 0 && (mask & QP_ATTR_AV) != 0)
        expect(ctx->host, qp->owner, addr_v4(&copy.path.remote) ? 4 : 6);
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

int verbena_qp_destroy(struct verbena_context *ctx, struct qp *qp)
{
    if (dead(ctx))
        return -EIO;
    struct host *h = ctx->host;
    struct host_object *o = qp->owner;
    /* The program may have seen the partner's last message before its ACK left: without that ACK
     * the partner would ask in vain until its retries are exhausted. */
    progress_flush(h);
    qp_unlink(qp);
    progress_grace(h);
    expect(h, o, 0);
    progress_lock(&h->events);
    qp_free(qp);
    host_object_free(o);
    progress_unlock(&h->events);
    progress_dispatch(h);
    return 0;
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
