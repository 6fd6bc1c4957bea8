/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_placement.c: FLUSH and ATOMIC WRITE between two queue pairs of one process on the
 * loopback device, through the real library and real packets: ways to post, what lands, what is
 * refused, and that nobody sees half of eight bytes.
 */
#include <pthread.h>
#include <stdlib.h>

#include "live_rig.h"
#include "verbs/verbs_newer.h"

enum {
    AREA = 4096,
    ROUNDS = 500,
    RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | NEWER_ACCESS_FLUSH_GLOBAL,
    QP_RIGHTS = IBV_ACCESS_REMOTE_WRITE | NEWER_ACCESS_FLUSH_GLOBAL | NEWER_ACCESS_FLUSH_PERSISTENT,
};

struct pair {
    struct rig r;
    struct ibv_qp_ex *ex;
    struct ibv_mr *mr; /* the first AREA bytes, may be flushed */
};

static void connect_to(struct rig *r, unsigned side, unsigned access)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
    struct ibv_qp_attr rtr = rig_rtr_attr(r, r->qp[1 - side]->qp_num), rts = rig_rts_attr();

    rtr.max_dest_rd_atomic = rts.max_rd_atomic = 4;
    assert_int_equal(ibv_modify_qp(r->qp[side], &init, rig_init_mask), 0);
    assert_int_equal(ibv_modify_qp(r->qp[side], &rtr, rig_rtr_mask), 0);
    assert_int_equal(ibv_modify_qp(r->qp[side], &rts, rig_rts_mask), 0);
}

/* access: what the peer's QP grants. */
static void setup(struct pair *p, unsigned access)
{
    struct rig *r = &p->r;

    rig_open(r);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_init_attr_ex init = {
            .qp_type = IBV_QPT_RC,
            .send_cq = r->cq,
            .recv_cq = r->cq,
            .cap = rig_qp_init(r).cap,
            .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
            .pd = r->pd,
            .send_ops_flags =
                IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | NEWER_QP_EX_WITH_FLUSH,
        };
        init.cap.max_inline_data = 0;
        r->qp[i] = ibv_create_qp_ex(r->ctx, &init);
        assert_non_null(r->qp[i]);
    }
    connect_to(r, 0, 0);
    connect_to(r, 1, access);
    p->ex = ibv_qp_to_qp_ex(r->qp[0]);
    p->mr = ibv_reg_mr(r->pd, r->buf, AREA, RIGHTS);
    assert_non_null(p->mr);
}

static void teardown(struct pair *p)
{
    assert_int_equal(ibv_dereg_mr(p->mr), 0);
    rig_close(&p->r);
}

static void add_flush(struct pair *p, uint32_t rkey, uint64_t at, size_t len, uint8_t type,
                      uint8_t level)
{
    ((union qp_newest *)(void *)p->ex)->newest.wr_flush(p->ex, rkey, at, len, type, level);
}

static void start(struct pair *p, uint64_t wr_id)
{
    ibv_wr_start(p->ex);
    p->ex->wr_id = wr_id;
    p->ex->wr_flags = IBV_SEND_SIGNALED;
}

static struct ibv_wc flush(struct pair *p, uint32_t rkey, uint64_t at, size_t len, uint8_t type,
                           uint8_t level)
{
    start(p, 5);
    add_flush(p, rkey, at, len, type, level);
    assert_int_equal(ibv_wr_complete(p->ex), 0);
    return rig_wait(&p->r);
}

static struct ibv_wc store(struct pair *p, uint32_t rkey, uint64_t at, uint64_t value)
{
    start(p, 6);
    ibv_wr_atomic_write(p->ex, rkey, at, &value);
    assert_int_equal(ibv_wr_complete(p->ex), 0);
    return rig_wait(&p->r);
}

/* A log entry as programs write it: the record, a FLUSH, then the pointer that makes it valid. */
static void placement__record_then_pointer(void **state)
{
    (void)state;
    struct pair p;
    const uint64_t pointer = 0x0123456789abcdef;

    setup(&p, QP_RIGHTS);
    struct rig *r = &p.r;
    struct ibv_sge sge = rig_sge(r, AREA, 2000);
    const uint64_t base = (uintptr_t)r->buf;
    memset(r->buf + AREA, 0x5a, 2000);
    start(&p, 1);
    ibv_wr_rdma_write(p.ex, p.mr->rkey, base);
    ibv_wr_set_sge_list(p.ex, 1, &sge);
    p.ex->wr_id = 2;
    add_flush(&p, p.mr->rkey, base, 2000, NEWER_FLUSH_GLOBAL, NEWER_FLUSH_RANGE);
    p.ex->wr_id = 3;
    p.ex->wr_flags |= IBV_SEND_FENCE;
    ibv_wr_atomic_write(p.ex, p.mr->rkey, base + 4088, &pointer);
    p.ex->wr_id = 4;
    add_flush(&p, p.mr->rkey, 0, 0, NEWER_FLUSH_GLOBAL, NEWER_FLUSH_MR);
    assert_int_equal(ibv_wr_complete(p.ex), 0);
    static const int want[] = {IBV_WC_RDMA_WRITE, NEWER_WC_FLUSH, IBV_WC_ATOMIC_WRITE,
                               NEWER_WC_FLUSH};
    for (uint64_t i = 0; i < 4; i++) {
        struct ibv_wc wc = rig_wait(r);

        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i + 1);
        assert_int_equal(wc.opcode, want[i]);
    }
    assert_memory_equal(r->buf, r->buf + AREA, 2000);
    assert_memory_equal(r->buf + 4088, &pointer, 8);
    teardown(&p);
}

