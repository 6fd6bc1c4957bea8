/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_xrc_domain.c: XRC domains, the numbers of their shared receive queues, the two kinds of QPs:
 * what each is made of, and what outlives what. What packets do is in tests/script/test_xrc.c.
 */
#include <errno.h>

#include "objects.h"
#include "wire/opcode.h"

enum { QUEUES = 300 };

struct parts {
    struct objects o;
    struct xrcd *xrcd;
    struct srq *srq;
};

static struct srq *queue(struct parts *p)
{
    uint32_t wr = 4, sge = 1;
    struct srq *srq = NULL;
    assert_int_equal(xrc_srq_create(p->o.pd, p->xrcd, p->o.rcq, &wr, &sge, NULL, &srq), 0);
    return srq;
}

static struct parts setup(void)
{
    struct parts p = {.srq = NULL};
    objects_create(&p.o, &(struct objects_init){
                             .cap = {4, 4, 1, 1, 0},
                               .cqe = 4
    });
    assert_int_equal(xrc_domain_create(p.o.nic, &p.xrcd), 0);
    p.srq = queue(&p);
    return p;
}

static void teardown(struct parts *p)
{
    assert_int_equal(wq_srq_destroy(p->srq), 0);
    assert_int_equal(xrc_domain_destroy(p->xrcd), 0);
    objects_destroy(&p->o);
}

static void destroy_qp(struct qp *qp)
{
    qp_unlink(qp);
    qp_free(qp);
}

