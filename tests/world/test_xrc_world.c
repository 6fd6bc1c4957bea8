/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_xrc_world.c: extended reliable connections over faulty links: two devices, three initiators
 * of each, whose targets at the other share four receive queues of two protection domains. Every
 * request names a queue: SENDs and WRITEs of one to five packets, READs, fetch-and-adds. Queues are
 * empty at times. The network loses, copies, delays, reorders, spoils.
 *
 * Whatever it does: each message comes once, whole, to the queue that it names, behind what its
 * initiator sent before, and completes there with the number of its target; each add is done once;
 * what is read is right; all go by keys of the named queue's domain only; every request completes,
 * in order.
 */
#include "faulty.h"
#include "nic/nic.h"
#include "wire/iba.h"

enum {
    DEVICES = 2,
    QPS = 3, /* initiators of each device, and targets */
    QUEUES = 4,
    PDS = 2,
    DEPTH = 6,
    RECVS = 3, /* of a queue: few */
    SLOT_BYTES = 5 * FAULTY_MTU,
    MAX_IDS = 4096,
    STEPS = 2500,
    SEEDS = 250,
    FIRST_PSN = 0xfffff0,
    TIMEOUT = 5, /* 131 us: moments are of 1 us */
    FILL = 0xcc,
    FADD_STEP = 3,
};

enum { ID_ADD = MAX_IDS, ID_READ };

struct message {
    uint8_t from, qp, queue, opcode;
    bool arrived;
    uint32_t length;
};

struct initiator {
    struct qp *qp;
    struct cq *cq;
    uint32_t sent, done; /* requests */
    uint32_t id[DEPTH];  /* by request; or one of those: */
    uint64_t added;      /* what the next add finds */
};

struct queue {
    struct srq *srq;
    struct cq *cq;
    uint32_t posted, taken;
    uint32_t free[RECVS], frees; /* slots that are not posted */
};

struct device {
    int which;
    struct nic *nic;
    struct pd *pd[PDS];
    struct mr *mr[PDS], *area_mr[PDS];
    struct xrcd *xrcd;
    struct initiator ini[QPS];
    struct qp *tgt[QPS];
    uint32_t next_id[QPS]; /* to each target: no message before this one comes any more */
    struct queue queue[QUEUES];
    uint8_t *memory; /* what is sent, by initiator; what is received, by queue */
    uint8_t *area;   /* what each target's initiator writes to, and its cell */
    struct nic_sink sink;
};

static struct {
    struct faulty net;
    struct device device[DEVICES];
    struct message message[MAX_IDS];
    uint32_t ids, arrived;
} w;

static bool chance(uint32_t percent)
{
    return faulty_chance(&w.net, percent);
}

static uint8_t byte_of(uint32_t id, uint32_t at)
{
    return (uint8_t)(id * 31 + at * 7 + at / 256);
}

static uint8_t *send_slot(struct device *d, unsigned q, uint32_t request)
{
    return d->memory + (q * DEPTH + request % DEPTH) * SLOT_BYTES;
}

static uint8_t *recv_slot(struct device *d, unsigned queue, uint32_t slot)
{
    return d->memory + (QPS * DEPTH + queue * RECVS + slot) * SLOT_BYTES;
}

static uint8_t *write_slot(struct device *d, unsigned q)
{
    return d->area + q * SLOT_BYTES;
}

/* What peers read. */
static uint8_t *constant(struct device *d)
{
    return write_slot(d, QPS + 1);
}

static uint64_t *cell(struct device *d, unsigned q)
{
    return (uint64_t *)(d->area + QPS * SLOT_BYTES) + q;
}

static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct device *d = (struct device *)((char *)sink - offsetof(struct device, sink));
    faulty_train(&w.net, !d->which, t);
}

static void take_done(struct device *d, unsigned q)
{
    struct initiator *e = &d->ini[q];
    struct nic_wc wc;
    while (cq_poll(e->cq, 1, &wc) == 1) {
        uint8_t *slot = send_slot(d, q, e->done);
        assert_int_equal(wc.wr_id, e->done);
        assert_int_equal(wc.status, WC_SUCCESS);
        if (e->id[e->done % DEPTH] == ID_READ) {
            assert_int_equal(wc.opcode, WC_RDMA_READ);
            for (uint32_t i = 0; i < SLOT_BYTES; i++)
                assert_int_equal(slot[i], byte_of(!d->which, i));
        }
        if (e->id[e->done % DEPTH] == ID_ADD) {
            uint64_t old;
            memcpy(&old, slot, sizeof(old));
            assert_int_equal(wc.opcode, WC_FETCH_ADD);
            assert_true(old == e->added);
            e->added += FADD_STEP;
        }
        memset(slot, 0xdd, SLOT_BYTES); /* it is the program's again */
        e->done++;
    }
}

