/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_output.c: unreliable QPs for whose peer the port has no room: they wait, others do not, and
 * nothing of what was posted is lost or done early.
 */
#include "objects.h"

enum { QPS = 3, DEPTH = 4, BYTES = 64 };

static const struct nic_path path = {
    .local = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
    .remote = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
    .hop_limit = 64,
};

/* QP i sends to QPN 100 + i. The last is UD, the others UC. */
struct fan {
    struct objects o; /* without its QP */
    struct qp *qp[QPS];
    struct nic_sink sink;
    bool full[QPS];
    unsigned asked[QPS], packets[QPS];
    uint64_t now;
    uint8_t memory[BYTES];
};

static bool fan_room(struct nic_sink *sink, uint64_t now_ns, const struct nic_path *p, uint32_t qpn)
{
    struct fan *f = (struct fan *)((char *)sink - offsetof(struct fan, sink));
    assert_in_range(qpn, 100, 100 + QPS - 1);
    assert_int_equal(now_ns, f->now);
    assert_memory_equal(&p->remote, &path.remote, sizeof(p->remote));
    f->asked[qpn - 100]++;
    return !f->full[qpn - 100];
}

static void fan_train(struct nic_sink *sink, const struct train *t)
{
    struct fan *f = (struct fan *)((char *)sink - offsetof(struct fan, sink));
    uint32_t i = t->packet[0].h.bth.dest_qp - 100;
    assert_in_range(i, 0, QPS - 1);
    assert_false(f->full[i]);
    f->packets[i] += t->packets;
}

static void bring(struct qp *qp, bool ud, uint32_t dest)
{
    struct nic_qp_attr attr = {.state = QP_STATE_INIT,
                               .port_num = 1,
                               .qkey = 1,
                               .path = path,
                               .path_mtu_bytes = 256,
                               .active_mtu_bytes = 256,
                               .dest_qpn = dest};
    unsigned mask = QP_ATTR_STATE;
    assert_int_equal(qp_modify(qp, &attr,
                               mask | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
                                   (ud ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS)),
                     0);
    attr.state = QP_STATE_RTR;
    assert_int_equal(
        qp_modify(qp, &attr,
                  mask |
                      (ud ? 0 : QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN)),
        0);
    attr.state = QP_STATE_RTS;
    assert_int_equal(qp_modify(qp, &attr, mask | QP_ATTR_SQ_PSN), 0);
}

static int setup(void **state)
{
    static struct fan f;
    const struct objects_init in = {
        .cap = {DEPTH, DEPTH, 1, 1, BYTES},
          .cqe = 64
    };
    f = (struct fan){
        .sink = {fan_train, fan_room},
          .now = 5
    };
    objects_create(&f.o, &in);
    qp_unlink(f.o.qp);
    qp_free(f.o.qp);
    f.o.qp = NULL;
    for (unsigned i = 0; i < QPS; i++) {
        bool ud = i == QPS - 1;
        struct qp_init init = {.type = ud ? QP_TYPE_UD : QP_TYPE_UC,
                               .pd = f.o.pd,
                               .send_cq = f.o.scq,
                               .recv_cq = f.o.rcq,
                               .cap = in.cap,
                               .sq_sig_all = true};
        assert_int_equal(qp_create(f.o.nic, &init, &f.qp[i]), 0);
        bring(f.qp[i], ud, 100 + i);
    }
    *state = &f;
    return 0;
}

static void drop_qp(struct fan *f, unsigned i)
{
    if (f->qp[i] == NULL)
        return;
    qp_unlink(f->qp[i]);
    qp_free(f->qp[i]);
    f->qp[i] = NULL;
}

static int teardown(void **state)
{
    struct fan *f = *state;
    for (unsigned i = 0; i < QPS; i++)
        drop_qp(f, i);
    objects_destroy(&f->o);
    return 0;
}

static void post_to(struct fan *f, unsigned i, uint32_t dest)
{
    struct nic_sge sge = {(uintptr_t)f->memory, 8, 0};
    struct nic_send_wr wr = {.wr_id = i,
                             .opcode = WR_SEND,
                             .flags = WR_INLINE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .path = &path,
                             .dest_qpn = dest,
                             .qkey = 1};
    assert_int_equal(wq_post_send(f->qp[i], &wr), 0);
}

static void post(struct fan *f, unsigned i)
{
    post_to(f, i, 100 + i);
}

static bool output(struct fan *f)
{
    return nic_output(f->o.nic, f->now, &f->sink, 16);
}

static unsigned completions(struct fan *f, unsigned i)
{
    struct nic_wc wc;
    unsigned n = 0;
    while (cq_poll(f->o.scq, 1, &wc) == 1) {
        assert_int_equal(wc.wr_id, i);
        n++;
    }
    return n;
}

