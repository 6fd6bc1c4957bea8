/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * results.h: what a run leaves in its folder: flows.csv, pfc.csv, ports.csv, summary.json,
 * report.html.
 */
#ifndef SCENARIO_RESULTS_H
#define SCENARIO_RESULTS_H

#include "scenario/samples.h"
#include "scenario/scenario.h"

struct results {
    char *folder;
    FILE *pfc; /* written as the run goes */
    bool failed;
    bool report; /* report.html, too */
    struct samples samples;
};

/* Makes the folder if need be and opens pfc.csv; config's callback is set. false and *error. */
bool results_begin(struct results *r, const char *folder, struct scenario *s, bool report,
                   struct scenario_error *error);
/* Writes the rest and closes; false and *error. */
bool results_end(struct results *r, const struct scenario *s, struct fabric *f,
                 enum fabric_state state, struct scenario_error *error);

/* For the parts of JSON that summary.json and the report share. */
extern const char *const results_ends[]; /* by enum fabric_state */
void results_parameters(FILE *out, const struct fabric_config *config);
void results_text(FILE *out, const char *text); /* with its quotes */

#endif
