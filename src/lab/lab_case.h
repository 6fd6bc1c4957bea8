/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_case.h: one row of a run, an operation (or the TCP baseline) with one size and depth, and
 * what both ends have in hand while it lasts. The source is where `lab run` is, the target where
 * `lab serve` is.
 */
#ifndef LAB_LAB_CASE_H
#define LAB_LAB_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "lab/lab_batches.h"
#include "lab/lab_control.h"
#include "lab/lab_hist.h"
#include "lab/lab_lobby.h"
#include "lab/lab_queue.h"
#include "lab/lab_rig.h"
#include "lab/lab_settings.h"
#include "lab/lab_side.h"
#include "lab/lab_trace.h"

enum { LAB_TCP = LAB_OPS /* as an op: the baseline */, LAB_CASE_BYTES = 144 };

struct lab_case {
    unsigned op; /* enum lab_op or LAB_TCP */
    uint32_t size;
    uint32_t depth;
    uint64_t warmup;
    uint64_t iterations;
    uint64_t first; /* sequence number of the first message */
    enum lab_way way;
    uint32_t offset; /* in the slots, of both ends */
    enum lab_near near;
    uint32_t qps;     /* queue pairs, each with messages of its own, at both ends */
    uint32_t threads; /* that they are spread over, at both ends; never more than queue pairs */
};

/* The queue pairs of a case: who drives them does not see the control connection. */
struct lab_team {
    bool stop; /* one of them has failed, or the peer; atomic */
    bool told; /* the target: the source has seen the end; atomic */
};

/* One end of a run. */
struct lab_end {
    struct lab_settings settings;
    struct lab_control control;
    struct lab_rig rig;
    bool serving;
    bool experiments_only;        /* no cases */
    bool one_node;                /* far was asked for, and neither end has two NUMA nodes */
    bool one_clock;               /* the other end has our clock, for it is a process of ours */
    int listener;                 /* -1: none */
    lab_turned_away *turned_away; /* the target: told of who connected without the key; or NULL */
    struct lab_lobby lobby;       /* the target: who came beside its peer */
    struct lab_door *door;        /* who answers those; NULL: nobody */
    int data;                     /* TCP connection of the baseline; -1: none yet */
    struct lab_trace trace;
    struct lab_team *team;           /* NULL: it has the control connection itself */
    char message[LAB_MESSAGE_BYTES]; /* why the run cannot go on */
};

/* What the source measured. The clock of each distribution is the source's. */
struct lab_result {
    struct lab_case c;
    struct lab_hist completion; /* see lab_measure_of() for what each is */
    struct lab_hist acknowledged;
    uint64_t begun_ns;   /* of the first measured message */
    uint64_t elapsed_ns; /* from the first measured message to the last one's end */
    struct lab_batches batches;
    struct lab_side source;
    json_t *target;      /* as the target tells it */
    json_t *queue_pairs; /* an array where there are several; NULL */
    json_t *trace;       /* lab_trace_json() of this end; NULL where nothing was traced */
};

/* Told before each case, trial or meeting: what it is, the how-manieth of how many. */
typedef void lab_progress(const char *what, unsigned index, unsigned count);

/* The exact names of the measures, and where their clocks start and stop. NULL name: there is none.
 */
struct lab_measure {
    const char *name, *starts, *stops;
};

static inline uint64_t lab_case_messages(const struct lab_case *c)
{
    return c->warmup + c->iterations;
}

static inline uint32_t lab_case_slot(const struct lab_end *e, uint64_t sequence)
{
    return (uint32_t)(sequence % e->rig.pool.slots);
}

const char *lab_case_name(const struct lab_case *c);
/* "write of 64 bytes at depth 1", and its way where that is not the direct one. */
const char *lab_case_say(const struct lab_case *c, char out[LAB_CASE_BYTES]);
struct lab_measure lab_case_completion(unsigned op);
struct lab_measure lab_case_acknowledged(unsigned op);

/* Whoever polls calls lab_patience_look() each time: it looks after the control connection now and
 * then, tells the target that the source is alive, and ends what does not move. 0, or -errno and
 * e->message. */
struct lab_patience {
    uint64_t moved_ns; /* 0: since the last look */
    uint64_t looked_ns;
    uint64_t told_ns;
    unsigned calls;
};
void lab_patience_init(struct lab_patience *p);
void lab_patience_moved(struct lab_patience *p);
int lab_patience_look(struct lab_patience *p, struct lab_end *e, const struct lab_case *c,
                      uint64_t messages_done);

/* error of a call of the pool or the queue: what it said is why the run cannot go on. Returns it.
 */
int lab_case_from_pool(struct lab_end *e, int error);
int lab_case_from_queue(struct lab_end *e, const struct lab_queue *q, int error);

/* Claims the slot and makes its contents, with the planted fault if this is the message for it, in
 * bytes. */
int lab_case_make(struct lab_end *e, struct lab_side *side, const struct lab_case *c,
                  uint64_t sequence, uint8_t *bytes);
/* The slot is the device's from now on. */
int lab_case_post(struct lab_end *e, const struct lab_case *c, uint64_t sequence);
/* What must be at sequence's place. */
struct lab_expect lab_case_expect(const struct lab_end *e, const struct lab_case *c,
                                  uint64_t sequence);

struct lab_buffers;
/* Moves the messages of one case; the queue is connected. 0, or -errno and e->message. */
int lab_source_run(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                   struct lab_buffers *b, struct lab_result *r);
/* The same in turns, for who drives several: NULL without memory; 1 when it is over, 0 when it goes
 * on, or -errno and e->message. Close it in any case. */
struct lab_source;
struct lab_source *lab_source_open(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                                   struct lab_buffers *b, struct lab_result *r);
int lab_source_turn(struct lab_source *s);
void lab_source_close(struct lab_source *s);
/* Before the queue is connected: places for the first messages. */
int lab_target_prepare(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                       struct lab_buffers *b, struct lab_side *side);
/* Ends when the source has said "done". */
int lab_target_run(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                   struct lab_buffers *b, struct lab_side *side);
/* In turns, as the source; LAB_TURN_IDLE when one of a team has nothing to do but to wait for the
 * end. */
enum { LAB_TURN_OVER = 1, LAB_TURN_IDLE };
struct lab_target;
struct lab_target *lab_target_open(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                                   struct lab_buffers *b, struct lab_side *side);
int lab_target_turn(struct lab_target *t);
void lab_target_close(struct lab_target *t);
int lab_tcp_source(struct lab_end *e, const struct lab_case *c, struct lab_result *r);
int lab_tcp_target(struct lab_end *e, const struct lab_case *c, struct lab_side *side);
/* The limit: bytes copied from slot to slot; ns for each message of that size. */
double lab_tcp_memcpy_ns(struct lab_end *e, uint32_t size);

#endif
