/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icrc.h: the invariant CRC of RoCE v2 (IBA 7.8.1, IBA A17.3.3): CRC-32 over 8 bytes of ones,
 * the IP and UDP headers and the transport packet, the fields that change on the way (TOS/class,
 * TTL/hop limit, flow label, IP and UDP checksum, BTH FECN/BECN/reserved byte) taken as ones. On
 * the wire least significant byte first.
 */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What of the IP and UDP headers the ICRC covers. */
struct icrc_pseudo {
    bool v6;
    uint8_t src[16], dst[16]; /* IPv4 uses the first 4 bytes */
    uint16_t udp_sport, udp_dport;
    uint16_t udp_bytes; /* UDP length field: 8 + transport packet + 4 */
    uint16_t ip_id;     /* IPv4 identification */
    bool dont_fragment; /* IPv4 DF flag */
};

/*
 * Running state: start with icrc_begin over the pseudo header and the first 12 bytes (BTH) of the
 * packet, then icrc_update over what follows (extended headers, payload, pad), then icrc_end gives
 * the 32-bit value to store little-endian.
 */
uint32_t icrc_begin(const struct icrc_pseudo *ip, const uint8_t bth[12]);
uint32_t icrc_update(uint32_t state, const uint8_t *bytes, size_t n);
/* The same while copying; dst and src do not overlap. */
uint32_t icrc_copy(uint32_t state, uint8_t *dst, const uint8_t *src, size_t n);
uint32_t icrc_end(uint32_t state);

/* Is the ICRC of this transport packet (BTH .. ICRC, n >= 16 bytes) right? */
bool icrc_check(const struct icrc_pseudo *ip, const uint8_t *packet, size_t n);

/*
 * A UDP socket does not show the IPv4 identification and DF flag of a foreign sender, yet the ICRC
 * covers them. Tries ip->ip_id/dont_fragment as given, then solves for the only (id, DF) that could
 * make the CRC right: CRC syndromes are linear in those 17 bits. True and *ip updated when one
 * exists. DEVIATES: IBA A17.3.3: 2^17 of 2^32 syndromes pass, so about 2^-15 of corrupted packets
 * go undetected by this check alone (the UDP checksum, where the sender sets one, catches most of
 * those). Over IPv6, and in packets of over 8171 bytes (longer than any of RoCE), only what is
 * given counts.
 */
bool icrc_check_unknown_id(struct icrc_pseudo *ip, const uint8_t *packet, size_t n);

#endif
