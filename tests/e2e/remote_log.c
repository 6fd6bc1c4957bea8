/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remote_log.c: the client keeps a log in the server's memory, as storage programs do: it Writes a
 * record, asks by a FLUSH that it be visible, and tells its number by an ATOMIC WRITE. The server
 * does nothing but look: a number never goes back, and each record up to it is whole. In the end a
 * FLUSH asks for persistence, which nobody has. Plain libibverbs; rdma-core 44 has no FLUSH yet.
 */
#include "rc_pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    RECORD_BYTES = 3000,
    SLOTS = 64, /* of the ring; number k is in slot k % SLOTS */
    BATCH = 32, /* between two meetings, so that no record is written over that is looked at */
    AHEAD = 8,  /* records on the way */
    HEAD_AT = 0,
    RING_AT = 64,
    COPY_AT = RING_AT + SLOTS * RECORD_BYTES, /* client: what it reads back */
    BUFFER_BYTES = COPY_AT + RECORD_BYTES,
    /* Release 45. */
    ACCESS_FLUSH_GLOBAL = 1 << 8,
    ACCESS_FLUSH_PERSISTENT = 1 << 9,
    QP_EX_WITH_FLUSH = 1 << 11,
    FLUSH_GLOBAL = 1,
    FLUSH_PERSISTENT = 2,
    FLUSH_RANGE = 0,
};

/* What release 45 has behind the struct of release 44. */
struct newer_qp_ex {
    struct ibv_qp_ex ex;
    void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                     uint8_t type, uint8_t level);
};

static void register_again(struct rc_pair *p)
{
    const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    ibv_dereg_mr(p->mr);
    if (ibv_reg_mr(p->pd, p->buffer, p->o.bytes, rights | ACCESS_FLUSH_PERSISTENT) != NULL)
        rc_fail("persistent memory was registered");
    if (errno != EOPNOTSUPP)
        rc_fail("persistent memory: %s", strerror(errno));
    p->mr = ibv_reg_mr(p->pd, p->buffer, p->o.bytes, rights | ACCESS_FLUSH_GLOBAL);
    if (p->mr == NULL)
        rc_fail("reg_mr: %s", strerror(errno));
}

static void create_qp(struct rc_pair *p)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 4 * AHEAD, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = p->pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
                          IBV_QP_EX_WITH_ATOMIC_WRITE | QP_EX_WITH_FLUSH,
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | ACCESS_FLUSH_GLOBAL |
                           ACCESS_FLUSH_PERSISTENT,
    };
    p->qp = ibv_create_qp_ex(p->ctx, &init);
    if (p->qp == NULL)
        rc_fail("create_qp_ex: %s", strerror(errno));
    int status = ibv_modify_qp(
        p->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (status != 0)
        rc_fail("modify_qp INIT: %s", strerror(status));
}

static uint32_t slot_at(uint64_t number)
{
    return RING_AT + (uint32_t)(number % SLOTS) * RECORD_BYTES;
}

static void add_flush(struct rc_pair *p, uint64_t at, size_t len, uint8_t type)
{
    struct newer_qp_ex *qp = (struct newer_qp_ex *)(void *)ibv_qp_to_qp_ex(p->qp);
    qp->wr_flush(&qp->ex, p->theirs.rkey, p->theirs.addr + at, len, type, FLUSH_RANGE);
}

static void complete(struct ibv_qp_ex *ex)
{
    int status = ibv_wr_complete(ex);
    if (status != 0)
        rc_fail("wr_complete: %s", strerror(status));
}

static void append(struct rc_pair *p, uint64_t number)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp);
    const uint32_t at = slot_at(number);
    rc_fill(p->buffer + at, RECORD_BYTES, number);
    ibv_wr_start(ex);
    ex->wr_id = number;
    ex->wr_flags = 0;
    ibv_wr_rdma_write(ex, p->theirs.rkey, p->theirs.addr + at);
    ibv_wr_set_sge(ex, p->mr->lkey, (uintptr_t)p->buffer + at, RECORD_BYTES);
    add_flush(p, at, RECORD_BYTES, FLUSH_GLOBAL);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_write(ex, p->theirs.rkey, p->theirs.addr + HEAD_AT, &number);
    complete(ex);
}

static void done(struct rc_pair *p, uint64_t number)
{
    struct ibv_wc wc = rc_expect(p, number);
    if (wc.opcode != IBV_WC_ATOMIC_WRITE)
        rc_fail("opcode %d", wc.opcode);
}

static void read_back(struct rc_pair *p, uint64_t number)
{
    rc_post(p, IBV_WR_RDMA_READ, number, COPY_AT, slot_at(number), RECORD_BYTES, IBV_SEND_SIGNALED);
    rc_expect(p, number);
    rc_check(p->buffer + COPY_AT, RECORD_BYTES, number, "read back");
}

static void write_batch(struct rc_pair *p, uint64_t before)
{
    for (uint64_t k = 1; k <= BATCH; k++) {
        append(p, before + k);
        if (k > AHEAD)
            done(p, before + k - AHEAD);
    }
    for (uint64_t k = BATCH - AHEAD + 1; k <= BATCH; k++)
        done(p, before + k);
    read_back(p, before + BATCH);
}

static void watch_batch(struct rc_pair *p, uint64_t before)
{
    const uint64_t *head = (const uint64_t *)(const void *)(p->buffer + HEAD_AT);
    double limit = rc_now_seconds() + RC_LIMIT_SECONDS;
    uint64_t seen = before;
    while (seen < before + BATCH) {
        uint64_t number = __atomic_load_n(head, __ATOMIC_ACQUIRE);
        if (number < seen || number > before + BATCH)
            rc_fail("number %llu after %llu", (unsigned long long)number, (unsigned long long)seen);
        while (seen < number) {
            seen++;
            rc_check(p->buffer + slot_at(seen), RECORD_BYTES, seen, "record");
        }
        if (rc_now_seconds() > limit)
            rc_fail("number %llu never came", (unsigned long long)seen + 1);
    }
}

/* The NAK is said once: the target's QP is in ERR then and answers no repetition. Where packets are
 * lost (-o lossy) the initiator may hear nothing of it but silence. */
static void ask_for_persistence(struct rc_pair *p, bool lossy)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp);
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED;
    add_flush(p, 0, 8, FLUSH_PERSISTENT);
    complete(ex);
    struct ibv_wc wc = rc_wait(p);
    if (wc.status != IBV_WC_REM_ACCESS_ERR && !(lossy && wc.status == IBV_WC_RETRY_EXC_ERR))
        rc_fail("persistence: %s", ibv_wc_status_str(wc.status));
}

int main(int argc, char **argv)
{
    struct rc_options o = {.rounds = 10, .bytes = BUFFER_BYTES};
    struct rc_pair p;
    rc_options(&o, argc, argv);
    rc_open(&p, &o);
    register_again(&p);
    create_qp(&p);
    rc_connect(&p);
    for (unsigned i = 0; i < o.rounds; i++) {
        if (o.host == NULL)
            watch_batch(&p, (uint64_t)i * BATCH);
        else
            write_batch(&p, (uint64_t)i * BATCH);
        rc_barrier(&p);
    }
    if (o.host != NULL)
        ask_for_persistence(&p, o.operation != NULL && strcmp(o.operation, "lossy") == 0);
    rc_barrier(&p);
    rc_close(&p);
    printf("remote_log: %u records, all whole when told\n", o.rounds * BATCH);
    return 0;
}
