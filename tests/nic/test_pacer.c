/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pacer.c: the bucket itself in tables, then QPs whose requests go through one, in virtual
 * time: within any time t no more than rate * t and one burst leaves, and hardly less.
 */
#include "nic/pacer.h"

#include <errno.h>

#include "objects.h"

enum {
    START = 1000000,
    LOG_MAX = 4096,
    QPS = 3,
    WRS = 256,
    WR_BYTES = 1024,
    HEADERS = 12 + 16 + 4, /* of an RDMA WRITE ONLY */
    WIRE_BYTES = WR_BYTES + HEADERS,
};
#define MS  UINT64_C(1000000)
#define SEC (1000 * MS)

static void pacer_limit__the_lowest_counts(void **state)
{
    (void)state;
    static const struct {
        uint32_t program, path, asked, kbps, burst;
    } rows[] = {
        {0,          0,    0,    0,          1         },
        {8000,       0,    0,    8000,       10000     },
        {0,          8000, 0,    8000,       10000     },
        {8000,       7000, 0,    7000,       8750      },
        {8000,       9000, 0,    8000,       10000     },
        {8000,       0,    5000, 8000,       5000      },
        {1,          0,    0,    1,          1         },
        {UINT32_MAX, 0,    0,    UINT32_MAX, UINT32_MAX},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pacer p = {0};
        pacer_limit(&p, START, PACER_PROGRAM, rows[i].program);
        pacer_burst(&p, START, rows[i].asked);
        pacer_limit(&p, START, PACER_PATH, rows[i].path);
        assert_int_equal(p.kbps, rows[i].kbps);
        assert_int_equal(p.burst_bytes, rows[i].burst);
    }
}

/* After sent bytes at START: room for a packet, and when there is some if there is none. */
static void pacer_room__rows(void **state)
{
    (void)state;
    static const struct {
        uint32_t kbps, burst, sent, packet, room;
        uint64_t opens; /* after START */
    } rows[] = {
        {8000,       4000,       0,          1000, 4000,              0                },
        {8000,       4000,       3000,       1000, 1000,              0                },
        {8000,       4000,       3001,       1000, 0,                 1000             },
        {8000,       4000,       4000,       1000, 0,                 1000000          },
        {8000,       4000,       9000,       1000, 0,                 6000000          },
        {8000,       500,        0,          1000, 500,               0                },
        {8000,       500,        1,          1000, 0,                 1000             },
        {8000,       500,        1000,       1000, 0,                 1000000          },
        {3,          500,        1,          1000, 0,                 2666667          },
        {1,          1,          4160,       4160, 0,                 33280000000      },
        {UINT32_MAX, UINT32_MAX, UINT32_MAX, 4160, 0,                 8                },
        {UINT32_MAX, UINT32_MAX, 4160,       4160, UINT32_MAX - 4160, 0                },
        {UINT32_MAX, 1,          4160,       4160, 0,                 8                },
        {1,          UINT32_MAX, UINT32_MAX, 1,    0,                 UINT64_C(8000000)},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pacer p = {0};
        pacer_limit(&p, START, PACER_PROGRAM, rows[i].kbps);
        pacer_burst(&p, START, rows[i].burst);
        if (rows[i].sent != 0)
            pacer_sent(&p, START, rows[i].sent);
        assert_int_equal(pacer_room(&p, START, rows[i].packet), rows[i].room);
        if (rows[i].room != 0)
            continue;
        uint64_t opens = START + rows[i].opens;
        assert_int_equal(p.opens_ns, opens);
        assert_int_equal(pacer_room(&p, opens - 1, rows[i].packet), 0);
        assert_int_not_equal(pacer_room(&p, opens, rows[i].packet), 0);
    }
}

/* However late somebody comes, there is no more than a burst. */
static void pacer_room__never_more_than_a_burst(void **state)
{
    (void)state;
    static const uint64_t later[] = {1, SEC, UINT64_C(1) << 40, UINT64_MAX - START};

    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        struct pacer p = {0};
        pacer_limit(&p, START, PACER_PROGRAM, UINT32_MAX);
        pacer_burst(&p, START, 5000);
        pacer_sent(&p, START, 1);
        assert_int_equal(pacer_room(&p, START + later[i], 100), 5000);
    }
}

