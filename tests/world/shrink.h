/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shrink.h: makes a list of choices that fails smaller while it goes on failing: fewer choices
 * first, then more zeros, then lower values.
 */
#ifndef TESTS_WORLD_SHRINK_H
#define TESTS_WORLD_SHRINK_H

#include "choices.h"

struct shrink {
    struct choices *list; /* in: it fails; out: it fails and is no longer */
    bool (*fails)(void *context, const struct choices *candidate);
    void *context;
    unsigned max_tries;
    unsigned tries; /* out */
};

void shrink_run(struct shrink *s);

#endif
