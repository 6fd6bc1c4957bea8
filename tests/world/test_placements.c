/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_placements.c: FLUSH and ATOMIC WRITE over faulty links: two devices, two pairs of RC QPs,
 * both ways: stores of 8 bytes, WRITEs of several packets, READs of what was stored, FLUSHes of a
 * range and of all; now and then a request that is refused, after which the pair lives again. The
 * network loses, copies, delays for long, reorders and spoils. In some worlds the requester keeps
 * to no limit in its FLUSHes, as soft-RoCE's does not.
 *
 * Each store and each packet of a WRITE carries the number of its request. Whatever happens: no
 * place ever shows a number that is lower than one it showed before, half of one, or one that was
 * not yet sent or comes after a request that was refused; when a FLUSH is complete, all sent before
 * it is there; a READ shows no less than what was stored before it; all complete once, in order.
 */
#include "faulty.h"
#include "nic/nic.h"
#include "wire/iba.h"
#include "wire/opcode.h"

enum {
    DEVICES = 2,
    QPS = 2, /* of each device; with its namesake at the other */
    DEPTH = 16,
    MTU = FAULTY_MTU,
    CELLS = 4,
    CHUNKS = 3, /* of a WRITE, which is that many packets; each shows its number */
    PLACES = CELLS + CHUNKS,
    AREA_BYTES = CELLS * 8 + CHUNKS * MTU,
    GUARD_BYTES = 64, /* behind each area */
    STEPS = 3000,
    SEEDS = 120,
    TIMEOUT = 4, /* 65 us: more than a delay that is not a fault */
    FILL = 0xcc,
};

enum kind { STORE, WRITE, READ, FLUSH_RANGE, FLUSH_ALL, KINDS };

struct request {
    enum kind kind;
    unsigned cell;
    enum wc_status expect;
    uint32_t before[PLACES]; /* the last number sent to each place before it */
};

/* A requester, and what it knows of the area at its peer. */
struct end {
    struct qp *qp;
    struct cq *cq;
    struct mr *area_mr; /* of our own area, which the peer writes to */
    struct request request[DEPTH];
    uint32_t sent, done; /* numbers of requests, from 1 on, through all lives */
    uint32_t first_bad;  /* of this life; UINT32_MAX: none */
    uint32_t last[PLACES], seen[PLACES];
    uint8_t *area;                     /* ours */
    uint8_t data[DEPTH][CHUNKS * MTU]; /* that WRITEs and SGE stores carry */
    uint64_t result[DEPTH];
    uint32_t stores, flushes, bad; /* that came to their end */
};

struct device {
    struct nic *nic;
    struct pd *pd;
    struct mr *data_mr; /* all memory, locally */
    struct end end[QPS];
    struct nic_sink sink;
    int which;
};

static struct world {
    struct faulty net;
    struct device device[DEVICES];
    uint8_t max_rd, max_dest_rd;
    bool greedy; /* WRITEs and FLUSHes only, of these more at once than the peer has room for */
    uint32_t lives;
} w;

static const struct faulty_odds odds = {4, 6, 90, 1, 8, 300};

static bool chance(uint32_t percent)
{
    return faulty_chance(&w.net, percent);
}

static uint8_t byte_of(uint32_t number, uint32_t at)
{
    return (uint8_t)(number * 31 + at * 7);
}

static void stamp(uint8_t *chunk, uint32_t number)
{
    for (uint32_t i = 4; i < MTU; i++)
        chunk[i] = byte_of(number, i);
    memcpy(chunk, &number, 4);
}

static uint64_t value_of(uint32_t number)
{
    return (uint64_t)number << 32 | number;
}

static const uint8_t *place_of(const uint8_t *area, unsigned place)
{
    return place < CELLS ? area + place * 8 : area + CELLS * 8 + (place - CELLS) * MTU;
}

/* The number that a place shows. */
static uint32_t look(const uint8_t *area, unsigned place)
{
    const uint8_t *at = place_of(area, place);
    uint32_t number;
    memcpy(&number, at, 4);
    if (place < CELLS) {
        assert_memory_equal(at, &(uint64_t){value_of(number)}, 8);
    } else if (number != 0) {
        for (uint32_t i = 4; i < MTU; i++)
            assert_int_equal(at[i], byte_of(number, i));
    }
    return number;
}

/* What e, whose peer's area it is, may see there. */
static void check_area(struct end *e, const uint8_t *area)
{
    for (unsigned i = 0; i < PLACES; i++) {
        uint32_t number = look(area, i);
        assert_in_range(number, e->seen[i], e->last[i]);
        assert_true(number < e->first_bad);
        e->seen[i] = number;
    }
    for (unsigned i = 0; i < GUARD_BYTES; i++)
        assert_int_equal(area[AREA_BYTES + i], FILL);
}

