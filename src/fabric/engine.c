/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.c: the NIC engine as a host: the same that runs live (src/nic), with queue pairs, keys and
 * work requests. Each flow is a reliable connection that writes messages into its peer's memory.
 * Trains are cut into frames that carry headers and where their payload is: all hosts have one
 * piece of memory in common, and what arrives has the place that it is written to.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fabric/codec.h"
#include "fabric/engine.h"
#include "wire/aeth.h"
#include "wire/net.h"
#include "wire/roce.h"
#include "wire/rtt.h"

enum {
    QPN_SLOT = 1, /* the first: a host has as many as its pairs take */
    ACCESS = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
    RTR_MASK = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
               QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
    RTS_MASK = QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
               QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC,
};

_Static_assert((int)FABRIC_WINDOW_BYTES == (int)NIC_WINDOW_BYTES, "what results say");

static struct net_addr address(uint32_t host)
{
    struct net_addr a = {
        .b = {[10] = 0xff, 0xff, 10}
    };
    put_be24(&a.b[13], host + 1);
    return a;
}

/* A request that goes back behind what was asked for is a retry; those that follow it are not. */
static void count_retry(const struct fabric *f, struct flow *w, const struct roce_headers *h)
{
    struct engine_flow *ef = &f->engine_flow[w->index];
    uint32_t mtu = f->config.hosts.payload_bytes, psns = 1;
    if (h->bth.opcode == OP_READ_REQUEST && h->reth.dma_len > mtu)
        psns = (h->reth.dma_len + mtu - 1) / mtu; /* those of the responses */
    if (ef->sent && psn_diff(h->bth.psn, psn_make(ef->next_psn)) < 0)
        w->retries++;
    ef->sent = true;
    ef->next_psn = psn_add(h->bth.psn, psns).v;
}

static bool is_request(const struct roce_headers *h)
{
    return (opcode_info(h->bth.opcode)->flags & OPF_RESPONSE) == 0;
}

/* CNPs, and the probes of congestion control, which are to QP 1, are not of the flow's bytes. */
static enum packet_kind kind_of(const struct train_packet *p)
{
    if (p->h.bth.opcode == OPCODE_CNP || p->h.bth.dest_qp == QPN_GSI)
        return PACKET_CNP;
    return is_request(&p->h) || p->payload_bytes != 0 ? PACKET_DATA : PACKET_ACK;
}

/* Its payload matters, and a frame has none: the packet's fields for probes hold it. */
static void note_probe(struct packet *k, const uint8_t *mad)
{
    struct rtt_mad m;
    rtt_parse(mad, &m);
    k->seq = m.stamp_ns;
    k->sent_ps = m.held_ns;
    k->flags |= m.answer ? 0 : PACKET_PROBE;
}

static void sink_train(struct nic_sink *sink, const struct train *t)
{
    struct engine *g = (struct engine *)((char *)sink - offsetof(struct engine, sink));
    struct fabric *f = g->fabric;
    struct qp *qp = t->qp;
    struct flow *w = qp->owner;
    bool forth = qp == f->engine_flow[w->index].qp[0];
    uint8_t dscp = t->path->traffic_class >> 2;
    for (unsigned i = 0; i < t->packets; i++) {
        const struct train_packet *from = &t->packet[i];
        uint32_t packet = packet_take(&f->pool);
        if (packet == PACKET_NONE) {
            f->full = true;
            return;
        }
        enum packet_kind kind = kind_of(from);
        if (kind != PACKET_CNP && is_request(&from->h))
            count_retry(f, w, &from->h);
        f->headers[packet] = from->h;
        f->pool.packet[packet] = (struct packet){
            .seq = from->h.bth.psn.v,
            .flow = w->index,
            .dst = forth ? w->dst : w->src,
            .hash = forth ? w->hash : w->back_hash,
            .bytes = (uint16_t)(codec_frame_bytes(f) +
                                roce_packet_bytes(from->h.bth.opcode, from->payload_bytes)),
            .payload_bytes = kind == PACKET_CNP ? 0 : (uint16_t)from->payload_bytes,
            .kind = (uint8_t)kind,
            .flags = (t->path->traffic_class & ECN_MASK) != 0 ? PACKET_ECT : 0,
            .dscp = dscp,
            .pcp = f->config.hosts.vlan ? dscp / 8 : 0,
            .priority = dscp / 8,
        };
        if (f->pool.packet[packet].payload_bytes != 0)
            f->pool.packet[packet].payload = (uint32_t)(t->span[from->first_span].addr - f->memory);
        if (from->h.bth.dest_qp == QPN_GSI)
            note_probe(&f->pool.packet[packet], t->span[from->first_span].addr);
        if (f->frame != NULL)
            codec_build(f, packet, t, from);
        packet_push(&f->pool, kind == PACKET_CNP ? &g->urgent[dscp / 8] : &g->out[dscp / 8],
                    packet);
        f->port[g->endpoint->port].source |= (uint8_t)(1u << (dscp / 8));
    }
}

