/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire_props.h: what must hold for any bytes given to the wire parsers, whoever made them: the unit
 * tests (truncate, flip, extend) and the fuzzers share these. A violated property aborts.
 */
#ifndef TESTS_WIRE_PROPS_H
#define TESTS_WIRE_PROPS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/net.h"
#include "wire/print.h"
#include "wire/roce.h"

#define PROP(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: property broken: %s\n", __FILE__, __LINE__, #condition);       \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Check and parse are consistent, and parsing what was built from a parse changes nothing. */
static inline enum roce_verdict props_roce(const uint8_t *packet, size_t n)
{
    enum roce_verdict verdict = roce_check(packet, n);
    PROP((unsigned)verdict < ROCE_VERDICT_COUNT);
    if (verdict != ROCE_OK)
        return verdict;
    struct roce_headers h, again;
    const uint8_t *payload, *payload_again;
    uint32_t payload_bytes, bytes_again;
    roce_parse(packet, n, &h, &payload, &payload_bytes);
    PROP(payload >= packet + BTH_BYTES && payload + payload_bytes + ICRC_BYTES <= packet + n);
    PROP(h.bth.pad_bytes == roce_pad(payload_bytes));
    PROP(roce_packet_bytes(h.bth.opcode, payload_bytes) == n);

    uint8_t built[ROCE_MAX_PACKET_BYTES];
    PROP(n <= sizeof(built));
    memcpy(built, packet, n);
    PROP(roce_build_headers(&h, built) == (size_t)(payload - packet));
    PROP(roce_check(built, n) == ROCE_OK);
    roce_parse(built, n, &again, &payload_again, &bytes_again);
    PROP(memcmp(&h, &again, sizeof(h)) == 0 && bytes_again == payload_bytes);
    return ROCE_OK;
}

static inline enum net_verdict props_net(const uint8_t *frame, size_t n)
{
    struct net_headers h, again;
    const uint8_t *payload, *payload_again;
    size_t payload_bytes, bytes_again;
    char line[PRINT_LINE_BYTES];
    size_t line_bytes = print_frame(line, sizeof(line), frame, n);
    PROP(line_bytes == strlen(line) && line_bytes + 1 < sizeof(line));
    enum net_verdict verdict = net_parse(frame, n, &h, &payload, &payload_bytes);
    PROP((unsigned)verdict < NET_VERDICT_COUNT);
    if (verdict != NET_OK)
        return verdict;
    PROP(payload >= frame + ETH_HEADER_BYTES && payload + payload_bytes <= frame + n);
    PROP(payload_bytes + UDP_HEADER_BYTES == h.udp_bytes);

    uint8_t *built = malloc(NET_MAX_HEADER_BYTES + payload_bytes);
    PROP(built != NULL);
    size_t header_bytes = net_build(&h, payload, payload_bytes, built);
    PROP(header_bytes <= NET_MAX_HEADER_BYTES);
    memcpy(built + header_bytes, payload, payload_bytes);
    PROP(net_parse(built, header_bytes + payload_bytes, &again, &payload_again, &bytes_again) ==
         NET_OK);
    PROP(memcmp(&h, &again, sizeof(h)) == 0 && bytes_again == payload_bytes);
    free(built);

    if (props_roce(payload, payload_bytes) == ROCE_OK) {
        struct icrc_pseudo ip;
        net_icrc_pseudo(&h, &ip);
        bool right = icrc_check(&ip, payload, payload_bytes);
        bool solved = icrc_check_unknown_id(&ip, payload, payload_bytes);
        PROP(solved || !right);
        PROP(!solved || icrc_check(&ip, payload, payload_bytes)); /* *ip is the solution */
    }
    return NET_OK;
}

#endif
