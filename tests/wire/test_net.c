/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net.c: frames around a RoCE packet. Frames are parsed in buffers of exactly their size, so
 * that a read past the end is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fuzz/wire_props.h"
#include "base/bytes.h"

enum { PAYLOAD = 21, CAP = 512 };

struct frame {
    uint8_t bytes[CAP];
    size_t n, ip_at, udp_at;
};

static struct net_headers sample_headers(bool v6, uint8_t vlan_tags, bool checksum)
{
    struct net_headers h;
    memset(&h, 0, sizeof(h));
    memcpy(h.eth_dst, "\x52\x54\x00\x88\x00\x03", 6);
    memcpy(h.eth_src, "\x52\x54\x00\x88\x00\x02", 6);
    h.vlan_tags = vlan_tags;
    h.vlan_tci[0] = vlan_tags > 0 ? 0x6064 : 0;
    h.vlan_tci[1] = vlan_tags > 1 ? 0x0fff : 0;
    h.v6 = v6;
    for (int i = 0; i < (v6 ? 16 : 4); i++) {
        h.src[i] = (uint8_t)(0xf0 + i);
        h.dst[i] = (uint8_t)(0xe8 + 3 * i);
    }
    h.tos = 0x6a;
    h.ttl = 63;
    h.flow_label = v6 ? 0xabcde : 0;
    h.ip_id = v6 ? 0 : 0x4321;
    h.dont_fragment = !v6;
    h.udp_sport = 0xc001;
    h.udp_dport = 4791;
    h.udp_bytes = UDP_HEADER_BYTES + PAYLOAD;
    h.udp_checksum_set = checksum;
    return h;
}

static struct frame frame_make(bool v6, uint8_t vlan_tags, bool checksum)
{
    struct net_headers h = sample_headers(v6, vlan_tags, checksum);
    struct frame f = {.ip_at = 14 + (size_t)vlan_tags * 4};
    uint8_t payload[PAYLOAD];
    for (int i = 0; i < PAYLOAD; i++)
        payload[i] = (uint8_t)(200 + 7 * i);
    f.n = net_build(&h, payload, PAYLOAD, f.bytes);
    f.udp_at = f.n - 8;
    memcpy(f.bytes + f.n, payload, PAYLOAD);
    f.n += PAYLOAD;
    return f;
}

static enum net_verdict verdict_of(const struct frame *f)
{
    uint8_t *exact = malloc(f->n == 0 ? 1 : f->n);
    assert_non_null(exact);
    memcpy(exact, f->bytes, f->n);
    enum net_verdict verdict = props_net(exact, f->n);
    free(exact);
    return verdict;
}

static uint16_t ones_sum(uint32_t sum, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

static void mend_ipv4(struct frame *f)
{
    uint8_t *ip = f->bytes + f->ip_at;
    put_be16(ip + 10, 0);
    put_be16(ip + 10, (uint16_t)~ones_sum(0, ip, (size_t)(ip[0] & 15) * 4));
}

/* DEVIATES: RFC 8200 8.1: no checksum over IPv6 is right, too. */
static void net_build__is_inverse(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        bool v6 = i % 2 != 0, checksum = i % 4 >= 2;
        uint8_t tags = (uint8_t)(i / 4);
        struct net_headers h = sample_headers(v6, tags, checksum), parsed;
        struct frame f = frame_make(v6, tags, checksum);
        const uint8_t *payload;
        size_t n;
        assert_int_equal(net_parse(f.bytes, f.n, &parsed, &payload, &n), NET_OK);
        assert_memory_equal(&parsed, &h, sizeof(h));
        assert_ptr_equal(payload, f.bytes + f.udp_at + 8);
        assert_int_equal(n, PAYLOAD);
        assert_int_equal(get_be16(f.bytes + f.udp_at + 6) != 0, checksum);
    }
}

