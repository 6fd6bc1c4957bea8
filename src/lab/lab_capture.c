/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_capture.c: Ethernet, IPv4 or IPv6 without options, UDP, BTH: what our own captures have.
 * Anything else is passed over.
 */
#include "lab/lab_capture.h"

#include <stdio.h>
#include <string.h>

enum {
    FILE_HEADER_BYTES = 24,
    RECORD_HEADER_BYTES = 16,
    ETHERNET_BYTES = 14,
    IPV4_BYTES = 20,
    IPV6_BYTES = 40,
    UDP_BYTES = 8,
    BTH_BYTES = 12,
    ROCE_PORT = 4791,
    PROTOCOL_UDP = 17,
};

static uint32_t host32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static uint32_t big(const uint8_t *p, unsigned n)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

bool lab_capture_open(struct lab_capture *c, const uint8_t *bytes, size_t size)
{
    *c = (struct lab_capture){bytes, size, FILE_HEADER_BYTES};
    return size >= FILE_HEADER_BYTES && host32(bytes) == 0xa1b23c4d && host32(bytes + 20) == 1;
}

/* Where the UDP header begins; 0 when there is none. */
static size_t udp_of(const uint8_t *frame, size_t n)
{
    if (n < ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + BTH_BYTES)
        return 0;
    const uint8_t *ip = frame + ETHERNET_BYTES;
    uint32_t type = big(frame + 12, 2);
    if (type == 0x0800 && ip[0] == 0x45 && ip[9] == PROTOCOL_UDP)
        return ETHERNET_BYTES + IPV4_BYTES;
    if (type == 0x86dd && ip[6] == PROTOCOL_UDP &&
        n >= ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES)
        return ETHERNET_BYTES + IPV6_BYTES;
    return 0;
}

static bool parse(const uint8_t *frame, size_t n, struct lab_packet *p)
{
    size_t udp = udp_of(frame, n);
    if (udp == 0 || big(frame + udp + 2, 2) != ROCE_PORT)
        return false;
    const uint8_t *bth = frame + udp + UDP_BYTES;
    p->opcode = bth[0];
    p->dest_qpn = big(bth + 5, 3);
    p->psn = big(bth + 9, 3);
    p->bytes = (uint32_t)(n - udp - UDP_BYTES);
    return true;
}

bool lab_capture_next(struct lab_capture *c, struct lab_packet *p)
{
    while (c->size - c->at >= RECORD_HEADER_BYTES) {
        const uint8_t *record = c->bytes + c->at;
        uint32_t n = host32(record + 8);
        if (n > c->size - c->at - RECORD_HEADER_BYTES)
            return false;
        c->at += RECORD_HEADER_BYTES + (size_t)n;
        p->ns = (uint64_t)host32(record) * 1000000000 + host32(record + 4);
        if (parse(record + RECORD_HEADER_BYTES, n, p))
            return true;
    }
    return false;
}

const char *lab_capture_opcode(uint8_t opcode, char out[32])
{
    static const char *const reliable[] = {
        "SEND First",
        "SEND Middle",
        "SEND Last",
        "SEND Last with Immediate",
        "SEND Only",
        "SEND Only with Immediate",
        "RDMA WRITE First",
        "RDMA WRITE Middle",
        "RDMA WRITE Last",
        "RDMA WRITE Last with Immediate",
        "RDMA WRITE Only",
        "RDMA WRITE Only with Immediate",
        "RDMA READ Request",
        "RDMA READ response First",
        "RDMA READ response Middle",
        "RDMA READ response Last",
        "RDMA READ response Only",
        "Acknowledge",
        "ATOMIC Acknowledge",
        "CmpSwap",
        "FetchAdd",
    };
    enum { RC = 0x00, UC = 0x20, UD = 0x60, TRANSPORT = 0xe0, LAST_OF_UC = 0x0b };
    unsigned transport = opcode & TRANSPORT, which = opcode & 0x1f;
    bool named = (transport == RC && which < sizeof(reliable) / sizeof(reliable[0])) ||
                 (transport == UC && which <= LAST_OF_UC) ||
                 (transport == UD && (which == 4 || which == 5));
    if (named)
        snprintf(out, 32, "%s", reliable[which]);
    else
        snprintf(out, 32, "opcode 0x%02x", opcode);
    return out;
}
