/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * script.h: packet dialogues against one engine in virtual time. A dialogue is an array of rows:
 * what the peer sends, what the program asks, and exactly what must come out of it. Nothing else
 * may come out: a packet, completion, event or changed byte that no row claims fails the dialogue,
 * and a failure prints the whole dialogue so far.
 *
 *     {IN, OP_SEND_ONLY, .psn = 5, .len = 16, .ack_req = true}, {OUT, OP_ACKNOWLEDGE, .psn = 5,
 * .msn = 1}, {RCQE, WC_RECV, .id = 1, .len = 16}, {MEM, .at = 0, .len = 16},
 */
#ifndef TESTS_SCRIPT_H
#define TESTS_SCRIPT_H

#include "nic/nic.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

enum step_kind {
    END,
    IN,      /* a packet of the peer arrives; what: BTH opcode */
    OUT,     /* the next packet that the engine sends; what: BTH opcode */
    SILENT,  /* nothing is sent */
    POST,    /* post_send; what: enum wr_opcode; err: expected return */
    RECV,    /* post_recv, or to the SRQ when there is one */
    SCQE,    /* next completion of the send CQ; what: enum wc_opcode */
    RCQE,    /* next completion of the receive CQ */
    TIME,    /* ns pass */
    HOLD,    /* ns pass in which timers run, but nobody asks the engine for packets */
    EVENT,   /* next async event; what: enum nic_event_type, -1: none */
    STATE,   /* of the QP; what: enum qp_state */
    COUNT,   /* a counter is n; what: enum nic_counter */
    MODIFY,  /* what: enum qp_state; err: expected return */
    ACCESS,  /* modify RTS -> RTS with access flags n */
    REVOKE,  /* key is deregistered */
    DESTROY, /* srq is destroyed, as SRQ_GONE was from the beginning */
    MEM,    /* len bytes of memory at at hold the incoming message from byte from on, of this tag */
    MSN,    /* the responder has completed msn messages */
    SET,    /* the 8 bytes at at become a */
    CELL,   /* the 8 bytes at at are a */
    ARM,    /* of the receive CQ; what: 1: solicited only */
    REPEAT, /* the next what rows n times; each time PSNs, and MSN (unless hold_msn) and a of OUT,
               are one more, and its place in memory is len further on */
    GRH,    /* the 40 bytes at at are the header of a datagram of len bytes, read once it is there;
               what: BTH opcode; odd: as its IN */
    AWAIT,  /* the QP's first packet is told in RTS, too */
    TRAIN,  /* n trains and no more are asked for; their OUT, MODIFY and REVOKE right behind ask for
               none */
    NOTIFY, /* what: 1: the CQ has notified, 0: it has not */
};

enum key {
    K_ALL,   /* whole memory, all rights */
    K_READ,  /* whole memory, remote read, no local write */
    K_LOCAL, /* whole memory, local write, no remote right */
    K_WRITE, /* whole memory, remote write, not read or atomic */
    K_SMALL, /* its first SMALL_BYTES, all rights */
    K_SKEW,  /* all rights; its address is that of memory, its first byte is memory's 4th */
    K_OTHER, /* whole memory, all rights, in another protection domain */
    K_COUNT,
    K_NONE,   /* no region's */
    K_WINDOW, /* RC: the first SMALL_BYTES, all rights; a type 2 window bound to the QP */
};

/* What is odd about an incoming packet. */
enum odd {
    ODD_SRC = 1 << 0,
    ODD_DST = 1 << 1,
    ODD_QPN = 1 << 2,
    ODD_PKEY = 1 << 3,      /* another one */
    ODD_PKEY_PART = 1 << 4, /* limited membership of the same partition */
    ODD_ICRC = 1 << 5,
    ODD_MIG = 1 << 6, /* MigReq 0 */
    ODD_CE = 1 << 7,
    ODD_V6 = 1 << 8, /* both addresses are IPv6 */
};

