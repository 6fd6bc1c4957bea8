/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.h: Ethernet, 802.1Q, IPv4, IPv6 (with extension headers) and UDP around a RoCE packet: frames
 * as a capture, a tap or a raw port has them. Sockets see none of this.
 */
#ifndef WIRE_NET_H
#define WIRE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/icrc.h"

enum {
    ETH_HEADER_BYTES = 14,
    VLAN_TAG_BYTES = 4,
    IPV4_HEADER_BYTES = 20, /* without options */
    IPV6_HEADER_BYTES = 40,
    UDP_HEADER_BYTES = 8,
    NET_GRH_BYTES = 40,
    ETHERTYPE_IPV4_WIRE = 0x0800,
    ETHERTYPE_IPV6_WIRE = 0x86dd,
    ETHERTYPE_VLAN_WIRE = 0x8100,
    NET_MAX_HEADER_BYTES =
        ETH_HEADER_BYTES + 2 * VLAN_TAG_BYTES + IPV6_HEADER_BYTES + UDP_HEADER_BYTES,
};

/* RFC 3168: the low two bits of TOS and traffic class. Without any: not to be marked. */
enum net_ecn {
    ECN_ECT_1 = 1, /* its sender slows down when told */
    ECN_ECT_0 = 2, /* as well */
    ECN_CE = 3,    /* a switch had a queue */
    ECN_MASK = 3,
};

enum net_verdict {
    NET_OK,
    NET_TRUNCATED, /* the frame ends inside a header, or before the length that a header states */
    NET_NOT_IP,
    NET_NOT_UDP,       /* another protocol, or a fragment */
    NET_BAD_IP_HEADER, /* version, header length, IPv4 checksum, extension header chain */
    NET_BAD_UDP_LENGTH,
    NET_BAD_UDP_CHECKSUM,
    NET_VERDICT_COUNT
};
const char *net_verdict_name(enum net_verdict v);

/* Ethernet to UDP of one frame, host order; v4 addresses in the first 4 bytes. */
struct net_headers {
    uint8_t eth_dst[6], eth_src[6];
    uint8_t vlan_tags;    /* 0..2 */
    uint16_t vlan_tci[2]; /* outermost first */
    bool v6;
    uint8_t src[16], dst[16];
    uint8_t tos;         /* TOS or traffic class */
    uint8_t ttl;         /* TTL or hop limit */
    uint32_t flow_label; /* IPv6 */
    uint16_t ip_id;      /* IPv4 */
    bool dont_fragment;  /* IPv4 */
    uint16_t udp_sport, udp_dport;
    uint16_t udp_bytes;    /* UDP length field */
    bool udp_checksum_set; /* on build: compute it (else 0 is sent); on parse: it was not 0 */
};

/* Parses a frame to *h and the UDP payload's place. Ethernet padding after the IP packet is
 * ignored. 802.1Q tags (0x8100) only. After NET_OK h says all that the frame said, but for IPv4
 * options and IPv6 extension headers; after any other verdict h and the payload's place are
 * undefined. */
enum net_verdict net_parse(const uint8_t *frame, size_t n, struct net_headers *h,
                           const uint8_t **payload, size_t *payload_bytes);
/*
 * Builds Ethernet..UDP headers for a UDP payload into out; returns their bytes. udp_bytes in h is
 * ignored: it is 8 + n. The payload is read only when udp_checksum_set.
 */
size_t net_build(const struct net_headers *h, const uint8_t *payload, size_t n,
                 uint8_t out[NET_MAX_HEADER_BYTES]);
/*
 * What stands for the GRH in front of a datagram's payload: the IPv6 header, or 20 zero bytes and
 * the IPv4 header, its checksum computed (IBA A17.4.5.2). udp_bytes of h counts.
 */
void net_build_grh(const struct net_headers *h, uint8_t out[NET_GRH_BYTES]);
/* The part of h that the ICRC covers. IPv4 options and IPv6 extension headers are no part of it:
 * RoCE v2 senders put none, and a packet that has them fails the ICRC. */
void net_icrc_pseudo(const struct net_headers *h, struct icrc_pseudo *ip);

#endif
