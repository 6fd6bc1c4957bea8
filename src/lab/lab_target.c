/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_target.c: the end that answers: looks at what was written or sent to it and acknowledges, or
 * makes what is read. It goes on until the source says over the control connection that it has seen
 * the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/lab_buffers.h"
#include "lab/lab_case.h"

struct place {
    bool here;  /* has come, though an earlier one has not */
    bool blank; /* was not there or not whole, and blanked since */
};

struct lab_target {
    struct lab_end *e;
    const struct lab_case *c;
    struct lab_queue *q;
    struct lab_buffers *b;
    struct lab_side *side;
    uint64_t next; /* the message that is to come; of reads, the one to be made */
    uint64_t done; /* reads: all before it were acknowledged */
    uint64_t
        receives; /* unreliable: their count, which is the sequence number of the next one's slot */
    struct place *place; /* unreliable, by slot */
    uint64_t end;
    bool told; /* the source has seen the end; what it sent before may be still to come */
    struct lab_patience patience;
};

static int protocol(struct lab_target *t, const char *what)
{
    snprintf(t->e->message, sizeof(t->e->message), "the peer sent %s instead of message #%llu",
             what, (unsigned long long)t->next);
    return -EPROTO;
}

static int receive_into(struct lab_target *t, uint32_t buffer, uint8_t *bytes,
                        const struct ibv_mr *mr)
{
    return lab_case_from_queue(t->e, t->q,
                               lab_queue_receive(t->q, buffer, bytes, t->c->size, mr->lkey));
}

/* The slot of a message is its sender's until it says otherwise. */
static int offer(struct lab_target *t, uint64_t sequence)
{
    struct lab_pool *p = &t->e->rig.pool;
    uint32_t slot = lab_case_slot(t->e, sequence);
    lab_slot_release(p, slot);
    int error = lab_case_from_pool(t->e, lab_slot_offer(p, slot, sequence));
    if (error == 0 && t->c->op == LAB_SEND && t->c->way != LAB_SHARED_POOL)
        error = receive_into(t, slot, lab_slot_bytes(p, slot), t->e->rig.mr);
    return error;
}

static int make_readable(struct lab_target *t)
{
    while (t->next < t->end && t->next - t->done < t->c->depth && lab_queue_has_room(t->q, 1)) {
        uint8_t *bytes = lab_slot_bytes(&t->e->rig.pool, lab_case_slot(t->e, t->next));
        lab_trace_rest(&t->e->trace, t->next);
        lab_trace_at(&t->e->trace, t->next, LAB_AT_MAKE);
        int error = lab_case_make(t->e, t->side, t->c, t->next, bytes);
        lab_trace_at(&t->e->trace, t->next, LAB_AT_MADE);
        if (error == 0)
            error = lab_case_post(t->e, t->c, t->next);
        lab_trace_at(&t->e->trace, t->next, LAB_AT_WORD);
        if (error == 0)
            error = lab_case_from_queue(t->e, t->q,
                                        lab_queue_note(t->q, LAB_NOTE_READY, t->next, t->c->size));
        lab_trace_at(&t->e->trace, t->next, LAB_AT_WORDED);
        if (error != 0)
            return error;
        t->next++;
    }
    return 0;
}

static uint32_t receives_of(const struct lab_target *t)
{
    uint32_t slots = t->e->rig.pool.slots;
    return 2 * t->c->depth < slots ? 2 * t->c->depth : slots;
}

static int start(struct lab_target *t)
{
    struct lab_pool *p = &t->e->rig.pool;
    int error = 0;
    *lab_rig_counter(&t->e->rig) = 0;
    if (t->c->op == LAB_READ || t->c->op == LAB_ATOMIC)
        return 0;
    if (t->e->settings.transport != LAB_RC && t->c->op != LAB_SEND)
        return 0; /* the source's own, until it says that they are written; perhaps more than once
                   */
    if (t->e->settings.transport != LAB_RC && t->c->way != LAB_SHARED_POOL) {
        /* More than there are messages: copies take receives, too. */
        for (; t->receives < receives_of(t) && error == 0; t->receives++) {
            uint32_t i = (uint32_t)t->receives;
            lab_slot_release(p, i);
            error = lab_case_from_pool(t->e, lab_slot_offer(p, i, i));
            if (error == 0)
                error = receive_into(t, i, lab_slot_bytes(p, i), t->e->rig.mr);
        }
        return error;
    }
    bool offers = t->e->settings.transport == LAB_RC;
    for (uint32_t i = 0; offers && i < t->c->depth && error == 0 && t->next + i < t->end; i++)
        error = offer(t, t->next + i);
    for (uint32_t i = 0; t->c->way == LAB_SHARED_POOL && error == 0 && i < receives_of(t); i++)
        error = receive_into(t, i, lab_buffers_receive(t->b, i), t->b->mr);
    return error;
}

