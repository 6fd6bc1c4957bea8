/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_datagram.c: UD queue pairs of one process on the loopback device, through the real
 * library and real packets: what a program finds in front of its data, the way back that it means,
 * and what is dropped.
 */
#include "../port/private_net.h"
#include "live_rig.h"

enum { HEADER = 40, DATA_AT = 4096 };

struct datagrams {
    struct rig r;
    struct ibv_qp *to, *from;
    struct ibv_ah *ah;
};

/* gid_index: which address of lo both use. */
static void setup_at(struct datagrams *d, const uint8_t gid[16])
{
    rig_open(&d->r);
    for (d->r.gid_index = 0;; d->r.gid_index++) {
        if (ibv_query_gid(d->r.ctx, 1, d->r.gid_index, &d->r.gid) != 0)
            break;
        if (memcmp(d->r.gid.raw, gid, 16) == 0)
            break;
    }
    d->to = rig_datagram(&d->r);
    d->from = rig_datagram(&d->r);
    struct ibv_ah_attr attr = rig_rtr_attr(&d->r, 0).ah_attr;
    d->ah = ibv_create_ah(d->r.pd, &attr);
}

static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1};
static const uint8_t v6[16] = {[15] = 1};

static bool setup(struct datagrams *d, bool six)
{
    setup_at(d, six ? v6 : v4);
    return d->ah != NULL && memcmp(d->r.gid.raw, six ? v6 : v4, 16) == 0;
}

static void teardown(struct datagrams *d)
{
    if (d->ah != NULL)
        assert_int_equal(ibv_destroy_ah(d->ah), 0);
    assert_int_equal(ibv_destroy_qp(d->to), 0);
    assert_int_equal(ibv_destroy_qp(d->from), 0);
    rig_close(&d->r);
}

static void send_to(struct datagrams *d, struct ibv_qp *from, struct ibv_ah *ah, uint32_t qpn,
                    uint32_t length)
{
    struct ibv_sge sge = rig_sge(&d->r, DATA_AT, length);
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = 1,
                                 .opcode = IBV_WR_SEND_WITH_IMM,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .imm_data = 0x11223344,
                                 .sg_list = &sge,
                                 .num_sge = length != 0,
                                 .wr.ud = {ah, qpn, RIG_QKEY}
    };

    for (uint32_t i = 0; i < length; i++)
        d->r.buf[DATA_AT + i] = (uint8_t)(3 * i + 1);
    assert_int_equal(ibv_post_send(from, &wr, &bad), 0);
}

/* The next two completions, in whatever order: a send's and a receive's. */
static struct ibv_wc received(struct datagrams *d)
{
    struct ibv_wc wc[2] = {rig_wait(&d->r), rig_wait(&d->r)};
    bool first = wc[0].opcode & IBV_WC_RECV;

    assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
    assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
    assert_int_equal(wc[first].opcode, IBV_WC_SEND);
    return wc[!first];
}

/* There and back again: the answer goes where the header in front of the question says. */
static void there_and_back(bool six)
{
    struct datagrams d;
    static const uint8_t zero[20];

    if (!setup(&d, six)) {
        teardown(&d);
        skip();
    }
    rig_recv(&d.r, d.to, 7, 0, HEADER + 100);
    send_to(&d, d.from, d.ah, d.to->qp_num, 100);
    struct ibv_wc wc = received(&d);
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.byte_len, HEADER + 100);
    assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x11223344);
    assert_int_equal(wc.src_qp, d.from->qp_num);
    assert_int_equal(wc.qp_num, d.to->qp_num);
    assert_int_equal(wc.pkey_index, 0);
    assert_int_equal(wc.slid, 0);
    assert_int_equal(wc.sl, six ? 1 : 2); /* UCX: which header it is */
    assert_memory_equal(d.r.buf + HEADER, d.r.buf + DATA_AT, 100);
    if (six) {
        assert_int_equal(d.r.buf[0] >> 4, 6);
        assert_memory_equal(d.r.buf + 8, v6, 16);
        assert_memory_equal(d.r.buf + 24, v6, 16);
    } else {
        assert_memory_equal(d.r.buf, zero, sizeof(zero));
        assert_int_equal(d.r.buf[20], 0x45);
        assert_int_equal(d.r.buf[28], 64); /* the TTL that most send */
        assert_memory_equal(d.r.buf + 32, v4 + 12, 4);
        assert_memory_equal(d.r.buf + 36, v4 + 12, 4);
    }
    struct ibv_ah *back = ibv_create_ah_from_wc(d.r.pd, &wc, (struct ibv_grh *)d.r.buf, 1);
    assert_non_null(back);
    rig_recv(&d.r, d.from, 8, 512, HEADER);
    send_to(&d, d.to, back, wc.src_qp, 0);
    wc = received(&d);
    assert_int_equal(wc.wr_id, 8);
    assert_int_equal(wc.byte_len, HEADER);
    assert_int_equal(wc.src_qp, d.to->qp_num);
    assert_int_equal(ibv_destroy_ah(back), 0);
    teardown(&d);
}

