/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_icrc.c: any IP and UDP headers before any packet: the CRC in one piece, in several and while
 * copying is the same; a packet whose sender chose another IPv4 identification or DF is taken, and
 * both are found; a burst of errors is never taken where all is known. Also the tables of the AETH.
 *
 * Input: mode, identification (2), cut (2), place (2), error (4), source (16), destination (16),
 * ports (4), packet.
 */
#include "base/bytes.h"
#include "wire/aeth.h"
#include "wire_props.h"

enum { HEAD_BYTES = 47, MASKED = 4 /* byte of the BTH that the ICRC takes as ones */ };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void props_aeth(uint32_t n, uint8_t code)
{
    uint8_t credit = aeth_credit_code(n);
    PROP(credit < AETH_CREDITS_NONE && aeth_credits(credit) <= n);
    PROP(credit == AETH_CREDITS_NONE - 1 || aeth_credits((uint8_t)(credit + 1)) > n);
    PROP(aeth_rnr_ns(code) >= 10000 && aeth_rnr_ns(code) <= 655360000);
    PROP((aeth_ack_timeout_ns(code) == 0) == ((code & 31) == 0));
    PROP(aeth_make(aeth_kind(code), aeth_value(code)) == (code & 0x7f));
}

/* In pieces, and copying. */
static uint32_t crc_of(const struct icrc_pseudo *ip, const uint8_t *packet, size_t n, size_t cut)
{
    size_t bytes = n - BTH_BYTES - ICRC_BYTES;
    const uint8_t *p = packet + BTH_BYTES;
    uint32_t whole = icrc_end(icrc_update(icrc_begin(ip, packet), p, bytes));
    uint8_t *copy = malloc(bytes + 1);
    cut = bytes == 0 ? 0 : cut % (bytes + 1);
    PROP(copy != NULL);
    uint32_t state = icrc_update(icrc_begin(ip, packet), p, cut);
    PROP(icrc_end(icrc_update(state, p + cut, bytes - cut)) == whole);
    state = icrc_copy(icrc_begin(ip, packet), copy, p, cut);
    PROP(icrc_end(icrc_copy(state, copy + cut, p + cut, bytes - cut)) == whole);
    PROP(memcmp(copy, p, bytes) == 0);
    free(copy);
    return whole;
}

/* Up to 32 inverted bits close together: a CRC sees them always. */
static void props_error(struct icrc_pseudo ip, uint8_t *packet, size_t n, size_t place,
                        const uint8_t error[4])
{
    struct icrc_pseudo solved = ip;
    uint8_t seen = 0;
    place %= n - 3;
    for (size_t i = 0; i < 4; i++) {
        packet[place + i] ^= error[i];
        seen |= place + i == MASKED ? 0 : error[i];
    }
    PROP(icrc_check(&ip, packet, n) == (seen == 0));
    if (icrc_check_unknown_id(&solved, packet, n))
        PROP(icrc_check(&solved, packet, n));
    for (size_t i = 0; i < 4; i++)
        packet[place + i] ^= error[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < HEAD_BYTES)
        return 0;
    struct icrc_pseudo ip = {
        .v6 = data[0] & 1,
        .dont_fragment = data[0] & 2,
        .ip_id = get_be16(data + 9),
        .udp_sport = get_be16(data + 43),
        .udp_dport = get_be16(data + 45),
        .udp_bytes = (uint16_t)(UDP_HEADER_BYTES + n - HEAD_BYTES),
    };
    memcpy(ip.src, data + 11, 16);
    memcpy(ip.dst, data + 27, 16);
    props_aeth(get_be32(data + 5), data[4]);
    uint8_t *packet = malloc(n - HEAD_BYTES + 1);
    PROP(packet != NULL);
    memcpy(packet, data + HEAD_BYTES, n - HEAD_BYTES);
    n -= HEAD_BYTES;
    if (n < BTH_BYTES + ICRC_BYTES) {
        PROP(!icrc_check(&ip, packet, n) && !icrc_check_unknown_id(&ip, packet, n));
    } else {
        put_le32(packet + n - ICRC_BYTES, crc_of(&ip, packet, n, get_be16(data + 1)));
        props_error(ip, packet, n, get_be16(data + 3), data + 5);
        struct icrc_pseudo other = ip;
        other.ip_id ^= get_be16(data + 1);
        other.dont_fragment ^= (data[0] & 4) != 0;
        bool same = ip.v6 || (other.ip_id == ip.ip_id && other.dont_fragment == ip.dont_fragment);
        PROP(icrc_check(&other, packet, n) == same);
        bool taken = icrc_check_unknown_id(&other, packet, n);
        PROP(taken || (!same && n > ROCE_MAX_PACKET_BYTES));
        PROP(!taken || ip.v6 ||
             (other.ip_id == ip.ip_id && other.dont_fragment == ip.dont_fragment));
    }
    free(packet);
    return 0;
}
