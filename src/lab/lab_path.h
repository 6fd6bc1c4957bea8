/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_path.h: the way of one message, step by step, from the traces of both ends of one machine:
 * who did what and when, what the step proves, and what it does not.
 */
#ifndef LAB_LAB_PATH_H
#define LAB_LAB_PATH_H

#include <jansson.h>
#include <stdio.h>

#include "lab/lab_settings.h"

/* {"op", "transport", "size", "packets": bool, "steps": [{"number", "end", "what", "begin_ns",
 * "end_ns", "proves", "not"}]}; times are since the first step, by the one clock that both ends
 * have. "clocks" is 2 where they are two: then times are since the first step of the same end, and
 * the order is that of causes. */
json_t *lab_path_make(enum lab_op op, enum lab_transport transport, uint32_t size,
                      const json_t *source, const json_t *target, bool two_clocks);
/* The numbered walk and the drawn timeline. 0 or -errno. */
int lab_path_write(const json_t *path, FILE *out);

#endif
