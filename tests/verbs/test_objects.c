/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_objects.c: cases from the field about objects, states and posting, against the real library
 * and engine on the loopback device.
 */
#include "../skips.h"
#include "live_rig.h"

static struct ibv_send_wr send_wr(struct ibv_sge *sge, uint64_t wr_id)
{
    return (struct ibv_send_wr){.wr_id = wr_id,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED,
                                .sg_list = sge,
                                .num_sge = 1};
}

/* A receive on a RESET QP is refused, and the WR named. */
static void case_1(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;

    rig_open(&r);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    r.qp[0] = ibv_create_qp(r.pd, &init);
    assert_int_equal(ibv_post_recv(r.qp[0], &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    assert_int_equal(rig_to_init(r.qp[0]), 0);
    assert_int_equal(ibv_post_recv(r.qp[0], &wr, &bad), 0);
    rig_close(&r);
}

/* Failing posts and modifies answer a positive errno. */
static void case_2(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_sge sge = rig_sge(&r, 0, 8), many[3] = {sge, sge, sge};
    struct ibv_send_wr wr = send_wr(&sge, 1), *bad_send = NULL;
    struct ibv_recv_wr rwr = {.sg_list = many, .num_sge = 3}, *bad_recv = NULL;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};

    wr.sg_list = many;
    wr.num_sge = 3;
    assert_int_equal(ibv_post_send(r.qp[0], &wr, &bad_send), EINVAL);
    assert_ptr_equal(bad_send, &wr);
    assert_int_equal(ibv_post_recv(r.qp[0], &rwr, &bad_recv), EINVAL);
    assert_ptr_equal(bad_recv, &rwr);
    assert_int_equal(ibv_modify_qp(r.qp[0], &attr, IBV_QP_STATE), EINVAL);
    rig_close(&r);
}

/* Depth 8, chain of 10: ENOMEM, the ninth is the bad one, eight run; polled slots are free again.
 */
static void case_3(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(r.qp[0], &attr, IBV_QP_CAP, &init), 0);
    const unsigned depth = init.cap.max_send_wr;
    assert_in_range(depth, RIG_DEPTH, 64);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    struct ibv_send_wr wr[66], *bad = NULL;
    for (unsigned i = 0; i < depth + 2; i++) {
        wr[i] = send_wr(&sge, i);
        wr[i].opcode = IBV_WR_RDMA_WRITE;
        wr[i].send_flags = i + 1 == depth ? IBV_SEND_SIGNALED : 0;
        wr[i].wr.rdma.remote_addr = (uintptr_t)r.buf + 64;
        wr[i].wr.rdma.rkey = r.mr->rkey;
        wr[i].next = i + 1 < depth + 2 ? &wr[i + 1] : NULL;
    }
    assert_int_equal(ibv_post_send(r.qp[0], wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr[depth]);
    struct ibv_wc wc = rig_wait(&r);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, depth - 1);
    wr[depth - 1].next = NULL;
    assert_int_equal(ibv_post_send(r.qp[0], wr, &bad), 0);
    assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
    rig_close(&r);
}

static void case_10(void **state)
{
    (void)state;
    static const uint32_t good[] = {0, 64, 512};
    static const uint32_t bad[] = {1 << 20, UINT32_MAX, 513};
    struct rig r;

    rig_open(&r);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_qp_init_attr init = rig_qp_init(&r);
        init.cap.max_inline_data = good[i];
        struct ibv_qp *qp = ibv_create_qp(r.pd, &init);
        assert_non_null(qp);
        assert_true(init.cap.max_inline_data >= good[i]);
        assert_true(init.cap.max_send_wr >= RIG_DEPTH && init.cap.max_recv_sge >= 2);
        assert_int_equal(ibv_destroy_qp(qp), 0);
        init = rig_qp_init(&r);
        init.cap.max_inline_data = bad[i];
        errno = 0;
        assert_null(ibv_create_qp(r.pd, &init));
        assert_int_equal(errno, EINVAL);
    }
    rig_close(&r);
}

/* sq_sig_all: a completion for each WR, flagged or not. */
static void case_12(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    assert_int_equal(ibv_destroy_qp(r.qp[0]), 0);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    init.sq_sig_all = 1;
    r.qp[0] = ibv_create_qp(r.pd, &init);
    assert_non_null(r.qp[0]);
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    assert_int_equal(ibv_modify_qp(r.qp[1], &reset, IBV_QP_STATE), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rig_to_init(r.qp[i]), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr rtr = rig_rtr_attr(&r, r.qp[1 - i]->qp_num), rts = rig_rts_attr();
        assert_int_equal(ibv_modify_qp(r.qp[i], &rtr, rig_rtr_mask), 0);
        assert_int_equal(ibv_modify_qp(r.qp[i], &rts, rig_rts_mask), 0);
    }
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    for (unsigned i = 0; i < 8; i++) {
        struct ibv_send_wr wr = send_wr(&sge, i), *bad;
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.send_flags = 0;
        wr.wr.rdma.remote_addr = (uintptr_t)r.buf + 64;
        wr.wr.rdma.rkey = r.mr->rkey;
        assert_int_equal(ibv_post_send(r.qp[0], &wr, &bad), 0);
    }
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(rig_wait(&r).wr_id, i);
    rig_expect_none(&r);
    rig_close(&r);
}

