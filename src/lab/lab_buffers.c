/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_buffers.c: each way does what programs do that have it: no more copies than theirs, and no
 * fewer.
 */
#include "lab/lab_buffers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEAD_BYTES = sizeof(struct lab_slot_head) };

static int fail(struct lab_buffers *b, int error, const char *what)
{
    snprintf(b->e->message, sizeof(b->e->message), "buffers: %s: %s", what, strerror(error));
    return error > 0 ? -error : -EIO;
}

static uint8_t *heap_of(const struct lab_buffers *b, uint32_t slot)
{
    return b->heap == NULL ? NULL : b->heap + (uint64_t)slot * b->e->rig.pool.slot_bytes;
}

static bool makes_in_heap(enum lab_way way)
{
    return way == LAB_BOUNCE || way == LAB_TEMPORARY || way == LAB_REGISTER;
}

int lab_buffers_open(struct lab_buffers *b, struct lab_end *e, struct lab_side *side,
                     const struct lab_case *c)
{
    const struct lab_pool *p = &e->rig.pool;
    bool receives = c->way == LAB_SHARED_POOL && e->serving;
    *b = (struct lab_buffers){.way = c->way, .e = e, .side = side};
    if (c->way == LAB_DIRECT || c->way == LAB_INLINE || (e->serving && !receives) ||
        (!e->serving && c->way == LAB_SHARED_POOL))
        return 0;
    b->heap_bytes = (uint64_t)p->slots * p->slot_bytes;
    b->heap = mmap(NULL, b->heap_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (b->heap == MAP_FAILED) {
        b->heap = NULL;
        return fail(b, ENOMEM, "as much memory as the pool has");
    }
    memset(b->heap, 0, b->heap_bytes);
    b->of_slot = calloc(p->slots, sizeof(struct ibv_mr *));
    if (b->of_slot == NULL)
        return fail(b, ENOMEM, "regions");
    if (c->way == LAB_GATHER || receives)
        b->mr = ibv_reg_mr(e->rig.pd, b->heap, b->heap_bytes, IBV_ACCESS_LOCAL_WRITE);
    return (c->way == LAB_GATHER || receives) && b->mr == NULL ? fail(b, errno, "ibv_reg_mr") : 0;
}

void lab_buffers_close(struct lab_buffers *b)
{
    for (uint32_t i = 0; b->of_slot != NULL && i < b->e->rig.pool.slots; i++)
        if (b->of_slot[i] != NULL)
            ibv_dereg_mr(b->of_slot[i]);
    free(b->of_slot);
    if (b->mr != NULL)
        ibv_dereg_mr(b->mr);
    if (b->heap != NULL)
        munmap(b->heap, b->heap_bytes);
    *b = (struct lab_buffers){0};
}

/* The application has a header and a body in different places; they are to be one message. */
static void join(uint8_t *to, const struct lab_slot_head *head, const uint8_t *body,
                 uint32_t length)
{
    memcpy(to, head, HEAD_BYTES);
    memcpy(to + HEAD_BYTES, body, length - HEAD_BYTES);
}

static int bring(struct lab_buffers *b, const struct lab_case *c, uint32_t slot)
{
    uint8_t *to = lab_slot_bytes(&b->e->rig.pool, slot), *from = heap_of(b, slot);
    struct lab_slot_head head;
    uint64_t start = lab_now_ns();
    switch (b->way) {
    case LAB_BOUNCE:
        memcpy(to, from, c->size);
        break;
    case LAB_TEMPORARY:
        memcpy(&head, from, HEAD_BYTES);
        start = lab_now_ns();
        join(to, &head, from + HEAD_BYTES, c->size);
        break;
    case LAB_GATHER: /* that a header is elsewhere is the application's doing; its old place tells
                        mistakes */
        memcpy(from, to, HEAD_BYTES);
        memset(to, 0xee, HEAD_BYTES);
        return 0;
    case LAB_REGISTER:
        b->of_slot[slot] = ibv_reg_mr(b->e->rig.pd, from, c->size, 0);
        lab_side_spent(b->side, LAB_PART_REGISTER, start);
        if (b->of_slot[slot] == NULL)
            return fail(b, errno, "ibv_reg_mr of a message");
        b->registered_bytes += c->size;
        if (b->registered_bytes > b->registered_most_bytes)
            b->registered_most_bytes = b->registered_bytes;
        return 0;
    default:
        return 0;
    }
    lab_side_spent(b->side, LAB_PART_COPY, start);
    return 0;
}

int lab_buffers_make(struct lab_buffers *b, const struct lab_case *c, uint64_t sequence)
{
    uint32_t slot = lab_case_slot(b->e, sequence);
    uint8_t *in = makes_in_heap(b->way) ? heap_of(b, slot) : lab_slot_bytes(&b->e->rig.pool, slot);
    int error = lab_case_make(b->e, b->side, c, sequence, in);
    if (error == 0)
        error = bring(b, c, slot);
    return error == 0 ? lab_case_post(b->e, c, sequence) : error;
}

int lab_buffers_pieces(const struct lab_buffers *b, const struct lab_case *c, uint32_t slot,
                       struct ibv_sge sge[2])
{
    uint8_t *bytes = lab_slot_bytes(&b->e->rig.pool, slot);
    uint32_t length = c->op == LAB_ATOMIC ? 8 : c->size;
    sge[0] = (struct ibv_sge){(uintptr_t)bytes, length, b->e->rig.mr->lkey};
    if (b->way == LAB_REGISTER)
        sge[0] = (struct ibv_sge){(uintptr_t)heap_of(b, slot), length, b->of_slot[slot]->lkey};
    if (b->way != LAB_GATHER)
        return 1;
    sge[0] = (struct ibv_sge){(uintptr_t)heap_of(b, slot), HEAD_BYTES, b->mr->lkey};
    sge[1] =
        (struct ibv_sge){(uintptr_t)bytes + HEAD_BYTES, length - HEAD_BYTES, b->e->rig.mr->lkey};
    return 2;
}

void lab_buffers_complete(struct lab_buffers *b, uint32_t slot)
{
    if (b->way != LAB_REGISTER)
        return;
    uint64_t start = lab_now_ns();
    b->registered_bytes -= b->of_slot[slot]->length;
    ibv_dereg_mr(b->of_slot[slot]);
    b->of_slot[slot] = NULL;
    lab_side_spent(b->side, LAB_PART_REGISTER, start);
}

uint8_t *lab_buffers_receive(const struct lab_buffers *b, uint32_t buffer)
{
    return heap_of(b, buffer);
}

void lab_buffers_copy_out(struct lab_buffers *b, uint32_t buffer, uint32_t slot, uint32_t length)
{
    uint64_t start = lab_now_ns();
    memcpy(lab_slot_bytes(&b->e->rig.pool, slot), heap_of(b, buffer), length);
    lab_side_spent(b->side, LAB_PART_COPY, start);
}
