/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_icrc.c: the ICRC against frames known from elsewhere, against a plain bitwise computation of
 * the masked frame, and each bit of a frame flipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "wire/icrc.h"
#include "wire/net.h"
#include "wire/roce.h"

enum { MAX_BYTES = 4200 };

static uint64_t tape = 88172645463325252u;

static uint32_t chance(void)
{
    tape ^= tape << 13;
    tape ^= tape >> 7;
    tape ^= tape << 17;
    return (uint32_t)(tape >> 16);
}

static uint32_t crc_bitwise(uint32_t crc, const uint8_t *p, size_t n)
{
    while (n-- > 0) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return crc;
}

/* From the IP header to the end, masked in a copy, as the specification words it. */
static uint32_t icrc_reference(const uint8_t *ip, size_t n)
{
    static uint8_t copy[8 + 40 + 8 + MAX_BYTES];
    size_t ip_bytes = ip[0] >> 4 == 6 ? 40 : 20;
    uint8_t *p = copy + 8;
    memset(copy, 0xff, 8);
    memcpy(p, ip, n);
    if (ip_bytes == 40) {
        p[0] |= 0x0f;
        memset(p + 1, 0xff, 3);
        p[7] = 0xff;
    } else {
        p[1] = p[8] = p[10] = p[11] = 0xff;
    }
    p[ip_bytes + 6] = p[ip_bytes + 7] = p[ip_bytes + 8 + 4] = 0xff;
    return ~crc_bitwise(0xffffffff, copy, 8 + n);
}

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (; hex[0] != '\0'; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        out[n++] = (uint8_t)byte;
    }
    return n;
}

/* Pseudo header of an IPv4 packet without options, straight from its bytes. */
static struct icrc_pseudo pseudo_of_ipv4(const uint8_t *ip)
{
    struct icrc_pseudo pseudo = {.udp_sport = get_be16(ip + 20),
                                 .udp_dport = get_be16(ip + 22),
                                 .udp_bytes = get_be16(ip + 24),
                                 .ip_id = get_be16(ip + 4),
                                 .dont_fragment = (ip[6] & 0x40) != 0};
    memcpy(pseudo.src, ip + 12, 4);
    memcpy(pseudo.dst, ip + 16, 4);
    return pseudo;
}

/* hex: an IPv4 packet up to, not including, its ICRC. */
static void check_vector(const char *hex, const char *icrc_hex)
{
    uint8_t ip[256], expected[4], stored[4];
    size_t n = from_hex(hex, ip);
    assert_int_equal(from_hex(icrc_hex, expected), 4);
    assert_int_equal(get_be16(ip + 2), n + 4);
    struct icrc_pseudo pseudo = pseudo_of_ipv4(ip);
    const uint8_t *packet = ip + 28;
    uint32_t state = icrc_begin(&pseudo, packet);
    state = icrc_update(state, packet + 12, n - 28 - 12);
    put_le32(stored, icrc_end(state));
    assert_memory_equal(stored, expected, 4);
    memcpy(ip + n, expected, 4);
    assert_true(icrc_check(&pseudo, packet, n - 28 + 4));
    assert_int_equal(roce_check(packet, n - 28 + 4), ROCE_OK);
    assert_int_equal(icrc_reference(ip, n), get_le32(expected));
    ip[n] ^= 1;
    assert_false(icrc_check(&pseudo, packet, n - 28 + 4));
}

/* IBA 7.8.1, IBA A17.3.3: frames published by others, a UC SEND Only and an adapter's CNP. */
static void case_113(void **state)
{
    (void)state;
    check_vector("450100400478400040110000c0a80007c0a80007c00012b7002c00002460ffff000000d300cf"
                 "17104630818be28935d90e9a95505401be885e500000",
                 "78f353f3");
    check_vector("45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff400001180000"
                 "0000"
                 "00000000000000000000000000000000",
                 "82fd002a");
}

static void case_114(void **state)
{
    (void)state;
    check_vector("4502003c12344000401100000a0000010a000002c00112b7002800000440ffff0000001180ff"
                 "fffe0102030405060708090a0b0c0d0e0f10",
                 "6d7ea6ee");
}

