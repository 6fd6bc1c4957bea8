/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcqcn.c: the reaction point of DCQCN. A CNP cuts the rate by alpha / 2; alpha is how often CNPs
 * came lately. Afterwards the rate goes half way back to where it was, F times, then beyond by
 * small steps, and by large ones when both the timer and the byte counter have ticked more than F
 * times.
 */
#include "nic/cc/cc.h"

#define ALPHA_ONE (UINT64_C(1) << 40)

static void start(struct cc *c, const struct cc_params *p)
{
    c->dcqcn = (struct cc_dcqcn_state){.target_bps = p->line_bps, .alpha = ALPHA_ONE};
}

static void update_alpha(struct cc_dcqcn_state *d, const struct cc_params *p, bool cnp)
{
    uint64_t keep = (d->alpha * (1024 - p->dcqcn.g_1024) + 512) / 1024;
    d->alpha = keep + (cnp ? ALPHA_ONE * p->dcqcn.g_1024 / 1024 : 0);
}

static void cut(struct cc *c, const struct cc_params *p, uint64_t now_ns)
{
    struct cc_dcqcn_state *d = &c->dcqcn;
    d->target_bps = c->rate_bps;
    c->rate_bps -= (uint64_t)((unsigned __int128)c->rate_bps * d->alpha >> 41);
    cc_clamp(c, p);
    d->time_steps = d->byte_steps = 0;
    d->bytes = 0;
    d->increase_at_ns = now_ns + p->dcqcn.increase_period_ns;
}

static void raise(struct cc *c, const struct cc_params *p)
{
    struct cc_dcqcn_state *d = &c->dcqcn;
    const struct cc_dcqcn *q = &p->dcqcn;
    uint32_t most = d->time_steps > d->byte_steps ? d->time_steps : d->byte_steps;
    uint32_t least = d->time_steps < d->byte_steps ? d->time_steps : d->byte_steps;
    if (q->increase_bytes == 0)
        least = d->time_steps; /* without a byte counter the timer stands for both */
    if (least > q->recovery_steps)
        d->target_bps += q->hyper_bps;
    else if (most >= q->recovery_steps)
        d->target_bps += q->additive_bps;
    if (d->target_bps > p->line_bps)
        d->target_bps = p->line_bps;
    c->rate_bps = (c->rate_bps + d->target_bps) / 2;
    if (p->line_bps - c->rate_bps < 1000)
        c->rate_bps = p->line_bps; /* halves never get there */
}

static void cnp(struct cc *c, const struct cc_params *p, uint64_t now_ns)
{
    struct cc_dcqcn_state *d = &c->dcqcn;
    if (!d->active) {
        d->active = true;
        d->alpha_at_ns = now_ns + p->dcqcn.alpha_period_ns;
        d->decrease_at_ns = now_ns + p->dcqcn.decrease_period_ns;
    } else if (p->dcqcn.decrease_period_ns != 0) {
        d->cnp_alpha = d->cnp_decrease = true;
        return;
    }
    cut(c, p, now_ns);
    update_alpha(d, p, true);
    if (p->dcqcn.decrease_period_ns == 0)
        d->alpha_at_ns = now_ns + p->dcqcn.alpha_period_ns;
}

static void sent(struct cc *c, const struct cc_params *p, uint64_t bytes)
{
    struct cc_dcqcn_state *d = &c->dcqcn;
    if (!d->active || p->dcqcn.increase_bytes == 0)
        return;
    d->bytes += bytes;
    while (d->bytes >= p->dcqcn.increase_bytes) {
        d->bytes -= p->dcqcn.increase_bytes;
        raise(c, p);
        d->byte_steps++;
    }
}

/* Ticks of a period that change nothing are passed over. */
static uint64_t pass_over(uint64_t at_ns, uint64_t period_ns, uint64_t now_ns)
{
    return at_ns + ((now_ns - at_ns) / period_ns + 1) * period_ns;
}

static uint64_t next_ns(const struct cc_dcqcn_state *d, const struct cc_params *p)
{
    uint64_t next = d->alpha_at_ns < d->increase_at_ns ? d->alpha_at_ns : d->increase_at_ns;
    return p->dcqcn.decrease_period_ns != 0 && d->decrease_at_ns < next ? d->decrease_at_ns : next;
}

/* In order of time; at one instant alpha first, then what lowers, then what raises. */
static void advance(struct cc *c, const struct cc_params *p, uint64_t now_ns)
{
    struct cc_dcqcn_state *d = &c->dcqcn;
    const struct cc_dcqcn *q = &p->dcqcn;
    while (d->active && next_ns(d, p) <= now_ns) {
        uint64_t at = next_ns(d, p);
        if (d->alpha_at_ns == at) {
            update_alpha(d, p, d->cnp_alpha);
            d->cnp_alpha = false;
            d->alpha_at_ns += q->alpha_period_ns;
            if (d->alpha < ALPHA_ONE >> 20)
                d->alpha_at_ns = pass_over(at, q->alpha_period_ns, now_ns);
        } else if (q->decrease_period_ns != 0 && d->decrease_at_ns == at) {
            if (d->cnp_decrease)
                cut(c, p, at);
            d->decrease_at_ns = d->cnp_decrease ? at + q->decrease_period_ns
                                                : pass_over(at, q->decrease_period_ns, now_ns);
            d->cnp_decrease = false;
        } else {
            raise(c, p);
            d->time_steps++;
            d->increase_at_ns += q->increase_period_ns;
            if (c->rate_bps == p->line_bps)
                d->increase_at_ns = pass_over(at, q->increase_period_ns, now_ns);
        }
    }
}

static uint64_t deadline(const struct cc *c, const struct cc_params *p)
{
    bool rises = c->dcqcn.active && c->rate_bps < p->line_bps;
    return rises ? c->dcqcn.increase_at_ns : CC_NEVER;
}

const struct cc_ops cc_dcqcn_ops = {
    .start = start,
    .cnp = cnp,
    .sent = sent,
    .advance = advance,
    .deadline = deadline,
};
