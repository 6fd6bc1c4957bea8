/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_notification.c: congestion control between two engines: a mark makes a CNP, a CNP slows the
 * QP, whatever it sends; probes of the round-trip time and their answers. And what does none of
 * that.
 */
#include <string.h>

#include "pair.h"
#include "wire/rtt.h"

enum {
    MTU = 1024,
    MAX_CNPS = 256,
    CE = 3,
    ECT_0 = 2,
    LINE_MBPS = 10000,
};

static struct pair p;
static struct {
    unsigned mark_every[2]; /* packets from a side with data; 0: none */
    bool lose_mads;
    unsigned marked[2], data[2];
    unsigned cnps, mads, acks;
    uint64_t cnp_ns[MAX_CNPS];
    struct rx_packet cnp, probe, answer; /* the last ones */
    uint64_t data_ns[2];                 /* when the last data of a side left */
    unsigned not_ect;
} seen;

static struct fate watch(struct pair *pair, int from, struct rx_packet *packet)
{
    struct fate fate = {0};
    bool data = packet->payload_bytes != 0 && packet->h.bth.dest_qp != QPN_GSI;

    if (packet->h.bth.opcode == OPCODE_CNP) {
        if (seen.cnps < MAX_CNPS)
            seen.cnp_ns[seen.cnps] = pair->now;
        seen.cnps++;
        seen.cnp = *packet;
        return fate;
    }
    if (packet->h.bth.dest_qp == QPN_GSI) {
        struct rtt_mad m;
        assert_true(rtt_check(packet->payload, packet->payload_bytes));
        rtt_parse(packet->payload, &m);
        *(m.answer ? &seen.answer : &seen.probe) = *packet;
        seen.mads++;
        fate.drop = seen.lose_mads;
        return fate;
    }
    seen.not_ect += (packet->traffic_class & CE) != ECT_0;
    seen.acks += opcode_op(packet->h.bth.opcode) == OP_ACKNOWLEDGE;
    if (!data)
        return fate;
    seen.data_ns[from] = pair->now;
    seen.data[from]++;
    if (seen.mark_every[from] != 0 && seen.data[from] % seen.mark_every[from] == 0) {
        packet->traffic_class |= CE;
        seen.marked[from]++;
    }
    return fate;
}

static const struct pair_config usual = {
    .mtu = MTU,
    .timeout = 14,
    .retry = 7,
    .rnr_retry = 7,
    .memory_bytes = 1 << 20,
    .traffic_class = 26 << 2,
    .congestion = {.algorithm = "dcqcn-paper", .cnp_interval_ns = 50 * US, .cnp_class = 48 << 2},
};

static void begin_told(const struct pair_config *config, const uint32_t *ece)
{
    memset(&seen, 0, sizeof(seen));
    pair_create(&p, config);
    p.hook = watch;
    if (ece != NULL) {
        uint32_t options = *ece;
        assert_int_equal(qp_set_ece(p.side[A].qp, &options), 0);
    }
    p.side[A].attr.line_mbps = p.side[B].attr.line_mbps = LINE_MBPS;
    pair_bring(&p, A, QP_STATE_RTS);
    pair_bring(&p, B, QP_STATE_RTS);
}

static void begin(const struct pair_config *config)
{
    begin_told(config, NULL);
}

static void end(void)
{
    pair_settle(&p);
    pair_quiet(&p);
    pair_destroy(&p);
}

static uint64_t rate_mbps(int side)
{
    struct congestion *g = p.side[side].qp->congestion;
    return cc_rate(&g->cc, &g->params, p.now) / 1000000;
}

static void write_some(int side, uint64_t id, uint32_t packets)
{
    pair_post(&p, side, (struct work){.opcode = WR_RDMA_WRITE, .id = id, .len = packets * MTU});
}

/* IBA A17.9.3, by both IP versions: from the marked packet's destination to its source, for the QP
 * that sent it, with a class of its own. */
