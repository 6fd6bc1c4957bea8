/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_hub.h: how a run of many ranks goes. Rank 0 leads: every rank has a worker, which connects to
 * it and does what it is told; for each meeting of two ranks both workers start a process, source
 * and target, which also connect to the leader. They are the same as `lab run' and `lab serve', so
 * nothing is measured in another way than between two.
 *
 * Said by workers: hello. To them: work, with "end" at last. By a target: hello with its port,
 * done; by a source: hello, open; to it: target, go; by it: alive before each case, record in
 * pieces.
 */
#ifndef LAB_LAB_HUB_H
#define LAB_LAB_HUB_H

#include "lab/lab_ranks.h"
#include "lab/lab_schedule.h"
#include "lab/lab_session.h"

enum { LAB_PIECE_BYTES = 64 << 10 }; /* of a record, in one message */

struct lab_outcome {
    json_t *record; /* of the run, or NULL */
    char *error;    /* or why there is none, or not all of it */
};

struct lab_hub {
    const struct lab_ranks *ranks;
    const struct lab_settings *settings;
    const struct lab_schedule *schedule;
    struct lab_outcome *outcomes; /* of each meeting */
    lab_progress *progress;
    struct lab_lobby lobby; /* its listener is the caller's */
    struct lab_control workers[LAB_MAX_RANKS];
    char message[LAB_MESSAGE_BYTES]; /* why it cannot go on */
};

/* Leads a whole run. A meeting that fails is an outcome; 0, or -errno and h->message where a rank
 * is gone or silent. Outcomes are the caller's, zero at first. */
int lab_hub_lead(struct lab_hub *h);

/* A worker, until the leader says that this was all. The settings are everybody's. 0 or -errno and
 * a message. */
int lab_worker_run(const struct lab_ranks *ranks, const struct lab_settings *settings,
                   char message[LAB_MESSAGE_BYTES]);

#endif
