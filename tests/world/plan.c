/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plan.c: draws what happens in one world: the swarm options, the work requests of each direction,
 * the receives that fit them, at most one bad work request a pair, and where all of it lies in
 * memory. What one QP writes, no other touches, and a READ never meets a WRITE that is not fenced
 * off, so that the ideal model can say exactly what must come out.
 */
#include <assert.h>
#include <string.h>

#include "small.h"
#include "wire/aeth.h"
#include "world.h"

enum { MAX_SINK_BYTES = 1 << 20 }; /* results of one direction */

static bool one_in(struct world *w, uint32_t n)
{
    return tape_below(w->tape, n) == n - 1;
}

static uint32_t pick(struct world *w, const uint32_t *of, uint32_t n)
{
    return of[tape_below(w->tape, n)];
}

#define PICK(w, ...)                                                                               \
    pick(w, (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

bool op_takes_receive(enum wr_opcode opcode)
{
    return opcode == WR_SEND || opcode == WR_SEND_WITH_IMM || opcode == WR_SEND_WITH_INV ||
           opcode == WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(enum wr_opcode opcode)
{
    return opcode == WR_ATOMIC_CMP_AND_SWP || opcode == WR_ATOMIC_FETCH_AND_ADD;
}

bool op_is_fetch(const struct op *op)
{
    return op->opcode == WR_RDMA_READ || is_atomic(op->opcode);
}

static const enum wr_opcode all_ops[] = {
    WR_SEND,
    WR_RDMA_WRITE,
    WR_RDMA_READ,
    WR_SEND_WITH_IMM,
    WR_SEND_WITH_INV,
    WR_RDMA_WRITE_WITH_IMM,
    WR_ATOMIC_FETCH_AND_ADD,
    WR_ATOMIC_CMP_AND_SWP,
    WR_LOCAL_INV,
};

enum { OPCODES = sizeof(all_ops) / sizeof(all_ops[0]) };

static void draw_shape(struct world *w)
{
    struct options *o = &w->opt;
    o->nodes = (int)PICK(w, 2, 2, 2, 2, 3, 4, 1);
    o->pairs = (int)PICK(w, 1, 1, 2, 2, 4, 4, 1, 2, 16);
    o->mtu = PICK(w, 256, 256, 512, 1024, 1024, 2048, 4096);
    o->big = one_in(w, 16);
    o->ops_max = o->big ? 6 : PICK(w, 4, 12, 24, 64);
    if (o->pairs >= 4 && o->ops_max > 24)
        o->ops_max = 24;
    if (o->pairs > 4)
        o->ops_max = 5;
    o->ops_min = o->ops_max / 3;
    o->max_len = o->big ? 300 * 1024 : o->mtu * PICK(w, 1, 3, 8, 20);
    if (!o->big && o->max_len > 32768)
        o->max_len = 32768;
    if (o->big && o->pairs > 2)
        o->pairs = 2;
    if (o->big && one_in(w, 8)) {
        o->max_len = 1 << 20;
        o->ops_max = 2;
        o->pairs = 1;
    }
    bool any = false;
    for (int i = 0; i < OPCODES; i++) {
        o->op_weight[all_ops[i]] = one_in(w, 2) ? tape_range(w->tape, 1, 4) : 0;
        any = any || o->op_weight[all_ops[i]] != 0;
    }
    if (!any)
        o->op_weight[WR_SEND] = 1;
    o->send_depth = PICK(w, 32, 1, 2, 5, 16, 64);
    o->recv_depth = PICK(w, 32, 1, 2, 3, 7, 64);
    o->sges = PICK(w, 1, 2, 3, MAX_SLICES);
    o->inline_bytes = PICK(w, 0, 16, 64, 512);
    o->unsignalled_ppm = PICK(w, 0, 300000, 900000);
    o->fence_ppm = PICK(w, 0, 0, 200000);
    o->solicited_ppm = PICK(w, 0, 300000);
    o->inline_ppm = PICK(w, 0, 300000);
    o->srq = one_in(w, 4) && !o->big;
    o->lives = one_in(w, 4) && o->pairs <= 4 && !o->big;
    o->keys = one_in(w, 6);
    o->forged = one_in(w, 6);
    o->overflow = one_in(w, 16) && !o->srq && !o->lives;
    if (o->srq && o->max_len > 8192)
        o->max_len = 8192;
    o->sig_all = one_in(w, 8);
    o->events = (enum event_mode)PICK(w, 0, 0, 0, 0, EVENTS_ANY, EVENTS_SOLICITED, EVENTS_MIXED);
    o->v6 = one_in(w, 2);
    o->raw = one_in(w, 4);
    o->cq_mode = (int)tape_below(w->tape, o->pairs > 4 ? 2 : 3);
    o->srq_limit = o->srq && one_in(w, 2) ? tape_range(w->tape, 1, o->recv_depth) : 0;
    uint8_t least = MAX_RD_ATOMIC;
    for (int i = 0; i < NODES; i++) {
        o->dest_rd_atomic[i] = (uint8_t)PICK(w, 16, 1, 2, 4, 7);
        least = o->dest_rd_atomic[i] < least ? o->dest_rd_atomic[i] : least;
    }
    for (int i = 0; i < NODES; i++)
        o->rd_atomic[i] = (uint8_t)tape_range(w->tape, 1, least);
    o->window_bytes = PICK(w, 0, 4096, 16384, 65536, 1 << 20);
}

static void draw_times(struct world *w)
{
    struct options *o = &w->opt;
    o->latency_ns = PICK(w, 1000, 0, 100, 20000, 200000);
    o->jitter_ns = one_in(w, 3) ? o->latency_ns : 0;
    o->byte_ns_x16 = PICK(w, 0, 1, 16);
    o->tick_ns = PICK(w, 0, 0, 500, 10000);
    o->post_gap_ns = PICK(w, 0, 1000, 50000);
    o->recv_gap_ns = PICK(w, 0, 0, 1000, 50000, 1000000);
    o->poll_gap_ns = PICK(w, 0, 0, 1000, 50000);
    o->post_burst = PICK(w, 64, 1, 2, 8);
    o->recv_burst = PICK(w, 64, 1, 3);
    o->poll_max = PICK(w, 16, 1, 3);
    o->input_batch = PICK(w, 32, 1, 4);
    o->max_trains = PICK(w, 8, 1, 2);
    o->rnr_timer = (uint8_t)PICK(w, 1, 2, 5, 12, 20, tape_below(w->tape, 32));
}

static void draw_faults(struct world *w)
{
    struct options *o = &w->opt;
    o->perfect = one_in(w, 8);
    o->limited = !one_in(w, 4);
    if (o->perfect)
        return;
    o->drop_ppm = PICK(w, 10000, 0, 1000, 50000, 200000);
    o->dup_ppm = PICK(w, 10000, 0, 0, 100000);
    o->reorder_ppm = PICK(w, 10000, 0, 0, 100000);
    o->reorder_ns = PICK(w, 2000, 50000, 500000) + o->latency_ns;
    o->corrupt_ppm = PICK(w, 0, 0, 10000, 50000);
    o->down_ppm = PICK(w, 0, 0, 2000);
    o->down_ns = PICK(w, 10000, 200000, 2000000);
    o->fault_packets = PICK(w, 1000, 200, 5000);
    if (!o->limited && one_in(w, 4)) {
        o->shift_packets = tape_range(w->tape, 1, 200);
        o->latency2_ns = o->latency_ns / 4 + tape_below(w->tape, 50000);
    }
}

/* A timeout that no healthy answer can miss when faults must not use up the retries. */
static void draw_retries(struct world *w)
{
    struct options *o = &w->opt;
    uint64_t window = o->window_bytes == 0 ? 256 * 1024 : o->window_bytes;
    uint64_t round = 2 * ((uint64_t)o->latency_ns + o->jitter_ns + o->reorder_ns) +
                     window * o->byte_ns_x16 / 16 * 2 * (uint64_t)o->pairs + 2 * o->latency2_ns +
                     8 * (uint64_t)o->tick_ns * (1 + window / 4096) + 1000;
    uint8_t code = 1;
    while (code < 31 && aeth_ack_timeout_ns(code) < round * 4)
        code++;
    o->timeout = o->perfect && one_in(w, 2) ? 0 : code;
    o->retry_cnt = (uint8_t)PICK(w, 7, 3, 4, 5, 6);
    o->rnr_exhausted = one_in(w, 8);
    o->rnr_retry = o->rnr_exhausted ? (uint8_t)tape_below(w->tape, 7) : 7;
    if (!o->limited && o->timeout != 0) {
        o->retry_cnt = (uint8_t)PICK(w, 7, 7, 0, 1, 2, 3);
        o->timeout = (uint8_t)(code - tape_below(w->tape, code > 5 ? 5 : code));
        o->rnr_exhausted = one_in(w, 3);
        o->rnr_retry = o->rnr_exhausted ? (uint8_t)tape_below(w->tape, 7) : 7;
    }
}

static enum wr_opcode draw_opcode(struct world *w, uint32_t index)
{
    if (w->opt.small)
        return small_opcode(w, index);
    unsigned sum = 0;
    for (int i = 0; i < OPCODES; i++)
        sum += w->opt.op_weight[all_ops[i]];
    unsigned at = tape_below(w->tape, sum);
    for (int i = 0; i < OPCODES; i++) {
        if (at < w->opt.op_weight[all_ops[i]])
            return all_ops[i];
        at -= w->opt.op_weight[all_ops[i]];
    }
    return WR_SEND;
}

static uint32_t draw_length(struct world *w)
{
    const struct options *o = &w->opt;
    uint32_t n;
    if (o->small)
        return small_length(w);
    switch (tape_below(w->tape, 10)) {
    case 0:
        n = tape_below(w->tape, 64);
        break;
    case 1:
        n = 0;
        break;
    case 2:
        n = 1;
        break;
    case 3:
        n = o->mtu - 1;
        break;
    case 4:
        n = o->mtu;
        break;
    case 5:
        n = o->mtu + 1;
        break;
    case 6:
        n = o->mtu * tape_range(w->tape, 2, 4) - 1 + tape_below(w->tape, 3);
        break;
    default:
        n = tape_below(w->tape, o->max_len + 1);
        break;
    }
    return n < o->max_len ? n : o->max_len;
}

/*
 * Splits n bytes into up to max slices of a region; some may be empty. At random places of a region
 * that is only read (cursor NULL), else one after another with gaps.
 */
static int draw_slices(struct world *w, struct slice *out, enum region_kind kind, uint32_t n,
                       uint32_t max, uint32_t region_bytes, uint32_t *cursor)
{
    uint32_t count = tape_range(w->tape, 1, max);
    if (n == 0 && tape_below(w->tape, 2) == 1)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t piece = i == count - 1 ? n : tape_below(w->tape, n + 1);
        out[i] = (struct slice){.region = kind, .bytes = piece};
        if (cursor != NULL) {
            *cursor += tape_below(w->tape, 4);
            out[i].at = *cursor;
            *cursor += piece;
        } else {
            out[i].at = tape_below(w->tape, region_bytes - piece + 1);
        }
        n -= piece;
    }
    return (int)count;
}

static void draw_atomic(struct world *w, struct direction *d, struct op *op, uint32_t *sink)
{
    op->length = 8;
    bool shared = op->opcode == WR_ATOMIC_FETCH_AND_ADD && tape_below(w->tape, 4) == 3;
    op->remote_region = shared ? REGION_SHARED : REGION_CELLS;
    op->remote_at = tape_below(w->tape, SHARED_CELLS) * 8;
    op->compare_add = tape_u64(w->tape);
    op->swap = tape_u64(w->tape);
    /* Some compares are meant to hit; ideal values are not known yet, small ones collide. */
    if (op->opcode == WR_ATOMIC_CMP_AND_SWP) {
        op->compare_add = tape_below(w->tape, 3);
        op->swap = tape_below(w->tape, 3);
    }
    op->slices = draw_slices(w, op->slice, REGION_SINK, 8, w->opt.sges, 0, sink);
    (void)d;
}

static void draw_remote(struct world *w, struct direction *d, struct op *op, bool *read_target,
                        uint32_t *sink)
{
    uint32_t room = d->region[REGION_TARGET].bytes - op->length;
    op->remote_at = tape_below(w->tape, room + 1);
    if (op->opcode == WR_RDMA_READ) {
        bool target = tape_below(w->tape, 3) == 2;
        op->remote_region = target ? REGION_TARGET : REGION_RDSRC;
        *read_target = *read_target || target;
        op->slices = draw_slices(w, op->slice, REGION_SINK, op->length, w->opt.sges, 0, sink);
        return;
    }
    op->remote_region = REGION_TARGET;
    /* A READ may be answered with what a later WRITE left, unless that one is fenced. */
    if (*read_target)
        op->flags |= WR_FENCE;
}

static void draw_op(struct world *w, struct direction *d, uint32_t index, bool *read_target,
                    uint32_t *sink)
{
    const struct options *o = &w->opt;
    struct op *op = &d->op[index];
    *op = (struct op){.opcode = draw_opcode(w, index), .inv = -1};
    if (op->opcode == WR_SEND_WITH_INV && d->invs == MAX_INV)
        op->opcode = WR_SEND;
    if (op->opcode == WR_LOCAL_INV && d->local_invs == MAX_INV)
        op->opcode = WR_RDMA_WRITE;
    if (tape_chance(w->tape, o->fence_ppm))
        op->flags |= WR_FENCE;
    if (tape_chance(w->tape, o->solicited_ppm))
        op->flags |= WR_SOLICITED;
    op->imm = (uint32_t)tape_u64(w->tape);
    if (is_atomic(op->opcode)) {
        draw_atomic(w, d, op, sink);
    } else if (op->opcode != WR_LOCAL_INV) {
        op->length = draw_length(w);
        if (*sink + op->length > MAX_SINK_BYTES)
            op->length = 1;
        if (op->opcode == WR_RDMA_READ || op->opcode == WR_RDMA_WRITE ||
            op->opcode == WR_RDMA_WRITE_WITH_IMM)
            draw_remote(w, d, op, read_target, sink);
    }
    if (op->flags & WR_FENCE)
        *read_target = op->opcode == WR_RDMA_READ && op->remote_region == REGION_TARGET;
    if (op->opcode == WR_SEND_WITH_INV)
        op->inv = d->invs++;
    if (op->opcode == WR_LOCAL_INV)
        op->inv = d->local_invs++;
    if (!op_is_fetch(op) && op->opcode != WR_LOCAL_INV) {
        op->slices = draw_slices(w, op->slice, REGION_SRC, op->length, o->sges,
                                 d->region[REGION_SRC].bytes, NULL);
        if (op->length <= o->inline_bytes && tape_chance(w->tape, o->inline_ppm))
            op->flags |= WR_INLINE;
    }
    op->packets = op->length == 0 || is_atomic(op->opcode) ? 1 : (op->length - 1) / o->mtu + 1;
    if (op->opcode == WR_LOCAL_INV)
        op->packets = 0;
    op->first = d->packets;
    d->packets += op->packets;
}

/* Which are signalled: the last always, and often enough that the queue can never be full of
 * others. */
static void draw_signalled(struct world *w, struct direction *d)
{
    uint32_t run = 0;
    for (uint32_t i = 0; i < d->ops; i++) {
        run++;
        if (i == d->ops - 1 || run >= w->opt.send_depth || w->opt.sig_all ||
            !tape_chance(w->tape, w->opt.unsignalled_ppm)) {
            d->op[i].flags |= WR_SIGNALED;
            run = 0;
        }
    }
}

/* Near the wrap as often as not; a later life's are far from those of the lives before, ahead of
 * them or behind. */
static uint32_t draw_psn(struct world *w, const struct pair *p)
{
    uint32_t near = 0xffffff - tape_below(w->tape, 64);
    uint32_t any = (uint32_t)tape_u64(w->tape) & 0xffffff;
    uint32_t life = (uint32_t)(p - w->pair) - (uint32_t)w->opt.pairs;
    if (p->successor)
        return (0x300000 + life * 0x80000 + any % 0x10000) & 0xffffff;
    if (w->opt.lives)
        return any & 1 ? near : any & 0xffff;
    return tape_below(w->tape, 2) == 0 ? near : any;
}

static void draw_direction(struct world *w, int index)
{
    struct direction *d = &w->dir[index];
    const struct options *o = &w->opt;
    uint32_t sink = 0;
    bool read_target = false;
    memset(d, 0, sizeof(*d));
    d->pair = index / 2;
    d->side = index % 2;
    const struct pair *p = &w->pair[d->pair];
    d->from = p->end[d->side].node;
    d->to = p->end[1 - d->side].node;
    d->dead = p->self && d->side == 1;
    d->bad_op = -1;
    d->region[REGION_SRC].bytes = o->max_len + tape_range(w->tape, 1, 64);
    d->region[REGION_TARGET].bytes = o->max_len + tape_range(w->tape, 1, 64);
    d->region[REGION_RDSRC].bytes = d->region[REGION_TARGET].bytes;
    d->region[REGION_CELLS].bytes = SHARED_CELLS * 8;
    d->psn = draw_psn(w, p);
    d->ops = o->small ? small_ops(w, index) : tape_range(w->tape, o->ops_min, o->ops_max);
    if (d->ops == 0 || (!o->small && tape_below(w->tape, 8) == 7))
        d->ops = tape_below(w->tape, 2);
    if (d->dead)
        d->ops = 0;
    for (uint32_t i = 0; i < d->ops; i++)
        draw_op(w, d, i, &read_target, &sink);
    draw_signalled(w, d);
    d->region[REGION_SINK].bytes = sink + 1;
}

/* Receives for the messages of a direction, and a few more; they fit in RQ order, or any message
 * when shared. */
static void draw_receives(struct world *w, struct direction *d, uint32_t *cursor, uint32_t max_len)
{
    struct pool *pool = d->pool;
    uint32_t extra = tape_below(w->tape, 4);
    for (uint32_t i = 0; i < d->ops; i++)
        if (op_takes_receive(d->op[i].opcode))
            d->message[d->messages++] = (uint16_t)i;
    for (uint32_t i = 0; i < d->messages + extra; i++) {
        struct recv *r = &pool->recv[pool->n++];
        uint32_t need = i < d->messages ? d->op[d->message[i]].length : 0;
        if (i < d->messages && d->op[d->message[i]].opcode == WR_RDMA_WRITE_WITH_IMM)
            need = 0;
        *r = (struct recv){.bytes = w->opt.srq ? max_len : need + tape_below(w->tape, 9) / 8 * 40};
        r->slices = draw_slices(w, r->slice, REGION_RECV, r->bytes, w->opt.sges, 0, cursor);
        w->recvs++;
        assert(w->recvs < MAX_RECVS);
    }
}

static uint32_t longest_send(const struct world *w, int to)
{
    uint32_t max = 0;
    for (int i = 0; i < w->dirs; i++) {
        const struct direction *d = &w->dir[i];
        for (uint32_t k = 0; d->to == to && k < d->ops; k++)
            if (op_takes_receive(d->op[k].opcode) && d->op[k].opcode != WR_RDMA_WRITE_WITH_IMM &&
                d->op[k].length > max)
                max = d->op[k].length;
    }
    return max;
}

static void draw_pools(struct world *w)
{
    for (int node = 0; node < w->opt.nodes; node++) {
        struct node *n = &w->node[node];
        uint32_t cursor = 0, longest = longest_send(w, node);
        struct pool *srq = &w->pool[MAX_DIRS + node];
        *srq = (struct pool){
            .node = node, .dir = -1, .recv = w->recv + w->recvs, .depth = w->opt.recv_depth};
        for (int i = 0; i < w->dirs; i++) {
            struct direction *d = &w->dir[i];
            if (d->to != node || d->dead)
                continue;
            d->pool = w->opt.srq ? srq : &w->pool[i];
            if (!w->opt.srq)
                *d->pool = (struct pool){
                    .node = node, .dir = i, .recv = w->recv + w->recvs, .depth = w->opt.recv_depth};
            draw_receives(w, d, &cursor, longest);
        }
        n->recv_bytes = cursor + 1;
    }
}

static uint32_t message_index(const struct direction *d, uint32_t op)
{
    uint32_t i = 0;
    while (d->message[i] != op)
        i++;
    return i;
}

/* Makes one WR bad; false: this one cannot be bad in this way. */
static bool make_bad(struct world *w, struct direction *d, uint32_t index, enum bad_kind kind)
{
    struct op *op = &d->op[index];
    bool remote =
        op_is_fetch(op) || op->opcode == WR_RDMA_WRITE || op->opcode == WR_RDMA_WRITE_WITH_IMM;
    bool send = op_takes_receive(op->opcode) && op->opcode != WR_RDMA_WRITE_WITH_IMM;
    struct recv *r = send ? &d->pool->recv[message_index(d, index)] : NULL;
    if (op->length == 0)
        return false;
    switch (kind) {
    case BAD_RKEY:
    case BAD_RIGHT:
    case BAD_RKEY_PD:
        op->expect = WC_REM_ACCESS_ERR;
        return remote;
    case BAD_RANGE:
        op->expect = WC_REM_ACCESS_ERR;
        if (!remote || is_atomic(op->opcode))
            return false;
        /* A long READ is asked for in pieces, of which the first may well be inside. */
        op->remote_at = d->region[op->remote_region].bytes - op->length + 1;
        return true;
    case BAD_ALIGN:
        op->expect = WC_REM_INV_REQ_ERR;
        return is_atomic(op->opcode);
    case BAD_LKEY_RIGHT:
        op->expect = WC_LOC_PROT_ERR;
        return op_is_fetch(op);
    case BAD_LKEY:
    case BAD_LKEY_PD:
        op->expect = WC_LOC_PROT_ERR;
        return !(op->flags & WR_INLINE);
    case BAD_SHORT_RECV:
        if (!send || w->opt.srq)
            return false;
        op->expect = WC_REM_INV_REQ_ERR;
        r->slices = 1;
        r->slice[0].bytes = op->length - 1 < r->slice[0].bytes ? op->length - 1 : r->slice[0].bytes;
        r->bytes = r->slice[0].bytes;
        return true;
    case BAD_RECV_LKEY:
        if (!send || w->opt.srq)
            return false;
        op->expect = WC_REM_OP_ERR;
        r->bad_lkey = true;
        return true;
    default:
        return false;
    }
}

static void draw_bad(struct world *w)
{
    for (int pair = 0; pair < w->pairs; pair++) {
        if (tape_below(w->tape, 6) != 5)
            continue;
        struct direction *d = &w->dir[pair * 2 + (int)tape_below(w->tape, 2)];
        if (d->ops == 0)
            continue;
        uint32_t index = tape_below(w->tape, d->ops);
        enum bad_kind kind = (enum bad_kind)tape_range(w->tape, 1, BAD_COUNT - 1);
        if (make_bad(w, d, index, kind)) {
            d->op[index].bad = kind;
            d->bad_op = (int)index;
        } else {
            d->op[index].expect = WC_SUCCESS;
        }
    }
}

static void place(struct world *w, int node, struct region *r, uint32_t align, unsigned access)
{
    struct node *n = &w->node[node];
    uint32_t at = n->mem_bytes + GUARD_BYTES + (align == 1 ? tape_below(w->tape, 64) : 0);
    r->at = (at + align - 1) / align * align;
    r->access = access;
    n->mem_bytes = r->at + r->bytes;
    assert(n->mem_bytes + GUARD_BYTES < ARENA_BYTES);
}

static void layout(struct world *w)
{
    for (int i = 0; i < w->opt.nodes; i++) {
        struct node *n = &w->node[i];
        n->mem_bytes = 0;
        n->recv_region.bytes = n->recv_bytes;
        place(w, i, &n->recv_region, 1, ACCESS_LOCAL_WRITE);
        n->shared_region.bytes = SHARED_CELLS * 8;
        place(w, i, &n->shared_region, 8, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_ATOMIC);
        n->foreign_region.bytes = w->opt.max_len + 16;
        place(w, i, &n->foreign_region, 8,
              ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
    }
    for (int i = 0; i < w->dirs; i++) {
        struct direction *d = &w->dir[i];
        place(w, d->from, &d->region[REGION_SRC], 1, 0);
        place(w, d->from, &d->region[REGION_SINK], 1, ACCESS_LOCAL_WRITE);
        place(w, d->to, &d->region[REGION_TARGET], 1,
              ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ);
        place(w, d->to, &d->region[REGION_RDSRC], 1, ACCESS_REMOTE_READ);
        place(w, d->to, &d->region[REGION_CELLS], 8, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_ATOMIC);
        for (int k = 0; k < d->invs; k++) {
            d->inv[k].bytes = 8;
            place(w, d->to, &d->inv[k], 8, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
        }
        for (int k = 0; k < d->local_invs; k++) {
            d->local_inv[k].bytes = 8;
            place(w, d->from, &d->local_inv[k], 8, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
        }
    }
}

static uint64_t draw_moment(struct world *w)
{
    return tape_below(w->tape, 1u << tape_range(w->tape, 8, 22));
}

/* What is done to all of a node. */
static void draw_node_controls(struct world *w)
{
    for (int pair = 0; pair < w->opt.pairs; pair++)
        for (int side = 0; side < 2; side++)
            if (w->opt.late_rts[w->pair[pair].end[side].node])
                world_control(w, tape_below(w->tape, 1000000), CONTROL_START, pair, side);
    if (one_in(w, 4))
        for (int i = 0; i < 4; i++)
            world_control(w, tape_below(w->tape, 1000000), CONTROL_RESIZE, i % w->opt.nodes, 0);
    for (int i = 0; w->opt.srq && i < 4; i++)
        world_control(w, draw_moment(w), CONTROL_LIMIT, i % w->opt.nodes, 0);
    for (int i = 0; w->opt.forged && i < 12; i++)
        world_control(w, draw_moment(w), CONTROL_FORGE, i % w->opt.nodes, 0);
}

/* What the program does to its QPs on the way: to ERR, or SQD and back; other keys. */
static void draw_controls(struct world *w)
{
    draw_node_controls(w);
    for (int pair = 0; pair < w->pairs; pair++) {
        uint32_t what = tape_below(w->tape, 16);
        int side = w->pair[pair].self ? 0 : (int)tape_below(w->tape, 2);
        uint64_t at = draw_moment(w);
        if (what == 15) {
            world_control(w, at, CONTROL_ERR, pair, side);
            w->pair[pair].kill_planned = true;
        } else if (what >= 13) {
            world_control(w, at, CONTROL_SQD, pair, side);
            world_control(w, at + tape_below(w->tape, 500000), CONTROL_RTS, pair, side);
        }
    }
    for (int i = 0; w->opt.keys && i < 3; i++) {
        static const enum region_kind kind[] = {REGION_TARGET, REGION_RDSRC, REGION_CELLS,
                                                REGION_SRC,    REGION_SINK,  REGION_RECV};
        int dir = (int)tape_below(w->tape, (uint32_t)w->dirs);
        uint64_t at = draw_moment(w);
        world_control(w, at, CONTROL_KEY, dir, (int)kind[tape_below(w->tape, 6)]);
    }
}

/* Between which nodes, and is one its own peer? */
static void draw_pair(struct world *w, struct pair *p)
{
    const struct options *o = &w->opt;
    int a = 0, b = 1;
    if (o->nodes != 2 || one_in(w, 16)) {
        a = (int)tape_below(w->tape, (uint32_t)o->nodes);
        b = (int)tape_below(w->tape, (uint32_t)o->nodes);
    }
    p->self = a == b && one_in(w, 2);
    for (int side = 0; side < 2; side++) {
        struct end *e = &p->end[side];
        e->node = side == 0 ? a : b;
        e->slot = side == 1 && p->self ? p->end[0].slot : w->node[e->node].slots++;
    }
}

/* A later life: ends of the two before, each of which is over by then. */
static void draw_successor(struct world *w, const struct pair *one, const struct pair *other)
{
    struct pair *p = &w->pair[w->pairs++];
    p->successor = true;
    p->before[0] = (int)(one - w->pair);
    p->before[1] = (int)(other - w->pair);
    p->self = one == other && one->self;
    p->end[0] = (struct end){.node = one->end[0].node, .slot = one->end[0].slot};
    p->end[1] = (struct end){.node = other->end[1].node, .slot = other->end[1].slot};
}

static void draw_end(struct world *w, int pair, uint64_t at)
{
    struct pair *p = &w->pair[pair];
    p->kill_planned = true;
    for (int side = 0; side < (p->self ? 1 : 2); side++) {
        p->end[side].destroy = tape_below(w->tape, 2) == 1;
        p->end[side].keep_qpn = tape_below(w->tape, 2) == 1;
        uint64_t later = tape_below(w->tape, 2) == 0 ? 0 : tape_below(w->tape, 100000);
        world_control(w, at + later, CONTROL_END, pair, side);
    }
}

/* Which lives follow which; pair of a QP: the last that has it. */
static void draw_lives(struct world *w)
{
    int last[MAX_PAIRS], n = w->opt.pairs;
    uint64_t at = draw_moment(w);
    for (int i = 0; i < n; i++)
        last[i] = i;
    for (uint32_t k = tape_range(w->tape, 1, 5); k > 0 && w->pairs + 2 <= MAX_PAIRS; k--) {
        int i = (int)tape_below(w->tape, (uint32_t)n), j = (int)tape_below(w->tape, (uint32_t)n);
        int one = last[i], other = last[j];
        if (w->pair[one].self || w->pair[other].self)
            j = i, other = one;
        draw_end(w, one, at);
        last[i] = w->pairs;
        draw_successor(w, &w->pair[one], &w->pair[other]);
        world_control(w, at, CONTROL_CONNECT, last[i], 0);
        if (i != j) { /* they change partners */
            draw_end(w, other, at);
            last[j] = w->pairs;
            draw_successor(w, &w->pair[other], &w->pair[one]);
            world_control(w, at, CONTROL_CONNECT, last[j], 0);
        }
        at += draw_moment(w);
    }
}

static void draw_pairs(struct world *w)
{
    for (int i = 0; i < NODES; i++)
        w->opt.late_rts[i] = !w->opt.small && one_in(w, 8);
    w->pairs = w->opt.pairs;
    for (int i = 0; i < w->pairs; i++)
        draw_pair(w, &w->pair[i]);
    if (w->opt.lives)
        draw_lives(w);
    w->dirs = w->pairs * 2;
}

void plan_draw(struct world *w)
{
    memset(&w->opt, 0, sizeof(w->opt));
    bool small = w->tape->small != 0;
    if (small) {
        small_draw(w, w->tape->small);
    } else {
        draw_shape(w);
        draw_times(w);
        draw_faults(w);
        link_draw(w);
        draw_retries(w);
    }
    /* In the small world every choice is the network's. */
    struct tape *tape = w->tape, fixed;
    if (small) {
        tape_bytes(&fixed, NULL, 0);
        w->tape = &fixed;
    }
    draw_pairs(w);
    for (int i = 0; i < w->dirs; i++)
        draw_direction(w, i);
    draw_pools(w);
    if (!small) {
        draw_bad(w);
        draw_controls(w);
        pace_draw(w);
        marks_draw(w);
    }
    layout(w);
    w->tape = tape;
}
