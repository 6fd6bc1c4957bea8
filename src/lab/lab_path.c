/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_path.c: points and packets of both ends become steps in the order of their times; packets of
 * one direction that follow one another at one end are one step.
 */
#include "lab/lab_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_capture.h"
#include "lab/lab_trace.h"

enum { TEXT_BYTES = 200, MAX_STEPS = 512, PSN_MASK = 0xffffff };

/* What a step is about; a packet's kind follows from its opcode, direction and the operation. */
enum kind {
    APPLICATION, /* and the library, in its calls */
    DATA,
    RESULT, /* of an atomic */
    REQUEST,
    WORD,
    READY,
    ANSWER,
    ACKNOWLEDGE,
    OTHER,
};

struct step {
    long long begin_ns, end_ns;
    bool target;
    bool packet, sent;
    enum kind kind;
    char what[TEXT_BYTES];
    const char *proves, *fails; /* to prove */
    unsigned count;             /* packets */
    uint32_t first_psn, last_psn;
    uint8_t first_opcode, last_opcode;
    enum lab_point point; /* application */
};

struct walk {
    enum lab_op op;
    enum lab_transport transport;
    struct step step[MAX_STEPS];
    struct step spare[MAX_STEPS];
    unsigned steps;
};

/* From one point to another; where nothing lies between, both are the same. */
static const struct {
    enum lab_point begin, end;
} spans[] = {
    {LAB_AT_MAKE,         LAB_AT_MADE        },
    {LAB_AT_POST,         LAB_AT_POSTED      },
    {LAB_AT_WORD,         LAB_AT_WORDED      },
    {LAB_AT_COMPLETED,    LAB_AT_COMPLETED   },
    {LAB_AT_TOLD,         LAB_AT_TOLD        },
    {LAB_AT_CHECKED,      LAB_AT_CHECKED     },
    {LAB_AT_ANSWER,       LAB_AT_ANSWERED    },
    {LAB_AT_ACKNOWLEDGED, LAB_AT_ACKNOWLEDGED},
};

static void tell(struct step *s, const char *what, const char *proves, const char *fails)
{
    snprintf(s->what, TEXT_BYTES, "%s", what);
    s->proves = proves;
    s->fails = fails;
}

/* What a completion means depends on who was to do what. */
static void tell_completion(const struct walk *w, struct step *s)
{
    const char *what = "application: polls the completion";
    if (w->transport != LAB_RC)
        tell(s, what, "the NIC needs the slot no longer",
             "that anything has arrived: nobody acknowledges over this transport");
    else if (w->op == LAB_READ)
        tell(s, what, "the data are here, as they were when the far NIC read them",
             "that the far application has noticed anything");
    else if (w->op == LAB_ATOMIC)
        tell(s, what, "the word was changed once, and what it was before is here",
             "that the far application has noticed anything");
    else
        tell(s, what, "the far NIC has all of it, and answered",
             w->op == LAB_SEND ? "that the far application has looked at it"
                               : "that the far application knows of it");
}

/* What the word of a message promises its reader: that of a Write of UC is another message. */
static void tell_told(const struct walk *w, struct step *s)
{
    const char *what = "application: is told, by a completion of its own";
    if (w->op == LAB_READ)
        tell(s, what, "the far application has made the data",
             "that they are here: they are to be read");
    else if (w->transport == LAB_RC)
        tell(s, what, "by the specification, all of it is in memory here",
             "that it is what the far application meant");
    else if (w->op == LAB_WRITE)
        tell(s, what, "the far application has written",
             "that it has come, or all of it: a Write is lost without its word");
    else
        tell(s, what, "all of this message is in memory here",
             "that it has not come before, or that those before it have come");
}

static void tell_checked(const struct walk *w, struct step *s)
{
    if (w->op == LAB_ATOMIC)
        tell(s, "application: has looked at what the word was",
             "nobody has changed it since the message before",
             "that it is still as this one left it");
    else
        tell(s, "application: has looked at each byte", "the data are whole, and of this message",
             "that the other end knows");
}

