/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sched.c: see sched.h. An event stands at the level of the highest digit in which its slot differs
 * from the cursor. When the cursor enters a slot of a higher level, that slot's events move down;
 * those of the slot that is served form a heap.
 */
#include "fabric/sched.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sched_init(struct sched *s, uint32_t events)
{
    memset(s, 0, sizeof(*s));
    s->events = events;
    s->due_capacity = 2 * events + 64;
    s->event = calloc(events + 1u, sizeof(*s->event));
    s->due = calloc(s->due_capacity, sizeof(*s->due));
    if (s->event == NULL || s->due == NULL) {
        sched_fini(s);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < events; i++)
        s->event[i].time_ps = SCHED_NEVER;
    return 0;
}

void sched_fini(struct sched *s)
{
    free(s->event);
    free(s->due);
    memset(s, 0, sizeof(*s));
}

static bool due_before(const struct sched_due *a, const struct sched_due *b)
{
    return a->time_ps < b->time_ps || (a->time_ps == b->time_ps && a->id < b->id);
}

static bool due_counts(const struct sched *s, const struct sched_due *d)
{
    const struct sched_event *e = &s->event[d->id];
    return e->time_ps == d->time_ps && e->prev == d->serial;
}

static void due_up(struct sched *s, uint32_t at, struct sched_due d)
{
    while (at > 0) {
        uint32_t above = (at - 1) / 2;
        if (!due_before(&d, &s->due[above]))
            break;
        s->due[at] = s->due[above];
        at = above;
    }
    s->due[at] = d;
}

/* What was taken out or moved leaves its entry behind; here they go when they fill the heap. */
static void due_clean(struct sched *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->due_count; i++)
        if (due_counts(s, &s->due[i]))
            due_up(s, n++, s->due[i]);
    s->due_count = n;
}

static void due_push(struct sched *s, uint32_t id, uint64_t time_ps)
{
    if (s->due_count == s->due_capacity)
        due_clean(s);
    s->event[id].prev = ++s->serial;
    due_up(s, s->due_count++, (struct sched_due){time_ps, id, s->serial});
}

static struct sched_due due_pop(struct sched *s)
{
    struct sched_due first = s->due[0], last = s->due[--s->due_count];
    uint32_t at = 0, n = s->due_count;
    for (uint32_t below = 1; below < n; below = 2 * at + 1) {
        if (below + 1 < n && due_before(&s->due[below + 1], &s->due[below]))
            below++;
        if (!due_before(&s->due[below], &last))
            break;
        s->due[at] = s->due[below];
        at = below;
    }
    s->due[at] = last;
    return first;
}

static unsigned level_of(const struct sched *s, uint64_t slot)
{
    return (unsigned)(63 - __builtin_clzll(slot ^ s->cursor)) / SCHED_BITS;
}

static uint32_t index_of(uint64_t slot, unsigned level)
{
    return (uint32_t)(slot >> (level * SCHED_BITS)) & (SCHED_SLOTS - 1);
}

static void place(struct sched *s, uint32_t id, uint64_t time_ps)
{
    uint64_t slot = time_ps >> SCHED_SHIFT;
    if (slot == s->cursor) {
        due_push(s, id, time_ps);
        return;
    }
    unsigned l = level_of(s, slot);
    struct sched_level *level = &s->level[l];
    uint32_t i = index_of(slot, l);
    struct sched_event *e = &s->event[id];
    bool empty = (level->full[i / 64] >> (i % 64) & 1) == 0;
    e->prev = SCHED_NOTHING;
    e->next = empty ? SCHED_NOTHING : level->head[i];
    if (!empty)
        s->event[e->next].prev = id;
    level->head[i] = id;
    level->full[i / 64] |= UINT64_C(1) << (i % 64);
    level->some |= UINT64_C(1) << (i / 64);
}

static void clear_slot(struct sched_level *level, uint32_t i)
{
    level->full[i / 64] &= ~(UINT64_C(1) << (i % 64));
    if (level->full[i / 64] == 0)
        level->some &= ~(UINT64_C(1) << (i / 64));
}

void sched_put(struct sched *s, uint32_t id, uint64_t time_ps)
{
    assert(id < s->events && time_ps >= s->now_ps && time_ps <= SCHED_MAX_PS);
    if (s->event[id].time_ps != SCHED_NEVER)
        sched_remove(s, id);
    s->event[id].time_ps = time_ps;
    place(s, id, time_ps);
}

void sched_remove(struct sched *s, uint32_t id)
{
    struct sched_event *e = &s->event[id];
    if (e->time_ps == SCHED_NEVER)
        return;
    uint64_t slot = e->time_ps >> SCHED_SHIFT;
    e->time_ps = SCHED_NEVER;
    if (slot == s->cursor)
        return; /* its entry no longer counts */
    if (e->next != SCHED_NOTHING)
        s->event[e->next].prev = e->prev;
    if (e->prev != SCHED_NOTHING) {
        s->event[e->prev].next = e->next;
        return;
    }
    unsigned l = level_of(s, slot);
    uint32_t i = index_of(slot, l);
    s->level[l].head[i] = e->next;
    if (e->next == SCHED_NOTHING)
        clear_slot(&s->level[l], i);
}

/* The first slot behind i that has events; SCHED_NOTHING: none of this level. */
static uint32_t find_slot(const struct sched_level *level, uint32_t i)
{
    uint32_t word = i / 64;
    uint64_t bits = i % 64 == 63 ? 0 : level->full[word] & (~UINT64_C(0) << (i % 64 + 1));
    if (bits == 0) {
        uint64_t some = word == 63 ? 0 : level->some & (~UINT64_C(0) << (word + 1));
        if (some == 0)
            return SCHED_NOTHING;
        word = (uint32_t)__builtin_ctzll(some);
        bits = level->full[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

static uint32_t take(struct sched *s, uint32_t id, uint64_t time_ps)
{
    s->event[id].time_ps = SCHED_NEVER;
    s->now_ps = time_ps;
    return id;
}

/* The cursor to the next slot with events; false: there is none. *alone: its event, if it has but
 * one; that is taken out, and need not go through the heap. */
static bool move_on(struct sched *s, uint32_t *alone)
{
    *alone = SCHED_NOTHING;
    for (unsigned l = 0; l < SCHED_LEVELS; l++) {
        uint32_t i = find_slot(&s->level[l], index_of(s->cursor, l));
        if (i == SCHED_NOTHING)
            continue;
        unsigned shift = l * SCHED_BITS;
        uint64_t high = s->cursor >> shift & ~(uint64_t)(SCHED_SLOTS - 1);
        s->cursor = (high | i) << shift;
        uint32_t id = s->level[l].head[i];
        clear_slot(&s->level[l], i);
        if (l == 0 && s->event[id].next == SCHED_NOTHING) {
            *alone = take(s, id, s->event[id].time_ps);
            return true;
        }
        while (id != SCHED_NOTHING) {
            uint32_t next = s->event[id].next;
            if (l == 0 && s->soon != NULL)
                s->soon(s->soon_arg, id);
            place(s, id, s->event[id].time_ps);
            id = next;
        }
        return true;
    }
    return false;
}

uint32_t sched_next(struct sched *s)
{
    for (;;) {
        while (s->due_count > 0) {
            struct sched_due d = due_pop(s);
            if (!due_counts(s, &d))
                continue;
            return take(s, d.id, d.time_ps);
        }
        uint32_t alone;
        if (!move_on(s, &alone) || alone != SCHED_NOTHING)
            return alone;
    }
}
