/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * reader.c: see reader.h. libyaml makes the tree; here are names, lines and units.
 */
#include "scenario/reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* One document; false and the error. */
static bool load(struct reader *r, yaml_parser_t *parser)
{
    yaml_document_t more;
    char *text = r->error->text;
    size_t size = sizeof(r->error->text);
    bool first = yaml_parser_load(parser, &r->doc) != 0;
    if (!first || yaml_parser_load(parser, &more) == 0) {
        snprintf(text, size, "%s:%zu: %s, YAML is expected", r->path, parser->problem_mark.line + 1,
                 parser->problem != NULL ? parser->problem : "it cannot be read");
        if (first)
            yaml_document_delete(&r->doc);
        return false;
    }
    bool ok = yaml_document_get_root_node(&more) == NULL;
    if (!ok) {
        snprintf(text, size, "%s:%zu: a second document begins, one is expected", r->path,
                 more.start_mark.line + 1);
        yaml_document_delete(&r->doc);
    }
    yaml_document_delete(&more);
    return ok;
}

bool reader_open(struct reader *r, const char *path, const char *text, struct scenario_set *sets,
                 unsigned set_count, struct scenario_error *error)
{
    yaml_parser_t parser;
    *r = (struct reader){.path = path, .sets = sets, .set_count = set_count, .error = error};
    FILE *file =
        text != NULL ? fmemopen((void *)(uintptr_t)text, strlen(text), "r") : fopen(path, "r");
    bool begun = file != NULL && record_begin(&r->record);
    if (!begun || yaml_parser_initialize(&parser) == 0) {
        snprintf(error->text, sizeof(error->text), "%s: %s", path, strerror(errno));
        record_end(&r->record, false);
        if (file != NULL)
            fclose(file);
        return false;
    }
    yaml_parser_set_input_file(&parser, file);
    bool ok = load(r, &parser);
    yaml_parser_delete(&parser);
    fclose(file);
    if (!ok)
        record_end(&r->record, false);
    return ok;
}

char *reader_close(struct reader *r)
{
    for (unsigned i = 0; i < r->set_count && !r->failed; i++) {
        if (r->sets[i].used)
            continue;
        r->failed = true;
        snprintf(r->error->text, sizeof(r->error->text),
                 "--set %s: there is no such field; KEY=VALUE is expected, as "
                 "switches.buffer=4MiB",
                 r->sets[i].text);
    }
    yaml_document_delete(&r->doc);
    char *record = record_end(&r->record, !r->failed);
    if (record == NULL && !r->failed) {
        r->failed = true;
        snprintf(r->error->text, sizeof(r->error->text), "%s: no memory for a copy", r->path);
    }
    return record;
}

bool reader_fail(struct reader *r, const struct field *f, const char *format, ...)
{
    char what[352];
    va_list args;
    if (r->failed)
        return false;
    r->failed = true;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    const char *field = f->path[0] != '\0' ? f->path : "scenario";
    if (f->set != NULL)
        snprintf(r->error->text, sizeof(r->error->text), "--set %s: %s", f->path, what);
    else if (f->node != NULL)
        snprintf(r->error->text, sizeof(r->error->text), "%s:%zu: %s: %s", r->path,
                 f->node->start_mark.line + 1, field, what);
    else
        snprintf(r->error->text, sizeof(r->error->text), "%s: %s: %s", r->path, field, what);
    return false;
}

/* What --set says for this path. */
static const char *find_set(struct reader *r, const char *path)
{
    size_t n = strlen(path);
    const char *found = NULL;
    for (unsigned i = 0; i < r->set_count; i++) {
        if (strncmp(r->sets[i].text, path, n) != 0 || r->sets[i].text[n] != '=')
            continue;
        r->sets[i].used = true;
        found = r->sets[i].text + n + 1;
    }
    return found;
}

bool reader_is_set(struct reader *r, const char *path)
{
    return find_set(r, path) != NULL;
}

void reader_root(struct reader *r, struct field *out)
{
    *out = (struct field){.node = yaml_document_get_root_node(&r->doc)};
}

static void name_field(struct reader *r, const struct field *f, const char *key, struct field *out)
{
    int n = snprintf(out->path, sizeof(out->path), "%s%s%s", f->path, f->path[0] != '\0' ? "." : "",
                     key);
    if (n >= (int)sizeof(out->path))
        reader_fail(r, f, "names this deep are too long");
    out->depth = f->depth + 1;
    assert(out->depth < READER_MAX_DEPTH);
    out->items = f->items;
    out->set = find_set(r, out->path);
}

static const char *scalar(const yaml_node_t *n)
{
    return (const char *)n->data.scalar.value;
}

