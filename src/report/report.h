/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h: a page of HTML with everything in it: style, chart library, script and data. It opens
 * without a network and without us. What is drawn is said by the script, from the data: see
 * report_page.js for what a script can call.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

struct report {
    const char *title;  /* plain text */
    const char *script; /* JavaScript without "</script", as scripts/embed.py makes sure of */
    const char *data;   /* JSON, whatever is in its strings */
};

/* false: built with -Dreports=disabled, or without npm; report_write() is not to be called then. */
bool report_can(void);
/* 0, or -errno of out. */
int report_write(FILE *out, const struct report *r);
/* What to say where report_can() is false. */
#define REPORT_CANNOT                                                                              \
    "this build has no charts for HTML; it has them where npm is found (meson -Dreports=enabled)"

#endif
