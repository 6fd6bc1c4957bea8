/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_case_counters.c: case L8, the counters against a watcher of the link that knows no engine:
 * it sees what each end sends and what reaches it, as a capture would, and counts for itself.
 */
#include "pair.h"

enum {
    MTU = 1024,
    PSNS_MAX = 1 << 20, /* of one direction, in one run */
    ROUNDS = 2000,
    BURST = 24,
    CE = 3, /* the ECN bits */
};

/* One direction: requests of one end, and what the other end answers. PSNs count from the first. */
struct seen {
    uint32_t first_psn;
    /* At the end that asks. */
    uint32_t sent_end, last_end, una;
    bool fetch[PSNS_MAX]; /* PSNs that only a response of their own answers */
    bool implied;         /* the missing response was noticed already */
    bool cause;           /* a NAK, received or implied, and nothing sent since */
    /* At the end that answers. */
    uint32_t epsn;
};

struct watcher {
    struct seen dir[2]; /* by the end that asks */
    uint64_t count[2][COUNTER_COUNT];
    unsigned drop, corrupt, twice, late, mark; /* of 1000 packets */
};

static uint16_t flags_of(const struct rx_packet *packet)
{
    return opcode_info(packet->h.bth.opcode)->flags;
}

static uint32_t offset_of(const struct seen *d, const struct rx_packet *packet)
{
    uint32_t offset = (packet->h.bth.psn.v - d->first_psn) & 0xffffff;
    assert_true(offset < PSNS_MAX || offset > 0xffffff - PSNS_MAX);
    return offset;
}

static uint32_t psns_of(const struct rx_packet *packet)
{
    uint32_t n = packet->h.reth.dma_len;
    return flags_of(packet) & OPF_READ && n != 0 ? (n - 1) / MTU + 1 : 1;
}

/* Going back without a NAK is a timeout. */
static void request_sent(struct watcher *w, int from, const struct rx_packet *packet)
{
    struct seen *d = &w->dir[from];
    uint32_t at = offset_of(d, packet), end = at + psns_of(packet);
    assert_true(at <= d->sent_end);
    if (at < d->last_end) {
        assert_int_equal(at, d->una);
        if (!d->cause) {
            w->count[from][COUNTER_local_ack_timeout_err]++;
            d->implied = false;
        }
    }
    d->cause = false;
    d->last_end = end;
    for (; d->sent_end < end; d->sent_end++)
        d->fetch[d->sent_end] = (flags_of(packet) & (OPF_READ | OPF_ATOMIC)) != 0;
}

static void request_arrived(struct watcher *w, int to, const struct rx_packet *packet)
{
    struct seen *d = &w->dir[!to];
    uint32_t at = offset_of(d, packet);
    if (at == d->epsn)
        d->epsn += psns_of(packet);
    else
        w->count[to][at > d->epsn ? COUNTER_out_of_sequence : COUNTER_duplicate_request]++;
}

/* Everything before limit is answered, but for READs and atomics; false: one is missing. */
static bool advance(struct seen *d, uint32_t limit)
{
    for (; d->una < limit; d->una++) {
        if (d->fetch[d->una])
            return false;
        d->implied = false;
    }
    return true;
}

static void response_arrived(struct watcher *w, int to, const struct rx_packet *packet)
{
    struct seen *d = &w->dir[to];
    uint32_t at = offset_of(d, packet);
    bool is_data = opcode_op(packet->h.bth.opcode) != OP_ACKNOWLEDGE;
    enum aeth_kind kind = is_data ? AETH_RESERVED : aeth_kind(packet->h.aeth.syndrome);
    bool nak = kind == AETH_NAK && aeth_value(packet->h.aeth.syndrome) == NAK_PSN_SEQUENCE;
    assert_true(is_data || kind == AETH_ACK || nak); /* nothing else is asked for */
    w->count[to][COUNTER_packet_seq_err] += nak;
    if (at < d->una || at > PSNS_MAX) /* (the ACK before the first is there too) */
        return;
    if (!advance(d, kind == AETH_ACK ? at + 1 : at)) {
        w->count[to][COUNTER_implied_nak_seq_err] += !d->implied;
        d->cause |= !d->implied;
        d->implied = true;
    } else if (nak) {
        d->cause = true;
    } else if (is_data) {
        d->una = at + 1;
        d->implied = false;
    }
}

