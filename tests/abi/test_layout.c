/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_layout.c: sizes and offsets that programs have compiled in, as measured in the field
 * (x86-64, rdma-core 28 to 65), against what our library is built with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rdmacm/rdmacm_newer.h"
#include "verbs/verbs_newer.h"

#define ROW(expr, n)                                                                               \
    {                                                                                              \
#expr, (expr), (n)                                                                         \
    }

struct layout_row {
    const char *what;
    size_t is;
    size_t want;
};

static const struct layout_row layout_constant[] = {
    ROW(sizeof(struct ibv_device), 664),
    ROW(sizeof(struct ibv_context), 328),
    ROW(sizeof(struct ibv_context_ops), 256),
    ROW(sizeof(struct ibv_qp), 160),
    ROW(sizeof(struct ibv_cq), 128),
    ROW(sizeof(struct ibv_cq_ex), 288),
    ROW(sizeof(struct ibv_srq), 128),
    ROW(sizeof(struct ibv_wc), 48),
    ROW(sizeof(struct ibv_send_wr), 128),
    ROW(sizeof(struct ibv_recv_wr), 32),
    ROW(sizeof(struct ibv_sge), 16),
    ROW(sizeof(struct ibv_device_attr), 232),
    ROW(sizeof(struct ibv_device_attr_ex), 400),
    ROW(sizeof(struct ibv_qp_attr), 144),
    ROW(sizeof(struct ibv_qp_init_attr), 64),
    ROW(sizeof(struct ibv_qp_init_attr_ex), 136),
    ROW(sizeof(struct ibv_ah_attr), 32),
    ROW(offsetof(struct ibv_qp_ex, wr_id), 168),
    ROW(offsetof(struct ibv_context, ops), 8),
    ROW(offsetof(struct ibv_context, cmd_fd), 264),
    ROW(offsetof(struct ibv_context, async_fd), 268),
    ROW(offsetof(struct ibv_context, abi_compat), 320),
};

static const struct layout_row layout_rdmacm[] = {
    ROW(sizeof(struct rdma_cm_id), 416),
    ROW(sizeof(struct rdma_cm_event), 80),
    ROW(sizeof(struct rdma_conn_param), 24),
    ROW(sizeof(struct rdma_ud_param), 56),
    ROW(sizeof(struct rdma_addrinfo), 96),
    ROW(sizeof(struct rdma_route), 312),
    ROW(sizeof(union rdma_event_param_newest), 56),
    ROW(offsetof(struct rdma_cm_id, qp), 24),
    ROW(offsetof(struct rdma_cm_id, route), 32),
    ROW(offsetof(struct rdma_cm_id, ps), 344),
    ROW(offsetof(struct rdma_cm_id, event), 352),
    ROW(offsetof(struct rdma_cm_id, qp_type), 408),
    ROW(offsetof(struct rdma_cm_event, event), 16),
    ROW(offsetof(struct rdma_cm_event, param), 24),
    ROW(offsetof(struct rdma_conn_param, qp_num), 16),
    ROW(offsetof(union rdma_event_param_newest, arg), 0),
};

static const struct layout_row layout_newest[] = {
    ROW(sizeof(struct verbs_context_newest), 696),
    ROW(sizeof(union qp_newest), 360),
    ROW(sizeof(union port_attr_newest), 56),
    ROW(offsetof(struct verbs_context_newest, vctx.context), 368),
    ROW(offsetof(struct verbs_context_newest, vctx.sz), 360),
    ROW(offsetof(struct verbs_context_newest, vctx.query_port), 48),
    ROW(offsetof(struct verbs_context_newest, vctx.create_qp_ex), 312),
    ROW(offsetof(union port_attr_newest, active_speed_ex), 52),
};

static void layout_check(const struct layout_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].is != rows[i].want)
            fail_msg("%s is %zu, not %zu", rows[i].what, rows[i].is, rows[i].want);
    }
}

static void layout__same_in_every_release(void **state)
{
    (void)state;
    layout_check(layout_constant, sizeof(layout_constant) / sizeof(layout_constant[0]));
}

static void layout__rdmacm(void **state)
{
    (void)state;
    layout_check(layout_rdmacm, sizeof(layout_rdmacm) / sizeof(layout_rdmacm[0]));
}

static void layout__newest(void **state)
{
    (void)state;
    layout_check(layout_newest, sizeof(layout_newest) / sizeof(layout_newest[0]));
}

/* Newer operations lie in front, so an old program's offsets from the context stay what they were.
 */
static void verbs_context__grows_upwards(void **state)
{
    (void)state;
    assert_int_equal(offsetof(struct verbs_context_newest, vctx.context) -
                         offsetof(struct verbs_context_newest, vctx.query_port),
                     offsetof(struct verbs_context, context) -
                         offsetof(struct verbs_context, query_port));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout__same_in_every_release),
        cmocka_unit_test(layout__rdmacm),
        cmocka_unit_test(layout__newest),
        cmocka_unit_test(verbs_context__grows_upwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