static int answer(struct lab_target *t, uint64_t sequence)
{
    lab_trace_at(&t->e->trace, sequence, LAB_AT_ANSWER);
    int error =
        lab_case_from_queue(t->e, t->q, lab_queue_note(t->q, LAB_NOTE_ACK, sequence, t->c->size));
    lab_trace_at(&t->e->trace, sequence, LAB_AT_ANSWERED);
    return error;
}

/* The message is here: looked at, its slot offered again, acknowledged, in this order, so that
 * there is always a receive for what the acknowledgement allows to come. */
static int take_message(struct lab_target *t, uint64_t sequence)
{
    struct lab_pool *p = &t->e->rig.pool;
    uint32_t slot = lab_case_slot(t->e, sequence);
    struct lab_expect expect = lab_case_expect(t->e, t->c, sequence);
    if (sequence != t->next || sequence >= t->end)
        return protocol(t, "another message");
    lab_trace_at(&t->e->trace, sequence, LAB_AT_TOLD);
    int error = lab_case_from_pool(t->e, lab_slot_complete(p, slot));
    if (error == 0) {
        lab_side_check(t->side, lab_slot_bytes(p, slot), &expect);
        lab_trace_at(&t->e->trace, sequence, LAB_AT_CHECKED);
        error = lab_case_from_pool(t->e, lab_slot_acknowledge(p, slot, sequence));
    }
    t->next++;
    if (error == 0 && sequence + t->c->depth < t->end)
        error = offer(t, sequence + t->c->depth);
    return error == 0 ? answer(t, sequence) : error;
}

/* A write is lost in pieces, and the word of it may come all the same. What is missing is seen from
 * the second time on: where nothing came is blank then, however often pieces get lost. What is sent
 * comes whole or not at all. */
static bool may_be_lost(const struct lab_target *t, const struct place *place, const uint8_t *bytes,
                        const struct lab_expect *expect)
{
    return t->c->op != LAB_SEND && (!place->blank || lab_slot_lacks(bytes, expect));
}

/* Over UC and UD what comes may be the first, a copy, or the word of data that was lost. What is
 * right and new counts; each that is right is acknowledged, for the acknowledgement before may have
 * been lost. */
static int take_unreliable(struct lab_target *t, uint64_t sequence, uint8_t *bytes)
{
    uint32_t slot = lab_case_slot(t->e, sequence);
    struct lab_expect expect = lab_case_expect(t->e, t->c, sequence);
    struct place *place = &t->place[slot];
    bool again = sequence < t->next || place->here;
    if (sequence >= t->end || sequence >= t->next + t->c->depth)
        return protocol(t, "another message");
    lab_trace_at(&t->e->trace, sequence, LAB_AT_TOLD);
    if (again) {
        t->side->duplicates++;
    } else if (lab_side_check_lossy(t->side, bytes, &expect,
                                    may_be_lost(t, place, bytes, &expect))) {
        lab_patience_moved(&t->patience);
        lab_trace_at(&t->e->trace, sequence, LAB_AT_CHECKED);
        place->here = true;
        for (; t->next < t->end && t->place[lab_case_slot(t->e, t->next)].here; t->next++)
            t->place[lab_case_slot(t->e, t->next)] = (struct place){0};
    } else {
        lab_slot_blank(bytes, t->c->size);
        place->blank = true;
        return 0;
    }
    /* A full send queue loses the acknowledgement, which the source then asks for again. */
    return lab_queue_has_room(t->q, 1) ? answer(t, sequence) : 0;
}

/* The same from the shared pool: whichever message it is, it is copied to where that belongs. */
static int take_datagram_from_pool(struct lab_target *t, const struct lab_done *d)
{
    uint64_t sequence = t->c->first + d->imm;
    uint32_t slot = lab_case_slot(t->e, sequence);
    if (!d->with_imm || d->bytes != t->c->size)
        return protocol(t, "a message of another kind");
    lab_buffers_copy_out(t->b, d->buffer, slot, t->c->size);
    int error = take_unreliable(t, sequence, lab_slot_bytes(&t->e->rig.pool, slot));
    return error == 0 ? receive_into(t, d->buffer, lab_buffers_receive(t->b, d->buffer), t->b->mr)
                      : error;
}

