/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.c: runs one world: builds two devices from the plan, connects their QPs, and turns the
 * crank: the next thing that is due (a packet, a deadline, something the program wants to do) says
 * which node runs at what time. Ends when nothing is due any more, then all must be done.
 */
#include "world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/print.h"

enum {
    MAX_STEPS = 4000000,
    QPN_SLOT = 5,
    INLINE_SCRATCH_BYTES = 4096,
};

static const uint64_t patience_ns = 60000000000; /* after the last fault */

static _Alignas(64) uint8_t arena[NODES][2][ARENA_BYTES];

void world_fail(struct world *w, const char *format, ...)
{
    va_list args;
    if (w->failed)
        return;
    w->failed = true;
    w->why_kind = format;
    va_start(args, format);
    vsnprintf(w->why, sizeof(w->why), format, args);
    va_end(args);
}

struct trace_event *world_trace(struct world *w, enum trace_kind kind, int node)
{
    struct trace_event *e = &w->trace[w->traced++ % TRACE_EVENTS];
    e->at_ns = w->now_ns;
    e->kind = kind;
    e->node = node;
    e->note = "";
    return e;
}

void world_print(const struct world *w)
{
    static const char *name[] = {"sent", "rcvd", "post", "recv", "done", "ctrl"};
    uint64_t first = w->traced < TRACE_EVENTS ? 0 : w->traced - TRACE_EVENTS;
    for (uint64_t i = first; i < w->traced; i++) {
        const struct trace_event *e = &w->trace[i % TRACE_EVENTS];
        char line[PRINT_LINE_BYTES] = "";
        if (e->kind == TRACE_SENT || e->kind == TRACE_RECEIVED)
            print_roce(line, sizeof(line), &e->h, e->payload_bytes);
        else if (e->kind != TRACE_CONTROL)
            snprintf(line, sizeof(line), "wr %d/%u/%u status %d opcode %d bytes %u",
                     (int)(e->wc.wr_id >> 40), (unsigned)(e->wc.wr_id >> 32 & 0xff),
                     (unsigned)e->wc.wr_id, e->wc.status, e->wc.opcode, e->wc.byte_len);
        printf("# %12llu ns node %d %s %s %s\n", (unsigned long long)e->at_ns, e->node,
               name[e->kind], line, e->note);
    }
}

struct region *world_region(struct world *w, struct direction *d, enum region_kind kind)
{
    if (kind == REGION_RECV)
        return &w->node[d->to].recv_region;
    if (kind == REGION_SHARED)
        return &w->node[d->to].shared_region;
    return &d->region[kind];
}

uint32_t world_offset(const struct direction *d, struct psn psn)
{
    return (uint32_t)psn_diff(psn, psn_make(d->psn));
}

uint32_t world_answered(struct world *w, const struct direction *d)
{
    const struct requester *r = &world_requester(w, d)->req;
    return r->window_max == 0 ? 0 : world_offset(d, r->una);
}

struct qp *world_requester(struct world *w, const struct direction *d)
{
    return w->node[d->from].qp[d->pair];
}

struct qp *world_responder(struct world *w, const struct direction *d)
{
    return w->node[d->to].qp[d->pair];
}

void world_control(struct world *w, uint64_t at_ns, enum control_kind kind, int node, int pair)
{
    assert(w->controls < MAX_CONTROLS);
    w->control[w->controls++] =
        (struct control){.at_ns = at_ns, .kind = kind, .node = node, .pair = pair};
}

/* ---- building and taking down ---- */

static void fill(struct world *w, struct node *n)
{
    uint64_t x = w->seed * 0x9e3779b97f4a7c15u + (uint64_t)(n - w->node) + 1;
    uint32_t bytes = n->mem_bytes + GUARD_BYTES;
    for (uint32_t i = 0; i < bytes; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(n->mem + i, &x, 8);
    }
}

static void fill_cells(struct node *n, const struct region *r)
{
    for (uint64_t i = 0; i < r->bytes / 8; i++) {
        uint64_t value = i % 3;
        memcpy(n->mem + r->at + i * 8, &value, 8);
    }
}

