/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * marks.c: congestion control in a world: links mark what says that it may be marked, engines have
 * algorithms. Only seeds whose second highest bit is set draw any, so that all other seeds stay
 * what they are. What is looked at: CNPs have a cause and keep their interval, are what the annex
 * says and slow down; who was slowed down comes back to its line, and all that was to be done is.
 */
#include "nic/congestion.h"
#include "wire/net.h"
#include "wire/opcode.h"
#include "world.h"

enum {
    LONG_TIMEOUT = 20, /* 4.3 s: no healthy answer is later, at the lowest rate */
    CNP_CLASS = 48 << 2,
    RECOVERED_S = 10, /* by then it is at its line again */
};
#define SECOND_NS UINT64_C(1000000000)

static const char *const algorithms[] = {"dcqcn-hw",     "dcqcn-paper", "ztr-target",
                                         "ztr-template", "timely",      "none"};

void marks_draw(struct world *w)
{
    static const uint32_t ppm[] = {1000, 30000, 300000, 1000000};
    static const uint32_t interval_ns[] = {0, 4000, 50000, 1000000};
    static const uint32_t burst_ns[] = {0, 0, 20000, 1000000};
    struct options *o = &w->opt;
    if (!(w->seed & MARKED_SEEDS) || o->small != 0)
        return;
    o->marked = true;
    for (int i = 0; i < o->nodes; i++)
        o->algorithm[i] = (uint8_t)(tape_below(w->tape, 2) == 0 ? tape_below(w->tape, 2)
                                                                : tape_below(w->tape, 6));
    o->mark_ppm = ppm[tape_below(w->tape, 4)];
    o->line_gbps = tape_below(w->tape, 2) == 0 ? 10 : 100;
    o->cnp_interval_ns = interval_ns[tape_below(w->tape, 4)];
    o->burst_ns = burst_ns[tape_below(w->tape, 4)];
    if (o->limited && o->timeout != 0 && o->timeout < LONG_TIMEOUT)
        o->timeout = LONG_TIMEOUT;
}

void marks_config(const struct world *w, int node, struct congestion_config *c)
{
    if (!w->opt.marked)
        return;
    *c = (struct congestion_config){
        .algorithm = algorithms[w->opt.algorithm[node]],
        .line_bps = w->opt.line_gbps * SECOND_NS,
        .cnp_interval_ns = w->opt.cnp_interval_ns,
        .burst_ns = w->opt.burst_ns,
        .cnp_class = CNP_CLASS,
    };
}

bool marks_is_own(const struct roce_headers *h)
{
    return h->bth.opcode == OPCODE_CNP || h->bth.dest_qp == QPN_GSI;
}

static bool is_marked(const struct rx_packet *rx)
{
    return (rx->traffic_class & ECN_MASK) == ECN_CE;
}

void marks_meet(struct world *w, struct rx_packet *rx)
{
    bool over = !w->opt.perfect && w->sent_packets > w->opt.fault_packets;
    if (!w->opt.marked || over || (rx->traffic_class & ECN_MASK) == 0)
        return;
    if (!tape_chance(w->tape, w->opt.mark_ppm))
        return;
    rx->traffic_class |= ECN_CE;
    w->marks++;
}

void marks_sent(struct world *w, int node, int slot, const struct roce_headers *h,
                const struct nic_path *path)
{
    struct slot *s = &w->node[node].slot[slot];
    if (!w->opt.marked)
        world_fail(w, "node %d: a packet of congestion control where there is none", node);
    if (h->bth.opcode != OPCODE_CNP)
        return; /* a probe or an answer */
    if (s->qp->congestion == NULL || s->marks == 0)
        world_fail(w, "node %d slot %d: a CNP without a mark", node, slot);
    if (s->cnp_ns != 0 && w->now_ns < s->cnp_ns + w->opt.cnp_interval_ns)
        world_fail(w, "node %d slot %d: two CNPs in %llu ns", node, slot,
                   (unsigned long long)(w->now_ns - s->cnp_ns));
    if (!h->bth.becn || h->bth.mig_req || h->bth.ack_req || h->bth.psn.v != 0 ||
        path->traffic_class != CNP_CLASS)
        world_fail(w, "node %d slot %d: it is no CNP as others know them", node, slot);
    s->marks = 0;
    s->cnp_ns = w->now_ns;
    w->cnps++;
}

/* Asking the engine's own would be a part of what happens. */
static uint64_t rate_at(const struct qp *qp, uint64_t now_ns)
{
    struct cc cc = qp->congestion->cc;
    return cc_rate(&cc, &qp->congestion->params, now_ns);
}

static bool has_dcqcn(const struct qp *qp)
{
    return qp->congestion != NULL && qp->congestion->params.algorithm == CC_DCQCN;
}

/* Whose rate it is about: a CNP's, and a marked packet is noted. */
static struct slot *take(struct world *w, int to, const struct rx_packet *rx)
{
    struct slot *s = rx->icrc_ok ? world_slot(w, to, rx->h.bth.dest_qp) : NULL;
    if (s == NULL || !w->opt.marked)
        return NULL;
    s->marks += is_marked(rx);
    return rx->h.bth.opcode == OPCODE_CNP && has_dcqcn(s->qp) ? s : NULL;
}

void marks_before(struct world *w, int to, const struct rx_packet *rx, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct slot *s = take(w, to, &rx[i]);
        if (s != NULL)
            s->rate_bps = rate_at(s->qp, w->now_ns);
    }
}

void marks_after(struct world *w, int to, const struct rx_packet *rx, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct slot *s = rx[i].icrc_ok && rx[i].h.bth.opcode == OPCODE_CNP
                             ? world_slot(w, to, rx[i].h.bth.dest_qp)
                             : NULL;
        if (s == NULL || !has_dcqcn(s->qp) || s->qp->state == QP_STATE_RESET)
            continue;
        uint64_t rate = rate_at(s->qp, w->now_ns);
        if (rate > s->rate_bps)
            world_fail(w, "node %d: %llu bit/s after a CNP, %llu before it", to,
                       (unsigned long long)rate, (unsigned long long)s->rate_bps);
        w->slowed += rate < s->rate_bps;
    }
}

bool marks_hold(const struct world *w, const struct qp *qp)
{
    return qp != NULL && qp->congestion != NULL && qp->congestion->free_ns > w->now_ns;
}

void marks_end(struct world *w)
{
    for (int i = 0; i < w->opt.nodes; i++)
        for (int k = 0; k < w->node[i].slots; k++) {
            const struct qp *qp = w->node[i].slot[k].qp;
            if (!has_dcqcn(qp) || qp->state != QP_STATE_RTS)
                continue;
            uint64_t rate = rate_at(qp, w->now_ns + RECOVERED_S * SECOND_NS);
            if (rate != w->opt.line_gbps * SECOND_NS)
                world_fail(w, "node %d slot %d: %llu bit/s long after the last CNP", i, k,
                           (unsigned long long)rate);
        }
}
