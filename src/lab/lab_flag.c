/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_flag.c: the experiment of a flag that is polled in memory and a proper notification: messages
 * to and fro, each told in one way. Whoever is told takes a copy at once, so that what comes late
 * is found out, answers in the same way, and looks at the copy then.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/lab_trial.h"

/* Slots 0 and 1 in turn for what comes, so that an answer overwrites nothing that is needed. */
enum { MADE_SLOT = 2, COPY_SLOT = 4, FLAG_WORD = 2, FLAG_MADE_WORD, FLAG_OLD_WORD };

enum { LAST_BYTE, OWN_WRITE, ATOMIC, IMM, SEND, IMM_ASLEEP, SEND_ASLEEP };

/* clang-format off */
static const struct lab_variant variants[] = {
    [LAST_BYTE] = {"last byte polled",
        "this byte is here; so is the rest where a NIC writes the last byte last",
        "by the specification, the other bytes: their order is open", .halves = true},
    [OWN_WRITE] = {"flag in a Write of its own, polled",
        "the far NIC has taken both Writes, in this order",
        "by the specification, that the first is in memory when the second is", .halves = true},
    [ATOMIC] = {"flag by an atomic, polled",
        "by the specification, all that was written before it is in memory",
        "that anybody looks: who polls must go on polling, and cannot sleep", .halves = true},
    [IMM] = {"Write with immediate, completion polled",
        "by the specification, all of the Write is in memory",
        "that the far application has looked at it", .halves = true},
    [SEND] = {"Send behind the Write, completion polled",
        "by the specification, all that was written before it is in memory",
        "that the far application has looked at it", .halves = true},
    [IMM_ASLEEP] = {"Write with immediate, asleep until then",
        "the same, and costs no CPU while nothing comes",
        "that the far application has looked at it", .sleeps = true, .halves = true},
    [SEND_ASLEEP] = {"Send behind the Write, asleep until then",
        "the same, and costs no CPU while nothing comes",
        "that the far application has looked at it", .sleeps = true, .halves = true},
};
/* clang-format on */
static const enum lab_tell tells[] = {
    [LAST_BYTE] = LAB_TELL_LAST_BYTE, [OWN_WRITE] = LAB_TELL_WRITE,
    [ATOMIC] = LAB_TELL_ATOMIC,       [IMM] = LAB_TELL_IMM,
    [SEND] = LAB_TELL_SEND,           [IMM_ASLEEP] = LAB_TELL_IMM,
    [SEND_ASLEEP] = LAB_TELL_SEND,
};

static const char *const counts[LAB_TRIAL_COUNTS] = {
    [LAB_TELL_WHOLE] = "whole",
    [LAB_TELL_EARLY] = "told_before_data",
};

/* Messages to and fro, of one trial. */
struct tell {
    struct lab_try *x;
    enum lab_tell how;
    bool look;
};

/* The last byte may be the flag; it is none of the contents then. */
static uint32_t body_of(const struct tell *t)
{
    return t->x->t->size - (t->how == LAB_TELL_LAST_BYTE);
}

static uint8_t flag_of(uint64_t round)
{
    return (uint8_t)(1 + round / 2 % 255);
}

static uint64_t sequence_of(uint64_t round, bool from_target)
{
    return 2 * round + from_target;
}

static void make(const struct tell *t, uint64_t round)
{
    struct lab_try *x = t->x;
    uint8_t *made = lab_try_slot(x, MADE_SLOT + round % 2);
    if (t->look) {
        lab_slot_fill(made, (uint32_t)(round % 2), sequence_of(round, x->e->serving), body_of(t));
        if (body_of(t) >= sizeof(struct lab_slot_head))
            lab_slot_seal(made);
    }
    if (t->how == LAB_TELL_LAST_BYTE)
        made[x->t->size - 1] = flag_of(round);
}

static int write_to(struct lab_try *x, struct ibv_send_wr *wr, const void *from, uint32_t n,
                    uint64_t far, bool ask)
{
    struct ibv_sge sge = {(uintptr_t)from, n, x->e->rig.mr->lkey};
    wr->sg_list = &sge;
    wr->num_sge = 1;
    wr->wr.rdma.remote_addr = far;
    wr->wr.rdma.rkey = (uint32_t)x->q.peer.rkey;
    if (x->q.inlined >= n)
        wr->send_flags = IBV_SEND_INLINE;
    return lab_try_post(x, wr, ask);
}

