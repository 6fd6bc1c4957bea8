/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider_stubs.c: what rdma-core's vendor libraries (libmlx5, libefa, which perftest and others
 * link) import from the private part of libibverbs of any release. Never called for our devices;
 * but a name that is missing stops the program at load. They are exported without a version, which
 * satisfies every version; only the registrations carry the names of their nodes.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "verbs/verbs_newer.h"

/* Called with other arguments than these: none is ever looked at. */
#define STUB_INT(name)                                                                             \
    int name(void);                                                                                \
    VERBS_ABI int name(void)                                                                       \
    {                                                                                              \
        return EOPNOTSUPP;                                                                         \
    }
#define STUB_POINTER(name)                                                                         \
    void *name(void);                                                                              \
    VERBS_ABI void *name(void)                                                                     \
    {                                                                                              \
        errno = EOPNOTSUPP;                                                                        \
        return NULL;                                                                               \
    }
#define STUB_VOID(name)                                                                            \
    void name(void);                                                                               \
    VERBS_ABI void name(void)                                                                      \
    {                                                                                              \
    }

/* clang-format off */
/* From the libraries' constructors: no driver of theirs is ever asked for. */
STUB_VOID(verbs_register_driver_25)
STUB_VOID(verbs_register_driver_33)
STUB_VOID(verbs_register_driver_34)
STUB_VOID(verbs_register_driver_57)
STUB_VOID(verbs_register_driver_59)
STUB_VOID(verbs_register_driver_64)
STUB_VOID(verbs_register_driver_65)

STUB_VOID(__verbs_log)
STUB_VOID(ibv_dmabuf_heap_destroy)
STUB_VOID(ibv_dmabuf_heap_free)
STUB_VOID(verbs_init_cq)
STUB_VOID(verbs_set_ops)
STUB_VOID(verbs_uninit_context)

STUB_POINTER(_verbs_init_and_alloc_context)
STUB_POINTER(ibv_dmabuf_heap_alloc)
STUB_POINTER(verbs_open_device)

STUB_INT(execute_ioctl)
STUB_INT(ibv_cmd_advise_mr)
STUB_INT(ibv_cmd_alloc_dm)
STUB_INT(ibv_cmd_alloc_dmah)
STUB_INT(ibv_cmd_alloc_mw)
STUB_INT(ibv_cmd_alloc_pd)
STUB_INT(ibv_cmd_attach_mcast)
STUB_INT(ibv_cmd_close_xrcd)
STUB_INT(ibv_cmd_create_ah)
STUB_INT(ibv_cmd_create_comp_cntr)
STUB_INT(ibv_cmd_create_counters)
STUB_INT(ibv_cmd_create_cq)
STUB_INT(ibv_cmd_create_cq_ex)
STUB_INT(ibv_cmd_create_cq_ex2)
STUB_INT(ibv_cmd_create_flow)
STUB_INT(ibv_cmd_create_flow_action_esp)
STUB_INT(ibv_cmd_create_qp)
STUB_INT(ibv_cmd_create_qp_ex)
STUB_INT(ibv_cmd_create_qp_ex2)
STUB_INT(ibv_cmd_create_rwq_ind_table)
STUB_INT(ibv_cmd_create_srq)
STUB_INT(ibv_cmd_create_srq_ex)
STUB_INT(ibv_cmd_create_wq)
STUB_INT(ibv_cmd_dealloc_mw)
STUB_INT(ibv_cmd_dealloc_pd)
STUB_INT(ibv_cmd_dereg_mr)
STUB_INT(ibv_cmd_destroy_ah)
STUB_INT(ibv_cmd_destroy_comp_cntr)
STUB_INT(ibv_cmd_destroy_counters)
STUB_INT(ibv_cmd_destroy_cq)
STUB_INT(ibv_cmd_destroy_flow)
STUB_INT(ibv_cmd_destroy_flow_action)
STUB_INT(ibv_cmd_destroy_qp)
STUB_INT(ibv_cmd_destroy_rwq_ind_table)
STUB_INT(ibv_cmd_destroy_srq)
STUB_INT(ibv_cmd_destroy_wq)
STUB_INT(ibv_cmd_detach_mcast)
STUB_INT(ibv_cmd_export_dmabuf_fd)
STUB_INT(ibv_cmd_free_dm)
STUB_INT(ibv_cmd_free_dmah)
STUB_INT(ibv_cmd_get_context)
STUB_INT(ibv_cmd_inc_comp_cntr)
STUB_INT(ibv_cmd_inc_err_comp_cntr)
STUB_INT(ibv_cmd_modify_cq)
STUB_INT(ibv_cmd_modify_flow_action_esp)
STUB_INT(ibv_cmd_modify_qp)
STUB_INT(ibv_cmd_modify_qp_ex)
STUB_INT(ibv_cmd_modify_srq)
STUB_INT(ibv_cmd_modify_wq)
STUB_INT(ibv_cmd_open_qp)
STUB_INT(ibv_cmd_open_xrcd)
STUB_INT(ibv_cmd_poll_cq)
STUB_INT(ibv_cmd_post_recv)
STUB_INT(ibv_cmd_post_send)
STUB_INT(ibv_cmd_post_srq_recv)
STUB_INT(ibv_cmd_qp_attach_comp_cntr)
STUB_INT(ibv_cmd_query_comp_cntr_caps)
STUB_INT(ibv_cmd_query_context)
STUB_INT(ibv_cmd_query_device)
STUB_INT(ibv_cmd_query_device_any)
STUB_INT(ibv_cmd_query_device_ex)
STUB_INT(ibv_cmd_query_mr)
STUB_INT(ibv_cmd_query_port)
STUB_INT(ibv_cmd_query_port_speed)
STUB_INT(ibv_cmd_query_qp)
STUB_INT(ibv_cmd_query_srq)
STUB_INT(ibv_cmd_read_comp_cntr)
STUB_INT(ibv_cmd_read_counters)
STUB_INT(ibv_cmd_read_err_comp_cntr)
STUB_INT(ibv_cmd_reg_dm_mr)
STUB_INT(ibv_cmd_reg_dmabuf_mr)
STUB_INT(ibv_cmd_reg_mr)
STUB_INT(ibv_cmd_reg_mr_ex)
STUB_INT(ibv_cmd_req_notify_cq)
STUB_INT(ibv_cmd_rereg_mr)
STUB_INT(ibv_cmd_resize_cq)
STUB_INT(ibv_cmd_set_comp_cntr)
STUB_INT(ibv_cmd_set_err_comp_cntr)
STUB_INT(ibv_dmabuf_heap_cc_shared_init)
STUB_INT(ibv_get_fw_ver)
/* clang-format on */

/* How many attributes an ioctl command has: none. */
unsigned __ioctl_final_num_attrs(void);
VERBS_ABI unsigned __ioctl_final_num_attrs(void)
{
    return 0;
}

extern bool verbs_allow_disassociate_destroy;
VERBS_ABI bool verbs_allow_disassociate_destroy;
