/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * life.c: what the programs do now and then: change states, resize queues, give regions other keys,
 * end a connection and begin the next with the same QPs.
 */
#include <assert.h>

#include "world.h"

enum { MAX_KEY_TRIES = 100 };

/* Queues change their size under way: never below what they hold. */
static void resize(struct world *w, int node)
{
    struct node *n = &w->node[node];
    for (int i = 0; i < n->cqs; i++)
        if (cq_resize(n->cq[i].cq, (int)(n->cq[i].cq->capacity + tape_below(w->tape, 64))) != 0)
            world_fail(w, "a larger CQ was refused");
    uint32_t max_wr = n->srq == NULL ? 0 : n->srq->rq.capacity + tape_below(w->tape, 8);
    if (n->srq != NULL && wq_srq_resize(n->srq, &max_wr) != 0)
        world_fail(w, "a larger SRQ was refused");
}

/* A receive that is over, though nobody will ever poll its completion. */
static void lose_receive(struct direction *d, uint64_t wr_id)
{
    uint32_t index = (uint32_t)wr_id;
    d->pool->recv[index].done = true;
    d->pool->polled++;
    assert(d->recv_seen < MAX_RECV_MAP);
    d->recv_map[d->recv_seen++] = (uint16_t)index;
}

/* What the QP has to say still is looked at now, as a reset takes it away. */
static void harvest(struct world *w, int node, struct qp *qp, struct direction *in)
{
    struct cq *cqs[2] = {qp->send_cq, qp->recv_cq};
    for (int i = 0; i < (cqs[0] == cqs[1] ? 1 : 2); i++) {
        const struct cq *cq = cqs[i];
        for (uint32_t k = cq->head; k != cq->tail; k++)
            if (cq->ring[k & cq->mask].qp == qp)
                check_completion(w, node, &cq->ring[k & cq->mask].wc);
    }
    if (qp->recv.valid)
        lose_receive(in, qp->recv.wr_id);
}

static void check_purged(struct world *w, const struct qp *qp, const struct node *n)
{
    for (int i = 0; i < n->cqs; i++) {
        const struct cq *cq = n->cq[i].cq;
        for (uint32_t k = cq->head; k != cq->tail; k++)
            if (cq->ring[k & cq->mask].qp == qp)
                world_fail(w, "a completion outlives its QP");
    }
}

/* The number of a QP is drawn at random: here the worst draw, that of the one before. */
static void take_qpn(struct nic *nic, struct qp *qp, uint32_t qpn)
{
    nic_unlist_qp(qp);
    qp->qpn = qpn;
    atomic_store(&nic->qpn_slot[qpn >> QPN_SLOT_BITS][qpn & (QPN_PER_SLOT - 1)], qp);
}

static void renew(struct world *w, const struct end *e)
{
    struct node *n = &w->node[e->node];
    struct slot *s = &n->slot[e->slot];
    struct nic_qp_attr a = {.state = QP_STATE_RESET};
    struct qp *old = s->qp;
    uint32_t qpn = old->qpn;
    if (!e->destroy) {
        if (qp_modify(old, &a, QP_ATTR_STATE) != 0)
            world_fail(w, "modify to RESET was refused");
        check_purged(w, old, n);
        return;
    }
    qp_unlink(old);
    if (nic_find_qp(n->nic, qpn) != NULL)
        world_fail(w, "a QP that was destroyed is found by its number");
    check_purged(w, old, n);
    qp_free(old);
    build_qp(w, e->node, e->slot);
    if (e->keep_qpn)
        take_qpn(n->nic, s->qp, qpn);
}

