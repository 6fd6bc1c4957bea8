/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * congestion.c: see congestion.h. Time is kept, not bytes: what leaves takes as long as its rate
 * says, and the next may leave when that is over; so a cut of the rate holds back nothing that was
 * sent before. Probes are management datagrams of ours to QP 1 (wire/rtt.h), which a peer of
 * another kind drops: after some without an answer the QP goes on as if there was no congestion.
 */
#include "nic/congestion.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/qp.h"
#include "nic/timers.h"
#include "wire/net.h"
#include "wire/opcode.h"
#include "wire/rtt.h"

enum {
    FRACTION_BITS = 10,
    FRAME_V4_BYTES = 66, /* around BTH to ICRC on an Ethernet, preamble and gap included */
    FRAME_V6_BYTES = 86,
    ASK_NS = 20000, /* a train that takes so long asks for an ACK, the next one may be far */
    PROBE_LOST_NS = 300000,
    PROBE_BACKOFF_MAX = 10,
    PROBES_UNANSWERED = 8, /* then the peer answers none, or the way is gone */
};
#define LINE_BPS UINT64_C(100000000000)

int congestion_check(const struct congestion_config *c)
{
    struct cc_params p;
    if (c->algorithm == NULL)
        return 0;
    bool known = cc_params_named(&p, c->algorithm, LINE_BPS);
    return known && !cc_wants_path(&p) ? 0 : -EINVAL; /* its packets have no room for INT */
}

bool congestion_is_on(const struct congestion_config *c)
{
    struct cc_params p;
    return c->algorithm != NULL && cc_params_named(&p, c->algorithm, LINE_BPS) &&
           p.algorithm != CC_NONE;
}

bool congestion_is_for(const struct nic *nic, enum qp_type type)
{
    return nic->congestion && type != QP_TYPE_UD;
}

void congestion_clear(struct qp *qp)
{
    qp->due = 0;
    if (qp->congestion != NULL)
        *qp->congestion = (struct congestion){0};
}

void congestion_path(struct qp *qp)
{
    struct congestion *g = qp->congestion;
    /* RFC 3168: ECT(0) says that its sender slows down when told. Who asks for ECN bits without
     * congestion control gets them as they are. */
    if (g == NULL)
        return;
    g->path = qp->attr.path;
    g->path.traffic_class = (uint8_t)((g->path.traffic_class & ~ECN_MASK) | ECN_ECT_0);
}

void congestion_start(struct qp *qp)
{
    struct congestion *g = qp->congestion;
    const struct congestion_config *c = &qp->nic->config.congestion;
    congestion_clear(qp);
    congestion_path(qp);
    if (g == NULL)
        return;
    uint64_t line_bps = qp->attr.line_mbps * UINT64_C(1000000);
    if (line_bps == 0)
        line_bps = c->line_bps != 0 ? c->line_bps : LINE_BPS;
    bool known = cc_params_named(&g->params, c->algorithm, line_bps);
    assert(known); /* nic_create saw to it */
    g->params.ztr.relative_ns += c->rtt_slack_ns;
    g->params.ztr.max_ns += c->rtt_slack_ns;
    g->params.ztr.target_add_ns += c->rtt_slack_ns;
    g->params.timely.low_ns += c->rtt_slack_ns;
    g->params.timely.high_ns += c->rtt_slack_ns;
    cc_start(&g->cc, &g->params);
}

static void due(struct qp *qp, enum congestion_due what)
{
    qp->due |= (uint8_t)what;
    nic_qp_urgent(qp);
}

void congestion_marked(struct qp *qp, uint64_t now_ns)
{
    struct congestion *g = qp->congestion;
    if (g == NULL || now_ns < g->cnp_next_ns)
        return;
    due(qp, CONGESTION_CNP);
}

void congestion_cnp(struct qp *qp, uint64_t now_ns)
{
    struct congestion *g = qp->congestion;
    if (g == NULL)
        return;
    g->cnps++;
    cc_cnp(&g->cc, &g->params, now_ns);
}

void congestion_lost(struct qp *qp)
{
    if (qp->congestion != NULL)
        cc_nak(&qp->congestion->cc, &qp->congestion->params);
}

/* The algorithms by round-trip times go below what is of use where a packet is large. */
static uint64_t rate_now(struct qp *qp, uint64_t now_ns)
{
    struct congestion *g = qp->congestion;
    uint64_t rate = cc_rate(&g->cc, &g->params, now_ns);
    bool slowed = rate < g->params.line_bps;
    if (slowed != g->slowed) {
        g->slowed = slowed;
        nic_count(qp->nic, slowed ? COUNTER_rp_slowed : COUNTER_rp_recovered, 1);
    }
    return rate > g->params.min_bps ? rate : g->params.min_bps;
}

