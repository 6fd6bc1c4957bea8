/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.c: the network between the two engines: one link each way that copies, delays, reorders,
 * duplicates, corrupts and loses packets as the tape says. In the byte path packets travel as bytes
 * with an ICRC, so that corruption is a flipped bit and detection is the codec's.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "villain.h"
#include "wire/icrc.h"
#include "wire/roce.h"

enum {
    MAX_BATCH = 32,
};

enum fate {
    FATE_DELIVER,
    FATE_DROP,
    FATE_DUP,
    FATE_DELAY,
    FATE_CORRUPT,
};

static const char *const fate_name[] = {"", "LOST", "TWICE", "LATE", "CORRUPT"};

const char *const link_fault_name[FAULT_KINDS] = {
    [FAULT_LOST] = "lost",
    [FAULT_TWICE] = "twice",
    [FAULT_LATE] = "late",
    [FAULT_CORRUPT] = "corrupt",
    [FAULT_DOWN] = "lost on a link that was down",
    [FAULT_BURST] = "lost in a burst",
    [FAULT_HOLE] = "lost for its size",
    [FAULT_PATH] = "lost when the path changed",
};

static void sink_train(struct nic_sink *sink, const struct train *t);

void link_init(struct world *w, int to)
{
    struct link *l = &w->link[to];
    *l = (struct link){.world = w, .to = to};
    w->source[to] = (struct source){.sink = {.train = sink_train}, .world = w, .from = to};
    l->latency_ns = w->opt.latency_ns;
    TAILQ_INIT(&l->flights);
}

static void flight_free(struct flight *f)
{
    free(f->bytes);
    free(f);
}

void link_fini(struct world *w, int to)
{
    struct link *l = &w->link[to];
    struct flight *f;
    while ((f = TAILQ_FIRST(&l->flights)) != NULL) {
        TAILQ_REMOVE(&l->flights, f, link);
        flight_free(f);
    }
}

uint64_t link_next_ns(const struct link *l)
{
    const struct flight *f = TAILQ_FIRST(&l->flights);
    return f == NULL ? UINT64_MAX : f->at_ns;
}

/* The QP that made a train. */
static const struct slot *slot_of(const struct world *w, int from, const struct train *t)
{
    const struct node *n = &w->node[from];
    for (int i = 0; i < n->slots; i++)
        if (n->slot[i].qp == t->qp)
            return &n->slot[i];
    return NULL;
}

static int node_of(const struct world *w, const struct net_addr *addr)
{
    for (int i = 0; i < w->opt.nodes; i++)
        if (memcmp(&w->node[i].addr, addr, sizeof(*addr)) == 0)
            return i;
    return -1;
}

void link_draw(struct world *w)
{
    struct options *o = &w->opt;
    if (o->perfect)
        return;
    if (tape_below(w->tape, 8) == 7)
        o->one_way = 1 + (int)tape_below(w->tape, (uint32_t)o->nodes);
    if (tape_below(w->tape, 6) == 5) {
        o->burst_ppm = tape_below(w->tape, 2) == 0 ? 500 : 5000;
        o->burst_end_ppm = tape_below(w->tape, 2) == 0 ? 300000 : 50000;
        o->burst_drop_ppm = tape_below(w->tape, 2) == 0 ? 1000000 : 500000;
    }
    if (tape_below(w->tape, 8) == 7) {
        o->hole_ppm = tape_below(w->tape, 2) == 0 ? 1000 : 20000;
        o->hole_ns = 50000 << tape_below(w->tape, 8);
        o->hole_bytes = 64 + tape_below(w->tape, o->mtu);
    }
}

static enum fate happened(struct world *w, enum fault_kind kind, enum fate fate)
{
    w->fault_kind[kind]++;
    return fate;
}

/* Losses with a memory: the link is down, in a burst, or too narrow for a while. */
static enum fate draw_loss(struct world *w, struct link *l, uint32_t bytes)
{
    const struct options *o = &w->opt;
    if (l->down_until_ns <= w->now_ns && tape_chance(w->tape, o->down_ppm))
        l->down_until_ns = w->now_ns + o->down_ns;
    if (l->down_until_ns > w->now_ns)
        return happened(w, FAULT_DOWN, FATE_DROP);
    l->burst =
        l->burst ? !tape_chance(w->tape, o->burst_end_ppm) : tape_chance(w->tape, o->burst_ppm);
    if (l->burst && tape_chance(w->tape, o->burst_drop_ppm))
        return happened(w, FAULT_BURST, FATE_DROP);
    if (l->hole_until_ns <= w->now_ns && tape_chance(w->tape, o->hole_ppm))
        l->hole_until_ns = w->now_ns + o->hole_ns;
    if (l->hole_until_ns > w->now_ns && bytes > o->hole_bytes)
        return happened(w, FAULT_HOLE, FATE_DROP);
    return FATE_DELIVER;
}

