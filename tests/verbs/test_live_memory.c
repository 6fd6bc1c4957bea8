/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_memory.c: memory windows, regions registered again, on demand and of nothing, device
 * memory and parent domains, through the real library and engine.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live_rig.h"

enum { AREA = 4096, WINDOW = 1024, REMOTE_WRITE = IBV_ACCESS_REMOTE_WRITE };

/* One send request of side and its completion. */
static struct ibv_wc run(struct rig *r, unsigned side, struct ibv_send_wr wr)
{
    struct ibv_send_wr *bad;

    wr.send_flags |= IBV_SEND_SIGNALED;
    assert_int_equal(ibv_post_send(r->qp[side], &wr, &bad), 0);
    return rig_wait(r);
}

/* side writes 8 bytes of its buffer to addr of key. */
static enum ibv_wc_status write_to(struct rig *r, unsigned side, uint32_t key, uint64_t addr)
{
    struct ibv_sge sge = rig_sge(r, RIG_BYTES - 8, 8);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = key;
    return run(r, side, wr).status;
}

static void reconnect(struct rig *r)
{
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

        assert_int_equal(ibv_modify_qp(r->qp[i], &reset, IBV_QP_STATE), 0);
        assert_int_equal(rig_to_init(r->qp[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr rtr = rig_rtr_attr(r, r->qp[1 - i]->qp_num), rts = rig_rts_attr();

        assert_int_equal(ibv_modify_qp(r->qp[i], &rtr, rig_rtr_mask), 0);
        assert_int_equal(ibv_modify_qp(r->qp[i], &rts, rig_rts_mask), 0);
    }
}

/* A region that takes windows, and gives nobody else a right. */
static struct ibv_mr *window_region(struct rig *r)
{
    struct ibv_mr *mr =
        ibv_reg_mr(r->pd, r->buf, AREA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);

    assert_non_null(mr);
    return mr;
}

static struct ibv_mw *window(struct rig *r, enum ibv_mw_type type)
{
    struct ibv_mw *mw = ibv_alloc_mw(r->pd, type);

    assert_non_null(mw);
    assert_ptr_equal(mw->pd, r->pd);
    assert_ptr_equal(mw->context, r->ctx);
    assert_int_equal(mw->type, type);
    return mw;
}

/* Binds [at, at + length) of mr for qp[1]; *key becomes the window's, whatever comes of it. */
static enum ibv_wc_status bind(struct rig *r, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t at,
                               uint64_t length, unsigned access, uint32_t *key)
{
    struct ibv_mw_bind_info info = {mr, at, length, access};
    struct ibv_wc wc;

    if (mw->type == IBV_MW_TYPE_1) {
        struct ibv_mw_bind b = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
        const uint32_t before = mw->rkey;

        assert_int_equal(ibv_bind_mw(r->qp[1], mw, &b), 0);
        assert_int_not_equal(mw->rkey, before);
        wc = rig_wait(r);
        *key = mw->rkey;
    } else {
        struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_BIND_MW};

        *key = ibv_inc_rkey(mw->rkey);
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = *key;
        wr.bind_mw.bind_info = info;
        wc = run(r, 1, wr);
        if (wc.status == IBV_WC_SUCCESS)
            mw->rkey = *key;
    }
    assert_int_equal(wc.wr_id, 5);
    if (wc.status == IBV_WC_SUCCESS)
        assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
    return wc.status;
}

static struct ibv_wc invalidate(struct rig *r, bool by_peer, uint32_t key)
{
    struct ibv_send_wr wr = {.wr_id = 6, .invalidate_rkey = key};

    wr.opcode = by_peer ? IBV_WR_SEND_WITH_INV : IBV_WR_LOCAL_INV;
    if (by_peer)
        rig_recv(r, r->qp[1], 7, AREA, 8);
    return run(r, by_peer ? 0 : 1, wr);
}

/* Length 0 unbinds a window of type 1, and is an error for type 2, as is binding one again. */
static void case_22(void **state)
{
    (void)state;
    struct rig r;
    uint32_t first, second, third;

    rig_connect(&r);
    struct ibv_mr *mr = window_region(&r);
    struct ibv_mw *one = window(&r, IBV_MW_TYPE_1), *two = window(&r, IBV_MW_TYPE_2);
    const uint64_t at = (uintptr_t)r.buf;

    memset(r.buf + RIG_BYTES - 8, 0x5a, 8);
    assert_int_equal(bind(&r, one, mr, at, WINDOW, REMOTE_WRITE, &first), IBV_WC_SUCCESS);
    assert_int_equal(write_to(&r, 0, first, at), IBV_WC_SUCCESS);
    assert_int_equal(r.buf[7], 0x5a);
    assert_int_equal(bind(&r, one, mr, at + WINDOW, WINDOW, REMOTE_WRITE, &second), IBV_WC_SUCCESS);
    assert_int_equal(write_to(&r, 0, second, at + WINDOW), IBV_WC_SUCCESS);
    assert_int_equal(write_to(&r, 0, first, at + 8), IBV_WC_REM_ACCESS_ERR);
    reconnect(&r);
    assert_int_equal(bind(&r, one, NULL, 0, 0, 0, &third), IBV_WC_SUCCESS);
    assert_int_equal(write_to(&r, 0, second, at + WINDOW + 8), IBV_WC_REM_ACCESS_ERR);
    reconnect(&r);
    assert_int_equal(write_to(&r, 0, third, at), IBV_WC_REM_ACCESS_ERR);
    reconnect(&r);
    assert_int_equal(bind(&r, two, mr, at, 0, REMOTE_WRITE, &first), IBV_WC_MW_BIND_ERR);
    reconnect(&r);
    assert_int_equal(bind(&r, two, mr, at, WINDOW, REMOTE_WRITE, &first), IBV_WC_SUCCESS);
    assert_int_equal(bind(&r, two, mr, at, WINDOW, REMOTE_WRITE, &second), IBV_WC_MW_BIND_ERR);
    reconnect(&r);
    assert_int_equal(write_to(&r, 0, first, at + WINDOW - 8), IBV_WC_SUCCESS);
    assert_int_equal(write_to(&r, 0, first, at + WINDOW - 7), IBV_WC_REM_ACCESS_ERR);
    for (unsigned i = 8; i < AREA; i++)
        assert_int_equal(r.buf[i],
                         (i >= WINDOW - 8 && i < WINDOW) || (i >= WINDOW && i < WINDOW + 8) ? 0x5a
                                                                                            : 0);
    assert_int_equal(ibv_dealloc_mw(one), 0);
    assert_int_equal(ibv_dealloc_mw(two), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

/* Zero-based is for type 2: addresses count from the window's first byte. */
static void case_22__zero_based(void **state)
{
    (void)state;
    struct rig r;
    uint32_t key;

    rig_connect(&r);
    struct ibv_mr *mr = window_region(&r);
    struct ibv_mw *one = window(&r, IBV_MW_TYPE_1), *two = window(&r, IBV_MW_TYPE_2);
    const unsigned access = REMOTE_WRITE | IBV_ACCESS_ZERO_BASED;
    struct ibv_mw_bind b = {
        .bind_info = {mr, (uintptr_t)r.buf, 8, access}
    };

    assert_int_equal(ibv_bind_mw(r.qp[1], one, &b), EINVAL);
    memset(r.buf + RIG_BYTES - 8, 0x77, 8);
    assert_int_equal(bind(&r, two, mr, (uintptr_t)r.buf + 64, 64, access, &key), IBV_WC_SUCCESS);
    assert_int_equal(write_to(&r, 0, key, 8), IBV_WC_SUCCESS);
    assert_int_equal(r.buf[64 + 8], 0x77);
    assert_int_equal(r.buf[64 + 7], 0);
    assert_int_equal(write_to(&r, 0, key, 57), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dealloc_mw(one), 0);
    assert_int_equal(ibv_dealloc_mw(two), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

static void case_25(void **state)
{
    (void)state;
    struct rig r;
    uint32_t key;

    rig_connect(&r);
    struct ibv_mr *mr = window_region(&r);
    struct ibv_mw *one = window(&r, IBV_MW_TYPE_1), *two = window(&r, IBV_MW_TYPE_2);

    for (int type = 1; type <= 2; type++) {
        assert_int_equal(
            bind(&r, type == 1 ? one : two, mr, (uintptr_t)r.buf, 8, REMOTE_WRITE, &key),
            IBV_WC_SUCCESS);
        assert_int_equal(ibv_dereg_mr(mr), EBUSY);
        errno = 0;
        assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
                         IBV_REREG_MR_ERR_INPUT);
        assert_int_equal(errno, EBUSY);
        assert_int_equal(write_to(&r, 0, key, (uintptr_t)r.buf), IBV_WC_SUCCESS);
        if (type == 1)
            assert_int_equal(bind(&r, one, NULL, 0, 0, 0, &key), IBV_WC_SUCCESS);
        else
            assert_int_equal(invalidate(&r, false, key).status, IBV_WC_SUCCESS);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        mr = window_region(&r);
    }
    /* A window goes bound or not, and its domain only after it. */
    assert_int_equal(bind(&r, two, mr, (uintptr_t)r.buf, 8, REMOTE_WRITE, &key), IBV_WC_SUCCESS);
    assert_int_equal(ibv_dealloc_pd(r.pd), EBUSY);
    assert_int_equal(ibv_dealloc_mw(two), 0);
    assert_int_equal(ibv_dealloc_mw(one), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

/* Refused where it is asked: libibverbs' own check of ibv_bind_mw says EPERM, our posts EINVAL. */
static void case_26(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_send_wr *bad;

    rig_connect(&r);
    struct ibv_pd *other = ibv_alloc_pd(r.ctx);
    struct ibv_mr *mr = ibv_reg_mr(other, r.buf, AREA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mr *ours = window_region(&r);
    struct ibv_mw *one = window(&r, IBV_MW_TYPE_1), *two = window(&r, IBV_MW_TYPE_2);
    struct ibv_mw *foreign = ibv_alloc_mw(other, IBV_MW_TYPE_2);
    struct ibv_mw_bind b = {
        .bind_info = {mr, (uintptr_t)r.buf, 8, REMOTE_WRITE}
    };
    const struct {
        struct ibv_mw *mw;
        struct ibv_mr *mr;
        uint64_t length;
        unsigned access;
    } rows[] = {
        {two,     mr,   8, REMOTE_WRITE},
        {foreign, ours, 8, REMOTE_WRITE},
        {foreign, mr,   8, REMOTE_WRITE},
        {one,     ours, 8, REMOTE_WRITE}, /* of type 1 */
        {two,     NULL, 8, REMOTE_WRITE},
        {two,     ours, 8, 1u << 15    },
        {NULL,    ours, 8, REMOTE_WRITE},
    };

    assert_int_equal(ibv_bind_mw(r.qp[1], one, &b), EPERM);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

        wr.bind_mw.mw = rows[i].mw;
        wr.bind_mw.rkey = two->rkey;
        wr.bind_mw.bind_info =
            (struct ibv_mw_bind_info){rows[i].mr, (uintptr_t)r.buf, rows[i].length, rows[i].access};
        assert_int_equal(ibv_post_send(r.qp[1], &wr, &bad), EINVAL);
        assert_ptr_equal(bad, &wr);
    }
    rig_expect_none(&r);
    errno = 0;
    assert_null(ibv_alloc_mw(r.pd, (enum ibv_mw_type)3));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_dealloc_mw(one), 0);
    assert_int_equal(ibv_dealloc_mw(two), 0);
    assert_int_equal(ibv_dealloc_mw(foreign), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(ours), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    rig_close(&r);
}

static void case_27(void **state)
{
    (void)state;
    struct rig r;
    uint32_t key;

    rig_connect(&r);
    struct ibv_mr *mr = window_region(&r);
    struct ibv_mw *mw = window(&r, IBV_MW_TYPE_2);
    const uint64_t at = (uintptr_t)r.buf;

    for (int by_peer = 0; by_peer < 2; by_peer++) {
        assert_int_equal(bind(&r, mw, mr, at, 64, REMOTE_WRITE, &key), IBV_WC_SUCCESS);
        assert_int_equal(write_to(&r, 0, key, at), IBV_WC_SUCCESS);
        struct ibv_wc wc = invalidate(&r, by_peer, key);
        if (by_peer) { /* completions of both sides are in one queue, in any order */
            struct ibv_wc two[2] = {wc, rig_wait(&r)};
            const struct ibv_wc *recv = two[0].wr_id == 7 ? &two[0] : &two[1];
            assert_int_equal(recv->wr_id, 7);
            assert_int_equal(recv->status, IBV_WC_SUCCESS);
            assert_int_equal(recv->wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
            assert_int_equal(recv->invalidated_rkey, key);
        } else {
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
            assert_int_equal(wc.opcode, IBV_WC_LOCAL_INV);
        }
        memset(r.buf + RIG_BYTES - 8, 0x11 + by_peer, 8);
        assert_int_equal(write_to(&r, 0, key, at), IBV_WC_REM_ACCESS_ERR);
        assert_int_not_equal(r.buf[0], 0x11 + by_peer);
        reconnect(&r);
    }
    /* Regions are not a work request's to invalidate. */
    assert_int_equal(invalidate(&r, false, r.mr->rkey).status, IBV_WC_MW_BIND_ERR);
    reconnect(&r);
    assert_int_equal(write_to(&r, 0, r.mr->rkey, at), IBV_WC_SUCCESS);
    struct ibv_wc wc[2] = {invalidate(&r, true, r.mr->rkey), rig_wait(&r)};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(wc[i].status,
                         wc[i].wr_id == 7 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_ACCESS_ERR);
    reconnect(&r);
    assert_int_equal(write_to(&r, 0, r.mr->rkey, at), IBV_WC_SUCCESS);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

/* Each right of a window is looked at, and so is the QP's. */
static void case_66_window(void **state)
{
    (void)state;
    static const struct {
        enum ibv_wr_opcode opcode;
        unsigned right;
    } rows[] = {
        {IBV_WR_RDMA_WRITE,           IBV_ACCESS_REMOTE_WRITE },
        {IBV_WR_RDMA_READ,            IBV_ACCESS_REMOTE_READ  },
        {IBV_WR_ATOMIC_CMP_AND_SWP,   IBV_ACCESS_REMOTE_ATOMIC},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC},
    };
    const unsigned all =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    struct rig r;

    rig_connect(&r);
    struct ibv_mr *mr = window_region(&r);
    for (int type = 1; type <= 2; type++) {
        for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
            const bool granted = i % 2 == 0;
            struct ibv_mw *mw = window(&r, (enum ibv_mw_type)type);
            struct ibv_sge sge = rig_sge(&r, RIG_BYTES - 8, 8);
            struct ibv_send_wr wr = {.opcode = rows[i / 2].opcode, .sg_list = &sge, .num_sge = 1};
            uint32_t key;

            assert_int_equal(bind(&r, mw, mr, (uintptr_t)r.buf, 8,
                                  granted ? rows[i / 2].right : all & ~rows[i / 2].right, &key),
                             IBV_WC_SUCCESS);
            memset(r.buf, 0, 8);
            memset(r.buf + RIG_BYTES - 8, 0x33, 8);
            if (rows[i / 2].right == IBV_ACCESS_REMOTE_ATOMIC) {
                wr.wr.atomic.remote_addr = (uintptr_t)r.buf;
                wr.wr.atomic.rkey = key;
                wr.wr.atomic.swap = wr.wr.atomic.compare_add =
                    rows[i / 2].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
            } else {
                wr.wr.rdma.remote_addr = (uintptr_t)r.buf;
                wr.wr.rdma.rkey = key;
            }
            assert_int_equal(run(&r, 0, wr).status,
                             granted ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
            if (!granted) {
                for (int k = 0; k < 8; k++)
                    assert_int_equal(r.buf[k], 0);
                reconnect(&r);
            }
            assert_int_equal(ibv_dealloc_mw(mw), 0);
        }
    }
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

/* What changes and what stays, for a peer with the key. */
static void rereg__each_change(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_pd *other = ibv_alloc_pd(r.ctx);
    struct ibv_mr *mr = ibv_reg_mr(r.pd, r.buf, 64, IBV_ACCESS_LOCAL_WRITE);
    const uint32_t key = mr->rkey;

    assert_int_equal(write_to(&r, 0, key, (uintptr_t)r.buf), IBV_WC_REM_ACCESS_ERR);
    reconnect(&r);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                                  IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITE),
                     0);
    assert_int_equal(mr->rkey, key);
    assert_int_equal(write_to(&r, 0, key, (uintptr_t)r.buf), IBV_WC_SUCCESS);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
    assert_ptr_equal(mr->pd, other);
    assert_int_equal(ibv_dealloc_pd(other), EBUSY);
    assert_int_equal(write_to(&r, 0, key, (uintptr_t)r.buf), IBV_WC_REM_ACCESS_ERR);
    reconnect(&r);
    assert_int_equal(ibv_rereg_mr(mr,
                                  IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION |
                                      IBV_REREG_MR_CHANGE_ACCESS,
                                  r.pd, r.buf + 64, 32, IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITE),
                     0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    assert_ptr_equal(mr->addr, r.buf + 64);
    assert_int_equal(mr->length, 32);
    assert_int_equal(mr->lkey, mr->rkey);
    assert_int_not_equal(mr->rkey, key);
    memset(r.buf + RIG_BYTES - 8, 0x44, 8);
    assert_int_equal(write_to(&r, 0, mr->rkey, (uintptr_t)r.buf + 64), IBV_WC_SUCCESS);
    assert_int_equal(r.buf[64], 0x44);
    assert_int_equal(write_to(&r, 0, key, (uintptr_t)r.buf + 72), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(r.buf[72], 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

static void rereg__refused(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r);
    char *hole = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(munmap(hole, 4096), 0);
    struct ibv_mr *mr = ibv_reg_mr(r.pd, r.buf, 64, IBV_ACCESS_LOCAL_WRITE);
    const struct {
        int flags;
        struct ibv_pd *pd;
        void *addr;
        size_t length;
        int access, err;
    } rows[] = {
        {0,                               r.pd, r.buf, 8, 0,                        EINVAL},
        {1 << 3,                          r.pd, r.buf, 8, 0,                        EINVAL},
        {IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL,  8, 0,                        EINVAL},
        {IBV_REREG_MR_CHANGE_TRANSLATION, NULL, r.buf, 0, 0,                        EINVAL},
        {IBV_REREG_MR_CHANGE_TRANSLATION, NULL, r.buf, 8, IBV_ACCESS_LOCAL_WRITE,   EINVAL},
        {IBV_REREG_MR_CHANGE_TRANSLATION, NULL, hole,  8, 0,                        EFAULT},
        {IBV_REREG_MR_CHANGE_PD,          NULL, NULL,  0, 0,                        EINVAL},
        {IBV_REREG_MR_CHANGE_ACCESS,      NULL, NULL,  0, REMOTE_WRITE,             EINVAL},
        {IBV_REREG_MR_CHANGE_ACCESS,      NULL, NULL,  0, IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
        {IBV_REREG_MR_CHANGE_ACCESS,      NULL, NULL,  0, 1 << 15,                  EINVAL},
    };
    struct ibv_mr before = *mr;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        assert_int_equal(ibv_rereg_mr(mr, rows[i].flags, rows[i].pd, rows[i].addr, rows[i].length,
                                      rows[i].access),
                         IBV_REREG_MR_ERR_INPUT);
        assert_int_equal(errno, rows[i].err);
        assert_memory_equal(mr, &before, sizeof(before));
    }
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

/* SENDs of it are zeros, and what is READ or received into it vanishes. */
static void null_mr__zeros_and_nowhere(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_mr *null = ibv_alloc_null_mr(r.pd);
    assert_non_null(null);
    struct ibv_sge sge[2] = {
        rig_sge(&r, 0, 8), {.addr = 0, .length = 5000, .lkey = null->lkey}
    };
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sge, .num_sge = 2};

    memset(r.buf, 0x66, RIG_BYTES);
    wr.wr.rdma.remote_addr = (uintptr_t)r.buf + 8192;
    wr.wr.rdma.rkey = r.mr->rkey;
    assert_int_equal(run(&r, 0, wr).status, IBV_WC_SUCCESS);
    for (unsigned i = 0; i < 6000; i++)
        assert_int_equal(r.buf[8192 + i], i < 8 || i >= 5008 ? 0x66 : 0);
    wr.opcode = IBV_WR_RDMA_READ;
    memset(r.buf + 8192, 0x12, 8);
    assert_int_equal(run(&r, 0, wr).status, IBV_WC_SUCCESS);
    assert_int_equal(r.buf[7], 0x12);
    assert_int_equal(r.buf[8], 0x66);
    assert_int_equal(write_to(&r, 0, null->rkey, 0), IBV_WC_REM_ACCESS_ERR); /* no peer's */
    assert_int_equal(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
                     IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(ibv_dealloc_pd(r.pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(null), 0);
    rig_close(&r);
}

enum { ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

/* All addresses in one region: memory may come later; what is not there, or may not be written,
 * is an error of who asks for it, and not the end of the program. */
/* A peer's packet would end the program otherwise. */
static void reg__what_cannot_be_used_so(void **state)
{
    (void)state;
    struct rig r;
    static const char constant[] = "constant";
    const int write = IBV_ACCESS_LOCAL_WRITE, read = IBV_ACCESS_REMOTE_READ;
    int file = memfd_create("short", MFD_CLOEXEC);

    rig_open(&r);
    assert_int_equal(ftruncate(file, 4096), 0);
    char *none = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *some = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *eof = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_int_equal(mprotect(some, 4096, PROT_READ), 0);
    const struct {
        void *addr;
        size_t length;
        int access, err;
    } rows[] = {
        {(void *)(uintptr_t)constant, sizeof(constant), write, EFAULT},
        {(void *)(uintptr_t)constant, sizeof(constant), read,  0     },
        {none,                        8192,             0,     EFAULT},
        {none,                        8192,             read,  EFAULT},
        {none + 4095,                 1,                write, EFAULT},
        {some,                        8192,             write, EFAULT},
        {some + 4095,                 2,                write, EFAULT},
        {some,                        8192,             read,  0     },
        {some + 4096,                 4096,             write, 0     },
        {eof,                         8192,             read,  EFAULT},
        {eof,                         4097,             write, EFAULT},
        {eof,                         4096,             write, 0     },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        struct ibv_mr *mr = ibv_reg_mr(r.pd, rows[i].addr, rows[i].length, rows[i].access);
        if ((mr != NULL) != (rows[i].err == 0) || errno != rows[i].err)
            fail_msg("row %zu: %p, %s", i, (void *)mr, strerror(errno));
        if (mr == NULL)
            continue;
        errno = 0;
        if (rows[i].access == read) { /* as it is asked for later */
            assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, write),
                             IBV_REREG_MR_ERR_INPUT);
            assert_int_equal(errno, EFAULT);
        }
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    munmap(none, 8192);
    munmap(some, 8192);
    munmap(eof, 8192);
    close(file);
    rig_close(&r);
}

static void on_demand__implicit(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    /* Only on demand. msync(2), by which the library looks, takes these for nothing at all. */
    for (size_t less = 0; less < 4096; less += 1365) {
        errno = 0;
        assert_null(ibv_reg_mr(r.pd, NULL, SIZE_MAX - less, ALL_RIGHTS));
        assert_int_equal(errno, EFAULT);
    }
    struct ibv_mr *mr = ibv_reg_mr(r.pd, NULL, SIZE_MAX, ALL_RIGHTS | IBV_ACCESS_ON_DEMAND);
    assert_non_null(mr);
    char *later = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(later + 4096, 4096, PROT_READ), 0);
    memset(r.buf + RIG_BYTES - 8, 0x21, 8);
    assert_int_equal(write_to(&r, 0, mr->rkey, (uintptr_t)later), IBV_WC_SUCCESS);
    assert_int_equal(later[7], 0x21);
    const uint64_t bad[] = {(uintptr_t)later + 4096, (uintptr_t)later + 4092, 0, 8, UINT64_MAX - 7,
                            UINT64_MAX - 100,        UINT64_C(1) << 62};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(write_to(&r, 0, mr->rkey, bad[i]), IBV_WC_REM_ACCESS_ERR);
        reconnect(&r);
    }
    assert_int_equal(later[4092], 0);
    assert_int_equal(munmap(later, 8192), 0);
    assert_int_equal(write_to(&r, 0, mr->rkey, (uintptr_t)later), IBV_WC_REM_ACCESS_ERR);
    reconnect(&r);
    struct ibv_sge sge = {(uintptr_t)later, 8, mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(run(&r, 0, wr).status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

static void advise__prefetch(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r);
    struct ibv_pd *other = ibv_alloc_pd(r.ctx);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(r.pd, page, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    struct ibv_mr *ro = ibv_reg_mr(r.pd, page, 8192, IBV_ACCESS_ON_DEMAND);
    assert_int_equal(munmap(page + 4096, 4096), 0);
    const struct {
        struct ibv_pd *pd;
        int advice;
        uint32_t flags;
        uint64_t offset;
        uint32_t length, lkey, num;
        int err;
    } rows[] = {
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        0,    4096, mr->lkey,     1, 0         },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,    IBV_ADVISE_MR_FLAG_FLUSH, 8,    100,  mr->lkey,     1,
         0                                                                                                               },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, 8,    100,  mr->lkey,
         1,                                                                                                    0         },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        0,    4096, ro->lkey,     1, 0         },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        0,    0,    mr->lkey,     1, 0         },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,    0,                        0,    4096, ro->lkey,     1, EPERM     },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        4096, 8,    mr->lkey,     1, EFAULT    },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        8190, 8,    mr->lkey,     1, EFAULT    },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        0,    8,    mr->lkey ^ 1, 1, EINVAL    },
        {other, IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        0,    8,    mr->lkey,     1, EINVAL    },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH,          2,                        0,    8,    mr->lkey,     1, EINVAL    },
        {r.pd,  IBV_ADVISE_MR_ADVICE_PREFETCH,          0,                        0,    8,    mr->lkey,     0, EINVAL    },
        {r.pd,  99,                                     0,                        0,    8,    mr->lkey,     1, EOPNOTSUPP},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_sge sge = {(uintptr_t)page + rows[i].offset, rows[i].length, rows[i].lkey};

        assert_int_equal(ibv_advise_mr(rows[i].pd, (enum ibv_advise_mr_advice)rows[i].advice,
                                       rows[i].flags, &sge, rows[i].num),
                         rows[i].err);
    }
    unsigned char there;
    assert_int_equal(mincore(page, 4096, &there), 0);
    assert_int_equal(there & 1, 1);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(ro), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    munmap(page, 4096);
    rig_close(&r);
}

static void device_memory__copies_and_writes(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_alloc_dm_attr attr = {.length = 4096};
    char back[16];

    rig_connect(&r);
    struct ibv_dm *dm = ibv_alloc_dm(r.ctx, &attr);
    assert_non_null(dm);
    struct ibv_mr *mr = ibv_reg_dm_mr(r.pd, dm, 64, 128, ALL_RIGHTS | IBV_ACCESS_ZERO_BASED);
    assert_non_null(mr);
    assert_int_equal(ibv_memcpy_to_dm(dm, 64, "0123456789abcdef", 16), 0);
    memset(r.buf + RIG_BYTES - 8, 'x', 8);
    assert_int_equal(write_to(&r, 0, mr->rkey, 4), IBV_WC_SUCCESS);
    assert_int_equal(ibv_memcpy_from_dm(back, dm, 64, 16), 0);
    assert_memory_equal(back, "0123xxxxxxxxcdef", 16);
    assert_int_equal(write_to(&r, 0, mr->rkey, 121), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_free_dm(dm), EBUSY);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, r.buf, 8, 0),
                     IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
        IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_free_dm(dm), 0);
    rig_close(&r);
}

