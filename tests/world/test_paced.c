/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_paced.c: rate limits of UC and UD over a faulty network: two devices with a QP of each kind,
 * whose programs post messages in bursts and change their limits, and datagrams by paths that are
 * faster and slower than that. (Those of RC are part of the large world, pace.c.)
 *
 * A bucket beside the engine's: no train leaves for which it has no room, and who has something to
 * send and room for it does not wait. Every send completes once, in order, in the time that its
 * bytes take at the limit.
 */
#include "faulty.h"
#include "nic/nic.h"
#include "wire/iba.h"
#include "wire/roce.h"

enum {
    DEVICES = 2,
    UC = 0, /* QPs of each device */
    UD = 1,
    QPS = 2,
    DEPTH = 32,
    SLOT_BYTES = 3 * FAULTY_MTU,
    STEPS = 1500,
    SEEDS = 120,
    UNITS_PER_BYTE = 8 * 1000 * 1000, /* 1 kbit/s pays one of them each ns */
    HEADERS_BYTES = 64,               /* room is asked for a packet with all that one may have */
    FIRST_PSN = 0xfffff0,
    QKEY = 0x1234,
};

struct end {
    struct qp *qp;
    struct cq *scq, *rcq;
    uint32_t sent, done, posted, taken;
    /* The model: the program's limit, that of the path that the last train took, what is owed. */
    uint32_t kbps, burst_bytes, path_kbps;
    uint64_t owed, paid_ns;
};

struct device {
    struct nic *nic;
    struct pd *pd;
    struct mr *mr;
    uint8_t memory[2 * SLOT_BYTES]; /* of all sends, and of all receives */
    struct end end[QPS];
    struct nic_sink sink;
    int which;
};

static struct world {
    struct faulty net;
    struct device device[DEVICES];
    unsigned waits, changes;
} w;

static uint32_t limit_of(const struct end *e)
{
    if (e->kbps == 0 || (e->path_kbps != 0 && e->path_kbps < e->kbps))
        return e->path_kbps;
    return e->kbps;
}

/* The usual burst is what the limit gives in 10 ms. */
static uint64_t burst_of(const struct end *e)
{
    uint64_t burst = e->burst_bytes != 0 ? e->burst_bytes : (uint64_t)limit_of(e) * 10 / 8;
    return burst == 0 ? 1 : burst;
}

static void pay(struct end *e)
{
    uint64_t passed_ns = w.net.now_ns - e->paid_ns;
    uint32_t kbps = limit_of(e);
    e->paid_ns = w.net.now_ns;
    e->owed = kbps == 0 || passed_ns > e->owed / kbps ? 0 : e->owed - passed_ns * kbps;
}

static void check_train(struct end *e, const struct train *t)
{
    uint64_t bytes = 0, most = burst_of(e);
    for (unsigned i = 0; i < t->packets; i++)
        bytes += roce_packet_bytes(t->packet[i].h.bth.opcode, t->packet[i].payload_bytes);
    pay(e);
    e->owed += bytes * UNITS_PER_BYTE;
    most = t->packets == 1 && bytes > most ? bytes : most;
    if (limit_of(e) != 0)
        assert_true(e->owed <= most * UNITS_PER_BYTE);
    if (e->qp->type == QP_TYPE_UD)
        e->path_kbps = t->path->rate * (uint32_t)PATH_RATE_KBPS;
    if (limit_of(e) == 0)
        e->owed = 0;
}

static struct end *sender(struct device *d, const struct train *t)
{
    const struct device *peer = &w.device[!d->which];
    bool uc = t->packet[0].h.bth.dest_qp == peer->end[UC].qp->qpn;
    assert_true(uc || t->packet[0].h.bth.dest_qp == peer->end[UD].qp->qpn);
    return &d->end[uc ? UC : UD];
}

static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct device *d = (struct device *)((char *)sink - offsetof(struct device, sink));
    check_train(sender(d, t), t);
    faulty_train(&w.net, !d->which, t);
}

