/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_wq.c: what a post checks, when a slot is free again, what a completion says.
 */
#include "nic/wq.h"

#include <errno.h>

#include "objects.h"
#include "window.h"

enum { DEPTH = 4, INLINE = 64 };

static int create(void **state, const struct objects_init *in)
{
    static struct objects o;

    objects_create(&o, in);
    *state = &o;
    return 0;
}

static struct objects_init normal(void)
{
    return (struct objects_init){
        .cap = {DEPTH, DEPTH, 2, 2, INLINE},
          .cqe = 64
    };
}

static int setup(void **state)
{
    struct objects_init in = normal();

    return create(state, &in);
}

static int setup_sig_all(void **state)
{
    struct objects_init in = normal();

    in.sq_sig_all = true;
    in.cap.max_send_wr = 16;
    return create(state, &in);
}

static int teardown(void **state)
{
    objects_destroy(*state);
    return 0;
}

static int post(struct objects *o, uint64_t wr_id, unsigned flags)
{
    struct nic_send_wr wr = {.wr_id = wr_id, .opcode = WR_SEND, .flags = flags};

    return wq_post_send(o->qp, &wr);
}

static int post_recv(struct objects *o, uint64_t wr_id)
{
    struct nic_recv_wr wr = {.wr_id = wr_id};

    return wq_post_recv(o->qp, &wr);
}

/* What the roles do, with the lock that they hold. */
static void done(struct objects *o, enum wc_status status)
{
    lock_take(&o->qp->lock);
    wq_send_done(o->qp, status);
    lock_drop(&o->qp->lock);
}

/* IBA C10-22, IBA 10.3.1 */
static void case_1(void **state)
{
    static const struct {
        enum qp_state state;
        int recv, send;
    } rows[] = {
        {QP_STATE_RESET, -EINVAL, -EINVAL},
        {QP_STATE_INIT,  0,       -EINVAL},
        {QP_STATE_RTR,   0,       -EINVAL},
        {QP_STATE_RTS,   0,       0      },
        {QP_STATE_SQD,   0,       0      },
        {QP_STATE_SQE,   0,       0      },
        {QP_STATE_ERR,   0,       0      },
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        objects_bring(o, rows[i].state);
        assert_int_equal(post_recv(o, 1), rows[i].recv);
        assert_int_equal(post(o, 1, 0), rows[i].send);
        assert_int_equal(objects_step(o, QP_STATE_RESET), 0);
    }
}

/* depth 4, 6 posted: 4 run. A slot is free when a later completion has been polled, not before. */
static void case_3(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc[8];

    objects_bring(o, QP_STATE_RTS);
    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(post(o, i, i == 2 ? WR_SIGNALED : 0), i < DEPTH ? 0 : -ENOMEM);
    done(o, WC_SUCCESS);
    done(o, WC_SUCCESS);
    assert_int_equal(post(o, 9, 0), -ENOMEM); /* two are complete, but nobody has been told */
    done(o, WC_SUCCESS);
    assert_int_equal(post(o, 9, 0), -ENOMEM); /* told, but not polled */
    assert_int_equal(cq_poll(o->scq, 8, wc), 1);
    assert_int_equal(wc[0].wr_id, 2);
    for (uint64_t i = 10; i < 13; i++)
        assert_int_equal(post(o, i, 0), 0);
    assert_int_equal(post(o, 13, 0), -ENOMEM);
    assert_int_equal(o->qp->sq.tail - o->qp->sq.head, DEPTH);
}

static void wq_post_send__many_times_round(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc[8];
    uint64_t next = 0;

    objects_bring(o, QP_STATE_RTS);
    o->qp->sq.head = o->qp->sq.tail = UINT32_MAX - 5; /* indexes wrap */
    atomic_store(&o->qp->sq.freed, UINT32_MAX - 5);
    for (uint64_t round = 0; round < 50; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(post(o, next++, i == 2 ? WR_SIGNALED : 0), 0);
        for (int i = 0; i < 3; i++)
            done(o, WC_SUCCESS);
        assert_int_equal(cq_poll(o->scq, 8, wc), 1);
        assert_int_equal(wc[0].wr_id, next - 1);
    }
}

