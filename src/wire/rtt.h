/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rtt.h: probes of the round-trip time between two queue pairs of ours and their answers: MADs to
 * QP 1 of a vendor's class (docs/rtt-probes.md), which others drop. All numbers are in network
 * order.
 *
 *     0   MAD header: class 0x3a version 1, method Send, TID the stamp, attribute probe or answer
 *    24   12 bytes of zeros, where RMPP would be
 *    36   zero, 56 45 52
 *    40   QPN of the receiver's QP, 32 bits
 *    44   QPN of the sender's QP, 32 bits
 *    48   stamp, 64 bits: whatever the probe's sender chose, and the answer's repeats
 *    56   answer: ns between the probe's arrival and the answer's start, 64 bits
 */
#ifndef WIRE_RTT_H
#define WIRE_RTT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/mad.h"

enum {
    MAD_CLASS_RTT = 0x3a, /* one of those that an OUI tells apart, 0x30 to 0x4f */
    MAD_CLASS_RTT_VERSION = 1,
    RTT_ATTRIBUTE_PROBE = 0x10,
    RTT_ATTRIBUTE_ANSWER = 0x11,
    RTT_OUI = 0x564552, /* the vendor id of our devices */
    RTT_TO_QPN_AT = 40,
};

struct rtt_mad {
    bool answer;
    uint32_t to_qpn, from_qpn; /* 24 bits */
    uint64_t stamp_ns;
    uint64_t held_ns;
};

/* Is it one of them? */
bool rtt_check(const uint8_t *mad, size_t n);
/* Only after rtt_check. */
void rtt_parse(const uint8_t *mad, struct rtt_mad *out);
/* The inverse; MAD_BYTES. */
void rtt_build(const struct rtt_mad *m, uint8_t *mad);

#endif