static void tell_point(const struct walk *w, struct step *s, enum lab_point begin)
{
    switch (begin) {
    case LAB_AT_MAKE:
        tell(s, "application: makes the contents in a slot, with their checksum",
             "what is to arrive, byte by byte", "anything outside of this process");
        break;
    case LAB_AT_POST:
        tell(s, "library: the work request goes into the send queue",
             "the NIC may use the slot from now on", "that it has, or that anything has left");
        break;
    case LAB_AT_WORD:
        tell(s, "library: the word of it goes into the send queue, as a Send",
             "what the far application will be told", "that it has been told");
        break;
    case LAB_AT_COMPLETED:
        tell_completion(w, s);
        break;
    case LAB_AT_TOLD:
        tell_told(w, s);
        break;
    case LAB_AT_CHECKED:
        tell_checked(w, s);
        break;
    case LAB_AT_ANSWER:
        tell(s, "library: the application's acknowledgement goes into the send queue",
             "this end needs the slot no longer", "that the other end knows");
        break;
    default:
        tell(s, "application: has the far application's acknowledgement",
             "the far application had the data whole; the slot may be used again",
             "that the far NIC knows that we have it");
        break;
    }
}

static const char *describe(enum kind kind, bool sent)
{
    switch (kind) {
    case DATA:
        return sent ? "NIC: reads memory and sends" : "NIC: data arrive and go into memory";
    case RESULT:
        return sent ? "NIC: has changed the word, and sends what it was"
                    : "NIC: what the word was arrives and goes into memory";
    case REQUEST:
        return sent ? "NIC: sends the request" : "NIC: the request arrives";
    case WORD:
        return sent ? "NIC: sends the word of it" : "NIC: the word of it arrives";
    case READY:
        return sent ? "NIC: sends the word that data are ready"
                    : "NIC: the word that data are ready arrives";
    case ANSWER:
        return sent ? "NIC: sends the application's acknowledgement"
                    : "NIC: the application's acknowledgement arrives";
    case ACKNOWLEDGE:
        return sent ? "NIC: acknowledges to the far NIC" : "NIC: is acknowledged by the far NIC";
    default:
        return sent ? "NIC: sends" : "NIC: receives";
    }
}

/* What packets prove: by what they are, and whether they left or came. */
static void tell_proof(struct step *s)
{
    static const char *const proofs[2][2][2] = {
  /* others: came, left */
        {{"what is here, in this order", "that the application knows"},
         {"what has left, in this order", "that it arrives"}                },
 /* acknowledgements: came, left */
        {{"the far NIC has all up to this PSN", "that the far application knows"},
         {"this NIC has all up to this PSN", "that the far NIC hears of it"}},
    };
    s->proves = proofs[s->kind == ACKNOWLEDGE][s->sent][0];
    s->fails = proofs[s->kind == ACKNOWLEDGE][s->sent][1];
}

static void tell_packets(struct step *s)
{
    char first[32], last[32];
    tell_proof(s);
    lab_capture_opcode(s->first_opcode, first);
    lab_capture_opcode(s->last_opcode, last);
    if (s->count == 1)
        snprintf(s->what, TEXT_BYTES, "%s: %s, PSN %u", describe(s->kind, s->sent), first,
                 s->first_psn);
    else
        snprintf(s->what, TEXT_BYTES, "%s: %u packets, %s, PSN %u to %s, PSN %u",
                 describe(s->kind, s->sent), s->count, first, s->first_psn, last, s->last_psn);
}

static bool is_send(uint8_t opcode)
{
    return (opcode & 0x1f) <= 5;
}