static void net_build__bytes(void **state)
{
    (void)state;
    struct frame f = frame_make(false, 1, false);
    static const uint8_t expected[] = {0x52, 0x54, 0x00, 0x88, 0x00, 0x03, 0x52, 0x54, 0x00, 0x88,
                                       0x00, 0x02, 0x81, 0x00, 0x60, 0x64, 0x08, 0x00, 0x45, 0x6a,
                                       0x00, 0x31, 0x43, 0x21, 0x40, 0x00, 0x3f, 0x11};
    assert_memory_equal(f.bytes, expected, sizeof(expected));
    assert_int_equal(ones_sum(0, f.bytes + f.ip_at, 20), 0xffff);
    assert_int_equal(get_be16(f.bytes + f.udp_at + 4), 29);
    f = frame_make(true, 0, false);
    static const uint8_t expected6[] = {0x86, 0xdd, 0x66, 0xaa, 0xbc, 0xde, 0x00, 0x1d, 0x11, 0x3f};
    assert_memory_equal(f.bytes + 12, expected6, sizeof(expected6));
    /* RFC 1071: pseudo header, UDP header and an odd number of bytes sum up to ones. */
    f = frame_make(false, 0, true);
    uint32_t sum = ones_sum((uint32_t)(17 + f.n - f.udp_at), f.bytes + f.ip_at + 12, 8);
    assert_int_equal((f.n - f.udp_at) % 2, 1);
    assert_int_equal(ones_sum(sum, f.bytes + f.udp_at, f.n - f.udp_at), 0xffff);
}

/* RFC 768: a sum that comes out as 0 goes as 0xffff, because 0 means none. */
static void net_build_grh__is_the_ip_header(void **state)
{
    (void)state;
    for (int v6 = 0; v6 < 2; v6++) {
        struct net_headers h = sample_headers(v6 != 0, 0, false);
        uint8_t frame[NET_MAX_HEADER_BYTES], grh[NET_GRH_BYTES + 2];
        uint8_t payload[PAYLOAD] = {0};
        size_t ip = v6 ? 40 : 20;
        memset(grh, 0xee, sizeof(grh));
        h.udp_bytes = UDP_HEADER_BYTES + PAYLOAD;
        net_build(&h, payload, PAYLOAD, frame);
        net_build_grh(&h, grh + 1);
        for (size_t i = 0; i < NET_GRH_BYTES - ip; i++)
            assert_int_equal(grh[1 + i], 0);
        assert_memory_equal(grh + 1 + NET_GRH_BYTES - ip, frame + ETH_HEADER_BYTES, ip);
        assert_int_equal(grh[0], 0xee);
        assert_int_equal(grh[NET_GRH_BYTES + 1], 0xee);
    }
}

static void net_build__checksum_never_zero(void **state)
{
    (void)state;
    struct net_headers h = sample_headers(false, 0, true);
    uint8_t head[NET_MAX_HEADER_BYTES], payload[2] = {0, 0};
    int seen = 0;
    for (uint32_t v = 0; v <= 0xffff; v++) {
        put_be16(payload, (uint16_t)v);
        size_t n = net_build(&h, payload, 2, head);
        assert_int_not_equal(get_be16(head + n - 2), 0);
        seen += get_be16(head + n - 2) == 0xffff;
    }
    assert_int_equal(seen, 1);
}

static void net_parse__ethernet_padding(void **state)
{
    (void)state;
    struct frame f = frame_make(false, 0, true);
    struct net_headers h;
    const uint8_t *payload;
    size_t n;
    memset(f.bytes + f.n, 0xcc, 9);
    assert_int_equal(net_parse(f.bytes, f.n + 9, &h, &payload, &n), NET_OK);
    assert_int_equal(n, PAYLOAD);
}