static void check_arrival(struct device *d, unsigned k, const struct nic_wc *wc)
{
    bool write = wc->opcode == WC_RECV_RDMA_WITH_IMM;
    const uint8_t *slot = recv_slot(d, k, (uint32_t)wc->wr_id);
    uint32_t id, q = 0;
    while (q < QPS && d->tgt[q]->qpn != wc->qp_num)
        q++;
    assert_in_range(q, 0, QPS - 1);
    memcpy(&id, slot, sizeof(id));
    id = write ? wc->imm_or_inv : id;
    assert_in_range(id, d->next_id[q], w.ids - 1);
    d->next_id[q] = id + 1;
    struct message *m = &w.message[id];
    assert_false(m->arrived);
    m->arrived = true;
    w.arrived++;
    assert_int_equal(m->from, !d->which);
    assert_int_equal(m->qp, q);
    assert_int_equal(m->queue, k);
    assert_int_equal(m->length, wc->byte_len);
    assert_int_equal(m->opcode, write                     ? WR_RDMA_WRITE_WITH_IMM
                                : wc->flags & WC_WITH_IMM ? WR_SEND_WITH_IMM
                                                          : WR_SEND);
    if (wc->flags & WC_WITH_IMM)
        assert_int_equal(wc->imm_or_inv, id);
    const uint8_t *payload = write ? write_slot(d, q) : slot;
    for (uint32_t i = write ? 0 : 4; i < m->length; i++)
        assert_int_equal(payload[i], byte_of(id, i));
    for (uint32_t i = write ? 0 : m->length; i < SLOT_BYTES; i++)
        assert_int_equal(slot[i], FILL); /* not a byte more */
}

static void take_received(struct device *d)
{
    struct nic_wc wc;
    for (unsigned k = 0; k < QUEUES; k++) {
        struct queue *s = &d->queue[k];
        while (cq_poll(s->cq, 1, &wc) == 1) {
            assert_int_equal(wc.status, WC_SUCCESS);
            check_arrival(d, k, &wc);
            s->free[s->frees++] = (uint32_t)wc.wr_id;
            s->taken++;
        }
    }
}

static void arrives(int to, const struct rx_packet *p)
{
    nic_input(w.device[to].nic, w.net.now_ns, p, 1);
    take_received(&w.device[to]);
}

static void run_moment(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        while (nic_output(d->nic, w.net.now_ns, &d->sink, 1 + rng_below(&w.net.rng, 3)) &&
               (w.net.good || chance(70))) {
        }
    }
    faulty_moment(&w.net, arrives);
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        struct nic_event ev;
        if (nic_deadline(d->nic) <= w.net.now_ns)
            nic_advance(d->nic, w.net.now_ns);
        while (event_next(d->nic, &ev))
            assert_int_equal(ev.type, EVENT_COMM_EST);
        for (unsigned q = 0; q < QPS; q++)
            take_done(d, q);
    }
}

static void post_recv(struct device *d, unsigned k)
{
    struct queue *s = &d->queue[k];
    if (s->frees == 0)
        return;
    uint32_t slot = s->free[--s->frees];
    uint8_t *at = recv_slot(d, k, slot);
    memset(at, FILL, SLOT_BYTES);
    struct nic_sge sge = {(uintptr_t)at, SLOT_BYTES, d->mr[k % PDS]->key};
    struct nic_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(wq_post_srq_recv(s->srq, &wr), 0);
    s->posted++;
}

static void post_response(struct device *d, unsigned q, unsigned k, bool add)
{
    struct initiator *e = &d->ini[q];
    struct device *peer = &w.device[!d->which];
    struct nic_sge sge = {(uintptr_t)send_slot(d, q, e->sent), add ? 8 : SLOT_BYTES, d->mr[0]->key};
    struct nic_send_wr wr = {
        .wr_id = e->sent,
        .opcode = add ? WR_ATOMIC_FETCH_AND_ADD : WR_RDMA_READ,
        .flags = WR_SIGNALED,
        .sg_list = &sge,
        .num_sge = 1,
        .remote_addr = add ? (uintptr_t)cell(peer, q) : (uintptr_t)constant(peer),
        .rkey = peer->area_mr[k % PDS]->key,
        .compare_add = FADD_STEP,
        .xrc_srqn = peer->queue[k].srq->number,
    };
    assert_int_equal(wq_post_send(e->qp, &wr), 0);
    e->id[e->sent++ % DEPTH] = add ? ID_ADD : ID_READ;
}