/* One end of a connection is over: at once, whatever is under way. */
static void end_life(struct world *w, int pair, int side)
{
    struct pair *p = &w->pair[pair];
    struct end *e = &p->end[side];
    struct slot *s = &w->node[e->node].slot[e->slot];
    assert(p->state == PAIR_LIVE && s->pair == pair && s->side == side);
    struct direction *out = world_direction(w, pair, side, true);
    struct direction *in = world_direction(w, pair, side, false);
    watch_cqs(w, e->node);
    harvest(w, e->node, s->qp, in);
    out->answered = world_answered(w, out);
    in->executed = world_executed(w, in);
    check_life(w, pair, side);
    p->killed = true;
    p->end[side].over = true;
    p->end[1 - side].over |= p->self;
    if (p->end[1 - side].over)
        p->state = PAIR_OVER;
    s->pair = -1;
    renew(w, e);
    watch_resync(w, e->node);
    for (int i = 0; i < w->dirs; i++) /* a purge may have been what a post waited for */
        w->dir[i].blocked = false;
}

/* Connects a later life once its QPs are free, else looks again in a while. */
static void connect(struct world *w, struct control *c)
{
    struct pair *p = &w->pair[c->pair];
    if (w->pair[p->before[0]].state != PAIR_OVER || w->pair[p->before[1]].state != PAIR_OVER) {
        c->done = false;
        c->at_ns = w->now_ns + 1000 + tape_below(w->tape, 100000);
        return;
    }
    build_connect(w, c->pair);
}

/* The worst moment to take the key of a READ away is while it is answered. */
static bool too_early(struct world *w, struct control *c, const struct direction *d)
{
    enum region_kind kind = (enum region_kind)c->side;
    const struct qp *qp = world_responder(w, d);
    if ((kind != REGION_TARGET && kind != REGION_RDSRC) || qp == NULL ||
        qp->state == QP_STATE_ERR || qp->resp.reply_head != qp->resp.reply_tail ||
        c->tries++ == MAX_KEY_TRIES)
        return false;
    c->done = false;
    c->at_ns = w->now_ns + 1 + tape_below(w->tape, 5000);
    return true;
}

/* A region is deregistered and registered anew: its old key is good for nothing, at once. */
static void renew_key(struct world *w, struct control *c)
{
    enum region_kind kind = (enum region_kind)c->side;
    struct direction *d = &w->dir[c->pair];
    struct region *r = world_region(w, d, kind);
    int node = kind <= REGION_SINK ? d->from : d->to;
    uint32_t old = r->mr->key;
    uint8_t *place;
    if (too_early(w, c, d))
        return;
    for (int i = 0; i < w->dirs; i++)
        if (kind != REGION_RECV ? &w->dir[i] == d : w->dir[i].to == node)
            w->pair[w->dir[i].pair].hurt = true;
    mem_mr_revoke(r->mr);
    if (mem_check(w->node[node].nic, w->node[node].pd, old, r->iova, 1, 0, false, &place) == MEM_OK)
        world_fail(w, "the key of a region that is revoked is good still");
    mem_mr_free(r->mr);
    build_region(w, node, r);
    r->generation++;
    if (r->mr->key == old ||
        mem_check(w->node[node].nic, w->node[node].pd, old, r->iova, 1, 0, false, &place) == MEM_OK)
        world_fail(w, "the key of a region that is gone is good still");
}

static void change_state(struct world *w, const struct control *c, struct qp *qp)
{
    static const enum qp_state to[] = {QP_STATE_ERR, QP_STATE_SQD, QP_STATE_RTS};
    struct direction *d = world_direction(w, c->pair, c->side, true);
    struct nic_qp_attr a = {.en_sqd_async_notify = true, .state = to[c->kind]};
    if ((c->kind == CONTROL_SQD && qp->state != QP_STATE_RTS) ||
        (c->kind == CONTROL_RTS && qp->state != QP_STATE_SQD))
        return;
    d->blocked = false;
    if (c->kind == CONTROL_ERR)
        w->pair[c->pair].killed = true;
    if (c->kind == CONTROL_RTS)
        d->wire.drained = false;
    if (qp_modify(qp, &a,
                  QP_ATTR_STATE | (a.state == QP_STATE_SQD ? QP_ATTR_EN_SQD_ASYNC_NOTIFY : 0)) != 0)
        world_fail(w, "modify to state %d was refused", a.state);
}