bool congestion_open(struct qp *qp, uint64_t now_ns, struct train *t, bool waits)
{
    struct congestion *g = qp->congestion;
    uint64_t rate = rate_now(qp, now_ns);
    if (rate >= g->params.line_bps)
        return true;
    if (g->free_ns > now_ns) {
        g->opens_ns = g->free_ns;
        if (waits)
            timers_congestion(qp);
        return false;
    }
    uint64_t saved_ns = now_ns - g->free_ns, burst_ns = qp->nic->config.congestion.burst_ns;
    if (saved_ns > burst_ns)
        saved_ns = burst_ns;
    uint64_t room = (uint64_t)((unsigned __int128)saved_ns * rate / 8000000000u);
    if (room < t->max_bytes)
        t->max_bytes = (uint32_t)room; /* one packet may leave, always */
    return true;
}

/* From the time at which it could have left, or a burst ago. */
static uint64_t charge(struct qp *qp, uint64_t now_ns, uint64_t bytes, uint64_t rate)
{
    struct congestion *g = qp->congestion;
    uint64_t burst_ns = qp->nic->config.congestion.burst_ns;
    uint64_t cost =
        (uint64_t)((unsigned __int128)bytes * (UINT64_C(8000000000) << FRACTION_BITS) / rate);
    if (now_ns > burst_ns && g->free_ns < now_ns - burst_ns) {
        g->free_ns = now_ns - burst_ns;
        g->free_fraction = 0;
    }
    cost += g->free_fraction;
    g->free_ns += cost >> FRACTION_BITS;
    g->free_fraction = (uint32_t)cost & ((1 << FRACTION_BITS) - 1);
    return cost >> FRACTION_BITS;
}

static void probe_if_due(struct qp *qp, uint64_t now_ns)
{
    struct congestion *g = qp->congestion;
    if (qp->ece_set && (qp->ece & ECE_RTT_PROBES) == 0)
        return; /* the peer has said that it answers none */
    bool out = g->probe_ns != 0;
    uint64_t patience_ns = (uint64_t)PROBE_LOST_NS << g->unanswered;
    if (out && now_ns - g->probe_ns < patience_ns)
        return;
    if (!out && now_ns < g->probe_next_ns)
        return;
    if (out && g->unanswered < PROBE_BACKOFF_MAX)
        g->unanswered++;
    /* Its rate would stay as it is for ever. But who is known to answer is behind the congestion.
     */
    if (g->unanswered == PROBES_UNANSWERED && (qp->ece & ECE_RTT_PROBES) == 0)
        cc_start(&g->cc, &g->params);
    g->probe_ns = 0;
    due(qp, CONGESTION_PROBE);
}

void congestion_sent(struct qp *qp, uint64_t now_ns, struct train *t)
{
    struct congestion *g = qp->congestion;
    uint64_t frame = net_addr_is_v4(&t->path->local) ? FRAME_V4_BYTES : FRAME_V6_BYTES;
    uint64_t bytes = t->total_bytes + frame * t->packets;
    cc_sent(&g->cc, &g->params, now_ns, bytes);
    if (cc_wants_rtt(&g->params))
        probe_if_due(qp, now_ns);
    uint64_t rate = rate_now(qp, now_ns);
    if (rate >= g->params.line_bps)
        return;
    struct bth *last = &t->packet[t->packets - 1].h.bth;
    bool request = (opcode_info(last->opcode)->flags & OPF_RESPONSE) == 0;
    if (charge(qp, now_ns, bytes, rate) >= ASK_NS && request && !qp_unreliable(qp))
        last->ack_req = true;
}

/* Of CNPs and answers, until the next one is asked for. */
static const struct nic_path *path_back(struct qp *qp)
{
    struct nic_path *path = &qp->nic->path_back;
    *path = qp->attr.path;
    path->traffic_class = qp->nic->config.congestion.cnp_class;
    return path;
}

/* The interval is one between two that leave: this one may have waited. */
static void put_cnp(struct qp *qp, uint64_t now_ns, struct train *t)
{
    qp->congestion->cnp_next_ns = now_ns + qp->nic->config.congestion.cnp_interval_ns;
    train_begin(t, path_back(qp));
    t->qp = qp;
    struct train_packet *p = train_add(t, qp, OPCODE_CNP, psn_make(0), 0);
    /* IBA A17.9.3: BECN, PSN 0, and nothing more. */
    p->h.bth.mig_req = false;
    p->h.bth.becn = true;
    nic_count(qp->nic, COUNTER_np_cnp_sent, 1);
}

