/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.h: binds a memory window at once, as its work request would, for tests that are about
 * something else.
 */
#ifndef TESTS_NIC_WINDOW_H
#define TESTS_NIC_WINDOW_H

#include "nic/mw.h"
#include "nic/qp.h"

/* The key that comes after this one when a program binds. */
static inline uint32_t window_next_key(uint32_t key)
{
    return (key & 0xffffff00) | ((key + 1) & 0xff);
}

/* mr NULL: no region. The window has its next key then. */
static inline bool window_bind(struct qp *qp, struct mw *mw, const struct mr *mr, uint64_t va,
                               uint64_t length, unsigned access)
{
    struct send_wqe w = {
        .opcode = WR_BIND_MW,
        .rkey = window_next_key(mw_key(mw)),
        .imm_or_inv = mr != NULL ? mr->key : 0,
        .remote_addr = va,
        .compare_add = length,
        .swap = access,
    };
    return mw_execute(qp, &w);
}

#endif
