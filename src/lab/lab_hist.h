/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_hist.h: the distribution of a measure, in fixed memory whatever the number of samples. Values
 * below 2,048 ns are kept as they are; above, a bucket is less than a thousandth of its values
 * wide. Minimum, maximum and mean are exact.
 */
#ifndef LAB_LAB_HIST_H
#define LAB_LAB_HIST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LAB_HIST_SUB_BITS = 11,   /* the first buckets are one value wide */
    LAB_HIST_VALUE_BITS = 42, /* more than an hour in ns; longer counts as that */
    LAB_HIST_HALF = 1 << (LAB_HIST_SUB_BITS - 1),
    LAB_HIST_BUCKETS =
        2 * LAB_HIST_HALF + (LAB_HIST_VALUE_BITS - LAB_HIST_SUB_BITS) * LAB_HIST_HALF,
};

struct lab_hist {
    uint64_t samples;
    uint64_t min;
    uint64_t max;
    double sum;
    uint64_t counts[LAB_HIST_BUCKETS];
};

void lab_hist_clear(struct lab_hist *h);
void lab_hist_add(struct lab_hist *h, uint64_t value);
/* All samples of the other, too. */
void lab_hist_merge(struct lab_hist *h, const struct lab_hist *other);
/* 0 when there are no samples. */
double lab_hist_mean(const struct lab_hist *h);
/* The smallest value that permille/1000 of the samples do not exceed, as its bucket's highest
 * value, never more than the maximum; 0 without samples. 500 is the median, 1000 the maximum. */
uint64_t lab_hist_permille(const struct lab_hist *h, unsigned permille);
/* The buckets that hold samples, in order: *at is 0 at first; false after the last. */
bool lab_hist_next(const struct lab_hist *h, unsigned *at, uint64_t *highest, uint64_t *count);

#endif
