/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_case_wire.c: cases from the field that show on the wire (L1, L2, L4, 118, 120), in the
 * states of a QP (36, 42, 141), and in what a key is good for at the peer (15, 28, 144).
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

static void begin(struct pair *p, struct pair_config c)
{
    pair_create(p, &c);
    pair_bring(p, A, QP_STATE_RTS);
    pair_bring(p, B, QP_STATE_RTS);
}

static void end(struct pair *p)
{
    pair_quiet(p);
    pair_destroy(p);
}

/* What a watcher of the link writes down. */
struct watch {
    uint32_t lose;         /* which request packets, bit by bit, counted from the first sent */
    bool corrupt;          /* lost by a wrong ICRC instead */
    uint32_t sent;         /* request packets seen */
    uint32_t psn[256];     /* of each */
    uint32_t naks;         /* sequence NAKs seen */
    uint32_t nak_psn[256]; /* of each */
    uint32_t nak_at[256];  /* requests seen before it */
};

static struct fate watch(struct pair *p, int from, struct rx_packet *packet)
{
    struct watch *w = p->hook_data;
    struct fate fate = {0};
    if (from == A) {
        assert_true(w->sent < 256);
        bool lose = w->sent < 32 && (w->lose >> w->sent & 1);
        w->psn[w->sent++] = packet->h.bth.psn.v;
        packet->icrc_ok = !(lose && w->corrupt);
        fate.drop = lose && !w->corrupt;
    } else if (packet->h.aeth.syndrome == 0x60) {
        w->nak_at[w->naks] = w->sent;
        w->nak_psn[w->naks++] = packet->h.bth.psn.v;
    }
    return fate;
}

static void ten_writes(struct pair *p, struct watch *w)
{
    begin(p, (struct pair_config){.timeout = 14, .retry = 7});
    p->hook = watch;
    p->hook_data = w;
    for (uint64_t id = 0; id < 10; id++)
        pair_post(p, A, (struct work){WR_RDMA_WRITE, .id = id, .len = 2048, .va = 2048 * id});
    pair_settle(p);
    for (uint64_t id = 0; id < 10; id++)
        pair_sent(p, A, id, WC_SUCCESS);
}

/* After a loss the sender goes on in order or from the PSN of the NAK, nowhere else. */
static void case_L1(void **state)
{
    (void)state;
    static const uint32_t losses[] = {1, 2, 1u << 19, 0x3c, 0x8421, 0x55555, 0x80001, 0xfffff};
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        struct pair p;
        struct watch w = {.lose = losses[i]};
        ten_writes(&p, &w);
        uint32_t nak = 0, timeouts = 0;
        for (uint32_t k = 1; k < w.sent; k++) {
            while (nak < w.naks && w.nak_at[nak] < k)
                nak++;
            if (w.psn[k] == w.psn[k - 1] + 1)
                continue;
            bool by_nak = nak < w.naks && w.nak_at[nak] == k && w.psn[k] == w.nak_psn[nak];
            timeouts += !by_nak;
        }
        assert_int_equal(timeouts, pair_count(&p, A, COUNTER_local_ack_timeout_err));
        end(&p);
    }
}

/* The NAK has the expected PSN, and there is one a gap. */
static void case_L2(void **state)
{
    (void)state;
    struct pair p;
    struct watch w = {.lose = 1u << 3};
    ten_writes(&p, &w);
    assert_int_equal(w.naks, 1);
    assert_int_equal(w.nak_psn[0], w.psn[3]);
    assert_int_equal(pair_count(&p, A, COUNTER_packet_seq_err), 1);
    assert_int_equal(pair_count(&p, B, COUNTER_seq_nak_sent), 1);
    end(&p);
    w = (struct watch){.lose = 1u << 3 | 1u << 9 | 1u << 15};
    ten_writes(&p, &w);
    assert_int_equal(w.naks, 1); /* the first gap hides the others: all go back behind it */
    end(&p);
}

/* A bad ICRC is dropped, counted, and then a loss like any other. */
static void case_L4(void **state)
{
    (void)state;
    struct pair p;
    struct watch w = {.lose = 1u << 3 | 1u << 5, .corrupt = true};
    ten_writes(&p, &w);
    assert_int_equal(pair_count(&p, B, COUNTER_rx_icrc_encapsulated), 2);
    assert_int_equal(w.naks, 1);
    assert_int_equal(w.nak_psn[0], w.psn[3]);
    end(&p);
}

static struct fate no_mig_req(struct pair *p, int from, struct rx_packet *packet)
{
    (void)p, (void)from;
    assert_true(packet->h.bth.mig_req);
    packet->h.bth.mig_req = false;
    return (struct fate){0};
}

