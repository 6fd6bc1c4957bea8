/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_qp.c: QPs, SRQs and what goes with them, of ids that are bound to a device.
 */
#include "cm_rig.h"

#include <rdma/rdma_verbs.h>

static struct rdma_cm_id *bound_id(enum rdma_port_space ps)
{
    struct rdma_cm_id *id = rig_id(NULL, ps);
    union rig_addr lo = rig_addr("127.0.0.1", 7);

    assert_int_equal(rdma_resolve_addr(id, NULL, &lo.sa, 1000), 0);
    return id;
}

static void create__states(void **state)
{
    (void)state;
    static const struct {
        enum rdma_port_space ps;
        enum ibv_qp_state want;
    } rows[] = {
        {RDMA_PS_TCP, IBV_QPS_INIT},
        {RDMA_PS_UDP, IBV_QPS_RTS }
    };

    for (unsigned i = 0; i < 2; i++) {
        struct rdma_cm_id *id = bound_id(rows[i].ps);
        struct ibv_qp_init_attr init = rig_qp_init(id->qp_type), got;
        struct ibv_qp_attr attr;
        assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
        assert_int_equal(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &got), 0);
        assert_int_equal(attr.qp_state, rows[i].want);
        /* Queues of the library's own, each with a channel. */
        assert_ptr_equal(got.send_cq, id->send_cq);
        assert_ptr_equal(got.recv_cq, id->recv_cq);
        assert_ptr_equal(id->send_cq->channel, id->send_cq_channel);
        assert_true(init.cap.max_inline_data >= sizeof(struct ibv_sge));
        assert_int_equal(rdma_create_qp(id, NULL, &init), -1); /* one */
        assert_int_equal(errno, EINVAL);
        rdma_destroy_qp(id);
        assert_null(id->qp);
        assert_null(id->send_cq);
        assert_null(id->recv_cq_channel);
        rdma_destroy_qp(id);
        rdma_destroy_id(id);
    }
}

static void create__refused(void **state)
{
    (void)state;
    struct rdma_cm_id *unbound = rig_id(NULL, RDMA_PS_TCP), *id = bound_id(RDMA_PS_TCP);
    struct ibv_qp_init_attr rc = rig_qp_init(IBV_QPT_RC), ud = rig_qp_init(IBV_QPT_UD);
    struct ibv_qp_init_attr huge = rc;
    union rig_addr lo6 = rig_addr("::1", 7);

    assert_int_equal(rdma_create_qp(unbound, NULL, &rc), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_qp(id, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_qp(id, NULL, &ud), -1); /* of another type */
    assert_int_equal(errno, EINVAL);
    huge.cap.max_send_sge = 1000;
    assert_int_equal(rdma_create_qp(id, NULL, &huge), -1);
    assert_null(id->qp);
    assert_null(id->send_cq); /* nothing is left of it */
    struct ibv_context *other = ibv_open_device(id->verbs->device);
    struct ibv_pd *pd = ibv_alloc_pd(other);
    assert_int_equal(rdma_create_qp(id, pd, &rc), -1); /* of another context */
    assert_int_equal(errno, EINVAL);
    ibv_dealloc_pd(pd);
    ibv_close_device(other);
    assert_int_equal(rdma_resolve_addr(unbound, NULL, &lo6.sa, 1000), 0);
    assert_int_equal(rdma_create_qp(unbound, NULL, &rc), 0);
    rdma_destroy_ep(unbound);
    rdma_destroy_ep(id);
}

static void create__with_what_the_program_has(void **state)
{
    (void)state;
    struct rdma_cm_id *id = bound_id(RDMA_PS_TCP);
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_RC);
    struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

    init.send_cq = init.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    assert_int_equal(rdma_create_qp(id, pd, &init), 0);
    assert_ptr_equal(id->pd, pd);
    assert_ptr_equal(id->qp->pd, pd);
    assert_null(id->send_cq);
    rdma_destroy_ep(id);
    assert_int_equal(ibv_destroy_cq(init.send_cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void srq__shared_by_the_qp(void **state)
{
    (void)state;
    struct rdma_cm_id *id = bound_id(RDMA_PS_TCP);
    struct ibv_srq_init_attr srq = {
        .attr = {.max_wr = 5, .max_sge = 1}
    };
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_RC);

    assert_int_equal(rdma_create_srq(id, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_srq(id, NULL, &srq), 0);
    assert_true(srq.attr.max_wr >= 5);
    assert_int_equal(rdma_create_srq(id, NULL, &srq), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
    assert_ptr_equal(id->qp->srq, id->srq);
    struct ibv_srq_init_attr_ex xrc = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
                                       .srq_type = IBV_SRQT_TM};
    struct rdma_cm_id *other = bound_id(RDMA_PS_TCP);
    assert_int_equal(rdma_create_srq_ex(other, &xrc), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    rdma_destroy_id(other);
    rdma_destroy_ep(id);
}

static void init_attr__by_state(void **state)
{
    (void)state;
    struct rdma_cm_id *rc = bound_id(RDMA_PS_TCP), *ud = bound_id(RDMA_PS_UDP);
    struct rdma_cm_id *unbound = rig_id(NULL, RDMA_PS_TCP);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask = 0;

    assert_int_equal(rdma_init_qp_attr(unbound, &attr, &mask), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_init_qp_attr(rc, NULL, &mask), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_init_qp_attr(rc, &attr, &mask), 0);
    assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    assert_int_equal(attr.port_num, 1);
    assert_int_equal(rdma_init_qp_attr(ud, &attr, &mask), 0);
    assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
    static const enum ibv_qp_state none[] = {IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD,
                                             IBV_QPS_ERR};
    for (unsigned i = 0; i < 5; i++) {
        attr.qp_state = none[i];
        assert_int_equal(rdma_init_qp_attr(rc, &attr, &mask), -1);
        assert_int_equal(errno, EINVAL);
    }
    rdma_destroy_id(rc);
    rdma_destroy_id(ud);
    rdma_destroy_id(unbound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create__states),
        cmocka_unit_test(create__refused),
        cmocka_unit_test(create__with_what_the_program_has),
        cmocka_unit_test(srq__shared_by_the_qp),
        cmocka_unit_test(init_attr__by_state),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