/* Receives come in the order of arrival, so their slots are not those of the messages. */
static int take_datagram(struct lab_target *t, const struct lab_done *d)
{
    struct lab_pool *p = &t->e->rig.pool;
    uint32_t slot = d->buffer;
    if (!d->with_imm || d->bytes != t->c->size || slot >= p->slots)
        return protocol(t, "a message of another kind");
    int error = lab_case_from_pool(t->e, lab_slot_complete(p, slot));
    if (error == 0)
        error = take_unreliable(t, t->c->first + d->imm, lab_slot_bytes(p, slot));
    if (error == 0)
        error = lab_case_from_pool(t->e, lab_slot_acknowledge(p, slot, p->slot[slot].sequence));
    lab_slot_release(p, slot);
    if (error == 0)
        error = lab_case_from_pool(t->e, lab_slot_offer(p, slot, t->receives++));
    return error == 0 ? receive_into(t, slot, lab_slot_bytes(p, slot), t->e->rig.mr) : error;
}

static int take_acknowledgement(struct lab_target *t, uint64_t sequence)
{
    struct lab_pool *p = &t->e->rig.pool;
    uint32_t slot = lab_case_slot(t->e, sequence);
    if (sequence != t->done || sequence >= t->next)
        return protocol(t, "an acknowledgement");
    lab_trace_at(&t->e->trace, sequence, LAB_AT_ACKNOWLEDGED);
    int error = lab_case_from_pool(t->e, lab_slot_complete(p, slot));
    if (error == 0)
        error = lab_case_from_pool(t->e, lab_slot_acknowledge(p, slot, sequence));
    t->done++;
    return error;
}

/* What came in the shared pool is copied to where it belongs, and the receive goes back at once. */
static int take_from_pool(struct lab_target *t, uint32_t buffer)
{
    lab_buffers_copy_out(t->b, buffer, lab_case_slot(t->e, t->next), t->c->size);
    int error = receive_into(t, buffer, lab_buffers_receive(t->b, buffer), t->b->mr);
    return error == 0 ? take_message(t, t->next) : error;
}

static bool reliable(const struct lab_target *t)
{
    return t->q->type == IBV_QPT_RC;
}

/* The word that a message is in its slot, by note or immediate. */
static int take_written(struct lab_target *t, uint64_t sequence)
{
    uint8_t *bytes = lab_slot_bytes(&t->e->rig.pool, lab_case_slot(t->e, sequence));
    return reliable(t) ? take_message(t, sequence) : take_unreliable(t, sequence, bytes);
}

static int take(struct lab_target *t, const struct lab_done *d)
{
    switch (d->kind) {
    case LAB_DONE_NOTE:
        if (t->c->op == LAB_READ && d->note.kind == LAB_NOTE_ACK)
            return take_acknowledgement(t, d->note.sequence);
        if (t->c->op == LAB_WRITE && d->note.kind == LAB_NOTE_WRITTEN)
            return take_written(t, d->note.sequence);
        return protocol(t, "a note");
    case LAB_DONE_RECEIVE:
        if (d->with_imm && t->c->op == LAB_WRITE_IMM)
            return take_written(t, t->c->first + d->imm);
        if (t->c->op != LAB_SEND)
            return protocol(t, "a receive");
        if (!reliable(t))
            return t->c->way == LAB_SHARED_POOL ? take_datagram_from_pool(t, d)
                                                : take_datagram(t, d);
        if (d->bytes != t->c->size)
            return protocol(t, "a message of another length");
        if (t->c->way == LAB_SHARED_POOL)
            return take_from_pool(t, d->buffer);
        return d->buffer == lab_case_slot(t->e, t->next) ? take_message(t, t->next)
                                                         : protocol(t, "a receive");
    default:
        return 0;
    }
}

/* Who has the control connection hears for all of the team. */
static int hear_of_team(struct lab_target *t)
{
    t->told = __atomic_load_n(&t->e->team->told, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&t->e->team->stop, __ATOMIC_ACQUIRE) ? -ECANCELED : 0;
}

