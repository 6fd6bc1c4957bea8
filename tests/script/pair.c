/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair.c: the two engines of pair.h and the link between them.
 */
#include "pair.h"

#include <stdlib.h>
#include <string.h>

#include "wire/roce.h"

struct flight {
    struct flight *next;
    uint64_t arrival;
    int to;
    struct rx_packet packet;
    uint8_t payload[];
};

/* IPv4, IPv6. */
static const struct net_addr address[2][2] = {
    {{.b = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}},
     {.b = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}}                               },
    {{.b = {[0] = 0xfd, [15] = 1}},                          {.b = {[0] = 0xfd, [15] = 2}}},
};

static void send_off(struct pair *p, int to, const struct rx_packet *packet, uint64_t arrival)
{
    struct flight *f = malloc(sizeof(*f) + packet->payload_bytes);
    assert_non_null(f);
    f->arrival = arrival;
    f->to = to;
    f->packet = *packet;
    f->packet.payload = f->payload;
    if (packet->payload_bytes != 0)
        memcpy(f->payload, packet->payload, packet->payload_bytes);
    struct flight **at = &p->flights;
    while (*at != NULL && (*at)->arrival <= arrival)
        at = &(*at)->next;
    f->next = *at;
    *at = f;
}

static void transmit(struct side *s, struct rx_packet *packet)
{
    struct pair *p = s->pair;
    struct fate fate = {0};
    s->packets++;
    if (p->hook != NULL)
        fate = p->hook(p, s->which, packet);
    if (fate.drop)
        return;
    if (p->config.direct) {
        nic_input(p->side[!s->which].nic, p->now, packet, 1);
        return;
    }
    send_off(p, !s->which, packet, p->now + p->delay_ns + fate.extra_ns);
    if (fate.twice)
        send_off(p, !s->which, packet, p->now + 2 * p->delay_ns + fate.extra_ns);
}

static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct side *s = (struct side *)((char *)sink - offsetof(struct side, sink));
    uint8_t buffer[4096];
    assert_ptr_equal(t->qp, s->qp);
    for (unsigned i = 0; i < t->packets; i++) {
        const struct train_packet *from = &t->packet[i];
        struct rx_packet packet = {
            .h = from->h,
            .payload = buffer,
            .payload_bytes = from->payload_bytes,
            .src = t->path->local,
            .dst = t->path->remote,
            .traffic_class = t->path->traffic_class,
            .icrc_ok = true,
        };
        uint32_t n = 0;
        if (from->spans == 1) {
            packet.payload = t->span[from->first_span].addr;
        } else {
            for (unsigned k = 0; k < from->spans; k++) {
                const struct span *span = &t->span[from->first_span + k];
                memcpy(buffer + n, span->addr, span->bytes);
                n += span->bytes;
            }
        }
        transmit(s, &packet);
    }
}

static uint32_t or_else(uint32_t value, uint32_t fallback)
{
    return value != 0 ? value : fallback;
}

static void side_create(struct pair *p, int which)
{
    struct side *s = &p->side[which];
    const struct pair_config *c = &p->config;
    struct nic_config config = {
        .seed = 11 + (uint64_t)which, .window_bytes = c->window_bytes, .congestion = c->congestion};
    uint32_t wrs = or_else(c->wrs, 64), sges = 4;
    s->pair = p;
    s->which = which;
    s->sink.train = take_train;
    s->memory_bytes = c->memory_bytes != 0 ? c->memory_bytes : 65536;
    s->memory = c->memory[which] != NULL ? c->memory[which] : calloc(1, s->memory_bytes);
    assert_non_null(s->memory);
    assert_int_equal(nic_create(&config, &s->nic), 0);
    assert_int_equal(nic_add_qpns(s->nic, 3 + (uint32_t)which), 0);
    assert_int_equal(mem_pd_create(s->nic, &s->pd), 0);
    assert_int_equal(mem_pd_create(s->nic, &s->other_pd), 0);
    unsigned all =
        ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
    assert_int_equal(mem_reg(s->pd, s->memory, s->memory_bytes, (uintptr_t)s->memory, all, &s->mr),
                     0);
    assert_int_equal(cq_create(s->nic, 2 * (int)wrs, NULL, &s->scq), 0);
    assert_int_equal(cq_create(s->nic, 2 * (int)wrs, NULL, &s->rcq), 0);
    if (c->srq && which == B)
        assert_int_equal(wq_srq_create(s->pd, &wrs, &sges, 0, NULL, &s->srq), 0);
    struct qp_init init = {
        .type = c->type != 0 ? c->type : QP_TYPE_RC,
        .pd = s->pd,
        .send_cq = s->scq,
        .recv_cq = s->rcq,
        .srq = s->srq,
        .sq_sig_all = true,
        .cap = {wrs, wrs, 4, 4, 64},
    };
    assert_int_equal(qp_create(s->nic, &init, &s->qp), 0);
}