/* A whole frame in a buffer of exactly its size, so that a read past the end is seen. */
struct frame {
    uint8_t *bytes;
    size_t n, ip_at, packet_at;
};

static struct frame frame_make(bool v6, uint8_t opcode, const uint8_t *payload, uint32_t n)
{
    struct net_headers net = {
        .v6 = v6,
        .eth_dst = {2,  0, 0, 0, 0, 1},
        .eth_src = {2, 0, 0, 0, 0, 2},
        .vlan_tags = 1,
        .vlan_tci = {3 << 13 | 100},
        .tos = 0x6a,
        .ttl = 64,
        .flow_label = v6 ? 0x12345 : 0,
        .ip_id = v6 ? 0 : 0x8765,
        .dont_fragment = !v6,
        .udp_sport = 0xc123,
        .udp_dport = ROCE_UDP_PORT
    };
    for (int i = 0; i < (v6 ? 16 : 4); i++) {
        net.src[i] = (uint8_t)(i * 17 + 1);
        net.dst[i] = (uint8_t)(i * 29 + 3);
    }
    struct roce_headers h = {
        .bth = {.opcode = opcode,
                .mig_req = true,
                .pad_bytes = roce_pad(n),
                .pkey = PKEY_DEFAULT,
                .dest_qp = 0x123456,
                .psn = psn_make(0xfedcba)}
    };
    uint8_t packet[ROCE_MAX_PACKET_BYTES] = {0};
    size_t bytes = roce_build_headers(&h, packet);
    memcpy(packet + bytes, payload, n);
    bytes = roce_packet_bytes(opcode, n);
    net.udp_bytes = (uint16_t)(UDP_HEADER_BYTES + bytes);
    struct icrc_pseudo ip;
    net_icrc_pseudo(&net, &ip);
    uint32_t state = icrc_update(icrc_begin(&ip, packet), packet + 12, bytes - 16);
    put_le32(packet + bytes - 4, icrc_end(state));

    uint8_t head[NET_MAX_HEADER_BYTES];
    size_t head_bytes = net_build(&net, packet, bytes, head);
    struct frame f = {.bytes = malloc(head_bytes + bytes),
                      .n = head_bytes + bytes,
                      .ip_at = ETH_HEADER_BYTES + VLAN_TAG_BYTES,
                      .packet_at = head_bytes};
    assert_non_null(f.bytes);
    memcpy(f.bytes, head, head_bytes);
    memcpy(f.bytes + head_bytes, packet, bytes);
    return f;
}

