/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_lanes.c: lanes are ends of their own to who drives them, without a control connection; what
 * they found is added up when all threads have ended.
 */
#include "lab/lab_lanes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/lab_session.h"

enum { WATCH_MS = 5, TELL_NS = 1000000000, IDLE_NS = 200000, WORD_BYTES = 64 };

struct lane {
    struct lab_end e;
    struct lab_case c;
    struct lab_equipment x;
    struct lab_side side;
    struct lab_result r;
    struct lab_source *source;
    struct lab_target *target;
    bool over;
    int error; /* what its last turn said; its driver's, until all have ended */
};

struct lanes {
    struct lane *lane;
    unsigned count, threads;
    struct lab_team team;
    unsigned running; /* threads; atomic */
};

struct driver {
    struct lanes *l;
    unsigned first; /* and each l->threads-th after it */
    pthread_t thread;
    bool started;
};

/* The lane's part of the pool, with slots that count from 0, and a word for atomics of its own. */
static int open_view(struct lane *n, struct lab_end *e, const struct lab_case *c, unsigned k)
{
    struct lab_rig *r = &n->e.rig;
    uint32_t slots = e->rig.pool.slots / c->qps;
    uint8_t *word = (uint8_t *)lab_rig_counter(&e->rig) + (size_t)k * WORD_BYTES;
    _Static_assert(LAB_MAX_QPS * WORD_BYTES <= LAB_RIG_EXTRA_BYTES, "a word for each");
    n->e = *e;
    n->e.control = (struct lab_control){.fd = -1};
    n->e.trace = (struct lab_trace){0};
    n->e.message[0] = '\0'; /* what was said before is none of the lane's */
    r->memory = e->rig.memory + (uint64_t)k * slots * e->rig.pool.slot_bytes;
    r->memory_bytes = (uint64_t)(word - r->memory) + LAB_RIG_EXTRA_BYTES;
    n->c = *c;
    n->c.qps = n->c.threads = 1;
    n->c.first = c->first + k * lab_case_messages(c);
    if (lab_pool_init(&r->pool, r->memory, slots, e->rig.pool.slot_bytes) != 0) {
        snprintf(e->message, sizeof(e->message), "out of memory");
        return -ENOMEM;
    }
    r->pool.offset = c->offset;
    return 0;
}

static int open_lane(struct lane *n, struct lab_end *e, struct lanes *l, unsigned k)
{
    int error = lab_session_equip(&n->e, &n->c, &n->x, &n->side);
    n->e.team = &l->team;
    if (error == 0) {
        if (e->serving)
            n->target = lab_target_open(&n->e, &n->c, &n->x.q, &n->x.b, &n->side);
        else
            n->source = lab_source_open(&n->e, &n->c, &n->x.q, &n->x.b, &n->r);
        error = n->target == NULL && n->source == NULL ? -ENOMEM : 0;
    }
    if (error != 0)
        snprintf(e->message, sizeof(e->message), "queue pair %u: %.500s", k + 1,
                 error == -ENOMEM && n->e.message[0] == '\0' ? "out of memory" : n->e.message);
    return error == 0 ? lab_session_join(e, &n->x.q, &n->x.cm) : error;
}

static void close_lane(struct lane *n)
{
    lab_source_close(n->source);
    lab_target_close(n->target);
    lab_session_unequip(&n->x);
    lab_pool_clear(&n->e.rig.pool);
}

static int turn(struct lane *n)
{
    return n->source != NULL ? lab_source_turn(n->source) : lab_target_turn(n->target);
}

