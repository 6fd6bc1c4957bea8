/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pace.c: rate limits in a world. Only seeds whose highest bit is set draw any, so that all other
 * seeds stay what they are. The model is a bucket of its own beside the engine's: what leaves must
 * fit into it, and who has something to send and room in it may not wait.
 */
#include <assert.h>

#include "nic/pacer.h"
#include "world.h"

enum {
    UNITS_PER_BYTE = 8 * 1000 * 1000, /* of what is owed: 1 kbit/s pays one of them each ns */
    HEADERS_BYTES = 64,               /* room is asked for a packet with all that one may have */
    USUAL_BURST_MS = 10,
    CHANGES = 6,
};

static void draw(struct world *w, struct end *e)
{
    static const uint32_t kbps[] = {0, 1000, 20000, 300000, 5000000, 80000000};
    static const uint32_t burst[] = {0, 1, 300, 5000, 100000};
    e->kbps = kbps[tape_below(w->tape, 6)];
    e->burst_bytes = burst[tape_below(w->tape, 5)];
}

void pace_draw(struct world *w)
{
    if (!(w->seed & PACED_SEEDS) || w->opt.small != 0)
        return;
    w->opt.paced = true;
    for (int i = 0; i < w->pairs; i++)
        for (int side = 0; side < 2; side++) {
            struct end *e = &w->pair[i].end[side];
            if (side == 1 && w->pair[i].self) { /* one QP, which either may start */
                *e = e[-1];
                continue;
            }
            draw(w, e);
            e->path_rate = (uint16_t)(tape_below(w->tape, 4) == 3 ? tape_range(w->tape, 1, 8) : 0);
        }
    for (int i = 0; i < CHANGES; i++) {
        int pair = (int)tape_below(w->tape, (uint32_t)w->opt.pairs);
        int side = w->pair[pair].self ? 0 : (int)tape_below(w->tape, 2);
        world_control(w, tape_below(w->tape, 1u << tape_range(w->tape, 8, 24)), CONTROL_PACE, pair,
                      side);
    }
}

static uint64_t burst_bytes(const struct paced *p)
{
    uint64_t burst = p->burst_bytes != 0 ? p->burst_bytes : (uint64_t)p->kbps * USUAL_BURST_MS / 8;
    return burst == 0 ? 1 : burst;
}

static void pay(struct paced *p, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns > p->paid_ns ? now_ns - p->paid_ns : 0;
    p->paid_ns = now_ns;
    if (p->kbps == 0 || passed_ns > p->owed / p->kbps)
        p->owed = 0;
    else
        p->owed -= passed_ns * p->kbps;
}

unsigned pace_mask(const struct world *w, const struct end *e, struct nic_qp_attr *a)
{
    if (!w->opt.paced)
        return 0;
    a->rate_limit_kbps = e->kbps;
    a->max_burst_bytes = e->burst_bytes;
    return QP_ATTR_RATE_LIMIT;
}

void pace_begin(struct world *w, const struct end *e)
{
    struct node *n = &w->node[e->node];
    struct paced *p = &n->slot[e->slot].paced;
    uint32_t path = e->path_rate * (uint32_t)PATH_RATE_KBPS;
    /* A limit holds from when the engine last heard what time it is. */
    pay(p, atomic_load(&n->nic->now_ns));
    p->kbps = e->kbps == 0 || (path != 0 && path < e->kbps) ? path : e->kbps;
    p->burst_bytes = e->burst_bytes;
}

void pace_change(struct world *w, struct end *e)
{
    struct qp *qp = w->node[e->node].slot[e->slot].qp;
    struct nic_qp_attr a = {0};
    if (qp->state != QP_STATE_RTS && (qp->state != QP_STATE_SQD || qp->sqd_pending))
        return;
    draw(w, e);
    if (qp_modify(qp, &a, pace_mask(w, e, &a)) != 0)
        world_fail(w, "another rate limit was refused");
    pace_begin(w, e);
}

void pace_sent(struct world *w, int node, int slot, uint32_t bytes)
{
    struct paced *p = &w->node[node].slot[slot].paced;
    uint64_t most = burst_bytes(p);
    pay(p, w->now_ns);
    if (p->kbps == 0)
        return;
    w->paced_packets++;
    p->owed += (uint64_t)bytes * UNITS_PER_BYTE;
    most = bytes > most ? bytes : most;
    if (p->owed > most * UNITS_PER_BYTE)
        world_fail(w, "node %d slot %d: %llu bytes are owed at %u kbit/s, %llu may be", node, slot,
                   (unsigned long long)(p->owed / UNITS_PER_BYTE), p->kbps,
                   (unsigned long long)most);
}

bool pace_waits(struct world *w, const struct direction *d)
{
    const struct end *e = &w->pair[d->pair].end[d->side];
    struct paced *p = &w->node[e->node].slot[e->slot].paced;
    uint64_t burst = burst_bytes(p), need = w->opt.mtu + HEADERS_BYTES;
    pay(p, w->now_ns);
    if (p->kbps == 0)
        return false;
    need = need < burst ? need : burst;
    bool waits = p->owed > (burst - need) * UNITS_PER_BYTE;
    w->paced_waits += waits;
    return waits;
}
