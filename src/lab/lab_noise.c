/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_noise.c: quantiles by order statistics, whatever the distribution: the number of samples
 * below a quantile is binomial. Throughputs by batch means. Ratios by both intervals put together
 * in logarithms, each side of its own (as Zou and Donner do it).
 */
#define _GNU_SOURCE
#include "lab/lab_noise.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "lab/lab_batches.h"

static const double tail = 0.005; /* what lies beyond either bound: 99 % lie between */
/* Student's t at 1 - tail, by degrees of freedom. */
static const double student[] = {0,     63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499,
                                 3.355, 3.250,  3.169, 3.106, 3.055, 3.012, 2.977, 2.947};
_Static_assert(sizeof(student) / sizeof(student[0]) >= LAB_BATCHES, "one for each number");
_Static_assert((int)LAB_NOISE_MAX_RUNS <= (int)LAB_BATCHES, "here, too");

static double number(const json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

const char *lab_noise_mark_name(enum lab_mark m)
{
    static const char *const names[] = {NULL, "better", "worse", "same", "unknown"};
    return names[m];
}

/* How much the mean of the batches varies, as a part of it, squared; batches of together times as
 * many messages. Negative: there are not enough. */
static double spread_of_mean(const json_t *c, unsigned together, unsigned *count)
{
    const json_t *all = json_object_get(c, "batches_ns");
    size_t n = json_array_size(all);
    double ns[LAB_BATCHES] = {0}, sum = 0, off = 0;
    *count = (unsigned)n / together;
    if (*count < 2 || n > LAB_BATCHES)
        return -1;
    for (unsigned i = 0; i < *count * together; i++) {
        ns[i / together] += json_number_value(json_array_get(all, i));
        sum += json_number_value(json_array_get(all, i));
    }
    for (unsigned i = 0; i < *count; i++)
        off += pow(ns[i] - sum / *count, 2);
    return sum <= 0 ? -1 : off / (*count - 1) / *count / pow(sum / *count, 2);
}

/* The same, the worse of single ones and of pairs: what lasts longer than a batch makes neighbours
 * alike, which pairs show. */
static double spread_of_batches(const json_t *c, double *wide)
{
    double worst = -1;
    *wide = 0;
    for (unsigned together = 1, count; together <= 2; together++) {
        double spread = spread_of_mean(c, together, &count);
        worst = fmax(worst, spread);
        if (spread >= 0)
            *wide = fmax(*wide, student[count - 1] * sqrt(spread));
    }
    return worst;
}

static double spread_of_samples(const json_t *m)
{
    double n = number(m, "samples"), sum = 0, off = 0;
    const json_t *all = json_object_get(m, "histogram_ns");
    size_t i;
    json_t *bucket;
    json_array_foreach(all, i, bucket) sum +=
        json_number_value(json_array_get(bucket, 0)) * json_number_value(json_array_get(bucket, 1));
    if (n < 2 || sum <= 0)
        return 0;
    json_array_foreach(all, i, bucket) off +=
        pow(json_number_value(json_array_get(bucket, 0)) - sum / n, 2) *
        json_number_value(json_array_get(bucket, 1));
    return off / (n - 1) / (sum / n) / (sum / n);
}

double lab_noise_effective(const json_t *c, const json_t *measure)
{
    bool trial = json_object_get(c, "variant") != NULL; /* of an experiment: it has rounds */
    double samples = number(measure, "samples"), messages = trial ? samples : number(c, "messages");
    double wide, between = spread_of_batches(c, &wide), within = spread_of_samples(measure);
    if (between < 0 && trial)
        return fmin(samples,
                    1); /* of an older version: nobody knows what they waited for together */
    if (between < 0) {
        double depth = fmax(1, number(c, "depth")) * fmax(1, number(c, "qps"));
        return fmin(samples, fmax(1, samples / depth));
    }
    if (within <= 0 || between <= 0)
        return samples;
    /* Of independent messages the mean varies by so much less than one. */
    return fmin(samples, fmax(1, fmin(messages, within / between)));
}

/* The largest k for which no more than tail of Binomial(n, share) is below it: 0 if there is none.
 */
static double rank_below(double n, double share)
{
    double mean = n * share, wide = 10 * sqrt(mean * (1 - share)) + 10, below = 0;
    uint64_t k = mean > wide ? (uint64_t)(mean - wide) : 0;
    int sign;
    for (; k < (uint64_t)n; k++) {
        double in = (double)k, out = n - in;
        below += exp(lgamma_r(n + 1, &sign) - lgamma_r(in + 1, &sign) - lgamma_r(out + 1, &sign) +
                     in * log(share) + out * log1p(-share));
        if (below > tail)
            break;
    }
    return (double)k;
}

/* The sample at that place in order, the first being 1. */
static double at_rank(const json_t *m, double rank)
{
    size_t i;
    json_t *bucket;
    double seen = 0, most = number(m, "max_ns");
    json_array_foreach(json_object_get(m, "histogram_ns"), i, bucket)
    {
        seen += json_number_value(json_array_get(bucket, 1));
        if (seen >= rank)
            return fmin(json_number_value(json_array_get(bucket, 0)), most);
    }
    return most;
}

struct lab_figure lab_noise_quantile(const json_t *measure, const char *name, double share,
                                     double effective)
{
    double samples = number(measure, "samples"), n = floor(effective);
    struct lab_figure f = {number(measure, name), 0, INFINITY};
    if (f.value <= 0 || n < 1)
        return f.value > 0 ? f : (struct lab_figure){0};
    /* Fewer that count are as many groups of samples alike; a place is its group's far end. */
    double each = samples / n;
    double low = rank_below(n, share), high = n + 1 - rank_below(n, 1 - share);
    if (low >= 1)
        f.low = fmin(f.value, at_rank(measure, fmax(1, floor((low - 1) * each) + 1)));
    if (high <= n)
        f.high = fmax(f.value, at_rank(measure, fmin(samples, ceil(high * each))));
    return f;
}

struct lab_figure lab_noise_throughput(const json_t *c)
{
    double wide, gbps = number(c, "gbps");
    if (gbps <= 0)
        return (struct lab_figure){0};
    if (spread_of_batches(c, &wide) < 0)
        return lab_noise_single(gbps);
    return (struct lab_figure){gbps, gbps * exp(-wide), gbps * exp(wide)};
}

struct lab_figure lab_noise_single(double value)
{
    return value > 0 ? (struct lab_figure){value, 0, INFINITY} : (struct lab_figure){0};
}

/* How far it may be, as a difference of logarithms. */
static double down(struct lab_figure f)
{
    return f.low > 0 ? log(f.value / f.low) : INFINITY;
}

static double up(struct lab_figure f)
{
    return isinf(f.high) ? INFINITY : log(f.high / f.value);
}

struct lab_figure lab_noise_ratio(struct lab_figure over, struct lab_figure under)
{
    if (over.value <= 0 || under.value <= 0)
        return (struct lab_figure){0};
    double ratio = over.value / under.value;
    return (struct lab_figure){ratio, ratio * exp(-hypot(down(over), up(under))),
                               ratio * exp(hypot(up(over), down(under)))};
}

struct lab_figure lab_noise_between(struct lab_figure ratio, const double *values, unsigned count)
{
    double sum = 0, off = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < count && i < LAB_NOISE_MAX_RUNS; i++) {
        sum += values[i] > 0 ? log(values[i]) : 0;
        n += values[i] > 0;
    }
    if (n < LAB_NOISE_RUNS || ratio.value <= 0)
        return ratio;
    for (unsigned i = 0; i < count && i < LAB_NOISE_MAX_RUNS; i++)
        off += values[i] > 0 ? pow(log(values[i]) - sum / n, 2) : 0;
    /* Both runs have it, each of its own. */
    double wide = student[n - 1] * sqrt(2 * off / (n - 1));
    return (struct lab_figure){ratio.value, ratio.value * exp(-hypot(down(ratio), wide)),
                               ratio.value * exp(hypot(up(ratio), wide))};
}

enum lab_mark lab_noise_mark(struct lab_figure ratio)
{
    const double change = 1 + LAB_NOISE_CHANGE_PERCENT / 100.0;
    const double same = 1 + LAB_NOISE_SAME_PERCENT / 100.0;
    if (ratio.value <= 0)
        return LAB_MARK_NONE;
    if (ratio.value > change && ratio.low > 1)
        return LAB_MARK_BETTER;
    if (ratio.value < 1 / change && ratio.high < 1)
        return LAB_MARK_WORSE;
    return ratio.low >= 1 / same && ratio.high <= same ? LAB_MARK_SAME : LAB_MARK_UNKNOWN;
}
