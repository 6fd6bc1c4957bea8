/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_session.h: a whole run of one end: greeting, agreement, case after case, and the end.
 */
#ifndef LAB_LAB_SESSION_H
#define LAB_LAB_SESSION_H

#include "lab/lab_case.h"

/* What the source has after its run; results are freed by lab_run_clear(). */
struct lab_run {
    struct lab_result *results;
    unsigned count;
    unsigned planned;
    uint64_t memcpy_ns[LAB_MAX_LIST]; /* by place in settings.sizes; 0: not measured */
    json_t *target;                   /* what the target told of itself */
};

/* Told before each case: the how-manieth of how many. */
typedef void lab_progress(const struct lab_case *c, unsigned index, unsigned count);

/* fd: a connected TCP socket. 0, or -errno and e->message; the control connection stays open for
 * lab_session_close(), which tells the peer of a failure. */
int lab_session_open(struct lab_end *e, int fd, const uint8_t key[LAB_KEY_BYTES]);
int lab_session_drive(struct lab_end *e, struct lab_run *run, lab_progress *progress);
int lab_session_serve(struct lab_end *e);
void lab_session_close(struct lab_end *e, bool failed);
void lab_run_clear(struct lab_run *run);
/* The host and device of this end, for the record. */
json_t *lab_session_self(const struct lab_end *e);

#endif
