/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.c: see reader.h. libyaml makes the tree; here are names, lines and units.
 */
#include "scenario/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

bool reader_open(struct reader *r, const char *path, struct scenario_set *sets, unsigned set_count,
                 struct scenario_error *error)
{
    yaml_parser_t parser;
    *r = (struct reader){.path = path, .sets = sets, .set_count = set_count, .error = error};
    FILE *file = fopen(path, "r");
    if (file == NULL || yaml_parser_initialize(&parser) == 0) {
        snprintf(error->text, sizeof(error->text), "%s: %s", path, strerror(errno));
        if (file != NULL)
            fclose(file);
        return false;
    }
    yaml_parser_set_input_file(&parser, file);
    bool ok = yaml_parser_load(&parser, &r->doc) != 0;
    if (!ok)
        snprintf(error->text, sizeof(error->text), "%s:%zu: %s, YAML is expected", path,
                 parser.problem_mark.line + 1,
                 parser.problem != NULL ? parser.problem : "it cannot be read");
    yaml_parser_delete(&parser);
    fclose(file);
    return ok;
}

void reader_close(struct reader *r)
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
    if (f->set != NULL)
        snprintf(r->error->text, sizeof(r->error->text), "--set %s: %s", f->path, what);
    else if (f->node != NULL)
        snprintf(r->error->text, sizeof(r->error->text), "%s:%zu: %s: %s", r->path,
                 f->node->start_mark.line + 1, f->path, what);
    else
        snprintf(r->error->text, sizeof(r->error->text), "%s: %s: %s", r->path, f->path, what);
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
    out->set = find_set(r, out->path);
}

static const char *scalar(const yaml_node_t *n)
{
    return (const char *)n->data.scalar.value;
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
    *out = found;
}

unsigned reader_line(const struct field *f)
{
    return f->set == NULL && f->node != NULL ? (unsigned)f->node->start_mark.line + 1 : 0;
}

bool reader_present(const struct reader *r, const struct field *f)
{
    size_t n = strlen(f->path);
    for (unsigned i = 0; i < r->set_count; i++)
        if (strncmp(r->sets[i].text, f->path, n) == 0 && r->sets[i].text[n] == '.')
            return true;
    return f->node != NULL || f->set != NULL;
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

bool reader_keys(struct reader *r, const struct field *f, const char *keys)
{
    unsigned which;
    if (f->set != NULL)
        return reader_fail(r, f,
                           "'%s' cannot stand for fields; they are expected, as %s.NAME=VALUE: %s",
                           f->set, f->path, keys);
    if (r->failed || f->node == NULL)
        return !r->failed;
    if (f->node->type == YAML_SCALAR_NODE && scalar(f->node)[0] == '\0')
        return true; /* a key without anything behind it */
    if (f->node->type != YAML_MAPPING_NODE)
        return reader_fail(r, f, "fields are expected: %s", keys);
    yaml_node_pair_t *top = f->node->data.mapping.pairs.top;
    for (yaml_node_pair_t *p = f->node->data.mapping.pairs.start; p < top; p++) {
        struct field key = {.node = yaml_document_get_node(&r->doc, p->key)};
        memcpy(key.path, f->path, sizeof(key.path));
        if (f->path[0] == '\0')
            snprintf(key.path, sizeof(key.path), "scenario");
        if (key.node->type != YAML_SCALAR_NODE)
            return reader_fail(r, &key, "a name is expected: %s", keys);
        if (!one_of(keys, scalar(key.node), &which))
            return reader_fail(r, &key, "there is no field '%s'; expected: %s", scalar(key.node),
                               keys);
        for (yaml_node_pair_t *q = f->node->data.mapping.pairs.start; q < p; q++) {
            yaml_node_t *before = yaml_document_get_node(&r->doc, q->key);
            if (strcmp(scalar(before), scalar(key.node)) == 0)
                return reader_fail(r, &key, "'%s' is there twice, once is expected",
                                   scalar(key.node));
        }
    }
    return true;
}

unsigned reader_items(struct reader *r, const struct field *f)
{
    if (f->set != NULL)
        reader_fail(r, f, "'%s' cannot stand for a list; items of it are expected, as %s.0", f->set,
                    f->path);
    if (r->failed || f->node == NULL)
        return 0;
    if (f->node->type != YAML_SEQUENCE_NODE) {
        reader_fail(r, f, "a list is expected");
        return 0;
    }
    size_t n = (size_t)(f->node->data.sequence.items.top - f->node->data.sequence.items.start);
    if (n > READER_MAX_ITEMS)
        reader_fail(r, f, "%zu items, at most %d are expected", n, READER_MAX_ITEMS);
    return r->failed ? 0 : (unsigned)n;
}

void reader_item(struct reader *r, const struct field *f, unsigned i, struct field *out)
{
    struct field found = {0};
    char name[16];
    snprintf(name, sizeof(name), "%u", i);
    name_field(r, f, name, &found);
    found.node = yaml_document_get_node(&r->doc, f->node->data.sequence.items.start[i]);
    *out = found;
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

uint64_t reader_quantity(struct reader *r, const struct field *f, enum quantity_kind kind,
                         uint64_t least, uint64_t most, uint64_t fallback)
{
    uint64_t value;
    const char *text = reader_text(r, f);
    if (text == NULL)
        return fallback;
    static const char *const unit[QUANTITY_KINDS] = {" bit/s", " ps", " bytes", "", " ppm"};
    if (!quantity_parse(text, kind, &value)) {
        reader_fail(r, f, "'%s' is not %s, from %" PRIu64 " to %" PRIu64 "%s", text,
                    quantity_example(kind), least, most, unit[kind]);
        return fallback;
    }
    if (value >= least && value <= most)
        return value;
    reader_fail(r, f, "'%s' is out of range; from %" PRIu64 " to %" PRIu64 "%s is expected", text,
                least, most, unit[kind]);
    return fallback;
}

unsigned reader_choice(struct reader *r, const struct field *f, const char *words,
                       unsigned fallback)
{
    unsigned which;
    const char *text = reader_text(r, f);
    if (text == NULL)
        return fallback;
    if (one_of(words, text, &which))
        return which;
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
            (uint8_t)(1u << reader_quantity(r, &item, QUANTITY_COUNT, 0, FABRIC_PRIORITIES - 1, 0));
    }
    return mask;
}
