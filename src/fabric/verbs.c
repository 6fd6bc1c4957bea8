/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.c: the program of a host that is an engine: it posts the work requests of its flows, a few
 * at a time, and receives where the peer sends; it polls, and a completion with an error ends the
 * flow. All messages lie in one piece of memory.
 */
#include <assert.h>

#include "fabric/engine.h"
#include "nic/wq.h"

#define RECEIVED (UINT64_C(1) << 32) /* of a wr_id: a receive of that flow */

static uint32_t message_bytes(const struct fabric *f, uint32_t flow)
{
    const struct fabric_work *work = &f->flow_spec[flow].work;
    if (engine_is_atomic(work->verb))
        return ENGINE_ATOMIC_BYTES;
    return work->message_bytes != 0 ? work->message_bytes : ENGINE_MESSAGE_BYTES;
}

/* Work requests of the flow that may be posted at once; no more than it has messages. */
static uint32_t depth(const struct fabric *f, uint32_t flow)
{
    uint32_t bytes = message_bytes(f, flow), n = ENGINE_POSTED_BYTES / bytes;
    uint64_t messages = (f->flow_spec[flow].bytes - 1) / bytes + 1;
    if (n > ENGINE_POSTED)
        n = ENGINE_POSTED;
    return messages < n ? (uint32_t)messages : n;
}

static bool takes_receives(const struct fabric *f, uint32_t flow)
{
    enum fabric_verb verb = f->flow_spec[flow].work.verb;
    return verb == FABRIC_SEND || verb == FABRIC_WRITE_IMM;
}

struct nic_qp_cap verbs_cap(const struct fabric *f, uint32_t flow, unsigned side)
{
    struct nic_qp_cap cap = {0, 0, 1, 1, 0};
    if (side == engine_asks(f, flow))
        cap.max_send_wr = depth(f, flow);
    else if (takes_receives(f, flow))
        cap.max_recv_wr = f->flow_spec[flow].work.receives + 1;
    return cap;
}

static void post_receive(struct fabric *f, struct engine *g, uint32_t flow)
{
    struct nic_sge sge = {(uintptr_t)f->memory, ENGINE_MESSAGE_BYTES, g->mr->key};
    struct nic_recv_wr wr = {.wr_id = flow | RECEIVED, .sg_list = &sge, .num_sge = 1};
    int rc = wq_post_recv(f->engine_flow[flow].qp[1], &wr);
    assert(rc == 0); /* there is room for all, and one in error takes what it flushes */
    f->progress_ps = f->sched.now_ps;
}

static struct nic_send_wr request(const struct fabric *f, uint32_t flow, struct nic_sge *sge,
                                  uint32_t peer_key)
{
    static const enum wr_opcode opcode[] = {
        [FABRIC_WRITE] = WR_RDMA_WRITE,
        [FABRIC_WRITE_IMM] = WR_RDMA_WRITE_WITH_IMM,
        [FABRIC_SEND] = WR_SEND,
        [FABRIC_READ] = WR_RDMA_READ,
        [FABRIC_FETCH_ADD] = WR_ATOMIC_FETCH_AND_ADD,
        [FABRIC_CMP_SWAP] = WR_ATOMIC_CMP_AND_SWP,
    };
    const struct fabric_work *work = &f->flow_spec[flow].work;
    struct nic_send_wr wr = {
        .wr_id = flow,
        .opcode = opcode[work->verb],
        .flags = WR_SIGNALED,
        .sg_list = sge,
        .num_sge = 1,
        .remote_addr = (uintptr_t)f->memory,
        .rkey = work->wrong_rkey ? ~peer_key : peer_key,
        .compare_add = 1,
        .swap = 1,
    };
    if (engine_is_atomic(work->verb)) {
        wr.remote_addr += ENGINE_MESSAGE_BYTES;
        sge->addr += ENGINE_MESSAGE_BYTES + ENGINE_ATOMIC_BYTES;
        sge->length = ENGINE_ATOMIC_BYTES;
    }
    return wr;
}