/* Three parts that are one byte too long together: refused, and the queue is as it was. */
static void case_7(void **state)
{
    struct objects *o = *state;
    uint8_t data[INLINE + 1] = {0};
    uint64_t a = (uintptr_t)data;
    struct nic_sge sge[3] = {
        {a,      21,              0},
        {a + 21, 21,              0},
        {a + 42, INLINE + 1 - 42, 0}
    };
    struct nic_send_wr wr = {.opcode = WR_SEND, .flags = WR_INLINE, .sg_list = sge, .num_sge = 3};

    objects_bring(o, QP_STATE_RTS);
    assert_int_equal(wq_post_send(o->qp, &wr), -EINVAL);
    sge[2].length = UINT32_MAX - 41; /* a 32-bit sum would be 0 */
    assert_int_equal(wq_post_send(o->qp, &wr), -EINVAL);
    assert_int_equal(o->qp->sq.tail, o->qp->sq.head);
    sge[2].length = INLINE - 42;
    assert_int_equal(wq_post_send(o->qp, &wr), 0);
    assert_int_equal(o->qp->sq.wqe[0].length, INLINE);
}

static void case_8(void **state)
{
    struct objects *o = *state;
    uint8_t data[INLINE];
    struct nic_wc wc;

    objects_bring(o, QP_STATE_RTS);
    for (uint32_t i = 0; i < INLINE; i++)
        data[i] = (uint8_t)(i + 1);
    for (uint32_t n = 0; n <= INLINE; n++) {
        struct nic_sge sge = {(uintptr_t)data, n, 0};
        struct nic_send_wr wr = {.opcode = WR_RDMA_WRITE,
                                 .flags = WR_INLINE | WR_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1};
        const struct send_wqe *w = &o->qp->sq.wqe[n % DEPTH];

        assert_int_equal(wq_post_send(o->qp, &wr), 0);
        assert_int_equal(w->length, n);
        assert_int_equal(w->num_sge, 0);
        assert_memory_equal(w->inline_data, data, n);
        done(o, WC_SUCCESS);
        assert_int_equal(cq_poll(o->scq, 1, &wc), 1);
    }
}

/* The buffer is the program's again on return, and its lkey is not looked at. */
static void case_9(void **state)
{
    struct objects *o = *state;
    uint8_t data[10] = "0123456789";
    struct nic_sge sge[] = {
        {(uintptr_t)data,     4, 0xdead},
        {0,                   0, 1     },
        {(uintptr_t)data + 4, 6, 7     }
    };
    struct nic_send_wr wr = {.opcode = WR_SEND, .flags = WR_INLINE, .sg_list = sge, .num_sge = 3};

    objects_bring(o, QP_STATE_RTS);
    assert_int_equal(wq_post_send(o->qp, &wr), 0);
    memset(data, 0xff, sizeof(data));
    memset(sge, 0xff, sizeof(sge));
    assert_memory_equal(o->qp->sq.wqe[0].inline_data, "0123456789", 10);
}

static void case_12(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc[16];

    objects_bring(o, QP_STATE_RTS);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(post(o, i, 0), 0);
    for (int i = 0; i < 8; i++)
        done(o, WC_SUCCESS);
    assert_int_equal(cq_poll(o->scq, 16, wc), 8);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(wc[i].wr_id, i);
}