/* ucx#6317, ucx#10209, rc#462 */
static void case_81_back_by_ipv4(void **state)
{
    (void)state;
    there_and_back(false);
}

static void case_81_back_by_ipv6(void **state)
{
    (void)state;
    there_and_back(true);
}

/* rut ud SendLargerThanMtu; and the largest arrives. */
static void case_82_at_the_mtu_and_over_it(void **state)
{
    (void)state;
    struct datagrams d;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    struct ibv_qp_init_attr init;

    assert_true(setup(&d, false));
    uint32_t mtu = 128u << d.r.mtu;
    rig_recv(&d.r, d.to, 7, 2 * DATA_AT, HEADER + mtu);
    send_to(&d, d.from, d.ah, d.to->qp_num, mtu);
    assert_int_equal(received(&d).byte_len, HEADER + mtu);
    assert_memory_equal(d.r.buf + 2 * DATA_AT + HEADER, d.r.buf + DATA_AT, mtu);
    send_to(&d, d.from, d.ah, d.to->qp_num, mtu + 1);
    assert_int_equal(rig_wait(&d.r).status, IBV_WC_LOC_LEN_ERR);
    assert_int_equal(ibv_query_qp(d.from, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_SQE);
    send_to(&d, d.from, d.ah, d.to->qp_num, 1);
    assert_int_equal(rig_wait(&d.r).status, IBV_WC_WR_FLUSH_ERR);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(d.from, &attr, IBV_QP_STATE), 0);
    rig_recv(&d.r, d.to, 8, 0, HEADER + 1);
    send_to(&d, d.from, d.ah, d.to->qp_num, 1);
    assert_int_equal(received(&d).wr_id, 8);
    teardown(&d);
}

/* rut ud SendWithTooSmallRecv, SendRnr */
static void case_83_no_room(void **state)
{
    (void)state;
    struct datagrams d;

    assert_true(setup(&d, false));
    send_to(&d, d.from, d.ah, d.to->qp_num, 8);
    assert_int_equal(rig_wait(&d.r).status, IBV_WC_SUCCESS);
    rig_expect_none(&d.r);
    rig_recv(&d.r, d.to, 7, 0, HEADER + 7);
    send_to(&d, d.from, d.ah, d.to->qp_num, 8);
    assert_int_equal(rig_wait(&d.r).opcode, IBV_WC_SEND);
    rig_expect_none(&d.r);
    send_to(&d, d.from, d.ah, d.to->qp_num, 7);
    assert_int_equal(received(&d).wr_id, 7);
    teardown(&d);
}

/* A handle is gone at once; what was posted with it is not. The PD cannot go before it. */
static void case_14_handle_and_its_domain(void **state)
{
    (void)state;
    struct datagrams d;

    assert_true(setup(&d, false));
    struct ibv_pd *pd = ibv_alloc_pd(d.r.ctx);
    struct ibv_ah_attr attr = rig_rtr_attr(&d.r, 0).ah_attr;
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    assert_non_null(ah);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    rig_recv(&d.r, d.to, 7, 0, HEADER + 8);
    send_to(&d, d.from, d.ah, d.to->qp_num, 8);
    assert_int_equal(ibv_destroy_ah(d.ah), 0);
    d.ah = NULL;
    assert_int_equal(received(&d).wr_id, 7);
    teardown(&d);
}

/* QPs that have received from the group, as bits by wr_id; the send has completed. */
static unsigned group_heard(struct datagrams *d, unsigned want)
{
    unsigned heard = 0;
    for (unsigned left = 1 + (unsigned)__builtin_popcount(want); left != 0; left--) {
        struct ibv_wc wc = rig_wait(&d->r);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        if (wc.opcode == IBV_WC_SEND)
            continue;
        assert_int_equal(heard & 1u << wc.wr_id, 0);
        heard |= 1u << wc.wr_id;
    }
    rig_expect_none(&d->r);
    return heard;
}