/* Whether that is earlier than what it wanted. */
static bool wants_by(struct engine *g, uint64_t deadline_ns)
{
    uint64_t at = deadline_ns > ENGINE_EPOCH_NS ? (deadline_ns - ENGINE_EPOCH_NS) * 1000 : 0;
    if (at >= g->source.engine_ps)
        return false;
    g->source.engine_ps = at;
    return true;
}

/* What congestion control has to say goes out at once, whatever waits. */
static void put_urgent(struct fabric *f, struct engine *g)
{
    while (nic_has_urgent(g->nic))
        nic_output_urgent(g->nic, engine_now_ns(f), &g->sink, TRAIN_MAX_PACKETS);
}

/* After anything that the engine was told: what came out, and when it wants to hear again. */
static void settle(struct fabric *f, struct engine *g)
{
    verbs_complete(f, g);
    uint64_t deadline = nic_deadline(g->nic);
    const struct heap_node *receive = heap_first(&g->receives);
    g->source.engine_ps = receive != NULL ? receive->time_ns : FABRIC_NEVER;
    if (deadline != UINT64_MAX)
        wants_by(g, deadline);
    source_arm(f, g->endpoint);
    put_urgent(f, g);
    if (nic_has_output(g->nic))
        f->port[g->endpoint->port].source |= g->priorities;
    if (f->port[g->endpoint->port].source != 0)
        egress_kick(f, g->endpoint->port);
}

static uint32_t engine_pull(struct fabric *f, struct endpoint *e, unsigned priority)
{
    struct engine *g = engine_of(e);
    struct packet_list *out = &g->out[priority], *urgent = &g->urgent[priority];
    /* The engine does not say whose turn is next. What is of no pair's priority comes by itself. */
    bool pairs = (g->priorities >> priority & 1) != 0;
    while (pairs && out->head == PACKET_NONE && nic_has_output(g->nic) && !f->full)
        if (!nic_output(g->nic, engine_now_ns(f), &g->sink, 1))
            break;
    uint64_t deadline = nic_deadline(g->nic); /* a request that left has one */
    if (deadline != UINT64_MAX && wants_by(g, deadline))
        source_arm(f, e);
    put_urgent(f, g);
    /* A probe behind the rest of a train would measure its own host. */
    if (urgent->head != PACKET_NONE)
        return packet_pop(&f->pool, urgent);
    if (out->head != PACKET_NONE)
        return packet_pop(&f->pool, out);
    f->port[e->port].source &= (uint8_t) ~(1u << priority);
    return PACKET_NONE;
}

/* Retries are limited, so answers cannot come for ever; those of a receiver that is not ready can.
 */
static void note_answer(struct fabric *f, const struct flow *w, const struct roce_headers *h)
{
    const struct opcode_info *o = opcode_info(h->bth.opcode);
    if ((o->flags & OPF_RESPONSE) == 0)
        return;
    if ((o->headers & HDR_AETH) != 0 && aeth_kind(h->aeth.syndrome) == AETH_RNR_NAK)
        f->engine_flow[w->index].rnr_naks++;
    else
        f->progress_ps = f->sched.now_ps;
}

static unsigned ecn_of(const struct packet *k)
{
    if ((k->flags & PACKET_CE) != 0)
        return ECN_CE;
    return (k->flags & PACKET_ECT) != 0 ? ECN_ECT_0 : 0;
}

