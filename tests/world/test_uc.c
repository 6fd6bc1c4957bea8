/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_uc.c: unreliable connections over faulty links: two devices, two pairs of UC QPs, messages
 * of one to five packets both ways: SENDs and WRITEs with and without immediate, now and then with
 * a key that is not good on this or on that side, to receives that are large, too small or missing.
 * Send queues are drained and stopped. The network loses, copies, delays, reorders and spoils.
 *
 * Whatever it does: a message arrives once at most, whole, behind all that arrived before it and
 * were sent before it; nothing that should not arrive does; no byte is written where nobody allowed
 * it; every send completes once and in order, before its memory is touched again; and at the end,
 * over a good network, everything that is sent is received.
 */
#include "faulty.h"
#include "nic/nic.h"
#include "wire/iba.h"

enum {
    DEVICES = 2,
    QPS = 2, /* of each device; with its namesake at the other */
    DEPTH = 8,
    MTU = FAULTY_MTU,
    SLOT_BYTES = 5 * MTU,
    WINDOWS = 4, /* places that a QP's peer may write to, each a slot; the slot behind is not its */
    MAX_IDS = 4096,
    STEPS = 2000,
    SEEDS = 150,
    FIRST_PSN = 0xffffe0,
    FILL = 0xcc,
};

/* A message, by its number. */
struct message {
    uint8_t from, qp;
    uint8_t opcode;
    uint8_t window;
    bool arrives; /* it may: the peer allows it */
    uint16_t length;
};

struct end {
    struct qp *qp;
    struct cq *scq, *rcq;
    uint32_t sent, done; /* WRs */
    uint32_t posted, taken;
    uint32_t
        fails_at; /* wr_id of one with a bad key, behind it all are flushed; UINT32_MAX: none */
    uint32_t recv_length[DEPTH];
    uint32_t next_id; /* no message before this one arrives any more */
    uint32_t arrived;
    bool drained; /* in SQD */
};

struct device {
    struct nic *nic;
    struct pd *pd;
    struct mr *mr, *window_mr;
    uint8_t *memory; /* send slots, then receive slots, of each QP */
    uint8_t *window; /* what peers write to: of each QP WINDOWS slots, and a slot that nobody may */
    struct end end[QPS];
    struct nic_sink sink;
    int which;
};

static struct world {
    struct faulty net; /* when it is good, all ask for what is allowed */
    struct device device[DEVICES];
    struct message message[MAX_IDS];
    uint32_t ids;
} w;

/* Most in order, so that there are messages that arrive. */
static const struct faulty_odds odds = {8, 10, 85, 2, 20, 0};

static bool chance(uint32_t percent)
{
    return faulty_chance(&w.net, percent);
}

static uint8_t byte_of(uint32_t id, uint32_t at)
{
    return (uint8_t)(id * 31 + at * 7 + at / 256);
}

static uint8_t *slot_of(struct device *d, unsigned qp, bool receive, uint32_t index)
{
    return d->memory + ((qp * 2 + receive) * DEPTH + index % DEPTH) * SLOT_BYTES;
}

static uint8_t *window_of(struct device *d, unsigned qp, unsigned which)
{
    return d->window + (qp * (WINDOWS + 1) + which) * SLOT_BYTES;
}

/* First 4 bytes of a message name it. */
static uint32_t id_of(const uint8_t *payload)
{
    uint32_t id;
    memcpy(&id, payload, sizeof(id));
    return id;
}

static void take_sent(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_wc wc;
    while (cq_poll(e->scq, 1, &wc) == 1) {
        assert_int_equal(wc.wr_id, e->done);
        assert_int_equal(wc.status, e->done < e->fails_at    ? WC_SUCCESS
                                    : e->done == e->fails_at ? WC_LOC_PROT_ERR
                                                             : WC_WR_FLUSH_ERR);
        memset(slot_of(d, q, false, e->done++), 0xdd, SLOT_BYTES);
    }
}

/* The program polls at the worst moment, and writes over what it was told is done. */
static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct device *d = (struct device *)((char *)sink - offsetof(struct device, sink));
    for (unsigned q = 0; q < QPS; q++) {
        take_sent(d, q);
        assert_false(d->end[q].drained &&
                     t->packet[0].h.bth.dest_qp == w.device[!d->which].end[q].qp->qpn);
    }
    faulty_train(&w.net, !d->which, t);
}