/* Unknown opcodes and QP types are refused at once. */
static void case_13(void **state)
{
    (void)state;
    static const int opcodes[] = {99, -1, IBV_WR_TSO, 13};
    static const int types[] = {99, 0, 1, IBV_QPT_RAW_PACKET};
    struct rig r;

    rig_connect(&r);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    for (unsigned i = 0; i < 4; i++) {
        struct ibv_send_wr wr = send_wr(&sge, 1), *bad = NULL;
        wr.opcode = (enum ibv_wr_opcode)opcodes[i];
        int err = ibv_post_send(r.qp[0], &wr, &bad);
        assert_true(err == EINVAL || err == EOPNOTSUPP);
        assert_ptr_equal(bad, &wr);
        struct ibv_qp_init_attr init = rig_qp_init(&r);
        init.qp_type = (enum ibv_qp_type)types[i];
        errno = 0;
        assert_null(ibv_create_qp(r.pd, &init));
        assert_true(errno == EINVAL || errno == EOPNOTSUPP);
    }
    rig_close(&r);
}

/* A parent with children stays: EBUSY. */
static void case_14(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r);
    struct ibv_srq_init_attr srq_init = {
        .attr = {.max_wr = 4, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(r.pd, &srq_init);
    assert_non_null(srq);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    init.srq = srq;
    r.qp[0] = ibv_create_qp(r.pd, &init);
    assert_non_null(r.qp[0]);
    struct ibv_ah_attr attr = rig_rtr_attr(&r, 0).ah_attr;
    struct ibv_ah *ah = ibv_create_ah(r.pd, &attr);
    assert_non_null(ah);
    assert_int_equal(ibv_destroy_cq(r.cq), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    assert_int_equal(ibv_destroy_qp(r.qp[0]), 0);
    r.qp[0] = NULL;
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_dealloc_pd(r.pd), EBUSY); /* MR, AH */
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_dealloc_pd(r.pd), EBUSY); /* MR */
    rig_close(&r);
}

/* Of the 16 combinations, those with a remote write or atomic without a local write are refused. */
static void case_16(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r);
    for (int access = 0; access < 16; access++) {
        bool bad = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
                   (access & IBV_ACCESS_LOCAL_WRITE) == 0;
        errno = 0;
        struct ibv_mr *mr = ibv_reg_mr(r.pd, r.buf, 64, access);
        assert_int_equal(mr == NULL, bad);
        if (mr != NULL)
            assert_int_equal(ibv_dereg_mr(mr), 0);
        else
            assert_int_equal(errno, EINVAL);
    }
    rig_close(&r);
}

static void case_17(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r);
    struct ibv_mr *mr =
        ibv_reg_mr(r.pd, r.buf, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    rig_close(&r);
}

/* resize_cq keeps what is in it; below that it is an error. */
static void case_18(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    r.buf[0] = 1;
    for (unsigned i = 0; i < 6; i++) {
        struct ibv_send_wr wr = send_wr(&sge, i), *bad;
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.wr.rdma.remote_addr = (uintptr_t)r.buf + 64;
        wr.wr.rdma.rkey = r.mr->rkey;
        assert_int_equal(ibv_post_send(r.qp[0], &wr, &bad), 0);
    }
    /* Completions come in order on each QP: the flag of the other one says that six are there. */
    struct ibv_send_wr last = send_wr(&sge, 6), *bad;
    last.opcode = IBV_WR_RDMA_WRITE;
    last.wr.rdma.remote_addr = (uintptr_t)r.buf + 128;
    last.wr.rdma.rkey = r.mr->rkey;
    sge.length = 1;
    assert_int_equal(ibv_post_send(r.qp[0], &last, &bad), 0);
    while (__atomic_load_n(&r.buf[128], __ATOMIC_ACQUIRE) == 0)
        ;
    assert_int_equal(ibv_resize_cq(r.cq, 100), 0);
    assert_true(r.cq->cqe >= 100);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(rig_wait(&r).wr_id, i);
    assert_int_equal(ibv_resize_cq(r.cq, 0), EINVAL);
    assert_int_equal(ibv_resize_cq(r.cq, -1), EINVAL);
    assert_int_equal(ibv_resize_cq(r.cq, INT32_MAX), EINVAL);
    assert_int_equal(ibv_resize_cq(r.cq, 4), 0);
    assert_true(r.cq->cqe >= 4);
    rig_close(&r);
}

