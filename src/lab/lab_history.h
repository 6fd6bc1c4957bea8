/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_history.h: the command `verbena lab history`, and what a run does to be in it.
 */
#ifndef LAB_LAB_HISTORY_H
#define LAB_LAB_HISTORY_H

#include <jansson.h>

#include "lab/lab_store.h"

/* The file that is named, or the user's; "": none is to be. 0 or -errno and a message. */
int lab_history_file(const char *db, char file[PATH_MAX], char message[LAB_STORE_MESSAGE_BYTES]);
/* Keeps a record in the file that is named, or in the user's; "none": nowhere. Returns the number
 * of the run, 0 where it is kept nowhere, or -errno and a message; file has where. */
int64_t lab_history_keep(const json_t *record, const char *db, char file[PATH_MAX],
                         char message[LAB_STORE_MESSAGE_BYTES]);
/* Before a run: can it be kept in the file that is named? It is made, if there is none. 0 or -errno
 * and a message. Where none is named, that a run cannot be kept is no failure. */
int lab_history_check(const char *db, char message[LAB_STORE_MESSAGE_BYTES]);
/* Returns the exit code. */
int lab_history_main(int argc, char **argv);

#endif
