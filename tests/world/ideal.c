/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ideal.c: the same work requests on a perfect instant network: each packet that the responder says
 * it has taken (its expected PSN) is executed once, in order, on a copy of the memory. What no
 * packet may touch stays as it was, so that comparing whole arenas also looks after every guard
 * byte.
 */
#include <assert.h>
#include <string.h>

#include "world.h"

enum { LONGEST_BYTES = 2 << 20 };

static uint8_t message[LONGEST_BYTES];

static uint8_t *ideal_at(struct world *w, struct direction *d, enum region_kind kind, uint32_t at)
{
    int node = kind == REGION_SRC || kind == REGION_SINK ? d->from : d->to;
    return w->node[node].ideal + world_region(w, d, kind)->at + at;
}

/* The first n bytes of a slice list to or from a flat buffer. */
static void copy_slices(struct world *w, struct direction *d, const struct slice *slice, int slices,
                        uint8_t *flat, uint32_t n, bool to_slices)
{
    for (int i = 0; i < slices && n > 0; i++) {
        uint32_t piece = slice[i].bytes < n ? slice[i].bytes : n;
        uint8_t *at = ideal_at(w, d, slice[i].region, slice[i].at);
        if (to_slices)
            memcpy(at, flat, piece);
        else
            memcpy(flat, at, piece);
        flat += piece;
        n -= piece;
    }
}

/* Packets [0, limit) of the direction, as far as they belong to this op, in bytes. */
static uint32_t done_bytes(const struct world *w, const struct op *op, uint32_t limit)
{
    if (limit <= op->first)
        return 0;
    uint32_t packets = limit - op->first;
    return packets >= op->packets ? op->length : packets * w->opt.mtu;
}

static void run_atomic(struct world *w, struct direction *d, struct op *op, bool answered)
{
    uint8_t *cell = ideal_at(w, d, op->remote_region, op->remote_at);
    uint64_t before, after;
    memcpy(&before, cell, 8);
    if (op->opcode == WR_ATOMIC_FETCH_AND_ADD)
        after = before + op->compare_add;
    else
        after = before == op->compare_add ? op->swap : before;
    memcpy(cell, &after, 8);
    if (!answered)
        return;
    if (op->remote_region != REGION_SHARED) {
        copy_slices(w, d, op->slice, op->slices, (uint8_t *)&before, 8, true);
        return;
    }
    /* Several QPs add to it in an order of their own: only the sum is known. */
    for (int i = 0; i < op->slices; i++) {
        uint32_t at = d->region[REGION_SINK].at + op->slice[i].at;
        memcpy(w->node[d->from].ideal + at, w->node[d->from].mem + at, op->slice[i].bytes);
    }
}

static void run_op(struct world *w, struct direction *d, struct op *op, uint32_t *messages,
                   uint32_t executed, uint32_t answered)
{
    uint32_t n = done_bytes(w, op, executed);
    bool begun = executed > op->first;
    assert(op->length <= LONGEST_BYTES);
    switch (op->opcode) {
    case WR_SEND:
    case WR_SEND_WITH_IMM:
    case WR_SEND_WITH_INV:
        if (n > 0 && (d->pool->dir >= 0 || *messages < d->recv_seen)) {
            /* An RQ serves in order; what an SRQ gave, the completion says. */
            uint32_t which = d->pool->dir >= 0 ? *messages : d->recv_map[*messages];
            struct recv *r = &d->pool->recv[which];
            copy_slices(w, d, op->slice, op->slices, message, n, false);
            copy_slices(w, d, r->slice, r->slices, message, n, true);
        }
        break;
    case WR_RDMA_WRITE:
    case WR_RDMA_WRITE_WITH_IMM:
        copy_slices(w, d, op->slice, op->slices, message, n, false);
        memcpy(ideal_at(w, d, REGION_TARGET, op->remote_at), message, n);
        break;
    case WR_RDMA_READ:
        n = done_bytes(w, op, answered);
        copy_slices(w, d, op->slice, op->slices, ideal_at(w, d, op->remote_region, op->remote_at),
                    n, true);
        break;
    case WR_LOCAL_INV:
        break;
    default:
        if (begun)
            run_atomic(w, d, op, answered > op->first);
        break;
    }
    if (op_takes_receive(op->opcode))
        (*messages)++;
}

void ideal_run(struct world *w)
{
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        uint32_t executed = world_executed(w, d);
        uint32_t answered = world_answered(w, d);
        uint32_t messages = 0;
        for (uint32_t k = 0; k < d->ops; k++)
            run_op(w, d, &d->op[k], &messages, executed, answered);
    }
}
