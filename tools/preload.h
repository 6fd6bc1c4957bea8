/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preload.h: the software NIC before a program that is about to be started, by LD_PRELOAD.
 */
#ifndef TOOLS_PRELOAD_H
#define TOOLS_PRELOAD_H

#include <stdbool.h>

/* After what is there already, so that another tool's own preload keeps its place. files: with the
 * shim that shows files of devices. */
void preload_set(bool files);
/* setenv() that ends the program when it fails. */
void preload_setenv(const char *name, const char *value);

#endif
