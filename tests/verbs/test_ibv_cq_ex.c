/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_cq_ex.c: extended completion queues.
 */
#include <time.h>

#include "fake_host.h"

static struct ibv_cq_init_attr_ex cq_attr(void)
{
    return (struct ibv_cq_init_attr_ex){
        .cqe = 4, .cq_context = &fake, .wc_flags = IBV_WC_STANDARD_FLAGS};
}

/* What time it was when CLOCK_MONOTONIC began. */
static uint64_t boot_ns(void)
{
    struct timespec wall, mono;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    return (uint64_t)((wall.tv_sec - mono.tv_sec) * 1000000000 + wall.tv_nsec - mono.tv_nsec -
                      10000000);
}

static void poll__each_field(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_cq_init_attr_ex init = cq_attr();
    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &init);
    struct ibv_poll_cq_attr attr = {0};

    assert_non_null(cq);
    assert_int_equal(ibv_cq_ex_to_cq(cq)->cqe, 5);
    assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
    fake.wc[0] = (struct nic_wc){.wr_id = 1,
                                 .opcode = WC_RECV,
                                 .byte_len = 3,
                                 .imm_or_inv = 4,
                                 .qp_num = 5,
                                 .src_qp = 6,
                                 .flags = WC_WITH_IMM,
                                 .sl = 7,
                                 .time_ns = 8};
    fake.wc[1] = (struct nic_wc){.wr_id = 2, .status = WC_RETRY_EXC_ERR, .vendor_err = 9};
    fake.wcs = 2;
    assert_int_equal(ibv_start_poll(cq, &attr), 0);
    assert_int_equal(cq->wr_id, 1);
    assert_int_equal(cq->status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
    assert_int_equal(ibv_wc_read_byte_len(cq), 3);
    assert_int_equal(ibv_wc_read_imm_data(cq), 4);
    assert_int_equal(ibv_wc_read_qp_num(cq), 5);
    assert_int_equal(ibv_wc_read_src_qp(cq), 6);
    assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
    assert_int_equal(ibv_wc_read_slid(cq), 0);
    assert_int_equal(ibv_wc_read_sl(cq), 7);
    assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
    assert_int_equal(ibv_wc_read_completion_ts(cq), 8);
    assert_in_range(ibv_wc_read_completion_wallclock_ns(cq), boot_ns(), boot_ns() + 1000000000);
    assert_int_equal(ibv_next_poll(cq), 0);
    assert_int_equal(cq->wr_id, 2);
    assert_int_equal(cq->status, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(ibv_wc_read_vendor_err(cq), 9);
    assert_int_equal(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
    assert_int_equal(ibv_start_poll(cq, &attr), ENOENT); /* the lock was given back */
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    fake_close(ctx);
}

static void poll__errors_leave_no_lock(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_cq_init_attr_ex init = cq_attr();
    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &init);
    struct ibv_poll_cq_attr good = {0}, bad = {.comp_mask = 1};

    assert_int_equal(ibv_start_poll(cq, &bad), EINVAL);
    fake.fail = EIO;
    assert_int_equal(ibv_start_poll(cq, &good), EIO);
    fake.wcs = 1;
    assert_int_equal(ibv_start_poll(cq, &good), 0);
    ibv_end_poll(cq);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    fake_close(ctx);
}

static void create__supported_and_not(void **state)
{
    (void)state;
    static const struct {
        uint32_t cqe, vector;
        uint64_t wc_flags;
        uint32_t mask, flags;
        int want;
    } rows[] = {
        {1,          0,          0,                                   0,                        0,                                  0         },
        {1,          0,          0x7f,                                1,                        IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 0         },
        {1,          0,          0,                                   0,                        IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,  0         },
        {1,          0,          0,                                   1,                        IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,  EOPNOTSUPP},
        {1,          0,          0,                                   1,                        4,                                  EOPNOTSUPP},
        {1,          0,          0,                                   IBV_CQ_INIT_ATTR_MASK_PD, 0,                                  EINVAL    },
        {1,          0,          0,                                   1u << 31,                 0,                                  EOPNOTSUPP},
        {1,          0,          IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0,                        0,                                  0         },
        {1,          0,          1u << 11 /* wall clock */,           0,                        0,                                  0         },
        {1,          0,          IBV_WC_EX_WITH_FLOW_TAG,             0,                        0,                                  EOPNOTSUPP},
        {1,          0,          IBV_WC_EX_WITH_CVLAN,                0,                        0,                                  EOPNOTSUPP},
        {1,          0,          IBV_WC_EX_WITH_TM_INFO,              0,                        0,                                  EOPNOTSUPP},
        {1,          0,          UINT64_C(1) << 63,                   0,                        0,                                  EOPNOTSUPP},
        {0,          0,          0,                                   0,                        0,                                  EINVAL    },
        {UINT32_MAX, 0,          0,                                   0,                        0,                                  EINVAL    },
        {1,          1,          0,                                   0,                        0,                                  EINVAL    },
        {1,          UINT32_MAX, 0,                                   0,                        0,                                  EINVAL    },
    };
    struct ibv_context *ctx = fake_open();

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_cq_init_attr_ex init = {.cqe = rows[i].cqe,
                                           .comp_vector = rows[i].vector,
                                           .wc_flags = rows[i].wc_flags,
                                           .comp_mask = rows[i].mask,
                                           .flags = rows[i].flags};
        errno = 0;
        struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &init);
        assert_int_equal(cq == NULL, rows[i].want != 0);
        if (cq != NULL)
            assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
        else
            assert_int_equal(errno, rows[i].want);
    }
    fake_close(ctx);
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
        cmocka_unit_test_setup(poll__each_field, reset),
        cmocka_unit_test_setup(poll__errors_leave_no_lock, reset),
        cmocka_unit_test_setup(create__supported_and_not, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