/* Time that goes back pays nothing, and nothing twice. */
static void pacer_room__time_goes_forward_only(void **state)
{
    (void)state;
    struct pacer p = {0};

    pacer_limit(&p, START, PACER_PROGRAM, 8000);
    pacer_burst(&p, START, 1000);
    pacer_sent(&p, START, 3000);
    assert_int_equal(pacer_room(&p, START + MS, 1000), 0);
    assert_int_equal(p.opens_ns, START + 3 * MS);
    assert_int_equal(pacer_room(&p, START, 1000), 0);
    assert_int_equal(pacer_room(&p, START + 2 * MS, 1000), 0);
    assert_int_equal(p.opens_ns, START + 3 * MS);
}

/* What went out is owed at the new rate; without a limit nothing is owed. */
static void pacer_limit__changed_in_mid_flow(void **state)
{
    (void)state;
    struct pacer p = {0};

    pacer_limit(&p, START, PACER_PROGRAM, 8); /* a byte each ms */
    pacer_burst(&p, START, 10);
    pacer_sent(&p, START, 1000);
    assert_int_equal(pacer_room(&p, START, 10), 0);
    assert_int_equal(p.opens_ns, START + 1000 * MS);
    pacer_limit(&p, START + 500 * MS, PACER_PROGRAM, 8000);
    assert_int_equal(pacer_room(&p, START + 500 * MS, 10), 0);
    assert_int_equal(p.opens_ns, START + 500 * MS + 500000);
    pacer_limit(&p, START + 500 * MS, PACER_PROGRAM, 8);
    assert_int_equal(pacer_room(&p, START + 500 * MS, 10), 0);
    assert_int_equal(p.opens_ns, START + 1000 * MS);
    pacer_limit(&p, START + 500 * MS, PACER_PROGRAM, 0);
    pacer_limit(&p, START + 500 * MS, PACER_PROGRAM, 8);
    assert_int_equal(pacer_room(&p, START + 500 * MS, 10), 10);
}

/* What one QP has sent, train by train. */
struct sent {
    uint64_t at_ns;
    uint32_t bytes;
};

static struct rig {
    struct objects o; /* its QP is not used */
    struct mr *mr;
    struct qp *qp[QPS];
    uint8_t memory[WR_BYTES];
    struct nic_sink sink;
    uint64_t now;
    struct sent sent[QPS][LOG_MAX];
    unsigned trains[QPS];
    uint64_t bytes[QPS];
} rig;

static void take(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    for (int i = 0; i < QPS; i++) {
        if (rig.qp[i] == NULL || t->path->udp_sport != 0xc000 + i)
            continue;
        assert_true(rig.trains[i] < LOG_MAX);
        rig.sent[i][rig.trains[i]++] = (struct sent){rig.now, t->total_bytes};
        rig.bytes[i] += t->total_bytes;
        return;
    }
    fail_msg("a train of nobody");
}

static struct nic_qp_attr attributes(int i, enum qp_state to)
{
    struct nic_qp_attr a = objects_attr(to);

    a.path.udp_sport = (uint16_t)(0xc000 + i);
    a.qkey = 1;
    return a;
}

static void bring(int i, enum qp_type type)
{
    enum { UD_INIT = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY };
    enum { UC_RTR = RTR_MASK & ~(QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER) };
    enum { PLAIN_RTS = QP_ATTR_STATE | QP_ATTR_SQ_PSN };
    static const unsigned masks[][3] = {
        [QP_TYPE_RC] = {INIT_MASK, RTR_MASK,      RTS_MASK },
        [QP_TYPE_UC] = {INIT_MASK, UC_RTR,        PLAIN_RTS},
        [QP_TYPE_UD] = {UD_INIT,   QP_ATTR_STATE, PLAIN_RTS},
    };
    struct qp_init init = {
        .type = type,
        .pd = rig.o.pd,
        .send_cq = rig.o.scq,
        .recv_cq = rig.o.rcq,
        .cap = {WRS, 1, 1, 1, 0},
    };

    assert_int_equal(qp_create(rig.o.nic, &init, &rig.qp[i]), 0);
    for (int k = 0; k < 3; k++) {
        struct nic_qp_attr a = attributes(i, (enum qp_state)(QP_STATE_INIT + k));
        assert_int_equal(qp_modify(rig.qp[i], &a, masks[type][k]), 0);
    }
}

