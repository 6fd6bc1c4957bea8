/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shrink.c: the passes. Each tries candidates from bold to timid and keeps the first that fails;
 * all passes are repeated until none finds anything or the tries are used up.
 */
#include "shrink.h"

#include <string.h>

enum { HEAD = 256 }; /* where the options of a world are, whose zeros make all that follows tame */

/* Zeros at the end are what the tape says anyway. */
static void trim(struct choices *c)
{
    while (c->n > 0 && c->value[c->n - 1] == 0)
        c->n--;
}

/* Takes the candidate over where it fails. */
static bool try(struct shrink *s, struct choices *candidate)
{
    if (s->tries == s->max_tries)
        return false;
    s->tries++;
    trim(candidate);
    if (!s->fails(s->context, candidate))
        return false;
    memcpy(s->list->value, candidate->value, candidate->n * sizeof(candidate->value[0]));
    s->list->n = candidate->n;
    return true;
}

static void copy(struct choices *to, const struct choices *from)
{
    to->seed = from->seed;
    to->small = from->small;
    to->n = from->n;
    memcpy(to->value, from->value, from->n * sizeof(from->value[0]));
}

/* The shortest beginning that fails, as far as halving finds it. */
static bool cut_end(struct shrink *s, struct choices *c)
{
    bool any = false;
    size_t passes = 0; /* the first so many alone do not fail */
    copy(c, s->list);
    c->n = 0;
    if (s->list->n > 0 && try(s, c))
        return true;
    while (passes + 1 < s->list->n) {
        size_t middle = passes + (s->list->n - passes) / 2;
        copy(c, s->list);
        c->n = middle;
        if (try(s, c))
            any = true;
        else
            passes = middle;
    }
    return any;
}

/* Runs of this length among the first ones, from the last: left out, or 0. */
static bool runs(struct shrink *s, struct choices *c, size_t limit, size_t length, bool leave_out)
{
    bool any = false;
    for (size_t end = limit; end > 0 && s->tries < s->max_tries;) {
        end = end < s->list->n ? end : s->list->n;
        size_t first = end > length ? end - length : 0;
        bool zeros = true;
        copy(c, s->list);
        for (size_t i = first; i < end; i++)
            zeros = zeros && c->value[i] == 0;
        if (leave_out) {
            memmove(c->value + first, c->value + end, (c->n - end) * sizeof(c->value[0]));
            c->n -= end - first;
        } else {
            memset(c->value + first, 0, (end - first) * sizeof(c->value[0]));
        }
        if ((leave_out || !zeros) && end > first && try(s, c))
            any = true;
        end = first;
    }
    return any;
}

/* From long runs to short ones. */
static bool all_runs(struct shrink *s, struct choices *c, size_t limit, bool leave_out)
{
    bool any = false;
    size_t length = 1;
    while (length * 2 < limit && length * 2 < s->list->n)
        length *= 2;
    for (; length > 0; length /= 2)
        any = runs(s, c, limit, length, leave_out) || any;
    return any;
}

/* Each value as low as halving finds it. */
static bool lower(struct shrink *s, struct choices *c)
{
    bool any = false;
    for (size_t i = 0; i < s->list->n && s->tries < s->max_tries; i++) {
        uint64_t passes = 0; /* 0 was tried by all_runs */
        while (i < s->list->n && s->list->value[i] > passes + 1) {
            uint64_t middle = passes + (s->list->value[i] - passes) / 2;
            copy(c, s->list);
            c->value[i] = middle;
            if (try(s, c))
                any = true;
            else if (s->tries == s->max_tries)
                break;
            else
                passes = middle;
        }
    }
    return any;
}

void shrink_run(struct shrink *s)
{
    struct choices candidate;
    bool any = true;
    choices_init(&candidate, false);
    s->tries = 0;
    trim(s->list);
    while (any && s->tries < s->max_tries) {
        any = cut_end(s, &candidate);
        any = all_runs(s, &candidate, HEAD, false) || any;
        any = all_runs(s, &candidate, SIZE_MAX, true) || any;
        any = all_runs(s, &candidate, SIZE_MAX, false) || any;
        any = lower(s, &candidate) || any;
    }
    choices_fini(&candidate);
}
