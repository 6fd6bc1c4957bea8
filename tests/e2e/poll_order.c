/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll_order.c: the server watches the last byte of a region that the client Writes into. Once that
 * byte is new, every byte before it must be: programs rely on it, though the specification does not
 * promise it. 1 B to 1 MiB, at aligned and odd addresses. Plain libibverbs.
 */
#include "rc_pair.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20, ROOM = 256 };

static const uint32_t sizes[] = {1,    2,    7,    8,    9,     16,    31,     32,     63,
                                 64,   65,   127,  128,  200,   1000,  1024,   1025,   2047,
                                 4096, 4097, 8192, 9999, 65536, 65537, 262144, 1 << 20};
static const uint32_t offsets[] = {0, 1, 7, 8, 63};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), OFFSETS = sizeof(offsets) / sizeof(offsets[0]) };

/* Looks at the bytes from the last to the first: those written last are looked at first. */
static void all_new(const volatile uint8_t *b, uint32_t n, uint8_t new, uint32_t offset)
{
    for (uint32_t i = n; i-- > 0;)
        if (b[i] != new)
            rc_fail("%u bytes at offset %u: byte %u was old when the last one was new", n, offset,
                    i);
}

/* Calls to poll_cq on every other round: progress is then made by this thread, too. */
static void watch(struct rc_pair *p, uint32_t n, uint32_t offset, uint8_t new, bool poll)
{
    const volatile uint8_t *b = p->buffer + offset;
    double limit = rc_now_seconds() + RC_LIMIT_SECONDS;
    struct ibv_wc wc;
    for (unsigned spins = 0; b[n - 1] != new; spins++) {
        if (poll && ibv_poll_cq(p->cq, 1, &wc) != 0)
            rc_fail("a completion at the passive side");
        if (spins % 4096 == 0 && rc_now_seconds() > limit)
            rc_fail("%u bytes at offset %u never came", n, offset);
    }
    atomic_thread_fence(memory_order_acquire);
    all_new(b, n, new, offset);
}

/* Many of the small ones, where a byte out of order is seen only for nanoseconds. */
static unsigned repeats(const struct rc_options *o, uint32_t n)
{
    unsigned r = n <= 4097 ? 12 : n <= 65537 ? 6 : 3;
    return r * (o->rounds > 0 ? o->rounds : 1);
}

int main(int argc, char **argv)
{
    struct rc_options o = {.rounds = 1};
    struct rc_pair p;
    uint64_t writes = 0;
    rc_options(&o, argc, argv);
    o.bytes = 2 * (MAX_BYTES + ROOM);
    rc_open(&p, &o);
    rc_new_qp(&p);
    memset(p.buffer, 0, o.bytes);
    for (unsigned s = 0; s < SIZES; s++) {
        for (unsigned f = 0; f < OFFSETS; f++) {
            memset(p.buffer, 0, sizes[s] + ROOM);
            for (unsigned r = 1; r <= repeats(&o, sizes[s]); r++, writes++) {
                uint8_t new = (uint8_t)(1 + r % 255);
                if (o.host != NULL)
                    memset(p.buffer, new, sizes[s]);
                rc_barrier(&p);
                if (o.host != NULL) {
                    rc_post(&p, IBV_WR_RDMA_WRITE, r, 0, offsets[f], sizes[s], IBV_SEND_SIGNALED);
                    rc_expect(&p, r);
                } else {
                    watch(&p, sizes[s], offsets[f], new, r % 2 == 0);
                }
            }
            rc_barrier(&p);
        }
    }
    rc_close(&p);
    printf("poll_order: %llu Writes, none seen out of order\n", (unsigned long long)writes);
    return 0;
}