static void case_20(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r);
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = 10, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(r.pd, &init);
    struct ibv_srq_attr attr = {.max_wr = 100}, got;
    assert_non_null(srq);
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
    assert_true(attr.max_wr >= 100);
    assert_int_equal(ibv_query_srq(srq, &got), 0);
    assert_int_equal(got.max_wr, attr.max_wr);
    assert_int_equal(got.srq_limit, 0);
    attr.srq_limit = got.max_wr + 1;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    rig_close(&r);
}

static void each_bit_missing(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state before = qp->state;
    struct ibv_qp_attr got;
    struct ibv_qp_init_attr init;

    for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        if ((mask & bit) == 0)
            continue;
        if (ibv_modify_qp(qp, attr, mask & ~bit) != EINVAL)
            fail_msg("state %d: attribute bit %#x may be missing", before, (unsigned)bit);
        assert_int_equal(ibv_query_qp(qp, &got, IBV_QP_STATE, &init), 0);
        assert_int_equal(got.qp_state, before);
    }
    assert_int_equal(ibv_modify_qp(qp, attr, mask), 0);
}

static void case_30(void **state)
{
    (void)state;
    struct rig r;

    rig_open(&r);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    r.qp[0] = ibv_create_qp(r.pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    each_bit_missing(r.qp[0], &attr, rig_init_mask);
    attr = rig_rtr_attr(&r, r.qp[0]->qp_num);
    each_bit_missing(r.qp[0], &attr, rig_rtr_mask);
    attr = rig_rts_attr();
    each_bit_missing(r.qp[0], &attr, rig_rts_mask);
    rig_close(&r);
}

/* A path MTU over the port's is refused at RTR. */
static void case_32(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device **list = ibv_get_device_list(NULL);
    unsigned tried = 0;

    for (unsigned i = 0; list[i] != NULL; i++) {
        struct ibv_port_attr port;
        memset(&r, 0, sizeof(r));
        r.ctx = ibv_open_device(list[i]);
        if (r.ctx == NULL)
            continue;
        assert_int_equal(ibv_query_port(r.ctx, 1, &port), 0);
        if (port.active_mtu < IBV_MTU_4096 && ibv_query_gid(r.ctx, 1, 0, &r.gid) == 0) {
            tried++;
            r.pd = ibv_alloc_pd(r.ctx);
            r.cq = ibv_create_cq(r.ctx, 4, NULL, NULL, 0);
            struct ibv_qp_init_attr init = rig_qp_init(&r);
            struct ibv_qp *qp = ibv_create_qp(r.pd, &init);
            assert_int_equal(rig_to_init(qp), 0);
            struct ibv_qp_attr attr = rig_rtr_attr(&r, qp->qp_num);
            attr.path_mtu = port.active_mtu + 1;
            assert_int_equal(ibv_modify_qp(qp, &attr, rig_rtr_mask), EINVAL);
            attr.path_mtu = port.active_mtu;
            assert_int_equal(ibv_modify_qp(qp, &attr, rig_rtr_mask), 0);
            assert_int_equal(ibv_destroy_qp(qp), 0);
            assert_int_equal(ibv_destroy_cq(r.cq), 0);
            assert_int_equal(ibv_dealloc_pd(r.pd), 0);
        }
        assert_int_equal(ibv_close_device(r.ctx), 0);
    }
    ibv_free_device_list(list);
    if (tried == 0)
        SKIP_TEST("no interface with an MTU under 4096");
}

/* Of a failed completion wr_id, status and qp_num are right, whatever was in the struct. */
static void case_38(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    struct ibv_send_wr wr = send_wr(&sge, 0x1234), *bad;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)r.buf + RIG_BYTES; /* behind the region */
    wr.wr.rdma.rkey = r.mr->rkey;
    assert_int_equal(ibv_post_send(r.qp[0], &wr, &bad), 0);
    struct ibv_wc wc = rig_wait(&r);
    assert_int_equal(wc.wr_id, 0x1234);
    assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(wc.qp_num, r.qp[0]->qp_num);
    assert_string_equal(ibv_wc_status_str(wc.status), "remote access error");
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_1),  cmocka_unit_test(case_2),  cmocka_unit_test(case_3),
        cmocka_unit_test(case_10), cmocka_unit_test(case_12), cmocka_unit_test(case_13),
        cmocka_unit_test(case_14), cmocka_unit_test(case_16), cmocka_unit_test(case_17),
        cmocka_unit_test(case_18), cmocka_unit_test(case_20), cmocka_unit_test(case_30),
        cmocka_unit_test(case_32), cmocka_unit_test(case_38),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
