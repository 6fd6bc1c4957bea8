/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_record.h: a run as one JSON object, and that object as text for people. Every report is made
 * from the record, so that none knows more than another.
 */
#ifndef LAB_LAB_RECORD_H
#define LAB_LAB_RECORD_H

#include <jansson.h>
#include <stdio.h>

#include "lab/lab_session.h"

enum { LAB_RECORD_VERSION = 1 };

/* A distribution: samples, mean, minimum, percentiles and its buckets, in ns. */
json_t *lab_record_hist(const struct lab_hist *h);
/* error NULL: the run came to its end. */
json_t *lab_record_make(const struct lab_end *e, const struct lab_run *run, const char *error);
/* Is it one of many ranks (lab_matrix.h), not of two ends? */
bool lab_record_is_of_many(const json_t *record);
/* 0 or -errno. */
int lab_record_write(const json_t *record, FILE *out);

/* The text report. 0 or -errno. */
int lab_report_write(const json_t *record, FILE *out);
/* Does a device's counter of that name tell of trouble? */
bool lab_report_is_trouble(const char *counter);
/* 65536 as 64KiB. */
const char *lab_report_bytes(uint64_t bytes, char out[24]);
/* Three decimals; three digits where these would be fewer. */
const char *lab_report_number(double value, char out[24]);
/* Labels of a case: "64KiB+3" at an offset in its slot; "16x4/2", 16 under way in each of 4 queue
 * pairs on 2 threads; "bounce/far", with the slots on the other NUMA node. */
enum { LAB_LABEL_BYTES = 56 };
const char *lab_report_size(const json_t *c, char out[LAB_LABEL_BYTES]);
const char *lab_report_depth(const json_t *c, char out[LAB_LABEL_BYTES]);
const char *lab_report_way(const json_t *c, char out[LAB_LABEL_BYTES]);

#endif