/* rxe#31, lrxe#17, rc#1100: each attached QP gets it, once; the sender its own copy unless it asked
 * for none. A QP in a group cannot go, and one out of it hears nothing. */
static void case_87_group_on_lo(void **state)
{
    (void)state;
    struct datagrams d;
    union ibv_gid group = {
        .raw = {[10] = 0xff, [11] = 0xff, 239, 87, 1, 2}
    };
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_UD,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
                                       .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB};

    assert_true(setup(&d, false));
    init.send_cq = init.recv_cq = d.r.cq;
    init.pd = d.r.pd;
    init.cap = rig_qp_init(&d.r).cap;
    struct ibv_qp *shy = ibv_create_qp_ex(d.r.ctx, &init);
    assert_non_null(shy);
    rig_ready(shy);
    struct ibv_qp *qp[3] = {shy, d.to, d.from};
    struct ibv_ah_attr attr = rig_rtr_attr(&d.r, 0).ah_attr;
    attr.grh.dgid = group;
    struct ibv_ah *ah = ibv_create_ah(d.r.pd, &attr);
    assert_non_null(ah);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ibv_attach_mcast(qp[i], &group, 0), 0);
        for (unsigned k = 0; k < 4; k++)
            rig_recv(&d.r, qp[i], i, 128 * (4 * i + k), 64);
    }
    assert_int_equal(ibv_destroy_qp(shy), EBUSY);
    send_to(&d, shy, ah, 0xffffff, 8);
    assert_int_equal(group_heard(&d, 6), 6);
    send_to(&d, d.to, ah, 0xffffff, 8);
    assert_int_equal(group_heard(&d, 7), 7);
    assert_int_equal(ibv_detach_mcast(d.from, &group, 0), 0);
    assert_int_equal(ibv_detach_mcast(d.from, &group, 0), EINVAL);
    send_to(&d, d.to, ah, 0xffffff, 8);
    assert_int_equal(group_heard(&d, 3), 3);
    assert_int_equal(ibv_detach_mcast(d.to, &group, 0), 0);
    assert_int_equal(ibv_detach_mcast(shy, &group, 0), 0);
    assert_int_equal(ibv_attach_mcast(shy, &d.r.gid, 0), EINVAL); /* no group */
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(shy), 0);
    teardown(&d);
}

/* Round trip of the attributes; the Q_Key may change while it runs. */
static void modify__qkey(void **state)
{
    (void)state;
    struct datagrams d;
    struct ibv_qp_attr attr = {.qkey = 0x999};
    struct ibv_qp_init_attr init;

    assert_true(setup(&d, false));
    assert_int_equal(ibv_modify_qp(d.to, &attr, IBV_QP_QKEY), 0);
    assert_int_equal(ibv_query_qp(d.to, &attr, IBV_QP_QKEY, &init), 0);
    assert_int_equal(attr.qkey, 0x999);
    assert_int_equal(attr.sq_psn, 0xfffff0);
    assert_int_equal(init.qp_type, IBV_QPT_UD);
    rig_recv(&d.r, d.to, 7, 0, HEADER);
    send_to(&d, d.from, d.ah, d.to->qp_num, 0);
    assert_int_equal(rig_wait(&d.r).opcode, IBV_WC_SEND);
    rig_expect_none(&d.r);
    attr.qkey = RIG_QKEY;
    assert_int_equal(ibv_modify_qp(d.to, &attr, IBV_QP_QKEY), 0);
    send_to(&d, d.from, d.ah, d.to->qp_num, 0);
    assert_int_equal(received(&d).wr_id, 7);
    teardown(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_81_back_by_ipv4),
        cmocka_unit_test(case_81_back_by_ipv6),
        cmocka_unit_test(case_82_at_the_mtu_and_over_it),
        cmocka_unit_test(case_83_no_room),
        cmocka_unit_test(case_14_handle_and_its_domain),
        cmocka_unit_test(case_87_group_on_lo),
        cmocka_unit_test(modify__qkey),
    };

    /* What comes and goes elsewhere on the machine loses packets now and then. */
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
