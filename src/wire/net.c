/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.c: the headers around a RoCE packet, frame <-> struct net_headers. Reading accepts what may
 * legally stand between Ethernet and UDP (two VLAN tags, IPv4 options, IPv6 extension headers) and
 * refuses fragments; writing makes the plain form that RoCE v2 uses.
 */
#include "wire/net.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

enum {
    PROTO_UDP = 17,
    PROTO_HOP_BY_HOP = 0,
    PROTO_ROUTING = 43,
    PROTO_DESTINATION = 60,
    V4_RESERVED_FLAG = 0x8000,
    V4_DF = 0x4000,
    V4_MF_AND_OFFSET = 0x3fff,
    MAX_VLAN_TAGS = 2,
    MAX_V6_EXTENSIONS = 8, /* more than any sender has use for */
    MAX_LENGTH_FIELD = 0xffff,
};

static const char *const verdict_names[NET_VERDICT_COUNT] = {
    [NET_OK] = "ok",
    [NET_TRUNCATED] = "truncated",
    [NET_NOT_IP] = "not IP",
    [NET_NOT_UDP] = "not UDP",
    [NET_BAD_IP_HEADER] = "bad IP header",
    [NET_BAD_UDP_LENGTH] = "bad UDP length",
    [NET_BAD_UDP_CHECKSUM] = "bad UDP checksum",
};

const char *net_verdict_name(enum net_verdict v)
{
    assert((unsigned)v < NET_VERDICT_COUNT);
    return verdict_names[v];
}

/* The part of a frame not read yet. */
struct view {
    const uint8_t *p;
    size_t n;
};

static void view_skip(struct view *v, size_t n)
{
    v->p += n;
    v->n -= n;
}

/* Sum of 16-bit words, an odd last byte padded with zero; not folded (RFC 1071). */
static uint64_t sum_words(uint64_t sum, const uint8_t *p, size_t n)
{
    for (; n >= 2; p += 2, n -= 2)
        sum += get_be16(p);
    return n == 1 ? sum + (uint64_t)(p[0] << 8) : sum;
}