static void create__what_each_type_needs(void **state)
{
    (void)state;
    struct parts p = setup();
    struct pd *pd = p.o.pd;
    struct cq *cq = p.o.scq;
    struct xrcd *xrcd = p.xrcd;
    const struct {
        enum qp_type type;
        struct pd *pd;
        struct cq *send_cq, *recv_cq;
        struct xrcd *xrcd;
        int err;
        bool has_pd, has_send, has_recv, has_xrcd;
    } rows[] = {
        {QP_TYPE_XRC_TGT, NULL, NULL, NULL, xrcd, 0,       false, false, false, true },
        {QP_TYPE_XRC_TGT, pd,   cq,   cq,   xrcd, 0,       false, false, false, true },
        {QP_TYPE_XRC_TGT, pd,   cq,   cq,   NULL, -EINVAL, false, false, false, false},
        {QP_TYPE_XRC_INI, pd,   cq,   NULL, NULL, 0,       true,  true,  false, false},
        {QP_TYPE_XRC_INI, pd,   cq,   cq,   xrcd, 0,       true,  true,  false, false},
        {QP_TYPE_XRC_INI, NULL, cq,   cq,   NULL, -EINVAL, false, false, false, false},
        {QP_TYPE_XRC_INI, pd,   NULL, cq,   NULL, -EINVAL, false, false, false, false},
        {QP_TYPE_RC,      pd,   cq,   NULL, NULL, -EINVAL, false, false, false, false},
        {QP_TYPE_RC,      pd,   cq,   cq,   xrcd, 0,       true,  true,  true,  false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct qp *qp = NULL;
        struct qp_init init = {
            .type = rows[i].type,
            .pd = rows[i].pd,
            .send_cq = rows[i].send_cq,
            .recv_cq = rows[i].recv_cq,
            .xrcd = rows[i].xrcd,
            .cap = {3, 3, 1, 1, 8}
        };
        assert_int_equal(qp_create(p.o.nic, &init, &qp), rows[i].err);
        if (rows[i].err != 0)
            continue;
        assert_ptr_equal(qp->pd, rows[i].has_pd ? pd : NULL);
        assert_ptr_equal(qp->send_cq, rows[i].has_send ? cq : NULL);
        assert_ptr_equal(qp->recv_cq, rows[i].has_recv ? cq : NULL);
        assert_ptr_equal(qp->xrcd, rows[i].has_xrcd ? xrcd : NULL);
        assert_int_equal(init.cap.max_send_wr, rows[i].has_send ? 3 : 0);
        assert_int_equal(init.cap.max_recv_wr, rows[i].has_recv ? 3 : 0);
        destroy_qp(qp);
    }
    teardown(&p);
}

/* case 14 */
static void destroy__children_first(void **state)
{
    (void)state;
    struct parts p = setup();
    struct qp_init init = {.type = QP_TYPE_XRC_TGT, .xrcd = p.xrcd};
    struct qp *qp;

    assert_int_equal(xrc_domain_destroy(p.xrcd), -EBUSY);
    assert_int_equal(cq_destroy(p.o.rcq), -EBUSY);
    assert_int_equal(wq_srq_destroy(p.srq), 0);
    assert_int_equal(qp_create(p.o.nic, &init, &qp), 0);
    assert_int_equal(xrc_domain_destroy(p.xrcd), -EBUSY);
    destroy_qp(qp);
    p.srq = queue(&p);
    teardown(&p);
}

static void number__no_two_alike(void **state)
{
    (void)state;
    struct parts p = setup();
    struct srq *srq[QUEUES];
    unsigned again = 0;

    for (unsigned i = 0; i < QUEUES; i++) {
        srq[i] = queue(&p);
        assert_in_range(srq[i]->number, 0, 0xffffff);
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(srq[i]->number, srq[k]->number);
    }
    for (unsigned i = 0; i < QUEUES; i++) {
        uint32_t number = srq[i]->number;
        assert_int_equal(wq_srq_destroy(srq[i]), 0);
        srq[i] = queue(&p);
        again += srq[i]->number == number;
    }
    assert_in_range(again, 0, 20); /* one in 256 */
    for (unsigned i = 0; i < QUEUES; i++)
        assert_int_equal(wq_srq_destroy(srq[i]), 0);
    teardown(&p);
}

/* A SEND to the queue, by way of a new target QP, which then goes. */
static void send_one(struct parts *p)
{
    struct qp_init init = {.type = QP_TYPE_XRC_TGT, .xrcd = p->xrcd};
    struct qp *qp;
    struct nic_qp_attr attr = objects_attr(QP_STATE_INIT);
    struct rx_packet packet = {.icrc_ok = true, .src = attr.path.remote, .dst = attr.path.local};

    assert_int_equal(qp_create(p->o.nic, &init, &qp), 0);
    assert_int_equal(qp_modify(qp, &attr, INIT_MASK), 0);
    attr.state = QP_STATE_RTR;
    assert_int_equal(qp_modify(qp, &attr, RTR_MASK), 0);
    packet.h.bth.opcode = opcode_make(SERVICE_XRC, OP_SEND_ONLY);
    packet.h.bth.pkey = PKEY_DEFAULT;
    packet.h.bth.dest_qp = qp->qpn;
    packet.h.bth.psn = psn_make(attr.rq_psn);
    packet.h.xrc_srqn = p->srq->number;
    nic_input(p->o.nic, 1, &packet, 1);
    destroy_qp(qp);
}

static void completion__outlives_the_target(void **state)
{
    (void)state;
    struct parts p = setup();
    struct nic_recv_wr wr = {.wr_id = 9};
    struct nic_wc wc;

    assert_int_equal(wq_post_srq_recv(p.srq, &wr), 0);
    send_one(&p);
    assert_int_equal(cq_poll(p.o.rcq, 1, &wc), 1);
    assert_int_equal(wc.wr_id, 9);
    assert_int_equal(wc.status, WC_SUCCESS);
    teardown(&p);
}

static void limit__of_the_queue(void **state)
{
    (void)state;
    struct parts p = setup();
    struct nic_recv_wr wr = {.wr_id = 1};
    struct nic_event e;

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(wq_post_srq_recv(p.srq, &wr), 0);
    assert_int_equal(wq_srq_set_limit(p.srq, 2), 0);
    assert_false(event_next(p.o.nic, &e));
    send_one(&p);
    assert_true(event_next(p.o.nic, &e));
    assert_int_equal(e.type, EVENT_SRQ_LIMIT_REACHED);
    teardown(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create__what_each_type_needs),
        cmocka_unit_test(destroy__children_first),
        cmocka_unit_test(number__no_two_alike),
        cmocka_unit_test(completion__outlives_the_target),
        cmocka_unit_test(limit__of_the_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