static const uint8_t *peer_area(const struct device *d, unsigned q)
{
    return w.device[!d->which].end[q].area;
}

static void completed(struct device *d, unsigned q, const struct request *r)
{
    struct end *e = &d->end[q];
    const uint8_t *area = peer_area(d, q);
    switch (r->kind) {
    case STORE:
        assert_true(look(area, r->cell) >= e->done);
        e->stores++;
        break;
    case WRITE:
        for (unsigned i = CELLS; i < PLACES; i++)
            assert_true(look(area, i) >= e->done);
        break;
    case READ: {
        uint32_t number = look((const uint8_t *)&e->result[e->done % DEPTH], 0);
        assert_in_range(number, r->before[r->cell], e->last[r->cell]);
        break;
    }
    default:
        for (unsigned i = 0; i < PLACES; i++)
            assert_true(look(area, i) >= r->before[i]);
        e->flushes++;
        break;
    }
}

static enum wc_opcode opcode_of(enum kind kind)
{
    return kind == STORE   ? WC_ATOMIC_WRITE
           : kind == WRITE ? WC_RDMA_WRITE
           : kind == READ  ? WC_RDMA_READ
                           : WC_FLUSH;
}

static void take_done(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_wc wc;
    while (cq_poll(e->cq, 1, &wc) == 1) {
        const struct request *r = &e->request[++e->done % DEPTH];
        assert_int_equal(wc.wr_id, e->done);
        if (e->done > e->first_bad || (e->done < e->first_bad && e->qp->state == QP_STATE_ERR &&
                                       wc.status == WC_WR_FLUSH_ERR)) {
            assert_int_equal(wc.status, WC_WR_FLUSH_ERR);
            continue;
        }
        if (wc.status == WC_WR_FLUSH_ERR) /* the peer's request was refused here */
            continue;
        assert_int_equal(wc.status, r->expect);
        if (r->expect != WC_SUCCESS) {
            e->bad++;
            continue;
        }
        assert_int_equal(wc.opcode, opcode_of(r->kind));
        completed(d, q, r);
    }
}

/* Requests out that await a response: never more than agreed. */
static void check_limit(const struct end *e)
{
    uint32_t out = 0;
    for (uint32_t i = e->qp->sq.head; i != e->qp->sq.tail; i++) {
        const struct send_wqe *s = &e->qp->sq.wqe[i & e->qp->sq.mask];
        out += s->numbered && wr_awaits_response(s->opcode) &&
               psn_before(s->first_psn, e->qp->req.sent_end);
    }
    assert_in_range(out, 0, w.max_rd);
}

static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct device *d = (struct device *)((char *)sink - offsetof(struct device, sink));
    faulty_train(&w.net, !d->which, t);
}

static enum kind draw_kind(void)
{
    if (w.greedy)
        return chance(30) ? WRITE : chance(50) ? FLUSH_RANGE : FLUSH_ALL;
    return (enum kind)rng_below(&w.net.rng, KINDS);
}

/* Makes a request one that is refused. */
static void spoil(struct request *r, struct nic_send_wr *wr, struct nic_sge *sge)
{
    r->expect = WC_REM_ACCESS_ERR;
    if (r->kind >= FLUSH_RANGE && chance(50))
        wr->swap |= FLUSH_PERSISTENT;
    else if (r->kind == STORE && chance(40)) {
        r->expect = WC_REM_INV_REQ_ERR;
        wr->remote_addr += 4;
    } else if (r->kind <= WRITE && wr->num_sge == 1 && !(wr->flags & WR_INLINE) && chance(30)) {
        r->expect = WC_LOC_PROT_ERR;
        sge->lkey ^= 1;
    } else {
        wr->rkey ^= 1;
    }
}