static void arrived(struct pair *p, int to, const struct rx_packet *packet)
{
    struct watcher *w = p->hook_data;
    if (!packet->icrc_ok) {
        w->count[to][COUNTER_rx_icrc_encapsulated]++;
        return;
    }
    w->count[to][COUNTER_np_ecn_marked_roce_packets] += (packet->traffic_class & CE) == CE;
    if (flags_of(packet) & OPF_RESPONSE)
        response_arrived(w, to, packet);
    else
        request_arrived(w, to, packet);
}

static struct fate sent(struct pair *p, int from, struct rx_packet *packet)
{
    struct watcher *w = p->hook_data;
    w->count[from][COUNTER_np_cnp_sent] +=
        opcode_info(packet->h.bth.opcode)->service == SERVICE_CNP;
    if (!(flags_of(packet) & OPF_RESPONSE))
        request_sent(w, from, packet);
    if (rng_below(&p->rng, 1000) < w->mark)
        packet->traffic_class |= CE;
    packet->icrc_ok = rng_below(&p->rng, 1000) >= w->corrupt;
    struct fate fate = {
        .drop = rng_below(&p->rng, 1000) < w->drop,
        .twice = rng_below(&p->rng, 1000) < w->twice,
    };
    if (rng_below(&p->rng, 1000) < w->late)
        fate.extra_ns = rng_below(&p->rng, 20) * US;
    return fate;
}

static void post_something(struct pair *p, int side, uint64_t id)
{
    static const enum wr_opcode ops[] = {WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ,
                                         WR_ATOMIC_FETCH_AND_ADD, WR_RDMA_WRITE_WITH_IMM};
    enum wr_opcode op = ops[rng_below(&p->rng, 5)];
    uint32_t length = op == WR_ATOMIC_FETCH_AND_ADD ? 8 : rng_below(&p->rng, 6000);
    if (op == WR_SEND || op == WR_RDMA_WRITE_WITH_IMM)
        pair_recv(p, !side, (struct work){.id = id, .at = 48000, .len = 8000});
    pair_post(p, side,
              (struct work){op, .id = id, .len = length, .at = 8,
                            .va = op == WR_ATOMIC_FETCH_AND_ADD ? 0 : 16384});
}

static uint64_t poll_all(struct pair *p, int side)
{
    struct nic_wc wc;
    uint64_t n = 0;
    while (cq_poll(p->side[side].rcq, 1, &wc) == 1)
        assert_int_equal(wc.status, WC_SUCCESS);
    for (; cq_poll(p->side[side].scq, 1, &wc) == 1; n++)
        assert_int_equal(wc.status, WC_SUCCESS);
    return n;
}

static const enum nic_counter compared[] = {
    COUNTER_out_of_sequence,     COUNTER_packet_seq_err,
    COUNTER_implied_nak_seq_err, COUNTER_local_ack_timeout_err,
    COUNTER_duplicate_request,   COUNTER_rx_icrc_encapsulated,
    COUNTER_np_cnp_sent,         COUNTER_np_ecn_marked_roce_packets,
};