/* Sends are data, or words in one or the other direction. to_target: which way it goes. */
static enum kind kind_of(const struct walk *w, uint8_t opcode, bool to_target)
{
    unsigned which = opcode & 0x1f;
    if (is_send(opcode)) {
        if (w->op == LAB_READ)
            return to_target ? ANSWER : READY;
        return !to_target ? ANSWER : w->op == LAB_SEND ? DATA : WORD;
    }
    if (which == 0x11)
        return ACKNOWLEDGE;
    if (which == 0x12)
        return RESULT;
    if (which == 0x0c || which == 0x13 || which == 0x14)
        return REQUEST;
    return which < 0x12 ? DATA : OTHER;
}

static long long integer(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static void add_points(struct walk *w, const json_t *trace, bool target)
{
    const json_t *at = json_object_get(trace, "points");
    for (unsigned i = 0; i < sizeof(spans) / sizeof(spans[0]) && w->steps < MAX_STEPS; i++) {
        const char *begin = lab_point_name(spans[i].begin), *end = lab_point_name(spans[i].end);
        struct step *s = &w->step[w->steps];
        if (json_object_get(at, begin) == NULL)
            continue;
        *s = (struct step){.begin_ns = integer(at, begin),
                           .target = target,
                           .kind = APPLICATION,
                           .point = spans[i].begin};
        s->end_ns = json_object_get(at, end) != NULL ? integer(at, end) : s->begin_ns;
        tell_point(w, s, spans[i].begin);
        w->steps++;
    }
}

/* The first time of an end. */
static long long first_of(const struct walk *w, bool target)
{
    long long first = INT64_MAX;
    for (unsigned i = 0; i < w->steps; i++)
        if (w->step[i].target == target && w->step[i].begin_ns < first)
            first = w->step[i].begin_ns;
    return first;
}

/* Or several Middle ones that follow one another. */
struct packet {
    long long ns, end_ns;
    uint8_t opcode;
    uint32_t psn, count;
    bool sent;
};

static struct packet packet_of(const json_t *o)
{
    struct packet p = {.ns = integer(o, "ns"),
                       .opcode = (uint8_t)integer(o, "opcode"),
                       .psn = (uint32_t)integer(o, "psn"),
                       .count = (uint32_t)integer(o, "count"),
                       .sent = json_is_true(json_object_get(o, "sent"))};
    long long end_ns = integer(o, "end_ns");
    p.count = p.count > 1 ? p.count : 1;
    p.end_ns = end_ns > p.ns ? end_ns : p.ns;
    return p;
}

/* Is the packet of that PSN one of those that the other end has sent? */
static bool is_among(const struct packet *sent, uint8_t opcode, uint32_t psn)
{
    return sent->sent && sent->opcode == opcode && ((psn - sent->psn) & PSN_MASK) < sent->count;
}

/* When the packet left the other end, since the message began; -1 where it did not. Of several no
 * earlier than the first. */
static long long left_at(const json_t *other, uint8_t opcode, uint32_t psn, long long since_ns)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(other, "packets"), i, o)
    {
        struct packet p = packet_of(o);
        if (is_among(&p, opcode, psn) && p.ns >= since_ns)
            return p.ns;
    }
    return -1;
}

/* To the step of those before it, or a new one. */
static void add_packet(struct walk *w, struct step **last, const struct packet *p, bool target)
{
    enum kind kind = kind_of(w, p->opcode, p->sent != target);
    struct step *s = *last;
    if (s == NULL || s->sent != p->sent || s->kind != kind || kind == ACKNOWLEDGE) {
        if (w->steps == MAX_STEPS)
            return;
        s = *last = &w->step[w->steps++];
        *s = (struct step){.begin_ns = p->ns,
                           .target = target,
                           .packet = true,
                           .sent = p->sent,
                           .kind = kind,
                           .first_psn = p->psn,
                           .first_opcode = p->opcode};
    }
    s->end_ns = p->end_ns;
    s->last_psn = (p->psn + p->count - 1) & PSN_MASK;
    s->last_opcode = p->opcode;
    s->count += p->count;
}

