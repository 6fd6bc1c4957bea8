/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_torn.c: the experiment of a Read while the far application rewrites what is read. The far
 * application makes each version aside and copies it into its slot, then rests a while, so that
 * some Reads find the slot at rest and some do not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_trial.h"

enum { QUIET, PLAIN, LOCK };
enum { WHOLE, TORN, NOT_TOLD_BY_ENDS, CORRUPT, TRIES, LOCKED, CHANGED, VERSIONS, GIVEN_UP };
enum { LOCK_WORD = 0, SEEN_WORD = 1 };

/* clang-format off */
static const struct lab_variant variants[] = {
    [QUIET] = {"at rest",
        "how long a Read takes when nobody writes",
        "anything about writers",},
    [PLAIN] = {"plain Read",
        "each byte is here, as the far NIC found it",
        "that the NIC found all of them at one time: it does not wait for the CPU",},
    [LOCK] = {"with a sequence lock",
        "the number was even and has not changed: nobody wrote meanwhile",
        "that the contents are still the latest",},
};
/* clang-format on */

static const char *const counts[LAB_TRIAL_COUNTS] = {
    [WHOLE] = "whole",
    [TORN] = "torn",
    [NOT_TOLD_BY_ENDS] = "torn_not_told_by_ends",
    [CORRUPT] = "corrupt",
    [TRIES] = "tries",
    [LOCKED] = "retried_locked",
    [CHANGED] = "retried_changed",
    [VERSIONS] = "versions",
    [GIVEN_UP] = "given_up",
};

/* What was read: is it one version? */
static void look_at(struct lab_try *x)
{
    struct lab_mixture m;
    const uint8_t *bytes = lab_try_slot(x, 0);
    enum lab_mixed mixed = lab_slot_mixed(bytes, 0, x->t->size, &m);
    x->counts[WHOLE] += mixed == LAB_ONE_VERSION;
    x->counts[TORN] += mixed == LAB_SEVERAL_VERSIONS;
    x->counts[CORRUPT] += mixed == LAB_NO_VERSION;
    x->counts[NOT_TOLD_BY_ENDS] += mixed == LAB_SEVERAL_VERSIONS && m.ends_agree;
    if (mixed == LAB_ONE_VERSION || x->first[0] != '\0')
        return;
    if (mixed == LAB_SEVERAL_VERSIONS)
        snprintf(x->first, sizeof(x->first),
                 "Read %llu: version %llu, and from byte %u on version %llu; %u times a change",
                 (unsigned long long)x->done, (unsigned long long)m.sequence, m.offset,
                 (unsigned long long)m.other, m.changes);
    else
        snprintf(x->first, sizeof(x->first), "Read %llu: byte %u is of no version",
                 (unsigned long long)x->done, m.offset);
}

static int read_slot(struct lab_try *x)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};
    return lab_try_one(x, &wr, lab_try_slot(x, 0), x->t->size, lab_try_far_slot(x, 0));
}

static int read_lock(struct lab_try *x, uint64_t *version)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};
    int error = lab_try_one(x, &wr, lab_try_word(x, SEEN_WORD), sizeof(uint64_t),
                            lab_try_far_word(x, LOCK_WORD));
    *version = *(volatile uint64_t *)lab_try_word(x, SEEN_WORD);
    return error;
}

/* Three Reads, each after the completion of the one before, so that nothing depends on the order
 * in which a NIC executes those that are under way together. Where the lock had changed, the last
 * of them is the first one of the next try. A writer that never rests for as long as they take is
 * not waited for for ever: 1, given up. */
static int read_locked(struct lab_try *x)
{
    uint64_t before, after;
    int error = read_lock(x, &before);
    while (error == 0) {
        x->counts[TRIES]++;
        if (before % 2 == 0) {
            error = read_slot(x);
            if (error == 0)
                error = read_lock(x, &after);
            if (error != 0 || before == after)
                break;
            x->counts[CHANGED]++;
            before = after;
        } else {
            x->counts[LOCKED]++;
            error = read_lock(x, &before);
        }
        if (error == 0 && lab_try_late(x)) {
            x->counts[GIVEN_UP]++;
            return 1;
        }
    }
    return error;
}

static int source(struct lab_try *x)
{
    while (lab_try_more(x)) {
        uint64_t start = lab_now_ns();
        int n = x->t->variant == LOCK ? read_locked(x) : read_slot(x);
        if (n != 0)
            return n < 0 ? n : 0;
        lab_hist_add(&x->hist, lab_now_ns() - start);
        look_at(x);
        lab_try_over(x);
    }
    return 0;
}

/* An application that works out what it writes takes its time. */
static void write_slowly(struct lab_try *x, const uint8_t *made)
{
    enum { PIECE_BYTES = 64 };
    uint8_t *slot = lab_try_slot(x, 0);
    uint64_t begun_ns = lab_now_ns(), all_ns = x->t->write_ns;
    for (uint32_t at = 0; at < x->t->size; at += PIECE_BYTES) {
        uint32_t rest = x->t->size - at;
        memcpy(slot + at, made + at, rest < PIECE_BYTES ? rest : PIECE_BYTES);
        while (lab_now_ns() - begun_ns < all_ns * at / x->t->size)
            ;
    }
}

