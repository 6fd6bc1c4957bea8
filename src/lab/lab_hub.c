/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_hub.c: the leader. Everything of a round is begun before anything of it is waited for, and
 * "go" is said when all of its meetings are open; so they run side by side, though they are
 * listened to in turn.
 */
#include "lab/lab_hub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_clock.h"
#include "lab/lab_net.h"

enum { GREET_NS = 2000000000, LOOK_NS = 50000000, NO_LIMIT_NS_LOG2 = 56 };

/* One meeting of the round at hand. */
struct table {
    struct lab_control source, target;
    uint16_t port; /* where the target waits */
};

static int gone(struct lab_hub *h, unsigned rank, const char *why)
{
    snprintf(h->message, sizeof(h->message), "rank %u on %.64s: %.500s", rank,
             h->ranks->rank[rank].host, why);
    return -EPIPE;
}

static const struct lab_meeting *meeting(const struct lab_hub *h, unsigned number)
{
    return &h->schedule->meetings[number];
}

/* The first reason is the one that counts. */
static void __attribute__((format(printf, 3, 4)))
failed(struct lab_hub *h, unsigned number, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (h->outcomes[number].error == NULL &&
        vasprintf(&h->outcomes[number].error, format, args) < 0)
        h->outcomes[number].error = NULL;
    va_end(args);
}

/* A worker says nothing after its hello but why it ends. */
static int look_at_workers(struct lab_hub *h)
{
    for (unsigned i = 0; i < h->ranks->count; i++) {
        struct lab_control *w = &h->workers[i];
        json_t *o = NULL;
        if (w->fd < 0 || !lab_control_pending(w, 0))
            continue;
        w->timeout_ns = GREET_NS;
        if (lab_control_hear(w, "nothing", &o) < 0)
            return gone(h, i, w->message);
        json_decref(o);
    }
    return 0;
}

/* The next that says hello, or whose turn never comes: -ETIMEDOUT. Strangers are let go. */
static int await_hello(struct lab_hub *h, uint64_t deadline, struct lab_control *c, json_t **hello)
{
    uint8_t key[LAB_KEY_BYTES];
    lab_ranks_key(h->ranks, "hub", 0, key);
    while (lab_now_ns() < deadline) {
        char why[LAB_MESSAGE_BYTES];
        int error = look_at_workers(h);
        if (error != 0)
            return error;
        int fd = lab_lobby_next(&h->lobby, LOOK_NS, why);
        if (fd < 0)
            continue;
        if (lab_control_open(c, fd, true, key, GREET_NS) == 0 &&
            (*hello = lab_control_receive(c, "hello")) != NULL)
            return 0;
        lab_control_close(c);
    }
    return -ETIMEDOUT;
}

static int gather_workers(struct lab_hub *h)
{
    uint64_t deadline = lab_now_ns() + h->settings->timeout_ns;
    for (unsigned n = 0; n < h->ranks->count;) {
        struct lab_control c;
        json_t *o = NULL;
        uint64_t rank = 0;
        int error = await_hello(h, deadline, &c, &o);
        for (unsigned i = 0; error == -ETIMEDOUT && i < h->ranks->count; i++)
            if (h->workers[i].fd < 0)
                return gone(h, i,
                            "it has not reached rank 0 in time; --network can name the "
                            "network that all are on");
        if (error != 0)
            return error;
        bool right = lab_control_number(&c, o, "rank", h->ranks->count - 1, &rank) &&
                     h->workers[rank].fd < 0;
        json_decref(o);
        c.doing = "waiting for work";
        if (right) {
            h->workers[rank] = c;
            n++;
        } else {
            lab_control_close(&c);
        }
    }
    return 0;
}

