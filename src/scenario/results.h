/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * results.h: what a run leaves in its folder: flows.csv, pfc.csv, ports.csv, summary.json.
 */
#ifndef SCENARIO_RESULTS_H
#define SCENARIO_RESULTS_H

#include "scenario/scenario.h"

struct results {
    char *folder;
    FILE *pfc; /* written as the run goes */
    bool failed;
};

/* Makes the folder if need be and opens pfc.csv; config's callback is set. false and *error. */
bool results_begin(struct results *r, const char *folder, struct scenario *s,
                   struct scenario_error *error);
/* Writes the rest and closes; false and *error. */
bool results_end(struct results *r, const struct scenario *s, const struct fabric *f,
                 enum fabric_state state, struct scenario_error *error);

#endif
