/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_schedule.c: pairs come in the order of a round-robin tournament (one stays, the others turn),
 * so that taking the next ones that fit fills each round where every rank has its own machine.
 */
#include "lab/lab_schedule.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *lab_round_name(enum lab_round_kind kind)
{
    static const char *const names[LAB_ROUND_KINDS] = {"pair", "ring", "incast"};
    return names[kind];
}

static void add(struct lab_schedule *s, unsigned source, unsigned target)
{
    struct lab_round *r = &s->rounds[s->round_count - 1];
    s->meetings[s->meeting_count++] = (struct lab_meeting){source, target, s->round_count - 1};
    r->count++;
}

static void begin(struct lab_schedule *s, enum lab_round_kind kind)
{
    s->rounds[s->round_count++] = (struct lab_round){kind, s->meeting_count, 0};
}

/* Both directions of all games; which is whose is decided by the caller. */
static unsigned tournament(struct lab_meeting *games, unsigned ranks)
{
    unsigned n = ranks + ranks % 2, count = 0; /* who meets the one that is not there rests */
    for (unsigned i = 0; i < (n - 1) * n; i++) {
        unsigned turn = i / n, place = i % n / 2;
        unsigned a = place == 0 ? n - 1 : (turn + place) % (n - 1);
        unsigned b = place == 0 ? turn : (turn + n - 1 - place) % (n - 1);
        if (a < ranks && b < ranks)
            games[count++] =
                i % 2 == 0 ? (struct lab_meeting){a, b, 0} : (struct lab_meeting){b, a, 0};
    }
    return count;
}

/* The games of one turn are there in both directions; the first of each go before the second. */
static void pairs(struct lab_schedule *s, struct lab_meeting *games, bool *busy,
                  const unsigned *host, unsigned ranks)
{
    unsigned left = tournament(games, ranks);
    while (left > 0) {
        unsigned kept = 0;
        memset(busy, 0, ranks * sizeof(*busy));
        begin(s, LAB_ROUND_PAIRS);
        for (unsigned i = 0; i < left; i++) {
            struct lab_meeting g = games[i];
            if (busy[host[g.source]] || busy[host[g.target]]) {
                games[kept++] = g;
                continue;
            }
            busy[host[g.source]] = busy[host[g.target]] = true;
            add(s, g.source, g.target);
        }
        left = kept;
    }
}

static void together(struct lab_schedule *s, unsigned ranks)
{
    begin(s, LAB_ROUND_RING);
    for (unsigned i = 0; i < ranks; i++)
        add(s, i, (i + 1) % ranks);
    for (unsigned into = 0; ranks > 2 && into < ranks; into++) {
        begin(s, LAB_ROUND_INCAST);
        for (unsigned i = 0; i < ranks; i++)
            if (i != into)
                add(s, i, into);
    }
}

int lab_schedule_make(struct lab_schedule *s, const unsigned *host, unsigned ranks)
{
    unsigned ordered = ranks * (ranks - 1);
    struct lab_meeting *games = calloc(ordered, sizeof(*games));
    bool *busy = calloc(ranks, sizeof(*busy));
    *s = (struct lab_schedule){
        .meetings = calloc(2 * ordered + ranks, sizeof(*s->meetings)),
        .rounds = calloc(ordered + 1 + ranks, sizeof(*s->rounds)),
    };
    int error =
        games == NULL || busy == NULL || s->meetings == NULL || s->rounds == NULL ? -ENOMEM : 0;
    if (error == 0) {
        pairs(s, games, busy, host, ranks);
        together(s, ranks);
    } else {
        lab_schedule_clear(s);
    }
    free(games);
    free(busy);
    return error;
}

void lab_schedule_clear(struct lab_schedule *s)
{
    free(s->meetings);
    free(s->rounds);
    *s = (struct lab_schedule){0};
}
