/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_lanes.h: a case over several queue pairs. Each is a lane with its own part of the slots and
 * its own messages; threads of each end drive them in turns. The control connection stays with who
 * calls.
 */
#ifndef LAB_LAB_LANES_H
#define LAB_LAB_LANES_H

#include "lab/lab_case.h"

/* Both ends, the whole of a case; r: the source's, NULL at the target. side: sums over all lanes.
 * 0, or -errno and e->message. */
int lab_lanes_move(struct lab_end *e, const struct lab_case *c, struct lab_side *side,
                   struct lab_result *r);

#endif
