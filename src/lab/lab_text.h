/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_text.h: texts that come from outside, such as names of hosts and files, or that were cut.
 */
#ifndef LAB_LAB_TEXT_H
#define LAB_LAB_TEXT_H

#include <jansson.h>

/* A JSON string. JSON is UTF-8, and texts need not be: each byte that is none becomes '?'. */
json_t *lab_text_json(const char *text);

#endif
