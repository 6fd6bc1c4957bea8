/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iba.h: the transport headers of InfiniBand as host-order structs (volume 1, chapter 9).
 * Nothing here knows bytes: roce.c converts, opcode.c says which headers an opcode carries.
 */
#ifndef WIRE_IBA_H
#define WIRE_IBA_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/psn.h"

enum {
    BTH_BYTES = 12,
    RETH_BYTES = 16,
    AETH_BYTES = 4,
    ATOMIC_ETH_BYTES = 28,
    ATOMIC_ACK_ETH_BYTES = 8,
    IMMDT_BYTES = 4,
    IETH_BYTES = 4,
    DETH_BYTES = 8,
    XRCETH_BYTES = 4,
    FETH_BYTES = 4,
    CNP_RESERVED_BYTES = 16, /* a CNP's body, all zero (IBA A17.9.3) */
    ICRC_BYTES = 4,
    GRH_BYTES = 40,
    ROCE_UDP_PORT = 4791,
    QPN_MULTICAST = 0xffffff,
    PKEY_DEFAULT = 0xffff,
};

/* Base transport header. */
struct bth {
    uint8_t opcode;
    bool solicited;
    bool mig_req;
    uint8_t pad_bytes; /* 0..3 */
    uint8_t tver;      /* 0 */
    uint16_t pkey;
    bool fecn;
    bool becn;
    uint32_t dest_qp; /* 24 bits */
    bool ack_req;
    struct psn psn;
};

struct reth {
    uint64_t va;
    uint32_t rkey;
    uint32_t dma_len;
};

struct aeth {
    uint8_t syndrome; /* see aeth.h */
    struct psn msn;
};

struct atomic_eth {
    uint64_t va;
    uint32_t rkey;
    uint64_t swap_add;
    uint64_t compare;
};

struct deth {
    uint32_t qkey;
    uint32_t src_qp; /* 24 bits */
};

struct feth {
    uint8_t plt; /* placement type bits, 4 */
    uint8_t sel; /* selectivity level, 2 bits */
};

/*
 * The transport headers of one packet. Which of the optional ones are present is a function of
 * bth.opcode alone (opcode_info().headers); the others are zero.
 */
struct roce_headers {
    struct bth bth;
    struct reth reth;
    struct aeth aeth;
    struct atomic_eth atomic;
    uint64_t atomic_ack; /* original remote value */
    uint32_t immdt;      /* as on the wire: network order, opaque */
    uint32_t ieth;       /* rkey to invalidate */
    struct deth deth;
    uint32_t xrc_srqn; /* 24 bits */
    struct feth feth;
};

#endif