static void case_L6_119(bool v6)
{
    struct pair_config config = usual;
    config.v6 = v6;
    begin(&config);
    seen.mark_every[A] = 1;
    write_some(A, 1, 1);
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_int_equal(seen.marked[A], 1);
    assert_int_equal(seen.cnps, 1);
    const struct rx_packet *c = &seen.cnp;
    assert_int_equal(c->h.bth.opcode, 0x81);
    assert_int_equal(c->h.bth.dest_qp, p.side[A].qp->qpn);
    assert_int_equal(c->h.bth.psn.v, 0);
    assert_int_equal(c->h.bth.pkey, 0xffff);
    assert_true(c->h.bth.becn);
    assert_false(c->h.bth.fecn);
    assert_false(c->h.bth.ack_req);
    assert_false(c->h.bth.mig_req);
    assert_int_equal(c->payload_bytes, 0);
    assert_int_equal(c->traffic_class, 48 << 2);
    assert_memory_equal(&c->src, &p.side[B].attr.path.local, sizeof(c->src));
    assert_memory_equal(&c->dst, &p.side[A].attr.path.local, sizeof(c->dst));
    assert_int_equal(pair_count(&p, B, COUNTER_np_cnp_sent), 1);
    assert_int_equal(pair_count(&p, B, COUNTER_np_ecn_marked_roce_packets), 1);
    assert_int_equal(pair_count(&p, A, COUNTER_rp_cnp_handled), 1);
    assert_int_equal(pair_count(&p, A, COUNTER_np_cnp_sent), 0);
    assert_int_equal(seen.not_ect, 0);
    end();
}

static void case_119__format_by_ipv4(void **state)
{
    (void)state;
    case_L6_119(false);
}

static void case_119__format_by_ipv6(void **state)
{
    (void)state;
    case_L6_119(true);
}

/* Each packet is marked, for a millisecond and more: a CNP in 50 us, none sooner. */
static void case_L6__one_an_interval(void **state)
{
    (void)state;
    begin(&usual);
    seen.mark_every[A] = 1;
    write_some(A, 1, 1000);
    uint64_t start = p.now;
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_in_range(seen.cnps, 8, (seen.data_ns[A] - start) / (50 * US) + 1);
    assert_true(seen.cnps < seen.marked[A]);
    for (unsigned i = 1; i < seen.cnps && i < MAX_CNPS; i++)
        assert_true(seen.cnp_ns[i] - seen.cnp_ns[i - 1] >= 50 * US);
    assert_int_equal(pair_count(&p, B, COUNTER_np_cnp_sent), seen.cnps);
    assert_int_equal(pair_count(&p, B, COUNTER_np_ecn_marked_roce_packets), seen.marked[A]);
    assert_int_equal(p.side[A].qp->congestion->cnps, seen.cnps);
    end();
}

/* Without an interval each mark has its CNP. */
static void case_L6__no_interval(void **state)
{
    (void)state;
    struct pair_config config = usual;
    config.congestion.cnp_interval_ns = 0;
    begin(&config);
    seen.mark_every[A] = 1;
    for (unsigned i = 1; i <= 9; i++) {
        write_some(A, i, 1);
        pair_settle(&p);
        pair_sent(&p, A, i, WC_SUCCESS);
    }
    assert_int_equal(seen.cnps, 9);
    end();
}

/* What leaves after a CNP takes its time, and the rate comes back when no more come. */
static void rate__falls_and_comes_back(void **state)
{
    (void)state;
    begin(&usual);
    assert_int_equal(rate_mbps(A), LINE_MBPS);
    seen.mark_every[A] = 1;
    write_some(A, 1, 100);
    pair_run(&p, 10 * US);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_int_equal(rate_mbps(A), LINE_MBPS / 2);
    seen.mark_every[A] = 0;
    uint64_t start = p.now;
    uint64_t least_ns = 1000 * 8 * MTU * UINT64_C(1000) / LINE_MBPS;
    write_some(A, 2, 1000);
    pair_settle(&p);
    pair_sent(&p, A, 2, WC_SUCCESS);
    assert_true(seen.data_ns[A] - start > least_ns);
    pair_run(&p, 100 * MS);
    assert_int_equal(rate_mbps(A), LINE_MBPS);
    assert_int_equal(rate_mbps(B), LINE_MBPS);
    end();
}

/* Data that answers is sent, too: READ responses and atomics wait for the responder's rate, and
 * nothing overtakes them. */
