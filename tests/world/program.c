/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * program.c: what the programs do all the time: post sends and receives, poll, arm.
 */
#include <string.h>

#include "world.h"

enum {
    INLINE_SCRATCH_BYTES = 4096,
    LOOK_NS = 30000, /* a program that waits for solicited completions looks as often */
};

/* The remote place of a WR, made wrong where the plan says so. */
static void aim(struct world *w, struct direction *d, const struct op *op, struct nic_send_wr *wr)
{
    const struct region *r = world_region(w, d, op->remote_region);
    wr->remote_addr = r->iova + op->remote_at;
    wr->rkey = r->mr->key;
    switch (op->bad) {
    case BAD_RKEY:
        wr->rkey ^= 0x55;
        break;
    case BAD_RIGHT:
        r = op->opcode == WR_RDMA_READ ? &d->region[REGION_CELLS] : &d->region[REGION_RDSRC];
        wr->rkey = r->mr->key;
        wr->remote_addr = (r->iova + 7) & ~(uint64_t)7;
        break;
    case BAD_RKEY_PD:
        r = &w->node[d->to].foreign_region;
        wr->rkey = r->mr->key;
        wr->remote_addr = r->iova;
        break;
    case BAD_ALIGN:
        wr->remote_addr += 4;
        break;
    default:
        break;
    }
    /* IBA C9-88: of nothing at all the key is not looked at. */
    if (op->length == 0)
        wr->rkey ^= op->imm & 1 ? 0x55 : 0;
}

static uint32_t invalidated_key(const struct direction *d, const struct op *op)
{
    if (op->inv < 0)
        return op->imm;
    return mw_key((op->opcode == WR_LOCAL_INV ? d->local_inv : d->inv)[op->inv].mw);
}

/* The SGEs of a WR; inline data goes to the scratch buffer. Returns how much that is. */
static uint32_t fill_sges(struct world *w, struct direction *d, const struct op *op,
                          struct nic_sge *sge, uint8_t *scratch)
{
    uint32_t used = 0;
    for (int i = 0; i < op->slices; i++) {
        const struct region *r = world_region(w, d, op->slice[i].region);
        sge[i] = (struct nic_sge){r->iova + op->slice[i].at, op->slice[i].bytes, r->mr->key};
        if (op->bad == BAD_LKEY)
            sge[i].lkey ^= 0x55;
        if (op->bad == BAD_LKEY_RIGHT || op->bad == BAD_LKEY_PD) {
            r = op->bad == BAD_LKEY_PD ? &w->node[d->from].foreign_region : &d->region[REGION_SRC];
            sge[i].lkey = r->mr->key;
            sge[i].addr = r->iova;
        }
        if (op->flags & WR_INLINE) {
            memcpy(scratch + used, w->node[d->from].mem + r->at + op->slice[i].at,
                   op->slice[i].bytes);
            sge[i].addr = (uintptr_t)scratch + used;
            used += op->slice[i].bytes;
        }
    }
    return used;
}

static bool post_send(struct world *w, struct direction *d)
{
    struct op *op = &d->op[d->posted];
    struct nic_sge sge[MAX_SLICES];
    uint8_t scratch[INLINE_SCRATCH_BYTES];
    struct nic_send_wr wr = {
        .wr_id = wr_id_make(WR_ID_SEND, (unsigned)(d - w->dir), d->posted),
        .opcode = op->opcode,
        .flags = op->flags,
        .sg_list = sge,
        .num_sge = op->slices,
        .imm_or_inv = invalidated_key(d, op),
        .compare_add = op->compare_add,
        .swap = op->swap,
    };
    if (!(op->opcode == WR_SEND || op->opcode == WR_SEND_WITH_IMM || op->inv >= 0)) {
        aim(w, d, op, &wr);
        op->remote_generation = world_region(w, d, op->remote_region)->generation;
    }
    op->local_generation = d->region[op_is_fetch(op) ? REGION_SINK : REGION_SRC].generation;
    uint32_t used = fill_sges(w, d, op, sge, scratch);
    int err = wq_post_send(world_requester(w, d), &wr);
    memset(scratch, 0xee, used); /* inline data is copied by now */
    if (err != 0) {
        d->blocked = true;
        return false;
    }
    struct trace_event *e = world_trace(w, TRACE_POST, d->from);
    e->wc = (struct nic_wc){
        .wr_id = wr.wr_id, .opcode = (enum wc_opcode)op->opcode, .byte_len = op->length};
    d->posted++;
    return true;
}

static void post_recv(struct world *w, struct pool *pool)
{
    struct recv *r = &pool->recv[pool->posted];
    const struct region *region = &w->node[pool->node].recv_region;
    struct nic_sge sge[MAX_SLICES];
    struct nic_recv_wr wr = {
        .wr_id = wr_id_make(WR_ID_RECV, (unsigned)(pool - w->pool), pool->posted),
        .sg_list = sge,
        .num_sge = r->slices,
    };
    for (int i = 0; i < r->slices; i++)
        sge[i] = (struct nic_sge){region->iova + r->slice[i].at, r->slice[i].bytes,
                                  region->mr->key ^ (r->bad_lkey ? 0x55 : 0)};
    r->generation = region->generation;
    int err = pool->dir < 0 ? wq_post_srq_recv(w->node[pool->node].srq, &wr)
                            : wq_post_recv(world_responder(w, &w->dir[pool->dir]), &wr);
    if (err != 0)
        world_fail(w, "a receive within the depth was refused: %d", err);
    struct trace_event *e = world_trace(w, TRACE_POST_RECV, pool->node);
    e->wc = (struct nic_wc){.wr_id = wr.wr_id, .byte_len = r->bytes};
    pool->posted++;
}

