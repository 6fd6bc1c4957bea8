/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.c: the NIC engine as a host: the same that runs live (src/nic), with queue pairs, keys and
 * work requests. Each flow is a reliable connection that writes messages into its peer's memory.
 * Trains are cut into frames that carry headers and no payload: what arrives is written from one
 * piece of memory that all hosts share.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fabric/source.h"
#include "nic/cq.h"
#include "nic/mem.h"
#include "nic/nic.h"
#include "nic/qp.h"
#include "nic/wq.h"
#include "wire/roce.h"

enum {
    MESSAGE_BYTES = 1 << 20, /* of a work request */
    MAX_POSTED = 8,          /* of a flow */
    QPN_SLOT = 1,
    FRAME_BYTES = 46, /* around BTH to ICRC: Ethernet with FCS 18, IPv4 20, UDP 8 */
    ACK_TIMEOUT_NS = 4096,
    RTR_MASK = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
               QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
    RTS_MASK = QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
               QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC,
};
#define EPOCH_NS UINT64_C(1000000) /* what the engine is told at the beginning: never 0 */

struct engine {
    struct source source; /* first: it is the endpoint's state */
    struct fabric *fabric;
    struct endpoint *endpoint;
    struct nic_sink sink;
    struct nic *nic;
    struct pd *pd;
    struct cq *cq;
    struct mr *mr;
    uint32_t pairs;
    uint8_t priorities;                        /* mask: what its pairs send by */
    struct packet_list out[FABRIC_PRIORITIES]; /* cut, and not sent yet */
};

struct engine_flow {
    struct qp *qp[2];      /* the sender's, the receiver's */
    uint64_t posted, done; /* bytes */
    uint32_t next_psn;     /* behind what was sent last */
    bool sent;
};

static struct engine *engine_of(const struct endpoint *e)
{
    return e->state;
}

static uint64_t now_ns(const struct fabric *f)
{
    return f->sched.now_ps / 1000 + EPOCH_NS;
}

static struct net_addr address(uint32_t host)
{
    struct net_addr a = {
        .b = {[10] = 0xff, 0xff, 10}
    };
    put_be24(&a.b[13], host + 1);
    return a;
}

/* Whose train it is: its path is the pair's own. */
static struct qp *pair_of(const struct train *t)
{
    return (struct qp *)((char *)(uintptr_t)t->path - offsetof(struct qp, attr.path));
}

/* A packet that goes back behind what was sent is a retry; those that follow it are not. */
static void count_retry(struct flow *w, struct engine_flow *ef, struct psn psn)
{
    if (ef->sent && psn_diff(psn, psn_make(ef->next_psn)) < 0)
        w->retries++;
    ef->sent = true;
    ef->next_psn = psn_add(psn, 1).v;
}

static void sink_train(struct nic_sink *sink, const struct train *t)
{
    struct engine *g = (struct engine *)((char *)sink - offsetof(struct engine, sink));
    struct fabric *f = g->fabric;
    struct qp *qp = pair_of(t);
    struct flow *w = qp->owner;
    struct engine_flow *ef = &f->engine_flow[w->index];
    bool forth = qp == ef->qp[0];
    uint8_t dscp = t->path->traffic_class >> 2;
    for (unsigned i = 0; i < t->packets; i++) {
        const struct train_packet *from = &t->packet[i];
        uint32_t packet = packet_take(&f->pool);
        if (packet == PACKET_NONE) {
            f->full = true;
            return;
        }
        bool request = (opcode_info(from->h.bth.opcode)->flags & OPF_RESPONSE) == 0;
        if (request)
            count_retry(w, ef, from->h.bth.psn);
        f->headers[packet] = from->h;
        f->pool.packet[packet] = (struct packet){
            .flow = w->index,
            .dst = forth ? w->dst : w->src,
            .hash = forth ? w->hash : w->back_hash,
            .bytes = (uint16_t)(FRAME_BYTES +
                                roce_packet_bytes(from->h.bth.opcode, from->payload_bytes)),
            .payload_bytes = (uint16_t)from->payload_bytes,
            .kind = request ? PACKET_DATA : PACKET_ACK,
            .dscp = dscp,
            .priority = dscp / 8,
        };
        packet_push(&f->pool, &g->out[dscp / 8], packet);
    }
}

