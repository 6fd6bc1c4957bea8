/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opcode.c: the table behind opcode.h. RC, UC and XRC are one list of operations each; XRC requests
 * carry the XRCETH right behind the BTH, XRC responses do not.
 */
#include "wire/opcode.h"

#include "wire/iba.h"

#define IF(set, flag, bytes) (((set) & (flag)) != 0 ? (bytes) : 0)
#define HEADER_BYTES(set)                                                                          \
    (BTH_BYTES + IF(set, HDR_XRCETH, XRCETH_BYTES) + IF(set, HDR_DETH, DETH_BYTES) +               \
     IF(set, HDR_FETH, FETH_BYTES) + IF(set, HDR_RETH, RETH_BYTES) +                               \
     IF(set, HDR_ATOMICETH, ATOMIC_ETH_BYTES) + IF(set, HDR_AETH, AETH_BYTES) +                    \
     IF(set, HDR_ATOMICACKETH, ATOMIC_ACK_ETH_BYTES) + IF(set, HDR_IMMDT, IMMDT_BYTES) +           \
     IF(set, HDR_IETH, IETH_BYTES) + IF(set, HDR_CNP, CNP_RESERVED_BYTES))

#define ROW(svc, op, label, set, fl)                                                               \
    [SERVICE_##svc << 5 | (op)] = {.name = #svc " " label,                                         \
                                   .headers = (set),                                               \
                                   .flags = (fl),                                                  \
                                   .header_bytes = HEADER_BYTES(set),                              \
                                   .service = SERVICE_##svc}

#define SEND_P  (OPF_SEND | OPF_PAYLOAD)
#define WRITE_P (OPF_WRITE | OPF_PAYLOAD)
#define RESP_P  (OPF_RESPONSE | OPF_READ_RESP | OPF_PAYLOAD)

/* What UC, RC and XRC have in common; x is the XRCETH or nothing. */
#define SEND_WRITE_ROWS(s, x)                                                                      \
    ROW(s, OP_SEND_FIRST, "SEND First", x, SEND_P | OPF_FIRST),                                    \
        ROW(s, OP_SEND_MIDDLE, "SEND Middle", x, SEND_P | OPF_MIDDLE),                             \
        ROW(s, OP_SEND_LAST, "SEND Last", x, SEND_P | OPF_LAST),                                   \
        ROW(s, OP_SEND_LAST_IMM, "SEND Last with Immediate", (x) | HDR_IMMDT,                      \
            SEND_P | OPF_LAST | OPF_IMM),                                                          \
        ROW(s, OP_SEND_ONLY, "SEND Only", x, SEND_P | OPF_ONLY),                                   \
        ROW(s, OP_SEND_ONLY_IMM, "SEND Only with Immediate", (x) | HDR_IMMDT,                      \
            SEND_P | OPF_ONLY | OPF_IMM),                                                          \
        ROW(s, OP_WRITE_FIRST, "RDMA WRITE First", (x) | HDR_RETH, WRITE_P | OPF_FIRST),           \
        ROW(s, OP_WRITE_MIDDLE, "RDMA WRITE Middle", x, WRITE_P | OPF_MIDDLE),                     \
        ROW(s, OP_WRITE_LAST, "RDMA WRITE Last", x, WRITE_P | OPF_LAST),                           \
        ROW(s, OP_WRITE_LAST_IMM, "RDMA WRITE Last with Immediate", (x) | HDR_IMMDT,               \
            WRITE_P | OPF_LAST | OPF_IMM),                                                         \
        ROW(s, OP_WRITE_ONLY, "RDMA WRITE Only", (x) | HDR_RETH, WRITE_P | OPF_ONLY),              \
        ROW(s, OP_WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate", (x) | HDR_RETH | HDR_IMMDT,    \
            WRITE_P | OPF_ONLY | OPF_IMM)

/* What only the services with acknowledgements have. */
#define ACKED_ROWS(s, x)                                                                           \
    ROW(s, OP_READ_REQUEST, "RDMA READ Request", (x) | HDR_RETH, OPF_READ),                        \
        ROW(s, OP_READ_RESP_FIRST, "RDMA READ response First", HDR_AETH, RESP_P | OPF_FIRST),      \
        ROW(s, OP_READ_RESP_MIDDLE, "RDMA READ response Middle", 0, RESP_P | OPF_MIDDLE),          \
        ROW(s, OP_READ_RESP_LAST, "RDMA READ response Last", HDR_AETH, RESP_P | OPF_LAST),         \
        ROW(s, OP_READ_RESP_ONLY, "RDMA READ response Only", HDR_AETH, RESP_P | OPF_ONLY),         \
        ROW(s, OP_ACKNOWLEDGE, "Acknowledge", HDR_AETH, OPF_RESPONSE),                             \
        ROW(s, OP_ATOMIC_ACKNOWLEDGE, "ATOMIC Acknowledge", HDR_AETH | HDR_ATOMICACKETH,           \
            OPF_RESPONSE),                                                                         \
        ROW(s, OP_COMPARE_SWAP, "CmpSwap", (x) | HDR_ATOMICETH, OPF_ATOMIC),                       \
        ROW(s, OP_FETCH_ADD, "FetchAdd", (x) | HDR_ATOMICETH, OPF_ATOMIC),                         \
        ROW(s, OP_SEND_LAST_INV, "SEND Last with Invalidate", (x) | HDR_IETH, SEND_P | OPF_LAST),  \
        ROW(s, OP_SEND_ONLY_INV, "SEND Only with Invalidate", (x) | HDR_IETH, SEND_P | OPF_ONLY),  \
        ROW(s, OP_FLUSH, "FLUSH", (x) | HDR_FETH | HDR_RETH, OPF_FLUSH),                           \
        ROW(s, OP_ATOMIC_WRITE, "ATOMIC WRITE", (x) | HDR_RETH, OPF_ATOMIC_WRITE | OPF_PAYLOAD)

const struct opcode_info opcode_table[256] = {
    SEND_WRITE_ROWS(RC, 0),
    ACKED_ROWS(RC, 0),
    SEND_WRITE_ROWS(UC, 0),
    ROW(UD, OP_SEND_ONLY, "SEND Only", HDR_DETH, SEND_P | OPF_ONLY),
    ROW(UD, OP_SEND_ONLY_IMM, "SEND Only with Immediate", HDR_DETH | HDR_IMMDT,
        SEND_P | OPF_ONLY | OPF_IMM),
    [OPCODE_CNP] = {.name = "CNP",
                    .headers = HDR_CNP,
                    .header_bytes = HEADER_BYTES(HDR_CNP),
                    .service = SERVICE_CNP},
    SEND_WRITE_ROWS(XRC, HDR_XRCETH),
    ACKED_ROWS(XRC, HDR_XRCETH),
};