static void rate__bounds_responses(void **state)
{
    (void)state;
    begin(&usual);
    seen.mark_every[B] = 1;
    pair_post(&p, A, (struct work){.opcode = WR_RDMA_READ, .id = 1, .len = 100 * MTU});
    pair_run(&p, 20 * US);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_int_equal(seen.cnp.h.bth.dest_qp, p.side[B].qp->qpn);
    assert_int_equal(rate_mbps(B), LINE_MBPS / 2);
    seen.mark_every[B] = 0;
    seen.data[B] = 0;
    uint64_t start = p.now;
    pair_post(&p, A, (struct work){.opcode = WR_RDMA_READ, .id = 2, .len = 40 * MTU});
    pair_post(&p, A, (struct work){.opcode = WR_ATOMIC_FETCH_AND_ADD, .id = 3, .len = 8, .a = 7});
    pair_post(&p, A, (struct work){.opcode = WR_RDMA_WRITE, .id = 4, .len = MTU});
    pair_settle(&p);
    for (unsigned id = 2; id <= 4; id++)
        pair_sent(&p, A, id, WC_SUCCESS);
    assert_int_equal(seen.data[B], 40);
    assert_true(seen.data_ns[B] - start > 39 * 8 * MTU * UINT64_C(1000) / LINE_MBPS);
    assert_int_equal(pair_count(&p, A, COUNTER_local_ack_timeout_err), 0);
    end();
}

/* An ACK is no data: it does not wait for the rate of the side that sends it. */
static void rate__acks_pass(void **state)
{
    (void)state;
    struct pair_config config = usual;
    config.congestion.cnp_interval_ns = 0;
    begin(&config);
    seen.mark_every[B] = 1;
    for (unsigned i = 1; i <= 12; i++) { /* B's rate goes down to the least */
        write_some(B, i, 1);
        pair_run(&p, 10 * US);
    }
    pair_run(&p, 1 * MS);
    for (unsigned i = 1; i <= 12; i++)
        pair_sent(&p, B, i, WC_SUCCESS);
    p.side[B].qp->congestion->cc.rate_bps = LINE_MBPS * UINT64_C(1000);
    p.side[B].qp->congestion->cc.dcqcn.target_bps = LINE_MBPS * UINT64_C(1000);
    seen.mark_every[B] = 0;
    write_some(B, 20, 3);
    uint64_t start = p.now;
    write_some(A, 21, 1);
    pair_run(&p, 10 * US);
    pair_sent(&p, A, 21, WC_SUCCESS);
    assert_true(p.now - start <= 10 * US);
    pair_settle(&p);
    pair_sent(&p, B, 20, WC_SUCCESS);
    end();
}

static void uc__is_slowed_as_well(void **state)
{
    (void)state;
    struct pair_config config = usual;
    config.type = QP_TYPE_UC;
    begin(&config);
    seen.mark_every[A] = 1;
    write_some(A, 1, 30);
    pair_run(&p, 10 * US);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_int_equal(rate_mbps(A), LINE_MBPS / 2);
    seen.mark_every[A] = 0;
    uint64_t start = p.now;
    write_some(A, 2, 60);
    pair_settle(&p);
    pair_sent(&p, A, 2, WC_SUCCESS);
    assert_true(seen.data_ns[A] - start > 59 * 8 * MTU * UINT64_C(1000) / LINE_MBPS);
    assert_int_equal(seen.not_ect, 0);
    end();
}

/* Off: the class is the program's, marks are counted, nobody is told, and a CNP changes nothing. */
static void off__nothing_happens(void **state)
{
    (void)state;
    static const char *const names[] = {NULL, "none"};
    for (unsigned i = 0; i < 2; i++) {
        struct pair_config config = usual;
        config.congestion.algorithm = names[i];
        begin(&config);
        seen.mark_every[A] = 1;
        write_some(A, 1, 50);
        struct rx_packet cnp = pair_packet(&p, A, OPCODE_CNP, 0);
        cnp.h.bth.becn = true;
        pair_inject(&p, A, cnp);
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_SUCCESS);
        assert_int_equal(seen.cnps, 0);
        assert_int_equal(seen.not_ect, seen.data[A] + seen.acks); /* 26 << 2, as asked */
        assert_int_equal(pair_count(&p, B, COUNTER_np_ecn_marked_roce_packets), 50);
        assert_int_equal(pair_count(&p, A, COUNTER_rp_cnp_handled), 1);
        end();
    }
}