static void side_attributes(struct pair *p, int which)
{
    const struct pair_config *c = &p->config;
    p->side[which].attr = (struct nic_qp_attr){
        .access_flags =
            or_else(c->access, ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC),
        .port_num = 1,
        .path = {.local = address[c->v6][which],
                 .remote = address[c->v6][!which],
                 .udp_sport = (uint16_t)(0xc000 + which),
                 .traffic_class = c->traffic_class,
                 .hop_limit = 64},
        .path_mtu_bytes = (uint16_t)or_else(c->mtu, 1024),
        .timeout = c->timeout,
        .retry_cnt = c->retry,
        .rnr_retry = c->rnr_retry,
        .min_rnr_timer = c->min_rnr,
        .max_rd_atomic = (uint8_t)or_else(c->rd_atomic, 4),
        .max_dest_rd_atomic = (uint8_t)or_else(c->rd_atomic, 4),
        .rq_psn = which == A ? 0xfffff0 : 1000,
        .sq_psn = which == A ? 1000 : 0xfffff0,
        .dest_qpn = p->side[!which].qp->qpn,
    };
}

void pair_create(struct pair *p, const struct pair_config *config)
{
    *p = (struct pair){.config = *config, .now = 5 * MS, .delay_ns = 2 * US};
    rng_init(&p->rng, 99);
    side_create(p, A);
    side_create(p, B);
    side_attributes(p, A);
    side_attributes(p, B);
}

void pair_destroy(struct pair *p)
{
    while (p->flights != NULL) {
        struct flight *f = p->flights;
        p->flights = f->next;
        free(f);
    }
    for (int i = A; i <= B; i++) {
        struct side *s = &p->side[i];
        qp_unlink(s->qp);
        qp_free(s->qp);
        if (s->srq != NULL)
            assert_int_equal(wq_srq_destroy(s->srq), 0);
        assert_int_equal(cq_destroy(s->scq), 0);
        assert_int_equal(cq_destroy(s->rcq), 0);
        if (s->mr != NULL) {
            mem_mr_revoke(s->mr);
            mem_mr_free(s->mr);
        }
        assert_int_equal(mem_pd_destroy(s->pd), 0);
        assert_int_equal(mem_pd_destroy(s->other_pd), 0);
        nic_destroy(s->nic);
        if (p->config.memory[i] == NULL)
            free(s->memory);
    }
}

int pair_modify(struct pair *p, int side, enum qp_state to)
{
    struct side *s = &p->side[side];
    unsigned mask = QP_ATTR_STATE;
    if (to == QP_STATE_INIT)
        mask |= QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS;
    if (to == QP_STATE_RTR)
        mask |= QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
    if (to == QP_STATE_RTR && s->qp->type == QP_TYPE_RC)
        mask |= QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
    if (to == QP_STATE_RTS && s->qp->state == QP_STATE_RTR)
        mask |= QP_ATTR_SQ_PSN;
    if (to == QP_STATE_RTS && s->qp->state == QP_STATE_RTR && s->qp->type == QP_TYPE_RC)
        mask |= QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC;
    s->attr.state = to;
    return qp_modify(s->qp, &s->attr, mask);
}

void pair_bring(struct pair *p, int side, enum qp_state to)
{
    for (enum qp_state next = QP_STATE_INIT; next <= to && next <= QP_STATE_RTS; next++)
        if (p->side[side].qp->state < next)
            assert_int_equal(pair_modify(p, side, next), 0);
}

int pair_try(struct pair *p, int side, struct work w)
{
    struct side *s = &p->side[side];
    const struct side *peer = &p->side[!side];
    struct nic_sge sge = {(uintptr_t)s->memory + w.at, w.len, or_else(w.lkey, s->mr->key)};
    struct nic_send_wr wr = {
        .wr_id = w.id,
        .opcode = w.opcode,
        .flags = w.flags,
        .sg_list = &sge,
        .num_sge = w.len != 0,
        .imm_or_inv = w.imm,
        .remote_addr = (uintptr_t)peer->memory + w.va,
        .rkey = w.no_rkey     ? 0
                : w.rkey != 0 ? w.rkey
                              : peer->mr->key,
        .compare_add = w.opcode == WR_ATOMIC_FETCH_AND_ADD ? w.a : w.b,
        .swap = w.a,
    };
    return wq_post_send(s->qp, &wr);
}

void pair_post(struct pair *p, int side, struct work w)
{
    assert_int_equal(pair_try(p, side, w), 0);
}

