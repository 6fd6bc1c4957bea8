/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_hist.c: buckets as HdrHistogram has them: each power of two is cut into equally many.
 */
#include "lab/lab_hist.h"

#include <string.h>

static unsigned bucket_of(uint64_t value)
{
    if (value < 2 * LAB_HIST_HALF)
        return (unsigned)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - (LAB_HIST_SUB_BITS - 1);
    return 2 * LAB_HIST_HALF + (shift - 1) * LAB_HIST_HALF + (unsigned)(value >> shift) -
           LAB_HIST_HALF;
}

static uint64_t highest_of(unsigned bucket)
{
    if (bucket < 2 * LAB_HIST_HALF)
        return bucket;
    unsigned shift = (bucket - 2 * LAB_HIST_HALF) / LAB_HIST_HALF + 1;
    uint64_t head = bucket % LAB_HIST_HALF + LAB_HIST_HALF;
    return ((head + 1) << shift) - 1;
}

void lab_hist_clear(struct lab_hist *h)
{
    memset(h, 0, sizeof(*h));
}

void lab_hist_add(struct lab_hist *h, uint64_t value)
{
    const uint64_t limit = (1ull << LAB_HIST_VALUE_BITS) - 1;
    if (h->samples == 0 || value < h->min)
        h->min = value;
    if (value > h->max)
        h->max = value;
    h->samples++;
    h->sum += (double)value;
    h->counts[bucket_of(value < limit ? value : limit)]++;
}

void lab_hist_merge(struct lab_hist *h, const struct lab_hist *other)
{
    if (other->samples == 0)
        return;
    h->min = h->samples == 0 || other->min < h->min ? other->min : h->min;
    h->max = other->max > h->max ? other->max : h->max;
    h->samples += other->samples;
    h->sum += other->sum;
    for (unsigned i = 0; i < LAB_HIST_BUCKETS; i++)
        h->counts[i] += other->counts[i];
}

double lab_hist_mean(const struct lab_hist *h)
{
    return h->samples == 0 ? 0 : h->sum / (double)h->samples;
}

uint64_t lab_hist_permille(const struct lab_hist *h, unsigned permille)
{
    if (h->samples == 0)
        return 0;
    if (permille >= 1000)
        return h->max;
    uint64_t rank = (h->samples / 1000) * permille + ((h->samples % 1000) * permille + 999) / 1000;
    uint64_t passed = 0;
    if (rank == 0)
        return h->min;
    for (unsigned i = 0; i < LAB_HIST_BUCKETS; i++) {
        passed += h->counts[i];
        if (passed >= rank) {
            uint64_t value = highest_of(i);
            return value < h->max ? value : h->max;
        }
    }
    return h->max;
}

bool lab_hist_next(const struct lab_hist *h, unsigned *at, uint64_t *highest, uint64_t *count)
{
    for (unsigned i = *at; i < LAB_HIST_BUCKETS; i++) {
        if (h->counts[i] == 0)
            continue;
        *at = i + 1;
        *highest = highest_of(i);
        *count = h->counts[i];
        return true;
    }
    return false;
}
