/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limits.c: a NIC whose tables are made for few objects, as those of a simulated fabric are:
 * what it was made for works, one more is refused, and no number or key reaches beyond a table.
 */
#include <errno.h>

#include "objects.h"

#include "nic/roce/roce_qp.h"

enum { SLOT = 1, SLOTS = 2, QPS = 3, MRS = 2, RD_ATOMIC = 3, GRANTED = 4 /* of three */ };

struct small {
    struct nic *nic;
    struct qp_init init;
    struct train scratch;
    uint8_t area[64];
};

static int small_create(void **state)
{
    static struct small s;
    struct nic_config config = {.seed = 3,
                                .max_qp = QPS,
                                .max_mr = MRS,
                                .max_rd_atomic = RD_ATOMIC,
                                .max_slots = SLOTS,
                                .train = &s.scratch};

    s = (struct small){
        .init = {.type = QP_TYPE_RC, .cap = {4, 1, 1, 1, 0}}
    };
    assert_int_equal(nic_create(&config, &s.nic), 0);
    assert_int_equal(nic_add_qpns(s.nic, SLOT), 0);
    assert_int_equal(mem_pd_create(s.nic, &s.init.pd), 0);
    assert_int_equal(cq_create(s.nic, 8, NULL, &s.init.send_cq), 0);
    s.init.recv_cq = s.init.send_cq;
    *state = &s;
    return 0;
}

static int small_destroy(void **state)
{
    struct small *s = *state;

    assert_int_equal(cq_destroy(s->init.send_cq), 0);
    assert_int_equal(mem_pd_destroy(s->init.pd), 0);
    nic_destroy(s->nic);
    return 0;
}

static void drop(struct qp *qp)
{
    qp_unlink(qp);
    qp_free(qp);
}

static void nic_create__qpns_up_to_the_limit(void **state)
{
    struct small *s = *state;
    struct qp *qp[GRANTED], *more;

    for (unsigned i = 0; i < GRANTED; i++) {
        assert_int_equal(qp_create(s->nic, &s->init, &qp[i]), 0);
        assert_int_equal(qp[i]->qpn >> QPN_SLOT_BITS, SLOT);
        assert_in_range(qp[i]->qpn & (QPN_PER_SLOT - 1), 0, GRANTED - 1);
        assert_ptr_equal(nic_find_qp(s->nic, qp[i]->qpn), qp[i]);
    }
    assert_true(nic_out_of_qpns(s->nic));
    assert_int_equal(qp_create(s->nic, &s->init, &more), -ENOMEM);
    drop(qp[2]);
    assert_false(nic_out_of_qpns(s->nic));
    assert_int_equal(qp_create(s->nic, &s->init, &qp[2]), 0);
    for (unsigned i = 0; i < GRANTED; i++)
        drop(qp[i]);
}

/* Numbers of packets are the peer's: none may look behind a table. */
static void nic_find_qp__beyond_the_tables(void **state)
{
    static const uint32_t qpn[] = {
        SLOT << QPN_SLOT_BITS | GRANTED,
        SLOT << QPN_SLOT_BITS | (QPN_PER_SLOT - 1),
        SLOTS << QPN_SLOT_BITS,
        (QPN_SLOTS - 1) << QPN_SLOT_BITS,
        0xffffff,
        0, /* a slot within the limit that was not added */
    };
    const struct small *s = *state;

    for (size_t i = 0; i < sizeof(qpn) / sizeof(qpn[0]); i++)
        assert_null(nic_find_qp(s->nic, qpn[i]));
}

static void mem_reg__up_to_the_limit(void **state)
{
    struct small *s = *state;
    struct mr *mr[MRS], *more;
    uint8_t *addr;

    for (unsigned i = 0; i < MRS; i++)
        assert_int_equal(
            mem_reg(s->init.pd, s->area, sizeof(s->area), (uintptr_t)s->area, 0, &mr[i]), 0);
    assert_int_equal(mem_reg(s->init.pd, s->area, 8, 0, 0, &more), -ENOMEM);
    for (uint32_t high = 0; high <= UINT16_MAX; high++) { /* every index that a key can name */
        uint32_t key = high << 16 | (mr[0]->key & 0xffff);
        bool known = key == mr[0]->key || key == mr[1]->key;

        assert_int_equal(mem_check(s->nic, s->init.pd, key, (uintptr_t)s->area, 8, 0, 0, &addr),
                         known ? MEM_OK : MEM_BAD_KEY);
    }
    for (unsigned i = 0; i < MRS; i++) {
        assert_int_equal(mem_mr_revoke(mr[i]), 0);
        mem_mr_free(mr[i]);
    }
}

static void qp_modify__rd_atomic_up_to_the_limit(void **state)
{
    static const struct {
        uint8_t dest, own;
        int err;
    } rows[] = {
        {0,             0,             0      },
        {GRANTED,       GRANTED,       0      },
        {GRANTED + 1,   0,             -EINVAL},
        {MAX_RD_ATOMIC, 0,             -EINVAL},
        {0,             GRANTED + 1,   -EINVAL},
        {GRANTED,       MAX_RD_ATOMIC, -EINVAL},
    };
    struct small *s = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_qp_attr a = objects_attr(QP_STATE_INIT);
        struct qp *qp;
        int err;

        assert_int_equal(qp_create(s->nic, &s->init, &qp), 0);
        assert_int_equal(qp_modify(qp, &a, INIT_MASK), 0);
        a = objects_attr(QP_STATE_RTR);
        a.max_dest_rd_atomic = rows[i].dest;
        err = qp_modify(qp, &a, RTR_MASK);
        a = objects_attr(QP_STATE_RTS);
        a.max_rd_atomic = rows[i].own;
        if (err == 0)
            err = qp_modify(qp, &a, RTS_MASK);
        assert_int_equal(err, rows[i].err);
        drop(qp);
    }
}

