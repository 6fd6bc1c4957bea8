/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failure.h: what is said of a world that failed: how to replay it, the smallest tape found that
 * fails in the same way, and the trace of that one.
 */
#ifndef TESTS_WORLD_FAILURE_H
#define TESTS_WORLD_FAILURE_H

#include "world.h"

struct verdict {
    bool failed;
    const char *kind; /* world.why_kind, or that the process died */
    char why[400];
};

/* Runs the world in a child process, which may die of it. */
void failure_probe(struct world *w, const struct tape *start, uint64_t seed, struct verdict *out);
/* Prints all that is known; start is the tape as it was before the run. The tape file gets this
 * name, in the folder that VERBENA_TAPES names or the working one. */
void failure_report(struct world *w, const struct tape *start, uint64_t seed, const char *name,
                    bool shrink);
/* A world that ends this process tells its replay first: this text, and goes on with a fresh
 * process to shrink it if asked. */
void failure_watch(const char *program, bool shrink);
void failure_watch_seed(uint64_t seed);

#endif
