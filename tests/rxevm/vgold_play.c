/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vgold_play.c: the exchanges. What each side posts, in which order and length, is what the
 * captures of tests/golden/rxe show, so that a new capture can be compared with them; what must
 * come of it is what the InfiniBand specification says.
 */
#include "vgold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RNR_WAIT_MS = 400, UNRELIABLE_PAUSE_MS = 20, KERNEL_WC_WITH_INV = 1 << 2 };

static const uint32_t SEND_IMM = 0x11223344, WRITE_IMM = 0x55667788;

static uint32_t slot(int i)
{
    return ARRIVE + (uint32_t)i * SLOT;
}

/* One packet, none, with immediate, several packets, several with immediate, solicited. */
static void play_send(void)
{
    uint32_t mtu = (uint32_t)v.o.mtu;
    const uint32_t bytes[] = {16, 0, 33, 3 * mtu + 101, 2 * mtu, 5};
    if (!v.requester)
        post_recv(6, SLOT);
    sync_peer();
    for (int i = 0; i < 6; i++) {
        bool imm = i == 2 || i == 4;
        if (!v.requester) {
            expect_recv(bytes[i], imm ? &SEND_IMM : NULL);
            check(slot(i), bytes[i], true, 0);
            check(slot(i) + bytes[i], 64, false, slot(i) + bytes[i]);
            continue;
        }
        expect(post_send(imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, 0, bytes[i], SEND_IMM,
                         i == 5 ? IBV_SEND_SOLICITED : 0),
               IBV_WC_SUCCESS, IBV_WC_SEND);
        if (v.type != IBV_QPT_RC)
            nap_ms(UNRELIABLE_PAUSE_MS);
    }
}