static void mend_ipv4_checksum(uint8_t *ip)
{
    uint32_t sum = 0;
    put_be16(ip + 10, 0);
    for (int i = 0; i < 20; i += 2)
        sum += get_be16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    put_be16(ip + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
}

/* What becomes of a frame: refused by a parser, refused by the ICRC, or taken. */
enum fate { FATE_REFUSED, FATE_BAD_ICRC, FATE_TAKEN };

static enum fate frame_fate(const struct frame *f)
{
    struct net_headers net;
    const uint8_t *packet;
    size_t n;
    if (net_parse(f->bytes, f->n, &net, &packet, &n) != NET_OK)
        return FATE_REFUSED;
    if (net.udp_dport != ROCE_UDP_PORT || roce_check(packet, n) != ROCE_OK)
        return FATE_REFUSED;
    struct icrc_pseudo ip;
    net_icrc_pseudo(&net, &ip);
    return icrc_check(&ip, packet, n) ? FATE_TAKEN : FATE_BAD_ICRC;
}

/* Byte offsets of the frame whose every bit may change on the way (IPv4 checksum: mended, so that
 * only the ICRC judges). */
static bool byte_is_masked(const struct frame *f, bool v6, size_t at)
{
    size_t ip = at - f->ip_at, bth = at - f->packet_at;
    if (at < f->ip_at)
        return at < 12 || (at >= 14 && at < 16); /* MAC addresses, VLAN TCI */
    if (at >= f->packet_at)
        return bth == 4;
    if (v6 && ip < 40)
        return (ip >= 1 && ip < 4) || ip == 7;
    if (!v6 && ip < 20)
        return ip == 1 || ip == 8 || ip == 10 || ip == 11;
    return false; /* UDP: its checksum field is handled by the caller */
}

/* Flips every bit of one frame; returns how many bits stood under the ICRC's protection. */
static int flip_all(bool v6)
{
    static const uint8_t payload[33] = {1, 2, 3, 4, 5};
    struct frame f = frame_make(v6, opcode_make(SERVICE_RC, OP_SEND_ONLY), payload, 33);
    size_t udp = f.packet_at - 8;
    int covered = 0;
    assert_int_equal(frame_fate(&f), FATE_TAKEN);
    for (size_t bit = 0; bit < f.n * 8; bit++) {
        size_t at = bit / 8;
        uint8_t mask = (uint8_t)(1u << bit % 8), was[2];
        memcpy(was, f.bytes + f.ip_at + 10, 2);
        f.bytes[at] ^= mask;
        if (!v6 && at >= f.ip_at && at < udp)
            mend_ipv4_checksum(f.bytes + f.ip_at);
        enum fate fate = frame_fate(&f);
        bool masked = byte_is_masked(&f, v6, at);
        if (v6 && at == f.ip_at && mask < 0x10)
            masked = true; /* upper half of the traffic class */
        if (at == udp + 6 || at == udp + 7)
            assert_int_equal(fate, FATE_REFUSED); /* no longer "no checksum": and it is wrong */
        else
            assert_int_equal(fate == FATE_TAKEN, masked);
        covered += fate == FATE_BAD_ICRC;
        f.bytes[at] ^= mask;
        if (!v6)
            memcpy(f.bytes + f.ip_at + 10, was, 2);
    }
    assert_int_equal(frame_fate(&f), FATE_TAKEN);
    free(f.bytes);
    return covered;
}

static void case_117(void **state)
{
    (void)state;
    /* At least payload, pad and ICRC (40 bytes), addresses and most of the BTH. */
    assert_true(flip_all(false) > (40 + 8 + 8) * 8);
    assert_true(flip_all(true) > (40 + 32 + 8) * 8);
}

/* The pad's bytes count: the same packet with another pad has another ICRC. */
static void case_117_pad(void **state)
{
    (void)state;
    static const uint8_t payload[5] = {1, 2, 3, 4, 5};
    struct frame f = frame_make(false, opcode_make(SERVICE_RC, OP_SEND_ONLY), payload, 5);
    f.bytes[f.n - 5] = 1;
    assert_int_equal(frame_fate(&f), FATE_BAD_ICRC);
    free(f.bytes);
}

static void icrc_update__matches_bitwise(void **state)
{
    (void)state;
    static uint8_t payload[4096];
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)chance();
    for (uint32_t n = 0; n <= 4096; n += n < 70 ? 1 : 173) {
        struct frame f = frame_make(n % 2 != 0, opcode_make(SERVICE_UC, OP_SEND_ONLY), payload, n);
        assert_int_equal(get_le32(f.bytes + f.n - 4),
                         icrc_reference(f.bytes + f.ip_at, f.n - f.ip_at - 4));
        free(f.bytes);
    }
}

static void icrc_copy__is_update_and_memcpy(void **state)
{
    (void)state;
    static uint8_t src[10000], dst[10002];
    static const size_t sizes[] = {0, 1, 3, 64, 4095, 4096, 4097, 8192, 9999};
    for (size_t i = 0; i < sizeof(src); i++)
        src[i] = (uint8_t)chance();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = sizes[i];
        memset(dst, 0xee, sizeof(dst));
        uint32_t by_copy = icrc_copy(0x1234567, dst + 1, src, n);
        assert_int_equal(by_copy, icrc_update(0x1234567, src, n));
        assert_memory_equal(dst + 1, src, n);
        assert_int_equal(dst[0], 0xee);
        assert_int_equal(dst[n + 1], 0xee);
        /* In two parts it is the same. */
        uint32_t parts = icrc_update(icrc_update(0x1234567, src, n / 3), src + n / 3, n - n / 3);
        assert_int_equal(by_copy, parts);
    }
}

