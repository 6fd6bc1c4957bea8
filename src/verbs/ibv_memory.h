/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_memory.h: what the files about regions, windows, device memory and domains share: entries of
 * struct verbs_context, and how a region comes to be.
 */
#ifndef VERBS_IBV_MEMORY_H
#define VERBS_IBV_MEMORY_H

#include "verbs/ibv_objects.h"

/* Sizes that the device promises. */
enum { MEMORY_MAX_DM_BYTES = 256 << 20 };

/* ibv_mr.c. A region before the engine knows it; NULL and errno. Then its keys and handle, or, err
 * (-errno), its end with errno. */
struct ibv_mr_obj *ibv_mr_new(struct ibv_pd *pd, void *addr, size_t length);
struct ibv_mr *ibv_mr_born(struct ibv_mr_obj *obj, struct mr *mr, int err);
/* In between: the engine's region, on the domain of obj. 0 or -errno. */
int ibv_mr_make(const struct ibv_mr_obj *obj, void *addr, uint64_t length, uint64_t iova,
                unsigned access, struct mr **out);
struct ibv_mr *ibv_alloc_null_mr_op(struct ibv_pd *pd);
int ibv_advise_mr_op(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *sg_list, uint32_t num_sge);

/* ibv_mw.c */
struct ibv_mw *ibv_alloc_mw_op(struct ibv_pd *pd, enum ibv_mw_type type);
int ibv_dealloc_mw_op(struct ibv_mw *mw);
int ibv_bind_mw_op(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/* BIND_MW of a type 2 window as the engine takes it: 0 or -EINVAL. */
int ibv_mw_fill_bind(const struct ibv_qp *qp, const struct ibv_mw *mw, uint32_t rkey,
                     const struct ibv_mw_bind_info *info, struct nic_send_wr *to);

/* ibv_dm.c */
struct ibv_dm *ibv_alloc_dm_op(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int ibv_free_dm_op(struct ibv_dm *dm);
struct ibv_mr *ibv_reg_dm_mr_op(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
                                size_t length, unsigned access);
struct dm_memory;
void ibv_dm_unuse(struct dm_memory *dm); /* a region of it has gone */
/* A region's own view of another process's device memory: fd is taken over. NULL and errno. */
struct dm_memory *ibv_dm_map(int fd);
uint8_t *ibv_dm_at(struct dm_memory *dm, uint64_t offset, uint64_t length); /* NULL: not there */

/* For ibv_share.c, under its lock: one more handle; the object goes (0 or -errno), though the
 * handle stays; what it is for another process (0 or -errno). */
void ibv_dm_join(struct dm_memory *dm);
int ibv_pd_end(struct share *s);
int ibv_mr_end(struct share *s);
int ibv_dm_end(struct share *s);
int ibv_mr_tell(const struct share *s, struct verbena_share_reply *r, int *fd);
int ibv_dm_tell(const struct share *s, struct verbena_share_reply *r, int *fd);
int ibv_dm_tell_region(const struct dm_memory *dm, const void *addr, struct verbena_share_reply *r,
                       int *fd);

/* ibv_domain.c */
struct ibv_td *ibv_alloc_td_op(struct ibv_context *context, struct ibv_td_init_attr *attr);
int ibv_dealloc_td_op(struct ibv_td *td);
struct ibv_pd *ibv_alloc_parent_domain_op(struct ibv_context *context,
                                          struct ibv_parent_domain_init_attr *attr);
int ibv_dealloc_parent_domain(struct ibv_pd_obj *domain);

#endif
