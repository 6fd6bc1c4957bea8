/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_html.h: a record as a page with charts, which has everything in it.
 */
#ifndef LAB_LAB_HTML_H
#define LAB_LAB_HTML_H

#include <jansson.h>
#include <stdio.h>

/* NULL, or why this build cannot. */
const char *lab_html_missing(void);
/* Each 0 or -errno. Of two ends, or of many ranks. */
int lab_html_write(const json_t *record, FILE *out);
/* Of what lab_compare_make() gives. */
int lab_html_write_comparison(const json_t *comparison, FILE *out);

#endif
