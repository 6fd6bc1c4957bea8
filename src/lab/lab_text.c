/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_text.c: what UTF-8 is, jansson knows.
 */
#include "lab/lab_text.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4 /* bytes of a character */ };

/* Bytes of the character at the front; 0: it is none. */
static size_t character(const char *text, size_t left)
{
    for (size_t n = 1; n <= LONGEST && n <= left; n++) {
        json_t *one = json_stringn(text, n);
        json_decref(one);
        if (one != NULL)
            return n;
    }
    return 0;
}

json_t *lab_text_json(const char *text)
{
    json_t *o = json_string(text);
    char *copy = o == NULL ? strdup(text) : NULL;
    size_t length = copy != NULL ? strlen(copy) : 0;
    for (size_t at = 0, n; at < length; at += n) {
        n = character(copy + at, length - at);
        if (n == 0) {
            copy[at] = '?';
            n = 1;
        }
    }
    if (copy != NULL)
        o = json_string(copy);
    free(copy);
    return o;
}