static void post_recvs(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_sge sge = {(uintptr_t)d->memory + SLOT_BYTES, SLOT_BYTES, d->mr->key};
    for (; e->posted - e->taken < DEPTH; e->posted++) {
        struct nic_recv_wr wr = {.wr_id = e->posted, .sg_list = &sge, .num_sge = 1};
        assert_int_equal(wq_post_recv(e->qp, &wr), 0);
    }
}

static void poll(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_wc wc;
    while (cq_poll(e->scq, 1, &wc) == 1) {
        assert_int_equal(wc.wr_id, e->done++);
        assert_int_equal(wc.status, WC_SUCCESS);
    }
    while (cq_poll(e->rcq, 1, &wc) == 1) {
        assert_int_equal(wc.wr_id, e->taken++);
        assert_int_equal(wc.status, WC_SUCCESS);
    }
    post_recvs(d, q);
}

static void post_send(struct device *d, unsigned q)
{
    static const uint16_t rates[] = {0, 0, 0, 1, 4};
    struct device *peer = &w.device[!d->which];
    struct end *e = &d->end[q];
    struct nic_path path = {.local = faulty_address[d->which],
                            .remote = faulty_address[!d->which],
                            .rate = rates[rng_below(&w.net.rng, 5)] & 0xfff,
                            .hop_limit = 64};
    uint32_t most = q == UD ? FAULTY_MTU : SLOT_BYTES;
    struct nic_sge sge = {(uintptr_t)d->memory, rng_below(&w.net.rng, most + 1), d->mr->key};
    struct nic_send_wr wr = {
        .wr_id = e->sent,
        .opcode = WR_SEND,
        .flags = WR_SIGNALED,
        .sg_list = &sge,
        .num_sge = 1,
        .path = &path,
        .dest_qpn = peer->end[UD].qp->qpn,
        .qkey = QKEY,
    };
    if (e->sent - e->done == DEPTH)
        return;
    assert_int_equal(wq_post_send(e->qp, &wr), 0);
    e->sent++;
}

static void change(struct device *d, struct end *e)
{
    static const uint32_t kbps[] = {0, 2000, 50000, 800000, 20000000};
    static const uint32_t burst[] = {0, 1, 400, 3000, 50000};
    struct nic_qp_attr a = {.rate_limit_kbps = kbps[rng_below(&w.net.rng, 5)],
                            .max_burst_bytes = burst[rng_below(&w.net.rng, 5)]};
    pay(e);
    nic_tell_time(d->nic, w.net.now_ns);
    assert_int_equal(qp_modify(e->qp, &a, QP_ATTR_RATE_LIMIT), 0);
    e->kbps = a.rate_limit_kbps;
    e->burst_bytes = a.max_burst_bytes;
    if (limit_of(e) == 0)
        e->owed = 0;
    w.changes++;
}

/* Whoever has something to send has no room. */
static void check_idle(struct device *d)
{
    for (unsigned q = 0; q < QPS; q++) {
        struct end *e = &d->end[q];
        uint64_t burst = burst_of(e), need = e->qp->attr.path_mtu_bytes + HEADERS_BYTES;
        pay(e);
        if (e->done == e->sent)
            continue;
        need = need < burst ? need : burst;
        assert_true(limit_of(e) != 0);
        assert_true(e->owed > (burst - need) * UNITS_PER_BYTE);
        w.waits++;
    }
}

static void arrives(int to, const struct rx_packet *p)
{
    nic_input(w.device[to].nic, w.net.now_ns, p, 1);
}

static void run_devices(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        nic_advance(d->nic, w.net.now_ns);
        while (nic_output(d->nic, w.net.now_ns, &d->sink, 1 + rng_below(&w.net.rng, 3))) {
        }
        for (unsigned q = 0; q < QPS; q++)
            poll(d, q);
        check_idle(d);
    }
}

