/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * small.h: worlds in which only the network has a choice: little work, a plain program, and all
 * combinations of what may become of the first packets.
 */
#ifndef TESTS_WORLD_SMALL_H
#define TESTS_WORLD_SMALL_H

#include "world.h"

enum { SMALL_WORLDS = 12 }; /* they are numbered from 1 */

const char *small_name(unsigned small);
void small_draw(struct world *w, unsigned small);
uint32_t small_ops(const struct world *w, int direction);
enum wr_opcode small_opcode(const struct world *w, uint32_t index);
uint32_t small_length(const struct world *w);

#endif
