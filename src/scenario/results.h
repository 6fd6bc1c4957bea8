/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * results.h: what a run leaves in its folder: flows.csv, pfc.csv, ports.csv, summary.json,
 * scenario.yaml, report.html; and verbs.csv, where hosts have a NIC. They are opened before the run
 * and get their names at its end; of an earlier run nothing stays among them.
 */
#ifndef SCENARIO_RESULTS_H
#define SCENARIO_RESULTS_H

#include "scenario/output.h"
#include "scenario/samples.h"
#include "scenario/scenario.h"

enum results_file {
    RESULTS_PFC, /* written as the run goes */
    RESULTS_FLOWS,
    RESULTS_VERBS,
    RESULTS_PORTS,
    RESULTS_SUMMARY,
    RESULTS_SCENARIO, /* the run's, to repeat it */
    RESULTS_REPORT,
    RESULTS_FILES
};

struct results {
    char *folder;
    bool made;   /* the folder was not there */
    bool report; /* report.html, too */
    struct output out[RESULTS_FILES];
    struct samples samples;
};

/* Makes the folder if need be and opens the files; config's callback is set. false and *error. */
bool results_begin(struct results *r, const char *folder, struct scenario *s, bool report,
                   struct scenario_error *error);
/* Writes the rest, and each file that could be written gets its name; false and *error, the first,
 * if one could not. */
bool results_end(struct results *r, const struct scenario *s, struct fabric *f,
                 enum fabric_state state, struct scenario_error *error);
/* There is no run: all is as before. */
void results_abandon(struct results *r);

/* For the parts of JSON that summary.json and the report share. */
extern const char *const results_ends[]; /* by enum fabric_state */
void results_parameters(FILE *out, const struct fabric_config *config);
void results_text(FILE *out, const char *text); /* with its quotes */

#endif
