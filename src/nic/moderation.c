/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moderation.c: see moderation.h. Locks: the CQ's, then the scheduler's. A CQ that expires is taken
 * off the list under the latter alone, and locked afterwards; so a CQ goes only after a grace
 * period that began when it had no moderation any more (cq_retire).
 */
#include "nic/moderation.h"

#include "nic/nic.h"

/* With the scheduler's lock held. */
static void update_first(struct nic *nic)
{
    const struct cq *cq;
    uint64_t first = UINT64_MAX;

    TAILQ_FOREACH(cq, &nic->held, moderation.link)
    first = cq->moderation.due_ns < first ? cq->moderation.due_ns : first;
    atomic_store_explicit(&nic->first_held_ns, first, memory_order_release);
}

void moderation_clear(struct cq *cq)
{
    struct moderation *m = &cq->moderation;
    struct nic *nic = cq->nic;

    m->held = 0;
    if (!m->waits)
        return;
    lock_take(&nic->sched_lock);
    if (m->waits) { /* else it is being expired */
        m->waits = false;
        TAILQ_REMOVE(&nic->held, cq, moderation.link);
        update_first(nic);
    }
    lock_drop(&nic->sched_lock);
}

bool moderation_holds(struct cq *cq)
{
    struct moderation *m = &cq->moderation;
    struct nic *nic = cq->nic;

    if (m->count < 2 || m->period_ns == 0 || ++m->held >= m->count)
        return false;
    if (m->held > 1)
        return true;
    lock_take(&nic->sched_lock);
    m->due_ns = atomic_load_explicit(&nic->now_ns, memory_order_relaxed) + m->period_ns;
    if (!m->waits) {
        m->waits = true;
        TAILQ_INSERT_TAIL(&nic->held, cq, moderation.link);
    }
    update_first(nic);
    lock_drop(&nic->sched_lock);
    return true;
}

void moderation_set(struct cq *cq, uint32_t count, uint64_t period_ns)
{
    lock_take(&cq->lock);
    bool due = cq->moderation.held != 0;
    moderation_clear(cq);
    cq->moderation.count = count;
    cq->moderation.period_ns = period_ns;
    if (due)
        cq_notify(cq);
    lock_drop(&cq->lock);
}

static struct cq *take_due(struct nic *nic, uint64_t now_ns)
{
    struct cq *cq;

    lock_take(&nic->sched_lock);
    TAILQ_FOREACH(cq, &nic->held, moderation.link)
    if (cq->moderation.due_ns <= now_ns)
        break;
    if (cq != NULL) {
        cq->moderation.waits = false;
        TAILQ_REMOVE(&nic->held, cq, moderation.link);
        update_first(nic);
    }
    lock_drop(&nic->sched_lock);
    return cq;
}

void moderation_expire(struct nic *nic, uint64_t now_ns)
{
    struct cq *cq;

    if (atomic_load_explicit(&nic->first_held_ns, memory_order_acquire) > now_ns)
        return;
    while ((cq = take_due(nic, now_ns)) != NULL) {
        lock_take(&cq->lock);
        if (cq->moderation.held != 0) /* else it had its event just now */
            cq_notify(cq);
        lock_drop(&cq->lock);
    }
}
