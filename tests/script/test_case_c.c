/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_case_c.c: cases from the field about the RC data path, told from both ends. Each asserts
 * what is right by the specification; the comment says what went wrong elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define BOTH_RTS(p)                                                                                \
    do {                                                                                           \
        pair_bring(p, A, QP_STATE_RTS);                                                            \
        pair_bring(p, B, QP_STATE_RTS);                                                            \
    } while (0)

/* Test body between creation and destruction, both ends in RTS. */
static void begin(struct pair *p, struct pair_config c)
{
    pair_create(p, &c);
    BOTH_RTS(p);
}

static void end(struct pair *p)
{
    pair_quiet(p);
    pair_destroy(p);
}

static uint64_t *cell(struct pair *p, int side, uint64_t at)
{
    return (uint64_t *)(void *)(p->side[side].memory + at);
}

/* An unaligned atomic was executed. */
static void case_43(void **state)
{
    (void)state;
    for (int cas = 0; cas < 2; cas++) {
        struct pair p;
        begin(&p, (struct pair_config){.retry = 7});
        enum wr_opcode op = cas ? WR_ATOMIC_CMP_AND_SWP : WR_ATOMIC_FETCH_AND_ADD;
        pair_post(&p, A, (struct work){op, .id = 1, .len = 8, .va = 4, .a = 7});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_REM_INV_REQ_ERR);
        pair_event(&p, B, EVENT_QP_REQ_ERR);
        pair_state(&p, A, QP_STATE_ERR);
        pair_state(&p, B, QP_STATE_ERR);
        assert_int_equal(*cell(&p, B, 0) | *cell(&p, B, 8) | *cell(&p, A, 0), 0);
        end(&p);
    }
}

/* READ and WRITE of nothing failed for their key. */
static void case_45(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 1, .no_rkey = true, .va = 1ull << 40});
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 2, .no_rkey = true});
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 3, .rkey = 0xdeadbeef});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_SUCCESS);
    pair_sent(&p, A, 3, WC_SUCCESS);
    end(&p);
}

/* READ of nothing, without SGEs: one request, one response. */
static void case_46(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 1});
    pair_settle(&p);
    assert_int_equal(pair_sent(&p, A, 1, WC_SUCCESS).byte_len, 0);
    assert_int_equal(p.side[A].packets, 1);
    assert_int_equal(p.side[B].packets, 1);
    end(&p);
}

static void case_47(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    memset(p.side[A].memory, 0x55, 64);
    pair_recv(&p, B, (struct work){.id = 9, .len = 32});
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 64});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_REM_INV_REQ_ERR);
    pair_received(&p, B, 9, WC_LOC_LEN_ERR);
    pair_event(&p, B, EVENT_QP_REQ_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    pair_state(&p, B, QP_STATE_ERR);
    for (int i = 32; i < 128; i++)
        assert_int_equal(p.side[B].memory[i], 0);
    end(&p);
}

static void case_48(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    pair_recv(&p, B, (struct work){.id = 9, .len = 64, .lkey = 0x1234});
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 64});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_REM_OP_ERR);
    pair_received(&p, B, 9, WC_LOC_PROT_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    pair_state(&p, B, QP_STATE_ERR);
    end(&p);
}

/* A violated rkey was told to one end only. */
static void case_50(void **state)
{
    (void)state;
    static const enum wr_opcode ops[] = {WR_RDMA_READ, WR_RDMA_WRITE, WR_ATOMIC_FETCH_AND_ADD};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct pair p;
        begin(&p, (struct pair_config){.retry = 7});
        pair_post(&p, A, (struct work){ops[i], .id = 1, .len = 8, .rkey = 0x1234});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_REM_ACCESS_ERR);
        pair_event(&p, B, EVENT_QP_ACCESS_ERR);
        pair_state(&p, B, QP_STATE_ERR);
        end(&p);
    }
}

