/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hpcc.c: HPCC (Li et al., SIGCOMM 2019): switches write into packets how much they sent and how
 * long their queues are; of the fullest hop follows how much to have under way. Reckoned in rates:
 * the window is the rate times the base round-trip time T.
 */
#include "nic/cc/cc.h"

#include <assert.h>

#define ONE     (UINT64_C(1) << 20) /* a link that is used in full, with no queue */
#define MOST    (UINT64_C(1) << 40) /* more is the same */
#define BYTE_PS UINT64_C(8000000)   /* of a byte at 1 Mbit/s */

/* Bytes over what the link sends in this time. */
static uint64_t share(uint64_t bytes, uint64_t time_ps, uint32_t rate_mbps)
{
    unsigned __int128 whole = (unsigned __int128)time_ps * rate_mbps;
    unsigned __int128 used = (unsigned __int128)bytes * BYTE_PS * ONE / whole;
    return used < MOST ? (uint64_t)used : MOST;
}

/* Of the fullest hop between the two packets, and the time between them there; 0: none can tell. */
static uint64_t fullest(const struct cc_params *p, const struct cc_path *last,
                        const struct cc_path *now, uint64_t *time_ps)
{
    uint64_t most = 0;
    *time_ps = 0;
    for (uint32_t i = 0; i < now->hops; i++) {
        const struct cc_hop *a = &last->hop[i], *b = &now->hop[i];
        if (b->time_ps <= a->time_ps || b->tx_bytes < a->tx_bytes || b->rate_mbps == 0)
            continue;
        uint32_t queue = a->queue_bytes < b->queue_bytes ? a->queue_bytes : b->queue_bytes;
        uint64_t used = share(b->tx_bytes - a->tx_bytes, b->time_ps - a->time_ps, b->rate_mbps) +
                        share(queue, p->hpcc.base_rtt_ps, b->rate_mbps);
        if (used < most)
            continue;
        most = used;
        *time_ps = b->time_ps - a->time_ps;
    }
    return most < MOST ? most : MOST;
}

/* From the reference, which itself moves once a round trip: packets of one round trip tell of the
 * same queue, and must not all cut for it. */
static void adjust(struct cc *c, const struct cc_params *p, bool round)
{
    struct cc_hpcc_state *h = &c->hpcc;
    const struct cc_hpcc *q = &p->hpcc;
    bool full = h->used * 100 >= q->eta_percent * ONE;
    bool scale = full || h->stage >= q->max_stage;
    unsigned __int128 rate = h->reference_bps;
    if (scale && h->used == 0)
        rate = p->line_bps;
    else if (scale)
        rate = rate * q->eta_percent * ONE / (h->used * 100);
    if (rate > p->line_bps)
        rate = p->line_bps;
    c->rate_bps = (uint64_t)rate + q->step_bps;
    cc_clamp(c, p);
    if (!round)
        return;
    h->stage = scale ? 0 : h->stage + 1;
    h->reference_bps = c->rate_bps;
}

static void start(struct cc *c, const struct cc_params *p)
{
    c->hpcc = (struct cc_hpcc_state){.reference_bps = p->line_bps, .used = ONE};
}

static void path(struct cc *c, const struct cc_params *p, const struct cc_path *last,
                 const struct cc_path *now, uint64_t acked, uint64_t sent)
{
    struct cc_hpcc_state *h = &c->hpcc;
    uint64_t whole_ps = p->hpcc.base_rtt_ps, time_ps;
    assert(now->hops <= CC_MAX_HOPS && whole_ps != 0);
    if (now->hops != last->hops || now->id != last->id) {
        h->round_ends = sent; /* the first, or by another way: nothing to compare with */
        return;
    }
    uint64_t used = fullest(p, last, now, &time_ps);
    if (time_ps == 0)
        return;
    if (time_ps > whole_ps)
        time_ps = whole_ps;
    unsigned __int128 sum = (unsigned __int128)h->used * (whole_ps - time_ps);
    h->used = (uint64_t)((sum + (unsigned __int128)used * time_ps) / whole_ps);
    bool round = acked > h->round_ends;
    adjust(c, p, round);
    if (round)
        h->round_ends = sent;
}

/* A byte at least: one packet may always be under way. */
static uint64_t window(const struct cc *c, const struct cc_params *p)
{
    uint64_t bytes =
        (uint64_t)((unsigned __int128)c->rate_bps * p->hpcc.base_rtt_ps / UINT64_C(8000000000000));
    return bytes != 0 ? bytes : 1;
}

const struct cc_ops cc_hpcc_ops = {.start = start, .path = path, .window = window};