/* What a host without bytes makes of it. */
static void receive_headers(const struct fabric *f, const struct endpoint *e, uint32_t packet,
                            uint8_t mad[MAD_BYTES], struct rx_packet *rx)
{
    const struct packet *k = &f->pool.packet[packet];
    const struct flow *w = &f->flow[k->flow];
    bool forth = &f->endpoint[w->dst] == e;
    /* Field by field: a whole struct would be made elsewhere, and copied. */
    rx->h = f->headers[packet];
    rx->payload = f->memory + k->payload;
    rx->payload_bytes = k->payload_bytes;
    rx->src = address(forth ? w->src : w->dst);
    rx->dst = address(forth ? w->dst : w->src);
    rx->ifindex = 0;
    rx->traffic_class = (uint8_t)(k->dscp << 2 | ecn_of(k));
    rx->hop_limit = 64;
    rx->icrc_ok = (k->flags & PACKET_BROKEN) == 0;
    if (rx->h.bth.dest_qp != QPN_GSI)
        return;
    const struct engine_flow *ef = &f->engine_flow[k->flow];
    const struct rtt_mad m = {
        .answer = (k->flags & PACKET_PROBE) == 0,
        .to_qpn = ef->qp[forth]->qpn,
        .from_qpn = ef->qp[!forth]->qpn,
        .stamp_ns = k->seq,
        .held_ns = k->sent_ps,
    };
    rtt_build(&m, mad);
    rx->payload = mad;
    rx->payload_bytes = MAD_BYTES;
}

static void engine_receive(struct fabric *f, struct endpoint *e, uint32_t packet)
{
    struct engine *g = engine_of(e);
    struct rx_packet rx;
    uint8_t mad[MAD_BYTES];
    struct flow *w = &f->flow[f->pool.packet[packet].flow];
    uint32_t payload_bytes = f->pool.packet[packet].payload_bytes;
    bool parsed = true;
    if (f->frame != NULL)
        parsed = codec_parse(f, packet, &rx);
    else
        receive_headers(f, e, packet, mad, &rx);
    if (parsed)
        nic_input(g->nic, engine_now_ns(f), &rx, 1);
    if (!parsed || !rx.icrc_ok) {
        switch_drop(f, &f->port[e->port], packet, &f->totals.drops_icrc);
        return;
    }
    w->arrived += payload_bytes;
    f->totals.arrived_bytes += payload_bytes;
    note_answer(f, w, &rx.h);
    packet_give(&f->pool, packet);
    settle(f, g);
}

static void engine_timer(struct fabric *f, struct endpoint *e)
{
    struct engine *g = engine_of(e);
    struct heap_node *n;
    while ((n = heap_first(&g->source.heap)) != NULL && n->time_ns <= f->sched.now_ps) {
        struct flow *w = (struct flow *)((char *)n - offsetof(struct flow, timer));
        heap_remove(&g->source.heap, n);
        source_started(f, w);
        verbs_start(f, g, w);
    }
    verbs_receive_again(f, g);
    if (nic_deadline(g->nic) <= engine_now_ns(f))
        nic_advance(g->nic, engine_now_ns(f));
    settle(f, g);
}

static const struct endpoint_ops engine_ops = {
    .receive = engine_receive,
    .pull = engine_pull,
    .timer = engine_timer,
};

/* What a host's NIC has to hold. */
struct device_size {
    uint32_t pairs, cqes, receivers, rd_atomic;
};

/* One is filled, more are to the half, so that free numbers are soon found. */
static uint32_t slots_for(uint32_t pairs)
{
    return pairs < QPN_PER_SLOT ? 1 : pairs / (QPN_PER_SLOT / 2) + 1;
}

static int device_create(struct fabric *f, uint32_t host, const struct device_size *size)
{
    struct engine *g = calloc(1, sizeof(*g));
    struct endpoint *e = &f->endpoint[host];
    uint64_t window = f->config.hosts.window_bytes;
    uint32_t slots = slots_for(size->pairs);
    struct nic_config config = {
        .seed = f->config.seed ^ (host + UINT64_C(1)) << 32,
        .window_bytes = window < UINT32_MAX ? (uint32_t)window : UINT32_MAX, /* more is no limit */
        .max_qp = slots == 1 ? size->pairs + 1 : QPN_PER_SLOT,
        .max_mr = 1,
        .max_rd_atomic = size->rd_atomic != 0 ? size->rd_atomic : 1,
        .max_slots = QPN_SLOT + slots,
        .train = f->train,
        .congestion = {.algorithm = f->config.hosts.cc,
                       .line_bps = f->topology.link[f->port[e->port].link].rate_bps,
                       .cnp_interval_ns = f->config.hosts.cnp_interval_ps / 1000,
                       .cnp_class = (uint8_t)(f->config.hosts.cnp_priority << 5)},
    };
    if (g == NULL)
        return -ENOMEM;
    e->ops = &engine_ops;
    int rc = source_init(f, e, &g->source);
    g->fabric = f;
    g->endpoint = e;
    g->sink = (struct nic_sink){.train = sink_train};
    heap_init(&g->receives);
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
        g->out[i] = g->urgent[i] = (struct packet_list){PACKET_NONE, PACKET_NONE};
    if (rc == 0)
        rc = nic_create(&config, &g->nic);
    for (uint32_t i = 0; rc == 0 && i < slots; i++)
        rc = nic_add_qpns(g->nic, QPN_SLOT + i);
    if (rc == 0)
        rc = mem_pd_create(g->nic, &g->pd);
    if (rc == 0)
        rc = cq_create(g->nic, (int)size->cqes + 1, g, &g->cq);
    if (rc == 0)
        rc = heap_grow(&g->receives, size->receivers);
    if (rc == 0)
        rc = mem_reg(g->pd, f->memory, ENGINE_MESSAGE_BYTES + ENGINE_CELL_BYTES,
                     (uintptr_t)f->memory, ACCESS_LOCAL_WRITE | ACCESS, &g->mr);
    return rc;
}

