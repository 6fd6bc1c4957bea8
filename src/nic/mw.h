/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mw.h: memory windows: a second key for a part of a region, with rights of its own, that a QP
 * binds and unbinds by work requests. Type 1 windows serve every QP of their protection domain.
 * Type 2 windows are of type 2B: bound to a QP and its domain, and unbound by an invalidate only.
 */
#ifndef NIC_MW_H
#define NIC_MW_H

#include "base/lock.h"
#include "nic/mem.h"

struct qp;
struct send_wqe;

enum mw_type { MW_TYPE_1 = 1, MW_TYPE_2 = 2 };

struct mw {
    struct mr entry; /* first; in the key table. pd and kind stay, the rest is under the lock */
    enum mw_type type;
    struct lock lock;  /* taken inside the table's */
    struct mr *region; /* NULL: unbound */
    struct qp *qp;     /* type 2, bound: whose packets may use it */
};

/* 0, -EINVAL (type) or -ENOMEM. Unbound. */
int mw_create(struct pd *pd, enum mw_type type, struct mw **out);
/* As regions: a grace period between the two. Bound or not. */
void mw_revoke(struct mw *mw);
void mw_free(struct mw *mw);
uint32_t mw_key(struct mw *mw);

/* Of a window's entry; see mem_check. paged: its region is on demand. */
enum mem_verdict mw_check(struct mr *entry, const struct pd *pd, uint32_t key, uint64_t va,
                          uint64_t n, unsigned need, uint32_t from_qpn, uint8_t **addr,
                          bool *paged);

/* Does a request with this opcode end here, without a packet? */
static inline bool mw_is_local(uint8_t opcode)
{
    return opcode == WR_LOCAL_INV || opcode == WR_BIND_MW;
}

/*
 * BIND_MW: w->rkey becomes the key of the window whose upper 24 bits it has, for w->compare_add
 * bytes from w->remote_addr of the region w->imm_or_inv with rights w->swap. Length 0 unbinds a
 * type 1 window. LOCAL_INV: see mw_invalidate. false: it fails as a memory management operation
 * error. With the QP's lock held.
 */
bool mw_execute(struct qp *qp, const struct send_wqe *w);
/*
 * Unbinds the type 2 window with this key, bound to this QP (LOCAL_INV; SEND with Invalidate).
 * false: there is none; regions, which only a kernel could register by a work request, and windows
 * of type 1 are not invalidated (IBA o10-37.2.26). With the QP's lock held.
 */
bool mw_invalidate(struct qp *qp, uint32_t key);
/* Before a QP goes: what is bound to it is unbound. */
void mw_unbind_all(struct qp *qp);

#endif
