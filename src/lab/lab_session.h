/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_session.h: a whole run of one end: greeting, agreement, case after case, and the end.
 */
#ifndef LAB_LAB_SESSION_H
#define LAB_LAB_SESSION_H

#include "lab/lab_buffers.h"
#include "lab/lab_case.h"
#include "lab/lab_cm.h"

/* What the source has after its run; results are freed by lab_run_clear(). */
struct lab_run {
    struct lab_result *results;
    unsigned count;
    unsigned planned;               /* cases */
    unsigned steps;                 /* cases and trials, as progress counts them */
    double memcpy_ns[LAB_MAX_LIST]; /* by place in settings.sizes; 0: not measured */
    bool one_node;                  /* far was asked for, and there is nothing but near */
    json_t *experiments;            /* an array, see lab_experiment.h */
    json_t *target;                 /* what the target told of itself */
};

/* fd: a connected TCP socket. 0, or -errno and e->message; the control connection stays open for
 * lab_session_close(), which tells the peer of a failure. */
int lab_session_open(struct lab_end *e, int fd, const uint8_t key[LAB_KEY_BYTES]);
/* The same for the target: waits at e->listener until somebody greets as `verbena lab` does, for
 * timeout_ns at most, 0: for ever. All others are turned away. */
int lab_session_accept(struct lab_end *e, const uint8_t key[LAB_KEY_BYTES], uint64_t timeout_ns);
int lab_session_drive(struct lab_end *e, struct lab_run *run, lab_progress *progress);
int lab_session_serve(struct lab_end *e);
void lab_session_close(struct lab_end *e, bool failed);
/* What a queue pair of a case has at one end while it lasts. */
struct lab_equipment {
    struct lab_queue q;
    struct lab_cm cm;
    struct lab_buffers b;
};
int lab_session_equip(struct lab_end *e, const struct lab_case *c, struct lab_equipment *x,
                      struct lab_side *side);
void lab_session_unequip(struct lab_equipment *x);
/* What it has registered beside the pool, at most at once. */
uint64_t lab_session_registered_bytes(const struct lab_equipment *x);
/* Of cases and trials. The queue connected, by endpoints to and fro or by rdma_cm (unless cm is
 * NULL), and "ready" to and fro; q is NULL where there is none. */
int lab_session_join(struct lab_end *e, struct lab_queue *q, struct lab_cm *cm);
int lab_session_send(struct lab_end *e, const char *type, json_t *object);
/* NULL and e->message. */
json_t *lab_session_receive(struct lab_end *e, const char *type);
/* Where something failed because the peer had failed before, its own words are better than ours.
 * Returns error. */
int lab_session_prefer_peer(struct lab_end *e, int error);
void lab_run_clear(struct lab_run *run);
/* The host and device of this end, for the record. */
json_t *lab_session_self(const struct lab_end *e);

#endif
