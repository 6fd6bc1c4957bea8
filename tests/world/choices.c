/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * choices.c: the list and its text.
 */
#include "choices.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

void choices_init(struct choices *c, bool shared)
{
    size_t bytes = MAX_CHOICES * sizeof(c->value[0]);
    int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert(p != MAP_FAILED);
    *c = (struct choices){.value = p, .max = MAX_CHOICES};
}

void choices_fini(struct choices *c)
{
    munmap(c->value, MAX_CHOICES * sizeof(c->value[0]));
    c->value = NULL;
}

void choices_add(struct choices *c, uint64_t value)
{
    if (c->n < c->max)
        c->value[c->n++] = value;
}

size_t choices_print(const struct choices *c, char *out, size_t cap)
{
    size_t used = 0;
#define PUT(...)                                                                                   \
    used +=                                                                                        \
        (size_t)snprintf(used < cap ? out + used : NULL, used < cap ? cap - used : 0, __VA_ARGS__)
    PUT("0x%llx", (unsigned long long)c->seed);
    if (c->small != 0)
        PUT("/%u", c->small);
    PUT(":");
    for (size_t i = 0; i < c->n;) {
        size_t zeros = 0;
        while (i + zeros < c->n && c->value[i + zeros] == 0)
            zeros++;
        if (zeros > 1) {
            PUT(" 0*%zu", zeros);
            i += zeros;
        } else {
            PUT(c->value[i] > 99999 ? " 0x%llx" : " %llu", (unsigned long long)c->value[i]);
            i++;
        }
    }
#undef PUT
    return used;
}

/* A number without a sign. */
static bool take_number(const char **at, uint64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    *out = strtoull(*at, &end, 0);
    bool ok = end != *at;
    *at = end;
    return ok;
}

static void skip_space(const char **at)
{
    while (isspace((unsigned char)**at))
        (*at)++;
}

bool choices_parse(struct choices *c, const char *text)
{
    uint64_t small = 0;
    skip_space(&text);
    if (!take_number(&text, &c->seed))
        return false;
    if (*text == '/' && (text++, !take_number(&text, &small)))
        return false;
    if (*text++ != ':' || small > UINT32_MAX)
        return false;
    c->small = (unsigned)small;
    c->n = 0;
    for (skip_space(&text); *text != '\0'; skip_space(&text)) {
        uint64_t value, times = 1;
        if (!take_number(&text, &value))
            return false;
        if (*text == '*' && (text++, !take_number(&text, &times)))
            return false;
        if ((*text != '\0' && !isspace((unsigned char)*text)) || times > c->max - c->n)
            return false;
        while (times-- > 0)
            choices_add(c, value);
    }
    return true;
}