/* The RNR timer's codes: 0 is the longest. For ever means for ever. */
static void case_51(void **state)
{
    (void)state;
    static const struct {
        uint8_t code;
        uint64_t ns;
    } rows[] = {
        {0,  655360 * US},
        {1,  10 * US    },
        {12, 640 * US   },
        {13, 960 * US   },
        {31, 491520 * US},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pair p;
        begin(&p, (struct pair_config){.retry = 0, .rnr_retry = 7, .min_rnr = rows[i].code});
        pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 4});
        pair_run(&p, 2000 * MS);
        uint64_t gap = rows[i].ns + 2 * p.delay_ns;
        uint64_t naks = pair_count(&p, B, COUNTER_rnr_nak_sent);
        assert_int_equal(naks, (2000 * MS - p.delay_ns) / gap + 1);
        pair_recv(&p, B, (struct work){.id = 9, .len = 4});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_SUCCESS);
        pair_received(&p, B, 9, WC_SUCCESS);
        end(&p);
    }
}

static void case_52_no_retry(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7, .rnr_retry = 0, .min_rnr = 12});
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 4});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_RNR_RETRY_EXC_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    pair_state(&p, B, QP_STATE_RTS);
    assert_int_equal(pair_count(&p, B, COUNTER_rnr_nak_sent), 1);
    end(&p);
}

static void case_52_posted_before_rtr(void **state)
{
    (void)state;
    struct pair p;
    pair_create(&p, &(struct pair_config){.retry = 7, .rnr_retry = 0, .min_rnr = 12});
    pair_bring(&p, B, QP_STATE_INIT);
    pair_recv(&p, B, (struct work){.id = 9, .len = 4});
    BOTH_RTS(&p);
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 4});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_received(&p, B, 9, WC_SUCCESS);
    assert_int_equal(pair_count(&p, B, COUNTER_rnr_nak_sent), 0);
    end(&p);
}

static struct fate drop_all(struct pair *p, int from, struct rx_packet *packet)
{
    (void)p, (void)from, (void)packet;
    return (struct fate){.drop = true};
}

/* A dead peer was noticed late or never. */
static void case_53(void **state)
{
    (void)state;
    for (uint8_t retry = 0; retry <= 7; retry++) {
        struct pair p;
        begin(&p, (struct pair_config){.timeout = 10, .retry = retry});
        p.hook = drop_all;
        uint64_t start = p.now, tries = retry + 1u, t = 4096ull << 10;
        pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 4});
        pair_run(&p, tries * t - 1);
        pair_state(&p, A, QP_STATE_RTS);
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_RETRY_EXC_ERR);
        assert_true(p.now - start >= tries * t && p.now - start <= 4 * tries * t);
        assert_int_equal(p.side[A].packets, tries);
        end(&p);
    }
}

static void case_53_never(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 0, .retry = 1});
    p.hook = drop_all;
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 4});
    pair_run(&p, 3000000 * MS);
    pair_state(&p, A, QP_STATE_RTS);
    assert_int_equal(p.side[A].packets, 1);
    end(&p);
}

/* An ACK for a PSN that was never sent. */
static void case_57(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    p.hook = drop_all;
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 4});
    pair_run(&p, MS);
    for (uint32_t ahead = 1; ahead < 0x7fffff; ahead *= 3)
        pair_inject(&p, A, pair_packet(&p, A, OP_ACKNOWLEDGE, 1000 + ahead));
    pair_run(&p, MS);
    pair_quiet(&p);
    pair_state(&p, A, QP_STATE_RTS);
    pair_inject(&p, A, pair_packet(&p, A, OP_ACKNOWLEDGE, 1000));
    pair_sent(&p, A, 1, WC_SUCCESS);
    end(&p);
}

static struct fate only_becomes_middle(struct pair *p, int from, struct rx_packet *packet)
{
    if (from == A && packet->h.bth.opcode == OP_SEND_ONLY)
        packet->h.bth.opcode = OP_SEND_MIDDLE;
    if (from == B)
        *(uint8_t *)p->hook_data = packet->h.aeth.syndrome;
    return (struct fate){0};
}

