/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_review_engine.c: small things at the seams of objects: whose protection domain a shared
 * receive is of, a QP on a CQ that ran over before, retry counts that change while drained, saved
 * atomics that are a round of all PSNs old.
 */
#include <errno.h>

#include "objects.h"
#include "wire/opcode.h"

enum { RECV_BYTES = 64, RIGHTS = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_ATOMIC };

static const struct objects_init init = {
    .cap = {8, 8, 2, 2, 0},
      .cqe = 16, .sq_sig_all = true
};

struct out {
    struct nic_sink sink;
    unsigned packets;
    struct roce_headers last;
};

static void take(struct nic_sink *sink, const struct train *t)
{
    struct out *o = (struct out *)sink;
    o->packets += t->packets;
    o->last = t->packet[t->packets - 1].h;
}

static struct out output(struct objects *o, uint64_t now_ns)
{
    struct out out = {.sink.train = take};
    while (nic_output(o->nic, now_ns, &out.sink, 8)) {
    }
    return out;
}

static struct rx_packet request(struct objects *o, enum opcode_op op, uint32_t psn)
{
    struct rx_packet p = {.icrc_ok = true, .payload = (const uint8_t *)""};
    p.h.bth.opcode = opcode_make(SERVICE_RC, op);
    p.h.bth.pkey = PKEY_DEFAULT;
    p.h.bth.dest_qp = o->qp->qpn;
    p.h.bth.psn = psn_make(psn);
    return p;
}

/* A SEND into a receive of an SRQ; the region is of the SRQ's domain or of the QP's. */
static void srq_receive(bool of_srq, enum wc_status status)
{
    struct objects o;
    struct pd *other;
    struct srq *srq;
    struct mr *mr;
    uint8_t memory[RECV_BYTES] = {0};
    uint32_t wr = 4, sge = 1;

    objects_create(&o, &init);
    assert_int_equal(mem_pd_create(o.nic, &other), 0);
    assert_int_equal(wq_srq_create(other, &wr, &sge, 0, NULL, &srq), 0);
    struct qp *first = o.qp;
    struct qp_init in = {QP_TYPE_RC, o.pd, o.scq, o.rcq, srq, true, init.cap, NULL};
    assert_int_equal(qp_create(o.nic, &in, &o.qp), 0);
    objects_bring(&o, QP_STATE_RTS);
    assert_int_equal(
        mem_reg(of_srq ? other : o.pd, memory, RECV_BYTES, (uintptr_t)memory, RIGHTS, &mr), 0);
    struct nic_sge place = {(uintptr_t)memory, RECV_BYTES, mr->key};
    struct nic_recv_wr recv = {1, &place, 1};
    assert_int_equal(wq_post_srq_recv(srq, &recv), 0);
    struct rx_packet p = request(&o, OP_SEND_ONLY, objects_attr(QP_STATE_RTR).rq_psn);
    p.payload = (const uint8_t *)"abcd";
    p.payload_bytes = 4;
    nic_input(o.nic, 0, &p, 1);
    struct nic_wc wc;
    assert_int_equal(cq_poll(o.rcq, 1, &wc), 1);
    assert_int_equal(wc.status, status);
    assert_memory_equal(memory, status == WC_SUCCESS ? "abcd" : "\0\0\0\0", 4);
    mem_mr_revoke(mr);
    mem_mr_free(mr);
    qp_unlink(o.qp);
    qp_free(o.qp);
    o.qp = first;
    assert_int_equal(wq_srq_destroy(srq), 0);
    assert_int_equal(mem_pd_destroy(other), 0);
    objects_destroy(&o);
}

static void srq_receive__region_of_the_srqs_domain(void **state)
{
    (void)state;
    srq_receive(true, WC_SUCCESS);
}

static void srq_receive__region_of_the_qps_domain_is_refused(void **state)
{
    (void)state;
    srq_receive(false, WC_LOC_PROT_ERR);
}

/* Fills the send CQ over its end with WRs that are flushed. */
static void overrun(struct objects *o)
{
    struct nic_send_wr wr = {.opcode = WR_SEND};
    struct nic_wc wc;
    for (uint32_t i = 0; i <= o->scq->capacity; i++) {
        /* Slots come back with a poll, which this program does not do. */
        atomic_store(&o->qp->sq.freed, o->qp->sq.tail);
        assert_int_equal(wq_post_send(o->qp, &wr), 0);
    }
    nic_advance(o->nic, 0);
    assert_int_equal(cq_poll(o->scq, 1, &wc), 1);
}

