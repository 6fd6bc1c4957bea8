/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_bare.c: the experiment of the transport alone: contents are neither made nor looked at and
 * nobody acknowledges but the NIC. It is what perftest measures, in the same way, and what is to be
 * subtracted from the figures of cases to see what they owe to the application.
 */
#include <errno.h>
#include <stdio.h>

#include "lab/lab_record.h"
#include "lab/lab_trial.h"

enum { WRITE, SEND, READ, ATOMIC, WRITE_MANY, READ_MANY, SEND_MANY };
enum { ATOMIC_BYTES = 8, ASK_SHARE = 4 /* of those under way: how many ask for a completion */ };

static const char no_contents[] = "anything about contents: nobody looks";

/* clang-format off */
static const struct lab_variant variants[] = {
    [WRITE] = {"write latency",
        "half of a round of Writes whose last byte is polled",
        no_contents, .halves = true},
    [SEND] = {"send latency",
        "half of a round of Sends whose completion is polled",
        no_contents, .halves = true},
    [READ] = {"read latency",
        "a Read until its completion is polled",
        no_contents,},
    [ATOMIC] = {"atomic latency",
        "a FetchAdd of 8 bytes until its completion is polled",
        no_contents,},
    [WRITE_MANY] = {"write throughput",
        "the far NIC has them all",
        no_contents, .streams = true},
    [READ_MANY] = {"read throughput",
        "all of it is here",
        no_contents, .streams = true},
    [SEND_MANY] = {"send throughput",
        "the far NIC has placed them all in receives",
        no_contents, .streams = true},
};
/* clang-format on */

static bool has(const struct lab_end *e, const struct lab_trial *t)
{
    return t->variant != ATOMIC ||
           (e->rig.device.atomic_cap != IBV_ATOMIC_NONE && t->size == ATOMIC_BYTES);
}

static bool receives_data(const struct lab_trial *t)
{
    return t->variant == SEND || t->variant == SEND_MANY;
}

static int post(struct lab_try *x, enum ibv_wr_opcode opcode, bool ask)
{
    struct ibv_sge sge = {(uintptr_t)lab_try_slot(x, 1), x->t->size, x->e->rig.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};
    wr.wr.rdma.remote_addr = lab_try_far_slot(x, 0);
    wr.wr.rdma.rkey = (uint32_t)x->q.peer.rkey;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = lab_try_far_word(x, 0);
        wr.wr.atomic.rkey = (uint32_t)x->q.peer.rkey;
        wr.wr.atomic.compare_add = 1;
    } else if (opcode != IBV_WR_RDMA_READ && x->q.inlined >= x->t->size) {
        wr.send_flags = IBV_SEND_INLINE;
    }
    return lab_try_post(x, &wr, ask);
}

static int receive(struct lab_try *x, uint32_t buffer)
{
    return lab_case_from_queue(
        x->e, &x->q,
        lab_queue_receive(&x->q, buffer, lab_try_slot(x, 0), x->t->size, x->e->rig.mr->lkey));
}

/* 1: a Send has come, and its receive is posted again; 0: the target has heard of the end. */
static int await_send(struct lab_try *x)
{
    struct lab_done d = {0};
    while (!x->told) {
        int n = lab_try_poll(x, &d);
        if (n < 0)
            return n;
        if (n > 0 && d.kind == LAB_DONE_RECEIVE) {
            n = receive(x, d.buffer);
            return n == 0 ? 1 : n;
        }
    }
    return 0;
}

static int sends_to_and_fro(struct lab_try *x)
{
    for (; x->e->serving || lab_try_more(x); lab_try_over(x)) {
        uint64_t start = lab_now_ns();
        int n = x->e->serving ? 1 : post(x, IBV_WR_SEND, true);
        if (n >= 0)
            n = await_send(x);
        if (n <= 0)
            return n;
        if (x->e->serving)
            n = post(x, IBV_WR_SEND, true);
        if (n < 0)
            return n;
        lab_hist_add(&x->hist, (lab_now_ns() - start) / 2);
    }
    return 0;
}

