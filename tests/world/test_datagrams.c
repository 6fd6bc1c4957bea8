/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_datagrams.c: UD and QP 1 over faulty links: two devices, two UD QPs each, MADs between their
 * QPs 1; datagrams of any size to any of them, by several paths, now and then with a wrong Q_Key or
 * too long, to receives that are large, too small or missing. The network loses, copies, delays,
 * reorders and spoils.
 *
 * Whatever it does: each datagram arrives at most once for each copy that the network made, whole,
 * where it was sent to; every send completes once and in order, before its memory is touched again;
 * what arrives is received or counted as dropped, every packet of it; and at the end, over a good
 * network, everything that is sent is received.
 */
#include "faulty.h"
#include "nic/nic.h"
#include "wire/iba.h"

enum {
    DEVICES = 2,
    QPS = 2, /* of each device */
    DEPTH = 16,
    SLOT_BYTES = 4096,
    MTU = FAULTY_MOST_BYTES,
    HEADER = 40,
    MAX_IDS = 4096,
    STEPS = 1500,
    SEEDS = 150,
    QKEY_BASE = 100,
    MADS = 4, /* that may wait */
};

/* What became of the datagram with an id. */
struct fate {
    uint16_t length;
    uint8_t to; /* device * QPS + QP; or MAD_TO of a device */
    bool bad_key;
    struct nic_path path; /* of a UD QP's */
    uint8_t copies;       /* that reached the device, unspoilt */
    uint8_t arrived;      /* at the program */
};
enum { MAD_TO = 0x80 };

struct end {
    struct qp *qp;
    struct cq *scq, *rcq;
    uint32_t sent, done; /* WRs */
    uint32_t posted, taken;
    uint32_t fails_at; /* wr_id of one that is too long, behind it all are flushed; UINT32_MAX */
    uint32_t recv_length[DEPTH];
};

struct device {
    struct nic *nic;
    struct pd *pd;
    struct mr *mr;
    uint8_t *memory; /* send slots, then receive slots, of each QP */
    struct end end[QPS];
    struct nic_sink sink;
    int which;
    uint64_t packets_in; /* that reached it */
};

static struct world {
    struct faulty net;
    struct device device[DEVICES];
    struct fate fate[MAX_IDS];
    uint32_t ids;
} w;

static const struct net_addr address[DEVICES][2] = {
    {{{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}}, {{0xfd, [15] = 1}}},
    {{{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}}, {{0xfd, [15] = 2}}},
};

static const struct faulty_odds odds = {10, 10, 0, 5, 30, 0};

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

/* First 4 bytes of a payload name its datagram; shorter ones are not told apart and carry none. */
static uint32_t id_of(const uint8_t *payload)
{
    uint32_t id;
    memcpy(&id, payload, sizeof(id));
    return id;
}

/* Each goes by its own path. */
static void check_path(const struct train *t, const struct train_packet *k)
{
    if (k->h.bth.dest_qp == GSI_QPN)
        return;
    const struct nic_path *path = &w.fate[id_of(t->span[k->first_span].addr)].path;
    assert_memory_equal(&t->path->local, &path->local, sizeof(path->local));
    assert_memory_equal(&t->path->remote, &path->remote, sizeof(path->remote));
    assert_int_equal(t->path->udp_sport, path->udp_sport);
}

static void take_sent(struct device *d, unsigned q);

/* The program polls at the worst moment, and writes over what it was told is done. */
static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct device *d = (struct device *)((char *)sink - offsetof(struct device, sink));
    for (unsigned q = 0; q < QPS; q++)
        take_sent(d, q);
    for (unsigned i = 0; i < t->packets; i++)
        check_path(t, &t->packet[i]);
    faulty_train(&w.net, !d->which, t);
}

static void take_sent(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_wc wc;
    while (cq_poll(e->scq, 1, &wc) == 1) {
        assert_int_equal(wc.wr_id, e->done);
        assert_int_equal(wc.status, e->done < e->fails_at    ? WC_SUCCESS
                                    : e->done == e->fails_at ? WC_LOC_LEN_ERR
                                                             : WC_WR_FLUSH_ERR);
        memset(slot_of(d, q, false, e->done++), 0xdd, SLOT_BYTES);
    }
}