static int setup(void **state)
{
    const struct objects_init in = {
        .cap = {8, 8, 2, 2, 0},
        .cqe = 4096,
    };

    (void)state;
    memset(&rig, 0, sizeof(rig));
    objects_create(&rig.o, &in);
    assert_int_equal(
        mem_reg(rig.o.pd, rig.memory, WR_BYTES, (uintptr_t)rig.memory, ACCESS_LOCAL_WRITE, &rig.mr),
        0);
    rig.sink.train = take;
    rig.now = START;
    nic_advance(rig.o.nic, rig.now);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < QPS; i++) {
        if (rig.qp[i] == NULL)
            continue;
        qp_unlink(rig.qp[i]);
        qp_free(rig.qp[i]);
    }
    mem_mr_revoke(rig.mr);
    mem_mr_free(rig.mr);
    objects_destroy(&rig.o);
    return 0;
}

/* n messages of a packet each. A datagram goes by a path with this static rate. */
static void post(int i, unsigned n, unsigned path_rate)
{
    struct nic_path path = {.udp_sport = (uint16_t)(0xc000 + i), .rate = path_rate & 0xfff};
    struct nic_sge sge = {(uintptr_t)rig.memory, WR_BYTES, rig.mr->key};
    struct nic_send_wr wr = {
        .opcode = rig.qp[i]->type == QP_TYPE_UD ? WR_SEND : WR_RDMA_WRITE,
        .sg_list = &sge,
        .num_sge = 1,
        .path = &path,
    };

    for (unsigned k = 0; k < n; k++)
        assert_int_equal(wq_post_send(rig.qp[i], &wr), 0);
}

static int limit(int i, uint32_t kbps, uint32_t burst)
{
    struct nic_qp_attr a = {.rate_limit_kbps = kbps, .max_burst_bytes = burst};

    return qp_modify(rig.qp[i], &a, QP_ATTR_RATE_LIMIT);
}

/* All that is due until then, and then it is that time. */
static void run_until(uint64_t end)
{
    for (;;) {
        while (nic_output(rig.o.nic, rig.now, &rig.sink, 4)) {
        }
        uint64_t next = nic_deadline(rig.o.nic);
        if (next > end)
            break;
        assert_true(next > rig.now);
        rig.now = next;
        nic_advance(rig.o.nic, rig.now);
    }
    rig.now = end;
    nic_advance(rig.o.nic, rig.now);
}

/* From train a to train b: no time in which more has left than the rate gives and a burst. */
static void check_limit(int i, unsigned a, unsigned b, uint32_t kbps, uint32_t burst)
{
    for (unsigned from = a; from < b; from++) {
        uint64_t bytes = 0;
        for (unsigned to = from; to < b; to++) {
            bytes += rig.sent[i][to].bytes;
            uint64_t ns = rig.sent[i][to].at_ns - rig.sent[i][from].at_ns;
            assert_true(bytes <= ns * kbps / 8000000 + burst);
        }
    }
}

static const enum qp_type paced_types[] = {QP_TYPE_RC, QP_TYPE_UC, QP_TYPE_UD};
enum { PACED_TYPES = sizeof(paced_types) / sizeof(paced_types[0]) };

/* The last of n packets leaves when the rate has paid for all before it but for the burst. */
static void requests__of_each_type(void **state)
{
    enum { N = 100, KBPS = 80000, BURST = 4000 };

    for (int t = 0; t < PACED_TYPES; t++) {
        setup(state);
        bring(0, paced_types[t]);
        assert_int_equal(limit(0, KBPS, BURST), 0);
        post(0, N, 0);
        run_until(START + 12 * MS);
        check_limit(0, 0, rig.trains[0], KBPS, BURST);
        uint32_t packet = (uint32_t)(rig.bytes[0] / N);
        assert_int_equal(rig.bytes[0], N * packet);
        assert_true(rig.sent[0][0].bytes > BURST - packet && rig.sent[0][0].bytes <= BURST);
        uint64_t end = rig.sent[0][rig.trains[0] - 1].at_ns - START;
        uint64_t paid = end * KBPS / 8000000;
        assert_in_range(paid, rig.bytes[0] - BURST, rig.bytes[0] - BURST + 2 * packet);
        teardown(state);
    }
}

