/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aeth.h: the AETH syndrome: ACK with credits, RNR NAK with timer, NAK with code (IBA 9.7.5.1).
 */
#ifndef WIRE_AETH_H
#define WIRE_AETH_H

#include <stdbool.h>
#include <stdint.h>

enum aeth_kind {
    AETH_ACK = 0,
    AETH_RNR_NAK = 1,
    AETH_RESERVED = 2,
    AETH_NAK = 3,
};

enum nak_code {
    NAK_PSN_SEQUENCE = 0,
    NAK_INVALID_REQUEST = 1,
    NAK_REMOTE_ACCESS = 2,
    NAK_REMOTE_OPERATIONAL = 3,
    NAK_INVALID_RD = 4,
};

enum { AETH_CREDITS_NONE = 31 }; /* this ACK says nothing about credits */

static inline enum aeth_kind aeth_kind(uint8_t syndrome)
{
    return (enum aeth_kind)(syndrome >> 5 & 3);
}

static inline uint8_t aeth_value(uint8_t syndrome)
{
    return syndrome & 31;
}

static inline uint8_t aeth_make(enum aeth_kind kind, uint8_t value)
{
    return (uint8_t)((unsigned)kind << 5 | (value & 31u));
}

/* Credit code for a number of posted receives: the largest code whose count is <= n (never 31). */
uint8_t aeth_credit_code(uint32_t n);
/* Receives that a credit code 0..30 stands for. */
uint32_t aeth_credits(uint8_t code);
/* Nanoseconds of an RNR timer code 0..31; 0 is the longest, 655.36 ms. */
uint64_t aeth_rnr_ns(uint8_t code);
/* 4.096 us << code for a local ACK timeout code 1..31; 0 for code 0 (no timeout). */
uint64_t aeth_ack_timeout_ns(uint8_t code);

#endif
