/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem.c: protection domains, the key table, the checks, and the ordered copy into user memory.
 *
 * Readers of the key table take no lock: a slot is published with release order after its region is
 * complete, cleared by a revoke, and a region is freed only after the caller's grace period.
 */
#include "nic/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "nic/mw.h"
#include "nic/nic.h"

enum {
    CACHE_LINE_BYTES = 64,
    STAGING_BYTES = TRAIN_MAX_BYTES + PATH_MTU_MAX_BYTES,
};

/* Bits 20..29 ask for optional behaviour (relaxed ordering): a NIC that lacks it ignores them. */
#define ACCESS_OPTIONAL 0x3ff00000u

int mem_init(struct mem_table *t, uint32_t slots, uint64_t seed)
{
    *t = (struct mem_table){.slots = slots};
    rng_init(&t->rng, seed);
    t->index_secret = rng_below(&t->rng, MAX_MR);
    t->slot = calloc(slots, sizeof(*t->slot));
    t->free_index = calloc(slots, sizeof(*t->free_index));
    t->last_low = calloc(slots, sizeof(*t->last_low));
    if (t->slot == NULL || t->free_index == NULL || t->last_low == NULL) {
        free(t->slot);
        free(t->free_index);
        free(t->last_low);
        return -ENOMEM;
    }
    lock_init(&t->lock);
    return 0;
}

void mem_fini(struct mem_table *t)
{
    free(t->slot);
    free(t->free_index);
    free(t->last_low);
    free(atomic_load(&t->staging));
    lock_fini(&t->lock);
}

int mem_pd_create(struct nic *nic, struct pd **out)
{
    struct pd *pd = calloc(1, sizeof(*pd));

    if (pd == NULL)
        return -ENOMEM;
    pd->nic = nic;
    atomic_fetch_add(&nic->objects, 1);
    *out = pd;
    return 0;
}

int mem_pd_destroy(struct pd *pd)
{
    if (atomic_load(&pd->children) != 0)
        return -EBUSY;
    atomic_fetch_sub(&pd->nic->objects, 1);
    free(pd);
    return 0;
}

/* A key for this index that is not the one it had before, nor one that programs use to say "no
 * key". With the table's lock held. */
static uint32_t draw_key(struct mem_table *t, uint32_t index)
{
    uint32_t high = (index ^ t->index_secret) << 16;
    uint16_t low;

    do {
        low = (uint16_t)(rng_next(&t->rng) >> 48);
    } while (low == t->last_low[index] || (high | low) == 0 || (high | low) == UINT32_MAX);
    t->last_low[index] = low;
    return high | low;
}

static uint32_t key_index(const struct mem_table *t, uint32_t key)
{
    return key >> 16 ^ t->index_secret;
}

static bool range_wraps(uint64_t start, uint64_t length)
{
    return length != 0 && start + (length - 1) < start;
}

/* Rights and addresses of a new region. 0 or -EINVAL. */
static int mr_init(struct mr *mr, const struct mr *want)
{
    *mr = *want;
    mr->access &= ~ACCESS_OPTIONAL;
    if (mr->access & ~(unsigned)ACCESS_KNOWN)
        return -EINVAL;
    if (mr->access & ACCESS_FLUSH_PERSISTENT)
        return -EOPNOTSUPP; /* this memory is gone with the power */
    /* IBA 10.6.3.1: remote write and atomics write here, so local write must be granted. */
    if ((mr->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) &&
        !(mr->access & ACCESS_LOCAL_WRITE))
        return -EINVAL;
    if (mr->access & ACCESS_ZERO_BASED)
        mr->iova_start = 0;
    if (range_wraps((uintptr_t)mr->base, mr->length) || range_wraps(mr->iova_start, mr->length))
        return -EINVAL;
    mr->kind = mr->access & ACCESS_ON_DEMAND ? MEM_KIND_PAGED : MEM_KIND_PLAIN;
    return 0;
}

int mem_table_add(struct mem_table *t, struct mr *entry)
{
    uint32_t index;

    lock_take(&t->lock);
    if (t->free_count == 0 && t->unused == t->slots) {
        lock_drop(&t->lock);
        return -ENOMEM;
    }
    index = t->free_count != 0 ? t->free_index[--t->free_count] : t->unused++;
    entry->key = draw_key(t, index);
    atomic_store_explicit(&t->slot[index], entry, memory_order_release);
    lock_drop(&t->lock);
    atomic_fetch_add(&entry->pd->children, 1);
    return 0;
}

/* Before there is on-demand memory. */
static bool staging_create(struct mem_table *t)
{
    uint8_t *none = NULL, *staging;

    if (atomic_load_explicit(&t->staging, memory_order_relaxed) != NULL)
        return true;
    staging = alloc_touched(1, STAGING_BYTES);
    if (staging != NULL && !atomic_compare_exchange_strong(&t->staging, &none, staging))
        free(staging); /* another was faster */
    return staging != NULL;
}

