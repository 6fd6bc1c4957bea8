/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ztr_rtt.c: rates by round-trip times. ztr-template does what the published template of NVIDIA's
 * programmable congestion control does, in its fixed point (doca-samples, rtt_template): one probe
 * at a time, an update for each answer. ztr-target is ours: a target above the least time that is
 * larger for slow flows, so that many of them can be told apart from few.
 */
#include "nic/cc/cc.h"

enum {
    ONE = 1 << 20,
    LEAST = ONE >> 14,
    FORGET_MASK = 0xff,
    CALM_ROUNDS = 5, /* ztr-target: from then on it adds more */
};

static void take_rate(struct cc *c, const struct cc_params *p, uint64_t rate)
{
    if (rate > ONE)
        rate = ONE;
    if (rate < LEAST)
        rate = LEAST;
    c->ztr.rate = (uint32_t)rate;
    c->rate_bps = p->line_bps / ONE * rate + p->line_bps % ONE * rate / ONE;
}

static void start(struct cc *c, const struct cc_params *p)
{
    c->ztr = (struct cc_ztr_state){.min_ns = p->ztr.first_min_ns};
    take_rate(c, p, ONE);
}

static void cnp(struct cc *c, const struct cc_params *p, uint64_t now_ns)
{
    (void)p;
    (void)now_ns;
    c->ztr.cnp = true;
}

static void nak(struct cc *c, const struct cc_params *p)
{
    (void)p;
    c->ztr.nak = true;
}

static uint64_t less(uint64_t rate, uint64_t cut_65536)
{
    return rate * (65536 - cut_65536) >> 16;
}

/* The least time is forgotten now and then, by the clock's low bits, and is looked at where nothing
 * worse is known; what is less than it counts as a delay by itself. */
static void by_template(struct cc *c, const struct cc_params *p, uint64_t now_ns, uint64_t rtt_ns)
{
    struct cc_ztr_state *z = &c->ztr;
    uint64_t cut = p->ztr.dec_65536;
    bool severe = rtt_ns >= p->ztr.max_ns;
    if ((now_ns & FORGET_MASK) == 0)
        z->min_ns = p->ztr.first_min_ns;
    if (z->nak && severe) {
        z->nak = false;
        take_rate(c, p, less(z->rate, 5 * cut));
        return;
    }
    if (z->cnp || severe) {
        z->cnp = false;
        take_rate(c, p, less(z->rate, 2 * cut));
        return;
    }
    uint64_t relative_ns = rtt_ns < z->min_ns ? rtt_ns : rtt_ns - z->min_ns;
    if (rtt_ns < z->min_ns)
        z->min_ns = rtt_ns;
    take_rate(c, p,
              relative_ns > p->ztr.relative_ns ? less(z->rate, cut)
                                               : (uint64_t)z->rate + p->ztr.add_1048576);
}

static uint64_t root(uint64_t v)
{
    uint64_t r = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit != 0; bit >>= 1)
        if ((r | bit) * (r | bit) <= v)
            r |= bit;
    return r;
}

/* Cuts in proportion to what is beyond the target, by five times dec at most. */
static void by_target(struct cc *c, const struct cc_params *p, uint64_t rtt_ns)
{
    struct cc_ztr_state *z = &c->ztr;
    if (rtt_ns < z->min_ns)
        z->min_ns = rtt_ns;
    /* sqrt(1 / share) in 2^-10: share is rate / 2^20 */
    uint64_t spread = root((UINT64_C(1) << 40) / z->rate);
    uint64_t target = z->min_ns + (p->ztr.target_add_ns * spread >> 10);
    if (rtt_ns > target) {
        uint64_t cut = 65536 * (rtt_ns - target) / rtt_ns;
        uint64_t most = 5 * (uint64_t)p->ztr.dec_65536;
        take_rate(c, p, less(z->rate, cut < most ? cut : most));
        z->calm = 0;
        return;
    }
    /* 1/256 of what the template adds; tenfold when it has been calm for a while. */
    uint64_t add = p->ztr.add_1048576 / 256;
    z->calm++;
    take_rate(c, p, z->rate + (z->calm > CALM_ROUNDS ? 10 * add : add));
}

static void rtt(struct cc *c, const struct cc_params *p, uint64_t now_ns, uint64_t rtt_ns)
{
    if (p->algorithm == CC_ZTR_TEMPLATE)
        by_template(c, p, now_ns, rtt_ns);
    else
        by_target(c, p, rtt_ns);
}

const struct cc_ops cc_ztr_ops = {.start = start, .cnp = cnp, .nak = nak, .rtt = rtt};
