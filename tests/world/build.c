/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build.c: makes the devices, queues and regions of a world as planned, connects the first pairs,
 * and takes all of it down again.
 */
#include <assert.h>
#include <string.h>

#include "../nic/window.h"
#include "world.h"

enum { QPN_SLOT = 5 };

static _Alignas(64) uint8_t arena[NODES][2][ARENA_BYTES];

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

void build_region(struct world *w, int node, struct region *r)
{
    struct node *n = &w->node[node];
    unsigned access = r->access;
    uint64_t iova = (uintptr_t)n->mem + r->at;
    switch (w->opt.small ? 0 : tape_below(w->tape, 3)) {
    case 1:
        if (access & ACCESS_MW_BIND)
            break; /* it takes no windows then */
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

/* A region with a window of type 2, to be bound when the QP lives. */
static void build_window(struct world *w, int node, struct region *r)
{
    r->access = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND;
    build_region(w, node, r);
    int err = mw_create(w->node[node].pd, MW_TYPE_2, &r->mw);
    assert(err == 0);
}

static void bind_window(struct region *r, struct qp *qp)
{
    unsigned access = ACCESS_REMOTE_WRITE | (r->mr->key & 1 ? ACCESS_ZERO_BASED : 0);
    bool bound = window_bind(qp, r->mw, r->mr, r->iova, r->bytes, access);
    assert(bound);
}

/* Those that a pair which begins to live will invalidate. */
static void bind_windows(struct world *w, struct direction *d)
{
    if (d->dead)
        return;
    for (int k = 0; k < d->invs; k++)
        bind_window(&d->inv[k], world_responder(w, d));
    for (int k = 0; k < d->local_invs; k++)
        bind_window(&d->local_inv[k], world_requester(w, d));
}

static void unreg(struct region *r)
{
    if (r->mw != NULL) {
        mw_revoke(r->mw);
        mw_free(r->mw);
    }
    mem_mr_revoke(r->mr);
    mem_mr_free(r->mr);
}

static void build_cqs(struct world *w, struct node *n)
{
    const struct options *o = &w->opt;
    uint32_t qps = (uint32_t)n->slots;
    n->cqs = o->cq_mode == 0 ? 1 : o->cq_mode == 1 ? 2 : 2 * n->slots;
    for (int i = 0; i < n->cqs; i++) {
        uint32_t sends = o->cq_mode == 2 ? o->send_depth : qps * o->send_depth;
        uint32_t recvs = o->cq_mode == 2 || o->srq ? o->recv_depth : qps * o->recv_depth;
        uint32_t entries = o->cq_mode == 0 ? sends + recvs : i % 2 == 0 ? sends : recvs;
        if (o->overflow)
            entries = tape_range(w->tape, 1, entries / 2 + 1);
        n->cq[i] = (struct cq_state){0};
        int err = cq_create(n->nic, (int)(entries == 0 ? 1 : entries), &n->cq[i], &n->cq[i].cq);
        assert(err == 0);
    }
    for (int i = 0; i < n->cqs && o->events != EVENTS_NONE; i++)
        watch_arm(w, (int)(n - w->node), &n->cq[i], o->events == EVENTS_SOLICITED);
}

static void build_srq(struct world *w, struct node *n)
{
    uint32_t max_wr = w->opt.recv_depth, max_sge = MAX_SLICES;
    int err = wq_srq_create(n->pd, &max_wr, &max_sge, w->opt.srq_limit, n, &n->srq);
    assert(err == 0);
    n->srq_limit = w->opt.srq_limit; /* as long as nothing is taken, nothing is said */
}

void build_qp(struct world *w, int node, int slot)
{
    const struct options *o = &w->opt;
    struct node *n = &w->node[node];
    struct qp_init init = {
        .type = QP_TYPE_RC,
        .pd = n->pd,
        .send_cq = n->cq[o->cq_mode == 2 ? 2 * slot : 0].cq,
        .recv_cq = n->cq[o->cq_mode == 0   ? 0
                         : o->cq_mode == 1 ? 1
                                           : 2 * slot + 1]
                       .cq,
        .srq = n->srq,
        .sq_sig_all = o->sig_all,
        .owner = &n->slot[slot],
        .cap = {o->send_depth, o->recv_depth, o->sges, MAX_SLICES, o->inline_bytes},
    };
    int err = qp_create(n->nic, &init, &n->slot[slot].qp);
    assert(err == 0);
    n->slot[slot].pair = -1;
}

static void build_node(struct world *w, int index)
{
    struct node *n = &w->node[index];
    struct nic_config config = {
        .seed = w->seed * NODES + (uint64_t)index,
        .window_bytes = w->opt.window_bytes,
    };
    marks_config(w, index, &config.congestion);
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
    build_region(w, index, &n->recv_region);
    build_region(w, index, &n->shared_region);
    build_region(w, index, &n->foreign_region);
    build_cqs(w, n);
    n->srq = NULL;
    if (w->opt.srq)
        build_srq(w, n);
    for (int i = 0; i < n->slots; i++)
        build_qp(w, index, i);
}

void build_start(struct world *w, int pair, int side)
{
    const struct options *o = &w->opt;
    const struct end *e = &w->pair[pair].end[side];
    struct nic_qp_attr a = {
        .state = QP_STATE_RTS,
        .timeout = o->timeout,
        .retry_cnt = o->retry_cnt,
        .rnr_retry = o->rnr_retry,
        .max_rd_atomic = o->rd_atomic[e->node],
        .sq_psn = world_direction(w, pair, side, true)->psn,
    };
    unsigned paced = pace_mask(w, e, &a);
    int err = qp_modify(w->node[e->node].slot[e->slot].qp, &a,
                        QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
                            QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC | paced);
    assert(err == 0);
    pace_begin(w, e);
}

static void connect_end(struct world *w, int pair, int side)
{
    const struct options *o = &w->opt;
    const struct pair *p = &w->pair[pair];
    const struct end *e = &p->end[side], *peer = &p->end[p->self ? side : 1 - side];
    struct nic_qp_attr a = {
        .state = QP_STATE_INIT,
        .port_num = 1,
        .access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
        .path = {.local = w->node[e->node].addr,
                 .remote = w->node[peer->node].addr,
                 .udp_sport = (uint16_t)(0xc000 + pair),
                 .rate = e->path_rate & 0xfff,
                 .hop_limit = 64},
        .path_mtu_bytes = (uint16_t)o->mtu,
        .min_rnr_timer = o->rnr_timer,
        .max_dest_rd_atomic = o->dest_rd_atomic[e->node],
        .rq_psn = world_direction(w, pair, side, false)->psn,
        .dest_qpn = w->node[peer->node].slot[peer->slot].qp->qpn,
    };
    struct slot *s = &w->node[e->node].slot[e->slot];
    s->pair = pair;
    s->side = side;
    s->last_wqes = s->fatals = s->comm_ests = 0;
    s->paced = (struct paced){0};
    s->marks = 0;
    s->cnp_ns = 0;
    int err = qp_modify(s->qp, &a,
                        QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    assert(err == 0);
    a.state = QP_STATE_RTR;
    err = qp_modify(s->qp, &a,
                    QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                        QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
    assert(err == 0);
}

void build_connect(struct world *w, int pair)
{
    struct pair *p = &w->pair[pair];
    p->state = PAIR_LIVE;
    connect_end(w, pair, 0);
    if (!p->self)
        connect_end(w, pair, 1);
    bind_windows(w, &w->dir[pair * 2]);
    bind_windows(w, &w->dir[pair * 2 + 1]);
    for (int side = 0; side < (p->self ? 1 : 2); side++)
        if (!w->opt.late_rts[p->end[side].node] || p->successor)
            build_start(w, pair, side);
}

static void build_direction(struct world *w, struct direction *d)
{
    fill_cells(&w->node[d->to], &d->region[REGION_CELLS]);
    for (int k = REGION_SRC; k <= REGION_CELLS; k++)
        build_region(w, k <= REGION_SINK ? d->from : d->to, &d->region[k]);
    for (int k = 0; k < d->invs; k++)
        build_window(w, d->to, &d->inv[k]);
    for (int k = 0; k < d->local_invs; k++)
        build_window(w, d->from, &d->local_inv[k]);
    d->una_seen = psn_make(d->psn);
}

void build_all(struct world *w)
{
    for (int i = 0; i < w->opt.nodes; i++) {
        w->node[i].mem = arena[i][0];
        w->node[i].ideal = arena[i][1];
        build_node(w, i);
        link_init(w, i);
    }
    for (int i = 0; i < w->dirs; i++)
        build_direction(w, &w->dir[i]);
    for (int i = 0; i < w->pairs; i++)
        if (!w->pair[i].successor)
            build_connect(w, i);
    for (int i = 0; i < w->opt.nodes; i++) {
        struct node *n = &w->node[i];
        memcpy(n->ideal, n->mem, n->mem_bytes + GUARD_BYTES);
    }
}

static void take_down_node(struct world *w, int index)
{
    struct node *n = &w->node[index];
    for (int k = 0; k < COUNTER_COUNT; k++)
        w->counter[k] += counters_get(&n->nic->counters, (enum nic_counter)k);
    for (int i = 0; i < n->slots; i++) {
        qp_unlink(n->slot[i].qp);
        qp_free(n->slot[i].qp);
    }
    int err = n->srq == NULL ? 0 : wq_srq_destroy(n->srq);
    for (int k = 0; k < n->cqs; k++)
        err |= cq_destroy(n->cq[k].cq);
    unreg(&n->recv_region);
    unreg(&n->shared_region);
    unreg(&n->foreign_region);
    err |= mem_pd_destroy(n->pd) | mem_pd_destroy(n->foreign_pd);
    if (err != 0)
        world_fail(w, "objects of node %d cannot be destroyed", index);
    else
        nic_destroy(n->nic);
    link_fini(w, index);
}

void build_take_down(struct world *w)
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
    for (int i = 0; i < w->opt.nodes; i++)
        take_down_node(w, i);
}
