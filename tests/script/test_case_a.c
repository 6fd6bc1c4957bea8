/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_case_a.c: cases from the field about posting and keys (8, 9, 15, 27), the path MTU (32) and
 * shared receive queues (39), as far as only two ends together show them.
 */
#include <string.h>

#include "../nic/window.h"
#include "pair.h"

enum { INLINE_BYTES = 64 };

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

static void fill(uint8_t *to, uint32_t n, uint8_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = (uint8_t)(seed + i * 7 + i / 256);
}

static void drop_mr(struct mr *mr)
{
    mem_mr_revoke(mr);
    mem_mr_free(mr);
}

static void drop_mw(struct mw *mw)
{
    mw_revoke(mw);
    mw_free(mw);
}

/* Inline data of every length is what arrives, and not a byte more. */
static void case_8_every_length(void **state)
{
    (void)state;
    struct pair p;
    uint8_t want[INLINE_BYTES];
    begin(&p, (struct pair_config){.retry = 7});
    uint8_t *to = p.side[B].memory;
    for (uint32_t n = 0; n <= INLINE_BYTES; n++) {
        fill(p.side[A].memory, INLINE_BYTES, (uint8_t)n);
        fill(want, n, (uint8_t)n);
        memset(to, 0xee, 1024);
        pair_recv(&p, B, (struct work){.id = 9, .at = 512, .len = 128});
        pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = n, .flags = WR_INLINE});
        pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 2, .len = n, .flags = WR_INLINE});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_SUCCESS);
        pair_sent(&p, A, 2, WC_SUCCESS);
        assert_int_equal(pair_received(&p, B, 9, WC_SUCCESS).byte_len, n);
        for (uint32_t at = 0; at <= 512; at += 512) {
            assert_memory_equal(to + at, want, n);
            assert_int_equal(to[at + n], 0xee);
        }
    }
    end(&p);
}

/* The buffer is scribbled over before a packet is out, lost packets are sent again: what was there
 * at the post arrives. Its lkey is nobody's. */
static struct fate lose_the_first(struct pair *p, int from, struct rx_packet *packet)
{
    (void)packet;
    return (struct fate){.drop = from == A && p->side[A].packets == 1};
}

static void case_9_scribbled_over(void **state)
{
    (void)state;
    struct pair p;
    uint8_t want[INLINE_BYTES];
    begin(&p, (struct pair_config){.timeout = 8, .retry = 7});
    p.hook = lose_the_first;
    fill(p.side[A].memory, INLINE_BYTES, 3);
    memcpy(want, p.side[A].memory, INLINE_BYTES);
    pair_post(&p, A,
              (struct work){WR_RDMA_WRITE, .id = 1, .len = INLINE_BYTES, .lkey = 0xdeadbeef,
                            .flags = WR_INLINE});
    memset(p.side[A].memory, 0xff, INLINE_BYTES);
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_int_equal(p.side[A].packets, 2);
    assert_memory_equal(p.side[B].memory, want, INLINE_BYTES);
    end(&p);
}

/* Local use of a region of another PD: of a send, of what a READ brings, of a receive. */
static void case_15_local(void **state)
{
    (void)state;
    static const enum wr_opcode ops[] = {WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ,
                                         WR_ATOMIC_FETCH_AND_ADD};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct pair p;
        struct mr *mr;
        begin(&p, (struct pair_config){.retry = 7});
        struct side *a = &p.side[A];
        assert_int_equal(
            mem_reg(a->other_pd, a->memory, 64, (uintptr_t)a->memory, ACCESS_LOCAL_WRITE, &mr), 0);
        pair_post(&p, A, (struct work){ops[i], .id = 1, .len = 8, .lkey = mr->key});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_LOC_PROT_ERR);
        pair_state(&p, A, QP_STATE_ERR);
        pair_state(&p, B, QP_STATE_RTS);
        assert_int_equal(a->packets, 0);
        drop_mr(mr);
        end(&p);
    }
}

static void case_15_receive(void **state)
{
    (void)state;
    for (int srq = 0; srq < 2; srq++) {
        struct pair p;
        struct mr *mr;
        begin(&p, (struct pair_config){.retry = 7, .srq = srq});
        struct side *b = &p.side[B];
        assert_int_equal(
            mem_reg(b->other_pd, b->memory, 64, (uintptr_t)b->memory, ACCESS_LOCAL_WRITE, &mr), 0);
        p.side[A].memory[0] = 1;
        pair_recv(&p, B, (struct work){.id = 9, .len = 64, .lkey = mr->key});
        pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 64});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_REM_OP_ERR);
        pair_received(&p, B, 9, WC_LOC_PROT_ERR);
        assert_int_equal(b->memory[0], 0);
        if (srq)
            pair_event(&p, B, EVENT_QP_LAST_WQE_REACHED);
        drop_mr(mr);
        end(&p);
    }
}

