/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print.h: a packet as one line of text, the same in traces, captures and the analyser. Fields come
 * in the order of the wire; what an opcode does not carry is not shown. The functions write a
 * terminated string, cut to cap bytes, and return its length (without the end).
 *
 *   vlan 100/3 10.88.0.2:49152 > 10.88.0.3 tos 0x02 ttl 64 RC RDMA WRITE Only qp 0x000012
 *   psn 0x000100 A M pkey 0xffff va 0x7f00 rkey 0x00000400 dmalen 16 len 16 icrc ok
 */
#ifndef WIRE_PRINT_H
#define WIRE_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/iba.h"

enum {
    PRINT_LINE_BYTES = 512, /* room for any line */
    PRINT_ADDR_BYTES = 48,
};

/* An address: dotted, or IPv6 as RFC 5952 wants it. */
size_t print_addr(char *out, size_t cap, bool v6, const uint8_t addr[16]);
/* Transport headers: opcode, qp, psn, flags (A ack request, SE solicited, M MigReq, FECN, BECN),
 * extended headers, payload length. */
size_t print_roce(char *out, size_t cap, const struct roce_headers *h, uint32_t payload_bytes);
/* A whole Ethernet frame with the ICRC's verdict; a frame that is not RoCE v2 says why. */
size_t print_frame(char *out, size_t cap, const uint8_t *frame, size_t n);

#endif
