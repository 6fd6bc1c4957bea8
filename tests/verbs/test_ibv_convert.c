/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_convert.c: MTUs, work requests, completions and attributes keep their meaning.
 */
#include "fake_host.h"

#include "verbs/ibv_convert.h"

static void mtu__both_ways(void **state)
{
    (void)state;
    static const struct {
        enum ibv_mtu mtu;
        uint16_t bytes;
    } rows[] = {
        {IBV_MTU_256,  256 },
        {IBV_MTU_512,  512 },
        {IBV_MTU_1024, 1024},
        {IBV_MTU_2048, 2048},
        {IBV_MTU_4096, 4096},
    };

    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(convert_mtu_to_bytes(rows[i].mtu), rows[i].bytes);
        assert_int_equal(convert_mtu_from_bytes(rows[i].bytes), rows[i].mtu);
        assert_int_equal(convert_mtu_from_bytes(rows[i].bytes + 1u), rows[i].mtu);
    }
    assert_int_equal(convert_mtu_to_bytes((enum ibv_mtu)0), 0);
    assert_int_equal(convert_mtu_to_bytes((enum ibv_mtu)6), 0);
    assert_int_equal(convert_mtu_to_bytes((enum ibv_mtu) - 1), 0);
    assert_int_equal(convert_mtu_from_bytes(0), IBV_MTU_256);
    assert_int_equal(convert_mtu_from_bytes(1500), IBV_MTU_1024);
    assert_int_equal(convert_mtu_from_bytes(65535), IBV_MTU_4096);
}

static void send_wr__rdma_and_atomic_keys(void **state)
{
    (void)state;
    struct ibv_sge sge = {.addr = 1, .length = 8, .lkey = 3};
    struct ibv_send_wr wr = {
        .wr_id = 7,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .sg_list = &sge,
        .num_sge = 1,
        .imm_data = 0x01020304,
        .send_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM,
        .wr.rdma = {.remote_addr = 0x1000, .rkey = 0x11}
    };
    struct nic_send_wr to;

    convert_send_wr(&wr, &to);
    assert_int_equal(to.wr_id, 7);
    assert_int_equal(to.opcode, WR_RDMA_WRITE_WITH_IMM);
    assert_int_equal(to.flags, WR_SIGNALED);
    assert_ptr_equal(to.sg_list, &sge);
    assert_int_equal(to.imm_or_inv, 0x01020304);
    assert_int_equal(to.remote_addr, 0x1000);
    assert_int_equal(to.rkey, 0x11);
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic.remote_addr = 0x2000;
    wr.wr.atomic.compare_add = 5;
    wr.wr.atomic.swap = 6;
    wr.wr.atomic.rkey = 0x22;
    convert_send_wr(&wr, &to);
    assert_int_equal(to.remote_addr, 0x2000);
    assert_int_equal(to.compare_add, 5);
    assert_int_equal(to.swap, 6);
    assert_int_equal(to.rkey, 0x22);
}

static void wc__every_field(void **state)
{
    (void)state;
    struct nic_wc from = {.wr_id = 1,
                          .status = WC_REM_ACCESS_ERR,
                          .opcode = WC_RECV_RDMA_WITH_IMM,
                          .vendor_err = 2,
                          .byte_len = 3,
                          .imm_or_inv = 4,
                          .qp_num = 5,
                          .src_qp = 6,
                          .flags = WC_WITH_IMM,
                          .sl = 7};
    struct ibv_wc to;

    memset(&to, 0xa5, sizeof(to));
    convert_wc(&from, &to);
    assert_int_equal(to.wr_id, 1);
    assert_int_equal(to.status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(to.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(to.vendor_err, 2);
    assert_int_equal(to.byte_len, 3);
    assert_int_equal(to.imm_data, 4);
    assert_int_equal(to.qp_num, 5);
    assert_int_equal(to.src_qp, 6);
    assert_int_equal(to.wc_flags, IBV_WC_WITH_IMM);
    assert_int_equal(to.sl, 7);
    assert_int_equal(to.pkey_index | to.slid | to.dlid_path_bits, 0);
}

static void qp_attr__round_trip(void **state)
{
    (void)state;
    struct ibv_qp_attr from = {.qp_state = IBV_QPS_RTS,
                               .path_mtu = IBV_MTU_2048,
                               .rq_psn = 1,
                               .sq_psn = 2,
                               .dest_qp_num = 3,
                               .qp_access_flags = IBV_ACCESS_REMOTE_READ | 1 << 20,
                               .max_rd_atomic = 4,
                               .max_dest_rd_atomic = 5,
                               .min_rnr_timer = 6,
                               .port_num = 1,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 3,
                               .qkey = 9};
    struct nic_qp_attr mid;
    struct ibv_qp_attr to;

    assert_int_equal(convert_qp_attr_to_nic(&from, IBV_QP_PATH_MTU, &mid), 0);
    assert_int_equal(mid.path_mtu_bytes, 2048);
    convert_qp_attr_from_nic(&mid, &to);
    assert_int_equal(to.qp_state, IBV_QPS_RTS);
    assert_int_equal(to.cur_qp_state, IBV_QPS_RTS);
    assert_int_equal(to.path_mtu, IBV_MTU_2048);
    assert_int_equal(to.rq_psn, 1);
    assert_int_equal(to.sq_psn, 2);
    assert_int_equal(to.dest_qp_num, 3);
    assert_int_equal(to.qp_access_flags, IBV_ACCESS_REMOTE_READ); /* the hint is gone */
    assert_int_equal(to.max_rd_atomic, 4);
    assert_int_equal(to.max_dest_rd_atomic, 5);
    assert_int_equal(to.min_rnr_timer, 6);
    assert_int_equal(to.port_num, 1);
    assert_int_equal(to.timeout, 14);
    assert_int_equal(to.retry_cnt, 7);
    assert_int_equal(to.rnr_retry, 3);
    assert_int_equal(to.qkey, 9);
}

static void qp_attr__mtu_counts_only_when_set(void **state)
{
    (void)state;
    static const int bad[] = {-1, 0, 6, 1024};
    struct nic_qp_attr to;

    for (unsigned i = 0; i < 4; i++) {
        struct ibv_qp_attr from = {.path_mtu = (enum ibv_mtu)bad[i]};
        assert_int_equal(convert_qp_attr_to_nic(&from, IBV_QP_PATH_MTU, &to), -EINVAL);
        assert_int_equal(convert_qp_attr_to_nic(&from, IBV_QP_STATE, &to), 0);
    }
}

static void cap__both_ways(void **state)
{
    (void)state;
    struct ibv_qp_cap from = {.max_send_wr = 1,
                              .max_recv_wr = 2,
                              .max_send_sge = 3,
                              .max_recv_sge = 4,
                              .max_inline_data = 5};
    struct ibv_qp_cap to;
    struct nic_qp_cap mid;

    convert_cap_to_nic(&from, &mid);
    assert_int_equal(mid.max_inline_bytes, 5);
    convert_cap_from_nic(&mid, &to);
    assert_memory_equal(&from, &to, sizeof(to));
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
        cmocka_unit_test_setup(mtu__both_ways, reset),
        cmocka_unit_test_setup(send_wr__rdma_and_atomic_keys, reset),
        cmocka_unit_test_setup(wc__every_field, reset),
        cmocka_unit_test_setup(qp_attr__round_trip, reset),
        cmocka_unit_test_setup(qp_attr__mtu_counts_only_when_set, reset),
        cmocka_unit_test_setup(cap__both_ways, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
