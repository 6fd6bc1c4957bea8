/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_case_large.c: case 63, messages of up to 1 GiB. A few MiB of memory, mapped again and again,
 * stand for the GiB at each end; packets pass without a copy. With VERBENA_LONG in the
 * environment every opcode goes at full length.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

enum {
    PERIOD_BYTES = 4 << 20,
    TAIL_BYTES = 1 << 20, /* beyond the message; stays as it is */
};
#define SPAN_BYTES ((uint64_t)MAX_MESSAGE_BYTES + TAIL_BYTES)

static bool all;

/* SPAN_BYTES of addresses over PERIOD_BYTES of memory; the tail has its own. */
static uint8_t *map_repeated(void)
{
    int fd = memfd_create("case_63", 0);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, PERIOD_BYTES), 0);
    uint8_t *base = mmap(NULL, SPAN_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(base != MAP_FAILED);
    for (uint64_t at = 0; at < MAX_MESSAGE_BYTES; at += PERIOD_BYTES)
        assert_true(mmap(base + at, PERIOD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                         fd, 0) != MAP_FAILED);
    close(fd);
    return base;
}

/* xorshift: no two pages alike. */
static void fill(uint8_t *to, uint64_t seed)
{
    uint64_t x = seed;
    for (size_t i = 0; i < PERIOD_BYTES; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(to + i, &x, 8);
    }
}

static void message(enum wr_opcode op, uint32_t length, uint16_t mtu)
{
    struct pair p;
    uint8_t *memory[2] = {map_repeated(), map_repeated()};
    pair_create(&p, &(struct pair_config){
                        .retry = 7,
                        .mtu = mtu,
                        .memory = {memory[A], memory[B]},
                        .memory_bytes = SPAN_BYTES,
                        .direct = true
    });
    pair_bring(&p, A, QP_STATE_RTS);
    pair_bring(&p, B, QP_STATE_RTS);
    fill(memory[A], 1);
    fill(memory[B], 2);
    if (op == WR_SEND)
        pair_recv(&p, B, (struct work){.id = 9, .len = length});
    pair_post(&p, A, (struct work){op, .id = 1, .len = length});
    pair_settle(&p);
    assert_int_equal(pair_sent(&p, A, 1, WC_SUCCESS).byte_len, length);
    if (op == WR_SEND)
        assert_int_equal(pair_received(&p, B, 9, WC_SUCCESS).byte_len, length);
    assert_memory_equal(memory[A], memory[B], PERIOD_BYTES);
    for (int i = A; i <= B; i++)
        for (int k = 0; k < 4096; k++)
            assert_int_equal(memory[i][MAX_MESSAGE_BYTES + k], 0);
    uint64_t packets = ((uint64_t)length + mtu - 1) / mtu;
    assert_true(p.side[op == WR_RDMA_READ ? B : A].packets == packets);
    pair_quiet(&p);
    pair_destroy(&p);
    munmap(memory[A], SPAN_BYTES);
    munmap(memory[B], SPAN_BYTES);
}

static void case_63_one_gib(void **state)
{
    (void)state;
    message(WR_RDMA_WRITE, MAX_MESSAGE_BYTES, 4096);
    if (!all)
        return;
    message(WR_SEND, MAX_MESSAGE_BYTES, 4096);
    message(WR_RDMA_READ, MAX_MESSAGE_BYTES, 4096);
    message(WR_RDMA_WRITE, MAX_MESSAGE_BYTES, 256);
}

static void case_63_64_mib(void **state)
{
    (void)state;
    message(WR_RDMA_READ, 64 << 20, 4096);
    message(WR_SEND, (64 << 20) - 1, 4096);
    message(WR_RDMA_WRITE, 64 << 20, 256);
}

static void case_63_one_byte_more(void **state)
{
    (void)state;
    static const enum wr_opcode ops[] = {WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE, WR_RDMA_READ};
    struct pair p;
    pair_create(&p, &(struct pair_config){.retry = 7});
    pair_bring(&p, A, QP_STATE_RTS);
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        assert_int_equal(pair_try(&p, A, (struct work){ops[i], .len = MAX_MESSAGE_BYTES + 1}),
                         -EINVAL);
    pair_quiet(&p);
    pair_destroy(&p);
}

int main(void)
{
    all = getenv("VERBENA_LONG") != NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_63_one_gib),
        cmocka_unit_test(case_63_64_mib),
        cmocka_unit_test(case_63_one_byte_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