/* CNPs that slow nobody. */
static void cnp__of_others(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint32_t qpn;
        uint16_t pkey;
        bool no_becn, other_src, other_dst, broken;
        enum nic_counter counter;
    } rows[] = {
        {"no such QP",                     0x999999,          0xffff,      .counter = COUNTER_rx_drop_no_qp},
        {"P_Key",                          0,                 0x1234,      .counter = COUNTER_rx_drop_pkey },
        {"no BECN",                        0,                 0xffff,      .no_becn = true,                  .counter = COUNTER_rx_drop_malformed},
        {"a stranger",                                0,                                      0xffff,                 .other_src = true,      .counter = COUNTER_rx_drop_peer},
        {"to another address", 0,                  0xffff,          .other_dst = true,                                    .counter = COUNTER_rx_drop_peer},
        {"ICRC",               0, 0xffff,   .broken = true,.counter = COUNTER_rx_icrc_encapsulated},
        {"QP 1",                          1,                             0xffff,.counter = COUNTER_rx_drop_no_qp                                    },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(&usual);
        struct rx_packet cnp = pair_packet(&p, A, OPCODE_CNP, 0);
        cnp.h.bth.becn = !rows[i].no_becn;
        cnp.h.bth.pkey = rows[i].pkey;
        cnp.icrc_ok = !rows[i].broken;
        if (rows[i].qpn != 0)
            cnp.h.bth.dest_qp = rows[i].qpn;
        cnp.src.b[14] += rows[i].other_src;
        cnp.dst.b[14] += rows[i].other_dst;
        pair_inject(&p, A, cnp);
        print_message("%s\n", rows[i].what);
        assert_int_equal(pair_count(&p, A, rows[i].counter), 1);
        assert_int_equal(pair_count(&p, A, COUNTER_rp_cnp_handled), 0);
        assert_int_equal(rate_mbps(A), LINE_MBPS);
        end();
    }
}

/* Before it is connected, and after it has failed. */
static void cnp__in_other_states(void **state)
{
    (void)state;
    static const enum qp_state states[] = {QP_STATE_RESET, QP_STATE_INIT, QP_STATE_ERR};
    for (unsigned i = 0; i < 3; i++) {
        memset(&seen, 0, sizeof(seen));
        pair_create(&p, &usual);
        if (states[i] == QP_STATE_ERR) {
            pair_bring(&p, A, QP_STATE_RTS);
            assert_int_equal(pair_modify(&p, A, QP_STATE_ERR), 0);
        } else if (states[i] == QP_STATE_INIT) {
            pair_bring(&p, A, QP_STATE_INIT);
        }
        struct rx_packet cnp = pair_packet(&p, A, OPCODE_CNP, 0);
        cnp.h.bth.becn = true;
        pair_inject(&p, A, cnp);
        assert_int_equal(pair_count(&p, A, COUNTER_rp_cnp_handled), 0);
        assert_int_equal(pair_count(&p, A, COUNTER_rx_drop_state), 1);
        end();
    }
}

/* A marked packet that no QP takes makes no CNP; nor does a QP owe one that has ended since. */
static void mark_without_a_flow(enum qp_state end_state)
{
    begin(&usual);
    struct rx_packet stray = pair_packet(&p, B, opcode_make(SERVICE_RC, OP_WRITE_ONLY), 5);
    stray.traffic_class = CE;
    stray.src.b[14]++;
    pair_inject(&p, B, stray);
    stray.src.b[14]--;
    stray.h.bth.dest_qp ^= 1;
    pair_inject(&p, B, stray);
    stray.h.bth.dest_qp ^= 1;
    pair_inject(&p, B, stray); /* taken, and the QP is gone before the CNP has left */
    assert_int_equal(pair_modify(&p, B, end_state), 0);
    pair_settle(&p);
    assert_int_equal(seen.cnps, 0);
    assert_int_equal(pair_count(&p, B, COUNTER_np_cnp_sent), 0);
    end();
}

static void mark__reset(void **state)
{
    (void)state;
    mark_without_a_flow(QP_STATE_RESET);
}

