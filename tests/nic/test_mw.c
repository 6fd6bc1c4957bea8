/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mw.c: memory windows: which binds are taken, whom a bound window serves, and what ends it.
 */
#include <errno.h>
#include <stdlib.h>

#include "objects.h"
#include "window.h"

enum {
    AREA = 4096,
    REMOTE = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC,
};

struct fixture {
    struct objects o;
    struct pd *other_pd;
    struct qp *other_qp; /* of o.pd */
    struct mr *mr;       /* all of area */
    struct mw *mw[3];    /* by enum mw_type */
    uint8_t area[AREA];
};

static const uint64_t va = 0x10000; /* how the region's first byte is named */

static struct qp *another_qp(struct fixture *f, struct pd *pd)
{
    struct qp_init init = {
        .type = QP_TYPE_RC,
        .pd = pd,
        .send_cq = f->o.scq,
        .recv_cq = f->o.rcq,
        .cap = {4, 4, 1, 1, 0}
    };
    struct qp *qp;

    assert_int_equal(qp_create(f->o.nic, &init, &qp), 0);
    return qp;
}

static void drop_qp(struct qp *qp)
{
    qp_unlink(qp);
    qp_free(qp);
}

static struct mr *reg(struct fixture *f, struct pd *pd, unsigned access)
{
    struct mr *mr;

    assert_int_equal(mem_reg(pd, f->area, AREA, va, access, &mr), 0);
    return mr;
}

static void drop_mr(struct mr *mr)
{
    assert_int_equal(mem_mr_revoke(mr), 0);
    mem_mr_free(mr);
}

static void drop_mw(struct mw *mw)
{
    mw_revoke(mw);
    mw_free(mw);
}

