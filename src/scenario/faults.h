/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults.h: the faults of a scenario file.
 */
#ifndef SCENARIO_FAULTS_H
#define SCENARIO_FAULTS_H

#include "scenario/reader.h"

/* root: the whole file, of which nodes, links and switches are known. false: the reader has failed.
 */
bool faults_read(struct reader *r, const struct field *root, struct scenario *s);

#endif