static uint64_t later(struct world *w, uint32_t gap_ns)
{
    return gap_ns == 0 ? w->now_ns : w->now_ns + tape_below(w->tape, gap_ns);
}

/* Which completions a program that waits asks for. */
static bool only_solicited(struct world *w)
{
    if (w->opt.events == EVENTS_MIXED)
        return tape_below(w->tape, 2) == 1;
    return w->opt.events == EVENTS_SOLICITED;
}

static void poll(struct world *w, int node, struct cq_state *cq)
{
    struct nic_wc wc[16];
    int n;
    bool events = w->opt.events != EVENTS_NONE, armed = !events;
    watch_cqs(w, node);
    if (events && tape_below(w->tape, 4) == 3) {
        watch_arm(w, node, cq, only_solicited(w)); /* before it looks, not after */
        armed = true;
    }
    do {
        n = cq_poll(cq->cq, (int)w->opt.poll_max, wc);
        for (int i = 0; i < n; i++) {
            world_trace(w, TRACE_COMPLETION, node)->wc = wc[i];
            w->status[wc[i].status]++;
            check_completion(w, node, &wc[i]);
        }
        if (n == 0 && !armed) {
            watch_arm(w, node, cq, only_solicited(w));
            if (w->opt.events == EVENTS_MIXED)
                watch_arm(w, node, cq, only_solicited(w)); /* of two, the one that hears more */
            armed = true;
            n = 1; /* once more: what came before the arming makes no event */
        }
    } while (events && n > 0);
    cq->notified = false;
    cq->next_poll_ns = later(w, w->opt.poll_gap_ns);
    if (w->opt.events >= EVENTS_SOLICITED)
        cq->next_poll_ns += LOOK_NS;
}

static bool pool_open(struct world *w, const struct pool *p)
{
    if (p->posted >= p->n || p->posted - p->polled >= p->depth)
        return false;
    return p->dir < 0 || world_responder(w, &w->dir[p->dir]) != NULL;
}

static bool cq_open(const struct world *w, const struct cq_state *cq)
{
    return cq_maybe_ready(cq->cq) && (w->opt.events != EVENTS_ANY || cq->notified);
}

static uint64_t cq_open_ns(const struct world *w, const struct cq_state *cq)
{
    return w->opt.events >= EVENTS_SOLICITED && cq->notified ? w->now_ns : cq->next_poll_ns;
}

static bool sends_open(struct world *w, const struct direction *d)
{
    const struct qp *qp = world_requester(w, d);
    return d->posted < d->ops && qp != NULL && qp->state >= QP_STATE_RTS;
}

static void program_pool(struct world *w, struct pool *p)
{
    if (p->next_post_ns > w->now_ns || !pool_open(w, p))
        return;
    for (uint32_t k = 0; k < w->opt.recv_burst && pool_open(w, p); k++)
        post_recv(w, p);
    p->next_post_ns = later(w, w->opt.recv_gap_ns);
}

static void program_sends(struct world *w, struct direction *d)
{
    if (d->next_post_ns > w->now_ns || !sends_open(w, d))
        return;
    for (uint32_t k = 0; k < w->opt.post_burst && d->posted < d->ops; k++)
        if (!post_send(w, d))
            break;
    d->next_post_ns = later(w, w->opt.post_gap_ns);
}

void program_run(struct world *w, int node)
{
    struct node *n = &w->node[node];
    for (int i = 0; i < n->cqs; i++)
        if (cq_open(w, &n->cq[i]) && cq_open_ns(w, &n->cq[i]) <= w->now_ns)
            poll(w, node, &n->cq[i]);
    if (w->opt.srq)
        program_pool(w, &w->pool[MAX_DIRS + node]);
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        if (!w->opt.srq && d->to == node && !d->dead)
            program_pool(w, d->pool);
        if (d->from == node)
            program_sends(w, d);
    }
}

uint64_t program_next_ns(struct world *w, int node)
{
    const struct node *n = &w->node[node];
    const struct pool *srq = &w->pool[MAX_DIRS + node];
    uint64_t t = UINT64_MAX;
    for (int i = 0; i < n->cqs; i++)
        if (cq_open(w, &n->cq[i]) && cq_open_ns(w, &n->cq[i]) < t)
            t = cq_open_ns(w, &n->cq[i]);
    if (w->opt.srq && pool_open(w, srq) && srq->next_post_ns < t)
        t = srq->next_post_ns;
    for (int i = 0; i < w->dirs; i++) {
        const struct direction *d = &w->dir[i];
        if (!w->opt.srq && d->to == node && !d->dead && pool_open(w, d->pool) &&
            d->pool->next_post_ns < t)
            t = d->pool->next_post_ns;
        if (d->from == node && !d->blocked && sends_open(w, d) && d->next_post_ns < t)
            t = d->next_post_ns;
    }
    return t;
}
