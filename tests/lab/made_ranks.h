/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * made_ranks.h: what three ranks say of themselves, as a launcher hands it on: hosts a, b and a.
 */
#ifndef TESTS_LAB_MADE_RANKS_H
#define TESTS_LAB_MADE_RANKS_H

#include <stdlib.h>

#include "lab/lab_ranks.h"

enum { MADE_RANKS = 3 };

static inline void made_boot(struct lab_boot *b, struct lab_settings *settings)
{
    static const uint8_t key[LAB_KEY_BYTES] = {1, 2, 3};
    json_t *addresses = json_pack("[s]", "10.0.0.1");
    *b = (struct lab_boot){.ranks = MADE_RANKS, .texts = calloc(MADE_RANKS, sizeof(*b->texts))};
    for (unsigned i = 0; i < MADE_RANKS; i++) {
        json_t *o = lab_ranks_self(settings, addresses, 4000, key);
        json_object_set_new(o, "host", json_string(i == 1 ? "b" : "a"));
        b->texts[i] = json_dumps(o, 0);
        json_decref(o);
    }
    json_decref(addresses);
}

#endif