/* One byte of a good frame changed; where: from the IP header on. */
static const struct {
    bool v6;
    uint8_t at, value;
    bool mend; /* the IPv4 checksum after it */
    enum net_verdict verdict;
} byte_rows[] = {
    {false, 1,  0x00, true,  NET_OK              }, /* TOS */
    {false, 4,  0xff, true,  NET_OK              }, /* identification */
    {false, 6,  0x00, true,  NET_OK              }, /* DF off */
    {false, 8,  0x01, true,  NET_OK              }, /* TTL */
    {true,  1,  0x00, false, NET_OK              }, /* class, flow label */
    {true,  7,  0x01, false, NET_OK              }, /* hop limit */
    {false, 0,  0x55, true,  NET_BAD_IP_HEADER   },
    {false, 0,  0x65, true,  NET_BAD_IP_HEADER   },
    {false, 0,  0x44, true,  NET_BAD_IP_HEADER   },
    {false, 0,  0x40, false, NET_BAD_IP_HEADER   },
    {false, 8,  0x01, false, NET_BAD_IP_HEADER   }, /* checksum */
    {false, 10, 0x00, false, NET_BAD_IP_HEADER   },
    {false, 2,  0x7f, true,  NET_TRUNCATED       },
    {false, 3,  0x32, true,  NET_TRUNCATED       },
    {false, 3,  0x13, true,  NET_BAD_IP_HEADER   }, /* total shorter than the header */
    {false, 3,  0x00, true,  NET_BAD_IP_HEADER   },
    {false, 3,  0x14, true,  NET_BAD_UDP_LENGTH  }, /* room for no UDP header */
    {false, 3,  0x30, true,  NET_BAD_UDP_LENGTH  },
    {false, 6,  0xc0, true,  NET_BAD_IP_HEADER   }, /* reserved flag */
    {false, 6,  0x20, true,  NET_NOT_UDP         }, /* more fragments */
    {false, 6,  0x01, true,  NET_NOT_UDP         }, /* a later fragment */
    {false, 7,  0x01, true,  NET_NOT_UDP         },
    {false, 9,  6,    true,  NET_NOT_UDP         },
    {false, 9,  0,    true,  NET_NOT_UDP         },
    {false, 12, 0x00, true,  NET_BAD_UDP_CHECKSUM}, /* address is in the pseudo header */
    {false, 20, 0xc1, false, NET_BAD_UDP_CHECKSUM},
    {false, 25, 28,   false, NET_BAD_UDP_LENGTH  },
    {false, 25, 30,   false, NET_BAD_UDP_LENGTH  },
    {false, 25, 7,    false, NET_BAD_UDP_LENGTH  },
    {false, 24, 1,    false, NET_BAD_UDP_LENGTH  },
    {false, 30, 0,    false, NET_BAD_UDP_CHECKSUM},
    {true,  0,  0x46, false, NET_BAD_IP_HEADER   },
    {true,  0,  0x76, false, NET_BAD_IP_HEADER   },
    {true,  4,  0x01, false, NET_TRUNCATED       },
    {true,  5,  0x1e, false, NET_TRUNCATED       },
    {true,  5,  0x1c, false, NET_BAD_UDP_LENGTH  },
    {true,  5,  0x00, false, NET_BAD_UDP_LENGTH  },
    {true,  6,  6,    false, NET_NOT_UDP         },
    {true,  6,  44,   false, NET_NOT_UDP         }, /* fragment header */
    {true,  6,  59,   false, NET_NOT_UDP         }, /* no next header */
    {true,  6,  50,   false, NET_NOT_UDP         }, /* ESP */
    {true,  8,  0x00, false, NET_BAD_UDP_CHECKSUM},
    {true,  39, 0x00, false, NET_BAD_UDP_CHECKSUM},
    {true,  45, 28,   false, NET_BAD_UDP_LENGTH  },
    {true,  60, 0x00, false, NET_BAD_UDP_CHECKSUM},
};

/* RFC 791 3.1 */
static void net_parse__changed_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(byte_rows) / sizeof(byte_rows[0]); i++)
        for (uint8_t tags = 0; tags < 3; tags++) {
            struct frame f = frame_make(byte_rows[i].v6, tags, true);
            f.bytes[f.ip_at + byte_rows[i].at] = byte_rows[i].value;
            if (byte_rows[i].mend)
                mend_ipv4(&f);
            if (verdict_of(&f) != byte_rows[i].verdict)
                fail_msg("row %zu: %s", i, net_verdict_name(verdict_of(&f)));
        }
}

static void net_parse__ethertypes(void **state)
{
    (void)state;
    static const uint16_t others[] = {0x0806, 0x88a8, 0x8915, 0x0000, 0xffff, 0x0801};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct frame f = frame_make(false, 0, true);
        put_be16(f.bytes + 12, others[i]);
        assert_int_equal(verdict_of(&f), NET_NOT_IP);
    }
    struct frame f = frame_make(true, 0, true);
    put_be16(f.bytes + 12, 0x0800); /* an IPv6 packet that says it is IPv4 */
    assert_int_equal(verdict_of(&f), NET_BAD_IP_HEADER);
    f = frame_make(false, 2, true);
    put_be16(f.bytes + 20, 0x8100); /* a third tag */
    assert_int_equal(verdict_of(&f), NET_NOT_IP);
}