static void check_arrival(struct device *d, unsigned q, const struct nic_wc *wc)
{
    struct end *e = &d->end[q];
    bool write = wc->opcode == WC_RECV_RDMA_WITH_IMM;
    uint32_t id = write ? wc->imm_or_inv : id_of(slot_of(d, q, true, e->taken));
    assert_in_range(id, e->next_id, w.ids - 1);
    e->next_id = id + 1;
    e->arrived++;
    const struct message *m = &w.message[id];
    assert_true(m->arrives);
    assert_int_equal(m->from, !d->which);
    assert_int_equal(m->qp, q);
    assert_int_equal(m->length, wc->byte_len);
    assert_int_equal(m->opcode, write                     ? WR_RDMA_WRITE_WITH_IMM
                                : wc->flags & WC_WITH_IMM ? WR_SEND_WITH_IMM
                                                          : WR_SEND);
    if (wc->flags & WC_WITH_IMM)
        assert_int_equal(wc->imm_or_inv, id);
    const uint8_t *payload = write ? window_of(d, q, m->window) : slot_of(d, q, true, e->taken);
    for (uint32_t i = 4; i < m->length; i++)
        assert_int_equal(payload[i], byte_of(id, i));
}

static void take_received(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_wc wc;
    while (cq_poll(e->rcq, 1, &wc) == 1) {
        uint8_t *slot = slot_of(d, q, true, e->taken);
        uint32_t room = e->recv_length[e->taken % DEPTH];
        assert_int_equal(wc.wr_id, e->taken);
        assert_int_equal(wc.status, WC_SUCCESS);
        assert_int_equal(wc.src_qp, w.device[!d->which].end[q].qp->qpn);
        check_arrival(d, q, &wc);
        for (uint32_t i = room; i < SLOT_BYTES; i++)
            assert_int_equal(slot[i], FILL); /* not a byte behind it */
        e->taken++;
    }
}

static void post_recv(struct device *d, unsigned q, uint32_t length)
{
    struct end *e = &d->end[q];
    if (e->posted - e->taken == DEPTH)
        return;
    uint8_t *slot = slot_of(d, q, true, e->posted);
    memset(slot, FILL, SLOT_BYTES);
    struct nic_sge sge[2] = {
        {(uintptr_t)slot,              length / 3,          d->mr->key},
        {(uintptr_t)slot + length / 3, length - length / 3, d->mr->key}
    };
    struct nic_recv_wr wr = {.wr_id = e->posted, .sg_list = sge, .num_sge = 2};
    assert_int_equal(wq_post_recv(e->qp, &wr), 0);
    e->recv_length[e->posted++ % DEPTH] = length;
}

/* Where a WRITE goes: mostly where it may. */
static void aim(struct message *m, struct nic_send_wr *wr)
{
    struct device *peer = &w.device[!m->from];
    m->window = (uint8_t)rng_below(&w.net.rng, WINDOWS);
    wr->rkey = peer->window_mr->key;
    wr->remote_addr = (uintptr_t)window_of(peer, m->qp, m->window);
    if (w.net.good || !(m->opcode == WR_RDMA_WRITE || m->opcode == WR_RDMA_WRITE_WITH_IMM))
        return;
    if (chance(5)) {
        m->arrives = false;
        wr->rkey = chance(50) ? peer->mr->key : wr->rkey ^ 1;
    } else if (chance(3)) { /* its end is one byte outside */
        m->arrives = false;
        wr->remote_addr =
            (uintptr_t)peer->window + (size_t)QPS * (WINDOWS + 1) * SLOT_BYTES - m->length + 1;
    }
}

static void post_send(struct device *d, unsigned q, enum wr_opcode opcode, uint32_t length)
{
    struct end *e = &d->end[q];
    if (e->sent - e->done == DEPTH || w.ids == MAX_IDS || e->fails_at != UINT32_MAX ||
        (e->qp->state != QP_STATE_RTS && e->qp->state != QP_STATE_SQD))
        return;
    uint32_t id = w.ids++;
    struct message *m = &w.message[id];
    bool bad = !w.net.good && chance(1);
    *m = (struct message){.from = (uint8_t)d->which,
                          .qp = (uint8_t)q,
                          .opcode = (uint8_t)opcode,
                          .arrives = !bad,
                          .length = (uint16_t)length};
    uint8_t *slot = slot_of(d, q, false, e->sent);
    for (uint32_t i = 0; i < length; i++)
        slot[i] = byte_of(id, i);
    memcpy(slot, &id, sizeof(id));
    struct nic_sge sge[2] = {
        {(uintptr_t)slot,              length / 2,          d->mr->key                },
        {(uintptr_t)slot + length / 2, length - length / 2, d->mr->key ^ (bad ? 1 : 0)}
    };
    struct nic_send_wr wr = {
        .wr_id = e->sent,
        .opcode = opcode,
        .flags = WR_SIGNALED | (length <= 300 && !bad && chance(30) ? WR_INLINE : 0),
        .sg_list = sge,
        .num_sge = 2,
        .imm_or_inv = id,
    };
    aim(m, &wr);
    assert_int_equal(wq_post_send(e->qp, &wr), 0);
    if (bad)
        e->fails_at = e->sent;
    e->sent++;
}

