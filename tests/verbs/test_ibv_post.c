/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_post.c: chains of work requests: what goes in before a bad one, which one is called bad,
 * the sign of the answer.
 */
#include "fake_host.h"

enum { CHAIN = 6 };

struct rig {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static struct rig rig_up(void)
{
    struct rig r = {.ctx = fake_open()};

    r.pd = ibv_alloc_pd(r.ctx);
    r.cq = ibv_create_cq(r.ctx, 8, NULL, NULL, 0);
    r.qp = fake_qp(r.pd, r.cq);
    return r;
}

static void rig_down(struct rig *r)
{
    assert_int_equal(ibv_destroy_qp(r->qp), 0);
    assert_int_equal(ibv_destroy_cq(r->cq), 0);
    assert_int_equal(ibv_dealloc_pd(r->pd), 0);
    fake_close(r->ctx);
}

static void send__whole_chain_and_one_kick(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_send_wr wr[CHAIN] = {0}, *bad = NULL;

    for (unsigned i = 0; i < CHAIN; i++) {
        wr[i].wr_id = i;
        wr[i].opcode = IBV_WR_SEND;
        wr[i].next = i + 1 < CHAIN ? &wr[i + 1] : NULL;
    }
    assert_int_equal(ibv_post_send(r.qp, wr, &bad), 0);
    assert_null(bad);
    assert_int_equal(fake.posts, CHAIN);
    assert_int_equal(fake.kicks, 1);
    for (unsigned i = 0; i < CHAIN; i++)
        assert_int_equal(fake.sent[i].wr_id, i);
    rig_down(&r);
}

/* cases 2 and 3: positive errno, the first not posted is the bad one, those before it run. */
static void send__stops_at_the_bad_one(void **state)
{
    (void)state;
    static const int errors[] = {ENOMEM, EINVAL, EOPNOTSUPP, EIO};

    for (unsigned at = 0; at < 4; at++) {
        struct rig r = rig_up();
        struct ibv_send_wr wr[CHAIN] = {0}, *bad = NULL;
        for (unsigned i = 0; i + 1 < CHAIN; i++)
            wr[i].next = &wr[i + 1];
        fake.fail_post_at = at;
        fake.fail_post = errors[at];
        assert_int_equal(ibv_post_send(r.qp, wr, &bad), errors[at]);
        assert_ptr_equal(bad, &wr[at]);
        assert_int_equal(fake.posts, at);
        assert_int_equal(fake.kicks, 1);
        rig_down(&r);
        fake_reset();
    }
}

/* ATOMIC WRITE has its data in SGEs here; a struct ibv_send_wr cannot say what a FLUSH needs. */
static void send__placement(void **state)
{
    (void)state;
    struct rig r = rig_up();
    uint64_t value = 7;
    struct ibv_sge sge = {.addr = (uintptr_t)&value, .length = sizeof(value)};
    struct ibv_send_wr *bad = NULL, wr = {
                                        .opcode = IBV_WR_ATOMIC_WRITE,
                                        .send_flags = IBV_SEND_INLINE,
                                        .sg_list = &sge,
                                        .num_sge = 1,
                                        .wr.rdma = {.remote_addr = 64, .rkey = 9},
    };

    assert_int_equal(ibv_post_send(r.qp, &wr, &bad), 0);
    assert_int_equal(fake.sent[0].opcode, WR_ATOMIC_WRITE);
    assert_int_equal(fake.sent[0].remote_addr, 64);
    assert_int_equal(fake.sent[0].rkey, 9);
    assert_int_equal(fake.sent[0].num_sge, 1);
    assert_int_equal(fake.sent[0].flags, WR_INLINE);
    for (int num_sge = -1; num_sge <= 0; num_sge++) {
        wr.num_sge = num_sge;
        assert_int_equal(ibv_post_send(r.qp, &wr, &bad), EINVAL);
    }
    wr.num_sge = 1;
    wr.opcode = (enum ibv_wr_opcode)NEWER_WR_FLUSH;
    assert_int_equal(ibv_post_send(r.qp, &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    assert_int_equal(fake.posts, 1);
    rig_down(&r);
}

/* The address is the handle's; one of another domain, or none, stops the chain. */
static void send__datagrams(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_pd *other = ibv_alloc_pd(r.ctx);
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {.sgid_index = 2,
                .flow_label = 7,
                .dgid = {.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}}}
    };
    struct ibv_ah *ah = ibv_create_ah(r.pd, &attr), *foreign = ibv_create_ah(other, &attr);
    struct ibv_qp_init_attr init = {
        .send_cq = r.cq,
        .recv_cq = r.cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = 1, .max_send_sge = 1}
    };
    struct ibv_qp *ud = ibv_create_qp(r.pd, &init);
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_SEND, .wr.ud = {.ah = ah, .remote_qpn = 5, .remote_qkey = 6}
    };
    struct ibv_send_wr *bad = NULL;

    assert_non_null(ud);
    assert_int_equal(ibv_post_send(ud, &wr, &bad), 0);
    assert_int_equal(fake.sent[0].path->remote.b[15], 2);
    assert_int_equal(fake.sent[0].path->udp_sport, 0xc007);
    assert_int_equal(fake.sent[0].dest_qpn, 5);
    assert_int_equal(fake.sent[0].qkey, 6);
    wr.wr.ud.ah = foreign;
    assert_int_equal(ibv_post_send(ud, &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    wr.wr.ud.ah = NULL;
    assert_int_equal(ibv_post_send(ud, &wr, &bad), EINVAL);
    wr.wr.rdma.remote_addr = UINT64_C(1) << 40; /* where a datagram has its handle */
    assert_int_equal(ibv_post_send(r.qp, &wr, &bad), 0);
    assert_null(fake.sent[1].path);
    assert_int_equal(fake.posts, 2);
    assert_int_equal(ibv_destroy_qp(ud), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_ah(foreign), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    rig_down(&r);
}

static void recv__stops_at_the_bad_one(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_sge sge = {.addr = 9, .length = 1, .lkey = 2};
    struct ibv_recv_wr wr[3] =
        {
            {.wr_id = 5,       .next = &wr[1], .sg_list = &sge, .num_sge = 1},
            {.wr_id = 6, .next = &wr[2]},
            {.wr_id = 7               }
    },
                       *bad = NULL;

    fake.fail_post_at = 2;
    fake.fail_post = ENOMEM;
    assert_int_equal(ibv_post_recv(r.qp, wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr[2]);
    assert_int_equal(fake.received[0].wr_id, 5);
    assert_ptr_equal(fake.received[0].sg_list, &sge);
    assert_int_equal(fake.received[0].num_sge, 1);
    assert_int_equal(fake.received[1].wr_id, 6);
    fake.fail_post_at = UINT32_MAX;
    bad = NULL;
    assert_int_equal(ibv_post_recv(r.qp, &wr[2], &bad), 0);
    assert_null(bad);
    rig_down(&r);
}

static void srq_recv__stops_at_the_bad_one(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = 4, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(r.pd, &init);
    struct ibv_recv_wr wr[2] =
        {
            {.wr_id = 1, .next = &wr[1]},
            {.wr_id = 2         }
    },
                       *bad = NULL;

    fake.fail_post_at = 1;
    fake.fail_post = EINVAL;
    assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr[1]);
    fake.fail_post_at = UINT32_MAX;
    assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), 0);
    assert_int_equal(fake.posts, 3);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    rig_down(&r);
}

static void empty_chain__nothing(void **state)
{
    (void)state;
    struct rig r = rig_up();
    struct ibv_send_wr *bad_send;
    struct ibv_recv_wr *bad_recv;

    assert_int_equal(ibv_post_send(r.qp, NULL, &bad_send), 0);
    assert_int_equal(ibv_post_recv(r.qp, NULL, &bad_recv), 0);
    assert_int_equal(fake.posts, 0);
    rig_down(&r);
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(send__whole_chain_and_one_kick, reset),
        cmocka_unit_test_setup(send__stops_at_the_bad_one, reset),
        cmocka_unit_test_setup(send__placement, reset),
        cmocka_unit_test_setup(send__datagrams, reset),
        cmocka_unit_test_setup(recv__stops_at_the_bad_one, reset),
        cmocka_unit_test_setup(srq_recv__stops_at_the_bad_one, reset),
        cmocka_unit_test_setup(empty_chain__nothing, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
