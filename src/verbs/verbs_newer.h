/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_newer.h: the verbs ABI of the newest rdma-core, where it is larger than that of the headers
 * we are built with (Debian 12 has release 44). One binary with the newest layout serves programs
 * built with any release: structs only grow, and at the end that old programs never look at.
 */
#ifndef VERBS_VERBS_NEWER_H
#define VERBS_VERBS_NEWER_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* Compiled with hidden visibility: what carries this is the ABI, and nothing else leaves. */
#define VERBS_ABI __attribute__((visibility("default")))

/* Bytes of the newest layouts, x86-64 and every other LP64 machine. */
enum {
    NEWEST_VERBS_CONTEXT_BYTES = 696, /* release 64; 648 in 44 */
    NEWEST_QP_EX_BYTES = 360,         /* release 45 (wr_flush); 352 in 44 */
    NEWEST_PORT_ATTR_BYTES = 56,      /* release 49 (active_speed_ex); 52 in 44 */
    COMPAT_PORT_ATTR_BYTES = 48,      /* what the exported ibv_query_port may write */
};

_Static_assert(sizeof(struct verbs_context) <= NEWEST_VERBS_CONTEXT_BYTES, "headers are newer");
_Static_assert(sizeof(struct ibv_qp_ex) <= NEWEST_QP_EX_BYTES, "headers are newer");
_Static_assert(sizeof(struct ibv_port_attr) <= NEWEST_PORT_ATTR_BYTES, "headers are newer");

/* struct verbs_context grows upwards: what newer releases add lies in front. All of it is NULL
 * here, which the inline functions of newer headers answer with EOPNOTSUPP. */
struct verbs_context_newest {
    uint8_t newer_ops[NEWEST_VERBS_CONTEXT_BYTES - sizeof(struct verbs_context)];
    struct verbs_context vctx;
};

union port_attr_newest {
    struct ibv_port_attr attr;
    struct {
        uint8_t older[NEWEST_PORT_ATTR_BYTES - sizeof(uint32_t)];
        uint32_t active_speed_ex; /* the speed when it needs more than 8 bits, else 0 */
    };
};

/* An ibv_qp allocation must be able to be an ibv_qp_ex of any release. */
union qp_newest {
    struct ibv_qp qp;
    struct ibv_qp_ex ex;
    struct {
        uint8_t older[NEWEST_QP_EX_BYTES - sizeof(void (*)(void))];
        void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                         uint8_t type, uint8_t level);
    } newest;
};

_Static_assert(sizeof(struct verbs_context_newest) == 696, "newest verbs_context");
_Static_assert(offsetof(struct verbs_context_newest, vctx.context) == 696 - 328, "context is last");
_Static_assert(offsetof(struct verbs_context, context) - offsetof(struct verbs_context, sz) == 8,
               "sz is just before context");
_Static_assert(offsetof(struct verbs_context, context) -
                       offsetof(struct verbs_context, query_port) ==
                   320,
               "query_port");
_Static_assert(sizeof(union qp_newest) == 360, "newest ibv_qp_ex");
_Static_assert(offsetof(union qp_newest, newest.wr_flush) == 352, "wr_flush");
_Static_assert(sizeof(union port_attr_newest) == 56, "newest ibv_port_attr");
_Static_assert(offsetof(union port_attr_newest, active_speed_ex) == 52, "active_speed_ex");

/* What these are called with IBV_ in front, and FLUSH_GLOBAL to FLUSH_MR as well: holes in the
 * enums of release 44, and what comes behind them. */
enum {
    NEWER_EVENT_DEVICE_SPEED_CHANGE = 20,
    NEWER_WC_FLUSH = 8,
    NEWER_WR_FLUSH = 14,
    NEWER_ACCESS_FLUSH_GLOBAL = 1 << 8,
    NEWER_ACCESS_FLUSH_PERSISTENT = 1 << 9,
    NEWER_QP_EX_WITH_FLUSH = 1 << 11,
    NEWER_FLUSH_GLOBAL = 1, /* enum ibv_placement_type */
    NEWER_FLUSH_PERSISTENT = 2,
    NEWER_FLUSH_RANGE = 0, /* enum ibv_selectivity_level */
    NEWER_FLUSH_MR = 1,
    NEWER_ODP_SUPPORT_FLUSH = 1 << 6,
    NEWER_ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,
};

/* Bits of device_cap_flags_ex; programs know them as IB_UVERBS_DEVICE_... */
#define NEWER_DEVICE_FLUSH_GLOBAL     (UINT64_C(1) << 38)
#define NEWER_DEVICE_FLUSH_PERSISTENT (UINT64_C(1) << 39)
#define NEWER_DEVICE_ATOMIC_WRITE     (UINT64_C(1) << 40)

/* Public functions of releases 59 to 65. Structs that we never look into stay opaque. */
struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *ctx, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *dmah);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
int ibv_query_port_speed(struct ibv_context *ctx, uint32_t port_num, uint64_t *speed_100mbps);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
                              int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
int _ibv_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps,
                              size_t caps_size);
struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *ctx,
                                           struct ibv_comp_cntr_init_attr *attr);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr);
int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
                            struct ibv_qp_attach_comp_cntr_attr *attr);

/* Private to rdma-core's libraries, but programs import them. */
enum gid_type_sysfs {
    GID_TYPE_SYSFS_IB_OR_ROCE_V1 = 0,
    GID_TYPE_SYSFS_ROCE_V2 = 1,
};
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port_num, unsigned index,
                       enum gid_type_sysfs *type);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

#endif