static void case_58(void **state)
{
    (void)state;
    struct pair p;
    uint8_t syndrome = 0;
    begin(&p, (struct pair_config){.retry = 7});
    p.hook = only_becomes_middle;
    p.hook_data = &syndrome;
    pair_recv(&p, B, (struct work){.id = 9, .len = 2048});
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 1024});
    pair_settle(&p);
    assert_int_equal(syndrome, 0x61);
    pair_sent(&p, A, 1, WC_REM_INV_REQ_ERR);
    pair_received(&p, B, 9, WC_WR_FLUSH_ERR);
    pair_event(&p, B, EVENT_QP_REQ_ERR);
    pair_state(&p, B, QP_STATE_ERR);
    end(&p);
}

static struct fate lossy(struct pair *p, int from, struct rx_packet *packet)
{
    (void)from, (void)packet;
    struct fate fate = {.drop = rng_below(&p->rng, 20) == 0, .twice = rng_below(&p->rng, 20) == 0};
    if (rng_below(&p->rng, 10) == 0)
        fate.extra_ns = rng_below(&p->rng, 20) * US;
    return fate;
}

/* A WRITE overtook a READ that had to be repeated: FENCE keeps them in order. */
static void case_62(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 5, .retry = 7});
    p.hook = lossy;
    for (uint64_t round = 1; round <= 1000; round++) {
        pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 1, .at = 8, .len = 8, .va = 64});
        *cell(&p, A, 0) = round;
        pair_post(&p, A,
                  (struct work){WR_RDMA_WRITE, .id = 2, .len = 8, .va = 64, .flags = WR_FENCE});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_SUCCESS);
        pair_sent(&p, A, 2, WC_SUCCESS);
        assert_int_equal(*cell(&p, A, 8), round - 1);
        assert_int_equal(*cell(&p, B, 64), round);
    }
    assert_true(pair_count(&p, B, COUNTER_duplicate_request) > 20);
    end(&p);
}

/* Immediate data: one receive, network order, as many bytes as were written. */
static void case_64(void **state)
{
    (void)state;
    static const uint32_t length[] = {0, 1, 1 << 20};
    for (int srq = 0; srq < 2; srq++) {
        struct pair p;
        begin(&p, (struct pair_config){.retry = 7, .srq = srq, .memory_bytes = 2 << 20});
        memset(p.side[A].memory, 0x5a, 1 << 20);
        for (size_t i = 0; i < 3; i++) {
            pair_recv(&p, B, (struct work){.id = 9});
            pair_recv(&p, B, (struct work){.id = 10, .at = 1 << 20, .len = 64});
            pair_post(&p, A,
                      (struct work){WR_RDMA_WRITE_WITH_IMM, .id = 1, .len = length[i], .va = 5,
                                    .imm = 0x80000001});
            pair_settle(&p);
            pair_sent(&p, A, 1, WC_SUCCESS);
            struct nic_wc wc = pair_received(&p, B, 9, WC_SUCCESS);
            assert_int_equal(wc.opcode, WC_RECV_RDMA_WITH_IMM);
            assert_int_equal(wc.byte_len, length[i]);
            assert_int_equal(wc.flags, WC_WITH_IMM);
            assert_int_equal(wc.imm_or_inv, 0x80000001);
            assert_memory_equal(p.side[A].memory, p.side[B].memory + 5, length[i]);
            assert_int_equal(p.side[B].memory[5 + length[i]], 0);
            /* the other receive is still there */
            pair_post(&p, A, (struct work){WR_SEND, .id = 2});
            pair_settle(&p);
            pair_sent(&p, A, 2, WC_SUCCESS);
            pair_received(&p, B, 10, WC_SUCCESS);
        }
        end(&p);
    }
}

