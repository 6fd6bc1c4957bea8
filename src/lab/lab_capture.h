/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_capture.h: the RoCE packets of a capture file (pcap, nanoseconds) that Verbena's NIC writes:
 * what passed, and when.
 */
#ifndef LAB_LAB_CAPTURE_H
#define LAB_LAB_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab_packet {
    uint64_t ns; /* by the clock of the capture */
    uint8_t opcode;
    uint32_t dest_qpn;
    uint32_t psn;
    uint32_t bytes; /* of the UDP payload, headers and ICRC included */
};

/* A place in the bytes of a whole file. */
struct lab_capture {
    const uint8_t *bytes;
    size_t size;
    size_t at;
};

/* false: it is no such file. */
bool lab_capture_open(struct lab_capture *c, const uint8_t *bytes, size_t size);
/* The next packet for UDP port 4791; false at the end, or where the file is cut. */
bool lab_capture_next(struct lab_capture *c, struct lab_packet *p);
/* "RDMA WRITE First"; "opcode 0x.." for what has no name. */
const char *lab_capture_opcode(uint8_t opcode, char out[32]);

#endif
