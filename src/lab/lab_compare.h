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

enum { LAB_COMPARE_FLOOR_PERCENT = 5 /* a smaller change is never told from noise */ };

/* records: as lab_store_record() gives them, two or more; the first is what the others are compared
 * with. {"record", "version", "runs": [{"run", "ended", "source", "target", "device", "summary",
 * "better", "worse", "same"}], "differences": [{"name", "values"}], "rows": [{"op", "buffers",
 * "transport", "size", "depth", "offset", "figure", "unit", "values", "ratios", "noise",
 * "marks"}]}: a row for each figure that the first run and another have. A ratio is better when it
 * is larger; noise is how far from 1 it may be by chance; a mark is "better", "worse", "same", or
 * null where that run has no such figure. */
json_t *lab_compare_make(const json_t *records, const struct lab_filter *f);
/* 0 or -errno. */
int lab_compare_write(const json_t *comparison, FILE *out);

#endif
