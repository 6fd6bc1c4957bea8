/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_ranks.h: the processes of a run of many: what each says of itself, as the launcher hands it
 * on. Rank 0 leads; its key is everybody's. The key goes by the launcher alone, which could start
 * any program as us anyway.
 */
#ifndef LAB_LAB_RANKS_H
#define LAB_LAB_RANKS_H

#include <jansson.h>
#include <stdbool.h>

#include "lab/lab_addresses.h"
#include "lab/lab_boot.h"
#include "lab/lab_control.h"

struct lab_rank {
    json_t *self; /* all that it said */
    const char *host;
    const json_t *addresses;
    unsigned machine; /* those of one have the same number */
};

struct lab_ranks {
    unsigned own;
    unsigned count;
    struct lab_rank rank[LAB_MAX_RANKS];
    uint16_t hub; /* port where rank 0 is reached */
    uint8_t key[LAB_KEY_BYTES];
};

/* What this process says; hub and key are rank 0's, and everybody has some, who does not know yet
 * which one it is. */
json_t *lab_ranks_self(const struct lab_settings *s, const json_t *addresses, uint16_t hub,
                       const uint8_t key[LAB_KEY_BYTES]);
/* Reads what all said: 0, or -EPROTO, -EINVAL and a message that names the first rank that is
 * another version or has other settings than rank 0. */
int lab_ranks_read(struct lab_ranks *r, const struct lab_boot *b, char message[LAB_MESSAGE_BYTES]);
void lab_ranks_clear(struct lab_ranks *r);
/* The key for one purpose: who has another one cannot be taken for it. */
void lab_ranks_key(const struct lab_ranks *r, const char *purpose, unsigned number,
                   uint8_t key[LAB_KEY_BYTES]);

#endif