static void *drive(void *arg)
{
    const struct driver *d = arg;
    struct lanes *l = d->l;
    const struct timespec rest = {0, IDLE_NS};
    for (unsigned left = 1, busy; left > 0;) {
        left = busy = 0;
        for (unsigned i = d->first; i < l->count; i += l->threads) {
            struct lane *n = &l->lane[i];
            int done = n->over ? LAB_TURN_OVER : turn(n);
            if (done < 0) {
                n->error = done;
                n->r.elapsed_ns = 0;
                __atomic_store_n(&l->team.stop, true, __ATOMIC_RELEASE);
            }
            n->over = done < 0 || done == LAB_TURN_OVER;
            left += !n->over;
            busy += !n->over && done != LAB_TURN_IDLE;
        }
        if (left > 0 && busy == 0)
            nanosleep(&rest, NULL);
    }
    __atomic_sub_fetch(&l->running, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

/* The control connection, while others work: what the peer says, and that we live. */
static int watch(struct lab_end *e, struct lanes *l)
{
    uint64_t told_ns = lab_now_ns();
    int error = 0;
    while (__atomic_load_n(&l->running, __ATOMIC_ACQUIRE) > 0) {
        json_t *o = NULL;
        int n = 0;
        if (error == 0 && lab_control_pending(&e->control, WATCH_MS))
            n = lab_control_hear(&e->control, e->serving ? "done" : "nothing", &o);
        else if (error != 0)
            nanosleep(&(struct timespec){0, IDLE_NS}, NULL);
        json_decref(o);
        if (n > 0)
            __atomic_store_n(&l->team.told, true, __ATOMIC_RELEASE);
        if (n == 0 && error == 0 && !e->serving && lab_now_ns() - told_ns > TELL_NS) {
            told_ns = lab_now_ns();
            n = lab_control_send(&e->control, "alive", json_object());
        }
        if (n < 0) {
            lab_message_copy(e->message, e->control.message);
            __atomic_store_n(&l->team.stop, true, __ATOMIC_RELEASE);
            error = -EPIPE;
        }
    }
    return error;
}

/* Who has failed says why; others only that they were stopped for it. */
static int find_failed(struct lab_end *e, const struct lanes *l)
{
    for (unsigned k = 0; k < l->count; k++) {
        const struct lane *n = &l->lane[k];
        if (n->error == 0 || n->error == -ECANCELED)
            continue;
        snprintf(e->message, sizeof(e->message), "queue pair %u: %.500s", k + 1, n->e.message);
        return -EPROTO;
    }
    return 0;
}

static int run(struct lab_end *e, struct lanes *l)
{
    struct driver drivers[LAB_MAX_QPS] = {0};
    int error = 0;
    l->running = l->threads;
    for (unsigned t = 0; t < l->threads; t++) {
        struct driver *d = &drivers[t];
        *d = (struct driver){.l = l, .first = t};
        int failed = error != 0 ? error : -pthread_create(&d->thread, NULL, drive, d);
        d->started = failed == 0;
        if (failed == 0)
            continue;
        snprintf(e->message, sizeof(e->message), "threads: %s", strerror(-failed));
        __atomic_store_n(&l->team.stop, true, __ATOMIC_RELEASE);
        __atomic_sub_fetch(&l->running, 1, __ATOMIC_ACQ_REL);
        error = failed;
    }
    int watched = watch(e, l);
    for (unsigned t = 0; t < l->threads; t++)
        if (drivers[t].started)
            pthread_join(drivers[t].thread, NULL);
    error = error != 0 ? error : watched;
    return error != 0 ? error : find_failed(e, l);
}

static json_t *lane_json(const struct lane *n)
{
    const struct lab_result *r = &n->r;
    const struct lab_hist *h = r->acknowledged.samples > 0 ? &r->acknowledged : &r->completion;
    double ns = r->elapsed_ns > 0 ? (double)r->elapsed_ns : 1;
    double messages = (double)n->c.iterations;
    return json_pack("{s:I,s:I,s:f,s:f,s:I,s:I}", "messages", (json_int_t)n->c.iterations,
                     "elapsed_ns", (json_int_t)r->elapsed_ns, "gbps",
                     8.0 * n->c.size * messages / ns, "messages_per_s", 1e9 * messages / ns,
                     "p50_ns", (json_int_t)lab_hist_permille(h, 500), "p99_ns",
                     (json_int_t)lab_hist_permille(h, 990));
}

/* The source: one result of all; the time is from the first message of any to the last of any. */
static void add_up(struct lanes *l, struct lab_side *side, struct lab_result *r)
{
    uint64_t begun_ns = UINT64_MAX, ended_ns = 0;
    side->threads = l->threads;
    side->registered_bytes = l->lane[0].e.rig.mr->length;
    if (r != NULL)
        r->queue_pairs = json_array();
    for (unsigned k = 0; k < l->count; k++) {
        const struct lane *n = &l->lane[k];
        lab_side_add(side, &n->side);
        side->registered_bytes += lab_session_registered_bytes(&n->x);
        if (r == NULL)
            continue;
        lab_side_add(side, &n->r.source);
        lab_hist_merge(&r->completion, &n->r.completion);
        lab_hist_merge(&r->acknowledged, &n->r.acknowledged);
        lab_batches_add(&r->batches, &n->r.batches);
        json_array_append_new(r->queue_pairs, lane_json(n));
        uint64_t end_ns = n->r.begun_ns + n->r.elapsed_ns;
        begun_ns = n->r.begun_ns < begun_ns ? n->r.begun_ns : begun_ns;
        ended_ns = end_ns > ended_ns ? end_ns : ended_ns;
    }
    if (r != NULL)
        r->elapsed_ns = ended_ns - begun_ns;
}

int lab_lanes_move(struct lab_end *e, const struct lab_case *c, struct lab_side *side,
                   struct lab_result *r)
{
    struct lanes l = {.lane = calloc(c->qps, sizeof(*l.lane)), .threads = c->threads};
    int error = l.lane == NULL ? -ENOMEM : 0;
    if (error != 0)
        snprintf(e->message, sizeof(e->message), "out of memory");
    for (unsigned k = 0; k < c->qps && error == 0; k++) {
        error = open_view(&l.lane[k], e, c, k);
        l.count += error == 0;
        if (error == 0)
            error = open_lane(&l.lane[k], e, &l, k);
    }
    if (error == 0) {
        lab_side_begin(side, e->rig.name, e->rig.port);
        error = run(e, &l);
        lab_side_end(side, e->rig.name, e->rig.port);
        add_up(&l, side, error == 0 ? r : NULL);
    }
    if (error == 0 && r != NULL)
        error = lab_session_send(e, "done", json_object());
    if (error == 0 && r != NULL && (r->target = lab_session_receive(e, "result")) == NULL)
        error = -EPIPE;
    error = lab_session_prefer_peer(e, error);
    for (unsigned k = 0; k < l.count; k++)
        close_lane(&l.lane[k]);
    free(l.lane);
    return error;
}