static void case_13_opcode(void **state)
{
    static const struct {
        int opcode, err;
    } rows[] = {
        {99,               -EINVAL},
        {10,               -EINVAL},
        {11,               -EINVAL},
        {-1,               -EINVAL},
        {WR_LOCAL_INV,     0      },
        {WR_BIND_MW,       0      },
        {WR_SEND,          0      },
        {WR_SEND_WITH_IMM, 0      },
        {WR_SEND_WITH_INV, 0      },
        {13,               -EINVAL},
        {16,               -EINVAL},
        {WR_FLUSH,         -EINVAL}, /* of nothing */
        {WR_ATOMIC_WRITE,  0      },
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_send_wr wr = {.opcode = (enum wr_opcode)rows[i].opcode};

        for (int s = QP_STATE_RTS; s <= QP_STATE_ERR; s++) {
            objects_bring(o, (enum qp_state)s);
            assert_int_equal(wq_post_send(o->qp, &wr), rows[i].err);
            assert_int_equal(o->qp->sq.tail, rows[i].err == 0);
            assert_int_equal(objects_step(o, QP_STATE_RESET), 0);
        }
    }
}

/* Which opcodes each QP type takes: bit = opcode. */
static void wq_post_send__opcodes_of_each_type(void **state)
{
    enum {
        SEND = 1 << WR_SEND | 1 << WR_SEND_WITH_IMM,
        WRITE = 1 << WR_RDMA_WRITE | 1 << WR_RDMA_WRITE_WITH_IMM,
        UC = SEND | WRITE | 1 << WR_LOCAL_INV | 1 << WR_BIND_MW,
        RC = UC | 1 << WR_SEND_WITH_INV | 1 << WR_RDMA_READ | 1 << WR_ATOMIC_CMP_AND_SWP |
             1 << WR_ATOMIC_FETCH_AND_ADD | 1 << WR_FLUSH | 1 << WR_ATOMIC_WRITE,
        INI = RC & ~(1 << WR_SEND_WITH_INV | 1 << WR_LOCAL_INV),
    };
    static const struct {
        enum qp_type type;
        unsigned opcodes;
    } rows[] = {
        {QP_TYPE_RC,      RC  },
        {QP_TYPE_XRC_INI, INI },
        {QP_TYPE_UC,      UC  },
        {QP_TYPE_UD,      SEND},
        {QP_TYPE_GSI,     SEND},
        {QP_TYPE_XRC_TGT, 0   },
    };
    struct objects *o = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        o->qp->type = rows[i].type;
        for (int op = 0; op <= WR_ATOMIC_WRITE + 1; op++) {
            struct nic_sge sge = {0, 8, 0};
            struct nic_send_wr wr = {
                .opcode = (enum wr_opcode)op, .sg_list = &sge, .num_sge = 1, .swap = FLUSH_GLOBAL};
            bool ok = rows[i].opcodes >> op & 1;

            o->qp->state = QP_STATE_RTS;
            assert_int_equal(wq_post_send(o->qp, &wr), ok ? 0 : -EINVAL);
            wq_clear(o->qp);
        }
    }
    o->qp->type = QP_TYPE_RC;
}

