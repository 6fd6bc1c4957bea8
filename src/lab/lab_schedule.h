/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_schedule.h: who measures with whom, and when, where there are many. First every ordered pair,
 * as many at once as do not disturb one another: in one round no machine has two of them. Then all
 * at once: each to the next one, and for each rank all others into it. Numbers only.
 */
#ifndef LAB_LAB_SCHEDULE_H
#define LAB_LAB_SCHEDULE_H

enum lab_round_kind { LAB_ROUND_PAIRS, LAB_ROUND_RING, LAB_ROUND_INCAST, LAB_ROUND_KINDS };

struct lab_meeting {
    unsigned source;
    unsigned target;
    unsigned round;
};

struct lab_round {
    enum lab_round_kind kind;
    unsigned first; /* of the meetings */
    unsigned count;
};

struct lab_schedule {
    struct lab_meeting *meetings; /* in the order of rounds */
    unsigned meeting_count;
    struct lab_round *rounds;
    unsigned round_count;
};

/* host: of each rank a number; those of one machine have the same. 0, or -ENOMEM. */
int lab_schedule_make(struct lab_schedule *s, const unsigned *host, unsigned ranks);
void lab_schedule_clear(struct lab_schedule *s);
const char *lab_round_name(enum lab_round_kind kind);

#endif
