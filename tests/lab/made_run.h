/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * made_run.h: a run with round figures, for what is made of runs: TCP and write with 1,000 bytes at
 * depth 1, and atomics. TCP takes 10 us a message, write as many ns as is asked for.
 */
#ifndef TESTS_LAB_MADE_RUN_H
#define TESTS_LAB_MADE_RUN_H

#include <stdlib.h>

#include "lab/lab_session.h"

static inline void made_case(struct lab_result *r, unsigned op, uint32_t size, uint64_t each_ns)
{
    r->c = (struct lab_case){.op = op, .size = size, .depth = 1, .iterations = 100};
    r->elapsed_ns = 100 * each_ns;
    for (unsigned i = 0; i < 100; i++) {
        if (op != LAB_TCP)
            lab_hist_add(&r->completion, each_ns / 2);
        if (op != LAB_ATOMIC)
            lab_hist_add(&r->acknowledged, each_ns);
    }
    r->source.wall_ns = r->elapsed_ns;
    r->source.data[LAB_DATA_GOOD] = 100;
    r->target = json_pack("{s:i,s:{s:i},s:{s:i}}", "wall_ns", 1000000, "parts_ns", "checksum",
                          100000, "data", "stale", 0);
}

static inline void made_run(struct lab_end *e, struct lab_run *run, uint64_t write_ns)
{
    char message[LAB_MESSAGE_BYTES];
    *e = (struct lab_end){0};
    *run = (struct lab_run){.results = calloc(3, sizeof(*run->results)), .count = 3, .planned = 3};
    lab_settings_init(&e->settings);
    lab_settings_set(&e->settings, (unsigned)lab_settings_find("size"), "1000", message);
    run->memcpy_ns[0] = 100;
    made_case(&run->results[0], LAB_TCP, 1000, 10000);
    made_case(&run->results[1], LAB_WRITE, 1000, write_ns);
    made_case(&run->results[2], LAB_ATOMIC, 8, 1000);
}

#endif
