/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mcast.c: groups: who is in which, limits, and who gets what is sent to one.
 */
#include <errno.h>

#include "nic/mcast.h"
#include "objects.h"
#include "wire/opcode.h"

enum { QPS = 3, HEADER = 40, BYTES = 128 };

static const struct net_addr group4 = {
    {[10] = 0xff, [11] = 0xff, 239, 1, 2, 3}
};
static const struct net_addr group6 = {
    {0xff, 0x0e, [15] = 3}
};
static const struct net_addr here = {
    {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}
};
static const struct net_addr there = {
    {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}
};

struct fixture {
    struct objects o; /* its QP is RC */
    struct qp *ud[QPS];
    struct mr *mr;
    uint8_t memory[QPS][BYTES];
    struct nic_sink sink;
    uint32_t psn;
};

static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct fixture *f = (struct fixture *)((char *)sink - offsetof(struct fixture, sink));
    assert_int_equal(t->packet[0].h.bth.dest_qp, QPN_MULTICAST);
    f->psn = t->packet[0].h.bth.psn.v;
}

static void ready(struct qp *qp, uint32_t qkey)
{
    struct nic_qp_attr attr = {.state = QP_STATE_INIT, .port_num = 1, .qkey = qkey};
    unsigned mask = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY;
    assert_int_equal(qp_modify(qp, &attr, mask), 0);
    attr.state = QP_STATE_RTR;
    assert_int_equal(qp_modify(qp, &attr, QP_ATTR_STATE), 0);
    attr.state = QP_STATE_RTS;
    assert_int_equal(qp_modify(qp, &attr, QP_ATTR_STATE | QP_ATTR_SQ_PSN), 0);
}

static int setup(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof(f));
    f.sink.train = take_train;
    objects_create(&f.o, &(struct objects_init){
                             .cap = {4, 4, 1, 1, 0},
                               .cqe = 16
    });
    assert_int_equal(
        mem_reg(f.o.pd, f.memory, sizeof(f.memory), (uintptr_t)f.memory, ACCESS_LOCAL_WRITE, &f.mr),
        0);
    for (unsigned i = 0; i < QPS; i++) {
        struct qp_init init = {
            .type = QP_TYPE_UD,
            .pd = f.o.pd,
            .send_cq = f.o.scq,
            .recv_cq = f.o.rcq,
            .block_self_loopback = i == 0,
            .cap = {4, 4, 1, 1, 0}
        };
        assert_int_equal(qp_create(f.o.nic, &init, &f.ud[i]), 0);
        ready(f.ud[i], 7);
    }
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    f->o.nic->mcast.count = 0;
    for (unsigned i = 0; i < QPS; i++) {
        qp_unlink(f->ud[i]);
        qp_free(f->ud[i]);
    }
    mem_mr_revoke(f->mr);
    mem_mr_free(f->mr);
    objects_destroy(&f->o);
    return 0;
}

static void join(struct fixture *f, unsigned i, const struct net_addr *group)
{
    bool fresh;
    assert_int_equal(mcast_attach(f->o.nic, f->ud[i], group, &fresh), 0);
}

static void mcast_attach__and_detach(void **state)
{
    struct fixture *f = *state;
    struct nic *nic = f->o.nic;
    bool fresh;
    assert_int_equal(mcast_attach(nic, f->ud[0], &group4, &fresh), 0);
    assert_true(fresh);
    assert_int_equal(mcast_attach(nic, f->ud[0], &group4, &fresh), 0); /* again: nothing new */
    assert_false(fresh);
    assert_int_equal(mcast_attach(nic, f->ud[1], &group4, &fresh), 0);
    assert_true(fresh);
    assert_true(mcast_attached(nic, f->ud[0]));
    assert_int_equal(mcast_detach(nic, f->ud[0], &group4), 0);
    assert_false(mcast_attached(nic, f->ud[0]));
    assert_true(mcast_attached(nic, f->ud[1]));
    assert_int_equal(mcast_detach(nic, f->ud[1], &group4), 0);
    assert_int_equal(nic->mcast.count, 0);
}

