/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_pays.h: does RDMA pay for this load: for which sizes and depths is it better than TCP, by
 * throughput, median latency and CPU time, and can that be told at all. Numbers only; no IO.
 */
#ifndef LAB_LAB_PAYS_H
#define LAB_LAB_PAYS_H

#include <jansson.h>

#include "lab/lab_session.h"

enum { LAB_PAYS_NUMBER_BYTES = 24 };

/* {"cases": N, "few": N, "starved": N, "told": bool, "summary": text, "measures": [{"name": text,
 * "geometric_mean": x, "least": x, "most": x, "says": text}, ...]}; the measures only where it can
 * be told. Cases are those that have the same over TCP; few of them had too few messages. */
json_t *lab_pays_make(const struct lab_settings *s, const struct lab_run *run);
/* Three significant digits, however small it is. */
const char *lab_pays_number(double value, char out[LAB_PAYS_NUMBER_BYTES]);

#endif