static void reg(struct world *w, int node, struct region *r)
{
    struct node *n = &w->node[node];
    unsigned access = r->access;
    uint64_t iova = (uintptr_t)n->mem + r->at;
    switch (w->opt.small ? 0 : tape_below(w->tape, 3)) {
    case 1:
        access |= ACCESS_ZERO_BASED;
        iova = 0;
        break;
    case 2:
        iova += 0x7100000000000000u;
        break;
    default:
        break;
    }
    r->iova = iova;
    struct pd *pd = r == &n->foreign_region ? n->foreign_pd : n->pd;
    int err = mem_reg(pd, n->mem + r->at, r->bytes, iova, access, &r->mr);
    assert(err == 0);
}

static void unreg(struct region *r)
{
    mem_mr_revoke(r->mr);
    mem_mr_free(r->mr);
}

static void build_cqs(struct world *w, struct node *n)
{
    const struct options *o = &w->opt;
    uint32_t pairs = (uint32_t)o->pairs;
    n->cqs = o->cq_mode == 0 ? 1 : o->cq_mode == 1 ? 2 : 2 * o->pairs;
    for (int i = 0; i < n->cqs; i++) {
        uint32_t sends = o->cq_mode == 2 ? o->send_depth : pairs * o->send_depth;
        uint32_t recvs = o->cq_mode == 2 || o->srq ? o->recv_depth : pairs * o->recv_depth;
        uint32_t n_entries = o->cq_mode == 0 ? sends + recvs : i % 2 == 0 ? sends : recvs;
        n->cq[i] = (struct cq_state){0};
        int err = cq_create(n->nic, (int)n_entries, &n->cq[i], &n->cq[i].cq);
        assert(err == 0);
        if (o->events)
            cq_arm(n->cq[i].cq, false);
    }
}

static void build_qps(struct world *w, struct node *n)
{
    const struct options *o = &w->opt;
    uint32_t max_wr = o->recv_depth, max_sge = MAX_SLICES;
    n->srq = NULL;
    if (o->srq) {
        int err = wq_srq_create(n->pd, &max_wr, &max_sge, 0, NULL, &n->srq);
        assert(err == 0);
        n->pool[0].srq = n->srq;
    }
    for (int i = 0; i < o->pairs; i++) {
        struct qp_init init = {
            .type = QP_TYPE_RC,
            .pd = n->pd,
            .send_cq = n->cq[o->cq_mode == 2 ? 2 * i : 0].cq,
            .recv_cq = n->cq[o->cq_mode == 0   ? 0
                             : o->cq_mode == 1 ? 1
                                               : 2 * i + 1]
                           .cq,
            .srq = n->srq,
            .sq_sig_all = o->sig_all,
            .owner = &n->qp[i],
            .cap = {o->send_depth, o->recv_depth, o->sges, MAX_SLICES, o->inline_bytes},
        };
        int err = qp_create(n->nic, &init, &n->qp[i]);
        assert(err == 0);
        if (!o->srq)
            n->pool[i].qp = n->qp[i];
    }
}

static void build_node(struct world *w, int index)
{
    struct node *n = &w->node[index];
    struct nic_config config = {
        .seed = w->seed * 2 + (uint64_t)index,
        .window_bytes = w->opt.window_bytes,
    };
    int err = nic_create(&config, &n->nic);
    assert(err == 0);
    err = nic_add_qpns(n->nic, QPN_SLOT);
    assert(err == 0);
    err = mem_pd_create(n->nic, &n->pd);
    assert(err == 0);
    err = mem_pd_create(n->nic, &n->foreign_pd);
    assert(err == 0);
    n->addr = (struct net_addr){
        .b = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(index + 1)}
    };
    if (w->opt.v6)
        n->addr = (struct net_addr){
            .b = {0xfd, [15] = (uint8_t)(index + 1)}
        };
    fill(w, n);
    fill_cells(n, &n->shared_region);
    reg(w, index, &n->recv_region);
    reg(w, index, &n->shared_region);
    reg(w, index, &n->foreign_region);
    build_cqs(w, n);
    build_qps(w, n);
}

