/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_unsupported.c: public functions that this device cannot serve (EOPNOTSUPP, so that programs
 * take another way), and those that have nothing to do here.
 */
#include <errno.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include <infiniband/sa.h>

#include "verbs/ibv_objects.h"

#define UNUSED(x) ((void)(x))

/* No memory is pinned for hardware, so fork needs no help. */
VERBS_ABI int ibv_fork_init(void)
{
    return 0;
}

VERBS_ABI enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size);
VERBS_ABI int ibv_dontfork_range(void *base, size_t size)
{
    UNUSED(base);
    UNUSED(size);
    return 0;
}

int ibv_dofork_range(void *base, size_t size);
VERBS_ABI int ibv_dofork_range(void *base, size_t size)
{
    UNUSED(base);
    UNUSED(size);
    return 0;
}

VERBS_ABI struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *ctx, struct ibv_dmah_init_attr *attr)
{
    UNUSED(ctx);
    UNUSED(attr);
    errno = EOPNOTSUPP;
    return NULL;
}

VERBS_ABI int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
    UNUSED(dmah);
    return EOPNOTSUPP;
}

VERBS_ABI struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
    UNUSED(pd);
    UNUSED(attr);
    errno = EOPNOTSUPP;
    return NULL;
}

VERBS_ABI int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
    UNUSED(dm);
    errno = EOPNOTSUPP;
    return -1;
}

VERBS_ABI void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
    UNUSED(pd);
    UNUSED(size);
    UNUSED(buf);
    errno = EOPNOTSUPP;
    return NULL;
}

VERBS_ABI void ibv_free_buf(struct ibv_buf *buf)
{
    UNUSED(buf);
}

VERBS_ABI struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
                                        size_t length, int access)
{
    UNUSED(pd);
    UNUSED(buf);
    UNUSED(addr);
    UNUSED(length);
    UNUSED(access);
    errno = EOPNOTSUPP;
    return NULL;
}

VERBS_ABI int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
    UNUSED(buf);
    errno = EOPNOTSUPP;
    return -1;
}

VERBS_ABI int _ibv_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps,
                                        size_t caps_size)
{
    UNUSED(ctx);
    UNUSED(caps);
    UNUSED(caps_size);
    return EOPNOTSUPP;
}

VERBS_ABI struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *ctx,
                                                     struct ibv_comp_cntr_init_attr *attr)
{
    UNUSED(ctx);
    UNUSED(attr);
    errno = EOPNOTSUPP;
    return NULL;
}

VERBS_ABI int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr)
{
    UNUSED(cntr);
    return EOPNOTSUPP;
}

#define CNTR_CHANGE(name)                                                                          \
    VERBS_ABI int name(struct ibv_comp_cntr *cntr, uint64_t value)                                 \
    {                                                                                              \
        UNUSED(cntr);                                                                              \
        UNUSED(value);                                                                             \
        return EOPNOTSUPP;                                                                         \
    }
#define CNTR_READ(name)                                                                            \
    VERBS_ABI int name(struct ibv_comp_cntr *cntr, uint64_t *value)                                \
    {                                                                                              \
        UNUSED(cntr);                                                                              \
        UNUSED(value);                                                                             \
        return EOPNOTSUPP;                                                                         \
    }
CNTR_CHANGE(ibv_set_comp_cntr)
CNTR_CHANGE(ibv_set_err_comp_cntr)
CNTR_CHANGE(ibv_inc_comp_cntr)
CNTR_CHANGE(ibv_inc_err_comp_cntr)
CNTR_READ(ibv_read_comp_cntr)
CNTR_READ(ibv_read_err_comp_cntr)

VERBS_ABI int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
                                      struct ibv_qp_attach_comp_cntr_attr *attr)
{
    UNUSED(qp);
    UNUSED(cntr);
    UNUSED(attr);
    return EOPNOTSUPP;
}

/*
 * These turn the kernel's structs into the library's for rdma-core's own connection manager, which
 * finds no kernel here: there is never anything to turn.
 */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from);
VERBS_ABI void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from)
{
    UNUSED(from);
    memset(to, 0, sizeof(*to));
}

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);
VERBS_ABI void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from)
{
    UNUSED(from);
    memset(to, 0, sizeof(*to));
}

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
VERBS_ABI void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to,
                                           struct ib_user_path_rec *from)
{
    UNUSED(from);
    memset(to, 0, sizeof(*to));
}

void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);
VERBS_ABI void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from)
{
    UNUSED(from);
    memset(to, 0, sizeof(*to));
}
