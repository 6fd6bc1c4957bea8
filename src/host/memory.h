/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h: the part of host.h that is about memory: regions, and the windows on them. Results are
 * as there: 0 or -errno, from any thread.
 */
#ifndef HOST_MEMORY_H
#define HOST_MEMORY_H

#include "verbena/types.h"

#ifndef VERBENA_EXPORT
#define VERBENA_EXPORT __attribute__((visibility("default")))
#endif

struct mr;
struct mw;
struct pd;
struct verbena_context;

/* A region with ACCESS_ON_DEMAND need not be there yet. */
VERBENA_EXPORT int verbena_mr_reg(struct verbena_context *ctx, struct pd *pd, void *addr,
                                  uint64_t length, uint64_t iova, unsigned access, struct mr **out);
/* Locally all addresses: reads are zeros, writes vanish. */
VERBENA_EXPORT int verbena_mr_reg_null(struct verbena_context *ctx, struct pd *pd, struct mr **out);
VERBENA_EXPORT uint32_t verbena_mr_key(const struct mr *mr);
/* When it returns, not a byte of the region is touched any more. -EBUSY: a window is bound to it.
 */
VERBENA_EXPORT int verbena_mr_dereg(struct verbena_context *ctx, struct mr *mr);

enum verbena_mr_change {
    MR_CHANGE_TRANSLATION = 1 << 0, /* addr, length; another key, so that nobody with the old one
                                       finds other bytes */
    MR_CHANGE_PD = 1 << 1,
    MR_CHANGE_ACCESS = 1 << 2,
};
/* Changes a region; when it returns, nothing is done any more that it allowed before. On failure it
 * is as it was. -EBUSY: a window is bound to it. */
VERBENA_EXPORT int verbena_mr_change(struct verbena_context *ctx, struct mr **mr, unsigned change,
                                     struct pd *pd, void *addr, uint64_t length, unsigned access);
/* Makes pages of on-demand memory present, if write for writing. -EFAULT: some are not there. */
VERBENA_EXPORT int verbena_mr_prefetch(struct verbena_context *ctx, const struct pd *pd,
                                       const struct nic_sge *sge, int num_sge, bool write);

/* What a region is. */
struct verbena_region {
    void *addr;
    uint64_t length, iova;
    unsigned access;
    bool null;
};
VERBENA_EXPORT void verbena_mr_describe(const struct mr *mr, struct verbena_region *out);

/* Memory that several processes may have: a piece of a file (or of what the kernel calls one). */
struct verbena_mapping {
    uint64_t dev, ino, offset;
};
/* What is mapped there, for all of length bytes. -EOPNOTSUPP: nothing, or nothing that others may
 * have mapped, too. */
VERBENA_EXPORT int verbena_mapping_of(const void *addr, uint64_t length,
                                      struct verbena_mapping *out);
/* Where this process has it mapped, if write for writing. -EOPNOTSUPP: nowhere. */
VERBENA_EXPORT int verbena_mapping_find(const struct verbena_mapping *m, uint64_t length,
                                        bool write, void **out);

/* type 1 or 2; else -EINVAL. */
VERBENA_EXPORT int verbena_mw_create(struct verbena_context *ctx, struct pd *pd, int type,
                                     struct mw **out);
VERBENA_EXPORT uint32_t verbena_mw_key(struct mw *mw);
/* Bound or not; when it returns, no peer uses it any more. */
VERBENA_EXPORT int verbena_mw_destroy(struct verbena_context *ctx, struct mw *mw);

/* Is this memory there, for writing? It is afterwards. Never faults. */
bool memory_touch(const void *addr, uint64_t n, bool write);
/* For the engine (struct nic_config): copies from or to memory that may not be there, or go while
 * they run. false, and never a fault. Of a store to several pages not a byte lands if one is
 * missing before it begins. */
bool memory_fetch(void *to, const void *from, size_t n);
bool memory_store(void *to, const void *from, size_t n);

#endif
