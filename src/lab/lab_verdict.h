/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_verdict.h: what a run comes to: is the data right, are the thresholds met, does RDMA pay for
 * this load, and is it the transport that limits it. Numbers only; no IO.
 */
#ifndef LAB_LAB_VERDICT_H
#define LAB_LAB_VERDICT_H

#include <jansson.h>

#include "lab/lab_session.h"

/* Exit codes. A threshold that no case could be held against is missed, too. What cannot be run has
 * those of the program `verbena`: 64, 69, 70. */
enum lab_exit { LAB_EXIT_PASSED = 0, LAB_EXIT_MISSED = 1, LAB_EXIT_WRONG_DATA = 2 };

double lab_verdict_gbps(const struct lab_result *r);
double lab_verdict_rate(const struct lab_result *r); /* messages a second */
/* The baseline of the same size and depth; NULL where there is none. */
const struct lab_result *lab_verdict_baseline(const struct lab_run *run,
                                              const struct lab_result *r);
/* Ours over TCP's; 0 where there is no baseline. Above 1 is better, for both. */
double lab_verdict_throughput_ratio(const struct lab_run *run, const struct lab_result *r);
double lab_verdict_latency_ratio(const struct lab_run *run, const struct lab_result *r);
/* Of the distribution, at permille of it (0: its mean), TCP's or memcpy's over h's; and the same of
 * CPU time. 0 where there is none. */
double lab_verdict_tcp_ratio(const struct lab_run *run, const struct lab_result *r,
                             const struct lab_hist *h, unsigned permille);
double lab_verdict_copy_ratio(const struct lab_settings *s, const struct lab_run *run,
                              const struct lab_result *r, const struct lab_hist *h,
                              unsigned permille);
double lab_verdict_tcp_cpu_ratio(const struct lab_run *run, const struct lab_result *r);
double lab_verdict_copy_cpu_ratio(const struct lab_settings *s, const struct lab_run *run,
                                  const struct lab_result *r);
/* CPU time of both ends for each message. */
double lab_verdict_cpu_us(const struct lab_result *r);
/* Over memcpy's; 0 where it was not measured. */
double lab_verdict_memcpy_ratio(const struct lab_settings *s, const struct lab_run *run,
                                const struct lab_result *r);
/* The distribution that a latency ratio and a threshold on p99 go by. */
const struct lab_hist *lab_verdict_latency(const struct lab_result *r);
/* Percent of the case's time that an end spends on contents: fill, checksum and copy; or on one of
 * them. */
unsigned lab_verdict_contents_percent(const json_t *side);
unsigned lab_verdict_part_percent(const json_t *side, enum lab_part part);
/* Percent of the time of its threads that an end had a CPU; 0: not known. */
unsigned lab_verdict_cpu_percent(const json_t *side);
/* Is that so little that an end that polls had none of its own? */
bool lab_verdict_lacks_cpu(unsigned percent);
/* Did an end that polls have no CPU of its own? Its figures are then the scheduler's. */
bool lab_verdict_starved(const struct lab_settings *s, const struct lab_result *r);
/* Had it so few messages that a median of them is chance? */
enum { LAB_VERDICT_LEAST_MESSAGES = 10 };
bool lab_verdict_few(const struct lab_result *r);
/* "few messages" or "no CPU": why its figures tell little; NULL: no reason is known. */
const char *lab_verdict_doubt(const struct lab_settings *s, const struct lab_result *r);
/* Faults of the data on both ends. */
uint64_t lab_verdict_faults(const struct lab_result *r);

/* {"exit": N, "passed": bool, "summary": text, "findings": [text, ...], "tcp": see lab_pays.h} */
json_t *lab_verdict_make(const struct lab_settings *s, const struct lab_run *run);

#endif
