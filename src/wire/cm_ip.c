/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_ip.c: the addressing header in front of a REQ's private data: version, IP version, source
 * port, source and destination address; an IPv4 address is in the last four of its 16 bytes.
 */
#include "wire/cm_ip.h"

#include <string.h>

#include "base/bytes.h"

enum { IP_VERSION_AT = 1, PORT_AT = 2, SRC_AT = 4, DST_AT = 20, V4_AT = 12 };

static const uint8_t v4_prefix[V4_AT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static void get_addr(const uint8_t *p, bool v6, uint8_t out[16])
{
    memcpy(out, p, 16);
    if (!v6)
        memcpy(out, v4_prefix, V4_AT);
}

static void put_addr(const uint8_t addr[16], bool v6, uint8_t *p)
{
    memcpy(p, addr, 16);
    if (!v6)
        memset(p, 0, V4_AT);
}

bool cm_ip_parse(const uint8_t *private_data, size_t n, struct cm_ip *ip)
{
    memset(ip, 0, sizeof(*ip));
    if (n < CM_IP_HEADER_BYTES || private_data[0] != 0)
        return false;
    uint8_t version = private_data[IP_VERSION_AT] >> 4;
    if (version != 4 && version != 6)
        return false;
    ip->v6 = version == 6;
    ip->src_port = get_be16(private_data + PORT_AT);
    get_addr(private_data + SRC_AT, ip->v6, ip->src);
    get_addr(private_data + DST_AT, ip->v6, ip->dst);
    return true;
}

void cm_ip_build(const struct cm_ip *ip, uint8_t *private_data)
{
    memset(private_data, 0, CM_IP_HEADER_BYTES);
    private_data[IP_VERSION_AT] = ip->v6 ? 6 << 4 : 4 << 4;
    put_be16(private_data + PORT_AT, ip->src_port);
    put_addr(ip->src, ip->v6, private_data + SRC_AT);
    put_addr(ip->dst, ip->v6, private_data + DST_AT);
}
