/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port.h: what passes between the engine and a port. Out: trains of packets, as headers and payload
 * references. In: parsed packets. Bytes on a wire exist only behind a port; a simulated link or
 * shared memory passes these structs as they are.
 */
#ifndef VERBENA_PORT_H
#define VERBENA_PORT_H

#include "verbena/types.h"
#include "wire/iba.h"

enum {
    TRAIN_MAX_PACKETS = 64,
    TRAIN_MAX_SPANS = 160,   /* room for 64 packets of which some cross SGE borders */
    TRAIN_MAX_BYTES = 64512, /* of all packets of a train, so that it fits one UDP_SEGMENT send */
};

/* A piece of payload in memory that belongs to somebody else; valid during the call that hands it
 * over. */
struct span {
    const uint8_t *addr;
    uint32_t bytes;
};

struct train_packet {
    struct roce_headers h; /* complete, pad_bytes included */
    uint32_t payload_bytes;
    uint16_t first_span; /* into train.span[] */
    uint16_t spans;
};

/*
 * A run of packets of one QP that go out together by one path (its own, or that of its datagrams):
 * requests or replies with consecutive PSNs, and behind requests perhaps an ACK. Datagrams are for
 * QPNs of one slot, hence for one process. All have the same size on the wire (packet_bytes: BTH ..
 * ICRC), but the last may be smaller: what UDP_SEGMENT can send in one call.
 */
struct train {
    const struct nic_path *path;
    struct qp *qp; /* whose; NULL: of QP 1 */
    uint32_t packet_bytes;
    uint32_t total_bytes; /* of all packets */
    uint32_t max_bytes;   /* while it is filled: how far; one packet always has room */
    uint16_t packets;     /* >= 1 when handed over */
    uint16_t spans;
    struct train_packet packet[TRAIN_MAX_PACKETS];
    struct span span[TRAIN_MAX_SPANS];
};

/*
 * Where nic_output puts trains. The callee must be done with the train and its spans when it
 * returns (it copies, or sends); it cannot refuse: what it cannot send is lost, as on a wire.
 */
struct nic_sink {
    void (*train)(struct nic_sink *sink, const struct train *t);
    /*
     * May an unreliable QP send to this QP now? No: it waits until nic_retry. A wire takes all
     * that comes, and what a slow receiver has no room for is lost; between processes of a machine
     * there is a choice. NULL: always.
     */
    bool (*room)(struct nic_sink *sink, uint64_t now_ns, const struct nic_path *path, uint32_t qpn);
};

/* One packet that a port received, for nic_input. */
struct rx_packet {
    struct roce_headers h;
    const uint8_t *payload; /* valid during nic_input */
    uint32_t payload_bytes; /* without pad */
    struct net_addr src, dst;
    uint32_t ifindex;      /* interface that it came in by; 0: not known */
    uint8_t traffic_class; /* DSCP << 2 | ECN as it arrived */
    uint8_t hop_limit;     /* as it arrived; 0: not known */
    bool icrc_ok;
};

#endif
