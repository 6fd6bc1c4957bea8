/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_clock.h: the one clock of a process. Values of two processes are never compared.
 */
#ifndef LAB_LAB_CLOCK_H
#define LAB_LAB_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t lab_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