/* Both ends at work under these faults; then each counter of each end is what was seen. */
static void run(struct watcher *w, uint64_t seed)
{
    struct pair p;
    uint64_t busy[2] = {0}, id = 0;
    pair_create(&p, &(struct pair_config){.timeout = 6, .retry = 7, .rnr_retry = 7, .mtu = MTU});
    rng_init(&p.rng, seed);
    w->dir[A].first_psn = p.side[A].attr.sq_psn;
    w->dir[B].first_psn = p.side[B].attr.sq_psn;
    pair_bring(&p, A, QP_STATE_RTS);
    pair_bring(&p, B, QP_STATE_RTS);
    p.hook = sent;
    p.arrived = arrived;
    p.hook_data = w;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = A; i <= B; i++) {
            for (uint32_t n = rng_below(&p.rng, 4); n > 0 && busy[i] < BURST; n--, busy[i]++)
                post_something(&p, i, id++);
            busy[i] -= poll_all(&p, i);
        }
        pair_run(&p, 20 * US);
    }
    pair_settle(&p);
    for (int i = A; i <= B; i++) {
        busy[i] -= poll_all(&p, i);
        assert_int_equal(busy[i], 0);
        for (size_t c = 0; c < sizeof(compared) / sizeof(compared[0]); c++)
            if (pair_count(&p, i, compared[c]) != w->count[i][compared[c]])
                fail_msg("%s of side %d is %llu, seen were %llu", counters_name(compared[c]), i,
                         (unsigned long long)pair_count(&p, i, compared[c]),
                         (unsigned long long)w->count[i][compared[c]]);
    }
    pair_quiet(&p);
    pair_destroy(&p);
}

/* No faults: nothing is counted. */
static void case_L8__nothing_wrong(void **state)
{
    (void)state;
    static struct watcher w;
    w = (struct watcher){0};
    run(&w, 1);
    for (int i = A; i <= B; i++)
        for (int c = 0; c < COUNTER_COUNT; c++)
            assert_int_equal(w.count[i][c], 0);
}

/*
 * Each kind of fault alone, then all: what must show, and what must not. (Late packets alone cost
 * timeouts, too: one NAK a gap, so that what overtakes the first packet sent again is lost.)
 */
static void case_L8__each_fault(void **state)
{
    (void)state;
    enum {
        GAP = 1 << 0,     /* out_of_sequence, packet_seq_err */
        TIMEOUT = 1 << 1, /* local_ack_timeout_err */
        IMPLIED = 1 << 2,
        AGAIN = 1 << 3, /* duplicate_request */
        ICRC = 1 << 4,
        MARK = 1 << 5,
    };
    static const struct {
        unsigned drop, corrupt, twice, late, mark, shows;
    } rows[] = {
        {30, 0,  0,  0,  0,  GAP | TIMEOUT | IMPLIED | AGAIN              },
        {0,  30, 0,  0,  0,  GAP | TIMEOUT | IMPLIED | AGAIN | ICRC       },
        {0,  0,  50, 0,  0,  AGAIN                                        },
        {0,  0,  0,  50, 0,  GAP | TIMEOUT | IMPLIED | AGAIN              },
        {0,  0,  0,  0,  50, MARK                                         },
        {20, 10, 20, 20, 20, GAP | TIMEOUT | IMPLIED | AGAIN | ICRC | MARK},
        {50, 5,  50, 99, 99, GAP | TIMEOUT | IMPLIED | AGAIN | ICRC | MARK},
    };
    static const unsigned shown_by[] = {GAP, GAP, IMPLIED, TIMEOUT, AGAIN, ICRC, 0, MARK};
    static struct watcher w;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            w = (struct watcher){.drop = rows[i].drop,
                                 .corrupt = rows[i].corrupt,
                                 .twice = rows[i].twice,
                                 .late = rows[i].late,
                                 .mark = rows[i].mark};
            run(&w, seed);
            for (size_t c = 0; c < sizeof(compared) / sizeof(compared[0]); c++) {
                bool shows = (rows[i].shows & shown_by[c]) != 0;
                uint64_t n = w.count[A][compared[c]] + w.count[B][compared[c]];
                if ((n != 0) != shows)
                    fail_msg("row %zu: %s is %llu", i, counters_name(compared[c]),
                             (unsigned long long)n);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_L8__nothing_wrong),
        cmocka_unit_test(case_L8__each_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