/* Messages up to the limit. */
static void post(struct fabric *f, struct engine *g, struct flow *w)
{
    struct engine_flow *ef = &f->engine_flow[w->index];
    const struct engine *peer = engine_of(&f->endpoint[w->dst]);
    while (ef->posted < w->bytes && ef->posted - ef->done < MAX_POSTED * (uint64_t)MESSAGE_BYTES) {
        uint64_t left = w->bytes - ef->posted;
        uint32_t bytes = left < MESSAGE_BYTES ? (uint32_t)left : MESSAGE_BYTES;
        struct nic_sge sge = {(uintptr_t)f->memory, bytes, g->mr->key};
        struct nic_send_wr wr = {
            .wr_id = w->index,
            .opcode = WR_RDMA_WRITE,
            .flags = WR_SIGNALED,
            .sg_list = &sge,
            .num_sge = 1,
            .remote_addr = (uintptr_t)f->memory,
            .rkey = peer->mr->key,
        };
        if (wq_post_send(ef->qp[0], &wr) != 0)
            return;
        ef->posted += bytes;
    }
}

/* Completions come in order, so each tells of the oldest message. One with an error ends the flow,
 * which never finishes. */
static void complete(struct fabric *f, struct engine *g)
{
    struct nic_wc wc;
    struct nic_event event;
    while (cq_poll(g->cq, 1, &wc) == 1) {
        struct flow *w = &f->flow[wc.wr_id];
        struct engine_flow *ef = &f->engine_flow[w->index];
        if (wc.status != WC_SUCCESS)
            continue;
        uint64_t left = w->bytes - ef->done, bytes = left < MESSAGE_BYTES ? left : MESSAGE_BYTES;
        ef->done += bytes;
        f->totals.acked_bytes += bytes;
        f->progress_ps = f->sched.now_ps;
        if (ef->done == w->bytes)
            source_finish(f, g->endpoint, w);
        else
            post(f, g, w);
    }
    while (nic_event_next(g->nic, &event))
        continue;
}

/* After anything that the engine was told: what came out, and when it wants to hear again. */
static void settle(struct fabric *f, struct engine *g)
{
    complete(f, g);
    uint64_t deadline = nic_deadline(g->nic);
    g->source.engine_ps = FABRIC_NEVER;
    if (deadline != UINT64_MAX)
        g->source.engine_ps = deadline > EPOCH_NS ? (deadline - EPOCH_NS) * 1000 : 0;
    source_arm(f, g->endpoint);
    if (!nic_has_output(g->nic))
        return;
    f->port[g->endpoint->port].source |= g->priorities;
    egress_kick(f, g->endpoint->port);
}

static uint32_t engine_pull(struct fabric *f, struct endpoint *e, unsigned priority)
{
    struct engine *g = engine_of(e);
    while (g->out[priority].head == PACKET_NONE && nic_has_output(g->nic) && !f->full)
        if (!nic_output(g->nic, now_ns(f), &g->sink, 1))
            break;
    uint64_t deadline = nic_deadline(g->nic); /* a request that left has one */
    if (deadline != UINT64_MAX && (deadline - EPOCH_NS) * 1000 < g->source.engine_ps) {
        g->source.engine_ps = (deadline - EPOCH_NS) * 1000;
        source_arm(f, e);
    }
    struct port *p = &f->port[e->port];
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++) /* trains of others may have come by the way */
        if (g->out[i].head != PACKET_NONE)
            p->source |= (uint8_t)(1u << i);
    if (g->out[priority].head != PACKET_NONE)
        return packet_pop(&f->pool, &g->out[priority]);
    p->source &= (uint8_t) ~(1u << priority);
    return PACKET_NONE;
}

static void engine_receive(struct fabric *f, struct endpoint *e, uint32_t packet)
{
    struct engine *g = engine_of(e);
    struct packet k = f->pool.packet[packet];
    const struct flow *w = &f->flow[k.flow];
    bool forth = &f->endpoint[w->dst] == e;
    struct rx_packet rx = {
        .h = f->headers[packet],
        .payload = f->memory,
        .payload_bytes = k.payload_bytes,
        .src = address(forth ? w->src : w->dst),
        .dst = address(forth ? w->dst : w->src),
        .traffic_class = (uint8_t)(k.dscp << 2 | ((k.flags & PACKET_CE) != 0 ? 3 : 2)),
        .hop_limit = 64,
        .icrc_ok = true,
    };
    packet_give(&f->pool, packet);
    if (k.kind == PACKET_ACK)
        f->progress_ps = f->sched.now_ps; /* retries are limited, so answers cannot come for ever */
    nic_input(g->nic, now_ns(f), &rx, 1);
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
        post(f, g, w);
    }
    if (nic_deadline(g->nic) <= now_ns(f))
        nic_advance(g->nic, now_ns(f));
    settle(f, g);
}