static struct ibv_wc post_store(struct pair *p, struct ibv_sge *sge, int num_sge, unsigned flags)
{
    struct ibv_send_wr *bad,
        wr = {
            .opcode = IBV_WR_ATOMIC_WRITE,
            .send_flags = IBV_SEND_SIGNALED | flags,
            .sg_list = sge,
            .num_sge = num_sge,
            .wr.rdma = {.remote_addr = (uintptr_t)p->r.buf + 64, .rkey = p->mr->rkey},
    };

    assert_int_equal(ibv_post_send(p->r.qp[0], &wr, &bad), 0);
    return rig_wait(&p->r);
}

static void atomic_write__by_ibv_post_send(void **state)
{
    (void)state;
    struct pair p;
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_ATOMIC_WRITE};

    setup(&p, QP_RIGHTS);
    struct ibv_sge sge[2] = {rig_sge(&p.r, AREA, 3), rig_sge(&p.r, AREA + 3, 5)};
    memcpy(p.r.buf + AREA, "in order", 8);
    struct ibv_wc wc = post_store(&p, sge, 2, 0);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_ATOMIC_WRITE);
    assert_memory_equal(p.r.buf + 64, "in order", 8);
    assert_int_equal(ibv_post_send(p.r.qp[0], &wr, &bad), EINVAL);
    wr.sg_list = sge;
    wr.num_sge = 1; /* 3 bytes */
    assert_int_equal(ibv_post_send(p.r.qp[0], &wr, &bad), EINVAL);
    sge[0].length = 8;
    wr.send_flags = IBV_SEND_INLINE; /* the QP has room for none */
    assert_int_equal(ibv_post_send(p.r.qp[0], &wr, &bad), EINVAL);
    sge[0].lkey ^= 1;
    assert_int_equal(post_store(&p, sge, 1, 0).status, IBV_WC_LOC_PROT_ERR);
    teardown(&p);
}

/* Each ends the connection: what the peer says of it. */
static void placement__refused_by_the_peer(void **state)
{
    (void)state;
    static const struct {
        unsigned qp, region;
        bool is_store;
        uint64_t at; /* of the region */
        size_t len;
        uint8_t type, level;
        int want;
    } rows[] = {
        {QP_RIGHTS,                 RIGHTS,                 false, 0,    AREA,     1, 0, IBV_WC_SUCCESS        },
        {QP_RIGHTS,                 RIGHTS,                 false, 0,    AREA + 1, 1, 0, IBV_WC_REM_ACCESS_ERR },
        {QP_RIGHTS,                 RIGHTS,                 false, 0,    8,        2, 0, IBV_WC_REM_ACCESS_ERR },
        {QP_RIGHTS,                 RIGHTS,                 false, 0,    0,        3, 1, IBV_WC_REM_ACCESS_ERR },
        {NEWER_ACCESS_FLUSH_GLOBAL, RIGHTS,                 false, 0,    8,        2, 0, IBV_WC_REM_INV_REQ_ERR},
        {IBV_ACCESS_REMOTE_WRITE,   RIGHTS,                 false, 0,    8,        1, 0, IBV_WC_REM_INV_REQ_ERR},
        {QP_RIGHTS,                 IBV_ACCESS_LOCAL_WRITE, false, 0,    8,        1, 0, IBV_WC_REM_ACCESS_ERR },
        {QP_RIGHTS,                 IBV_ACCESS_LOCAL_WRITE, false, 0,    0,        1, 1, IBV_WC_REM_ACCESS_ERR },
        {QP_RIGHTS,                 RIGHTS,                 true,  4088, 0,        0, 0, IBV_WC_SUCCESS        },
        {QP_RIGHTS,                 RIGHTS,                 true,  4096, 0,        0, 0, IBV_WC_REM_ACCESS_ERR },
        {QP_RIGHTS,                 RIGHTS,                 true,  4,    0,        0, 0, IBV_WC_REM_INV_REQ_ERR},
        {NEWER_ACCESS_FLUSH_GLOBAL, RIGHTS,                 true,  8,    0,        0, 0, IBV_WC_REM_INV_REQ_ERR},
        {QP_RIGHTS,                 IBV_ACCESS_REMOTE_READ, true,  8,    0,        0, 0, IBV_WC_REM_ACCESS_ERR },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pair p;

        setup(&p, rows[i].qp);
        struct ibv_mr *mr = ibv_reg_mr(p.r.pd, p.r.buf, AREA, (int)rows[i].region);
        assert_non_null(mr);
        uint64_t at = (uintptr_t)p.r.buf + rows[i].at;
        struct ibv_wc wc = rows[i].is_store
                               ? store(&p, mr->rkey, at, UINT64_MAX)
                               : flush(&p, mr->rkey, at, rows[i].len, rows[i].type, rows[i].level);
        if ((int)wc.status != rows[i].want)
            fail_msg("row %zu: %s", i, ibv_wc_status_str(wc.status));
        if (rows[i].is_store && rows[i].want != IBV_WC_SUCCESS)
            for (unsigned k = 0; k < AREA + 8; k++)
                assert_int_equal(p.r.buf[k], 0);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        teardown(&p);
    }
}