static void post_message(struct device *d, unsigned q, unsigned k, enum wr_opcode opcode)
{
    struct initiator *e = &d->ini[q];
    struct device *peer = &w.device[!d->which];
    uint32_t id = w.ids++;
    uint32_t length = 4 + rng_below(&w.net.rng, chance(50) ? FAULTY_MTU : SLOT_BYTES - 3);
    uint8_t *slot = send_slot(d, q, e->sent);
    w.message[id] = (struct message){.from = (uint8_t)d->which,
                                     .qp = (uint8_t)q,
                                     .queue = (uint8_t)k,
                                     .opcode = (uint8_t)opcode,
                                     .length = length};
    for (uint32_t i = 0; i < length; i++)
        slot[i] = byte_of(id, i);
    if (opcode != WR_RDMA_WRITE_WITH_IMM)
        memcpy(slot, &id, sizeof(id));
    struct nic_sge sge[2] = {
        {(uintptr_t)slot,              length / 2,          d->mr[0]->key},
        {(uintptr_t)slot + length / 2, length - length / 2, d->mr[0]->key}
    };
    struct nic_send_wr wr = {
        .wr_id = e->sent,
        .opcode = opcode,
        .flags = WR_SIGNALED | (chance(20) ? WR_FENCE : 0),
        .sg_list = sge,
        .num_sge = 2,
        .imm_or_inv = id,
        .remote_addr = (uintptr_t)write_slot(peer, q),
        .rkey = peer->area_mr[k % PDS]->key,
        .xrc_srqn = peer->queue[k].srq->number,
    };
    assert_int_equal(wq_post_send(e->qp, &wr), 0);
    e->id[e->sent++ % DEPTH] = id;
}

static void post_any(struct device *d, unsigned q)
{
    static const enum wr_opcode opcode[] = {WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE_WITH_IMM};
    if (d->ini[q].sent - d->ini[q].done == DEPTH || w.ids == MAX_IDS)
        return;
    unsigned kind = rng_below(&w.net.rng, 5), k = rng_below(&w.net.rng, QUEUES);
    if (kind >= 3)
        post_response(d, q, k, kind == 3);
    else
        post_message(d, q, k, opcode[kind]);
}

static void objects_create(struct device *d)
{
    uint32_t wrs = RECVS, sges = 1;
    for (unsigned i = 0; i < PDS; i++) {
        assert_int_equal(mem_pd_create(d->nic, &d->pd[i]), 0);
        assert_int_equal(mem_reg(d->pd[i], d->memory, (QPS * DEPTH + QUEUES * RECVS) * SLOT_BYTES,
                                 (uintptr_t)d->memory, ACCESS_LOCAL_WRITE, &d->mr[i]),
                         0);
        assert_int_equal(mem_reg(d->pd[i], d->area, (QPS + 2) * SLOT_BYTES, (uintptr_t)d->area,
                                 ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
                                     ACCESS_REMOTE_ATOMIC,
                                 &d->area_mr[i]),
                         0);
    }
    assert_int_equal(xrc_domain_create(d->nic, &d->xrcd), 0);
    for (unsigned k = 0; k < QUEUES; k++) {
        struct queue *s = &d->queue[k];
        assert_int_equal(cq_create(d->nic, 2 * RECVS, NULL, &s->cq), 0);
        assert_int_equal(xrc_srq_create(d->pd[k % PDS], d->xrcd, s->cq, &wrs, &sges, NULL, &s->srq),
                         0);
        for (uint32_t i = 0; i < RECVS; i++)
            s->free[s->frees++] = i;
    }
    for (unsigned q = 0; q < QPS; q++) {
        struct qp_init init = {
            .type = QP_TYPE_XRC_INI, .pd = d->pd[0], .cap = {DEPTH, 0, 2, 0, 0}
        };
        assert_int_equal(cq_create(d->nic, 2 * DEPTH, NULL, &d->ini[q].cq), 0);
        init.send_cq = d->ini[q].cq;
        assert_int_equal(qp_create(d->nic, &init, &d->ini[q].qp), 0);
        init = (struct qp_init){.type = QP_TYPE_XRC_TGT, .xrcd = d->xrcd};
        assert_int_equal(qp_create(d->nic, &init, &d->tgt[q]), 0);
    }
}

