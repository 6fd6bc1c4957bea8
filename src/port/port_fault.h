/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_fault.h: a port that loses, doubles, holds back, corrupts, delays or marks what is sent
 * through it, as a seed decides. Received packets pass unchanged.
 */
#ifndef PORT_PORT_FAULT_H
#define PORT_PORT_FAULT_H

#include "port/port.h"

/* Chances are in parts per 10^9. All zero: nothing happens. */
struct fault_spec {
    uint32_t drop_ppb;
    uint32_t dup_ppb;
    uint32_t corrupt_ppb; /* one bit inverted after the ICRC was computed */
    uint32_t ce_ppb;      /* marked as in congestion, if it says that it may be (ECT) */
    uint32_t reorder_ppb; /* held back by reorder_ns while others pass */
    uint64_t reorder_ns;
    uint64_t delay_ns;   /* every packet */
    uint64_t down_at_ns; /* since creation: nothing leaves for down_ns */
    uint64_t down_ns;
    uint64_t seed;
};

enum {
    FAULT_PPB = 1000000000,
    FAULT_MESSAGE_BYTES = 160,
};

/*
 * Parses `drop=1%,dup=0.1%,reorder=1%:50us,corrupt=0.01%,ce=5%,delay=20us,down=5s+2s,seed=7`: any
 * of them, each once, in any order. Percentages have up to 7 decimals; times are whole numbers with
 * ns, us, ms or s. 0, or -EINVAL with a message that quotes what is wrong.
 */
int fault_parse(const char *text, struct fault_spec *out, char message[FAULT_MESSAGE_BYTES]);

/* Takes inner over: closing it closes inner. 0 or -ENOMEM (inner is then still the caller's). */
int port_fault_create(const struct fault_spec *spec, struct port *inner, uint64_t now_ns,
                      struct port **out);

#endif
