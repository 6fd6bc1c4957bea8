/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cc.c: which algorithm, and with what parameters.
 */
#include "nic/cc/cc.h"

#include <stddef.h>
#include <string.h>

enum { US = 1000 };
#define MBPS UINT64_C(1000000)

static const struct cc_ops none_ops;

static const struct cc_ops *const algorithms[CC_ALGORITHMS] = {
    [CC_NONE] = &none_ops,         [CC_DCQCN] = &cc_dcqcn_ops,   [CC_ZTR_TEMPLATE] = &cc_ztr_ops,
    [CC_ZTR_TARGET] = &cc_ztr_ops, [CC_TIMELY] = &cc_timely_ops, [CC_HPCC] = &cc_hpcc_ops,
};

/* Of the paper: 55 us for both timers, F 5, 10 MB, 40 Mb/s. CNPs come 50 us apart, so each may cut.
 */
static const struct cc_dcqcn dcqcn_paper = {
    .g_1024 = 4,
    .alpha_period_ns = 55 * US,
    .increase_period_ns = 55 * US,
    .increase_bytes = 10000000,
    .recovery_steps = 5,
    .additive_bps = 40 * MBPS,
    .hyper_bps = 200 * MBPS,
};

/* As a large operator sets its adapters at 100 Gb/s. */
static const struct cc_dcqcn dcqcn_hw = {
    .g_1024 = 4,
    .alpha_period_ns = 1 * US,
    .decrease_period_ns = 4 * US,
    .increase_period_ns = 300 * US,
    .recovery_steps = 1,
    .additive_bps = 20 * MBPS,
    .hyper_bps = 200 * MBPS,
};

/* The paper's as a simulator has it that gets a mark with each ACK, not CNPs: one cut in 50 us. */
static const struct cc_dcqcn dcqcn_paper_polled = {
    .g_1024 = 4,
    .alpha_period_ns = 50 * US,
    .decrease_period_ns = 50 * US,
    .increase_period_ns = 55 * US,
    .recovery_steps = 5,
    .additive_bps = 40 * MBPS,
    .hyper_bps = 200 * MBPS,
};

static const struct cc_ztr ztr = {
    .dec_65536 = 6553,
    .add_1048576 = 52428,
    .relative_ns = 13 * US,
    .max_ns = 150 * US,
    .first_min_ns = 200 * US,
    .target_add_ns = 2 * US,
};

bool cc_params_named(struct cc_params *p, const char *name, uint64_t line_bps)
{
    static const struct {
        const char *name;
        enum cc_algorithm algorithm;
        const struct cc_dcqcn *dcqcn;
    } rows[] = {
        {"none",               CC_NONE,         NULL               },
        {"dcqcn-hw",           CC_DCQCN,        &dcqcn_hw          },
        {"dcqcn-paper",        CC_DCQCN,        &dcqcn_paper       },
        {"dcqcn-paper-polled", CC_DCQCN,        &dcqcn_paper_polled},
        {"hpcc",               CC_HPCC,         NULL               },
        {"timely",             CC_TIMELY,       NULL               },
        {"ztr-target",         CC_ZTR_TARGET,   NULL               },
        {"ztr-template",       CC_ZTR_TEMPLATE, NULL               },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        struct cc_hpcc hpcc = {
            .base_rtt_ps = 10 * US * UINT64_C(1000),
            .step_bps = line_bps / CC_HPCC_PARTS,
            .eta_percent = CC_HPCC_ETA_PERCENT,
            .max_stage = CC_HPCC_STAGES,
        };
        *p = (struct cc_params){
            .algorithm = rows[i].algorithm,
            .line_bps = line_bps,
            .min_bps = line_bps / 1000,
            .ztr = ztr,
            .timely = {50 * US, 500 * US, 20 * US, line_bps / 1000, 819, 896},
            .hpcc = hpcc,
        };
        if (rows[i].dcqcn != NULL)
            p->dcqcn = *rows[i].dcqcn;
        return true;
    }
    return false;
}

bool cc_wants_rtt(const struct cc_params *p)
{
    return algorithms[p->algorithm]->rtt != NULL;
}

bool cc_wants_path(const struct cc_params *p)
{
    return algorithms[p->algorithm]->path != NULL;
}

void cc_start(struct cc *c, const struct cc_params *p)
{
    *c = (struct cc){.rate_bps = p->line_bps};
    if (algorithms[p->algorithm]->start != NULL)
        algorithms[p->algorithm]->start(c, p);
}

static void advance(struct cc *c, const struct cc_params *p, uint64_t now_ns)
{
    if (algorithms[p->algorithm]->advance != NULL)
        algorithms[p->algorithm]->advance(c, p, now_ns);
}

void cc_cnp(struct cc *c, const struct cc_params *p, uint64_t now_ns)
{
    advance(c, p, now_ns);
    if (algorithms[p->algorithm]->cnp != NULL)
        algorithms[p->algorithm]->cnp(c, p, now_ns);
}

void cc_nak(struct cc *c, const struct cc_params *p)
{
    if (algorithms[p->algorithm]->nak != NULL)
        algorithms[p->algorithm]->nak(c, p);
}

void cc_rtt(struct cc *c, const struct cc_params *p, uint64_t now_ns, uint64_t rtt_ns)
{
    if (algorithms[p->algorithm]->rtt != NULL)
        algorithms[p->algorithm]->rtt(c, p, now_ns, rtt_ns);
}

void cc_sent(struct cc *c, const struct cc_params *p, uint64_t now_ns, uint64_t bytes)
{
    advance(c, p, now_ns);
    if (algorithms[p->algorithm]->sent != NULL)
        algorithms[p->algorithm]->sent(c, p, bytes);
}

uint64_t cc_rate(struct cc *c, const struct cc_params *p, uint64_t now_ns)
{
    advance(c, p, now_ns);
    return c->rate_bps;
}

uint64_t cc_deadline(const struct cc *c, const struct cc_params *p)
{
    const struct cc_ops *ops = algorithms[p->algorithm];
    return ops->deadline != NULL ? ops->deadline(c, p) : CC_NEVER;
}

void cc_path(struct cc *c, const struct cc_params *p, struct cc_path *last,
             const struct cc_path *now, uint64_t acked, uint64_t sent)
{
    if (algorithms[p->algorithm]->path != NULL)
        algorithms[p->algorithm]->path(c, p, last, now, acked, sent);
    *last = *now;
}

uint64_t cc_window(const struct cc *c, const struct cc_params *p)
{
    const struct cc_ops *ops = algorithms[p->algorithm];
    return ops->window != NULL ? ops->window(c, p) : CC_NO_WINDOW;
}