static bool takes_rd_atomic(const struct fabric *f, uint32_t flow)
{
    enum fabric_verb verb = f->flow_spec[flow].work.verb;
    return verb == FABRIC_READ || engine_is_atomic(verb);
}

/* By host. NULL: no memory. */
static struct device_size *device_sizes_create(const struct fabric *f)
{
    struct device_size *size = calloc(f->hosts + 1u, sizeof(*size));
    for (uint32_t i = 0; size != NULL && i < f->flow_count; i++) {
        const struct fabric_flow *spec = &f->flow_spec[i];
        for (unsigned side = 0; side < 2; side++) {
            struct device_size *d = &size[f->node[side == 0 ? spec->src : spec->dst].host];
            struct nic_qp_cap cap = verbs_cap(f, i, side);
            d->pairs++;
            d->cqes += cap.max_send_wr + cap.max_recv_wr;
            d->receivers += side;
            if (takes_rd_atomic(f, i))
                d->rd_atomic = ENGINE_RD_ATOMIC;
        }
    }
    return size;
}

/* So that a byte in the wrong place is another. */
static void fill(uint8_t *memory)
{
    for (uint32_t i = 0; i < ENGINE_MESSAGE_BYTES; i++)
        memory[i] = (uint8_t)(hash_mix(i / 4) >> 8 * (i % 4));
}

_Static_assert((int)FABRIC_MAX_POSTED < (int)MAX_CQE, "and one");

/* A host has one CQ: whether it holds all that its flows may post at once. */
static int check_sizes(const struct fabric *f, const struct device_size *size, uint32_t *bad)
{
    for (uint32_t i = 0; i < f->topology.nodes; i++)
        if (!f->node[i].is_switch && size[f->node[i].host].cqes > FABRIC_MAX_POSTED) {
            *bad = i;
            return -E2BIG;
        }
    return 0;
}

int engine_create(struct fabric *f, uint32_t *bad)
{
    struct device_size *size = device_sizes_create(f);
    f->engine_flow = calloc(f->flow_count + 1u, sizeof(*f->engine_flow));
    f->headers = malloc((f->pool.capacity + (size_t)1) * sizeof(*f->headers));
    f->memory = calloc(1, ENGINE_MESSAGE_BYTES + ENGINE_CELL_BYTES);
    f->train = calloc(1, sizeof(*f->train));
    bool got = size != NULL && f->engine_flow != NULL && f->headers != NULL && f->memory != NULL &&
               f->train != NULL;
    int rc = got ? check_sizes(f, size, bad) : -ENOMEM;
    if (rc == 0 && f->config.bytes) {
        fill(f->memory);
        rc = codec_create(f);
    }
    for (uint32_t i = 0; rc == 0 && i < f->flow_count; i++)
        f->engine_flow[i].failed_ps = FABRIC_NEVER;
    for (uint32_t i = 0; rc == 0 && i < f->hosts; i++)
        rc = device_create(f, i, &size[i]);
    free(size);
    return rc;
}

static int pair_create(struct fabric *f, unsigned side, struct flow *w, struct qp **out)
{
    struct engine *g = engine_of(&f->endpoint[side == 0 ? w->src : w->dst]);
    struct qp_init init = {
        .type = QP_TYPE_RC,
        .pd = g->pd,
        .send_cq = g->cq,
        .recv_cq = g->cq,
        .owner = w,
        .cap = verbs_cap(f, w->index, side),
    };
    g->priorities |= (uint8_t)(1u << w->priority);
    return qp_create(g->nic, &init, out);
}

