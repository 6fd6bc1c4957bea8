/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * output.h: a file that a run leaves. It is opened before the run, as NAME.part beside the place
 * where it will be, and takes its name when it is whole: what was there before stays until then.
 * What is no regular file (a device, a pipe) is written as it stands.
 */
#ifndef SCENARIO_OUTPUT_H
#define SCENARIO_OUTPUT_H

#include "scenario/scenario.h"

struct output {
    FILE *file;
    char *path; /* NULL: not open */
    char *part; /* what is written; NULL: path itself */
};

/* It is nothing that the scenario came from; false and *error. */
bool output_is_free(const char *path, const struct scenario *s, struct scenario_error *error);
/* That it can be made is certain afterwards, and that nobody else writes it. false and *error. */
bool output_open(struct output *o, const char *path, struct scenario_error *error);
/* Closes it and gives it its name; if it could not be written, what was there stays. false and
 * *error. */
bool output_commit(struct output *o, struct scenario_error *error);
/* Closes it and takes it away. Nothing, if it is not open. */
void output_abandon(struct output *o);

#endif