static void start_qp(struct world *w, int node, int pair)
{
    const struct options *o = &w->opt;
    struct nic_qp_attr a = {
        .state = QP_STATE_RTS,
        .timeout = o->timeout,
        .retry_cnt = o->retry_cnt,
        .rnr_retry = o->rnr_retry,
        .max_rd_atomic = o->rd_atomic[node],
        .sq_psn = w->dir[pair * 2 + node].psn,
    };
    int err = qp_modify(w->node[node].qp[pair], &a,
                        QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
                            QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC);
    assert(err == 0);
}

static void connect_qp(struct world *w, int node, int pair)
{
    const struct options *o = &w->opt;
    struct nic_qp_attr a = {
        .state = QP_STATE_INIT,
        .port_num = 1,
        .access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
        .path = {.local = w->node[node].addr,
                 .remote = w->node[1 - node].addr,
                 .udp_sport = (uint16_t)(0xc000 + pair),
                 .hop_limit = 64},
        .path_mtu_bytes = (uint16_t)o->mtu,
        .min_rnr_timer = o->rnr_timer,
        .max_dest_rd_atomic = o->dest_rd_atomic[node],
        .rq_psn = w->dir[pair * 2 + 1 - node].psn,
        .dest_qpn = w->node[1 - node].qp[pair]->qpn,
    };
    struct qp *qp = w->node[node].qp[pair];
    int err =
        qp_modify(qp, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    assert(err == 0);
    a.state = QP_STATE_RTR;
    err = qp_modify(qp, &a,
                    QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                        QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
    assert(err == 0);
    if (!o->late_rts[node])
        start_qp(w, node, pair);
}

static void build(struct world *w)
{
    for (int i = 0; i < NODES; i++) {
        w->node[i].mem = arena[i][0];
        w->node[i].ideal = arena[i][1];
        build_node(w, i);
        link_init(w, i);
    }
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        fill_cells(&w->node[d->to], &d->region[REGION_CELLS]);
        for (int k = REGION_SRC; k <= REGION_CELLS; k++)
            reg(w, k <= REGION_SINK ? d->from : d->to, &d->region[k]);
        for (int k = 0; k < d->invs; k++)
            reg(w, d->to, &d->inv[k]);
        for (int k = 0; k < d->local_invs; k++)
            reg(w, d->from, &d->local_inv[k]);
        d->una_seen = psn_make(d->psn);
    }
    for (int i = 0; i < NODES; i++) {
        struct node *n = &w->node[i];
        for (int pair = 0; pair < w->opt.pairs; pair++)
            connect_qp(w, i, pair);
        memcpy(n->ideal, n->mem, n->mem_bytes + GUARD_BYTES);
    }
}

static void take_down(struct world *w)
{
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        for (int k = REGION_SRC; k <= REGION_CELLS; k++)
            unreg(&d->region[k]);
        for (int k = 0; k < d->invs; k++)
            unreg(&d->inv[k]);
        for (int k = 0; k < d->local_invs; k++)
            unreg(&d->local_inv[k]);
    }
    for (int i = 0; i < NODES; i++) {
        struct node *n = &w->node[i];
        for (int k = 0; k < COUNTER_COUNT; k++)
            w->counter[k] += counters_get(&n->nic->counters, (enum nic_counter)k);
        for (int pair = 0; pair < w->opt.pairs; pair++) {
            qp_unlink(n->qp[pair]);
            qp_free(n->qp[pair]);
        }
        int err = n->srq == NULL ? 0 : wq_srq_destroy(n->srq);
        for (int k = 0; k < n->cqs; k++)
            err |= cq_destroy(n->cq[k].cq);
        unreg(&n->recv_region);
        unreg(&n->shared_region);
        unreg(&n->foreign_region);
        err |= mem_pd_destroy(n->pd) | mem_pd_destroy(n->foreign_pd);
        if (err != 0)
            world_fail(w, "objects of node %d cannot be destroyed", i);
        else
            nic_destroy(n->nic);
        link_fini(w, i);
    }
}

/* ---- the programs ---- */

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
}