/* Those since the message began; the ones before are of messages before. A packet is there
 * when it was given to the kernel, and when it has come: that cannot be before it left. */
static void add_packets(struct walk *w, const json_t *trace, const json_t *other, bool target,
                        long long since_ns)
{
    struct step *last = NULL;
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(trace, "packets"), i, o)
    {
        struct packet p = packet_of(o);
        long long left_ns = p.sent ? p.ns : left_at(other, p.opcode, p.psn, since_ns);
        p.ns = p.ns < left_ns ? left_ns : p.ns;
        p.end_ns = p.end_ns < p.ns ? p.ns : p.end_ns;
        if (left_ns >= since_ns)
            add_packet(w, &last, &p, target);
    }
}

/* Of two clocks nothing is known but the order at each end. The end that begins the message: from
 * the first packet then. What answers it may be in the capture before what it answers, for a packet
 * is there when its sending is done. */
static size_t first_since(const json_t *packets, long long since_ns)
{
    size_t i;
    json_t *o;
    json_array_foreach(packets, i, o)
    {
        if (packet_of(o).ns >= since_ns)
            return i;
    }
    return json_array_size(packets);
}

/* The other end: from the first that comes to it of those. */
static size_t first_received(const json_t *packets, const json_t *from, size_t first)
{
    for (size_t i = 0; i < json_array_size(packets); i++) {
        struct packet p = packet_of(json_array_get(packets, i));
        for (size_t k = first; !p.sent && k < json_array_size(from); k++) {
            struct packet other = packet_of(json_array_get(from, k));
            if (is_among(&other, p.opcode, p.psn))
                return i;
        }
    }
    return json_array_size(packets);
}

static void add_packets_from(struct walk *w, const json_t *packets, size_t first, bool target)
{
    struct step *last = NULL;
    for (size_t i = first; i < json_array_size(packets); i++) {
        struct packet p = packet_of(json_array_get(packets, i));
        add_packet(w, &last, &p, target);
    }
}

static void add_packets_of_two_clocks(struct walk *w, const json_t *source, const json_t *target)
{
    const json_t *made = json_object_get(json_object_get(target, "points"), "make");
    bool target_begins = made != NULL;
    const json_t *here = json_object_get(target_begins ? target : source, "packets");
    const json_t *there = json_object_get(target_begins ? source : target, "packets");
    long long since_ns = first_of(w, target_begins);
    size_t first = first_since(here, since_ns);
    add_packets_from(w, here, first, target_begins);
    add_packets_from(w, there, first_received(there, here, first), !target_begins);
}

static int compare(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (int)y->sent - (int)x->sent; /* what left did so before it came */
}

/* Is the cause of step s, which is of the other end, e? */
static bool causes(const struct step *e, const struct step *s)
{
    static const struct {
        enum lab_point cause, effect;
    } points[] = {
        {LAB_AT_POST,   LAB_AT_TOLD        },
        {LAB_AT_WORD,   LAB_AT_TOLD        },
        {LAB_AT_ANSWER, LAB_AT_ACKNOWLEDGED},
    };
    if (e->target == s->target || e->packet != s->packet)
        return false;
    if (s->packet)
        return e->sent && !s->sent && e->kind == s->kind &&
               ((s->first_psn - e->first_psn) & PSN_MASK) <=
                   ((e->last_psn - e->first_psn) & PSN_MASK);
    for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++)
        if (e->point == points[i].cause && s->point == points[i].effect)
            return true;
    return false;
}

/* Is one of the steps that are still to come a cause of s? */
static bool must_wait(const struct walk *w, const bool *done, const struct step *s)
{
    for (unsigned i = 0; i < w->steps; i++)
        if (!done[i] && causes(&w->step[i], s))
            return true;
    return false;
}