static int one_by_one(struct lab_try *x, enum ibv_wr_opcode opcode)
{
    for (; lab_try_more(x); lab_try_over(x)) {
        uint64_t start = lab_now_ns();
        int error = post(x, opcode, true);
        if (error == 0)
            error = lab_try_complete(x);
        if (error != 0)
            return error;
        lab_hist_add(&x->hist, lab_now_ns() - start);
    }
    return 0;
}

/* As many under way as may be; after the last none is posted, and all are waited for. */
static int many(struct lab_try *x, enum ibv_wr_opcode opcode)
{
    uint64_t posted = 0;
    bool last = false;
    struct lab_done d = {0};
    while (!last || x->done < posted) {
        while (!last && posted - x->done < x->t->depth) {
            posted++;
            last = posted == x->t->rounds || !lab_try_more(x);
            int error = post(x, opcode, last || posted % x->signal_every == 0);
            if (error != 0)
                return error;
        }
        int n = lab_try_poll(x, &d);
        if (n < 0)
            return n;
        if (n > 0 && d.kind == LAB_DONE_DATA)
            lab_try_over(x);
    }
    return 0;
}

static int source(struct lab_try *x)
{
    x->signal_every = variants[x->t->variant].streams ? x->t->depth / ASK_SHARE : 1;
    switch (x->t->variant) {
    case WRITE:
        return lab_tell_rounds(x, LAB_TELL_LAST_BYTE, false);
    case SEND:
        return sends_to_and_fro(x);
    case READ:
        return one_by_one(x, IBV_WR_RDMA_READ);
    case ATOMIC:
        return one_by_one(x, IBV_WR_ATOMIC_FETCH_AND_ADD);
    case WRITE_MANY:
        return many(x, IBV_WR_RDMA_WRITE);
    case READ_MANY:
        return many(x, IBV_WR_RDMA_READ);
    default:
        return many(x, IBV_WR_SEND);
    }
}

static int target(struct lab_try *x)
{
    int n = 1;
    switch (x->t->variant) {
    case WRITE:
        return lab_tell_rounds(x, LAB_TELL_LAST_BYTE, false);
    case SEND:
        return sends_to_and_fro(x);
    case SEND_MANY:
        while (n > 0)
            n = await_send(x);
        return n;
    default:
        return lab_try_idle(x);
    }
}

static int prepare(struct lab_try *x)
{
    int error = 0;
    for (uint32_t i = 0; receives_data(x->t) && i < x->q.receives && error == 0; i++)
        error = receive(x, i);
    return error;
}

static void judge(json_t *experiment)
{
    size_t i;
    json_t *trial;
    double most = 0;
    long long least = 0;
    char gbps_text[24];
    json_array_foreach(json_object_get(experiment, "trials"), i, trial)
    {
        double gbps = json_number_value(json_object_get(trial, "gbps"));
        long long p50 = lab_trial_p50(trial);
        most = gbps > most ? gbps : most;
        least = p50 > 0 && (least == 0 || p50 < least) ? p50 : least;
    }
    json_object_set_new(experiment, "passed", json_true());
    json_object_set_new(experiment, "summary",
                        json_sprintf("the transport alone: %.1f us at the least, %s Gbit/s at "
                                     "the most; what cases take longer is the application's",
                                     (double)least / 1e3, lab_report_number(most, gbps_text)));
}

const struct lab_experiment_kind lab_bare = {
    .name = "bare",
    .about = "The transport alone, as perftest measures it: no contents are made or looked at, and "
             "no application acknowledges",
    .variants = variants,
    .variant_count = sizeof(variants) / sizeof(variants[0]),
    .sizes = {3, {ATOMIC_BYTES, 4096, 65536}},
    .smallest = 2,
    .granule = 1,
    .inlines = true,
    .has = has,
    .receives_data = receives_data,
    .prepare = prepare,
    .source = source,
    .target = target,
    .judge = judge,
};
