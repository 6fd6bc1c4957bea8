/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify_rc.c: two processes move patterns by every RC operation in many sizes and check every
 * byte, with guard bytes around each area. They take turns in being the active side; a burst has
 * both active at once. Plain libibverbs.
 */
#include "rc_pair.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum {
    GUARD = 64,
    GUARD_BYTE = 0xa5,
    AREA_BYTES = (1 << 20) + 4096,
    BURST = 48,
    BURST_BYTES = 5000,
    ACCESS_CELL_BYTES = 8,
};

/* Areas of the buffer, each with a guard before and after. */
enum area { OUT, IN_WRITE, IN_READ, IN_RECV, IN_BURST, CELL, AREAS };

static const uint32_t sizes[] = {0,    1,    2,    3,     4,     5,     8,      63,     64,
                                 255,  256,  257,  1000,  1023,  1024,  1025,   2048,   3173,
                                 4095, 4096, 4097, 10001, 16384, 65536, 131071, 262147, 1 << 20};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static struct {
    uint64_t operations, bytes;
} done;

/* The areas are the end of the buffer, whose size may be given. */
static uint64_t base;

static uint64_t at(enum area a)
{
    return base + (uint64_t)a * (AREA_BYTES + 2 * GUARD) + GUARD;
}

static void guards_check(const struct rc_pair *p)
{
    for (int a = 0; a < AREAS; a++)
        for (int i = 0; i < GUARD; i++)
            if (p->buffer[at(a) - 1 - i] != GUARD_BYTE ||
                p->buffer[at(a) + AREA_BYTES + i] != GUARD_BYTE)
                rc_fail("a byte outside area %d was written", a);
}

/* What must not have changed behind the n bytes that were written. */
static void rest_check(const uint8_t *b, uint64_t n, const char *what)
{
    for (uint64_t i = n; i < n + GUARD; i++)
        if (b[i] != GUARD_BYTE)
            rc_fail("%s of %llu bytes wrote byte %llu", what, (unsigned long long)n,
                    (unsigned long long)i);
}

static void clear(struct rc_pair *p, enum area a, uint64_t n)
{
    memset(p->buffer + at(a), GUARD_BYTE, n + GUARD);
}

static void count(uint64_t bytes)
{
    done.operations++;
    done.bytes += bytes;
}

/* Write, Write with immediate, Send, Send with immediate: from OUT to the partner's area. */
static void push(struct rc_pair *p, enum ibv_wr_opcode opcode, uint32_t n, uint64_t seed,
                 bool active)
{
    static const char *const name[] = {
        [IBV_WR_RDMA_WRITE] = "Write",
        [IBV_WR_RDMA_WRITE_WITH_IMM] = "Write with immediate",
        [IBV_WR_SEND] = "Send",
        [IBV_WR_SEND_WITH_IMM] = "Send with immediate",
    };
    bool write = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    bool imm = opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_IMM;
    enum area to = write ? IN_WRITE : IN_RECV;
    if (active) {
        rc_fill(p->buffer + at(OUT), n, seed);
        rc_barrier(p);
        struct ibv_sge sge = {(uintptr_t)p->buffer + at(OUT), n, p->mr->lkey};
        struct ibv_send_wr *bad,
            wr = {
                .wr_id = seed,
                .sg_list = &sge,
                .num_sge = n > 0,
                .opcode = opcode,
                .send_flags =
                    IBV_SEND_SIGNALED | (n <= 64 && n > 0 && seed % 2 ? IBV_SEND_INLINE : 0u),
                .imm_data = htobe32((uint32_t)seed),
                .wr = {.rdma = {p->theirs.addr + at(to), p->theirs.rkey}},
            };
        if (ibv_post_send(p->qp, &wr, &bad) != 0)
            rc_fail("post_send of %s refused", name[opcode]);
        rc_expect(p, seed);
        count(n);
        rc_barrier(p);
        return;
    }
    clear(p, to, n);
    if (!write || imm)
        rc_post_recv(p, seed, at(IN_RECV), write ? 0 : n);
    rc_barrier(p);
    if (!write || imm) {
        struct ibv_wc wc = rc_expect(p, seed);
        enum ibv_wc_opcode want = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
        if (wc.opcode != want || wc.byte_len != n || ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) != imm)
            rc_fail("%s of %u bytes: completion has opcode %d, %u bytes, flags 0x%x", name[opcode],
                    n, wc.opcode, wc.byte_len, wc.wc_flags);
        if (imm && be32toh(wc.imm_data) != (uint32_t)seed)
            rc_fail("%s: immediate 0x%x", name[opcode], be32toh(wc.imm_data));
    }
    rc_barrier(p);
    rc_check(p->buffer + at(to), n, seed, name[opcode]);
    rest_check(p->buffer + at(to), n, name[opcode]);
}

static void pull(struct rc_pair *p, uint32_t n, uint64_t seed, bool active)
{
    if (active) {
        clear(p, IN_READ, n);
        rc_barrier(p);
        rc_post(p, IBV_WR_RDMA_READ, seed, at(IN_READ), at(OUT), n, IBV_SEND_SIGNALED);
        rc_expect(p, seed);
        rc_check(p->buffer + at(IN_READ), n, seed, "Read");
        rest_check(p->buffer + at(IN_READ), n, "Read");
        count(n);
    } else {
        rc_fill(p->buffer + at(OUT), n, seed);
        rc_barrier(p);
    }
    rc_barrier(p);
}

