/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters.c: the names of the counters, made from the one list in counters.h.
 */
#include "nic/counters.h"

#include <stddef.h>

const char *counters_name(enum nic_counter c)
{
    static const char *const name[COUNTER_COUNT] = {
#define X(n) [COUNTER_##n] = #n,
        NIC_COUNTERS(X)
#undef X
    };

    return (unsigned)c < COUNTER_COUNT ? name[c] : NULL;
}