static void requests__as_fast_as_may_be_without_a_limit(void **state)
{
    (void)state;
    for (int t = 0; t < PACED_TYPES; t++) {
        bring(t, paced_types[t]);
        post(t, 200, 0);
    }
    run_until(START);
    for (int t = 0; t < PACED_TYPES; t++) {
        assert_true(rig.bytes[t] > 200 * WR_BYTES);
        assert_int_equal(rig.sent[t][rig.trains[t] - 1].at_ns, START);
    }
}

/* What is as large as the burst, or larger: one packet at a time. */
static void requests__burst_of_less_than_a_packet(void **state)
{
    static const uint32_t bursts[] = {1, WIRE_BYTES - 1, WIRE_BYTES, 2 * WIRE_BYTES - 1};

    for (size_t k = 0; k < sizeof(bursts) / sizeof(bursts[0]); k++) {
        setup(state);
        bring(0, QP_TYPE_UC);
        limit(0, 8000, bursts[k]);
        post(0, 5, 0);
        run_until(START + SEC);
        assert_int_equal(rig.trains[0], 5);
        for (unsigned i = 1; i < 5; i++)
            assert_true(rig.sent[0][i].at_ns - rig.sent[0][i - 1].at_ns <= WIRE_BYTES * 1000);
        check_limit(0, 0, 5, 8000, bursts[k] > WIRE_BYTES ? bursts[k] : WIRE_BYTES);
        teardown(state);
    }
}

/* 1 kbit/s: a packet in 8 s. */
static void requests__slowest(void **state)
{
    (void)state;
    bring(0, QP_TYPE_RC);
    limit(0, 1, 0);
    post(0, 2, 0);
    run_until(START + WIRE_BYTES * 8 * MS - 1);
    assert_true(rig.trains[0] >= 1);
    assert_int_equal(rig.sent[0][0].at_ns, START);
    check_limit(0, 0, rig.trains[0], 1, WIRE_BYTES);
}

static void requests__zero_is_no_limit_again(void **state)
{
    (void)state;
    bring(0, QP_TYPE_UC);
    limit(0, 8000, 2000);
    post(0, 100, 0);
    run_until(START + 10 * MS);
    assert_true(rig.bytes[0] <= 10000 + 2000);
    limit(0, 0, 0);
    run_until(rig.now);
    assert_int_equal(rig.bytes[0], 100 * WIRE_BYTES);
    run_until(rig.now + SEC); /* what was armed is not taken back */
    assert_int_equal(nic_deadline(rig.o.nic), UINT64_MAX);
}

/* Faster at once, though what waits had been told a later time; slower at once, too. */
static void requests__changed_in_mid_flow(void **state)
{
    (void)state;
    enum { BURST = 1500 };
    bring(0, QP_TYPE_UC);
    limit(0, 8, BURST); /* a byte a ms: the second packet in half a second */
    post(0, 200, 0);
    run_until(START + 100 * MS);
    unsigned first = rig.trains[0];
    assert_int_equal(first, 1);
    limit(0, 80000, BURST);
    run_until(rig.now + 10 * MS);
    unsigned second = rig.trains[0];
    check_limit(0, first, second, 80000, BURST);
    assert_true(rig.bytes[0] > 90 * WIRE_BYTES);
    limit(0, 8000, BURST);
    uint64_t before = rig.bytes[0];
    run_until(rig.now + 10 * MS);
    check_limit(0, second, rig.trains[0], 8000, BURST);
    assert_in_range(rig.bytes[0] - before, 8 * WIRE_BYTES, 10000 + BURST);
}

static void requests__each_queue_pair_has_its_own(void **state)
{
    (void)state;
    static const uint32_t kbps[QPS] = {8000, 80000, 0};
    for (int i = 0; i < QPS; i++) {
        bring(i, QP_TYPE_UC);
        limit(i, kbps[i], 3000);
        post(i, 250, 0);
    }
    run_until(START + 10 * MS);
    check_limit(0, 0, rig.trains[0], 8000, 3000);
    check_limit(1, 0, rig.trains[1], 80000, 3000);
    assert_in_range(rig.bytes[0], 9 * WIRE_BYTES, 13000);
    assert_in_range(rig.bytes[1], 90 * WIRE_BYTES, 103000);
    assert_int_equal(rig.bytes[2], 250 * WIRE_BYTES);
    assert_int_equal(rig.trains[2], 5); /* as long as ever */
    assert_int_equal(rig.sent[2][rig.trains[2] - 1].at_ns, START);
}