/* Something that is done to one end of a pair that lives. */
static void control_end(struct world *w, struct control *c)
{
    struct pair *p = &w->pair[c->pair];
    const struct end *e = &p->end[c->side];
    if (p->state == PAIR_WAITS && c->kind == CONTROL_END) { /* it has not even begun */
        c->done = false;
        c->at_ns = w->now_ns + 100000;
        return;
    }
    if (p->state != PAIR_LIVE || e->over)
        return;
    struct qp *qp = w->node[e->node].slot[e->slot].qp;
    if (c->kind == CONTROL_PACE) {
        pace_change(w, &p->end[c->side]);
    } else if (c->kind == CONTROL_END) {
        end_life(w, c->pair, c->side);
    } else if (c->kind != CONTROL_START) {
        change_state(w, c, qp);
    } else if (qp->state == QP_STATE_RTR) {
        world_direction(w, c->pair, c->side, true)->blocked = false;
        build_start(w, c->pair, c->side);
    }
}

void life_control(struct world *w, struct control *c)
{
    static const char *const note[CONTROL_KINDS] = {"to ERR", "to SQD",  "to RTS",  "start",
                                                    "resize", "the end", "connect", "another key",
                                                    "rate",   "limit",   "forged"};
    bool of_node = c->kind == CONTROL_RESIZE || c->kind >= CONTROL_LIMIT;
    int node = of_node                  ? c->pair
               : c->kind == CONTROL_KEY ? w->dir[c->pair].to
                                        : w->pair[c->pair].end[c->side].node;
    c->done = true;
    world_trace(w, TRACE_CONTROL, node)->note = note[c->kind];
    w->control_runs[c->kind]++;
    watch_cqs(w, node);
    switch (c->kind) {
    case CONTROL_RESIZE:
        resize(w, node);
        watch_resync(w, node);
        break;
    case CONTROL_CONNECT:
        connect(w, c);
        break;
    case CONTROL_KEY:
        renew_key(w, c);
        break;
    case CONTROL_LIMIT:
        watch_srq_limit(w, node, tape_range(w->tape, 1, w->opt.recv_depth));
        break;
    case CONTROL_FORGE:
        forge_some(w, node);
        break;
    default:
        control_end(w, c);
        break;
    }
    world_events(w, node);
}

void life_between(struct world *w, int node)
{
    for (int i = 0; w->opt.keys && i < w->controls; i++) {
        struct control *c = &w->control[i];
        if (c->kind != CONTROL_KEY || c->done || c->tries == 0 || w->dir[c->pair].to != node)
            continue;
        const struct qp *qp = world_responder(w, &w->dir[c->pair]);
        if (qp != NULL && qp->resp.reply_head != qp->resp.reply_tail)
            life_control(w, c);
    }
}

/* A program that sees one end of a connection fail gives up the other, sooner or later; on a
 * perfect network not before the NAK is there. */
void life_follow_errors(struct world *w)
{
    uint64_t wait_ns = w->opt.perfect ? 50000000 : 0;
    for (int i = 0; i < w->pairs; i++) {
        const struct pair *p = &w->pair[i];
        if (p->state != PAIR_LIVE || p->self || p->end[0].over || p->end[1].over)
            continue;
        bool err[2];
        for (int side = 0; side < 2; side++)
            err[side] = world_in_error(world_requester(w, &w->dir[i * 2 + side]));
        if (err[0] == err[1])
            continue;
        int other = err[0] ? 1 : 0;
        bool planned = false;
        for (int k = 0; k < w->controls; k++)
            planned = planned || (w->control[k].kind == CONTROL_ERR && !w->control[k].done &&
                                  w->control[k].side == other && w->control[k].pair == i);
        if (!planned)
            world_control(w, w->now_ns + wait_ns + 100 * tape_below(w->tape, 65536), CONTROL_ERR, i,
                          other);
    }
}