/* Objects of a parent domain are the protection domain's; neither goes before them. */
static void parent_domain__is_its_domain(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_td_init_attr td_attr = {0};

    rig_connect(&r);
    struct ibv_td *td = ibv_alloc_td(r.ctx, &td_attr);
    assert_non_null(td);
    struct ibv_parent_domain_init_attr attr = {.pd = r.pd, .td = td};
    struct ibv_pd *domain = ibv_alloc_parent_domain(r.ctx, &attr);
    assert_non_null(domain);
    assert_int_equal(ibv_dealloc_td(td), EBUSY);
    struct ibv_mr *mr = ibv_reg_mr(domain, r.buf, 64, ALL_RIGHTS);
    assert_int_equal(write_to(&r, 0, mr->rkey, (uintptr_t)r.buf), IBV_WC_SUCCESS);
    assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    struct ibv_qp *qp = ibv_create_qp(domain, &init);
    assert_ptr_equal(qp->pd, domain);
    assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    struct ibv_srq_init_attr srq_init = {
        .attr = {.max_wr = 4, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(domain, &srq_init);
    assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    struct ibv_ah_attr ah_attr = rig_rtr_attr(&r, 0).ah_attr;
    struct ibv_ah *ah = ibv_create_ah(domain, &ah_attr);
    assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    struct ibv_mw *mw = ibv_alloc_mw(domain, IBV_MW_TYPE_2);
    assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    struct ibv_cq_init_attr_ex cq_attr = {
        .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(r.ctx, &cq_attr);
    assert_non_null(cq);
    assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    cq_attr.parent_domain = r.pd;
    errno = 0;
    assert_null(ibv_create_cq_ex(r.ctx, &cq_attr));
    assert_int_equal(errno, EINVAL);
    attr = (struct ibv_parent_domain_init_attr){.pd = domain};
    struct ibv_pd *nested = ibv_alloc_parent_domain(r.ctx, &attr);
    assert_non_null(nested);
    assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
    assert_int_equal(ibv_dealloc_pd(nested), 0);
    assert_int_equal(ibv_dealloc_pd(domain), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_22),
        cmocka_unit_test(case_22__zero_based),
        cmocka_unit_test(case_25),
        cmocka_unit_test(case_26),
        cmocka_unit_test(case_27),
        cmocka_unit_test(case_66_window),
        cmocka_unit_test(rereg__each_change),
        cmocka_unit_test(rereg__refused),
        cmocka_unit_test(null_mr__zeros_and_nowhere),
        cmocka_unit_test(reg__what_cannot_be_used_so),
        cmocka_unit_test(on_demand__implicit),
        cmocka_unit_test(advise__prefetch),
        cmocka_unit_test(device_memory__copies_and_writes),
        cmocka_unit_test(parent_domain__is_its_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
