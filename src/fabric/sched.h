/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sched.h: what happens next. A fixed set of events, each pending once at most, in a timing wheel
 * of four levels. Events come in order of (time, number), which does not depend on the order in
 * which they were put in.
 */
#ifndef FABRIC_SCHED_H
#define FABRIC_SCHED_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SCHED_LEVELS = 4,
    SCHED_BITS = 12, /* 4096 slots a level */
    SCHED_SLOTS = 1 << SCHED_BITS,
    SCHED_SHIFT = 10, /* a slot of level 0 is 1.024 ns wide */
};
#define SCHED_NEVER UINT64_MAX
#define SCHED_MAX_PS                                                                               \
    ((UINT64_C(1) << (SCHED_SHIFT + SCHED_LEVELS * SCHED_BITS)) - 1) /* 80 hours                   \
                                                                      */
#define SCHED_NOTHING UINT32_MAX

struct sched_event {
    uint64_t time_ps; /* SCHED_NEVER: not pending */
    uint32_t next;    /* in its slot */
    uint32_t prev;    /* in its slot; of one that is due, the number of its entry */
};

/* An event of the slot that is being served. It counts if its event still knows its number. */
struct sched_due {
    uint64_t time_ps;
    uint32_t id, serial;
};

struct sched_level {
    uint64_t some;                   /* bit per word of full */
    uint64_t full[SCHED_SLOTS / 64]; /* bit per slot */
    uint32_t head[SCHED_SLOTS];
};

struct sched {
    uint64_t now_ps;
    uint64_t cursor; /* the slot that is being served: its time >> SCHED_SHIFT */
    struct sched_event *event;
    uint32_t events;
    uint32_t serial;
    struct sched_due *due; /* a heap; due[0] is first */
    uint32_t due_count, due_capacity;
    /* Told of each event that is to come soon; changes nothing. May be NULL. */
    void (*soon)(void *arg, uint32_t id);
    void *soon_arg;
    struct sched_level level[SCHED_LEVELS];
};

/* Events 0..events-1, none of them pending. 0 or -ENOMEM. */
int sched_init(struct sched *s, uint32_t events);
void sched_fini(struct sched *s);
/* Put in, or moved. now_ps <= time_ps <= SCHED_MAX_PS. */
void sched_put(struct sched *s, uint32_t id, uint64_t time_ps);
void sched_remove(struct sched *s, uint32_t id);
/* Takes the first event out and makes its time the present; SCHED_NOTHING: none is pending. */
uint32_t sched_next(struct sched *s);

/* The i-th of what is due, in the order of a heap: those of small numbers come soon. SCHED_NOTHING:
 * not so many are. */
static inline uint32_t sched_due_id(const struct sched *s, uint32_t i)
{
    return i < s->due_count ? s->due[i].id : SCHED_NOTHING;
}

static inline uint64_t sched_time_ps(const struct sched *s, uint32_t id)
{
    return s->event[id].time_ps;
}

static inline bool sched_pending(const struct sched *s, uint32_t id)
{
    return s->event[id].time_ps != SCHED_NEVER;
}

#endif
