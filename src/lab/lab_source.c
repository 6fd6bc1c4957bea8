/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_source.c: the end that drives and measures. As many messages as the depth says are under way;
 * a slot is used again only when its completion was seen and the far application has acknowledged
 * it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_buffers.h"
#include "lab/lab_case.h"

struct lab_source {
    struct lab_end *e;
    const struct lab_case *c;
    struct lab_queue *q;
    struct lab_buffers *b;
    struct lab_result *r;
    uint64_t next;     /* to be posted */
    uint64_t ready;    /* reads: those before it may be posted */
    uint64_t complete; /* all before it are complete */
    uint64_t done;  /* all before it are over: acknowledged, or where nobody does that, complete */
    uint64_t end;   /* one after the last */
    uint64_t asked; /* posted since the last that asked for a completion */
    uint64_t begun_ns;
    uint64_t *posted_ns; /* by slot, of the first time */
    uint64_t *again_ns;  /* by slot, of the last time: unreliable transports send again */
    bool *over;          /* by slot: acknowledged, though an earlier one is not */
    uint64_t looked_ns;  /* for what is to be sent again */
    struct lab_patience patience;
};

static int protocol(struct lab_source *s, const char *what, uint64_t sequence)
{
    snprintf(s->e->message, sizeof(s->e->message),
             "the peer sent %s for message #%llu, of #%llu to #%llu", what,
             (unsigned long long)sequence, (unsigned long long)s->done,
             (unsigned long long)s->next);
    return -EPROTO;
}

static bool measured(const struct lab_source *s, uint64_t sequence)
{
    return sequence >= s->c->first + s->c->warmup;
}

static bool acknowledged_by_peer(const struct lab_source *s)
{
    return s->c->op != LAB_READ && s->c->op != LAB_ATOMIC;
}

static bool reliable(const struct lab_source *s)
{
    return s->q->type == IBV_QPT_RC;
}

static uint64_t remote_of(const struct lab_source *s, uint64_t sequence)
{
    const struct lab_pool *p = &s->e->rig.pool;
    return s->q->peer.address + (uint64_t)lab_case_slot(s->e, sequence) * p->slot_bytes + p->offset;
}

static void name_operation(const struct lab_source *s, struct ibv_send_wr *wr, uint64_t sequence)
{
    uint64_t index = sequence - s->c->first;
    wr->wr.rdma.remote_addr = remote_of(s, sequence);
    wr->wr.rdma.rkey = (uint32_t)s->q->peer.rkey;
    switch (s->c->op) {
    case LAB_WRITE:
        wr->opcode = IBV_WR_RDMA_WRITE;
        break;
    case LAB_WRITE_IMM:
        wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr->imm_data = htobe32((uint32_t)index);
        break;
    case LAB_READ:
        wr->opcode = IBV_WR_RDMA_READ;
        break;
    case LAB_SEND:
        wr->opcode = reliable(s) ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
        wr->imm_data = htobe32((uint32_t)index);
        break;
    default: /* both kinds in turn; each finds what the one before has left */
        wr->opcode = index % 2 == 0 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
        wr->wr.atomic.remote_addr = s->q->peer.counter;
        wr->wr.atomic.rkey = (uint32_t)s->q->peer.rkey;
        wr->wr.atomic.compare_add = index % 2 == 0 ? 1 : index;
        wr->wr.atomic.swap = index + 1;
        break;
    }
}

/* again: it was posted before, and lost. */
static int post_one(struct lab_source *s, uint64_t sequence, bool again)
{
    uint32_t slot = lab_case_slot(s->e, sequence);
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.sg_list = sge};
    wr.num_sge = lab_buffers_pieces(s->b, s->c, slot, sge);
    if (s->c->way == LAB_INLINE)
        wr.send_flags = IBV_SEND_INLINE;
    /* One in signal-every asks, and there are never more than depth under way: so there is always
     * one that tells of the others. The last one asks, too, and what is sent again: behind it there
     * may be no other until it is acknowledged. */
    uint64_t every = s->e->settings.signal_every;
    every = every < s->c->depth ? every : s->c->depth;
    bool ask = ++s->asked >= every || sequence + 1 == s->end || again;
    if (ask)
        s->asked = 0;
    name_operation(s, &wr, sequence);
    s->again_ns[slot] = lab_now_ns();
    lab_trace_at(&s->e->trace, sequence, LAB_AT_POST);
    int error = lab_queue_post(s->q, &wr, sequence, ask);
    lab_trace_at(&s->e->trace, sequence, LAB_AT_POSTED);
    if (error == 0 && s->c->op == LAB_WRITE) {
        lab_trace_at(&s->e->trace, sequence, LAB_AT_WORD);
        error = lab_queue_note(s->q, LAB_NOTE_WRITTEN, sequence, s->c->size);
        lab_trace_at(&s->e->trace, sequence, LAB_AT_WORDED);
    }
    return lab_case_from_queue(s->e, s->q, error);
}