static void icrc_check__short(void **state)
{
    (void)state;
    static const uint8_t packet[16];
    struct icrc_pseudo ip = {.udp_bytes = 24};
    for (size_t n = 0; n < 16; n++) {
        assert_false(icrc_check(&ip, packet, n));
        assert_false(icrc_check_unknown_id(&ip, packet, n));
    }
}

/* Right ICRC for n bytes of any content, without regard to opcodes. */
static void seal(const struct icrc_pseudo *ip, uint8_t *packet, size_t n)
{
    uint32_t state = icrc_update(icrc_begin(ip, packet), packet + 12, n - 16);
    put_le32(packet + n - 4, icrc_end(state));
}

static struct icrc_pseudo any_pseudo(size_t n)
{
    struct icrc_pseudo ip = {.udp_sport = (uint16_t)(0xc000 | (chance() & 0x3fff)),
                             .udp_dport = ROCE_UDP_PORT,
                             .udp_bytes = (uint16_t)(8 + n),
                             .ip_id = (uint16_t)chance(),
                             .dont_fragment = (chance() & 1) != 0};
    for (int i = 0; i < 4; i++) {
        ip.src[i] = (uint8_t)chance();
        ip.dst[i] = (uint8_t)chance();
    }
    return ip;
}

static void icrc_check_unknown_id__every_length(void **state)
{
    (void)state;
    static uint8_t packet[MAX_BYTES];
    int wrongly_taken = 0;
    for (size_t i = 0; i < sizeof(packet); i++)
        packet[i] = (uint8_t)chance();
    for (size_t n = 16; n <= MAX_BYTES; n++) {
        struct icrc_pseudo ip = any_pseudo(n), guess = ip;
        seal(&ip, packet, n);
        guess.ip_id = (uint16_t)chance();
        guess.dont_fragment = (chance() & 1) != 0;
        struct icrc_pseudo other = guess;
        assert_true(icrc_check_unknown_id(&guess, packet, n));
        assert_memory_equal(&guess, &ip, sizeof(ip));
        size_t bit = chance() % (n * 8);
        if (bit / 8 == 4)
            continue; /* masked */
        packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
        wrongly_taken += icrc_check_unknown_id(&other, packet, n);
        packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    /* One in 2^15 is expected, so 0.13 of these 4185. */
    assert_true(wrongly_taken <= 2);
}

static void icrc_check_unknown_id__every_id(void **state)
{
    (void)state;
    static uint8_t packet[92];
    struct icrc_pseudo ip = any_pseudo(sizeof(packet));
    seal(&ip, packet, sizeof(packet));
    for (uint32_t i = 0; i < 1u << 17; i += 3) {
        struct icrc_pseudo guess = ip;
        guess.ip_id = (uint16_t)i;
        guess.dont_fragment = i >> 16 != 0;
        assert_true(icrc_check_unknown_id(&guess, packet, sizeof(packet)));
        assert_int_equal(guess.ip_id, ip.ip_id);
        assert_int_equal(guess.dont_fragment, ip.dont_fragment);
    }
}

/* Nothing is unknown over IPv6, and a wrong address or port is never explained by an id. */
static void icrc_check_unknown_id__refuses(void **state)
{
    (void)state;
    static uint8_t packet[64];
    struct icrc_pseudo ip = any_pseudo(sizeof(packet));
    seal(&ip, packet, sizeof(packet));
    struct icrc_pseudo wrong[5];
    for (int i = 0; i < 5; i++)
        wrong[i] = ip;
    wrong[0].src[3] ^= 1;
    wrong[1].dst[0] ^= 0x80;
    wrong[2].udp_sport ^= 1;
    wrong[3].udp_bytes ^= 4;
    wrong[4].v6 = true;
    for (int i = 0; i < 5; i++) {
        struct icrc_pseudo before = wrong[i];
        assert_false(icrc_check_unknown_id(&wrong[i], packet, sizeof(packet)));
        assert_memory_equal(&wrong[i], &before, sizeof(before));
    }
    ip.v6 = true;
    seal(&ip, packet, sizeof(packet));
    assert_true(icrc_check_unknown_id(&ip, packet, sizeof(packet)));
    packet[20] ^= 1;
    assert_false(icrc_check_unknown_id(&ip, packet, sizeof(packet)));
}

/* DEVIATES: IBA A17.3.3: of the identification, flags and offset of the sender's IPv4 header, the
 * bits of the identification and DF may be solved for, no others. */
static void icrc_check_unknown_id__which_bits(void **state)
{
    (void)state;
    static const uint8_t payload[8] = {1};
    struct frame f = frame_make(false, opcode_make(SERVICE_RC, OP_SEND_ONLY), payload, 8);
    uint8_t *ip = f.bytes + f.ip_at;
    size_t n = f.n - f.packet_at;
    struct icrc_pseudo true_ip = pseudo_of_ipv4(ip);
    for (int bit = 0; bit < 32; bit++) {
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        ip[4 + bit / 8] ^= mask;
        put_le32(f.bytes + f.n - 4, icrc_reference(ip, f.n - f.ip_at - 4));
        ip[4 + bit / 8] ^= mask;
        struct icrc_pseudo guess = true_ip;
        bool solved = icrc_check_unknown_id(&guess, f.bytes + f.packet_at, n);
        assert_int_equal(solved, bit < 16 || bit == 17); /* 16: reserved, 18: MF, then offset */
        assert_int_equal(guess.ip_id, true_ip.ip_id ^ (bit < 16 ? 0x8000 >> bit : 0));
        assert_int_equal(guess.dont_fragment, true_ip.dont_fragment ^ (bit == 17));
    }
    free(f.bytes);
}

/* An IPv6 packet whose error looks like another IPv4 identification is still an error. */
static void icrc_check_unknown_id__ipv6_has_none(void **state)
{
    (void)state;
    static uint8_t packet[64];
    struct icrc_pseudo ip = any_pseudo(sizeof(packet)), other = ip;
    other.ip_id ^= 5;
    uint32_t error = icrc_begin(&ip, packet);
    error = icrc_update(error, packet + 12, 48);
    error ^= icrc_update(icrc_begin(&other, packet), packet + 12, 48);
    ip.v6 = true;
    seal(&ip, packet, sizeof(packet));
    assert_true(icrc_check(&ip, packet, sizeof(packet)));
    put_le32(packet + 60, get_le32(packet + 60) ^ error);
    assert_false(icrc_check_unknown_id(&ip, packet, sizeof(packet)));
}

/* Longer than any RoCE packet: nothing is solved for, the given id still counts. */
static void icrc_check_unknown_id__out_of_reach(void **state)
{
    (void)state;
    static uint8_t packet[65000];
    static const size_t sizes[] = {8171, 8172, 8173, 9000, 65000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct icrc_pseudo ip = any_pseudo(sizes[i]), guess = ip;
        seal(&ip, packet, sizes[i]);
        assert_true(icrc_check_unknown_id(&guess, packet, sizes[i]));
        guess.ip_id ^= 0x10;
        assert_int_equal(icrc_check_unknown_id(&guess, packet, sizes[i]), sizes[i] < 8172);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_113),
        cmocka_unit_test(case_114),
        cmocka_unit_test(case_117),
        cmocka_unit_test(case_117_pad),
        cmocka_unit_test(icrc_update__matches_bitwise),
        cmocka_unit_test(icrc_copy__is_update_and_memcpy),
        cmocka_unit_test(icrc_check__short),
        cmocka_unit_test(icrc_check_unknown_id__every_length),
        cmocka_unit_test(icrc_check_unknown_id__every_id),
        cmocka_unit_test(icrc_check_unknown_id__refuses),
        cmocka_unit_test(icrc_check_unknown_id__which_bits),
        cmocka_unit_test(icrc_check_unknown_id__ipv6_has_none),
        cmocka_unit_test(icrc_check_unknown_id__out_of_reach),
    };
    return cmocka_run_group_tests_name("icrc", tests, NULL, NULL);
}