static int add_to(struct lab_try *x, uint64_t far)
{
    struct ibv_sge sge = {(uintptr_t)lab_try_word(x, FLAG_OLD_WORD), sizeof(uint64_t),
                          x->e->rig.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
    wr.wr.atomic.remote_addr = far;
    wr.wr.atomic.rkey = (uint32_t)x->q.peer.rkey;
    wr.wr.atomic.compare_add = 1;
    return lab_try_post(x, &wr, true);
}

/* Where nothing else is polled, the completion of what was posted is waited for here, as programs
 * do that poll memory. */
static int tell(const struct tell *t, uint64_t round)
{
    struct lab_try *x = t->x;
    bool imm = t->how == LAB_TELL_IMM, last_byte = t->how == LAB_TELL_LAST_BYTE;
    struct ibv_send_wr wr = {
        .opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
        .imm_data = htobe32((uint32_t)round),
    };
    int error = write_to(x, &wr, lab_try_slot(x, MADE_SLOT + round % 2), x->t->size,
                         lab_try_far_slot(x, round % 2), imm || last_byte);
    if (error != 0 || imm)
        return error;
    struct ibv_send_wr flag = {.opcode = IBV_WR_RDMA_WRITE};
    switch (t->how) {
    case LAB_TELL_WRITE:
        *lab_try_word(x, FLAG_MADE_WORD) = round + 1;
        error = write_to(x, &flag, lab_try_word(x, FLAG_MADE_WORD), sizeof(uint64_t),
                         lab_try_far_word(x, FLAG_WORD), true);
        break;
    case LAB_TELL_ATOMIC:
        error = add_to(x, lab_try_far_word(x, FLAG_WORD));
        break;
    case LAB_TELL_SEND:
        return lab_case_from_queue(x->e, &x->q,
                                   lab_queue_note(&x->q, LAB_NOTE_WRITTEN, round, x->t->size));
    default:
        break;
    }
    return error == 0 ? lab_try_complete(x) : error;
}

static bool flag_is_here(const struct tell *t, uint64_t round)
{
    const struct lab_try *x = t->x;
    if (t->how == LAB_TELL_LAST_BYTE)
        return __atomic_load_n(lab_try_slot(x, round % 2) + x->t->size - 1, __ATOMIC_ACQUIRE) ==
               flag_of(round);
    return __atomic_load_n(lab_try_word(x, FLAG_WORD), __ATOMIC_ACQUIRE) == round + 1;
}

/* 1: told of this round; 0: the target has heard of the end. */
static int await_flag(const struct tell *t, uint64_t round)
{
    int error = 0;
    while (error == 0 && !t->x->told) {
        if (flag_is_here(t, round)) {
            lab_patience_moved(&t->x->patience);
            return 1;
        }
        error = lab_try_look(t->x);
    }
    return error;
}

static int await_completion(const struct tell *t, uint64_t round)
{
    struct lab_try *x = t->x;
    struct lab_done d = {0};
    while (!x->told) {
        int n = lab_try_poll(x, &d);
        if (n < 0)
            return n;
        if (n == 0 || d.kind == LAB_DONE_DATA)
            continue;
        bool right = t->how == LAB_TELL_IMM
                         ? d.kind == LAB_DONE_RECEIVE && d.with_imm && d.imm == (uint32_t)round
                         : d.kind == LAB_DONE_NOTE && d.note.kind == LAB_NOTE_WRITTEN &&
                               d.note.sequence == round;
        if (right)
            return 1;
        snprintf(x->e->message, sizeof(x->e->message), "the peer sent no right word of round %llu",
                 (unsigned long long)round);
        return -EPROTO;
    }
    return 0;
}

static int await(const struct tell *t, uint64_t round)
{
    return t->how == LAB_TELL_IMM || t->how == LAB_TELL_SEND ? await_completion(t, round)
                                                             : await_flag(t, round);
}

static void copy(const struct tell *t, uint64_t round)
{
    if (t->look)
        memcpy(lab_try_slot(t->x, COPY_SLOT), lab_try_slot(t->x, round % 2), body_of(t));
}

static void look_at(const struct tell *t, uint64_t round)
{
    struct lab_try *x = t->x;
    uint32_t at, slots = 2;
    if (!t->look)
        return;
    /* What was here before is two rounds older. */
    const struct lab_expect expect = {.slot = (uint32_t)(round % 2),
                                      .slots = 2 * slots,
                                      .sequence = sequence_of(round, !x->e->serving),
                                      .length = body_of(t),
                                      .room = body_of(t)};
    const uint8_t *bytes = lab_try_slot(x, COPY_SLOT);
    enum lab_verdict v = lab_slot_check(bytes, &expect, &at);
    x->counts[v == LAB_DATA_GOOD ? LAB_TELL_WHOLE : LAB_TELL_EARLY]++;
    if (v != LAB_DATA_GOOD && x->first[0] == '\0')
        lab_slot_say(bytes, &expect, v, at, x->first, sizeof(x->first));
}

static int answer_rounds(const struct tell *t)
{
    struct lab_try *x = t->x;
    for (;; x->done++) {
        make(t, x->done);
        int n = await(t, x->done);
        if (n <= 0)
            return n;
        copy(t, x->done);
        n = tell(t, x->done);
        if (n < 0)
            return n;
        look_at(t, x->done);
    }
}

int lab_tell_rounds(struct lab_try *x, enum lab_tell how, bool look)
{
    const struct tell t = {x, how, look};
    if (x->e->serving)
        return answer_rounds(&t);
    for (; lab_try_more(x); lab_try_over(x)) {
        make(&t, x->done);
        uint64_t start = lab_now_ns();
        int n = tell(&t, x->done);
        if (n == 0)
            n = await(&t, x->done);
        if (n < 0)
            return n;
        lab_hist_add(&x->hist, (lab_now_ns() - start) / 2);
        copy(&t, x->done);
        look_at(&t, x->done);
    }
    return 0;
}

static int rounds(struct lab_try *x)
{
    return lab_tell_rounds(x, tells[x->t->variant], true);
}

static bool has(const struct lab_end *e, const struct lab_trial *t)
{
    return t->variant != ATOMIC || e->rig.device.atomic_cap != IBV_ATOMIC_NONE;
}

static long long early(const json_t *trial)
{
    return lab_trial_count(trial, "source", counts[LAB_TELL_EARLY]) +
           lab_trial_count(trial, "target", counts[LAB_TELL_EARLY]);
}

/* CPU time of both ends for each message, in us. */
static double cpu_us(const json_t *trial)
{
    return json_number_value(json_object_get(trial, "cpu_us_a_message"));
}

static void judge(json_t *experiment)
{
    long long open = 0, wrong = 0, told = 0;
    size_t i;
    json_t *trial;
    json_array_foreach(json_object_get(experiment, "trials"), i, trial)
    {
        const char *name = json_string_value(json_object_get(trial, "variant"));
        bool is_open = strcmp(name, variants[LAST_BYTE].name) == 0 ||
                       strcmp(name, variants[OWN_WRITE].name) == 0;
        *(is_open ? &open : &wrong) += early(trial);
        told += is_open ? 2 * json_integer_value(json_object_get(trial, "rounds")) : 0;
    }
    long long size = json_integer_value(json_array_get(json_object_get(experiment, "sizes"), 0));
    const json_t *byte = lab_trial_find(experiment, variants[LAST_BYTE].name, size);
    const json_t *imm = lab_trial_find(experiment, variants[IMM].name, size);
    const json_t *asleep = lab_trial_find(experiment, variants[IMM_ASLEEP].name, size);
    json_object_set_new(experiment, "passed", json_boolean(wrong == 0));
    json_object_set_new(
        experiment, "summary",
        json_sprintf(
            "the flag came before its data in %lld of %lld cases where the specification leaves "
            "that open%s, and in %lld where it does not; %lld bytes take %.1f us when their last "
            "byte is polled, %.1f us with a completion that is polled, %.1f us asleep, for %.1f, "
            "%.1f and %.1f us of CPU time of both ends",
            open, told, open == 0 ? " (which is no promise of the next NIC)" : "", wrong, size,
            (double)lab_trial_p50(byte) / 1e3, (double)lab_trial_p50(imm) / 1e3,
            (double)lab_trial_p50(asleep) / 1e3, cpu_us(byte), cpu_us(imm), cpu_us(asleep)));
}

const struct lab_experiment_kind lab_flag = {
    .name = "flag",
    .about = "How the far application learns that data have come: a flag in memory that it polls, "
             "or a notification. Messages to and fro; a latency is half of a round",
    .variants = variants,
    .variant_count = sizeof(variants) / sizeof(variants[0]),
    .sizes = {2, {64, 4096}},
    .smallest = 2,
    .granule = 1,
    .counts = counts,
    .has = has,
    .source = rounds,
    .target = rounds,
    .judge = judge,
};
