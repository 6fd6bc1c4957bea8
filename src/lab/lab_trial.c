/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_trial.c: what the ends of all experiments have in common: waiting, with a limit, and work
 * requests of which each is waited for.
 */
#include "lab/lab_trial.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS 500000000ull
enum { SPINS_BETWEEN = 256, FIRST_WORD = 8 };

bool lab_try_more(const struct lab_try *x)
{
    return x->done < x->t->rounds && (x->done == 0 || lab_now_ns() - x->begun_ns < LIMIT_NS);
}

void lab_try_over(struct lab_try *x)
{
    if (++x->done % x->batch_rounds == 0)
        lab_batches_grow(&x->batches, &x->batch_rounds, lab_now_ns());
}

bool lab_try_late(const struct lab_try *x)
{
    uint64_t limit = LIMIT_NS + (x->done > 0 ? 0 : x->e->settings.timeout_ns);
    return lab_now_ns() - x->begun_ns >= limit;
}

static int hear(struct lab_try *x)
{
    json_t *o = NULL;
    int n = lab_control_hear(&x->e->control, "done", &o);
    json_decref(o);
    x->told |= n > 0;
    x->heard_ns = lab_now_ns();
    if (n < 0)
        lab_message_copy(x->e->message, x->e->control.message);
    return n < 0 ? n : 0;
}

/* A trial is no case, but stands still as one does. */
static int be_patient(struct lab_try *x)
{
    const struct lab_case c = {
        .op = LAB_READ, .size = x->t->size, .depth = x->t->depth, .iterations = x->t->rounds};
    return lab_patience_look(&x->patience, x->e, &c, x->done);
}

int lab_try_look(struct lab_try *x)
{
    bool sleeps = x->q.events;
    int error = 0;
    if (x->e->serving && (sleeps || ++x->spins % SPINS_BETWEEN == 0) &&
        lab_control_pending(&x->e->control, 0))
        error = hear(x);
    return error == 0 ? be_patient(x) : error;
}

int lab_try_overdue(struct lab_try *x)
{
    uint64_t since = x->heard_ns != 0 ? x->heard_ns : x->begun_ns;
    if (lab_now_ns() - since < LIMIT_NS + x->e->settings.timeout_ns)
        return 0;
    snprintf(x->e->message, sizeof(x->e->message), "the peer does not say that it has ended");
    return -ETIMEDOUT;
}

int lab_try_idle(struct lab_try *x)
{
    enum { WAIT_MS = 50 };
    int error = 0;
    while (error == 0 && !x->told)
        error = lab_control_pending(&x->e->control, WAIT_MS) ? hear(x) : lab_try_overdue(x);
    return error;
}

int lab_try_poll(struct lab_try *x, struct lab_done *d)
{
    int n = lab_case_from_queue(x->e, &x->q, lab_queue_poll(&x->q, d));
    if (n > 0)
        lab_patience_moved(&x->patience);
    else if (n == 0 && x->q.events)
        n = lab_case_from_queue(x->e, &x->q, lab_queue_sleep(&x->q, x->e->control.fd));
    if (n != 0)
        return n;
    return lab_try_look(x);
}

int lab_try_complete(struct lab_try *x)
{
    struct lab_done d = {0};
    int n = 0;
    while (n == 0) {
        n = lab_try_poll(x, &d);
        if (n > 0 && d.kind != LAB_DONE_DATA) {
            snprintf(x->e->message, sizeof(x->e->message), "the peer sent what nobody waits for");
            return -EPROTO;
        }
        n = n > 0 && !d.asked ? 0 : n;
    }
    return n < 0 ? n : 0;
}

int lab_try_post(struct lab_try *x, struct ibv_send_wr *wr, bool ask)
{
    return lab_case_from_queue(x->e, &x->q, lab_queue_post(&x->q, wr, x->done, ask));
}

int lab_try_one(struct lab_try *x, struct ibv_send_wr *wr, void *here, uint32_t n, uint64_t far)
{
    struct ibv_sge sge = {(uintptr_t)here, n, x->e->rig.mr->lkey};
    wr->sg_list = &sge;
    wr->num_sge = 1;
    wr->wr.rdma.remote_addr = far;
    wr->wr.rdma.rkey = (uint32_t)x->q.peer.rkey;
    int error = lab_try_post(x, wr, true);
    return error == 0 ? lab_try_complete(x) : error;
}

uint8_t *lab_try_slot(const struct lab_try *x, uint32_t slot)
{
    return lab_slot_bytes(&x->e->rig.pool, slot);
}

uint64_t lab_try_far_slot(const struct lab_try *x, uint32_t slot)
{
    return x->q.peer.address + (uint64_t)slot * x->e->rig.pool.slot_bytes;
}

/* The first of them is the atomics'. */
uint64_t *lab_try_word(const struct lab_try *x, unsigned word)
{
    return lab_rig_counter(&x->e->rig) + FIRST_WORD * (word + 1);
}

uint64_t lab_try_far_word(const struct lab_try *x, unsigned word)
{
    return x->q.peer.counter + sizeof(uint64_t) * FIRST_WORD * (word + 1);
}

const json_t *lab_trial_find(const json_t *experiment, const char *variant, long long size)
{
    size_t i;
    json_t *t;
    json_array_foreach(json_object_get(experiment, "trials"), i, t)
    {
        if (json_integer_value(json_object_get(t, "size")) == size &&
            strcmp(json_string_value(json_object_get(t, "variant")), variant) == 0)
            return t;
    }
    return NULL;
}

long long lab_trial_count(const json_t *trial, const char *side, const char *name)
{
    const json_t *counts = json_object_get(json_object_get(trial, side), "counts");
    return json_integer_value(json_object_get(counts, name));
}

long long lab_trial_p50(const json_t *trial)
{
    return json_integer_value(json_object_get(json_object_get(trial, "latency"), "p50_ns"));
}
