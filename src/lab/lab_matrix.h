/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_matrix.h: a run of many as one record, its verdict over all, and that record as text: a table
 * of each pair, and what is left of it when all run at once.
 */
#ifndef LAB_LAB_MATRIX_H
#define LAB_LAB_MATRIX_H

#include <jansson.h>
#include <stdio.h>

#include "lab/lab_hub.h"

enum { LAB_MATRIX_VERSION = 1 };

/* error NULL: it came to its end. */
json_t *lab_matrix_make(const struct lab_hub *h, const char *error);
/* 0 or -errno. */
int lab_matrix_write(const json_t *record, FILE *out);

#endif