/* As many replies as can be agreed and as many again; the ring goes round, in order. */
static void replay_queue__as_deep_as_the_limit(void **state)
{
    struct small *s = *state;
    struct qp *qp;

    assert_int_equal(qp_create(s->nic, &s->init, &qp), 0);
    qp->resp.reply_head = qp->resp.reply_tail = UINT32_MAX - 2;
    for (uint32_t i = 0; i < 2 * GRANTED; i++) {
        struct reply r = {.psn = psn_make(i), .replayed = i % 2 != 0};
        assert_true(replay_queue(qp, &r));
    }
    struct reply more = {.psn = psn_make(99)};
    assert_false(replay_queue(qp, &more));
    assert_int_equal(replay_count(&qp->resp, true, false), GRANTED);
    assert_int_equal(replay_count(&qp->resp, false, false), GRANTED);
    for (uint32_t i = 0; i < 2 * GRANTED; i++)
        assert_int_equal(qp->resp.reply[(UINT32_MAX - 2 + i) & (2 * GRANTED - 1)].psn.v, i);
    for (uint32_t i = 0; i < 2 * GRANTED; i++)
        replay_save_atomic(qp, psn_make(i), 0, i);
    assert_int_equal(qp->resp.atomic[GRANTED - 1].original, 2 * GRANTED - 1);
    responder_clear(qp);
    assert_int_equal(qp->resp.depth, GRANTED);
    assert_int_equal(qp->resp.reply_tail, 0);
    for (uint32_t i = 0; i < GRANTED; i++)
        assert_false(qp->resp.atomic[i].valid);
    drop(qp);
}

/* A type that answers no READ has no room for any. */
static void qp_create__takes_what_its_type_needs(void **state)
{
    struct small *s = *state;
    struct qp_init init = s->init;
    struct qp *qp;

    init.type = QP_TYPE_UD;
    assert_int_equal(qp_create(s->nic, &init, &qp), 0);
    assert_int_equal(qp->resp.depth, 0);
    drop(qp);
}

/* What an idle QP with a queue of one request takes, and one that is asked; the fabric has
 * thousands of them. Off, congestion control takes none of it. */
static void qp_create__is_small(void **state)
{
    struct small *s = *state;
    struct qp_init init = s->init;
    struct qp *qp;
    size_t fixed = sizeof(struct qp) + 2 * sizeof(struct reply) + sizeof(struct saved_atomic) +
                   sizeof(struct nic_sge);
    size_t slot = sizeof(struct send_wqe) + sizeof(struct nic_sge);

    assert_true(sizeof(struct qp) <= 744);
    assert_true(fixed + slot <= 1024);
    init.cap = (struct nic_qp_cap){0, 0, 1, 1, 0};
    assert_int_equal(qp_create(s->nic, &init, &qp), 0);
    assert_null(qp->congestion);
    assert_ptr_equal(qp->tx_path, &qp->attr.path);
    assert_null(qp->sq.slab);
    assert_null(qp->rq.slab);
    assert_int_equal(wq_post_recv(qp, &(struct nic_recv_wr){0}), -EINVAL); /* RESET */
    struct nic_qp_attr a = objects_attr(QP_STATE_INIT);
    assert_int_equal(qp_modify(qp, &a, INIT_MASK), 0);
    assert_int_equal(wq_post_recv(qp, &(struct nic_recv_wr){0}), -ENOMEM);
    assert_false(wq_recv_take(qp));
    drop(qp);
}

/* With it on there is room for it behind the QP, of all types but UD. */
static void qp_create__with_congestion_control(void **state)
{
    static const struct {
        enum qp_type type;
        bool on;
    } rows[] = {
        {QP_TYPE_RC, true },
        {QP_TYPE_UC, true },
        {QP_TYPE_UD, false},
    };
    struct small *s = *state;
    struct small on;
    struct nic_config config = s->nic->config;

    on = (struct small){.init = s->init};
    config.congestion.algorithm = "dcqcn-hw";
    assert_int_equal(nic_create(&config, &on.nic), 0);
    assert_int_equal(nic_add_qpns(on.nic, SLOT), 0);
    assert_int_equal(mem_pd_create(on.nic, &on.init.pd), 0);
    assert_int_equal(cq_create(on.nic, 8, NULL, &on.init.send_cq), 0);
    on.init.recv_cq = on.init.send_cq;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct qp *qp;

        on.init.type = rows[i].type;
        assert_int_equal(qp_create(on.nic, &on.init, &qp), 0);
        assert_int_equal(qp->congestion != NULL, rows[i].on);
        assert_ptr_equal(qp->tx_path, rows[i].on ? &qp->congestion->path : &qp->attr.path);
        if (rows[i].on) { /* nothing lies over anything else */
            memset(qp->congestion, 0xff, sizeof(*qp->congestion));
            for (uint32_t r = 0; r < 2 * qp->resp.depth; r++)
                assert_int_equal(qp->resp.reply[r].packets, 0);
        }
        drop(qp);
    }
    void *p = &on;
    small_destroy(&p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, small_create, small_destroy)
    const struct CMUnitTest tests[] = {
        TEST(nic_create__qpns_up_to_the_limit),
        TEST(nic_find_qp__beyond_the_tables),
        TEST(mem_reg__up_to_the_limit),
        TEST(qp_modify__rd_atomic_up_to_the_limit),
        TEST(replay_queue__as_deep_as_the_limit),
        TEST(qp_create__takes_what_its_type_needs),
        TEST(qp_create__is_small),
        TEST(qp_create__with_congestion_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