static int make(struct lab_source *s, uint64_t sequence)
{
    lab_trace_rest(&s->e->trace, sequence);
    lab_trace_at(&s->e->trace, sequence, LAB_AT_MAKE);
    int error = lab_buffers_make(s->b, s->c, sequence);
    lab_trace_at(&s->e->trace, sequence, LAB_AT_MADE);
    return error;
}

/* All before done are over. */
static void tell_batches(struct lab_source *s)
{
    if (measured(s, s->done) &&
        lab_batches_due(s->done - s->c->first - s->c->warmup, s->c->iterations))
        lab_batches_end(&s->r->batches, lab_now_ns());
}

/* 1: posted one. */
static int post_next(struct lab_source *s)
{
    struct lab_pool *p = &s->e->rig.pool;
    uint32_t slot = lab_case_slot(s->e, s->next);
    if (s->next == s->end || s->next - s->done >= s->c->depth || !lab_queue_has_room(s->q, 2) ||
        (s->c->op == LAB_READ && s->next >= s->ready))
        return 0;
    lab_slot_release(p, slot);
    if (p->slot[slot].owner != LAB_FREE)
        return 0; /* its completion has not been seen */
    /* The first message is made within the time of all, as it is over TCP. */
    if (s->next == s->c->first + s->c->warmup)
        s->begun_ns = lab_now_ns();
    if (s->next == s->c->first && s->c->warmup == 0)
        tell_batches(s);
    int error = acknowledged_by_peer(s)
                    ? make(s, s->next)
                    : lab_case_from_pool(s->e, lab_slot_offer(p, slot, s->next));
    s->posted_ns[slot] = lab_now_ns();
    if (error == 0)
        error = post_one(s, s->next, false);
    s->next++;
    return error == 0 ? 1 : error;
}

/* UC and UD lose messages, and acknowledgements, without a word: what was not acknowledged for a
 * while goes again, with the same contents. */
static int post_again(struct lab_source *s)
{
    uint64_t now = lab_now_ns(), retry_ns = s->e->settings.retry_ns;
    struct lab_pool *p = &s->e->rig.pool;
    if (reliable(s) || now - s->looked_ns < retry_ns / 4)
        return 0;
    s->looked_ns = now;
    for (uint64_t sequence = s->done; sequence < s->next; sequence++) {
        uint32_t slot = lab_case_slot(s->e, sequence);
        if (s->over[slot] || now - s->again_ns[slot] < retry_ns ||
            p->slot[slot].owner != LAB_NOTIFIED || !lab_queue_has_room(s->q, 2))
            continue;
        int error = lab_case_from_pool(s->e, lab_slot_resend(p, slot));
        if (error == 0)
            error = post_one(s, sequence, true);
        if (error != 0)
            return error;
        s->r->source.resent++;
    }
    return 0;
}

/* Advances over all that are over, in whatever order they came. */
static void end_message(struct lab_source *s, uint64_t sequence)
{
    s->over[lab_case_slot(s->e, sequence)] = true;
    while (s->done < s->next && s->over[lab_case_slot(s->e, s->done)]) {
        s->over[lab_case_slot(s->e, s->done)] = false;
        s->done++;
        tell_batches(s);
    }
}

static void check_atomic(struct lab_source *s, uint64_t sequence, uint32_t slot)
{
    uint64_t found;
    memcpy(&found, lab_slot_bytes(&s->e->rig.pool, slot), sizeof(found));
    if (found == sequence - s->c->first)
        return;
    struct lab_side *side = &s->r->source;
    side->wrong_atomics++;
    if (side->first_fault[0] == '\0')
        snprintf(side->first_fault, sizeof(side->first_fault),
                 "atomic #%llu found %llu instead of %llu", (unsigned long long)sequence,
                 (unsigned long long)found, (unsigned long long)(sequence - s->c->first));
}

/* Data that this end has got: looked at, and the target told that it may make new ones. */
static int take_data(struct lab_source *s, uint64_t sequence, uint32_t slot)
{
    struct lab_pool *p = &s->e->rig.pool;
    int error = 0;
    if (s->c->op == LAB_ATOMIC) {
        check_atomic(s, sequence, slot);
        lab_trace_at(&s->e->trace, sequence, LAB_AT_CHECKED);
    } else {
        struct lab_expect expect = lab_case_expect(s->e, s->c, sequence);
        lab_side_check(&s->r->source, lab_slot_bytes(p, slot), &expect);
        lab_trace_at(&s->e->trace, sequence, LAB_AT_CHECKED);
        lab_trace_at(&s->e->trace, sequence, LAB_AT_ANSWER);
        error = lab_case_from_queue(s->e, s->q,
                                    lab_queue_note(s->q, LAB_NOTE_ACK, sequence, s->c->size));
        lab_trace_at(&s->e->trace, sequence, LAB_AT_ANSWERED);
    }
    if (error == 0)
        error = lab_case_from_pool(s->e, lab_slot_acknowledge(p, slot, sequence));
    end_message(s, sequence);
    return error;
}