static void change_state(struct end *e, enum qp_state to)
{
    struct nic_qp_attr attr = {.state = to, .en_sqd_async_notify = true};
    unsigned notify = to == QP_STATE_SQD ? QP_ATTR_EN_SQD_ASYNC_NOTIFY : 0;
    assert_int_equal(qp_modify(e->qp, &attr, QP_ATTR_STATE | notify), 0);
}

/* Out of SQE, once all is told; out of SQD, once that is. */
static void resume(struct end *e)
{
    if (e->qp->state == QP_STATE_SQE && e->sent == e->done) {
        change_state(e, QP_STATE_RTS);
        e->fails_at = UINT32_MAX;
    } else if (e->drained && (w.net.good || chance(10))) {
        e->drained = false;
        change_state(e, QP_STATE_RTS);
    }
}

static void take_events(struct device *d)
{
    struct nic_event ev;
    while (event_next(d->nic, &ev)) {
        struct end *e = ev.owner;
        if (ev.type == EVENT_COMM_EST)
            continue;
        assert_int_equal(ev.type, EVENT_SQ_DRAINED);
        assert_int_equal(e->qp->state, QP_STATE_SQD);
        assert_false(e->drained);
        e->drained = true;
    }
}

static void arrives(int to, const struct rx_packet *p)
{
    struct device *d = &w.device[to];
    nic_input(d->nic, w.net.now_ns, p, 1);
    for (unsigned q = 0; q < QPS; q++)
        take_received(d, q);
}

static void run_moment(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        unsigned few = 1 + rng_below(&w.net.rng, 3);
        while (nic_output(d->nic, w.net.now_ns, &d->sink, few) && (w.net.good || chance(70))) {
        }
    }
    faulty_moment(&w.net, arrives);
    for (int i = 0; i < DEVICES; i++) {
        take_events(&w.device[i]);
        for (unsigned q = 0; q < QPS; q++) {
            take_sent(&w.device[i], q);
            resume(&w.device[i].end[q]);
            assert_int_not_equal(w.device[i].end[q].qp->state, QP_STATE_ERR);
        }
        assert_true(nic_deadline(w.device[i].nic) == UINT64_MAX); /* nobody waits for anything */
    }
}

static void end_create(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct qp_init init = {
        .type = QP_TYPE_UC, .pd = d->pd, .owner = e, .cap = {DEPTH, DEPTH, 2, 2, 300}
    };
    assert_int_equal(cq_create(d->nic, DEPTH, NULL, &e->scq), 0);
    assert_int_equal(cq_create(d->nic, DEPTH, NULL, &e->rcq), 0);
    init.send_cq = e->scq;
    init.recv_cq = e->rcq;
    assert_int_equal(qp_create(d->nic, &init, &e->qp), 0);
    e->fails_at = UINT32_MAX;
}

static void end_connect(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_qp_attr attr = {
        .access_flags = ACCESS_REMOTE_WRITE,
        .dest_qpn = w.device[!d->which].end[q].qp->qpn,
        .rq_psn = FIRST_PSN,
        .sq_psn = FIRST_PSN,
    };
    faulty_connect(e->qp, d->which, attr);
}

static const size_t memory_bytes = (size_t)QPS * 2 * DEPTH * SLOT_BYTES;
static const size_t window_bytes = (size_t)QPS * (WINDOWS + 1) * SLOT_BYTES;

static void world_create(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    faulty_begin(&w.net, seed, &odds);
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        struct nic_config config = {.seed = seed + (uint64_t)i};
        d->which = i;
        d->sink.train = take_train;
        d->memory = calloc(1, memory_bytes);
        d->window = malloc(window_bytes + SLOT_BYTES);
        assert_non_null(d->memory);
        assert_non_null(d->window);
        memset(d->window, FILL, window_bytes + SLOT_BYTES);
        faulty_device_create(i, &config, d->memory, memory_bytes, &d->nic, &d->pd, &d->mr);
        assert_int_equal(mem_reg(d->pd, d->window, window_bytes, (uintptr_t)d->window,
                                 ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, &d->window_mr),
                         0);
        for (unsigned q = 0; q < QPS; q++)
            end_create(d, q);
    }
    for (int i = 0; i < DEVICES; i++)
        for (unsigned q = 0; q < QPS; q++)
            end_connect(&w.device[i], q);
}