/* A datagram has come to a QP; at least 4 bytes long, as all are. */
static void check_arrival(uint8_t to, const uint8_t *payload, uint32_t n)
{
    uint32_t id = id_of(payload);
    assert_in_range(id, 0, w.ids - 1);
    struct fate *f = &w.fate[id];
    assert_int_equal(f->to, to);
    assert_int_equal(f->length, n);
    assert_false(f->bad_key);
    for (uint32_t i = 4; i < n; i++)
        assert_int_equal(payload[i], byte_of(id, i));
    f->arrived++;
    assert_in_range(f->arrived, 1, f->copies);
}

static unsigned take_received(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_wc wc;
    unsigned n = 0;
    for (; cq_poll(e->rcq, 1, &wc) == 1; n++) {
        uint8_t *slot = slot_of(d, q, true, e->taken);
        assert_int_equal(wc.wr_id, e->taken);
        assert_int_equal(wc.status, WC_SUCCESS);
        assert_int_equal(wc.flags, WC_GRH);
        assert_true(wc.byte_len <= e->recv_length[e->taken % DEPTH]);
        check_arrival((uint8_t)(d->which * QPS + (int)q), slot + HEADER, wc.byte_len - HEADER);
        for (uint32_t i = wc.byte_len; i < SLOT_BYTES; i++)
            assert_int_equal(slot[i], 0xcc); /* not a byte behind it */
        e->taken++;
    }
    return n;
}

static unsigned take_mads(struct device *d)
{
    struct nic_mad m;
    unsigned n = 0;
    for (; gsi_next(d->nic, &m); n++) {
        uint32_t id = id_of(m.bytes + 4);
        assert_in_range(id, 0, w.ids - 1);
        struct fate *f = &w.fate[id];
        assert_int_equal(f->to, MAD_TO | d->which);
        assert_memory_equal(&m.src, &address[!d->which][0], sizeof(m.src));
        for (uint32_t i = 8; i < GSI_MAD_BYTES; i++)
            assert_int_equal(m.bytes[i], byte_of(id, i));
        f->arrived++;
        assert_in_range(f->arrived, 1, f->copies);
    }
    return n;
}

static void post_recv(struct device *d, unsigned q, uint32_t length)
{
    struct end *e = &d->end[q];
    if (e->posted - e->taken == DEPTH)
        return;
    uint8_t *slot = slot_of(d, q, true, e->posted);
    memset(slot, 0xcc, SLOT_BYTES);
    struct nic_sge sge[2] = {
        {(uintptr_t)slot,              length / 3,          d->mr->key},
        {(uintptr_t)slot + length / 3, length - length / 3, d->mr->key}
    };
    struct nic_recv_wr wr = {.wr_id = e->posted, .sg_list = sge, .num_sge = 2};
    assert_int_equal(wq_post_recv(e->qp, &wr), 0);
    e->recv_length[e->posted++ % DEPTH] = length;
}

static struct fate *new_id(uint8_t to, uint32_t length)
{
    if (w.ids == MAX_IDS)
        return NULL;
    w.fate[w.ids] = (struct fate){.to = to, .length = (uint16_t)length};
    return &w.fate[w.ids++];
}

static void post_send(struct device *d, unsigned q, uint32_t length)
{
    struct end *e = &d->end[q];
    if (e->sent - e->done == DEPTH || e->qp->state != QP_STATE_RTS || e->fails_at != UINT32_MAX)
        return;
    unsigned to_qp = rng_below(&w.net.rng, QPS);
    int to = !d->which;
    unsigned family = rng_below(&w.net.rng, 2);
    struct fate *f = new_id((uint8_t)(to * QPS + (int)to_qp), length);
    if (f == NULL)
        return;
    uint32_t id = w.ids - 1;
    uint8_t *slot = slot_of(d, q, false, e->sent);
    for (uint32_t i = 0; i < length; i++)
        slot[i] = byte_of(id, i);
    memcpy(slot, &id, sizeof(id));
    f->bad_key = !w.net.good && chance(5);
    struct nic_path path = {.local = address[d->which][family],
                            .remote = address[to][family],
                            .udp_sport = (uint16_t)(0xc000 + rng_below(&w.net.rng, 2)),
                            .hop_limit = 64};
    f->path = path;
    struct nic_sge sge = {(uintptr_t)slot, length, d->mr->key};
    struct nic_send_wr wr = {
        .wr_id = e->sent,
        .opcode = WR_SEND,
        .flags = WR_SIGNALED | (length <= 64 && chance(50) ? WR_INLINE : 0),
        .sg_list = &sge,
        .num_sge = 1,
        .path = &path,
        .dest_qpn = w.device[to].end[to_qp].qp->qpn,
        .qkey = QKEY_BASE + to_qp + (f->bad_key ? 7 : 0),
    };
    assert_int_equal(wq_post_send(e->qp, &wr), 0);
    if (length > MTU)
        e->fails_at = e->sent;
    e->sent++;
}