static int take_completion(struct lab_source *s, const struct lab_done *d)
{
    struct lab_pool *p = &s->e->rig.pool;
    uint32_t slot = lab_case_slot(s->e, d->sequence);
    /* What was sent again has been complete before. */
    if (d->asked && measured(s, d->sequence) && s->complete <= d->sequence)
        lab_hist_add(&s->r->completion, lab_now_ns() - s->posted_ns[slot]);
    lab_trace_at(&s->e->trace, d->sequence, LAB_AT_COMPLETED);
    lab_buffers_complete(s->b, slot);
    int error = lab_case_from_pool(s->e, lab_slot_complete(p, slot));
    if (s->complete <= d->sequence)
        s->complete = d->sequence + 1;
    return error != 0 || acknowledged_by_peer(s) ? error : take_data(s, d->sequence, slot);
}

static int take_note(struct lab_source *s, const struct lab_note *n)
{
    if (s->c->op == LAB_READ) {
        if (n->kind != LAB_NOTE_READY || n->sequence != s->ready || s->ready >= s->end)
            return protocol(s, "no right notice", n->sequence);
        lab_trace_at(&s->e->trace, n->sequence, LAB_AT_TOLD);
        s->ready++;
        return 0;
    }
    uint32_t slot = lab_case_slot(s->e, n->sequence);
    bool again = n->sequence < s->done || (n->sequence < s->next && s->over[slot]);
    if (n->kind == LAB_NOTE_ACK && again && !reliable(s)) {
        s->r->source.duplicates++; /* the first one was on its way when we sent again */
        return 0;
    }
    if (n->kind != LAB_NOTE_ACK || n->sequence >= s->next || again)
        return protocol(s, "an acknowledgement", n->sequence);
    lab_patience_moved(&s->patience);
    lab_trace_at(&s->e->trace, n->sequence, LAB_AT_ACKNOWLEDGED);
    if (measured(s, n->sequence))
        lab_hist_add(&s->r->acknowledged, lab_now_ns() - s->posted_ns[slot]);
    int error = lab_case_from_pool(s->e, lab_slot_acknowledge(&s->e->rig.pool, slot, n->sequence));
    end_message(s, n->sequence);
    return error;
}

static int take(struct lab_source *s, const struct lab_done *d)
{
    if (reliable(s)) /* else a completion is no sign that anything arrives */
        lab_patience_moved(&s->patience);
    switch (d->kind) {
    case LAB_DONE_DATA:
        return take_completion(s, d);
    case LAB_DONE_NOTE:
        return take_note(s, &d->note);
    default:
        return protocol(s, "an immediate", d->imm);
    }
}

/* What there is, or waits for it; 0 or -errno. */
static int take_some(struct lab_source *s)
{
    struct lab_done d;
    int n = lab_case_from_queue(s->e, s->q, lab_queue_poll(s->q, &d));
    if (n > 0)
        n = take(s, &d);
    else if (n == 0 && s->q->events)
        n = lab_case_from_queue(s->e, s->q, lab_queue_sleep(s->q, s->e->control.fd));
    if (n == 0)
        n = post_again(s);
    return n < 0 ? n : lab_patience_look(&s->patience, s->e, s->c, s->done - s->c->first);
}

int lab_source_turn(struct lab_source *s)
{
    int n;
    do
        n = post_next(s);
    while (n > 0);
    if (n == 0)
        n = take_some(s);
    if (n < 0 || s->done < s->end || s->complete < s->end)
        return n < 0 ? n : 0;
    s->r->begun_ns = s->begun_ns;
    s->r->elapsed_ns = lab_now_ns() - s->begun_ns;
    return 1;
}

struct lab_source *lab_source_open(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                                   struct lab_buffers *b, struct lab_result *r)
{
    uint32_t slots = e->rig.pool.slots;
    struct lab_source *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    *s = (struct lab_source){
        .e = e,
        .c = c,
        .q = q,
        .b = b,
        .r = r,
        .next = c->first,
        .ready = c->first,
        .complete = c->first,
        .done = c->first,
        .end = c->first + lab_case_messages(c),
        .posted_ns = calloc(slots, sizeof(*s->posted_ns)),
        .again_ns = calloc(slots, sizeof(*s->again_ns)),
        .over = calloc(slots, sizeof(*s->over)),
    };
    lab_patience_init(&s->patience);
    if (s->posted_ns != NULL && s->again_ns != NULL && s->over != NULL)
        return s;
    lab_source_close(s);
    return NULL;
}

void lab_source_close(struct lab_source *s)
{
    if (s == NULL)
        return;
    if (s->e->settings.transport != LAB_RC)
        lab_pool_recall(&s->e->rig.pool);
    free(s->posted_ns);
    free(s->again_ns);
    free(s->over);
    free(s);
}

int lab_source_run(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                   struct lab_buffers *b, struct lab_result *r)
{
    struct lab_source *s = lab_source_open(e, c, q, b, r);
    int n = s == NULL ? -ENOMEM : 0;
    if (s == NULL)
        snprintf(e->message, sizeof(e->message), "out of memory");
    while (n == 0)
        n = lab_source_turn(s);
    lab_source_close(s);
    return n < 0 ? n : 0;
}
