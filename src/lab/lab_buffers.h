/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_buffers.h: the ways in which a message gets from the application's memory into the NIC's and
 * out of it: where copies hide. All but "direct" have memory of their own for the time of a case.
 */
#ifndef LAB_LAB_BUFFERS_H
#define LAB_LAB_BUFFERS_H

#include "lab/lab_case.h"

struct lab_buffers {
    enum lab_way way;
    struct lab_end *e;
    struct lab_side *side;
    uint8_t *heap; /* as large as the pool, not registered but where mr says so */
    uint64_t heap_bytes;
    struct ibv_mr *mr;       /* gather: of the headers; pool: of the receives; else NULL */
    struct ibv_mr **of_slot; /* register: while the slot is posted */
    uint64_t registered_bytes, registered_most_bytes; /* of those */
};

/* 0, or -errno and e->message. */
int lab_buffers_open(struct lab_buffers *b, struct lab_end *e, struct lab_side *side,
                     const struct lab_case *c);
void lab_buffers_close(struct lab_buffers *b);
/* The source's: makes a message and brings it where it is sent from; its slot is posted then. */
int lab_buffers_make(struct lab_buffers *b, const struct lab_case *c, uint64_t sequence);
/* What to post for it, 1 or 2 pieces. */
int lab_buffers_pieces(const struct lab_buffers *b, const struct lab_case *c, uint32_t slot,
                       struct ibv_sge sge[2]);
/* Its completion was seen. */
void lab_buffers_complete(struct lab_buffers *b, uint32_t slot);
/* The target's, pool: a receive of the shared queue, and what came in it copied into its slot. */
uint8_t *lab_buffers_receive(const struct lab_buffers *b, uint32_t buffer);
void lab_buffers_copy_out(struct lab_buffers *b, uint32_t buffer, uint32_t slot, uint32_t length);

#endif
