/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opcode.h: the one table of BTH opcodes: name, service, headers, place in a message. Everything
 * that depends on an opcode asks this table (IBA 9.2; IBA A14 for XRC).
 */
#ifndef WIRE_OPCODE_H
#define WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* Low five bits of a BTH opcode. The high three are enum opcode_service. */
enum opcode_op {
    OP_SEND_FIRST = 0x00,
    OP_SEND_MIDDLE = 0x01,
    OP_SEND_LAST = 0x02,
    OP_SEND_LAST_IMM = 0x03,
    OP_SEND_ONLY = 0x04,
    OP_SEND_ONLY_IMM = 0x05,
    OP_WRITE_FIRST = 0x06,
    OP_WRITE_MIDDLE = 0x07,
    OP_WRITE_LAST = 0x08,
    OP_WRITE_LAST_IMM = 0x09,
    OP_WRITE_ONLY = 0x0a,
    OP_WRITE_ONLY_IMM = 0x0b,
    OP_READ_REQUEST = 0x0c,
    OP_READ_RESP_FIRST = 0x0d,
    OP_READ_RESP_MIDDLE = 0x0e,
    OP_READ_RESP_LAST = 0x0f,
    OP_READ_RESP_ONLY = 0x10,
    OP_ACKNOWLEDGE = 0x11,
    OP_ATOMIC_ACKNOWLEDGE = 0x12,
    OP_COMPARE_SWAP = 0x13,
    OP_FETCH_ADD = 0x14,
    OP_SEND_LAST_INV = 0x16,
    OP_SEND_ONLY_INV = 0x17,
    OP_FLUSH = 0x1c,
    OP_ATOMIC_WRITE = 0x1d,
};

enum opcode_service {
    SERVICE_RC = 0,
    SERVICE_UC = 1,
    SERVICE_RD = 2, /* no opcode of it is in the table */
    SERVICE_UD = 3,
    SERVICE_CNP = 4, /* 0x81 only */
    SERVICE_XRC = 5,
};

enum { OPCODE_CNP = 0x81 };

/* Extended headers, in the order in which they follow the BTH on the wire. */
enum header_flags {
    HDR_XRCETH = 1 << 0,
    HDR_DETH = 1 << 1,
    HDR_FETH = 1 << 2,
    HDR_RETH = 1 << 3,
    HDR_ATOMICETH = 1 << 4,
    HDR_AETH = 1 << 5,
    HDR_ATOMICACKETH = 1 << 6,
    HDR_IMMDT = 1 << 7,
    HDR_IETH = 1 << 8,
    HDR_CNP = 1 << 9, /* a CNP's 16 reserved bytes: zero when sent, ignored when received */
};

enum opcode_flags {
    OPF_SEND = 1 << 0,     /* SEND family: consumes a receive WQE at its first packet */
    OPF_WRITE = 1 << 1,    /* RDMA WRITE family */
    OPF_READ = 1 << 2,     /* READ request */
    OPF_ATOMIC = 1 << 3,   /* CmpSwap or FetchAdd request */
    OPF_RESPONSE = 1 << 4, /* for the completer: ACK, READ response, atomic ACK */
    OPF_FIRST =
        1 << 5, /* exactly one of FIRST MIDDLE LAST ONLY is set for SEND, WRITE, READ resp. */
    OPF_MIDDLE = 1 << 6,
    OPF_LAST = 1 << 7,
    OPF_ONLY = 1 << 8,
    OPF_PAYLOAD = 1 << 9, /* payload allowed */
    OPF_READ_RESP = 1 << 10,
    OPF_IMM = 1 << 11, /* has ImmDt; a WRITE with it consumes a receive WQE */
    OPF_FLUSH = 1 << 12,
    OPF_ATOMIC_WRITE = 1 << 13,                   /* no WRITE: answered by a response of its own */
    OPF_PLACEMENT = OPF_FLUSH | OPF_ATOMIC_WRITE, /* annex A19; each is one packet */
};

struct opcode_info {
    const char *name;     /* "RC SEND Only", ... ; NULL: no such opcode */
    uint16_t headers;     /* enum header_flags */
    uint16_t flags;       /* enum opcode_flags */
    uint8_t header_bytes; /* BTH and extended headers together; of a CNP, all 28 */
    uint8_t service;      /* enum opcode_service */
};

extern const struct opcode_info opcode_table[256];

/* The row of an opcode; its name is NULL when the opcode is not defined. Never NULL itself. */
static inline const struct opcode_info *opcode_info(uint8_t opcode)
{
    return &opcode_table[opcode];
}

static inline uint8_t opcode_make(enum opcode_service service, enum opcode_op op)
{
    return (uint8_t)((unsigned)service << 5 | (unsigned)op);
}

static inline enum opcode_op opcode_op(uint8_t opcode)
{
    return (enum opcode_op)(opcode & 0x1f);
}

#endif
