/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path.h: addresses, and how the packets of a QP or a datagram travel.
 */
#ifndef VERBENA_PATH_H
#define VERBENA_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d: what a RoCE v2 GID is. */
struct net_addr {
    uint8_t b[16];
};

/* 2.5 Gb/s, of which the IBTA's rates are multiples, by 8: with that nearly all of them are. */
enum { PATH_RATE_KBPS = 312500 };

/* The addresses and header fields that all packets of one QP (or one UD datagram) carry. */
struct nic_path {
    struct net_addr local;  /* our GID: source of what we send, destination of what we accept */
    struct net_addr remote; /* the peer's GID */
    uint32_t scope_id;      /* interface index for link-local addresses, else 0 */
    uint16_t udp_sport;     /* 0xC000..0xFFFF; a port may map it onto the nearest one it owns */
    uint8_t traffic_class;  /* DSCP << 2 | ECN */
    uint8_t hop_limit;
    uint32_t flow_label : 20;
    uint32_t rate : 12; /* static rate, in PATH_RATE_KBPS; 0: as fast as may be */
};
_Static_assert(sizeof(struct nic_path) == 44, "no padding: memcmp compares paths");

static inline bool net_addr_is_v4(const struct net_addr *a)
{
    return memcmp(a->b, (const uint8_t[12]){[10] = 0xff, [11] = 0xff}, 12) == 0;
}

static inline bool net_addr_is_link_local(const struct net_addr *a)
{
    return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

/* A multicast address of either family. */
static inline bool net_addr_is_group(const struct net_addr *a)
{
    return net_addr_is_v4(a) ? (a->b[12] & 0xf0) == 0xe0 : a->b[0] == 0xff;
}

static inline bool nic_path_equal(const struct nic_path *a, const struct nic_path *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

#endif
