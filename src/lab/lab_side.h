/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_side.h: what one end finds out about itself during a case: where its time went, its memory,
 * what was wrong with the data, and what the device's counters say.
 */
#ifndef LAB_LAB_SIDE_H
#define LAB_LAB_SIDE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/lab_clock.h"
#include "lab/lab_slot.h"

enum lab_part {
    LAB_PART_FILL,     /* making contents */
    LAB_PART_CHECKSUM, /* of contents that leave, and looking at those that arrived */
    LAB_PART_COPY,
    LAB_PART_REGISTER,
    LAB_PART_POST, /* work requests; over TCP: send() */
    LAB_PART_POLL, /* completions, in vain or not; over TCP: recv() */
    LAB_PARTS
};

struct lab_side {
    uint64_t part_ns[LAB_PARTS]; /* by the clock, so time without the CPU counts, too */
    uint64_t begun_ns;
    uint64_t wall_ns;
    uint64_t user_us; /* CPU time of the whole process, all threads */
    uint64_t system_us;
    uint64_t memory_kib;       /* resident, at most so far */
    uint64_t registered_bytes; /* for the NIC, at most at once */
    uint64_t threads;          /* that part_ns is the sum of; 0 is 1 */
    uint64_t polls;
    uint64_t empty_polls;
    uint64_t wakes; /* event mode: times that we slept */
    uint64_t data[LAB_VERDICTS];
    uint64_t lost;       /* unreliable: told of, but not there */
    uint64_t duplicates; /* unreliable: came again */
    uint64_t resent;
    uint64_t wrong_atomics;
    char first_fault[256];
    json_t *counters; /* of the device, only what changed; NULL where there are none */
};

const char *lab_part_name(enum lab_part p);
/* device NULL: no counters. */
void lab_side_begin(struct lab_side *s, const char *device, unsigned port);
void lab_side_end(struct lab_side *s, const char *device, unsigned port);
/* What another one found is added; time, memory and counters are of the process and stay. */
void lab_side_add(struct lab_side *s, const struct lab_side *other);
void lab_side_clear(struct lab_side *s);
/* Looks at data that arrived and counts; what is wrong first is kept in words. */
enum lab_verdict lab_side_check(struct lab_side *s, const uint8_t *bytes,
                                const struct lab_expect *e);
/* The same where data may be lost: false when they are not there or not whole, which is no fault
 * but a loss. */
bool lab_side_check_lossy(struct lab_side *s, const uint8_t *bytes, const struct lab_expect *e,
                          bool may_be_lost);
/* Faults that no transport may have. */
uint64_t lab_side_faults(const struct lab_side *s);
json_t *lab_side_json(const struct lab_side *s);

static inline void lab_side_spent(struct lab_side *s, enum lab_part p, uint64_t since_ns)
{
    s->part_ns[p] += lab_now_ns() - since_ns;
}

#endif