/* 0 is the longest of all. */
uint8_t engine_rnr_code(uint64_t rnr_ps)
{
    uint8_t code = 1;
    while (code != 0 && aeth_rnr_ns(code) * 1000 < rnr_ps)
        code = (uint8_t)((code + 1) & 31);
    return code;
}

uint8_t engine_timeout_code(uint64_t timeout_ps)
{
    uint8_t code = timeout_ps == 0 ? 0 : 1;
    while (code != 0 && code < 31 && aeth_ack_timeout_ns(code) * 1000 < timeout_ps)
        code++;
    return code;
}

static int pair_connect(struct fabric *f, const struct flow *w, unsigned side)
{
    const struct engine_flow *ef = &f->engine_flow[w->index];
    struct qp *qp = ef->qp[side];
    struct nic_qp_attr a = {
        .state = QP_STATE_INIT,
        .port_num = 1,
        .access_flags = ACCESS,
        .path = {.local = address(side == 0 ? w->src : w->dst),
                 .remote = address(side == 0 ? w->dst : w->src),
                 .udp_sport = (uint16_t)(0xc000 | (w->hash & 0x3fff)),
                 .traffic_class = (uint8_t)(w->priority << 5 | ECN_ECT_0), /* DSCP 8 * priority */
                 .hop_limit = 64},
        .path_mtu_bytes = (uint16_t)f->config.hosts.payload_bytes,
        .min_rnr_timer = engine_rnr_code(f->config.hosts.rnr_timer_ps),
        .dest_qpn = ef->qp[1 - side]->qpn,
        .rq_psn = w->index & 0xffffff,
        .sq_psn = w->index & 0xffffff,
        .timeout = engine_timeout_code(f->config.hosts.timeout_ps),
        .retry_cnt = f->config.hosts.retry,
        .rnr_retry = f->config.hosts.rnr_retry,
    };
    if (takes_rd_atomic(f, w->index))
        a.max_rd_atomic = a.max_dest_rd_atomic = ENGINE_RD_ATOMIC;
    int rc =
        qp_modify(qp, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    a.state = QP_STATE_RTR;
    if (rc == 0)
        rc = qp_modify(qp, &a, RTR_MASK);
    a.state = QP_STATE_RTS;
    return rc == 0 ? qp_modify(qp, &a, RTS_MASK) : rc;
}

int engine_connect_create(struct fabric *f)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < f->flow_count; i++) {
        struct flow *w = &f->flow[i];
        struct engine_flow *ef = &f->engine_flow[i];
        rc = pair_create(f, 0, w, &ef->qp[0]);
        if (rc == 0)
            rc = pair_create(f, 1, w, &ef->qp[1]);
        for (unsigned side = 0; rc == 0 && side < 2; side++)
            rc = pair_connect(f, w, side);
    }
    return rc;
}

static void device_free(struct engine *g)
{
    heap_fini(&g->receives);
    if (g->mr != NULL) {
        mem_mr_revoke(g->mr);
        mem_mr_free(g->mr);
    }
    if (g->cq != NULL)
        cq_destroy(g->cq);
    if (g->pd != NULL)
        mem_pd_destroy(g->pd);
    if (g->nic != NULL)
        nic_destroy(g->nic);
}

void engine_free(struct fabric *f)
{
    for (uint32_t i = 0; f->engine_flow != NULL && i < f->flow_count; i++)
        for (unsigned side = 0; side < 2; side++)
            if (f->engine_flow[i].qp[side] != NULL) {
                qp_unlink(f->engine_flow[i].qp[side]);
                qp_free(f->engine_flow[i].qp[side]);
            }
    for (uint32_t i = 0; f->endpoint != NULL && i < f->hosts; i++)
        if (f->endpoint[i].state != NULL)
            device_free(engine_of(&f->endpoint[i]));
    free(f->engine_flow);
    free(f->headers);
    free(f->memory);
    free(f->train);
    codec_free(f);
}

void engine_result(const struct fabric *f, uint32_t flow, struct fabric_flow_result *out)
{
    const struct engine_flow *ef = &f->engine_flow[flow];
    out->failed_ps = ef->failed_ps;
    out->status = ef->status;
    out->rnr_naks = ef->rnr_naks;
    out->cnps = 0;
    for (unsigned side = 0; side < 2; side++) {
        out->cnps += ef->qp[side]->congestion != NULL ? ef->qp[side]->congestion->cnps : 0;
        out->state[side] = (uint8_t)ef->qp[side]->state;
    }
}