/* The other limits, each just over and just at. */
static void wq_post_send__limits(void **state)
{
    static const uint32_t g = MAX_MESSAGE_BYTES;
    static const struct {
        enum wr_opcode opcode;
        unsigned flags;
        int num_sge;
        uint32_t length[2];
        uint64_t remote_addr;
        int err;
    } rows[] = {
        {WR_SEND,                 0,         0,           {0, 0},                   0, 0      },
        {WR_SEND,                 0,         2,           {1, 1},                   0, 0      },
        {WR_SEND,                 0,         3,           {0, 0},                   0, -EINVAL},
        {WR_SEND,                 0,         -1,          {0, 0},                   0, -EINVAL},
        {WR_SEND,                 WR_INLINE, MAX_SGE + 1, {0, 0},                   0, -EINVAL},
        {WR_RDMA_WRITE,           0,         1,           {g, 0},                   0, 0      },
        {WR_RDMA_WRITE,           0,         2,           {g - 1, 1},               0, 0      },
        {WR_RDMA_WRITE,           0,         1,           {g + 1, 0},               0, -EINVAL},
        {WR_RDMA_WRITE,           0,         2,           {g, 1},                   0, -EINVAL},
        {WR_RDMA_WRITE,           0,         2,           {UINT32_MAX, UINT32_MAX}, 0, -EINVAL},
        {WR_RDMA_WRITE,           0,         2,           {UINT32_MAX, 1},          0, -EINVAL}, /* a 32-bit sum would be 0 */
        {WR_RDMA_READ,            0,         0,           {0, 0},                   0, 0      },
        {WR_RDMA_READ,            0,         1,           {g, 0},                   0, 0      },
        {WR_RDMA_READ,            0,         1,           {g + 1, 0},               0, -EINVAL},
        {WR_RDMA_READ,            WR_INLINE, 1,           {8, 0},                   0, -EINVAL}, /* case 144 */
        {WR_RDMA_READ,            WR_INLINE, 0,           {0, 0},                   0, -EINVAL},
        {WR_ATOMIC_CMP_AND_SWP,   0,         1,           {8, 0},                   0, 0      },
        {WR_ATOMIC_CMP_AND_SWP,   0,         2,           {4, 4},                   0, 0      },
        {WR_ATOMIC_FETCH_AND_ADD, 0,         1,           {8, 0},                   4, 0      }, /* case 43: the responder's to refuse */
        {WR_ATOMIC_FETCH_AND_ADD, 0,         1,           {7, 0},                   0, -EINVAL},
        {WR_ATOMIC_FETCH_AND_ADD, 0,         1,           {9, 0},                   0, -EINVAL},
        {WR_ATOMIC_CMP_AND_SWP,   0,         0,           {0, 0},                   0, -EINVAL},
        {WR_ATOMIC_CMP_AND_SWP,   WR_INLINE, 1,           {8, 0},                   0, -EINVAL},
        {WR_ATOMIC_WRITE,         0,         0,           {0, 0},                   0, 0      },
        {WR_ATOMIC_WRITE,         0,         2,           {3, 5},                   0, 0      },
        {WR_ATOMIC_WRITE,         0,         1,           {8, 0},                   4, 0      },
        {WR_ATOMIC_WRITE,         0,         1,           {7, 0},                   0, -EINVAL},
        {WR_ATOMIC_WRITE,         0,         2,           {8, 1},                   0, -EINVAL},
        {WR_ATOMIC_WRITE,         0,         1,           {0, 0},                   0, -EINVAL},
        {WR_ATOMIC_WRITE,         0,         3,           {8, 0},                   0, -EINVAL},
        {WR_ATOMIC_WRITE,         WR_INLINE, 0,           {0, 0},                   0, -EINVAL},
    };
    struct objects *o = *state;

    objects_bring(o, QP_STATE_RTS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_sge sge[MAX_SGE + 1] = {
            {0, rows[i].length[0], 1},
            {0, rows[i].length[1], 2}
        };
        struct nic_send_wr wr = {.opcode = rows[i].opcode,
                                 .flags = rows[i].flags,
                                 .sg_list = sge,
                                 .num_sge = rows[i].num_sge,
                                 .remote_addr = rows[i].remote_addr};

        assert_int_equal(wq_post_send(o->qp, &wr), rows[i].err);
        assert_int_equal(o->qp->sq.tail, rows[i].err == 0);
        wq_clear(o->qp);
    }
}

