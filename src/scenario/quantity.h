/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quantity.h: texts such as 100Gbps, 1.5us, 4MiB as integers, exactly: no floats on the way.
 */
#ifndef SCENARIO_QUANTITY_H
#define SCENARIO_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

enum { QUANTITY_TEXT_BYTES = 48 };

enum quantity_kind {
    QUANTITY_RATE,  /* bit/s: bps Kbps Mbps Gbps Tbps */
    QUANTITY_TIME,  /* ps: ps ns us ms s */
    QUANTITY_BYTES, /* B KB MB GB (1000) KiB MiB GiB (1024); none is B */
    QUANTITY_COUNT, /* no unit */
    QUANTITY_PPM,   /* millionths: 1%, 10ppm, 0.01 */
    QUANTITY_KINDS
};

/* What a text of this kind looks like, for messages: "a rate such as 100Gbps". */
const char *quantity_example(enum quantity_kind kind);
/* false: it is none, is no whole number of the unit that counts, or too large. */
bool quantity_parse(const char *text, enum quantity_kind kind, uint64_t *out);
/* As quantity_parse takes it, exactly: in the largest unit that it fills, or for bytes divides. */
const char *quantity_print(uint64_t value, enum quantity_kind kind, char text[QUANTITY_TEXT_BYTES]);

#endif