static void play_write(void)
{
    uint32_t mtu = (uint32_t)v.o.mtu, longest = 3 * mtu + 101;
    const uint32_t bytes[] = {16, 0, 33, 0, longest, 2 * mtu + 1};
    if (!v.requester)
        post_recv(3, SLOT);
    sync_peer();
    v.remote_addr += ARRIVE;
    for (int i = 0; i < 6; i++) {
        bool imm = i == 2 || i == 3 || i == 5;
        if (v.requester)
            expect(post_send(imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, 0, bytes[i],
                             WRITE_IMM, 0),
                   IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
        else if (imm && expect_recv(bytes[i], &WRITE_IMM).opcode != IBV_WC_RECV_RDMA_WITH_IMM)
            fault("opcode of a WRITE's receive");
        if (v.requester && v.type != IBV_QPT_RC)
            nap_ms(UNRELIABLE_PAUSE_MS);
    }
    sync_peer();
    if (v.requester)
        return;
    check(ARRIVE, longest, true, 0);
    check(ARRIVE + longest, SLOT, false, ARRIVE + longest);
}

static void play_read(void)
{
    uint32_t mtu = (uint32_t)v.o.mtu;
    const uint32_t bytes[] = {16, 0, 1, 3 * mtu + 101};
    uint64_t first = 0;
    sync_peer();
    for (int i = 0; v.requester && i < 4; i++) {
        v.remote_addr = v.peer.addr + 64 * (unsigned)i;
        expect(post_send(IBV_WR_RDMA_READ, slot(i + 4), bytes[i], 0, 0), IBV_WC_SUCCESS,
               IBV_WC_RDMA_READ);
        check(slot(i + 4), bytes[i], false, 64 * (unsigned)i);
        check(slot(i + 4) + bytes[i], 64, true, slot(i + 4) + bytes[i]);
    }
    v.remote_addr = v.peer.addr; /* three at once: the answers come in order */
    for (int i = 0; v.requester && i < 3; i++) {
        uint64_t id = post_send(IBV_WR_RDMA_READ, slot(i + 1), mtu + 7, 0, 0);
        first = i == 0 ? id : first;
    }
    for (int i = 0; v.requester && i < 3; i++) {
        expect(first + (unsigned)i, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
        check(slot(i + 1), mtu + 7, false, 0);
        check(slot(i + 1) + mtu + 7, 64, true, slot(i + 1) + mtu + 7);
    }
    sync_peer();
}

static void play_atomic(void)
{
    const struct {
        enum ibv_wr_opcode op;
        int done;
        uint64_t a, b, original;
    } step[] = {
        {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 0x0102030405060708, 0,                  0x1000000000000001},
        {IBV_WR_ATOMIC_CMP_AND_SWP,   IBV_WC_COMP_SWAP, 0x1102030405060709, 0xa1a2a3a4a5a6a7a8,
         0x1102030405060709                                                                                       },
        {IBV_WR_ATOMIC_CMP_AND_SWP,   IBV_WC_COMP_SWAP, 1,                  0xb1b2b3b4b5b6b7b8, 0xa1a2a3a4a5a6a7a8},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 1,                  0,                  0xa1a2a3a4a5a6a7a8},
    };
    uint64_t value = step[0].original;
    if (!v.requester)
        memcpy(v.buffer + CELL, &value, sizeof(value));
    sync_peer();
    v.remote_addr += CELL;
    for (int i = 0; v.requester && i < 4; i++) {
        expect(post_atomic(step[i].op, step[i].a, step[i].b), IBV_WC_SUCCESS, step[i].done);
        memcpy(&value, v.buffer + ARRIVE, sizeof(value));
        if (value != step[i].original)
            fault("original value 0x%016llx of atomic %d", (unsigned long long)value, i);
    }
    sync_peer();
    memcpy(&value, v.buffer + CELL, sizeof(value));
    if (!v.requester && value != 0xa1a2a3a4a5a6a7a9)
        fault("final value 0x%016llx", (unsigned long long)value);
}

/* The responder's part: a type 2 memory window, bound and told; then a receive. */
static void sendinv_respond(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(v.pd, IBV_MW_TYPE_2);
    if (mw == NULL) {
        dprintf(v.tcp, "none\n");
        printf("skip: no memory windows\n");
        return;
    }
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info.mr = v.mr;
    wr.bind_mw.bind_info.addr = (uintptr_t)v.buffer + ARRIVE + SLOT;
    wr.bind_mw.bind_info.length = 4096;
    wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    post(&wr);
    expect(wr.wr_id, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
    post_recv(1, SLOT);
    dprintf(v.tcp, "%08x\n", wr.bind_mw.rkey);
    struct ibv_wc wc = expect_recv(16, NULL);
    /* Linux 6.1 hands rxe's own bit for "with invalidate" through to user space unchanged. */
    if ((wc.wc_flags & (IBV_WC_WITH_INV | KERNEL_WC_WITH_INV)) == 0 ||
        wc.invalidated_rkey != wr.bind_mw.rkey)
        fault("flags 0x%x, invalidated 0x%08x", wc.wc_flags, wc.invalidated_rkey);
    check(ARRIVE + SLOT, 40, true, 0);
    sync_peer();
    if (ibv_dealloc_mw(mw) != 0)
        fault("dealloc_mw");
}

/* WRITE through a window, SEND WITH INVALIDATE of it, WRITE again: the window is gone by then. */
static void play_sendinv(void)
{
    char line[32];
    if (!v.requester) {
        sendinv_respond();
        return;
    }
    tcp_line(line, sizeof(line));
    if (strcmp(line, "none") == 0) {
        printf("skip: no memory windows\n");
        return;
    }
    v.rkey = (uint32_t)strtoul(line, NULL, 16);
    v.remote_addr += ARRIVE + SLOT;
    expect(post_send(IBV_WR_RDMA_WRITE, 0, 40, 0, 0), IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    expect(post_send(IBV_WR_SEND_WITH_INV, 0, 16, v.rkey, 0), IBV_WC_SUCCESS, IBV_WC_SEND);
    expect(post_send(IBV_WR_RDMA_WRITE, 0, 40, 0, 0), IBV_WC_REM_ACCESS_ERR, ANY);
    sync_peer();
}

/* n SENDs at once; the receives are there, or come late. */
static void sends(int n, uint32_t bytes, int late_ms)
{
    if (!v.requester && late_ms == 0)
        post_recv(n, SLOT);
    sync_peer();
    if (!v.requester && late_ms != 0) {
        nap_ms(late_ms);
        post_recv(n, SLOT);
    }
    uint64_t first = v.next_wr_id;
    for (int i = 0; v.requester && i < n; i++)
        post_send(IBV_WR_SEND, (uint32_t)i, bytes, 0, 0);
    for (int i = 0; i < n; i++) {
        if (v.requester) {
            expect(first + (unsigned)i, IBV_WC_SUCCESS, IBV_WC_SEND);
        } else {
            expect_recv(bytes, NULL);
            if (n <= 8) /* else the slots are used again */
                check(slot(i), bytes, true, (uint32_t)i);
        }
    }
    sync_peer();
}

static void play_burst(void)
{
    sends(16, 64, 0);
}

static void play_rnr(void)
{
    sends(1, 16, RNR_WAIT_MS);
}

/* Four messages are on their way when the first is refused. */
static void play_rnr_burst(void)
{
    sends(4, 16, RNR_WAIT_MS);
}

/* With a small rnr_retry: the receive never comes. */
static void play_rnr_exceeded(void)
{
    sync_peer();
    if (v.requester) {
        expect(post_send(IBV_WR_SEND, 0, 16, 0, 0), IBV_WC_RNR_RETRY_EXC_ERR, ANY);
        tell_qp();
    }
    sync_peer();
    if (!v.requester)
        tell_qp();
}

/* A READ between two WRITEs, the second fenced. */
static void play_mixed(void)
{
    uint32_t mtu = (uint32_t)v.o.mtu;
    uint64_t first = v.next_wr_id;
    sync_peer();
    if (v.requester) {
        v.remote_addr += ARRIVE;
        post_send(IBV_WR_RDMA_WRITE, 0, 2 * mtu, 0, 0);
        post_send(IBV_WR_RDMA_READ, ARRIVE, 2 * mtu, 0, 0);
        post_send(IBV_WR_RDMA_WRITE, 64, 16, 0, IBV_SEND_FENCE);
        expect(first, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
        expect(first + 1, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
        expect(first + 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
        check(ARRIVE, 2 * mtu, true, 0); /* the fenced WRITE came after the READ */
    }
    sync_peer();
    if (!v.requester) {
        check(ARRIVE, 16, true, 64);
        check(ARRIVE + 16, 2 * mtu - 16, true, 16);
    }
}

/* One request that the responder refuses, and one behind it that is flushed. */
static void refused(enum ibv_wr_opcode op, uint64_t addr, uint32_t bytes, int status)
{
    status = v.o.error != ANY ? v.o.error : status;
    if (!v.requester)
        post_recv(1, SLOT);
    sync_peer();
    if (v.requester) {
        v.remote_addr = addr;
        uint64_t id = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? post_atomic(op, 1, 0)
                                                        : post_send(op, 0, bytes, 0, 0);
        uint64_t behind = post_send(IBV_WR_RDMA_WRITE, 0, 8, 0, 0);
        expect(id, status, ANY);
        expect(behind, IBV_WC_WR_FLUSH_ERR, ANY);
        tell_qp();
    }
    sync_peer();
    if (!v.requester) {
        expect(100, IBV_WC_WR_FLUSH_ERR, ANY);
        tell_qp();
        check(0, BUFFER_BYTES, false, 0); /* nothing was written anywhere */
    }
}

static void bad_rkey(enum ibv_wr_opcode op)
{
    v.rkey ^= 0xff;
    refused(op, v.peer.addr, 16, IBV_WC_REM_ACCESS_ERR);
}

static void play_badrkey_write(void)
{
    bad_rkey(IBV_WR_RDMA_WRITE);
}

static void play_badrkey_read(void)
{
    bad_rkey(IBV_WR_RDMA_READ);
}

static void play_badrkey_atomic(void)
{
    bad_rkey(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

/* The first packet lies inside the region, the range does not. */
static void play_beyond(void)
{
    uint32_t mtu = (uint32_t)v.o.mtu;
    refused(IBV_WR_RDMA_WRITE, v.peer.addr + BUFFER_BYTES - mtu, 2 * mtu, IBV_WC_REM_ACCESS_ERR);
}

/* READ of a QP that does not allow it. */
static void play_noaccess(void)
{
    struct ibv_qp_attr a = {.qp_access_flags = IBV_ACCESS_LOCAL_WRITE};
    if (!v.requester && ibv_modify_qp(v.qp, &a, IBV_QP_ACCESS_FLAGS) != 0)
        die("modify access flags");
    refused(IBV_WR_RDMA_READ, v.peer.addr, 16, IBV_WC_REM_INV_REQ_ERR);
}

/* A message longer than the receive. */
static void play_toolong(void)
{
    int status = v.requester ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_LOC_LEN_ERR;
    status = v.o.error != ANY ? v.o.error : status;
    if (!v.requester)
        post_recv(1, 32);
    sync_peer();
    expect(v.requester ? post_send(IBV_WR_SEND, 0, 64, 0, 0) : 100, status, ANY);
    sync_peer();
    tell_qp();
    if (!v.requester)
        check(ARRIVE + 32, SLOT, false, ARRIVE + 32);
}

/* With a small retry_cnt: the responder's QP is gone, nothing answers. */
static void play_noqp(void)
{
    if (!v.requester) {
        ibv_destroy_qp(v.qp);
        v.qp = NULL;
    }
    sync_peer();
    if (v.requester) {
        expect(post_send(IBV_WR_RDMA_WRITE, 0, 16, 0, 0), IBV_WC_RETRY_EXC_ERR, ANY);
        tell_qp();
    }
    sync_peer();
}

const struct vgold_scenario vgold_scenarios[] = {
    {"rc-send",           IBV_QPT_RC, play_send          },
    {"rc-write",          IBV_QPT_RC, play_write         },
    {"rc-read",           IBV_QPT_RC, play_read          },
    {"rc-atomic",         IBV_QPT_RC, play_atomic        },
    {"rc-sendinv",        IBV_QPT_RC, play_sendinv       },
    {"rc-burst",          IBV_QPT_RC, play_burst         },
    {"rc-mixed",          IBV_QPT_RC, play_mixed         },
    {"rc-rnr",            IBV_QPT_RC, play_rnr           },
    {"rc-rnr-burst",      IBV_QPT_RC, play_rnr_burst     },
    {"rc-rnr-exceeded",   IBV_QPT_RC, play_rnr_exceeded  },
    {"rc-badrkey-write",  IBV_QPT_RC, play_badrkey_write },
    {"rc-badrkey-read",   IBV_QPT_RC, play_badrkey_read  },
    {"rc-badrkey-atomic", IBV_QPT_RC, play_badrkey_atomic},
    {"rc-beyond",         IBV_QPT_RC, play_beyond        },
    {"rc-toolong",        IBV_QPT_RC, play_toolong       },
    {"rc-noaccess",       IBV_QPT_RC, play_noaccess      },
    {"rc-noqp",           IBV_QPT_RC, play_noqp          },
    {"uc-send",           IBV_QPT_UC, play_send          },
    {"uc-write",          IBV_QPT_UC, play_write         },
    {NULL,                IBV_QPT_RC, NULL               },
};
