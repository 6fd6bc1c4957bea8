/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * small.c: the table of the small worlds. A late packet, or the second copy of one, is overtaken by
 * its neighbours (3 us) or arrives after the requester has given it up (100 us; it waits 65 us).
 */
#include "small.h"

#include <assert.h>

enum { MAX_SMALL_OPS = 4, SHAPES = SMALL_WORLDS / 2 };

struct shape {
    const char *name[2]; /* overtaken, given up */
    int pairs;
    bool both_ways, srq;
    uint32_t length, ops;
    enum wr_opcode op[MAX_SMALL_OPS];
};

static const struct shape send = {
    .name = {"send",  "send_late"},
    .pairs = 1,
    .length = 200,
    .ops = 2,
    .op = {WR_SEND, WR_SEND    },
};

static const struct shape write = {
    .name = {"write", "write_late"},
    .pairs = 1,
    .length = 600,
    .ops = 1,
    .op = {WR_RDMA_WRITE      },
};

static const struct shape read = {
    .name = {"read", "read_late"},
    .pairs = 1,
    .length = 600,
    .ops = 1,
    .op = {WR_RDMA_READ     },
};

static const struct shape atomic = {
    .name = {"atomic",                "atomic_late"        },
    .pairs = 1,
    .length = 8,
    .ops = 2,
    .op = {WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_CMP_AND_SWP},
};

static const struct shape srq = {
    .name = {"srq", "srq_late"},
    .pairs = 2,
    .srq = true,
    .length = 300,
    .ops = 1,
    .op = {WR_SEND    },
};

static const struct shape mixed = {
    .name = {"mixed",  "mixed_late" },
    .pairs = 1,
    .both_ways = true,
    .length = 300,
    .ops = 4,
    .op = { WR_RDMA_READ, WR_ATOMIC_FETCH_AND_ADD, WR_SEND, WR_RDMA_WRITE},
};

static const struct shape *const shapes[SHAPES] = {&send, &write, &read, &atomic, &srq, &mixed};
static const uint32_t late_ns[2] = {3000, 100000};

static const struct shape *shape_of(unsigned small)
{
    assert(small >= 1 && small <= SMALL_WORLDS);
    return shapes[(small - 1) / 2];
}

const char *small_name(unsigned small)
{
    return shape_of(small)->name[(small - 1) % 2];
}

void small_draw(struct world *w, unsigned small)
{
    const struct shape *shape = shape_of(small);
    struct options *o = &w->opt;
    *o = (struct options){
        .small = small,
        .nodes = 2,
        .pairs = shape->pairs,
        .srq = shape->srq,
        .mtu = 256,
        .max_len = 600,
        .send_depth = 8,
        .recv_depth = 8,
        .sges = 1,
        .latency_ns = 1000,
        .post_burst = 8,
        .recv_burst = 8,
        .poll_max = 8,
        .input_batch = 8,
        .max_trains = 8,
        .rnr_timer = 1,
        .reorder_ns = late_ns[(small - 1) % 2],
        .fault_packets = 1000,
        .timeout = 4,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .limited = true,
    };
    for (int i = 0; i < NODES; i++)
        o->rd_atomic[i] = o->dest_rd_atomic[i] = 2;
}

uint32_t small_ops(const struct world *w, int direction)
{
    const struct shape *shape = shape_of(w->opt.small);
    return direction % 2 == 0 || shape->both_ways ? shape->ops : 0;
}

enum wr_opcode small_opcode(const struct world *w, uint32_t index)
{
    assert(index < MAX_SMALL_OPS);
    return shape_of(w->opt.small)->op[index];
}

uint32_t small_length(const struct world *w)
{
    return shape_of(w->opt.small)->length;
}