static void output__waits_while_others_go_on(void **state)
{
    struct fan *f = *state;
    for (unsigned full = 0; full < QPS; full++) {
        unsigned other = (full + 1) % QPS;
        f->full[full] = true;
        post(f, full);
        assert_false(output(f)); /* it is not asked for again and again */
        assert_false(nic_has_output(f->o.nic));
        post(f, full); /* more of it changes nothing */
        post(f, other);
        assert_false(output(f));
        assert_int_equal(f->packets[other], 1);
        assert_int_equal(completions(f, other), 1);
        assert_int_equal(f->packets[full], 0);
        assert_int_equal(f->asked[full], 1);
        nic_retry(f->o.nic);
        assert_true(nic_has_output(f->o.nic));
        assert_false(output(f));
        assert_int_equal(f->asked[full], 2);
        f->full[full] = false;
        assert_false(output(f)); /* nobody said so */
        assert_int_equal(f->packets[full], 0);
        nic_retry(f->o.nic);
        output(f);
        assert_int_equal(f->packets[full], 2);
        assert_int_equal(completions(f, full), 2);
        memset(f->packets, 0, sizeof(f->packets));
        memset(f->asked, 0, sizeof(f->asked));
    }
}

static void output__who_waits_may_go(void **state)
{
    struct fan *f = *state;
    static const enum qp_state to[] = {QP_STATE_ERR, QP_STATE_RESET};
    for (unsigned i = 0; i < 2; i++) {
        struct nic_qp_attr attr = {.state = to[i]};
        f->full[i] = true;
        post(f, i);
        post(f, i);
        output(f);
        assert_int_equal(qp_modify(f->qp[i], &attr, QP_ATTR_STATE), 0);
        assert_int_equal(completions(f, i), to[i] == QP_STATE_ERR ? 2 : 0);
        nic_retry(f->o.nic);
        output(f);
        assert_int_equal(f->packets[i], 0);
    }
    f->full[2] = true;
    post(f, 2);
    output(f);
    drop_qp(f, 2);
    nic_retry(f->o.nic);
    assert_false(output(f));
}

static void output__without_room_to_ask_for(void **state)
{
    struct fan *f = *state;
    f->sink.room = NULL;
    post(f, 0);
    post(f, 2);
    nic_retry(f->o.nic);
    output(f);
    assert_int_equal(f->packets[0] + f->packets[2], 2);
}

/* What a port that knows slots sees: one train, one slot, and it is asked for each. */
struct slots {
    struct nic_sink sink;
    uint32_t asked, full;
    unsigned trains, packets[DEPTH];
    bool mixed; /* a train was also for another slot than the one asked for */
};

static bool slots_room(struct nic_sink *sink, uint64_t now_ns, const struct nic_path *p,
                       uint32_t qpn)
{
    struct slots *s = (struct slots *)((char *)sink - offsetof(struct slots, sink));
    (void)now_ns;
    (void)p;
    s->asked = qpn >> QPN_SLOT_BITS;
    return s->asked != s->full;
}

static void slots_train(struct nic_sink *sink, const struct train *t)
{
    struct slots *s = (struct slots *)((char *)sink - offsetof(struct slots, sink));
    /* No assert: the engine holds the lock of its QP. */
    for (unsigned i = 0; i < t->packets; i++)
        s->mixed = s->mixed || t->packet[i].h.bth.dest_qp >> QPN_SLOT_BITS != s->asked;
    s->packets[s->trains++ % DEPTH] = t->packets;
}

static void output__a_train_of_datagrams_is_for_one_slot(void **state)
{
    struct fan *f = *state;
    enum { NONE = 99 };
    static const struct {
        uint32_t qpn[DEPTH];
        uint32_t full;
        unsigned packets[DEPTH]; /* of each train; 0: no more */
    } rows[] = {
        {{0x4001, 0x4002, 0x7fff, 0x4001}, NONE, {4}         },
        {{0x4001, 0x8001, 0x4001, 0x8001}, NONE, {1, 1, 1, 1}},
        {{0x4001, 0x4001, 0x8001, 0x8002}, NONE, {2, 2}      },
        {{0x7fff, 0x8000, 0xbfff, 0xc000}, NONE, {1, 2, 1}   },
        {{0x4001, 0x4001, 0x8001, 0x4001}, 2,    {2}         }, /* order is kept */
        {{0x8001, 0x4001, 0x4001, 0x4001}, 2,    {0}         },
        {{0x4001, 0x404001, 0x4001, 2},    NONE, {1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slots s = {
            .sink = {slots_train, slots_room},
              .full = rows[i].full
        };
        for (unsigned k = 0; k < DEPTH; k++)
            post_to(f, 2, rows[i].qpn[k]);
        nic_output(f->o.nic, f->now, &s.sink, 16);
        unsigned sent = 0;
        assert_false(s.mixed);
        for (unsigned k = 0; k < DEPTH; k++) {
            assert_int_equal(s.packets[k], rows[i].packets[k]);
            sent += s.packets[k];
        }
        assert_int_equal(completions(f, 2), sent);
        s.full = NONE;
        nic_retry(f->o.nic);
        s.trains = 0;
        nic_output(f->o.nic, f->now, &s.sink, 16);
        assert_false(s.mixed);
        assert_int_equal(completions(f, 2), DEPTH - sent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        T(output__waits_while_others_go_on),
        T(output__who_waits_may_go),
        T(output__without_room_to_ask_for),
        T(output__a_train_of_datagrams_is_for_one_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