static int reg(const struct mr *want, struct mr **out)
{
    struct mr *mr;

    if (want->kind == MEM_KIND_PAGED && !staging_create(&want->pd->nic->mem))
        return -ENOMEM;
    mr = malloc(sizeof(*mr));
    if (mr == NULL)
        return -ENOMEM;
    *mr = *want;
    if (mem_table_add(&want->pd->nic->mem, mr) != 0) {
        free(mr);
        return -ENOMEM;
    }
    *out = mr;
    return 0;
}

int mem_reg(struct pd *pd, void *base, uint64_t length, uint64_t iova_start, unsigned access,
            struct mr **out)
{
    struct mr want = {
        .pd = pd, .base = base, .length = length, .iova_start = iova_start, .access = access};
    struct mr mr;
    int err = mr_init(&mr, &want);

    return err != 0 ? err : reg(&mr, out);
}

int mem_reg_null(struct pd *pd, struct mr **out)
{
    struct mr mr = {.pd = pd, .kind = MEM_KIND_NULL, .access = ACCESS_LOCAL_WRITE};

    return reg(&mr, out);
}

int mem_reg_again(struct mr *old, bool keep_key, const struct mr *want, struct mr **out)
{
    struct mem_table *t = &old->pd->nic->mem;
    uint32_t index = key_index(t, old->key);
    struct mr *mr = malloc(sizeof(*mr));
    int err;

    if (mr == NULL)
        return -ENOMEM;
    err = mr_init(mr, want);
    if (err == 0 && mr->kind == MEM_KIND_PAGED && !staging_create(t))
        err = -ENOMEM;
    if (err != 0) {
        free(mr);
        return err;
    }
    lock_take(&t->lock);
    if (old->windows != 0) {
        lock_drop(&t->lock);
        free(mr);
        return -EBUSY;
    }
    mr->windows = 0;
    mr->key = keep_key ? old->key : draw_key(t, index);
    atomic_store_explicit(&t->slot[index], mr, memory_order_release);
    lock_drop(&t->lock);
    atomic_fetch_add(&mr->pd->children, 1);
    *out = mr;
    return 0;
}

void mem_mr_retire(struct mr *old)
{
    atomic_fetch_sub(&old->pd->children, 1);
    free(old);
}

int mem_mr_revoke(struct mr *mr)
{
    struct mem_table *t = &mr->pd->nic->mem;
    int err = 0;

    lock_take(&t->lock);
    if (mr->windows != 0)
        err = -EBUSY;
    else
        mem_table_hide(t, mr->key);
    lock_drop(&t->lock);
    return err;
}

void mem_table_hide(struct mem_table *t, uint32_t key)
{
    atomic_store_explicit(&t->slot[key_index(t, key)], NULL, memory_order_release);
}

void mem_table_remove(struct mem_table *t, uint32_t key)
{
    uint32_t index = key_index(t, key);

    lock_take(&t->lock);
    mem_table_hide(t, key);
    t->last_low[index] = (uint16_t)key;
    t->free_index[t->free_count++] = index;
    lock_drop(&t->lock);
}

void mem_mr_free(struct mr *mr)
{
    mem_table_remove(&mr->pd->nic->mem, mr->key);
    mem_mr_retire(mr);
}

struct mr *mem_table_at(struct mem_table *t, uint32_t key)
{
    uint32_t index = key_index(t, key);

    if (index >= t->slots)
        return NULL;
    return atomic_load_explicit(&t->slot[index], memory_order_acquire);
}

/* What a null region reads as. One packet is the most that is read at once. */
static uint8_t zeros[PATH_MTU_MAX_BYTES];

static enum mem_verdict check_null(const struct mr *mr, const struct pd *pd, uint32_t key,
                                   unsigned need, uint32_t from_qpn, uint8_t **addr)
{
    if (mr->key != key || from_qpn != 0)
        return MEM_BAD_KEY;
    if (mr->pd != pd)
        return MEM_BAD_PD;
    *addr = need & ACCESS_LOCAL_WRITE ? NULL : zeros;
    return MEM_OK;
}

enum mem_verdict mem_find(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                          uint64_t n, unsigned need, uint32_t from_qpn, uint8_t **addr, bool *paged)
{
    struct mr *mr = mem_table_at(&nic->mem, key);

    *paged = false;
    if (mr == NULL)
        return MEM_BAD_KEY;
    if (mr->kind == MEM_KIND_PLAIN)
        return mem_check_entry(mr, pd, key, va, n, need, addr);
    if (mr->kind == MEM_KIND_NULL)
        return check_null(mr, pd, key, need, from_qpn, addr);
    if (mr->kind == MEM_KIND_WINDOW)
        return mw_check(mr, pd, key, va, n, need, from_qpn, addr, paged);
    *paged = true;
    return mem_check_entry(mr, pd, key, va, n, need, addr);
}