static void post_mad(struct device *d)
{
    struct nic_path path = {.local = address[d->which][0], .remote = address[!d->which][0]};
    uint8_t mad[GSI_MAD_BYTES] = {1, MAD_CLASS_CM};
    uint32_t id = w.ids;
    if (atomic_load(&d->nic->gsi.tx_count) == MADS ||
        new_id((uint8_t)(MAD_TO | !d->which), sizeof(mad)) == NULL)
        return;
    memcpy(mad + 4, &id, sizeof(id));
    for (uint32_t i = 8; i < sizeof(mad); i++)
        mad[i] = byte_of(id, i);
    assert_int_equal(gsi_send(d->nic, &path, GSI_QPN, mad), 0);
}

/* Out of SQE, once all is told. */
static void resume(struct end *e)
{
    struct nic_qp_attr attr = {.state = QP_STATE_RTS};
    if (e->qp->state != QP_STATE_SQE || e->sent != e->done)
        return;
    assert_int_equal(qp_modify(e->qp, &attr, QP_ATTR_STATE), 0);
    e->fails_at = UINT32_MAX;
}

static void arrives(int to, const struct rx_packet *p)
{
    struct device *d = &w.device[to];
    uint32_t id = id_of(p->payload + (p->h.bth.dest_qp == GSI_QPN ? 4 : 0));
    d->packets_in++;
    assert_in_range(id, 0, w.ids - 1);
    w.fate[id].copies += p->icrc_ok;
    nic_input(d->nic, w.net.now_ns, p, 1);
}

static unsigned run_moment(void)
{
    unsigned received = 0;
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        while (nic_output(d->nic, w.net.now_ns, &d->sink, 1 + rng_below(&w.net.rng, 4))) {
        }
    }
    faulty_moment(&w.net, arrives);
    for (int i = 0; i < DEVICES; i++) {
        for (unsigned q = 0; q < QPS; q++) {
            take_sent(&w.device[i], q);
            received += take_received(&w.device[i], q);
            resume(&w.device[i].end[q]);
        }
        if (w.net.good || chance(30))
            received += take_mads(&w.device[i]);
        assert_true(nic_deadline(w.device[i].nic) == UINT64_MAX); /* nobody waits for anything */
    }
    return received;
}

static void end_create(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct nic_qp_attr attr = {.port_num = 1, .qkey = QKEY_BASE + q, .active_mtu_bytes = MTU};
    struct qp_init init = {
        .type = QP_TYPE_UD, .pd = d->pd, .cap = {DEPTH, DEPTH, 2, 2, 64}
    };
    assert_int_equal(cq_create(d->nic, DEPTH, NULL, &e->scq), 0);
    assert_int_equal(cq_create(d->nic, DEPTH, NULL, &e->rcq), 0);
    init.send_cq = e->scq;
    init.recv_cq = e->rcq;
    assert_int_equal(qp_create(d->nic, &init, &e->qp), 0);
    e->fails_at = UINT32_MAX;
    attr.state = QP_STATE_INIT;
    unsigned mask = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY;
    assert_int_equal(qp_modify(e->qp, &attr, mask), 0);
    attr.state = QP_STATE_RTR;
    assert_int_equal(qp_modify(e->qp, &attr, QP_ATTR_STATE), 0);
    attr.state = QP_STATE_RTS;
    attr.sq_psn = 0xfffffa;
    assert_int_equal(qp_modify(e->qp, &attr, QP_ATTR_STATE | QP_ATTR_SQ_PSN), 0);
}

