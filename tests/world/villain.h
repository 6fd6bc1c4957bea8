/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * villain.h: a peer that sends whatever comes to its mind to a QP made for it, which must answer as
 * the specification says and touch nothing that is not the villain's.
 */
#ifndef TESTS_WORLD_VILLAIN_H
#define TESTS_WORLD_VILLAIN_H

#include "world.h"

void villain_play(struct world *w, int node);
/* Is this what the villain's QP sends? Then it is taken. */
bool villain_takes(struct world *w, const struct train *t);

#endif