/* IBA o9-20: all earlier data is there when the completion is. */
static void case_65(void **state)
{
    (void)state;
    enum { DATA_BYTES = 20000 };
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 5, .retry = 7, .rnr_retry = 7, .min_rnr = 1});
    p.hook = lossy;
    for (int round = 1; round <= 100; round++) {
        bool imm = round % 2 == 0;
        memset(p.side[A].memory, round, DATA_BYTES);
        pair_recv(&p, B, (struct work){.id = 9});
        pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = DATA_BYTES, .va = 64});
        pair_post(&p, A, (struct work){imm ? WR_RDMA_WRITE_WITH_IMM : WR_SEND, .id = 2});
        while (!cq_maybe_ready(p.side[B].rcq))
            pair_run(&p, US / 2);
        assert_memory_equal(p.side[A].memory, p.side[B].memory + 64, DATA_BYTES);
        pair_received(&p, B, 9, WC_SUCCESS);
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_SUCCESS);
        pair_sent(&p, A, 2, WC_SUCCESS);
    }
    end(&p);
}

static const struct right {
    enum wr_opcode op;
    unsigned access;
} rights[] = {
    {WR_RDMA_WRITE,           ACCESS_REMOTE_WRITE },
    {WR_RDMA_WRITE_WITH_IMM,  ACCESS_REMOTE_WRITE },
    {WR_RDMA_READ,            ACCESS_REMOTE_READ  },
    {WR_ATOMIC_FETCH_AND_ADD, ACCESS_REMOTE_ATOMIC},
    {WR_ATOMIC_CMP_AND_SWP,   ACCESS_REMOTE_ATOMIC},
};
enum { RIGHTS = sizeof(rights) / sizeof(rights[0]) };

static const unsigned every = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;

static void memory_untouched(struct pair *p)
{
    for (int i = A; i <= B; i++)
        for (int k = 0; k < 128; k++)
            assert_int_equal(p->side[i].memory[k], 0x11 * (i + 1));
}

/* A right that the region lacks: access error; that the QP lacks: invalid request. */
static void case_66_region(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIGHTS; i++) {
        struct pair p;
        struct mr *mr;
        begin(&p, (struct pair_config){.retry = 7});
        struct side *b = &p.side[B];
        memset(p.side[A].memory, 0x11, 128);
        memset(b->memory, 0x22, 128);
        assert_int_equal(mem_reg(b->pd, b->memory, 64, (uintptr_t)b->memory,
                                 ACCESS_LOCAL_WRITE | (every & ~rights[i].access), &mr),
                         0);
        pair_recv(&p, B, (struct work){.id = 9});
        pair_post(&p, A, (struct work){rights[i].op, .id = 1, .len = 8, .rkey = mr->key});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_REM_ACCESS_ERR);
        pair_event(&p, B, EVENT_QP_ACCESS_ERR);
        pair_received(&p, B, 9, WC_WR_FLUSH_ERR);
        memory_untouched(&p);
        mem_mr_revoke(mr);
        mem_mr_free(mr);
        end(&p);
    }
}

static void case_66_qp(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIGHTS; i++) {
        struct pair p;
        begin(&p, (struct pair_config){.retry = 7, .access = every & ~rights[i].access});
        memset(p.side[A].memory, 0x11, 128);
        memset(p.side[B].memory, 0x22, 128);
        pair_recv(&p, B, (struct work){.id = 9});
        pair_post(&p, A, (struct work){rights[i].op, .id = 1, .len = 8});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_REM_INV_REQ_ERR);
        pair_event(&p, B, EVENT_QP_REQ_ERR);
        pair_received(&p, B, 9, WC_WR_FLUSH_ERR);
        memory_untouched(&p);
        end(&p);
    }
}

static void case_66_local_write(void **state)
{
    (void)state;
    struct pair p;
    struct mr *mr;
    begin(&p, (struct pair_config){.retry = 7});
    struct side *a = &p.side[A];
    memset(a->memory, 0x11, 128);
    memset(p.side[B].memory, 0x22, 128);
    assert_int_equal(mem_reg(a->pd, a->memory, 64, (uintptr_t)a->memory, 0, &mr), 0);
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 1, .len = 8, .lkey = mr->key});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_LOC_PROT_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    pair_state(&p, B, QP_STATE_RTS);
    memory_untouched(&p);
    mem_mr_revoke(mr);
    mem_mr_free(mr);
    end(&p);
}