/* Nobody answers: all of it goes again and again, and counts. */
static void requests__retransmissions_count(void **state)
{
    (void)state;
    enum { KBPS = 8000, BURST = 3000 };
    bring(0, QP_TYPE_RC);
    limit(0, KBPS, BURST);
    post(0, 200, 0);
    run_until(START + 400 * MS);
    assert_true(counters_get(&rig.o.nic->counters, COUNTER_retransmitted_packets) > 40);
    check_limit(0, 0, rig.trains[0], KBPS, BURST);
}

/* The static rate of a connection's path; the lower one counts. */
static void requests__static_rate_of_a_connection(void **state)
{
    (void)state;
    struct nic_qp_attr a = attributes(0, QP_STATE_SQD);
    bring(0, QP_TYPE_RC);
    assert_int_equal(qp_modify(rig.qp[0], &a, QP_ATTR_STATE), 0);
    a.path.rate = 1;
    assert_int_equal(qp_modify(rig.qp[0], &a, QP_ATTR_AV), 0);
    assert_int_equal(limit(0, 2 * PATH_RATE_KBPS, 3000), 0);
    a.state = QP_STATE_RTS;
    assert_int_equal(qp_modify(rig.qp[0], &a, QP_ATTR_STATE), 0);
    post(0, 200, 0);
    run_until(START + 3 * MS);
    check_limit(0, 0, rig.trains[0], PATH_RATE_KBPS, 3000);
    assert_in_range(rig.bytes[0], 110 * WIRE_BYTES, 121000);
}

/* A datagram's path slows down what comes behind it, until one goes by a path without a rate. */
static void requests__static_rate_of_a_datagram(void **state)
{
    (void)state;
    bring(0, QP_TYPE_UD);
    limit(0, 0, 2000);
    post(0, 10, 1); /* a train: 10500 bytes, 10 ms are 390625 */
    run_until(START);
    uint64_t first = rig.bytes[0];
    assert_true(first > 10 * WR_BYTES);
    post(0, 1, 1);
    post(0, 10, 0);
    run_until(START + 200000);
    assert_int_equal(rig.bytes[0], first);
    run_until(START + 400000);
    assert_int_equal(rig.bytes[0], first / 10 * 21);
}

static void requests__reset_ends_the_limit(void **state)
{
    (void)state;
    bring(0, QP_TYPE_RC);
    limit(0, 8, 1);
    post(0, 10, 0);
    run_until(START + 1);
    assert_true(nic_deadline(rig.o.nic) != UINT64_MAX);
    struct nic_qp_attr a = {.state = QP_STATE_RESET};
    struct nic_qp_cap cap;
    assert_int_equal(qp_modify(rig.qp[0], &a, QP_ATTR_STATE), 0);
    qp_query(rig.qp[0], &a, &cap);
    assert_int_equal(a.rate_limit_kbps, 0);
    assert_int_equal(rig.qp[0]->pacer.kbps, 0);
    run_until(rig.now + SEC);
    assert_int_equal(rig.trains[0], 1);
}

/* In ERR nothing is left to wait for. */
static void requests__error_ends_the_wait(void **state)
{
    (void)state;
    bring(0, QP_TYPE_UC);
    limit(0, 8, 1);
    post(0, 10, 0);
    run_until(START + 1);
    struct nic_qp_attr a = {.state = QP_STATE_ERR};
    assert_int_equal(qp_modify(rig.qp[0], &a, QP_ATTR_STATE), 0);
    assert_int_equal(nic_deadline(rig.o.nic), UINT64_MAX);
}

/* A QP that has nothing to send needs no time. */
static void requests__idle_queue_pair_sleeps(void **state)
{
    (void)state;
    bring(0, QP_TYPE_UC);
    limit(0, 8000, 1000);
    post(0, 1, 0);
    run_until(START);
    assert_int_equal(rig.trains[0], 1);
    assert_int_equal(nic_deadline(rig.o.nic), UINT64_MAX);
}

