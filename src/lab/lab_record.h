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
/* 0 or -errno. */
int lab_record_write(const json_t *record, FILE *out);

/* The text report. 0 or -errno. */
int lab_report_write(const json_t *record, FILE *out);
/* Does a device's counter of that name tell of trouble? */
bool lab_report_is_trouble(const char *counter);
/* 65536 as 64KiB. */
const char *lab_report_bytes(uint64_t bytes, char out[24]);

#endif