static int give_work(struct lab_hub *h, unsigned number, bool together)
{
    const struct lab_meeting *m = meeting(h, number);
    for (int source = 0; source < 2; source++) {
        unsigned rank = source ? m->source : m->target;
        json_t *o = json_pack("{s:i,s:i,s:i,s:i}", "meeting", (int)number, "peer",
                              (int)(source ? m->target : m->source), "source", source, "together",
                              together ? 1 : 0);
        if (lab_control_send(&h->workers[rank], "work", o) != 0)
            return gone(h, rank, h->workers[rank].message);
    }
    return 0;
}

static int seat(struct lab_hub *h, const struct lab_round *r, struct table *tables,
                struct lab_control *c, const json_t *o)
{
    uint64_t number, port;
    const char *role = lab_control_text(c, o, "role");
    if (role == NULL || !lab_control_number(c, o, "meeting", r->first + r->count - 1, &number) ||
        number < r->first || !lab_control_number(c, o, "port", 65535, &port))
        return -EPROTO;
    struct table *t = &tables[number - r->first];
    struct lab_control *place = strcmp(role, "source") == 0 ? &t->source : &t->target;
    if (place->fd >= 0)
        return -EPROTO;
    *place = *c;
    place->doing = "taking part";
    place->timeout_ns = h->settings->timeout_ns;
    if (place == &t->target)
        t->port = (uint16_t)port;
    return 0;
}

/* Both processes of each meeting. A rank that does not start its own is of no use any more. */
static int seat_all(struct lab_hub *h, const struct lab_round *r, struct table *tables)
{
    uint64_t deadline = lab_now_ns() + h->settings->timeout_ns;
    for (unsigned n = 0; n < 2 * r->count;) {
        struct lab_control c;
        json_t *o = NULL;
        int error = await_hello(h, deadline, &c, &o);
        for (unsigned i = 0; error == -ETIMEDOUT && i < r->count; i++) {
            const struct lab_meeting *m = meeting(h, r->first + i);
            if (tables[i].source.fd < 0 || tables[i].target.fd < 0)
                return gone(h, tables[i].source.fd < 0 ? m->source : m->target,
                            "it says nothing when it should begin to measure");
        }
        if (error != 0)
            return error;
        if (seat(h, r, tables, &c, o) == 0)
            n++;
        else
            lab_control_close(&c);
        json_decref(o);
    }
    return 0;
}

static void open_meeting(struct lab_hub *h, unsigned number, struct table *t)
{
    const struct lab_meeting *m = meeting(h, number);
    if (t->port == 0) {
        json_decref(lab_control_receive(&t->target, "listening")); /* it says why it does not */
        failed(h, number, "rank %u on %s: %s", m->target, h->ranks->rank[m->target].host,
               t->target.message);
        return;
    }
    json_t *o = json_pack("{s:i}", "port", (int)t->port);
    if (lab_control_send(&t->source, "target", o) != 0)
        failed(h, number, "rank %u on %s: %s", m->source, h->ranks->rank[m->source].host,
               t->source.message);
}

static void await(struct lab_hub *h, unsigned number, unsigned rank, struct lab_control *c,
                  const char *type)
{
    json_t *o = h->outcomes[number].error == NULL ? lab_control_receive(c, type) : NULL;
    if (o == NULL)
        failed(h, number, "rank %u on %s: %s", rank, h->ranks->rank[rank].host, c->message);
    json_decref(o);
}