static void wq_post_send__copies_everything(void **state)
{
    struct objects *o = *state;
    struct nic_sge sge[] = {
        {0x1000, 3, 7},
        {0x2000, 5, 8}
    };
    struct nic_send_wr wr = {.wr_id = 1,
                             .opcode = WR_RDMA_WRITE_WITH_IMM,
                             .flags = WR_FENCE | WR_SOLICITED | 1u << 7 | 1u << 30,
                             .sg_list = sge,
                             .num_sge = 2,
                             .imm_or_inv = 0x80000001,
                             .remote_addr = 0x123456789abcdef0,
                             .rkey = 0xcafe,
                             .compare_add = 11,
                             .swap = 12};
    struct send_wqe *w = &o->qp->sq.wqe[0];

    objects_bring(o, QP_STATE_RTS);
    w->numbered = true; /* left from an earlier life of the slot */
    w->packets = 9;
    assert_int_equal(wq_post_send(o->qp, &wr), 0);
    assert_int_equal(w->wr_id, 1);
    assert_int_equal(w->opcode, WR_RDMA_WRITE_WITH_IMM);
    assert_int_equal(w->flags, WR_FENCE | WR_SOLICITED);
    assert_int_equal(w->num_sge, 2);
    assert_int_equal(w->length, 8);
    assert_int_equal(w->imm_or_inv, 0x80000001);
    assert_int_equal(w->remote_addr, 0x123456789abcdef0);
    assert_int_equal(w->rkey, 0xcafe);
    assert_int_equal(w->compare_add, 11);
    assert_int_equal(w->swap, 12);
    assert_false(w->numbered);
    assert_int_equal(w->packets, 0);
    assert_memory_equal(w->sge, sge, sizeof(sge));
    assert_true(nic_has_output(o->nic));
}