/* Whether a word is one of those separated by spaces; which. */
static bool one_of(const char *words, const char *word, unsigned *which)
{
    size_t n = strlen(word);
    unsigned i = 0;
    for (const char *p = words; *p != '\0' && n > 0; i++) {
        size_t length = strcspn(p, " ");
        *which = i;
        if (length == n && strncmp(p, word, n) == 0)
            return true;
        p += length;
        p += *p == ' ';
    }
    return false;
}

/* Whether the group takes a field of this name. */
static bool group_takes(const struct reader_group *g, const char *name)
{
    unsigned which;
    for (unsigned i = 0; i < g->onlys; i++)
        if (one_of(g->only[i].all, name, &which) && !one_of(g->only[i].taken, name, &which))
            return false;
    return g->keys == NULL || one_of(g->keys, name, &which);
}

/* Whether its group takes it. */
static bool is_taken(const struct reader *r, const struct field *f)
{
    const char *dot = strrchr(f->path, '.'), *name = dot != NULL ? dot + 1 : f->path;
    if (f->depth == 0 || (f->items >> (f->depth - 1) & 1) != 0)
        return true;
    return group_takes(&r->group[f->depth - 1], name);
}

void reader_get(struct reader *r, const struct field *f, const char *key, struct field *out)
{
    struct field found = {0};
    name_field(r, f, key, &found);
    if (f->node != NULL && f->node->type == YAML_MAPPING_NODE) {
        yaml_node_pair_t *p = f->node->data.mapping.pairs.start;
        for (; p < f->node->data.mapping.pairs.top; p++) {
            yaml_node_t *name = yaml_document_get_node(&r->doc, p->key);
            if (name->type == YAML_SCALAR_NODE && strcmp(scalar(name), key) == 0)
                found.node = yaml_document_get_node(&r->doc, p->value);
        }
    }
    if (r->group[f->depth].passes_over && !group_takes(&r->group[f->depth], key))
        found.node = NULL;
    *out = found;
}

unsigned reader_line(const struct field *f)
{
    return f->set == NULL && f->node != NULL ? (unsigned)f->node->start_mark.line + 1 : 0;
}

/* By --set, it or something below it. */
static bool is_set(const struct reader *r, const struct field *f)
{
    size_t n = strlen(f->path);
    for (unsigned i = 0; i < r->set_count; i++)
        if (strncmp(r->sets[i].text, f->path, n) == 0 && r->sets[i].text[n] == '.')
            return true;
    return f->set != NULL;
}

bool reader_present(const struct reader *r, const struct field *f)
{
    return f->node != NULL || is_set(r, f);
}

/* What is behind the field's path in a --set: the next name; NULL: the set is for another field. */
static const char *set_below(const char *set, const struct field *f, int *length)
{
    size_t n = strlen(f->path);
    if (n > 0 && (strncmp(set, f->path, n) != 0 || set[n] != '.'))
        return NULL;
    const char *name = n > 0 ? set + n + 1 : set;
    *length = (int)strcspn(name, ".=");
    return name;
}

/* A --set for something below the field, as the field that a message is about. */
static void name_set(const char *set, const char *name, int length, struct field *out)
{
    *out = (struct field){.set = set};
    snprintf(out->path, sizeof(out->path), "%.*s", (int)(name - set) + length, set);
}

/* of: " with shape star", or nothing. */
static bool check_sets(struct reader *r, const struct field *f, const char *keys, const char *of)
{
    char word[READER_PATH_BYTES];
    struct field key;
    unsigned which;
    int n;
    for (unsigned i = 0; i < r->set_count; i++) {
        const char *name = set_below(r->sets[i].text, f, &n);
        if (name == NULL)
            continue;
        snprintf(word, sizeof(word), "%.*s", n, name);
        name_set(r->sets[i].text, name, n, &key);
        if (!one_of(keys, word, &which))
            return reader_fail(r, &key, "there is no field '%s'%s; expected: %s", word, of, keys);
    }
    return true;
}

static bool check_group(struct reader *r, const struct field *f, const char *keys)
{
    if (f->set != NULL)
        return reader_fail(r, f,
                           "'%s' cannot stand for fields; they are expected, as %s.NAME=VALUE: %s",
                           f->set, f->path, keys);
    if (r->failed || f->node == NULL || f->node->type == YAML_MAPPING_NODE ||
        (f->node->type == YAML_SCALAR_NODE && scalar(f->node)[0] == '\0'))
        return !r->failed; /* a key without anything behind it is none */
    return reader_fail(r, f, "fields are expected: %s", keys);
}

