/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn.h: what a QP sends when it has its turn. nic.c gives turns, and holds the QP's lock
 * meanwhile.
 */
#ifndef NIC_TURN_H
#define NIC_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "verbena/port.h"

struct qp;
struct nic_sink;

/* The next train, in *t; false: there is none that may leave now. */
bool turn_next(struct qp *qp, uint64_t now_ns, struct train *t);
/* Whether the port has room for it, a sink that can say so; of reliable QPs it is not asked. */
bool turn_has_room(struct qp *qp, uint64_t now_ns, struct nic_sink *sink);

#endif