static bool post_send(struct world *w, struct direction *d)
{
    const struct op *op = &d->op[d->posted];
    struct nic_sge sge[MAX_SLICES];
    uint8_t scratch[INLINE_SCRATCH_BYTES];
    uint32_t used = 0;
    struct nic_send_wr wr = {
        .wr_id = wr_id_make(WR_ID_SEND, (unsigned)(d - w->dir), d->posted),
        .opcode = op->opcode,
        .flags = op->flags,
        .sg_list = sge,
        .num_sge = op->slices,
        .imm_or_inv = op->inv < 0                  ? op->imm
                      : op->opcode == WR_LOCAL_INV ? d->local_inv[op->inv].mr->key
                                                   : d->inv[op->inv].mr->key,
        .compare_add = op->compare_add,
        .swap = op->swap,
    };
    if (!(op->opcode == WR_SEND || op->opcode == WR_SEND_WITH_IMM || op->inv >= 0))
        aim(w, d, op, &wr);
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
    const struct recv *r = &pool->recv[pool->posted];
    const struct region *region = &w->node[pool->node].recv_region;
    struct nic_sge sge[MAX_SLICES];
    struct nic_recv_wr wr = {
        .wr_id = wr_id_make(WR_ID_RECV, (unsigned)(pool - w->node[pool->node].pool), pool->posted),
        .sg_list = sge,
        .num_sge = r->slices,
    };
    for (int i = 0; i < r->slices; i++)
        sge[i] = (struct nic_sge){region->iova + r->slice[i].at, r->slice[i].bytes,
                                  region->mr->key ^ (r->bad_lkey ? 0x55 : 0)};
    int err = pool->srq != NULL ? wq_post_srq_recv(pool->srq, &wr) : wq_post_recv(pool->qp, &wr);
    if (err != 0)
        world_fail(w, "a receive within the depth was refused: %d", err);
    struct trace_event *e = world_trace(w, TRACE_POST_RECV, pool->node);
    e->wc = (struct nic_wc){.wr_id = wr.wr_id, .byte_len = r->bytes};
    pool->posted++;
}

static void poll(struct world *w, int node, struct cq_state *cq)
{
    struct nic_wc wc[16];
    int n;
    bool armed = !w->opt.events;
    do {
        n = cq_poll(cq->cq, (int)w->opt.poll_max, wc);
        for (int i = 0; i < n; i++) {
            world_trace(w, TRACE_COMPLETION, node)->wc = wc[i];
            w->status[wc[i].status]++;
            check_completion(w, node, &wc[i]);
        }
        if (n == 0 && !armed) {
            cq_arm(cq->cq, false);
            armed = true;
            n = 1; /* once more: what came before the arming makes no event */
        }
    } while (w->opt.events && n > 0);
    cq->notified = false;
    cq->next_poll_ns = w->now_ns;
    if (w->opt.poll_gap_ns != 0)
        cq->next_poll_ns += tape_below(w->tape, w->opt.poll_gap_ns);
}

static bool pool_open(const struct pool *p)
{
    return p->posted < p->n && p->posted - p->polled < p->depth;
}

static bool cq_open(const struct world *w, const struct cq_state *cq)
{
    return cq_maybe_ready(cq->cq) && (!w->opt.events || cq->notified);
}

static uint64_t later(struct world *w, uint32_t gap_ns)
{
    return gap_ns == 0 ? w->now_ns : w->now_ns + tape_below(w->tape, gap_ns);
}

static void program_run(struct world *w, int node)
{
    struct node *n = &w->node[node];
    for (int i = 0; i < n->cqs; i++)
        if (cq_open(w, &n->cq[i]) && n->cq[i].next_poll_ns <= w->now_ns)
            poll(w, node, &n->cq[i]);
    for (int i = 0; i < (w->opt.srq ? 1 : w->opt.pairs); i++) {
        struct pool *p = &n->pool[i];
        if (p->next_post_ns > w->now_ns)
            continue;
        for (uint32_t k = 0; k < w->opt.recv_burst && pool_open(p); k++)
            post_recv(w, p);
        p->next_post_ns = later(w, w->opt.recv_gap_ns);
    }
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        if (d->from != node || d->next_post_ns > w->now_ns)
            continue;
        for (uint32_t k = 0; k < w->opt.post_burst && d->posted < d->ops; k++)
            if (!post_send(w, d))
                break;
        d->next_post_ns = later(w, w->opt.post_gap_ns);
    }
}