static bool of_some_kind(const struct kind *kinds, const char *name)
{
    unsigned which;
    for (; kinds != NULL && kinds->name != NULL; kinds++)
        if (one_of(kinds->fields, name, &which))
            return true;
    return false;
}

/* others: kinds whose fields are passed over; NULL: none. */
static bool check_keys(struct reader *r, const struct field *f, const char *keys, const char *of,
                       const struct kind *others)
{
    unsigned which;
    r->group[f->depth] = (struct reader_group){.keys = keys, .passes_over = others != NULL};
    if (!check_group(r, f, keys) || !check_sets(r, f, keys, of))
        return false;
    if (f->node == NULL || f->node->type != YAML_MAPPING_NODE)
        return true;
    yaml_node_pair_t *top = f->node->data.mapping.pairs.top;
    for (yaml_node_pair_t *p = f->node->data.mapping.pairs.start; p < top; p++) {
        struct field key = {.node = yaml_document_get_node(&r->doc, p->key)};
        memcpy(key.path, f->path, sizeof(key.path));
        if (key.node->type != YAML_SCALAR_NODE)
            return reader_fail(r, &key, "a name is expected: %s", keys);
        if (!one_of(keys, scalar(key.node), &which) && !of_some_kind(others, scalar(key.node)))
            return reader_fail(r, &key, "there is no field '%s'%s; expected: %s", scalar(key.node),
                               of, keys);
        for (yaml_node_pair_t *q = f->node->data.mapping.pairs.start; q < p; q++) {
            yaml_node_t *before = yaml_document_get_node(&r->doc, q->key);
            if (strcmp(scalar(before), scalar(key.node)) == 0)
                return reader_fail(r, &key, "'%s' is there twice, once is expected",
                                   scalar(key.node));
        }
    }
    return true;
}

bool reader_keys(struct reader *r, const struct field *f, const char *keys)
{
    return check_keys(r, f, keys, "", NULL);
}

unsigned reader_choice_of(struct reader *r, const struct field *f, const char *key,
                          const struct kind *kinds, unsigned fallback)
{
    char names[READER_PATH_BYTES] = "";
    size_t n = 0;
    struct field value;
    for (unsigned i = 0; kinds[i].name != NULL; i++)
        n +=
            (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? " " : "", kinds[i].name);
    reader_get(r, f, key, &value);
    unsigned kind = reader_choice(r, &value, names, fallback);
    if (kind == READER_NO_KIND)
        reader_fail(r, f, "'%s' is missing, one of these is expected: %s", key, names);
    return kind;
}

/* others: see check_keys. */
static void check_kind(struct reader *r, const struct field *f, const char *key,
                       const struct kind *kind, const struct kind *others)
{
    char of[64];
    snprintf(of, sizeof(of), " with %s %s", key, kind->name);
    check_keys(r, f, kind->fields, of, others);
}

unsigned reader_kind(struct reader *r, const struct field *f, const char *key,
                     const struct kind *kinds, unsigned fallback)
{
    struct field value;
    r->group[f->depth] = (struct reader_group){0};
    if (!check_group(r, f, key))
        return fallback;
    unsigned kind = reader_choice_of(r, f, key, kinds, fallback);
    if (r->failed)
        return fallback;
    reader_get(r, f, key, &value);
    check_kind(r, f, key, &kinds[kind], value.set != NULL ? kinds : NULL);
    return kind;
}

void reader_as_kind(struct reader *r, const struct field *f, const char *key,
                    const struct kind *kinds, unsigned kind)
{
    struct field value;
    r->group[f->depth] = (struct reader_group){0};
    reader_get(r, f, key, &value);
    reader_note_word(r, &value, kinds[kind].name);
    check_kind(r, f, key, &kinds[kind], kinds);
}

/* The next of words that spaces separate; false: there is none. */
static bool next_word(const char **words, char *word, size_t room)
{
    size_t n = strcspn(*words, " ");
    snprintf(word, room, "%.*s", (int)n, *words);
    *words += n + ((*words)[n] == ' ');
    return n > 0;
}

static bool by_set(struct reader *r, const struct field *f, const char *by)
{
    char path[READER_PATH_BYTES], word[READER_PATH_BYTES];
    while (next_word(&by, word, sizeof(word))) {
        int n = snprintf(path, sizeof(path), "%s%s", word[0] == '.' ? f->path : "", word);
        if (n < (int)sizeof(path) && find_set(r, path) != NULL)
            return true;
    }
    return false;
}