static void put_mad(struct qp *qp, struct train *t, const struct nic_path *path,
                    const struct rtt_mad *m)
{
    struct nic *nic = qp->nic;
    rtt_build(m, nic->rtt_bytes);
    train_begin(t, path);
    t->qp = qp;
    gsi_add(nic, t, GSI_QPN, nic->rtt_bytes);
}

static void put_answer(struct qp *qp, uint64_t now_ns, struct train *t)
{
    const struct rtt_mad m = {.answer = true,
                              .to_qpn = qp->attr.dest_qpn,
                              .from_qpn = qp->qpn,
                              .stamp_ns = qp->answer.stamp_ns,
                              .held_ns = now_ns - qp->answer.since_ns};
    put_mad(qp, t, path_back(qp), &m);
    nic_count(qp->nic, COUNTER_np_rtt_answers, 1);
}

static void put_probe(struct qp *qp, uint64_t now_ns, struct train *t)
{
    struct congestion *g = qp->congestion;
    const struct rtt_mad m = {.to_qpn = qp->attr.dest_qpn, .from_qpn = qp->qpn, .stamp_ns = now_ns};
    g->probe_ns = now_ns;
    g->probe_next_ns = now_ns + qp->nic->config.congestion.probe_interval_ns;
    put_mad(qp, t, qp->tx_path, &m);
    nic_count(qp->nic, COUNTER_rp_rtt_probes, 1);
}

static bool able(const struct qp *qp)
{
    return qp->state == QP_STATE_RTR || qp->state == QP_STATE_RTS || qp->state == QP_STATE_SQD ||
           qp->state == QP_STATE_SQE;
}

bool congestion_next(struct qp *qp, uint64_t now_ns, struct train *t)
{
    if (!able(qp))
        qp->due = 0;
    unsigned first = qp->due & -(unsigned)qp->due;
    qp->due &= (uint8_t)~first;
    switch (first) {
    case CONGESTION_CNP:
        put_cnp(qp, now_ns, t);
        return true;
    case CONGESTION_ANSWER:
        put_answer(qp, now_ns, t);
        return true;
    case CONGESTION_PROBE:
        put_probe(qp, now_ns, t);
        return true;
    default:
        return false;
    }
}

bool congestion_is_mad(const struct rx_packet *p)
{
    return p->h.bth.opcode == opcode_make(SERVICE_UD, OP_SEND_ONLY) &&
           (p->h.bth.pkey & 0x7fff) == (PKEY_DEFAULT & 0x7fff) && p->h.deth.qkey == QKEY_GSI &&
           rtt_check(p->payload, p->payload_bytes);
}

static void take_answer(struct qp *qp, uint64_t now_ns, const struct rtt_mad *m)
{
    struct congestion *g = qp->congestion;
    uint64_t passed_ns = now_ns - m->stamp_ns;
    bool ours = g != NULL && g->probe_ns != 0 && m->stamp_ns == g->probe_ns &&
                now_ns > m->stamp_ns && m->held_ns < passed_ns;
    if (!ours) {
        nic_count(qp->nic, COUNTER_rp_rtt_ignored, 1);
        return;
    }
    g->probe_ns = 0;
    g->unanswered = 0;
    nic_count(qp->nic, COUNTER_rp_rtt_handled, 1);
    cc_rtt(&g->cc, &g->params, now_ns, passed_ns - m->held_ns);
}

/* Only between the two ends of a connection, each of which knows the other's address and number. */
void congestion_mad(struct nic *nic, uint64_t now_ns, const struct rx_packet *p)
{
    struct rtt_mad m;
    rtt_parse(p->payload, &m);
    struct qp *qp = nic_find_qp(nic, m.to_qpn);
    bool theirs = false;
    if (qp != NULL) {
        lock_take(&qp->lock);
        theirs = able(qp) && qp->type != QP_TYPE_UD && m.from_qpn == qp->attr.dest_qpn &&
                 memcmp(&p->src, &qp->attr.path.remote, sizeof(p->src)) == 0 &&
                 memcmp(&p->dst, &qp->attr.path.local, sizeof(p->dst)) == 0;
        if (theirs && m.answer) {
            take_answer(qp, now_ns, &m);
        } else if (theirs) {
            qp->answer = (struct congestion_answer){m.stamp_ns, now_ns};
            due(qp, CONGESTION_ANSWER);
        }
        lock_drop(&qp->lock);
    }
    if (!theirs)
        nic_count(nic, COUNTER_rx_drop_peer, 1);
}