static void run_moment(void)
{
    run_devices();
    faulty_moment(&w.net, arrives);
    if (rng_below(&w.net.rng, 30) == 0) /* a long silence */
        w.net.now_ns += rng_below(&w.net.rng, 20000000);
}

static void end_connect(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_qp_attr a = {
        .qkey = QKEY,
        .path.rate = rng_below(&w.net.rng, 3) == 0,
        .dest_qpn = w.device[!d->which].end[q].qp->qpn,
        .rq_psn = FIRST_PSN,
        .sq_psn = FIRST_PSN,
    };
    faulty_connect(e->qp, d->which, a);
    if (q == UC)
        e->path_kbps = a.path.rate * (uint32_t)PATH_RATE_KBPS;
    post_recvs(d, q);
}

static void device_create(struct device *d, uint64_t seed)
{
    static const enum qp_type type[QPS] = {[UC] = QP_TYPE_UC, [UD] = QP_TYPE_UD};
    struct nic_config config = {.seed = seed};
    d->sink.train = take_train;
    faulty_device_create(d->which, &config, d->memory, sizeof(d->memory), &d->nic, &d->pd, &d->mr);
    for (unsigned q = 0; q < QPS; q++) {
        struct end *e = &d->end[q];
        assert_int_equal(cq_create(d->nic, DEPTH, NULL, &e->scq), 0);
        assert_int_equal(cq_create(d->nic, DEPTH, NULL, &e->rcq), 0);
        struct qp_init init = {
            .type = type[q],
            .pd = d->pd,
            .send_cq = e->scq,
            .recv_cq = e->rcq,
            .owner = e,
            .cap = {DEPTH, DEPTH, 1, 1, 0}
        };
        assert_int_equal(qp_create(d->nic, &init, &e->qp), 0);
    }
}

static void world_create(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    faulty_begin(&w.net, seed, &faulty_usual);
    for (int i = 0; i < DEVICES; i++) {
        w.device[i].which = i;
        device_create(&w.device[i], seed + (uint64_t)i);
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
        faulty_device_destroy(d->nic, d->pd, d->mr);
    }
    free(w.net.flight);
}

static void act(void)
{
    struct device *d = &w.device[rng_below(&w.net.rng, DEVICES)];
    unsigned q = rng_below(&w.net.rng, QPS);
    uint32_t what = rng_below(&w.net.rng, 40);
    if (what == 0)
        change(d, &d->end[q]);
    else if (what < 25)
        post_send(d, q);
    else
        run_moment();
}

/* The next thing is a deadline or a packet: nothing is left for ever. */
static void finish(void)
{
    uint64_t begin_ns = w.net.now_ns;
    for (;;) {
        run_devices();
        bool left = false;
        uint64_t next_ns = UINT64_MAX;
        for (int i = 0; i < DEVICES; i++) {
            uint64_t due_ns = nic_deadline(w.device[i].nic);
            next_ns = due_ns < next_ns ? due_ns : next_ns;
            for (unsigned q = 0; q < QPS; q++)
                left = left || w.device[i].end[q].done != w.device[i].end[q].sent;
        }
        if (!left)
            break;
        assert_true(next_ns > w.net.now_ns && next_ns != UINT64_MAX);
        w.net.now_ns = next_ns;
    }
    /* The slowest limit is 2 Mbit/s; owed is a burst, and posted are DEPTH messages at most. */
    uint64_t bytes = 50000 + DEPTH * (SLOT_BYTES + 3 * HEADERS_BYTES);
    assert_true(w.net.now_ns - begin_ns <= bytes * UNITS_PER_BYTE / 2000);
}

static void paced__never_faster_nor_slower(void **state)
{
    (void)state;
    unsigned waits = 0, changes = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world_create(seed);
        for (unsigned i = 0; i < STEPS; i++)
            act();
        finish();
        waits += w.waits;
        changes += w.changes;
        world_destroy();
    }
    assert_true(waits > 1000 && changes > 1000); /* it did something */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paced__never_faster_nor_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