static uint64_t program_next_ns(const struct world *w, int node)
{
    const struct node *n = &w->node[node];
    uint64_t t = UINT64_MAX;
    for (int i = 0; i < n->cqs; i++)
        if (cq_open(w, &n->cq[i]) && n->cq[i].next_poll_ns < t)
            t = n->cq[i].next_poll_ns;
    for (int i = 0; i < (w->opt.srq ? 1 : w->opt.pairs); i++)
        if (pool_open(&n->pool[i]) && n->pool[i].next_post_ns < t)
            t = n->pool[i].next_post_ns;
    for (int i = 0; i < w->dirs; i++) {
        const struct direction *d = &w->dir[i];
        if (d->from == node && d->posted < d->ops && !d->blocked && d->next_post_ns < t)
            t = d->next_post_ns;
    }
    return t;
}

/* Queues change their size under way: never below what they hold. */
static void resize(struct world *w, struct node *n)
{
    for (int i = 0; i < n->cqs; i++)
        if (cq_resize(n->cq[i].cq, (int)(n->cq[i].cq->capacity + tape_below(w->tape, 64))) != 0)
            world_fail(w, "a larger CQ was refused");
    uint32_t max_wr = n->srq == NULL ? 0 : n->srq->rq.capacity + tape_below(w->tape, 8);
    if (n->srq != NULL && wq_srq_resize(n->srq, &max_wr) != 0)
        world_fail(w, "a larger SRQ was refused");
}

static void control_run(struct world *w, struct control *c)
{
    static const enum qp_state to[] = {QP_STATE_ERR, QP_STATE_SQD, QP_STATE_RTS};
    static const char *note[] = {"to ERR", "to SQD", "to RTS", "start", "resize"};
    struct node *n = &w->node[c->node];
    struct qp *qp = n->qp[c->pair];
    struct direction *d = &w->dir[c->pair * 2 + c->node];
    struct nic_qp_attr a = {.en_sqd_async_notify = true};
    c->done = true;
    if ((c->kind == CONTROL_SQD && qp->state != QP_STATE_RTS) ||
        (c->kind == CONTROL_RTS && qp->state != QP_STATE_SQD))
        return;
    world_trace(w, TRACE_CONTROL, c->node)->note = note[c->kind];
    d->blocked = false;
    if (c->kind == CONTROL_START) {
        if (qp->state == QP_STATE_RTR)
            start_qp(w, c->node, c->pair);
        return;
    }
    if (c->kind == CONTROL_RESIZE) {
        resize(w, n);
        return;
    }
    if (c->kind == CONTROL_ERR)
        w->killed[c->pair] = true;
    if (c->kind == CONTROL_RTS)
        d->wire.drained = false;
    a.state = to[c->kind];
    if (qp_modify(qp, &a,
                  QP_ATTR_STATE | (a.state == QP_STATE_SQD ? QP_ATTR_EN_SQD_ASYNC_NOTIFY : 0)) != 0)
        world_fail(w, "modify to state %d was refused", a.state);
}

/* A program that sees one end of a connection fail gives up the other, sooner or later; on a
 * perfect network not before the NAK is there. */
static void follow_errors(struct world *w)
{
    uint64_t wait_ns = w->opt.perfect ? 50000000 : 0;
    for (int pair = 0; pair < w->opt.pairs; pair++) {
        bool err0 = w->node[0].qp[pair]->state == QP_STATE_ERR;
        bool err1 = w->node[1].qp[pair]->state == QP_STATE_ERR;
        if (err0 == err1)
            continue;
        int other = err0 ? 1 : 0;
        bool planned = false;
        for (int i = 0; i < w->controls; i++)
            planned = planned || (w->control[i].kind == CONTROL_ERR && !w->control[i].done &&
                                  w->control[i].node == other && w->control[i].pair == pair);
        if (!planned)
            world_control(w, w->now_ns + wait_ns + 100 * tape_below(w->tape, 65536), CONTROL_ERR,
                          other, pair);
    }
}