/* Write, invalidate, write: by the owner, and by the peer's SEND, whose receive says so. */
static void case_27_write_invalidate_write(void **state)
{
    (void)state;
    for (int by_peer = 0; by_peer < 2; by_peer++) {
        struct pair p;
        struct mr *mr;
        struct mw *mw;
        begin(&p, (struct pair_config){.retry = 7});
        struct side *b = &p.side[B];
        assert_int_equal(mem_reg(b->pd, b->memory, 64, (uintptr_t)b->memory,
                                 ACCESS_LOCAL_WRITE | ACCESS_MW_BIND, &mr),
                         0);
        assert_int_equal(mw_create(b->pd, MW_TYPE_2, &mw), 0);
        assert_true(window_bind(b->qp, mw, mr, (uintptr_t)b->memory, 64, ACCESS_REMOTE_WRITE));
        const uint32_t key = mw_key(mw);
        memset(p.side[A].memory, 0x77, 8);
        pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 4, .rkey = key});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_SUCCESS);
        pair_recv(&p, B, (struct work){.id = 9, .at = 1024, .len = 8});
        if (by_peer)
            pair_post(&p, A, (struct work){WR_SEND_WITH_INV, .id = 2, .imm = key});
        else
            pair_post(&p, B, (struct work){WR_LOCAL_INV, .id = 2, .imm = key});
        pair_settle(&p);
        pair_sent(&p, by_peer ? A : B, 2, WC_SUCCESS);
        if (by_peer) {
            struct nic_wc wc = pair_received(&p, B, 9, WC_SUCCESS);
            assert_int_equal(wc.flags, WC_WITH_INV);
            assert_int_equal(wc.imm_or_inv, key);
        }
        pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 3, .len = 8, .rkey = key});
        pair_settle(&p);
        pair_sent(&p, A, 3, WC_REM_ACCESS_ERR);
        pair_event(&p, B, EVENT_QP_ACCESS_ERR);
        if (!by_peer)
            pair_received(&p, B, 9, WC_WR_FLUSH_ERR);
        for (int i = 0; i < 64; i++)
            assert_int_equal(b->memory[i], i < 4 ? 0x77 : 0);
        drop_mw(mw);
        drop_mr(mr);
        end(&p);
    }
}

/* With equal MTUs at both ends lengths around it, and around its multiples, arrive. */
static void case_32_lengths_around_the_mtu(void **state)
{
    (void)state;
    for (uint16_t mtu = 256; mtu <= 4096; mtu = (uint16_t)(mtu * 2)) {
        struct pair p;
        begin(&p, (struct pair_config){.retry = 0, .mtu = mtu});
        for (uint32_t packets = 1; packets <= 3; packets++) {
            for (uint32_t n = packets * mtu - 1; n <= packets * mtu + 1; n++) {
                uint64_t before = p.side[A].packets;
                fill(p.side[A].memory, n, (uint8_t)n);
                pair_recv(&p, B, (struct work){.id = 9, .len = n});
                pair_post(&p, A, (struct work){WR_SEND, .id = n, .len = n});
                pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 2, .at = 32768, .len = n});
                pair_settle(&p);
                pair_sent(&p, A, n, WC_SUCCESS);
                pair_sent(&p, A, 2, WC_SUCCESS);
                assert_int_equal(pair_received(&p, B, 9, WC_SUCCESS).byte_len, n);
                assert_memory_equal(p.side[A].memory, p.side[B].memory, n);
                assert_memory_equal(p.side[A].memory, p.side[A].memory + 32768, n);
                assert_int_equal(p.side[A].packets - before, (n + mtu - 1) / mtu + 1);
            }
        }
        end(&p);
    }
}

static struct fate lose_the_last(struct pair *p, int from, struct rx_packet *packet)
{
    (void)p;
    return (struct fate){.drop = from == A && packet->h.bth.opcode == OP_SEND_LAST};
}

/* A QP that fails in the midst of a message: its receive comes back flushed, then the event, once,
 * and no packet that comes later takes another one. */
static void case_39_in_a_message(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 10, .retry = 3, .srq = true});
    p.hook = lose_the_last;
    for (uint64_t id = 7; id <= 9; id++)
        pair_recv(&p, B, (struct work){.id = id, .len = 4096});
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 3000});
    pair_run(&p, 1 * MS);
    pair_quiet(&p);
    assert_int_equal(pair_modify(&p, B, QP_STATE_ERR), 0);
    pair_received(&p, B, 7, WC_WR_FLUSH_ERR);
    pair_event(&p, B, EVENT_QP_LAST_WQE_REACHED);
    p.hook = NULL;
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_RETRY_EXC_ERR);
    assert_int_equal(pair_modify(&p, B, QP_STATE_ERR), 0);
    pair_quiet(&p);
    assert_int_equal(p.side[B].srq->rq.tail - p.side[B].srq->rq.head, 2);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_8_every_length),
        cmocka_unit_test(case_9_scribbled_over),
        cmocka_unit_test(case_15_local),
        cmocka_unit_test(case_15_receive),
        cmocka_unit_test(case_27_write_invalidate_write),
        cmocka_unit_test(case_32_lengths_around_the_mtu),
        cmocka_unit_test(case_39_in_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