static const struct step *next_of(const struct walk *w, const bool *done, bool target)
{
    for (unsigned i = 0; i < w->steps; i++)
        if (!done[i] && w->step[i].target == target)
            return &w->step[i];
    return NULL;
}

/* Two clocks: each end's steps in the order of its own clock, and each after its cause at the other
 * end. It stays with an end as long as that can go on. */
static void order_by_causes(struct walk *w, struct step *out)
{
    bool done[MAX_STEPS] = {false}, target = false;
    for (unsigned n = 0; n < w->steps; n++) {
        const struct step *s = next_of(w, done, target), *other = next_of(w, done, !target);
        if (s == NULL || (other != NULL && must_wait(w, done, s) && !must_wait(w, done, other)))
            s = other;
        target = s->target;
        out[n] = *s;
        done[s - w->step] = true;
    }
    memcpy(w->step, out, w->steps * sizeof(*out));
}

static json_t *step_json(const struct step *s, unsigned number, long long since_ns)
{
    json_t *o = json_pack("{s:i,s:s,s:s,s:I,s:I,s:s,s:s}", "number", (int)number, "end",
                          s->target ? "target" : "source", "what", s->what, "begin_ns",
                          (json_int_t)(s->begin_ns - since_ns), "end_ns",
                          (json_int_t)(s->end_ns - since_ns), "proves", s->proves, "not", s->fails);
    if (s->packet)
        json_object_set_new(o, "packets",
                            json_pack("{s:b,s:i,s:i,s:i}", "sent", s->sent, "count", (int)s->count,
                                      "first_psn", (int)s->first_psn, "last_psn",
                                      (int)s->last_psn));
    return o;
}

/* Where most of the time passes while nobody does anything: what does not belong to the steps is
 * not to be taken for their cost. NULL: it does not. */
static json_t *longest_wait(const struct walk *w)
{
    enum { LEAST_NS = 1000000 };
    long long over_ns = w->steps > 0 ? w->step[0].end_ns : 0, most_ns = 0;
    unsigned before = 0;
    for (unsigned i = 1; i < w->steps; i++) {
        const struct step *s = &w->step[i];
        if (s->begin_ns - over_ns > most_ns) {
            most_ns = s->begin_ns - over_ns;
            before = i + 1;
        }
        over_ns = s->end_ns > over_ns ? s->end_ns : over_ns;
    }
    if (most_ns < LEAST_NS || 2 * most_ns < over_ns - w->step[0].begin_ns)
        return NULL;
    return json_pack(
        "{s:i,s:I,s:o}", "before", (int)before, "ns", (json_int_t)most_ns, "says",
        json_sprintf("Most of the time, %.1f us, passes before step %u: the %s waits there, for a "
                     "CPU (an end that polls needs one of its own: use --wait event, or more "
                     "CPUs), for a timer, or for the network",
                     (double)most_ns / 1e3, before,
                     w->step[before - 1].target ? "target" : "source"));
}

json_t *lab_path_make(enum lab_op op, enum lab_transport transport, uint32_t size,
                      const json_t *source, const json_t *target, bool two_clocks)
{
    struct walk *w = calloc(1, sizeof(*w));
    json_t *steps = json_array();
    bool packets = false;
    if (w == NULL)
        return steps;
    w->op = op;
    w->transport = transport;
    add_points(w, source, false);
    add_points(w, target, true);
    long long here_ns = first_of(w, false), there_ns = first_of(w, true);
    if (two_clocks) {
        add_packets_of_two_clocks(w, source, target);
        here_ns = first_of(w, false);
        there_ns = first_of(w, true);
    } else {
        here_ns = there_ns = here_ns < there_ns ? here_ns : there_ns;
        add_packets(w, source, target, false, here_ns);
        add_packets(w, target, source, true, here_ns);
    }
    qsort(w->step, w->steps, sizeof(w->step[0]), compare);
    if (two_clocks)
        order_by_causes(w, w->spare);
    for (unsigned i = 0; i < w->steps; i++) {
        packets |= w->step[i].packet;
        if (w->step[i].packet)
            tell_packets(&w->step[i]);
        json_array_append_new(
            steps, step_json(&w->step[i], i + 1, w->step[i].target ? there_ns : here_ns));
    }
    json_t *wait = two_clocks ? NULL : longest_wait(w);
    free(w);
    return json_pack("{s:s,s:s,s:I,s:b,s:i,s:o,s:o*}", "op", lab_op_name(op), "transport",
                     lab_transport_name(transport), "size", (json_int_t)size, "packets", packets,
                     "clocks", two_clocks ? 2 : 1, "steps", steps, "wait", wait);
}

