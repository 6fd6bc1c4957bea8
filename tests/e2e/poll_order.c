/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll_order.c: the server watches the last byte of a region that the client Writes into, again and
 * again. Once that byte is new, every byte before it must be: programs rely on it, though the
 * specification does not promise it. 1 B to 1 MiB, at aligned and odd addresses. Plain libibverbs.
 *
 * Write number k fills the region with k (modulo 256). Read after the last byte, any other byte
 * must be of the same Write or of a later one. Writes come in batches of fewer than 128, so that
 * later and earlier can be told apart.
 */
#include "rc_pair.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_BYTES = 1 << 20,
    SMALL_BYTES = 16 << 10,
    BATCH = 100, /* Writes up to SMALL_BYTES */
    LARGE_BATCH = 8,
    MAX_OFFSET = 64,
    BUFFER_BYTES = LARGE_BATCH * (MAX_BYTES + MAX_OFFSET),
};
_Static_assert(BUFFER_BYTES > BATCH * SMALL_BYTES, "each Write of a batch has its own source");

static const uint32_t sizes[] = {1,    2,    7,    8,    9,     16,    31,     32,     63,
                                 64,   65,   127,  128,  200,   1000,  1024,   1025,   2047,
                                 4096, 4097, 8192, 9999, 65536, 65537, 262144, 1 << 20};
static const uint32_t offsets[] = {0, 1, 7, 8, 63};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), OFFSETS = sizeof(offsets) / sizeof(offsets[0]) };

static uint32_t batch_of(uint32_t n)
{
    return n <= SMALL_BYTES ? BATCH : LARGE_BATCH;
}

static void look(const volatile uint8_t *b, uint32_t n, uint32_t i, uint8_t last, uint32_t offset)
{
    uint8_t seen = b[i];
    if ((int8_t)(seen - last) < 0)
        rc_fail("%u bytes at offset %u: byte %u was still %u when the last one was %u", n, offset,
                i, seen, last);
}

/* Until the last Write of the batch is there. poll: progress is made by this thread, too. */
static void watch(struct rc_pair *p, uint32_t n, uint32_t offset, uint8_t end, bool poll)
{
    const volatile uint8_t *b = p->buffer + offset;
    double limit = rc_now_seconds() + RC_LIMIT_SECONDS;
    struct ibv_wc wc;
    uint8_t last;
    unsigned spins = 0;
    while ((last = b[n - 1]) != end) {
        /* Copies by overlapping vectors write the first bytes last; others, the middle. */
        look(b, n, 0, last, offset);
        look(b, n, n / 2, last, offset);
        look(b, n, n - 1 - n / 16, last, offset);
        look(b, n, n / 4, last, offset);
        if (poll && ibv_poll_cq(p->cq, 1, &wc) != 0)
            rc_fail("a completion at the passive side");
        if (++spins % 4096 == 0 && rc_now_seconds() > limit)
            rc_fail("%u bytes at offset %u never came", n, offset);
    }
    atomic_thread_fence(memory_order_acquire);
    for (uint32_t i = 0; i < n; i++)
        if (b[i] != end)
            rc_fail("%u bytes at offset %u: byte %u is %u, not %u", n, offset, i, b[i], end);
}

static void write_batch(struct rc_pair *p, uint32_t n, uint32_t offset, uint8_t before)
{
    uint32_t batch = batch_of(n);
    for (uint32_t k = 0; k < batch; k++)
        memset(p->buffer + (uint64_t)k * n, (uint8_t)(before + 1 + k), n);
    rc_barrier(p);
    for (uint32_t k = 0; k < batch; k++)
        rc_post(p, IBV_WR_RDMA_WRITE, k, (uint64_t)k * n, offset, n,
                k == batch - 1 ? IBV_SEND_SIGNALED : 0);
    rc_expect(p, batch - 1);
}

static uint64_t run_place(struct rc_pair *p, uint32_t n, uint32_t offset)
{
    uint8_t value = 0;
    unsigned batches = (n <= SMALL_BYTES ? 4 : 2) * p->o.rounds;
    bool server = p->o.host == NULL;
    memset(p->buffer, 0, n + offset);
    for (unsigned i = 0; i < batches; i++) {
        uint8_t end = (uint8_t)(value + batch_of(n));
        if (server) {
            rc_barrier(p);
            watch(p, n, offset, end, i % 4 == 3);
        } else {
            write_batch(p, n, offset, value);
        }
        rc_barrier(p); /* the client is not more than a batch ahead */
        value = end;
    }
    return (uint64_t)batches * batch_of(n);
}

int main(int argc, char **argv)
{
    struct rc_options o = {.rounds = 1, .bytes = BUFFER_BYTES};
    struct rc_pair p;
    uint64_t writes = 0;
    rc_options(&o, argc, argv);
    rc_open(&p, &o);
    rc_new_qp(&p);
    for (unsigned s = 0; s < SIZES; s++)
        for (unsigned f = 0; f < OFFSETS; f++)
            writes += run_place(&p, sizes[s], offsets[f]);
    rc_barrier(&p);
    rc_close(&p);
    printf("poll_order: %llu Writes, none seen out of order\n", (unsigned long long)writes);
    return 0;
}
