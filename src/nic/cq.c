/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cq.c: the ring of completions. Pushed with the QP's lock held, polled from any thread; the CQ's
 * own lock guards the ring. head and tail may be read without it as a hint.
 */
#include "nic/cq.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "nic/nic.h"
#include "nic/qp.h"

static uint32_t ring_slots(int cqe)
{
    uint32_t slots = 1;

    while (slots < (uint32_t)cqe)
        slots *= 2;
    return slots;
}

static uint32_t load_head(const struct cq *cq)
{
    return atomic_load_explicit(&cq->head, memory_order_relaxed);
}

static uint32_t load_tail(const struct cq *cq)
{
    return atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

/* The first entry that was neither polled nor there at the last event or arming. */
static uint32_t news_begin(const struct cq *cq)
{
    uint32_t head = load_head(cq);

    return (int32_t)(cq->told - head) > 0 ? cq->told : head;
}

int cq_create(struct nic *nic, int cqe, void *owner, struct cq **out)
{
    struct cq *cq;
    uint32_t slots;

    if (cqe < 1 || cqe > MAX_CQE)
        return -EINVAL;
    slots = ring_slots(cqe);
    cq = calloc(1, sizeof(*cq));
    if (cq == NULL)
        return -ENOMEM;
    cq->ring = alloc_touched(slots, sizeof(*cq->ring));
    if (cq->ring == NULL) {
        free(cq);
        return -ENOMEM;
    }
    cq->nic = nic;
    cq->owner = owner;
    cq->capacity = slots;
    cq->mask = slots - 1;
    lock_init(&cq->lock);
    event_init(&cq->events, EVENT_OBJECT_CQ, owner);
    atomic_fetch_add(&nic->objects, 1);
    *out = cq;
    return 0;
}

int cq_retire(struct cq *cq)
{
    if (atomic_load(&cq->users) != 0)
        return -EBUSY;
    lock_take(&cq->lock);
    moderation_clear(cq);
    cq->moderation.count = 0;
    lock_drop(&cq->lock);
    return 0;
}

int cq_destroy(struct cq *cq)
{
    if (atomic_load(&cq->users) != 0)
        return -EBUSY;
    moderation_clear(cq);
    nic_cq_forget(cq);
    event_drop(cq->nic, &cq->events);
    atomic_fetch_sub(&cq->nic->objects, 1);
    lock_fini(&cq->lock);
    free(cq->ring);
    free(cq);
    return 0;
}

int cq_resize(struct cq *cq, int cqe)
{
    struct cqe *ring, *old;
    uint32_t slots, waiting;

    if (cqe < 1 || cqe > MAX_CQE)
        return -EINVAL;
    slots = ring_slots(cqe);
    ring = alloc_touched(slots, sizeof(*ring));
    if (ring == NULL)
        return -ENOMEM;
    lock_take(&cq->lock);
    waiting = load_tail(cq) - load_head(cq);
    if (waiting > (uint32_t)cqe) {
        lock_drop(&cq->lock);
        free(ring);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < waiting; i++)
        ring[i] = cq->ring[(load_head(cq) + i) & cq->mask];
    cq->told = news_begin(cq) - load_head(cq);
    old = cq->ring;
    cq->ring = ring;
    __atomic_store_n(&cq->capacity, slots, __ATOMIC_SEQ_CST); /* looked at without the lock */
    cq->mask = slots - 1;
    atomic_store_explicit(&cq->head, 0, memory_order_relaxed);
    atomic_store_explicit(&cq->tail, waiting, memory_order_release);
    lock_drop(&cq->lock);
    free(old);
    return 0;
}

/* The completion cannot be delivered, nor can any later one without leaving a hole: the CQ is
 * finished, and so are the QPs that use it. */
static void overflow(struct cq *cq)
{
    /* Each time: a QP may have been reset, or made, since. */
    atomic_store(&cq->nic->cq_purge_due, true);
    if (cq->overflowed)
        return;
    cq->overflowed = true;
    nic_count(cq->nic, COUNTER_cq_overflows, 1);
    event_raise(cq->nic, &cq->events, EVENT_CQ_ERR);
}

void cq_notify(struct cq *cq)
{
    moderation_clear(cq);
    cq->armed = CQ_ARM_NONE;
    cq->told = load_tail(cq);
    nic_cq_notify(cq);
}

void cq_push(struct cq *cq, const struct cqe *e, bool solicited)
{
    uint32_t tail;

    lock_take(&cq->lock);
    tail = load_tail(cq);
    if (cq->overflowed || tail - load_head(cq) >= cq->capacity) {
        overflow(cq);
        lock_drop(&cq->lock);
        return;
    }
    cq->ring[tail & cq->mask] = *e;
    solicited = solicited || e->wc.status != WC_SUCCESS;
    cq->ring[tail & cq->mask].solicited = solicited;
    cq->ring[tail & cq->mask].wc.time_ns =
        atomic_load_explicit(&cq->nic->now_ns, memory_order_relaxed);
    atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
    if (cq->armed == CQ_ARM_ANY || (cq->armed == CQ_ARM_SOLICITED && solicited)) {
        /* An error is never late. */
        if (e->wc.status != WC_SUCCESS || !moderation_holds(cq))
            cq_notify(cq);
    }
    lock_drop(&cq->lock);
}

int cq_poll(struct cq *cq, int max, struct nic_wc *out)
{
    uint32_t head;
    int n = 0;

    if (!cq_maybe_ready(cq))
        return 0;
    lock_take(&cq->lock);
    head = load_head(cq);
    for (; n < max && head != load_tail(cq); n++, head++) {
        const struct cqe *e = &cq->ring[head & cq->mask];

        out[n] = e->wc;
        /* Only now may the program reuse the slots of this WR and of the unsignalled before it. */
        if (e->is_send)
            atomic_store_explicit(&e->qp->sq.freed, e->sq_freed_to, memory_order_release);
    }
    atomic_store_explicit(&cq->head, head, memory_order_relaxed);
    if ((int32_t)(cq->told - head) <
        0) /* both run for ever: it must not fall behind by half a turn */
        cq->told = head;
    lock_drop(&cq->lock);
    return n;
}

static bool has_news(const struct cq *cq)
{
    for (uint32_t i = news_begin(cq); i != load_tail(cq); i++) {
        if (cq->armed == CQ_ARM_ANY || cq->ring[i & cq->mask].solicited)
            return true;
    }
    return false;
}

/*
 * What comes after the last poll and before the arming makes an event, too, though IBA 11.4.2.2
 * lets it go without: NVIDIA's NICs do so, and UCX, which polls, arms and sleeps without polling
 * again, would sleep for ever. Programs have to live with an event that finds nothing anyway.
 */
void cq_arm(struct cq *cq, bool solicited_only)
{
    lock_take(&cq->lock);
    /* IBA 11.4.2.2: a request for any completion outlives a later one for solicited only. */
    if (!solicited_only)
        cq->armed = CQ_ARM_ANY;
    else if (cq->armed == CQ_ARM_NONE)
        cq->armed = CQ_ARM_SOLICITED;
    if (cq->asked && has_news(cq))
        cq_notify(cq);
    cq->asked = true;
    cq->told = load_tail(cq);
    lock_drop(&cq->lock);
}

void cq_purge(struct cq *cq, const struct qp *qp)
{
    uint32_t to, told;

    lock_take(&cq->lock);
    to = load_head(cq);
    told = news_begin(cq);
    for (uint32_t from = to; from != load_tail(cq); from++) {
        const struct cqe *e = &cq->ring[from & cq->mask];

        if (e->qp == qp) {
            if ((int32_t)(told - from) > 0)
                cq->told--;
            continue;
        }
        if (to != from)
            cq->ring[to & cq->mask] = *e;
        to++;
    }
    atomic_store_explicit(&cq->tail, to, memory_order_release);
    lock_drop(&cq->lock);
}

bool cq_has_overflowed(struct cq *cq)
{
    bool yes;

    lock_take(&cq->lock);
    yes = cq->overflowed;
    lock_drop(&cq->lock);
    return yes;
}