enum {
    MEMORY_BYTES = 65536,
    SMALL_BYTES = 4096,
    PEER_QPN = 0x123456,
    PEER_RKEY = 0xabcd1234,
};
#define PEER_SRQN 0x777777u /* that an XRC INI QP sends to */
/* Shared receive queues that an XRC TGT QP may find (.srq), or not. */
enum srq_of { SRQ_OWN, SRQ_OTHER_PD, SRQ_OTHER_DOMAIN, SRQ_GONE, SRQ_COUNT };
#define PEER_VA 0x700000000000ull
#define QKEY    0x11111111u /* of a UD QP */
/* Where a datagram goes (.ah): to the peer from its own source port, or by another path. */
enum { AH_PEER, AH_SPORT, AH_OTHER, AH_NONE };
/* Syndromes for .syn; 0 is an ACK that says nothing of credits (IN), or any ACK (OUT). */
#define CREDITS(code) (0x100 | (code))
#define RNR(code)     (0x20 | (code))
#define NAK(code)     (0x60 | (code))

struct step {
    enum step_kind kind;
    int what;
    uint32_t id;  /* wr_id */
    uint32_t psn; /* IN, OUT */
    uint32_t msn; /* IN, OUT with an AETH */
    uint32_t len; /* bytes of payload, message or piece of memory */
    uint32_t at;  /* POST, RECV, MEM: place in memory; OUT: of the payload in memory; IN: of the
                     payload in the message */
    uint32_t from;
    uint64_t va; /* relative to memory (IN) or to the peer's memory (POST, OUT) */
    uint32_t dma_len;
    /* atomics: add or swap, compare; OUT ATOMIC_ACKNOWLEDGE and CELL: value; FLUSH: enum
       flush_flags, and POST: bytes; POST of an ATOMIC_WRITE without SGEs: its 8 bytes */
    uint64_t a, b;
    uint64_t ns;
    uint64_t n;
    uint32_t imm; /* or key to invalidate (our own: enum key); in a CQE as well */
    uint16_t syn;
    uint8_t tag;   /* of IN and MEM: another content */
    uint8_t sges;  /* POST, RECV: equal pieces; 0: one. OUT: not looked at */
    enum key key;  /* IN: rkey; POST, RECV: lkey; REVOKE */
    uint32_t qkey; /* UD: IN, POST, OUT; 0: QKEY */
    uint32_t qpn;  /* UD: POST, OUT: destination; 0: PEER_QPN */
    uint8_t ah;    /* UD: POST, OUT */
    uint8_t srq;   /* XRC: IN, RECV, DESTROY: enum srq_of */
    bool ack_req, se;
    bool hold_msn; /* REPEAT */
    enum wc_status status;
    unsigned flags; /* POST: enum wr_flags; CQE: enum wc_flags */
    unsigned odd;
    int err;
};

struct setup {
    uint16_t mtu;
    uint32_t sq_psn, rq_psn;
    unsigned access;
    uint8_t max_rd, max_dest_rd, timeout, retry, rnr_retry, min_rnr;
    enum qp_state state; /* that the dialogue begins in */
    bool srq, unsignalled;
    bool ud; /* a UD QP; mtu is the port's */
    bool uc;
    bool ini, tgt; /* XRC: one half; tgt: with enum srq_of */
    uint32_t window_bytes, wrs, cqe;
};

struct dialogue {
    const char *name; /* <statement>__<case> */
    bool invalid;     /* the peer or the program does something wrong, or the network loses */
    struct setup with;
    const struct step *steps;
};

#pragma GCC diagnostic ignored "-Woverride-init"
#define WITH(...)                                                                                  \
    {                                                                                              \
        .mtu = 256, .sq_psn = 100, .rq_psn = 5,                                                    \
        .access =                                                                                  \
            ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL, \
        .max_rd = 4, .max_dest_rd = 4, .timeout = 0, .retry = 7, .rnr_retry = 7, .min_rnr = 12,    \
        .state = QP_STATE_RTS, .wrs = 16, .cqe = 64, __VA_ARGS__                                   \
    }
#define STEPS(...)                                                                                 \
    (const struct step[])                                                                          \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            END                                                                                    \
        }                                                                                          \
    }

/* Runs each dialogue as a test of its own name; returns the number that failed. */
int script_run(const char *group, const struct dialogue *d, size_t n);

#endif