/* The lock is odd while the slot is written; what is written must be seen no earlier and no later
 * than that. */
static void publish(struct lab_try *x)
{
    uint64_t *lock = lab_try_word(x, LOCK_WORD);
    uint8_t *made = lab_try_slot(x, 1);
    lab_slot_fill(made, 0, ++x->counts[VERSIONS], x->t->size);
    lab_slot_seal(made);
    __atomic_store_n(lock, *lock + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    write_slowly(x, made);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(lock, *lock + 1, __ATOMIC_RELEASE);
}

/* There is a first version before anybody reads. */
static int prepare(struct lab_try *x)
{
    if (x->e->serving)
        publish(x);
    return 0;
}

/* The far application has other things to do for a while, which is not always the same. */
static int rest(struct lab_try *x)
{
    uint64_t some = (x->done * 0x9e3779b97f4a7c15ull) >> 40;
    uint64_t until = lab_now_ns() + (x->t->rest_ns * some >> 24);
    int error = 0;
    while (error == 0 && !x->told && lab_now_ns() < until)
        error = lab_try_look(x);
    return error;
}

static int target(struct lab_try *x)
{
    int error = 0;
    if (x->t->variant == QUIET)
        return lab_try_idle(x);
    for (; error == 0 && !x->told; x->done++) {
        publish(x);
        lab_patience_moved(&x->patience);
        error = rest(x);
        if (error == 0)
            error = lab_try_overdue(x);
    }
    return error;
}

/* Has a trial delivered what it must not? Every trial is asked, whatever is said of it. */
static bool is_wrong(const json_t *trial)
{
    const char *variant = json_string_value(json_object_get(trial, "variant"));
    bool may_be_torn = variant != NULL && strcmp(variant, variants[PLAIN].name) == 0;
    return lab_trial_count(trial, "source", counts[CORRUPT]) > 0 ||
           (!may_be_torn && lab_trial_count(trial, "source", counts[TORN]) > 0);
}

static void say_lock(const json_t *rest, const json_t *lock, FILE *out)
{
    long long tries = lab_trial_count(lock, "source", counts[TRIES]);
    long long delivered = json_integer_value(json_object_get(lock, "rounds"));
    if (delivered == 0) {
        fprintf(out,
                "with a sequence lock none was delivered in %lld tries, which proves nothing: the "
                "writer never rested for as long as three Reads take on this path",
                tries);
        return;
    }
    fprintf(out, "with a sequence lock %lld were delivered after %lld tries, %lld of them wrong",
            delivered, tries,
            lab_trial_count(lock, "source", counts[TORN]) +
                lab_trial_count(lock, "source", counts[CORRUPT]));
    if (lab_trial_p50(rest) > 0)
        fprintf(out, ", for %.1f times the time of a Read at rest",
                (double)lab_trial_p50(lock) / (double)lab_trial_p50(rest));
}

static void say_size(const json_t *experiment, long long size, FILE *out)
{
    const json_t *rest = lab_trial_find(experiment, variants[QUIET].name, size);
    const json_t *plain = lab_trial_find(experiment, variants[PLAIN].name, size);
    long long torn = lab_trial_count(plain, "source", counts[TORN]);
    fprintf(out,
            "of %lld bytes, %lld of %lld plain Reads were torn though each completed with "
            "success%s; ",
            size, torn, (long long)json_integer_value(json_object_get(plain, "rounds")),
            torn == 0 ? " (none this time, which proves nothing)" : "");
    say_lock(rest, lab_trial_find(experiment, variants[LOCK].name, size), out);
    if (is_wrong(plain) || is_wrong(rest))
        fputs("; and there were CORRUPT bytes, which no writer explains", out);
}

static void judge(json_t *experiment)
{
    char *text = NULL;
    size_t bytes = 0, i;
    bool passed = true;
    json_t *one;
    json_array_foreach(json_object_get(experiment, "trials"), i, one) passed &= !is_wrong(one);
    json_object_set_new(experiment, "passed", json_boolean(passed));
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return;
    json_array_foreach(json_object_get(experiment, "sizes"), i, one)
    {
        fputs(i > 0 ? "; " : "", out);
        say_size(experiment, json_integer_value(one), out);
    }
    fclose(out);
    json_object_set_new(experiment, "summary", json_string(text));
    free(text);
}

const struct lab_experiment_kind lab_torn = {
    .name = "torn",
    .about =
        "A Read while the far application rewrites what is read. Contents of two versions in "
        "one Read are torn; nothing but the contents tells, or a number that changes with them",
    .variants = variants,
    .variant_count = sizeof(variants) / sizeof(variants[0]),
    .sizes = {2, {4096, 65536}},
    .smallest = 64,
    .granule = 8,
    .counts = counts,
    .prepare = prepare,
    .source = source,
    .target = target,
    .judge = judge,
};