/* Puts bytes between the IP header and UDP. */
static void frame_insert(struct frame *f, const uint8_t *bytes, size_t n)
{
    memmove(f->bytes + f->udp_at + n, f->bytes + f->udp_at, f->n - f->udp_at);
    memcpy(f->bytes + f->udp_at, bytes, n);
    f->udp_at += n;
    f->n += n;
}

static void net_parse__ipv4_options(void **state)
{
    (void)state;
    static const uint8_t options[40] = {0x94, 0x04, 0x00, 0x00, 1, 1, 1, 0};
    for (size_t n = 4; n <= 40; n += 4) {
        struct frame f = frame_make(false, 0, true);
        struct net_headers h;
        const uint8_t *payload;
        size_t payload_bytes;
        frame_insert(&f, options, n);
        f.bytes[f.ip_at] = (uint8_t)(0x40 | (5 + n / 4));
        put_be16(f.bytes + f.ip_at + 2, (uint16_t)(20 + n + 8 + PAYLOAD));
        mend_ipv4(&f);
        assert_int_equal(verdict_of(&f), NET_OK);
        assert_int_equal(net_parse(f.bytes, f.n, &h, &payload, &payload_bytes), NET_OK);
        assert_ptr_equal(payload, f.bytes + f.udp_at + 8);
        f.bytes[f.ip_at + 20] ^= 1; /* the header's checksum covers the options */
        assert_int_equal(verdict_of(&f), NET_BAD_IP_HEADER);
    }
}

/* Chains of IPv6 extension headers, 8 bytes each unless said; first: the IPv6 next header. */
static const struct {
    uint8_t first;
    uint8_t chain[24];
    uint8_t bytes;
    enum net_verdict verdict;
} chain_rows[] = {
  /* clang-format off */
    {0, {17, 0, 1, 4}, 8, NET_OK},
    {60, {17, 0, 1, 4}, 8, NET_OK},
    {43, {17, 0, 4, 0}, 8, NET_OK},
    {0, {60, 0, 1, 4, [8] = 17, 1, 1, 12}, 24, NET_OK},
    {0, {43, 0, 1, 4, [8] = 60, [16] = 17}, 24, NET_OK},
    {60, {60, 0, 1, 4, [8] = 60, [16] = 17}, 24, NET_OK},
    {60, {0, 0, 1, 4, [8] = 17}, 16, NET_BAD_IP_HEADER}, /* hop-by-hop not first */
    {0, {0, 0, 1, 4, [8] = 17}, 16, NET_BAD_IP_HEADER},
    {43, {17, 0, 4, 1}, 8, NET_BAD_IP_HEADER},  /* segments left */
    {0, {17, 200, 1, 4}, 8, NET_BAD_IP_HEADER}, /* longer than the packet */
    {60, {17, 255, 1, 4}, 8, NET_BAD_IP_HEADER},
    {60, {60, 0, 1, 4, [8] = 17, 8}, 16, NET_BAD_IP_HEADER},
    {0, {44, 0, 1, 4, [8] = 17}, 16, NET_NOT_UDP}, /* a fragment behind it */
    {0, {6, 0, 1, 4}, 8, NET_NOT_UDP},
    {60, {59, 0, 1, 4}, 8, NET_NOT_UDP},
    {60, {51, 0, 1, 4}, 8, NET_NOT_UDP},
    {60, {17, 1, 1, 4}, 8, NET_BAD_UDP_LENGTH}, /* swallows the UDP header */
  /* clang-format on */
};

/* RFC 8200 4.1 */
static void net_parse__ipv6_chains(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(chain_rows) / sizeof(chain_rows[0]); i++) {
        struct frame f = frame_make(true, 1, true);
        frame_insert(&f, chain_rows[i].chain, chain_rows[i].bytes);
        f.bytes[f.ip_at + 6] = chain_rows[i].first;
        put_be16(f.bytes + f.ip_at + 4, (uint16_t)(chain_rows[i].bytes + 8 + PAYLOAD));
        if (verdict_of(&f) != chain_rows[i].verdict)
            fail_msg("row %zu: %s", i, net_verdict_name(verdict_of(&f)));
    }
}