void pair_recv(struct pair *p, int side, struct work w)
{
    struct side *s = &p->side[side];
    struct nic_sge sge = {(uintptr_t)s->memory + w.at, w.len, or_else(w.lkey, s->mr->key)};
    struct nic_recv_wr wr = {.wr_id = w.id, .sg_list = &sge, .num_sge = w.len != 0};
    if (s->srq != NULL)
        assert_int_equal(wq_post_srq_recv(s->srq, &wr), 0);
    else
        assert_int_equal(wq_post_recv(s->qp, &wr), 0);
}

static uint64_t next_time(struct pair *p)
{
    uint64_t t = p->flights != NULL ? p->flights->arrival : UINT64_MAX;
    for (int i = A; i <= B; i++)
        if (nic_deadline(p->side[i].nic) < t)
            t = nic_deadline(p->side[i].nic);
    return t;
}

static void pump(struct pair *p)
{
    bool more;
    do {
        more = false;
        for (int i = A; i <= B; i++)
            more |= nic_output(p->side[i].nic, p->now, &p->side[i].sink, 16) ||
                    nic_has_output(p->side[!i].nic);
    } while (more);
}

/* All that is due at one moment; false when nothing is before the end. */
static bool step(struct pair *p, uint64_t end)
{
    pump(p);
    uint64_t t = next_time(p);
    if (t == UINT64_MAX || t > end)
        return false;
    if (t > p->now)
        p->now = t;
    while (p->flights != NULL && p->flights->arrival <= p->now) {
        struct flight *f = p->flights;
        p->flights = f->next;
        if (p->arrived != NULL)
            p->arrived(p, f->to, &f->packet);
        nic_input(p->side[f->to].nic, p->now, &f->packet, 1);
        free(f);
    }
    for (int i = A; i <= B; i++)
        if (nic_deadline(p->side[i].nic) <= p->now) {
            p->side[i].wakes++;
            nic_advance(p->side[i].nic, p->now);
        }
    return true;
}

void pair_run(struct pair *p, uint64_t ns)
{
    uint64_t end = p->now + ns;
    while (step(p, end)) {
    }
    p->now = end;
}

void pair_settle(struct pair *p)
{
    uint64_t end = p->now + 3600000 * MS;
    while (step(p, end)) {
    }
    assert_true(next_time(p) == UINT64_MAX);
}

void pair_inject(struct pair *p, int side, struct rx_packet packet)
{
    nic_input(p->side[side].nic, p->now, &packet, 1);
}

struct rx_packet pair_packet(struct pair *p, int to, uint8_t opcode, uint32_t psn)
{
    static const uint8_t payload[4096];
    struct rx_packet packet = {
        .payload = payload,
        .src = address[p->config.v6][!to],
        .dst = address[p->config.v6][to],
        .icrc_ok = true,
    };
    packet.h.bth = (struct bth){
        .opcode = opcode,
        .mig_req = true,
        .pkey = PKEY_DEFAULT,
        .dest_qp = p->side[to].qp->qpn,
        .ack_req = true,
        .psn = psn_make(psn),
    };
    packet.h.aeth = (struct aeth){0x1f, psn_make(1)};
    return packet;
}

static struct nic_wc expect(struct side *s, struct cq *cq, uint64_t id, enum wc_status status)
{
    struct nic_wc wc = {0};
    assert_int_equal(cq_poll(cq, 1, &wc), 1);
    assert_int_equal(wc.wr_id, id);
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.qp_num, s->qp->qpn);
    return wc;
}

struct nic_wc pair_sent(struct pair *p, int side, uint64_t id, enum wc_status status)
{
    return expect(&p->side[side], p->side[side].scq, id, status);
}

struct nic_wc pair_received(struct pair *p, int side, uint64_t id, enum wc_status status)
{
    return expect(&p->side[side], p->side[side].rcq, id, status);
}

void pair_quiet(struct pair *p)
{
    struct nic_wc wc;
    struct nic_event e;
    for (int i = A; i <= B; i++) {
        assert_int_equal(cq_poll(p->side[i].scq, 1, &wc), 0);
        assert_int_equal(cq_poll(p->side[i].rcq, 1, &wc), 0);
        assert_false(event_next(p->side[i].nic, &e));
    }
}

void pair_event(struct pair *p, int side, enum nic_event_type type)
{
    struct nic_event e;
    assert_true(event_next(p->side[side].nic, &e));
    assert_int_equal(e.type, type);
}

void pair_state(struct pair *p, int side, enum qp_state state)
{
    assert_int_equal(p->side[side].qp->state, state);
}

uint64_t pair_count(struct pair *p, int side, enum nic_counter c)
{
    return counters_get(&p->side[side].nic->counters, c);
}
