/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_boot.h: how the processes that one launcher started come to know of one another: each gives a
 * text and gets those of all. Only PMIx is asked, by a plug-in that is loaded when it is needed, so
 * that the lab depends on no MPI where there is none; the launcher moves nothing else for us.
 */
#ifndef LAB_LAB_BOOT_H
#define LAB_LAB_BOOT_H

#include <stdint.h>

#include "lab/lab_settings.h"

enum { LAB_MAX_RANKS = 256 };

struct lab_boot {
    unsigned rank;
    unsigned ranks;
    char **texts; /* by rank */
};

/* 0, or -errno and a message; -ENOENT: no launcher has started us. Cleared by lab_boot_clear(). */
int lab_boot_gather(struct lab_boot *b, const char *mine, uint64_t timeout_ns,
                    char message[LAB_MESSAGE_BYTES]);
void lab_boot_clear(struct lab_boot *b);

/* The same in the plug-in. */
int lab_pmix_gather(struct lab_boot *b, const char *mine, uint64_t timeout_ns,
                    char message[LAB_MESSAGE_BYTES]);

#endif
