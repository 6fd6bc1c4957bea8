/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c: regions and windows of the live device: the engine's, plus what only the operating
 * system knows, whether memory is there, and the grace period before it goes.
 */
#define _GNU_SOURCE
#include "host/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/host_priv.h"
#include "nic/mw.h"

/* Linux 5.14; older C libraries do not name them. */
enum { ADVICE_POPULATE_READ = 22, ADVICE_POPULATE_WRITE = 23 };

static bool dead(const struct verbena_context *ctx)
{
    return !host_alive(ctx->host);
}

/* A region with a hole is refused here, as by a card that pins pages, or a packet would end the
 * program later. MS_ASYNC only looks whether all of it is mapped. */
static bool all_mapped(const void *addr, uint64_t length)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t into = (uintptr_t)addr & (page - 1);
    if (length > UINTPTR_MAX - page - (uintptr_t)addr) /* msync would round it up to nothing */
        return false;
    return length == 0 || msync((char *)(uintptr_t)addr - into, length + into, MS_ASYNC) == 0;
}

/* Does the kernel know the advice? */
static bool can_populate(void)
{
    static _Atomic int known; /* 0: not asked yet, 1: yes, -1: no */
    int k = atomic_load_explicit(&known, memory_order_relaxed);
    if (k == 0) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        char *here = (char *)((uintptr_t)&known & ~(page - 1));
        k = madvise(here, page, ADVICE_POPULATE_READ) == 0 ? 1 : -1;
        atomic_store_explicit(&known, k, memory_order_relaxed);
    }
    return k > 0;
}

/* What a card does on a page fault. */
bool memory_touch(const void *addr, uint64_t n, bool write)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)addr & ~(page - 1);
    uintptr_t last = (uintptr_t)addr + (n - 1);
    int err;
    if (n == 0)
        return true;
    if (last > UINTPTR_MAX - page)
        return false;
    if (!can_populate())
        return all_mapped(addr, n);
    do {
        err = madvise((char *)first, (last | (page - 1)) + 1 - first,
                      write ? ADVICE_POPULATE_WRITE : ADVICE_POPULATE_READ);
    } while (err != 0 && (errno == EINTR || errno == EAGAIN));
    return err == 0;
}

/*
 * The kernel copies, as between processes, so that memory that is not there is an error to it and
 * no signal to the program, whatever other threads unmap meanwhile. Pieces go in their order. 1:
 * done, 0: not there, -1: a sandbox does not let us.
 */
static int kernel_copies(void *to, const void *from, size_t n, bool write)
{
    struct iovec here[MEM_PIECES], there[MEM_PIECES];
    size_t piece[MEM_PIECES], at = 0;
    unsigned pieces = mem_pieces(to, n, piece);
    for (unsigned i = 0; i < pieces; i++) {
        /* Numbers: what there is at these addresses is not known, it may be NULL. */
        const struct iovec a = {(void *)((uintptr_t)to + at), piece[i]};
        const struct iovec b = {(void *)((uintptr_t)from + at), piece[i]};
        here[i] = write ? b : a;
        there[i] = write ? a : b;
        at += piece[i];
    }
    ssize_t done = write ? process_vm_writev(getpid(), here, pieces, there, pieces, 0)
                         : process_vm_readv(getpid(), here, pieces, there, pieces, 0);
    if (done < 0 && (errno == ENOSYS || errno == EPERM))
        return -1;
    return done == (ssize_t)n;
}

/* Where the kernel may not copy the memory is asked for and then touched: one that another thread
 * unmaps in between ends the program. */
bool memory_fetch(void *to, const void *from, size_t n)
{
    int done = kernel_copies(to, from, n, false);
    if (done >= 0)
        return done > 0;
    if (!memory_touch(from, n, false))
        return false;
    memcpy(to, from, n);
    return true;
}

bool memory_store(void *to, const void *from, size_t n)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    bool one = n == 0 || ((uintptr_t)to ^ ((uintptr_t)to + n - 1)) < page;
    if (!one && !memory_touch(to, n, true))
        return false;
    int done = kernel_copies(to, from, n, true);
    if (done >= 0)
        return done > 0;
    if (!memory_touch(to, n, true))
        return false;
    mem_scatter(to, from, n);
    return true;
}

/*
 * May the NIC use this memory as it is asked to? A card pins all of it, so it hears of constants
 * that are to be written, and of what lies behind the end of a file. Here a program pays for no
 * page that it does not use: only the first and the last are asked for.
 */