static const struct endpoint_ops engine_ops = {
    .receive = engine_receive,
    .pull = engine_pull,
    .timer = engine_timer,
};

static int device_create(struct fabric *f, uint32_t host, int cqes)
{
    struct engine *g = calloc(1, sizeof(*g));
    struct endpoint *e = &f->endpoint[host];
    struct nic_config config = {
        .seed = f->config.seed ^ (host + UINT64_C(1)) << 32,
        .window_bytes = (uint32_t)f->config.hosts.window_bytes,
    };
    if (g == NULL)
        return -ENOMEM;
    e->ops = &engine_ops;
    int rc = source_init(f, e, &g->source);
    g->fabric = f;
    g->endpoint = e;
    g->sink = (struct nic_sink){.train = sink_train};
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
        g->out[i] = (struct packet_list){PACKET_NONE, PACKET_NONE};
    if (rc == 0)
        rc = nic_create(&config, &g->nic);
    if (rc == 0)
        rc = nic_add_qpns(g->nic, QPN_SLOT);
    if (rc == 0)
        rc = mem_pd_create(g->nic, &g->pd);
    if (rc == 0)
        rc = cq_create(g->nic, cqes, g, &g->cq);
    if (rc == 0)
        rc = mem_reg(g->pd, f->memory, MESSAGE_BYTES, (uintptr_t)f->memory,
                     ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, &g->mr);
    return rc;
}

int engine_create(struct fabric *f)
{
    uint32_t *pairs = calloc(f->hosts + 1u, sizeof(*pairs));
    f->engine_flow = calloc(f->flow_count + 1u, sizeof(*f->engine_flow));
    f->headers = malloc((f->pool.capacity + (size_t)1) * sizeof(*f->headers));
    f->memory = calloc(1, MESSAGE_BYTES);
    bool got = pairs != NULL && f->engine_flow != NULL && f->headers != NULL && f->memory != NULL;
    int rc = got ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < f->flow_count; i++)
        pairs[f->node[f->flow_spec[i].src].host]++;
    for (uint32_t i = 0; rc == 0 && i < f->hosts; i++)
        rc = device_create(f, i, (int)(MAX_POSTED * (pairs[i] + 1)));
    free(pairs);
    return rc;
}

static int pair_create(struct fabric *f, uint32_t host, struct flow *w, struct qp **out)
{
    struct engine *g = engine_of(&f->endpoint[host]);
    struct qp_init init = {
        .type = QP_TYPE_RC,
        .pd = g->pd,
        .send_cq = g->cq,
        .recv_cq = g->cq,
        .owner = w,
        .cap = {MAX_POSTED + 1, 1, 1, 1, 0},
    };
    g->priorities |= (uint8_t)(1u << w->priority);
    return qp_create(g->nic, &init, out);
}

/* The shortest time-out that is not shorter than what was asked for; 0 is none. */
static uint8_t timeout_code(uint64_t timeout_ps)
{
    uint8_t code = 0;
    while (timeout_ps != 0 &&
           (code == 0 || ((uint64_t)ACK_TIMEOUT_NS << code) * 1000 < timeout_ps) && code < 31)
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
        .access_flags = ACCESS_REMOTE_WRITE,
        .path = {.local = address(side == 0 ? w->src : w->dst),
                 .remote = address(side == 0 ? w->dst : w->src),
                 .udp_sport = (uint16_t)(0xc000 | (w->hash & 0x3fff)),
                 .traffic_class =
                     (uint8_t)(w->priority << 5 | 2), /* DSCP 8 * priority, ECN-capable */
                 .hop_limit = 64},
        .path_mtu_bytes = (uint16_t)f->config.hosts.payload_bytes,
        .min_rnr_timer = 1,
        .dest_qpn = ef->qp[1 - side]->qpn,
        .rq_psn = w->index & 0xffffff,
        .sq_psn = w->index & 0xffffff,
        .timeout = timeout_code(f->config.hosts.timeout_ps),
        .retry_cnt = 7,
        .rnr_retry = 7,
    };
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
        rc = pair_create(f, w->src, w, &ef->qp[0]);
        if (rc == 0)
            rc = pair_create(f, w->dst, w, &ef->qp[1]);
        for (unsigned side = 0; rc == 0 && side < 2; side++)
            rc = pair_connect(f, w, side);
    }
    return rc;
}

static void device_free(struct engine *g)
{
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
}
