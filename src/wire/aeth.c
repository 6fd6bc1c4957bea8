/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aeth.c: the tables of the AETH syndrome's five-bit fields and of the local ACK timeout.
 */
#include "wire/aeth.h"

#include <assert.h>

/* Receives that each credit code stands for: every power of two, and halfway to the next. */
static const uint16_t credit_table[31] = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

/* Time that each RNR timer code asks the requester to wait. */
static const uint32_t rnr_table_10us[32] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint8_t aeth_credit_code(uint32_t n)
{
    uint8_t code = 30;
    while (credit_table[code] > n)
        code--;
    return code;
}

uint32_t aeth_credits(uint8_t code)
{
    assert(code < AETH_CREDITS_NONE);
    return credit_table[code];
}

uint64_t aeth_rnr_ns(uint8_t code)
{
    return (uint64_t)rnr_table_10us[code & 31] * 10000;
}

uint64_t aeth_ack_timeout_ns(uint8_t code)
{
    return (code & 31) == 0 ? 0 : (uint64_t)4096 << (code & 31);
}