static bool usable(void *addr, uint64_t length, unsigned access)
{
    bool write = (access & ACCESS_LOCAL_WRITE) != 0;
    if ((access & ACCESS_ON_DEMAND) || length == 0)
        return true;
    return all_mapped(addr, length) && memory_touch(addr, 1, write) &&
           memory_touch((void *)((uintptr_t)addr + (length - 1)), 1, write);
}

int verbena_mr_reg(struct verbena_context *ctx, struct pd *pd, void *addr, uint64_t length,
                   uint64_t iova, unsigned access, struct mr **out)
{
    if (dead(ctx))
        return -EIO;
    if (!usable(addr, length, access))
        return -EFAULT;
    return mem_reg(pd, addr, length, iova, access, out);
}

int verbena_mr_reg_null(struct verbena_context *ctx, struct pd *pd, struct mr **out)
{
    return dead(ctx) ? -EIO : mem_reg_null(pd, out);
}

uint32_t verbena_mr_key(const struct mr *mr)
{
    return mr->key;
}

void verbena_mr_describe(const struct mr *mr, struct verbena_region *out)
{
    *out = (struct verbena_region){
        .addr = mr->base,
        .length = mr->length,
        .iova = mr->iova_start,
        .access = mr->access,
        .null = mr->kind == MEM_KIND_NULL,
    };
}

int verbena_mr_dereg(struct verbena_context *ctx, struct mr *mr)
{
    if (dead(ctx))
        return -EIO;
    int err = mem_mr_revoke(mr);
    if (err != 0)
        return err;
    progress_grace(ctx->host);
    mem_mr_free(mr);
    return 0;
}

int verbena_mr_change(struct verbena_context *ctx, struct mr **mr, unsigned change, struct pd *pd,
                      void *addr, uint64_t length, unsigned access)
{
    struct mr *old = *mr;
    struct mr want = *old;
    if (dead(ctx))
        return -EIO;
    if (old->kind == MEM_KIND_NULL)
        return -EINVAL;
    if (change & MR_CHANGE_PD)
        want.pd = pd;
    if (change & MR_CHANGE_ACCESS)
        want.access = access;
    if (change & MR_CHANGE_TRANSLATION) {
        want.base = addr;
        want.length = length;
    }
    if ((change & MR_CHANGE_TRANSLATION) || ((old->access & ~want.access) & ACCESS_ZERO_BASED))
        want.iova_start = (uintptr_t)want.base;
    if (!usable(want.base, want.length, want.access))
        return -EFAULT;
    int err = mem_reg_again(old, !(change & MR_CHANGE_TRANSLATION), &want, mr);
    if (err != 0)
        return err;
    progress_grace(ctx->host);
    mem_mr_retire(old);
    return 0;
}

int verbena_mr_prefetch(struct verbena_context *ctx, const struct pd *pd, const struct nic_sge *sge,
                        int num_sge, bool write)
{
    if (dead(ctx))
        return -EIO;
    for (int i = 0; i < num_sge; i++) {
        struct mem_table *t = &ctx->host->nic->mem;
        uint8_t *addr;
        bool paged;
        if (sge[i].length == 0)
            continue;
        /* Elsewhere a grace period keeps the region; here the lock does. */
        lock_take(&t->lock);
        enum mem_verdict v = mem_find(ctx->host->nic, pd, sge[i].lkey, sge[i].addr, sge[i].length,
                                      write ? ACCESS_LOCAL_WRITE : 0, 0, &addr, &paged);
        lock_drop(&t->lock);
        switch (v) {
        case MEM_OK:
            if (paged && !memory_touch(addr, sge[i].length, write))
                return -EFAULT;
            break;
        case MEM_BAD_ACCESS:
            return -EPERM;
        case MEM_BAD_RANGE:
            return -EFAULT;
        default:
            return -EINVAL;
        }
    }
    return 0;
}

int verbena_mw_create(struct verbena_context *ctx, struct pd *pd, int type, struct mw **out)
{
    return dead(ctx) ? -EIO : mw_create(pd, (enum mw_type)type, out);
}

uint32_t verbena_mw_key(struct mw *mw)
{
    return mw_key(mw);
}

int verbena_mw_destroy(struct verbena_context *ctx, struct mw *mw)
{
    if (dead(ctx))
        return -EIO;
    mw_revoke(mw);
    progress_grace(ctx->host);
    mw_free(mw);
    return 0;
}