/* MigReq: 1 is sent always, both are taken. */
static void case_118_engine(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 0, .timeout = 10});
    p.hook = no_mig_req;
    pair_recv(&p, B, (struct work){.id = 9, .len = 3000});
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 3000});
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 2, .len = 3000});
    pair_post(&p, A, (struct work){WR_ATOMIC_FETCH_AND_ADD, .id = 3, .len = 8});
    pair_settle(&p);
    for (uint64_t id = 1; id <= 3; id++)
        pair_sent(&p, A, id, WC_SUCCESS);
    pair_received(&p, B, 9, WC_SUCCESS);
    end(&p);
}

struct port_watch {
    struct nic_sink sink;
    uint16_t sport[2];
    unsigned trains;
};

static void take_sport(struct nic_sink *sink, const struct train *t)
{
    struct port_watch *w = (struct port_watch *)sink;
    w->sport[w->trains++ % 2] = t->path->udp_sport;
}

/* The UDP source port is the QP's own and stays so (which one it is, the host decides). */
static void case_120_engine(void **state)
{
    (void)state;
    struct pair p;
    struct port_watch w = {.sink.train = take_sport};
    begin(&p, (struct pair_config){.timeout = 5, .retry = 7});
    p.side[A].attr.path.udp_sport = 0xface;
    assert_int_equal(pair_modify(&p, A, QP_STATE_RESET), 0);
    pair_bring(&p, A, QP_STATE_RTS);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 4});
    nic_output(p.side[A].nic, p.now, &w.sink, 8);
    nic_advance(p.side[A].nic, p.now + 10 * MS); /* and of the retransmission */
    nic_output(p.side[A].nic, p.now + 10 * MS, &w.sink, 8);
    assert_int_equal(w.trains, 2);
    assert_int_equal(w.sport[0], 0xface);
    assert_int_equal(w.sport[1], 0xface);
    end(&p);
}

/* A region of another PD, from afar. */
static void case_15_remote(void **state)
{
    (void)state;
    struct pair p;
    struct mr *mr;
    begin(&p, (struct pair_config){.retry = 7});
    struct side *b = &p.side[B];
    assert_int_equal(mem_reg(b->other_pd, b->memory, 64, (uintptr_t)b->memory,
                             ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, &mr),
                     0);
    p.side[A].memory[0] = 1;
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 8, .rkey = mr->key});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_REM_ACCESS_ERR);
    pair_event(&p, B, EVENT_QP_ACCESS_ERR);
    assert_int_equal(b->memory[0], 0);
    mem_mr_revoke(mr);
    mem_mr_free(mr);
    end(&p);
}

/* The rkey of a region that is gone was still honoured. */
static void case_28_remote(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    struct side *b = &p.side[B];
    uint32_t old = b->mr->key;
    memset(p.side[A].memory, 0x77, 4096);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 4});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    mem_mr_revoke(b->mr);
    mem_mr_free(b->mr);
    assert_int_equal(mem_reg(b->pd, b->memory, b->memory_bytes, (uintptr_t)b->memory,
                             ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, &b->mr),
                     0);
    assert_int_not_equal(b->mr->key, old);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 2, .len = 4096, .rkey = old});
    pair_settle(&p);
    pair_sent(&p, A, 2, WC_REM_ACCESS_ERR);
    pair_event(&p, B, EVENT_QP_ACCESS_ERR);
    for (int i = 4; i < 4096; i++)
        assert_int_equal(b->memory[i], 0);
    end(&p);
}

/* Five WRs, the second bad: the true error first, then flushes in order. A NAK ends both QPs. */
static void case_36_remote_error(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 10, .retry = 2});
    pair_post(&p, B, (struct work){WR_RDMA_WRITE, .id = 7, .len = 4});
    pair_settle(&p);
    pair_sent(&p, B, 7, WC_SUCCESS);
    for (uint64_t id = 1; id <= 5; id++)
        pair_post(&p, A,
                  (struct work){WR_RDMA_WRITE, .id = id, .len = 4, .rkey = id == 2 ? 0x1234 : 0});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_REM_ACCESS_ERR);
    for (uint64_t id = 3; id <= 5; id++)
        pair_sent(&p, A, id, WC_WR_FLUSH_ERR);
    pair_event(&p, B, EVENT_QP_ACCESS_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    pair_state(&p, B, QP_STATE_ERR);
    end(&p);
}

