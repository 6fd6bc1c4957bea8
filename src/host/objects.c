/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objects.c: protection domains, completion queues and shared receive queues of the live device:
 * the engine's, plus what a process needs around them: dead contexts after fork, the grace
 * period before memory goes, and no callback after a destroy.
 */
#include "host/host_priv.h"

#include <errno.h>

static bool dead(const struct verbena_context *ctx)
{
    return !host_alive(ctx->host);
}

int verbena_pd_create(struct verbena_context *ctx, struct pd **out)
{
    return dead(ctx) ? -EIO : mem_pd_create(ctx->host->nic, out);
}

int verbena_pd_destroy(struct verbena_context *ctx, struct pd *pd)
{
    return dead(ctx) ? -EIO : mem_pd_destroy(pd);
}

void verbena_pd_count(struct pd *pd, int children)
{
    atomic_fetch_add(&pd->children, (uint32_t)children);
}

int verbena_cq_create(struct verbena_context *ctx, int cqe, void *owner, struct cq **out)
{
    if (dead(ctx))
        return -EIO;
    struct host_object *o = host_object_create(ctx, owner);
    int err = o == NULL ? -ENOMEM : cq_create(ctx->host->nic, cqe, o, out);
    if (err != 0)
        host_object_free(o);
    return err;
}

int verbena_cq_capacity(const struct cq *cq)
{
    return (int)__atomic_load_n(&cq->capacity, __ATOMIC_SEQ_CST);
}

int verbena_cq_resize(struct verbena_context *ctx, struct cq *cq, int cqe)
{
    return dead(ctx) ? -EIO : cq_resize(cq, cqe);
}

int verbena_cq_moderate(struct verbena_context *ctx, struct cq *cq, uint32_t count,
                        uint32_t period_us)
{
    if (dead(ctx))
        return -EIO;
    moderation_set(cq, count, UINT64_C(1000) * period_us);
    progress_dispatch(ctx->host);
    return 0;
}

int verbena_cq_destroy(struct verbena_context *ctx, struct cq *cq)
{
    if (dead(ctx))
        return -EIO;
    struct host *h = ctx->host;
    struct host_object *o = cq->owner;
    int err = cq_retire(cq);
    if (err != 0)
        return err;
    progress_grace(h);
    progress_lock(&h->events);
    err = cq_destroy(cq);
    if (err == 0)
        host_object_free(o);
    progress_unlock(&h->events);
    progress_dispatch(h);
    return err;
}

int verbena_cq_poll(struct verbena_context *ctx, struct cq *cq, int max, struct nic_wc *out)
{
    if (dead(ctx))
        return -EIO;
    struct host *h = ctx->host;
    if (cq_maybe_ready(cq)) {
        int n = cq_poll(cq, max, out);
        if (n != 0) {
            if (nic_has_output(h->nic))
                progress_send(h);
            return n;
        }
    }
    /* A completion goes to the program before answers (an ACK) go to the wire: most likely it now
     * posts, and both leave by one system call. */
    uint64_t now;
    unsigned packets = progress_receive(h, &now);
    int n = cq_maybe_ready(cq) ? cq_poll(cq, max, out) : 0;
    progress_answer(h, now, packets, n);
    return n != 0 || !cq_maybe_ready(cq) ? n : cq_poll(cq, max, out);
}

int verbena_cq_arm(struct verbena_context *ctx, struct cq *cq, bool solicited_only)
{
    if (dead(ctx))
        return -EIO;
    cq_arm(cq, solicited_only);
    progress_dispatch(ctx->host); /* something came since the last poll */
    progress_expect(ctx->host);
    return 0;
}

int verbena_srq_create(struct verbena_context *ctx, struct pd *pd, uint32_t *max_wr,
                       uint32_t *max_sge, uint32_t limit, void *owner, struct srq **out)
{
    if (dead(ctx))
        return -EIO;
    struct host_object *o = host_object_create(ctx, owner);
    int err = o == NULL ? -ENOMEM : wq_srq_create(pd, max_wr, max_sge, limit, o, out);
    if (err != 0)
        host_object_free(o);
    return err;
}

int verbena_xrc_srq_create(struct verbena_context *ctx, struct pd *pd, struct xrcd *xrcd,
                           struct cq *cq, uint32_t *max_wr, uint32_t *max_sge, void *owner,
                           struct srq **out)
{
    if (dead(ctx))
        return -EIO;
    struct host_object *o = host_object_create(ctx, owner);
    int err = o == NULL ? -ENOMEM : xrc_srq_create(pd, xrcd, cq, max_wr, max_sge, o, out);
    if (err != 0)
        host_object_free(o);
    return err;
}

uint32_t verbena_xrc_srq_number(const struct srq *srq)
{
    return srq->number;
}

int verbena_srq_destroy(struct verbena_context *ctx, struct srq *srq)
{
    if (dead(ctx))
        return -EIO;
    struct host *h = ctx->host;
    struct host_object *o = srq->owner;
    progress_grace(h);
    progress_lock(&h->events);
    int err = wq_srq_destroy(srq);
    if (err == 0)
        host_object_free(o);
    progress_unlock(&h->events);
    progress_dispatch(h);
    return err;
}

int verbena_srq_set_limit(struct verbena_context *ctx, struct srq *srq, uint32_t limit)
{
    if (dead(ctx))
        return -EIO;
    int err = wq_srq_set_limit(srq, limit);
    progress_dispatch(ctx->host);
    return err;
}

int verbena_srq_resize(struct verbena_context *ctx, struct srq *srq, uint32_t *max_wr)
{
    return dead(ctx) ? -EIO : wq_srq_resize(srq, max_wr);
}

void verbena_srq_query(struct srq *srq, uint32_t *max_wr, uint32_t *max_sge, uint32_t *limit)
{
    lock_take(&srq->lock);
    *max_wr = srq->rq.capacity;
    *max_sge = srq->rq.max_sge;
    *limit = srq->limit;
    lock_drop(&srq->lock);
}

int verbena_srq_post(struct verbena_context *ctx, struct srq *srq, const struct nic_recv_wr *wr)
{
    return dead(ctx) ? -EIO : wq_post_srq_recv(srq, wr);
}
