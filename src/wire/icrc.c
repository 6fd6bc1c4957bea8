/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icrc.c: the invariant CRC over ISA-L's CRC-32. crc32_gzip_refl inverts its state on the way in
 * and out, as zlib's crc32 does, so the running state is at every moment a finished CRC-32 and
 * begins as 0. The second half solves for the IPv4 fields that a socket does not show.
 */
#include "wire/icrc.h"

#include <string.h>

#include <isa-l/crc.h>

#include "base/bytes.h"
#include "wire/iba.h"
#include "wire/icrc_tables.h"

enum {
    V4_BYTES = 20,
    V6_BYTES = 40,
    UDP_BYTES = 8,
    ONES_BYTES = 8, /* stands for the LRH and the parts of a GRH that RoCE v2 lacks */
    IP_PROTO_UDP_WIRE = 17,
};

/* The headers as ones where they may change on the way; returns their bytes. */
static size_t pseudo_build(const struct icrc_pseudo *ip, const uint8_t bth[BTH_BYTES], uint8_t *out)
{
    memset(out, 0xff, ONES_BYTES);
    uint8_t *p = out + ONES_BYTES;
    if (ip->v6) {
        put_be32(p, 0x6fffffff); /* version 6; class and flow label are masked */
        put_be16(p + 4, ip->udp_bytes);
        p[6] = IP_PROTO_UDP_WIRE;
        p[7] = 0xff; /* hop limit */
        memcpy(p + 8, ip->src, 16);
        memcpy(p + 24, ip->dst, 16);
        p += V6_BYTES;
    } else {
        p[0] = 0x45; /* version 4, no options */
        p[1] = 0xff; /* TOS */
        put_be16(p + 2, (uint16_t)(V4_BYTES + ip->udp_bytes));
        put_be16(p + 4, ip->ip_id);
        put_be16(p + 6, ip->dont_fragment ? 0x4000 : 0);
        p[8] = 0xff; /* TTL */
        p[9] = IP_PROTO_UDP_WIRE;
        put_be16(p + 10, 0xffff); /* header checksum */
        memcpy(p + 12, ip->src, 4);
        memcpy(p + 16, ip->dst, 4);
        p += V4_BYTES;
    }
    put_be16(p, ip->udp_sport);
    put_be16(p + 2, ip->udp_dport);
    put_be16(p + 4, ip->udp_bytes);
    put_be16(p + 6, 0xffff); /* UDP checksum */
    p += UDP_BYTES;
    memcpy(p, bth, BTH_BYTES);
    p[4] = 0xff; /* FECN, BECN, reserved */
    return (size_t)(p + BTH_BYTES - out);
}

uint32_t icrc_begin(const struct icrc_pseudo *ip, const uint8_t bth[12])
{
    uint8_t head[ONES_BYTES + V6_BYTES + UDP_BYTES + BTH_BYTES];
    size_t n = pseudo_build(ip, bth, head);
    return crc32_gzip_refl(0, head, n);
}

uint32_t icrc_update(uint32_t state, const uint8_t *bytes, size_t n)
{
    return n == 0 ? state : crc32_gzip_refl(state, bytes, n);
}

uint32_t icrc_end(uint32_t state)
{
    return state;
}

/* Right ICRC xor the one in the packet: 0 when they agree. */
static uint32_t icrc_syndrome(const struct icrc_pseudo *ip, const uint8_t *packet, size_t n)
{
    uint32_t state = icrc_begin(ip, packet);
    state = icrc_update(state, packet + BTH_BYTES, n - BTH_BYTES - ICRC_BYTES);
    return icrc_end(state) ^ get_le32(packet + n - ICRC_BYTES);
}

bool icrc_check(const struct icrc_pseudo *ip, const uint8_t *packet, size_t n)
{
    return n >= BTH_BYTES + ICRC_BYTES && icrc_syndrome(ip, packet, n) == 0;
}

/* a * b modulo the CRC-32 polynomial; bit 31 is x^0. */
static uint32_t gf2_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (int i = 0; i < 32; i++) {
        product ^= b & (0u - (a >> 31));
        a <<= 1;
        b = b >> 1 ^ (0xedb88320u & (0u - (b & 1)));
    }
    return product;
}

/*
 * A difference D in four bytes of a message, followed by k - 4 more bytes, changes its CRC by
 * D * x^(8k), D read least significant byte first. So the syndrome * x^(-8k) is the difference, if
 * all of it lies in those four bytes: here identification, flags and fragment offset.
 */
bool icrc_check_unknown_id(struct icrc_pseudo *ip, const uint8_t *packet, size_t n)
{
    if (n < BTH_BYTES + ICRC_BYTES)
        return false;
    uint32_t syndrome = icrc_syndrome(ip, packet, n);
    if (syndrome == 0)
        return true;
    size_t k = V4_BYTES - 4 + UDP_BYTES + n - ICRC_BYTES;
    const size_t reach = 64 * (sizeof(icrc_unshift_64_bytes) / sizeof(icrc_unshift_64_bytes[0]));
    if (ip->v6 || k >= reach)
        return false;
    uint32_t diff = gf2_multiply(syndrome, icrc_unshift_64_bytes[k / 64]);
    diff = gf2_multiply(diff, icrc_unshift_1_byte[k % 64]);
    /* Bytes 0 and 1 are the identification, bit 6 of byte 2 is DF; nothing else may differ. */
    if ((diff & ~0x0040ffffu) != 0)
        return false;
    uint8_t bytes[4];
    put_le32(bytes, diff);
    ip->ip_id ^= get_be16(bytes);
    ip->dont_fragment ^= (bytes[2] & 0x40) != 0;
    return true;
}
