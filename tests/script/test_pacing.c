/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pacing.c: a rate limit between two engines: answers come in time however slow the requests
 * are, what is lost goes again within the limit, and the other side is not slowed down.
 */
#include <string.h>

#include "pair.h"

enum { MTU = 1024, WRITE_HEADERS = 12 + 16 + 4 };

static struct pair p;
static uint64_t link_bytes[2];
static unsigned lose_every; /* of A's packets; 0: none */
static unsigned link_packets;

static struct fate watch(struct pair *pair, int from, struct rx_packet *packet)
{
    struct fate fate = {0};

    (void)pair;
    link_bytes[from] += packet->payload_bytes + 16; /* BTH, ICRC: the least */
    if (from == A && lose_every != 0 && ++link_packets % lose_every == 0)
        fate.drop = true;
    return fate;
}

static void begin(const struct pair_config *config, uint32_t kbps, uint32_t burst)
{
    struct nic_qp_attr a = {.rate_limit_kbps = kbps, .max_burst_bytes = burst};

    link_bytes[A] = link_bytes[B] = 0;
    link_packets = 0;
    lose_every = 0;
    pair_create(&p, config);
    p.hook = watch;
    pair_bring(&p, A, QP_STATE_RTS);
    pair_bring(&p, B, QP_STATE_RTS);
    assert_int_equal(qp_modify(p.side[A].qp, &a, QP_ATTR_RATE_LIMIT), 0);
}

/* Each packet takes 130 ms, and the peer is to be heard within 16 us: it is asked each time. */
static void slow__no_timeout_while_packets_wait(void **state)
{
    (void)state;
    const struct pair_config config = {.mtu = MTU, .timeout = 2, .retry = 0};
    begin(&config, 64, 0);
    pair_post(&p, A, (struct work){.opcode = WR_RDMA_WRITE, .id = 1, .len = 20 * MTU});
    pair_post(&p, A, (struct work){.opcode = WR_RDMA_READ, .id = 2, .len = 20 * MTU});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_SUCCESS);
    assert_int_equal(pair_count(&p, A, COUNTER_local_ack_timeout_err), 0);
    assert_int_equal(pair_count(&p, A, COUNTER_retransmitted_packets), 0);
    pair_quiet(&p);
    pair_destroy(&p);
}

/* All data arrives, and what goes again is paced, too. */
static void loss__goes_again_within_the_limit(void **state)
{
    (void)state;
    enum { KBPS = 80000, BURST = 3000, BYTES = 60 * MTU };
    const struct pair_config config = {.mtu = MTU, .timeout = 8, .retry = 7};
    begin(&config, KBPS, BURST);
    lose_every = 7;
    uint64_t start = p.now;
    memset(p.side[A].memory, 0x5a, BYTES);
    pair_post(&p, A, (struct work){.opcode = WR_RDMA_WRITE, .id = 1, .len = BYTES});
    while (p.side[A].qp->sq.head == 0) {
        pair_run(&p, 100 * US);
        assert_true(link_bytes[A] <= (p.now - start) * KBPS / 8000000 + BURST);
        assert_true(p.now < start + 1000 * MS);
    }
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_memory_equal(p.side[A].memory, p.side[B].memory, BYTES);
    assert_true(pair_count(&p, A, COUNTER_retransmitted_packets) > 0);
    pair_destroy(&p);
}

/* Replies of the same QP are the peer's traffic: what it asked for comes at once. */
static void replies__are_not_held_back(void **state)
{
    (void)state;
    const struct pair_config config = {.mtu = MTU, .timeout = 14, .retry = 7};
    begin(&config, 8, 1); /* a second for a packet */
    pair_post(&p, A, (struct work){.opcode = WR_RDMA_WRITE, .id = 1, .len = 3 * MTU});
    pair_run(&p, 1 * MS);
    pair_post(&p, B, (struct work){.opcode = WR_RDMA_READ, .id = 2, .len = 40 * MTU});
    pair_post(&p, B, (struct work){.opcode = WR_RDMA_WRITE, .id = 3, .len = 40 * MTU});
    pair_run(&p, 1 * MS);
    pair_sent(&p, B, 2, WC_SUCCESS);
    pair_sent(&p, B, 3, WC_SUCCESS);
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_quiet(&p);
    pair_destroy(&p);
}

/* Keys that go while their packets wait fail the request, as without a limit. */
static void slow__key_that_has_gone(void **state)
{
    (void)state;
    const struct pair_config config = {.mtu = MTU, .timeout = 14, .retry = 7};
    begin(&config, 8, 1);
    pair_post(&p, A, (struct work){.opcode = WR_RDMA_WRITE, .id = 1, .len = 3 * MTU});
    pair_run(&p, 1 * MS);
    mem_mr_revoke(p.side[A].mr);
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_LOC_PROT_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    mem_mr_free(p.side[A].mr);
    p.side[A].mr = NULL;
    pair_destroy(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow__no_timeout_while_packets_wait),
        cmocka_unit_test(loss__goes_again_within_the_limit),
        cmocka_unit_test(replies__are_not_held_back),
        cmocka_unit_test(slow__key_that_has_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