static void world_destroy(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        for (unsigned q = 0; q < QPS; q++) {
            faulty_qp_destroy(d->end[q].qp);
            assert_int_equal(cq_destroy(d->end[q].scq), 0);
            assert_int_equal(cq_destroy(d->end[q].rcq), 0);
        }
        mem_mr_revoke(d->window_mr);
        mem_mr_free(d->window_mr);
        faulty_device_destroy(d->nic, d->pd, d->mr);
        free(d->memory);
        free(d->window);
    }
    free(w.net.flight);
}

static uint32_t any_length(void)
{
    uint32_t length = 1 + rng_below(&w.net.rng, chance(50) ? MTU : SLOT_BYTES);
    return length < 4 ? 4 : length;
}

static void act(void)
{
    struct device *d = &w.device[rng_below(&w.net.rng, DEVICES)];
    unsigned q = rng_below(&w.net.rng, QPS);
    switch (rng_below(&w.net.rng, 12)) {
    case 0:
    case 1:
    case 2:
    case 3: /* too small for many, now and then */
        post_recv(d, q, chance(5) ? any_length() : SLOT_BYTES);
        break;
    case 4:
    case 5:
    case 6:
        run_moment();
        break;
    case 7:
        if (chance(10) && d->end[q].qp->state == QP_STATE_RTS)
            change_state(&d->end[q], QP_STATE_SQD);
        break;
    default:
        post_send(d, q, (enum wr_opcode)rng_below(&w.net.rng, 4), any_length());
        break;
    }
}

/* Of the windows only what is theirs was written to. */
static void check_windows(struct device *d)
{
    for (unsigned q = 0; q < QPS; q++) {
        const uint8_t *behind = window_of(d, q, WINDOWS);
        for (uint32_t i = 0; i < SLOT_BYTES; i++)
            assert_int_equal(behind[i], FILL);
    }
    for (uint32_t i = 0; i < SLOT_BYTES; i++)
        assert_int_equal(d->window[window_bytes + i], FILL);
}

/* One message from each QP; each arrives. */
static void one_round(enum wr_opcode opcode, uint32_t length)
{
    for (int i = 0; i < DEVICES; i++)
        for (unsigned q = 0; q < QPS; q++) {
            struct end *to = &w.device[!i].end[q];
            uint32_t arrived = to->arrived;
            for (unsigned k = 0; k < DEPTH; k++)
                post_recv(&w.device[!i], q, SLOT_BYTES);
            post_send(&w.device[i], q, opcode, length);
            run_moment();
            assert_int_equal(to->arrived, arrived + 1);
            assert_int_equal(to->next_id, w.ids);
        }
}

static bool small_receives_left(void)
{
    for (int i = 0; i < DEVICES; i++)
        for (unsigned q = 0; q < QPS; q++) {
            const struct end *e = &w.device[i].end[q];
            for (uint32_t k = e->taken; k != e->posted; k++)
                if (e->recv_length[k % DEPTH] < SLOT_BYTES)
                    return true;
        }
    return false;
}

/* The network is good now: what is sent from here on arrives, each of it. */
static void check_good_network(void)
{
    w.net.good = true;
    for (unsigned i = 0; i < 50; i++) /* the last are out, queues sent on */
        run_moment();
    assert_int_equal(w.net.flights, 0);
    while (small_receives_left())
        one_round(WR_SEND, 4); /* what is too small for others has room for these */
    for (uint32_t packets = 1; packets <= 5; packets++) {
        one_round(WR_SEND, packets * MTU);
        one_round(WR_SEND_WITH_IMM, packets * MTU - 3);
        one_round(WR_RDMA_WRITE_WITH_IMM, packets * MTU - MTU + 4);
    }
}

static void uc__at_most_once_whole_in_order_and_never_stuck(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint32_t arrived = 0;
        world_create(seed);
        for (unsigned i = 0; i < STEPS; i++)
            act();
        for (int i = 0; i < DEVICES; i++)
            for (unsigned q = 0; q < QPS; q++)
                arrived += w.device[i].end[q].arrived;
        assert_true(arrived > 30); /* it did something */
        check_good_network();
        for (int i = 0; i < DEVICES; i++) {
            check_windows(&w.device[i]);
            for (unsigned q = 0; q < QPS; q++)
                assert_int_equal(w.device[i].end[q].sent, w.device[i].end[q].done);
        }
        world_destroy();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uc__at_most_once_whole_in_order_and_never_stuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
