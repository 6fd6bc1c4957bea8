/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * psn.h: 24-bit circular sequence numbers (PSN, MSN, SSN). A struct, so that `a < b` does not
 * compile: order on a circle exists only between numbers less than 2^23 apart.
 */
#ifndef WIRE_PSN_H
#define WIRE_PSN_H

#include <stdbool.h>
#include <stdint.h>

struct psn {
    uint32_t v; /* 0..0xffffff */
};

static inline struct psn psn_make(uint32_t v)
{
    return (struct psn){v & 0xffffffu};
}

static inline struct psn psn_add(struct psn a, uint32_t n)
{
    return psn_make(a.v + n);
}

/* Distance a - b in -2^23..2^23-1. */
static inline int32_t psn_diff(struct psn a, struct psn b)
{
    return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool psn_eq(struct psn a, struct psn b)
{
    return a.v == b.v;
}

/* a comes before b. */
static inline bool psn_before(struct psn a, struct psn b)
{
    return psn_diff(a, b) < 0;
}

#endif