/* One operation of the soak; both ends alike. */
static void soak_post(struct pair *p, int side, uint64_t id)
{
    static const enum wr_opcode ops[] = {WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ,
                                         WR_ATOMIC_FETCH_AND_ADD, WR_RDMA_WRITE_WITH_IMM};
    enum wr_opcode op = ops[rng_below(&p->rng, 5)];
    uint32_t len = op == WR_ATOMIC_FETCH_AND_ADD ? 8 : rng_below(&p->rng, 8000);
    if (op == WR_SEND || op == WR_RDMA_WRITE_WITH_IMM)
        pair_recv(p, !side, (struct work){.id = id, .at = 48000, .len = 8000});
    pair_post(p, side,
              (struct work){op, .id = id, .len = len, .at = 8 + len % 8, .a = 1,
                            .va = op == WR_ATOMIC_FETCH_AND_ADD ? 0 : 16384});
}

/* Loss or a full queue locked a QP up for good. */
static void case_68(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 6, .retry = 7, .rnr_retry = 7, .min_rnr = 1});
    p.hook = lossy;
    uint64_t posted[2] = {0}, done[2] = {0};
    struct nic_wc wc;
    for (int round = 0; round < 3000; round++) {
        for (int i = A; i <= B; i++) {
            if (posted[i] - done[i] < 24)
                soak_post(&p, i, posted[i]++);
            for (; cq_poll(p.side[i].scq, 1, &wc) == 1; done[i]++) {
                assert_int_equal(wc.status, WC_SUCCESS);
                assert_int_equal(wc.wr_id, done[i]);
            }
            while (cq_poll(p.side[i].rcq, 1, &wc) == 1)
                assert_int_equal(wc.status, WC_SUCCESS);
        }
        pair_run(&p, 10 * US);
    }
    pair_settle(&p);
    for (int i = A; i <= B; i++) {
        for (; cq_poll(p.side[i].scq, 1, &wc) == 1; done[i]++)
            assert_int_equal(wc.status, WC_SUCCESS);
        while (cq_poll(p.side[i].rcq, 1, &wc) == 1)
            assert_int_equal(wc.status, WC_SUCCESS);
        assert_int_equal(done[i], posted[i]);
        assert_true(posted[i] > 500);
    }
    end(&p);
}

/* Stalled, a QP does nothing between its retries; idle, nothing at all. */
static void case_68_idle(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 14, .retry = 7});
    p.hook = drop_all;
    for (uint64_t id = 0; id < 20; id++)
        pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = id, .len = 8000});
    pair_run(&p, 5 * (4096ull << 14));
    assert_true(p.side[A].wakes <= 6);
    assert_false(nic_has_output(p.side[A].nic));
    p.hook = NULL;
    pair_settle(&p);
    for (uint64_t id = 0; id < 20; id++)
        pair_sent(&p, A, id, WC_SUCCESS);
    uint64_t wakes = p.side[A].wakes + p.side[B].wakes;
    pair_run(&p, 60000 * MS);
    assert_int_equal(p.side[A].wakes + p.side[B].wakes, wakes);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_43),
        cmocka_unit_test(case_45),
        cmocka_unit_test(case_46),
        cmocka_unit_test(case_47),
        cmocka_unit_test(case_48),
        cmocka_unit_test(case_50),
        cmocka_unit_test(case_51),
        cmocka_unit_test(case_52_no_retry),
        cmocka_unit_test(case_52_posted_before_rtr),
        cmocka_unit_test(case_53),
        cmocka_unit_test(case_53_never),
        cmocka_unit_test(case_57),
        cmocka_unit_test(case_58),
        cmocka_unit_test(case_62),
        cmocka_unit_test(case_64),
        cmocka_unit_test(case_65),
        cmocka_unit_test(case_66_region),
        cmocka_unit_test(case_66_qp),
        cmocka_unit_test(case_66_local_write),
        cmocka_unit_test(case_68),
        cmocka_unit_test(case_68_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