enum mem_verdict mem_check(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                           uint64_t n, unsigned need, uint32_t from_qpn, uint8_t **addr)
{
    bool paged;

    return mem_find(nic, pd, key, va, n, need, from_qpn, addr, &paged);
}

static bool fetch(const struct mem_table *t, void *to, const uint8_t *from, size_t n)
{
    if (t->fetch != NULL)
        return t->fetch(to, from, n);
    memcpy(to, from, n);
    return true;
}

static bool store(const struct mem_table *t, uint8_t *to, const uint8_t *from, size_t n)
{
    if (t->store != NULL)
        return t->store(to, from, n);
    mem_scatter(to, from, n);
    return true;
}

/* To where the bytes stay until the train is out. */
static bool stage(struct mem_table *t, uint8_t **addr, uint32_t n)
{
    uint8_t *place = atomic_load_explicit(&t->staging, memory_order_acquire) + t->staged;

    assert(n <= STAGING_BYTES - t->staged);
    if (!fetch(t, place, *addr, n))
        return false;
    t->staged += n;
    *addr = place;
    return true;
}

void mem_train(struct nic *nic)
{
    nic->mem.staged = 0;
}

enum mem_verdict mem_read(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                          uint32_t n, unsigned need, uint32_t from_qpn, struct span *out)
{
    uint8_t *addr = NULL;
    bool paged;
    enum mem_verdict v = mem_find(nic, pd, key, va, n, need, from_qpn, &addr, &paged);

    if (v == MEM_OK && paged && !stage(&nic->mem, &addr, n))
        v = MEM_BAD_RANGE;
    if (v == MEM_OK)
        *out = (struct span){.addr = addr, .bytes = n};
    return v;
}

enum mem_verdict mem_write(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                           const uint8_t *src, uint32_t n, unsigned need, uint32_t from_qpn)
{
    uint8_t *addr = NULL;
    bool paged;
    enum mem_verdict v = mem_find(nic, pd, key, va, n, need, from_qpn, &addr, &paged);

    if (v != MEM_OK)
        return v;
    if (paged)
        return store(&nic->mem, addr, src, n) ? MEM_OK : MEM_BAD_RANGE;
    if (addr != NULL)
        mem_scatter(addr, src, n);
    return MEM_OK;
}

