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
#include "scenario/record.h"
#include "scenario/scenario.h"

enum {
    READER_PATH_BYTES = RECORD_PATH_BYTES,
    READER_MAX_ITEMS = FABRIC_MAX_FLOWS,
    READER_NO_KIND = UINT16_MAX,
    READER_MAX_DEPTH = 8,
    READER_MAX_ONLY = 4,
};

/* What the group of fields takes that is being read, by its depth: of others no value is recorded,
 * which it has only to be passed over. */
struct reader_group {
    const char *keys; /* NULL: any */
    struct {
        const char *all, *taken; /* of these only those */
    } only[READER_MAX_ONLY];
    unsigned onlys;
    bool passes_over; /* what the file has of others counts as absent */
};

struct reader {
    yaml_document_t doc;
    const char *path;
    struct scenario_set *sets;
    unsigned set_count;
    struct scenario_error *error;
    struct record record; /* of all values, as they count */
    struct reader_group group[READER_MAX_DEPTH];
    bool failed;
};

struct field {
    yaml_node_t *node; /* NULL: not in the file */
    const char *set;   /* given by --set instead; NULL: not */
    char path[READER_PATH_BYTES];
    unsigned depth; /* parts of the path */
    uint32_t items; /* mask of those that are items of lists: see record_put */
};

/* The text of a file; `text` instead, if it is not NULL. */
bool reader_open(struct reader *r, const char *path, const char *text, struct scenario_set *sets,
                 unsigned set_count, struct scenario_error *error);
/* Says so if a --set was for no field. What was recorded, to be freed; NULL if anything failed. */
char *reader_close(struct reader *r);
void reader_root(struct reader *r, struct field *out);
/* The value of a key; the field may be absent, its key too. */
void reader_get(struct reader *r, const struct field *f, const char *key, struct field *out);
/* Where the field is; 0: it is not in the file. */
unsigned reader_line(const struct field *f);
bool reader_present(const struct reader *r, const struct field *f);
/* The field is a mapping (or absent) with no other keys than these, separated by spaces. */
bool reader_keys(struct reader *r, const struct field *f, const char *keys);
/* Which of the kinds the mapping is, as its field `key` says, or the fallback; without either that
 * is refused, as are fields that are not of the kind. But where --set says which, those of other
 * kinds that the file has are passed over. */
unsigned reader_kind(struct reader *r, const struct field *f, const char *key,
                     const struct kind *kinds, unsigned fallback);
/* The mapping is of this kind, as if --set said so, whatever the file has for `key`. */
void reader_as_kind(struct reader *r, const struct field *f, const char *key,
                    const struct kind *kinds, unsigned kind);
/* Whether a --set is for this path. */
bool reader_is_set(struct reader *r, const char *path);
/* The same of the field `key` alone, which others do not depend on. */
unsigned reader_choice_of(struct reader *r, const struct field *f, const char *key,
                          const struct kind *kinds, unsigned fallback);
/* Of all these fields only those taken are there; if not, it says why. by: paths of the fields that
 * decide it, those that begin with a dot below f; where one of them is by --set, what the file has
 * is passed over. */
bool reader_only(struct reader *r, const struct field *f, const char *all, const char *taken,
                 const char *by, const char *why);
/* Items of a list, 0 when it is absent. */
unsigned reader_items(struct reader *r, const struct field *f);
void reader_item(struct reader *r, const struct field *f, unsigned i, struct field *out);
/* This and those below record what they come to; but a fallback that cannot be said is left out. */
uint64_t reader_quantity(struct reader *r, const struct field *f, enum quantity_kind kind,
                         uint64_t least, uint64_t most, uint64_t fallback);
/* NULL when absent. Whoever asked records what it came to: a word as it is, or any text. */
const char *reader_text(struct reader *r, const struct field *f);
void reader_note_word(struct reader *r, const struct field *f, const char *word);
void reader_note_text(struct reader *r, const struct field *f, const char *text);
/* Which of the words, separated by spaces. */
unsigned reader_choice(struct reader *r, const struct field *f, const char *words,
                       unsigned fallback);
/* A list of priorities as a mask. Whoever asked records what it came to. */
uint8_t reader_priorities(struct reader *r, const struct field *f, uint8_t fallback);
void reader_note_priorities(struct reader *r, const struct field *f, uint8_t mask);
/* Of a key at once. */
uint64_t reader_get_quantity(struct reader *r, const struct field *f, const char *key,
                             enum quantity_kind kind, uint64_t least, uint64_t most,
                             uint64_t fallback);
uint32_t reader_get_count(struct reader *r, const struct field *f, const char *key, uint32_t least,
                          uint32_t most, uint32_t fallback);
uint64_t reader_get_bytes(struct reader *r, const struct field *f, const char *key, uint64_t most,
                          uint64_t fallback);
uint64_t reader_get_time(struct reader *r, const struct field *f, const char *key, uint64_t most,
                         uint64_t fallback);
/* The number of a node by its name. kind: host, switch, or node, which is either. */
uint32_t reader_get_node(struct reader *r, const struct field *f, const char *key,
                         const struct scenario *s, const char *kind);
bool reader_fail(struct reader *r, const struct field *f, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