static void fill(struct device *d, unsigned q, struct nic_send_wr *wr, struct nic_sge *sge)
{
    struct end *e = &d->end[q], *peer = &w.device[!d->which].end[q];
    struct request *r = &e->request[e->sent % DEPTH];
    uint8_t *data = e->data[e->sent % DEPTH];
    wr->rkey = peer->area_mr->key;
    wr->remote_addr = (uintptr_t)place_of(peer->area, r->kind == WRITE ? CELLS : r->cell);
    switch (r->kind) {
    case STORE:
        wr->opcode = WR_ATOMIC_WRITE;
        wr->swap = value_of(e->sent);
        memcpy(data, &wr->swap, 8);
        *sge = (struct nic_sge){(uintptr_t)data, 8, d->data_mr->key};
        wr->num_sge = chance(50);
        wr->flags |= wr->num_sge == 1 && chance(30) ? WR_INLINE : 0;
        break;
    case WRITE:
        wr->opcode = WR_RDMA_WRITE;
        for (unsigned i = 0; i < CHUNKS; i++)
            stamp(data + i * MTU, e->sent);
        *sge = (struct nic_sge){(uintptr_t)data, CHUNKS * MTU, d->data_mr->key};
        wr->num_sge = 1;
        break;
    case READ:
        wr->opcode = WR_RDMA_READ;
        *sge = (struct nic_sge){(uintptr_t)&e->result[e->sent % DEPTH], 8, d->data_mr->key};
        wr->num_sge = 1;
        break;
    default:
        wr->opcode = WR_FLUSH;
        wr->swap = FLUSH_GLOBAL | (r->kind == FLUSH_ALL ? FLUSH_MR : 0);
        wr->compare_add = 8;
        break;
    }
}

static void post(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    if (e->sent - e->done == DEPTH - 1 || e->qp->state != QP_STATE_RTS)
        return;
    e->sent++;
    struct request *r = &e->request[e->sent % DEPTH];
    *r = (struct request){.kind = draw_kind(), .cell = rng_below(&w.net.rng, CELLS)};
    memcpy(r->before, e->last, sizeof(r->before));
    struct nic_sge sge = {0};
    struct nic_send_wr wr = {
        .wr_id = e->sent, .flags = WR_SIGNALED | (chance(10) ? WR_FENCE : 0), .sg_list = &sge};
    fill(d, q, &wr, &sge);
    if (!w.net.good && chance(1)) {
        spoil(r, &wr, &sge);
        if (e->first_bad == UINT32_MAX)
            e->first_bad = e->sent;
    }
    if (r->kind == STORE)
        e->last[r->cell] = e->sent;
    for (unsigned i = CELLS; r->kind == WRITE && i < PLACES; i++)
        e->last[i] = e->sent;
    assert_int_equal(wq_post_send(e->qp, &wr), 0);
}

static void connect_end(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    /* Far from the PSNs of the life before. */
    const uint32_t psn = (0xfffff0 + w.lives * 0x90000) & 0xffffff;
    struct nic_qp_attr attr = {
        .access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_FLUSH_GLOBAL |
                        ACCESS_FLUSH_PERSISTENT,
        .timeout = TIMEOUT,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = w.max_rd,
        .max_dest_rd_atomic = w.max_dest_rd,
        .dest_qpn = w.device[!d->which].end[q].qp->qpn,
        .rq_psn = psn,
        .sq_psn = psn,
    };
    faulty_connect(e->qp, d->which, attr);
}

static void connect_pair(unsigned q)
{
    for (int i = 0; i < DEVICES; i++)
        connect_end(&w.device[i], q);
    w.lives++;
}

/* A pair with an end in error lives again, once both have been told of all. */
static void revive(unsigned q)
{
    struct nic_qp_attr err = {.state = QP_STATE_ERR}, reset = {.state = QP_STATE_RESET};
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        assert_int_equal(qp_modify(d->end[q].qp, &err, QP_ATTR_STATE), 0);
        take_done(d, q);
        assert_int_equal(d->end[q].sent, d->end[q].done);
        assert_int_equal(qp_modify(d->end[q].qp, &reset, QP_ATTR_STATE), 0);
        d->end[q].first_bad = UINT32_MAX;
        memcpy(d->end[q].last, d->end[q].seen, sizeof(d->end[q].last));
    }
    unsigned kept = 0;
    for (unsigned i = 0; i < w.net.flights; i++) {
        const struct faulty_flight *f = &w.net.flight[i];
        if (f->p.h.bth.dest_qp != w.device[f->to].end[q].qp->qpn)
            w.net.flight[kept++] = *f;
    }
    w.net.flights = kept;
    connect_pair(q);
}

static void arrives(int to, const struct rx_packet *p)
{
    nic_input(w.device[to].nic, w.net.now_ns, p, 1);
}

static void take_events(struct device *d)
{
    struct nic_event ev;
    while (event_next(d->nic, &ev))
        assert_true(ev.type == EVENT_COMM_EST || ev.type == EVENT_QP_ACCESS_ERR ||
                    ev.type == EVENT_QP_REQ_ERR);
}