/* What went out before a silence has been paid for at the rate of then, whoever told of the time.
 */
static void requests__slower_after_a_silence(void **state)
{
    for (int output = 0; output < 2; output++) {
        setup(state);
        bring(0, QP_TYPE_UC);
        assert_int_equal(limit(0, 800000, 100000), 0);
        post(0, 50, 0);
        run_until(START);
        assert_in_range(rig.bytes[0], 50 * WR_BYTES, 100000);
        rig.now += 1 * MS; /* the old rate pays 100,000 bytes in it, the new one 1,000 */
        if (output)
            assert_false(nic_output(rig.o.nic, rig.now, &rig.sink, 4));
        else
            nic_tell_time(rig.o.nic, rig.now);
        assert_int_equal(limit(0, 8000, 2000), 0);
        uint64_t before = rig.bytes[0];
        post(0, 2, 0);
        nic_output(rig.o.nic, rig.now, &rig.sink, 4);
        assert_true(rig.bytes[0] > before);
        teardown(state);
    }
}

/* In which states it may be set, and of whom. */
static void qp_modify__rate_limit(void **state)
{
    (void)state;
    struct objects *o = &rig.o;
    struct nic_qp_attr a = {.rate_limit_kbps = 77, .max_burst_bytes = 5};
    struct nic_qp_cap cap;

    assert_int_equal(qp_modify(o->qp, &a, QP_ATTR_RATE_LIMIT), -EINVAL);
    assert_int_equal(objects_step(o, QP_STATE_INIT), 0);
    assert_int_equal(qp_modify(o->qp, &a, QP_ATTR_RATE_LIMIT), -EINVAL);
    assert_int_equal(objects_step(o, QP_STATE_RTR), 0);
    assert_int_equal(qp_modify(o->qp, &a, QP_ATTR_RATE_LIMIT), -EINVAL);
    assert_int_equal(o->qp->pacer.kbps, 0);
    a = objects_attr(QP_STATE_RTS);
    a.rate_limit_kbps = 78;
    assert_int_equal(qp_modify(o->qp, &a, RTS_MASK | QP_ATTR_RATE_LIMIT), 0);
    assert_int_equal(o->qp->pacer.kbps, 78);
    a.rate_limit_kbps = 79;
    assert_int_equal(qp_modify(o->qp, &a, QP_ATTR_RATE_LIMIT), 0);
    assert_int_equal(objects_step(o, QP_STATE_SQD), 0);
    a.rate_limit_kbps = 80;
    assert_int_equal(qp_modify(o->qp, &a, QP_ATTR_RATE_LIMIT), 0);
    a.state = QP_STATE_RTS;
    a.rate_limit_kbps = 81;
    assert_int_equal(qp_modify(o->qp, &a, QP_ATTR_STATE | QP_ATTR_RATE_LIMIT), 0);
    qp_query(o->qp, &a, &cap);
    assert_int_equal(a.rate_limit_kbps, 81);
    assert_int_equal(objects_step(o, QP_STATE_ERR), 0);
    assert_int_equal(qp_modify(o->qp, &a, QP_ATTR_RATE_LIMIT), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pacer_limit__the_lowest_counts),
        cmocka_unit_test(pacer_room__rows),
        cmocka_unit_test(pacer_room__never_more_than_a_burst),
        cmocka_unit_test(pacer_room__time_goes_forward_only),
        cmocka_unit_test(pacer_limit__changed_in_mid_flow),
        cmocka_unit_test(requests__of_each_type),
        cmocka_unit_test(requests__burst_of_less_than_a_packet),
        cmocka_unit_test(requests__slower_after_a_silence),
        cmocka_unit_test_setup_teardown(requests__as_fast_as_may_be_without_a_limit, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(requests__slowest, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__zero_is_no_limit_again, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__changed_in_mid_flow, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__each_queue_pair_has_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__retransmissions_count, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__static_rate_of_a_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__static_rate_of_a_datagram, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__reset_ends_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__error_ends_the_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(requests__idle_queue_pair_sleeps, setup, teardown),
        cmocka_unit_test_setup_teardown(qp_modify__rate_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
