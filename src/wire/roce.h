/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roce.h: one RoCE v2 transport packet (BTH .. ICRC), bytes <-> struct roce_headers, in two steps:
 * roce_check bounds, then roce_parse into structs that can only be sensible. roce_build is the
 * inverse of both. No ICRC here (icrc.h).
 */
#ifndef WIRE_ROCE_H
#define WIRE_ROCE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/iba.h"
#include "wire/opcode.h"

/* Why bytes are not a RoCE packet. Each has a counter in the port. */
enum roce_verdict {
    ROCE_OK,
    ROCE_TOO_SHORT,  /* less than BTH + ICRC, or than the opcode's headers + pad + ICRC */
    ROCE_BAD_OPCODE, /* no such opcode */
    ROCE_BAD_TVER,   /* transport header version not 0 */
    ROCE_BAD_LENGTH, /* payload where none is allowed, pad longer than the payload, over 4096 bytes,
                        or not a multiple of 4 */
    ROCE_VERDICT_COUNT
};
const char *roce_verdict_name(enum roce_verdict v);

/* Longest headers of any opcode: BTH + XRCETH + AtomicETH. */
enum {
    ROCE_MAX_HEADER_BYTES = 12 + 4 + 28,
    ROCE_MAX_PACKET_BYTES = ROCE_MAX_HEADER_BYTES + 4096 + 3 + 4
};

/* n is the whole transport packet including the 4 ICRC bytes. */
enum roce_verdict roce_check(const uint8_t *packet, size_t n);
/* Only after roce_check said ROCE_OK: fills *h (all of it), and the payload's place (without pad).
 */
void roce_parse(const uint8_t *packet, size_t n, struct roce_headers *h, const uint8_t **payload,
                uint32_t *payload_bytes);
/* Header bytes of h (the opcode's set) to out; returns how many. h->bth.pad_bytes must be right for
 * the payload to follow. */
size_t roce_build_headers(const struct roce_headers *h, uint8_t out[ROCE_MAX_HEADER_BYTES]);

static inline uint8_t roce_pad(uint32_t payload_bytes)
{
    return (uint8_t)(-payload_bytes & 3u);
}

/* Bytes of the whole transport packet, ICRC included: the UDP payload. */
static inline uint32_t roce_packet_bytes(uint8_t opcode, uint32_t payload_bytes)
{
    return opcode_info(opcode)->header_bytes + payload_bytes + roce_pad(payload_bytes) +
           (uint32_t)ICRC_BYTES;
}

#endif