static void wq_send_done__opcode_and_length(void **state)
{
    static const struct {
        enum wr_opcode wr;
        uint32_t length;
        enum wc_opcode wc;
    } rows[] = {
        {WR_RDMA_WRITE,           100,  WC_RDMA_WRITE  },
        {WR_RDMA_WRITE_WITH_IMM,  9,    WC_RDMA_WRITE  },
        {WR_SEND,                 1,    WC_SEND        },
        {WR_SEND_WITH_IMM,        2,    WC_SEND        },
        {WR_SEND_WITH_INV,        3,    WC_SEND        },
        {WR_RDMA_READ,            4000, WC_RDMA_READ   },
        {WR_ATOMIC_CMP_AND_SWP,   8,    WC_COMP_SWAP   },
        {WR_ATOMIC_FETCH_AND_ADD, 8,    WC_FETCH_ADD   },
        {WR_ATOMIC_WRITE,         8,    WC_ATOMIC_WRITE},
        {WR_FLUSH,                0,    WC_FLUSH       },
    };
    struct objects *o = *state;

    objects_bring(o, QP_STATE_RTS);
    for (uint64_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_sge sge = {0, rows[i].length, 0};
        struct nic_send_wr wr = {.wr_id = i,
                                 .opcode = rows[i].wr,
                                 .flags = WR_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .swap = FLUSH_GLOBAL};
        struct nic_wc wc;

        assert_int_equal(wq_post_send(o->qp, &wr), 0);
        done(o, WC_SUCCESS);
        memset(&wc, 0xa5, sizeof(wc));
        assert_int_equal(cq_poll(o->scq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.status, WC_SUCCESS);
        assert_int_equal(wc.opcode, rows[i].wc);
        assert_int_equal(wc.byte_len, rows[i].length);
        assert_int_equal(wc.qp_num, o->qp->qpn);
        assert_int_equal(wc.vendor_err, 0);
        assert_int_equal(wc.flags, 0);
    }
}

static void no_train(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    (void)t;
    fail();
}

/* LOCAL_INV needs no peer: the key is refused to peers from its completion on; one that names no
 * bound window any more fails the QP. */
static void case_27_local_inv(void **state)
{
    struct objects *o = *state;
    struct nic_sink sink = {.train = no_train};
    uint8_t area[8], *addr;
    struct mr *mr;
    struct mw *mw;
    struct nic_wc wc;

    assert_int_equal(mem_reg(o->pd, area, 8, 0, ACCESS_MW_BIND, &mr), 0);
    assert_int_equal(mw_create(o->pd, MW_TYPE_2, &mw), 0);
    assert_true(window_bind(o->qp, mw, mr, 0, 8, ACCESS_REMOTE_READ));
    const uint32_t key = mw_key(mw), from = o->qp->qpn;
    assert_int_equal(mem_check(o->nic, o->pd, key, 0, 8, ACCESS_REMOTE_READ, from, &addr), MEM_OK);
    objects_bring(o, QP_STATE_RTS);
    for (int round = 0; round < 2; round++) {
        struct nic_send_wr wr = {.opcode = WR_LOCAL_INV, .flags = WR_SIGNALED, .imm_or_inv = key};

        assert_int_equal(wq_post_send(o->qp, &wr), 0);
        nic_output(o->nic, 1, &sink, 8);
        assert_int_equal(cq_poll(o->scq, 1, &wc), 1);
        assert_int_equal(wc.status, round == 0 ? WC_SUCCESS : WC_MW_BIND_ERR);
        assert_int_equal(wc.opcode, WC_LOCAL_INV);
        assert_int_equal(o->qp->state, round == 0 ? QP_STATE_RTS : QP_STATE_ERR);
        assert_int_equal(mem_check(o->nic, o->pd, key, 0, 8, ACCESS_REMOTE_READ, from, &addr),
                         MEM_BAD_KEY);
    }
    mw_revoke(mw);
    mw_free(mw);
    mem_mr_revoke(mr);
    mem_mr_free(mr);
}

static void wq_send_done__errors_are_never_silent(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc[4];

    objects_bring(o, QP_STATE_RTS);
    assert_int_equal(post(o, 1, 0), 0);
    assert_int_equal(post(o, 2, 0), 0);
    done(o, WC_SUCCESS); /* unsignalled success: silent */
    done(o, WC_REM_ACCESS_ERR);
    assert_int_equal(cq_poll(o->scq, 4, wc), 1);
    assert_int_equal(wc[0].wr_id, 2);
    assert_int_equal(wc[0].status, WC_REM_ACCESS_ERR);
    assert_int_equal(atomic_load(&o->qp->sq.freed), 2);
}

/* A beacon: posted in ERR (or SQE) it comes back flushed, after all that was there before. */
static void case_35(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc[8];

    objects_bring(o, QP_STATE_RTS);
    assert_int_equal(post(o, 1, 0), 0);
    assert_int_equal(post_recv(o, 11), 0);
    assert_int_equal(objects_step(o, QP_STATE_ERR), 0);
    assert_int_equal(post(o, 2, 0), 0);
    assert_int_equal(post_recv(o, 12), 0);
    assert_int_equal(cq_poll(o->scq, 8, wc), 2);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(wc[i].wr_id, i + 1);
        assert_int_equal(wc[i].status, WC_WR_FLUSH_ERR);
    }
    assert_int_equal(cq_poll(o->rcq, 8, wc), 2);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(wc[i].wr_id, i + 11);
        assert_int_equal(wc[i].status, WC_WR_FLUSH_ERR);
        assert_int_equal(wc[i].qp_num, o->qp->qpn);
    }
    for (uint64_t i = 0; i < 6; i++) /* the depth counts in ERR, too */
        assert_int_equal(post(o, i, 0), i < DEPTH ? 0 : -ENOMEM);
    assert_int_equal(cq_poll(o->scq, 8, wc), DEPTH);
    assert_int_equal(post(o, 9, 0), 0);
}

static void wq_post_send__sqe_flushes(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc[4];

    objects_bring(o, QP_STATE_SQE);
    assert_int_equal(post(o, 5, 0), 0);
    assert_int_equal(post_recv(o, 6), 0); /* the receive side lives */
    assert_int_equal(cq_poll(o->scq, 4, wc), 1);
    assert_int_equal(wc[0].status, WC_WR_FLUSH_ERR);
    assert_int_equal(cq_poll(o->rcq, 4, wc), 0);
}

