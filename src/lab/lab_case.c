/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_case.c: what source and target share: names, patience, and making of contents.
 */
#include "lab/lab_case.h"

#include <errno.h>
#include <stdio.h>

enum { CALLS_BETWEEN = 64, LOOK_NS = 20000000, TELL_NS = 1000000000 };

static const char *const completions[LAB_OPS + 1] = {
    [LAB_WRITE] = "write completion",
    [LAB_WRITE_IMM] = "write with immediate completion",
    [LAB_READ] = "read",
    [LAB_SEND] = "send completion",
    [LAB_ATOMIC] = "atomic",
};
static const char *const acknowledgements[LAB_OPS + 1] = {
    [LAB_WRITE] = "write + application ack",
    [LAB_WRITE_IMM] = "write with immediate + application ack",
    [LAB_SEND] = "send + application ack",
    [LAB_TCP] = "tcp + application ack",
};

const char *lab_case_name(const struct lab_case *c)
{
    return c->op == LAB_TCP ? "tcp" : lab_op_name((enum lab_op)c->op);
}

const char *lab_case_say(const struct lab_case *c, char out[LAB_CASE_BYTES])
{
    bool direct = c->way == LAB_DIRECT || c->op == LAB_TCP;
    char offset[24] = "", qps[56] = "";
    if (c->offset != 0)
        snprintf(offset, sizeof(offset), ", offset %u", c->offset);
    if (c->qps > 1)
        snprintf(qps, sizeof(qps), ", %u queue pairs on %u threads", c->qps, c->threads);
    snprintf(out, LAB_CASE_BYTES, "%s of %u bytes at depth %u%s%s%s%s%s%s", lab_case_name(c),
             c->size, c->depth, offset, qps, direct ? "" : ", buffers ",
             direct ? "" : lab_way_name(c->way), c->near != LAB_ANYWHERE ? ", numa " : "",
             c->near != LAB_ANYWHERE ? lab_near_name(c->near) : "");
    return out;
}

struct lab_measure lab_case_completion(unsigned op)
{
    return (struct lab_measure){
        .name = completions[op],
        .starts = "before the work request is posted",
        .stops = "its completion is polled",
    };
}

struct lab_measure lab_case_acknowledged(unsigned op)
{
    return (struct lab_measure){
        .name = acknowledgements[op],
        .starts =
            op == LAB_TCP ? "before send() of the message" : "before the work request is posted",
        .stops =
            "the far application's acknowledgement is received: it has the data, whole and right",
    };
}

void lab_patience_init(struct lab_patience *p)
{
    uint64_t now = lab_now_ns();
    *p = (struct lab_patience){.moved_ns = now, .looked_ns = now, .told_ns = now};
}

void lab_patience_moved(struct lab_patience *p)
{
    p->moved_ns = 0; /* the next look takes the time: a clock for each message is too much */
}

static int hear(struct lab_end *e)
{
    /* The source is told nothing before it asks but why the target gives up. */
    json_t *o = NULL;
    if (lab_control_hear(&e->control, "nothing", &o) == 0)
        return 0;
    json_decref(o);
    lab_message_copy(e->message, e->control.message);
    return -EPIPE;
}

int lab_patience_look(struct lab_patience *p, struct lab_end *e, const struct lab_case *c,
                      uint64_t messages_done)
{
    bool sleeps = e->settings.wait == LAB_EVENT;
    if (!sleeps && ++p->calls % CALLS_BETWEEN != 0)
        return 0;
    if (e->team != NULL && __atomic_load_n(&e->team->stop, __ATOMIC_ACQUIRE)) {
        snprintf(e->message, sizeof(e->message), "another queue pair has failed");
        return -ECANCELED;
    }
    uint64_t now = lab_now_ns();
    if (p->moved_ns == 0)
        p->moved_ns = now;
    if (now - p->looked_ns < LOOK_NS)
        return 0;
    p->looked_ns = now;
    if (!e->serving && e->team == NULL && lab_control_pending(&e->control, 0))
        return hear(e);
    if (!e->serving && e->team == NULL && now - p->told_ns > TELL_NS) {
        p->told_ns = now;
        if (lab_control_send(&e->control, "alive", json_object()) != 0) {
            lab_message_copy(e->message, e->control.message);
            return -EPIPE;
        }
    }
    if (now - p->moved_ns > e->settings.timeout_ns) {
        char what[LAB_CASE_BYTES];
        snprintf(e->message, sizeof(e->message),
                 "nothing moves: %s stands at message %llu of %llu for %llu ms",
                 lab_case_say(c, what), (unsigned long long)messages_done,
                 (unsigned long long)lab_case_messages(c),
                 (unsigned long long)(e->settings.timeout_ns / 1000000));
        return -ETIMEDOUT;
    }
    return 0;
}

/* The last message of a case carries the planted fault, for then there is something old in its
 * slot. */
static bool planted(const struct lab_end *e, const struct lab_case *c, uint64_t sequence,
                    enum lab_plant plant)
{
    return e->settings.plant == plant && sequence == c->first + lab_case_messages(c) - 1;
}

int lab_case_from_pool(struct lab_end *e, int error)
{
    if (error < 0)
        lab_message_copy(e->message, e->rig.pool.message);
    return error;
}

int lab_case_from_queue(struct lab_end *e, const struct lab_queue *q, int error)
{
    if (error < 0)
        lab_message_copy(e->message, q->message);
    return error;
}

int lab_case_make(struct lab_end *e, struct lab_side *side, const struct lab_case *c,
                  uint64_t sequence, uint8_t *bytes)
{
    struct lab_pool *p = &e->rig.pool;
    uint32_t slot = lab_case_slot(e, sequence);
    lab_slot_release(p, slot);
    int error = lab_case_from_pool(e, lab_slot_claim(p, slot, sequence));
    if (error == 0 && !planted(e, c, sequence, LAB_PLANT_STALE_DATA)) {
        uint64_t start = lab_now_ns();
        lab_slot_fill(bytes, slot, sequence, c->size);
        lab_side_spent(side, LAB_PART_FILL, start);
        start = lab_now_ns();
        if (c->size >= sizeof(struct lab_slot_head))
            lab_slot_seal(bytes);
        lab_side_spent(side, LAB_PART_CHECKSUM, start);
    }
    if (error == 0 && planted(e, c, sequence, LAB_PLANT_WRONG_DATA))
        bytes[c->size - 1] ^= 1;
    return error;
}

int lab_case_post(struct lab_end *e, const struct lab_case *c, uint64_t sequence)
{
    struct lab_pool *p = &e->rig.pool;
    uint32_t slot = lab_case_slot(e, sequence);
    int error = lab_slot_step(p, slot, LAB_POSTED);
    if (error == 0 && planted(e, c, sequence, LAB_PLANT_EARLY_REUSE))
        error = lab_slot_claim(p, slot, sequence + p->slots);
    return lab_case_from_pool(e, error);
}

struct lab_expect lab_case_expect(const struct lab_end *e, const struct lab_case *c,
                                  uint64_t sequence)
{
    const struct lab_pool *p = &e->rig.pool;
    return (struct lab_expect){
        .slot = lab_case_slot(e, sequence),
        .slots = p->slots,
        .sequence = sequence,
        .length = c->size,
        .room = p->slot_bytes - p->offset,
    };
}