static enum fate draw_other(struct world *w)
{
    const struct options *o = &w->opt;
    if (tape_chance(w->tape, o->drop_ppm))
        return happened(w, FAULT_LOST, FATE_DROP);
    if (tape_chance(w->tape, o->corrupt_ppm))
        return happened(w, FAULT_CORRUPT, FATE_CORRUPT);
    if (tape_chance(w->tape, o->dup_ppm))
        return happened(w, FAULT_TWICE, FATE_DUP);
    if (tape_chance(w->tape, o->reorder_ppm))
        return happened(w, FAULT_LATE, FATE_DELAY);
    return FATE_DELIVER;
}

static bool faulty(const struct world *w, const struct link *l)
{
    const struct options *o = &w->opt;
    return !o->perfect && w->sent_packets <= o->fault_packets &&
           (o->one_way == 0 || o->one_way == 1 + l->to);
}

/* What becomes of this packet of a direction. Faults stop after a while, and where the retries must
 * do, there are fewer of them between two steps of progress than there are retries. */
static enum fate draw_fate(struct world *w, struct link *l, struct direction *d, uint32_t bytes)
{
    const struct options *o = &w->opt;
    enum fate fate = FATE_DELIVER;
    if (o->small) {
        if (d->faults_before + d->faults < o->retry_cnt)
            fate = (enum fate)tape_below(w->tape, 4);
    } else if (faulty(w, l) && !(o->limited && d->faults_before + d->faults + 2 > o->retry_cnt)) {
        fate = draw_loss(w, l, bytes);
        if (fate == FATE_DELIVER)
            fate = draw_other(w);
    }
    if (fate != FATE_DELIVER) {
        d->faults++;
        w->fault_count++;
        w->fault_end_ns = w->now_ns;
    }
    return fate;
}

/* Another path from here on; what is on the old one may be lost. */
static void change_path(struct world *w, struct link *l)
{
    struct flight *f;
    l->latency_ns = tape_below(w->tape, w->opt.latency_ns + w->opt.latency2_ns + 1);
    if (tape_below(w->tape, 2) == 0)
        return;
    while ((f = TAILQ_FIRST(&l->flights)) != NULL) {
        TAILQ_REMOVE(&l->flights, f, link);
        flight_free(f);
        w->fault_kind[FAULT_PATH]++;
        w->fault_count++;
        w->fault_end_ns = w->now_ns;
    }
}

static void pseudo(const struct rx_packet *rx, uint32_t n, struct icrc_pseudo *ip)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    *ip = (struct icrc_pseudo){
        .v6 = memcmp(rx->src.b, mapped, sizeof(mapped)) != 0,
        .udp_sport = 0xc123,
        .udp_dport = ROCE_UDP_PORT,
        .udp_bytes = (uint16_t)(8 + n),
        .dont_fragment = true,
    };
    memcpy(ip->src, ip->v6 ? rx->src.b : rx->src.b + 12, ip->v6 ? 16 : 4);
    memcpy(ip->dst, ip->v6 ? rx->dst.b : rx->dst.b + 12, ip->v6 ? 16 : 4);
}

static void gather(uint8_t *to, const struct train *t, const struct train_packet *p)
{
    uint32_t used = 0;
    for (unsigned i = 0; i < p->spans; i++) {
        const struct span *s = &t->span[p->first_span + i];
        memcpy(to + used, s->addr, s->bytes);
        used += s->bytes;
    }
    assert(used == p->payload_bytes);
}

