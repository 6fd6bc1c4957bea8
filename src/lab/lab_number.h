/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_number.h: texts of numbers with units, as users write them, and what is said where a text is
 * none or is outside. No IO.
 */
#ifndef LAB_LAB_NUMBER_H
#define LAB_LAB_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is counted: pieces, bytes, ns, kbit/s (written in Gbit/s), millionths. */
enum lab_quantity { LAB_PIECES, LAB_BYTES, LAB_TIME, LAB_RATE, LAB_RATIO, LAB_QUANTITIES };
enum { LAB_NUMBER_BYTES = 320 };

struct lab_range {
    enum lab_quantity quantity;
    uint64_t min, max;
};

/* The whole of text[0..n); false and why not, which quotes the text and tells what is allowed. */
bool lab_number_parse(const struct lab_range *r, const char *text, size_t n, uint64_t *out,
                      char why[LAB_NUMBER_BYTES]);
/* The shortest text that is that value: "1ms", "8MiB". */
void lab_number_say(enum lab_quantity q, uint64_t value, char *out, size_t bytes);

#endif
