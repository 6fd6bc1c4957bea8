/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_table.h: which changes of a QP's state exist, and which attributes each requires and allows
 * (IBA 11.2.5.2), for every transport. Data only; qp.c acts.
 */
#ifndef NIC_QP_TABLE_H
#define NIC_QP_TABLE_H

#include <stdbool.h>

#include "verbena/types.h"

struct qp_transition {
    unsigned types; /* 1 << enum qp_type */
    enum qp_state from, to;
    unsigned required; /* enum qp_attr_mask without QP_ATTR_STATE */
    unsigned optional;
};

/* The row of a transition, or NULL: it does not exist. */
const struct qp_transition *qp_table_find(enum qp_type type, enum qp_state from, enum qp_state to);
/* May a modify with this mask take a QP from one state to the other? */
bool qp_table_allows(enum qp_type type, enum qp_state from, enum qp_state to, unsigned mask);

#endif
