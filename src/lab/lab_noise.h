/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_noise.h: how far a figure of a run may be from what it would be of very many messages, and
 * whether two figures differ by more than that. All intervals hold 99 %. No IO.
 */
#ifndef LAB_LAB_NOISE_H
#define LAB_LAB_NOISE_H

#include <jansson.h>

enum {
    LAB_NOISE_CHANGE_PERCENT = 5, /* less is no change for anybody */
    LAB_NOISE_SAME_PERCENT = 50,  /* "the same" is said where more than that can be excluded */
};

/* A figure, or a ratio of two, and between what it lies. value 0: there is none; low 0 and high
 * infinite: no bound on that side. */
struct lab_figure {
    double value, low, high;
};

enum lab_mark { LAB_MARK_NONE, LAB_MARK_BETTER, LAB_MARK_WORSE, LAB_MARK_SAME, LAB_MARK_UNKNOWN };

/* NULL of LAB_MARK_NONE. */
const char *lab_noise_mark_name(enum lab_mark m);

/* How many of a measure's samples count: messages that wait for the same thing tell the same, as do
 * those that are under way at once. Told by the batches of the case or trial; without those each
 * message of a case that is under way is the same, and those of a trial are one. */
double lab_noise_effective(const json_t *c, const json_t *measure);
/* Of the samples at and beside the share's place in order. effective: how many of them count. */
struct lab_figure lab_noise_quantile(const json_t *measure, const char *name, double share,
                                     double effective);
/* Of the times that equal batches of messages took. */
struct lab_figure lab_noise_throughput(const json_t *c);
/* One sample tells nothing of others. */
struct lab_figure lab_noise_single(double value);
/* over / under. */
struct lab_figure lab_noise_ratio(struct lab_figure over, struct lab_figure under);
/* The ratio of two runs, with what runs alike vary by from one to the next, which none of them
 * knows: values are those of count such runs, 0 where one has none. Fewer than LAB_NOISE_RUNS tell
 * nothing. */
enum { LAB_NOISE_RUNS = 4, LAB_NOISE_MAX_RUNS = 10 };
struct lab_figure lab_noise_between(struct lab_figure ratio, const double *values, unsigned count);
/* Of a ratio that is better when it is larger. */
enum lab_mark lab_noise_mark(struct lab_figure ratio);

#endif
