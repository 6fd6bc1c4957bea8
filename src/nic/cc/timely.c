/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timely.c: TIMELY (Mittal et al., SIGCOMM 2015): the rate follows the slope of the round-trip time
 * between two thresholds, and the time itself outside them.
 */
#include "nic/cc/cc.h"

enum { CALM_ROUNDS = 5 };

static uint64_t lower(uint64_t rate, uint64_t part, uint64_t whole, uint32_t beta_1024)
{
    if (part > whole)
        part = whole;
    return rate - (uint64_t)((unsigned __int128)rate * part / whole * beta_1024 / 1024);
}

static void rtt(struct cc *c, const struct cc_params *p, uint64_t now_ns, uint64_t rtt_ns)
{
    (void)now_ns;
    struct cc_timely_state *t = &c->timely;
    const struct cc_timely *q = &p->timely;
    int64_t change = t->rtt_ns == 0 ? 0 : (int64_t)rtt_ns - (int64_t)t->rtt_ns;
    t->rtt_ns = rtt_ns;
    t->diff_ns = (t->diff_ns * (1024 - (int64_t)q->ewma_1024) + change * q->ewma_1024) / 1024;
    bool rising = t->diff_ns > 0;
    t->calm = rising ? 0 : t->calm + 1;
    if (rtt_ns < q->low_ns)
        c->rate_bps += q->step_bps;
    else if (rtt_ns > q->high_ns)
        c->rate_bps = lower(c->rate_bps, rtt_ns - q->high_ns, rtt_ns, q->beta_1024);
    else if (!rising)
        c->rate_bps += (t->calm >= CALM_ROUNDS ? 5 : 1) * q->step_bps;
    else
        c->rate_bps = lower(c->rate_bps, (uint64_t)t->diff_ns, q->min_rtt_ns, q->beta_1024);
    cc_clamp(c, p);
}

const struct cc_ops cc_timely_ops = {.rtt = rtt};
