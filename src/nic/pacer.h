/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pacer.h: how fast the requests of one QP may leave: a bucket of bytes that fills at the rate and
 * holds one burst. Several may ask for a limit, the lowest counts. It knows neither packets nor
 * timers: whoever sends asks for room first, tells afterwards what went out, and comes again when
 * it opens. Bytes are those between the UDP header and the end of the packet: BTH to ICRC.
 */
#ifndef NIC_PACER_H
#define NIC_PACER_H

#include <stdint.h>

/* Who asks for a limit. */
enum pacer_source {
    PACER_PROGRAM, /* QP_ATTR_RATE_LIMIT */
    PACER_PATH,    /* the static rate of an address vector */
    PACER_SOURCES
};

struct pacer {
    uint32_t kbps; /* the lowest limit; 0: none. Read before each train */
    uint32_t limit_kbps[PACER_SOURCES];
    uint32_t burst_asked_bytes; /* 0: the usual, what the rate gives in 10 ms */
    uint32_t burst_bytes;       /* in force, >= 1 */
    /* What went out and the rate has not paid yet, in 10^-6 bits: 1 kbit/s pays 1 each ns. */
    uint64_t debt;
    uint64_t paid_ns;  /* when it last paid */
    uint64_t opens_ns; /* of a QP that waits, its deadline; 0: none. timers.c clears it */
};

/* From now on at most so fast for this reason; 0: as far as it is concerned, as fast as may be.
 * What has gone out counts at the new rate. */
void pacer_limit(struct pacer *p, uint64_t now_ns, enum pacer_source source, uint32_t kbps);
/* So many bytes at once, though always one packet; 0: the usual. */
void pacer_burst(struct pacer *p, uint64_t now_ns, uint32_t bytes);
/*
 * How many bytes may go out now, if the first packet may have packet_bytes: it may go even when it
 * is larger. 0: none, before opens_ns. Within any time t no more than rate * t and one burst (or
 * packet) go out. Only while there is a limit.
 */
uint32_t pacer_room(struct pacer *p, uint64_t now_ns, uint32_t packet_bytes);
/* They went out. */
void pacer_sent(struct pacer *p, uint64_t now_ns, uint32_t bytes);

#endif