/* Messages up to the limit. */
static void post(struct fabric *f, struct engine *g, struct flow *w)
{
    struct engine_flow *ef = &f->engine_flow[w->index];
    unsigned side = engine_asks(f, w->index);
    const struct engine *peer = engine_of(&f->endpoint[side == 0 ? w->dst : w->src]);
    uint32_t most = message_bytes(f, w->index);
    while (ef->posted < w->bytes && ef->posted - ef->done < depth(f, w->index) * (uint64_t)most) {
        uint64_t left = w->bytes - ef->posted;
        uint32_t bytes = left < most ? (uint32_t)left : most;
        struct nic_sge sge = {(uintptr_t)f->memory, bytes, g->mr->key};
        struct nic_send_wr wr = request(f, w->index, &sge, peer->mr->key);
        if (wq_post_send(ef->qp[side], &wr) != 0)
            return;
        ef->posted += bytes;
    }
}

void verbs_start(struct fabric *f, struct engine *g, struct flow *w)
{
    uint32_t receives = takes_receives(f, w->index) ? f->flow_spec[w->index].work.receives : 0;
    for (uint32_t i = 0; i < receives; i++)
        post_receive(f, engine_of(&f->endpoint[w->dst]), w->index);
    post(f, g, w);
}

/* The receiver looks at one message after the other. */
static void received(struct fabric *f, struct engine *g, uint32_t flow)
{
    struct engine_flow *ef = &f->engine_flow[flow];
    uint64_t each_ps = f->flow_spec[flow].work.receive_ps;
    if (each_ps == 0) {
        post_receive(f, g, flow);
        return;
    }
    if (ef->owed++ == 0)
        heap_put(&g->receives, &ef->receive, f->sched.now_ps + each_ps);
}

void verbs_receive_again(struct fabric *f, struct engine *g)
{
    struct heap_node *n;
    while ((n = heap_first(&g->receives)) != NULL && n->time_ns <= f->sched.now_ps) {
        struct engine_flow *ef =
            (struct engine_flow *)((char *)n - offsetof(struct engine_flow, receive));
        uint32_t flow = (uint32_t)(ef - f->engine_flow);
        heap_remove(&g->receives, n);
        post_receive(f, g, flow);
        if (--ef->owed != 0)
            heap_put(&g->receives, n, f->sched.now_ps + f->flow_spec[flow].work.receive_ps);
    }
}

/* Completions come in order, so each tells of the oldest message. */
static void sent(struct fabric *f, struct engine *g, struct flow *w)
{
    struct engine_flow *ef = &f->engine_flow[w->index];
    uint64_t left = w->bytes - ef->done, most = message_bytes(f, w->index);
    uint64_t bytes = left < most ? left : most;
    ef->done += bytes;
    f->totals.acked_bytes += bytes;
    f->progress_ps = f->sched.now_ps;
    if (ef->done == w->bytes)
        source_finish(f, g->endpoint, w);
    else
        post(f, g, w);
}

static void failed(struct fabric *f, struct engine *g, struct flow *w, enum wc_status status)
{
    struct engine_flow *ef = &f->engine_flow[w->index];
    if (w->done)
        return;
    ef->status = (uint8_t)status;
    ef->failed_ps = f->sched.now_ps;
    source_fail(f, g->endpoint, w, status);
}

void verbs_complete(struct fabric *f, struct engine *g)
{
    struct nic_wc wc;
    while (cq_poll(g->cq, 1, &wc) == 1) {
        struct flow *w = &f->flow[(uint32_t)wc.wr_id];
        bool receive = (wc.wr_id & RECEIVED) != 0;
        if (receive && wc.status == WC_SUCCESS)
            received(f, g, w->index);
        else if (!receive && wc.status == WC_SUCCESS)
            sent(f, g, w);
        else if (!receive)
            failed(f, g, w, wc.status);
    }
}