static void wq_post_recv__limits(void **state)
{
    static const struct {
        int num_sge, err;
    } rows[] = {
        {0,         0      },
        {1,         0      },
        {2,         0      },
        {3,         -EINVAL},
        {-1,        -EINVAL},
        {INT32_MAX, -EINVAL}
    };
    struct objects *o = *state;
    struct nic_sge sge[2] = {
        {0, UINT32_MAX, 0},
        {0, 2,          0}
    };

    objects_bring(o, QP_STATE_INIT);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_recv_wr wr = {.sg_list = sge, .num_sge = rows[i].num_sge};

        assert_int_equal(wq_post_recv(o->qp, &wr), rows[i].err);
    }
    assert_int_equal(o->qp->rq.wqe[2].length, UINT32_MAX); /* saturated, not wrapped */
    assert_int_equal(wq_recv_posted(o->qp), 3);
    assert_int_equal(post_recv(o, 4), 0);
    assert_int_equal(post_recv(o, 5), -ENOMEM);
    o->qp->type = QP_TYPE_XRC_INI;
    assert_int_equal(post_recv(o, 5), -EINVAL);
    o->qp->type = QP_TYPE_XRC_TGT;
    assert_int_equal(post_recv(o, 5), -EINVAL);
    o->qp->type = QP_TYPE_RC;
}

static void wq_recv_take__in_order_copied(void **state)
{
    struct objects *o = *state;
    struct nic_wc wc;

    objects_bring(o, QP_STATE_RTS);
    assert_false(wq_recv_take(o->qp));
    for (uint64_t i = 0; i < 30; i++) {
        struct nic_sge sge[2] = {
            {i,     10, 1},
            {i + 1, 20, 2}
        };
        struct nic_recv_wr wr = {.wr_id = i, .sg_list = sge, .num_sge = 2};
        struct nic_wc e = {
            .opcode = WC_RECV, .byte_len = 25, .flags = WC_WITH_IMM, .imm_or_inv = 9};

        assert_int_equal(wq_post_recv(o->qp, &wr), 0);
        assert_int_equal(wq_recv_posted(o->qp), 1);
        assert_true(wq_recv_take(o->qp));
        assert_int_equal(wq_recv_posted(o->qp), 0);
        assert_true(o->qp->recv.valid);
        assert_int_equal(o->qp->recv.length, 30);
        assert_int_equal(o->qp->recv.num_sge, 2);
        assert_memory_equal(o->qp->recv.sge, sge, sizeof(sge));
        wq_recv_done(o->qp, &e, false);
        assert_false(o->qp->recv.valid);
        assert_int_equal(cq_poll(o->rcq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.qp_num, o->qp->qpn);
        assert_int_equal(wc.byte_len, 25);
        assert_int_equal(wc.flags, WC_WITH_IMM);
        assert_int_equal(wc.imm_or_inv, 9);
    }
}

static void wq_recv_done__solicited_wakes(void **state)
{
    struct objects *o = *state;

    objects_bring(o, QP_STATE_RTS);
    for (int solicited = 0; solicited < 2; solicited++) {
        struct nic_wc e = {.opcode = WC_RECV};

        cq_arm(o->rcq, true);
        assert_int_equal(post_recv(o, 1), 0);
        assert_true(wq_recv_take(o->qp));
        wq_recv_done(o->qp, &e, solicited);
        assert_int_equal(nic_notify_next(o->nic) != NULL, solicited);
    }
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        CASE(case_1),
        CASE(case_3),
        CASE(wq_post_send__many_times_round),
        CASE(case_7),
        CASE(case_8),
        CASE(case_9),
        cmocka_unit_test_setup_teardown(case_12, setup_sig_all, teardown),
        CASE(case_13_opcode),
        CASE(wq_post_send__opcodes_of_each_type),
        CASE(wq_post_send__limits),
        CASE(wq_post_send__copies_everything),
        CASE(wq_send_done__opcode_and_length),
        CASE(case_27_local_inv),
        CASE(wq_send_done__errors_are_never_silent),
        CASE(case_35),
        CASE(wq_post_send__sqe_flushes),
        CASE(wq_post_recv__limits),
        CASE(wq_recv_take__in_order_copied),
        CASE(wq_recv_done__solicited_wakes),
    };

    return cmocka_run_group_tests_name("wq", tests, NULL, NULL);
}
