/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_query.c: what a device and its port say of themselves. Only what works is claimed.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "host/ib_rate.h"
#include "verbs/ibv_convert.h"
#include "verbs/ibv_memory.h"

enum {
    PHYS_STATE_DISABLED = 3, /* PortPhysicalState of PortInfo */
    PHYS_STATE_LINK_UP = 5,
    QUERY_MAX_OBJECTS = 65536, /* kinds that only memory limits */
    QUERY_MCAST_GROUPS = 16,   /* the engine's limits */
    QUERY_MCAST_ATTACHES = 1024,
    /* Which operations may use memory on demand: all that there are. */
    QUERY_ODP_UD = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV,
    QUERY_ODP_UC = QUERY_ODP_UD | IBV_ODP_SUPPORT_WRITE,
    QUERY_ODP_RC = QUERY_ODP_UC | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
                   NEWER_ODP_SUPPORT_FLUSH | NEWER_ODP_SUPPORT_ATOMIC_WRITE,
    QUERY_PACED_TYPES = 1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD |
                        1u << IBV_QPT_XRC_SEND, /* all that have a send queue */
    QUERY_ACK_DELAY = 15, /* 4.096 us << 15 = 134 ms: what a descheduled process may need */
};

/* What a device is does not change: it is known also when its interface has gone, or in a child
 * that inherited it. */
VERBS_ABI int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    struct verbena_device info;

    if (verbena_device_query(obj_ctx(context)->host, &info) != 0)
        ibv_dev_info(obj_ctx(context)->device, &info);
    memset(attr, 0, sizeof(*attr));
    memcpy(attr->fw_ver, VERBS_FW_VERSION, sizeof(VERBS_FW_VERSION));
    put_be64((uint8_t *)&attr->node_guid, info.node_guid);
    attr->sys_image_guid = attr->node_guid;
    attr->max_mr_size = UINT64_C(1) << 47;
    attr->page_size_cap = 0xfffff000;
    attr->vendor_id = VERBS_VENDOR_ID;
    attr->vendor_part_id = VERBS_VENDOR_PART_ID;
    attr->hw_ver = VERBS_HW_VERSION;
    attr->max_qp = MAX_QP;
    attr->max_qp_wr = MAX_WR;
    attr->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
                             IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                             IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_UD_AV_PORT_ENFORCE |
                             IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
                             IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    attr->max_sge = MAX_SGE;
    attr->max_sge_rd = MAX_SGE;
    attr->max_cq = QUERY_MAX_OBJECTS;
    attr->max_cqe = MAX_CQE;
    attr->max_mr = MAX_MR;
    attr->max_mw = MAX_MR; /* regions and windows have one table: all of it for either */
    attr->max_pd = QUERY_MAX_OBJECTS;
    attr->max_qp_rd_atom = MAX_RD_ATOMIC;
    attr->max_res_rd_atom = MAX_RD_ATOMIC * MAX_QP;
    attr->max_qp_init_rd_atom = MAX_RD_ATOMIC;
    attr->atomic_cap = IBV_ATOMIC_HCA;
    attr->max_ah = QUERY_MAX_OBJECTS;
    attr->max_srq = QUERY_MAX_OBJECTS;
    attr->max_srq_wr = MAX_WR;
    attr->max_srq_sge = MAX_SGE;
    attr->max_mcast_grp = QUERY_MCAST_GROUPS;
    attr->max_mcast_qp_attach = QUERY_MCAST_ATTACHES;
    attr->max_total_mcast_qp_attach = QUERY_MCAST_ATTACHES;
    attr->max_pkeys = 1;
    attr->local_ca_ack_delay = QUERY_ACK_DELAY;
    attr->phys_port_cnt = 1;
    return 0;
}