static void run_moment(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        while (nic_output(d->nic, w.net.now_ns, &d->sink, 1 + rng_below(&w.net.rng, 3)) &&
               (w.net.good || chance(70))) {
        }
        for (unsigned q = 0; q < QPS; q++)
            check_limit(&d->end[q]);
    }
    faulty_moment(&w.net, arrives);
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        if (nic_deadline(d->nic) <= w.net.now_ns)
            nic_advance(d->nic, w.net.now_ns);
        take_events(d);
        for (unsigned q = 0; q < QPS; q++) {
            check_area(&d->end[q], peer_area(d, q));
            take_done(d, q);
        }
    }
    for (unsigned q = 0; q < QPS; q++)
        if (w.device[0].end[q].qp->state == QP_STATE_ERR ||
            w.device[1].end[q].qp->state == QP_STATE_ERR) {
            if (w.net.good || chance(5))
                revive(q);
        }
}

static void end_create(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct qp_init init = {
        .type = QP_TYPE_RC, .pd = d->pd, .owner = e, .cap = {DEPTH, 1, 1, 1, 8}
    };
    assert_int_equal(cq_create(d->nic, 2 * DEPTH, NULL, &e->cq), 0);
    init.send_cq = init.recv_cq = e->cq;
    assert_int_equal(qp_create(d->nic, &init, &e->qp), 0);
    e->first_bad = UINT32_MAX;
    e->area = aligned_alloc(64, (AREA_BYTES + GUARD_BYTES + 63) / 64 * 64);
    assert_non_null(e->area);
    memset(e->area, 0, AREA_BYTES);
    memset(e->area + AREA_BYTES, FILL, GUARD_BYTES);
    assert_int_equal(
        mem_reg(d->pd, e->area, AREA_BYTES, (uintptr_t)e->area,
                ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_FLUSH_GLOBAL,
                &e->area_mr),
        0);
}

static void world_create(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    faulty_begin(&w.net, seed, &odds);
    w.greedy = chance(25);
    w.max_dest_rd = (uint8_t)(1 + rng_below(&w.net.rng, 4));
    w.max_rd = w.greedy ? 8 : (uint8_t)(1 + rng_below(&w.net.rng, w.max_dest_rd));
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        struct nic_config config = {.seed = seed + (uint64_t)i};
        d->which = i;
        d->sink.train = take_train;
        faulty_device_create(i, &config, d->end, sizeof(d->end), &d->nic, &d->pd, &d->data_mr);
        for (unsigned q = 0; q < QPS; q++)
            end_create(d, q);
    }
    for (unsigned q = 0; q < QPS; q++)
        connect_pair(q);
}

static void world_destroy(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        for (unsigned q = 0; q < QPS; q++) {
            struct end *e = &d->end[q];
            faulty_qp_destroy(e->qp);
            assert_int_equal(cq_destroy(e->cq), 0);
            assert_int_equal(mem_mr_revoke(e->area_mr), 0);
            mem_mr_free(e->area_mr);
            free(e->area);
        }
        faulty_device_destroy(d->nic, d->pd, d->data_mr);
    }
    free(w.net.flight);
}

/* Over a good network all that is asked for is done, and what was sent last is there. */
static void check_good_network(void)
{
    w.net.good = true;
    for (unsigned i = 0; i < 600; i++) /* what is late arrives, what is in error lives again */
        run_moment();
    for (unsigned k = 0; k < 40; k++) {
        for (int i = 0; i < DEVICES; i++)
            for (unsigned q = 0; q < QPS; q++)
                post(&w.device[i], q);
        for (unsigned i = 0; i < 20; i++)
            run_moment();
    }
    for (int i = 0; i < DEVICES; i++)
        for (unsigned q = 0; q < QPS; q++) {
            struct end *e = &w.device[i].end[q];
            assert_int_equal(e->sent, e->done);
            assert_memory_equal(e->seen, e->last, sizeof(e->seen));
        }
}

static void placements__in_order_once_and_there_when_told(void **state)
{
    (void)state;
    uint32_t stores = 0, flushes = 0, bad = 0, crowded = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world_create(seed);
        for (unsigned i = 0; i < STEPS; i++) {
            if (chance(50))
                run_moment();
            else
                post(&w.device[rng_below(&w.net.rng, DEVICES)], rng_below(&w.net.rng, QPS));
        }
        check_good_network();
        for (int i = 0; i < DEVICES; i++) {
            uint64_t dropped =
                counters_get(&w.device[i].nic->counters, COUNTER_resp_dropped_requests);
            assert_true(w.greedy || dropped == 0);
            crowded += dropped != 0;
            for (unsigned q = 0; q < QPS; q++) {
                stores += w.device[i].end[q].stores;
                flushes += w.device[i].end[q].flushes;
                bad += w.device[i].end[q].bad;
            }
        }
        world_destroy();
    }
    assert_true(stores > 10000 && flushes > 10000 && bad > 100 && crowded > 10); /* it did much */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placements__in_order_once_and_there_when_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
