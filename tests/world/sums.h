/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sums.h: what many worlds did together, and which of them failed.
 */
#ifndef TESTS_WORLD_SUMS_H
#define TESTS_WORLD_SUMS_H

#include "world.h"

/* stuck: work does not finish. lost: a completion or an acknowledgement without its work, or work
 * without its completion. wrong: all else. */
const char *sums_class(const char *why_kind);
/* As comments of TAP. */
void sums_print(const struct world *w);
/* One world failed; for sums_json. */
void sums_failed(uint64_t seed, const char *why_kind, const char *why);
/* As one line of JSON. */
void sums_json(const struct world *w, uint64_t seeds);

#endif
