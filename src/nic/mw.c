/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mw.c: memory windows. Binding and unbinding happen in work requests, under the QP's lock, the
 * key table's and the window's, in this order; a packet's check takes the window's alone. While a
 * window is bound its region cannot go, so that a check need not look at it.
 */
#include "nic/mw.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/nic.h"
#include "nic/qp.h"

enum {
    KEY_OWNED = 0xff, /* bits of the key that a bind chooses */
    MW_ACCESS = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
                ACCESS_ZERO_BASED | ACCESS_FLUSH_GLOBAL,
};

static struct mw *mw_of(struct mr *entry)
{
    return (struct mw *)(void *)entry;
}

int mw_create(struct pd *pd, enum mw_type type, struct mw **out)
{
    struct mw *mw;

    if (type != MW_TYPE_1 && type != MW_TYPE_2)
        return -EINVAL;
    mw = calloc(1, sizeof(*mw));
    if (mw == NULL)
        return -ENOMEM;
    mw->entry.pd = pd;
    mw->entry.kind = MEM_KIND_WINDOW;
    mw->type = type;
    lock_init(&mw->lock);
    if (mem_table_add(&pd->nic->mem, &mw->entry) != 0) {
        lock_fini(&mw->lock);
        free(mw);
        return -ENOMEM;
    }
    *out = mw;
    return 0;
}

/* With both locks held. */
static void unbind(struct mw *mw)
{
    if (mw->region != NULL)
        mw->region->windows--;
    if (mw->qp != NULL)
        atomic_fetch_sub(&mw->qp->windows, 1);
    mw->region = NULL;
    mw->qp = NULL;
}

void mw_revoke(struct mw *mw)
{
    struct mem_table *t = &mw->entry.pd->nic->mem;

    lock_take(&t->lock);
    lock_take(&mw->lock);
    unbind(mw);
    mem_table_hide(t, mw->entry.key); /* nor may a bind that waits in a queue find it */
    lock_drop(&mw->lock);
    lock_drop(&t->lock);
}

void mw_free(struct mw *mw)
{
    struct pd *pd = mw->entry.pd;

    mem_table_remove(&pd->nic->mem, mw->entry.key);
    atomic_fetch_sub(&pd->children, 1);
    lock_fini(&mw->lock);
    free(mw);
}

uint32_t mw_key(struct mw *mw)
{
    uint32_t key;

    lock_take(&mw->lock);
    key = mw->entry.key;
    lock_drop(&mw->lock);
    return key;
}

enum mem_verdict mw_check(struct mr *entry, const struct pd *pd, uint32_t key, uint64_t va,
                          uint64_t n, unsigned need, uint32_t from_qpn, uint8_t **addr, bool *paged)
{
    struct mw *mw = mw_of(entry);
    enum mem_verdict v = MEM_BAD_KEY;

    if (from_qpn == 0) /* it has no lkey */
        return v;
    lock_take(&mw->lock);
    if (mw->region != NULL && (mw->qp == NULL || mw->qp->qpn == from_qpn))
        v = mem_check_entry(entry, pd, key, va, n, need, addr);
    *paged = mw->region != NULL && mw->region->kind == MEM_KIND_PAGED;
    lock_drop(&mw->lock);
    return v;
}

/* May this part of the region be bound with these rights? */
static bool region_allows(const struct mr *mr, const struct pd *pd, const struct send_wqe *w)
{
    const unsigned writes = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
    uint8_t *addr;

    if (mr == NULL || (mr->kind != MEM_KIND_PLAIN && mr->kind != MEM_KIND_PAGED))
        return false;
    /* As adapters and soft-RoCE: a region without addresses of its own takes no windows. */
    if (mr->access & ACCESS_ZERO_BASED)
        return false;
    /* IBA C10-74: who may write through the window must be able to by the region. */
    if ((w->swap & writes) && !(mr->access & ACCESS_LOCAL_WRITE))
        return false;
    /* A placement that the region does not offer no part of it does. */
    if (w->swap & (ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT) & ~(uint64_t)mr->access)
        return false;
    /* IBA C10-73, IBA C10-75: the right to bind, and bounds. */
    return mem_check_entry(mr, pd, w->imm_or_inv, w->remote_addr, w->compare_add, ACCESS_MW_BIND,
                           &addr) == MEM_OK;
}

