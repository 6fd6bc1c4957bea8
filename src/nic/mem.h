/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem.h: protection domains and memory regions: who may touch which bytes. Every byte that the
 * engine reads or writes for a work request or a packet goes through mem_check first, and through
 * mem_scatter when it is written. Memory windows are in mw.h.
 */
#ifndef NIC_MEM_H
#define NIC_MEM_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/rng.h"
#include "verbena/port.h"
#include "verbena/types.h"

struct nic;
struct qp;

struct pd {
    struct nic *nic;
    _Atomic uint32_t children; /* MRs, MWs, QPs, SRQs, AHs; must be 0 to free */
};

/* What an entry of the key table is. All but the first take the slow way through mem_check. */
enum mem_kind {
    MEM_KIND_PLAIN,  /* a region whose memory was there when it was registered */
    MEM_KIND_PAGED,  /* ACCESS_ON_DEMAND: asked for page by page when it is used */
    MEM_KIND_NULL,   /* reads are zeros, writes vanish; only locally */
    MEM_KIND_WINDOW, /* the entry of a struct mw */
};

/*
 * A region. Key = (index ^ nic secret) << 16 | 16 random bits, the same value as lkey and rkey; it
 * changes with every registration.
 */
struct mr {
    struct pd *pd;
    uint8_t *base; /* where iova_start lies in this process */
    uint64_t
        iova_start; /* address that WRs and peers use for the first byte; 0 if ACCESS_ZERO_BASED */
    uint64_t length;
    unsigned access; /* ACCESS_*; LOCAL_READ is implied */
    uint32_t key;
    enum mem_kind kind;
    uint32_t windows; /* bound to it; under the table's lock */
};

enum mem_verdict {
    MEM_OK,
    MEM_BAD_KEY,    /* no such key, or not one that may be used so */
    MEM_BAD_PD,     /* region of another protection domain */
    MEM_BAD_RANGE,  /* bytes outside the region, or wrapping, or not there (on demand) */
    MEM_BAD_ACCESS, /* right not granted */
    MEM_BAD_ALIGN,  /* an address that is aligned where the memory is not (atomics) */
};

/* Key table of one NIC; lives in struct nic. */
struct mem_table {
    struct lock lock;           /* guards writers; mem_check reads without it */
    _Atomic(struct mr *) *slot; /* `slots` of them, a power of two up to MAX_MR */
    uint32_t slots;
    uint32_t *free_index; /* stack of those that are free again */
    uint32_t free_count;
    uint32_t unused;    /* lowest that never was in use: no page is touched before its time */
    uint16_t *last_low; /* of each slot: low key bits an index had last, so that they are not drawn
                           again */
    uint32_t index_secret; /* 16 bits */
    struct rng rng;
    bool (*fetch)(void *to, const void *from, size_t n); /* see struct nic_config */
    bool (*store)(void *to, const void *from, size_t n);
    /* What the train that is made takes of on-demand memory; NULL before there is any. The sending
     * side's. */
    _Atomic(uint8_t *) staging;
    uint32_t staged;
};

int mem_init(struct mem_table *t, uint32_t slots, uint64_t seed); /* 0 or -ENOMEM */
void mem_fini(struct mem_table *t);

/* 0, or -ENOMEM. */
int mem_pd_create(struct nic *nic, struct pd **out);
/* 0, or -EBUSY while children exist. */
int mem_pd_destroy(struct pd *pd);

/*
 * Registers length bytes at base, to be named iova_start (as seen by WRs and peers). 0; -EINVAL:
 * unknown access bits, remote write or atomic without local write (IBA 10.6.3.1), length that
 * wraps; -ENOMEM. Zero length is allowed. What is registered on demand is looked for when it is
 * used.
 */
int mem_reg(struct pd *pd, void *base, uint64_t length, uint64_t iova_start, unsigned access,
            struct mr **out);
/* A region of all addresses whose bytes read as zero and where what is written vanishes. */
int mem_reg_null(struct pd *pd, struct mr **out);
/*
 * Registers the region anew in old's place, with old's key if that is to stay. As mem_reg; and
 * -EBUSY: a window is bound to it. From then on old's rights are gone; the caller frees it with
 * mem_mr_retire after a grace period as below.
 */
int mem_reg_again(struct mr *old, bool keep_key, const struct mr *want, struct mr **out);
void mem_mr_retire(struct mr *old);
/*
 * Ends the key, at once for every later mem_check. The caller then waits until no nic_input or
 * nic_output that had passed its check is still running, and only then frees with mem_mr_free:
 * after that not a byte lands. 0, or -EBUSY: a window is bound to it.
 */
int mem_mr_revoke(struct mr *mr);
void mem_mr_free(struct mr *mr);