static const char *text(const json_t *o, const char *name)
{
    const char *t = json_string_value(json_object_get(o, name));
    return t != NULL ? t : "?";
}

enum { LEFT = 0, RIGHT = 44, ROW_BYTES = 56, ARROW_BYTES = 16 };

/* One row a step: the source on the left, the target on the right, packets between them. */
static void draw_step(FILE *out, const json_t *s)
{
    const json_t *packets = json_object_get(s, "packets");
    bool target = strcmp(text(s, "end"), "target") == 0;
    char row[ROW_BYTES + 1], number[8];
    memset(row, ' ', ROW_BYTES);
    row[ROW_BYTES] = '\0';
    row[LEFT] = row[RIGHT] = '|';
    int n = snprintf(number, sizeof(number), "%lld", integer(s, "number") % 1000 + 0LL);
    char *at = row + (target ? RIGHT : LEFT);
    *at = 'o';
    memcpy(at + 2, number, (size_t)n);
    if (packets != NULL) {
        bool right = json_is_true(json_object_get(packets, "sent")) != target;
        char *arrow = row + (target ? RIGHT - ARROW_BYTES - 2 : LEFT + 6);
        memset(arrow, '-', ARROW_BYTES);
        arrow[right ? ARROW_BYTES - 1 : 0] = right ? '>' : '<';
    }
    for (char *end = row + ROW_BYTES; end > row && end[-1] == ' '; end--)
        end[-1] = '\0';
    fprintf(out, "%10.1f  %s\n", (double)integer(s, "begin_ns") / 1e3, row);
}

static void draw(FILE *out, const json_t *steps)
{
    size_t i;
    json_t *s;
    fprintf(out, "\n%10s  %-*s%s\n", "us", RIGHT, "source", "target");
    json_array_foreach(steps, i, s) draw_step(out, s);
}

int lab_path_write(const json_t *path, FILE *out)
{
    const json_t *steps = json_object_get(path, "steps");
    size_t i;
    json_t *s;
    errno = 0;
    fprintf(out, "\nThe path of one %s of %lld bytes over %s, times in us since it began%s:\n\n",
            text(path, "op"), (long long)integer(path, "size"), text(path, "transport"),
            integer(path, "clocks") == 2 ? " at that end, by the clock of that end" : "");
    json_array_foreach(steps, i, s)
    {
        fprintf(out, "%3lld  %9.1f .. %.1f  %s, %s\n", (long long)integer(s, "number"),
                (double)integer(s, "begin_ns") / 1e3, (double)integer(s, "end_ns") / 1e3,
                text(s, "end"), text(s, "what"));
        fprintf(out, "       proves: %s; does not prove: %s\n", text(s, "proves"), text(s, "not"));
    }
    if (json_is_true(json_object_get(path, "packets")))
        fprintf(out,
                "\nA packet's time is when it was given to the kernel, or had come from it.\n");
    else
        fprintf(out, "\nPackets are not shown: this NIC writes no capture.\n");
    if (json_object_get(path, "wait") != NULL)
        fprintf(out, "%s.\n", text(json_object_get(path, "wait"), "says"));
    draw(out, steps);
    if (fflush(out) != 0)
        return errno != 0 ? -errno : -EIO;
    return 0;
}