static void cq_overflow__a_qp_reset_and_used_again_goes_to_err(void **state)
{
    (void)state;
    struct objects o;
    struct nic_send_wr wr = {.opcode = WR_SEND};

    objects_create(&o, &init);
    objects_bring(&o, QP_STATE_RTS);
    assert_int_equal(objects_step(&o, QP_STATE_ERR), 0);
    overrun(&o);
    objects_expect_event(&o, EVENT_CQ_ERR);
    assert_int_equal(objects_step(&o, QP_STATE_RESET), 0);
    objects_bring(&o, QP_STATE_RTS);
    assert_int_equal(wq_post_send(o.qp, &wr), 0);
    output(&o, 0);
    struct rx_packet p = request(&o, OP_ACKNOWLEDGE, objects_attr(QP_STATE_RTS).sq_psn);
    p.h.aeth.syndrome = 0x1f;
    nic_input(o.nic, 0, &p, 1);
    /* The completion is lost: the program must hear of it. */
    assert_int_equal(nic_deadline(o.nic), 0);
    for (int i = 0; i < 3; i++)
        nic_advance(o.nic, 0);
    assert_int_equal(o.qp->state, QP_STATE_ERR);
    objects_expect_event(&o, EVENT_QP_FATAL);
    objects_expect_no_event(&o);
    assert_int_equal(nic_deadline(o.nic), UINT64_MAX);
    objects_destroy(&o);
}

static void sqd__new_retry_counts_hold_from_rts_on(void **state)
{
    (void)state;
    struct objects o;
    struct nic_send_wr wr = {.wr_id = 3, .opcode = WR_SEND};
    struct nic_qp_attr attr = {.state = QP_STATE_SQD, .retry_cnt = 0, .rnr_retry = 1};

    objects_create(&o, &init);
    objects_bring(&o, QP_STATE_SQD);
    assert_int_equal(qp_modify(o.qp, &attr, QP_ATTR_STATE | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY),
                     0);
    assert_int_equal(objects_step(&o, QP_STATE_RTS), 0);
    assert_int_equal(wq_post_send(o.qp, &wr), 0);
    assert_int_equal(output(&o, 0).packets, 1);
    uint64_t deadline = nic_deadline(o.nic);
    nic_advance(o.nic, deadline);
    assert_int_equal(output(&o, deadline).packets, 0);
    struct nic_wc wc;
    assert_int_equal(cq_poll(o.scq, 1, &wc), 1);
    assert_int_equal(wc.status, WC_RETRY_EXC_ERR);
    objects_destroy(&o);
}

static void duplicate_atomic__the_newest_of_equal_psns(void **state)
{
    (void)state;
    struct objects o;
    uint32_t psn = objects_attr(QP_STATE_RTR).rq_psn;
    uint64_t cell = 7;
    struct mr *mr;

    objects_create(&o, &init);
    objects_bring(&o, QP_STATE_RTR);
    assert_int_equal(mem_reg(o.pd, &cell, 8, (uintptr_t)&cell, RIGHTS, &mr), 0);
    struct rx_packet p = request(&o, OP_FETCH_ADD, psn);
    p.h.atomic = (struct atomic_eth){(uintptr_t)&cell, mr->key, 1, 0};
    nic_input(o.nic, 0, &p, 1);
    assert_int_equal(output(&o, 0).last.atomic_ack, 7);
    o.qp->resp.epsn = psn_make(psn); /* once round the circle */
    nic_input(o.nic, 0, &p, 1);
    assert_int_equal(output(&o, 0).last.atomic_ack, 8);
    nic_input(o.nic, 0, &p, 1);
    struct out out = output(&o, 0);
    assert_int_equal(out.packets, 1);
    assert_int_equal(out.last.atomic_ack, 8);
    assert_int_equal(cell, 9);
    struct rx_packet other = request(&o, OP_COMPARE_SWAP, psn);
    nic_input(o.nic, 0, &other, 1);
    assert_int_equal(output(&o, 0).packets, 0);
    mem_mr_revoke(mr);
    mem_mr_free(mr);
    objects_destroy(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(srq_receive__region_of_the_srqs_domain),
        cmocka_unit_test(srq_receive__region_of_the_qps_domain_is_refused),
        cmocka_unit_test(cq_overflow__a_qp_reset_and_used_again_goes_to_err),
        cmocka_unit_test(sqd__new_retry_counts_hold_from_rts_on),
        cmocka_unit_test(duplicate_atomic__the_newest_of_equal_psns),
    };
    return cmocka_run_group_tests_name("review_engine", tests, NULL, NULL);
}