/*
 * May pd use [va, va+n) of key with these rights (ACCESS_* bits; 0: local read)? On MEM_OK *addr is
 * the place in this process, NULL for what is to vanish. from_qpn: of the QP to which a peer sent
 * the key; 0: it is an lkey. n == 0 asks for the key and its rights alone, and *addr is not to be
 * used; for a WRITE or READ of nothing the caller skips the check (IBA C9-88). Memory on demand
 * need not be there: nobody but mem_read, mem_write and mem_atomic uses its *addr.
 */
enum mem_verdict mem_check(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                           uint64_t n, unsigned need, uint32_t from_qpn, uint8_t **addr);
/* The same. *paged: of on-demand memory. */
enum mem_verdict mem_find(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                          uint64_t n, unsigned need, uint32_t from_qpn, uint8_t **addr,
                          bool *paged);

/*
 * The same, and the bytes, with MEM_BAD_RANGE for on-demand memory that is not there.
 */
/* As a span of the train that is being made: for nic_output, which calls mem_train before each. At
 * most one packet's. */
enum mem_verdict mem_read(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                          uint32_t n, unsigned need, uint32_t from_qpn, struct span *out);
void mem_train(struct nic *nic);
/* By mem_scatter. */
enum mem_verdict mem_write(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                           const uint8_t *src, uint32_t n, unsigned need, uint32_t from_qpn);
/* In host order, by the CPU's own locked instruction, so that it is atomic for the program, too. On
 * demand it is so only among the requests of this NIC, which is all that it promises. */
struct mem_atomic {
    bool swap; /* if it is `compare`; else adds */
    uint64_t compare, swap_add;
};
enum mem_verdict mem_atomic(struct nic *nic, const struct pd *pd, uint32_t key, uint64_t va,
                            uint32_t from_qpn, const struct mem_atomic *a, uint64_t *original);

/* Between mem.c and mw.c. Gives the entry a place and a key and makes it known: 0 or -ENOMEM. */
int mem_table_add(struct mem_table *t, struct mr *entry);
/* Nothing finds the entry any more. With the lock held. */
void mem_table_hide(struct mem_table *t, uint32_t key);
/* The place is free again, for others than this key. Takes the lock. */
void mem_table_remove(struct mem_table *t, uint32_t key);
/* What stands in the place of this key, whatever its key is; or NULL. */
struct mr *mem_table_at(struct mem_table *t, uint32_t key);
/* Key, domain, rights and bounds of a region or a bound window. */
static inline enum mem_verdict mem_check_entry(const struct mr *mr, const struct pd *pd,
                                               uint32_t key, uint64_t va, uint64_t n, unsigned need,
                                               uint8_t **addr)
{
    uint64_t offset;

    if (mr->key != key)
        return MEM_BAD_KEY;
    if (mr->pd != pd)
        return MEM_BAD_PD;
    if ((mr->access & need) != need)
        return MEM_BAD_ACCESS;
    if (va < mr->iova_start || n > mr->length)
        return n != 0 ? MEM_BAD_RANGE : MEM_OK;
    offset = va - mr->iova_start;
    if (offset > mr->length - n)
        return n != 0 ? MEM_BAD_RANGE : MEM_OK;
    *addr = (uint8_t *)((uintptr_t)mr->base + offset); /* base: NULL when it is all memory */
    return MEM_OK;
}

/*
 * Copies so that a reader that polls the last byte never sees it before an earlier one: everything
 * but the last cache line, then that line, last byte last. An aligned 8-, 4-, 2- or 1-byte copy is
 * one store.
 */
void mem_scatter(uint8_t *dst, const uint8_t *src, size_t n);
/* The pieces in which it does: number of those that are not empty, in order. */
enum { MEM_PIECES = 3 };
unsigned mem_pieces(const void *dst, size_t n, size_t piece[MEM_PIECES]);

/* Sum of the SGE lengths (up to num * 4 GiB). */
uint64_t mem_sge_bytes(const struct nic_sge *sge, int num);
/* mem_check of every non-empty SGE; the first bad verdict or MEM_OK. */
enum mem_verdict mem_check_sges(struct nic *nic, const struct pd *pd, const struct nic_sge *sge,
                                int num, unsigned need);
/*
 * The bytes [offset, offset+n) of an SGE list as spans appended to out[*count..max). MEM_OK, or the
 * verdict of the first SGE that may not be used. The caller guarantees offset+n <= mem_sge_bytes
 * and room (num + 1 spans).
 */
enum mem_verdict mem_gather(struct nic *nic, const struct pd *pd, const struct nic_sge *sge,
                            int num, uint64_t offset, uint32_t n, struct span *out,
                            uint16_t *count);
/* Writes n bytes at offset of an SGE list, checked for local write, with mem_scatter. MEM_OK or why
 * nothing was written. */
enum mem_verdict mem_scatter_sges(struct nic *nic, const struct pd *pd, const struct nic_sge *sge,
                                  int num, uint64_t offset, const uint8_t *src, uint32_t n);

#endif
