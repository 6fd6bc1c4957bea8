/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_compare.h: what changed from one run to the next, and whether that is more than noise. No IO
 * but of the text.
 */
#ifndef LAB_LAB_COMPARE_H
#define LAB_LAB_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "lab/lab_store.h"

enum { LAB_COMPARE_VERSION = 2 };

/* records: as lab_store_record() gives them, two or more; the first is what the others are
 * compared with. like: an array of other runs alike to the first, LAB_NOISE_MAX_RUNS - 1 at most,
 * or NULL: what they vary by counts as noise. {"record", "version", "runs": [{"run", "ended",
 * "source", "target", "device", "summary", "better", "worse", "same", "unknown", "against_tcp":
 * {the same four}}], "like": [their numbers], "differences": [{"name", "values"}], "rows": [...]}:
 * a row for each figure that the first run and another have, of a case, an experiment or a path
 * (its "part", with its labels as in the record), its "figure", "kind" and "unit", and lists with a
 * place for each run: "values"; "ratios" to the first run, better when larger, "low" and "high",
 * between what these are with 99 % (null: no bound), and "marks", "better", "worse", "same",
 * "unknown" or null where there is no such figure; the same as "tcp_ratios" and so on for what the
 * figure's ratio to TCP's changed by. */
json_t *lab_compare_make(const json_t *records, const json_t *like, const struct lab_filter *f);
/* Are two records of runs with the same settings between the same hosts and devices? */
bool lab_compare_alike(const json_t *a, const json_t *b);
/* 0 or -errno. */
int lab_compare_write(const json_t *comparison, FILE *out);

#endif
