/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_tcp.c: the baseline: the same slots, checks and acknowledgements over a TCP connection, and
 * memcpy as what no transport passes. In poll mode the sockets are polled as a CQ is.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lab/lab_case.h"

struct stream {
    struct lab_end *e;
    const struct lab_case *c;
    struct lab_side *side;
    struct lab_patience patience;
    uint64_t next, done, end;
    uint8_t acks[64 * sizeof(struct lab_note)]; /* the source's: a part of one may be left over */
    size_t ack_bytes;
};

static void open_stream(struct stream *s, struct lab_end *e, const struct lab_case *c,
                        struct lab_side *side)
{
    *s = (struct stream){.e = e, .c = c, .side = side, .next = c->first, .done = c->first};
    s->end = c->first + lab_case_messages(c);
    lab_patience_init(&s->patience);
}

static int gone(struct stream *s, const char *why)
{
    /* What the peer says about it is better than what the socket says. */
    json_t *o = NULL;
    if (lab_control_pending(&s->e->control, 200) &&
        lab_control_hear(&s->e->control, "nothing", &o) < 0)
        lab_message_copy(s->e->message, s->e->control.message);
    else
        snprintf(s->e->message, sizeof(s->e->message), "the TCP connection of the baseline: %s",
                 why);
    json_decref(o);
    return -EPIPE;
}

static int wait_for(struct stream *s, short events)
{
    struct pollfd p = {.fd = s->e->data, .events = events};
    if (s->e->settings.wait == LAB_EVENT || events == POLLOUT) {
        poll(&p, 1, 50);
        s->side->wakes++;
    }
    return lab_patience_look(&s->patience, s->e, s->c, s->done - s->c->first);
}

static int send_all(struct stream *s, const void *bytes, size_t n, int flags)
{
    const uint8_t *at = bytes;
    while (n > 0) {
        uint64_t start = lab_now_ns();
        ssize_t done = send(s->e->data, at, n, MSG_DONTWAIT | MSG_NOSIGNAL | flags);
        int error = errno;
        lab_side_spent(s->side, LAB_PART_POST, start);
        if (done > 0) {
            lab_patience_moved(&s->patience);
            at += done;
            n -= (size_t)done;
        } else if (error == EAGAIN) {
            int failed = wait_for(s, POLLOUT);
            if (failed != 0)
                return failed;
        } else if (error != EINTR) {
            return gone(s, strerror(error));
        }
    }
    return 0;
}

/* More than 0: so many bytes; 0: none now; else -errno. */
static ssize_t receive_some(struct stream *s, void *bytes, size_t n)
{
    uint64_t start = lab_now_ns();
    ssize_t done = recv(s->e->data, bytes, n, MSG_DONTWAIT);
    int error = errno;
    lab_side_spent(s->side, LAB_PART_POLL, start);
    s->side->polls++;
    if (done > 0) {
        lab_patience_moved(&s->patience);
        return done;
    }
    s->side->empty_polls++;
    if (done == 0)
        return gone(s, "closed by the peer");
    return error == EAGAIN || error == EINTR ? 0 : gone(s, strerror(error));
}

static int receive_all(struct stream *s, void *bytes, size_t n)
{
    uint8_t *at = bytes;
    while (n > 0) {
        ssize_t done = receive_some(s, at, n);
        if (done < 0)
            return (int)done;
        at += done;
        n -= (size_t)done;
        int error = done == 0 ? wait_for(s, POLLIN) : 0;
        if (error != 0)
            return error;
    }
    return 0;
}

static int send_next(struct stream *s, uint64_t *sent_ns)
{
    uint32_t slot = lab_case_slot(s->e, s->next);
    struct lab_note note = {LAB_NOTE_WRITTEN, s->c->size, s->next};
    uint8_t *bytes = lab_slot_bytes(&s->e->rig.pool, slot);
    int error = lab_case_make(s->e, s->side, s->c, s->next, bytes);
    if (error == 0)
        error = lab_case_post(s->e, s->c, s->next);
    if (error != 0)
        return error;
    sent_ns[slot] = lab_now_ns();
    error = send_all(s, &note, sizeof(note), MSG_MORE);
    if (error == 0)
        error = send_all(s, bytes, s->c->size, 0);
    if (error == 0)
        error = lab_case_from_pool(s->e, lab_slot_complete(&s->e->rig.pool, slot));
    s->next++;
    return error;
}

/* All before done are over. */
static void tell_batches(const struct stream *s, struct lab_result *r)
{
    uint64_t begin = s->c->first + s->c->warmup;
    if (s->done >= begin && lab_batches_due(s->done - begin, s->c->iterations))
        lab_batches_end(&r->batches, lab_now_ns());
}

