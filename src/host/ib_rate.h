/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ib_rate.h: an interface's speed in the words of InfiniBand, lane speed x width, for all who tell
 * it to programs: the port's attributes and the file `rate`.
 */
#ifndef HOST_IB_RATE_H
#define HOST_IB_RATE_H

#include <stdint.h>

struct ib_rate {
    uint32_t mbps;    /* up to */
    uint16_t speed;   /* active_speed */
    uint8_t width;    /* active_width: 1 is one lane, 2 is four */
    const char *text; /* as the kernel writes it */
};

/* Interfaces without a speed (lo, many virtual ones) pass for 10 Gb/s. */
enum { IB_RATE_UNKNOWN_MBPS = 10000 };

static inline const struct ib_rate *ib_rate_of(uint32_t mbps)
{
    static const struct ib_rate rates[] = {
        {2500,   1,   1, "2.5 Gb/sec (1X SDR)"},
        {5000,   2,   1, "5 Gb/sec (1X DDR)"  },
        {10000,  4,   1, "10 Gb/sec (1X QDR)" },
        {20000,  2,   2, "20 Gb/sec (4X DDR)" },
        {25000,  32,  1, "25 Gb/sec (1X EDR)" },
        {40000,  4,   2, "40 Gb/sec (4X QDR)" },
        {50000,  64,  1, "50 Gb/sec (1X HDR)" },
        {100000, 32,  2, "100 Gb/sec (4X EDR)"},
        {200000, 64,  2, "200 Gb/sec (4X HDR)"},
        {400000, 128, 2, "400 Gb/sec (4X NDR)"},
        {800000, 256, 2, "800 Gb/sec (4X XDR)"},
    };
    unsigned i = 0;

    if (mbps == 0)
        mbps = IB_RATE_UNKNOWN_MBPS;
    while (i + 1 < sizeof(rates) / sizeof(rates[0]) && mbps > rates[i].mbps)
        i++;
    return &rates[i];
}

#endif