/* With both locks held. */
static bool bind_locked(struct qp *qp, struct mw *mw, struct mr *region, const struct send_wqe *w)
{
    struct mr *e = &mw->entry;

    if ((e->key ^ w->rkey) & ~(uint32_t)KEY_OWNED)
        return false;
    if (e->pd != qp->pd) /* IBA C10-72 */
        return false;
    if (mw->type == MW_TYPE_1) {
        if (w->swap & ACCESS_ZERO_BASED) /* IBA o10-36.2.2 */
            return false;
    } else {
        if (qp->type == QP_TYPE_XRC_INI) /* takes no requests that could use it */
            return false;
        /* IBA o10-37.2.30, IBA o10-37.2.40: only an unbound one, and never to nothing. */
        if (mw->region != NULL || w->compare_add == 0)
            return false;
    }
    if (w->compare_add != 0 && !region_allows(region, qp->pd, w))
        return false;
    unbind(mw);
    e->key = w->rkey;
    if (w->compare_add == 0)
        return true;
    e->access = (unsigned)w->swap & MW_ACCESS;
    e->base = (uint8_t *)((uintptr_t)region->base + (w->remote_addr - region->iova_start));
    e->iova_start = e->access & ACCESS_ZERO_BASED ? 0 : w->remote_addr;
    e->length = w->compare_add;
    mw->region = region;
    region->windows++;
    if (mw->type == MW_TYPE_2) {
        mw->qp = qp;
        atomic_fetch_add(&qp->windows, 1);
    }
    return true;
}

static bool bind(struct qp *qp, const struct send_wqe *w)
{
    struct mem_table *t = &qp->nic->mem;
    struct mr *entry;
    bool good = false;

    lock_take(&t->lock);
    entry = mem_table_at(t, w->rkey);
    if (entry != NULL && entry->kind == MEM_KIND_WINDOW) {
        struct mw *mw = mw_of(entry);

        lock_take(&mw->lock);
        good = bind_locked(qp, mw, mem_table_at(t, w->imm_or_inv), w);
        lock_drop(&mw->lock);
    }
    lock_drop(&t->lock);
    return good;
}

bool mw_invalidate(struct qp *qp, uint32_t key)
{
    struct mem_table *t = &qp->nic->mem;
    struct mr *entry;
    bool good = false;

    lock_take(&t->lock);
    entry = mem_table_at(t, key);
    if (entry != NULL && entry->kind == MEM_KIND_WINDOW) {
        struct mw *mw = mw_of(entry);

        lock_take(&mw->lock);
        good = entry->key == key && mw->qp == qp && entry->pd == qp->pd;
        if (good)
            unbind(mw);
        lock_drop(&mw->lock);
    }
    lock_drop(&t->lock);
    return good;
}

bool mw_execute(struct qp *qp, const struct send_wqe *w)
{
    return w->opcode == WR_BIND_MW ? bind(qp, w) : mw_invalidate(qp, w->imm_or_inv);
}

void mw_unbind_all(struct qp *qp)
{
    struct mem_table *t = &qp->nic->mem;

    if (atomic_load(&qp->windows) == 0)
        return;
    lock_take(&t->lock);
    for (uint32_t i = 0; i < t->unused && atomic_load(&qp->windows) != 0; i++) {
        struct mr *entry = atomic_load_explicit(&t->slot[i], memory_order_acquire);

        if (entry == NULL || entry->kind != MEM_KIND_WINDOW)
            continue;
        lock_take(&mw_of(entry)->lock);
        if (mw_of(entry)->qp == qp)
            unbind(mw_of(entry));
        lock_drop(&mw_of(entry)->lock);
    }
    lock_drop(&t->lock);
}
