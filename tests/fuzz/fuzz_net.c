/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_net.c: any bytes as an Ethernet frame. The IPv4 checksum is put right first, or the fuzzer
 * would see little beyond it.
 */
#include "wire_props.h"

#include "base/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void mend_ipv4_checksum(uint8_t *frame, size_t n)
{
    size_t at = ETH_HEADER_BYTES;
    while (at <= ETH_HEADER_BYTES + VLAN_TAG_BYTES && at <= n &&
           get_be16(frame + at - 2) == ETHERTYPE_VLAN_WIRE)
        at += VLAN_TAG_BYTES;
    if (n < at + IPV4_HEADER_BYTES || get_be16(frame + at - 2) != ETHERTYPE_IPV4_WIRE)
        return;
    size_t header_bytes = (size_t)(frame[at] & 0x0f) * 4;
    if (header_bytes < IPV4_HEADER_BYTES || n < at + header_bytes)
        return;
    uint32_t sum = 0;
    put_be16(frame + at + 10, 0);
    for (size_t i = 0; i < header_bytes; i += 2)
        sum += get_be16(frame + at + i);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    put_be16(frame + at + 10, (uint16_t)~sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    props_net(data, n);
    uint8_t *frame = malloc(n + 1);
    if (frame == NULL)
        return 0;
    memcpy(frame, data, n);
    mend_ipv4_checksum(frame, n);
    props_net(frame, n);
    free(frame);
    return 0;
}