/* A local error ends only our QP; the peer hears nothing, and its own work times out. */
static void case_36_local_error(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 10, .retry = 2});
    for (uint64_t id = 1; id <= 5; id++)
        pair_post(&p, A,
                  (struct work){WR_RDMA_WRITE, .id = id, .len = 4, .lkey = id == 2 ? 0x1234 : 0});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_LOC_PROT_ERR);
    for (uint64_t id = 3; id <= 5; id++)
        pair_sent(&p, A, id, WC_WR_FLUSH_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    pair_state(&p, B, QP_STATE_RTS);
    pair_post(&p, B, (struct work){WR_RDMA_WRITE, .id = 7, .len = 4});
    pair_settle(&p);
    pair_sent(&p, B, 7, WC_RETRY_EXC_ERR);
    end(&p);
}

/* RESET of a busy QP left it stuck. */
static void case_42_hundred_times(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 10, .retry = 7, .rnr_retry = 7, .min_rnr = 1});
    for (uint64_t round = 0; round < 100; round++) {
        for (uint64_t id = 0; id < 8; id++) {
            pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = id, .len = 9000});
            pair_post(&p, A, (struct work){WR_RDMA_READ, .id = id, .len = 5000});
            pair_post(&p, B, (struct work){WR_SEND, .id = id, .len = 3000});
            pair_recv(&p, A, (struct work){.id = id, .len = id % 4 == 0 ? 3000 : 9});
        }
        pair_run(&p, rng_below(&p.rng, 40) * US);
        for (int i = A; i <= B; i++)
            assert_int_equal(pair_modify(&p, i, QP_STATE_RESET), 0);
        struct nic_event e;
        for (int i = A; i <= B; i++)
            while (nic_event_next(p.side[i].nic, &e)) {
            }
        pair_quiet(&p);       /* no stale completion */
        pair_run(&p, 1 * MS); /* what is on its way gets lost */
        pair_bring(&p, A, QP_STATE_RTS);
        pair_bring(&p, B, QP_STATE_RTS);
        pair_recv(&p, B, (struct work){.id = 9, .len = 3000});
        pair_post(&p, A, (struct work){WR_SEND, .id = 1000 + round, .len = 3000});
        pair_settle(&p);
        pair_sent(&p, A, 1000 + round, WC_SUCCESS);
        pair_received(&p, B, 9, WC_SUCCESS);
        pair_quiet(&p);
    }
    end(&p);
}

/* A request reaches a QP that is not ready for any: silence. */
static void case_141(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct pair p;
        enum qp_state at = i < 2 ? QP_STATE_RESET : QP_STATE_INIT;
        pair_create(&p, &(struct pair_config){.timeout = 10, .retry = 1});
        pair_bring(&p, A, QP_STATE_RTS);
        pair_bring(&p, B, at);
        pair_post(&p, A, (struct work){i % 2 ? WR_RDMA_READ : WR_RDMA_WRITE, .id = 1, .len = 4});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_RETRY_EXC_ERR);
        pair_state(&p, B, at);
        assert_int_equal(p.side[B].packets, 0);
        assert_int_equal(pair_count(&p, B, COUNTER_rx_drop_state), 2);
        end(&p);
    }
}

static void case_141_rtr_answers(void **state)
{
    (void)state;
    struct pair p;
    pair_create(&p, &(struct pair_config){.timeout = 10, .retry = 1});
    pair_bring(&p, A, QP_STATE_RTS);
    pair_bring(&p, B, QP_STATE_RTR);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 4});
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 2, .len = 4});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_SUCCESS);
    pair_event(&p, B, EVENT_COMM_EST);
    end(&p);
}

/* An inline READ makes no sense: refused at the post. */
static void case_144(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    assert_int_equal(
        pair_try(&p, A, (struct work){WR_RDMA_READ, .id = 1, .len = 8, .flags = WR_INLINE}),
        -EINVAL);
    assert_int_equal(
        pair_try(&p, A,
                 (struct work){WR_ATOMIC_FETCH_AND_ADD, .id = 2, .len = 8, .flags = WR_INLINE}),
        -EINVAL);
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 3, .len = 8});
    pair_settle(&p);
    pair_sent(&p, A, 3, WC_SUCCESS);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_L1),
        cmocka_unit_test(case_L2),
        cmocka_unit_test(case_L4),
        cmocka_unit_test(case_118_engine),
        cmocka_unit_test(case_120_engine),
        cmocka_unit_test(case_15_remote),
        cmocka_unit_test(case_28_remote),
        cmocka_unit_test(case_36_remote_error),
        cmocka_unit_test(case_36_local_error),
        cmocka_unit_test(case_42_hundred_times),
        cmocka_unit_test(case_141),
        cmocka_unit_test(case_141_rtr_answers),
        cmocka_unit_test(case_144),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