int ibv_query_device_ex_op(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    struct ibv_device_attr_ex all;

    if (input != NULL && input->comp_mask != 0)
        return EINVAL;
    if (size < sizeof(attr->orig_attr))
        return EINVAL;
    memset(&all, 0, sizeof(all));
    int err = ibv_query_device(context, &all.orig_attr);
    if (err != 0)
        return err;
    all.hca_core_clock = 1000 * 1000; /* kHz: query_rt_values counts nanoseconds */
    all.completion_timestamp_mask = UINT64_MAX;
    all.device_cap_flags_ex =
        all.orig_attr.device_cap_flags | NEWER_DEVICE_FLUSH_GLOBAL | NEWER_DEVICE_ATOMIC_WRITE;
    all.phys_port_cnt_ex = 1;
    all.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    all.odp_caps.per_transport_caps.rc_odp_caps = QUERY_ODP_RC;
    all.odp_caps.per_transport_caps.uc_odp_caps = QUERY_ODP_UC;
    all.odp_caps.per_transport_caps.ud_odp_caps = QUERY_ODP_UD;
    all.xrc_odp_caps = QUERY_ODP_RC;
    all.max_dm_size = MEMORY_MAX_DM_BYTES;
    all.packet_pacing_caps.qp_rate_limit_min = 1;
    all.packet_pacing_caps.qp_rate_limit_max = UINT32_MAX;
    all.packet_pacing_caps.supported_qpts = QUERY_PACED_TYPES;
    all.cq_mod_caps.max_cq_count = UINT16_MAX;
    all.cq_mod_caps.max_cq_period = UINT16_MAX;
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}

int ibv_query_rt_values_op(struct ibv_context *context, struct ibv_values_ex *values)
{
    uint32_t known = 0;

    (void)context;
    if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0) {
        struct timespec t;

        if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
            return errno;
        /* Programs take tv_nsec alone for the clock's count, as adapters' libraries fill it. */
        values->raw_clock.tv_sec = 0;
        values->raw_clock.tv_nsec = t.tv_sec * 1000000000 + t.tv_nsec;
        known = IBV_VALUES_MASK_RAW_CLOCK;
    }
    values->comp_mask = known;
    return 0;
}

static void query_set_speed(union port_attr_newest *a, uint32_t mbps)
{
    const struct ib_rate *rate = ib_rate_of(mbps);

    a->attr.active_width = rate->width;
    if (rate->speed <= UINT8_MAX) {
        a->attr.active_speed = (uint8_t)rate->speed;
    } else {
        a->attr.active_speed = 128; /* the fastest that fits the old field */
        a->active_speed_ex = rate->speed;
    }
}

/* A counter of the engine by its name. */
static uint32_t query_counter(const char *name)
{
    uint64_t value = 0;

    for (unsigned i = 0;; i++) {
        const char *have = verbena_counter(i, &value);
        if (have == NULL)
            return 0;
        if (strcmp(have, name) == 0)
            return (uint32_t)value;
    }
}

static int query_port(struct ibv_context *context, uint32_t port_num, union port_attr_newest *a)
{
    struct verbena_device info;

    if (port_num != VERBS_PORT)
        return EINVAL;
    int err = verbena_device_query(obj_ctx(context)->host, &info);
    if (err == -ENODEV) { /* the interface has gone: a port that is down */
        ibv_dev_info(obj_ctx(context)->device, &info);
        info.up = false;
    } else if (err != 0) {
        return -err;
    }
    memset(a, 0, sizeof(*a));
    a->attr.state = info.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    a->attr.phys_state = info.up ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED;
    a->attr.max_mtu = IBV_MTU_4096;
    a->attr.active_mtu = convert_mtu_from_bytes(info.active_mtu_bytes);
    a->attr.gid_tbl_len = VERBENA_GID_TABLE_SIZE;
    a->attr.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
    a->attr.max_msg_sz = MAX_MESSAGE_BYTES;
    a->attr.qkey_viol_cntr = query_counter("qkey_viol_cntr");
    a->attr.pkey_tbl_len = 1;
    a->attr.max_vl_num = 1;
    a->attr.link_layer = IBV_LINK_LAYER_ETHERNET;
    a->attr.flags = IBV_QPF_GRH_REQUIRED;
    query_set_speed(a, info.speed_mbps);
    return 0;
}

int ibv_query_port_op(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                      size_t size)
{
    union port_attr_newest all;

    int err = query_port(context, port_num, &all);
    if (err != 0)
        return err;
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}

#undef ibv_query_port
/* For programs built before the port attributes grew: only what fits theirs. */
VERBS_ABI int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                             struct _compat_ibv_port_attr *attr)
{
    return ibv_query_port_op(context, port_num, (struct ibv_port_attr *)(void *)attr,
                             COMPAT_PORT_ATTR_BYTES);
}

VERBS_ABI int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
                                   uint64_t *speed_100mbps)
{
    struct verbena_device info;

    if (port_num != VERBS_PORT)
        return EINVAL;
    int err = verbena_device_query(obj_ctx(context)->host, &info);
    if (err != 0)
        return -err;
    *speed_100mbps = (info.speed_mbps != 0 ? info.speed_mbps : IB_RATE_UNKNOWN_MBPS) / 100;
    return 0;
}
