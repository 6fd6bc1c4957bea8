/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_store.h: the history: a file of SQLite with the runs of a user, each with its settings, both
 * ends, figures and errors as rows, and its whole record. Processes may use it at the same time.
 */
#ifndef LAB_LAB_STORE_H
#define LAB_LAB_STORE_H

#include <jansson.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/lab_settings.h"

enum { LAB_STORE_VERSION = 3, LAB_STORE_MESSAGE_BYTES = PATH_MAX + LAB_MESSAGE_BYTES };

struct lab_store {
    sqlite3 *db;
    const char *file;
    char message[LAB_STORE_MESSAGE_BYTES]; /* why the last call failed */
};

/* Which runs and cases are asked for: by op, transport, size, depth, buffers and device where
 * settings.given has them, and by the rest where it is not empty. */
struct lab_filter {
    struct lab_settings settings;
    const char *host;  /* of either end */
    const char *since; /* 2026-11-30, or longer */
    int64_t last;      /* only so many of the newest; 0: all */
};

/* The file that is used when none is named: in XDG_STATE_HOME, else in the home directory. false:
 * there is neither. */
bool lab_store_default(char out[PATH_MAX]);
/* Opens it; make: it and its folders may be new. A file of an older version is brought up to date,
 * one of a newer version refused. 0 or -errno and s->message; close it in both cases. */
int lab_store_open(struct lab_store *s, const char *file, bool make);
void lab_store_close(struct lab_store *s);
/* Would it take a record? 0 or -errno; nothing is changed. */
int lab_store_may_add(struct lab_store *s);
/* All of a record or nothing. 0 and *run, its number; or -errno. */
int lab_store_add(struct lab_store *s, const json_t *record, int64_t *run);
/* The runs, oldest first: [{"run", "kind", "ended", "transport", "source", "target", "device",
 * "cases", "paths", "experiments", "exit", "summary", "error"}], of kind "run", or "mpi" with many
 * ranks; NULL and s->message. */
json_t *lab_store_list(struct lab_store *s, const struct lab_filter *f);
/* The record of a run with its number as "run"; NULL and s->message. */
json_t *lab_store_record(struct lab_store *s, int64_t run);
/* All of them or, where one is not there, none. 0, -ENOENT, or another. */
int lab_store_remove(struct lab_store *s, const int64_t *runs, unsigned count);
/* Is this case of a record asked for? */
bool lab_filter_has(const struct lab_filter *f, const json_t *c);
/* Are experiments? Not where certain cases are. */
bool lab_filter_has_experiments(const struct lab_filter *f);

#endif