/* ---- the crank ---- */

static void node_events(struct world *w, struct node *n)
{
    struct nic_event event;
    struct cq_state *cq;
    while ((cq = nic_notify_next(n->nic)) != NULL)
        cq->notified = true;
    while (nic_event_next(n->nic, &event)) {
        if (event.type == EVENT_QP_LAST_WQE_REACHED && ++n->last_wqes > w->opt.pairs)
            world_fail(w, "a second LAST_WQE event of a QP");
        if (event.type == EVENT_SQ_DRAINED)
            sniff_drained(w, (int)(n - w->node), (int)((struct qp **)event.owner - n->qp));
        if (event.type == EVENT_CQ_ERR || event.type == EVENT_QP_FATAL)
            world_fail(w, "async event %d", event.type);
    }
}

static void node_run(struct world *w, int index)
{
    struct node *n = &w->node[index];
    n->last_run_ns = w->now_ns;
    link_deliver(w, &w->link[index]);
    if (nic_deadline(n->nic) <= w->now_ns) {
        nic_advance(n->nic, w->now_ns);
        check_step(w);
    }
    program_run(w, index);
    n->output_left = nic_output(n->nic, w->now_ns, &w->link[1 - index].sink, w->opt.max_trains);
    node_events(w, n);
    if (!n->output_left && !nic_has_output(n->nic))
        sniff_idle(w, index);
    check_step(w);
    follow_errors(w);
}

static uint64_t node_next_ns(const struct world *w, int index)
{
    const struct node *n = &w->node[index];
    uint64_t t = program_next_ns(w, index);
    uint64_t packet = link_next_ns(&w->link[index]);
    uint64_t deadline = nic_deadline(n->nic);
    t = packet < t ? packet : t;
    t = deadline < t ? deadline : t;
    if (n->output_left || nic_has_output(n->nic))
        t = w->now_ns;
    if (t == UINT64_MAX)
        return t;
    if (t < n->last_run_ns + w->opt.tick_ns)
        t = n->last_run_ns + w->opt.tick_ns;
    return t < w->now_ns ? w->now_ns : t;
}

static uint64_t control_next_ns(const struct world *w)
{
    uint64_t t = UINT64_MAX;
    for (int i = 0; i < w->controls; i++)
        if (!w->control[i].done && w->control[i].at_ns < t)
            t = w->control[i].at_ns;
    return t < w->now_ns ? w->now_ns : t;
}

static void run(struct world *w)
{
    for (uint32_t step = 0; !w->failed; step++) {
        uint64_t at[NODES] = {node_next_ns(w, 0), node_next_ns(w, 1)};
        uint64_t t = at[0] < at[1] ? at[0] : at[1];
        uint64_t control = control_next_ns(w);
        t = control < t ? control : t;
        if (t == UINT64_MAX)
            return;
        if (t > w->fault_end_ns + patience_ns || step == MAX_STEPS) {
            world_fail(w, "stuck: not done at %llu ns after %u steps", (unsigned long long)t, step);
            return;
        }
        w->now_ns = t;
        w->steps++;
        for (int i = 0; i < w->controls; i++)
            if (!w->control[i].done && w->control[i].at_ns <= t)
                control_run(w, &w->control[i]);
        for (int i = 0; i < NODES; i++)
            node_events(w, &w->node[i]);
        follow_errors(w);
        for (int i = 0; i < NODES; i++)
            if (at[i] <= t)
                node_run(w, i);
    }
}

bool world_run(struct world *w, struct tape *tape, uint64_t seed)
{
    memset(w, 0, offsetof(struct world, trace));
    w->traced = 0;
    w->failed = false;
    w->tape = tape;
    w->seed = seed;
    plan_draw(w);
    build(w);
    run(w);
    if (!w->failed) {
        ideal_run(w);
        check_end(w);
    }
    take_down(w);
    w->virtual_ns += w->now_ns;
    w->packets += w->sent_packets;
    w->faults += w->fault_count;
    return !w->failed;
}