bool reader_only(struct reader *r, const struct field *f, const char *all, const char *taken,
                 const char *by, const char *why)
{
    unsigned which;
    char word[READER_PATH_BYTES];
    struct reader_group *g = &r->group[f->depth];
    bool passed = by_set(r, f, by);
    for (const char *p = all; next_word(&p, word, sizeof(word));) {
        struct field value;
        reader_get(r, f, word, &value);
        if (!r->failed && !one_of(taken, word, &which) &&
            (passed ? is_set(r, &value) : reader_present(r, &value)))
            return reader_fail(r, &value, "%s", why);
    }
    assert(g->onlys < READER_MAX_ONLY);
    g->only[g->onlys].all = all;
    g->only[g->onlys++].taken = taken;
    g->passes_over = g->passes_over || passed;
    return !r->failed;
}

/* A --set for an item that is not there. */
static bool check_items(struct reader *r, const struct field *f, size_t items)
{
    struct field item;
    int n;
    for (unsigned i = 0; i < r->set_count; i++) {
        const char *name = set_below(r->sets[i].text, f, &n);
        if (name == NULL)
            continue;
        size_t at = 0;
        int digits = 0;
        for (; digits < n && digits < 9 && name[digits] >= '0' && name[digits] <= '9'; digits++)
            at = at * 10 + (size_t)(name[digits] - '0');
        if (digits > 0 && digits == n && at < items && (n == 1 || name[0] != '0'))
            continue;
        name_set(r->sets[i].text, name, n, &item);
        if (items == 0)
            return reader_fail(r, &item, "there is no such item; the list has none");
        return reader_fail(r, &item, "there is no such item; the list has %zu, from %s.0 to %s.%zu",
                           items, f->path, f->path, items - 1);
    }
    return true;
}

unsigned reader_items(struct reader *r, const struct field *f)
{
    if (f->set != NULL)
        reader_fail(r, f, "'%s' cannot stand for a list; items of it are expected, as %s.0", f->set,
                    f->path);
    if (r->failed)
        return 0;
    if (f->node != NULL && f->node->type != YAML_SEQUENCE_NODE) {
        reader_fail(r, f, "a list is expected");
        return 0;
    }
    size_t n = 0;
    if (f->node != NULL)
        n = (size_t)(f->node->data.sequence.items.top - f->node->data.sequence.items.start);
    if (n > READER_MAX_ITEMS)
        reader_fail(r, f, "%zu items, at most %d are expected", n, READER_MAX_ITEMS);
    return check_items(r, f, n) && !r->failed ? (unsigned)n : 0;
}

void reader_item(struct reader *r, const struct field *f, unsigned i, struct field *out)
{
    struct field found = {0};
    char name[16];
    snprintf(name, sizeof(name), "%u", i);
    name_field(r, f, name, &found);
    found.items |= UINT32_C(1) << f->depth;
    found.node = yaml_document_get_node(&r->doc, f->node->data.sequence.items.start[i]);
    *out = found;
}

void reader_note_word(struct reader *r, const struct field *f, const char *word)
{
    if (!r->failed && is_taken(r, f))
        record_put(&r->record, f->path, f->items, word);
}

void reader_note_text(struct reader *r, const struct field *f, const char *text)
{
    if (!r->failed && is_taken(r, f) && !record_put_text(&r->record, f->path, f->items, text))
        reader_fail(r, f, "'%s' is no text in UTF-8", text);
}

const char *reader_text(struct reader *r, const struct field *f)
{
    if (f->set != NULL)
        return f->set;
    if (r->failed || f->node == NULL)
        return NULL;
    if (f->node->type != YAML_SCALAR_NODE) {
        reader_fail(r, f, "one value is expected");
        return NULL;
    }
    return scalar(f->node);
}

static uint64_t parse_quantity(struct reader *r, const struct field *f, enum quantity_kind kind,
                               uint64_t least, uint64_t most, uint64_t fallback)
{
    uint64_t value;
    const char *text = reader_text(r, f);
    if (text == NULL)
        return fallback;
    char from[QUANTITY_TEXT_BYTES], to[QUANTITY_TEXT_BYTES];
    quantity_print(least, kind, from);
    quantity_print(most, kind, to);
    if (!quantity_parse(text, kind, &value))
        reader_fail(r, f, "'%s' is not %s, from %s to %s", text, quantity_example(kind), from, to);
    else if (value < least || value > most)
        reader_fail(r, f, "'%s' is out of range; from %s to %s is expected", text, from, to);
    else
        return value;
    return fallback;
}

uint64_t reader_quantity(struct reader *r, const struct field *f, enum quantity_kind kind,
                         uint64_t least, uint64_t most, uint64_t fallback)
{
    char text[QUANTITY_TEXT_BYTES];
    uint64_t value = parse_quantity(r, f, kind, least, most, fallback);
    if (value < least || value > most)
        return value; /* a fallback that cannot be said: absent it is the same */
    quantity_print(value, kind, text);
    reader_note_word(r, f, text);
    return value;
}

