/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_experiment.h: the experiments of a run, one after the other, and what they show.
 */
#ifndef LAB_LAB_EXPERIMENT_H
#define LAB_LAB_EXPERIMENT_H

#include "lab/lab_trial.h"

struct lab_run;

/* The source: all that the settings ask for become members of run->experiments, after run->count
 * other steps. 0, or -errno and e->message. */
int lab_experiment_drive(struct lab_end *e, struct lab_run *run, lab_progress *progress);
/* How many trials that are. */
unsigned lab_experiment_trials(const struct lab_end *e);
/* The target: does the trial that the source has sent. */
int lab_experiment_serve(struct lab_end *e, const json_t *trial);
/* Sets "passed" and "summary" by its trials, and "doubt" of those whose times tell little, as cases
 * have it. */
void lab_experiment_judge(const struct lab_experiment_kind *k, json_t *experiment);
/* Text of the record's experiments; nothing where there are none. */
void lab_experiment_write(const json_t *experiments, FILE *out);
/* Has one of them found what no device may do? Adds to findings. */
bool lab_experiment_failed(const json_t *experiments, json_t *findings);

#endif