static void mark__error(void **state)
{
    (void)state;
    mark_without_a_flow(QP_STATE_ERR);
}

static struct pair_config by_rtt(const char *name)
{
    struct pair_config config = usual;
    config.congestion.algorithm = name;
    return config;
}

/* 2 us each way: that is what is measured, by the asker's clock. */
static void probe__measures(void **state)
{
    (void)state;
    struct pair_config config = by_rtt("timely");
    begin(&config);
    write_some(A, 1, 1);
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_int_equal(seen.mads, 2);
    assert_int_equal(p.side[A].qp->congestion->cc.timely.rtt_ns, 4 * US);
    assert_int_equal(pair_count(&p, A, COUNTER_rp_rtt_probes), 1);
    assert_int_equal(pair_count(&p, A, COUNTER_rp_rtt_handled), 1);
    assert_int_equal(pair_count(&p, B, COUNTER_np_rtt_answers), 1);
    assert_int_equal(seen.probe.h.bth.dest_qp, QPN_GSI);
    assert_int_equal(seen.probe.traffic_class, 26 << 2 | ECT_0); /* goes with the data */
    assert_int_equal(seen.answer.traffic_class, 48 << 2);
    end();
}

/* A peer that answers none is a peer without congestion: line rate, and few probes. */
static void probe__unanswered(void **state)
{
    (void)state;
    struct pair_config config = by_rtt("ztr-template");
    begin(&config);
    seen.lose_mads = true;
    p.side[A].qp->congestion->cc.rate_bps = UINT64_C(100000000); /* of better days */
    for (unsigned i = 1; i <= 400; i++) {
        write_some(A, i, 10);
        pair_run(&p, 1 * MS);
        pair_sent(&p, A, i, WC_SUCCESS);
    }
    assert_in_range(seen.mads, 8, 12);
    assert_int_equal(rate_mbps(A), LINE_MBPS);
    assert_int_equal(pair_count(&p, A, COUNTER_rp_rtt_handled), 0);
    seen.lose_mads = false;
    write_some(A, 500, 10); /* it may have learned */
    pair_run(&p, 400 * MS);
    pair_sent(&p, A, 500, WC_SUCCESS);
    write_some(A, 501, 10);
    pair_run(&p, 1 * MS);
    pair_sent(&p, A, 501, WC_SUCCESS);
    assert_true(pair_count(&p, A, COUNTER_rp_rtt_handled) > 0);
    end();
}

/* ECE says what the peer does: who answers none is sent none, and a silence of who does answer is
 * no reason for line rate. */
static void probe__peer_told_it(void **state)
{
    (void)state;
    static const struct {
        uint32_t ece;
        unsigned probes_min, probes_max;
        uint64_t mbps; /* of 100 Mb/s at first */
    } rows[] = {
        {0,              0, 0,  100},
        {ECE_RTT_PROBES, 8, 12, 100},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct pair_config config = by_rtt("ztr-template");
        begin_told(&config, &rows[r].ece);
        seen.lose_mads = true;
        p.side[A].qp->congestion->cc.rate_bps = UINT64_C(100000000);
        for (unsigned i = 1; i <= 400; i++) {
            write_some(A, i, 10);
            pair_run(&p, 1 * MS);
            pair_sent(&p, A, i, WC_SUCCESS);
        }
        assert_in_range(seen.mads, rows[r].probes_min, rows[r].probes_max);
        assert_int_equal(rate_mbps(A), rows[r].mbps);
        end();
    }
}

/* Not sooner than the interval after the one before. */
static void probe__interval(void **state)
{
    (void)state;
    struct pair_config config = by_rtt("ztr-target");
    config.congestion.probe_interval_ns = 1 * MS;
    begin(&config);
    for (unsigned i = 1; i <= 100; i++) {
        write_some(A, i, 1);
        pair_run(&p, 100 * US);
        pair_sent(&p, A, i, WC_SUCCESS);
    }
    assert_in_range(pair_count(&p, A, COUNTER_rp_rtt_probes), 9, 11);
    end();
}