/* If it is one of them. */
static void note_choice(struct reader *r, const struct field *f, const char *words, unsigned which)
{
    char word[64];
    for (; which > 0 && *words != '\0'; which--) {
        words += strcspn(words, " ");
        words += *words == ' ';
    }
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(words, " "), words);
    if (word[0] != '\0')
        reader_note_word(r, f, word);
}

unsigned reader_choice(struct reader *r, const struct field *f, const char *words,
                       unsigned fallback)
{
    unsigned which;
    const char *text = reader_text(r, f);
    if (text == NULL) {
        note_choice(r, f, words, fallback);
        return fallback;
    }
    if (one_of(words, text, &which)) {
        reader_note_word(r, f, text);
        return which;
    }
    reader_fail(r, f, "'%s' is unknown; one of these is expected: %s", text, words);
    return fallback;
}

/* As --set has them: 0,3 or none. */
static uint8_t set_priorities(struct reader *r, const struct field *f)
{
    uint8_t mask = 0;
    if (strcmp(f->set, "none") == 0)
        return 0;
    for (const char *p = f->set; *p >= '0' && *p < '0' + FABRIC_PRIORITIES; p += 2) {
        mask |= (uint8_t)(1u << (*p - '0'));
        if (p[1] == '\0')
            return mask;
        if (p[1] != ',')
            break;
    }
    reader_fail(r, f,
                "'%s' is no list of priorities; 'none' or numbers from 0 to 7 are expected, "
                "as 0,3",
                f->set);
    return 0;
}

uint8_t reader_priorities(struct reader *r, const struct field *f, uint8_t fallback)
{
    uint8_t mask = 0;
    if (f->set != NULL)
        return set_priorities(r, f);
    if (f->node == NULL)
        return fallback;
    for (unsigned i = 0; i < reader_items(r, f); i++) {
        struct field item;
        reader_item(r, f, i, &item);
        mask |=
            (uint8_t)(1u << parse_quantity(r, &item, QUANTITY_COUNT, 0, FABRIC_PRIORITIES - 1, 0));
    }
    return mask;
}

void reader_note_priorities(struct reader *r, const struct field *f, uint8_t mask)
{
    char text[3 * FABRIC_PRIORITIES + 2] = "[";
    size_t n = 1;
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
        if ((mask >> i & 1) != 0)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", n > 1 ? ", " : "", i);
    snprintf(text + n, sizeof(text) - n, "]");
    reader_note_word(r, f, text);
}

uint64_t reader_get_quantity(struct reader *r, const struct field *f, const char *key,
                             enum quantity_kind kind, uint64_t least, uint64_t most,
                             uint64_t fallback)
{
    struct field value;
    reader_get(r, f, key, &value);
    return reader_quantity(r, &value, kind, least, most, fallback);
}

uint32_t reader_get_count(struct reader *r, const struct field *f, const char *key, uint32_t least,
                          uint32_t most, uint32_t fallback)
{
    return (uint32_t)reader_get_quantity(r, f, key, QUANTITY_COUNT, least, most, fallback);
}

uint64_t reader_get_bytes(struct reader *r, const struct field *f, const char *key, uint64_t most,
                          uint64_t fallback)
{
    return reader_get_quantity(r, f, key, QUANTITY_BYTES, 0, most, fallback);
}

uint64_t reader_get_time(struct reader *r, const struct field *f, const char *key, uint64_t most,
                         uint64_t fallback)
{
    return reader_get_quantity(r, f, key, QUANTITY_TIME, 0, most, fallback);
}

uint32_t reader_get_node(struct reader *r, const struct field *f, const char *key,
                         const struct scenario *s, const char *kind)
{
    struct field value;
    reader_get(r, f, key, &value);
    const char *name = reader_text(r, &value);
    if (r->failed)
        return 0;
    if (name == NULL) {
        reader_fail(r, f, "'%s' is missing, the name of a %s is expected", key, kind);
        return 0;
    }
    uint32_t node = scenario_find_node(s, name);
    bool other = node != UINT32_MAX && strcmp(kind, "node") != 0 &&
                 (s->is_switch[node] != 0) != (strcmp(kind, "switch") == 0);
    if (node == UINT32_MAX || other) {
        reader_fail(r, &value, "there is no %s '%s'; the name of a %s is expected", kind, name,
                    kind);
        return 0;
    }
    reader_note_text(r, &value, name);
    return node;
}