static void connect_qp(const struct device *d, struct qp *qp, uint32_t dest)
{
    struct nic_qp_attr attr = {
        .access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
        .dest_qpn = dest,
        .rq_psn = FIRST_PSN,
        .sq_psn = FIRST_PSN,
        .timeout = TIMEOUT,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 1,
        .max_rd_atomic = 2,
        .max_dest_rd_atomic = 2,
    };
    faulty_connect(qp, d->which, attr);
}

static void world_create(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    faulty_begin(&w.net, seed, &faulty_usual);
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        struct nic_config config = {.seed = seed + (uint64_t)i};
        d->which = i;
        d->sink.train = take_train;
        d->memory = calloc(QPS * DEPTH + QUEUES * RECVS, SLOT_BYTES);
        d->area = calloc(QPS + 2, SLOT_BYTES);
        assert_non_null(d->memory);
        assert_non_null(d->area);
        for (uint32_t b = 0; b < SLOT_BYTES; b++)
            constant(d)[b] = byte_of((uint32_t)i, b);
        assert_int_equal(nic_create(&config, &d->nic), 0);
        assert_int_equal(nic_add_qpns(d->nic, (uint32_t)i), 0);
        objects_create(d);
    }
    for (int i = 0; i < DEVICES; i++)
        for (unsigned q = 0; q < QPS; q++) {
            struct device *d = &w.device[i], *peer = &w.device[!i];
            connect_qp(d, d->ini[q].qp, peer->tgt[q]->qpn);
            connect_qp(d, d->tgt[q], peer->ini[q].qp->qpn);
        }
}

static void drop_qp(struct qp *qp)
{
    faulty_qp_destroy(qp);
}

static void world_destroy(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        for (unsigned q = 0; q < QPS; q++) {
            drop_qp(d->ini[q].qp);
            drop_qp(d->tgt[q]);
            assert_int_equal(cq_destroy(d->ini[q].cq), 0);
        }
        for (unsigned k = 0; k < QUEUES; k++) {
            assert_int_equal(wq_srq_destroy(d->queue[k].srq), 0);
            assert_int_equal(cq_destroy(d->queue[k].cq), 0);
        }
        assert_int_equal(xrc_domain_destroy(d->xrcd), 0);
        for (unsigned k = 0; k < PDS; k++) {
            mem_mr_revoke(d->mr[k]);
            mem_mr_free(d->mr[k]);
            mem_mr_revoke(d->area_mr[k]);
            mem_mr_free(d->area_mr[k]);
            assert_int_equal(mem_pd_destroy(d->pd[k]), 0);
        }
        nic_destroy(d->nic);
        free(d->memory);
        free(d->area);
    }
    free(w.net.flight);
}

static void act(void)
{
    struct device *d = &w.device[rng_below(&w.net.rng, DEVICES)];
    switch (rng_below(&w.net.rng, 10)) {
    case 0:
    case 1:
        post_recv(d, rng_below(&w.net.rng, QUEUES));
        break;
    case 2:
    case 3:
    case 4:
        post_any(d, rng_below(&w.net.rng, QPS));
        break;
    default:
        run_moment();
        break;
    }
}

static bool all_done(void)
{
    for (int i = 0; i < DEVICES; i++)
        for (unsigned q = 0; q < QPS; q++)
            if (w.device[i].ini[q].done != w.device[i].ini[q].sent)
                return false;
    return true;
}

/* The faults stop: all work must finish. */
static void finish(void)
{
    w.net.good = true;
    for (unsigned i = 0; i < 200000 && !all_done(); i++) {
        for (int k = 0; k < DEVICES; k++)
            for (unsigned q = 0; q < QUEUES; q++)
                post_recv(&w.device[k], q);
        run_moment();
    }
    assert_true(all_done());
    for (unsigned i = 0; i < 50; i++)
        run_moment();
}

static void xrc__once_whole_in_order_to_the_queue_that_is_named(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world_create(seed);
        for (unsigned i = 0; i < STEPS; i++)
            act();
        assert_true(w.arrived > 20); /* it did something */
        finish();
        assert_int_equal(w.arrived, w.ids);
        for (int i = 0; i < DEVICES; i++)
            for (unsigned q = 0; q < QPS; q++)
                assert_true(*cell(&w.device[i], q) == w.device[!i].ini[q].added);
        world_destroy();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xrc__once_whole_in_order_to_the_queue_that_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
