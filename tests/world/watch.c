/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.c: what CQs, SRQs and QPs must tell the program without being asked, and how often: each
 * notification and each event has a cause in this model, and comes once.
 */
#include "world.h"

/* May this completion wake a program that waits for solicited ones? */
static bool is_solicited(struct world *w, int node, const struct cqe *e)
{
    if (e->wc.status != WC_SUCCESS)
        return true;
    if (e->is_send)
        return false;
    const struct slot *s = world_slot(w, node, e->wc.qp_num);
    if (s == NULL || s->pair < 0)
        return false;
    struct direction *d = world_direction(w, s->pair, s->side, false);
    if (d->recv_pushed == d->messages) {
        world_fail(w, "a receive too many is in the CQ");
        return false;
    }
    return (d->op[d->message[d->recv_pushed++]].flags & WR_SOLICITED) != 0;
}

void watch_cqs(struct world *w, int node)
{
    struct node *n = &w->node[node];
    for (int i = 0; i < n->cqs; i++) {
        struct cq_state *s = &n->cq[i];
        const struct cq *cq = s->cq;
        for (; s->seen != cq->tail; s->seen++) {
            bool solicited = is_solicited(w, node, &cq->ring[s->seen & cq->mask]);
            if (s->armed == CQ_ARM_ANY || (s->armed == CQ_ARM_SOLICITED && solicited)) {
                s->armed = CQ_ARM_NONE;
                s->due = true;
            }
        }
        if (cq->overflowed && !s->full) {
            s->full = true;
            if (cq->tail - cq->head != cq->capacity)
                world_fail(w, "node %d: a CQ ran over with %u of %u completions", node,
                           cq->tail - cq->head, cq->capacity);
        }
        if (cq->tail - cq->head > cq->capacity)
            world_fail(w, "node %d: %u completions in a CQ of %u", node, cq->tail - cq->head,
                       cq->capacity);
    }
}

void watch_resync(struct world *w, int node)
{
    struct node *n = &w->node[node];
    for (int i = 0; i < n->cqs; i++)
        n->cq[i].seen = n->cq[i].cq->tail;
    n->srq_head = n->srq == NULL ? 0 : n->srq->rq.head;
}

/* Completions that came since the last event or arming, and were not polled. What a CQ was told of
 * is its own to know: entries leave it with their QPs. */
static bool has_news(const struct cq *cq, enum cq_arm armed)
{
    uint32_t i = (int32_t)(cq->told - cq->head) > 0 ? cq->told : cq->head;
    for (; cq->asked && i != cq->tail; i++)
        if (armed == CQ_ARM_ANY || cq->ring[i & cq->mask].solicited)
            return true;
    return false;
}

void watch_arm(struct world *w, int node, struct cq_state *cq, bool solicited_only)
{
    watch_cqs(w, node);
    if (!solicited_only)
        cq->armed = CQ_ARM_ANY;
    else if (cq->armed == CQ_ARM_NONE)
        cq->armed = CQ_ARM_SOLICITED;
    if (has_news(cq->cq, cq->armed)) {
        cq->armed = CQ_ARM_NONE;
        cq->due = true;
    }
    cq_arm(cq->cq, solicited_only);
}

static void limit_reached(struct node *n)
{
    if (n->srq_limit == 0 || n->srq->rq.tail - n->srq->rq.head >= n->srq_limit)
        return;
    n->srq_limit_due = true;
    n->srq_limit = 0;
}

void watch_srq(struct world *w, int node)
{
    struct node *n = &w->node[node];
    if (n->srq == NULL || n->srq->rq.head == n->srq_head)
        return;
    n->srq_head = n->srq->rq.head;
    limit_reached(n); /* a receive was taken */
}

void watch_srq_limit(struct world *w, int node, uint32_t limit)
{
    struct node *n = &w->node[node];
    if (wq_srq_set_limit(n->srq, limit) != 0)
        world_fail(w, "a limit within the SRQ's size was refused");
    n->srq_limit = limit;
    limit_reached(n);
}

/* Once in a life, and only of a QP that can say so. */
static void event_of_qp(struct world *w, int node, const struct nic_event *event, struct slot *s)
{
    const struct qp *qp = s->qp;
    switch (event->type) {
    case EVENT_QP_LAST_WQE_REACHED:
        if (++s->last_wqes > 1 || qp->srq == NULL || qp->state != QP_STATE_ERR)
            world_fail(w, "node %d: LAST_WQE event %u of a QP in state %d", node, s->last_wqes,
                       qp->state);
        break;
    case EVENT_QP_FATAL:
        if (++s->fatals > 1 || !w->opt.overflow || qp->state != QP_STATE_ERR ||
            (!qp->send_cq->overflowed && !qp->recv_cq->overflowed))
            world_fail(w, "node %d: fatal event %u of a QP in state %d", node, s->fatals,
                       qp->state);
        break;
    case EVENT_COMM_EST:
        if (++s->comm_ests > 1)
            world_fail(w, "node %d: a second COMM_EST event", node);
        break;
    case EVENT_SQ_DRAINED:
        if (s->pair >= 0)
            sniff_drained(w, world_direction(w, s->pair, s->side, true));
        break;
    case EVENT_QP_REQ_ERR:
    case EVENT_QP_ACCESS_ERR:
        break;
    default:
        world_fail(w, "event %d of a QP", event->type);
    }
}

static void one_event(struct world *w, int node, const struct nic_event *event)
{
    struct node *n = &w->node[node];
    if (event->type <= EVENT_GID_CHANGE)
        w->event_runs[event->type]++;
    if (event->type == EVENT_SRQ_LIMIT_REACHED) {
        if (!n->srq_limit_due || event->owner != n)
            world_fail(w, "node %d: a limit event that is not due", node);
        n->srq_limit_due = false;
        return;
    }
    if (event->type == EVENT_CQ_ERR) {
        struct cq_state *cq = event->owner;
        if (cq < n->cq || cq >= n->cq + n->cqs || cq->overflowed || !w->opt.overflow || !cq->full)
            world_fail(w, "node %d: a CQ error without a reason", node);
        else
            cq->overflowed = true;
        return;
    }
    struct slot *s = event->owner;
    if (s < n->slot || s >= n->slot + n->slots)
        world_fail(w, "node %d: event %d of nobody", node, event->type);
    else
        event_of_qp(w, node, event, s);
}

void world_events(struct world *w, int node)
{
    struct node *n = &w->node[node];
    struct nic_event event;
    struct cq_state *cq;
    watch_cqs(w, node);
    while ((cq = nic_notify_next(n->nic)) != NULL) {
        if (cq < n->cq || cq >= n->cq + n->cqs || !cq->due) {
            world_fail(w, "node %d: a CQ notifies without being asked", node);
            return;
        }
        cq->due = false;
        cq->notified = true;
    }
    while (event_next(n->nic, &event))
        one_event(w, node, &event);
    if (n->srq_limit_due)
        world_fail(w, "node %d: the SRQ is below its limit and does not say so", node);
    for (int i = 0; i < n->cqs; i++) {
        if (n->cq[i].due)
            world_fail(w, "node %d: CQ %d was armed, a completion came, nothing is said", node, i);
        if (n->cq[i].cq->overflowed != n->cq[i].overflowed)
            world_fail(w, "node %d: CQ %d ran over and does not say so", node, i);
    }
    for (int i = 0; i < n->slots; i++) {
        const struct slot *s = &n->slot[i];
        if (s->qp->srq != NULL && s->pair >= 0 && world_in_error(s->qp) && s->last_wqes != 1)
            world_fail(w, "node %d: a QP in ERR does not say that it took its last receive", node);
    }
}