static struct flight *flight_make(struct world *w, const struct train *t,
                                  const struct train_packet *p)
{
    struct flight *f = calloc(1, sizeof(*f));
    assert(f != NULL);
    f->rx = (struct rx_packet){.h = p->h,
                               .payload_bytes = p->payload_bytes,
                               .src = t->path->local,
                               .dst = t->path->remote,
                               .traffic_class = t->path->traffic_class,
                               .icrc_ok = true};
    f->raw = w->opt.raw;
    f->n = f->raw ? roce_packet_bytes(p->h.bth.opcode, p->payload_bytes) : p->payload_bytes;
    f->bytes = malloc(f->n + (f->n == 0));
    assert(f->bytes != NULL);
    if (!f->raw) {
        gather(f->bytes, t, p);
        return f;
    }
    uint8_t headers[ROCE_MAX_HEADER_BYTES];
    size_t n = roce_build_headers(&p->h, headers);
    memset(f->bytes, 0, f->n);
    memcpy(f->bytes, headers, n);
    gather(f->bytes + n, t, p);
    struct icrc_pseudo ip;
    pseudo(&f->rx, f->n, &ip);
    uint32_t crc = icrc_begin(&ip, f->bytes);
    crc = icrc_end(icrc_update(crc, f->bytes + BTH_BYTES, f->n - BTH_BYTES - ICRC_BYTES));
    for (int i = 0; i < ICRC_BYTES; i++)
        f->bytes[f->n - ICRC_BYTES + (size_t)i] = (uint8_t)(crc >> (8 * i));
    return f;
}

static struct flight *flight_copy(const struct flight *f)
{
    struct flight *c = malloc(sizeof(*c));
    assert(c != NULL);
    *c = *f;
    c->bytes = malloc(f->n + (f->n == 0));
    assert(c->bytes != NULL);
    memcpy(c->bytes, f->bytes, f->n);
    return c;
}

static void corrupt(struct world *w, struct flight *f)
{
    if (f->raw) {
        uint32_t bits = tape_range(w->tape, 1, 3);
        uint32_t at = tape_below(w->tape, f->n * 8 - 4); /* a burst, which a CRC always sees */
        for (uint32_t i = 0; i < bits; i++)
            f->bytes[(at + i) / 8] ^= (uint8_t)(1u << ((at + i) % 8));
        return;
    }
    f->rx.icrc_ok = false;
    f->rx.h.bth.psn = psn_make(f->rx.h.bth.psn.v ^ 1u << tape_below(w->tape, 24));
    f->rx.h.bth.dest_qp ^= tape_below(w->tape, 4) == 3 ? 1 : 0;
    if (f->n > 0)
        f->bytes[tape_below(w->tape, f->n)] ^= 1;
}

static void insert(struct link *l, struct flight *f)
{
    struct flight *before = TAILQ_LAST(&l->flights, flight_list);
    while (before != NULL && before->at_ns > f->at_ns)
        before = TAILQ_PREV(before, flight_list, link);
    if (before == NULL)
        TAILQ_INSERT_HEAD(&l->flights, f, link);
    else
        TAILQ_INSERT_AFTER(&l->flights, before, f, link);
}

/* When it arrives: after what went before it, unless its fate is to be late. */
static uint64_t arrival_ns(struct world *w, struct link *l, uint32_t bytes, enum fate fate)
{
    const struct options *o = &w->opt;
    if (l->busy_until_ns < w->now_ns)
        l->busy_until_ns = w->now_ns;
    l->busy_until_ns += (uint64_t)bytes * o->byte_ns_x16 / 16;
    uint64_t at = l->busy_until_ns + l->latency_ns;
    if (o->jitter_ns != 0)
        at += tape_below(w->tape, o->jitter_ns);
    if (fate == FATE_DELAY)
        return at + (o->small ? o->reorder_ns : tape_below(w->tape, o->reorder_ns + 1));
    if (at < l->last_at_ns && o->shift_packets == 0)
        at = l->last_at_ns;
    l->last_at_ns = at;
    return at;
}

/* Into the link, as its fate will have it. */
static void launch(struct world *w, struct link *l, struct flight *f, enum fate fate,
                   uint32_t bytes)
{
    f->at_ns = arrival_ns(w, l, bytes, fate);
    if (fate == FATE_CORRUPT)
        corrupt(w, f);
    insert(l, f);
    if (fate == FATE_DUP) {
        struct flight *copy = flight_copy(f);
        copy->at_ns +=
            w->opt.small ? w->opt.reorder_ns : tape_below(w->tape, w->opt.reorder_ns + 1);
        insert(l, copy);
    }
}