static void net_parse__chain_has_a_limit(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 12; count++) {
        struct frame f = frame_make(true, 0, true);
        static const uint8_t option[8] = {60, 0, 1, 4};
        for (size_t i = 0; i < count; i++)
            frame_insert(&f, option, 8);
        f.bytes[f.udp_at - 8] = 17;
        f.bytes[f.ip_at + 6] = 60;
        put_be16(f.bytes + f.ip_at + 4, (uint16_t)(count * 8 + 8 + PAYLOAD));
        assert_int_equal(verdict_of(&f), count <= 8 ? NET_OK : NET_BAD_IP_HEADER);
    }
}

/* Every cut is "truncated", whatever header it falls in. */
static void net_parse__truncated(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct frame f = frame_make(i % 2 != 0, (uint8_t)(i / 4), i % 4 >= 2);
        for (size_t whole = f.n; f.n > 0;) {
            f.n--;
            assert_true(f.n < whole);
            assert_int_equal(verdict_of(&f), NET_TRUNCATED);
        }
    }
}

/* The IP packet itself ends inside the header that follows it, and so does the frame. */
static void net_parse__short_ip_payload(void **state)
{
    (void)state;
    for (uint16_t n = 0; n < 8; n++) {
        struct frame f = frame_make(false, 0, true);
        put_be16(f.bytes + f.ip_at + 2, (uint16_t)(20 + n));
        mend_ipv4(&f);
        f.n = f.udp_at + n;
        assert_int_equal(verdict_of(&f), NET_BAD_UDP_LENGTH);
        f = frame_make(true, 0, true);
        put_be16(f.bytes + f.ip_at + 4, n);
        f.n = f.udp_at + n;
        assert_int_equal(verdict_of(&f), NET_BAD_UDP_LENGTH);
        f.bytes[f.ip_at + 6] = 60; /* an extension header that is not there */
        assert_int_equal(verdict_of(&f), NET_BAD_IP_HEADER);
    }
}

/* With a UDP checksum, no single flipped bit from the IP addresses on goes unseen. */
static void net_parse__flipped(void **state)
{
    (void)state;
    for (int v6 = 0; v6 < 2; v6++) {
        struct frame f = frame_make(v6 != 0, 0, true);
        size_t covered_from = f.ip_at + (v6 ? 8 : 0);
        for (size_t bit = 0; bit < f.n * 8; bit++) {
            f.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            enum net_verdict verdict = verdict_of(&f);
            if (bit / 8 >= covered_from)
                assert_int_not_equal(verdict, NET_OK);
            f.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_int_equal(verdict_of(&f), NET_OK);
    }
}

static void net_icrc_pseudo__fields(void **state)
{
    (void)state;
    struct net_headers h = sample_headers(false, 2, true);
    struct icrc_pseudo ip;
    net_icrc_pseudo(&h, &ip);
    assert_false(ip.v6);
    assert_memory_equal(ip.src, h.src, 16);
    assert_memory_equal(ip.dst, h.dst, 16);
    assert_int_equal(ip.udp_sport, 0xc001);
    assert_int_equal(ip.udp_dport, 4791);
    assert_int_equal(ip.udp_bytes, 29);
    assert_int_equal(ip.ip_id, 0x4321);
    assert_true(ip.dont_fragment);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_build__is_inverse),
        cmocka_unit_test(net_build__bytes),
        cmocka_unit_test(net_build_grh__is_the_ip_header),
        cmocka_unit_test(net_build__checksum_never_zero),
        cmocka_unit_test(net_parse__ethernet_padding),
        cmocka_unit_test(net_parse__changed_byte),
        cmocka_unit_test(net_parse__ethertypes),
        cmocka_unit_test(net_parse__ipv4_options),
        cmocka_unit_test(net_parse__ipv6_chains),
        cmocka_unit_test(net_parse__chain_has_a_limit),
        cmocka_unit_test(net_parse__truncated),
        cmocka_unit_test(net_parse__short_ip_payload),
        cmocka_unit_test(net_parse__flipped),
        cmocka_unit_test(net_icrc_pseudo__fields),
    };
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
