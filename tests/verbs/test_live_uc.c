/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_uc.c: two UC queue pairs of one process on the loopback device, through the real
 * library and real packets: the ways to post and to be told, what is refused, and that nothing that
 * goes wrong on the way ends the connection.
 */
#include "../port/private_net.h"
#include "live_rig.h"

enum { DATA_AT = 1 << 15, MTU_BYTES = 1024 };

static struct ibv_qp *create(struct rig *r, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = rig_qp_init(r);
    struct ibv_qp_init_attr_ex ex = {
        .qp_type = IBV_QPT_UC,
        .send_cq = r->cq,
        .recv_cq = r->cq,
        .srq = srq,
        .cap = init.cap,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = r->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(r->ctx, &ex);

    assert_non_null(qp);
    return qp;
}

/* A modify with one attribute less than it needs, then as it should be; case 30 */
static void modify_by_need(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
        if ((mask & bit) != 0 && bit != IBV_QP_STATE)
            assert_int_equal(ibv_modify_qp(qp, &attr, mask & ~bit), EINVAL);
    assert_int_equal(ibv_modify_qp(qp, &attr, mask | IBV_QP_TIMEOUT), EINVAL);
    assert_int_equal(ibv_modify_qp(qp, &attr, mask | IBV_QP_MAX_DEST_RD_ATOMIC), EINVAL);
    assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

static void connect_to(struct rig *r, struct ibv_qp *qp, uint32_t dest_qpn)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    modify_by_need(qp, init, rig_init_mask);
    modify_by_need(qp, rig_rtr_attr(r, dest_qpn),
                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
    modify_by_need(qp, rig_rts_attr(), IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static void setup(struct rig *r, struct ibv_srq **srq)
{
    rig_open(r);
    if (srq != NULL) {
        struct ibv_srq_init_attr init = {
            .attr = {.max_wr = 4, .max_sge = 1}
        };
        *srq = ibv_create_srq(r->pd, &init);
        assert_non_null(*srq);
    }
    r->qp[0] = create(r, NULL);
    r->qp[1] = create(r, srq != NULL ? *srq : NULL);
    connect_to(r, r->qp[0], r->qp[1]->qp_num);
    connect_to(r, r->qp[1], r->qp[0]->qp_num);
    for (uint32_t i = DATA_AT; i < RIG_BYTES; i++)
        r->buf[i] = (uint8_t)(i * 7 + i / 256);
}

static int post(struct rig *r, enum ibv_wr_opcode opcode, uint32_t length, uint32_t to_at)
{
    struct ibv_sge sge = rig_sge(r, DATA_AT, length);
    struct ibv_send_wr *bad = NULL, wr = {
                                        .wr_id = 1,
                                        .opcode = opcode,
                                        .send_flags = IBV_SEND_SIGNALED,
                                        .imm_data = 0x11223344,
                                        .sg_list = &sge,
                                        .num_sge = length != 0,
                                        .wr.rdma = {(uintptr_t)r->buf + to_at, r->mr->rkey},
    };
    int err = ibv_post_send(r->qp[0], &wr, &bad);

    assert_ptr_equal(bad, err != 0 ? &wr : NULL);
    return err;
}

/* The next two completions, in whatever order: a send's and a receive's. */
static struct ibv_wc both(struct rig *r, enum ibv_wc_opcode send)
{
    struct ibv_wc wc[2] = {rig_wait(r), rig_wait(r)};
    bool first = wc[0].opcode & IBV_WC_RECV;

    assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
    assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
    assert_int_equal(wc[first].opcode, send);
    assert_int_equal(wc[first].qp_num, r->qp[0]->qp_num);
    assert_int_equal(wc[!first].qp_num, r->qp[1]->qp_num);
    return wc[!first];
}

static void send__one_packet_and_many(void **state)
{
    (void)state;
    struct rig r;
    static const uint32_t lengths[] = {0, 1, MTU_BYTES, MTU_BYTES + 1, 20 * MTU_BYTES - 3};

    setup(&r, NULL);
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint32_t n = lengths[i];
        rig_recv(&r, r.qp[1], 40 + i, 0, DATA_AT);
        assert_int_equal(post(&r, i % 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, n, 0), 0);
        struct ibv_wc wc = both(&r, IBV_WC_SEND);
        assert_int_equal(wc.wr_id, 40 + i);
        assert_int_equal(wc.opcode, IBV_WC_RECV);
        assert_int_equal(wc.byte_len, n);
        assert_int_equal(wc.wc_flags, i % 2 ? IBV_WC_WITH_IMM : 0);
        assert_memory_equal(r.buf, r.buf + DATA_AT, n);
        memset(r.buf, 0, DATA_AT);
    }
    rig_close(&r);
}

static void write__with_and_without_immediate(void **state)
{
    (void)state;
    struct rig r;

    setup(&r, NULL);
    assert_int_equal(post(&r, IBV_WR_RDMA_WRITE, 5000, 100), 0);
    assert_int_equal(rig_wait(&r).opcode, IBV_WC_RDMA_WRITE);
    rig_recv(&r, r.qp[1], 7, 0, 0);
    assert_int_equal(post(&r, IBV_WR_RDMA_WRITE_WITH_IMM, 3000, 8000), 0);
    struct ibv_wc wc = both(&r, IBV_WC_RDMA_WRITE);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x11223344);
    assert_int_equal(wc.byte_len, 3000);
    assert_memory_equal(r.buf + 100, r.buf + DATA_AT, 5000);
    assert_memory_equal(r.buf + 8000, r.buf + DATA_AT, 3000);
    rig_close(&r);
}

static void post__what_uc_does_not_have(void **state)
{
    (void)state;
    struct rig r;

    setup(&r, NULL);
    assert_int_equal(post(&r, IBV_WR_RDMA_READ, 8, 0), EINVAL);
    assert_int_equal(post(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0), EINVAL);
    assert_int_equal(post(&r, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0), EINVAL);
    assert_int_equal(post(&r, IBV_WR_SEND_WITH_INV, 8, 0), EINVAL);
    rig_expect_none(&r);
    rig_close(&r);
}

/* Nobody is told, and the next message arrives. */
static void dropped__the_connection_lives(void **state)
{
    (void)state;
    struct rig r;

    setup(&r, NULL);
    assert_int_equal(post(&r, IBV_WR_SEND, 3000, 0), 0); /* no receive */
    assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
    r.mr->rkey ^= 1;
    assert_int_equal(post(&r, IBV_WR_RDMA_WRITE, 3000, 0), 0);
    r.mr->rkey ^= 1;
    assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
    rig_recv(&r, r.qp[1], 7, 0, 2000);
    rig_expect_none(&r);
    assert_int_equal(post(&r, IBV_WR_SEND, 3000, 0), 0); /* too long for it */
    assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
    rig_expect_none(&r);
    assert_int_equal(post(&r, IBV_WR_SEND, 2000, 0), 0);
    struct ibv_wc wc = both(&r, IBV_WC_SEND);
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(wc.byte_len, 2000);
    assert_memory_equal(r.buf, r.buf + DATA_AT, 2000);
    rig_close(&r);
}

static void sqe__and_on_again(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    setup(&r, NULL);
    r.mr->lkey ^= 1;
    assert_int_equal(post(&r, IBV_WR_SEND, 8, 0), 0);
    r.mr->lkey ^= 1;
    struct ibv_wc wc = rig_wait(&r);
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(ibv_query_qp(r.qp[0], &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_SQE);
    assert_int_equal(init.qp_type, IBV_QPT_UC);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(r.qp[0], &attr, IBV_QP_STATE), 0);
    rig_recv(&r, r.qp[1], 7, 0, 8);
    assert_int_equal(post(&r, IBV_WR_SEND, 8, 0), 0);
    assert_int_equal(both(&r, IBV_WC_SEND).byte_len, 8);
    rig_close(&r);
}

static void ibv_wr__each_operation(void **state)
{
    (void)state;
    struct rig r;

    setup(&r, NULL);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(r.qp[0]);
    assert_non_null(ex);
    for (unsigned op = 0; op < 4; op++) {
        const uintptr_t to = (uintptr_t)r.buf;
        struct ibv_sge sge = rig_sge(&r, DATA_AT, 2000);
        rig_recv(&r, r.qp[1], op, 0, 2000);
        ibv_wr_start(ex);
        ex->wr_id = 50 + op;
        ex->wr_flags = IBV_SEND_SIGNALED;
        if (op == 0)
            ibv_wr_send(ex);
        else if (op == 1)
            ibv_wr_send_imm(ex, 9);
        else if (op == 2)
            ibv_wr_rdma_write(ex, r.mr->rkey, to);
        else
            ibv_wr_rdma_write_imm(ex, r.mr->rkey, to, 9);
        ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
        assert_int_equal(ibv_wr_complete(ex), 0);
        if (op == 2) {
            assert_int_equal(rig_wait(&r).wr_id, 52);
            continue;
        }
        struct ibv_wc wc = both(&r, op < 2 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
        assert_int_equal(wc.byte_len, 2000);
        assert_int_equal(wc.wc_flags, op == 0 ? 0 : IBV_WC_WITH_IMM);
        assert_memory_equal(r.buf, r.buf + DATA_AT, 2000);
        memset(r.buf, 0, 2000);
    }
    rig_close(&r);
}

static void srq__serves_it(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_srq *srq;
    struct ibv_recv_wr *bad, wr = {.wr_id = 5, .num_sge = 1};

    setup(&r, &srq);
    struct ibv_sge sge = rig_sge(&r, 0, 4000);
    wr.sg_list = &sge;
    assert_int_equal(ibv_post_recv(r.qp[1], &wr, &bad), EINVAL);
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(post(&r, IBV_WR_SEND, 3000, 0), 0);
    struct ibv_wc wc = both(&r, IBV_WC_SEND);
    assert_int_equal(wc.wr_id, 5);
    assert_int_equal(wc.byte_len, 3000);
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    assert_int_equal(ibv_destroy_qp(r.qp[1]), 0);
    r.qp[1] = NULL;
    assert_int_equal(ibv_destroy_srq(srq), 0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send__one_packet_and_many),
        cmocka_unit_test(write__with_and_without_immediate),
        cmocka_unit_test(post__what_uc_does_not_have),
        cmocka_unit_test(dropped__the_connection_lives),
        cmocka_unit_test(sqe__and_on_again),
        cmocka_unit_test(ibv_wr__each_operation),
        cmocka_unit_test(srq__serves_it),
    };

    /* What comes and goes elsewhere on the machine loses packets now and then. */
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