/* "done" is all that the source says meanwhile. */
static int hear(struct lab_target *t, int wait_ms)
{
    json_t *o = NULL;
    int n = 0;
    if (t->e->team != NULL)
        return hear_of_team(t);
    if (lab_control_pending(&t->e->control, wait_ms)) {
        n = lab_control_hear(&t->e->control, "done", &o);
        json_decref(o);
        if (n < 0)
            lab_message_copy(t->e->message, t->e->control.message);
        if (n > 0)
            t->told = true;
    } else if (wait_ms > 0) {
        snprintf(t->e->message, sizeof(t->e->message), "the peer says nothing for %d ms while %s",
                 wait_ms, t->e->control.doing);
        n = -ETIMEDOUT;
    }
    return n < 0 ? n : 0;
}

static bool all_moved(const struct lab_target *t)
{
    return t->c->op == LAB_ATOMIC ||
           (t->next == t->end && (t->c->op != LAB_READ || t->done == t->end));
}

static int take_some(struct lab_target *t)
{
    struct lab_done d;
    int n = lab_case_from_queue(t->e, t->q, lab_queue_poll(t->q, &d));
    if (n > 0) {
        if (reliable(t)) /* else it may come again and again, and never whole */
            lab_patience_moved(&t->patience);
        n = take(t, &d);
    } else if (n == 0) {
        if (t->q->events)
            n = lab_case_from_queue(t->e, t->q, lab_queue_sleep(t->q, t->e->control.fd));
        if (n == 0 && !t->told && (t->q->events || t->side->empty_polls % 256 == 0))
            n = hear(t, 0);
    }
    return n < 0 ? n : lab_patience_look(&t->patience, t->e, t->c, t->next - t->c->first);
}

static void check_counter(struct lab_target *t)
{
    uint64_t found = *(volatile uint64_t *)lab_rig_counter(&t->e->rig);
    if (t->c->op != LAB_ATOMIC || found == t->end - t->c->first)
        return;
    t->side->wrong_atomics++;
    snprintf(t->side->first_fault, sizeof(t->side->first_fault),
             "the word that atomics changed is %llu instead of %llu", (unsigned long long)found,
             (unsigned long long)(t->end - t->c->first));
}

int lab_target_prepare(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                       struct lab_buffers *b, struct lab_side *side)
{
    struct lab_target t = {.e = e, .c = c, .q = q, .b = b, .side = side, .next = c->first};
    t.end = c->first + lab_case_messages(c);
    return start(&t);
}

struct lab_target *lab_target_open(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                                   struct lab_buffers *b, struct lab_side *side)
{
    struct lab_target *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return NULL;
    *t = (struct lab_target){
        .e = e,
        .c = c,
        .q = q,
        .b = b,
        .side = side,
        .next = c->first,
        .done = c->first,
        .end = c->first + lab_case_messages(c),
        /* Labels from there on: those of lab_target_prepare() are lower. */
        .receives = e->rig.pool.slots,
        .place = calloc(e->rig.pool.slots, sizeof(*t->place)),
    };
    lab_patience_init(&t->patience);
    if (t->place != NULL)
        return t;
    lab_target_close(t);
    return NULL;
}

int lab_target_turn(struct lab_target *t)
{
    int n = 0, wait_ms = (int)(t->e->settings.timeout_ns / 1000000) + 1;
    if (t->c->op == LAB_READ)
        n = make_readable(t);
    /* Over an unreliable transport a last acknowledgement may be asked for again. */
    if (n == 0)
        n = all_moved(t) && reliable(t) ? hear(t, wait_ms) : take_some(t);
    if (n < 0 || !t->told || (reliable(t) && !all_moved(t)))
        return n < 0 ? n : t->e->team != NULL && all_moved(t) && reliable(t) ? LAB_TURN_IDLE : 0;
    check_counter(t);
    return 1;
}

void lab_target_close(struct lab_target *t)
{
    if (t == NULL)
        return;
    if (t->e->settings.transport != LAB_RC)
        lab_pool_recall(&t->e->rig.pool);
    free(t->place);
    free(t);
}

int lab_target_run(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                   struct lab_buffers *b, struct lab_side *side)
{
    struct lab_target *t = lab_target_open(e, c, q, b, side);
    int n = t == NULL ? -ENOMEM : 0;
    if (t == NULL)
        snprintf(e->message, sizeof(e->message), "out of memory");
    while (n == 0)
        n = lab_target_turn(t);
    lab_target_close(t);
    return n < 0 ? n : 0;
}
