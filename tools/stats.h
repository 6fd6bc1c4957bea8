/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h: the counters that processes on the software NIC leave behind, in the file that
 * VERBENA_STATS names: lines `name value pid program`, of counters that are not 0.
 */
#ifndef TOOLS_STATS_H
#define TOOLS_STATS_H

#include <stdio.h>

/* Adds up what processes wrote into in, and prints a table to out. Lines that make no sense are
 * passed over. Returns the number of processes. */
unsigned stats_print(FILE *in, FILE *out);

#endif