static int take_ack(struct stream *s, const struct lab_note *n, struct lab_result *r,
                    const uint64_t *sent_ns)
{
    uint32_t slot = lab_case_slot(s->e, s->done);
    if (n->kind != LAB_NOTE_ACK || n->sequence != s->done || s->done >= s->next)
        return gone(s, "the peer sent something else than acknowledgements");
    if (s->done >= s->c->first + s->c->warmup)
        lab_hist_add(&r->acknowledged, lab_now_ns() - sent_ns[slot]);
    s->done++;
    tell_batches(s, r);
    return lab_case_from_pool(s->e, lab_slot_acknowledge(&s->e->rig.pool, slot, n->sequence));
}

static int take_acks(struct stream *s, struct lab_result *r, const uint64_t *sent_ns)
{
    ssize_t n = receive_some(s, s->acks + s->ack_bytes, sizeof(s->acks) - s->ack_bytes);
    int error = n < 0 ? (int)n : n == 0 ? wait_for(s, POLLIN) : 0;
    size_t at = 0;
    if (n > 0)
        s->ack_bytes += (size_t)n;
    for (; error == 0 && s->ack_bytes - at >= sizeof(struct lab_note);
         at += sizeof(struct lab_note)) {
        struct lab_note note;
        memcpy(&note, s->acks + at, sizeof(note));
        error = take_ack(s, &note, r, sent_ns);
    }
    s->ack_bytes -= at;
    memmove(s->acks, s->acks + at, s->ack_bytes);
    return error;
}

int lab_tcp_source(struct lab_end *e, const struct lab_case *c, struct lab_result *r)
{
    struct stream s;
    int error = 0;
    uint64_t begun_ns = 0, *sent_ns = calloc(e->rig.pool.slots, sizeof(*sent_ns));
    open_stream(&s, e, c, &r->source);
    tell_batches(&s, r);
    while (error == 0 && s.done < s.end && sent_ns != NULL) {
        while (error == 0 && s.next < s.end && s.next - s.done < c->depth) {
            if (s.next == c->first + c->warmup)
                begun_ns = lab_now_ns();
            error = send_next(&s, sent_ns);
        }
        if (error == 0)
            error = take_acks(&s, r, sent_ns);
    }
    r->elapsed_ns = lab_now_ns() - begun_ns;
    free(sent_ns);
    return error;
}

static int take_message(struct stream *s)
{
    struct lab_pool *p = &s->e->rig.pool;
    struct lab_note note;
    uint32_t slot = lab_case_slot(s->e, s->next);
    lab_slot_release(p, slot);
    int error = lab_case_from_pool(s->e, lab_slot_offer(p, slot, s->next));
    if (error == 0)
        error = receive_all(s, &note, sizeof(note));
    if (error != 0)
        return error;
    if (note.kind != LAB_NOTE_WRITTEN || note.sequence != s->next || note.length != s->c->size)
        return gone(s, "the peer sent another message");
    error = receive_all(s, lab_slot_bytes(p, slot), s->c->size);
    if (error == 0)
        error = lab_case_from_pool(s->e, lab_slot_complete(p, slot));
    if (error != 0)
        return error;
    struct lab_expect expect = lab_case_expect(s->e, s->c, s->next);
    lab_side_check(s->side, lab_slot_bytes(p, slot), &expect);
    error = lab_case_from_pool(s->e, lab_slot_acknowledge(p, slot, s->next));
    struct lab_note ack = {LAB_NOTE_ACK, s->c->size, s->next};
    s->next++;
    s->done++;
    return error == 0 ? send_all(s, &ack, sizeof(ack), 0) : error;
}

int lab_tcp_target(struct lab_end *e, const struct lab_case *c, struct lab_side *side)
{
    struct stream s;
    int error = 0;
    open_stream(&s, e, c, side);
    while (error == 0 && s.next < s.end)
        error = take_message(&s);
    return error;
}

/* Between two slots, to and fro: what fits is in the cache, as no message is that comes from
 * elsewhere, and the best round counts. So nothing that copies can pass it. */
double lab_tcp_memcpy_ns(struct lab_end *e, uint32_t size)
{
    enum { ROUNDS = 6, ROUND_BYTES = 16 << 20, MAX_COPIES = 65536 };
    const struct lab_pool *p = &e->rig.pool;
    /* Onto itself nothing is copied: one slot needs another place beside it. */
    uint8_t *beside = p->slots > 1 ? NULL : calloc(1, size);
    uint8_t *const place[2] = {lab_slot_bytes(p, 0),
                               beside != NULL ? beside : lab_slot_bytes(p, 1)};
    if (p->slots == 1 && beside == NULL)
        return 0; /* not known */
    uint64_t copies = ROUND_BYTES / size < MAX_COPIES ? ROUND_BYTES / size + 1 : MAX_COPIES;
    uint64_t best = UINT64_MAX;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t start = lab_now_ns();
        for (uint64_t i = 0; i < copies; i++) {
            uint8_t *to = place[(i + 1) % 2];
            memcpy(to, place[i % 2], size);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        uint64_t all = lab_now_ns() - start;
        best = all < best ? all : best;
    }
    free(beside);
    return best > 0 ? (double)best / (double)copies : 1;
}
