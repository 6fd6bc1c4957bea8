/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * record.c: see record.h. Written as it comes: a scenario may have millions of flows.
 */
#include "scenario/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool record_begin(struct record *r)
{
    *r = (struct record){0};
    r->out = open_memstream(&r->text, &r->bytes);
    return r->out != NULL;
}

/* How many parts two paths have in common from the beginning. */
static unsigned common(const char *a, const char *b)
{
    unsigned parts = 0;
    for (size_t i = 0;; i++) {
        bool ends_a = a[i] == '\0' || a[i] == '.', ends_b = b[i] == '\0' || b[i] == '.';
        if (ends_a && ends_b && i > 0)
            parts++;
        if (a[i] == '\0' || a[i] != b[i])
            return parts;
    }
}

/* What is before the value: the groups that begin here, and the field's name. An item's first field
 * stands in the item's line. */
static void put_name(struct record *r, const char *path, uint32_t items)
{
    unsigned same = common(r->last, path), part = 0;
    bool begun = false; /* the line is */
    for (const char *p = path; *p != '\0'; part++) {
        size_t n = strcspn(p, ".");
        if (part >= same) {
            if (!begun)
                fprintf(r->out, "%*s", (int)(2 * part), "");
            begun = (items >> part & 1) != 0;
            if (begun)
                fputs("- ", r->out);
            else
                fprintf(r->out, "%.*s:%s", (int)n, p, p[n] == '\0' ? " " : "\n");
        }
        p += n + (p[n] != '\0');
    }
    snprintf(r->last, sizeof(r->last), "%s", path);
}

void record_put(struct record *r, const char *path, uint32_t items, const char *value)
{
    if (strcmp(r->last, path) == 0)
        return;
    put_name(r, path, items);
    fprintf(r->out, "%s\n", value);
}

/* A character of UTF-8 and its bytes; 0: it is none. */
static unsigned decode(const unsigned char *p, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned n = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n == 0 || p[0] > 0xf4)
        return 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (unsigned i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    *out = c;
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

/* YAML has characters that may not stand for themselves, and some that end a line. */
static bool is_plain(uint32_t c)
{
    return (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') ||
           (c >= 0xa0 && c < 0xfffe && c != 0x2028 && c != 0x2029 && c != 0xfeff) || c > 0xffff;
}

bool record_put_text(struct record *r, const char *path, uint32_t items, const char *text)
{
    uint32_t c;
    unsigned n;
    if (strcmp(r->last, path) == 0)
        return true;
    put_name(r, path, items);
    fputc('"', r->out);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p += n) {
        n = decode(p, &c);
        if (n == 0)
            return false;
        if (is_plain(c))
            fwrite(p, 1, n, r->out);
        else
            fprintf(r->out, "\\U%08" PRIx32, c);
    }
    fputs("\"\n", r->out);
    return true;
}

void record_sane(char *text)
{
    uint32_t c;
    for (char *p = text; *p != '\0';) {
        unsigned n = decode((const unsigned char *)p, &c);
        if (n == 0)
            *p = '?';
        p += n != 0 ? n : 1;
    }
}

char *record_end(struct record *r, bool keep)
{
    bool ok = r->out != NULL && ferror(r->out) == 0;
    ok = r->out != NULL && fclose(r->out) == 0 && ok && keep;
    if (!ok)
        free(r->text);
    char *text = ok ? r->text : NULL;
    *r = (struct record){0};
    return text;
}