static void inject_mad(int to, const struct rtt_mad *m, bool stranger)
{
    static uint8_t bytes[MAD_BYTES];
    rtt_build(m, bytes);
    struct rx_packet mad = pair_packet(&p, to, opcode_make(SERVICE_UD, OP_SEND_ONLY), 0);
    mad.h.bth.dest_qp = QPN_GSI;
    mad.h.deth = (struct deth){QKEY_GSI, QPN_GSI};
    mad.payload = bytes;
    mad.payload_bytes = MAD_BYTES;
    mad.src.b[14] += stranger;
    pair_inject(&p, to, mad);
}

/* Answers that nobody waits for, and probes of those who are no peers. */
static void probe__of_others(void **state)
{
    (void)state;
    struct pair_config config = by_rtt("timely");
    begin(&config);
    seen.lose_mads = true;
    write_some(A, 1, 1);
    pair_run(&p, 10 * US);
    pair_sent(&p, A, 1, WC_SUCCESS);
    uint64_t stamp = p.side[A].qp->congestion->probe_ns;
    uint32_t a = p.side[A].qp->qpn, b = p.side[B].qp->qpn;
    const struct rtt_mad good = {.answer = true, .to_qpn = a, .from_qpn = b, .stamp_ns = stamp};
    struct rtt_mad m = good;
    m.stamp_ns--;
    inject_mad(A, &m, false); /* another probe's */
    m = good;
    m.held_ns = 10 * US;
    inject_mad(A, &m, false); /* longer than it was away */
    m.held_ns = UINT64_MAX;
    inject_mad(A, &m, false);
    assert_int_equal(pair_count(&p, A, COUNTER_rp_rtt_ignored), 3);
    m = good;
    inject_mad(A, &m, true);
    m.from_qpn++;
    inject_mad(A, &m, false);
    m = good;
    m.to_qpn ^= 1;
    inject_mad(A, &m, false);
    m = (struct rtt_mad){.to_qpn = a, .from_qpn = b, .stamp_ns = 7};
    inject_mad(A, &m, true); /* a stranger's probe */
    assert_int_equal(pair_count(&p, A, COUNTER_rx_drop_peer), 4);
    assert_int_equal(pair_count(&p, A, COUNTER_rp_rtt_handled), 0);
    unsigned before = seen.mads;
    pair_run(&p, 10 * US);
    assert_int_equal(seen.mads, before);
    inject_mad(A, &good, false);
    assert_int_equal(pair_count(&p, A, COUNTER_rp_rtt_handled), 1);
    inject_mad(A, &good, false); /* a second time */
    assert_int_equal(pair_count(&p, A, COUNTER_rp_rtt_ignored), 4);
    end();
}

/* Who has no congestion control answers those who have. */
static void probe__answered_where_it_is_off(void **state)
{
    (void)state;
    struct pair_config config = by_rtt("none");
    begin(&config);
    const struct rtt_mad m = {
        .to_qpn = p.side[A].qp->qpn, .from_qpn = p.side[B].qp->qpn, .stamp_ns = 7};
    inject_mad(A, &m, false);
    pair_run(&p, 10 * US);
    assert_int_equal(seen.mads, 1);
    assert_int_equal(pair_count(&p, A, COUNTER_np_rtt_answers), 1);
    assert_int_equal(pair_count(&p, B, COUNTER_rp_rtt_ignored), 1);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_119__format_by_ipv4),
        cmocka_unit_test(case_119__format_by_ipv6),
        cmocka_unit_test(case_L6__one_an_interval),
        cmocka_unit_test(case_L6__no_interval),
        cmocka_unit_test(rate__falls_and_comes_back),
        cmocka_unit_test(rate__bounds_responses),
        cmocka_unit_test(rate__acks_pass),
        cmocka_unit_test(uc__is_slowed_as_well),
        cmocka_unit_test(off__nothing_happens),
        cmocka_unit_test(cnp__of_others),
        cmocka_unit_test(cnp__in_other_states),
        cmocka_unit_test(mark__reset),
        cmocka_unit_test(mark__error),
        cmocka_unit_test(probe__measures),
        cmocka_unit_test(probe__unanswered),
        cmocka_unit_test(probe__peer_told_it),
        cmocka_unit_test(probe__interval),
        cmocka_unit_test(probe__of_others),
        cmocka_unit_test(probe__answered_where_it_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