static uint64_t atomic(struct rc_pair *p, enum ibv_wr_opcode opcode, uint64_t compare_add,
                       uint64_t swap)
{
    uint64_t result;
    struct ibv_sge sge = {(uintptr_t)p->buffer + at(IN_READ), ACCESS_CELL_BYTES, p->mr->lkey};
    struct ibv_send_wr *bad,
        wr = {
            .wr_id = 1,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = opcode,
            .send_flags = IBV_SEND_SIGNALED,
            .wr = {.atomic = {p->theirs.addr + at(CELL), compare_add, swap, p->theirs.rkey}},
        };
    if (ibv_post_send(p->qp, &wr, &bad) != 0)
        rc_fail("post_send of an atomic refused");
    rc_expect(p, 1);
    memcpy(&result, p->buffer + at(IN_READ), sizeof(result));
    count(ACCESS_CELL_BYTES);
    return result;
}

static void demand(uint64_t got, uint64_t want, const char *what)
{
    if (got != want)
        rc_fail("%s: 0x%llx, wanted 0x%llx", what, (unsigned long long)got,
                (unsigned long long)want);
}

static void atomics(struct rc_pair *p, bool active)
{
    uint64_t cell = 0x1000000000000001u;
    if (active) {
        rc_barrier(p);
        for (uint64_t i = 1; i <= 100; i++, cell += i - 1)
            demand(atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 0), cell, "Fetch-and-Add");
        demand(atomic(p, IBV_WR_ATOMIC_CMP_AND_SWP, cell, 77), cell, "Compare-and-Swap");
        demand(atomic(p, IBV_WR_ATOMIC_CMP_AND_SWP, cell, 88), 77, "Compare-and-Swap that fails");
        demand(atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 0), 77, "Fetch-and-Add of -1");
        rc_barrier(p);
        return;
    }
    memcpy(p->buffer + at(CELL), &cell, sizeof(cell));
    rc_barrier(p);
    rc_barrier(p);
    memcpy(&cell, p->buffer + at(CELL), sizeof(cell));
    demand(cell, 76, "the cell in the end");
}

static uint32_t burst_bytes(uint64_t i)
{
    return (uint32_t)(i * 997 % BURST_BYTES);
}

/* Both sides at once: Writes, and Reads of what was written, all posted before the first is
 * complete. Only the last of each four is signalled. */
static void burst(struct rc_pair *p, uint64_t seed)
{
    enum { SLOT = BURST_BYTES + GUARD };
    clear(p, IN_BURST, (uint64_t)BURST * SLOT);
    for (uint64_t i = 0; i < BURST; i++)
        rc_fill(p->buffer + at(OUT) + i * SLOT, burst_bytes(i), seed + i);
    rc_barrier(p);
    for (uint64_t i = 0; i < BURST; i++) {
        unsigned flags = i % 4 == 3 ? IBV_SEND_SIGNALED : 0;
        rc_post(p, IBV_WR_RDMA_WRITE, i, at(OUT) + i * SLOT, at(IN_BURST) + i * SLOT,
                burst_bytes(i), 0);
        rc_post(p, IBV_WR_RDMA_READ, i, at(IN_READ) + i * SLOT, at(IN_BURST) + i * SLOT,
                burst_bytes(i), flags);
        count(2ull * burst_bytes(i));
    }
    for (uint64_t i = 3; i < BURST; i += 4)
        rc_expect(p, i);
    for (uint64_t i = 0; i < BURST; i++)
        rc_check(p->buffer + at(IN_READ) + i * SLOT, burst_bytes(i), seed + i, "Read in a burst");
    rc_barrier(p);
    for (uint64_t i = 0; i < BURST; i++) {
        /* The partner's patterns are the same as ours. */
        const uint8_t *b = p->buffer + at(IN_BURST) + i * SLOT;
        rc_check(b, burst_bytes(i), seed + i, "Write in a burst");
        rest_check(b, burst_bytes(i), "Write in a burst");
    }
    rc_barrier(p);
}

static void turn(struct rc_pair *p, uint64_t seed, bool active)
{
    static const enum ibv_wr_opcode pushes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                                IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};
    for (unsigned i = 0; i < SIZES; i++) {
        for (unsigned k = 0; k < 4; k++)
            push(p, pushes[k], sizes[i], ++seed, active);
        pull(p, sizes[i], ++seed, active);
    }
    atomics(p, active);
}

int main(int argc, char **argv)
{
    struct rc_options o = {.rounds = 2};
    struct rc_pair p;
    rc_options(&o, argc, argv);
    uint64_t least = AREAS * (uint64_t)(AREA_BYTES + 2 * GUARD);
    if (o.bytes < least)
        o.bytes = least;
    base = o.bytes - least;
    rc_open(&p, &o);
    memset(p.buffer + base, GUARD_BYTE, least);
    rc_new_qp(&p);
    for (unsigned r = 0; r < o.rounds; r++) {
        turn(&p, o.seed + r * 1000, (r % 2 == 0) == (o.host != NULL));
        burst(&p, o.seed + r);
        guards_check(&p);
    }
    rc_barrier(&p);
    rc_close(&p);
    printf("verify_rc: %llu operations of this side, %llu bytes, all right\n",
           (unsigned long long)done.operations, (unsigned long long)done.bytes);
    return 0;
}