static uint16_t sum_fold(uint64_t sum)
{
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* Sum of the UDP pseudo header: addresses, protocol, length. */
static uint64_t sum_pseudo(const struct net_headers *h, uint16_t udp_bytes)
{
    size_t n = h->v6 ? 16 : 4;
    uint64_t sum = (uint64_t)PROTO_UDP + udp_bytes;
    return sum_words(sum_words(sum, h->src, n), h->dst, n);
}

static enum net_verdict parse_ethernet(struct view *v, struct net_headers *h, uint16_t *ethertype)
{
    if (v->n < ETH_HEADER_BYTES)
        return NET_TRUNCATED;
    memcpy(h->eth_dst, v->p, 6);
    memcpy(h->eth_src, v->p + 6, 6);
    *ethertype = get_be16(v->p + 12);
    view_skip(v, ETH_HEADER_BYTES);
    while (*ethertype == ETHERTYPE_VLAN_WIRE) {
        if (h->vlan_tags == MAX_VLAN_TAGS)
            return NET_NOT_IP;
        if (v->n < VLAN_TAG_BYTES)
            return NET_TRUNCATED;
        h->vlan_tci[h->vlan_tags++] = get_be16(v->p);
        *ethertype = get_be16(v->p + 2);
        view_skip(v, VLAN_TAG_BYTES);
    }
    return NET_OK;
}

static enum net_verdict parse_ipv4(struct view *v, struct net_headers *h)
{
    const uint8_t *p = v->p;
    if (v->n < IPV4_HEADER_BYTES)
        return NET_TRUNCATED;
    size_t header_bytes = (size_t)(p[0] & 0x0f) * 4;
    size_t total_bytes = get_be16(p + 2);
    if (p[0] >> 4 != 4 || header_bytes < IPV4_HEADER_BYTES || total_bytes < header_bytes)
        return NET_BAD_IP_HEADER;
    if (v->n < total_bytes)
        return NET_TRUNCATED;
    if (sum_fold(sum_words(0, p, header_bytes)) != 0xffff)
        return NET_BAD_IP_HEADER;
    uint16_t flags = get_be16(p + 6);
    if ((flags & V4_RESERVED_FLAG) != 0) /* RFC 791 3.1: must be zero; the struct has no place */
        return NET_BAD_IP_HEADER;
    if (p[9] != PROTO_UDP || (flags & V4_MF_AND_OFFSET) != 0)
        return NET_NOT_UDP;
    h->v6 = false;
    h->tos = p[1];
    h->ip_id = get_be16(p + 4);
    h->dont_fragment = (flags & V4_DF) != 0;
    h->ttl = p[8];
    memcpy(h->src, p + 12, 4);
    memcpy(h->dst, p + 16, 4);
    v->n = total_bytes; /* what follows is Ethernet padding */
    view_skip(v, header_bytes);
    return NET_OK;
}

/* Walks the chain of extension headers to UDP (RFC 8200 4.1). v is bounded by the payload length,
 * so a header that does not fit is a wrong chain, not a short frame. */
static enum net_verdict skip_extensions(struct view *v, uint8_t next)
{
    for (int i = 0; next != PROTO_UDP; i++) {
        if (next == PROTO_HOP_BY_HOP && i > 0)
            return NET_BAD_IP_HEADER; /* RFC 8200 4.1: only right behind the IPv6 header */
        if (next != PROTO_HOP_BY_HOP && next != PROTO_ROUTING && next != PROTO_DESTINATION)
            return NET_NOT_UDP; /* another protocol, or a fragment header */
        if (i == MAX_V6_EXTENSIONS || v->n < 8)
            return NET_BAD_IP_HEADER;
        size_t bytes = ((size_t)v->p[1] + 1) * 8;
        if (v->n < bytes)
            return NET_BAD_IP_HEADER;
        if (next == PROTO_ROUTING && v->p[3] != 0)
            return NET_BAD_IP_HEADER; /* segments left: this is not the packet's last stop */
        next = v->p[0];
        view_skip(v, bytes);
    }
    return NET_OK;
}

static enum net_verdict parse_ipv6(struct view *v, struct net_headers *h)
{
    const uint8_t *p = v->p;
    if (v->n < IPV6_HEADER_BYTES)
        return NET_TRUNCATED;
    uint32_t first = get_be32(p);
    if (first >> 28 != 6)
        return NET_BAD_IP_HEADER;
    size_t payload_bytes = get_be16(p + 4);
    if (v->n < IPV6_HEADER_BYTES + payload_bytes)
        return NET_TRUNCATED;
    h->v6 = true;
    h->tos = (uint8_t)(first >> 20);
    h->flow_label = first & 0xfffff;
    h->ttl = p[7];
    memcpy(h->src, p + 8, 16);
    memcpy(h->dst, p + 24, 16);
    v->n = IPV6_HEADER_BYTES + payload_bytes;
    view_skip(v, IPV6_HEADER_BYTES);
    return skip_extensions(v, p[6]);
}

static enum net_verdict parse_udp(const struct view *v, struct net_headers *h)
{
    /* The length must fill the IP packet: RoCE v2 has nothing behind the ICRC, and the ICRC covers
     * both lengths. */
    if (v->n < UDP_HEADER_BYTES || get_be16(v->p + 4) != v->n)
        return NET_BAD_UDP_LENGTH;
    h->udp_sport = get_be16(v->p);
    h->udp_dport = get_be16(v->p + 2);
    h->udp_bytes = get_be16(v->p + 4);
    h->udp_checksum_set = get_be16(v->p + 6) != 0;
    /* DEVIATES: RFC 8200 8.1: it refuses a zero checksum over IPv6; RoCE v2 senders use it there
     * too, the ICRC being the stronger check. */
    if (!h->udp_checksum_set)
        return NET_OK;
    uint64_t sum = sum_words(sum_pseudo(h, h->udp_bytes), v->p, v->n);
    return sum_fold(sum) == 0xffff ? NET_OK : NET_BAD_UDP_CHECKSUM;
}

enum net_verdict net_parse(const uint8_t *frame, size_t n, struct net_headers *h,
                           const uint8_t **payload, size_t *payload_bytes)
{
    struct view v = {frame, n};
    uint16_t ethertype;
    memset(h, 0, sizeof(*h));
    *payload = NULL;
    *payload_bytes = 0;
    enum net_verdict verdict = parse_ethernet(&v, h, &ethertype);
    if (verdict != NET_OK)
        return verdict;
    if (ethertype == ETHERTYPE_IPV4_WIRE)
        verdict = parse_ipv4(&v, h);
    else if (ethertype == ETHERTYPE_IPV6_WIRE)
        verdict = parse_ipv6(&v, h);
    else
        verdict = NET_NOT_IP;
    if (verdict == NET_OK)
        verdict = parse_udp(&v, h);
    if (verdict != NET_OK)
        return verdict;
    *payload = v.p + UDP_HEADER_BYTES;
    *payload_bytes = v.n - UDP_HEADER_BYTES;
    return NET_OK;
}

static uint8_t *build_ethernet(const struct net_headers *h, uint8_t *p)
{
    assert(h->vlan_tags <= MAX_VLAN_TAGS);
    memcpy(p, h->eth_dst, 6);
    memcpy(p + 6, h->eth_src, 6);
    p += 12;
    for (int i = 0; i < h->vlan_tags; i++) {
        put_be16(p, ETHERTYPE_VLAN_WIRE);
        put_be16(p + 2, h->vlan_tci[i]);
        p += VLAN_TAG_BYTES;
    }
    put_be16(p, h->v6 ? ETHERTYPE_IPV6_WIRE : ETHERTYPE_IPV4_WIRE);
    return p + 2;
}

static uint8_t *build_ipv4(const struct net_headers *h, uint16_t udp_bytes, uint8_t *p)
{
    p[0] = 0x45;
    p[1] = h->tos;
    put_be16(p + 2, (uint16_t)(IPV4_HEADER_BYTES + udp_bytes));
    put_be16(p + 4, h->ip_id);
    put_be16(p + 6, h->dont_fragment ? V4_DF : 0);
    p[8] = h->ttl;
    p[9] = PROTO_UDP;
    put_be16(p + 10, 0);
    memcpy(p + 12, h->src, 4);
    memcpy(p + 16, h->dst, 4);
    put_be16(p + 10, (uint16_t)~sum_fold(sum_words(0, p, IPV4_HEADER_BYTES)));
    return p + IPV4_HEADER_BYTES;
}

static uint8_t *build_ipv6(const struct net_headers *h, uint16_t udp_bytes, uint8_t *p)
{
    put_be32(p, 6u << 28 | (uint32_t)h->tos << 20 | (h->flow_label & 0xfffff));
    put_be16(p + 4, udp_bytes);
    p[6] = PROTO_UDP;
    p[7] = h->ttl;
    memcpy(p + 8, h->src, 16);
    memcpy(p + 24, h->dst, 16);
    return p + IPV6_HEADER_BYTES;
}

size_t net_build(const struct net_headers *h, const uint8_t *payload, size_t n,
                 uint8_t out[NET_MAX_HEADER_BYTES])
{
    /* The IPv4 length field counts its own header, the IPv6 one does not. */
    assert(n + UDP_HEADER_BYTES + (h->v6 ? 0 : IPV4_HEADER_BYTES) <= MAX_LENGTH_FIELD);
    uint16_t udp_bytes = (uint16_t)(UDP_HEADER_BYTES + n);
    uint8_t *p = build_ethernet(h, out);
    p = h->v6 ? build_ipv6(h, udp_bytes, p) : build_ipv4(h, udp_bytes, p);
    put_be16(p, h->udp_sport);
    put_be16(p + 2, h->udp_dport);
    put_be16(p + 4, udp_bytes);
    put_be16(p + 6, 0);
    if (h->udp_checksum_set) {
        uint64_t sum = sum_words(sum_pseudo(h, udp_bytes), p, UDP_HEADER_BYTES);
        uint16_t checksum = (uint16_t)~sum_fold(sum_words(sum, payload, n));
        put_be16(p + 6, checksum == 0 ? 0xffff : checksum); /* RFC 768: 0 means none */
    }
    return (size_t)(p + UDP_HEADER_BYTES - out);
}

void net_build_grh(const struct net_headers *h, uint8_t out[NET_GRH_BYTES])
{
    if (h->v6) {
        build_ipv6(h, h->udp_bytes, out);
        return;
    }
    memset(out, 0, NET_GRH_BYTES - IPV4_HEADER_BYTES);
    build_ipv4(h, h->udp_bytes, out + NET_GRH_BYTES - IPV4_HEADER_BYTES);
}

void net_icrc_pseudo(const struct net_headers *h, struct icrc_pseudo *ip)
{
    memset(ip, 0, sizeof(*ip));
    ip->v6 = h->v6;
    memcpy(ip->src, h->src, sizeof(ip->src));
    memcpy(ip->dst, h->dst, sizeof(ip->dst));
    ip->udp_sport = h->udp_sport;
    ip->udp_dport = h->udp_dport;
    ip->udp_bytes = h->udp_bytes;
    ip->ip_id = h->ip_id;
    ip->dont_fragment = h->dont_fragment;
}
