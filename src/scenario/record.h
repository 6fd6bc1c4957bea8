/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.h: the scenario that a run is made of, as YAML: each field that was read, with the value
 * that counts, be it from the file, from --set or a default. Read again it is the same run.
 */
#ifndef SCENARIO_RECORD_H
#define SCENARIO_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { RECORD_PATH_BYTES = 128 };

struct record {
    FILE *out;
    char *text;
    size_t bytes;
    char last[RECORD_PATH_BYTES]; /* the field that was written last */
};

/* false: no memory. */
bool record_begin(struct record *r);
/* A field by its path (a.b.0.c; `items` has a bit for each part that is an item of a list, the
 * first part's is 1) and its value, which needs no quotes. The one written last is not written
 * again; others come in the order of the groups that they are in. */
void record_put(struct record *r, const char *path, uint32_t items, const char *value);
/* Any text, in quotes; false: it is no UTF-8. */
bool record_put_text(struct record *r, const char *path, uint32_t items, const char *text);
/* Bytes that are no UTF-8 become question marks. */
void record_sane(char *text);
/* What was written, to be freed; NULL: no memory, or `keep` is false. */
char *record_end(struct record *r, bool keep);

#endif
