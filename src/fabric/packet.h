/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet.h: a frame in the fabric: what switches and hosts look at, no bytes. Packets live in one
 * pool and are named by their numbers; queues and wires are lists through them.
 */
#ifndef FABRIC_PACKET_H
#define FABRIC_PACKET_H

#include <stdint.h>

#define PACKET_NONE UINT32_MAX

enum packet_kind {
    PACKET_DATA,
    PACKET_ACK,
    PACKET_NAK, /* seq: what is expected */
    PACKET_CNP,
    PACKET_PFC, /* xoff and xon in dscp and priority, the quanta in flow */
};

enum packet_flag {
    PACKET_CE = 1,     /* congestion experienced */
    PACKET_ECHO = 2,   /* an ACK that says so */
    PACKET_PROBE = 4,  /* its time back is wanted, or is here */
    PACKET_BROKEN = 8, /* the ICRC will say so */
    PACKET_ECT = 16,   /* it may be marked */
};

struct packet {
    _Alignas(64) uint64_t after_ps; /* when the one behind it on the wire has arrived whole */
    uint64_t sent_ps;               /* of a probe */
    uint64_t seq;                   /* first byte in its flow; of an ACK, all before it has come */
    uint32_t next;
    uint32_t flow;
    uint32_t dst;     /* index of the host */
    uint32_t hash;    /* of the flow and direction, for ECMP */
    uint32_t ingress; /* port by which it came into the switch that holds it */
    uint32_t payload; /* of engines: where it is in the memory that all have in common */
    uint16_t bytes;   /* as buffers count it */
    uint16_t payload_bytes;
    uint8_t kind, flags, dscp;
    uint8_t pcp;      /* of its VLAN tag; 0 without one */
    uint8_t priority; /* here; each node looks at the DSCP anew */
};
_Static_assert(sizeof(struct packet) == 64, "a cache line");

struct packet_list {
    uint32_t head, tail; /* PACKET_NONE both when empty */
};

struct packet_pool {
    struct packet *packet;
    uint32_t capacity;
    uint32_t fresh; /* those from here on were never used */
    uint32_t free;  /* list of those given back */
    uint32_t in_use;
};

/* Memory is reserved, and taken from the system when a packet is first used. 0 or -ENOMEM. */
int packet_pool_init(struct packet_pool *pool, uint32_t capacity);
void packet_pool_fini(struct packet_pool *pool);
/* PACKET_NONE: all are in use. Its contents are whatever was left there. */
uint32_t packet_take(struct packet_pool *pool);
void packet_give(struct packet_pool *pool, uint32_t p);

static inline void packet_push(struct packet_pool *pool, struct packet_list *l, uint32_t p)
{
    pool->packet[p].next = PACKET_NONE;
    if (l->head == PACKET_NONE)
        l->head = p;
    else
        pool->packet[l->tail].next = p;
    l->tail = p;
}

/* The list is not empty. */
static inline uint32_t packet_pop(struct packet_pool *pool, struct packet_list *l)
{
    uint32_t p = l->head;
    l->head = pool->packet[p].next;
    if (l->head == PACKET_NONE)
        l->tail = PACKET_NONE;
    return p;
}

#endif