/* The record comes in pieces. */
static void take_record(struct lab_hub *h, unsigned number, struct lab_control *c)
{
    unsigned rank = meeting(h, number)->source;
    char *text = NULL;
    size_t bytes = 0;
    bool more = true;
    FILE *all = open_memstream(&text, &bytes);
    c->timeout_ns = 1ull << NO_LIMIT_NS_LOG2; /* it tells us itself when nothing moves */
    while (all != NULL && more) {
        json_t *o = lab_control_receive(c, "record");
        const char *piece = o != NULL ? lab_control_text(c, o, "text") : NULL;
        more = piece != NULL && json_is_true(json_object_get(o, "more"));
        if (piece != NULL)
            fputs(piece, all);
        else
            failed(h, number, "rank %u on %s: %s", rank, h->ranks->rank[rank].host, c->message);
        json_decref(o);
    }
    if (all != NULL && fclose(all) == 0 && h->outcomes[number].error == NULL)
        h->outcomes[number].record = json_loads(text, 0, NULL);
    free(text);
    const char *error = json_string_value(json_object_get(h->outcomes[number].record, "error"));
    if (error != NULL)
        failed(h, number, "rank %u on %s: %s", rank, h->ranks->rank[rank].host, error);
    else if (h->outcomes[number].record == NULL)
        failed(h, number, "rank %u on %s: its record cannot be read", rank,
               h->ranks->rank[rank].host);
}

static void measure(struct lab_hub *h, const struct lab_round *r, struct table *tables)
{
    for (unsigned i = 0; i < r->count; i++)
        open_meeting(h, r->first + i, &tables[i]);
    for (unsigned i = 0; i < r->count; i++) {
        tables[i].source.timeout_ns = 3 * h->settings->timeout_ns; /* its own is over before */
        await(h, r->first + i, meeting(h, r->first + i)->source, &tables[i].source, "open");
    }
    for (unsigned i = 0; i < r->count; i++)
        if (h->outcomes[r->first + i].error == NULL)
            lab_control_send(&tables[i].source, "go", json_object());
    for (unsigned i = 0; i < r->count; i++) {
        unsigned number = r->first + i;
        if (h->outcomes[number].error == NULL)
            take_record(h, number, &tables[i].source);
        await(h, number, meeting(h, number)->target, &tables[i].target, "done");
    }
}

static void tell_progress(const struct lab_hub *h, const struct lab_round *r)
{
    char what[96];
    const struct lab_meeting *m = meeting(h, r->first);
    int n = snprintf(what, sizeof(what), "%s, rank %u to %u", lab_round_name(r->kind), m->source,
                     m->target);
    if (r->count > 1)
        snprintf(what + n, sizeof(what) - (size_t)n, " and %u more", r->count - 1);
    h->progress(what, (unsigned)(r - h->schedule->rounds), h->schedule->round_count);
}

static int lead_round(struct lab_hub *h, const struct lab_round *r)
{
    struct table *tables = calloc(r->count, sizeof(*tables));
    int error = 0;
    if (tables == NULL) {
        snprintf(h->message, sizeof(h->message), "out of memory for %u meetings", r->count);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < r->count; i++)
        tables[i].source.fd = tables[i].target.fd = -1;
    tell_progress(h, r);
    for (unsigned i = 0; i < r->count && error == 0; i++)
        error = give_work(h, r->first + i, r->kind != LAB_ROUND_PAIRS);
    if (error == 0)
        error = seat_all(h, r, tables);
    if (error == 0)
        measure(h, r, tables);
    for (unsigned i = 0; i < r->count; i++) {
        lab_control_close(&tables[i].source);
        lab_control_close(&tables[i].target);
    }
    free(tables);
    return error != 0 ? error : look_at_workers(h);
}

int lab_hub_lead(struct lab_hub *h)
{
    for (unsigned i = 0; i < h->ranks->count; i++)
        h->workers[i].fd = -1;
    h->lobby.bytes = LAB_GREETING_BYTES;
    h->lobby.limit_ns = GREET_NS;
    int error = gather_workers(h);
    for (unsigned i = 0; i < h->schedule->round_count && error == 0; i++)
        error = lead_round(h, &h->schedule->rounds[i]);
    for (unsigned i = 0; i < h->ranks->count; i++) {
        struct lab_control *w = &h->workers[i];
        if (error == 0)
            lab_control_send(w, "work", json_pack("{s:b}", "end", 1));
        else
            lab_control_give_up(w, h->message);
        lab_control_close(w);
    }
    lab_lobby_close(&h->lobby);
    return error;
}