static void mcast_attach__refused(void **state)
{
    struct fixture *f = *state;
    struct nic *nic = f->o.nic;
    static const struct net_addr none[] = {
        {{[10] = 0xff, [11] = 0xff, 223, 255, 255, 255}},
        {{[10] = 0xff, [11] = 0xff, 240, 0, 0, 1}},
        {{0xfe, 0x80, [15] = 1}},
        {{0}},
    };
    bool fresh;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(mcast_attach(nic, f->ud[0], &none[i], &fresh), -EINVAL);
    assert_int_equal(mcast_attach(nic, f->o.qp, &group4, &fresh), -EINVAL); /* RC */
    assert_int_equal(mcast_detach(nic, f->ud[0], &group4), -EINVAL);
    join(f, 1, &group4);
    assert_int_equal(mcast_detach(nic, f->ud[0], &group4), -EINVAL);
    for (uint8_t i = 1; i < MAX_MCAST_GROUPS; i++) {
        struct net_addr more = group6;
        more.b[14] = i;
        join(f, 0, &more);
    }
    assert_int_equal(mcast_attach(nic, f->ud[0], &group6, &fresh), -ENOMEM);
    assert_false(fresh);
    assert_int_equal(nic->mcast.count, MAX_MCAST_GROUPS);
    assert_int_equal(mcast_attach(nic, f->ud[2], &group4, &fresh), 0); /* not another group */
}

static void post_recvs(struct fixture *f)
{
    for (unsigned i = 0; i < QPS; i++) {
        struct nic_sge sge = {(uintptr_t)f->memory[i], BYTES, f->mr->key};
        struct nic_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
        assert_int_equal(wq_post_recv(f->ud[i], &wr), 0);
    }
}

static void arrive(struct fixture *f, const struct net_addr *src, const struct net_addr *dst,
                   uint32_t src_qp, uint32_t qkey)
{
    uint8_t payload[4] = {1, 2, 3, 4};
    struct rx_packet p = {
        .payload = payload, .payload_bytes = 4, .src = *src, .dst = *dst, .icrc_ok = true};
    p.h.bth = (struct bth){.opcode = opcode_make(SERVICE_UD, OP_SEND_ONLY),
                           .pkey = PKEY_DEFAULT,
                           .dest_qp = QPN_MULTICAST};
    p.h.deth = (struct deth){qkey, src_qp};
    nic_input(f->o.nic, 1, &p, 1);
}

/* Bits of the QPs that have received. */
static unsigned received(struct fixture *f)
{
    struct nic_wc wc;
    unsigned who = 0;
    while (cq_poll(f->o.rcq, 1, &wc) == 1) {
        assert_int_equal(wc.status, WC_SUCCESS);
        assert_int_equal(wc.byte_len, HEADER + 4);
        assert_int_equal(wc.qp_num, f->ud[wc.wr_id]->qpn);
        assert_int_equal(f->memory[wc.wr_id][HEADER + 3], 4);
        assert_int_equal(who & 1u << wc.wr_id, 0);
        who |= 1u << wc.wr_id;
    }
    return who;
}

static void nic_input__to_each_in_the_group(void **state)
{
    struct fixture *f = *state;
    post_recvs(f);
    arrive(f, &there, &group4, 9, 7);
    assert_int_equal(received(f), 0);
    assert_int_equal(counters_get(&f->o.nic->counters, COUNTER_rx_drop_no_qp), 1);
    join(f, 0, &group4);
    join(f, 2, &group4);
    join(f, 1, &group6);
    arrive(f, &there, &group4, 9, 8); /* of another Q_Key */
    assert_int_equal(received(f), 0);
    assert_int_equal(counters_get(&f->o.nic->counters, COUNTER_qkey_viol_cntr), 2);
    arrive(f, &there, &here, 9, 7); /* to the multicast QPN, but to no group */
    assert_int_equal(received(f), 0);
    arrive(f, &there, &group4, 9, 7);
    assert_int_equal(received(f), 1 | 4);
    arrive(f, &there, &group6, 9, 7);
    assert_int_equal(received(f), 2);
}

/* rxe#31, lrxe#17, rc#1100: the sender's own copy, as it asked. */
static void case_87_own_copy(void **state)
{
    struct fixture *f = *state;
    struct nic_path path = {.local = here, .remote = group4};
    for (unsigned i = 0; i < 2; i++) {
        struct nic_send_wr wr = {
            .opcode = WR_SEND, .path = &path, .dest_qpn = QPN_MULTICAST, .qkey = 7};
        join(f, i, &group4);
        assert_int_equal(wq_post_send(f->ud[i], &wr), 0);
    }
    while (nic_output(f->o.nic, 1, &f->sink, 4)) {
    }
    post_recvs(f);
    arrive(f, &here, &group4, f->ud[0]->qpn, 7); /* blocked */
    assert_int_equal(received(f), 2);
    post_recvs(f);
    arrive(f, &here, &group4, f->ud[1]->qpn, 7); /* not blocked */
    assert_int_equal(received(f), 1 | 2);
    post_recvs(f);
    arrive(f, &there, &group4, f->ud[0]->qpn, 7); /* another's QP of the same number */
    assert_int_equal(received(f), 1 | 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mcast_attach__and_detach),
        TEST(mcast_attach__refused),
        TEST(nic_input__to_each_in_the_group),
        TEST(case_87_own_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
