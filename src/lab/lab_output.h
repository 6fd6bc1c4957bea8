/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_output.h: files that reports go to. A file is the whole new report or what it was before:
 * never empty, never half of one, whatever happens meanwhile.
 */
#ifndef LAB_LAB_OUTPUT_H
#define LAB_LAB_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Can it be written? Asked before a run, so that none is for nothing; changes nothing. 0 or -errno.
 */
int lab_output_check(const char *file);
/* An option that names a file; "": not given. */
struct lab_output_option {
    const char *name, *file;
};
/* Two options that name one file, of which only one could be kept, in a message; false: none do.
 * What is no file, as /dev/null, takes both. */
bool lab_output_twice(const struct lab_output_option *options, unsigned n, char *message,
                      size_t bytes);
/* Is there something in what a command was given as --db, --json and --html that cannot be meant?
 * Then a message. "", and of the reports NULL: not given; --json -: standard output. */
bool lab_output_refused(const char *db, const char *json, const char *html, char *message,
                        size_t bytes);
/* Puts what write() writes in its place. A device or a pipe is written to as it is. 0 or -errno. */
int lab_output_write(const char *file, int (*write)(const json_t *data, FILE *out),
                     const json_t *data);

#endif
