/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h: fields of a YAML file by name, with what --set puts in their place. The first thing
 * wrong is kept as a message with file, line, field and what was expected; after it every value is
 * its fallback.
 */
#ifndef SCENARIO_READER_H
#define SCENARIO_READER_H

#include <yaml.h>

#include "scenario/kinds.h"
#include "scenario/quantity.h"
#include "scenario/scenario.h"

enum { READER_PATH_BYTES = 128, READER_MAX_ITEMS = 65536, READER_NO_KIND = UINT16_MAX };

struct reader {
    yaml_document_t doc;
    const char *path;
    struct scenario_set *sets;
    unsigned set_count;
    struct scenario_error *error;
    bool failed;
};

struct field {
    yaml_node_t *node; /* NULL: not in the file */
    const char *set;   /* given by --set instead; NULL: not */
    char path[READER_PATH_BYTES];
};

bool reader_open(struct reader *r, const char *path, struct scenario_set *sets, unsigned set_count,
                 struct scenario_error *error);
/* Says so if a --set was for no field. */
void reader_close(struct reader *r);
void reader_root(struct reader *r, struct field *out);
/* The value of a key; the field may be absent, its key too. */
void reader_get(struct reader *r, const struct field *f, const char *key, struct field *out);
/* Where the field is; 0: it is not in the file. */
unsigned reader_line(const struct field *f);
bool reader_present(const struct reader *r, const struct field *f);
/* The field is a mapping (or absent) with no other keys than these, separated by spaces. */
bool reader_keys(struct reader *r, const struct field *f, const char *keys);
/* Which of the kinds the mapping is, as its field `key` says, or the fallback; without either that
 * is refused, as are fields that are not of the kind. */
unsigned reader_kind(struct reader *r, const struct field *f, const char *key,
                     const struct kind *kinds, unsigned fallback);
/* The same of the field `key` alone, which others do not depend on. */
unsigned reader_choice_of(struct reader *r, const struct field *f, const char *key,
                          const struct kind *kinds, unsigned fallback);
/* Of all these fields only those taken are there; if not, it says why. */
bool reader_only(struct reader *r, const struct field *f, const char *all, const char *taken,
                 const char *why);
/* Items of a list, 0 when it is absent. */
unsigned reader_items(struct reader *r, const struct field *f);
void reader_item(struct reader *r, const struct field *f, unsigned i, struct field *out);
uint64_t reader_quantity(struct reader *r, const struct field *f, enum quantity_kind kind,
                         uint64_t least, uint64_t most, uint64_t fallback);
/* NULL when absent. */
const char *reader_text(struct reader *r, const struct field *f);
/* Which of the words, separated by spaces. */
unsigned reader_choice(struct reader *r, const struct field *f, const char *words,
                       unsigned fallback);
/* A list of priorities as a mask. */
uint8_t reader_priorities(struct reader *r, const struct field *f, uint8_t fallback);
bool reader_fail(struct reader *r, const struct field *f, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
