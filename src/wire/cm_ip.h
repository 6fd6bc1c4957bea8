/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_ip.h: RDMA IP CM service: how IP addresses and ports are said in CM messages. The port is in
 * the service ID; a REQ's or SIDR_REQ's private data begins with a header of both addresses.
 * IBA A11
 */
#ifndef WIRE_CM_IP_H
#define WIRE_CM_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CM_IP_HEADER_BYTES = 36,
    CM_IP_REQ_USER_BYTES = 92 - CM_IP_HEADER_BYTES,
    CM_IP_SIDR_REQ_USER_BYTES = 216 - CM_IP_HEADER_BYTES,
};

/* What byte 5 of a service ID says: a port space. Values as enum rdma_port_space's low bytes. */
enum cm_port_space {
    CM_PORT_SPACE_TCP = 0x06, /* connected */
    CM_PORT_SPACE_UDP = 0x11, /* datagrams, by SIDR */
    CM_PORT_SPACE_IB = 0x3f,
};

static inline uint64_t cm_ip_service_id(enum cm_port_space space, uint16_t port)
{
    return 1ull << 24 | (uint64_t)space << 16 | port;
}

/* The kernel's ids for datagrams of IPoIB groups are outside the range of the annex, and have the
 * header nevertheless. */
static inline bool cm_ip_service_ipoib(uint64_t service_id)
{
    return service_id >> 16 == 2;
}

/* An IP port of any space, so that an addressing header is in the private data. */
static inline bool cm_ip_service_id_is(uint64_t service_id)
{
    return service_id >> 24 == 1 || cm_ip_service_ipoib(service_id);
}

static inline uint16_t cm_ip_service_port(uint64_t service_id)
{
    return (uint16_t)service_id;
}

static inline uint8_t cm_ip_service_space(uint64_t service_id)
{
    return (uint8_t)(service_id >> 16);
}

/* Of an IP port: asked for by SIDR, and no connection is made to it. */
static inline bool cm_ip_service_datagrams(uint64_t service_id)
{
    return cm_ip_service_ipoib(service_id) || cm_ip_service_space(service_id) == CM_PORT_SPACE_UDP;
}

/* Addresses of the header: IPv6, or IPv4 as ::ffff:a.b.c.d. The sender is the source. */
struct cm_ip {
    bool v6;
    uint16_t src_port;
    uint8_t src[16], dst[16];
};

/* False: not such a header: version not 0, or IP version neither 4 nor 6. n: bytes that are there.
 */
bool cm_ip_parse(const uint8_t *private_data, size_t n, struct cm_ip *ip);
/* Writes CM_IP_HEADER_BYTES. */
void cm_ip_build(const struct cm_ip *ip, uint8_t *private_data);

#endif