static void send_packet(struct world *w, int from, const struct train *t,
                        const struct train_packet *p)
{
    const struct slot *s = slot_of(w, from, t);
    int to = node_of(w, &t->path->remote);
    if (s == NULL || s->pair < 0 || to < 0) {
        world_fail(w, "node %d sends what no QP of it can send", from);
        return;
    }
    bool response = opcode_info(p->h.bth.opcode)->flags & OPF_RESPONSE;
    struct direction *d = world_direction(w, s->pair, s->side, !response);
    struct link *l = &w->link[to];
    struct trace_event *e = world_trace(w, TRACE_SENT, from);
    e->h = p->h;
    e->payload_bytes = p->payload_bytes;
    bool own = marks_is_own(&p->h);
    if (own)
        marks_sent(w, from, (int)(s - w->node[from].slot), &p->h, t->path);
    else
        sniff_sent(w, d, &p->h, p->payload_bytes);
    w->sent_packets++;
    if (!response && !own)
        pace_sent(w, from, (int)(s - w->node[from].slot),
                  roce_packet_bytes(p->h.bth.opcode, p->payload_bytes));
    l->packets++;
    if (w->opt.shift_packets != 0 && l->packets % w->opt.shift_packets == 0 && faulty(w, l))
        change_path(w, l);
    uint32_t bytes = roce_packet_bytes(p->h.bth.opcode, p->payload_bytes);
    enum fate fate = draw_fate(w, l, d, bytes);
    e->note = fate_name[fate];
    if (fate == FATE_DROP)
        return;
    struct flight *f = flight_make(w, t, p);
    f->pair = s->pair;
    marks_meet(w, &f->rx);
    launch(w, l, f, fate, bytes);
}

static void sink_train(struct nic_sink *sink, const struct train *t)
{
    struct source *source = (struct source *)sink;
    struct world *w = source->world;
    uint32_t total = 0;
    if (villain_takes(w, t))
        return;
    for (unsigned i = 0; i < t->packets; i++) {
        const struct train_packet *p = &t->packet[i];
        uint32_t bytes = roce_packet_bytes(p->h.bth.opcode, p->payload_bytes);
        bool last = i == t->packets - 1u;
        total += bytes;
        if (last ? bytes > t->packet_bytes : bytes != t->packet_bytes)
            world_fail(w, "a train whose packets differ in size");
        send_packet(w, source->from, t, p);
    }
    if (t->packets == 0 || total != t->total_bytes || total > TRAIN_MAX_BYTES ||
        t->packets > TRAIN_MAX_PACKETS)
        world_fail(w, "a train of %u packets and %u bytes", t->packets, total);
}

/* Checks and parses what travelled as bytes; false: no packet any more. */
static bool unpack(struct flight *f)
{
    f->rx.payload = f->bytes;
    if (!f->raw)
        return true;
    if (roce_check(f->bytes, f->n) != ROCE_OK)
        return false;
    struct icrc_pseudo ip;
    pseudo(&f->rx, f->n, &ip);
    f->rx.icrc_ok = icrc_check(&ip, f->bytes, f->n);
    roce_parse(f->bytes, f->n, &f->rx.h, &f->rx.payload, &f->rx.payload_bytes);
    return true;
}

/* Takes the next packet that is due off the link; NULL: none that is one still. */
static struct flight *next_due(struct world *w, struct link *l)
{
    while (link_next_ns(l) <= w->now_ns) {
        struct flight *f = TAILQ_FIRST(&l->flights);
        TAILQ_REMOVE(&l->flights, f, link);
        if (unpack(f)) {
            struct trace_event *e = world_trace(w, TRACE_RECEIVED, l->to);
            e->h = f->rx.h;
            e->payload_bytes = f->rx.payload_bytes;
            e->note = f->rx.icrc_ok ? "" : "BAD ICRC";
            return f;
        }
        flight_free(f);
    }
    return NULL;
}

void link_deliver(struct world *w, struct link *l)
{
    struct rx_packet rx[MAX_BATCH];
    struct flight *held[MAX_BATCH];
    struct flight *f;
    assert(w->opt.input_batch <= MAX_BATCH);
    do {
        unsigned n = 0;
        int stale = -1;
        while (n < w->opt.input_batch && stale < 0 && (f = next_due(w, l)) != NULL) {
            rx[n] = f->rx;
            held[n] = f;
            if (sniff_is_stale(w, l->to, f))
                stale = (int)n;
            n++;
        }
        /* What is not of this life comes alone: it must change nothing. */
        unsigned own = stale < 0 ? n : (unsigned)stale;
        if (own > 0) {
            marks_before(w, l->to, rx, own);
            nic_input(w->node[l->to].nic, w->now_ns, rx, own);
            marks_after(w, l->to, rx, own);
            check_step(w, l->to);
            sniff_received(w, l->to, rx, own);
        }
        if (stale >= 0) {
            marks_before(w, l->to, &rx[stale], 1);
            sniff_stale(w, l->to, &rx[stale]);
            check_step(w, l->to);
        }
        for (unsigned i = 0; i < n; i++)
            flight_free(held[i]);
    } while (!w->failed && link_next_ns(l) <= w->now_ns);
}