static int setup(void **state)
{
    static struct fixture f;
    const struct objects_init in = {
        .cap = {8, 8, 2, 2, 0},
          .cqe = 32
    };

    memset(&f, 0, sizeof(f));
    objects_create(&f.o, &in);
    assert_int_equal(mem_pd_create(f.o.nic, &f.other_pd), 0);
    f.other_qp = another_qp(&f, f.o.pd);
    f.mr = reg(&f, f.o.pd, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
    assert_int_equal(mw_create(f.o.pd, MW_TYPE_1, &f.mw[MW_TYPE_1]), 0);
    assert_int_equal(mw_create(f.o.pd, MW_TYPE_2, &f.mw[MW_TYPE_2]), 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    drop_mw(f->mw[MW_TYPE_1]);
    drop_mw(f->mw[MW_TYPE_2]);
    if (f->mr != NULL)
        drop_mr(f->mr);
    if (f->other_qp != NULL)
        drop_qp(f->other_qp);
    assert_int_equal(mem_pd_destroy(f->other_pd), 0);
    objects_destroy(&f->o);
    return 0;
}

/* What a peer of qp gets with the window's key. */
static enum mem_verdict look(const struct fixture *f, const struct qp *qp, uint32_t key,
                             uint64_t at, uint64_t n, unsigned need)
{
    uint8_t *addr = NULL;

    return mem_check(f->o.nic, qp->pd, key, at, n, need, qp->qpn, &addr);
}

static void mw_create__types(void **state)
{
    struct fixture *f = *state;
    struct mw *mw;

    assert_int_equal(mw_create(f->o.pd, (enum mw_type)0, &mw), -EINVAL);
    assert_int_equal(mw_create(f->o.pd, (enum mw_type)3, &mw), -EINVAL);
    for (int type = MW_TYPE_1; type <= MW_TYPE_2; type++) {
        const uint32_t key = mw_key(f->mw[type]);

        assert_int_equal(look(f, f->o.qp, key, va, 1, 0), MEM_BAD_KEY); /* not bound */
        assert_int_equal(look(f, f->o.qp, key, 0, 1, 0), MEM_BAD_KEY);
    }
    assert_int_equal(mem_pd_destroy(f->o.pd), -EBUSY);
}

/* Regions and windows share the places of the key table. */
static void mw_create__table_full(void **state)
{
    struct fixture *f = *state;
    struct mr **mr = calloc(MAX_MR, sizeof(*mr));
    struct mw *mw;
    int n = 0;

    assert_non_null(mr);
    while (mem_reg(f->o.pd, f->area, AREA, va, 0, &mr[n]) == 0)
        n++;
    assert_int_equal(mw_create(f->o.pd, MW_TYPE_1, &mw), -ENOMEM);
    drop_mr(mr[--n]);
    assert_int_equal(mw_create(f->o.pd, MW_TYPE_1, &mw), 0);
    drop_mw(mw);
    while (n > 0)
        drop_mr(mr[--n]);
    free(mr);
}

enum target { OURS, NO_BIND, READ_ONLY, FLUSHABLE, ZERO_BASED, OTHER_PD, NULL_MR, WINDOW, NOTHING };

static const struct bind_row {
    const char *name;
    enum target target;
    uint64_t at, length;
    unsigned access;
    bool good[3]; /* by type */
} bind_rows[] = {
    {"all",                     OURS,       va,            AREA,       REMOTE,                     {0, 1, 1}},
    {"part",                    OURS,       va + 8,        8,          ACCESS_REMOTE_READ,         {0, 1, 1}},
    {"last byte",               OURS,       va + AREA - 1, 1,          ACCESS_REMOTE_WRITE,        {0, 1, 1}},
    {"no rights",               OURS,       va,            8,          0,                          {0, 1, 1}},
    {"local write is nothing",  OURS,       va,            8,          ACCESS_LOCAL_WRITE,         {0, 1, 1}},
    {"flush",                   FLUSHABLE,  va,            8,          ACCESS_FLUSH_GLOBAL,        {0, 1, 1}},
    {"read of a read-only one", READ_ONLY,  va,            8,          ACCESS_REMOTE_READ,         {0, 1, 1}},
 /* IBA o10-37.2.40 */
    {"nothing of a region",     OURS,       va,            0,          REMOTE,                     {0, 1, 0}},
    {"nothing of nothing",      NOTHING,    0,             0,          0,                          {0, 1, 0}},
 /* IBA o10-36.2.2 */
    {"zero-based",              OURS,       va + 16,       8,          REMOTE | ACCESS_ZERO_BASED, {0, 0, 1}},
 /* IBA C10-75 */
    {"before it",               OURS,       va - 1,        8,          0,                          {0, 0, 0}},
    {"beyond it",               OURS,       va + 1,        AREA,       0,                          {0, 0, 0}},
    {"wrapping",                OURS,       va + 8,        UINT64_MAX, 0,                          {0, 0, 0}},
    {"far from it",             OURS,       0,             8,          0,                          {0, 0, 0}},
 /* IBA C10-73 */
    {"no right to bind",        NO_BIND,    va,            8,          ACCESS_REMOTE_READ,         {0, 0, 0}},
 /* IBA C10-74 */
    {"write of a read-only",    READ_ONLY,  va,            8,          ACCESS_REMOTE_WRITE,        {0, 0, 0}},
    {"atomic of a read-only",   READ_ONLY,  va,            8,          ACCESS_REMOTE_ATOMIC,       {0, 0, 0}},
    {"flush of what is not",    OURS,       va,            8,          ACCESS_FLUSH_GLOBAL,        {0, 0, 0}},
    {"persistence",             FLUSHABLE,  va,            8,          ACCESS_FLUSH_PERSISTENT,    {0, 0, 0}},
    {"zero-based region",       ZERO_BASED, 0,             8,          ACCESS_REMOTE_READ,         {0, 0, 0}},
    {"case 26: another domain", OTHER_PD,   va,            8,          ACCESS_REMOTE_READ,         {0, 0, 0}},
    {"null region",             NULL_MR,    va,            8,          ACCESS_REMOTE_READ,         {0, 0, 0}},
    {"another window",          WINDOW,     va,            8,          ACCESS_REMOTE_READ,         {0, 0, 0}},
    {"no region",               NOTHING,    va,            8,          ACCESS_REMOTE_READ,         {0, 0, 0}},
};

/* The window follows the bind when it is taken, and stays as it was when not. */
static void bind_one(struct fixture *f, const struct bind_row *r, const struct mr *mr, int type)
{
    struct mw *mw;

    assert_int_equal(mw_create(f->o.pd, (enum mw_type)type, &mw), 0);
    const uint32_t before = mw_key(mw), after = window_next_key(before);
    if (window_bind(f->o.qp, mw, mr, r->at, r->length, r->access) != r->good[type])
        fail_msg("%s, type %d", r->name, type);
    assert_int_equal(mw_key(mw), r->good[type] ? after : before);
    if (r->good[type] && r->length != 0) {
        const uint64_t first = r->access & ACCESS_ZERO_BASED ? 0 : r->at;

        assert_int_equal(look(f, f->o.qp, after, first, r->length, r->access & REMOTE), MEM_OK);
        assert_int_equal(look(f, f->o.qp, after, first + 1, r->length, 0), MEM_BAD_RANGE);
        assert_int_equal(look(f, f->o.qp, after, first - 1, 1, 0), MEM_BAD_RANGE);
        assert_int_equal(look(f, f->o.qp, before, first, 1, 0), MEM_BAD_KEY);
        for (unsigned right = ACCESS_REMOTE_WRITE; right <= ACCESS_REMOTE_ATOMIC; right <<= 1)
            assert_int_equal(look(f, f->o.qp, after, first, 1, right),
                             r->access & right ? MEM_OK : MEM_BAD_ACCESS);
        assert_int_equal(look(f, f->o.qp, after, first, 1, ACCESS_FLUSH_GLOBAL),
                         r->access & ACCESS_FLUSH_GLOBAL ? MEM_OK : MEM_BAD_ACCESS);
        uint8_t *addr;
        assert_int_equal(mem_check(f->o.nic, f->o.pd, after, first, 1, 0, 0, &addr), MEM_BAD_KEY);
        assert_int_equal(mem_check(f->o.nic, f->o.pd, after, first, 1, 0, f->o.qp->qpn, &addr),
                         MEM_OK);
        assert_ptr_equal(addr, f->area + (r->at - va));
    } else {
        assert_int_equal(look(f, f->o.qp, after, va, 1, 0), MEM_BAD_KEY);
        assert_int_equal(look(f, f->o.qp, before, va, 1, 0), MEM_BAD_KEY);
    }
    drop_mw(mw);
}

static void case_26_which_binds_are_taken(void **state)
{
    struct fixture *f = *state;
    struct mr *mr[NOTHING + 1] = {[OURS] = f->mr};

    mr[NO_BIND] = reg(f, f->o.pd, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ);
    mr[READ_ONLY] = reg(f, f->o.pd, ACCESS_MW_BIND);
    mr[FLUSHABLE] = reg(f, f->o.pd, ACCESS_FLUSH_GLOBAL | ACCESS_MW_BIND);
    mr[ZERO_BASED] = reg(f, f->o.pd, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND | ACCESS_ZERO_BASED);
    mr[OTHER_PD] = reg(f, f->other_pd, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
    assert_int_equal(mem_reg_null(f->o.pd, &mr[NULL_MR]), 0);
    mr[WINDOW] = &f->mw[MW_TYPE_1]->entry;
    for (size_t i = 0; i < sizeof(bind_rows) / sizeof(bind_rows[0]); i++)
        for (int type = MW_TYPE_1; type <= MW_TYPE_2; type++)
            bind_one(f, &bind_rows[i], mr[bind_rows[i].target], type);
    for (int i = NO_BIND; i <= NULL_MR; i++)
        drop_mr(mr[i]);
}

/* An XRC initiator takes no requests: what a peer asks for with a type 1 window comes by others. */
static void mw_execute__xrc_initiator(void **state)
{
    struct fixture *f = *state;

    f->o.qp->type = QP_TYPE_XRC_INI;
    assert_true(window_bind(f->o.qp, f->mw[MW_TYPE_1], f->mr, va, 8, ACCESS_REMOTE_READ));
    assert_false(window_bind(f->o.qp, f->mw[MW_TYPE_2], f->mr, va, 8, ACCESS_REMOTE_READ));
    f->o.qp->type = QP_TYPE_RC;
    assert_int_equal(look(f, f->o.qp, mw_key(f->mw[MW_TYPE_1]), va, 8, ACCESS_REMOTE_READ), MEM_OK);
}

/* IBA C10-72: neither does a QP of another domain bind the window. */
static void mw_execute__qp_of_another_domain(void **state)
{
    struct fixture *f = *state;
    struct qp *foreign = another_qp(f, f->other_pd);
    struct mr *mr = reg(f, f->other_pd, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);

    for (int type = MW_TYPE_1; type <= MW_TYPE_2; type++) {
        assert_false(window_bind(foreign, f->mw[type], f->mr, va, 8, ACCESS_REMOTE_READ));
        assert_false(window_bind(foreign, f->mw[type], mr, va, 8, ACCESS_REMOTE_READ));
    }
    drop_mr(mr);
    drop_qp(foreign);
}

/* The key says which window it is by all but its last eight bits. */
static void mw_execute__wrong_keys(void **state)
{
    struct fixture *f = *state;
    const uint32_t key = mw_key(f->mw[MW_TYPE_2]);
    struct send_wqe w = {.opcode = WR_BIND_MW,
                         .imm_or_inv = f->mr->key,
                         .remote_addr = va,
                         .compare_add = 8,
                         .swap = ACCESS_REMOTE_READ};

    for (unsigned bit = 8; bit < 32; bit++) {
        w.rkey = key ^ 1u << bit;
        if (w.rkey >> 16 == f->mr->key >> 16)
            w.rkey = f->mr->key;
        assert_false(mw_execute(f->o.qp, &w));
    }
    for (unsigned bit = 0; bit < 32; bit++) {
        w.rkey = key;
        w.imm_or_inv = f->mr->key ^ 1u << bit;
        assert_false(mw_execute(f->o.qp, &w));
    }
    w.imm_or_inv = f->mr->key;
    w.rkey = key ^ 0xff;
    assert_true(mw_execute(f->o.qp, &w));
    assert_int_equal(look(f, f->o.qp, key ^ 0xff, va, 8, ACCESS_REMOTE_READ), MEM_OK);
}

/* Type 1 serves the domain and is bound again as one likes; type 2 serves one QP, and is bound
 * again only after an invalidate (IBA o10-37.2.30). */
static void case_22_binding_again(void **state)
{
    struct fixture *f = *state;

    for (int type = MW_TYPE_1; type <= MW_TYPE_2; type++) {
        struct mw *mw = f->mw[type];

        assert_true(window_bind(f->o.qp, mw, f->mr, va, 8, ACCESS_REMOTE_READ));
        const uint32_t first = mw_key(mw);
        assert_int_equal(look(f, f->other_qp, first, va, 8, ACCESS_REMOTE_READ),
                         type == MW_TYPE_1 ? MEM_OK : MEM_BAD_KEY);
        assert_int_equal(window_bind(f->o.qp, mw, f->mr, va + 8, 8, ACCESS_REMOTE_WRITE),
                         type == MW_TYPE_1);
        if (type == MW_TYPE_2) {
            assert_int_equal(look(f, f->o.qp, first, va, 8, ACCESS_REMOTE_READ), MEM_OK);
            continue;
        }
        assert_int_equal(look(f, f->o.qp, first, va, 8, ACCESS_REMOTE_READ), MEM_BAD_KEY);
        assert_int_equal(look(f, f->o.qp, mw_key(mw), va, 8, 0), MEM_BAD_RANGE);
        assert_int_equal(look(f, f->o.qp, mw_key(mw), va + 8, 8, ACCESS_REMOTE_WRITE), MEM_OK);
        /* Of length 0: unbound, the key is no longer good, nor the next. */
        const uint32_t last = mw_key(mw);
        assert_true(window_bind(f->other_qp, mw, NULL, 0, 0, 0));
        assert_int_equal(look(f, f->o.qp, last, va + 8, 8, 0), MEM_BAD_KEY);
        assert_int_equal(look(f, f->o.qp, mw_key(mw), va + 8, 8, 0), MEM_BAD_KEY);
    }
}

static void case_27_who_invalidates_what(void **state)
{
    struct fixture *f = *state;
    struct mw *one = f->mw[MW_TYPE_1], *two = f->mw[MW_TYPE_2];
    struct qp *foreign = another_qp(f, f->other_pd);

    assert_false(mw_invalidate(f->o.qp, mw_key(two))); /* not bound */
    assert_true(window_bind(f->o.qp, one, f->mr, va, 8, ACCESS_REMOTE_READ));
    assert_true(window_bind(f->o.qp, two, f->mr, va, 8, ACCESS_REMOTE_READ));
    /* IBA o10-37.2.26 */
    assert_false(mw_invalidate(f->o.qp, mw_key(one)));
    assert_false(mw_invalidate(f->other_qp, mw_key(two)));
    assert_false(mw_invalidate(foreign, mw_key(two)));
    assert_false(mw_invalidate(f->o.qp, f->mr->key));
    for (unsigned bit = 0; bit < 32; bit++)
        assert_false(mw_invalidate(f->o.qp, mw_key(two) ^ 1u << bit));
    assert_int_equal(look(f, f->o.qp, mw_key(one), va, 8, ACCESS_REMOTE_READ), MEM_OK);
    assert_int_equal(look(f, f->o.qp, mw_key(two), va, 8, ACCESS_REMOTE_READ), MEM_OK);
    assert_true(mw_invalidate(f->o.qp, mw_key(two)));
    assert_int_equal(look(f, f->o.qp, mw_key(two), va, 8, ACCESS_REMOTE_READ), MEM_BAD_KEY);
    assert_false(mw_invalidate(f->o.qp, mw_key(two))); /* already */
    assert_true(window_bind(f->other_qp, two, f->mr, va, 8, ACCESS_REMOTE_READ));
    assert_int_equal(look(f, f->other_qp, mw_key(two), va, 8, ACCESS_REMOTE_READ), MEM_OK);
    drop_qp(foreign);
}

/* A region stays, and stays as it is, while a window is bound to it. */
static void case_25_region_with_a_window(void **state)
{
    struct fixture *f = *state;

    for (int type = MW_TYPE_1; type <= MW_TYPE_2; type++) {
        struct mr want = *f->mr, *out;
        struct mw *mw;

        assert_int_equal(mw_create(f->o.pd, (enum mw_type)type, &mw), 0);
        assert_true(window_bind(f->o.qp, mw, f->mr, va, 8, ACCESS_REMOTE_READ));
        assert_int_equal(mem_mr_revoke(f->mr), -EBUSY);
        assert_int_equal(mem_reg_again(f->mr, true, &want, &out), -EBUSY);
        assert_int_equal(look(f, f->o.qp, mw_key(mw), va, 8, ACCESS_REMOTE_READ), MEM_OK);
        assert_int_equal(look(f, f->o.qp, f->mr->key, va, 8, 0), MEM_OK);
        if (type == MW_TYPE_1)
            assert_true(window_bind(f->o.qp, mw, NULL, 0, 0, 0));
        else
            assert_true(mw_invalidate(f->o.qp, mw_key(mw)));
        assert_int_equal(f->mr->windows, 0);
        assert_true(window_bind(f->o.qp, mw, f->mr, va, 8, ACCESS_REMOTE_READ));
        drop_mw(mw); /* bound as it is */
        drop_mr(f->mr);
        f->mr = reg(f, f->o.pd, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
    }
}

/* The number of a QP that has gone may be another's: its windows go with it, others stay. */
static void mw_unbind_all__with_the_qp(void **state)
{
    struct fixture *f = *state;
    struct mw *mw[5];
    struct qp *qp = f->other_qp;

    for (int i = 0; i < 5; i++) {
        assert_int_equal(mw_create(f->o.pd, i == 4 ? MW_TYPE_1 : MW_TYPE_2, &mw[i]), 0);
        assert_true(window_bind(i == 3 ? f->o.qp : qp, mw[i], f->mr, va, 8, ACCESS_REMOTE_READ));
    }
    assert_int_equal(atomic_load(&qp->windows), 3);
    const uint32_t qpn = qp->qpn;
    drop_qp(qp);
    f->other_qp = NULL;
    for (int i = 0; i < 5; i++) {
        uint8_t *addr;

        assert_int_equal(mem_check(f->o.nic, f->o.pd, mw_key(mw[i]), va, 8, 0,
                                   i == 3 ? f->o.qp->qpn : qpn, &addr),
                         i < 3 ? MEM_BAD_KEY : MEM_OK);
        drop_mw(mw[i]);
    }
    assert_int_equal(f->mr->windows, 0);
}

/* A window that is going away is bound no more, by what waited in a queue. */
static void mw_revoke__ends_binds(void **state)
{
    struct fixture *f = *state;
    struct mw *mw;

    assert_int_equal(mw_create(f->o.pd, MW_TYPE_2, &mw), 0);
    assert_true(window_bind(f->o.qp, mw, f->mr, va, 8, ACCESS_REMOTE_READ));
    mw_revoke(mw);
    assert_int_equal(look(f, f->o.qp, mw_key(mw), va, 8, 0), MEM_BAD_KEY);
    assert_false(window_bind(f->o.qp, mw, f->mr, va, 8, ACCESS_REMOTE_READ));
    assert_false(mw_invalidate(f->o.qp, mw_key(mw)));
    assert_int_equal(f->mr->windows, 0);
    mw_free(mw);
}

static bool absent(void *to, const void *from, size_t n)
{
    (void)to;
    (void)from;
    (void)n;
    return false;
}

/* Memory on demand is asked for through a window as well. */
static void mw_check__on_demand(void **state)
{
    struct fixture *f = *state;
    struct mr *mr = reg(f, f->o.pd, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND | ACCESS_ON_DEMAND);
    struct mw *mw = f->mw[MW_TYPE_2];

    static const uint8_t data[8];
    const uint32_t qpn = f->o.qp->qpn;
    struct span span;

    f->o.nic->mem.store = absent;
    assert_true(window_bind(f->o.qp, mw, mr, va, 8, ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE));
    assert_int_equal(mem_read(f->o.nic, f->o.pd, mw_key(mw), va, 8, ACCESS_REMOTE_READ, qpn, &span),
                     MEM_OK);
    assert_int_equal(
        mem_write(f->o.nic, f->o.pd, mw_key(mw), va, data, 8, ACCESS_REMOTE_WRITE, qpn),
        MEM_BAD_RANGE);
    assert_true(mw_invalidate(f->o.qp, mw_key(mw)));
    drop_mr(mr);
    f->o.nic->mem.store = NULL;
}

static void no_train(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    (void)t;
    fail();
}

/* As work requests: in order with what else is posted, and a bad one fails the QP. */
static void wq_post_send__bind(void **state)
{
    struct fixture *f = *state;
    struct nic_sink sink = {.train = no_train};
    struct mw *mw = f->mw[MW_TYPE_2];
    const uint32_t key = window_next_key(mw_key(mw));
    struct nic_send_wr bind = {.wr_id = 1, .opcode = WR_BIND_MW, .flags = WR_SIGNALED};
    struct nic_send_wr inv = {.opcode = WR_LOCAL_INV, .flags = WR_SIGNALED, .imm_or_inv = key};

    bind.rkey = key;
    bind.imm_or_inv = f->mr->key;
    bind.remote_addr = va;
    bind.compare_add = 8;
    bind.swap = ACCESS_REMOTE_READ;
    static const struct {
        enum wc_status status;
        enum wc_opcode opcode;
    } want[] = {
        {WC_SUCCESS,      WC_BIND_MW  },
        {WC_SUCCESS,      WC_LOCAL_INV},
        {WC_MW_BIND_ERR,  WC_LOCAL_INV},
        {WC_WR_FLUSH_ERR, WC_BIND_MW  },
    };
    struct nic_wc wc;

    objects_bring(&f->o, QP_STATE_RTS);
    assert_int_equal(wq_post_send(f->o.qp, &bind), 0);
    for (inv.wr_id = 2; inv.wr_id <= 3; inv.wr_id++)
        assert_int_equal(wq_post_send(f->o.qp, &inv), 0);
    bind.wr_id = 4;
    assert_int_equal(wq_post_send(f->o.qp, &bind), 0);
    bind.flags |= WR_INLINE;
    assert_int_equal(wq_post_send(f->o.qp, &bind), -EINVAL);
    nic_output(f->o.nic, 1, &sink, 8);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(cq_poll(f->o.scq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, i + 1);
        assert_int_equal(wc.status, want[i].status);
        assert_int_equal(wc.opcode, want[i].opcode);
    }
    assert_int_equal(f->o.qp->state, QP_STATE_ERR);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(mw_create__types),
        CASE(mw_create__table_full),
        CASE(case_26_which_binds_are_taken),
        CASE(mw_execute__xrc_initiator),
        CASE(mw_execute__qp_of_another_domain),
        CASE(mw_execute__wrong_keys),
        CASE(case_22_binding_again),
        CASE(case_27_who_invalidates_what),
        CASE(case_25_region_with_a_window),
        CASE(mw_unbind_all__with_the_qp),
        CASE(mw_revoke__ends_binds),
        CASE(mw_check__on_demand),
        CASE(wq_post_send__bind),
    };

    return cmocka_run_group_tests_name("mw", tests, NULL, NULL);
}