static uint64_t atomic_locked(uint64_t *cell, const struct mem_atomic *a)
{
    uint64_t expected = a->compare;

    if (!a->swap)
        return __atomic_fetch_add(cell, a->swap_add, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(cell, &expected, a->swap_add, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return expected;
}

enum mem_verdict mem_atomic(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                            uint32_t from_qpn, const struct mem_atomic *a, uint64_t *original)
{
    uint8_t *addr;
    uint64_t cell;
    bool paged;
    enum mem_verdict v =
        mem_find(nic, pd, key, va, sizeof(cell), ACCESS_REMOTE_ATOMIC, from_qpn, &addr, &paged);

    if (v != MEM_OK)
        return v;
    if ((uintptr_t)addr % sizeof(cell) != 0)
        return MEM_BAD_ALIGN;
    if (!paged) {
        *original = atomic_locked((uint64_t *)(void *)addr, a);
        return MEM_OK;
    }
    if (!fetch(&nic->mem, &cell, addr, sizeof(cell)))
        return MEM_BAD_RANGE;
    *original = atomic_locked(&cell, a);
    return store(&nic->mem, addr, (const uint8_t *)&cell, sizeof(cell)) ? MEM_OK : MEM_BAD_RANGE;
}

/* The largest of 8, 4, 2, 1 bytes that ends at end, is aligned there and not longer than n. */
static size_t last_unit_bytes(uintptr_t end, size_t n)
{
    for (size_t unit = 8; unit > 1; unit /= 2) {
        if ((end & (unit - 1)) == 0 && n >= unit)
            return unit;
    }
    return 1;
}

/* Bytes of n in the last cache line. */
static size_t last_line_bytes(uintptr_t end, size_t n)
{
    size_t line = ((end - 1) & (CACHE_LINE_BYTES - 1)) + 1;

    return line < n ? line : n;
}

/* One store, after all stores before it. */
static void store_unit(uint8_t *dst, const uint8_t *src, size_t unit)
{
    uint64_t v8;
    uint32_t v4;
    uint16_t v2;

    switch (unit) {
    case 8:
        memcpy(&v8, src, 8);
        __atomic_store_n((uint64_t *)(void *)dst, v8, __ATOMIC_RELEASE);
        break;
    case 4:
        memcpy(&v4, src, 4);
        __atomic_store_n((uint32_t *)(void *)dst, v4, __ATOMIC_RELEASE);
        break;
    case 2:
        memcpy(&v2, src, 2);
        __atomic_store_n((uint16_t *)(void *)dst, v2, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n(dst, *src, __ATOMIC_RELEASE);
        break;
    }
}

/*
 * The last aligned word goes as one store, so that a reader who polls a flag wider than a byte does
 * not see half of it either. memmove, as source and destination may be the same program's memory;
 * it may write in any order, hence the fences around each step.
 */
void mem_scatter(uint8_t *dst, const uint8_t *src, size_t n)
{
    uintptr_t end = (uintptr_t)dst + n;
    size_t line, unit;

    if (n == 0 || dst == src) /* hosts of a fabric have one memory */
        return;
    unit = last_unit_bytes(end, n);
    if (n > unit) {
        line = last_line_bytes(end, n);
        if (n > line) {
            memmove(dst, src, n - line);
            atomic_thread_fence(memory_order_release);
        }
        memmove(dst + n - line, src + n - line, line - unit);
    }
    store_unit(dst + n - unit, src + n - unit, unit);
}

unsigned mem_pieces(const void *dst, size_t n, size_t piece[MEM_PIECES])
{
    uintptr_t end = (uintptr_t)dst + n;
    unsigned pieces = 0;

    if (n == 0)
        return 0;
    const size_t unit = last_unit_bytes(end, n), line = last_line_bytes(end, n);
    const size_t bytes[MEM_PIECES] = {n - line, line - unit, unit};
    for (unsigned i = 0; i < MEM_PIECES; i++) {
        if (bytes[i] != 0)
            piece[pieces++] = bytes[i];
    }
    return pieces;
}

uint64_t mem_sge_bytes(const struct nic_sge *sge, int num)
{
    uint64_t sum = 0;

    for (int i = 0; i < num; i++)
        sum += sge[i].length;
    return sum;
}

enum mem_verdict mem_check_sges(struct nic *nic, const struct pd *pd, const struct nic_sge *sge,
                                int num, unsigned need)
{
    uint8_t *addr;

    for (int i = 0; i < num; i++) {
        enum mem_verdict v;

        if (sge[i].length == 0)
            continue;
        v = mem_check(nic, pd, sge[i].lkey, sge[i].addr, sge[i].length, need, 0, &addr);
        if (v != MEM_OK)
            return v;
    }
    return MEM_OK;
}

enum mem_verdict mem_gather(struct nic *nic, const struct pd *pd, const struct nic_sge *sge,
                            int num, uint64_t offset, uint32_t n, struct span *out, uint16_t *count)
{
    const uint32_t staged = nic->mem.staged;
    uint16_t used = *count;

    for (int i = 0; i < num && n > 0; i++) {
        uint64_t left;
        uint32_t piece;
        enum mem_verdict v;

        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        left = sge[i].length - offset;
        piece = left < n ? (uint32_t)left : n;
        v = mem_read(nic, pd, sge[i].lkey, sge[i].addr + offset, piece, 0, 0, &out[used]);
        if (v != MEM_OK) {
            nic->mem.staged = staged;
            return v;
        }
        used++;
        n -= piece;
        offset = 0;
    }
    *count = used;
    return MEM_OK;
}

enum mem_verdict mem_scatter_sges(struct nic *nic, const struct pd *pd, const struct nic_sge *sge,
                                  int num, uint64_t offset, const uint8_t *src, uint32_t n)
{
    struct {
        uint8_t *addr;
        uint32_t bytes;
        bool paged;
    } place[MAX_SGE];
    int places = 0;

    /* Everything is checked before the first byte is written, but for what only writing tells. */
    for (int i = 0; i < num && i < MAX_SGE && n > 0; i++) {
        uint64_t left;
        uint32_t piece;
        enum mem_verdict v;

        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        left = sge[i].length - offset;
        piece = left < n ? (uint32_t)left : n;
        place[places].addr = NULL; /* of no bytes there is none */
        v = mem_find(nic, pd, sge[i].lkey, sge[i].addr + offset, piece, ACCESS_LOCAL_WRITE, 0,
                     &place[places].addr, &place[places].paged);
        if (v != MEM_OK)
            return v;
        place[places++].bytes = piece;
        n -= piece;
        offset = 0;
    }
    for (int i = 0; i < places; i++) {
        if (place[i].paged) {
            if (!store(&nic->mem, place[i].addr, src, place[i].bytes))
                return MEM_BAD_RANGE;
        } else if (place[i].addr != NULL) {
            mem_scatter(place[i].addr, src, place[i].bytes);
        }
        src += place[i].bytes;
    }
    return MEM_OK;
}