static void world_create(uint64_t seed)
{
    const size_t bytes = (size_t)QPS * 2 * DEPTH * SLOT_BYTES;
    memset(&w, 0, sizeof(w));
    faulty_begin(&w.net, seed, &odds);
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        struct nic_config config = {.seed = seed + (uint64_t)i, .gsi_mads = MADS};
        d->which = i;
        d->sink.train = take_train;
        d->memory = calloc(1, bytes);
        assert_non_null(d->memory);
        faulty_device_create(i, &config, d->memory, bytes, &d->nic, &d->pd, &d->mr);
        for (unsigned q = 0; q < QPS; q++)
            end_create(d, q);
    }
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
        free(d->memory);
    }
    free(w.net.flight);
}

static void act(void)
{
    struct device *d = &w.device[rng_below(&w.net.rng, DEVICES)];
    unsigned q = rng_below(&w.net.rng, QPS);
    switch (rng_below(&w.net.rng, 10)) {
    case 0:
        post_mad(d);
        break;
    case 1:
    case 2:
    case 3: /* too small for many, now and then */
        post_recv(d, q, chance(20) ? HEADER + 4 + rng_below(&w.net.rng, 200) : HEADER + MTU);
        break;
    case 4:
        run_moment();
        break;
    default:
        post_send(d, q, chance(2) ? MTU + 1 : 4 + rng_below(&w.net.rng, MTU - 3));
        break;
    }
}

/* What came in is in one of these. */
static void check_counters(const struct device *d)
{
    static const enum nic_counter drops[] = {
        COUNTER_rx_icrc_encapsulated, COUNTER_qkey_viol_cntr, COUNTER_rx_drop_no_recv,
        COUNTER_rx_drop_recv_small,   COUNTER_gsi_rx_full,    COUNTER_gsi_rx_mads};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(drops) / sizeof(drops[0]); i++)
        sum += counters_get(&d->nic->counters, drops[i]);
    for (unsigned q = 0; q < QPS; q++)
        sum += d->end[q].taken;
    assert_int_equal(sum, d->packets_in);
}

/* One datagram from each QP, one MAD from each device; each arrives. */
static void one_round(uint32_t length)
{
    uint32_t first = w.ids;
    for (int i = 0; i < DEVICES; i++) {
        post_mad(&w.device[i]);
        for (unsigned q = 0; q < QPS; q++) {
            for (unsigned k = 0; k < DEPTH; k++)
                post_recv(&w.device[i], q, HEADER + MTU);
            post_send(&w.device[i], q, length);
        }
    }
    run_moment();
    assert_int_equal(w.ids - first, DEVICES * (1 + QPS));
    for (uint32_t id = first; id < w.ids; id++) {
        assert_int_equal(w.fate[id].copies, 1);
        assert_int_equal(w.fate[id].arrived, 1);
    }
}

static bool small_receives_left(void)
{
    for (int i = 0; i < DEVICES; i++) {
        for (unsigned q = 0; q < QPS; q++) {
            const struct end *e = &w.device[i].end[q];
            for (uint32_t k = e->taken; k != e->posted; k++)
                if (e->recv_length[k % DEPTH] < HEADER + MTU)
                    return true;
        }
    }
    return false;
}

/* The network is good now: what is sent from here on arrives, each of it. */
static void check_good_network(void)
{
    w.net.good = true;
    run_moment();
    while (w.net.flights != 0)
        run_moment();
    run_moment(); /* the last errors are told, and their QPs sent on */
    while (small_receives_left())
        one_round(4); /* what is too small for others has room for these */
    for (uint32_t length = MTU; length > MTU - 5; length--)
        one_round(length);
}

static void datagrams__at_most_once_whole_and_never_stuck(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world_create(seed);
        for (unsigned i = 0; i < STEPS; i++)
            act();
        check_good_network();
        for (int i = 0; i < DEVICES; i++) {
            check_counters(&w.device[i]);
            for (unsigned q = 0; q < QPS; q++) {
                assert_int_equal(w.device[i].end[q].sent, w.device[i].end[q].done);
                assert_true(w.device[i].end[q].sent > 20); /* it did something */
            }
        }
        world_destroy();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams__at_most_once_whole_and_never_stuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