/* Memory that survives a loss of power is what nobody here has: refused when it is asked for. */
static void persistence__refused(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_alloc_dm_attr attr = {.length = 64};
    const unsigned persistent = IBV_ACCESS_LOCAL_WRITE | NEWER_ACCESS_FLUSH_PERSISTENT;

    rig_open(&r);
    errno = 0;
    assert_null(ibv_reg_mr(r.pd, r.buf, 64, (int)persistent));
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_null(ibv_reg_mr(r.pd, NULL, SIZE_MAX, (int)(persistent | IBV_ACCESS_ON_DEMAND)));
    assert_int_equal(errno, EOPNOTSUPP);
    struct ibv_dm *dm = ibv_alloc_dm(r.ctx, &attr);
    assert_non_null(dm);
    errno = 0;
    assert_null(ibv_reg_dm_mr(r.pd, dm, 0, 64, persistent | IBV_ACCESS_ZERO_BASED));
    assert_int_equal(errno, EOPNOTSUPP);
    struct ibv_mr *mr =
        ibv_reg_dm_mr(r.pd, dm, 0, 64, NEWER_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_ZERO_BASED);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_free_dm(dm), 0);
    mr = ibv_reg_mr(r.pd, r.buf, 64, NEWER_ACCESS_FLUSH_GLOBAL);
    assert_non_null(mr);
    errno = 0;
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, (int)persistent),
                     IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

static void flush__of_memory_on_demand(void **state)
{
    (void)state;
    struct pair p;

    setup(&p, QP_RIGHTS);
    struct ibv_mr *mr = ibv_reg_mr(p.r.pd, NULL, SIZE_MAX, RIGHTS | IBV_ACCESS_ON_DEMAND);
    assert_non_null(mr);
    uint64_t at = (uintptr_t)p.r.buf;
    assert_int_equal(store(&p, mr->rkey, at, 99).status, IBV_WC_SUCCESS);
    assert_int_equal(p.r.buf[0], 99);
    assert_int_equal(flush(&p, mr->rkey, at, 8, 1, 0).status, IBV_WC_SUCCESS);
    assert_int_equal(flush(&p, mr->rkey, 0, 0, 1, 1).status, IBV_WC_SUCCESS);
    assert_int_equal(store(&p, mr->rkey, 8, 99).status, IBV_WC_REM_ACCESS_ERR); /* a hole */
    assert_int_equal(ibv_dereg_mr(mr), 0);
    teardown(&p);
}

struct watch {
    const uint64_t *cell;
    _Atomic bool stop;
    uint64_t torn; /* a value that nobody wrote */
    uint64_t back; /* a value that was there before one already seen */
};

static void *watcher(void *arg)
{
    struct watch *w = arg;
    uint64_t last = 0;

    while (!w->stop) {
        uint64_t now = __atomic_load_n(w->cell, __ATOMIC_ACQUIRE);
        uint32_t low = (uint32_t)now;

        if ((uint32_t)(now >> 32) != low && w->torn == 0)
            w->torn = now;
        if (low < (uint32_t)last && w->back == 0)
            w->back = now;
        last = now;
    }
    return NULL;
}

/* Both halves of each value are the same number, and numbers grow: whoever looks sees that. */
static void atomic_write__nobody_sees_half(void **state)
{
    (void)state;
    struct pair p;
    pthread_t thread;

    setup(&p, QP_RIGHTS);
    struct watch w = {.cell = (const uint64_t *)(const void *)(p.r.buf + 128)};
    assert_int_equal(pthread_create(&thread, NULL, watcher, &w), 0);
    for (uint64_t i = 1; i <= ROUNDS; i++)
        assert_int_equal(store(&p, p.mr->rkey, (uintptr_t)w.cell, i << 32 | i).status,
                         IBV_WC_SUCCESS);
    w.stop = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(w.torn, 0);
    assert_int_equal(w.back, 0);
    assert_int_equal(*w.cell, (uint64_t)ROUNDS << 32 | ROUNDS);
    teardown(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placement__record_then_pointer),
        cmocka_unit_test(atomic_write__by_ibv_post_send),
        cmocka_unit_test(placement__refused_by_the_peer),
        cmocka_unit_test(persistence__refused),
        cmocka_unit_test(flush__of_memory_on_demand),
        cmocka_unit_test(atomic_write__nobody_sees_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
